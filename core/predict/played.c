// See played.h. Nothing but a request raises the peak or asks the driver, and every request that is
// served at the peak raises it.
#include "core/predict/played.h"

#include "core/base/num.h"

static void note_alive(struct alive *there, const struct played *p)
{
    *there = p->now;
    there->reserved_bytes = p->allocator->stats.reserved_bytes.current;
    there->allocated_bytes = p->allocator->stats.allocated_bytes.current;
}

static void note_before(void *owner)
{
    struct played *p = owner;
    note_alive(&p->before, p);
}

static inline void leave_peak(struct played *p)
{
    if (p->rises)
        note_alive(&p->peak.there, p);
    p->rises = false;
}

// Of all peaks so far, of which the allocator forgets when it is told to.
static void note_peaks(struct played *p)
{
    const struct allocator_stats *s = &p->allocator->stats;
    p->requested_bytes = u64_most(p->requested_bytes, s->requested_bytes.peak);
    p->reserved_bytes = u64_most(p->reserved_bytes, s->reserved_bytes.peak);
}

// A request that fails flushes the cache first, and with it what other streams have let go.
static void note_failure(struct played *p, const struct request *request)
{
    p->failed_kind = (enum memory_kind)request->tag;
    p->peak.there = p->before;
    p->rises = false;
    p->ran_out = true;
    p->oom = p->allocator->oom;
    p->oom_event = p->machine->trace->count - 1;
    p->machine->play = NULL;
}

static void look_if_passed(struct played *p)
{
    if (!p->most_bytes || p->allocator->stats.reserved_bytes.current <= p->most_bytes)
        return;
    leave_peak(p);
    p->passed = true;
    p->machine->play = NULL;
}

static struct block *serve(void *player, const struct request *request, bool *grew)
{
    struct played *p = player;
    const struct allocator_stats *stats = &p->allocator->stats;
    uint64_t grown = stats->device_allocs;
    struct block *b = allocator_serve(p->allocator, request);
    if (!b) {
        note_failure(p, request);
        return NULL;
    }
    *grew = stats->device_allocs > grown;
    if (stats->allocated_bytes.current > p->peak.allocated_bytes) {
        p->peak.allocated_bytes = stats->allocated_bytes.current;
        p->peak.event = p->machine->trace->count - 1;
        p->rises = true;
    }
    if (*grew)
        look_if_passed(p);
    return b;
}

static void free_now(void *player, struct block *b)
{
    struct played *p = player;
    leave_peak(p);
    p->frees_older |= b->handle < p->first_of_step;
    allocator_free(p->allocator, b);
}

static void leave_summit(void *owner)
{
    struct played *p = owner;
    note_alive(&p->peak.there, p);
}

static void prepare_moves(void *player, struct move *moves, ptrdiff_t count)
{
    struct played *p = player;
    allocator_prepare(p->allocator, moves, count);
}

// None of what is freed is older than the step.
static void run_moves(void *player, const struct move *moves, ptrdiff_t count,
                      struct block **places)
{
    struct played *p = player;
    struct trace *t = p->machine->trace;
    struct summit most = {p->peak.allocated_bytes, -1, p->rises, leave_summit, p};
    ptrdiff_t done = allocator_run(
        p->allocator, &(struct moves){moves, count, places, p->machine->blocks_made}, &most);
    if (most.at >= 0)
        p->peak.event = t->count + most.at;
    p->peak.allocated_bytes = most.bytes;
    p->rises = most.is_here;
    if (done == count) {
        look_if_passed(p);
        return;
    }
    const struct move *failed = &moves[done];
    t->count += done + 1;
    note_failure(p, &(struct request){.bytes = failed->bytes, .tag = failed->tag});
    t->count -= done + 1;
}

static void free_later(void *player, struct block *b)
{
    struct played *p = player;
    leave_peak(p);
    p->frees_older = true; // or when it completes
    allocator_free_request(p->allocator, b);
}

static void free_at_last(void *player, struct block *b, uint32_t handle)
{
    struct played *p = player;
    leave_peak(p);
    if (b->handle == handle && b->state == BLOCK_PENDING)
        allocator_free_complete(p->allocator, b);
}

static void mark(void *player, enum event_kind kind)
{
    struct played *p = player;
    leave_peak(p);
    if (kind == EVENT_EMPTY_CACHE)
        allocator_flush(p->allocator, FLUSH_EMPTY_CACHE);
    if (kind != EVENT_RESET_PEAKS)
        return;
    note_peaks(p);
    allocator_reset_peaks(p->allocator);
}

void played_start(struct played *p, struct arena *a, struct machine *m,
                  const struct allocator_options *options)
{
    static const struct playing playing = {serve, free_now,      free_later, free_at_last,
                                           mark,  prepare_moves, run_moves};
    *p = (struct played){.machine = m};
    p->allocator = allocator_new(a, options, m->trace->streams, m->trace->stream_count);
    p->allocator->active_by_tag = p->now.by_kind;
    p->allocator->missed = note_before;
    p->allocator->owner = p;
    m->play = &playing;
    m->player = p;
}

void played_begin_part(struct played *p)
{
    if (p->ran_out)
        return;
    leave_peak(p);
    if (p->peak.allocated_bytes > p->earlier.allocated_bytes)
        p->earlier = p->peak;
    p->peak = (struct played_peak){0};
}

void played_end(struct played *p)
{
    played_begin_part(p);
    if (!p->ran_out)
        p->peak = p->earlier;
    p->peak.allocated_bytes = u64_most(p->peak.allocated_bytes, p->earlier.allocated_bytes);
    note_peaks(p);
}

void played_begin_step(struct played *p)
{
    const struct allocator_stats *stats = &p->allocator->stats;
    if (!p->episode)
        p->episode = NEW(p->machine->arena, struct episode, 1);
    episode_begin(p->episode, p->allocator);
    p->first_of_step = p->machine->blocks_made;
    p->blocks_before_step = stats->allocations.current;
    p->flushes_before_step = stats->flushes;
    p->frees_older = false;
}

bool played_repeats(const struct played *p)
{
    const struct allocator_stats *stats = &p->allocator->stats;
    return !p->ran_out && !p->frees_older && episode_repeats(p->episode) &&
           !p->allocator->pending && stats->allocations.current == p->blocks_before_step &&
           stats->flushes == p->flushes_before_step;
}
