// Forward passes. The order of taking and keeping is torch's: what an operator keeps of its inputs
// it keeps before it runs, what it keeps of its outputs after.
#include "core/autograd/ops.h"

#include "core/autograd/backward.h"

static uint64_t bytes_of(struct var v)
{
    return v.elements * v.width;
}

// Where a parameter's gradient goes.
static int32_t gradient_of(const struct graph *g, int parameter)
{
    return g->parameters[parameter].frozen ? NO_NODE : input_of_parameter(parameter);
}

static void count_work(struct graph *g, uint64_t flops, uint64_t moved)
{
    if (g->stopped)
        return;
    g->machine->flops += flops;
    g->machine->moved_bytes += moved;
}

struct var op_unary(struct graph *g, struct node *n, struct var x, uint64_t elements,
                    uint32_t width)
{
    if (n) {
        n->inputs[0] = x.node;
        n->sizes[0] = bytes_of(x);
    }
    struct var out = graph_output(g, n, elements, width);
    count_work(g, elements, bytes_of(x) + bytes_of(out));
    return out;
}

struct var op_cast(struct graph *g, struct var x, uint32_t width)
{
    if (x.width == width)
        return var_share(x);
    return op_unary(g, graph_add_for(g, OPERATION_CAST, x), x, x.elements, width);
}

struct var op_power(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_POWER, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, x.elements, x.width);
}

struct var op_mean(struct graph *g, struct var x, uint64_t rows)
{
    return op_unary(g, graph_add_for(g, OPERATION_MEAN, x), x, rows, x.width);
}

struct var op_add_constant(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, OPERATION_PASS, x), x, x.elements, x.width);
}

struct var op_rsqrt(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_RSQRT, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, out.storage);
    return out;
}

static struct var either(const struct graph *g, struct var a, struct var b)
{
    return graph_wants(g, a) ? a : b;
}

struct var op_multiply(struct graph *g, struct var a, struct var b)
{
    struct node *n = graph_add_for(g, OPERATION_MULTIPLY, either(g, a, b));
    if (graph_wants(g, b))
        graph_keep(g, n, a.storage);
    if (graph_wants(g, a))
        graph_keep(g, n, b.storage);
    struct var out = op_unary(g, n, a, a.elements, a.width > b.width ? a.width : b.width);
    if (n) {
        n->inputs[1] = b.node;
        n->sizes[1] = bytes_of(b);
        n->sizes[2] = bytes_of(out);
    }
    return out;
}

struct var op_multiply_row(struct graph *g, struct var a, struct var row)
{
    struct var out = op_multiply(g, a, row);
    if (out.node != NO_NODE)
        g->nodes[out.node].reduction = (struct reduction){row.elements, a.elements / row.elements};
    return out;
}

struct var op_multiply_weight(struct graph *g, int parameter, struct var x)
{
    const struct parameter *p = &g->parameters[parameter];
    struct node *n = p->frozen ? graph_add_for(g, OPERATION_MULTIPLY_WEIGHT, x)
                               : graph_add(g, OPERATION_MULTIPLY_WEIGHT);
    if (!p->frozen)
        graph_keep(g, n, x.storage);
    graph_keep(g, n, NULL);
    struct var out = op_unary(g, n, x, x.elements, x.width > p->width ? x.width : p->width);
    if (n) {
        n->inputs[1] = gradient_of(g, parameter);
        n->sizes[1] = p->rows * p->width;
        n->sizes[2] = x.elements * out.width;
        n->reduction = (struct reduction){p->rows, x.elements / p->rows};
    }
    return out;
}

struct var op_multiply_constant(struct graph *g, struct var x, struct var constant)
{
    struct node *n = graph_add_for(g, OPERATION_MULTIPLY_CONSTANT, x);
    graph_keep(g, n, constant.storage);
    struct var out =
        op_unary(g, n, x, x.elements, x.width > constant.width ? x.width : constant.width);
    if (n)
        n->sizes[2] = bytes_of(out);
    return out;
}

