// chunked_nll as TRL 1.13 computes it (trainer/sft_trainer.py): tokens are sorted by whether they
// have a label, and each chunk of the head also gives the accuracy and entropy that the trainer
// logs. Gemma 2's logits are capped there in fp32; Granite's are not divided (1.16 does). And the
// fused head that 1.16 has instead (trainer/utils.py, add_fused_lm_head).
#include "core/losses/trl.h"

#include "core/base/num.h"
#include "core/losses/router.h"
#include "core/models/forward.h"
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

// Each row's label is the next one's; those of split sequences were shifted before they were dealt
// out.
static uint64_t labelled_tokens(const struct job *p)
{
    return job_tokens(p) - (job_shifts_early(p) ? 0 : job_rows(p));
}

// A prompt's tokens have no label, nor has the first, nor has padding. Of a split sequence a rank
// may have nothing but answers.
static uint64_t scored_tokens(const struct job *p)
{
    uint64_t first = p->prompt < p->context ? p->prompt : p->context - 1;
    uint64_t without = first > 1 ? (first - 1) * job_rows(p) : 0;
    if (job_shifts_early(p))
        return u64_least(labelled_tokens(p), (p->context - first) * job_rows(p));
    uint64_t scored = labelled_tokens(p) - without;
    return p->padding < scored ? scored - p->padding : 1;
}

// What is logged, entropy and whether the label was likeliest, has a place for every token too.
static void take_logged(struct graph *g, struct var mask, uint64_t scored)
{
    struct scope f = scope_in(g);
    struct var entropy = {NULL, NO_NODE, 4, scored};
    struct var is_likeliest = {NULL, NO_NODE, 1, scored};
    local(&f, masked_scatter(g, entropy, mask));
    local(&f, masked_scatter(g, is_likeliest, mask));
    ends(&f);
}

// trainer/utils.py, add_fused_lm_head: a head that is cut over ranks is gathered, as it is stored.
static struct var head_weight(struct graph *g, int head)
{
    bool cut = g->parameters[head].cut == CUT_WORDS;
    return cut ? unnamed(op_whole_weight(g, head)) : op_parameter(g, head);
}

static struct var placed_log_probs(struct trainer *t, struct var rows)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    uint64_t tokens = labelled_tokens(t->job), scored = scored_tokens(t->job);
    struct var mask = local(&f, constant(g, tokens, 1)), labels = {NULL, NO_NODE, 8, tokens};
    struct var weight = local(&f, head_weight(g, t->head));
    struct var hidden = masked_rows(g, rows, mask, scored);
    struct var targets = masked_rows(g, labels, mask, scored);
    struct var values = local(&f, log_probs(g, hidden, t->head, weight, targets));
    struct var placed = masked_scatter(g, values, mask);
    take_logged(g, mask, scored);
    return returns(&f, placed);
}

// The log-probability of every label, by the fused head.
static struct var head_log_probs(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    int head = unit_number(t, PART_HEAD);
    unit_enter(t, head);
    struct var rows = unit_mark(t, hidden, head, true);
    if (!job_shifts_early(p))
        rows = slice(g, rows, labelled_tokens(p) * p->model.hidden);
    return placed_log_probs(t, rows);
}

static struct var leave_head(struct trainer *t, struct var out)
{
    int head = unit_number(t, PART_HEAD);
    out = unit_mark(t, out, head, false);
    unit_leave(t, head);
    unit_leave(t, unit_number(t, PART_NORMS));
    t->graph.kind = MEMORY_WORKING;
    return out;
}

struct var trl_fused_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    g->kind = MEMORY_LOGITS;
    struct var each = local(&f, head_log_probs(t, hidden));
    struct var routers = router_loss(t);
    struct var loss = sum_rows(g, negate(g, each), 1);
    return returns(&f, leave_head(t, with_router_loss(t, loss, routers)));
}

// ------------------------------------------------------------------ tasks

// transformers 5.17, modeling_layers.py, GenericForSequenceClassification: a score for every token,
// of which the last one's counts.
struct var trl_score_loss(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_tokens(t->job), rows = job_rows(t->job);
    struct scope f = scope_in(g);
    g->kind = MEMORY_LOGITS;
    unit_enter(t, unit_number(t, PART_HEAD));
    struct var scores = local(&f, linear(g, hidden, t->head, -1));
    struct var is_token = local(&f, constant(g, tokens, 4));
    local(&f, constant(g, tokens / rows, 4)); // numbers of places
    local(&f, constant(g, rows, 8));          // the last of each
    forget(&f, &is_token);
    struct var last = local(&f, cast(g, slice(g, scores, rows), 4));
    return returns(&f, leave_head(t, mean(g, last, 1)));
}

