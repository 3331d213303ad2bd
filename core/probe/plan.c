// Cells from lists, and a trial from a cell.
#include "core/probe/plan.h"

#include <string.h>

#include "core/allocator/torch.h"
#include "core/base/buf.h"
#include "core/model/model.h"
#include "core/probe/launcher.h"

bool probe_run_read(struct probe_run *r, struct arena *a, const struct settings *s, struct error *e)
{
    *r = (struct probe_run){.arena = a, .settings = s};
    if (!probe_options_read(&r->options, a, s, e))
        return false;
    r->cell_count = probe_cell_count(&r->options);
    r->story.cells = NEW(a, struct probe_cell, r->cell_count);
    r->place.shipped = str_format(a, "%.*s/share", STR_ARGS(r->options.log_folder));
    return true;
}

// ------------------------------------------------------------------ the card

// An engine that cannot be kept to less memory trains on the card that is there, if one is.
static bool can_play(const struct probe_run *r, const struct hardware *meant, struct error *e)
{
    const struct gpu *here = gpu_find_nvml(r->place.present);
    bool same = here && strcmp(here->name, meant->card.name) == 0;
    return !r->options.engine->whole_card || !r->place.present.n || same ||
           FAIL(e, BAD_INPUT, STR("--as"),
                "the %s engine cannot play another card than the one that is there, %.*s",
                r->options.engine->name, STR_ARGS(r->place.present));
}

bool probe_run_card(struct probe_run *r, struct error *e)
{
    const struct setting *as = settings_find_z(r->settings, "as");
    const struct setting *fake = settings_find_z(r->settings, "fake");
    struct hardware hardware;
    r->limited = as || settings_find_z(r->settings, "memory-limit");
    r->card = as ? as->value : r->place.found;
    if (fake && !words_have("torch|trl|command", '|', str_from(r->options.engine->name)))
        return FAIL(e, BAD_INPUT, fake->where,
                    "of the engines torch, trl and command train on fake tensors");
    if (fake && !r->limited)
        return FAIL(e, BAD_INPUT, fake->where,
                    "fake tensors are on no card; --as H100-80G says which is meant");
    return !as || (hardware_from_spec(&hardware, r->arena, as, e) &&
                   (hardware_gpus(&hardware) == 1 ||
                    FAIL(e, BAD_INPUT, as->where, "as names one card; --gpus says how many")) &&
                   can_play(r, &hardware, e));
}

// ------------------------------------------------------------------ one cell

// Of a place such as "." the name of the folder it is.
static struct str name_of(struct str model, struct str path)
{
    struct str name = probe_model_name(model);
    bool here = str_is(name, ".") || str_is(name, "..") || str_is(model, "config.json");
    return here && path.n ? probe_model_name(path) : name;
}

// A catalogue's name means the model on the hub. Frameworks find a folder from wherever they run.
static struct str model_for_engine(const struct cell_plan *p, struct str model)
{
    const struct catalog_model *row = model.n ? catalog_model_find(model) : NULL;
    if (row && !str_cut(model, '/').found)
        return str_format(p->run->arena, "%s/%s", row->owner, row->name);
    if (row || !p->run->options.engine->needs_model || !p->path.n)
        return model;
    struct str file = STR("/config.json");
    return str_ends(p->path, file) ? str_slice(p->path, 0, p->path.n - file.n) : p->path;
}

static struct str title_of(struct arena *a, const struct probe_cell *c)
{
    struct str cp = c->cp > 1 ? str_format(a, ", cp %llu", (unsigned long long)c->cp) : STR_NONE;
    return str_format(a, "%.*s, %llu GPU%s, sp %llu%.*s", STR_ARGS(str_plain(a, c->model)),
                      (unsigned long long)c->gpus, c->gpus == 1 ? "" : "s",
                      (unsigned long long)c->sp, STR_ARGS(cp));
}

// What the published test leaves out: sizes that do not divide the GPUs or the heads.
static void check_possible(struct probe_cell *c, struct arena *a, uint64_t heads)
{
    unsigned long long sp = c->sp, cp = c->cp;
    struct str gpus =
        c->gpus == 1 ? STR("one GPU") : str_format(a, "%llu GPUs", (unsigned long long)c->gpus);
    if (c->gpus % c->sp)
        c->refusal = str_format(a, "sp %llu does not divide the %.*s", sp, STR_ARGS(gpus));
    else if (c->gpus % (c->sp * c->cp))
        c->refusal = str_format(a, "%scp %llu does not divide the %.*s",
                                c->sp > 1 ? "sp times " : "", cp, STR_ARGS(gpus));
    else if (heads % c->sp)
        c->refusal = str_format(a, "sp %llu does not divide the %llu attention heads", sp,
                                (unsigned long long)heads);
    c->possible = !c->refusal.n;
}

