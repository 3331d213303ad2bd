// The path of a request: round, search the pool, else get memory from the driver, split; and the
// path of a free: request, completion, merge. Files beside it hold the driver side (segment.c) and
// what gives memory back (release.c).
#include "core/allocator/allocator.h"

#include <stddef.h>

#include "core/allocator/internal.h"
#include "core/base/num.h"

enum { BLOCKS_AT_ONCE = 64 };

// Where nothing is known of the device, room for any recording.
#define UNKNOWN_DEVICE_BYTES (UINT64_C(1) << 44)

static uint64_t capacity_of(const struct allocator_options *o)
{
    uint64_t total = o->device_bytes ? o->device_bytes : UNKNOWN_DEVICE_BYTES;
    if (total > UNKNOWN_DEVICE_BYTES)
        total = UNKNOWN_DEVICE_BYTES;
    return total > o->outside_bytes ? total - o->outside_bytes : 0;
}

struct allocator *allocator_new(struct arena *a, const struct allocator_options *options,
                                const uint64_t *streams, uint16_t stream_count)
{
    struct allocator *made = NEW(a, struct allocator, 1);
    made->arena = a;
    made->options = *options;
    made->collects = options->limited && options->gc_threshold > 0;
    made->rounds_plainly = true;
    for (int i = 0; i < OPTIONS_DIVISION_BUCKETS; i++)
        made->rounds_plainly &= options->divisions[i] <= 1;
    made->driver =
        (struct driver){.capacity_bytes = capacity_of(options), .addresses = address_space_in(a)};
    made->driver.addresses.placing = options->placing;
    made->pools = NEW(a, struct pool_table, 1);
    made->pools->streams = streams;
    made->pools->stream_count = stream_count;
    for (int size = 0; size < CLASS_COUNT; size++)
        made->pools->by_stream[size] = NEW(a, struct pool *, stream_count);
    return made;
}

static struct pool *pool_new(struct allocator *a, enum size_class size, uint16_t stream)
{
    struct pool *pool = NEW(a->arena, struct pool, 1);
    pool->stream = stream;
    pool->stream_number = a->pools->streams[stream];
    pool->size = size;
    pool->searches = &a->pools->searches[size];
    pool->seen = a->episode ? &a->episode->classes[size] : NULL;
    struct pool **link = &a->pools->first[size];
    while (*link && (*link)->stream_number < pool->stream_number)
        link = &(*link)->next;
    pool->next = *link;
    *link = pool;
    a->pools->by_stream[size][stream] = pool;
    return pool;
}

struct pool *pool_of(struct allocator *a, enum size_class size, uint16_t stream)
{
    ASSERT(stream < a->pools->stream_count);
    struct pool *pool = a->pools->by_stream[size][stream];
    return pool ? pool : pool_new(a, size, stream);
}

static inline void recycle(struct allocator *a, struct block *b)
{
    b->next = a->spare_blocks;
    a->spare_blocks = b;
}

// A bijection of 32 bits: priorities look random, are unique and the same in every run.
static uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ x >> 16;
}

static void make_more_blocks(struct allocator *a)
{
    struct block *more = ROOM(a->arena, struct block, BLOCKS_AT_ONCE);
    for (int i = BLOCKS_AT_ONCE - 1; i >= 0; i--) {
        more[i].priority = scramble(a->blocks_made + (uint32_t)i);
        recycle(a, &more[i]);
    }
    a->blocks_made += BLOCKS_AT_ONCE;
}

static inline struct block *new_block(struct allocator *a)
{
    if (!a->spare_blocks)
        make_more_blocks(a);
    struct block *b = a->spare_blocks;
    a->spare_blocks = b->next;
    return b;
}

struct block *block_new(struct allocator *a)
{
    return new_block(a);
}

void block_recycle(struct allocator *a, struct block *b)
{
    recycle(a, b);
}

struct block *block_cut(struct allocator *a, struct block *b, uint64_t bytes)
{
    struct block *upper = block_new(a);
    upper->address = b->address + bytes;
    upper->bytes = b->bytes - bytes;
    upper->segment = b->segment;
    upper->pool = b->pool;
    upper->previous = b;
    upper->next = b->next;
    if (b->next)
        b->next->previous = upper;
    b->next = upper;
    b->bytes = bytes;
    return upper;
}

static void leave_set(struct block *b)
{
    if (b->state == BLOCK_FREE)
        pool_take(b);
    else
        treap_remove(&b->pool->unmapped, b);
}

