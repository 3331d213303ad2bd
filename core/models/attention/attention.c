// Attention as transformers writes it out operator by operator (eager_attention_forward of
// modeling_gemma2.py), which is how soft-capped scores are computed: no fused kernel caps them. And
// the masks (masking_utils.py): one value for each pair of tokens, made anew in every forward pass.
#include "core/models/forward.h"
#include "core/models/vision/vision.h"

// ------------------------------------------------------------------ masks

const struct layer_arguments *arguments_of(const struct trainer *t, int layer)
{
    return &t->arguments[t->job->model.layer[layer].sliding ? LAYER_SLIDING : LAYER_FULL];
}

// kv <= q and, in a window, kv > q - window: booleans, joined one after another.
static struct var allowed_pairs(struct graph *g, uint64_t tokens, bool sliding)
{
    uint64_t pairs = tokens * tokens;
    if (!sliding)
        return constant(g, pairs, 1);
    struct var bound = constant(g, tokens, 8);
    struct var near = after(g, constant(g, pairs, 1), bound);
    struct var joined = after(g, constant(g, pairs, 1), near);
    struct var causal = constant(g, pairs, 1);
    return after_two(g, constant(g, pairs, 1), causal, joined);
}

// And what the data says: which tokens are none, or belong to another sequence of the row.
static struct var allowed_by_data(struct trainer *t, struct var pairs)
{
    struct graph *g = &t->graph;
    uint64_t rows = job_rows(t->job), tokens = job_sequence_tokens(t->job);
    bool packed = t->job->batching == BATCHING_PACKED;
    struct scope f = scope_in(g);
    struct var allowed = local(&f, after(g, constant(g, pairs.elements, 1), pairs));
    struct var by_data = constant(g, rows * (packed ? tokens * tokens : tokens), 1);
    assign(&f, &allowed, after(g, constant(g, rows * tokens * tokens, 1), by_data));
    return returns(&f, allowed);
}

// blockwise_overlay: whether both are of one image.
static struct var of_one_image(struct graph *g, uint64_t rows, uint64_t tokens)
{
    struct scope f = scope_in(g);
    local(&f, made_of(g, constant(g, rows * tokens, 8))); // the images of queries
    local(&f, made_of(g, constant(g, rows * tokens, 8))); // and of keys
    struct var equal = constant(g, rows * tokens * tokens, 1);
    struct var of_any = constant(g, rows * tokens, 1);
    return returns(&f, after_two(g, constant(g, rows * tokens * tokens, 1), equal, of_any));
}

// modeling_gemma3.py, create_masks_for_vision_model: causal or of one image, and in the window.
static struct var allowed_by_images(struct trainer *t, bool sliding)
{
    struct graph *g = &t->graph;
    uint64_t rows = job_rows(t->job), tokens = job_sequence_tokens(t->job);
    uint64_t pairs = tokens * tokens;
    struct var causal = constant(g, pairs, 1);
    struct var allowed = after(g, constant(g, pairs, 1), causal);
    struct var within = of_one_image(g, rows, tokens);
    allowed = after_two(g, constant(g, rows * pairs, 1), within, allowed);
    if (!sliding)
        return allowed;
    allowed = after(g, constant(g, rows * pairs, 1), allowed);
    struct var bound = constant(g, tokens, 8);
    struct var near = after(g, constant(g, pairs, 1), bound);
    return after_two(g, constant(g, rows * pairs, 1), near, allowed);
}

// TRL's collators hand a mask of every row to the model (trl 1.16, trainer/sft_trainer.py and the
// others). What windows ask for is joined with it also where it lets all tokens through
// (masking_utils.py, sdpa_mask); only a causal mask by itself is then left out.
static bool is_joined_with_data(const struct job *p)
{
    bool handed = p->recipe == RECIPE_TRL && p->batching != BATCHING_PACKED && p->ring == 1;
    return job_masks_rows(p) || job_has_uneven_rows(p) || handed;
}

static struct var boolean_mask(struct trainer *t, bool sliding)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_sequence_tokens(t->job);
    struct scope f = scope_in(g);
    local(&f, made_of(g, constant(g, tokens, 8))); // queries
    local(&f, made_of(g, constant(g, tokens, 8))); // keys
    if (has_pictures(t) && model_has(&t->job->model, FEATURE_VISION_SIGLIP))
        return returns(&f, allowed_by_images(t, sliding));
    struct var pairs = allowed_pairs(g, tokens, sliding);
    return returns(&f, is_joined_with_data(t->job) ? allowed_by_data(t, pairs) : pairs);
}

