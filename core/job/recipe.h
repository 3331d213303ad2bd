// Whose training step is meant: a recipe is what a framework sets where its user says nothing.
#ifndef FATHOM_JOB_RECIPE_H
#define FATHOM_JOB_RECIPE_H

#include "core/settings/settings.h"

// In the order of the setting's values.
enum recipe { RECIPE_HF, RECIPE_TRL, RECIPE_DEEPSPEED, RECIPE_TRINITY };

struct recipe_row {
    const char *recipe, *setting, *value;
    bool several;           // only on several GPUs
    bool offloaded;         // only with offload
    const char *strategies; // only with one of these; NULL: any
    const char *evidence;
};

extern const struct recipe_row recipe_rows[];
extern const ptrdiff_t recipe_row_count;

// Whether the row's value is the one in effect.
bool recipe_row_holds(const struct recipe_row *row, const struct settings *effective);

// The given settings, and after them what the recipe sets among those not given, checked. On
// `several` GPUs or on one.
bool recipe_fill(struct settings *effective, const struct settings *given, bool several,
                 struct error *e) MUST_USE;

#endif
