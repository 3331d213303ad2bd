// What the files of operators are made of: a row for each operator (struct operation), the inputs
// and details of its nodes, and what many of them do.
//
// An operator reads from top to bottom: what its backward pass has to know (a struct of its own,
// see NODE_DETAIL), its backward pass, its row, its forward pass. What it keeps it hands to
// graph_keep, what is kept of inputs before it runs, what is kept of outputs after.
#ifndef FATHOM_OPS_OPERATION_H
#define FATHOM_OPS_OPERATION_H

#include "core/ops/ops.h"
#include "core/ops/scratch.h"

// linear.c: a weight as autocast hands it out.
struct var cast_weight(struct graph *g, int parameter);

// folded.c: a weight as its module finds it, with its change where that is added to it.
struct var op_weight(struct graph *g, int parameter);

// The kernels of an operator; the first that is run of those with the same loads them.
enum {
    KERNELS_CAST = FIRST_KERNELS,
    KERNELS_ADD,
    KERNELS_POWER,
    KERNELS_MEAN,
    KERNELS_RSQRT,
    KERNELS_MULTIPLY,
    KERNELS_MULTIPLY_WEIGHT,
    KERNELS_MULTIPLY_CONSTANT,
    KERNELS_NEGATE,
    KERNELS_SLICE,
    KERNELS_COPY_LAYOUT,
    KERNELS_ACTIVATION,
    KERNELS_LINEAR,
    KERNELS_ATTENTION,
    KERNELS_EMBEDDING,
    KERNELS_LOG_SOFTMAX,
    KERNELS_LIKELIHOOD,
    KERNELS_BOUNDARY,
    KERNELS_EXCHANGE_IN,
    KERNELS_EXCHANGE_OUT,
    KERNELS_ALL_TO_ALL,
    KERNELS_RING,
    KERNELS_CHUNKS,
    KERNELS_CHUNK,
    KERNELS_SOFTMAX,
    KERNELS_TOP,
    KERNELS_DIVIDE,
    KERNELS_INDEX,
    KERNELS_MASK,
    KERNELS_GROUPED_PRODUCT,
    KERNELS_DIVIDE_VIEW,
    KERNELS_TOKEN_LOSS,
    KERNELS_CHUNKED_ENTROPY,
    KERNELS_FUSED_POLICY,
    KERNELS_SUM_GROUPS,
    KERNELS_TANH,
    KERNELS_SIGMOID,
    KERNELS_CLAMP,
    KERNELS_SUBTRACT,
    KERNELS_MAX,
    KERNELS_WRITE,
    KERNELS_PRODUCT,
    KERNELS_PACKED_LINEAR,
    KERNELS_FUSED_LOSS,
    KERNELS_LOG_PROBS,
    KERNELS_MASKED_ROWS,
    KERNELS_SCATTER,
    KERNELS_LIGER_NORM,
    KERNELS_LIGER_TURN,
    KERNELS_LIGER_GATE,
    KERNELS_LAYER_NORM,
    KERNELS_DROPOUT,
    KERNELS_RELU,
    KERNELS_ADD_ROW,
    KERNELS_POOL,
    KERNELS_FILL_ROWS,
    KERNELS_PUT_ROWS,
    KERNELS_FOLD,
    KERNELS_CUT,
    KERNELS_COUNT,
};
_Static_assert((int)KERNELS_LINEAR == (int)FIRST_KERNELS + (int)SHARED_KERNELS,
               "what is done element by element comes first");
_Static_assert((int)KERNELS_COUNT <= (int)MOST_KERNELS, "graph.loaded has a bit for each");

// Where a parameter's gradient goes: nowhere if it is frozen.
int32_t gradient_of(const struct graph *g, int parameter);

// Of a node that may be NULL: the module that it is of, where the weight is frozen.
void node_of_frozen(const struct graph *g, struct node *n, int parameter);

// Of a node that may be NULL: which input, and how large its gradient is.
void node_input(struct node *n, int input, struct var x);
void node_parameter(const struct graph *g, struct node *n, int input, int parameter);

// The rest of an operator of one input: n (which may be NULL) gets the input, the output has
// `elements` of `width`.
struct var op_unary(struct graph *g, struct node *n, struct var x, uint64_t elements,
                    uint32_t width);

// x as the output of a node that leaves its storage as it is; without a node, of none.
struct var node_view(const struct graph *g, const struct node *n, struct var x);

// The same for an operator that works in place or does not work at all: without a node, x it is.
struct var node_in_place(const struct graph *g, struct node *n, struct var x);

// One that a gradient is wanted for, if there is one.
struct var either(struct var a, struct var b);

// Kept now, but let go after what graph_keep is given later: that one must have counted it.
void keep_last(const struct graph *g, struct node *n, struct storage *s);

// Time, but in what is not recomputed any more: a kernel that reads and writes so many bytes; what
// the last one reads as well; a matrix product of these rows, columns and depth.
void moves(struct graph *g, uint64_t bytes);
void reads_too(struct graph *g, struct var x);
void slower(struct graph *g, enum moving kind, uint64_t bytes); // of the last one's bytes
void multiplies(struct graph *g, struct product_shape p);

struct storage *take_working(struct graph *g, uint64_t bytes);

// The same, and a kernel that fills it and reads so many bytes.
struct storage *make_working(struct graph *g, uint64_t bytes, uint64_t read);

uint64_t gradient_bytes(const struct node *n); // of what came to it

// op_part_product over packed weights.
struct var packed_part(struct graph *g, struct var x, int parameter, uint64_t columns,
                       uint64_t outputs);

// The gradient is a new tensor of the first input's size, made of the one that came and what was
// kept first.
void gradient_like_input(struct graph *g, struct node *n, struct outcome *out);

#endif