void block_merge(struct allocator *a, struct block *b)
{
    uint8_t kind = b->state == BLOCK_UNMAPPED ? BLOCK_UNMAPPED : BLOCK_FREE;
    struct block *lower = b->previous;
    if (lower && lower->state == kind) {
        leave_set(lower);
        b->address = lower->address;
        b->bytes += lower->bytes;
        b->previous = lower->previous;
        *(b->previous ? &b->previous->next : &b->segment->first) = b;
        block_recycle(a, lower);
    }
    struct block *upper = b->next;
    if (upper && upper->state == kind) {
        leave_set(upper);
        b->bytes += upper->bytes;
        b->next = upper->next;
        if (b->next)
            b->next->previous = b;
        block_recycle(a, upper);
    }
}

// What a block can grow to: the one at the edge of unmapped space looks as large as that space.
static uint64_t reach(const struct block *b)
{
    return b->next && b->next->state == BLOCK_UNMAPPED ? b->bytes + b->next->bytes : b->bytes;
}

static struct block *prefer_interior(const struct search *s, struct block *b)
{
    while (b->segment->expandable) {
        struct block *next = block_set_after(&s->pool->free, b);
        if (!next || reach(next) >= reach(b))
            break;
        b = next;
    }
    return b;
}

// Oversize blocks are neither split nor given to lesser requests.
static bool suits(const struct allocator_options *o, uint64_t block_bytes, uint64_t bytes)
{
    if (bytes < o->max_split_bytes)
        return block_bytes < o->max_split_bytes;
    return block_bytes < sat_add(bytes, o->max_non_split_rounding_bytes);
}

static struct block *of_the_kind(const struct allocator *a, const struct search *s, struct block *b)
{
    if (!a->options.expandable)
        while (b && b->segment->expandable)
            b = block_set_after(&s->pool->free, b);
    else if (b && b->segment->expandable && reach(b) != b->bytes)
        b = prefer_interior(s, b);
    return b;
}

static ALWAYS_INLINE struct block *find_free(const struct allocator *a, const struct search *s,
                                             struct beside w)
{
    struct block *b = block_set_first(&s->pool->free, s->bytes, s->bucket);
    if (w.expands)
        b = of_the_kind(a, s, b);
    // torch looks at one candidate only, and gives up rather than try the next.
    return b && (!w.keeps_whole || suits(&a->options, b->bytes, s->bytes)) ? b : NULL;
}

static struct block *from_driver(struct allocator *a, const struct search *s)
{
    const struct allocator_options *o = &a->options;
    if (o->limited && a->stats.reserved_bytes.current + s->segment_bytes > o->limit_bytes)
        return NULL;
    return o->expandable ? segment_expand(a, s) : segment_allocate(a, s);
}

// Nothing but a request raises what is counted: peaks may wait until something else happens.
static inline void raise_peaks(struct allocator_stats *s)
{
    stat_raise(&s->allocations, 0);
    stat_raise(&s->allocated_bytes, 0);
    stat_raise(&s->active_bytes, 0);
    stat_raise(&s->requested_bytes, 0);
}

// What the cache has no room for.
static struct block *get_memory(struct allocator *a, struct search *s)
{
    const struct allocator_options *o = &a->options;
    raise_peaks(&a->stats); // before frees complete
    s->segment_bytes = options_segment_bytes(o, s->bytes);
    if (a->missed)
        a->missed(a->owner);
    if (a->driver.tape)
        release_collected(a);
    else if (a->collects)
        release_old_blocks(a);
    struct block *b = from_driver(a, s);
    if (!b && o->max_split_bytes != UINT64_MAX && release_oversize(a, s))
        b = from_driver(a, s);
    if (b)
        return b;
    allocator_flush(a, FLUSH_RETRY);
    return from_driver(a, s);
}

static ALWAYS_INLINE bool should_split(const struct allocator *a, const struct search *s,
                                       const struct block *b, struct beside w)
{
    uint64_t rest = b->bytes - s->bytes;
    if (s->bytes <= SMALL_MAX_BYTES || (w.expands && a->options.expandable))
        return rest >= BLOCK_MIN_BYTES;
    return (!w.keeps_whole || s->bytes < a->options.max_split_bytes) && rest > SMALL_MAX_BYTES;
}

