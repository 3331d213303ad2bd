// Inside the room: what a vision tower is while it runs, and what its kinds share.
#ifndef FATHOM_MODELS_TOWER_H
#define FATHOM_MODELS_TOWER_H

#include "core/models/vision/vision.h"

struct block_call {
    struct trainer *trainer;
    int block;
};

// What attention sees at once: patches of an image, or of a window.
struct pieces {
    uint64_t count, *patches;
};

// What towers differ in.
struct tower_kind {
    void (*run)(struct trainer *t); // to `merged`, and what else it has
    void (*block)(struct graph *g, struct var *out, struct var in, void *what);
};
extern const struct tower_kind deep_tower, windowed_tower, siglip_tower;

struct tower {
    const struct tower_kind *kind;
    int first, end; // its parameters
    struct vision_parameters stem, *blocks, *mergers;
    struct block_call *calls;
    uint64_t images, patches; // of a micro-batch, all in one row
    struct pieces whole, windows;
    struct var pixels, cast; // as they came, and as all of the forward pass holds them
    struct storage **loaded; // pixels and what goes with them, where they come with batches
    struct storage *deltas;  // of rotary positions, kept from step to step
    struct layer_arguments arguments; // of the micro-batch
    int feature_count;
    struct var last, merged, features[MOST_DEEPSTACK], tokens, mask, no_video, positions;
};

static inline const struct vision *vision_of(const struct trainer *t)
{
    return &t->job->model.vision;
}

bool has_windows(const struct trainer *t); // attention to squares of an image, as Qwen2.5-VL's
bool has_leaf(const struct trainer *t);    // its embedded patches require a gradient
struct var embed_pixels(struct trainer *t);
struct var tower_norm(struct graph *g, struct var x, int weight, int bias);
struct var tower_mlp(struct graph *g, struct var x, const struct vision_parameters *p);
void tower_blocks(struct trainer *t, struct scope *f, struct var *hidden);

#endif
