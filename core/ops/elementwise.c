// Operators that make one value of one value, or of two at the same place. Their backward passes
// allocate in the order of torch 2.11 (the generated Functions.cpp makes the last input's gradient
// first), as recorded in tests/data/traces/t00.
#include "core/ops/operation.h"

static uint32_t wider(struct var a, struct var b)
{
    return a.width > b.width ? a.width : b.width;
}

// ------------------------------------------------------------------ types

static const struct operation cast = {KERNELS_CAST, gradient_like_input};

struct var op_cast(struct graph *g, struct var x, uint32_t width)
{
    if (x.width == width)
        return var_share(x);
    return op_unary(g, graph_add_for(g, &cast, x), x, x.elements, width);
}

// ------------------------------------------------------------------ sums and differences

struct var op_add_constant(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, &operation_pass, x), x, x.elements, x.width);
}

// The wider input gets the gradient as it is, the narrower one a cast.
static void add_mixed_backward(struct graph *g, struct node *n, struct outcome *out)
{
    int narrow = n->input_bytes[0] < n->input_bytes[1] ? 0 : 1;
    operation_pass.backward(g, n, out);
    out[narrow].cast_bytes = n->input_bytes[narrow];
}

static const struct operation add_mixed = {KERNELS_ADD, add_mixed_backward};

struct var op_add(struct graph *g, struct var a, struct var b)
{
    const struct operation *operation = a.width != b.width ? &add_mixed : &operation_pass;
    struct node *n = graph_add_for(g, operation, either(a, b));
    struct var out = op_unary(g, n, a, a.elements, wider(a, b));
    reads_too(g, b);
    node_input(n, 1, b);
    return out;
}

struct var op_add_mask(struct graph *g, struct var x, struct var mask)
{
    bool mixed = mask.width > x.width;
    struct node *n = graph_add_for(g, mixed ? &cast : &operation_pass, x);
    struct var out = op_unary(g, n, x, x.elements, mixed ? mask.width : x.width);
    reads_too(g, mask);
    return out;
}

struct var op_add_in_place(struct graph *g, struct var x, struct var other)
{
    struct node *n = graph_add_for(g, &operation_pass, either(x, other));
    node_input(n, 1, other);
    moves(g, 2 * var_bytes(x) + var_bytes(other));
    return node_in_place(g, n, x);
}

struct var op_scalar(struct graph *g, struct var a, struct var b)
{
    struct node *n = graph_add(g, &operation_pass);
    struct var out = op_unary(g, n, a, 1, 4);
    node_input(n, 1, b);
    return out;
}

static void subtract_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = storage_share(n->gradient);
    out[1].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    if (n->input_bytes[1] != n->input_bytes[0])
        out[1].reduced_bytes = n->input_bytes[1];
}

static const struct operation subtract = {KERNELS_SUBTRACT, subtract_backward};

static void subtract_narrow_backward(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = storage_share(n->gradient);
    out[1].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    out[1].cast_bytes = n->input_bytes[1];
}

static const struct operation subtract_narrow = {KERNELS_SUBTRACT, subtract_narrow_backward};

struct var op_subtract(struct graph *g, struct var a, struct var b)
{
    bool narrower = a.elements == b.elements && b.width < a.width;
    struct node *n = graph_add_for(g, narrower ? &subtract_narrow : &subtract, either(a, b));
    struct var out = op_unary(g, n, a, a.elements, a.width);
    reads_too(g, b);
    node_input(n, 1, b);
    return out;
}

// ------------------------------------------------------------------ products and quotients

struct multiply {
    uint64_t result_bytes;      // gradients are made as large, then cast or summed
    struct reduction reduction; // of the second input's
};

static void multiply_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct multiply *d = NODE_DETAIL(n, struct multiply);
    if (n->inputs[1] != NO_NODE)
        out[1].gradient = make_working(g, d->result_bytes, gradient_bytes(n) + n->input_bytes[0]);
    if (n->inputs[0] != NO_NODE)
        out[0].gradient = make_working(g, d->result_bytes, gradient_bytes(n) + n->input_bytes[1]);
    if (n->inputs[0] != NO_NODE && n->input_bytes[1] < n->input_bytes[0])
        slower(g, MOVING_COLUMN, 2 * d->result_bytes);
    if (n->input_bytes[1] != d->result_bytes)
        out[1].reduced_bytes = n->input_bytes[1];
    out[1].reduction = &d->reduction;
    if (n->input_bytes[0] != d->result_bytes)
        out[0].cast_bytes = n->input_bytes[0];
}

