// Fused attention: cuDNN's, FlashAttention 2, and torch's memory-efficient kernel. Attention that
// is written out operator by operator is the models' business, and ring.c's what goes round a ring
// of ranks.
#include "core/base/num.h"
#include "core/ops/operation.h"

struct attention {
    uint64_t row_bytes; // of one fp32 value a token and head
    uint32_t rows, tokens;
    uint16_t heads, kv_heads, head_dim;
    bool masked : 1, is_half : 1;
};

// FlashAttention takes no mask (sdp_utils.cpp), and the package is given none.
static bool is_efficient(const struct graph *g, bool masked)
{
    return g->efficient || (g->flash && masked);
}

static void attends(struct graph *g, const struct attention *d, bool backward)
{
    const struct attending_shape a = {.rows = d->rows,
                                      .tokens = d->tokens,
                                      .heads = d->heads,
                                      .kv_heads = d->kv_heads,
                                      .head_dim = d->head_dim,
                                      .all_pairs = d->masked,
                                      .flash2 = g->flash && !d->masked,
                                      .backward = backward};
    if (!g->stopped)
        machine_attend(g->machine, &a);
}

// What is summed up in fp32 has so many rows more for each sample of a packed sequence.
static uint64_t with_rows(const struct graph *g, uint64_t bytes, uint64_t rows)
{
    return bytes + (g->sample_tokens ? sat_mul(bytes, rows) / g->sample_tokens : 0);
}

// FlashAttention 2 (recording v2): row sums, q's gradient in fp32, and where heads share keys the
// gradients of keys and values for every query head. Rows of samples: flash-attn 2.7.4,
// flash_api.cpp, mha_varlen_bwd, total_q + 128 * batch_size.
static void flash_scratch(struct graph *g, uint64_t q_bytes, uint64_t k_bytes, uint64_t row_bytes)
{
    enum { SAMPLE_ROWS = 128 };
    uint64_t shared = q_bytes != k_bytes ? q_bytes : 0;
    struct storage *sums = take_working(g, with_rows(g, row_bytes, SAMPLE_ROWS));
    struct storage *wide = take_working(g, with_rows(g, 2 * q_bytes, SAMPLE_ROWS));
    struct storage *keys = take_working(g, shared), *values = take_working(g, shared);
    machine_drop(g->machine, values);
    machine_drop(g->machine, keys);
    machine_drop(g->machine, wide);
    machine_drop(g->machine, sums);
}

// FlashAttention 3 (hopper/flash_api.cpp, mha_bwd): row sums and the sums' logarithms, gradients in
// fp32 of q, and where heads share keys of keys and values. Rows of samples are those of its tiles
// for causal heads of 65 to 128.
static void flash3_scratch(struct graph *g, uint64_t q_bytes, uint64_t k_bytes, uint64_t row_bytes)
{
    enum { SAMPLE_QUERIES = 64, SAMPLE_KEYS = 128 };
    const uint64_t shared = q_bytes != k_bytes ? with_rows(g, 2 * k_bytes, SAMPLE_KEYS) : 0;
    const uint64_t sums = with_rows(g, row_bytes, SAMPLE_QUERIES);
    const uint64_t bytes[] = {sums, sums, with_rows(g, 2 * q_bytes, SAMPLE_QUERIES), shared,
                              shared};
    struct storage *taken[COUNT_OF(bytes)];
    for (int i = 0; i < COUNT_OF(bytes); i++)
        taken[i] = take_working(g, bytes[i]);
    for (int i = 0; i < COUNT_OF(bytes); i++)
        machine_drop(g->machine, taken[i]);
}

// fp32 gradient of q; keys' and values' gradients for every query head where they are shared; a row
// sum; recorded: 67,371,264 bytes for 4096 tokens, 16 heads of 128 and 8 of keys.
static void cudnn_scratch(struct graph *g, uint64_t q_bytes, uint64_t k_bytes, uint64_t row_bytes)
{
    uint64_t shared = q_bytes != k_bytes ? 2 * q_bytes : 0;
    machine_scratch(g->machine, 2 * q_bytes + shared + row_bytes + 256);
}

// The memory-efficient kernel (torch 2.11, ATen/native/transformers/cuda/attention_backward.cu):
// row sums, and in half precision the gradient of q in fp32.
static void efficient_scratch(struct graph *g, uint64_t wide_bytes, uint64_t row_bytes)
{
    struct storage *sums = take_working(g, row_bytes), *wide = take_working(g, wide_bytes);
    machine_drop(g->machine, wide);
    machine_drop(g->machine, sums);
}

void attention_scratch(struct graph *g, uint64_t q_bytes, uint64_t k_bytes, uint64_t row_bytes)
{
    (g->flash3  ? flash3_scratch
     : g->flash ? flash_scratch
                : cudnn_scratch)(g, q_bytes, k_bytes, row_bytes);
}

