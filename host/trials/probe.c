// The run: what it stands on is found here, and its trials are made here. Which they are, and what
// is said of them, is core/probe's.
#include "host/trials/probe.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/command/probe.h"
#include "core/probe/tell.h"
#include "host/files/file.h"
#include "host/files/shipped.h"
#include "host/sources/gpu_source.h"
#include "host/sources/model_source.h"
#include "host/sources/nvml.h"
#include "host/system/interrupts.h"
#include "host/trials/kernels.h"
#include "host/trials/leftovers.h"
#include "host/trials/probe_trial.h"
#include "host/trials/torch_server.h"

enum { SCRATCH_BYTES = 32 << 20, SETTLE_STEP_MS = 20 };

struct run {
    struct probe_run plan;
    struct arena *arena;
    struct arena scratch; // of one trial
    const struct probe_console *console;
    struct store *store;
    struct interrupts interrupts;
    struct torch_server server;
    bool server_restarted;
    struct str mark; // in the environment of all that is started
};

// One cell while it is hunted through.
struct hunting {
    struct run *run;
    struct cell_plan plan;
    struct str log; // of the newest trial
    bool interrupted;
    int64_t id;
    struct trials trials;
};

static void say(const struct run *r, const struct buf *text)
{
    r->console->line(r->console->context, buf_str(text));
}

// ------------------------------------------------------------------ what the run stands on

// NVML's names of this machine's GPUs, each kind once. Jobs of a scheduler run elsewhere.
static struct str cards_present(struct run *r)
{
    struct nvml_gpu *gpus;
    ptrdiff_t count;
    struct str driver;
    struct error none = {0};
    struct buf names = buf_in(r->arena);
    if (r->plan.options.launcher != LAUNCHER_LOCAL ||
        !nvml_list(&gpus, &count, &driver, r->arena, &none))
        return STR_NONE;
    for (ptrdiff_t i = 0; i < count; i++)
        if (i == 0 || strcmp(gpus[i].name, gpus[i - 1].name) != 0)
            buf_printf(&names, "%s%s", i ? ", " : "", gpus[i].name);
    return buf_str(&names);
}

static struct str card_found(struct run *r)
{
    struct settings found = settings_in(r->arena);
    struct error none = {0};
    bool known =
        settings_add(&found, (struct setting){STR("gpu"), STR("auto"), STR("NVML")}, &none) &&
        gpu_source_resolve(&found, &none);
    return known ? str_cut(settings_find_z(&found, "gpu")->value, 'x').tail : STR_NONE;
}

// From the root, as scripts may change their folder.
static struct str python_path(struct run *r)
{
    struct arena *a = r->arena;
    struct str shipped = r->plan.place.shipped, others = str_from(getenv("PYTHONPATH"));
    if (!str_starts(shipped, STR("/")))
        shipped = path_join(a, path_real(a, STR(".")), shipped);
    return str_format(a, "%.*s/one_gpu%s%.*s", STR_ARGS(shipped), others.n ? ":" : "",
                      STR_ARGS(others));
}

static struct str *model_paths(struct run *r)
{
    const struct setting_list *models = &r->plan.options.models;
    struct str *paths = NEW(r->arena, struct str, models->count);
    for (ptrdiff_t i = 0; i < models->count; i++)
        paths[i] = model_source_path(r->arena, models->items[i].value);
    return paths;
}

static bool is_there(const struct run *r, const char *name, enum path_kind kind, struct error *e)
{
    const struct setting *item = settings_find_z(r->plan.settings, name);
    return !item || path_kind(*r->arena, item->value) == kind ||
           FAIL(e, BAD_INPUT, item->where, "there is no %s '%.*s'",
                kind == PATH_FOLDER ? "folder" : "file", STR_ARGS(str_short(item->value)));
}

static bool look_around(struct run *r, struct error *e)
{
    struct probe_place *place = &r->plan.place;
    place->present = cards_present(r);
    place->found = card_found(r);
    place->checkpoints = str_from(getenv("TRINITY_CHECKPOINT_ROOT_DIR"));
    place->model_paths = model_paths(r);
    place->python_path = python_path(r);
    place->program = path_real(r->arena, STR("/proc/self/exe"));
    return is_there(r, "trinity-config", PATH_FILE, e) &&
           is_there(r, "plugin-dir", PATH_FOLDER, e) && probe_run_card(&r->plan, e);
}

// ------------------------------------------------------------------ the torch worker's server

