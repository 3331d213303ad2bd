// The hunt on indexes of the grid. `low` is the last index known to fit and `high` the first known
// to fail; both start outside. A trial between two lengths (of another grid) says that the shorter
// fits, or that the longer fails.
#include "core/probe/hunt.h"

struct bounds {
    ptrdiff_t low, high; // index of the first length less one; beyond the last length
    ptrdiff_t first, last;
};

// The index of the first length that is not below `context`.
static ptrdiff_t index_of(const struct grid *g, uint64_t context)
{
    ptrdiff_t low = -1, high = 1;
    while (grid_length(g, high) < context)
        high *= 2;
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (grid_length(g, middle) < context)
            low = middle;
        else
            high = middle;
    }
    return high;
}

// The index of the last length that is not above `context`; -1 where all are.
static ptrdiff_t index_below(const struct grid *g, uint64_t context)
{
    return index_of(g, context + 1) - 1;
}

static enum verdict_on_length verdict_on(uint64_t context, const struct trial *trials,
                                         ptrdiff_t count)
{
    enum verdict_on_length found = LENGTH_UNDECIDED;
    for (ptrdiff_t i = 0; i < count; i++) {
        enum verdict_on_length verdict = outcome_rows[trials[i].outcome].verdict;
        if (trials[i].context == context && verdict != LENGTH_UNDECIDED)
            found = verdict;
    }
    return found;
}

// In the linear order a length counts only if it was tried itself, and all before it fit.
static void walk(struct bounds *b, const struct hunt *h, const struct trial *trials,
                 ptrdiff_t count)
{
    b->low = b->first - 1;
    while (b->low < b->last) {
        enum verdict_on_length next = verdict_on(grid_length(&h->grid, b->low + 1), trials, count);
        if (next == LENGTH_FAILS)
            b->high = b->low + 1;
        if (next != LENGTH_FITS)
            return;
        b->low++;
    }
}

static struct bounds bounds_of(const struct hunt *h, const struct trial *trials, ptrdiff_t count)
{
    uint64_t longest = h->until ? h->until : setting_def_find(STR("context"))->max;
    struct bounds b = {.first = index_of(&h->grid, h->start)};
    b.last = index_below(&h->grid, longest);
    b.high = b.last + 1;
    if (h->linear) {
        walk(&b, h, trials, count);
        return b;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t index = index_of(&h->grid, trials[i].context);
        if (outcome_rows[trials[i].outcome].verdict == LENGTH_FAILS && index < b.high)
            b.high = index;
    }
    b.low = b.first - 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t index = index_below(&h->grid, trials[i].context);
        bool fits = outcome_rows[trials[i].outcome].verdict == LENGTH_FITS;
        if (fits && index > b.low && index < b.high)
            b.low = index;
    }
    return b;
}

static ptrdiff_t clamp(ptrdiff_t index, const struct bounds *b)
{
    return index <= b->low ? b->low + 1 : index >= b->high ? b->high - 1 : index;
}

// Away from the prediction in steps that double, until both sides are known; then the middle.
static ptrdiff_t next_index(const struct hunt *h, const struct bounds *b)
{
    bool fit_seen = b->low >= b->first, failure_seen = b->high <= b->last;
    if (h->linear)
        return b->low + 1;
    ptrdiff_t origin = b->first;
    if (h->predicted && h->expected >= h->start)
        origin = index_of(&h->grid, h->expected);
    if (origin > b->last)
        origin = b->last;
    if (!fit_seen && !failure_seen)
        return clamp(origin, b);
    if (fit_seen && !failure_seen) {
        ptrdiff_t beyond = b->low - origin;
        return clamp(b->low + (beyond > 1 ? beyond : 1), b);
    }
    if (failure_seen && !fit_seen) {
        ptrdiff_t below = origin - b->high;
        return clamp(b->high - (below > 1 ? below : 1), b);
    }
    return b->low + (b->high - b->low) / 2;
}

// Trials at the end of the list that decided nothing, all of one length.
static int passing_failures(const struct trial *trials, ptrdiff_t count)
{
    int tries = 0;
    for (ptrdiff_t i = count - 1; i >= 0; i--, tries++)
        if (!outcome_rows[trials[i].outcome].transient ||
            trials[i].context != trials[count - 1].context)
            break;
    return tries;
}

bool hunt_is_empty(const struct hunt *h)
{
    struct bounds b = bounds_of(h, NULL, 0);
    return b.first > b.last;
}

struct hunt_step hunt_next(const struct hunt *h, const struct trial *trials, ptrdiff_t count)
{
    struct bounds b = bounds_of(h, trials, count);
    struct hunt_step s = {.state = HUNT_TRY, .try = 1};
    s.longest = b.low >= b.first ? grid_length(&h->grid, b.low) : 0;
    s.fails_at = b.high <= b.last ? grid_length(&h->grid, b.high) : 0;
    const struct trial *newest = count ? &trials[count - 1] : NULL;
    if (newest && outcome_rows[newest->outcome].verdict == LENGTH_UNDECIDED) {
        int tries = passing_failures(trials, count);
        s.context = newest->context;
        s.try = tries + 1;
        s.reason = newest->outcome;
        if (tries == 0 || tries >= h->most_tries)
            s.state = HUNT_STOPPED;
        return s;
    }
    if (b.high - b.low <= 1) {
        s.state = HUNT_DONE;
        return s;
    }
    s.context = grid_length(&h->grid, next_index(h, &b));
    return s;
}

uint64_t hunt_linear_launches(const struct hunt *h, const struct hunt_step *end)
{
    ptrdiff_t first = index_of(&h->grid, h->start);
    ptrdiff_t fitting = end->longest ? index_of(&h->grid, end->longest) - first + 1 : 0;
    return (uint64_t)fitting + (end->fails_at > 0);
}

uint64_t hunt_go_on(const struct hunt *h, struct trials *known)
{
    ptrdiff_t decided = known->count;
    while (decided > 0 && outcome_rows[known->items[decided - 1].outcome].transient)
        decided--;
    ptrdiff_t tries = known->count - decided;
    uint64_t context = tries ? known->items[decided].context : 0;
    bool asked_for = context >= h->start && (!h->until || context <= h->until);
    if (tries >= h->most_tries || !asked_for)
        known->count = decided;
    return (uint64_t)decided;
}
