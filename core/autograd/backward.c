// Backward passes, operator by operator, in the order torch 2.11 allocates (generated Functions.cpp
// computes the last input's gradient first), as recorded in tests/data/traces/t00.
#include "core/autograd/backward.h"

#include "core/autograd/ring.h"
#include "core/base/num.h"
#include "core/base/units.h"

static struct storage *take(struct graph *g, uint64_t bytes)
{
    return machine_take(g->machine, bytes, MEMORY_WORKING);
}

void gemm_workspace(struct graph *g)
{
    if (g->gemm_ready[g->in_backward])
        return;
    g->gemm_ready[g->in_backward] = true;
    machine_take(g->machine, g->gemm_workspace_bytes, MEMORY_WORKSPACE);
}

// 1 MiB, kept since torch 2.9 (ATen/cuda/CublasHandlePool.cpp; recorded with Qwen2.5).
void fused_bias_workspace(struct graph *g)
{
    if (g->fused_bias_ready[g->in_backward])
        return;
    g->fused_bias_ready[g->in_backward] = true;
    machine_take(g->machine, MIB, MEMORY_WORKSPACE);
}

static uint64_t power_of_two_below(uint64_t n)
{
    uint64_t power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// ATen/native/cuda/Reduce.cuh, setReduceConfig for a sum over rows: up to four outputs a thread,
// 512 threads' worth a block, at least 16 and at most 256 values a thread.
void reduction_scratch(struct graph *g, const struct reduction *r)
{
    uint64_t vector = 4, rows = r->inputs_per_output;
    if (!r->outputs)
        return;
    while (r->outputs % vector)
        vector /= 2;
    uint64_t across = r->outputs / vector, threads = 512 / vector;
    uint64_t width = least(power_of_two_below(across), 32);
    uint64_t height = least(power_of_two_below(rows), threads / width);
    width = least(power_of_two_below(across), threads / height);
    ASSERT(width && height);
    uint64_t values = u64_divide_up(rows, height), grid = u64_divide_up(across, width);
    uint64_t target = g->multiprocessors * (g->threads_per_multiprocessor / (width * height));
    if (rows < least(16 * height, 256) || values < 256 || grid > target)
        return;
    uint64_t splits = least(u64_divide_up(target, grid), u64_divide_up(values, 16));
    uint64_t fewest = u64_divide_up(values, 256);
    splits = splits > fewest ? splits : fewest;
    if (splits <= 1)
        return;
    struct storage *partial =
        machine_take(g->machine, 4 * r->outputs * splits * width * vector, MEMORY_WORKSPACE);
    machine_scratch(g->machine, 4 * grid);
    machine_drop(g->machine, partial);
}

static void pass(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    for (int i = 0; i < NODE_INPUTS; i++)
        if (n->inputs[i] != NO_NODE)
            out[i].gradient = storage_share(n->gradient);
}

static void like_input(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take(g, n->sizes[0]);
}

// The wider input gets the gradient as it is, the narrower one a cast.
static void add(struct graph *g, struct node *n, struct outcome *out)
{
    pass(g, n, out);
    int narrow = n->sizes[0] < n->sizes[1] ? 0 : 1;
    out[narrow].cast_bytes = n->sizes[narrow];
}

static void power(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *lower = take(g, n->sizes[0]), *scaled = take(g, n->sizes[0]);
    out[0].gradient = take(g, n->sizes[0]);
    machine_drop(g->machine, scaled);
    machine_drop(g->machine, lower);
}

static void rsqrt(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *cubed = take(g, n->sizes[0]), *scaled = take(g, n->sizes[0]);
    out[0].gradient = take(g, n->sizes[0]);
    machine_drop(g->machine, scaled);
    machine_drop(g->machine, cubed);
}

static void multiply(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[1] != NO_NODE)
        out[1].gradient = take(g, n->sizes[2]);
    if (n->inputs[0] != NO_NODE)
        out[0].gradient = take(g, n->sizes[2]);
    if (n->sizes[1] != n->sizes[2])
        out[1].reduced_bytes = n->sizes[1];
    out[1].reduction = n->reduction;
    if (n->sizes[0] != n->sizes[2])
        out[0].cast_bytes = n->sizes[0];
}

