// Ulysses: every rank attends over all tokens with its share of the heads, as verl exchanges them
// and as DeepSpeed does (0.19.8, runtime/sequence_parallel/ulysses_sp.py, UlyssesSPAttentionHF).
#include "core/models/forward.h"

static struct var verl_attention(struct graph *g, struct heads h,
                                 const struct attention_shape *shape)
{
    uint64_t kv_elements = shape->tokens * shape->kv_heads * shape->head_dim;
    struct scope f = scope_in(g);
    struct var k_repeated = repeat(g, h.k, kv_elements), received;
    h.q = local(&f, exchange_in(g, h.q));
    h.k = local(&f, exchange_in(g, k_repeated));
    h.v = local(&f, exchange_in(g, repeat(g, h.v, kv_elements)));
    struct var out = unnamed(op_exchange_out(g, taken(attend(g, h, shape)), &received));
    local(&f, unnamed(received));
    return returns(&f, out);
}

// UlyssesSPAttentionHF, combine_sequence: heads that ranks share are repeated; what is sent lies
// rank by rank, and its gradient comes back in that order. It is copied where a rank has several
// heads; of one, whoever needs it in order does: Liger's positions here (ops/rope.py,
// .contiguous()), the projection of values later. Gradients of repeated heads are summed up
// instead.
static struct var combined(struct graph *g, struct var x, uint64_t elements, struct sent gradient)
{
    struct scope f = scope_in(g);
    struct var input = local(&f, copy(g, repeat(g, x, elements)));
    gradient.copied_after &= elements == x.elements;
    return returns(&f, all_to_all(g, input, gradient));
}

static void lay_out(struct scope *f, struct var *x, bool several)
{
    if (several)
        assign(f, x, copy(f->graph, *x));
}

// Positions of all tokens are gathered and joined for each call. A tensor of one head and one
// sequence needs no other layout; several sequences come token by token and go back so, and the
// layer lays its attention's output out once more (modeling_qwen3.py, .contiguous()).
static struct var deepspeed_attention(struct graph *g, struct heads h,
                                      const struct attention_shape *shape, const struct job *job)
{
    uint64_t ranks = job->ulysses;
    bool liger = job->layer_kernels == KERNELS_OF_LIGER;
    uint64_t kv_elements = shape->tokens * shape->kv_heads * shape->head_dim;
    bool queries = shape->heads > ranks, keys = shape->kv_heads > ranks, rows = job_rows(job) > 1;
    struct scope f = scope_in(g);
    local(&f, constant(g, shape->tokens * ranks, 8));
    local(&f, constant(g, shape->tokens * ranks, 8));
    struct heads all;
    all.q =
        local(&f, combined(g, h.q, h.q.elements, (struct sent){queries || rows, queries || liger}));
    all.k = local(&f, combined(g, h.k, kv_elements, (struct sent){keys || rows, keys || liger}));
    all.v = local(&f, combined(g, h.v, kv_elements, (struct sent){keys || rows, keys}));
    lay_out(&f, &all.q, queries || rows);
    lay_out(&f, &all.k, keys || rows);
    lay_out(&f, &all.v, keys || rows);
    struct var context = local(&f, attend(g, all, shape));
    lay_out(&f, &context, queries);
    lay_out(&f, &context, rows);
    struct var out = copy(g, all_to_all(g, context, (struct sent){true, false}));
    out = returns(&f, out);
    return rows ? copy(g, out) : out;
}

struct var ulysses_attention(struct graph *g, struct heads h, const struct attention_shape *shape,
                             const struct job *job)
{
    return job_is_zero(job) ? deepspeed_attention(g, h, shape, job) : verl_attention(g, h, shape);
}
