// The model's parameters and buffers on the card.
#ifndef FATHOM_MODELS_PARAMETERS_H
#define FATHOM_MODELS_PARAMETERS_H

#include "core/models/trainer.h"

// One parameter for each row of the tensor table that the model has.
void parameters_build(struct trainer *t);
void buffers_build(struct trainer *t);

// The number of a layer's parameter, -1 where the layer has none.
int parameter_of(const struct layer_parameters *l, const struct tensor *row);

int parameter_add(struct trainer *t, const struct tensor *row);

#endif