static const struct operation multiply = {KERNELS_MULTIPLY, multiply_backward};

static struct var multiplied(struct graph *g, struct var a, struct var b, struct reduction r)
{
    struct node *n = graph_add_for(g, &multiply, either(a, b));
    if (b.node != NO_NODE)
        graph_keep(g, n, a.storage);
    if (a.node != NO_NODE)
        graph_keep(g, n, b.storage);
    struct var out = op_unary(g, n, a, a.elements, wider(a, b));
    reads_too(g, b);
    if (b.elements < a.elements)
        slower(g, r.outputs ? MOVING_ROW : MOVING_COLUMN, 2 * var_bytes(out));
    node_input(n, 1, b);
    if (n)
        *NODE_DETAIL(n, struct multiply) = (struct multiply){var_bytes(out), r};
    return out;
}

struct var op_multiply(struct graph *g, struct var a, struct var b)
{
    return multiplied(g, a, b, (struct reduction){0});
}

struct var op_multiply_row(struct graph *g, struct var a, struct var row)
{
    return multiplied(g, a, row, (struct reduction){row.elements, a.elements / row.elements});
}

static void multiply_weight_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct multiply *d = NODE_DETAIL(n, struct multiply);
    out[0].gradient = make_working(g, d->result_bytes, gradient_bytes(n));
    slower(g, MOVING_ROW, d->result_bytes + gradient_bytes(n));
    if (n->inputs[1] != NO_NODE) {
        out[1].gradient = make_working(g, d->result_bytes, gradient_bytes(n) + n->input_bytes[0]);
        out[1].reduced_bytes = n->input_bytes[1];
        out[1].reduction = &d->reduction;
    }
    if (d->result_bytes != n->input_bytes[0])
        out[0].cast_bytes = n->input_bytes[0];
}

const struct operation operation_multiply_weight = {KERNELS_MULTIPLY_WEIGHT,
                                                    multiply_weight_backward};

static struct var weighed(struct graph *g, struct var weight, struct var x)
{
    struct node *n = graph_add_for(g, &operation_multiply_weight, either(weight, x));
    if (weight.node != NO_NODE)
        graph_keep(g, n, x.storage);
    if (n && graph_offloads(g) && g->offload.knows_weights)
        graph_keep_packed(n, graph_packed(g, weight.storage, LAID_AS_WEIGHT));
    else
        graph_keep(g, n, weight.storage);
    struct var out = op_unary(g, n, x, x.elements, wider(x, weight));
    slower(g, MOVING_ROW, var_bytes(x) + var_bytes(out));
    node_input(n, 1, weight);
    if (n)
        *NODE_DETAIL(n, struct multiply) =
            (struct multiply){var_bytes(out), {weight.elements, x.elements / weight.elements}};
    return out;
}

struct var op_multiply_weight(struct graph *g, int parameter, struct var x)
{
    struct var out = weighed(g, op_parameter(g, parameter), x);
    if (out.node != NO_NODE)
        node_of_frozen(g, &g->nodes[out.node], parameter);
    return out;
}

struct var op_multiply_wide_weight(struct graph *g, int parameter, struct var x)
{
    struct var weight = op_cast(g, op_parameter(g, parameter), 4);
    struct var out = weighed(g, weight, x);
    var_drop(g, &weight);
    return out;
}

struct multiply_constant {
    uint64_t result_bytes;
};

static void multiply_constant_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t result_bytes = NODE_DETAIL(n, struct multiply_constant)->result_bytes;
    out[0].gradient = make_working(g, result_bytes, gradient_bytes(n));
    if (n->saved_count) // positions, for all heads
        slower(g, MOVING_TURNED, result_bytes + gradient_bytes(n));
    if (result_bytes != n->input_bytes[0])
        out[0].cast_bytes = n->input_bytes[0];
}

static const struct operation multiply_constant = {KERNELS_MULTIPLY_CONSTANT,
                                                   multiply_constant_backward, true};

static struct var multiplied_by_constant(struct graph *g, struct node *n, struct var x,
                                         uint32_t width)
{
    struct var out = op_unary(g, n, x, x.elements, width);
    if (n)
        NODE_DETAIL(n, struct multiply_constant)->result_bytes = var_bytes(out);
    return out;
}

