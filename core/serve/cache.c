// The cache of keys and values: what a token takes in the layers of one GPU, how layers that differ
// share a pool, and how many tokens and sequences that is. vLLM: v1/core/kv_cache_utils.py and
// v1/kv_cache_interface.py; SGLang: model_executor/pool_configurator.py.
#include "core/base/num.h"
#include "core/serve/serve.h"

enum { VLLM_BLOCK = 16 };

// Before, a window saves nothing: every layer has blocks for all tokens.
static const uint64_t VLLM_GROUPS = SERVER_VERSION(9, 2);
static const uint64_t SGLANG_WINDOW_POOL = SERVER_VERSION(5, 0);

// Since then "GPU KV cache size" is how many sequences fit times their length.
static const uint64_t VLLM_COUNTS_SEQUENCES = SERVER_VERSION(20, 1);

// SGLang: tokens of the pool with windows to those of the other (swa_full_tokens_ratio), and memory
// of states to that of keys and values (mamba_full_memory_ratio).
enum { WINDOW_TENTHS = 8, STATE_TENTHS = 9 };

struct layer_counts {
    uint64_t full, windowed, linear;
};

// Of the largest stage, which is as large as any.
static struct layer_counts count_layers(const struct serve_request *r)
{
    struct layer_counts n = {0};
    uint64_t groups_since = r->server == SERVER_VLLM ? VLLM_GROUPS : SGLANG_WINDOW_POOL;
    uint64_t end = u64_divide_up(r->model->layers, r->pp);
    for (uint64_t i = 0; i < end; i++) {
        const struct layer_kind *k = &r->model->layer[i];
        bool windowed = k->sliding && r->model->sliding_window && r->version >= groups_since;
        n.linear += k->linear;
        n.windowed += !k->linear && windowed;
        n.full += !k->linear && !windowed;
    }
    return n;
}

// Keys and values of a token in one layer. A latent is one vector that no GPU divides.
static uint64_t token_of_layer(const struct serve_request *r)
{
    const struct model *m = r->model;
    if (model_has(m, FEATURE_MLA))
        return (m->latent.kv_rank + m->latent.rope_head_dim) * r->cache_bytes;
    return 2 * u64_most(m->kv_heads / r->tp, 1) * m->head_dim * r->cache_bytes;
}

// A gated delta net's state of a sequence: the last inputs of its convolution, and a matrix a head.
static uint64_t state_of_layer(const struct serve_request *r)
{
    const struct delta_net *d = &r->model->delta;
    uint64_t mixed =
        (2 * d->key_heads * d->key_head_dim + d->value_heads * d->value_head_dim) / r->tp;
    uint64_t matrices = d->value_heads / r->tp * d->key_head_dim * d->value_head_dim;
    return sat_mul(sat_add(mixed * (d->kernel ? d->kernel - 1 : 0), matrices), r->element_bytes);
}

static uint64_t group_size_of(const struct layer_counts *n)
{
    const uint64_t counts[] = {n->full, n->windowed, n->linear};
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < COUNT_OF(counts); i++) {
        least = counts[i] ? u64_least(least, counts[i]) : least;
        most = u64_most(most, counts[i]);
    }
    return 2 * most < 3 * least ? most : least;
}

struct cache_layout cache_layout_of(const struct serve_request *r)
{
    struct layer_counts n = count_layers(r);
    uint64_t token = token_of_layer(r), size = group_size_of(&n);
    struct cache_layout l = {.block = VLLM_BLOCK};
    if (n.linear) // a block of attention has room for a state
        l.block = u64_align_up(u64_divide_up(state_of_layer(r), token), VLLM_BLOCK);
    l.block_bytes = sat_mul(sat_mul(l.block, token), size);
    l.full_groups = u64_divide_up(n.full, size);
    l.state_groups = u64_divide_up(n.linear, size);
    l.groups = l.full_groups + l.state_groups + u64_divide_up(n.windowed, size);
    l.token_bytes = token * n.full + token * n.windowed * WINDOW_TENTHS / 10;
    if (!n.full)
        l.token_bytes = token * n.windowed;
    l.state_bytes = n.linear ? sat_mul(n.linear, state_of_layer(r)) : 0;
    l.is_hybrid = l.groups > 1;
    l.windowed = n.windowed > 0;
    return l;
}

// Blocks that a sequence takes at most, over all groups.
static uint64_t blocks_of(const struct serve_request *r, const struct cache_layout *l,
                          uint64_t context)
{
    uint64_t windowed = l->groups - l->full_groups - l->state_groups;
    uint64_t held = u64_least(context, sat_add(r->model->sliding_window, r->batch_tokens) - 1);
    uint64_t all = u64_divide_up(context, l->block);
    return l->full_groups * all + l->state_groups +
           windowed * (u64_divide_up(u64_most(held, 1), l->block) + 1);
}

static uint64_t longest_in_blocks(const struct serve_request *r, const struct cache_layout *l,
                                  uint64_t blocks)
{
    uint64_t low = 0, high = u64_most(r->model->max_position, r->context);
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (blocks_of(r, l, middle) <= blocks)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static struct cache_answer vllm_answer(const struct serve_request *r, const struct cache_layout *l,
                                       uint64_t bytes)
{
    uint64_t blocks = l->block_bytes ? bytes / l->block_bytes : 0;
    uint64_t each = u64_most(blocks_of(r, l, r->context), 1);
    struct cache_answer c = {.sequences = blocks / each, .one = sat_mul(each, l->block_bytes)};
    c.tokens = sat_mul(blocks, l->block) / u64_most(l->groups, 1);
    if (l->is_hybrid && r->version >= VLLM_COUNTS_SEQUENCES)
        c.tokens = sat_mul(blocks, r->context) / each;
    c.longest = longest_in_blocks(r, l, blocks);
    return c;
}

static struct cache_answer sglang_answer(const struct serve_request *r,
                                         const struct cache_layout *l, uint64_t bytes)
{
    uint64_t states = l->state_bytes ? bytes / (10 + STATE_TENTHS) * STATE_TENTHS : 0;
    struct cache_answer c = {.tokens = l->token_bytes ? (bytes - states) / l->token_bytes : 0};
    if (r->most_tokens)
        c.tokens = u64_least(c.tokens, r->most_tokens);
    c.sequences = c.tokens / u64_most(r->context, 1);
    if (l->state_bytes)
        c.sequences = u64_least(c.sequences, states / l->state_bytes);
    c.one = sat_add(sat_mul(r->context, l->token_bytes), l->state_bytes);
    c.longest = u64_least(c.tokens, u64_most(r->model->max_position, r->context));
    return c;
}

struct cache_answer cache_answer_of(const struct serve_request *r, const struct cache_layout *l,
                                    uint64_t bytes)
{
    return r->server == SERVER_VLLM ? vllm_answer(r, l, bytes) : sglang_answer(r, l, bytes);
}