static void attention_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct attention *d = NODE_DETAIL(n, struct attention);
    uint64_t row_bytes = d->row_bytes;
    attends(g, d, true);
    for (int i = 0; i < 3; i++)
        out[i].gradient = take_working(g, n->input_bytes[i]);
    if (is_efficient(g, d->masked)) {
        efficient_scratch(g, d->is_half ? 2 * n->input_bytes[0] : 0, row_bytes);
        return;
    }
    attention_scratch(g, n->input_bytes[0], n->input_bytes[1], row_bytes);
}

static const struct operation attention = {KERNELS_ATTENTION, attention_backward};

struct queries {
    struct var q, k, v;
};

static struct node *add_attention(struct graph *g, const struct queries *in)
{
    struct node *n = graph_add_for(g, &attention, either(either(in->q, in->k), in->v));
    node_input(n, 0, in->q);
    node_input(n, 1, in->k);
    node_input(n, 2, in->v);
    return n;
}

// q, k and v are kept now, let go last.
static void count_inputs(struct graph *g)
{
    for (int i = 0; i < 3; i++)
        graph_keep(g, NULL, NULL);
}

// Kept in host memory they are packed before it runs, by their names, each a view that is copied.
static struct queries packed_inputs(struct graph *g, const struct node *n, const struct queries *in)
{
    struct queries packed = *in;
    if (!n || !graph_offloads(g))
        return packed;
    packed.k.storage = graph_packed(g, in->k.storage, LAID_AS_VIEW);
    packed.q.storage = graph_packed(g, in->q.storage, LAID_AS_VIEW);
    packed.v.storage = graph_packed(g, in->v.storage, LAID_AS_VIEW);
    return packed;
}

static void keep_inputs(const struct graph *g, struct node *n, const struct queries *in)
{
    if (n && graph_offloads(g)) {
        graph_keep_packed(n, in->v.storage);
        graph_keep_packed(n, in->q.storage);
        graph_keep_packed(n, in->k.storage);
        return;
    }
    keep_last(g, n, in->v.storage);
    keep_last(g, n, in->q.storage);
    keep_last(g, n, in->k.storage);
}

// A mask of booleans is turned into numbers for every call, and kept; in a recomputed layer it goes
// last.
static struct var number_mask(struct graph *g, const struct attention_shape *shape)
{
    if (!shape->mask_elements || shape->mask)
        return (struct var){NULL, NO_NODE, 2, 0};
    moves(g, 3 * shape->mask_elements);
    return graph_output(g, NULL, shape->mask_elements, 2);
}

// What a kernel leaves: its output, the log of its sums, and the random state.
struct attended {
    struct var out, log_sum, seed, offset;
};

// ATen/native/transformers/attention.cpp, should_compute_logsumexp: FlashAttention always makes it.
static bool wants_log_sum(const struct graph *g)
{
    return g->recording;
}

// The output lies as the layer's queries do, which is not as it is numbered. In host memory the
// sums and it are packed first, by their names; the random state is let go first.
static void keep_made(struct graph *g, struct node *n, const struct attended *made,
                      const struct var *random, int count)
{
    if (!n || !graph_offloads(g)) {
        for (int i = 0; i < count; i++)
            graph_keep(g, n, random[i].storage);
        graph_keep(g, n, made->out.storage);
        graph_keep(g, n, made->log_sum.storage);
        return;
    }
    struct storage *sums = graph_packed(g, made->log_sum.storage, LAID_OUT);
    struct storage *out = graph_packed(g, made->out.storage, LAID_AS_VIEW);
    for (int i = 0; i < count; i++)
        graph_keep_packed(n, graph_packed(g, random[i].storage, LAID_OUT));
    graph_keep_packed(n, out);
    graph_keep_packed(n, sums);
}

static void note_work(struct graph *g, struct node *n, const struct attended *made,
                      const struct attention_shape *shape)
{
    uint64_t spread = shape->spread ? shape->spread : 1;
    uint64_t sequence = shape->sequence ? shape->sequence : shape->tokens * spread;
    if (g->sample_tokens && g->sample_tokens < sequence)
        sequence = g->sample_tokens;
    const struct attention d = {.row_bytes = var_bytes(made->log_sum),
                                .rows = (uint32_t)(shape->tokens * spread / sequence),
                                .tokens = (uint32_t)sequence,
                                .heads = (uint16_t)(shape->heads / spread),
                                .kv_heads = (uint16_t)(shape->kv_heads / spread),
                                .head_dim = (uint16_t)shape->head_dim,
                                .masked = shape->mask_elements > 0};
    attends(g, &d, false);
    if (n)
        *NODE_DETAIL(n, struct attention) = d;
}

