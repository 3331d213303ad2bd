// Where to try next. The hunt for the longest context of one configuration is a function of what is
// known: the prediction, and the trials so far in their order. It keeps no state, so that a hunt
// that was killed goes on from what was recorded.
//
// With a prediction the predicted length is tried first, then its neighbour: above it when it fits,
// below it when it does not. Where the prediction is right that is all. Where it is wrong the steps
// double away from it, and then halve. Without a prediction they double from the first length.
#ifndef FATHOM_PROBE_HUNT_H
#define FATHOM_PROBE_HUNT_H

#include <stdint.h>

#include "core/probe/outcome.h"
#include "core/search/grid.h"

struct trial {
    uint64_t context;
    enum outcome outcome;
};

struct trials {
    struct trial *items;
    ptrdiff_t count, capacity;
};

struct hunt {
    struct grid grid;
    uint64_t start;    // the shortest length to try
    uint64_t until;    // the longest; 0: as long as can be asked for
    bool linear;       // from `start`, length by length
    bool predicted;    // whether there is a prediction
    uint64_t expected; // the predicted length; 0: none fits
    int most_tries;    // of a length whose trials fail for passing reasons
};

enum hunt_state {
    HUNT_TRY,
    HUNT_DONE,
    HUNT_STOPPED, // for `reason`
};

struct hunt_step {
    enum hunt_state state;
    uint64_t context;  // to try
    int try;           // from 1; a timeout grows with it
    uint64_t longest;  // that fits; 0: none was seen to
    uint64_t fails_at; // the shortest that does not; 0: none was seen to
    enum outcome reason;
};

// Whether no length of the grid lies between start and end.
bool hunt_is_empty(const struct hunt *h);

struct hunt_step hunt_next(const struct hunt *h, const struct trial *trials, ptrdiff_t count);

// Trials of a store, to go on from. Failures for passing reasons at their end count on as tries of
// their length, unless those were all used up or the length is not asked for any more: then they
// are dropped. Returns how many decided.
uint64_t hunt_go_on(const struct hunt *h, struct trials *known);

// How many launches the published test takes for the same answer: from the first length to the
// first that fails.
uint64_t hunt_linear_launches(const struct hunt *h, const struct hunt_step *end);

#endif
