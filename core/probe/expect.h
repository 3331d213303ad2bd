// What is predicted of a cell: the length to look at first, and what a trial should reserve. What a
// card leaves torch is known of any cell.
#ifndef FATHOM_PROBE_EXPECT_H
#define FATHOM_PROBE_EXPECT_H

#include "core/search/capacity.h"
#include "core/settings/settings.h"

struct expectation {
    bool known;
    struct str why_not;
    uint64_t longest; // 0: none fits
};

// `job` holds the settings of a prediction, the machine among them.
void expect_longest(struct expectation *x, struct arena *a, const struct settings *job,
                    const struct grid *grid);

// The lengths that leave room for text; all of them where that cannot be told.
struct grid expect_grid(struct arena scratch, const struct settings *job, const struct grid *grid);

struct expected_trial {
    bool known, fits;
    uint64_t reserved_bytes; // at the peak
    double step_seconds;     // 0: not known
};

void expect_trial(struct expected_trial *x, struct arena scratch, const struct settings *job,
                  uint64_t context);

struct card_limit {
    uint64_t limit_bytes;     // what torch may reserve
    uint64_t workspace_bytes; // of cuBLAS on the card that is meant; 0: the card is not known
};

// The memory limit that is given, else what the card leaves under this recipe: neither depends on
// whether the step is modelled. Fails where nothing can be said.
bool expect_limit(struct card_limit *x, struct arena scratch, const struct settings *job,
                  struct error *e) MUST_USE;

#endif
