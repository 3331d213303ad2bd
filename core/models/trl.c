// chunked_nll as TRL 1.13 computes it (trainer/sft_trainer.py): tokens are sorted by whether they
// have a label, and each chunk of the head also gives the accuracy and entropy that the trainer
// logs.
#include "core/models/trl.h"

#include "core/ops/ops.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

static struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// argsort of one byte a token; what cub needs for it is a few KiB, left out.
static struct var sorted_order(struct graph *g, uint64_t tokens)
{
    struct var bytes = constant(g, tokens, 1), values = constant(g, tokens, 1);
    struct var order = constant(g, tokens, 8), range = constant(g, tokens, 8);
    drop(g, range);
    drop(g, values);
    drop(g, bytes);
    return order;
}

struct var trl_packed(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    uint64_t tokens = hidden.elements / t->job->model.hidden;
    struct var valid = constant(g, tokens, 1);
    struct var order = sorted_order(g, tokens);
    struct var out = op_index_rows(g, hidden, tokens, order);
    drop(g, hidden);
    drop(g, order);
    drop(g, valid);
    return out;
}

// Entropy: no gradient comes back through it, but it would keep what one needs, so that a
// recomputation does not stop before it.
static void take_entropy(struct graph *g, uint64_t elements)
{
    struct var chances = constant(g, elements, 4), products = constant(g, elements, 4);
    graph_keep(g, NULL, NULL);
    drop(g, products);
    drop(g, chances);
}

void trl_chunk(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct trainer *t = what;
    struct var logits = op_linear(g, in, t->head, -1);
    struct var wide = op_cast(g, logits, 4);
    drop(g, logits);
    struct var labels = {NULL, NO_NODE, 8, 0}; // a view of all labels
    struct var log_probabilities = op_log_softmax(g, wide);
    *out = op_likelihood(g, log_probabilities, labels);
    take_entropy(g, log_probabilities.elements);
    drop(g, wide);
    drop(g, log_probabilities);
}
