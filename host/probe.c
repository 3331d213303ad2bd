// The run: cells from lists, a prediction for each, and hunts whose trials are made here.
#include "host/probe.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/allocator/torch.h"
#include "core/base/units.h"
#include "core/model/model.h"
#include "core/report/probe.h"
#include "host/file.h"
#include "host/gpu_source.h"
#include "host/interrupts.h"
#include "host/nvml.h"
#include "host/probe_trial.h"
#include "host/shipped.h"
#include "host/torch_server.h"

enum { SCRATCH_BYTES = 32 << 20, MOST_DETAIL = 200, SETTLE_STEP_MS = 20 };

struct run {
    struct arena *arena;
    struct arena scratch; // of one trial
    const struct settings *settings;
    const struct probe_console *console;
    struct probe_options options;
    struct store *store;
    struct interrupts interrupts;
    struct torch_server server;
    bool server_restarted;
    struct str card;    // "A100-80G", empty where none is known
    struct str present; // "NVIDIA H200", what trials run on here; empty where that is not known
    bool limited;       // torch is to be kept to a card's memory
    struct str shipped; // folder
    struct probe_story story;
    struct error refusal; // the first of a cell that is left out
};

// One cell while it is hunted through.
struct hunting {
    struct run *run;
    struct probe_cell *cell;
    struct settings settings, job;
    struct hunt hunt;
    struct str model_name, title, config, machine;
    struct str log; // of the newest trial
    bool interrupted;
    struct card_limit limit; // zero where torch has all of the card
    int64_t id;
    struct trials trials;
};

static void say(const struct run *r, const char *format, ...) PRINTF_LIKE(2, 3);

static void say(const struct run *r, const char *format, ...)
{
    struct arena scratch = *r->arena;
    va_list args;
    va_start(args, format);
    struct str text = str_vformat(&scratch, format, args);
    va_end(args);
    r->console->line(r->console->context, text);
}

// ------------------------------------------------------------------ cells

// Of a place such as "." the name of the folder it is.
static struct str name_of(struct arena *a, struct str model)
{
    struct str name = probe_model_name(model);
    bool here = str_is(name, ".") || str_is(name, "..") || str_is(model, "config.json");
    return here ? probe_model_name(path_real(a, model)) : name;
}

// NVML's names of this machine's GPUs, each kind once. Jobs of a scheduler run elsewhere.
static struct str cards_present(struct run *r)
{
    struct nvml_gpu *gpus;
    ptrdiff_t count;
    struct str driver;
    struct error none = {0};
    struct buf names = buf_in(r->arena);
    if (r->options.launcher != LAUNCHER_LOCAL ||
        !nvml_list(&gpus, &count, &driver, r->arena, &none))
        return STR_NONE;
    for (ptrdiff_t i = 0; i < count; i++)
        if (i == 0 || strcmp(gpus[i].name, gpus[i - 1].name) != 0)
            buf_printf(&names, "%s%s", i ? ", " : "", gpus[i].name);
    return buf_str(&names);
}

// An engine that cannot be kept to less memory trains on the card that is there, if one is.
static bool can_play(const struct run *r, const struct hardware *meant, struct error *e)
{
    const struct gpu *here = gpu_find_nvml(r->present);
    bool same = here && strcmp(here->name, meant->card.name) == 0;
    return !r->options.engine->whole_card || !r->present.n || same ||
           FAIL(e, BAD_INPUT, STR("--as"),
                "the %s engine cannot play another card than the one that is there, %.*s",
                r->options.engine->name, STR_ARGS(r->present));
}

static bool find_card(struct run *r, struct error *e)
{
    const struct setting *as = settings_find_z(r->settings, "as");
    const struct setting *limit = settings_find_z(r->settings, "memory-limit");
    struct settings found = settings_in(r->arena);
    struct error none = {0};
    struct hardware hardware;
    r->limited = as || limit;
    r->present = cards_present(r);
    if (as) {
        r->card = as->value;
        return hardware_from_spec(&hardware, r->arena, as, e) &&
               (hardware_gpus(&hardware) == 1 ||
                FAIL(e, BAD_INPUT, as->where, "as names one card; --gpus says how many")) &&
               can_play(r, &hardware, e);
    }
    if (!settings_add(&found, (struct setting){STR("gpu"), STR("auto"), STR("NVML")}, e))
        return false;
    if (gpu_source_resolve(&found, &none))
        r->card = str_cut(settings_find_z(&found, "gpu")->value, 'x').tail;
    return true;
}

