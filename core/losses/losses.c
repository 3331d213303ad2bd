// The losses, written as the frameworks compute them: head, logits and what is made of them, with
// Python's lifetimes (core/models/scope.h).
#include "core/losses/losses.h"

#include "core/losses/factory.h"
#include "core/losses/router.h"
#include "core/losses/trl.h"
#include "core/models/forward.h"
#include "core/models/units.h"

// Labels are padded by one and shifted; several sequences make that a copy. Those of split
// sequences were before they were dealt out.
static struct var shifted_labels(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    if (job_shifts_early(p))
        return (struct var){NULL, NO_NODE, 8, 0};
    struct var padded = constant(g, job_rows(p) * (job_sequence_tokens(p) + 1), 8);
    return job_rows(p) == 1 ? padded : after(g, constant(g, job_tokens(p), 8), padded);
}

static int head_bias(const struct trainer *t)
{
    return t->head_count > 1 ? t->head + 1 : -1;
}

// The head's, as a unit of its own where it is one.
static struct var logits_of(struct trainer *t, struct var hidden)
{
    int head = unit_number(t, PART_HEAD);
    unit_enter(t, head);
    struct var input = unit_mark(t, hidden, head, true);
    struct var logits = linear(&t->graph, input, t->head, head_bias(t));
    logits = unit_mark(t, logits, head, false);
    unit_leave(t, head);
    return logits;
}

// Logits as the model hands them out: Gemma 2's softly capped, Granite's divided by a number.
static struct var finished(const struct trainer *t, struct graph *g, struct var logits)
{
    if (model_has(&t->job->model, FEATURE_LOGIT_CAP))
        return cap(g, logits);
    bool scaled = model_has(&t->job->model, FEATURE_MULTIPLIERS | FEATURE_LOGIT_SCALE);
    return scaled ? scale(g, logits) : logits;
}

// transformers before 4.49 cut the last token's logits off, in fp32: a copy, but of one sequence.
static struct var shifted_logits(struct trainer *t, struct var wide)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    uint64_t rows = job_rows(p), tokens = job_tokens(p);
    struct var kept = slice(g, wide, (tokens - rows) * p->model.vocab);
    return rows == 1 ? kept : copy(g, kept);
}

// loss_utils.py, ForCausalLMLoss, of 4.48: the model's logits and their casts have names there.
// Before, in modeling_*.py, a cast took the model's place.
static struct var shifting_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    g->kind = MEMORY_LOGITS;
    struct var logits = local(&f, finished(t, g, logits_of(t, hidden)));
    uint32_t width = job_is_old_bigcode(t->job) ? logits.width : 4;
    if (job_casts_logits_in_place(t->job))
        assign(&f, &logits, cast(g, logits, width));
    else
        logits = local(&f, cast(g, logits, width));
    struct var shifted = local(&f, shifted_logits(t, logits));
    struct var labels = local(&f, shifted_labels(t));
    struct var loss = cross_entropy(g, shifted, labels);
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return returns(&f, loss);
}

static struct var full_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    g->kind = MEMORY_LOGITS;
    struct var logits = local(&f, finished(t, g, logits_of(t, hidden)));
    struct var wide = cast(g, logits, 4);
    struct var labels = local(&f, shifted_labels(t));
    struct var loss = cross_entropy(g, wide, labels);
    loss = with_router_loss(t, loss, router_loss(t));
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return returns(&f, loss);
}

// One chunk: logits as the model has them, in fp32, and the sum of their losses.
static void chunk_loss(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct trainer *t = what;
    struct var labels = {NULL, NO_NODE, 8, 0}; // a view of all labels
    struct var logits = finished(t, g, linear(g, in, t->head, head_bias(t)));
    *out = taken(cross_entropy(g, cast(g, logits, 4), labels));
}

