// Rows picked by a list of numbers, from a table that is trained or from any tensor. Backward, the
// numbers are sorted, so that what comes to the same row can be added up.
#include "core/base/num.h"
#include "core/ops/operation.h"

// ------------------------------------------------------------------ the embedding

struct embedding {
    uint64_t numbers, columns, vocabulary;
};

// ATen/native/cuda/Embedding.cu: indices are sorted, then summed by segments of ten rows; the
// partial sums are bounded by the indices and a tenth of them. Up to 3072 indices one kernel does
// it.
static void embedding_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct embedding *d = NODE_DETAIL(n, struct embedding);
    struct machine *m = g->machine;
    uint64_t column = 8 * d->numbers;
    uint64_t partial = d->numbers / 10 + (d->numbers < d->vocabulary ? d->numbers : d->vocabulary);
    // Zeros for all rows, and the gradients of those that were picked.
    machine_move(m, n->input_bytes[0]);
    machine_move(m, 3 * gradient_bytes(n));
    machine_slow(m, MOVING_ADDED, 3 * gradient_bytes(n));
    if (d->numbers <= 3072) {
        out[0].gradient = machine_take(m, n->input_bytes[0], MEMORY_GRADIENTS);
        return;
    }
    struct storage *sorted = take_working(g, column), *original = take_working(g, column);
    struct storage *range = take_working(g, column);
    machine_scratch(m, sort_scratch(d->numbers, 64));
    machine_drop(m, range);
    out[0].gradient = machine_take(m, n->input_bytes[0], MEMORY_GRADIENTS);
    struct storage *offsets = take_working(g, column), *count = take_working(g, 8);
    struct storage *ones = take_working(g, column);
    machine_scratch(m, scan_scratch(d->numbers));
    machine_drop(m, ones);
    struct storage *sizes = take_working(g, column), *starts = take_working(g, column);
    machine_scratch(m, scan_scratch(d->numbers));
    struct storage *total = take_working(g, 8), *segments = take_working(g, 8 * partial);
    machine_scratch(m, 4 * partial * u64_align_up(d->columns, 32));
    struct storage *const done[] = {segments, total,   starts,   sizes,
                                    count,    offsets, original, sorted};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        machine_drop(m, done[i]);
}

const struct operation operation_embedding = {KERNELS_EMBEDDING, embedding_backward};

static struct var frozen_embedding(struct graph *g, int parameter, struct var ids)
{
    const struct parameter *p = &g->parameters[parameter];
    graph_at_module(g, parameter, &operation_embedding, MOMENT_FORWARD);
    struct var out = graph_output(g, NULL, ids.elements * p->columns, p->width);
    moves(g, 2 * var_bytes(out));
    graph_at_module(g, parameter, &operation_embedding, MOMENT_FORWARD_DONE);
    return out;
}

struct var op_leaf(struct graph *g, struct var x, int parameter)
{
    if (!g->embedding_is_leaf || !g->parameters[parameter].frozen)
        return x;
    struct node *leaf = graph_add(g, &operation_pass);
    graph_keep(g, leaf, x.storage);
    node_of_frozen(g, leaf, parameter);
    x.node = leaf ? (int32_t)(leaf - g->nodes) : NO_NODE;
    return x;
}

struct var op_embedding(struct graph *g, int parameter, struct var ids)
{
    const struct parameter *p = &g->parameters[parameter];
    if (p->frozen)
        return frozen_embedding(g, parameter, ids);
    graph_at_module(g, parameter, &operation_embedding, MOMENT_FORWARD);
    struct node *n = graph_add(g, &operation_embedding);
    graph_keep(g, n, ids.storage);
    struct var out = graph_output(g, n, ids.elements * p->columns, p->width);
    moves(g, 2 * var_bytes(out));
    node_parameter(g, n, 0, parameter);
    uint64_t ranks = p->cut == CUT_WORDS ? g->tensor_ranks : 1; // all words have gradients there
    if (n) {
        n->input_bytes[0] *= ranks;
        *NODE_DETAIL(n, struct embedding) =
            (struct embedding){ids.elements, p->columns, p->rows * ranks};
    }
    graph_at_module(g, parameter, &operation_embedding, MOMENT_FORWARD_DONE);
    return out;
}

// ------------------------------------------------------------------ any rows

struct index {
    uint64_t numbers, rows; // that are picked, that there are
};

static uint64_t bits_of(uint64_t n)
{
    uint64_t bits = 1;
    while (n >>= 1)
        bits++;
    return bits;
}

// One dimension's numbers, wrapped and made linear.
static struct storage *linear_part(struct graph *g, uint64_t column)
{
    struct storage *wrapped = take_working(g, column), *part = take_working(g, column);
    machine_drop(g->machine, wrapped);
    return part;
}

