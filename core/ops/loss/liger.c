// Liger's fused linear cross entropy (liger_kernel 0.8.5, ops/fused_linear_cross_entropy.py): the
// head over chunks of tokens, each chunk's logits turned into their gradient in place, and the
// gradients of hidden states and head added up in the forward pass. The backward pass only hands
// them on.
#include "core/base/num.h"
#include "core/ops/operation.h"

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

// In bf16; what is so already is taken as it is.
static struct var cast(struct graph *g, uint64_t elements, uint32_t width)
{
    return width == 2 ? (struct var){NULL, NO_NODE, 2, elements}
                      : graph_output(g, NULL, elements, 2);
}

// One chunk's logits under autocast, where nothing is reused: inputs are cast for each product. The
// weight's transpose, a view, autocast does not cache.
static struct var chunk_logits(struct graph *g, struct var hidden, uint64_t tokens, int head)
{
    const struct parameter *p = &g->parameters[head];
    struct var in = cast(g, tokens * p->columns, hidden.width);
    struct var transposed = cast(g, p->rows * p->columns, p->width);
    struct var logits = graph_output(g, NULL, tokens * p->rows, 2);
    drop(g, transposed);
    drop(g, in);
    return logits;
}

// And their gradients. The weight as it is autocast caches where it is trained.
static void chunk_under_autocast(struct graph *g, struct var hidden, uint64_t tokens, int head,
                                 bool cached)
{
    const struct parameter *p = &g->parameters[head];
    uint64_t size = p->rows * p->columns, inputs = tokens * p->columns;
    struct var logits = chunk_logits(g, hidden, tokens, head);
    struct var weight = cast(g, size, cached ? 2 : p->width);
    drop(g, graph_output(g, NULL, inputs, 2)); // copied into the gradient
    if (p->frozen)
        drop(g, weight);
    else if (weight.storage)
        graph_hold_cast(g, weight.storage);
    if (!p->frozen)
        drop(g, cast(g, inputs, hidden.width)); // the input once more
    drop(g, logits);
}

// Where nothing asks for gradients, the first product is all.
static void chunks_under_autocast(struct graph *g, struct var hidden, uint64_t chunk, int head,
                                  bool trains)
{
    const struct parameter *p = &g->parameters[head];
    uint64_t tokens = hidden.elements / p->columns;
    for (uint64_t done = 0; done < tokens; done += chunk) {
        uint64_t part = tokens - done < chunk ? tokens - done : chunk;
        if (trains)
            chunk_under_autocast(g, hidden, part, head, done && !p->frozen);
        else
            drop(g, chunk_logits(g, hidden, part, head));
    }
}

// What it kept are the gradients.
static void fused_loss_backward(struct graph *g, struct node *n, struct outcome *out)
{
    machine_scratch(g->machine, 4); // the number one, to compare with
    machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
    for (int i = 0; i < n->saved_count; i++)
        out[i].gradient = storage_share(n->saved[i]);
}

static const struct operation fused_loss = {KERNELS_FUSED_LOSS, fused_loss_backward};

struct var op_fused_loss(struct graph *g, struct var hidden, int head)
{
    const struct parameter *p = &g->parameters[head];
    uint64_t tokens = hidden.elements / p->columns;
    struct node *n = graph_add_for(g, &fused_loss, hidden);
    struct machine *m = g->machine;
    uint64_t head_bytes = p->frozen || !n ? 0 : p->rows * p->columns * p->width;
    struct storage *for_hidden = machine_take(m, hidden.elements * hidden.width, MEMORY_WORKING);
    struct storage *for_head = machine_take(m, head_bytes, MEMORY_GRADIENTS);
    struct var losses = graph_output(g, NULL, tokens, 4), mask = graph_output(g, NULL, tokens, 1);
    struct storage *count = machine_take(m, 8, MEMORY_WORKSPACE); // of the tokens that count
    machine_scratch(m, 8 * tokens);                               // the mask, as wide
    machine_drop(m, count);
    machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    uint64_t chunk = chunk_of(tokens, p->rows, p->columns);
    gemm_workspace(g);
    if (g->autocast && (hidden.width != 2 || p->width != 2))
        chunks_under_autocast(g, hidden, chunk, head, n != NULL);
    else
        drop(g, graph_output(g, NULL, chunk * p->rows, hidden.width)); // one buffer for all chunks
    struct var loss = graph_output(g, n, 1, 4);
    drop(g, mask);
    drop(g, losses);
    graph_keep(g, n, for_hidden);
    if (for_head)
        graph_keep(g, n, for_head);
    node_input(n, 0, hidden);
    node_parameter(g, n, 1, head);
    machine_drop(m, for_hidden);
    machine_drop(m, for_head);
    int products = !n ? 1 : p->frozen ? 2 : 3;
    for (int i = 0; i < products; i++)
        multiplies(g, (struct product_shape){tokens, p->rows, p->columns, 1, 2});
    moves(g,
          3 * tokens * p->rows * 2); // the kernel reads the logits twice and writes their gradient
    return loss;
}
