// The loss that keeps experts in use, of all routers of a forward pass.
#ifndef FATHOM_LOSSES_ROUTER_H
#define FATHOM_LOSSES_ROUTER_H

#include "core/models/trainer.h"

// Of the logits that the routers of this forward pass handed out, which go; nothing where the
// trainer did not ask for them.
struct var router_loss(struct trainer *t);

// The sum of a loss and the routers', if there is one.
struct var with_router_loss(struct trainer *t, struct var loss, struct var routers);

#endif