struct var op_scale(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_MULTIPLY_CONSTANT, x);
    if (n)
        n->sizes[2] = bytes_of(x);
    return op_unary(g, n, x, x.elements, x.width);
}

struct var op_tanh(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_TANH, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, out.storage);
    return out;
}

struct var op_cap(struct graph *g, struct var x)
{
    struct var divided = op_scale(g, x);
    var_drop(g, &x);
    struct var bent = op_tanh(g, divided);
    var_drop(g, &divided);
    struct var out = op_scale(g, bent);
    var_drop(g, &bent);
    return out;
}

struct var op_negate(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, OPERATION_NEGATE, x), x, x.elements, x.width);
}

struct var op_slice(struct graph *g, struct var x, uint64_t elements)
{
    struct node *n = graph_add_for(g, OPERATION_SLICE, x);
    if (n) {
        n->inputs[0] = x.node;
        n->sizes[0] = bytes_of(x);
    }
    struct var part = var_share(x);
    part.elements = elements;
    part.node = n ? (int32_t)(n - g->nodes) : NO_NODE;
    return part;
}

struct var op_first_half(struct graph *g, struct var x)
{
    return op_slice(g, x, x.elements / 2);
}

struct var op_second_half(struct graph *g, struct var x)
{
    return op_slice(g, x, x.elements / 2);
}

struct var op_join(struct graph *g, struct var a, struct var b)
{
    // Each input gets a view of the gradient.
    struct node *n = graph_add_for(g, OPERATION_PASS, either(g, a, b));
    struct var out = op_unary(g, n, a, a.elements + b.elements, a.width);
    if (n)
        n->inputs[1] = b.node;
    return out;
}

struct var op_add(struct graph *g, struct var a, struct var b)
{
    bool mixed = a.width != b.width;
    struct node *n = graph_add_for(g, mixed ? OPERATION_ADD : OPERATION_PASS, either(g, a, b));
    struct var out = op_unary(g, n, a, a.elements, a.width > b.width ? a.width : b.width);
    if (n) {
        n->inputs[1] = b.node;
        n->sizes[1] = bytes_of(b);
        n->sizes[2] = bytes_of(a) > bytes_of(b) ? bytes_of(a) : bytes_of(b);
    }
    return out;
}

struct var op_add_mask(struct graph *g, struct var x, struct var mask)
{
    bool mixed = mask.width > x.width;
    struct node *n = graph_add_for(g, mixed ? OPERATION_CAST : OPERATION_PASS, x);
    return op_unary(g, n, x, x.elements, mixed ? mask.width : x.width);
}

struct var op_subtract(struct graph *g, struct var a, struct var b)
{
    struct node *n = graph_add_for(g, OPERATION_SUBTRACT, either(g, a, b));
    struct var out = op_unary(g, n, a, a.elements, a.width);
    if (n) {
        n->inputs[1] = b.node;
        n->sizes[1] = bytes_of(b);
    }
    return out;
}

struct var op_max(struct graph *g, struct var x, uint64_t rows)
{
    struct node *n = graph_add_for(g, OPERATION_MAX, x);
    struct var out = op_unary(g, n, x, rows, x.width), indices = graph_output(g, NULL, rows, 8);
    graph_keep(g, n, indices.storage);
    var_drop(g, &indices);
    return out;
}

struct var op_sigmoid(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_SIGMOID, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, out.storage);
    return out;
}

struct var op_clamp(struct graph *g, struct var x, int bounds)
{
    struct node *n = graph_add_for(g, OPERATION_CLAMP, x);
    graph_keep(g, n, x.storage);
    if (n) {
        n->sizes[1] = x.elements;
        n->sizes[2] = bounds > 1 ? x.elements : 0;
    }
    return op_unary(g, n, x, x.elements, x.width);
}

struct var op_softmax(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_SOFTMAX, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, out.storage);
    return out;
}

struct var op_activation(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_ACTIVATION, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, x.elements, x.width);
}

