// LLaMA-Factory's losses of its own.
#ifndef FATHOM_LOSSES_FACTORY_H
#define FATHOM_LOSSES_FACTORY_H

#include "core/models/trainer.h"

// Of pairs of answers (stage dpo): the model and all.
bool factory_compares(const struct job *p);
struct var factory_comparing_loss(struct trainer *t);

#endif
