// See engine.h. What is kept until a module returns goes in the order in which Python drops it.
#include "core/ops/engine.h"

#include "core/ops/operation.h"

static struct engine *engine_of(const struct graph *g)
{
    ASSERT(g->engine);
    return g->engine;
}

static bool is_spread(const struct graph *g)
{
    return engine_of(g)->ranks > 1;
}

static void collects(struct graph *g, enum collective kind, uint64_t bytes)
{
    if (!g->stopped)
        machine_collect(g->machine, STREAM_COMPUTE, kind, engine_of(g)->ranks, bytes);
}

// cpp_extensions/gemm.py, get_cublas_workspace: one for the process.
static void engine_workspace(struct graph *g)
{
    struct engine *e = engine_of(g);
    if (e->has_workspace || g->stopped)
        return;
    e->has_workspace = true;
    machine_take(g->machine, e->workspace_bytes, MEMORY_WORKSPACE);
}

void engine_dummy_gradient(struct graph *g, int weight)
{
    struct engine *e = engine_of(g);
    const struct parameter *p = &g->parameters[weight];
    for (int i = 0; i < e->shape_count; i++)
        if (e->shapes[i].rows == p->rows && e->shapes[i].columns == p->columns)
            return;
    ASSERT(e->shape_count < ENGINE_SHAPES);
    e->shapes[e->shape_count++] = (struct engine_shape){p->rows, p->columns};
    machine_take(g->machine, p->rows * p->columns * p->width, MEMORY_GRADIENTS);
}

static void multiplied(struct graph *g, uint64_t rows, const struct parameter *p)
{
    engine_workspace(g);
    multiplies(g, (struct product_shape){rows, p->rows, p->columns, 1, p->width});
}

// The gradient of a weight: the product adds to its place in the buffer
// (fuse_wgrad_accumulation).
static void multiplied_into_buffer(struct graph *g, uint64_t rows, const struct parameter *p)
{
    multiplies(g, (struct product_shape){.rows = p->rows,
                                         .columns = p->columns,
                                         .depth = rows,
                                         .count = 1,
                                         .width = p->width,
                                         .added = true});
}

// What TransformerEngine and Megatron hand to NCCL and wait for after the next product.
enum { BESIDE = FIRST_SIDE_STREAM + 1 };

static void collects_beside(struct graph *g, enum collective kind, uint64_t bytes)
{
    machine_follow(g->machine, BESIDE, STREAM_COMPUTE);
    machine_collect(g->machine, BESIDE, kind, engine_of(g)->ranks, bytes);
}

static void awaits_beside(struct graph *g)
{
    machine_follow(g->machine, STREAM_COMPUTE, BESIDE);
}

// A parameter's own gradient is added to its place in the buffer as soon as it is there
// (core/distributed/distributed_data_parallel.py, the hook of each parameter).
static void add_to_buffer(struct graph *g, struct storage *gradient)
{
    machine_move(g->machine, 5 * gradient->bytes);
    machine_drop(g->machine, gradient);
}

// ------------------------------------------------------------------ linear layers

struct cut_linear {
    uint64_t rows; // of the product, over all ranks
    int weight, norm;
    enum cut_by cut;
};

static bool gathers_input(const struct graph *g, enum cut_by cut)
{
    return is_spread(g) && cut == CUT_BY_COLUMNS;
}

static bool scatters_output(const struct graph *g, enum cut_by cut)
{
    return is_spread(g) && cut == CUT_BY_ROWS;
}

// `bytes` of this rank, of all.
static struct storage *gathered(struct graph *g, uint64_t bytes)
{
    uint64_t all = bytes * engine_of(g)->ranks;
    struct storage *s = take_working(g, all);
    collects(g, GATHER, all);
    return s;
}

static void norm_gradient(struct graph *g, struct node *n, int norm, struct outcome *out)
{
    const struct parameter *p = &g->parameters[norm];
    out[0].gradient = make_working(g, n->input_bytes[0], 2 * n->input_bytes[0]);
    add_to_buffer(g, machine_take(g->machine, p->rows * p->width, MEMORY_GRADIENTS));
}

