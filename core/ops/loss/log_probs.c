// TRL's fused head (trl 1.16, kernels/chunked_logprob.py): the log-probability of each token's
// label, its entropy and whether it was the likeliest, from tiles of the logits that are never
// whole: 4096 tokens by 32768 words of the vocabulary, in one buffer. Backward makes each tile
// again, turns it into its gradient in place, and adds up the gradients of hidden states and head
// in fp32. Read from the source, every local variable dropped where Python drops it; measured in
// tests/runs/real_trainers.jsonl.
#include "core/ops/loss/tiles.h"

// A pass over all tiles: their types, and what is alive of it.
struct tiles {
    struct machine *machine;
    struct head_size size;
    uint32_t width, hidden_width, weight_width; // of products, and of what they are made of
    bool named; // the head's part is a variable, else let go at once
    struct storage *logits, *hidden, *weight;
};

// What has the products' type already is not copied.
static void take_part(const struct tiles *t, struct storage **s, uint64_t elements, uint32_t width)
{
    struct storage *next = NULL;
    if (width != t->width)
        next = machine_take(t->machine, elements * t->width, MEMORY_LOGITS);
    machine_drop(t->machine, *s);
    *s = next;
}

static void begin_tiles(struct tiles *t)
{
    uint64_t rows = u64_least(t->size.tokens, TILE_TOKENS);
    t->logits = machine_take(t->machine, rows * TILE_WORDS * t->width, MEMORY_LOGITS);
}

static void run_tiles(struct graph *g, struct tiles *t)
{
    struct turns turns = machine_turns(t->machine);
    for (uint64_t at = 0; at < t->size.tokens; at += TILE_TOKENS) {
        uint64_t tokens = u64_least(t->size.tokens - at, TILE_TOKENS);
        take_part(t, &t->hidden, tokens * t->size.columns, t->hidden_width);
        for (uint64_t word = 0; word < t->size.words; word += TILE_WORDS) {
            uint64_t words = u64_least(t->size.words - word, TILE_WORDS);
            take_part(t, &t->weight, words * t->size.columns, t->weight_width);
            gemm_workspace(g);
            if (!t->named)
                machine_drop(t->machine, t->weight);
            if (!t->named)
                t->weight = NULL;
        }
        uint64_t left = (t->size.tokens - at - tokens) / TILE_TOKENS;
        at += machine_turn_done(t->machine, &turns, left) * TILE_TOKENS;
    }
    machine_turns_end(t->machine);
}

static void end_tiles(const struct tiles *t)
{
    machine_drop(t->machine, t->hidden);
    machine_drop(t->machine, t->weight);
    machine_drop(t->machine, t->logits);
}

// ------------------------------------------------------------------ backward

// fp32 sums, in the input's type at the end: what they were summed in goes later.
static struct storage *in_type(struct machine *m, struct storage *sum, uint64_t bytes,
                               enum memory_kind kind)
{
    return !sum || sum->bytes == bytes ? storage_share(sum) : machine_take(m, bytes, kind);
}

static void log_probs_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct head_size *d = NODE_DETAIL(n, struct head_size);
    struct machine *m = g->machine;
    uint64_t hidden = d->tokens * d->columns, weight = d->words * d->columns;
    struct tiles t = {.machine = m, .size = *d, .named = true, .width = compute_width(g)};
    t.hidden_width = (uint32_t)(n->input_bytes[0] / hidden);
    t.weight_width = (uint32_t)(n->input_bytes[1] / weight);
    bool trained = n->inputs[1] != NO_NODE;
    struct storage *for_hidden = take_working(g, 4 * hidden), *for_weight = NULL;
    if (trained)
        for_weight = machine_take(m, 4 * weight, MEMORY_GRADIENTS);
    begin_tiles(&t);
    run_tiles(g, &t);
    out[0].gradient = in_type(m, for_hidden, n->input_bytes[0], MEMORY_WORKING);
    out[1].gradient = in_type(m, for_weight, n->input_bytes[1], MEMORY_GRADIENTS);
    machine_drop(m, for_hidden);
    machine_drop(m, for_weight);
    end_tiles(&t);
    head_products(g, *d, trained ? 3 : 2);
}

static const struct operation log_probs = {KERNELS_LOG_PROBS, log_probs_backward};

// ------------------------------------------------------------------ forward

// What each token's logits are folded into: largest, sums, the label's own.
enum { STATISTICS = 7 };

// What ctx.save_for_backward is given before.
struct read {
    struct storage *hidden, *weight, *targets;
};

// entropy, which is kept, and two comparisons. Gives the log-probabilities.
static struct var conclude(struct graph *g, struct node *n, uint64_t tokens, struct read read)
{
    struct var logs = graph_output(g, NULL, tokens, 4), norm = graph_output(g, NULL, tokens, 4);
    var_drop(g, &logs);
    struct var out = graph_output(g, n, tokens, 4), mean = graph_output(g, NULL, tokens, 4);
    struct var entropy = graph_output(g, NULL, tokens, 4);
    var_drop(g, &mean);
    struct var likeliest = graph_output(g, NULL, tokens, 1);
    machine_scratch(g->machine, tokens);
    graph_keep(g, n, read.hidden);
    graph_keep(g, n, read.weight);
    graph_keep(g, n, read.targets);
    graph_keep(g, n, norm.storage);
    graph_keep(g, n, entropy.storage);
    var_drop(g, &likeliest);
    var_drop(g, &entropy);
    var_drop(g, &norm);
    return out;
}

struct var op_log_probs(struct graph *g, struct var hidden, int head, struct var weight,
                        struct var targets)
{
    const struct parameter *p = &g->parameters[head];
    struct head_size size = {hidden.elements / p->columns, p->columns,
                             weight.elements / p->columns};
    struct node *n = p->frozen ? graph_add_for(g, &log_probs, hidden) : graph_add(g, &log_probs);
    struct tiles t = {.machine = g->machine, .size = size, .width = compute_width(g)};
    t.hidden_width = hidden.width;
    t.weight_width = p->width;
    struct read read = {hidden.storage, p->cut ? weight.storage : p->whole, targets.storage};
    struct var statistics[STATISTICS];
    for (int i = 0; i < STATISTICS; i++)
        statistics[i] = graph_output(g, NULL, size.tokens, 4);
    begin_tiles(&t);
    run_tiles(g, &t);
    struct var out = conclude(g, n, size.tokens, read);
    for (int i = 0; i < STATISTICS; i++)
        var_drop(g, &statistics[i]);
    end_tiles(&t);
    node_input(n, 0, hidden);
    node_input(n, 1, weight);
    if (n)
        *NODE_DETAIL(n, struct head_size) = size;
    head_products(g, size, 1);
    return out;
}
