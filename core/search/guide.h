// The simplest configuration that fits, for every length, model and machine: configurations in
// order of trouble, each searched once for its largest context, from which every cell follows.
#ifndef FATHOM_SEARCH_GUIDE_H
#define FATHOM_SEARCH_GUIDE_H

#include "core/search/sweep.h"

// What a configuration is made of.
struct guide_part {
    const char *name;    // "Env"
    const char *text;    // what it means
    const char *hf;      // how it is switched on: under plain torch,
    const char *trinity; // and in a configuration of Trinity-RFT
};
extern const struct guide_part guide_parts[];
extern const ptrdiff_t guide_part_count;

struct configuration {
    const char *name;     // "Env + SP=2"
    const char *settings; // that it changes
    const char *trinity;  // and under that recipe; NULL for none
    bool unusual;         // only where --order names it
};
extern const struct configuration configurations[];
extern const ptrdiff_t configuration_count;

enum { GUIDE_MOST_LENGTHS = 512 };

struct guide {
    struct sweep sweep; // its variants are the configurations in order
    bool trinity;
    uint64_t *lengths;
    ptrdiff_t length_count;
};

// Reads the lists, the order, the grid and the margin, and searches.
bool guide_make(struct guide *g, struct arena *a, const struct settings *settings,
                const struct runner *runner, struct error *e) MUST_USE;

// The first configuration that trains this length; -1 for none.
ptrdiff_t guide_choice(const struct guide *g, ptrdiff_t machine, ptrdiff_t model, uint64_t length);

// How many of the lengths to show of a machine: up to the first that nothing trains, with it.
ptrdiff_t guide_rows(const struct guide *g, ptrdiff_t machine);

uint64_t guide_max_position(const struct guide *g, ptrdiff_t model); // 0: unknown

#endif
