// TransformerEngine's attention over a context that is spread over ranks (2.11,
// attention/dot_product_attention/context_parallel.py), in both ways that Megatron-LM chooses from:
// a2a deals heads out, so that each rank sees all tokens (AttnFuncWithCPAndQKVOA2A), p2p hands keys
// and values round (AttnFuncWithCPAndKVP2P).
#include "core/base/num.h"
#include "core/ops/engine.h"
#include "core/ops/operation.h"

// Every other turn of a ring, and what is laid out behind an exchange, is on a stream of its own.
enum { CONTEXT_STREAM = FIRST_SIDE_STREAM, SENT = 3 };

struct context_attention {
    uint64_t row_bytes;
    uint16_t heads, kv_heads, head_dim, ranks;
    uint32_t tokens; // of this rank
    uint16_t rank, sequences;
};

static struct storage *take_beside(struct graph *g, uint64_t bytes, enum memory_kind kind)
{
    return machine_take_on(g->machine, CONTEXT_STREAM, bytes, kind);
}

// Of all pairs of tokens a rank has its part, by heads or by tokens.
static void attends(struct graph *g, const struct context_attention *d, bool backward)
{
    uint64_t ranks = d->ranks, heads = d->heads / ranks, kv_heads = d->kv_heads / ranks;
    const struct attending_shape a = {.rows = d->sequences,
                                      .tokens = (uint64_t)d->tokens * d->ranks / d->sequences,
                                      .heads = u64_most(heads, 1),
                                      .kv_heads = u64_most(kv_heads, 1),
                                      .head_dim = d->head_dim,
                                      .flash2 = g->flash,
                                      .backward = backward};
    machine_attend(g->machine, &a);
}

// ------------------------------------------------------------------ heads dealt out

// flash_attn_a2a_communicate: each tensor is copied, sent, and laid out beside the main stream; the
// copies are kept until all are there.
static void exchange(struct graph *g, const uint64_t *bytes, int count, struct storage **laid)
{
    struct machine *m = g->machine;
    struct storage *copies[SENT] = {0}, *came[SENT] = {0};
    for (int i = 0; i < count + 2; i++) {
        if (i > 0 && i <= count) {
            came[i - 1] = take_working(g, bytes[i - 1]);
            machine_collect(m, STREAM_COMPUTE, ALL_TO_ALL, g->engine->context_ranks, bytes[i - 1]);
        }
        if (i > 1) {
            laid[i - 2] = take_beside(g, bytes[i - 2], g->kind);
            machine_drop(m, came[i - 2]);
        }
        if (i < count)
            copies[i] = make_working(g, bytes[i], bytes[i]);
    }
    for (int i = 0; i < count; i++)
        machine_drop(m, copies[i]);
}

static void dealt_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct context_attention *d = NODE_DETAIL(n, struct context_attention);
    struct machine *m = g->machine;
    uint64_t came_bytes = gradient_bytes(n);
    struct storage *came, *made[SENT], *laid[SENT];
    exchange(g, &came_bytes, 1, &came);
    attends(g, d, true);
    for (int i = 0; i < SENT; i++)
        made[i] = take_working(g, n->input_bytes[i]);
    attention_scratch(g, n->input_bytes[0], n->input_bytes[1], d->row_bytes);
    exchange(g, n->input_bytes, SENT, laid);
    for (int i = 0; i < SENT; i++) {
        out[i].gradient = laid[i];
        machine_drop(m, made[i]);
    }
    machine_drop(m, came);
}

static const struct operation dealt_attention = {KERNELS_ATTENTION, dealt_backward};

static struct context_attention details_of(const struct graph *g, struct var rows,
                                           const struct attention_shape *s)
{
    uint64_t sequences = s->sequence ? s->tokens / s->sequence : 1;
    return (struct context_attention){.row_bytes = var_bytes(rows),
                                      .heads = (uint16_t)s->heads,
                                      .kv_heads = (uint16_t)s->kv_heads,
                                      .head_dim = (uint16_t)s->head_dim,
                                      .ranks = (uint16_t)g->engine->context_ranks,
                                      .tokens = (uint32_t)s->tokens,
                                      .rank = (uint16_t)g->engine->context_rank,
                                      .sequences = (uint16_t)u64_most(sequences, 1)};
}

static struct node *add_attention(struct graph *g, const struct operation *operation,
                                  const struct var in[SENT])
{
    struct node *n = graph_add(g, operation);
    for (int i = 0; i < SENT; i++)
        node_input(n, i, in[i]);
    return n;
}

struct var op_dealt_attention(struct graph *g, const struct var in[SENT],
                              const struct attention_shape *shape)
{
    struct machine *m = g->machine;
    struct node *n = add_attention(g, &dealt_attention, in);
    const uint64_t bytes[SENT] = {var_bytes(in[0]), var_bytes(in[1]), var_bytes(in[2])};
    struct storage *laid[SENT], *last;
    exchange(g, bytes, SENT, laid);
    struct var own = graph_output(g, NULL, in[0].elements, in[0].width);
    struct var rows = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    const struct context_attention d = details_of(g, rows, shape);
    attends(g, &d, false);
    const uint64_t out_bytes = var_bytes(own);
    exchange(g, &out_bytes, 1, &last);
    for (int i = 0; i < SENT; i++) {
        graph_keep(g, n, laid[i]);
        machine_drop(m, laid[i]);
    }
    graph_keep(g, n, own.storage);
    graph_keep(g, n, rows.storage);
    var_drop(g, &own);
    var_drop(g, &rows);
    if (n)
        *NODE_DETAIL(n, struct context_attention) = d;
    return (struct var){last, n ? (int32_t)(n - g->nodes) : NO_NODE, in[0].width, in[0].elements};
}

