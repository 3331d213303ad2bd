// A trial's life between the store, the keeper and the readers of its output.
#include "host/trials/probe_trial.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/base/units.h"
#include "host/files/file.h"
#include "host/files/folder.h"
#include "host/sources/nvml.h"
#include "host/trials/last_line.h"
#include "host/trials/worker_lines.h"

enum { DETAIL_BYTES = 300, LINES_BYTES = 1 << 20 };
// What a scheduler's command gets to end its job: `ray job stop` takes some seconds.
enum { FAREWELL_MS = 30000 };

// A trial that ran out of memory is given up when it has been silent for the grace, and for so many
// times as long as ever before.
enum { TAIL_BYTES = 512 * 1024, SILENCES = 2 };

// The end of what a trial has said, and since when it is silent.
struct silence {
    char *tail;
    ptrdiff_t length; // of the tail
    uint64_t since_ms, longest_ms;
    bool judged; // this one
};

struct watcher {
    const struct trial_run *run;
    int64_t attempt;
    struct arena *arena;
    struct doctor *doctor;
    struct worker_lines *lines;
    struct last_line *last_line;
    struct error unwritten; // why a step could not be written down, if one could not
    struct process keeper;
    struct silence silence;
    bool admits_failure;
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
    w->keeper = keeper;
    w->silence.since_ms = monotonic_ms();
    return store_keeper(w->run->store, w->attempt, keeper, e) &&
           store_mark(w->run->store, w->attempt, w->run->mark, e);
}

static void on_running(void *context, struct process command)
{
    struct watcher *w = context;
    (void)!store_group(w->run->store, w->attempt, command, &w->unwritten);
}

static void break_silence(struct silence *s, struct str bytes)
{
    uint64_t now = monotonic_ms(), lasted = now - s->since_ms;
    bytes = str_slice(bytes, bytes.n > TAIL_BYTES ? bytes.n - TAIL_BYTES : 0, bytes.n);
    ptrdiff_t room = TAIL_BYTES - bytes.n, kept = s->length < room ? s->length : room;
    memmove(s->tail, s->tail + s->length - kept, (size_t)kept);
    memcpy(s->tail + kept, bytes.p, (size_t)bytes.n);
    s->length = kept + bytes.n;
    s->longest_ms = lasted > s->longest_ms ? lasted : s->longest_ms;
    s->since_ms = now;
    s->judged = false;
}

static bool says(struct str text, const char *words)
{
    return memmem(text.p, (size_t)text.n, words, strlen(words)) != NULL;
}

// Looks into what is new of the tail, and as far back as the words may have begun.
static void listen_for_failure(struct watcher *w, ptrdiff_t fresh)
{
    const char *words = w->run->options->engine->failure;
    struct str tail = {w->silence.tail, w->silence.length};
    ptrdiff_t from = words ? tail.n - fresh - (ptrdiff_t)strlen(words) : 0;
    if (words && !w->admits_failure)
        w->admits_failure = says(str_slice(tail, from > 0 ? from : 0, tail.n), words);
}

// A rank that has died of it leaves others waiting. The keeper ends them when it is asked to.
static void give_up_when_silent(struct watcher *w)
{
    struct silence *s = &w->silence;
    uint64_t silent_ms = monotonic_ms() - s->since_ms;
    if (s->judged || silent_ms < w->run->options->grace_ms || silent_ms < SILENCES * s->longest_ms)
        return;
    s->judged = true;
    if (!w->lines->done && outcome_is_told(*w->arena, (struct str){s->tail, s->length}))
        (void)kill((pid_t)w->keeper.pid, SIGTERM);
}

static void on_output(void *context, struct str bytes)
{
    struct watcher *w = context;
    doctor_feed(w->doctor, bytes);
    worker_lines_feed(w->lines, bytes);
    last_line_feed(w->last_line, bytes);
    break_silence(&w->silence, bytes);
    listen_for_failure(w, bytes.n);
}

