// Whose training step is meant: a recipe is what a framework sets where its user says nothing, in
// the version that is named ("trl@1.16"), or the newest that is known.
#ifndef FATHOM_JOB_RECIPE_H
#define FATHOM_JOB_RECIPE_H

#include "core/settings/settings.h"

enum recipe {
    RECIPE_HF,
    RECIPE_TRANSFORMERS,
    RECIPE_TRL,
    RECIPE_DEEPSPEED,
    RECIPE_TRINITY,
    RECIPE_VERL,
    RECIPE_MEGATRON,
    RECIPE_AXOLOTL,
    RECIPE_LLAMAFACTORY,
    RECIPES,
};

enum { RECIPE_MOST_VERSIONS = 10 };

struct recipe_def {
    const char *title;                          // as a sentence has it
    const char *versions[RECIPE_MOST_VERSIONS]; // the oldest first; a version reaches to the next
};

extern const struct recipe_def recipe_defs[RECIPES];
extern const char *const recipe_words[RECIPES]; // as --recipe has them

// "trl@1.16" to its recipe and the number of its version; without one the newest.
bool recipe_parse(enum recipe *recipe, int *version, const struct setting *item,
                  struct error *e) MUST_USE;

struct recipe_row {
    const char *recipe; // NULL: every one
    const char *setting, *value;
    bool several;           // only on several GPUs
    bool alone;             // only on one
    bool offloaded;         // only with offload
    bool adapted;           // only with adapters
    bool packed;            // only over packed weights
    bool fused;             // only with Liger's loss
    bool stretched;         // only with a tiled MLP or checkpoints in host memory
    bool recomputed;        // only with checkpointing
    bool cut;               // only with tensor parallel
    const char *tasks;      // only of one of these; NULL: of any
    const char *strategies; // only with one of these; NULL: any
    const char *versions;   // only in one of these that is named; NULL: any
    const char *evidence;
};

extern const struct recipe_row recipe_rows[];
extern const ptrdiff_t recipe_row_count;

// Whether the row's value is the one in effect.
bool recipe_row_holds(const struct recipe_row *row, const struct settings *effective);

// The given settings, after them what the recipe sets among those not given, and then the defaults
// of the table: all that a job is made of. On `several` GPUs or on one.
bool recipe_fill(struct settings *effective, const struct settings *given, bool several,
                 struct error *e) MUST_USE;

// What `source` would set of its own among what training is made of (strategy, precision,
// checkpointing, optimizer, segments), where `s` says nothing.
bool recipe_choices(struct settings *more, const struct settings *s, struct str source,
                    bool several, struct error *e) MUST_USE;

#endif
