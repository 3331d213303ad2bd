// The model's forward pass seen by what shards its parameters: where a unit's parameters must be
// there, and where its gradients pass. Where a strategy has no units nothing happens.
#ifndef FATHOM_MODELS_UNITS_H
#define FATHOM_MODELS_UNITS_H

#include "core/models/trainer.h"

int unit_number(const struct trainer *t, enum part part); // -1 where the part is no unit
int unit_of_tail(const struct trainer *t); // of the last norm and the head together; -1
// Of a layer's experts, with their router or without, where just that is a unit; -1.
int unit_of_experts(const struct trainer *t, int layer, bool with_router);
void unit_enter(struct trainer *t, int unit);
void unit_leave(struct trainer *t, int unit);
void units_see_rotary(struct trainer *t); // its module is called, which has no parameters

// The same tensor, marked as the unit's input or output.
struct var unit_mark(struct trainer *t, struct var x, int unit, bool input);

#endif
