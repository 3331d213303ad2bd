// verl's fused head of a policy gradient (verl 0.5, utils/experimental/torch_functional.py, the
// torch backend of use_fused_kernels): log-probabilities and entropies from the last hidden state,
// 512 tokens at a time, without the logits of all tokens. The backward pass makes each chunk's
// logits again. Read from the source, every local variable dropped where Python drops it; measured
// in tests/runs/h200_entropy.jsonl.
#include "core/base/num.h"
#include "core/ops/operation.h"

enum { CHUNK_TOKENS = 512 };

struct chunk {
    struct machine *machine;
    uint64_t narrow, wide; // bytes of its logits in bf16 and in fp32
    uint64_t rows;         // bytes of one fp32 value a token
};

static struct storage *take(const struct chunk *c, uint64_t bytes)
{
    return machine_take(c->machine, bytes, MEMORY_LOGITS);
}

static void drop(const struct chunk *c, struct storage *s)
{
    machine_drop(c->machine, s);
}

// The product, divided by the temperature, in fp32.
static struct storage *logits_of(struct graph *g, const struct chunk *c)
{
    struct storage *product = take(c, c->narrow);
    gemm_workspace(g);
    struct storage *divided = take(c, c->narrow);
    drop(c, product);
    struct storage *logits = take(c, c->wide);
    drop(c, divided);
    return logits;
}

// logsumexp subtracts the largest value of each row first (ATen/native/ReduceOps.cpp).
static struct storage *entropy_of(const struct chunk *c)
{
    struct storage *largest = take(c, c->rows), *shifted = take(c, c->wide);
    struct storage *sums = take(c, c->rows);
    drop(c, shifted);
    drop(c, largest);
    struct storage *weighted = take(c, c->wide);
    struct storage *summed = take(c, c->rows);
    drop(c, weighted);
    struct storage *entropy = take(c, c->rows);
    drop(c, summed);
    drop(c, sums);
    return entropy;
}

static void read_chunk(struct graph *g, const struct chunk *c)
{
    struct storage *logits = logits_of(g, c), *probabilities = take(c, c->wide);
    struct storage *logs = take(c, c->wide), *picked = take(c, c->rows);
    struct storage *entropy = entropy_of(c);
    struct storage *const done[] = {entropy, picked, logs, probabilities, logits};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        drop(c, done[i]);
}

struct gradients {
    struct storage *hidden, *weight;
};

static struct gradients take_gradients(const struct chunk *c, uint64_t hidden, uint64_t weight)
{
    struct gradients made = {.hidden = machine_take(c->machine, hidden, MEMORY_WORKING)};
    made.weight = machine_take(c->machine, weight, MEMORY_GRADIENTS);
    return made;
}

// Of the log-probability, then of the entropy, which is added in place; cast and divided at the
// end. What has a name lives until the products are done.
static struct gradients chunk_gradients(struct graph *g, const struct chunk *c, uint64_t hidden,
                                        uint64_t weight)
{
    struct storage *logits = logits_of(g, c), *probabilities = take(c, c->wide);
    struct storage *one_hot = take(c, c->wide), *difference = take(c, c->wide);
    struct storage *scaled = take(c, c->wide);
    drop(c, difference);
    struct storage *gradient = take(c, c->wide);
    drop(c, scaled);
    struct storage *logs = take(c, c->wide), *entropy = entropy_of(c);
    struct storage *raised = take(c, c->wide), *weighted = take(c, c->wide);
    drop(c, raised);
    struct storage *signed_part = take(c, c->wide);
    drop(c, weighted);
    drop(c, signed_part);
    struct storage *narrow = take(c, c->narrow), *divided = take(c, c->narrow);
    drop(c, narrow);
    drop(c, gradient);
    struct gradients made = take_gradients(c, hidden, weight);
    struct storage *const done[] = {logits, probabilities, divided, one_hot, logs, entropy};
    for (ptrdiff_t i = 0; i < COUNT_OF(done); i++)
        drop(c, done[i]);
    return made;
}

static struct chunk chunk_of(struct machine *m, uint64_t tokens, uint64_t vocabulary)
{
    return (struct chunk){m, 2 * tokens * vocabulary, 4 * tokens * vocabulary, 4 * tokens};
}

struct fused_policy {
    uint64_t tokens, vocabulary;
};

// The last chunk's gradients are let go only when the next ones are there.
static void fused_policy_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct fused_policy *d = NODE_DETAIL(n, struct fused_policy);
    struct machine *m = g->machine;
    struct gradients last = {NULL, NULL};
    out[0].gradient = machine_take(m, n->input_bytes[0], MEMORY_WORKING);
    out[1].gradient = machine_take(m, n->input_bytes[1], MEMORY_GRADIENTS);
    struct turns turns = machine_turns(m);
    for (uint64_t at = 0; at < d->tokens; at += CHUNK_TOKENS) {
        uint64_t tokens = u64_least(CHUNK_TOKENS, d->tokens - at);
        struct chunk c = chunk_of(m, tokens, d->vocabulary);
        uint64_t hidden = n->input_bytes[0] / d->tokens * tokens;
        struct gradients next = chunk_gradients(g, &c, hidden, n->input_bytes[1]);
        machine_drop(m, last.hidden);
        machine_drop(m, last.weight);
        last = next;
        uint64_t left = (d->tokens - at - tokens) / CHUNK_TOKENS;
        at += machine_turn_done(m, &turns, left) * CHUNK_TOKENS;
    }
    machine_turns_end(m);
    machine_drop(m, last.hidden);
    machine_drop(m, last.weight);
}

static const struct operation fused_policy = {KERNELS_FUSED_POLICY, fused_policy_backward};

struct var op_fused_policy(struct graph *g, struct var hidden, int head)
{
    const struct parameter *p = &g->parameters[head];
    struct node *n = graph_add(g, &fused_policy);
    uint64_t tokens = hidden.elements / p->columns;
    struct var log_probabilities = op_unary(g, n, hidden, tokens, 2);
    struct var entropy = graph_output(g, NULL, tokens, 2);
    struct turns turns = machine_turns(g->machine);
    for (uint64_t at = 0; at < tokens; at += CHUNK_TOKENS) {
        uint64_t here = u64_least(CHUNK_TOKENS, tokens - at),
                 left = (tokens - at - here) / CHUNK_TOKENS;
        struct chunk c = chunk_of(g->machine, here, p->rows);
        read_chunk(g, &c);
        at += machine_turn_done(g->machine, &turns, left) * CHUNK_TOKENS;
    }
    machine_turns_end(g->machine);
    graph_keep(g, n, hidden.storage);
    graph_keep(g, n, entropy.storage);
    node_parameter(g, n, 1, head);
    if (n)
        *NODE_DETAIL(n, struct fused_policy) = (struct fused_policy){tokens, p->rows};
    var_drop(g, &entropy);
    return log_probabilities;
}