// The head over chunks of tokens, each under checkpoint, the losses added up.
static struct var chunked_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    struct scope f = scope_in(g);
    int head = unit_number(t, PART_HEAD);
    uint64_t left = job_tokens(p), width = p->model.hidden;
    int count = (int)((left + p->loss_chunk - 1) / p->loss_chunk);
    g->kind = MEMORY_LOGITS;
    unit_enter(t, head);
    bool trl = p->recipe == RECIPE_TRL;
    struct var whole = unit_mark(t, hidden, head, true);
    whole = local(&f, trl ? trl_packed(t, whole) : chunks(g, whole, count));
    struct var total = local(&f, (struct var){NULL, NO_NODE, 4, 1});
    for (int i = 0; i < count; i++) {
        uint64_t tokens = left < p->loss_chunk ? left : p->loss_chunk;
        struct var part = (trl ? slice : chunk)(g, whole, tokens * width);
        struct var loss = checkpoint(g, part, trl ? trl_chunk : chunk_loss, t);
        assign(&f, &total, scalar(g, loss, total));
        left -= tokens;
    }
    forget(&f, &whole);
    assign(&f, &total, unit_mark(t, add_constant(g, total), head, false));
    unit_leave(t, head);
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return returns(&f, total);
}

static struct var liger_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    int head = unit_number(t, PART_HEAD);
    g->kind = MEMORY_LOGITS;
    local(&f, shifted_labels(t));
    unit_enter(t, head);
    struct var loss = fused_loss(g, unit_mark(t, hidden, head, true), t->head);
    loss = unit_mark(t, loss, head, false);
    unit_leave(t, head);
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return returns(&f, loss);
}

// No head at all: the mean of the last hidden state.
static struct var hidden_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct var loss = mean(g, cast(g, hidden, 4), 1);
    unit_leave(t, unit_number(t, PART_NORMS));
    return loss;
}

// The same without logits of all tokens, where verl's fused kernels are on.
static struct var fused_policy_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    int root = unit_number(t, PART_NORMS);
    struct var values = fused_policy(g, hidden, t->head);
    unit_leave(t, root);
    values = unit_mark(t, values, root, false);
    return t->is_reference ? values : mean(g, values, 1);
}

// What a policy gradient needs of the logits: the log-probability of each token and the entropy
// (verl 0.5, workers/actor/dp_actor.py). The entropy function is compiled and makes nothing of the
// logits' size, unless it is asked to do it in chunks; a model that is only read has no entropy
// computed.
static struct var policy_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    uint64_t tokens = job_tokens(t->job);
    int root = unit_number(t, PART_NORMS);
    g->kind = MEMORY_LOGITS;
    struct var logits = local(&f, logits_of(t, hidden));
    unit_leave(t, root);
    assign(&f, &logits, divide_view(g, unit_mark(t, logits, root, false)));
    g->kind = MEMORY_WORKING;
    struct var chances = token_loss(g, logits, tokens);
    if (t->is_reference)
        return returns(&f, chances);
    struct var entropy = (t->job->entropy_saving ? chunked_entropy : token_loss)(g, logits, tokens);
    forget(&f, &logits);
    chances = local(&f, chances);
    entropy = local(&f, entropy);
    struct var gain = mean(g, chances, 1), spread = mean(g, entropy, 1);
    forget(&f, &chances);
    forget(&f, &entropy);
    return returns(&f, scalar(g, gain, spread));
}

// What LLaMA-Factory's reward model makes of words beside its scores, and nobody uses: logits with
// a loss of their own, and in fp32 once more (trl 0.24, models/modeling_value_head.py).
static struct var words_loss(struct trainer *t, struct var hidden, struct var *logits)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    *logits = taken(finished(t, g, logits_of(t, hidden)));
    local(&f, shifted_labels(t));
    return returns(&f, log_softmax(g, cast(g, borrowed(*logits), 4)));
}

// train/rm/trainer.py, compute_loss: a score for each token, of which each row's last one counts.
static struct var factory_score_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    bool recorded = g->recording, kept = g->keeping;
    struct var logits;
    g->kind = MEMORY_LOGITS;
    g->recording = g->keeping = false;
    local(&f, words_loss(t, hidden, &logits)); // its gradient is asked for by none
    g->recording = recorded;
    g->keeping = kept;
    struct var input = local(&f, cast(g, cast(g, dropout(g, hidden), 4), t->width));
    struct var scores = local(&f, sum_rows(g, input, job_tokens(t->job)));
    g->recording = g->keeping = false;
    local(&f, cast(g, borrowed(logits), 4));
    var_drop(g, &logits);
    g->recording = recorded;
    g->keeping = kept;
    unit_leave(t, unit_number(t, PART_NORMS));
    g->kind = MEMORY_WORKING;
    return returns(&f, mean(g, scores, 1));
}

