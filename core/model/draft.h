// A model on its way from settings: where its numbers come from, what was read, what only helps to
// derive others. Within this room.
#ifndef FATHOM_MODEL_DRAFT_H
#define FATHOM_MODEL_DRAFT_H

#include "core/model/model.h"

#define ANY_VISION (FEATURE_VISION_QWEN3 | FEATURE_VISION_SIGLIP | FEATURE_VISION_WINDOWS)

enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_VOCAB = 1 << 24,
    MAX_EXPERTS = 1 << 14,
    MAX_POSITION = 1 << 28,
};

enum scope { SCOPE_TEXT, SCOPE_VISION };

// Where the numbers come from: the user's list first, then the family's defaults.
struct origin {
    struct arena *arena;
    const struct settings *given;
    const char *root; // "config." or "" (catalogue)
    const struct family *family;
    struct settings defaults;
    struct str label; // "Qwen3-8B", "config.json": for messages about absent values
};

// Numbers that only help to derive others.
struct helpers {
    uint64_t shared_experts, dense_layers, sparse_step, max_window_layers, window_period,
        image_size;
    uint64_t deepstack, full_blocks;
    uint64_t unrotated_period;
    uint64_t rotary_dim;
    uint64_t dense_intermediate, full_period;
};

struct draft {
    struct model model;
    struct helpers helpers;
};

// The first of what the user and the family's defaults say; NULL where neither does.
const struct setting *config_find(const struct origin *o, enum scope scope, struct str key);
const struct setting *config_find_item(const struct origin *o, enum scope scope, const char *list,
                                       uint64_t index);
const struct setting *config_find_any(const struct origin *o, enum scope scope, const char *keys);

bool config_is_null(const struct setting *item);
bool config_switch(bool *on, const struct setting *item, struct error *e) MUST_USE;

// Numbers and switches as they are written; then what follows from several of them.
bool draft_read(struct draft *d, const struct origin *o, struct error *e) MUST_USE;
bool draft_derive(struct draft *d, const struct origin *o, struct error *e) MUST_USE;

// NULL: its weights are plain.
const struct packing *packing_of_config(struct arena *a, const struct settings *s,
                                        const struct model *m);

#endif