// The gathered input, the gradient of all of it and this rank's part of that one. The input is
// gathered while the product for its gradient runs, and that is summed while the weight's does
// (TransformerEngine 2.11, module/layernorm_linear.py, ln_out_total_work and dgrad_work).
static void linear_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct cut_linear d = *NODE_DETAIL(n, struct cut_linear);
    const struct parameter *p = &g->parameters[d.weight];
    struct machine *m = g->machine;
    bool gathers = gathers_input(g, d.cut), has_norm = d.norm >= 0;
    struct storage *came = scatters_output(g, d.cut) ? gathered(g, gradient_bytes(n)) : NULL;
    uint64_t ranks = gathers ? engine_of(g)->ranks : 1, all = n->input_bytes[0] * ranks;
    struct storage *input = gathers ? take_working(g, all) : NULL;
    if (gathers)
        collects_beside(g, GATHER, all);
    struct storage *whole = take_working(g, all), *part = NULL;
    multiplies(g, (struct product_shape){d.rows, p->columns, p->rows, 1, p->width});
    if (gathers) {
        part = take_working(g, n->input_bytes[0]);
        awaits_beside(g);
        collects_beside(g, REDUCE_SCATTER, all);
    }
    multiplied_into_buffer(g, d.rows, p);
    awaits_beside(g);
    machine_drop(m, input);
    machine_drop(m, came);
    if (has_norm)
        norm_gradient(g, n, d.norm, out);
    else
        out[0].gradient = storage_share(part ? part : whole);
    engine_dummy_gradient(g, d.weight);
    machine_drop(m, part);
    machine_drop(m, whole);
}

static const struct operation cut_linear = {KERNELS_LINEAR, linear_backward};

// The product, which its ranks sum where it is cut by rows.
static struct var product_of(struct graph *g, struct node *n, uint64_t rows,
                             const struct cut_linear *d)
{
    const struct parameter *p = &g->parameters[d->weight];
    bool scatters = scatters_output(g, d->cut);
    struct var out = graph_output(g, scatters ? NULL : n, rows * p->rows, p->width);
    multiplied(g, rows, p);
    if (!scatters)
        return out;
    struct var part = graph_output(g, n, out.elements / engine_of(g)->ranks, p->width);
    collects(g, REDUCE_SCATTER, var_bytes(out));
    var_drop(g, &out);
    return part;
}

struct var op_cut_linear(struct graph *g, struct var x, int weight, enum cut_by cut)
{
    graph_at_module(g, weight, &cut_linear, MOMENT_FORWARD);
    const struct parameter *p = &g->parameters[weight];
    struct node *n = graph_add(g, &cut_linear);
    struct storage *all = gathers_input(g, cut) && !g->stopped ? gathered(g, var_bytes(x)) : NULL;
    uint64_t rows = x.elements / p->columns * (gathers_input(g, cut) ? engine_of(g)->ranks : 1);
    const struct cut_linear d = {rows, weight, -1, cut};
    struct var out = product_of(g, n, rows, &d);
    machine_drop(g->machine, all);
    graph_keep(g, n, x.storage);
    node_input(n, 0, x);
    if (n)
        *NODE_DETAIL(n, struct cut_linear) = d;
    graph_at_module(g, weight, &cut_linear, MOMENT_FORWARD_DONE);
    return out;
}

struct var op_norm_linear(struct graph *g, struct var x, int norm, int weight)
{
    graph_at_module(g, weight, &cut_linear, MOMENT_FORWARD);
    const struct parameter *p = &g->parameters[weight];
    struct node *n = graph_add(g, &cut_linear);
    struct var normed = graph_output(g, NULL, x.elements, x.width);
    struct var spread = graph_output(g, NULL, x.elements / p->columns, 4); // of each row
    moves(g, 2 * var_bytes(x));
    struct storage *all = is_spread(g) && !g->stopped ? gathered(g, var_bytes(x)) : NULL;
    uint64_t rows = x.elements / p->columns * engine_of(g)->ranks;
    const struct cut_linear d = {rows, weight, norm, CUT_BY_COLUMNS};
    struct var out = product_of(g, n, rows, &d);
    machine_drop(g->machine, all);
    graph_keep(g, n, x.storage);
    graph_keep(g, n, normed.storage);
    graph_keep(g, n, spread.storage);
    var_drop(g, &normed);
    var_drop(g, &spread);
    node_input(n, 0, x);
    if (n)
        *NODE_DETAIL(n, struct cut_linear) = d;
    graph_at_module(g, weight, &cut_linear, MOMENT_FORWARD_DONE);
    return out;
}

// ------------------------------------------------------------------ norms, positions, gates

struct engine_norm {
    int norm;
};

static void engine_norm_backward(struct graph *g, struct node *n, struct outcome *out)
{
    norm_gradient(g, n, NODE_DETAIL(n, struct engine_norm)->norm, out);
}

static const struct operation engine_norm = {KERNELS_LAYER_NORM, engine_norm_backward};

