// chunked_nll as TRL 1.13 computes it (trainer/sft_trainer.py): tokens are sorted by whether they
// have a label, and each chunk of the head also gives the accuracy and entropy that the trainer
// logs. Gemma 2's logits are capped there in fp32; Granite's are not divided (1.16 does).
#include "core/losses/trl.h"

#include "core/models/calls.h"

// argsort of one byte a token; what cub needs for it is a few KiB, left out.
static struct var sorted_order(struct graph *g, uint64_t tokens)
{
    struct scope f = scope_in(g);
    local(&f, constant(g, tokens, 1));
    local(&f, constant(g, tokens, 1)); // the values
    struct var order = constant(g, tokens, 8);
    local(&f, constant(g, tokens, 8)); // a range
    return returns(&f, order);
}

struct var trl_packed(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    uint64_t tokens = hidden.elements / t->job->model.hidden;
    struct var valid = constant(g, tokens, 1), order = sorted_order(g, tokens);
    struct var out = index_rows(g, hidden, tokens, order);
    return after(g, out, valid);
}

// Entropy: no gradient comes back through it, but it would keep what one needs, so that a
// recomputation does not stop before it.
static void take_entropy(struct graph *g, uint64_t elements)
{
    struct scope f = scope_in(g);
    local(&f, constant(g, elements, 4)); // the chances
    local(&f, constant(g, elements, 4)); // times their logarithms
    graph_keep(g, NULL, NULL);
    ends(&f);
}

void trl_chunk(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct trainer *t = what;
    struct scope f = scope_in(g);
    struct var labels = {NULL, NO_NODE, 8, 0}; // a view of all labels
    struct var logits = local(&f, cast(g, linear(g, in, t->head, -1), 4));
    if (model_has(&t->job->model, FEATURE_LOGIT_CAP))
        assign(&f, &logits, cap(g, logits));
    struct var chances = local(&f, log_softmax(g, logits));
    struct var loss = likelihood(g, chances, labels);
    take_entropy(g, chances.elements);
    *out = taken(returns(&f, loss));
}