static bool read_count(uint64_t *value, const struct setting *item, struct error *e)
{
    return setting_number(value, item, UNIT_COUNT, (struct range){1, 65536}, e);
}

// What the published test leaves out: sizes that do not divide the GPUs or the heads.
static void check_possible(struct probe_cell *c, struct arena *a, const struct model *m)
{
    unsigned long long sp = c->sp;
    c->possible = true;
    if (c->gpus % c->sp)
        c->refusal =
            str_format(a, "sp %llu does not divide the %llu GPUs", sp, (unsigned long long)c->gpus);
    else if (m && m->heads % c->sp)
        c->refusal = str_format(a, "sp %llu does not divide the %llu attention heads", sp,
                                (unsigned long long)m->heads);
    c->possible = !c->refusal.n;
}

// The settings of a prediction: the machine's card, and the torch that really runs.
static bool make_plan(struct hunting *h, struct error *e)
{
    struct run *r = h->run;
    struct str machine =
        str_format(r->arena, "%llux%.*s", (unsigned long long)h->cell->gpus, STR_ARGS(r->card));
    h->job = settings_in(r->arena);
    h->machine = r->card.n ? machine : STR_NONE;
    if (!probe_job_settings(&h->job, &h->settings, e) ||
        !settings_set(&h->job, (struct setting){STR("gpu"), machine, STR("--as")}, e))
        return false;
    const char *recipe = r->options.engine->recipe;
    if (recipe &&
        !settings_set(&h->job, (struct setting){STR("recipe"), str_from(recipe), STR("--engine")},
                      e))
        return false;
    int minor;
    struct error unknown = {0};
    bool known = r->server.torch.n && torch_version_parse(&minor, r->server.torch, &unknown);
    return !known || settings_find_z(&h->job, "torch") ||
           settings_set(&h->job, (struct setting){STR("torch"), r->server.torch, STR("--torch")},
                        e);
}

static void expect(struct hunting *h)
{
    struct run *r = h->run;
    struct probe_cell *c = h->cell;
    struct expectation x = {0};
    if (!h->config.n)
        x.why_not = STR("no model is given");
    else if (!r->card.n)
        x.why_not = STR("this machine's card is not known, and --as names none");
    if (!x.why_not.n)
        expect_longest(&x, r->arena, &h->job, &h->hunt.grid);
    c->predicted = h->hunt.predicted = x.known;
    c->expected = h->hunt.expected = x.longest;
    c->unpredicted = x.why_not;
}

// ------------------------------------------------------------------ the torch worker's server

static bool start_server(struct run *r, struct error *e)
{
    struct trial_request request = {.cell = r->settings, .shipped = r->shipped};
    if (!r->options.engine->serves || r->options.launcher != LAUNCHER_LOCAL)
        return true;
    r->server.interrupts = &r->interrupts;
    return torch_server_start(&r->server, r->arena, &request, &r->options, e);
}

// A server that was killed is started once more.
static bool revive_server(struct run *r, struct error *e)
{
    if (!r->server.socket.n || keeper_is_alive(&r->server.keeper))
        return true;
    if (r->server_restarted)
        return FAIL(e, CHILD, STR_NONE, "the torch worker's server was killed twice");
    r->server_restarted = true;
    say(r, "the torch worker's server was killed; it is started again\n");
    return start_server(r, e);
}

// ------------------------------------------------------------------ one cell

static struct str log_path(const struct hunting *h, uint64_t context, int number)
{
    struct run *r = h->run;
    struct str again = number > 1 ? str_format(r->arena, ".%d", number) : STR_NONE;
    return str_format(r->arena, "%.*s/%.*s/gpu-%llu/sp-%llu/model_len-%llu%.*s.log",
                      STR_ARGS(r->options.log_folder), STR_ARGS(h->model_name),
                      (unsigned long long)h->cell->gpus, (unsigned long long)h->cell->sp,
                      (unsigned long long)context, STR_ARGS(again));
}

// The first name that no other trial's log has, whether the store knows it or not: the length may
// have been tried before, in another configuration or by a model of the same name.
static bool choose_log(struct str *log, const struct hunting *h, uint64_t context, struct error *e)
{
    bool known = true;
    uint64_t bytes;
    for (int number = 1; known; number++) {
        struct error ignored = {0};
        *log = log_path(h, context, number);
        if (!store_has_log(&known, h->run->store, *log, e))
            return false;
        known = known || file_size(&bytes, *h->run->arena, *log, &ignored);
    }
    return true;
}