// A weight in bf16 under autocast: a node of its own, cached until the context ends. One that is
// frozen is cast for each use (ATen/autocast_mode.cpp caches what requires a gradient).
static struct var cast_weight(struct graph *g, int parameter)
{
    const struct parameter *p = &g->parameters[parameter];
    struct node *n = p->frozen ? NULL : graph_add(g, OPERATION_CAST);
    enum memory_kind kind = g->kind;
    g->kind = MEMORY_PARAMETERS;
    struct var out = graph_output(g, n, p->rows * p->columns, 2);
    g->kind = kind;
    if (n) {
        n->inputs[0] = input_of_parameter(parameter);
        n->sizes[0] = p->rows * p->columns * p->width;
    }
    if (out.storage && !p->frozen)
        graph_hold_cast(g, storage_share(out.storage));
    return out;
}

static struct var linear_on(struct graph *g, struct var x, struct var weight, int parameter,
                            int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    struct node *n =
        p->frozen ? graph_add_for(g, OPERATION_LINEAR, x) : graph_add(g, OPERATION_LINEAR);
    uint64_t rows = x.elements / p->columns;
    struct var out = {0};
    if (g->module) // keeps its inputs after it has run
        out = graph_output(g, n, rows * p->rows, x.width);
    if (!p->frozen)
        graph_keep(g, n, x.storage);
    if (graph_wants(g, x))
        graph_keep(g, n, weight.storage);
    if (!g->module)
        out = graph_output(g, n, rows * p->rows, x.width);
    if (n) {
        n->inputs[0] = x.node;
        n->inputs[1] = weight.node;
        n->inputs[2] = bias >= 0 ? gradient_of(g, bias) : NO_NODE;
        n->sizes[0] = bytes_of(x);
        n->sizes[1] = p->rows * p->columns * x.width;
        n->sizes[2] = p->rows * x.width;
        n->reduction = (struct reduction){p->rows, rows};
    }
    if (!g->stopped && bias >= 0 && !g->module)
        fused_bias_workspace(g);
    else if (!g->stopped)
        gemm_workspace(g);
    count_work(g, 2 * rows * p->rows * p->columns, bytes_of(x) + bytes_of(out));
    return out;
}

static struct var plain_linear(struct graph *g, struct var x, int parameter, int bias)
{
    if (!g->autocast) {
        graph_at_module(g, parameter, OPERATION_LINEAR, MOMENT_FORWARD);
        // What is recomputed keeps a gathered weight itself, not the parameter it belongs to.
        struct storage *kept = g->module && g->frame ? g->parameters[parameter].weight : NULL;
        struct var weight = {kept, gradient_of(g, parameter), x.width, 0};
        struct var out = linear_on(g, x, weight, parameter, bias);
        graph_at_module(g, parameter, OPERATION_LINEAR, MOMENT_FORWARD_DONE);
        return out;
    }
    struct var weight = cast_weight(g, parameter);
    struct var narrow = op_cast(g, x, 2);
    struct var out = linear_on(g, narrow, weight, parameter, bias);
    var_drop(g, &narrow);
    var_drop(g, &weight);
    return out;
}

struct var op_linear(struct graph *g, struct var x, int parameter, int bias)
{
    const struct parameter *p = &g->parameters[parameter];
    struct var out =
        p->packed ? op_packed_linear(g, x, parameter, bias) : plain_linear(g, x, parameter, bias);
    return p->adapter ? op_adapter(g, x, out, parameter) : out;
}

struct var op_product(struct graph *g, struct var a, struct var b, uint64_t elements,
                      uint64_t depth)
{
    struct node *n = graph_add_for(g, OPERATION_PRODUCT, either(g, a, b));
    // The second goes first, but where both were recomputed, and are local to the backward.
    graph_keep(g, n, g->frame ? a.storage : b.storage);
    graph_keep(g, n, g->frame ? b.storage : a.storage);
    struct var out = graph_output(g, n, elements, a.width);
    if (n) {
        n->inputs[0] = a.node;
        n->inputs[1] = b.node;
        n->sizes[0] = bytes_of(a);
        n->sizes[1] = bytes_of(b);
        n->sizes[2] = 2 * elements * depth;
    }
    if (!g->stopped)
        gemm_workspace(g);
    count_work(g, 2 * elements * depth, bytes_of(a) + bytes_of(b) + bytes_of(out));
    return out;
}

