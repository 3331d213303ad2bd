// Ring attention as torch 2.11 runs it eagerly (distributed/tensor/experimental/_context_parallel/
// _attention.py), over cuDNN's attention. Each rank has two pieces of the sequence, the i-th from
// its head and the i-th from its tail, and meets the keys and values of every other rank once:
// of ranks before it the first half, with all its queries; for ranks behind it, all of them with
// the second half of its queries. Keys and values are gathered from all ranks at once (accelerate's
// default); what each block adds is merged in fp32. Gradients of keys and values travel on from
// rank to rank in fp32. Recorded by scripts/record_context_parallel.py: tests/runs/h200_cp.jsonl.
#include "core/ops/ring.h"

#include "core/ops/operation.h"

static void drop(struct graph *g, struct var v)
{
    var_drop(g, &v);
}

static struct var take(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, NULL, elements, width);
}

// A name in Python given another value.
static void rebind(struct graph *g, struct var *name, struct var value)
{
    var_drop(g, name);
    *name = value;
}

// ------------------------------------------------------------------ the batch

// transformers' Trainer (_prepare_context_parallel_inputs), then context_parallel, which picks the
// tokens of all ranks by a list of 32-bit numbers.
void ring_take_batch(struct graph *g, struct ring *r)
{
    uint64_t whole = r->shape.tokens * r->ranks;
    enum memory_kind kind = g->kind;
    g->kind = MEMORY_INPUTS;
    for (int i = 0; i < RING_BUFFERS; i++) // labels are padded by one before they are shifted
        r->batch[i] = take(g, whole + (i == 3), 8);
    struct var numbers = take(g, whole, 4);
    for (int i = 0; i < RING_BUFFERS; i++) {
        struct var reordered = take(g, whole, 8);
        r->dealt[i] = take(g, r->shape.tokens, 8);
        drop(g, reordered);
    }
    drop(g, numbers);
    for (int i = 0; i < RING_BUFFERS; i++)
        rebind(g, &r->piece, take(g, r->shape.tokens, 8));
    g->kind = kind;
}

void ring_drop_batch(struct graph *g, struct ring *r)
{
    for (int i = 0; i < RING_BUFFERS; i++)
        var_drop(g, &r->dealt[i]);
    var_drop(g, &r->piece);
    for (int i = 0; i < RING_BUFFERS; i++)
        var_drop(g, &r->batch[i]);
}

static struct var own_part(const struct ring *r, int buffer)
{
    return (struct var){r->batch[buffer].storage, NO_NODE, 8, r->shape.tokens};
}

struct var ring_tokens(const struct ring *r)
{
    return own_part(r, 0);
}

struct var ring_positions(const struct ring *r)
{
    return own_part(r, RING_BUFFERS - 1);
}

// ------------------------------------------------------------------ forward

// What one call of cuDNN's attention leaves.
struct block {
    struct var out, log_sum, seed, offset;
};

struct merger {
    struct var out, log_sum; // in fp32
    bool begun;
};

// Each block has as many pairs as the first, half of which a causal mask leaves out.
static void block_attends(struct graph *g, const struct attention_shape *s, bool backward)
{
    uint64_t sequence = s->sequence ? s->sequence : s->tokens;
    const struct attending_shape a = {.rows = s->tokens / sequence,
                                      .tokens = sequence,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->head_dim,
                                      .flash2 = g->flash,
                                      .backward = backward};
    if (!g->stopped)
        machine_attend(g->machine, &a);
}

static void attend_block(struct graph *g, struct block *b, uint64_t tokens,
                         const struct attention_shape *s)
{
    block_attends(g, s, false);
    struct block made = {.seed = take(g, 1, 8), .offset = take(g, 1, 8)};
    made.out = take(g, tokens * s->heads * s->head_dim, 2);
    made.log_sum = take(g, tokens * s->heads, 4);
    if (!g->stopped)
        machine_scratch(g->machine, 256);
    rebind(g, &b->out, made.out);
    rebind(g, &b->log_sum, made.log_sum);
    rebind(g, &b->seed, made.seed);
    rebind(g, &b->offset, made.offset);
}

// out - sigmoid(new - old) * (out - block), and the sum of both logarithms.
static struct merger merged(struct graph *g, uint64_t outputs, uint64_t rows)
{
    struct merger m = {.begun = true};
    for (int i = 0; i < 3; i++) // the gap, scaled, and the sum, in fp32
        moves(g, 12 * outputs);
    struct var difference = take(g, rows, 4), weight = take(g, rows, 4);
    drop(g, difference);
    struct var gap = take(g, outputs, 4), scaled = take(g, outputs, 4);
    drop(g, weight);
    drop(g, gap);
    m.out = take(g, outputs, 4);
    drop(g, scaled);
    difference = take(g, rows, 4);
    struct var logarithm = take(g, rows, 4);
    drop(g, difference);
    m.log_sum = take(g, rows, 4);
    drop(g, logarithm);
    return m;
}