// A catalogue's name means the model on the hub. Frameworks find a folder from wherever they run.
static struct str model_for_engine(struct arena *a, const struct engine *engine,
                                   const struct settings *s)
{
    const struct setting *model = settings_find_z(s, "model");
    if (!model)
        return STR_NONE;
    const struct catalog_model *row = catalog_model_find(model->value);
    bool bare = row && !str_cut(model->value, '/').found;
    if (bare)
        return str_format(a, "%s/%s", row->owner, row->name);
    if (row || !engine->needs_model || path_kind(*a, model->value) == PATH_NONE)
        return model->value;
    struct str path = path_real(a, model->value), file = STR("/config.json");
    return str_ends(path, file) ? str_slice(path, 0, path.n - file.n) : path;
}

static struct trial_run prepare_trial(const struct hunting *h, const struct hunt_step *step,
                                      struct str log)
{
    struct run *r = h->run;
    const struct setting *checkpoints = settings_find_z(r->settings, "checkpoint-path");
    struct trial_run t = {.options = &r->options,
                          .console = r->console,
                          .store = r->store,
                          .cell = h->id,
                          .interrupts = r->interrupts.fd,
                          .spared = r->server.keeper.pid,
                          .scratch = r->scratch};
    t.title = h->title;
    if (h->cell->predicted)
        expect_trial(&t.expected, *r->arena, &h->job, step->context);
    struct str usual = str_from(getenv("TRINITY_CHECKPOINT_ROOT_DIR"));
    struct str folder =
        checkpoints ? checkpoints->value
        : usual.n   ? usual
                    : str_format(r->arena, "%.*s/checkpoints", STR_ARGS(r->options.log_folder));
    t.request = (struct trial_request){
        .cell = &h->settings,
        .model = model_for_engine(r->arena, r->options.engine, &h->settings),
        .model_name = h->model_name,
        .config = h->config,
        .machine = h->machine,
        .context = step->context,
        .gpus = h->cell->gpus,
        .sp = h->cell->sp,
        .max_position = h->cell->max_position,
        .limit_bytes = h->limit.limit_bytes,
        .workspace_bytes = h->limit.workspace_bytes,
        .try = step->try,
        .log = log,
        .shipped = r->shipped,
        .socket = r->server.socket,
        .checkpoints = str_format(r->arena, "%.*s/fathom-trial", STR_ARGS(folder)),
    };
    return t;
}

static bool interrupted(struct error *e)
{
    FAIL(e, CHILD, STR_NONE, "interrupted; every finished trial is kept");
    return HINT(e, "the same command goes on from there");
}

static void tell_trial(const struct run *r, const struct trial_run *t,
                       const struct attempt_record *done)
{
    struct buf b = buf_in(r->arena);
    buf_printf(&b, "%.*s: %llu tokens: %s", STR_ARGS(t->title), (unsigned long long)done->context,
               outcome_rows[done->outcome].title);
    if (done->peaks.reserved_bytes) {
        buf_put_z(&b, ", reserved ");
        put_gib(&b, done->peaks.reserved_bytes);
    }
    if (t->expected.known)
        buf_printf(&b, ", predicted to %s", t->expected.fits ? "fit with " : "fail");
    if (t->expected.known && t->expected.fits)
        put_gib(&b, t->expected.reserved_bytes);
    buf_printf(&b, ", %.1f s", (double)(done->ended_ms - done->started_ms) / 1000);
    if (outcome_rows[done->outcome].verdict == LENGTH_UNDECIDED && done->detail.n)
        buf_printf(&b, " (%.*s)", STR_ARGS(done->detail));
    say(r, "%.*s\n", STR_ARGS(buf_str(&b)));
}

static bool try_length(struct hunting *h, const struct hunt_step *step, struct error *e)
{
    struct run *r = h->run;
    struct trial_end end = {0};
    if (!revive_server(r, e) || !choose_log(&h->log, h, step->context, e))
        return false;
    struct trial_run t = prepare_trial(h, step, h->log);
    bool ok = trial_run(&end, r->arena, &t, e);
    const struct attempt_record *done = &end.record;
    h->cell->launches += done->id > 0;
    if (!ok)
        return false;
    tell_trial(r, &t, done);
    h->cell->detail = done->detail;
    struct trials *known = &h->trials;
    known->items =
        arena_grow(r->arena, known->items, sizeof(struct trial), known->count, &known->capacity);
    known->items[known->count++] = (struct trial){step->context, done->outcome};
    h->interrupted = end.interrupted;
    return true;
}