static ALWAYS_INLINE uint64_t rounded(const struct allocator *a, uint64_t bytes, struct beside w)
{
    if (w.divides || bytes < BLOCK_MIN_BYTES)
        return options_round(&a->options, bytes);
    return (bytes + BLOCK_MIN_BYTES - 1) & ~(BLOCK_MIN_BYTES - 1);
}

static ALWAYS_INLINE struct search search_for(struct allocator *a, const struct request *request,
                                              struct beside w)
{
    ASSERT(request->bytes < EVENT_MAX_BYTES);
    uint64_t bytes = rounded(a, request->bytes, w);
    enum size_class size = bytes <= SMALL_MAX_BYTES ? CLASS_SMALL : CLASS_LARGE;
    ASSERT(request->stream < a->pools->stream_count);
    struct pool *pool = a->pools->by_stream[size][request->stream];
    return (struct search){.pool = pool ? pool : pool_new(a, size, request->stream),
                           .bytes = bytes,
                           .bucket = block_set_bucket(bytes)};
}

// The history torch would have recorded.
static void log_event(struct allocator *a, enum event_kind kind, const struct event *event)
{
    struct event logged = *event;
    logged.kind = (uint8_t)kind;
    if (a->driver.log)
        trace_add(a->driver.log, logged);
}

static void log_block(struct allocator *a, enum event_kind kind, const struct block *b)
{
    log_event(a, kind,
              &(struct event){.address = b->address,
                              .bytes = b->requested_bytes,
                              .block = b->handle,
                              .tag = b->tag,
                              .stream = b->segment->stream});
}

static struct block *out_of_memory(struct allocator *a, const struct request *request)
{
    a->stats.ooms++;
    allocator_explain_oom(a, request->bytes, request->stream);
    log_event(a, EVENT_OOM,
              &(struct event){.address = a->oom.free_known ? a->oom.free_bytes : 0,
                              .bytes = options_round(&a->options, request->bytes),
                              .block = EVENT_NO_BLOCK,
                              .stream = request->stream});
    return NULL;
}

static ALWAYS_INLINE void watch(struct episode *e, const struct search *s, const struct block *b,
                                bool is_cut)
{
    bool grew = s->segment_bytes;
    if (grew)
        episode_grew(e, b);
    struct episode_service how = {s->bytes, s->bucket,
                                  grew ? block_set_bucket(b->bytes) : b->bucket, is_cut};
    episode_served(s->pool->seen, b, &how);
}

// The lower part of a free block.
static ALWAYS_INLINE struct block *cut_from_free(struct allocator *a, const struct search *s,
                                                 struct block *b, struct beside w)
{
    struct block *lower = new_block(a);
    lower->address = b->address;
    lower->bytes = s->bytes;
    lower->segment = b->segment;
    lower->pool = s->pool;
    lower->previous = b->previous;
    lower->next = b;
    *(b->previous ? &b->previous->next : &b->segment->first) = lower;
    b->previous = lower;
    block_set_change(&s->pool->free, b, b->address + s->bytes, b->bytes - s->bytes);
    became_free(b, w);
    return lower;
}

// From the free blocks, or new; NULL: there is none.
static ALWAYS_INLINE struct block *get_block(struct allocator *a, struct search *s, struct beside w)
{
    if (w.collects)
        ++*s->pool->searches;
    struct block *found = find_free(a, s, w), *b = found;
    if (!found) {
        struct search missed = *s; // a copy, so that the other lives in registers
        b = get_memory(a, &missed);
        s->segment_bytes = missed.segment_bytes;
    }
    if (!b)
        return NULL;
    bool is_cut = should_split(a, s, b, w);
    if (w.watched)
        watch(a->episode, s, b, is_cut);
    if (found && is_cut)
        return cut_from_free(a, s, b, w);
    if (found)
        pool_take(b);
    else if (is_cut)
        pool_put(a, block_cut(a, b, s->bytes));
    return b;
}

// Without a look at the peaks.
static ALWAYS_INLINE struct block *serve(struct allocator *a, const struct request *request,
                                         struct search *s, struct beside w)
{
    struct block *b = get_block(a, s, w);
    if (!b) {
        struct request failed = *request;
        return out_of_memory(a, &failed);
    }
    b->state = BLOCK_ALLOCATED;
    b->requested_bytes = request->bytes;
    b->tag = request->tag;
    b->handle = request->handle;
    a->stats.allocations.current++;
    a->stats.allocated_bytes.current += b->bytes;
    a->stats.active_bytes.current += b->bytes;
    if (a->active_by_tag)
        a->active_by_tag[b->tag] += b->bytes;
    a->stats.requested_bytes.current += request->bytes;
    if (w.logs)
        log_block(a, EVENT_ALLOC, b);
    return b;
}

