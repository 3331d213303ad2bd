// One tensor cut into chunks that are used one after another. Each chunk's gradient is held until
// all are there, and then they are joined.
#include "core/ops/operation.h"

// Of all chunks of one tensor, filled from the last to the first.
struct chunk_gradients {
    struct storage **gradients;
    int count, next;
};

struct cut {
    struct chunk_gradients *chunks;
};

static void whole_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct chunk_gradients *c = NODE_DETAIL(n, struct cut)->chunks;
    out[0].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    for (int i = 0; i < c->count; i++)
        machine_drop(g->machine, c->gradients[i]);
}

static const struct operation whole_of_chunks = {KERNELS_CHUNKS, whole_backward};

struct var op_chunks(struct graph *g, struct var x, int count)
{
    struct node *n = graph_add(g, &whole_of_chunks);
    if (!n)
        return x;
    struct chunk_gradients *c = NEW(g->machine->arena, struct chunk_gradients, 1);
    c->gradients = NEW(g->machine->arena, struct storage *, count);
    c->count = c->next = count;
    NODE_DETAIL(n, struct cut)->chunks = c;
    return node_in_place(g, n, x);
}

static void chunk_backward(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    (void)out;
    struct chunk_gradients *c = NODE_DETAIL(n, struct cut)->chunks;
    c->gradients[--c->next] = storage_share(n->gradient);
}

static const struct operation chunk = {KERNELS_CHUNK, chunk_backward};

struct var op_chunk(struct graph *g, struct var whole, uint64_t elements)
{
    struct node *n = graph_add(g, &chunk);
    struct var out = var_share(whole);
    out.elements = elements;
    if (!n)
        return out;
    // The whole runs when the first chunk's gradient, the last to come, is there.
    struct node *all = &g->nodes[whole.node];
    all->has_gradient = true;
    NODE_DETAIL(n, struct cut)->chunks = NODE_DETAIL(all, struct cut)->chunks;
    return node_view(g, n, out);
}
