// See zero_reductions.h.
#include "core/strategies/zero_reductions.h"

static void forget_oldest(struct reductions *r)
{
    r->count--;
    for (int i = 0; i < r->count; i++)
        r->ends[i] = r->ends[i + 1];
}

void reductions_limit(struct reductions *r, struct machine *m)
{
    while (r->count && machine_is_done(m, r->ends[0]))
        forget_oldest(r);
    if (r->count < MOST_REDUCTIONS)
        return;
    machine_await_moment(m, r->ends[0]);
    forget_oldest(r);
}

void reductions_add(struct reductions *r, const struct machine *m, uint16_t stream)
{
    r->ends[r->count++] = machine_moment(m, stream);
}
