// Storages and their events. In a history that is kept, handles of blocks are used again, so that a
// replay's tables stay small; in others they tell which of two blocks came first.
#include "core/autograd/machine.h"

#include <math.h>

#include "core/allocator/allocator.h"
#include "core/autograd/stamp.h"
#include "core/base/num.h"

struct machine machine_with(struct arena *a, struct trace *trace)
{
    return (struct machine){.arena = a, .trace = trace};
}

const char *memory_kind_name(enum memory_kind kind)
{
    static const char *const names[] = {
        [MEMORY_UNKNOWN] = "other",
        [MEMORY_PARAMETERS] = "parameters",
        [MEMORY_REFERENCE] = "reference model",
        [MEMORY_GRADIENTS] = "gradients",
        [MEMORY_OPTIMIZER] = "optimizer",
        [MEMORY_CHECKPOINTS] = "checkpoints",
        [MEMORY_LOGITS] = "logits and their copies",
        [MEMORY_SAVED] = "saved for backward",
        [MEMORY_WORKING] = "working set",
        [MEMORY_GATHERED] = "gathered layers",
        [MEMORY_WORKSPACE] = "workspaces",
        [MEMORY_INPUTS] = "inputs",
    };
    return names[kind];
}

static uint64_t whole_units(uint64_t bytes)
{
    return (bytes + BLOCK_MIN_BYTES - 1) & ~(BLOCK_MIN_BYTES - 1);
}

static uint32_t take_block(struct machine *m)
{
    if (m->trace->passes)
        return m->blocks_made++;
    if (m->spare_block_count)
        return m->spare_blocks[--m->spare_block_count];
    return m->trace->block_count++;
}

static void give_block(struct machine *m, uint32_t block)
{
    if (m->spare_block_count == m->spare_block_capacity)
        m->spare_blocks = arena_grow(m->arena, m->spare_blocks, sizeof *m->spare_blocks,
                                     m->spare_block_count, &m->spare_block_capacity);
    m->spare_blocks[m->spare_block_count++] = block;
}

static void give_storage(struct machine *m, struct storage *s)
{
    if (!m->trace->passes)
        give_block(m, s->block);
    s->next = m->spare;
    m->spare = s;
}

