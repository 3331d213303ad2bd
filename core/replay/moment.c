// One walk over all segments and their blocks.
#include "core/replay/moment.h"

#include <stdlib.h>

static bool is_live(const struct block *b)
{
    return b->state == BLOCK_ALLOCATED || b->state == BLOCK_PENDING;
}

static void offer(struct moment *m, const struct block *b, ptrdiff_t most)
{
    ptrdiff_t i = m->block_count;
    if (i == most) {
        if (most == 0 || m->blocks[most - 1].bytes >= b->bytes)
            return;
        i--;
    } else {
        m->block_count++;
    }
    for (; i > 0 && m->blocks[i - 1].bytes < b->bytes; i--)
        m->blocks[i] = m->blocks[i - 1];
    m->blocks[i] = (struct moment_block){.address = b->address,
                                         .bytes = b->bytes,
                                         .requested_bytes = b->requested_bytes,
                                         .tag = b->tag,
                                         .stream = b->segment->stream,
                                         .pending = b->state == BLOCK_PENDING};
}

static void weigh(struct moment_segment *m, const struct block *b)
{
    if (b->state == BLOCK_UNMAPPED)
        return;
    m->reserved_bytes += b->bytes;
    if (b->state == BLOCK_FREE) {
        if (b->bytes > m->largest_free_bytes)
            m->largest_free_bytes = b->bytes;
        return;
    }
    m->live_bytes += b->bytes;
    m->live_blocks++;
    if (b->bytes > m->largest_live_bytes) {
        m->largest_live_bytes = b->bytes;
        m->largest_live_tag = b->tag;
    }
}

static int by_waste(const void *left, const void *right)
{
    const struct moment_segment *a = left, *b = right;
    uint64_t x = a->reserved_bytes - a->live_bytes, y = b->reserved_bytes - b->live_bytes;
    if (x != y)
        return x > y ? -1 : 1;
    return a->address == b->address ? 0 : a->address < b->address ? -1 : 1;
}

struct moment moment_of(struct arena *a, const struct allocator *allocator, ptrdiff_t most_blocks)
{
    struct moment m = {.blocks = NEW(a, struct moment_block, most_blocks)};
    ptrdiff_t segments = 0;
    for (const struct segment *s = allocator->segments; s; s = s->next)
        segments++;
    m.segments = NEW(a, struct moment_segment, segments);
    for (const struct segment *s = allocator->segments; s; s = s->next) {
        struct moment_segment *seen = &m.segments[m.segment_count++];
        *seen = (struct moment_segment){.address = s->address,
                                        .stream = s->stream,
                                        .small = s->small,
                                        .expandable = s->expandable};
        for (const struct block *b = s->first; b; b = b->next) {
            weigh(seen, b);
            if (is_live(b))
                offer(&m, b, most_blocks);
        }
    }
    qsort(m.segments, (size_t)m.segment_count, sizeof *m.segments, by_waste);
    return m;
}

void moment_by_tag(const struct allocator *allocator, uint64_t *bytes, ptrdiff_t tags)
{
    ASSERT(tags > 0);
    for (const struct segment *s = allocator->segments; s; s = s->next)
        for (const struct block *b = s->first; b; b = b->next)
            if (is_live(b))
                bytes[b->tag < (uint64_t)tags ? (ptrdiff_t)b->tag : tags - 1] += b->bytes;
}