struct var op_copy(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, OPERATION_PASS, x), x, x.elements, x.width);
}

struct var op_expand(struct graph *g, struct var x, uint64_t elements)
{
    struct node *n = graph_add_for(g, OPERATION_CAST, x);
    struct var out = var_share(x);
    out.elements = elements;
    out.node = n ? (int32_t)(n - g->nodes) : NO_NODE;
    if (!n)
        return out;
    n->inputs[0] = x.node;
    n->sizes[0] = bytes_of(x);
    return out;
}

struct var op_parameter(struct graph *g, int parameter)
{
    const struct parameter *p = &g->parameters[parameter];
    return (struct var){NULL, gradient_of(g, parameter), p->width, p->rows * p->columns};
}

struct var op_linear_cast(struct graph *g, struct var x, int parameter, uint32_t width)
{
    struct var wide = op_cast(g, x, width), weight = op_cast(g, op_parameter(g, parameter), width);
    struct var out = linear_on(g, wide, weight, parameter, -1);
    var_drop(g, &wide);
    var_drop(g, &weight);
    return out;
}

struct var op_write(struct graph *g, struct var base, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_WRITE, either(g, base, x));
    if (!n)
        return base;
    n->inputs[0] = base.node;
    n->inputs[1] = x.node;
    n->sizes[0] = bytes_of(base);
    n->sizes[1] = bytes_of(x);
    base.node = (int32_t)(n - g->nodes);
    return base;
}

struct var op_relayout(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_COPY_LAYOUT, x);
    if (!n)
        return x;
    n->inputs[0] = x.node;
    n->sizes[0] = bytes_of(x);
    x.node = (int32_t)(n - g->nodes);
    return x;
}

struct var op_boundary(struct graph *g, struct var x, int unit, bool input)
{
    struct node *n = graph_add(g, OPERATION_BOUNDARY);
    if (!n)
        return x;
    n->inputs[0] = x.node;
    n->sizes[0] = (uint64_t)unit;
    n->sizes[1] = input;
    x.node = (int32_t)(n - g->nodes);
    return x;
}

struct var op_exchange_in(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, OPERATION_EXCHANGE_IN, x);
    struct var sent = graph_output(g, NULL, x.elements, x.width);
    struct var received = graph_output(g, NULL, x.elements, x.width);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    var_drop(g, &sent);
    var_drop(g, &received);
    return out;
}

struct var op_exchange_out(struct graph *g, struct var x, struct var *received)
{
    struct node *n = graph_add_for(g, OPERATION_EXCHANGE_OUT, x);
    struct var sent = graph_output(g, NULL, x.elements, x.width);
    *received = graph_output(g, NULL, x.elements, x.width);
    var_drop(g, &sent);
    var_drop(g, &x);
    return op_unary(g, n, x, x.elements, x.width);
}

struct var op_repeat(struct graph *g, struct var x, uint64_t elements)
{
    if (elements == x.elements)
        return var_share(x);
    return op_unary(g, graph_add_for(g, OPERATION_CAST, x), x, elements, x.width);
}

struct var op_chunks(struct graph *g, struct var x, int count)
{
    struct node *n = graph_add(g, OPERATION_CHUNKS);
    if (!n)
        return x;
    struct chunk_gradients *c = NEW(g->machine->arena, struct chunk_gradients, 1);
    c->gradients = NEW(g->machine->arena, struct storage *, count);
    c->count = c->next = count;
    n->inputs[0] = x.node;
    n->sizes[0] = bytes_of(x);
    n->detail = c;
    // It runs when the first chunk's gradient, the last to come, is there.
    x.node = (int32_t)(n - g->nodes);
    return x;
}