static void multiply_weight(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take(g, n->sizes[2]);
    if (n->inputs[1] != NO_NODE) {
        out[1].gradient = take(g, n->sizes[2]);
        out[1].reduced_bytes = n->sizes[1];
        out[1].reduction = n->reduction;
    }
    if (n->sizes[2] != n->sizes[0])
        out[0].cast_bytes = n->sizes[0];
}

static void multiply_constant(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take(g, n->sizes[2]);
    if (n->sizes[2] != n->sizes[0])
        out[0].cast_bytes = n->sizes[0];
}

// clamp_backward (FunctionsManual.cpp): a comparison for each bound, then where.
static void clamp(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *low = take(g, n->sizes[1]), *high = take(g, n->sizes[2]);
    out[0].gradient = take(g, n->sizes[0]);
    machine_drop(g->machine, high);
    machine_drop(g->machine, low);
}

static void subtract(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = storage_share(n->gradient);
    out[1].gradient = take(g, n->sizes[0]);
    if (n->sizes[1] != n->sizes[0])
        out[1].reduced_bytes = n->sizes[1];
}

// CopySlices (torch/csrc/autograd/functions/tensor.cpp): the gradient is copied, the part taken out
// of the copy, and zeros put there for what the tensor was before, if that needs a gradient.
static void write_part(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *whole = take(g, n->sizes[0]);
    out[1].gradient = take(g, n->sizes[1]);
    if (n->inputs[0] == NO_NODE) {
        machine_drop(g->machine, whole);
        return;
    }
    machine_scratch(g->machine, n->sizes[1]);
    out[0].gradient = whole;
}

static void linear_input(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[0] == NO_NODE)
        return;
    out[0].gradient = take(g, n->sizes[0]);
    out[0].view = true;
    gemm_workspace(g);
}

static void linear_weight(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[1] == NO_NODE)
        return;
    out[1].gradient = machine_take(g->machine, n->sizes[1], MEMORY_GRADIENTS);
    out[1].view = true; // transposed
    gemm_workspace(g);
}

// MmBackward0 begins with the weight, AddmmBackward0, which has a bias, with the input.
static void torch_linear(struct graph *g, struct node *n, struct outcome *out)
{
    bool biased = n->inputs[2] != NO_NODE;
    if (biased)
        linear_input(g, n, out);
    linear_weight(g, n, out);
    if (!biased)
        linear_input(g, n, out);
}

// DeepSpeed's linear layer (deepspeed/runtime/zero/linear.py): the input's gradient first, neither
// transposed.
static void zero_linear(struct graph *g, struct node *n, struct outcome *out)
{
    if (n->inputs[0] != NO_NODE)
        out[0].gradient = take(g, n->sizes[0]);
    gemm_workspace(g);
    out[1].gradient = machine_take(g->machine, n->sizes[1], MEMORY_GRADIENTS);
}

static void linear(struct graph *g, struct node *n, struct outcome *out)
{
    int products = (n->inputs[0] != NO_NODE) + (n->inputs[1] != NO_NODE);
    if (g->module)
        zero_linear(g, n, out);
    else
        torch_linear(g, n, out);
    if (n->inputs[2] != NO_NODE) {
        out[2].gradient = machine_take(g->machine, n->sizes[2], MEMORY_GRADIENTS);
        reduction_scratch(g, &n->reduction);
    }
    g->machine->flops +=
        2 * (uint64_t)products * n->reduction.outputs * n->reduction.inputs_per_output;
}

