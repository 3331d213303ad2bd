// A trial's life between the store, the keeper and the readers of its output.
#include "host/probe_trial.h"

#include <time.h>

#include "core/base/units.h"
#include "host/file.h"
#include "host/launcher.h"
#include "host/nvml.h"
#include "host/worker_lines.h"

// A retry may take longer: so many tenths of what the try before it might.
enum { GROWTH_TENTHS = 13, DETAIL_BYTES = 300, SHELL_SIGNAL = 128, LINES_BYTES = 1 << 20 };

struct watcher {
    const struct trial_run *run;
    int64_t attempt;
    struct arena *arena;
    struct doctor *doctor;
    struct worker_lines *lines;
    struct error unwritten; // why a step could not be written down, if one could not
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool on_start(void *context, struct process keeper, struct error *e)
{
    struct watcher *w = context;
    return store_keeper(w->run->store, w->attempt, keeper, e);
}

static void on_output(void *context, struct str bytes)
{
    struct watcher *w = context;
    doctor_feed(w->doctor, bytes);
    worker_lines_feed(w->lines, bytes);
}

static struct attempt_record place_of(const struct worker_lines *lines)
{
    return (struct attempt_record){.versions = str_from(lines->versions),
                                   .gpu = str_from(lines->gpu),
                                   .total_bytes = lines->total_bytes};
}

static void on_worker_start(void *context, const struct worker_lines *lines)
{
    struct watcher *w = context;
    struct attempt_record place = place_of(lines);
    (void)!store_started(w->run->store, w->attempt, &place, &w->unwritten);
}

static void on_worker_step(void *context, const struct step_record *step)
{
    struct watcher *w = context;
    (void)!store_step(w->run->store, w->attempt, step, &w->unwritten);
}

static uint64_t used_by_gpus(struct arena scratch)
{
    struct nvml_gpu *gpus;
    ptrdiff_t count;
    struct str driver;
    struct error ignored = {0};
    uint64_t most = 0;
    if (!nvml_list(&gpus, &count, &driver, &scratch, &ignored))
        return 0;
    for (ptrdiff_t i = 0; i < count; i++)
        most = gpus[i].used_bytes > most ? gpus[i].used_bytes : most;
    return most;
}

static void put_memory(struct buf *b, const char *what, uint64_t bytes)
{
    if (!bytes)
        return;
    buf_printf(b, ", %s ", what);
    put_gib(b, bytes);
}

static void on_tick(void *context, uint64_t elapsed_ms)
{
    struct watcher *w = context;
    if (!w->run->console->status)
        return;
    struct arena scratch = *w->arena;
    struct buf b = buf_in(&scratch);
    unsigned long long seconds = elapsed_ms / 1000;
    uint64_t used = used_by_gpus(scratch);
    buf_printf(&b, "%.*s: %llu tokens, %llu:%02llu", STR_ARGS(w->run->title),
               (unsigned long long)w->run->request.context, seconds / 60, seconds % 60);
    if (w->run->expected.known && !w->run->expected.fits)
        buf_put_z(&b, ", predicted to fail");
    else
        put_memory(&b, "predicted", w->run->expected.reserved_bytes);
    put_memory(&b, "measured", w->lines->peaks.reserved_bytes);
    put_memory(&b, "GPU", used);
    w->run->console->status(w->run->console->context, buf_str(&b));
}

static uint64_t timeout_of(const struct trial_run *run)
{
    uint64_t ms = run->options->timeout_ms;
    for (int i = 1; i < run->request.try; i++)
        ms = ms * GROWTH_TENTHS / 10;
    return ms;
}

static bool write_files(struct arena scratch, const struct launch *l, struct error *e)
{
    for (int i = 0; i < l->file_count; i++) {
        struct str path = l->files[i].path;
        if (!folder_make(scratch, str_cut_last(path, '/').head, e) ||
            !file_write(scratch, path, l->files[i].content, FILE_REPLACE, e))
            return false;
    }
    return true;
}

// The cause's title and the first line of what was said.
static struct str detail_of(struct arena *a, const struct doctor_result *log)
{
    if (!log->cause)
        return STR_NONE;
    struct str said = str_cut(log->cause->text, '\n').head;
    said = str_slice(said, 0, said.n < DETAIL_BYTES ? said.n : DETAIL_BYTES);
    return str_format(a, "%s: %.*s", log->cause->kind->title, STR_ARGS(said));
}

static void judge(struct attempt_record *out, struct arena *a, const struct watcher *w,
                  const struct keeper_result *kept)
{
    struct doctor_result log = doctor_end(w->doctor, w->arena);
    struct ending ending = {.timed_out = kept->end == KEEPER_TIMED_OUT,
                            .interrupted = kept->end == KEEPER_INTERRUPTED,
                            .signalled = kept->end == KEEPER_SIGNALLED,
                            .status = kept->status,
                            .oom_killed = kept->oom_kills > 0};
    out->outcome = outcome_of(&ending, &log);
    out->finished = true;
    out->status = ending.signalled ? SHELL_SIGNAL + kept->status : kept->status;
    out->ended_ms = now_ms();
    out->peaks = w->lines->peaks;
    out->detail = out->outcome == OUTCOME_FITS ? STR_NONE : detail_of(a, &log);
}

static bool run_kept(struct attempt_record *out, struct arena *a, const struct trial_run *run,
                     const struct launch *l, struct error *e)
{
    struct arena trial = run->scratch;
    struct watcher w = {.run = run, .attempt = out->id, .arena = &trial};
    struct keeper_job job = {.arguments = l->arguments,
                             .environment = l->environment,
                             .log = run->request.log,
                             .timeout_ms = out->timeout_ms,
                             .grace_ms = run->options->grace_ms,
                             .interrupts = run->interrupts};
    struct keeper_watch watch = {&w, on_start, on_output, on_tick};
    struct keeper_result kept;
    w.doctor = doctor_new(&trial);
    w.lines = NEW(&trial, struct worker_lines, 1);
    w.lines->scratch =
        arena_over(NEW(&trial, char, LINES_BYTES), LINES_BYTES, run->scratch.exhausted);
    w.lines->watch = (struct worker_watch){&w, on_worker_start, on_worker_step};
    bool ok = keeper_run(&kept, &trial, &job, &watch, e);
    if (run->console->status)
        run->console->status(run->console->context, STR_NONE);
    if (!ok)
        return false;
    worker_lines_end(w.lines);
    judge(out, a, &w, &kept);
    bool finished = store_finish(run->store, out->id, out, e);
    if (w.unwritten.code == ERROR_NONE)
        return finished;
    *e = w.unwritten;
    return false;
}

bool trial_run(struct attempt_record *out, struct arena *a, const struct trial_run *run,
               struct error *e)
{
    const struct trial_request *r = &run->request;
    struct launch *l = NEW(a, struct launch, 1);
    struct buf command = buf_in(a);
    bool saves = run->options->engine->saves;
    if ((saves && !folder_remove(*a, r->checkpoints, e)) ||
        !run->options->engine->build(l, a, r, e) ||
        !launcher_wrap(l, a, run->options->launcher, r, e) || !write_files(*a, l, e))
        return false;
    launch_print(&command, l);
    *out = (struct attempt_record){
        .context = r->context,
        .try = r->try,
        .log = r->log,
        .command = buf_str(&command),
        .timeout_ms = timeout_of(run),
        .started_ms = now_ms(),
        .predicted_bytes = run->expected.reserved_bytes,
        .predicted_fits = run->expected.fits,
        .limit_bytes = r->limit_bytes,
    };
    if (!store_begin(&out->id, run->store, run->cell, out, e))
        return false;
    return run_kept(out, a, run, l, e) && (!saves || folder_remove(*a, r->checkpoints, e));
}