static bool set(struct settings *s, const char *key, struct str value, const char *where,
                struct error *e)
{
    return settings_set(s, (struct setting){str_from(key), value, str_from(where)}, e);
}

// The settings of a prediction: the machine's card, and the torch that really runs.
static bool make_job(struct cell_plan *p, struct error *e)
{
    struct probe_run *r = p->run;
    const char *recipe = r->options.engine->recipe;
    struct str machine =
        str_format(r->arena, "%llux%.*s", (unsigned long long)p->cell->gpus, STR_ARGS(r->card));
    p->job = settings_in(r->arena);
    p->machine = r->card.n ? machine : STR_NONE;
    if (!probe_job_settings(&p->job, &p->settings, e) || !set(&p->job, "gpu", machine, "--as", e) ||
        (recipe && !set(&p->job, "recipe", str_from(recipe), "--engine", e)))
        return false;
    int minor;
    struct error unknown = {0};
    struct str torch = r->place.torch;
    bool known = torch.n && torch_version_parse(&minor, torch, &unknown);
    return !known || settings_find_z(&p->job, "torch") ||
           set(&p->job, "torch", torch, "--torch", e);
}

static void expect(struct cell_plan *p)
{
    struct probe_run *r = p->run;
    struct expectation x = {0};
    if (!p->config.n)
        x.why_not = STR("no model is given");
    else if (!r->card.n)
        x.why_not = STR("this machine's card is not known, and --as names none");
    else
        expect_longest(&x, r->arena, &p->job, &p->hunt.grid);
    p->cell->predicted = p->hunt.predicted = x.known;
    p->cell->expected = p->hunt.expected = x.longest;
    p->cell->unpredicted = x.why_not;
}

// A cell that the engine has no files for is left out.
static void ask_engine(struct cell_plan *p)
{
    struct probe_run *r = p->run;
    struct hunt_step first = {.context = grid_length(&p->hunt.grid, 0), .try = 1};
    struct planned_trial t = plan_trial(p, &first, plan_log(p, first.context, 1));
    struct launch *l = NEW(r->arena, struct launch, 1);
    struct error refusal = {0};
    p->cell->possible = plan_launch(l, r->arena, &r->options, &t.request, &refusal);
    if (p->cell->possible)
        return;
    p->cell->refusal = str_copy(r->arena, str_from(refusal.message));
    r->refusal = r->refusal.code ? r->refusal : refusal;
}

bool plan_cell(struct cell_plan *p, struct probe_run *r, ptrdiff_t index, struct error *e)
{
    struct probe_cell *c = &r->story.cells[index];
    struct model *m = NEW(r->arena, struct model, 1);
    struct cell_choice choice = probe_cell_choice(&r->options, index);
    struct cell_sizes sizes;
    *p = (struct cell_plan){.run = r, .cell = c, .hunt = r->options.hunt};
    p->settings = settings_in(r->arena);
    r->story.count = index + 1;
    if (!probe_cell_sizes(&sizes, &choice, e) ||
        !probe_cell_settings(&p->settings, r->settings, &choice, e))
        return false;
    c->gpus = sizes.gpus, c->sp = sizes.sp, c->cp = sizes.cp;
    p->path = r->place.model_paths ? r->place.model_paths[choice.number] : STR_NONE;
    c->model = name_of(choice.model, p->path);
    c->card = r->card;
    c->title = title_of(r->arena, c);
    p->model = model_for_engine(p, choice.model);
    p->config = model_config_json(r->arena, &p->settings);
    if (choice.model.n && !model_from_settings(m, r->arena, &p->settings, e))
        return false;
    c->max_position = p->hunt.grid.max_position = m->max_position;
    check_possible(c, r->arena, m->heads);
    if (!c->possible)
        return true;
    if (!make_job(p, e) || (r->limited && !expect_limit(&p->limit, *r->arena, &p->job, e)))
        return false;
    p->hunt.grid = expect_grid(*r->arena, &p->job, &p->hunt.grid);
    ask_engine(p);
    if (c->possible)
        expect(p);
    return true;
}

// ------------------------------------------------------------------ its trials

// One folder is one model, however it is written.
static struct str key_of(const struct cell_plan *p)
{
    struct arena *a = p->run->arena;
    struct settings s = settings_in(a);
    struct error ignored = {0};
    bool ok = true;
    for (ptrdiff_t i = 0; i < p->settings.count && ok; i++) {
        struct setting item = p->settings.items[i];
        bool placed = p->path.n && str_is(item.key, "model") && !catalog_model_find(item.value);
        item.value = placed ? p->path : item.value;
        if (placed && str_ends(item.value, STR("/config.json")))
            item.value = str_slice(item.value, 0, item.value.n - STR("/config.json").n);
        ok = settings_add(&s, item, &ignored);
    }
    return probe_cell_key(a, &s, p->run->place.present);
}