// FlashAttention 2 (recording v2): row sums, q's gradient in fp32, and where heads share keys the
// gradients of keys and values for every query head.
static void flash_scratch(struct graph *g, const struct node *n)
{
    struct storage *sums = take(g, n->sizes[2]), *wide = take(g, 2 * n->sizes[0]);
    bool shared = n->sizes[0] != n->sizes[1];
    struct storage *keys = shared ? take(g, n->sizes[0]) : NULL;
    struct storage *values = shared ? take(g, n->sizes[0]) : NULL;
    machine_drop(g->machine, values);
    machine_drop(g->machine, keys);
    machine_drop(g->machine, wide);
    machine_drop(g->machine, sums);
}

// BmmBackward0 (derivatives.yaml): each factor's gradient is a product with the other.
static void product(struct graph *g, struct node *n, struct outcome *out)
{
    out[1].gradient = take(g, n->sizes[1]);
    gemm_workspace(g);
    out[0].gradient = take(g, n->sizes[0]);
    g->machine->flops += 2 * n->sizes[2];
}

static void attention(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = take(g, n->sizes[0]);
    out[1].gradient = take(g, n->sizes[1]);
    out[2].gradient = take(g, n->sizes[3]);
    if (g->flash) {
        flash_scratch(g, n);
        return;
    }
    // fp32 gradient of q; keys' and values' gradients for every query head where they are shared; a
    // row sum; recorded: 67,371,264 bytes for 4096 tokens, 16 heads of 128 and 8 of keys.
    uint64_t whole = 2 * n->sizes[0];
    bool shared = n->sizes[0] != n->sizes[1];
    machine_scratch(g->machine, whole + (shared ? whole : 0) + n->sizes[2] + 256);
}

// Scratch of cub's radix sort of pairs and of its scan, for so many indices: fitted to the sizes in
// ten recordings, with cub's tile sizes; the histograms are 2 KiB for each pass over eight bits.
uint64_t sort_scratch(uint64_t rows, uint64_t bits)
{
    return 2 * u64_align_up(8 * rows, 256) + 2048 * u64_divide_up(bits, 8) +
           1024 * u64_divide_up(rows, 4608) + 511;
}

static uint64_t scan_scratch(uint64_t rows)
{
    return 511 + u64_align_up(16 * (32 + u64_divide_up(rows, 896)), 256);
}

// ATen/native/cuda/Embedding.cu: indices are sorted, then summed by segments of ten rows; the
// partial sums are bounded by the indices and a tenth of them. Up to 3072 indices one kernel does
// it.
static void embedding(struct graph *g, struct node *n, struct outcome *out)
{
    struct machine *m = g->machine;
    uint64_t rows = n->sizes[1], column = 8 * rows, vocabulary = n->sizes[3];
    uint64_t partial = rows / 10 + least(rows, vocabulary);
    if (rows <= 3072) {
        out[0].gradient = machine_take(m, n->sizes[0], MEMORY_GRADIENTS);
        return;
    }
    struct storage *sorted = take(g, column), *original = take(g, column);
    struct storage *range = take(g, column);
    machine_scratch(m, sort_scratch(rows, 64));
    machine_drop(m, range);
    out[0].gradient = machine_take(m, n->sizes[0], MEMORY_GRADIENTS);
    struct storage *offsets = take(g, column), *count = take(g, 8), *ones = take(g, column);
    machine_scratch(m, scan_scratch(rows));
    machine_drop(m, ones);
    struct storage *sizes = take(g, column), *starts = take(g, column);
    machine_scratch(m, scan_scratch(rows));
    struct storage *total = take(g, 8), *segments = take(g, 8 * partial);
    machine_scratch(m, 4 * partial * u64_align_up(n->sizes[2], 32));
    struct storage *const done[] = {segments, total,   starts,   sizes,
                                    count,    offsets, original, sorted};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        machine_drop(m, done[i]);
}

// _softmax_backward_data multiplies gradient and output first.
static void softmax(struct graph *g, struct node *n, struct outcome *out)
{
    like_input(g, n, out);
    machine_scratch(g->machine, n->sizes[0]);
}

