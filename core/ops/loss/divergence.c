// TRL's distillation loss (trl 1.16, kernels/chunked_divergence.py): how far the student's next
// words are from the teacher's, from tiles of both models' logits, 4096 tokens by 32768 words in
// fp32, that are never whole. Backward makes each tile again and adds up the gradients of the
// student's hidden states and head in fp32; the teacher has none. Under ZeRO-3 the teacher's head
// is put together for each (maybe_gather_lm_head_ctx).
#include "core/ops/loss/tiles.h"

struct divergence {
    uint64_t tokens;
    uint32_t columns, words;
    uint64_t gathered; // bytes of the teacher's head
};

static struct head_size size_of(const struct divergence *d)
{
    return (struct head_size){d->tokens, d->columns, d->words};
}

// Both models' tiles, and a part of a head in the compute type where it has another.
struct tiles {
    struct storage *student, *teacher;
};

static struct tiles take_tiles(struct machine *m, uint64_t tokens)
{
    uint64_t bytes = 4 * u64_least(tokens, TILE_TOKENS) * TILE_WORDS;
    return (struct tiles){machine_take(m, bytes, MEMORY_LOGITS),
                          machine_take(m, bytes, MEMORY_LOGITS)};
}

static void drop_tiles(struct machine *m, struct tiles *t)
{
    machine_drop(m, t->teacher);
    machine_drop(m, t->student);
}

// Tiles are fp32: what is computed in that is copied nowhere.
static void project(struct graph *g, const struct divergence *d, uint64_t weight_width)
{
    uint64_t width = compute_width(g), words = u64_least(d->words, TILE_WORDS);
    struct storage *hidden = NULL;
    if (!g->wide)
        hidden = machine_take(g->machine, u64_least(d->tokens, TILE_TOKENS) * d->columns * width,
                              MEMORY_LOGITS);
    if (weight_width != width)
        machine_scratch(g->machine, words * d->columns * width);
    gemm_workspace(g);
    machine_drop(g->machine, hidden);
}

// What the student's tile is cast to, by a name that keeps one until the next is there.
static struct storage *narrow_tiles(struct graph *g, const struct divergence *d)
{
    uint64_t bytes = u64_least(d->tokens, TILE_TOKENS) * TILE_WORDS * compute_width(g);
    bool several = d->words > TILE_WORDS || d->tokens > TILE_TOKENS;
    if (g->wide)
        return NULL;
    struct storage *tile = machine_take(g->machine, bytes, MEMORY_LOGITS);
    struct storage *next = several ? machine_take(g->machine, bytes, MEMORY_LOGITS) : NULL;
    if (next)
        machine_drop(g->machine, tile);
    return next ? next : tile;
}

static void divergence_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct divergence *d = NODE_DETAIL(n, struct divergence);
    struct machine *m = g->machine;
    uint64_t hidden = d->tokens * d->columns, weight = (uint64_t)d->words * d->columns;
    bool trained = n->inputs[1] != NO_NODE;
    struct storage *teacher = machine_take(m, d->gathered, MEMORY_GATHERED);
    struct storage *for_hidden = take_working(g, 4 * hidden), *for_weight = NULL;
    if (trained)
        for_weight = machine_take(m, 4 * weight, MEMORY_GRADIENTS);
    struct tiles t = take_tiles(m, d->tokens);
    project(g, d, n->input_bytes[1] / weight);
    struct storage *narrow = narrow_tiles(g, d);
    machine_drop(m, teacher);
    out[0].gradient = n->input_bytes[0] == 4 * hidden ? storage_share(for_hidden)
                                                      : take_working(g, n->input_bytes[0]);
    if (trained)
        out[1].gradient = n->input_bytes[1] == 4 * weight
                              ? storage_share(for_weight)
                              : machine_take(m, n->input_bytes[1], MEMORY_GRADIENTS);
    machine_drop(m, for_hidden);
    machine_drop(m, for_weight);
    machine_drop(m, narrow);
    drop_tiles(m, &t);
    head_products(g, size_of(d), trained ? 3 : 2);
}

static const struct operation divergence = {KERNELS_LOG_PROBS, divergence_backward};

struct var op_divergence(struct graph *g, struct var hidden, int head, struct var teacher,
                         uint64_t gathered)
{
    enum { STATISTICS = 12 }; // for each token, of which the norms and the divergence are kept
    const struct parameter *p = &g->parameters[head];
    struct divergence size = {hidden.elements / p->columns, (uint32_t)p->columns, (uint32_t)p->rows,
                              gathered};
    struct node *n = p->frozen ? graph_add_for(g, &divergence, hidden) : graph_add(g, &divergence);
    graph_keep(g, n, hidden.storage);
    graph_keep(g, n, teacher.storage);
    struct var statistics[STATISTICS];
    for (int i = 0; i < STATISTICS; i++)
        statistics[i] = graph_output(g, NULL, size.tokens, 4);
    struct tiles t = take_tiles(g->machine, size.tokens);
    struct storage *theirs = machine_take(g->machine, gathered, MEMORY_GATHERED);
    project(g, &size, p->width);
    machine_drop(g->machine, theirs);
    struct var out = graph_output(g, n, size.tokens, 4);
    drop_tiles(g->machine, &t);
    graph_keep(g, n, statistics[0].storage);
    graph_keep(g, n, statistics[1].storage);
    for (int i = 0; i < STATISTICS; i++)
        var_drop(g, &statistics[i]);
    node_input(n, 0, hidden);
    node_parameter(g, n, 1, head);
    if (n)
        *NODE_DETAIL(n, struct divergence) = size;
    head_products(g, size_of(&size), 1);
    return out;
}
