// From the last hidden state to a loss.
#ifndef FATHOM_MODELS_LOSSES_H
#define FATHOM_MODELS_LOSSES_H

#include "core/models/trainer.h"

// The job's loss, as part of the model's forward pass. `hidden` stays the caller's.
struct var loss_of(struct trainer *t, struct var hidden);

// What follows the model under a policy gradient; for a model that is only read its
// log-probabilities. Takes hidden over.
struct var loss_of_policy(struct trainer *t, struct var hidden);

#endif