struct var op_engine_norm(struct graph *g, struct var x, int norm)
{
    struct node *n = graph_add(g, &engine_norm);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    struct var spread = graph_output(g, NULL, x.elements / g->parameters[norm].rows, 4);
    graph_keep(g, n, x.storage);
    graph_keep(g, n, spread.storage);
    var_drop(g, &spread);
    if (n)
        NODE_DETAIL(n, struct engine_norm)->norm = norm;
    return out;
}

static const struct operation fused_turn = {KERNELS_LIGER_TURN, gradient_like_input};

struct var op_fused_turn(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, &fused_turn, x), x, x.elements, x.width);
}

static const struct operation fused_gate = {KERNELS_LIGER_GATE, gradient_like_input};

struct var op_fused_gate(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &fused_gate, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, x.elements / 2, x.width);
}

// ------------------------------------------------------------------ words and head

struct cut_embedding {
    uint64_t bytes; // of its output, over all ranks
    int weight;
};

// The words of other ranks' parts are zeros: their gradients are made so in a copy. The gradient of
// the words is whole, in the weight's type, until it has been added to the buffer.
static void cut_embedding_backward(struct graph *g, struct node *n, struct outcome *out)
{
    (void)out;
    const struct cut_embedding d = *NODE_DETAIL(n, struct cut_embedding);
    const struct parameter *p = &g->parameters[d.weight];
    struct storage *came = storage_share(n->gradient);
    if (is_spread(g)) {
        machine_drop(g->machine, came);
        struct storage *all = gathered(g, n->gradient->bytes);
        came = make_working(g, d.bytes, d.bytes);
        machine_drop(g->machine, all);
    }
    machine_move(g->machine, 3 * d.bytes);
    struct storage *words =
        machine_take(g->machine, p->rows * p->columns * p->width, MEMORY_GRADIENTS);
    machine_drop(g->machine, came);
    add_to_buffer(g, words);
}

static const struct operation cut_embedding = {KERNELS_EMBEDDING, cut_embedding_backward};

struct var op_cut_embedding(struct graph *g, int weight, struct var ids, uint64_t sequences)
{
    graph_at_module(g, weight, &cut_embedding, MOMENT_FORWARD);
    const struct parameter *p = &g->parameters[weight];
    struct node *n = graph_add(g, &cut_embedding);
    struct var theirs = {NULL, NO_NODE, 1, ids.elements}, own = var_share(ids);
    if (is_spread(g)) {
        theirs = graph_output(g, NULL, ids.elements, 1);
        var_drop(g, &own);
        own = graph_output(g, NULL, ids.elements, 8);
    }
    uint64_t elements = ids.elements * p->columns;
    struct var all = graph_output(g, NULL, elements, p->width);
    moves(g, 2 * var_bytes(all));
    if (sequences > 1) { // tokens come before sequences
        struct var turned = graph_output(g, NULL, elements, p->width);
        var_drop(g, &all);
        all = turned;
    }
    graph_keep(g, n, own.storage);
    graph_keep(g, n, theirs.storage);
    var_drop(g, &own);
    var_drop(g, &theirs);
    if (n)
        *NODE_DETAIL(n, struct cut_embedding) = (struct cut_embedding){var_bytes(all), weight};
    graph_at_module(g, weight, &cut_embedding, MOMENT_FORWARD_DONE);
    if (!is_spread(g))
        return node_view(g, n, all);
    struct var part = graph_output(g, n, elements / engine_of(g)->ranks, p->width);
    collects(g, REDUCE_SCATTER, var_bytes(all));
    var_drop(g, &all);
    return part;
}

// The head's gathered input is one tensor for the process, in forward and backward passes.
static void head_buffer(struct graph *g, uint64_t bytes)
{
    struct engine *e = engine_of(g);
    if (!is_spread(g))
        return;
    if (bytes > e->gathered_bytes) {
        machine_take(g->machine, bytes, MEMORY_WORKSPACE);
        e->gathered_bytes = bytes;
    }
}

static void cut_head_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct cut_linear d = *NODE_DETAIL(n, struct cut_linear);
    const struct parameter *p = &g->parameters[d.weight];
    uint64_t all = n->input_bytes[0] * engine_of(g)->ranks;
    head_buffer(g, all);
    if (is_spread(g))
        collects_beside(g, GATHER, all);
    struct storage *whole = take_working(g, all);
    gemm_workspace(g);
    multiplies(g, (struct product_shape){d.rows, p->columns, p->rows, 1, p->width});
    out[0].gradient = is_spread(g) ? take_working(g, n->input_bytes[0]) : storage_share(whole);
    awaits_beside(g);
    if (is_spread(g))
        collects_beside(g, REDUCE_SCATTER, all);
    multiplied_into_buffer(g, d.rows, p);
    awaits_beside(g);
    engine_dummy_gradient(g, d.weight);
    machine_drop(g->machine, whole);
}