static bool start_server(struct run *r, struct error *e)
{
    const struct probe_options *o = &r->plan.options;
    struct probe_place *place = &r->plan.place;
    struct trial_request request = {.cell = r->plan.settings, .shipped = place->shipped};
    if (!o->engine->serves || o->launcher != LAUNCHER_LOCAL)
        return true;
    r->server.interrupts = &r->interrupts;
    if (!torch_server_start(&r->server, r->arena, &request, o, e))
        return false;
    place->socket = r->server.socket;
    place->torch = r->server.torch;
    return true;
}

// A server that was killed is started once more.
static bool revive_server(struct run *r, struct error *e)
{
    struct buf b = buf_in(r->arena);
    if (!r->server.socket.n || keeper_is_alive(&r->server.keeper))
        return true;
    if (r->server_restarted)
        return FAIL(e, CHILD, STR_NONE, "the torch worker's server was killed twice");
    r->server_restarted = true;
    buf_put_z(&b, "the torch worker's server was killed; it is started again\n");
    say(r, &b);
    return start_server(r, e);
}

// ------------------------------------------------------------------ one cell

// The first name that no other trial's log has, whether the store knows it or not: the length may
// have been tried before, in another configuration or by a model of the same name.
static bool choose_log(struct str *log, const struct hunting *h, uint64_t context, struct error *e)
{
    bool known = true;
    uint64_t bytes;
    for (int number = 1; known; number++) {
        struct error ignored = {0};
        *log = plan_log(&h->plan, context, number);
        if (!store_has_log(&known, h->run->store, *log, e))
            return false;
        known = known || file_size(&bytes, *h->run->arena, *log, &ignored);
    }
    return true;
}

static void remember(struct trials *known, struct arena *a, struct trial trial)
{
    known->items = arena_grow(a, known->items, sizeof trial, known->count, &known->capacity);
    known->items[known->count++] = trial;
}

static bool try_length(struct hunting *h, const struct hunt_step *step, struct error *e)
{
    struct run *r = h->run;
    struct trial_end end = {0};
    struct buf b = buf_in(r->arena);
    if (!revive_server(r, e) || !choose_log(&h->log, h, step->context, e))
        return false;
    struct planned_trial planned = plan_trial(&h->plan, step, h->log);
    struct trial_run t = {.options = &r->plan.options,
                          .console = r->console,
                          .store = r->store,
                          .cell = h->id,
                          .title = h->plan.cell->title,
                          .mark = r->mark,
                          .interrupts = r->interrupts.fd,
                          .spared = r->server.keeper.pid,
                          .planned = planned,
                          .scratch = r->scratch};
    bool ok = trial_run(&end, r->arena, &t, e);
    const struct attempt_record *done = &end.record;
    h->plan.cell->launches += done->id > 0;
    if (!ok)
        return false;
    tell_trial(&b, t.title, &planned.expected, done);
    say(r, &b);
    h->plan.cell->detail = done->detail;
    h->interrupted = end.interrupted;
    remember(&h->trials, r->arena, (struct trial){step->context, done->outcome});
    return true;
}

static bool hunt_through(struct hunting *h, struct error *e)
{
    struct run *r = h->run;
    struct probe_cell *c = h->plan.cell;
    uint64_t began = monotonic_ms();
    for (;;) {
        struct hunt_step step = hunt_next(&h->plan.hunt, h->trials.items, h->trials.count);
        c->end = step;
        c->seconds = (monotonic_ms() - began) / 1000;
        if (step.state != HUNT_TRY)
            break;
        if (h->interrupted || interrupts_pending(&r->interrupts))
            return tell_interrupted(e);
        if (!try_length(h, &step, e))
            return false;
    }
    c->settled = true;
    c->linear_launches = hunt_linear_launches(&h->plan.hunt, &c->end);
    if (c->end.state == HUNT_DONE) {
        struct buf line = buf_in(r->arena);
        report_probe_line(&line, c);
        say(r, &line);
    }
    return tell_whether_on(&h->plan, h->log, e);
}

static bool recall(struct hunting *h, struct error *e)
{
    struct run *r = h->run;
    struct cell_record record = plan_record(&h->plan);
    if (!store_cell(&h->id, r->store, &record, e) ||
        (r->plan.options.resume && !store_trials(&h->trials, r->store, r->arena, h->id, e)))
        return false;
    h->plan.cell->known = hunt_go_on(&h->plan.hunt, &h->trials);
    return true;
}