// Sorted by as many bits as the last row's number has. Takes the numbers over.
static void sort_numbers(struct graph *g, struct storage *numbers, const struct index *d)
{
    uint64_t column = 8 * d->numbers;
    struct storage *sorted = take_working(g, column), *original = take_working(g, column);
    struct storage *range = take_working(g, column);
    machine_scratch(g->machine, sort_scratch(d->numbers, bits_of(d->rows - 1)));
    struct storage *const done[] = {range, original, sorted, numbers};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        machine_drop(g->machine, done[i]);
}

// ATen/native/cuda/Indexing.cu, index_put_ that accumulates.
static void index_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct index *d = NODE_DETAIL(n, struct index);
    gradient_like_input(g, n, out);
    moves(g, 3 * gradient_bytes(n)); // added where it belongs
    slower(g, MOVING_ADDED, 3 * gradient_bytes(n));
    sort_numbers(g, linear_part(g, 8 * d->numbers), d);
}

static const struct operation index_rows = {KERNELS_INDEX, index_backward};

struct var op_index_rows(struct graph *g, struct var x, uint64_t rows, struct var numbers)
{
    struct node *n = graph_add(g, &index_rows);
    graph_keep(g, n, numbers.storage);
    if (n)
        *NODE_DETAIL(n, struct index) = (struct index){numbers.elements, rows};
    uint64_t elements = x.elements / rows * numbers.elements;
    struct var out = graph_output(g, n, elements, x.width);
    node_input(n, 0, x);
    moves(g, 2 * var_bytes(out));
    return out;
}

// ------------------------------------------------------------------ rows that a mask picks

// Indexing by a mask is indexing by what nonzero finds, two numbers a row, once the host knows how
// many there are (ATen/native/cuda/Nonzero.cu, memcpy_and_sync); autograd keeps the mask and looks
// again.
static void await_count(struct graph *g)
{
    machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
}

static struct storage *take_nonzero(struct graph *g, uint64_t rows)
{
    await_count(g);
    return machine_take(g->machine, 16 * rows, MEMORY_WORKING);
}

static void masked_rows_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct index *d = NODE_DETAIL(n, struct index);
    uint64_t column = 8 * d->numbers;
    gradient_like_input(g, n, out);
    struct storage *places = take_nonzero(g, d->numbers);
    struct storage *sum = linear_part(g, column), *other = linear_part(g, column);
    machine_drop(g->machine, other);
    machine_drop(g->machine, places);
    sort_numbers(g, sum, d);
}

static const struct operation masked_rows = {KERNELS_MASKED_ROWS, masked_rows_backward};

struct var op_masked_rows(struct graph *g, struct var x, struct var mask, uint64_t chosen)
{
    struct node *n = graph_add_for(g, &masked_rows, x);
    graph_keep(g, n, mask.storage);
    if (n)
        *NODE_DETAIL(n, struct index) = (struct index){chosen, mask.elements};
    await_count(g);
    struct var places = graph_output(g, NULL, 2 * chosen, 8);
    struct var out = op_unary(g, n, x, x.elements / mask.elements * chosen, x.width);
    var_drop(g, &places);
    return out;
}

struct var op_row_numbers(struct graph *g, uint64_t chosen)
{
    await_count(g);
    return op_constant(g, chosen, 8);
}

// Indexing as index_rows does, but of numbers that are all different: nothing is added up.
static void spread_backward(struct graph *g, struct node *n, struct outcome *out)
{
    gradient_like_input(g, n, out);
    moves(g, 2 * gradient_bytes(n));
}

static const struct operation spread_rows = {KERNELS_INDEX, spread_backward};

struct var op_spread_rows(struct graph *g, struct var x, uint64_t rows, struct var numbers)
{
    struct node *n = graph_add_for(g, &spread_rows, x);
    graph_keep(g, n, numbers.storage);
    moves(g, 2 * var_bytes(x));
    return op_unary(g, n, x, x.elements / numbers.elements * rows, x.width);
}

struct scatter {
    uint64_t rows;
};

// masked_scatter_backward (FunctionsManual.cpp): the mask selects from the gradient.
static void scatter_backward(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *places = take_nonzero(g, NODE_DETAIL(n, struct scatter)->rows);
    gradient_like_input(g, n, out);
    machine_drop(g->machine, places);
}

static const struct operation scatter = {KERNELS_SCATTER, scatter_backward};

// Zeros, a copy of them to write to, and where each value goes (IndexKernel.cpp).
struct var op_masked_scatter(struct graph *g, struct var x, struct var mask)
{
    struct node *n = graph_add_for(g, &scatter, x);
    graph_keep(g, n, mask.storage);
    if (n)
        NODE_DETAIL(n, struct scatter)->rows = x.elements;
    struct var zeros = graph_output(g, NULL, mask.elements, x.width);
    struct var out = op_unary(g, n, x, mask.elements, x.width);
    struct var places = graph_output(g, NULL, mask.elements, 8);
    var_drop(g, &places);
    var_drop(g, &zeros);
    return out;
}