// The sum over each sequence, of a model that is trained or only read; of the first also the
// routers' loss.
static struct var sequence_log_probs(struct trainer *t, struct var *routers)
{
    bool trained = routers != NULL;
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    bool was_without = t->without_graph, recorded = g->recording;
    t->without_graph = was_without || !trained;
    struct output o = model_forward(t);
    g->kind = MEMORY_LOGITS;
    struct var hidden = local(&f, o.last);
    struct var each = local(&f, head_log_probs(t, borrowed(hidden)));
    if (trained)
        *routers = router_loss(t);
    assign(&f, &each, leave_head(t, each));
    forget(&f, &hidden);
    model_let_go(t, o);
    graph_end_autocast(g);
    struct var sums = sum_rows(g, each, job_rows(t->job));
    t->without_graph = was_without;
    g->recording = g->keeping = (trained || recorded) && !was_without;
    return returns(&f, sums);
}

// Log-probabilities by the reference: a model of its own, or the trained one without its adapters.
static struct var reference_log_probs(struct trainer *t)
{
    struct trainer *read = t->reference ? t->reference : t;
    read->graph.without_adapters = true;
    read->graph.gemm_ready[false] = t->graph.gemm_ready[false]; // both multiply on one thread
    read->ids = t->ids;
    struct var sums = sequence_log_probs(read, NULL);
    read->graph.without_adapters = false;
    return sums;
}

// distillation_trainer.py, _compute_loss: the hidden states of answers, by both models, then their
// divergence in tiles.
static struct var answers_of(struct trainer *t, struct var hidden)
{
    const struct job *p = t->job;
    uint64_t answers = (p->context - p->prompt) * job_rows(p);
    return slice(&t->graph, hidden, answers * p->model.hidden);
}

static uint64_t gathered_head(const struct trainer *t)
{
    const struct parameter *p = &t->graph.parameters[t->head];
    return t->job->strategy == STRATEGY_ZERO3 ? p->rows * p->columns * t->width : 0;
}

static struct var distilling_loss(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct trainer *teacher = t->reference;
    struct scope f = scope_in(g);
    struct output o = model_forward(t);
    struct var ours = local(&f, answers_of(t, o.last));
    model_let_go(t, o);
    teacher->ids = t->ids;
    teacher->graph.gemm_ready[false] |= g->gemm_ready[false];
    struct output theirs = model_forward(teacher);
    struct var learned = local(&f, answers_of(teacher, theirs.last));
    model_let_go(teacher, theirs);
    unit_leave(teacher, unit_number(teacher, PART_NORMS));
    unit_enter(t, unit_number(t, PART_HEAD));
    struct var apart = divergence(g, ours, t->head, learned, gathered_head(teacher));
    apart = leave_head(t, apart);
    graph_end_autocast(g);
    return returns(&f, sum_rows(g, apart, 1));
}

bool trl_compares(const struct job *p)
{
    return p->recipe == RECIPE_TRL && p->task != TASK_SFT && p->task != TASK_REWARD;
}

struct var trl_read(struct trainer *t)
{
    return sequence_log_probs(t, NULL);
}

// peft walks through all modules to switch its adapters, and so does transformers where checkpoints
// are switched with them.
static void switch_adapters(struct trainer *t)
{
    const struct graph *g = &t->graph;
    for (int i = 0; i < g->parameter_count; i++)
        if (g->parameters[i].adapter)
            machine_host(g->machine, machine_rates(g->machine)->adapter);
}

// What follows policy and graph; kto looks up which answers were chosen (torch.nonzero), for which
// the host waits.
static void read_reference(struct trainer *t, struct scope *f)
{
    struct machine *m = t->graph.machine;
    bool kto = t->job->task == TASK_KTO;
    if (kto)
        machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    if (!t->reference)
        switch_adapters(t);
    if (kto)
        local(f, reference_log_probs(t));
    local(f, reference_log_probs(t));
    if (!t->reference)
        switch_adapters(t);
}

// dpo_trainer.py and kto_trainer.py, _compute_loss: the labels without those of prompts stay, and
// the reference reads while the policy's graph waits. kto reads other answers' too, for its KL
// term. grpo's and rloo's references have read before.
struct var trl_comparing_loss(struct trainer *t)
{
    if (t->job->task == TASK_DISTILL)
        return distilling_loss(t);
    struct graph *g = &t->graph;
    const struct job *p = t->job;
    bool kto = p->task == TASK_KTO, reads = job_reads_reference(p) && !job_generates(p);
    struct scope f = scope_in(g);
    if (kto)
        local(&f, sequence_log_probs(t, NULL));
    local(&f, constant(g, job_tokens(p), 8));
    struct var routers, ours = local(&f, sequence_log_probs(t, &routers));
    if (reads)
        read_reference(t, &f);
    return returns(&f, with_router_loss(t, mean(g, ours, 1), routers));
}