struct var op_multiply_constant(struct graph *g, struct var x, struct var constant)
{
    struct node *n = graph_add_for(g, &multiply_constant, x);
    graph_keep(g, n, constant.storage);
    struct var out = multiplied_by_constant(g, n, x, wider(x, constant));
    slower(g, MOVING_TURNED, var_bytes(x) + var_bytes(out));
    return out;
}

struct var op_scale(struct graph *g, struct var x)
{
    return multiplied_by_constant(g, graph_add_for(g, &multiply_constant, x), x, x.width);
}

// For the divisor, -gradient * ((x / divisor) / divisor), summed to its shape.
static void divide_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *made[3];
    for (int i = 0; i < COUNT_OF(made); i++)
        made[i] = make_working(g, n->input_bytes[0], n->input_bytes[0]);
    out[1].gradient = make_working(g, n->input_bytes[0], 2 * n->input_bytes[0]);
    out[1].reduced_bytes = n->input_bytes[1];
    for (int i = COUNT_OF(made) - 1; i >= 0; i--)
        machine_drop(g->machine, made[i]);
    out[0].gradient = make_working(g, n->input_bytes[0], n->input_bytes[0]);
}

static const struct operation divide = {KERNELS_DIVIDE, divide_backward};

struct var op_divide(struct graph *g, struct var x, struct var divisor)
{
    struct node *n = graph_add(g, &divide);
    struct var before = graph_output(g, NULL, x.elements, x.width);
    moves(g, 2 * var_bytes(x));
    moves(g, 2 * var_bytes(x));
    graph_keep(g, n, before.storage);
    graph_keep(g, n, divisor.storage);
    var_drop(g, &before);
    node_input(n, 1, divisor);
    return node_in_place(g, n, x);
}

// ------------------------------------------------------------------ functions

static void power_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t bytes = n->input_bytes[0];
    struct storage *lower = make_working(g, bytes, bytes);
    struct storage *scaled = make_working(g, bytes, bytes);
    out[0].gradient = make_working(g, bytes, 2 * bytes);
    machine_drop(g->machine, scaled);
    machine_drop(g->machine, lower);
}

static const struct operation power = {KERNELS_POWER, power_backward};

struct var op_power(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &power, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, x.elements, x.width);
}

static void rsqrt_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t bytes = n->input_bytes[0];
    struct storage *cubed = make_working(g, bytes, bytes);
    struct storage *scaled = make_working(g, bytes, bytes);
    out[0].gradient = make_working(g, bytes, 2 * bytes);
    machine_drop(g->machine, scaled);
    machine_drop(g->machine, cubed);
}

static const struct operation rsqrt = {KERNELS_RSQRT, rsqrt_backward};

// A function whose derivative is written in its result, which it keeps.
static struct var keeping_result(struct graph *g, const struct operation *operation, struct var x)
{
    struct node *n = graph_add_for(g, operation, x);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, out.storage);
    return out;
}

struct var op_rsqrt(struct graph *g, struct var x)
{
    return keeping_result(g, &rsqrt, x);
}

static const struct operation hyperbolic_tangent = {KERNELS_TANH, gradient_like_input};

struct var op_tanh(struct graph *g, struct var x)
{
    return keeping_result(g, &hyperbolic_tangent, x);
}

static const struct operation sigmoid = {KERNELS_SIGMOID, gradient_like_input};

struct var op_sigmoid(struct graph *g, struct var x)
{
    return keeping_result(g, &sigmoid, x);
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

static const struct operation negate = {KERNELS_NEGATE, gradient_like_input};

struct var op_negate(struct graph *g, struct var x)
{
    return op_unary(g, graph_add_for(g, &negate, x), x, x.elements, x.width);
}

struct clamp {
    uint64_t low_bytes, high_bytes; // of what each bound's comparison gives
};

// clamp_backward (FunctionsManual.cpp): a comparison for each bound, then where.
static void clamp_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct clamp *d = NODE_DETAIL(n, struct clamp);
    uint64_t bytes = n->input_bytes[0];
    struct storage *low = make_working(g, d->low_bytes, bytes), *high = NULL;
    if (d->high_bytes)
        high = make_working(g, d->high_bytes, bytes);
    out[0].gradient = make_working(g, bytes, bytes + d->low_bytes + d->high_bytes);
    machine_drop(g->machine, high);
    machine_drop(g->machine, low);
}

static const struct operation clamp = {KERNELS_CLAMP, clamp_backward};

