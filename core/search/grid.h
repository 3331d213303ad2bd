// The lengths that a search tries, in ascending order: multiples of a number, those of the
// published capacity test of Trinity-RFT, or a list.
#ifndef FATHOM_SEARCH_GRID_H
#define FATHOM_SEARCH_GRID_H

#include "core/settings/settings.h"

struct grid {
    bool trinity;
    uint64_t first;          // of trinity's lengths; 0: the published TRINITY_STEP
    uint64_t step;           // otherwise: multiples of this
    uint64_t max_position;   // of the model; 0: unknown
    const uint64_t *lengths; // a list instead; NULL for none
    ptrdiff_t length_count;
    uint64_t above; // no length up to this, which images or a prompt take of a sequence
};

enum { GRID_DEFAULT_STEP = 1024, TRINITY_STEP = 4096 };

// "trinity" or a number; NULL leaves the grid as it is.
bool grid_parse(struct grid *g, const struct setting *item, struct error *e) MUST_USE;

// UINT64_MAX after the end of a list.
uint64_t grid_length(const struct grid *g, ptrdiff_t index);

#endif
