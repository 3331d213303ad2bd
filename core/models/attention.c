// Attention as transformers writes it out operator by operator (eager_attention_forward of
// modeling_gemma2.py), which is how soft-capped scores are computed: no fused kernel caps them. And
// the masks (masking_utils.py): one value for each pair of tokens, made anew in every forward pass.
#include "core/models/trainer.h"
#include "core/ops/ops.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

static struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// ------------------------------------------------------------------ masks

const struct layer_arguments *arguments_of(const struct trainer *t, int layer)
{
    return &t->arguments[t->job->model.layer[layer].sliding ? LAYER_SLIDING : LAYER_FULL];
}

static struct var range(struct graph *g, uint64_t tokens)
{
    struct var plain = constant(g, tokens, 8), shifted = constant(g, tokens, 8);
    drop(g, plain);
    return shifted;
}

// kv <= q and, in a window, kv > q - window: booleans, joined one after another.
static struct var allowed_pairs(struct graph *g, uint64_t tokens, bool sliding)
{
    uint64_t pairs = tokens * tokens;
    if (!sliding)
        return constant(g, pairs, 1);
    struct var bound = constant(g, tokens, 8), near = constant(g, pairs, 1);
    drop(g, bound);
    struct var joined = constant(g, pairs, 1);
    drop(g, near);
    struct var causal = constant(g, pairs, 1), both = constant(g, pairs, 1);
    drop(g, causal);
    drop(g, joined);
    return both;
}

static struct var boolean_mask(struct trainer *t, bool sliding)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_sequence_tokens(t->job);
    struct var queries = range(g, tokens), keys = range(g, tokens);
    struct var pairs = allowed_pairs(g, tokens, sliding);
    drop(g, queries);
    drop(g, keys);
    return pairs;
}

// Zeros and the least number, to be added to the scores.
static struct var additive_mask(struct trainer *t, bool sliding)
{
    struct var pairs = boolean_mask(t, sliding);
    struct var mask = constant(&t->graph, t->job->batch * pairs.elements, t->width);
    drop(&t->graph, pairs);
    return mask;
}

void make_masks(struct trainer *t)
{
    const struct model *m = &t->job->model;
    bool eager = job_attends_eagerly(t->job);
    if (eager)
        t->arguments[LAYER_FULL].mask = additive_mask(t, false);
    if (eager && m->sliding_window)
        t->arguments[LAYER_SLIDING].mask = additive_mask(t, true);
    if (!eager && job_masks_windows(t->job))
        t->arguments[LAYER_SLIDING].mask = boolean_mask(t, true);
}

void drop_masks(struct trainer *t)
{
    for (int i = 0; i < LAYER_KINDS; i++)
        var_drop(&t->graph, &t->arguments[i].mask);
    t->graph.shared_arguments[ARGUMENT_MASK].storage = NULL;
}

// ------------------------------------------------------------------ attention

struct var repeat_heads(struct graph *g, struct var x, uint64_t elements, const struct model *m)
{
    return m->kv_heads == 1 && elements != x.elements ? op_expand(g, x, elements)
                                                      : op_repeat(g, x, elements);
}

// Sequences and heads become one dimension, which takes a copy where they do not lie together.
static struct var flattened(struct graph *g, struct var x, bool apart)
{
    return apart ? op_copy(g, x) : var_share(x);
}

// Products run in bf16 under autocast.
static struct var narrowed(struct graph *g, struct var x)
{
    return op_cast(g, x, g->autocast ? 2 : x.width);
}

static struct var scores_of(struct graph *g, struct var q, struct var k, const struct trainer *t)
{
    const struct model *m = &t->job->model;
    bool several = t->job->batch > 1, shared = m->heads != m->kv_heads;
    uint64_t pairs = q.elements / m->head_dim * job_sequence_tokens(t->job);
    struct var k_low = narrowed(g, k), q_low = narrowed(g, q);
    struct var q_flat = flattened(g, q_low, several);
    struct var k_flat = flattened(g, k_low, several && !shared);
    struct var raw = op_product(g, q_flat, k_flat, pairs, m->head_dim);
    drop(g, q_flat);
    drop(g, k_flat);
    drop(g, q_low);
    drop(g, k_low);
    struct var scaled = op_scale(g, raw);
    drop(g, raw);
    return model_has(m, FEATURE_ATTENTION_CAP) ? op_cap(g, scaled) : scaled;
}

// Masked scores to weights: softmax in fp32, then the queries' type. Takes the scores over.
static struct var weights_of(struct graph *g, struct var scores, struct var mask, uint32_t width)
{
    struct var masked = op_add_mask(g, scores, mask);
    drop(g, scores);
    struct var wide = op_cast(g, masked, 4);
    struct var soft = op_softmax(g, wide);
    drop(g, wide);
    struct var weights = op_cast(g, soft, width);
    drop(g, soft);
    drop(g, masked);
    return weights;
}

// A learned sink a head beside the scores of each query. Takes the scores over.
static struct var weights_with_sinks(struct graph *g, struct var scores, struct var mask, int sinks,
                                     struct var *shifted)
{
    const struct trainer *t = g->owner;
    uint64_t rows = scores.elements / job_sequence_tokens(t->job);
    struct var masked = op_add_mask(g, scores, mask);
    drop(g, scores);
    struct var combined = op_join(g, masked, op_expand(g, op_parameter(g, sinks), rows));
    struct var top = op_max(g, combined, rows);
    *shifted = op_subtract(g, combined, top);
    drop(g, top);
    drop(g, combined);
    struct var soft = op_softmax(g, *shifted);
    struct var weights = op_slice(g, soft, masked.elements);
    drop(g, soft);
    drop(g, masked);
    return weights;
}

struct var eager_attention(struct graph *g, struct heads h, const struct layer_call *call,
                           struct var *weights)
{
    const struct trainer *t = call->trainer;
    const struct model *m = &t->job->model;
    bool several = t->job->batch > 1, shared = m->heads != m->kv_heads;
    struct var k = repeat_heads(g, h.k, h.q.elements, m);
    struct var v = repeat_heads(g, h.v, h.q.elements, m);
    struct var scores = scores_of(g, h.q, k, t);
    struct var mask = arguments_of(t, call->layer)->mask, shifted = {NULL, NO_NODE, 0, 0};
    int sinks = t->layers[call->layer].sinks;
    *weights = sinks < 0 ? weights_of(g, scores, mask, h.q.width)
                         : weights_with_sinks(g, scores, mask, sinks, &shifted);
    struct var v_flat = flattened(g, v, several && !shared), w_low = narrowed(g, *weights);
    struct var mixed = op_product(g, w_low, v_flat, h.q.elements, job_sequence_tokens(t->job));
    drop(g, w_low);
    drop(g, v_flat);
    if (several)
        mixed = op_relayout(g, mixed);
    struct var out = op_copy(g, mixed);
    drop(g, mixed);
    drop(g, k);
    drop(g, v);
    drop(g, shifted);
    return out;
}