// Why the whole run ends here; true where the next cell may still be tried.
static bool goes_on(const struct hunting *h, struct error *e)
{
    const struct hunt_step *end = &h->cell->end;
    if (end->state != HUNT_STOPPED || outcome_rows[end->reason].transient)
        return true;
    if (end->reason == OUTCOME_INTERRUPTED)
        return interrupted(e);
    bool any_length = end->reason == OUTCOME_CONFIGURATION || end->reason == OUTCOME_DISK;
    struct str detail = h->cell->detail;
    detail = str_slice(detail, 0, detail.n < MOST_DETAIL ? detail.n : MOST_DETAIL);
    FAIL(e, CHILD, STR_NONE, "the trial of %llu tokens ended: %s%s%s%.*s",
         (unsigned long long)end->context, outcome_rows[end->reason].title,
         any_length ? "; another length would not change it" : "", detail.n ? ": " : "",
         STR_ARGS(detail));
    return HINT(e, "its log is %.*s", STR_ARGS(h->log));
}

static bool hunt_through(struct hunting *h, struct error *e)
{
    struct run *r = h->run;
    struct probe_cell *c = h->cell;
    uint64_t began = monotonic_ms();
    for (;;) {
        struct hunt_step step = hunt_next(&h->hunt, h->trials.items, h->trials.count);
        c->end = step;
        c->seconds = (monotonic_ms() - began) / 1000;
        if (step.state != HUNT_TRY)
            break;
        if (h->interrupted || interrupts_pending(&r->interrupts))
            return interrupted(e);
        if (!try_length(h, &step, e))
            return false;
    }
    c->settled = true;
    c->linear_launches = hunt_linear_launches(&h->hunt, &c->end);
    if (c->end.state == HUNT_DONE) {
        struct buf line = buf_in(r->arena);
        report_probe_line(&line, c);
        say(r, "%.*s", STR_ARGS(buf_str(&line)));
    }
    return goes_on(h, e);
}

// How many trials are known. Failures for passing reasons count on as tries of their length, unless
// those were all used up or the length is not asked for any more: then there are new ones.
static uint64_t go_on_from(struct trials *known, const struct hunt *hunt)
{
    ptrdiff_t decided = known->count;
    while (decided > 0 && outcome_rows[known->items[decided - 1].outcome].transient)
        decided--;
    ptrdiff_t tries = known->count - decided;
    uint64_t context = tries ? known->items[decided].context : 0;
    bool asked_for = context >= hunt->start && (!hunt->until || context <= hunt->until);
    if (tries >= hunt->most_tries || !asked_for)
        known->count = decided;
    return (uint64_t)decided;
}

static bool recall(struct hunting *h, struct error *e)
{
    struct run *r = h->run;
    struct cell_record record = {.key = probe_cell_key(r->arena, &h->settings, r->present),
                                 .model = h->model_name,
                                 .engine = str_from(r->options.engine->name),
                                 .card = r->card,
                                 .config = h->config,
                                 .gpus = h->cell->gpus,
                                 .sp = h->cell->sp,
                                 .max_position = h->cell->max_position};
    if (!store_cell(&h->id, r->store, &record, e))
        return false;
    if (r->options.resume && !store_trials(&h->trials, r->store, r->arena, h->id, e))
        return false;
    h->cell->known = go_on_from(&h->trials, &h->hunt);
    return true;
}

static void tell_expectation(const struct hunting *h)
{
    const struct probe_cell *c = h->cell;
    if (c->predicted)
        say(h->run, "%.*s: predicted %llu tokens%s\n", STR_ARGS(h->title),
            (unsigned long long)c->expected, c->known ? ", going on" : "");
    else
        say(h->run, "%.*s: no prediction (%.*s)\n", STR_ARGS(h->title), STR_ARGS(c->unpredicted));
}