static void merge(struct graph *g, struct merger *m, const struct block *b)
{
    struct var wide = take(g, b->out.elements, 4);
    moves(g, 6 * b->out.elements);
    if (!m->begun) {
        *m = (struct merger){wide, var_share(b->log_sum), true};
        return;
    }
    struct merger step = merged(g, b->out.elements, b->log_sum.elements);
    if (b->out.elements == m->out.elements) {
        rebind(g, &m->log_sum, step.log_sum);
        rebind(g, &m->out, step.out);
    } else { // the second half replaced, in a new tensor
        rebind(g, &m->log_sum, take(g, m->log_sum.elements, 4));
        rebind(g, &m->out, take(g, m->out.elements, 4));
        drop(g, step.log_sum);
        drop(g, step.out);
    }
    drop(g, wide);
}

// Turns after the i-th that make the same calls: up to the rank's own and beyond it, but for the
// first and the last.
static uint64_t alike_after(const struct ring *r, uint64_t i)
{
    uint64_t last = r->ranks - 1, end = i <= r->rank && r->rank < last ? r->rank + 1 : last;
    return i && i + 1 < end ? end - i - 1 : 0;
}

// A turn is left out once two before it were alike: of few ranks none is, and to watch them would
// be for nothing.
static struct turns watched_turns(struct graph *g, const struct ring *r)
{
    bool may_repeat = alike_after(r, 1) > 1 || alike_after(r, r->rank + 1) > 1;
    return may_repeat ? machine_turns(g->machine) : (struct turns){0};
}

// All blocks, merged.
static struct block run_ring(struct graph *g, const struct ring *r, uint64_t kv_elements)
{
    const struct attention_shape *s = &r->shape;
    struct var k = take(g, kv_elements, 2), v = take(g, kv_elements, 2);
    struct var gathered = {.node = NO_NODE};
    struct block b = {0};
    struct merger m = {0};
    struct turns turns = watched_turns(g, r);
    for (uint64_t i = 0; i < r->ranks; i++) {
        if (i + 1 < r->ranks) {
            struct var joined = take(g, 2 * kv_elements, 2);
            if (!i)
                gathered = take(g, 2 * kv_elements * r->ranks, 2);
            if (!i && !g->stopped)
                machine_collect(g->machine, STREAM_COMPUTE, GATHER, r->ranks,
                                4 * kv_elements * r->ranks);
            drop(g, joined);
        }
        if (i == 1) {
            var_drop(g, &k);
            var_drop(g, &v);
        }
        attend_block(g, &b, i <= r->rank ? s->tokens : s->tokens / 2, s);
        merge(g, &m, &b);
        i += machine_turn_done(g->machine, &turns, alike_after(r, i));
    }
    machine_turns_end(g->machine);
    struct var out = take(g, m.out.elements, 2);
    drop(g, m.out);
    drop(g, gathered);
    drop(g, b.out);
    drop(g, b.log_sum);
    return (struct block){out, m.log_sum, b.seed, b.offset};
}

// ------------------------------------------------------------------ backward

// The tensors of the backward pass by their names there.
struct ring_gradients {
    struct storage *query, *key, *value; // fp32 sums
    struct storage *block_query, *block_key, *block_value;
    struct storage *own_key, *own_value; // laid out head by head
    struct storage *rows;                // log-sums of half the queries
    struct storage *joined, *received;   // gradients of keys and values, on their way
    struct storage *joined_kv, *gathered;
};

static void replace(struct graph *g, struct storage **name, struct storage *value)
{
    machine_drop(g->machine, *name);
    *name = value;
}

// As for attention without a ring, for as many queries and keys as meet.
static void block_backward(struct graph *g, struct ring_gradients *d, const struct ring *r,
                           uint64_t i)
{
    const struct attention_shape *s = &r->shape;
    uint64_t queries = i <= r->rank ? s->tokens : s->tokens / 2;
    uint64_t keys = i && i <= r->rank ? s->tokens / 2 : s->tokens;
    uint64_t width = s->heads * s->head_dim, kv_width = s->kv_heads * s->head_dim;
    replace(g, &d->rows, i > r->rank ? take_working(g, 4 * queries * s->heads) : NULL);
    if (i) {
        replace(g, &d->own_key, NULL);
        replace(g, &d->own_value, NULL);
    }
    block_attends(g, s, true);
    moves(g, 10 * queries * width); // added up in fp32
    struct storage *query = take_working(g, 2 * queries * width);
    struct storage *key = take_working(g, 2 * keys * kv_width);
    struct storage *value = take_working(g, 2 * keys * kv_width);
    uint64_t repeated = s->heads != s->kv_heads ? 4 * keys * width : 0;
    machine_scratch(g->machine, 4 * queries * width + repeated + 4 * queries * s->heads + 256);
    replace(g, &d->block_query, query);
    replace(g, &d->block_key, key);
    replace(g, &d->block_value, value);
}