struct block *allocator_serve(struct allocator *a, const struct request *request)
{
    struct beside w = beside_of(a);
    struct search s = search_for(a, request, w);
    struct block *b = is_plain(w) ? serve(a, request, &s, (struct beside){.watched = w.watched})
                                  : serve(a, request, &s, w);
    raise_peaks(&a->stats);
    return b;
}

// Without making a pool: it is NULL where the stream never had one.
static struct search search_in(const struct allocator *a, struct request request)
{
    struct search s = {.bytes = options_round(&a->options, request.bytes)};
    s.bucket = block_set_bucket(s.bytes);
    s.segment_bytes = options_segment_bytes(&a->options, s.bytes);
    ASSERT(request.stream < a->pools->stream_count);
    enum size_class size = s.bytes <= SMALL_MAX_BYTES ? CLASS_SMALL : CLASS_LARGE;
    s.pool = a->pools->by_stream[size][request.stream];
    return s;
}

bool allocator_has_room(const struct allocator *a, struct request request)
{
    struct search s = search_in(a, request);
    return s.pool && find_free(a, &s, beside_of(a));
}

static uint64_t merged_bytes(const struct block *b)
{
    uint64_t bytes = b->bytes;
    if (b->previous && b->previous->state == BLOCK_FREE)
        bytes += b->previous->bytes;
    if (b->next && b->next->state == BLOCK_FREE)
        bytes += b->next->bytes;
    return bytes;
}

bool allocator_would_serve(const struct allocator *a, const struct block *b, struct request request)
{
    struct search s = search_in(a, request);
    uint64_t bytes = merged_bytes(b);
    return b->pool == s.pool && bytes >= s.bytes && suits(&a->options, bytes, s.bytes);
}

bool allocator_makes_oversize(const struct allocator *a, const struct block *b,
                              struct request request)
{
    return b->pool == search_in(a, request).pool && !b->segment->expandable &&
           b->segment->bytes >= a->options.max_split_bytes && merged_bytes(b) == b->segment->bytes;
}

uint64_t allocator_growth(const struct allocator *a, struct request request)
{
    struct search s = search_in(a, request);
    return a->options.expandable ? segment_growth(a, &s) : s.segment_bytes;
}

const struct block *allocator_first_oversize(const struct allocator *a, struct request request)
{
    struct search s = search_in(a, request);
    return s.pool && a->options.max_split_bytes != UINT64_MAX ? oversize_first(a, &s) : NULL;
}

void allocator_free_request(struct allocator *a, struct block *b)
{
    ASSERT(b->state == BLOCK_ALLOCATED);
    b->state = BLOCK_PENDING;
    stat_lower(&a->stats.allocations, 1);
    stat_lower(&a->stats.allocated_bytes, b->bytes);
    b->left = a->pending_last;
    b->right = NULL;
    *(b->left ? &b->left->right : &a->pending) = b;
    a->pending_last = b;
    if (a->driver.log)
        log_block(a, EVENT_FREE_REQUESTED, b);
}

// A neighbour gets the space of a block and of the one behind that, if any is given.
static ALWAYS_INLINE void take_in(struct block *kept, const struct block *b,
                                  const struct block *upper)
{
    if (b->previous == kept) {
        kept->next = upper ? upper->next : b->next;
        if (kept->next)
            kept->next->previous = kept;
        return;
    }
    kept->previous = b->previous;
    *(b->previous ? &b->previous->next : &b->segment->first) = kept;
}

// With its free neighbours, of which one takes the others in.
static ALWAYS_INLINE void join_free(struct allocator *a, struct block *b, struct beside w)
{
    struct block *lower = b->previous, *upper = b->next;
    lower = lower && lower->state == BLOCK_FREE ? lower : NULL;
    upper = upper && upper->state == BLOCK_FREE ? upper : NULL;
    if (!lower && !upper) {
        block_set_add(&b->pool->free, b);
        became_free(b, w);
        return;
    }
    struct block *kept = lower ? lower : upper;
    uint64_t bytes = b->bytes + kept->bytes + (lower && upper ? upper->bytes : 0);
    take_in(kept, b, lower && upper ? upper : NULL);
    if (lower && upper) {
        pool_take(upper);
        recycle(a, upper);
    }
    block_set_change(&b->pool->free, kept, kept == lower ? lower->address : b->address, bytes);
    b->state = BLOCK_FREE;
    recycle(a, b);
    became_free(kept, w);
}

