// What is predicted of a cell: the length to look at first, and what a trial should reserve.
#ifndef FATHOM_PROBE_EXPECT_H
#define FATHOM_PROBE_EXPECT_H

#include "core/base/settings.h"
#include "core/search/capacity.h"

struct expectation {
    bool known;
    struct str why_not;
    uint64_t longest; // 0: none fits
};

// `plan` holds the settings of a prediction, the machine among them.
void expect_longest(struct expectation *x, struct arena *a, const struct settings *plan,
                    const struct grid *grid);

struct expected_trial {
    bool known, fits;
    uint64_t reserved_bytes; // at the peak
};

void expect_trial(struct expected_trial *x, struct arena scratch, const struct settings *plan,
                  uint64_t context);

struct expected_limits {
    uint64_t limit_bytes;     // what torch may reserve
    uint64_t workspace_bytes; // of cuBLAS on the card that is meant
};

// Also where the configuration is not modelled; zeros where they are not known.
struct expected_limits expect_limits(struct arena scratch, const struct settings *plan,
                                     uint64_t context);

#endif