// For the divisor, -gradient * ((x / divisor) / divisor), summed to its shape.
static void divide(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *made[3];
    for (int i = 0; i < COUNT_OF(made); i++)
        made[i] = take(g, n->sizes[0]);
    out[1].gradient = take(g, n->sizes[0]);
    out[1].reduced_bytes = n->sizes[1];
    for (int i = COUNT_OF(made) - 1; i >= 0; i--)
        machine_drop(g->machine, made[i]);
    out[0].gradient = take(g, n->sizes[0]);
}

static uint64_t bits_of(uint64_t n)
{
    uint64_t bits = 1;
    while (n >>= 1)
        bits++;
    return bits;
}

// ATen/native/cuda/Indexing.cu, index_put_ that accumulates: the numbers are wrapped, made linear
// and sorted by as many bits as the last row's number has.
static void index_rows(struct graph *g, struct node *n, struct outcome *out)
{
    struct machine *m = g->machine;
    uint64_t column = 8 * n->sizes[1];
    like_input(g, n, out);
    struct storage *wrapped = take(g, column), *linear_index = take(g, column);
    machine_drop(m, wrapped);
    struct storage *sorted = take(g, column), *original = take(g, column);
    struct storage *range = take(g, column);
    machine_scratch(m, sort_scratch(n->sizes[1], bits_of(n->sizes[2] - 1)));
    struct storage *const done[] = {range, original, sorted, linear_index};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        machine_drop(m, done[i]);
}

// ATen/native/cuda/GroupMM.cu: for each group three pointers, three strides and a shape; CUTLASS
// asks for 512 bytes a multiprocessor. Recorded on compute capability 9.0.
void grouped_scratch(struct graph *g, uint64_t groups)
{
    if (!groups)
        return;
    struct storage *arguments =
        machine_take(g->machine, 60 * u64_align_up(groups, 2), MEMORY_WORKSPACE);
    machine_scratch(g->machine, 512 * g->multiprocessors);
    machine_drop(g->machine, arguments);
}

static void grouped_product(struct graph *g, struct node *n, struct outcome *out)
{
    out[1].gradient = machine_take(g->machine, n->sizes[1], MEMORY_GRADIENTS);
    out[1].view = true; // transposed
    grouped_scratch(g, n->sizes[2]);
    out[0].gradient = take(g, n->sizes[0]);
    grouped_scratch(g, n->sizes[2]);
    g->machine->flops += 2 * n->sizes[3];
}

static void boundary(struct graph *g, struct node *n, struct outcome *out)
{
    if (g->boundary)
        g->boundary(g, (int)n->sizes[0], n->sizes[1]);
    pass(g, n, out);
    out[0].view = n->gradient_is_view;
}

// A permuted copy and a receive buffer; the result is a view of the latter.
static void exchange_in(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *sent = take(g, n->sizes[0]);
    out[0].gradient = take(g, n->sizes[0]);
    machine_drop(g->machine, sent);
}

static void exchange_out(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *sent = take(g, n->sizes[0]), *received = take(g, n->sizes[0]);
    out[0].gradient = take(g, n->sizes[0]);
    machine_drop(g->machine, sent);
    machine_drop(g->machine, received);
}

// The chunks' gradients are joined; they were handed to this node one after another.
static void chunks(struct graph *g, struct node *n, struct outcome *out)
{
    struct chunk_gradients *c = n->detail;
    out[0].gradient = take(g, n->sizes[0]);
    for (int i = 0; i < c->count; i++)
        machine_drop(g->machine, c->gradients[i]);
}

static void chunk(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    (void)out;
    struct chunk_gradients *c = n->detail;
    c->gradients[--c->next] = storage_share(n->gradient);
}

// bitsandbytes/autograd/_functions.py, MatMul4Bit: the scales, then the weight in bf16.
static void packed_linear(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *scales = take(g, packed_scale_bytes(n->sizes[1]));
    struct storage *weight = take(g, 2 * n->sizes[1]);
    machine_drop(g->machine, scales);
    out[0].gradient = take(g, n->sizes[0]);
    gemm_workspace(g);
    machine_drop(g->machine, weight);
}