static ALWAYS_INLINE void become_free(struct allocator *a, struct block *b, struct beside w)
{
    stat_lower(&a->stats.active_bytes, b->bytes);
    if (a->active_by_tag)
        a->active_by_tag[b->tag] -= b->bytes;
    stat_lower(&a->stats.requested_bytes, b->requested_bytes);
    if (w.logs)
        log_block(a, EVENT_FREE_COMPLETED, b);
    if (w.watched && !b->previous && !b->next)
        episode_returned(a->episode, b->pool->seen, block_set_bucket(b->bytes));
    join_free(a, b, w);
}

void allocator_free_complete(struct allocator *a, struct block *b)
{
    ASSERT(b->state == BLOCK_PENDING);
    *(b->left ? &b->left->right : &a->pending) = b->right;
    *(b->right ? &b->right->left : &a->pending_last) = b->left;
    become_free(a, b, beside_of(a));
}

static ALWAYS_INLINE void free_at_once(struct allocator *a, struct block *b, struct beside w)
{
    ASSERT(b->state == BLOCK_ALLOCATED);
    stat_lower(&a->stats.allocations, 1);
    stat_lower(&a->stats.allocated_bytes, b->bytes);
    if (w.logs)
        log_block(a, EVENT_FREE_REQUESTED, b);
    become_free(a, b, w);
}

void allocator_free(struct allocator *a, struct block *b)
{
    struct beside w = beside_of(a);
    if (is_plain(w))
        free_at_once(a, b, (struct beside){.watched = w.watched});
    else
        free_at_once(a, b, w);
}

// After requests in a row, of which the last is the highest.
static ALWAYS_INLINE void look_around(struct allocator *a, struct summit *most, ptrdiff_t at)
{
    uint64_t bytes = a->stats.allocated_bytes.current;
    raise_peaks(&a->stats);
    if (bytes <= most->bytes)
        return;
    most->bytes = bytes;
    most->at = at;
    most->is_here = true;
}

static ALWAYS_INLINE void leave(struct summit *most)
{
    if (most->is_here)
        most->leaves(most->owner);
    most->is_here = false;
}

void allocator_prepare(struct allocator *a, struct move *moves, ptrdiff_t count)
{
    for (struct move *m = moves, *end = m + count; m < end; m++) {
        if (!m->asks)
            continue;
        struct request request = {.bytes = m->bytes, .stream = m->stream};
        struct search s = search_for(a, &request, beside_of(a));
        m->pool = s.pool;
        m->rounded_bytes = s.bytes;
        m->bucket = (uint16_t)s.bucket;
    }
}

static ALWAYS_INLINE ptrdiff_t run(struct allocator *a, const struct moves *moves,
                                   struct summit *most, struct beside w)
{
    const struct move *m = moves->all, *end = m + moves->count;
    struct block **places = moves->places;
    uint32_t handle = moves->handle;
    while (m < end) {
        const struct move *first = m;
        for (; m < end && m->asks; m++) {
            struct request request = {m->bytes, m->tag, handle++, m->stream};
            struct search s = {.pool = m->pool, .bytes = m->rounded_bytes, .bucket = m->bucket};
            struct block *b = serve(a, &request, &s, w);
            if (!b)
                break;
            places[m->place - 1] = b;
        }
        if (m > first)
            look_around(a, most, m - 1 - moves->all);
        if (m < end && m->asks)
            break;
        if (m < end)
            leave(most);
        for (; m < end && !m->asks; m++)
            free_at_once(a, places[m->place - 1], w);
    }
    return m - moves->all;
}

// The plain path has code of its own, without what is beside it.
ptrdiff_t allocator_run(struct allocator *a, const struct moves *moves, struct summit *most)
{
    struct beside w = beside_of(a);
    if (!is_plain(w))
        return run(a, moves, most, w);
    if (w.watched)
        return run(a, moves, most, (struct beside){.watched = true});
    return run(a, moves, most, (struct beside){0});
}

static void reset(struct stat *s)
{
    s->peak = s->current;
}

void allocator_reset_peaks(struct allocator *a)
{
    reset(&a->stats.allocated_bytes);
    reset(&a->stats.requested_bytes);
    reset(&a->stats.active_bytes);
    reset(&a->stats.reserved_bytes);
    reset(&a->stats.allocations);
    reset(&a->stats.segments);
}