static bool scores_in_factory(const struct job *p)
{
    return p->recipe == RECIPE_LLAMAFACTORY && p->task == TASK_REWARD;
}

static struct var loss_of(struct trainer *t, struct var hidden)
{
    if (scores_in_factory(t->job))
        return factory_score_loss(t, hidden);
    if (t->job->model.labels)
        return trl_score_loss(t, hidden);
    switch (t->job->loss) {
    case LOSS_FULL:
        return (job_shifts_logits(t->job) ? shifting_loss : full_loss)(t, hidden);
    case LOSS_CHUNKED:
        return (job_fuses_head(t->job) ? trl_fused_loss : chunked_loss)(t, hidden);
    case LOSS_NONE:
        return hidden_loss(t, hidden);
    case LOSS_LIGER:
        return liger_loss(t, hidden);
    case LOSS_POLICY:
    case LOSS_FUSED:
        break;
    }
    __builtin_trap();
}

// transformers computes its losses inside the model's forward; a policy gradient comes after it.
static struct var loss_behind(struct trainer *t, struct output o)
{
    model_let_go(t, o);
    return (t->job->fused_kernels ? fused_policy_loss : policy_loss)(t, o.last);
}

static struct var loss_inside(struct trainer *t, struct output o)
{
    struct var loss = after(&t->graph, loss_of(t, borrowed(o.last)), o.last);
    model_let_go(t, o);
    graph_end_autocast(&t->graph);
    return unit_mark(t, loss, unit_number(t, PART_NORMS), false);
}

struct var forward_to_logits(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    struct output o = model_forward(t);
    g->kind = MEMORY_LOGITS;
    struct var hidden = local(&f, o.last);
    struct var logits = local(&f, finished(t, g, logits_of(t, borrowed(hidden))));
    local(&f, router_loss(t));
    unit_leave(t, unit_number(t, PART_NORMS));
    forget(&f, &hidden);
    model_let_go(t, o);
    graph_end_autocast(g);
    if (t->job->precision != PRECISION_BF16) // accelerate 1.15, convert_outputs_to_fp32
        assign(&f, &logits, cast(g, logits, 4));
    g->kind = MEMORY_WORKING;
    return taken(returns(&f, logits));
}

struct var forward_to_next_logits(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    struct output o = model_forward(t);
    model_let_go(t, o);
    g->kind = MEMORY_LOGITS;
    struct var hidden = local(&f, o.last);
    struct var last = slice(g, hidden, job_rows(t->job) * t->job->model.hidden);
    struct var logits = local(&f, finished(t, g, logits_of(t, last)));
    unit_leave(t, unit_of_tail(t));
    forget(&f, &hidden);
    graph_end_autocast(g);
    bool wrapped = !job_is_zero(t->job) && !t->job->lora_rank; // by accelerate, as above
    if (wrapped)
        unit_leave(t, unit_number(t, PART_NORMS));
    if (wrapped && t->job->precision != PRECISION_BF16)
        assign(&f, &logits, cast(g, logits, 4));
    g->kind = MEMORY_WORKING;
    return taken(returns(&f, logits));
}

struct var forward_to_loss(struct trainer *t)
{
    bool scores = job_generates(t->job) && t->job->task != TASK_DISTILL;
    bool reads = t->is_reference || (t->without_graph && scores);
    if (factory_compares(t->job))
        return taken(factory_comparing_loss(t));
    if (trl_compares(t->job))
        return taken((reads ? trl_read : trl_comparing_loss)(t));
    struct output o = model_forward(t);
    return taken((t->job->loss == LOSS_POLICY ? loss_behind : loss_inside)(t, o));
}
