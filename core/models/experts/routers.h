// Which experts each token goes to, and how much each of them counts.
#ifndef FATHOM_MODELS_ROUTERS_H
#define FATHOM_MODELS_ROUTERS_H

#include "core/models/forward.h"

struct routing {
    uint64_t tokens, rows; // a row for each token and expert that it goes to
    struct var logits, weights, experts;
};

struct routing route(struct graph *g, struct var x, const struct layer_parameters *p,
                     const struct model *m);

#endif
