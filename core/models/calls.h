// The operators as a forward calls them: an argument without a name goes when they return
// (scope.h).
#ifndef FATHOM_MODELS_CALLS_H
#define FATHOM_MODELS_CALLS_H

#include "core/models/scope.h"
#include "core/ops/ops.h"

// Queries, keys and values of a layer.
struct heads {
    struct var q, k, v;
};

#define CALL_OF_ONE(name)                                        \
    static inline struct var name(struct graph *g, struct var x) \
    {                                                            \
        return after(g, op_##name(g, x), x);                     \
    }

#define CALL_OF_ONE_WITH(name, type, with)                                  \
    static inline struct var name(struct graph *g, struct var x, type with) \
    {                                                                       \
        return after(g, op_##name(g, x, with), x);                          \
    }

#define CALL_OF_TWO(name)                                                      \
    static inline struct var name(struct graph *g, struct var a, struct var b) \
    {                                                                          \
        return after_two(g, op_##name(g, a, b), a, b);                         \
    }

// Whose result is their argument itself, or that takes it over to let it go early.
#define CALL_ON_ITSELF(name)                                     \
    static inline struct var name(struct graph *g, struct var x) \
    {                                                            \
        return unnamed(op_##name(g, taken(x)));                  \
    }

#define CALL_ON_ITSELF_AND(name)                                                   \
    static inline struct var name(struct graph *g, struct var x, struct var other) \
    {                                                                              \
        return after(g, op_##name(g, taken(x), other), other);                     \
    }

CALL_OF_ONE(power)
CALL_OF_ONE(add_constant)
CALL_OF_ONE(rsqrt)
CALL_OF_ONE(scale)
CALL_OF_ONE(negate)
CALL_OF_ONE(first_half)
CALL_OF_ONE(second_half)
CALL_OF_ONE(sigmoid)
CALL_OF_ONE(softmax)
CALL_OF_ONE(activation)
CALL_OF_ONE(relu)
CALL_OF_ONE(dropout)
CALL_OF_ONE(copy)
CALL_OF_ONE(exchange_in)
CALL_OF_ONE(log_softmax)
CALL_OF_ONE_WITH(cast, uint32_t, width)
CALL_OF_ONE_WITH(mean, uint64_t, rows)
CALL_OF_ONE_WITH(max, uint64_t, rows)
CALL_OF_ONE_WITH(slice, uint64_t, elements)
CALL_OF_ONE_WITH(expand, uint64_t, elements)
CALL_OF_ONE_WITH(repeat, uint64_t, elements)
CALL_OF_ONE_WITH(chunk, uint64_t, elements)
CALL_OF_ONE_WITH(clamp, int, bounds)
CALL_OF_ONE_WITH(token_loss, uint64_t, tokens)
CALL_OF_ONE_WITH(chunked_entropy, uint64_t, tokens)
CALL_OF_ONE_WITH(fused_policy, int, head)
CALL_OF_ONE_WITH(fused_loss, int, head)
CALL_OF_TWO(multiply)
CALL_OF_TWO(multiply_row)
CALL_OF_TWO(multiply_constant)
CALL_OF_TWO(join)
CALL_OF_TWO(add)
CALL_OF_TWO(add_mask)
CALL_OF_TWO(add_row)
CALL_OF_TWO(subtract)
CALL_OF_TWO(scalar)
CALL_OF_TWO(cross_entropy)
CALL_OF_TWO(likelihood)
CALL_OF_TWO(masked_scatter)
CALL_OF_TWO(liger_gate)
CALL_OF_ONE_WITH(sum_rows, uint64_t, rows)
CALL_OF_ONE_WITH(sum_groups, uint64_t, elements)
CALL_ON_ITSELF(cap)
CALL_ON_ITSELF(relayout)
CALL_ON_ITSELF(reshape)
CALL_ON_ITSELF(divide_view)
CALL_ON_ITSELF_AND(divide)
CALL_ON_ITSELF_AND(add_in_place)
CALL_ON_ITSELF_AND(mask)
CALL_ON_ITSELF_AND(masked)

static inline struct var constant(struct graph *g, uint64_t elements, uint32_t width)
{
    return unnamed(op_constant(g, elements, width));
}

// Of the same size, without a gradient.
static inline struct var made_of(struct graph *g, struct var x)
{
    return after(g, op_constant(g, x.elements, x.width), x);
}

static inline struct var bend(struct graph *g, struct var x)
{
    return after(g, op_tanh(g, x), x);
}

// The same while x lives on.
static inline struct var made_like(struct graph *g, struct var x)
{
    return constant(g, x.elements, x.width);
}

static inline struct var chunks(struct graph *g, struct var x, int count)
{
    return unnamed(op_chunks(g, taken(x), count));
}

static inline struct var write_into(struct graph *g, struct var base, struct var x)
{
    return after(g, op_write(g, taken(base), x), x);
}

static inline struct var multiply_weight(struct graph *g, int parameter, struct var x)
{
    return after(g, op_multiply_weight(g, parameter, x), x);
}

static inline struct var multiply_wide_weight(struct graph *g, int parameter, struct var x)
{
    return after(g, op_multiply_wide_weight(g, parameter, x), x);
}

static inline struct var layer_norm(struct graph *g, struct var x, struct var weight,
                                    struct var bias)
{
    return after(g, after_two(g, op_layer_norm(g, x, weight, bias), weight, bias), x);
}

static inline struct var linear(struct graph *g, struct var x, int parameter, int bias)
{
    return after(g, op_linear(g, x, parameter, bias), x);
}

static inline struct var linear_cast(struct graph *g, struct var x, int parameter, uint32_t width)
{
    return after(g, op_linear_cast(g, x, parameter, width), x);
}

static inline struct var index_rows(struct graph *g, struct var x, uint64_t rows,
                                    struct var numbers)
{
    return after_two(g, op_index_rows(g, x, rows, numbers), x, numbers);
}

static inline struct var spread_rows(struct graph *g, struct var x, uint64_t rows,
                                     struct var numbers)
{
    return after_two(g, op_spread_rows(g, x, rows, numbers), x, numbers);
}

static inline struct var masked_rows(struct graph *g, struct var x, struct var mask,
                                     uint64_t chosen)
{
    return after_two(g, op_masked_rows(g, x, mask, chosen), x, mask);
}

static inline struct var log_probs(struct graph *g, struct var hidden, int head, struct var weight,
                                   struct var targets)
{
    struct var out = op_log_probs(g, hidden, head, weight, targets);
    return after(g, after_two(g, out, hidden, targets), weight);
}

static inline struct var divergence(struct graph *g, struct var hidden, int head,
                                    struct var teacher, uint64_t gathered)
{
    return after_two(g, op_divergence(g, hidden, head, teacher, gathered), hidden, teacher);
}

static inline struct var top(struct graph *g, struct var x, uint64_t elements, struct var *indices)
{
    struct var out = after(g, op_top(g, x, elements, indices), x);
    *indices = unnamed(*indices);
    return out;
}

static inline struct var grouped_product(struct graph *g, struct var x, int parameter,
                                         uint64_t columns, struct var offsets)
{
    return after(g, op_grouped_product(g, x, parameter, columns, offsets), x);
}

static inline struct var part_product(struct graph *g, struct var x, int parameter,
                                      uint64_t columns, uint64_t outputs)
{
    return after(g, op_part_product(g, x, parameter, columns, outputs), x);
}

static inline struct var add_to_rows(struct graph *g, struct var base, struct var x,
                                     struct var numbers)
{
    return after(g, unnamed(op_add_to_rows(g, taken(base), x, numbers)), x);
}

static inline struct var product(struct graph *g, struct var a, struct var b, uint64_t elements,
                                 uint64_t depth)
{
    return after_two(g, op_product(g, a, b, elements, depth), a, b);
}

static inline struct var attend(struct graph *g, struct heads h,
                                const struct attention_shape *shape)
{
    return unnamed(op_attention(g, h.q, h.k, h.v, shape));
}

static inline struct var all_to_all(struct graph *g, struct var x, struct sent gradient)
{
    return after(g, op_all_to_all(g, x, gradient), x);
}

static inline struct var checkpoint(struct graph *g, struct var x,
                                    void (*forward)(struct graph *g, struct var *out, struct var in,
                                                    void *what),
                                    void *what)
{
    return after(g, graph_checkpoint(g, borrowed(x), forward, what), x);
}

#endif
