// Liger's fused linear cross entropy (liger_kernel 0.8.5, ops/fused_linear_cross_entropy.py): the
// head over chunks of tokens, each chunk's logits turned into their gradient in place, and the
// gradients of hidden states and head added up in the forward pass. The backward pass only hands
// them on.
#include "core/base/num.h"
#include "core/step/backward.h"
#include "core/step/ops.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

// As many tokens as make logits about as large as the hidden states, up to a power of two.
static uint64_t chunk_of(uint64_t tokens, uint64_t vocabulary, uint64_t hidden)
{
    uint64_t fewest = u64_divide_up(tokens, u64_divide_up(vocabulary, hidden)), chunk = 1;
    while (chunk < fewest)
        chunk *= 2;
    return chunk < tokens ? chunk : tokens;
}

// Under autocast nothing is reused: inputs are cast for each product, but for the weight as it is,
// which autocast caches where it is trained; its transpose is a view, which it does not cache.
static void chunks_under_autocast(struct graph *g, uint64_t tokens, uint64_t chunk, int head)
{
    const struct parameter *p = &g->parameters[head];
    uint64_t size = p->rows * p->columns;
    bool cached = false;
    for (uint64_t left = tokens; left;) {
        uint64_t now = left < chunk ? left : chunk;
        struct var in = graph_output(g, NULL, now * p->columns, 2);
        struct var transposed = graph_output(g, NULL, size, 2);
        struct var logits = graph_output(g, NULL, now * p->rows, 2);
        drop(g, transposed);
        drop(g, in);
        struct var weight = {NULL, NO_NODE, 2, size};
        if (!cached)
            weight = graph_output(g, NULL, size, 2);
        drop(g, graph_output(g, NULL, now * p->columns, 2)); // copied into the gradient
        if (p->frozen) {
            drop(g, weight);
        } else {
            if (!cached)
                graph_hold_cast(g, weight.storage);
            cached = true;
            drop(g, graph_output(g, NULL, now * p->columns, 2)); // the input once more
        }
        drop(g, logits);
        left -= now;
    }
}

struct var op_fused_loss(struct graph *g, struct var hidden, int head)
{
    const struct parameter *p = &g->parameters[head];
    uint64_t tokens = hidden.elements / p->columns;
    struct node *n = graph_add_for(g, OPERATION_FUSED_LOSS, hidden);
    struct var for_hidden = graph_output(g, NULL, hidden.elements, hidden.width);
    struct var for_head = {NULL, NO_NODE, p->width, 0};
    if (!p->frozen)
        for_head = graph_output(g, NULL, p->rows * p->columns, p->width);
    struct var losses = graph_output(g, NULL, tokens, 4), mask = graph_output(g, NULL, tokens, 1);
    machine_scratch(g->machine, 8); // how many tokens count
    uint64_t chunk = chunk_of(tokens, p->rows, p->columns);
    gemm_workspace(g);
    if (g->autocast)
        chunks_under_autocast(g, tokens, chunk, head);
    else
        drop(g, graph_output(g, NULL, chunk * p->rows, hidden.width)); // one buffer for all chunks
    struct var loss = graph_output(g, n, 1, 4);
    drop(g, mask);
    drop(g, losses);
    graph_keep(g, n, for_hidden.storage);
    if (for_head.storage)
        graph_keep(g, n, for_head.storage);
    if (n) {
        n->inputs[0] = hidden.node;
        n->inputs[1] = p->frozen ? NO_NODE : input_of_parameter(head);
    }
    drop(g, for_hidden);
    drop(g, for_head);
    g->machine->flops += (p->frozen ? 4 : 6) * tokens * p->rows * p->columns;
    return loss;
}