// The commands of the first trials, if the first fits.
static bool show_commands(struct hunting *h, struct error *e)
{
    struct run *r = h->run;
    struct trial first = {0};
    for (ptrdiff_t i = 0; i < 2; i++) {
        struct hunt_step step = hunt_next(&h->hunt, &first, i);
        struct launch *l = NEW(r->arena, struct launch, 1);
        struct buf b = buf_in(r->arena);
        if (step.state != HUNT_TRY)
            return true;
        struct trial_run t = prepare_trial(h, &step, log_path(h, step.context, 1));
        if (!r->options.engine->build(l, r->arena, &t.request, e))
            return false;
        launch_print(&b, l);
        say(r, "%.*s\n", STR_ARGS(buf_str(&b)));
        first = (struct trial){step.context, OUTCOME_FITS};
    }
    return true;
}

// A cell that the engine has no files for is left out.
static void ask_engine(struct hunting *h)
{
    struct run *r = h->run;
    struct hunt_step first = {.context = grid_length(&h->hunt.grid, 0), .try = 1};
    struct trial_run t = prepare_trial(h, &first, log_path(h, first.context, 1));
    struct launch *l = NEW(r->arena, struct launch, 1);
    struct error refusal = {0};
    h->cell->possible = r->options.engine->build(l, r->arena, &t.request, &refusal);
    if (h->cell->possible)
        return;
    h->cell->refusal = str_copy(r->arena, str_from(refusal.message));
    r->refusal = r->refusal.code ? r->refusal : refusal;
    if (r->options.dry_run) // else the report says it
        say(r, "%.*s: not tried (%.*s)\n", STR_ARGS(h->title), STR_ARGS(h->cell->refusal));
}

// "Qwen3-0.6B, 2 GPUs, sp 2".
static struct str title_of(struct arena *a, const struct probe_cell *c)
{
    return str_format(a, "%.*s, %llu GPU%s, sp %llu", STR_ARGS(c->model),
                      (unsigned long long)c->gpus, c->gpus == 1 ? "" : "s",
                      (unsigned long long)c->sp);
}

static bool probe_cell(struct run *r, struct probe_cell *c, const struct cell_choice *choice,
                       struct error *e)
{
    struct hunting h = {.run = r, .cell = c, .hunt = r->options.hunt};
    struct model *m = NEW(r->arena, struct model, 1);
    bool modelled = choice->model.n > 0;
    h.settings = settings_in(r->arena);
    h.model_name = c->model = name_of(r->arena, choice->model);
    h.title = title_of(r->arena, c);
    c->card = r->card;
    if (!probe_cell_settings(&h.settings, r->settings, choice, e))
        return false;
    h.config = model_config_json(r->arena, &h.settings);
    if (modelled && !model_from_settings(m, r->arena, &h.settings, e))
        return false;
    c->max_position = h.hunt.grid.max_position = m->max_position;
    check_possible(c, r->arena, modelled ? m : NULL);
    if (!c->possible)
        return true;
    if (!make_plan(&h, e) || (r->limited && !expect_limit(&h.limit, *r->arena, &h.job, e)))
        return false;
    ask_engine(&h);
    if (!c->possible)
        return true;
    expect(&h);
    if (r->options.dry_run) {
        tell_expectation(&h);
        return show_commands(&h, e);
    }
    if (!recall(&h, e))
        return false;
    tell_expectation(&h);
    return hunt_through(&h, e);
}

// ------------------------------------------------------------------ the run

// Models, then GPUs, then sizes, the last changing fastest.
static bool probe_cells(struct run *r, struct error *e)
{
    const struct probe_options *o = &r->options;
    ptrdiff_t of_model = o->gpus.count * o->sizes.count, all = o->models.count * of_model;
    bool possible = false;
    r->story.cells = NEW(r->arena, struct probe_cell, all);
    for (ptrdiff_t i = 0; i < all; i++) {
        struct probe_cell *c = &r->story.cells[r->story.count++];
        const struct setting *gpus = &o->gpus.items[i % of_model / o->sizes.count];
        const struct setting *size = &o->sizes.items[i % o->sizes.count];
        struct cell_choice choice = {o->models.items[i / of_model].value, i / of_model, gpus->value,
                                     size->value};
        if (!read_count(&c->gpus, gpus, e) || !read_count(&c->sp, size, e) ||
            !probe_cell(r, c, &choice, e))
            return false;
        possible |= c->possible;
    }
    *e = possible ? *e : r->refusal;
    return !e->code;
}

