// Many searches at once: models x machines x variants, where a variant is settings of its own (a
// size of sequence parallel, or a configuration of the guide). Lists are written with commas:
// "--gpu 1,2,4,6xA100-80G --sp 1,2,4 --model Qwen3-0.6B,Qwen3-1.7B".
#ifndef FATHOM_SEARCH_SWEEP_H
#define FATHOM_SEARCH_SWEEP_H

#include "core/base/runner.h"
#include "core/search/capacity.h"

struct variant {
    struct str name;     // "SP=2"
    struct str settings; // "sp=2 expandable=on"
};

struct machine_spec {
    struct setting gpu;
    struct hardware hardware;
};

struct cell {
    ptrdiff_t machine, variant, model; // indexes of the sweep's lists
    struct settings settings;
    bool possible;
    struct error refusal; // where it is not possible
    struct capacity capacity;
};

enum { SWEEP_MOST_CELLS = 4096 };

struct sweep {
    struct setting *models;
    ptrdiff_t *model_numbers; // in the list as given, from 0
    struct machine_spec *machines;
    struct variant *variants;
    const char *varies; // the setting whose sizes the variants are, where they are that
    ptrdiff_t model_count, machine_count, variant_count;
    struct cell *cells; // by machine, then variant, then model
    ptrdiff_t cell_count;
};

// The items of "a,b,c", empty ones refused; of machines, a figure of a custom card
// ("bf16=181TFLOPS") stays with its card.
bool list_split(struct setting **items, ptrdiff_t *count, struct arena *a,
                const struct setting *list, struct error *e) MUST_USE;

// Drops what was there before; returns how many are left.
ptrdiff_t list_drop_repeated(struct setting *items, ptrdiff_t count);

// The settings of the model with this number in the list: those of all, and what its own file says.
bool list_model_settings(struct settings *out, const struct settings *all, ptrdiff_t number,
                         struct error *e) MUST_USE;

// Reads the lists of models and machines, and checks each by itself. Fails where one is unknown.
// The configuration of a model that is not in the catalogue is flattened under "configs.N.", N its
// number in the list from 0, or for a single model under "config." as elsewhere.
bool sweep_read(struct sweep *s, struct arena *a, const struct settings *settings,
                struct error *e) MUST_USE;

// Makes the cells and searches each. Cells that cannot be planned are refused, not errors; it fails
// where all are, with the first refusal.
bool sweep_run(struct sweep *s, struct arena *a, const struct runner *runner,
               const struct capacity_request *request, struct error *e) MUST_USE;

bool sweep_row_is_possible(const struct sweep *s, ptrdiff_t machine, ptrdiff_t variant);
struct cell *sweep_cell(const struct sweep *s, ptrdiff_t machine, ptrdiff_t variant,
                        ptrdiff_t model);

#endif
