// Reductions of gradients that ZeRO-3 has under way, of which the host is few ahead.
#ifndef FATHOM_STRATEGIES_ZERO_REDUCTIONS_H
#define FATHOM_STRATEGIES_ZERO_REDUCTIONS_H

#include "core/autograd/machine.h"

// One less may be under way when the next is handed over (deepspeed 0.19.8, runtime/zero/stage3.py,
// max_param_reduce_events).
enum { MOST_REDUCTIONS = 3 };

struct reductions {
    struct stream_moment ends[MOST_REDUCTIONS]; // of those not known to be over, oldest first
    int count;
};

void reductions_limit(struct reductions *r, struct machine *m); // before the next
void reductions_add(struct reductions *r, const struct machine *m, uint16_t stream);

#endif
