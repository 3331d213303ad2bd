// chunked_nll as TRL 1.13 computes it (trainer/sft_trainer.py): tokens are sorted by whether they
// have a label, and each chunk of the head also gives the accuracy and entropy that the trainer
// logs. Gemma 2's logits are capped there in fp32; Granite's are not divided (1.16 does). And the
// fused head that 1.16 has instead (trainer/utils.py, add_fused_lm_head).
#include "core/losses/trl.h"

#include "core/models/calls.h"
#include "core/models/units.h"

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

// ------------------------------------------------------------------ TRL 1.16

// Each row's label is the next one's; context parallel's were shifted before they were dealt out.
static uint64_t labelled_tokens(const struct job *p)
{
    return job_tokens(p) - (p->ring > 1 ? 0 : p->batch);
}

// What is logged, entropy and whether the label was likeliest, has a place for every token too.
static void take_logged(struct graph *g, struct var mask)
{
    struct scope f = scope_in(g);
    struct var entropy = {NULL, NO_NODE, 4, mask.elements};
    struct var is_likeliest = {NULL, NO_NODE, 1, mask.elements};
    local(&f, masked_scatter(g, entropy, mask));
    local(&f, masked_scatter(g, is_likeliest, mask));
    ends(&f);
}

static struct var log_probabilities(struct trainer *t, struct var rows)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    uint64_t tokens = labelled_tokens(t->job);
    struct var mask = local(&f, constant(g, tokens, 1)), labels = {NULL, NO_NODE, 8, tokens};
    struct var scored = masked_rows(g, rows, mask), targets = masked_rows(g, labels, mask);
    struct var values = local(&f, log_probs(g, scored, t->head, targets));
    struct var placed = masked_scatter(g, values, mask);
    take_logged(g, mask);
    return returns(&f, placed);
}

struct var trl_fused_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    int head = unit_number(t, PART_HEAD);
    g->kind = MEMORY_LOGITS;
    unit_enter(t, head);
    struct var rows = unit_mark(t, hidden, head, true);
    if (p->ring == 1)
        rows = slice(g, rows, labelled_tokens(p) * p->model.hidden);
    struct var loss = sum_rows(g, negate(g, log_probabilities(t, rows)), 1);
    loss = unit_mark(t, loss, head, false);
    unit_leave(t, head);
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return loss;
}
