// The frameworks that files are written for, each a row: whose training step it runs, and what its
// launcher is. What a target cannot run is rows of rules_targets.c.
#ifndef FATHOM_JOB_TARGET_H
#define FATHOM_JOB_TARGET_H

#include <stdbool.h>
#include <stddef.h>

enum target {
    FOR_NOTHING,
    FOR_ACCELERATE,
    FOR_DEEPSPEED,
    FOR_TRL,
    FOR_TRINITY,
    FOR_VERL,
    FOR_SLIME,
    FOR_TRANSFORMERS,
    FOR_AXOLOTL,
    FOR_LLAMAFACTORY,
    TARGETS,
};

#define IN(target) (1u << FOR_##target)

// Launched by Accelerate; started on Ray.
#define IN_YAML_FAMILY (IN(AXOLOTL) | IN(LLAMAFACTORY)) // over transformers' Trainer
#define IN_ACCELERATE_FAMILY \
    (IN(ACCELERATE) | IN(DEEPSPEED) | IN(TRL) | IN(TRANSFORMERS) | IN_YAML_FAMILY)
#define IN_RAY_FAMILY   (IN(TRINITY) | IN(VERL) | IN(SLIME))
#define IN_EVERY_TARGET (IN_ACCELERATE_FAMILY | IN_RAY_FAMILY)

struct target_def {
    const char *name;   // as --for has it
    const char *title;  // as a sentence has it
    const char *recipe; // whose training step it runs
};

extern const struct target_def target_defs[TARGETS];

// The first target that runs this recipe's step, which is the one its users have; FOR_NOTHING where
// none is written yet.
enum target target_of_recipe(const char *recipe);

#endif