static struct var output_of(struct graph *g, struct attended *made)
{
    var_drop(g, &made->log_sum);
    var_drop(g, &made->seed);
    var_drop(g, &made->offset);
    return made->out;
}

// Values may be narrower than keys, where there are as many heads of all three (latent attention).
static uint64_t mixed_elements(const struct queries *in)
{
    if (in->v.elements == in->k.elements)
        return in->q.elements;
    return in->q.elements / in->k.elements * in->v.elements;
}

// cuDNN's fused attention, the first choice of torch 2.9 and later on compute capability 9.0 and
// 10.0; the sizes are those of recorded runs (tests/data/traces/t00).
static struct var attend(struct graph *g, const struct queries *in,
                         const struct attention_shape *shape)
{
    struct node *n = add_attention(g, in);
    struct var mask = number_mask(g, shape);
    if (shape->mask)
        graph_keep(g, n, shape->mask);
    count_inputs(g);
    const struct queries packed = packed_inputs(g, n, in);
    if (mask.elements)
        graph_keep(g, NULL, NULL);
    if (!g->frame && mask.elements)
        keep_last(g, n, mask.storage);
    struct attended made = {.seed = graph_output(g, NULL, 1, 8)};
    made.offset = graph_output(g, NULL, 1, 8);
    made.out = graph_output(g, n, mixed_elements(in), in->q.width);
    if (wants_log_sum(g))
        made.log_sum = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    if (!g->stopped)
        machine_scratch(g->machine, 256);
    note_work(g, n, &made, shape);
    const struct var random[] = {made.seed, made.offset};
    keep_made(g, n, &made, random, COUNT_OF(random));
    keep_inputs(g, n, &packed);
    if (g->frame && mask.elements)
        keep_last(g, n, mask.storage);
    var_drop(g, &mask);
    return output_of(g, &made);
}

// FlashAttention 2: two tensors of the random state (recording v2: torch's own copy of the kernels;
// the package's varlen form takes 512 bytes a sequence more).
static struct var attend_flash(struct graph *g, const struct queries *in,
                               const struct attention_shape *shape)
{
    struct node *n = add_attention(g, in);
    if (g->attention_waits)
        machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
    count_inputs(g);
    const struct queries packed = packed_inputs(g, n, in);
    struct attended made = {.out = graph_output(g, n, in->q.elements, in->q.width)};
    made.log_sum = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    made.seed = graph_output(g, NULL, 2, 8);
    made.offset = graph_output(g, NULL, 1, 8);
    note_work(g, n, &made, shape);
    const struct var random[] = {made.offset, made.seed};
    keep_made(g, n, &made, random, COUNT_OF(random));
    keep_inputs(g, n, &packed);
    return output_of(g, &made);
}

// attention.cu beside it: the log of sums is padded to 32 queries, the random state is not on the
// card. A mask takes the queries' type, and is kept.
static struct var attend_efficient(struct graph *g, const struct queries *in,
                                   const struct attention_shape *shape)
{
    enum { ALIGNED_QUERIES = 32 };
    struct node *n = add_attention(g, in);
    struct var mask = {NULL, NO_NODE, in->q.width, 0};
    if (shape->mask)
        graph_keep(g, n, shape->mask);
    else if (shape->mask_elements)
        mask = graph_output(g, NULL, shape->mask_elements, in->q.width);
    count_inputs(g);
    const struct queries packed = packed_inputs(g, n, in);
    struct attended made = {.out = graph_output(g, n, in->q.elements, in->q.width)};
    uint64_t queries = u64_align_up(shape->tokens, ALIGNED_QUERIES);
    if (wants_log_sum(g))
        made.log_sum = graph_output(g, NULL, queries * shape->heads, 4);
    note_work(g, n, &made, shape);
    if (n)
        NODE_DETAIL(n, struct attention)->is_half = in->q.width == 2;
    keep_made(g, n, &made, NULL, 0);
    if (mask.elements)
        graph_keep(g, n, mask.storage);
    keep_inputs(g, n, &packed);
    var_drop(g, &mask);
    return output_of(g, &made);
}

struct var op_attention(struct graph *g, struct var q, struct var k, struct var v,
                        const struct attention_shape *shape)
{
    uint32_t width = g->wide ? 4 : 2;
    struct var v_low = op_cast(g, v, width), k_low = op_cast(g, k, width); // autocast's order
    struct var q_low = op_cast(g, q, width);
    struct queries in = {q_low, k_low, v_low};
    struct var out = is_efficient(g, shape->mask_elements > 0) ? attend_efficient(g, &in, shape)
                     : g->flash                                ? attend_flash(g, &in, shape)
                                                               : attend(g, &in, shape);
    var_drop(g, &q_low);
    var_drop(g, &k_low);
    var_drop(g, &v_low);
    return out;
}