struct var op_chunk(struct graph *g, struct var whole, uint64_t elements)
{
    struct node *n = graph_add(g, OPERATION_CHUNK);
    struct var out = var_share(whole);
    out.elements = elements;
    if (n) {
        n->detail = g->nodes[whole.node].detail;
        g->nodes[whole.node].has_gradient = true;
        out.node = (int32_t)(n - g->nodes);
    }
    return out;
}

struct var op_scalar(struct graph *g, struct var a, struct var b)
{
    struct node *n = graph_add(g, OPERATION_PASS);
    struct var out = op_unary(g, n, a, 1, 4);
    if (n)
        n->inputs[1] = b.node;
    return out;
}

static void keep_last(struct node *n, const struct graph *g, struct storage *s)
{
    if (n && g->keeping)
        n->saved[n->saved_count++] = storage_share(s);
}

static void keep_inputs_last(struct node *n, const struct graph *g, struct var q, struct var k,
                             struct var v)
{
    keep_last(n, g, v.storage);
    keep_last(n, g, q.storage);
    keep_last(n, g, k.storage);
}

static void link_attention(struct node *n, struct var q, struct var k, struct var v,
                           struct var log_sum)
{
    if (!n)
        return;
    n->inputs[0] = q.node;
    n->inputs[1] = k.node;
    n->inputs[2] = v.node;
    n->sizes[0] = bytes_of(q);
    n->sizes[1] = bytes_of(k);
    n->sizes[2] = bytes_of(log_sum);
    n->sizes[3] = bytes_of(v);
}

// A mask of booleans is turned into numbers for every call, and kept; in a recomputed layer it goes
// last.
static struct var number_mask(struct graph *g, const struct attention_shape *shape)
{
    if (!shape->mask_elements)
        return (struct var){NULL, NO_NODE, 2, 0};
    return graph_output(g, NULL, shape->mask_elements, 2);
}

// cuDNN's fused attention, the first choice of torch 2.9 and later on compute capability 9.0 and
// 10.0; the sizes are those of recorded runs (tests/data/traces/t00).
static struct var attend(struct graph *g, struct var q, struct var k, struct var v,
                         const struct attention_shape *shape)
{
    struct node *n = graph_add_for(g, OPERATION_ATTENTION, either(g, either(g, q, k), v));
    struct var mask = number_mask(g, shape);
    for (int i = 0; i < 3; i++)
        graph_keep(g, NULL, NULL); // q, k and v are kept now, let go last
    if (mask.elements)
        graph_keep(g, NULL, NULL);
    if (!g->frame)
        keep_last(n, g, mask.storage);
    struct var seed = graph_output(g, NULL, 1, 8), offset = graph_output(g, NULL, 1, 8);
    struct var out = graph_output(g, n, q.elements / k.elements * v.elements, q.width);
    struct var log_sum = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    if (!g->stopped)
        machine_scratch(g->machine, 256);
    link_attention(n, q, k, v, log_sum);
    graph_keep(g, n, seed.storage);
    graph_keep(g, n, offset.storage);
    graph_keep(g, n, out.storage);
    graph_keep(g, n, log_sum.storage);
    keep_inputs_last(n, g, q, k, v);
    if (g->frame)
        keep_last(n, g, mask.storage);
    var_drop(g, &mask);
    var_drop(g, &log_sum);
    var_drop(g, &seed);
    var_drop(g, &offset);
    return out;
}

// FlashAttention 2: the output, the log of its sums, and two tensors of the random state (recording
// v2: torch's own copy of the kernels; the package's varlen form takes 512 bytes a sequence more).
static struct var attend_flash(struct graph *g, struct var q, struct var k, struct var v,
                               const struct attention_shape *shape)
{
    struct node *n = graph_add_for(g, OPERATION_ATTENTION, either(g, either(g, q, k), v));
    if (g->attention_waits)
        machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
    for (int i = 0; i < 3; i++)
        graph_keep(g, NULL, NULL);
    struct var out = graph_output(g, n, q.elements, q.width);
    struct var log_sum = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    struct var seed = graph_output(g, NULL, 2, 8), offset = graph_output(g, NULL, 1, 8);
    link_attention(n, q, k, v, log_sum);
    graph_keep(g, n, offset.storage);
    graph_keep(g, n, seed.storage);
    graph_keep(g, n, out.storage);
    graph_keep(g, n, log_sum.storage);
    keep_inputs_last(n, g, q, k, v);
    var_drop(g, &log_sum);
    var_drop(g, &seed);
    var_drop(g, &offset);
    return out;
}