// Zeros and the least number for each row, to be added to the scores (eager_mask).
static struct var additive_mask(struct trainer *t, bool sliding)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_sequence_tokens(t->job);
    struct var pairs = boolean_mask(t, sliding);
    return after(g, constant(g, job_rows(t->job) * tokens * tokens, t->width), pairs);
}

// transformers 4.46 and 4.48, modeling_llama.py:
// _prepare_4d_causal_attention_mask_with_cache_position, in the embeddings' type: filled, its upper
// half, times what comes later, a copy for each row, and what is padded filled in.
static struct var padded_numbers(struct trainer *t)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_sequence_tokens(t->job), pairs = tokens * tokens;
    uint64_t all = job_rows(t->job) * pairs;
    struct scope f = scope_in(g);
    struct var mask = local(&f, constant(g, pairs, t->width));
    assign(&f, &mask, constant(g, pairs, t->width));
    struct var places = constant(g, tokens, 8);
    struct var later = after(g, constant(g, pairs, 1), places);
    var_drop(g, &later);
    assign(&f, &mask, constant(g, all, t->width));
    struct var sums = constant(g, all, t->width);
    local(&f, after(g, constant(g, all, 1), sums)); // padding_mask
    struct var filled = constant(g, all, t->width);
    var_drop(g, &filled);
    return returns(&f, mask);
}

// And modeling_attn_mask_utils.py, _unmask_unattended: times whether a query attends to anything.
static struct var mask_of_numbers(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    struct var mask = local(&f, padded_numbers(t));
    uint64_t queries = mask.elements / job_sequence_tokens(t->job);
    struct var least = constant(g, mask.elements, 1);
    struct var none = after(g, constant(g, queries, 1), least);
    struct var some = after(g, constant(g, queries, 1), none);
    return returns(&f, after(g, constant(g, mask.elements, t->width), some));
}

// modeling_falcon.py, build_alibi_tensor: places of keys times a slope a head. It has a name until
// the model returns.
static struct var places_by_slope(struct trainer *t)
{
    struct graph *g = &t->graph;
    uint64_t tokens = job_tokens(t->job), heads = t->job->model.heads;
    struct scope f = scope_in(g);
    local(&f, constant(g, tokens, 8)); // ones
    local(&f, constant(g, 1, 4));
    local(&f, constant(g, heads, 4));
    local(&f, constant(g, heads, 4)); // slopes
    struct var places = local(&f, constant(g, tokens, 8));
    assign(&f, &places, constant(g, tokens, 8));
    assign(&f, &places, constant(g, tokens, 8));
    struct var slopes = constant(g, heads, 2);
    struct var biases = after(g, constant(g, heads * tokens, 2), slopes);
    return returns(&f, cast(g, biases, t->width));
}

// And its forward: added up with what a query may not see.
static void make_mask_of_biases(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct var biases = places_by_slope(t);
    struct scope f = scope_in(g);
    struct var numbers = local(&f, additive_mask(t, false));
    struct var divided = constant(g, biases.elements, t->width);
    struct var least = constant(g, numbers.elements, 1);
    struct var filled = constant(g, t->job->model.heads * numbers.elements, t->width);
    t->arguments[LAYER_FULL].mask = taken(after_two(g, filled, divided, least));
    t->arguments[LAYER_SLIDING].mask = taken(biases); // no layer slides
    ends(&f);
}

// modeling_mpt.py: booleans of those numbers.
static struct var unwanted_pairs(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct var numbers = additive_mask(t, false);
    return after(g, constant(g, numbers.elements, 1), numbers);
}

// transformers 4 has one mask for all layers.
static bool needs_full_mask(const struct job *p)
{
    bool some = model_sliding_layers(&p->model) < p->model.layers || job_repeats_heads(p);
    return (some && job_masks_rows(p)) || job_masks_always(p);
}

// masking_utils.py, _ignore_causal_mask_sdpa: where rows differ nothing is left out, however short
// they are beside the window.
static bool needs_sliding_mask(const struct job *p)
{
    bool rows = p->model.sliding_window && job_masks_rows(p) && !job_repeats_heads(p);
    return job_masks_windows(p) || rows;
}

// modeling_mistral.py and others where every layer has the window make the one mask that all take;
// modeling_ministral.py asks each layer, and makes both.
static bool makes_full_numbers(const struct model *m)
{
    bool all = m->sliding_window && m->family->window == WINDOW_ALL;
    return !all || str_is(str_from(m->family->model_type), "ministral");
}