// Cells whose trials failed again and again for passing reasons have no answer.
static bool all_decided(const struct run *r, struct error *e)
{
    for (ptrdiff_t i = 0; i < r->story.count; i++) {
        const struct probe_cell *c = &r->story.cells[i];
        if (c->settled && c->end.state == HUNT_STOPPED)
            return FAIL(e, CHILD, STR_NONE,
                        "%llu GPUs with sp %llu stay undecided: %s at %llu tokens",
                        (unsigned long long)c->gpus, (unsigned long long)c->sp,
                        outcome_rows[c->end.reason].title, (unsigned long long)c->end.context);
    }
    return true;
}

// A trial whose fathom was killed has its own grace; nothing starts beside it.
static bool wait_for_others(struct run *r, struct error *e)
{
    struct pollfd interrupt = {r->interrupts.fd, POLLIN, 0};
    struct process keeper;
    if (!store_unsettled(&keeper, r->store, e))
        return false;
    if (keeper.pid)
        say(r, "a trial of a fathom that was killed is being ended (process %lld)\n",
            (long long)keeper.pid);
    while (keeper.pid) {
        if (poll(&interrupt, 1, SETTLE_STEP_MS) > 0 && interrupts_pending(&r->interrupts))
            return interrupted(e);
        if (!store_unsettled(&keeper, r->store, e))
            return false;
    }
    return true;
}

static bool open_store(struct run *r, struct error *e)
{
    ptrdiff_t left;
    if (!store_open(&r->store, r->arena, r->options.store, STORE_WORK, e) ||
        !wait_for_others(r, e) || !store_settle(&left, r->store, e))
        return false;
    if (left)
        say(r, "%d trial was running when fathom ended; it will be made again\n", (int)left);
    return true;
}

static bool work(struct run *r, struct error *e)
{
    r->shipped = path_join(r->arena, r->options.log_folder, STR("share"));
    if (!find_card(r, e))
        return false;
    if (r->options.dry_run)
        return probe_cells(r, e);
    return open_store(r, e) && shipped_write(*r->arena, r->shipped, e) && start_server(r, e) &&
           probe_cells(r, e) && all_decided(r, e);
}

static void answer(struct answer *a, const struct query *q, const struct run *r)
{
    a->negative = r->story.count > 0 && !r->options.dry_run;
    for (ptrdiff_t i = 0; i < r->story.count; i++)
        if (r->story.cells[i].end.longest)
            a->negative = false;
    if (r->options.dry_run)
        return;
    if (!q->json) {
        report_probe(&a->out, &q->view, &r->story);
        return;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_probe_json(&j, &r->story);
    json_out_object_end(&j);
    json_out_end(&j);
}

static bool show_store(struct answer *a, const struct query *q, const struct probe_options *o,
                       struct error *e)
{
    struct store *store;
    struct store_content content;
    if (!store_open(&store, q->arena, o->store, STORE_READ, e))
        return false;
    bool ok = store_read(&content, store, q->arena, (struct store_part){0}, e);
    store_close(store);
    if (!ok)
        return false;
    struct records r = {content.cells, content.count};
    if (q->json || o->export == EXPORT_JSON) {
        struct json_out j = json_out_to(&a->out);
        json_out_object(&j);
        report_records_json(&j, &r);
        json_out_object_end(&j);
        json_out_end(&j);
    } else if (o->export == EXPORT_CSV) {
        report_records_csv(&a->out, &r);
    } else if (o->export == EXPORT_MARKDOWN) {
        report_records_markdown(&a->out, &r);
    } else {
        report_records(&a->out, &q->view, &r);
    }
    return true;
}

bool probe_command(struct answer *a, const struct query *q, const struct probe_console *console,
                   struct error *e)
{
    struct run r = {.arena = q->arena, .settings = q->settings, .console = console};
    if (!probe_options_read(&r.options, q->arena, q->settings, e))
        return false;
    if (r.options.list || r.options.export)
        return show_store(a, q, &r.options, e);
    uint64_t began = monotonic_ms();
    r.scratch = arena_over(NEW(q->arena, char, SCRATCH_BYTES), SCRATCH_BYTES, q->arena->exhausted);
    r.interrupts = interrupts_catch();
    bool ok = work(&r, e);
    torch_server_end(&r.server, *q->arena);
    store_close(r.store);
    interrupts_release(&r.interrupts);
    r.story.seconds = (monotonic_ms() - began) / 1000;
    if (r.store)
        answer(a, q, &r);
    return ok;
}
