// Mixtures of experts and latent attention as Megatron-LM runs them (core 0.13, 23e00ed):
// core/transformer/moe with the alltoall dispatcher, fused permutations and grouped products, and
// core/transformer/multi_latent_attention.py.
#include "core/base/units.h"
#include "core/ops/engine.h"
#include "core/ops/operation.h"

// ------------------------------------------------------------------ the router

struct routed {
    int weight;
};

// moe_utils.py, RouterGatingLinearFunction: the gradient of its weight is autograd's own, and added
// to the buffer by the weight's hook.
static void route_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct parameter *p = &g->parameters[NODE_DETAIL(n, struct routed)->weight];
    struct storage *logits = take_working(g, gradient_bytes(n));
    out[0].gradient = make_working(g, n->input_bytes[0], gradient_bytes(n));
    machine_scratch(g->machine, p->rows * p->columns * p->width);
    machine_drop(g->machine, logits);
}

static const struct operation routed = {KERNELS_TOP, route_backward};

// What autograd keeps of topk_routing_with_score_function and of the loss that balances experts:
// the scores in fp32 twice, the chosen ones and where they are, and maps of all.
struct var op_route(struct graph *g, struct var x, int weight, uint64_t chosen)
{
    const struct parameter *p = &g->parameters[weight];
    struct node *n = graph_add(g, &routed);
    uint64_t tokens = x.elements / p->columns, all = tokens * p->rows;
    struct var logits = graph_output(g, NULL, all, x.width);
    multiplies(g, (struct product_shape){tokens, p->rows, p->columns, 1, x.width});
    struct var scores = graph_output(g, NULL, all, 4),
               places = graph_output(g, NULL, tokens * chosen, 8);
    struct var balanced = graph_output(g, NULL, all, 4), map = graph_output(g, NULL, all, 1);
    struct var chances = graph_output(g, n, all, x.width);
    moves(g, 8 * var_bytes(scores));
    graph_keep(g, n, x.storage);
    graph_keep(g, n, scores.storage);
    graph_keep(g, n, balanced.storage);
    graph_keep(g, n, places.storage);
    graph_keep(g, n, map.storage);
    struct var *const done[] = {&logits, &scores, &places, &balanced, &map};
    for (int i = 0; i < COUNT_OF(done); i++)
        var_drop(g, done[i]);
    node_input(n, 0, x);
    if (n)
        NODE_DETAIL(n, struct routed)->weight = weight;
    return chances;
}

// ------------------------------------------------------------------ permutations

// The gradient of the chances, in their type.
static void permute_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = make_working(g, n->input_bytes[0], gradient_bytes(n));
    out[1].gradient = take_working(g, n->input_bytes[1]);
}

static const struct operation permuted = {KERNELS_INDEX, permute_backward};

struct var op_permute(struct graph *g, struct var x, struct var chances, uint64_t chosen)
{
    enum { PLACES = 2, PLACE_BYTES = 4 }; // of each expert: row_id_map
    struct node *n = graph_add(g, &permuted);
    struct var map = graph_output(g, NULL, PLACES * chances.elements, PLACE_BYTES);
    struct var out = graph_output(g, n, x.elements * chosen, x.width);
    moves(g, var_bytes(x) + var_bytes(out));
    graph_keep(g, n, map.storage);
    var_drop(g, &map);
    node_input(n, 0, x);
    node_input(n, 1, chances);
    return out;
}

static const struct operation unpermuted = {KERNELS_SCATTER, gradient_like_input};

struct var op_unpermute(struct graph *g, struct var x, uint64_t chosen)
{
    return op_unary(g, graph_add_for(g, &unpermuted, x), x, x.elements / chosen, x.width);
}

static const struct operation reordered = {KERNELS_COPY_LAYOUT, gradient_like_input};

struct var op_reorder(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, &reordered, x), x, x.elements, x.width);
}

struct dealt {
    uint64_t ranks;
};

static void deal_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t ranks = NODE_DETAIL(n, struct dealt)->ranks;
    out[0].gradient = take_working(g, n->input_bytes[0]);
    struct ranks_apart those = {ranks, g->engine->expert_ranks};
    machine_collect_in(g->machine, those, ALL_TO_ALL, n->input_bytes[0]);
}

static const struct operation dealt = {KERNELS_ALL_TO_ALL, deal_backward};

struct var op_deal_out(struct graph *g, struct var x, uint64_t ranks)
{
    if (ranks == 1)
        return var_share(x);
    struct node *n = graph_add_for(g, &dealt, x);
    if (n)
        NODE_DETAIL(n, struct dealt)->ranks = ranks;
    node_input(n, 0, x);
    struct var out = graph_output(g, n, x.elements, x.width);
    struct ranks_apart those = {ranks, g->engine->expert_ranks};
    if (!g->stopped)
        machine_collect_in(g->machine, those, ALL_TO_ALL, var_bytes(x));
    return out;
}

// ------------------------------------------------------------------ experts

struct grouped_linear {
    uint64_t rows;
    int weight;
    uint32_t count;
};

// cpp_extensions/gemm.py, get_cublas_workspace: one for each of its four streams.
static void grouped_workspaces(struct graph *g)
{
    enum { STREAMS = 4 };
    struct engine *e = g->engine;
    if (e->has_grouped_workspaces || g->stopped)
        return;
    e->has_grouped_workspaces = true;
    for (int i = 0; i < STREAMS; i++)
        machine_take(g->machine, e->workspace_bytes, MEMORY_WORKSPACE);
}

