// Low-rank adapters over a frozen model, and its weights in four bits.
#ifndef FATHOM_MODELS_ADAPTERS_H
#define FATHOM_MODELS_ADAPTERS_H

#include "core/models/trainer.h"

// Freezes the model that has been built and adds the job's adapters.
void adapters_build(struct trainer *t);

// The storage of a weight packed to four bits; its scales and tables stay beside it.
struct storage *packed_weight(struct trainer *t, uint64_t elements);

#endif