// The gradients that came from the rank before get this block's added, and go on. The first are
// laid out as keys and values came, and are copied to be joined.
static void pass_on(struct graph *g, struct ring_gradients *d, const struct ring *r, uint64_t i)
{
    const struct attention_shape *s = &r->shape;
    uint64_t bytes = 4 * s->tokens * s->kv_heads * s->head_dim;
    machine_collect(g->machine, STREAM_COMPUTE, GATHER, 2, 4 * bytes); // sent and received
    moves(g, 6 * bytes);
    struct storage *key = i ? NULL : take_working(g, bytes);
    struct storage *value = i ? NULL : take_working(g, bytes);
    if (i) {
        replace(g, &d->joined, storage_share(d->received));
        replace(g, &d->key, storage_share(d->received));
        replace(g, &d->value, storage_share(d->received));
    }
    if (i && i <= r->rank) { // the first half added to, in a new tensor
        replace(g, &d->key, take_working(g, bytes));
        replace(g, &d->value, take_working(g, bytes));
    }
    replace(g, &d->joined, take_working(g, 2 * bytes));
    machine_drop(g->machine, key);
    machine_drop(g->machine, value);
    replace(g, &d->received, take_working(g, 2 * bytes));
}

static void let_go(struct graph *g, struct ring_gradients *d)
{
    struct storage *const all[] = {
        d->query,       d->joined,    d->key,         d->value,   d->joined_kv,
        d->block_query, d->block_key, d->block_value, d->own_key, d->own_value,
        d->received,    d->gathered,  d->rows,
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(all); i++)
        machine_drop(g->machine, all[i]);
}

struct ringed {
    const struct ring *ring;
};

static void ring_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct ring *r = NODE_DETAIL(n, struct ringed)->ring;
    const struct attention_shape *s = &r->shape;
    uint64_t q_elements = s->tokens * s->heads * s->head_dim;
    uint64_t kv_elements = s->tokens * s->kv_heads * s->head_dim;
    struct ring_gradients d = {take_working(g, 4 * q_elements), take_working(g, 4 * kv_elements),
                               take_working(g, 4 * kv_elements)};
    d.own_key = take_working(g, 2 * kv_elements);
    d.own_value = take_working(g, 2 * kv_elements);
    struct turns turns = watched_turns(g, r);
    for (uint64_t i = 0; i < r->ranks; i++) {
        if (i + 1 < r->ranks)
            replace(g, &d.joined_kv, take_working(g, 4 * kv_elements));
        if (!i)
            d.gathered = take_working(g, 4 * kv_elements * r->ranks);
        if (!i)
            machine_collect(g->machine, STREAM_COMPUTE, GATHER, r->ranks,
                            4 * kv_elements * r->ranks);
        block_backward(g, &d, r, i);
        pass_on(g, &d, r, i);
        if (i > r->rank)
            replace(g, &d.query, take_working(g, 4 * q_elements));
        i += machine_turn_done(g->machine, &turns, alike_after(r, i));
    }
    machine_turns_end(g->machine);
    out[0].gradient = take_working(g, 2 * q_elements);
    replace(g, &d.query, NULL);
    out[1].gradient = take_working(g, 4 * kv_elements); // both in one tensor
    out[2].gradient = storage_share(out[1].gradient);
    out[1].view = out[2].view = true;
    let_go(g, &d);
}

static const struct operation ringed = {KERNELS_RING, ring_backward};

// ------------------------------------------------------------------ the operator

struct var ring_attention(struct graph *g, struct var q, struct var k, struct var v,
                          const struct ring *r)
{
    struct node *n = graph_add(g, &ringed);
    for (int i = 0; i < 3; i++)
        graph_keep(g, NULL, NULL); // q, k and v are kept now, let go last
    struct block b = run_ring(g, r, k.elements);
    node_input(n, 0, q);
    node_input(n, 1, k);
    node_input(n, 2, v);
    if (n) {
        NODE_DETAIL(n, struct ringed)->ring = r;
        b.out = node_view(g, n, b.out);
    }
    graph_keep(g, n, b.seed.storage);
    graph_keep(g, n, b.offset.storage);
    graph_keep(g, n, b.out.storage);
    graph_keep(g, n, b.log_sum.storage);
    keep_last(g, n, v.storage);
    keep_last(g, n, q.storage);
    keep_last(g, n, k.storage);
    drop(g, b.log_sum);
    drop(g, b.seed);
    drop(g, b.offset);
    return b.out;
}
