// A history that torch's allocator plays while it is made: what is reached at most, who is alive
// then, and where memory runs out.
#ifndef FATHOM_PREDICT_PLAYED_H
#define FATHOM_PREDICT_PLAYED_H

#include "core/allocator/allocator.h"
#include "core/autograd/machine.h"

// Who is alive, and what is reserved for them.
struct alive {
    uint64_t by_kind[MEMORY_KINDS];
    uint64_t reserved_bytes, allocated_bytes;
};

// Where most is allocated.
struct played_peak {
    uint64_t allocated_bytes;
    ptrdiff_t event;
    struct alive there;
};

struct played {
    struct allocator *allocator;
    struct machine *machine;
    uint64_t requested_bytes, reserved_bytes; // the most of each
    struct played_peak peak; // of this part of the history; at its end, of all of it. Where memory
                             // ran out, who was alive before the request that failed
    struct played_peak earlier; // the largest of the parts before
    struct alive now;
    struct alive before; // the last request that the cache had no room for
    bool rises;          // the peak is now: what is there is noted when it is left
    bool ran_out;
    uint64_t most_bytes; // reserved, of which anybody wants to know; 0: of any
    bool passed;         // more was reserved than that, and nothing is played any more
    ptrdiff_t oom_event;
    struct allocator_oom oom;
    enum memory_kind failed_kind;
    struct episode *episode;     // the step; too large for a stack
    uint32_t first_of_step;      // handle
    uint64_t blocks_before_step; // that were alive
    uint64_t flushes_before_step;
    bool frees_older; // than the step
};

// From the machine's next event on, until memory runs out: then the machine goes on without.
void played_start(struct played *p, struct arena *a, struct machine *m,
                  const struct allocator_options *options);
void played_end(struct played *p);

// What follows has a peak of its own.
void played_begin_part(struct played *p);

// Around a step: whether another that makes the same calls gets the same blocks
// (core/allocator/episode.h).
void played_begin_step(struct played *p);
bool played_repeats(const struct played *p);

#endif
