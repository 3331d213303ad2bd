// The simplest configuration that fits, for every length, model and machine: configurations in
// order of trouble, each searched once for its largest context, from which every cell follows.
#ifndef FATHOM_SEARCH_GUIDE_H
#define FATHOM_SEARCH_GUIDE_H

#include "core/search/sweep.h"

// Whose words the guide speaks: plain torch's, those of a configuration of Trinity-RFT,
// DeepSpeed's, or those of transformers' Trainer and what stands on it, which begin with plain data
// parallel.
enum guide_dialect {
    GUIDE_TORCH,
    GUIDE_TRINITY,
    GUIDE_DEEPSPEED,
    GUIDE_TRAINER,
    GUIDE_DIALECT_COUNT
};

// What a configuration is made of.
struct guide_part {
    const char *name;                      // "Env"
    const char *text[GUIDE_DIALECT_COUNT]; // what it means
    const char *how[GUIDE_DIALECT_COUNT];  // how it is switched on
};
extern const struct guide_part guide_parts[];
extern const ptrdiff_t guide_part_count;

struct configuration {
    const char *name;     // "Env + SP=2"
    const char *settings; // that it changes
    bool offload;         // and with guide_offload
    bool published;       // in the published guide: --order published
    bool unusual;         // only where --order names it
    bool trainers;        // of the Trainer's dialect alone
};
extern const struct configuration configurations[];
extern const ptrdiff_t configuration_count;
extern const char *const guide_offload[GUIDE_DIALECT_COUNT]; // the settings of Offload

enum { GUIDE_MOST_LENGTHS = 512 };

struct guide {
    struct sweep sweep;              // its variants are the configurations in order
    struct capacity_request request; // of every cell, with the cell's settings
    enum guide_dialect dialect;
    enum target target; // whose rules decide what is offered; FOR_NOTHING: whatever is modelled
    uint64_t *lengths;
    ptrdiff_t length_count;
    bool lengths_are_given; // by the user: all are shown
};

// Reads the lists, the order, the grid and the margin, and searches.
bool guide_make(struct guide *g, struct arena *a, const struct settings *settings,
                const struct runner *runner, struct error *e) MUST_USE;

// The first configuration that trains this length; -1 for none.
ptrdiff_t guide_choice(const struct guide *g, ptrdiff_t machine, ptrdiff_t model, uint64_t length);

// How many of the lengths to show of a machine: all that were given, else up to the first that
// nothing trains, with it.
ptrdiff_t guide_rows(const struct guide *g, ptrdiff_t machine);

// Why no configuration of this model is possible on this machine; NULL where one is.
const struct error *guide_refusal(const struct guide *g, ptrdiff_t machine, ptrdiff_t model);

// The longest context after which a longer one is not modelled, and not what memory stops; NULL
// where a configuration trains more, or memory stops them all.
const struct capacity *guide_end(const struct guide *g, ptrdiff_t machine, ptrdiff_t model);

// Whether a configuration that some machine can be given has this part.
bool guide_part_is_used(const struct guide *g, const struct guide_part *part);

// "--expandable on --cp 2": what `emit` and `predict` take for a configuration.
struct str guide_options(struct arena *a, const struct guide *g, ptrdiff_t configuration);

// Whether any machine can be given this configuration.
bool guide_is_possible(const struct guide *g, ptrdiff_t configuration);

uint64_t guide_max_position(const struct guide *g, ptrdiff_t model); // 0: unknown

#endif
