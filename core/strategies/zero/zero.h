// What DeepSpeed's three stages share.
#ifndef FATHOM_STRATEGIES_ZERO_H
#define FATHOM_STRATEGIES_ZERO_H

#include "core/models/trainer.h"

// The optimizer's group that a parameter is in. transformers' Trainer has two (5.17, trainer.py,
// create_optimizer): norms and biases, which do not decay, are the second; adapters are the first.
enum { ZERO_GROUPS = 2 };
int zero_group_of(const struct trainer *t, int parameter);

// How often a backward pass gives a gradient to a parameter.
int zero_uses_of(const struct trainer *t, int parameter);

// zero_host.c: what a rank keeps in host memory.
uint64_t zero2_host_bytes(const struct job *p);
uint64_t zero3_host_bytes(const struct job *p);

#endif