void make_masks(struct trainer *t)
{
    const struct model *m = &t->job->model;
    bool eager = job_attends_eagerly(t->job);
    if (t->job->batching == BATCHING_PACKED && job_masks_rows(t->job))
        machine_host(t->machine, machine_rates(t->machine)->new_shape);
    if (eager && model_has(m, FEATURE_SCORES_BIASED))
        t->arguments[LAYER_FULL].mask = taken(unwanted_pairs(t));
    else if (eager && makes_full_numbers(m))
        t->arguments[LAYER_FULL].mask = taken(additive_mask(t, false));
    if (eager && m->sliding_window)
        t->arguments[LAYER_SLIDING].mask = taken(additive_mask(t, true));
    if (model_has(m, FEATURE_KEYS_BIASED))
        make_mask_of_biases(t);
    else if (needs_full_mask(t->job))
        t->arguments[LAYER_FULL].mask =
            taken(job_repeats_heads(t->job) ? mask_of_numbers(t) : boolean_mask(t, false));
    if (!eager && model_has(m, FEATURE_IDLE_MASK) && !m->sliding_window &&
        t->job->attention != ATTENTION_FLASH2)
        t->arguments[LAYER_SLIDING].mask = taken(boolean_mask(t, true));
    if (!eager && needs_sliding_mask(t->job))
        t->arguments[LAYER_SLIDING].mask = taken(boolean_mask(t, true));
}

void drop_masks(struct trainer *t)
{
    for (int i = 0; i < LAYER_KINDS; i++)
        var_drop(&t->graph, &t->arguments[i].mask);
    t->graph.shared_arguments[ARGUMENT_MASK].storage = NULL;
}

// ------------------------------------------------------------------ attention

struct var repeat_heads(struct graph *g, struct var x, uint64_t elements)
{
    const struct trainer *t = g->owner;
    bool one = t->job->model.kv_heads == 1 && elements != x.elements;
    return (one ? expand : repeat)(g, x, elements);
}

// Tokens that a row's queries see, with those that were read before.
static uint64_t seen_tokens(const struct trainer *t)
{
    return job_sequence_tokens(t->job) + (t->cache ? t->cache->tokens : 0);
}

// Elements of keys or values once every head of queries has its own.
uint64_t repeated_elements(const struct model *m, struct var x)
{
    return x.elements / m->kv_heads * m->heads;
}

// Sequences and heads become one dimension, which takes a copy where they do not lie together.
static struct var flattened(struct graph *g, struct var x, bool apart)
{
    return apart ? copy(g, x) : same(x);
}

// Products run in bf16 under autocast.
static struct var narrowed(struct graph *g, struct var x)
{
    return cast(g, x, g->autocast ? 2 : x.width);
}

static struct var scores_of(struct graph *g, struct var q, struct var k, const struct trainer *t)
{
    const struct model *m = &t->job->model;
    bool several = job_rows(t->job) > 1, shared = m->heads != m->kv_heads;
    uint64_t pairs = q.elements / m->head_dim * seen_tokens(t);
    struct scope f = scope_in(g);
    struct var k_low = local(&f, narrowed(g, k)), q_low = local(&f, narrowed(g, q));
    struct var q_flat = flattened(g, q_low, several);
    struct var k_flat = flattened(g, k_low, several && !shared);
    struct var scores = returns(&f, product(g, q_flat, k_flat, pairs, m->head_dim));
    scores = scale(g, scores);
    return model_has(m, FEATURE_ATTENTION_CAP) ? cap(g, scores) : scores;
}

// Masked scores to weights: softmax in fp32, then the queries' type.
static struct var weights_of(struct graph *g, struct var scores, struct var mask, uint32_t width)
{
    struct scope f = scope_in(g);
    struct var masked = local(&f, add_mask(g, scores, mask));
    return returns(&f, cast(g, softmax(g, cast(g, masked, 4)), width));
}

// A learned sink a head beside the scores of each query. What softmax is taken of keeps its name in
// the caller.
static struct var weights_with_sinks(struct scope *caller, struct var scores, struct var mask,
                                     int sinks)
{
    struct graph *g = caller->graph;
    const struct trainer *t = g->owner;
    uint64_t rows = scores.elements / seen_tokens(t);
    struct scope f = scope_in(g);
    struct var masked = local(&f, add_mask(g, scores, mask));
    struct var sink = expand(g, op_parameter(g, sinks), rows);
    struct var combined = local(caller, join(g, masked, sink));
    assign(caller, &combined, subtract(g, combined, max(g, combined, rows)));
    return returns(&f, slice(g, softmax(g, combined), masked.elements));
}

