// What ZeRO-3 waits for: collectives under way, of which the host is few ahead, and streams that
// still read what is let go.
#ifndef FATHOM_STRATEGIES_ZERO_PENDING_H
#define FATHOM_STRATEGIES_ZERO_PENDING_H

#include "core/strategies/trainer.h"

// One less may be under way when the next is handed over or waited for (deepspeed 0.19.8,
// runtime/zero: stage3.py, max_param_reduce_events; partitioned_param_coordinator.py,
// max_ongoing_fetch_events).
enum { MOST_PENDING = 3 };

struct pending {
    struct stream_moment ends[MOST_PENDING]; // of those not known to be over, oldest first
    int count;
};

void pending_limit(struct pending *p, struct machine *m); // before the next
void pending_add(struct pending *p, struct stream_moment end);

// One reference less of what `stream` read (Tensor.record_stream).
void zero3_drop(struct trainer *t, struct storage *s, uint16_t stream);

#endif