// splitmix64's finalizer
static uint64_t scrambled(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

// What the same call of each turn makes is the same thing, wherever it lies.
static void watch(struct machine *m, struct storage *s, enum event_kind kind)
{
    if (!m->watched)
        return;
    if (kind == EVENT_ALLOC) {
        s->mark = scrambled(m->place + scrambled(++m->taken));
        m->alive += s->mark;
    } else if (kind != EVENT_FREE_REQUESTED) {
        m->alive -= s->mark;
    }
    m->print = scrambled(m->print + s->mark);
    m->print = scrambled(m->print + s->bytes);
    m->print = scrambled(m->print + ((uint64_t)kind << 16 | s->stream));
    m->driven |= m->play && m->grew;
}

static void write_down(struct machine *m, const struct storage *s, enum event_kind kind,
                       enum memory_kind tag)
{
    trace_add(m->trace, (struct event){.bytes = s->bytes,
                                       .block = s->block,
                                       .tag = (uint32_t)tag,
                                       .stream = s->stream,
                                       .kind = (uint8_t)kind});
}

static inline void note(struct machine *m, const struct storage *s, enum event_kind kind,
                        enum memory_kind tag)
{
    m->grew = false;
    if (!trace_passes(m->trace))
        write_down(m, s, kind, tag);
}

// Different for blocks that are not in the same place, or not as large.
static uint64_t place_of(const struct block *b)
{
    return b ? b->address * UINT64_C(0x9E3779B97F4A7C15) + b->bytes : 1;
}

static void serve(struct machine *m, struct storage *s, enum memory_kind kind)
{
    struct request request = {s->bytes, (uint32_t)kind, s->block, s->stream};
    m->place = 0;
    if (!m->play)
        return;
    s->place = m->play->serve(m->player, &request, &m->grew);
    m->place = m->watched ? place_of(s->place) : 0;
}

// Either the host has waited for it, or by the clocks of host and card it is over.
static bool is_done(const struct machine *m, uint64_t done_at, double done_time)
{
    return done_at <= m->host_clock || (m->time && done_time <= m->time->now.host);
}

static void complete_those_done(struct machine *m)
{
    struct storage **link = &m->first_waiting;
    m->last_waiting = NULL;
    m->next_done = UINT64_MAX;
    m->next_time = HUGE_VAL;
    while (*link) {
        struct storage *s = *link;
        if (!is_done(m, s->done_at, s->done_time)) {
            m->next_done = s->done_at < m->next_done ? s->done_at : m->next_done;
            m->next_time = s->done_time < m->next_time ? s->done_time : m->next_time;
            m->last_waiting = s;
            link = &s->next;
            continue;
        }
        *link = s->next;
        note(m, s, EVENT_FREE_COMPLETED, MEMORY_UNKNOWN);
        if (m->play)
            m->play->free_at_last(m->player, s->place, s->block);
        watch(m, s, EVENT_FREE_COMPLETED);
        give_storage(m, s);
    }
}

// torch's allocator looks at every allocation for frees that it can complete.
static inline void complete_waiting(struct machine *m)
{
    if (m->first_waiting && is_done(m, m->next_done, m->next_time))
        complete_those_done(m);
}

// The driver queues 1024 launches a stream and makes the host wait beyond that. An allocation
// stands for a launch here; the recording v0, where nothing else makes the host wait, comes out
// with as many layers alive in the forward pass (19 of 28) and in the backward pass (6).

static inline void launch(struct machine *m, uint64_t count)
{
    uint64_t now = m->clock[STREAM_COMPUTE] += count;
    if (now > m->host_clock + MOST_LAUNCHES_AHEAD)
        m->host_clock = now - MOST_LAUNCHES_AHEAD;
}

void machine_launch(struct machine *m, uint64_t count)
{
    if (m->stamp)
        stamp_launched(m->stamp, count);
    launch(m, count);
}

static struct storage *new_storage(struct machine *m)
{
    struct storage *s = m->spare;
    if (!s)
        return ROOM(m->arena, struct storage, 1);
    m->spare = s->next;
    return s;
}

static struct storage *take_elsewhere(struct machine *m, uint64_t bytes, uint64_t number)
{
    struct storage *s = new_storage(m);
    stamp_spoil(m->stamp);
    *s = (struct storage){.bytes = bytes, .references = 1, .on_host = true, .number = number};
    return s;
}

struct storage *machine_take_host(struct machine *m, uint64_t bytes, uint64_t number)
{
    m->sent_bytes += bytes;
    m->most_sent_bytes = u64_most(m->most_sent_bytes, m->sent_bytes);
    return take_elsewhere(m, bytes, number);
}

struct storage *machine_take_managed(struct machine *m, uint64_t bytes)
{
    m->managed_bytes += bytes;
    return take_elsewhere(m, bytes, 0);
}

struct storage *machine_take(struct machine *m, uint64_t bytes, enum memory_kind kind)
{
    if (!bytes)
        return NULL;
    complete_waiting(m);
    struct storage *s = new_storage(m);
    if (m->stream == STREAM_COMPUTE)
        launch(m, 1);
    *s = (struct storage){
        .bytes = bytes, .block = take_block(m), .stream = m->stream, .references = 1};
    m->live_bytes += whole_units(bytes);
    if (m->live_bytes > m->floor_bytes)
        m->floor_bytes = m->live_bytes;
    note(m, s, EVENT_ALLOC, kind);
    serve(m, s, kind);
    watch(m, s, EVENT_ALLOC);
    if (m->stamp)
        stamp_took(m->stamp, s, kind);
    return s;
}

struct storage *machine_take_on(struct machine *m, uint16_t stream, uint64_t bytes,
                                enum memory_kind kind)
{
    uint16_t before = m->stream;
    m->stream = stream;
    struct storage *s = machine_take(m, bytes, kind);
    m->stream = before;
    return s;
}

static void free_after(struct machine *m, struct storage *s, uint16_t stream);

void machine_drop(struct machine *m, struct storage *s)
{
    if (!s)
        return;
    ASSERT(s->references > 0);
    if (--s->references) {
        if (m->stamp)
            stamp_dropped(m->stamp, s);
        return;
    }
    if (s->on_host) {
        m->sent_bytes -= s->bytes;
        s->next = m->spare;
        m->spare = s;
        return;
    }
    if (m->stamp)
        stamp_freed(m->stamp, s);
    if (s->recorded) {
        free_after(m, s, STREAM_COMPUTE);
        return;
    }
    m->live_bytes -= whole_units(s->bytes);
    note(m, s, EVENT_FREE, MEMORY_UNKNOWN);
    if (m->play)
        m->play->free(m->player, s->place);
    watch(m, s, EVENT_FREE);
    give_storage(m, s);
}

struct block *machine_use(struct machine *m, uint16_t stream, uint64_t bytes, enum memory_kind kind)
{
    complete_waiting(m);
    if (stream == STREAM_COMPUTE)
        launch(m, 1);
    m->live_bytes += whole_units(bytes);
    if (m->live_bytes > m->floor_bytes)
        m->floor_bytes = m->live_bytes;
    m->trace->count++;
    m->grew = false;
    struct request request = {bytes, (uint32_t)kind, m->blocks_made++, stream};
    return m->play ? m->play->serve(m->player, &request, &m->grew) : NULL;
}

void machine_leave(struct machine *m, struct block *b, uint64_t bytes)
{
    m->live_bytes -= whole_units(bytes);
    m->trace->count++;
    m->grew = false;
    if (m->play)
        m->play->free(m->player, b);
}

void bout_add(struct bout *b, const struct move *next)
{
    uint64_t bytes = whole_units(next->bytes);
    b->count++;
    b->net_bytes += next->asks ? bytes : -bytes;
    if (!next->asks)
        return;
    b->asked++;
    b->launches += next->stream == STREAM_COMPUTE;
    bool rises = (int64_t)b->net_bytes > (int64_t)b->most_bytes;
    b->most_bytes = rises ? b->net_bytes : b->most_bytes;
}

static void run_bout(struct machine *m, struct bout *b, struct block **places)
{
    if (!b->prepared)
        m->play->prepare(m->player, b->moves, b->count);
    b->prepared = true;
    m->play->run(m->player, b->moves, b->count, places);
}

void machine_make(struct machine *m, struct bout *b, struct block **places)
{
    launch(m, b->launches);
    if (m->live_bytes + b->most_bytes > m->floor_bytes)
        m->floor_bytes = m->live_bytes + b->most_bytes;
    m->live_bytes += b->net_bytes;
    m->grew = false;
    if (m->play)
        run_bout(m, b, places);
    m->trace->count += b->count;
    m->blocks_made += b->asked;
}

struct errand errand_of(struct machine *m, ptrdiff_t takes)
{
    return (struct errand){.machine = m, .moves = ROOM(m->arena, struct move, 2 * takes)};
}

int32_t errand_take(struct errand *e, uint64_t bytes, enum memory_kind kind)
{
    if (!bytes)
        return 0;
    e->moves[e->count++] = (struct move){.bytes = bytes,
                                         .place = ++e->places,
                                         .stream = e->machine->stream,
                                         .tag = (uint8_t)kind,
                                         .asks = true};
    return e->places;
}

void errand_drop(struct errand *e, int32_t place)
{
    if (place)
        e->moves[e->count++] = (struct move){.place = place};
}

// Everybody who looks at single events is shown them.
static bool needs_each(const struct machine *m)
{
    return !m->trace->passes || m->each_layer || m->watched || m->stamp || m->first_waiting;
}

static void run_each(const struct errand *e)
{
    struct storage **taken = ROOM(e->machine->arena, struct storage *, e->places);
    for (const struct move *n = e->moves, *end = n + e->count; n < end; n++) {
        if (n->asks)
            taken[n->place - 1] = machine_take(e->machine, n->bytes, (enum memory_kind)n->tag);
        else
            machine_drop(e->machine, taken[n->place - 1]);
    }
}

void errand_run(const struct errand *e)
{
    if (needs_each(e->machine)) {
        run_each(e);
        return;
    }
    struct bout bout = {.moves = e->moves};
    uint64_t *bytes = ROOM(e->machine->arena, uint64_t, e->places);
    for (struct move *n = e->moves, *end = n + e->count; n < end; n++) {
        if (n->asks)
            bytes[n->place - 1] = n->bytes;
        n->bytes = bytes[n->place - 1];
        bout_add(&bout, n);
    }
    machine_make(e->machine, &bout, ROOM(e->machine->arena, struct block *, e->places));
}

void machine_drop_after(struct machine *m, struct storage *s, uint16_t stream)
{
    if (!s)
        return;
    ASSERT(s->references > 0);
    stamp_spoil(m->stamp);
    if (!--s->references)
        free_after(m, s, stream);
}

static void free_after(struct machine *m, struct storage *s, uint16_t stream)
{
    m->live_bytes -= whole_units(s->bytes);
    note(m, s, EVENT_FREE_REQUESTED, MEMORY_UNKNOWN);
    if (m->play)
        m->play->free_later(m->player, s->place);
    watch(m, s, EVENT_FREE_REQUESTED);
    s->done_at = m->clock[stream];
    s->done_time = machine_when(m, stream);
    s->next = NULL;
    if (!m->first_waiting || s->done_at < m->next_done)
        m->next_done = s->done_at;
    if (!m->first_waiting || s->done_time < m->next_time)
        m->next_time = s->done_time;
    *(m->last_waiting ? &m->last_waiting->next : &m->first_waiting) = s;
    m->last_waiting = s;
}

void machine_wait(struct machine *m, uint16_t stream, uint16_t other)
{
    stamp_spoil(m->stamp);
    if (m->clock[stream] < m->clock[other])
        m->clock[stream] = m->clock[other];
    if (m->time)
        timeline_wait(m->time, stream, other);
}

void machine_synchronize(struct machine *m, uint64_t clock)
{
    struct stamp *noting = stamp_pause_to_synchronize(m, clock);
    if (m->time && clock >= m->clock[STREAM_COMPUTE])
        timeline_synchronize(m->time, STREAM_COMPUTE);
    if (m->host_clock < clock)
        m->host_clock = clock;
    stamp_resume_on(m, noting);
}

struct stream_moment machine_moment(const struct machine *m, uint16_t stream)
{
    return (struct stream_moment){m->clock[stream], machine_when(m, stream)};
}

struct stream_moment machine_moment_at(double time)
{
    return (struct stream_moment){UINT64_MAX, time};
}

bool machine_is_done(const struct machine *m, struct stream_moment moment)
{
    return is_done(m, moment.clock, moment.time);
}

void machine_await_moment(struct machine *m, struct stream_moment moment)
{
    stamp_spoil(m->stamp);
    if (m->time && m->time->now.host < moment.time)
        m->time->now.host = moment.time;
    if (moment.clock < UINT64_MAX && m->host_clock < moment.clock)
        m->host_clock = moment.clock;
}

void machine_move_on(struct machine *m, uint16_t stream, uint64_t bytes)
{
    if (m->time && bytes)
        timeline_move(m->time, stream, (double)bytes);
}

void machine_move(struct machine *m, uint64_t bytes)
{
    machine_move_on(m, m->stream, bytes);
}

void machine_move_more(struct machine *m, uint64_t bytes)
{
    if (m->time)
        timeline_move_more(m->time, m->stream, (double)bytes);
}

void machine_slow(struct machine *m, enum moving kind, uint64_t bytes)
{
    if (m->time)
        timeline_slow(m->time, m->stream, kind, (double)bytes);
}

void machine_follow(struct machine *m, uint16_t stream, uint16_t other)
{
    if (m->time)
        timeline_wait(m->time, stream, other);
}

void machine_multiply(struct machine *m, const struct product_shape *p)
{
    if (m->time)
        timeline_multiply(m->time, m->stream, p);
}

void machine_attend(struct machine *m, const struct attending_shape *a)
{
    if (m->time)
        timeline_attend(m->time, m->stream, a);
}

double machine_when(const struct machine *m, uint16_t stream)
{
    return m->time ? m->time->stream[stream] : 0;
}

void machine_await(struct machine *m, double time)
{
    machine_await_on(m, STREAM_COMPUTE, time);
}

void machine_await_on(struct machine *m, uint16_t stream, double time)
{
    if (m->time)
        timeline_await(m->time, stream, time);
}

void machine_collect(struct machine *m, uint16_t stream, enum collective kind, uint64_t ranks,
                     uint64_t bytes)
{
    if (m->time)
        timeline_collect(m->time, stream,
                         collective_seconds(&m->time->network, kind, ranks, (double)bytes));
}

void machine_collect_in(struct machine *m, struct ranks_apart g, enum collective kind,
                        uint64_t bytes)
{
    if (m->time)
        timeline_collect(m->time, STREAM_COMPUTE,
                         group_seconds(&m->time->network, kind, g, (double)bytes));
}

void machine_host_copy(struct machine *m, uint16_t stream, uint64_t bytes)
{
    if (m->time && bytes)
        timeline_host_copy(m->time, stream, (double)bytes);
}

void machine_update_on_host(struct machine *m, uint64_t elements)
{
    for (int i = 0; m->time && i < MACHINE_STREAMS; i++)
        timeline_synchronize(m->time, i);
    if (m->time)
        timeline_host_update(m->time, (double)elements);
}

void machine_scratch(struct machine *m, uint64_t bytes)
{
    machine_drop(m, machine_take(m, bytes, MEMORY_WORKSPACE));
}

void machine_mark(struct machine *m, enum event_kind kind)
{
    stamp_spoil(m->stamp);
    m->grew = false;
    if (!trace_passes(m->trace))
        trace_add(m->trace, (struct event){.block = EVENT_NO_BLOCK, .kind = (uint8_t)kind});
    if (m->play)
        m->play->mark(m->player, kind);
}

const char *phase_name(enum phase phase)
{
    static const char *const names[] = {
        [PHASE_BUILD] = "building the model",
        [PHASE_REFERENCE] = "reference",
        [PHASE_GENERATE] = "generation",
        [PHASE_FORWARD] = "forward",
        [PHASE_LOSS] = "loss",
        [PHASE_BACKWARD] = "backward",
        [PHASE_OPTIMIZER] = "optimizer",
        [PHASE_SYNC] = "weight sync",
        [PHASE_EVALUATE] = "evaluation",
        [PHASE_SAVE] = "checkpoint",
    };
    return names[phase];
}

void machine_phase(struct machine *m, enum phase phase)
{
    stamp_spoil(m->stamp);
    m->phases =
        arena_grow(m->arena, m->phases, sizeof *m->phases, m->phase_count, &m->phase_capacity);
    m->phases[m->phase_count++] = (struct phase_mark){m->trace->count, phase, m->step};
    machine_module(m, NULL, 0, true);
}

void machine_module(struct machine *m, const char *parameter, int layer, bool done)
{
    if (!m->makes_all)
        return;
    m->modules =
        arena_grow(m->arena, m->modules, sizeof *m->modules, m->module_count, &m->module_capacity);
    m->modules[m->module_count++] = (struct module_mark){m->trace->count, parameter, layer, done};
}

static void begin_turn(struct machine *m)
{
    m->print = m->taken = 0;
    m->driven = false;
}

struct turns machine_turns(struct machine *m)
{
    if (m->stamp && !m->play && !m->time) // all of one layer's are noted, as they cost nothing then
        return (struct turns){0};
    stamp_spoil(m->stamp);
    m->watched = !m->makes_all;
    m->has_turns |= m->watched;
    m->alive = 0;
    begin_turn(m);
    return (struct turns){.moves_at = 1};
}

static struct turn turn_ended(const struct machine *m)
{
    return (struct turn){.print = m->print,
                         .alive = m->alive + scrambled(m->live_bytes),
                         .clock = m->clock[STREAM_COMPUTE],
                         .host_clock = m->host_clock,
                         .elapsed = m->time ? m->time->now : (struct elapsed){0}};
}

// The host either waited in every turn since, or in none.
static bool is_there_again(const struct turn *earlier, const struct turn *now)
{
    uint64_t waited = now->host_clock - earlier->host_clock;
    return earlier->print == now->print && earlier->alive == now->alive &&
           (!waited || waited == now->clock - earlier->clock);
}

// What the turns that are left out would have added. The host is as far behind as it was, or waits
// where it would be too far.
static void leave_out(struct machine *m, const struct turn *before, uint64_t times)
{
    m->clock[STREAM_COMPUTE] += times * (m->clock[STREAM_COMPUTE] - before->clock);
    m->host_clock += times * (m->host_clock - before->host_clock);
    if (m->clock[STREAM_COMPUTE] > MOST_LAUNCHES_AHEAD)
        machine_synchronize(m, m->clock[STREAM_COMPUTE] - MOST_LAUNCHES_AHEAD);
    if (m->time)
        timeline_repeat(m->time, &before->elapsed, (double)times);
}

uint64_t machine_turn_done(struct machine *m, struct turns *t, uint64_t left)
{
    if (!m->watched)
        return 0;
    struct turn now = turn_ended(m);
    bool starts = !left || m->driven || m->first_waiting;
    begin_turn(m);
    if (starts) { // what follows is no repetition of this
        *t = (struct turns){.moves_at = 1};
        return 0;
    }
    t->since++;
    if (t->earlier.clock && is_there_again(&t->earlier, &now)) {
        uint64_t times = left / t->since, skipped = times * t->since;
        leave_out(m, &t->earlier, times);
        *t = (struct turns){.moves_at = 1};
        return skipped;
    }
    if (t->since == t->moves_at)
        *t = (struct turns){.earlier = now, .moves_at = 2 * t->moves_at};
    return 0;
}

void machine_turns_end(struct machine *m)
{
    m->watched = false;
}