// ------------------------------------------------------------------ computed again

// Values are laid out anew, as in the forward pass.
static void recomputed_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct context_attention *d = NODE_DETAIL(n, struct context_attention);
    struct machine *m = g->machine;
    struct storage *values = make_working(g, n->input_bytes[2], n->input_bytes[2]);
    struct storage *own = take_working(g, gradient_bytes(n)), *rows = take_working(g, d->row_bytes);
    attends(g, d, false);
    for (int i = 0; i < SENT; i++)
        out[i].gradient = take_working(g, n->input_bytes[i]);
    attends(g, d, true);
    attention_scratch(g, n->input_bytes[0], n->input_bytes[1], d->row_bytes);
    machine_drop(m, rows);
    machine_drop(m, own);
    machine_drop(m, values);
}

static const struct operation recomputed_attention = {KERNELS_ATTENTION, recomputed_backward};

struct var op_recomputed_attention(struct graph *g, const struct var in[SENT],
                                   const struct attention_shape *shape)
{
    struct node *n = add_attention(g, &recomputed_attention, in);
    struct storage *values = make_working(g, var_bytes(in[2]), var_bytes(in[2]));
    struct var out =
        graph_output(g, n, in[0].elements / in[1].elements * in[2].elements, in[0].width);
    struct var rows = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    const struct context_attention d = details_of(g, rows, shape);
    attends(g, &d, false);
    for (int i = 0; i < SENT; i++)
        graph_keep(g, n, in[i].storage);
    var_drop(g, &rows);
    machine_drop(g->machine, values);
    if (n)
        *NODE_DETAIL(n, struct context_attention) = d;
    return out;
}

// ------------------------------------------------------------------ keys and values handed round

// Of the first turn all pairs up to each token, of those up to this rank's number the first half of
// the keys, of the later ones the second half of the queries.
static uint64_t queries_of(uint64_t bytes, uint64_t turn, uint64_t rank)
{
    return turn <= rank ? bytes : bytes / 2;
}

// What is sent and what comes, each keys and values with their gradients; a turn's own gradients
// are added to them.
static void ring_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct context_attention *d = NODE_DETAIL(n, struct context_attention);
    struct machine *m = g->machine;
    uint64_t q = n->input_bytes[0], k = n->input_bytes[1], v = n->input_bytes[2];
    struct storage *queries = take_working(g, q);
    struct storage *sent = take_working(g, 2 * (k + v)), *came = take_working(g, 2 * (k + v));
    attends(g, d, true);
    struct storage *earlier[SENT] = {0};
    for (uint64_t i = 0; i < d->ranks; i++) {
        uint64_t half = i + d->rank + 1 >= d->ranks ? 1 : 2; // the diagonal comes last
        const uint64_t bytes[SENT] = {q, k / half, v / half};
        struct storage *made[SENT];
        for (int j = 0; j < SENT; j++)
            made[j] = take_working(g, bytes[j]);
        attention_scratch(g, q, k / half, d->row_bytes);
        for (int j = 0; j < SENT; j++) {
            machine_drop(m, earlier[j]);
            earlier[j] = made[j];
        }
        machine_collect(m, CONTEXT_STREAM, ALL_TO_ALL, d->ranks, 2 * (k + v));
    }
    for (int j = 0; j < SENT; j++)
        machine_drop(m, earlier[j]);
    machine_drop(m, sent);
    out[0].gradient = queries;
    out[1].gradient = came;
    out[2].gradient = storage_share(came);
    out[1].view = out[2].view = true;
}

static const struct operation ring_attention_of_engine = {KERNELS_RING, ring_backward};

// Every turn's keys, values and output are kept until the last is done; the keys and values that
// came last are what is kept for the backward pass.
struct var op_handed_attention(struct graph *g, const struct var in[SENT],
                               const struct attention_shape *shape)
{
    struct machine *m = g->machine;
    uint64_t ranks = g->engine->context_ranks, rank = g->engine->context_rank;
    uint64_t both = var_bytes(in[1]) + var_bytes(in[2]), rows = shape->tokens * shape->heads * 4;
    struct node *n = add_attention(g, &ring_attention_of_engine, in);
    struct storage **turns = NEW(m->arena, struct storage *, 3 * (ptrdiff_t)ranks);
    turns[0] = make_working(g, both, both);
    for (uint64_t i = 0; i < ranks; i++) {
        uint16_t stream = i % 2 ? CONTEXT_STREAM : STREAM_COMPUTE;
        if (i + 1 < ranks)
            turns[i + 1] = machine_take_on(m, stream, both, g->kind);
        turns[ranks + i] =
            machine_take_on(m, stream, queries_of(var_bytes(in[0]), i, rank), g->kind);
        turns[2 * ranks + i] = machine_take_on(m, stream, queries_of(rows, i, rank), g->kind);
        machine_collect(m, CONTEXT_STREAM, ALL_TO_ALL, ranks, both);
    }
    struct var sums = graph_output(g, NULL, shape->tokens * shape->heads, 4);
    struct var out = graph_output(g, n, in[0].elements, in[0].width);
    const struct context_attention d = details_of(g, sums, shape);
    attends(g, &d, false);
    graph_keep(g, n, in[0].storage);
    graph_keep(g, n, turns[ranks - 1]);
    graph_keep(g, n, out.storage);
    graph_keep(g, n, sums.storage);
    for (uint64_t i = 0; i < 3 * ranks; i++)
        machine_drop(m, turns[i]);
    var_drop(g, &sums);
    if (n)
        *NODE_DETAIL(n, struct context_attention) = d;
    return out;
}
