// One GPU that has everything: a parameter is what the optimizer updates.
#include "core/strategies/strategies.h"

void whole_build(struct trainer *t)
{
    struct graph *g = &t->graph;
    t->trained = NEW(t->machine->arena, struct trained, g->parameter_count);
    for (int i = 0; i < g->parameter_count; i++) {
        const struct parameter *p = &g->parameters[i];
        if (p->frozen || (t->head_is_idle && i == t->head))
            continue;
        t->trained[t->trained_count++] =
            (struct trained){.elements = p->rows * p->columns, .width = p->width, .parameter = i};
    }
}

// Moves gradients to where the optimizer looks for them.
void whole_update(struct trainer *t)
{
    for (int i = 0; i < t->trained_count; i++) {
        struct parameter *p = &t->graph.parameters[t->trained[i].parameter];
        t->trained[i].gradient = p->gradient;
        p->gradient = NULL;
    }
    optimizer_update(t);
}

const struct strategy_kind single_strategy = {
    .build = whole_build,
    .clip = optimizer_clip,
    .update = whole_update,
    .zero = optimizer_zero,
};
