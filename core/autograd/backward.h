// Inside the room: what the tape's own nodes, which are run again, use of the engine.
#ifndef FATHOM_AUTOGRAD_BACKWARD_H
#define FATHOM_AUTOGRAD_BACKWARD_H

#include "core/autograd/graph.h"

extern const struct operation operation_checkpoint, operation_tiled;
void checkpoint_run(struct graph *g, int32_t index);
void tiled_run(struct graph *g, int32_t index);

struct node *graph_add_node(struct graph *g, const struct operation *operation);
void graph_load_kernels(struct graph *g, const struct operation *operation, bool backward);

// Backwards from one node down to another, those that have a gradient.
void graph_run_nodes(struct graph *g, int32_t from, int32_t down_to);

// Gives a gradient to a node, a parameter or nobody, adding where there is one.
void graph_hand_on(struct graph *g, int32_t input, const struct outcome *o);

void graph_let_go(struct graph *g, struct node *n); // of what it kept
void graph_release(struct graph *g, struct node *n, bool had_kept);
void frame_drop_arguments(struct graph *g, struct frame *f);

static inline void graph_note_recomputation(struct graph *g, bool recomputes)
{
    if (g->machine->time)
        g->machine->time->recomputes = recomputes;
}

#endif