struct var eager_attention(struct graph *g, struct heads h, const struct layer_call *call,
                           struct var *weights)
{
    const struct trainer *t = call->trainer;
    const struct model *m = &t->job->model;
    bool several = job_rows(t->job) > 1, shared = m->heads != m->kv_heads;
    struct scope f = scope_in(g);
    struct var k = local(&f, repeat_heads(g, h.k, repeated_elements(m, h.k)));
    struct var v = local(&f, repeat_heads(g, h.v, repeated_elements(m, h.v)));
    struct var scores = scores_of(g, h.q, k, t);
    struct var mask = arguments_of(t, call->layer)->mask;
    int sinks = t->layers[call->layer].sinks;
    struct var named = local(&f, sinks < 0 ? weights_of(g, scores, mask, h.q.width)
                                           : weights_with_sinks(&f, scores, mask, sinks));
    if (m->dropouts.attention)
        assign(&f, &named, dropout(g, named));
    struct var v_flat = flattened(g, v, several && !shared);
    struct var mixed = product(g, narrowed(g, named), v_flat, h.q.elements, seen_tokens(t));
    *weights = same(named);
    return returns(&f, copy(g, several ? relayout(g, mixed) : mixed));
}

// ------------------------------------------------------------------ torch's math kernel

// torch 2.11, ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math, as its
// operators were seen: in fp32, on queries and keys that are scaled each, with a mask that it makes
// of booleans.
static struct var causal_numbers(struct graph *g, uint64_t pairs)
{
    struct var all = constant(g, pairs, 1);
    struct var lower = after(g, constant(g, pairs, 1), all);
    return after(g, constant(g, pairs, 4), lower);
}

// _safe_softmax: where a row is all masked, zeros are written into what softmax gave. A mask is
// added in place. (Under a dispatch mode neither is, as scripts/compare_operators.py sees it.)
static struct var safe_softmax(struct graph *g, struct var masked, uint64_t tokens)
{
    struct scope f = scope_in(g);
    struct var scores = local(&f, masked);
    struct var out = local(&f, softmax(g, scores));
    struct var least = constant(g, scores.elements, 1);
    local(&f, after(g, constant(g, scores.elements / tokens, 1), least));
    return returns(&f, out);
}

// One head as a factor of all: copied where there are several sequences.
static struct var for_all_heads(struct graph *g, struct var x, uint64_t elements)
{
    const struct trainer *t = g->owner;
    if (x.elements == elements)
        return same(x);
    return (job_rows(t->job) > 1 ? repeat : expand)(g, x, elements);
}

// A mask that the model gives is made numbers before anything else; then keys of one head are
// scaled before all see them. A single query sees all.
struct var math_attention(struct graph *g, struct heads h, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct model *m = &t->job->model;
    uint64_t tokens = job_sequence_tokens(t->job), seen = seen_tokens(t);
    uint64_t pairs = h.q.elements / m->head_dim * seen, all = repeated_elements(m, h.k);
    bool several = job_rows(t->job) > 1, given = job_masks_always(t->job);
    struct scope f = scope_in(g);
    struct var mask = local(&f, (struct var){NULL, NO_NODE, 0, 0});
    if (given)
        assign(&f, &mask,
               constant(g, job_rows(t->job) * tokens * seen, g->autocast ? 2 : h.q.width));
    struct var v_low = local(&f, narrowed(g, h.v)), k_low = local(&f, narrowed(g, h.k));
    struct var q_low = local(&f, narrowed(g, h.q));
    struct var q = local(&f, cast(g, q_low, 4)), k = local(&f, cast(g, k_low, 4));
    struct var v = local(&f, cast(g, v_low, 4)), q_scaled = local(&f, scale(g, q));
    struct var k_scaled = local(&f, given ? scale(g, k) : same(k));
    if (!given && (tokens > 1 || !t->cache))
        assign(&f, &mask, causal_numbers(g, tokens * tokens));
    struct var k_all = local(&f, given ? same(k_scaled) : repeat_heads(g, k_scaled, all));
    struct var v_all = local(&f, given ? same(v) : repeat_heads(g, v, all));
    struct var q_flat = flattened(g, q_scaled, several);
    struct var k_flat = given ? for_all_heads(g, k_all, all) : scale(g, k_all);
    struct var scores = product(g, q_flat, k_flat, pairs, m->head_dim);
    struct var masked = mask.storage ? add_in_place(g, scores, mask) : scores;
    struct var weights = local(&f, safe_softmax(g, masked, seen));
    if (q_low.width != 4)
        local(&f, constant(g, pairs, q_low.width)); // handed out, and used by nobody
    struct var v_flat = for_all_heads(g, v_all, all);
    struct var mixed = product(g, weights, v_flat, q.elements, seen);
    return returns(&f, cast(g, several ? relayout(g, mixed) : mixed, q_low.width));
}
