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

static struct var frozen_embedding(struct graph *g, const struct parameter *p, struct var ids)
{
    struct node *leaf = g->embedding_is_leaf ? graph_add(g, &operation_pass) : NULL;
    struct var out = graph_output(g, leaf, ids.elements * p->columns, p->width);
    graph_keep(g, leaf, out.storage); // a leaf lives as long as the graph
    return out;
}

struct var op_embedding(struct graph *g, int parameter, struct var ids)
{
    const struct parameter *p = &g->parameters[parameter];
    if (p->frozen)
        return frozen_embedding(g, p, ids);
    graph_at_module(g, parameter, &operation_embedding, MOMENT_FORWARD);
    struct node *n = graph_add(g, &operation_embedding);
    graph_keep(g, n, ids.storage);
    struct var out = graph_output(g, n, ids.elements * p->columns, p->width);
    node_parameter(g, n, 0, parameter);
    if (n)
        *NODE_DETAIL(n, struct embedding) = (struct embedding){ids.elements, p->columns, p->rows};
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

// ATen/native/cuda/Indexing.cu, index_put_ that accumulates: the numbers are wrapped, made linear
// and sorted by as many bits as the last row's number has.
static void index_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct index *d = NODE_DETAIL(n, struct index);
    struct machine *m = g->machine;
    uint64_t column = 8 * d->numbers;
    gradient_like_input(g, n, out);
    struct storage *wrapped = take_working(g, column), *linear_index = take_working(g, column);
    machine_drop(m, wrapped);
    struct storage *sorted = take_working(g, column), *original = take_working(g, column);
    struct storage *range = take_working(g, column);
    machine_scratch(m, sort_scratch(d->numbers, bits_of(d->rows - 1)));
    struct storage *const done[] = {range, original, sorted, linear_index};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        machine_drop(m, done[i]);
}

static const struct operation index_rows = {KERNELS_INDEX, index_backward};

struct var op_index_rows(struct graph *g, struct var x, uint64_t rows, struct var numbers)
{
    struct node *n = graph_add(g, &index_rows);
    graph_keep(g, n, numbers.storage);
    if (n)
        *NODE_DETAIL(n, struct index) = (struct index){numbers.elements, rows};
    return op_unary(g, n, x, x.elements / rows * numbers.elements, x.width);
}