// A product of cuBLAS for each expert, on four streams, which together fill the card.
static void grouped_multiply(struct graph *g, const struct grouped_linear *d, bool of_weight)
{
    const struct parameter *p = &g->parameters[d->weight];
    uint64_t rows = d->rows / d->count;
    struct product_shape shape = {rows, p->rows, p->columns, d->count, p->width};
    if (of_weight)
        shape = (struct product_shape){.rows = p->rows,
                                       .columns = p->columns,
                                       .depth = rows,
                                       .count = d->count,
                                       .width = p->width,
                                       .added = true};
    grouped_workspaces(g);
    if (!g->stopped)
        machine_host(g->machine, (d->count - 1) * machine_rates(g->machine)->launch);
    multiplies(g, shape);
}

static void grouped_linear_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct grouped_linear d = *NODE_DETAIL(n, struct grouped_linear);
    out[0].gradient = take_working(g, n->input_bytes[0]);
    grouped_multiply(g, &d, false);
    grouped_multiply(g, &d, true);
    engine_dummy_gradient(g, d.weight);
}

static const struct operation grouped_linear = {KERNELS_GROUPED_PRODUCT, grouped_linear_backward};

struct var op_grouped_linear(struct graph *g, struct var x, int weight, uint64_t count)
{
    graph_at_module(g, weight, &grouped_linear, MOMENT_FORWARD);
    const struct parameter *p = &g->parameters[weight];
    struct node *n = graph_add(g, &grouped_linear);
    const struct grouped_linear d = {x.elements / p->columns, weight, (uint32_t)count};
    struct var out = graph_output(g, n, d.rows * p->rows, x.width);
    grouped_multiply(g, &d, false);
    graph_keep(g, n, x.storage);
    node_input(n, 0, x);
    if (n)
        *NODE_DETAIL(n, struct grouped_linear) = d;
    graph_at_module(g, weight, &grouped_linear, MOMENT_FORWARD_DONE);
    return out;
}

static const struct operation weighed_gate = {KERNELS_LIGER_GATE, gradient_like_input};

struct var op_weighed_gate(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &weighed_gate, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, x.elements / 2, x.width);
}

// ------------------------------------------------------------------ latent attention

// The values' gradient waits for the keys'.
struct latent_keys {
    struct storage *values;
};

struct latent_node {
    struct latent_keys *keys;
};

static void values_backward(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    (void)out;
    NODE_DETAIL(n, struct latent_node)->keys->values = storage_share(n->gradient);
}

static void keys_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct latent_keys *k = NODE_DETAIL(n, struct latent_node)->keys;
    for (int i = 0; i < 2; i++)
        out[i].gradient = make_working(g, n->input_bytes[i], n->input_bytes[i]);
    machine_drop(g->machine, k->values);
}

static const struct operation latent_keys = {KERNELS_LIGER_TURN, keys_backward};
static const struct operation latent_values = {KERNELS_LIGER_TURN, values_backward};

struct var op_latent_keys(struct graph *g, struct var both, struct var turning, uint64_t elements,
                          struct var *values)
{
    struct latent_keys *shared = NEW(g->machine->arena, struct latent_keys, 1);
    struct node *n = graph_add(g, &latent_keys);
    struct var keys = graph_output(g, n, elements, both.width);
    node_input(n, 0, both);
    node_input(n, 1, turning);
    if (n)
        NODE_DETAIL(n, struct latent_node)->keys = shared;
    struct node *v = graph_add(g, &latent_values);
    *values = graph_output(g, v, values->elements, both.width);
    if (v)
        NODE_DETAIL(v, struct latent_node)->keys = shared;
    moves(g, var_bytes(both) + var_bytes(keys) + var_bytes(*values));
    return keys;
}

static void gather_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take_working(g, n->input_bytes[0]);
    machine_collect(g->machine, STREAM_COMPUTE, REDUCE_SCATTER, g->engine->ranks,
                    gradient_bytes(n));
}

static const struct operation gathered = {KERNELS_EXCHANGE_IN, gather_backward};

struct var op_gather_tokens(struct graph *g, struct var x)
{
    uint64_t ranks = g->engine->ranks;
    if (ranks == 1)
        return var_share(x);
    struct node *n = graph_add_for(g, &gathered, x);
    node_input(n, 0, x);
    struct var out = graph_output(g, n, x.elements * ranks, x.width);
    if (!g->stopped)
        machine_collect(g->machine, STREAM_COMPUTE, GATHER, ranks, var_bytes(out));
    return out;
}

static void scatter_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take_working(g, n->input_bytes[0]);
    machine_collect(g->machine, STREAM_COMPUTE, GATHER, g->engine->ranks, n->input_bytes[0]);
}

static const struct operation scattered = {KERNELS_EXCHANGE_OUT, scatter_backward};

struct var op_scatter_tokens(struct graph *g, struct var x)
{
    uint64_t ranks = g->engine->ranks;
    struct node *n = graph_add_for(g, &scattered, x);
    node_input(n, 0, x);
    struct var out = graph_output(g, n, x.elements / ranks, x.width);
    if (!g->stopped)
        machine_collect(g->machine, STREAM_COMPUTE, REDUCE_SCATTER, ranks, var_bytes(x));
    return out;
}