struct cell_record plan_record(const struct cell_plan *p)
{
    const struct probe_cell *c = p->cell;
    return (struct cell_record){.key = key_of(p),
                                .model = c->model,
                                .engine = str_from(p->run->options.engine->name),
                                .card = c->card,
                                .config = p->config,
                                .gpus = c->gpus,
                                .sp = c->sp,
                                .max_position = c->max_position};
}

struct str plan_log(const struct cell_plan *p, uint64_t context, int number)
{
    struct arena *a = p->run->arena;
    struct str again = number > 1 ? str_format(a, ".%d", number) : STR_NONE;
    const struct probe_cell *c = p->cell;
    struct str cp = c->cp > 1 ? str_format(a, "cp-%llu/", (unsigned long long)c->cp) : STR_NONE;
    return str_format(a, "%.*s/%.*s/gpu-%llu/sp-%llu/%.*smodel_len-%llu%.*s.log",
                      STR_ARGS(p->run->options.log_folder), STR_ARGS(c->model),
                      (unsigned long long)c->gpus, (unsigned long long)c->sp, STR_ARGS(cp),
                      (unsigned long long)context, STR_ARGS(again));
}

// A folder of the trial's own: what stands beside it is not ours to remove.
static struct str checkpoints_of(const struct probe_run *r)
{
    const struct setting *given = settings_find_z(r->settings, "checkpoint-path");
    struct str folder = given ? given->value : r->place.checkpoints;
    if (!folder.n)
        folder = str_format(r->arena, "%.*s/checkpoints", STR_ARGS(r->options.log_folder));
    return str_format(r->arena, "%.*s/fathom-trial", STR_ARGS(folder));
}

// As in the published test, each try so many tenths of the one before it.
static uint64_t timeout_of(uint64_t ms, int try)
{
    enum { GROWTH_TENTHS = 13 };
    for (int i = 1; i < try; i++)
        ms = ms * GROWTH_TENTHS / 10;
    return ms;
}

struct planned_trial plan_trial(const struct cell_plan *p, const struct hunt_step *step,
                                struct str log)
{
    struct probe_run *r = p->run;
    struct planned_trial t = {.timeout_ms = timeout_of(r->options.timeout_ms, step->try)};
    if (p->cell->predicted)
        expect_trial(&t.expected, *r->arena, &p->job, step->context);
    t.request = (struct trial_request){
        .cell = &p->settings,
        .model = p->model,
        .model_name = p->cell->model,
        .config = p->config,
        .machine = p->machine,
        .context = step->context,
        .gpus = p->cell->gpus,
        .sp = p->cell->sp,
        .cp = p->cell->cp,
        .max_position = p->cell->max_position,
        .limit_bytes = p->limit.limit_bytes,
        .workspace_bytes = p->limit.workspace_bytes,
        .try = step->try,
        .log = log,
        .program = r->place.program,
        .shipped = r->place.shipped,
        .python_path = r->place.python_path,
        .socket = r->place.socket,
        .checkpoints = checkpoints_of(r),
    };
    return t;
}

bool plan_launch(struct launch *l, struct arena *a, const struct probe_options *o,
                 const struct trial_request *r, struct error *e)
{
    return o->engine->build(l, a, r, e) && launcher_wrap(l, a, o->launcher, r, e);
}

// A scheduler's line, and under it what its job runs.
static bool put_command(struct buf *b, struct arena *a, const struct probe_options *o,
                        const struct trial_request *r, struct error *e)
{
    struct launch *outer = NEW(a, struct launch, 1), *inner = NEW(a, struct launch, 1);
    if (!plan_launch(outer, a, o, r, e) || !o->engine->build(inner, a, r, e))
        return false;
    if (o->launcher != LAUNCHER_LOCAL) {
        launch_print(b, outer);
        buf_put_z(b, "\n    runs: ");
    }
    launch_print(b, inner);
    return true;
}

bool plan_commands(const struct cell_plan *p, struct error *e)
{
    struct probe_run *r = p->run;
    struct probe_cell *c = p->cell;
    struct trial first = {0};
    for (ptrdiff_t i = 0; i < DRY_RUN_TRIALS; i++) {
        struct buf b = buf_in(r->arena);
        struct hunt_step step = hunt_next(&p->hunt, &first, i);
        if (step.state != HUNT_TRY)
            return true;
        struct planned_trial t = plan_trial(p, &step, plan_log(p, step.context, 1));
        if (!put_command(&b, r->arena, &r->options, &t.request, e))
            return false;
        c->commands[c->command_count++] = buf_str(&b);
        first = (struct trial){step.context, OUTCOME_FITS};
    }
    return true;
}