struct var op_attention(struct graph *g, struct var q, struct var k, struct var v,
                        const struct attention_shape *shape)
{
    struct var k_low = op_cast(g, k, 2), q_low = op_cast(g, q, 2); // autocast's order
    struct var out = (g->flash ? attend_flash : attend)(g, q_low, k_low, v, shape);
    var_drop(g, &q_low);
    var_drop(g, &k_low);
    return out;
}

struct var op_embedding(struct graph *g, int parameter, struct var ids)
{
    const struct parameter *p = &g->parameters[parameter];
    if (p->frozen) {
        struct node *leaf = g->embedding_is_leaf ? graph_add(g, OPERATION_PASS) : NULL;
        struct var out = graph_output(g, leaf, ids.elements * p->columns, p->width);
        graph_keep(g, leaf, out.storage); // a leaf lives as long as the graph
        return out;
    }
    graph_at_module(g, parameter, OPERATION_EMBEDDING, MOMENT_FORWARD);
    struct node *n = graph_add(g, OPERATION_EMBEDDING);
    graph_keep(g, n, ids.storage);
    struct var out = graph_output(g, n, ids.elements * p->columns, p->width);
    if (n) {
        n->inputs[0] = input_of_parameter(parameter);
        n->sizes[0] = p->rows * p->columns * p->width;
        n->sizes[1] = ids.elements;
        n->sizes[2] = p->columns;
        n->sizes[3] = p->rows;
    }
    graph_at_module(g, parameter, OPERATION_EMBEDDING, MOMENT_FORWARD_DONE);
    return out;
}

struct var op_log_softmax(struct graph *g, struct var logits)
{
    struct node *n = graph_add(g, OPERATION_LOG_SOFTMAX);
    struct var out = op_unary(g, n, logits, logits.elements, logits.width);
    graph_keep(g, n, out.storage);
    return out;
}

struct var op_likelihood(struct graph *g, struct var log_probabilities, struct var labels,
                         uint64_t rows)
{
    struct node *n = graph_add(g, OPERATION_NLL);
    graph_keep(g, n, labels.storage);
    struct var loss = graph_output(g, n, 1, 4), total_weight = graph_output(g, NULL, 1, 4);
    graph_keep(g, n, total_weight.storage);
    if (n) {
        n->inputs[0] = log_probabilities.node;
        n->sizes[0] = bytes_of(log_probabilities);
        n->sizes[1] = rows;
    }
    var_drop(g, &total_weight);
    return loss;
}

struct var op_cross_entropy(struct graph *g, struct var logits, struct var labels, uint64_t rows)
{
    struct var log_probabilities = op_log_softmax(g, logits);
    struct var loss = op_likelihood(g, log_probabilities, labels, rows);
    var_drop(g, &log_probabilities);
    return loss;
}

struct var op_divide_view(struct graph *g, struct var x)
{
    struct node *n = graph_add(g, OPERATION_DIVIDE_VIEW);
    if (!n)
        return x;
    n->inputs[0] = x.node;
    n->sizes[0] = bytes_of(x);
    x.node = (int32_t)(n - g->nodes);
    return x;
}

struct var op_token_loss(struct graph *g, struct var logits, uint64_t tokens)
{
    struct node *n = graph_add(g, OPERATION_TOKEN_LOSS);
    graph_keep(g, n, logits.storage);
    struct var out = op_unary(g, n, logits, tokens, 4);
    struct var log_sum = graph_output(g, NULL, tokens, 4);
    graph_keep(g, n, log_sum.storage);
    var_drop(g, &log_sum);
    return out;
}
