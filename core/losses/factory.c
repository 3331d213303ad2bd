// LLaMA-Factory 0.9.5's loss of pairs (train/dpo/trainer.py, over TRL 0.24's trainer): logits of
// all tokens in fp32, of the model that is trained and of its reference, which is the same without
// its adapters; those of the first stay until the loss has been logged.
#include "core/losses/factory.h"

#include "core/losses/losses.h"
#include "core/models/forward.h"

bool factory_compares(const struct job *p)
{
    return p->recipe == RECIPE_LLAMAFACTORY && p->task == TASK_DPO;
}

static struct var wide_logits(struct trainer *t)
{
    enum { WIDE = 4 };
    struct graph *g = &t->graph;
    struct var logits = forward_to_logits(t);
    if (logits.width == WIDE)
        return logits;
    g->kind = MEMORY_LOGITS;
    struct var wide = taken(cast(g, borrowed(logits), WIDE));
    var_drop(g, &logits);
    g->kind = MEMORY_WORKING;
    return wide;
}

// train/trainer_utils.py, get_batch_logps: all but the last token's logits of each row, which
// torch's softmax copies to lie side by side (ATen/native/cuda/SoftMax.cu, host_softmax).
static struct var label_log_probs(struct trainer *t, struct var logits)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_tokens(t->job) - job_rows(t->job);
    struct scope f = scope_in(g);
    struct var labels = local(&f, constant(g, tokens, 8));
    local(&f, constant(g, tokens, 1)); // which of them count
    g->kind = MEMORY_LOGITS;
    struct var rows = local(&f, slice(g, logits, tokens * t->job->model.vocab));
    struct var each = local(&f, log_softmax(g, rows));
    machine_scratch(g->machine, var_bytes(rows));
    struct var chosen = likelihood(g, each, labels);
    g->kind = MEMORY_WORKING;
    return returns(&f, chosen);
}

// concatenated_forward: of a copy of the batch. The logits are the caller's.
static struct var pair_log_probs(struct trainer *t, struct var *logits)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    enum { COLUMNS = 3 };
    for (int i = 0; i < COLUMNS; i++)
        local(&f, constant(g, job_tokens(t->job), 8));
    *logits = wide_logits(t);
    return returns(&f, label_log_probs(t, borrowed(*logits)));
}

static void read_reference(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct var logits;
    g->without_adapters = t->without_graph = true;
    struct var sums = taken(pair_log_probs(t, &logits));
    var_drop(g, &sums);
    var_drop(g, &logits);
    g->without_adapters = t->without_graph = false;
    g->recording = g->keeping = true;
}

struct var factory_comparing_loss(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct var logits;
    struct var sums = pair_log_probs(t, &logits);
    read_reference(t);
    var_drop(g, &logits);
    return sums;
}