// What it kept are the gradients.
static void fused_loss(struct graph *g, struct node *n, struct outcome *out)
{
    machine_scratch(g->machine, 4); // the number one, to compare with
    for (int i = 0; i < n->saved_count; i++)
        out[i].gradient = storage_share(n->saved[i]);
}

static void logits(struct graph *g, struct node *n, struct outcome *out)
{
    out[0].gradient = machine_take(g->machine, n->sizes[0], MEMORY_LOGITS);
}

// autograd's CopySlices (torch/csrc/autograd/functions/tensor.cpp): the gradient is copied into the
// base's layout, the view's part cloned, divided, and written back; recorded in v2.
static void divide_view(struct graph *g, struct node *n, struct outcome *out)
{
    struct storage *result = machine_take(g->machine, n->sizes[0], MEMORY_LOGITS);
    machine_drop(g->machine, n->gradient);
    n->gradient = NULL;
    out[0].gradient = machine_take(g->machine, n->sizes[0], MEMORY_LOGITS);
    struct storage *clone = machine_take(g->machine, n->sizes[0], MEMORY_LOGITS);
    struct storage *quotient = machine_take(g->machine, n->sizes[0], MEMORY_LOGITS);
    machine_drop(g->machine, clone);
    machine_drop(g->machine, quotient);
    machine_drop(g->machine, result);
}

static void (*const backwards[OPERATION_COUNT])(struct graph *, struct node *, struct outcome *) = {
    [OPERATION_PASS] = pass,
    [OPERATION_CAST] = like_input,
    [OPERATION_ADD] = add,
    [OPERATION_POWER] = power,
    [OPERATION_MEAN] = like_input,
    [OPERATION_RSQRT] = rsqrt,
    [OPERATION_MULTIPLY] = multiply,
    [OPERATION_MULTIPLY_WEIGHT] = multiply_weight,
    [OPERATION_MULTIPLY_CONSTANT] = multiply_constant,
    [OPERATION_NEGATE] = like_input,
    [OPERATION_SLICE] = like_input,
    [OPERATION_LINEAR] = linear,
    [OPERATION_COPY_LAYOUT] = like_input,
    [OPERATION_ACTIVATION] = like_input,
    [OPERATION_ATTENTION] = attention,
    [OPERATION_EMBEDDING] = embedding,
    [OPERATION_LOG_SOFTMAX] = logits,
    [OPERATION_NLL] = logits,
    [OPERATION_TOKEN_LOSS] = logits,
    [OPERATION_CHUNKED_ENTROPY] = chunked_entropy_backward,
    [OPERATION_FUSED_POLICY] = fused_policy_backward,
    [OPERATION_DIVIDE_VIEW] = divide_view,
    [OPERATION_BOUNDARY] = boundary,
    [OPERATION_EXCHANGE_IN] = exchange_in,
    [OPERATION_RING] = ring_backward,
    [OPERATION_CHUNKS] = chunks,
    [OPERATION_CHUNK] = chunk,
    [OPERATION_EXCHANGE_OUT] = exchange_out,
    [OPERATION_SOFTMAX] = softmax,
    [OPERATION_TOP] = like_input,
    [OPERATION_DIVIDE] = divide,
    [OPERATION_INDEX] = index_rows,
    [OPERATION_MASK] = like_input,
    [OPERATION_GROUPED_PRODUCT] = grouped_product,
    [OPERATION_SUM_GROUPS] = like_input, // expanded, and copied to be viewed as rows
    [OPERATION_TANH] = like_input,
    [OPERATION_SIGMOID] = like_input,
    [OPERATION_CLAMP] = clamp,
    [OPERATION_SUBTRACT] = subtract,
    [OPERATION_MAX] = like_input,
    [OPERATION_WRITE] = write_part,
    [OPERATION_PRODUCT] = product,
    [OPERATION_PACKED_LINEAR] = packed_linear,
    [OPERATION_FUSED_LOSS] = fused_loss,
};

void backward_of(struct graph *g, struct node *n, struct outcome out[NODE_INPUTS])
{
    ASSERT(backwards[n->operation]);
    backwards[n->operation](g, n, out);
}