struct var op_clamp(struct graph *g, struct var x, int bounds)
{
    struct node *n = graph_add_for(g, &clamp, x);
    graph_keep(g, n, x.storage);
    if (n)
        *NODE_DETAIL(n, struct clamp) = (struct clamp){x.elements, bounds > 1 ? x.elements : 0};
    return op_unary(g, n, x, x.elements, x.width);
}

static const struct operation activation = {KERNELS_ACTIVATION, gradient_like_input};

struct var op_activation(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &activation, x);
    graph_keep(g, n, x.storage);
    return op_unary(g, n, x, x.elements, x.width);
}

static const struct operation relu = {KERNELS_RELU, gradient_like_input};

struct var op_relu(struct graph *g, struct var x)
{
    return keeping_result(g, &relu, x);
}

// transformers 5.17, modeling_bloom.py: tanh(0.8 x (1 + 0.04 x x)), of which the last is left.
static struct storage *bloom_tanh(struct graph *g, uint64_t bytes)
{
    struct storage *scaled = take_working(g, bytes), *made[4];
    for (int i = 0; i < COUNT_OF(made) - 1; i++) {
        made[i] = take_working(g, bytes);
        if (i)
            machine_drop(g->machine, made[i - 1]);
    }
    made[3] = take_working(g, bytes);
    machine_drop(g->machine, scaled);
    machine_drop(g->machine, made[2]);
    struct storage *bent = take_working(g, bytes);
    machine_drop(g->machine, made[3]);
    return bent;
}

// bloom_gelu_back: 0.5 x ((1 - tanh tanh) (0.8 + 0.1 x x)) + 0.5 (1 + tanh), times the gradient.
static void bloom_gelu_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t bytes = n->input_bytes[0];
    struct machine *m = g->machine;
    struct storage *bent = bloom_tanh(g, bytes), *half = take_working(g, bytes);
    struct storage *square = take_working(g, bytes), *rest = take_working(g, bytes);
    machine_drop(m, square);
    struct storage *one = take_working(g, bytes), *two = take_working(g, bytes);
    machine_drop(m, one);
    struct storage *three = take_working(g, bytes);
    machine_drop(m, two);
    struct storage *both = take_working(g, bytes);
    machine_drop(m, rest);
    machine_drop(m, three);
    struct storage *left = take_working(g, bytes);
    machine_drop(m, half);
    machine_drop(m, both);
    struct storage *more = take_working(g, bytes), *right = take_working(g, bytes);
    machine_drop(m, more);
    struct storage *slope = take_working(g, bytes);
    machine_drop(m, left);
    machine_drop(m, right);
    out[0].gradient = take_working(g, bytes);
    machine_drop(m, slope);
    machine_drop(m, bent);
}

static const struct operation bloom_gelu = {KERNELS_ACTIVATION, bloom_gelu_backward};

struct var op_bloom_gelu(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &bloom_gelu, x);
    graph_keep(g, n, x.storage);
    if (g->stopped)
        return op_unary(g, n, x, x.elements, x.width);
    struct storage *half = take_working(g, var_bytes(x)), *bent = bloom_tanh(g, var_bytes(x));
    struct storage *more = take_working(g, var_bytes(x));
    machine_drop(g->machine, bent);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    machine_drop(g->machine, half);
    machine_drop(g->machine, more);
    return out;
}

// ------------------------------------------------------------------ masks

static const struct operation dropout = {KERNELS_DROPOUT, gradient_like_input};

// native_dropout (ATen/native/cuda/Dropout.cu): a byte a value says what stays.
struct var op_dropout(struct graph *g, struct var x)
{
    struct node *n = graph_add_for(g, &dropout, x);
    struct var stays = graph_output(g, NULL, x.elements, 1);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    graph_keep(g, n, stays.storage);
    var_drop(g, &stays);
    return out;
}

static const struct operation mask_rows = {KERNELS_MASK, gradient_like_input};

struct var op_mask(struct graph *g, struct var x, struct var mask)
{
    struct node *n = graph_add_for(g, &mask_rows, x);
    graph_keep(g, n, mask.storage);
    moves(g, 2 * var_bytes(x));
    return node_in_place(g, n, x);
}

struct var op_masked(struct graph *g, struct var x, struct var mask)
{
    struct node *n = graph_add_for(g, &mask_rows, x);
    graph_keep(g, n, mask.storage);
    struct var out = op_unary(g, n, x, x.elements, x.width);
    var_drop(g, &x);
    return out;
}
