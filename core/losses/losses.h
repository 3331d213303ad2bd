// What follows the last hidden state.
#ifndef FATHOM_LOSSES_LOSSES_H
#define FATHOM_LOSSES_LOSSES_H

#include "core/models/trainer.h"

// A micro-batch of the job to its loss; of a model that is only read, to its log-probabilities.
struct var forward_to_loss(struct trainer *t);

// The same to the logits of all tokens, as the model's caller gets them, without a loss.
struct var forward_to_logits(struct trainer *t);

// The same to those of each row's last token, as generate asks for them.
struct var forward_to_next_logits(struct trainer *t);

#endif
