// The vision tower of a model, and what becomes of images on their way into its text.
#ifndef FATHOM_MODELS_VISION_H
#define FATHOM_MODELS_VISION_H

#include "core/models/calls.h"
#include "core/models/trainer.h"

// Where the model has none, nothing is done.
void tower_build(struct trainer *t);  // its parameters come before the text's
void tower_settle(struct trainer *t); // once all parameters are known
// Where its parameters, or a block's, are among all.
struct span {
    int first, end;
};
struct span tower_span(const struct trainer *t);
struct span tower_block(const struct trainer *t, int block);

void tower_adapters(struct trainer *t);
void tower_buffers(struct trainer *t); // rotary frequencies
void take_pictures(struct trainer *t); // pixels and what goes with them, the same in every step
void load_pictures(struct trainer *t, uint64_t batches); // or anew with each step's batches

bool has_pictures(const struct trainer *t);
bool has_grids(const struct trainer *t); // positions in time, height and width, as Qwen has them

// The embedded tokens with the images' in their places.
struct var with_pictures(struct trainer *t, struct var embedded);

// What was made of images beside that goes when the model's forward is over.
void drop_pictures(struct trainer *t);
void hold_pictures(struct trainer *t); // from the beginning of a forward pass to its end
void let_pictures_go(struct trainer *t);

// Behind one of the first layers of the text: the features of an earlier block added.
struct var with_deeper_features(struct trainer *t, struct var hidden, int layer);

// Positions in time, height and width: they are not handed to layers, but their cosine and sine.
struct var picture_positions(struct trainer *t);
void rotary_of_grids(struct trainer *t, struct layer_arguments *to);

#endif
