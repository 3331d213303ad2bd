// See episode.h.
#include "core/allocator/episode.h"

#include <string.h>

#include "core/allocator/internal.h"

_Static_assert((int)EPISODE_POOLS == (int)CLASS_COUNT, "a table for each class of sizes");

void episode_begin(struct episode *e, struct allocator *a)
{
    memset(e, 0, sizeof *e);
    for (const struct segment *s = a->segments; s; s = s->next)
        for (const struct block *b = s->first; b; b = b->next)
            if (b->state == BLOCK_FREE && (b->previous || b->next))
                episode_mark(e->classes[b->pool->size].pieces, b->bucket);
    for (int size = 0; size < CLASS_COUNT; size++)
        for (struct pool *pool = a->pools->first[size]; pool; pool = pool->next)
            pool->seen = &e->classes[size];
    a->episode = e;
}

// A request so far could have got this block in place of its own: none that is larger, and of the
// others in a bucket any between the least of them and the last block.
void episode_grew(struct episode *e, const struct block *b)
{
    struct episode_class *c = &e->classes[b->pool->size];
    e->differs |= b->segment->expandable;
    unsigned bucket = block_set_bucket(b->bytes);
    for (unsigned i = 0; i <= bucket; i++) {
        const struct served *s = &c->served[i];
        if (!s->most_bytes || s->least_bytes > b->bytes ||
            !episode_is_before(b->bytes, b->address, s))
            continue;
        e->differs |= s->most_bytes != b->bytes;
        episode_mark(c->ties, bucket);
    }
}

// All are free again, whichever had been taken.
void episode_returned_all(struct episode *e, struct episode_class *c, unsigned bucket)
{
    unsigned word = bucket / 64;
    uint64_t bit = UINT64_C(1) << bucket % 64;
    e->differs |= (c->ties[word] & (c->cut[word] | c->pieces[word]) & bit) != 0;
    c->ties[word] &= ~bit;
}

bool episode_repeats(const struct episode *e)
{
    bool repeats = !e->differs;
    for (int i = 0; i < EPISODE_POOLS; i++)
        for (int word = 0; word < SET_WORDS; word++) {
            const struct episode_class *c = &e->classes[i];
            repeats &= !(c->ties[word] & (c->cut[word] | c->pieces[word]));
        }
    return repeats;
}
