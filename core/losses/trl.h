// TRL's losses.
#ifndef FATHOM_LOSSES_TRL_H
#define FATHOM_LOSSES_TRL_H

#include "core/models/trainer.h"

// The last hidden state with the tokens that have labels first.
struct var trl_packed(struct trainer *t, struct var hidden);

// One chunk of it, as graph_checkpoint calls it; `what` is the trainer.
void trl_chunk(struct graph *g, struct var *out, struct var in, void *what);

// From 1.16 on, head and loss in one.
struct var trl_fused_loss(struct trainer *t, struct var hidden);

// Of reward models: a score for each sequence.
struct var trl_score_loss(struct trainer *t, struct var hidden);

// Losses over log-probabilities of whole answers (dpo, kto, grpo, rloo): the model and all, or only
// those of a model that is read.
bool trl_compares(const struct job *p);
struct var trl_comparing_loss(struct trainer *t);
struct var trl_read(struct trainer *t);

#endif