static const struct operation cut_head = {KERNELS_LINEAR, cut_head_backward};

struct var op_cut_head(struct graph *g, struct var x, int weight)
{
    graph_at_module(g, weight, &cut_head, MOMENT_FORWARD);
    const struct parameter *p = &g->parameters[weight];
    struct node *n = graph_add(g, &cut_head);
    uint64_t rows = x.elements / p->columns * engine_of(g)->ranks;
    graph_keep(g, n, x.storage);
    head_buffer(g, rows * p->columns * x.width);
    collects(g, GATHER, rows * p->columns * x.width);
    struct var out = graph_output(g, n, rows * p->rows, x.width);
    gemm_workspace(g);
    multiplies(g, (struct product_shape){rows, p->rows, p->columns, 1, x.width});
    node_input(n, 0, x);
    if (n)
        *NODE_DETAIL(n, struct cut_linear) = (struct cut_linear){rows, weight, -1, CUT_BY_COLUMNS};
    graph_at_module(g, weight, &cut_head, MOMENT_FORWARD_DONE);
    return out;
}

// ------------------------------------------------------------------ cross entropy

// cross_entropy.py: the kernel wrote the gradient over the logits, which backward hands on.
static void engine_entropy_backward(struct graph *g, struct node *n, struct outcome *out)
{
    machine_scratch(g->machine, 4); // the number one, to compare with
    machine_move(g->machine, 2 * n->input_bytes[0]);
    out[0].gradient = storage_share(n->saved[0]);
}

static const struct operation engine_entropy = {KERNELS_TOKEN_LOSS, engine_entropy_backward};

struct var op_engine_entropy(struct graph *g, struct var logits, uint64_t tokens)
{
    struct node *n = graph_add_for(g, &engine_entropy, logits);
    struct var loss = graph_output(g, n, tokens, 4);
    struct var own = graph_output(g, NULL, 3 * tokens, 4); // maximum, sum, the label's logit
    struct var all = {NULL, NO_NODE, 4, 0};
    if (is_spread(g))
        all = graph_output(g, NULL, 3 * tokens * engine_of(g)->ranks, 4);
    collects(g, GATHER, var_bytes(all));
    moves(g, 3 * var_bytes(logits));
    graph_keep(g, n, logits.storage);
    var_drop(g, &own);
    var_drop(g, &all);
    node_input(n, 0, logits);
    return loss;
}

// In fp32 throughout: the exponentials that were kept become the gradient in place, which is cast
// to the logits' type on its way where that is another.
static void cut_entropy_backward(struct graph *g, struct node *n, struct outcome *out)
{
    machine_move(g->machine, 2 * n->saved[0]->bytes);
    out[0].gradient = storage_share(n->saved[0]);
    if (n->input_bytes[0] != n->saved[0]->bytes)
        out[0].cast_bytes = n->input_bytes[0];
}

static const struct operation cut_entropy = {KERNELS_LOG_SOFTMAX, cut_entropy_backward};

struct var op_cut_entropy(struct graph *g, struct var logits, uint64_t tokens)
{
    struct node *n = graph_add_for(g, &cut_entropy, logits);
    struct var wide = graph_output(g, NULL, logits.elements, 4);
    struct var most = graph_output(g, NULL, tokens, 4), mask = graph_output(g, NULL, tokens, 1);
    struct var labels = graph_output(g, NULL, tokens, 8), own = graph_output(g, NULL, tokens, 4);
    struct var sum = graph_output(g, NULL, tokens, 4);
    moves(g, 4 * var_bytes(wide));
    collects(g, ALL_REDUCE, 3 * var_bytes(most));
    struct var loss = graph_output(g, n, tokens, 4);
    graph_keep(g, n, wide.storage);
    graph_keep(g, n, mask.storage);
    graph_keep(g, n, labels.storage);
    struct var *const done[] = {&wide, &most, &mask, &labels, &own, &sum};
    for (int i = 0; i < COUNT_OF(done); i++)
        var_drop(g, done[i]);
    node_input(n, 0, logits);
    return loss;
}

// ------------------------------------------------------------------ between stages

struct received {
    struct storage **gradient;
};

static void received_backward(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    (void)out;
    *NODE_DETAIL(n, struct received)->gradient = storage_share(n->gradient);
}

static const struct operation received = {KERNELS_BOUNDARY, received_backward};

struct var op_received(struct graph *g, struct var x, struct storage **gradient)
{
    struct node *n = graph_add(g, &received);
    if (n)
        NODE_DETAIL(n, struct received)->gradient = gradient;
    return node_view(g, n, x);
}
