// The losses, written as the frameworks compute them: head, logits and what is made of them, every
// local variable dropped where Python drops it.
#include "core/models/losses.h"

#include "core/models/trl.h"
#include "core/models/units.h"
#include "core/ops/ops.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

static struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// Labels are padded by one and shifted; several sequences make that a copy. Context parallel's were
// before they were dealt out.
static struct var shifted_labels(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    if (p->ring > 1)
        return (struct var){NULL, NO_NODE, 8, 0};
    struct var padded = constant(g, p->batch * (job_sequence_tokens(p) + 1), 8);
    if (p->batch == 1)
        return padded;
    struct var copy = constant(g, job_tokens(p), 8);
    drop(g, padded);
    return copy;
}

static struct var full_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    int head = unit_number(t, PART_HEAD);
    g->kind = MEMORY_LOGITS;
    unit_enter(t, head);
    struct var in = unit_mark(t, var_share(hidden), head, true);
    struct var logits = unit_mark(t, op_linear(g, in, t->head, -1), head, false);
    drop(g, in);
    unit_leave(t, head);
    if (model_has(&t->job->model, FEATURE_LOGIT_CAP))
        logits = op_cap(g, logits);
    struct var wide = op_cast(g, logits, 4);
    struct var labels = shifted_labels(t);
    struct var loss = op_cross_entropy(g, wide, labels);
    drop(g, wide);
    unit_leave(t, unit_number(t, PART_NORMS));
    drop(g, logits);
    drop(g, labels);
    g->kind = MEMORY_WORKING;
    return loss;
}

// One chunk: logits, in fp32, and the sum of their losses.
static void chunk_loss(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct trainer *t = what;
    struct var logits = op_linear(g, in, t->head, -1);
    struct var wide = op_cast(g, logits, 4);
    drop(g, logits);
    struct var labels = {NULL, NO_NODE, 8, 0}; // a view of all labels
    *out = op_cross_entropy(g, wide, labels);
    drop(g, wide);
}

// The head over chunks of tokens, each under checkpoint, the losses added up.
static struct var chunked_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    int head = unit_number(t, PART_HEAD);
    uint64_t left = job_tokens(p), width = p->model.hidden;
    int count = (int)((left + p->loss_chunk - 1) / p->loss_chunk);
    g->kind = MEMORY_LOGITS;
    unit_enter(t, head);
    bool trl = p->recipe == RECIPE_TRL;
    struct var whole = unit_mark(t, var_share(hidden), head, true);
    whole = trl ? trl_packed(t, whole) : op_chunks(g, whole, count);
    struct var total = {NULL, NO_NODE, 4, 1};
    for (int i = 0; i < count; i++) {
        uint64_t tokens = left < p->loss_chunk ? left : p->loss_chunk;
        struct var chunk = (trl ? op_slice : op_chunk)(g, whole, tokens * width);
        struct var loss = graph_checkpoint(g, chunk, trl ? trl_chunk : chunk_loss, t);
        drop(g, chunk);
        struct var sum = op_scalar(g, loss, total);
        drop(g, loss);
        drop(g, total);
        total = sum;
        left -= tokens;
    }
    drop(g, whole);
    struct var mean = op_add_constant(g, total);
    drop(g, total);
    mean = unit_mark(t, mean, head, false);
    unit_leave(t, head);
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return mean;
}

static struct var liger_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    g->kind = MEMORY_LOGITS;
    struct var labels = shifted_labels(t);
    struct var loss = op_fused_loss(g, hidden, t->head);
    drop(g, labels);
    g->kind = MEMORY_WORKING;
    return loss;
}

// No head at all: the mean of the last hidden state.
static struct var hidden_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct var wide = op_cast(g, hidden, 4);
    struct var mean = op_mean(g, wide, 1);
    drop(g, wide);
    unit_leave(t, unit_number(t, PART_NORMS));
    return mean;
}

// The same without logits of all tokens, where verl's fused kernels are on. Takes hidden over.
static struct var fused_policy_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    int root = unit_number(t, PART_NORMS);
    struct var values = op_fused_policy(g, hidden, t->head);
    drop(g, hidden);
    unit_leave(t, root);
    values = unit_mark(t, values, root, false);
    if (t->is_reference)
        return values;
    struct var loss = op_mean(g, values, 1);
    drop(g, values);
    return loss;
}

// What a policy gradient needs of the logits: the log-probability of each token and the entropy
// (verl 0.5, workers/actor/dp_actor.py). The entropy function is compiled and makes nothing of the
// logits' size, unless it is asked to do it in chunks; a model that is only read has no entropy
// computed. Takes hidden over.
static struct var policy_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_tokens(t->job);
    int head = unit_number(t, PART_HEAD), root = unit_number(t, PART_NORMS);
    g->kind = MEMORY_LOGITS;
    unit_enter(t, head);
    struct var in = unit_mark(t, hidden, head, true);
    struct var logits = unit_mark(t, op_linear(g, in, t->head, -1), head, false);
    drop(g, in);
    unit_leave(t, head);
    unit_leave(t, root);
    logits = op_divide_view(g, unit_mark(t, logits, root, false));
    g->kind = MEMORY_WORKING;
    struct var log_probabilities = op_token_loss(g, logits, tokens);
    if (t->is_reference) {
        drop(g, logits);
        return log_probabilities;
    }
    struct var entropy =
        (t->job->entropy_saving ? op_chunked_entropy : op_token_loss)(g, logits, tokens);
    drop(g, logits);
    struct var gain = op_mean(g, log_probabilities, 1), spread = op_mean(g, entropy, 1);
    drop(g, log_probabilities);
    drop(g, entropy);
    struct var loss = op_scalar(g, gain, spread);
    drop(g, gain);
    drop(g, spread);
    return loss;
}

struct var loss_of(struct trainer *t, struct var hidden)
{
    switch (t->job->loss) {
    case LOSS_FULL:
        return full_loss(t, hidden);
    case LOSS_CHUNKED:
        return chunked_loss(t, hidden);
    case LOSS_NONE:
        return hidden_loss(t, hidden);
    case LOSS_LIGER:
        return liger_loss(t, hidden);
    case LOSS_POLICY:
        break;
    }
    __builtin_trap();
}

struct var loss_of_policy(struct trainer *t, struct var hidden)
{
    return (t->job->fused_kernels ? fused_policy_loss : policy_loss)(t, hidden);
}