static bool show_cell(const struct run *r, const struct cell_plan *p, struct error *e)
{
    struct buf b = buf_in(r->arena);
    if (p->cell->possible)
        tell_expectation(&b, p);
    else
        tell_refusal(&b, p);
    bool ok = !p->cell->possible || plan_commands(p, e);
    for (ptrdiff_t i = 0; i < p->cell->command_count; i++)
        buf_printf(&b, "%.*s\n", STR_ARGS(p->cell->commands[i]));
    say(r, &b);
    return ok;
}

static bool probe_cell(struct run *r, ptrdiff_t index, struct error *e)
{
    struct hunting h = {.run = r};
    struct buf b = buf_in(r->arena);
    if (!plan_cell(&h.plan, &r->plan, index, e))
        return false;
    if (r->plan.options.dry_run)
        return show_cell(r, &h.plan, e);
    if (!h.plan.cell->possible)
        return true;
    if (!recall(&h, e))
        return false;
    tell_expectation(&b, &h.plan);
    say(r, &b);
    return hunt_through(&h, e);
}

// ------------------------------------------------------------------ the run

static bool probe_cells(struct run *r, struct error *e)
{
    for (ptrdiff_t i = 0; i < r->plan.cell_count; i++)
        if (!probe_cell(r, i, e))
            return false;
    return tell_whether_done(&r->plan, e);
}

// A trial whose fathom was killed has its own grace; nothing starts beside it.
static bool wait_for_others(struct run *r, struct error *e)
{
    struct pollfd interrupt = {r->interrupts.fd, POLLIN, 0};
    struct process keeper;
    struct buf b = buf_in(r->arena);
    if (!store_unsettled(&keeper, r->store, e))
        return false;
    if (keeper.pid) {
        buf_printf(&b, "a trial of a fathom that was killed is being ended (process %lld)\n",
                   (long long)keeper.pid);
        say(r, &b);
    }
    while (keeper.pid) {
        keeper_rouse(keeper);
        if (poll(&interrupt, 1, SETTLE_STEP_MS) > 0 && interrupts_pending(&r->interrupts))
            return tell_interrupted(e);
        if (!store_unsettled(&keeper, r->store, e))
            return false;
    }
    return true;
}

// Nor does anything start beside one that nobody keeps.
static bool settle_leftovers(struct run *r, struct error *e)
{
    struct leftovers l = {.store = r->store,
                          .arena = r->arena,
                          .console = r->console,
                          .interrupts = &r->interrupts,
                          .end = r->plan.options.end_running,
                          .grace_ms = r->plan.options.grace_ms};
    return leftovers_settle(&l, e);
}

static bool open_store(struct run *r, struct error *e)
{
    ptrdiff_t left;
    struct buf b = buf_in(r->arena);
    r->mark = run_mark(r->arena);
    if (!store_open(&r->store, r->arena, r->plan.options.store, STORE_WORK, e) ||
        !wait_for_others(r, e) || !settle_leftovers(r, e) || !store_settle(&left, r->store, e))
        return false;
    buf_printf(&b, "%d trial was running when fathom ended; it will be made again\n", (int)left);
    if (left)
        say(r, &b);
    return true;
}

static bool work(struct run *r, struct error *e)
{
    if (!look_around(r, e))
        return false;
    bool ready = r->plan.options.dry_run ||
                 (open_store(r, e) && shipped_write(*r->arena, r->plan.place.shipped, e) &&
                  start_server(r, e));
    return ready && probe_cells(r, e);
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
    if (ok)
        probe_answer_records(a, q, o->export, (struct records){content.cells, content.count});
    return ok;
}

bool probe_command(struct answer *a, const struct query *q, const struct probe_console *console,
                   struct error *e)
{
    struct run r = {.arena = q->arena, .console = console};
    if (settings_find_z(q->settings, "kernels"))
        return kernels_command(a, q, console, e);
    if (!probe_run_read(&r.plan, q->arena, q->settings, e))
        return false;
    if (r.plan.options.list || r.plan.options.export)
        return show_store(a, q, &r.plan.options, e);
    uint64_t began = monotonic_ms();
    r.scratch = arena_over(NEW(q->arena, char, SCRATCH_BYTES), SCRATCH_BYTES, q->arena->exhausted);
    r.interrupts = interrupts_catch();
    bool ok = work(&r, e);
    torch_server_end(&r.server, *q->arena);
    store_close(r.store);
    interrupts_release(&r.interrupts);
    r.plan.story.seconds = (monotonic_ms() - began) / 1000;
    if (r.plan.options.dry_run)
        probe_answer_plan(a, q, &r.plan.story);
    else if (r.store)
        probe_answer_story(a, q, &r.plan.story);
    return ok;
}
