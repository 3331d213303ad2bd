// What follows the last hidden state.
#ifndef FATHOM_LOSSES_LOSSES_H
#define FATHOM_LOSSES_LOSSES_H

#include "core/models/trainer.h"

// A micro-batch of the job to its loss; of a model that is only read, to its log-probabilities.
struct var forward_to_loss(struct trainer *t);

#endif