static bool on_wait(void *context)
{
    const struct watcher *w = context;
    return w->lines->queued;
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
    give_up_when_silent(w);
    if (!w->run->console->status)
        return;
    struct arena scratch = *w->arena;
    struct buf b = buf_in(&scratch);
    unsigned long long seconds = elapsed_ms / 1000;
    uint64_t used = used_by_gpus(scratch);
    buf_printf(&b, "%.*s: %llu tokens, %llu:%02llu", STR_ARGS(w->run->title),
               (unsigned long long)w->run->planned.request.context, seconds / 60, seconds % 60);
    if (w->lines->queued)
        buf_put_z(&b, ", waits for its turn");
    if (w->run->planned.expected.known && !w->run->planned.expected.fits)
        buf_put_z(&b, ", predicted to fail");
    else
        put_memory(&b, "predicted", w->run->planned.expected.reserved_bytes);
    put_memory(&b, "measured", w->lines->peaks.reserved_bytes);
    put_memory(&b, "GPU", used);
    w->run->console->status(w->run->console->context, buf_str(&b));
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

// "SIGSEGV" or "exit status 3", and what was said last.
static struct str ending_of(struct arena *a, const struct watcher *w,
                            const struct keeper_result *kept)
{
    struct arena scratch = *w->arena;
    struct str said = last_line_text(w->last_line, &scratch);
    said = str_slice(said, 0, said.n < DETAIL_BYTES ? said.n : DETAIL_BYTES);
    struct buf b = buf_in(a);
    if (kept->end == KEEPER_LOST)
        buf_put_z(&b, "the process that kept this trial was killed");
    else if (kept->end == KEEPER_SIGNALLED && sigabbrev_np(kept->status))
        buf_printf(&b, "ended by SIG%s", sigabbrev_np(kept->status));
    else if (kept->end == KEEPER_SIGNALLED)
        buf_printf(&b, "ended by signal %d", kept->status);
    else
        buf_printf(&b, "exit status %d", kept->status);
    if (said.n && kept->end != KEEPER_LOST)
        buf_printf(&b, ", its last line: %.*s", STR_ARGS(said));
    return buf_str(&b);
}

// One process needs no group; where there should be others, their absence must have been noticed.
static bool is_unplayed(const struct watcher *w)
{
    const struct trial_request *r = &w->run->planned.request;
    return trial_is_played(w->run->options->engine, r->cell) && r->gpus > 1 &&
           w->lines->ranks != r->gpus;
}

static void judge(struct attempt_record *out, struct arena *a, const struct watcher *w,
                  const struct keeper_result *kept)
{
    struct doctor_result log = doctor_end(w->doctor, w->arena);
    struct ending ending = {.timed_out = kept->end == KEEPER_TIMED_OUT,
                            .interrupted = kept->end == KEEPER_INTERRUPTED,
                            .lost = kept->end == KEEPER_LOST,
                            .signalled = kept->end == KEEPER_SIGNALLED,
                            .status = kept->status,
                            .oom_killed = kept->oom_kills > 0,
                            .said_done = w->lines->done,
                            .hides_failures = w->run->options->engine->hides_failures,
                            .admits_failure = w->admits_failure,
                            .unplayed = is_unplayed(w)};
    out->outcome = outcome_of(&ending, &log);
    out->finished = true;
    out->status = ending.signalled ? SHELL_SIGNAL + kept->status : kept->status;
    out->ended_ms = now_ms();
    out->peaks = w->lines->peaks;
    const struct doctor_finding *cause = outcome_cause(&ending, &log);
    out->detail = outcome_detail(a, cause);
    bool ordered = ending.timed_out || ending.interrupted;
    bool misses_cause = out->outcome != OUTCOME_FITS && !ordered && !cause;
    if (misses_cause && kept->status == 0 && ending.unplayed)
        out->detail = STR("--one-gpu plays ranks in Python's torch.distributed, and nothing here "
                          "asked it for a group");
    else if (ending.lost || misses_cause)
        out->detail = ending_of(a, w, kept);
}

// A trial that could not be kept is written down as far as that is possible. The next run finds
// one that could not be, and marks it interrupted.
static bool give_up(struct attempt_record *out, struct arena *a, const struct trial_run *run,
                    const struct error *why)
{
    struct error ignored = {0};
    out->outcome = outcome_of_error(why->code);
    out->finished = true;
    out->ended_ms = now_ms();
    out->detail = str_copy(a, str_from(why->message));
    (void)!store_finish(run->store, out->id, out, &ignored);
    return false;
}

static bool run_kept(struct trial_end *end, struct arena *a, const struct trial_run *run,
                     const struct launch *l, struct error *e)
{
    struct attempt_record *out = &end->record;
    struct arena trial = run->scratch;
    struct watcher w = {.run = run, .attempt = out->id, .arena = &trial};
    bool local = run->options->launcher == LAUNCHER_LOCAL;
    struct keeper_job job = {.arguments = l->arguments,
                             .environment = l->environment,
                             .log = run->planned.request.log,
                             .timeout_ms = out->timeout_ms,
                             .grace_ms = run->options->grace_ms,
                             .farewell_ms = local ? 0 : FAREWELL_MS,
                             .interrupts = run->interrupts,
                             .spared = run->spared};
    struct keeper_watch watch = {&w, on_start, on_running, on_output, on_tick, on_wait};
    struct keeper_result kept;
    w.doctor = doctor_new(&trial);
    w.last_line = NEW(&trial, struct last_line, 1);
    w.silence.tail = NEW(&trial, char, TAIL_BYTES);
    w.lines = NEW(&trial, struct worker_lines, 1);
    w.lines->scratch =
        arena_over(NEW(&trial, char, LINES_BYTES), LINES_BYTES, run->scratch.exhausted);
    w.lines->watch = (struct worker_watch){&w, on_worker_start, on_worker_step};
    bool ok = keeper_run(&kept, &trial, &job, &watch, e);
    if (run->console->status)
        run->console->status(run->console->context, STR_NONE);
    if (!ok)
        return give_up(out, a, run, e);
    worker_lines_end(w.lines);
    const struct error *lost = w.unwritten.code ? &w.unwritten : &w.lines->unread;
    if (lost->code) {
        *e = *lost;
        return give_up(out, a, run, e);
    }
    judge(out, a, &w, &kept);
    end->interrupted = kept.interrupted;
    return store_finish(run->store, out->id, out, e);
}

bool trial_run(struct trial_end *end, struct arena *a, const struct trial_run *run, struct error *e)
{
    const struct trial_request *r = &run->planned.request;
    struct launch *l = NEW(a, struct launch, 1);
    struct buf command = buf_in(a);
    bool saves = run->options->engine->saves;
    *end = (struct trial_end){0};
    if ((saves && !folder_remove(*a, r->checkpoints, e)) ||
        !plan_launch(l, a, run->options, r, e) || !write_files(*a, l, e))
        return false;
    launch_print(&command, l);
    struct attempt_record *out = &end->record;
    *out = (struct attempt_record){
        .context = r->context,
        .try = r->try,
        .log = r->log,
        .command = buf_str(&command),
        .timeout_ms = run->planned.timeout_ms,
        .started_ms = now_ms(),
        .predicted_bytes = run->planned.expected.reserved_bytes,
        .predicted_fits = run->planned.expected.fits,
        .limit_bytes = r->limit_bytes,
    };
    if (!store_begin(&out->id, run->store, run->cell, out, e))
        return false;
    return run_kept(end, a, run, l, e) && (!saves || folder_remove(*a, r->checkpoints, e));
}
