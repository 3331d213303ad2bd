// The entropy of a policy in chunks, as verl's entropy_from_logits_with_chunking computes it (verl
// 0.5 to 0.7, utils/torch_functional.py) compiled by torch.compile and under a reentrant
// checkpoint (workers/actor/dp_actor.py). The number of tokens is a constant to Dynamo, so its loop
// is unrolled into one graph. Forward, that graph makes a few values a token. Backward, inductor
// writes the gradient of all logits in one last kernel, and what that kernel needs of
// each chunk is kept until then, mostly in fp32: more than the logits themselves. How much follows
// from inductor's limits on what one expression may read, which the sum over chunks, from the last
// to the first, reaches again every five chunks. Read from the code that inductor of torch 2.11
// generates for 1 to 90 chunks, 2.8 the same; measured in tests/runs/h200_entropy.jsonl.
#include "core/base/num.h"
#include "core/ops/operation.h"

enum { CHUNK_TOKENS = 2048, CYCLE = 5 };

// fp32 values a token: while reading, in the forward pass of training, and kept by that.
enum { READ_ROWS = 3, TRAINED_ROWS = 5, KEPT_ROWS = 3 };

// What the backward pass makes of a chunk, in buffers of the chunk's size unless it says rows.
struct cut {
    int wide;     // fp32, read by the last kernel
    int narrow;   // bf16, likewise
    int rows;     // fp32, one value a token
    bool passing; // one more fp32 buffer that only this chunk's kernel uses
};

// By distance from the last chunk, the first cycle and all that follow.
static const struct cut cuts[2][CYCLE] = {
    {{.rows = 1}, {.rows = 1}, {.wide = 1}, {.wide = 2}, {.wide = 3, .rows = 1}},
    {{.rows = 1}, {.narrow = 1}, {.wide = 1}, {.wide = 1, .passing = true}, {.wide = 3, .rows = 1}},
};

struct held {
    struct machine *machine;
    struct storage **storages;
    int count;
};

static void hold(struct held *h, uint64_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        h->storages[h->count++] = machine_take(h->machine, bytes, MEMORY_LOGITS);
}

static void drop_from(struct held *h, int first)
{
    while (h->count > first)
        machine_drop(h->machine, h->storages[--h->count]);
}

static struct held room_for(struct graph *g, uint64_t count)
{
    return (struct held){g->machine, NEW(g->machine->arena, struct storage *, (ptrdiff_t)count), 0};
}

static void cut_chunk(struct held *h, uint64_t distance, uint64_t vocabulary)
{
    const struct cut *c = &cuts[distance >= CYCLE][distance % CYCLE];
    uint64_t elements = CHUNK_TOKENS * vocabulary;
    struct storage *passing =
        c->passing ? machine_take(h->machine, 4 * elements, MEMORY_LOGITS) : NULL;
    hold(h, 4 * elements, c->wide);
    hold(h, 2 * elements, c->narrow);
    hold(h, UINT64_C(4) * CHUNK_TOKENS, c->rows);
    machine_drop(h->machine, passing);
}

// The kernels of the third and fourth chunk from the end come late.
static void cut_chunks(struct held *h, uint64_t chunks, uint64_t vocabulary)
{
    static const struct {
        uint64_t from, below;
    } order[] = {{0, 2}, {4, UINT64_MAX}, {2, 4}};
    for (ptrdiff_t i = 0; i < COUNT_OF(order); i++)
        for (uint64_t d = order[i].from; d < chunks && d < order[i].below; d++)
            cut_chunk(h, d, vocabulary);
}

struct chunked_entropy {
    uint64_t tokens;
};

// The forward pass again, this time with what a backward pass needs, and that. A gradient of the
// incoming values without a part of them is made once a cycle.
static void chunked_entropy_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t tokens = NODE_DETAIL(n, struct chunked_entropy)->tokens;
    uint64_t chunks = u64_divide_up(tokens, CHUNK_TOKENS);
    uint64_t vocabulary = n->input_bytes[0] / tokens / 2, parts = (chunks - 1) / CYCLE;
    struct held h = room_for(g, TRAINED_ROWS + 1 + parts + CYCLE * chunks);
    hold(&h, 4 * tokens, TRAINED_ROWS);
    struct storage *entropy = machine_take(g->machine, 4 * tokens, MEMORY_WORKING);
    drop_from(&h, KEPT_ROWS);
    hold(&h, 4 * tokens, (int)parts);
    cut_chunks(&h, chunks, vocabulary);
    out[0].gradient = machine_take(g->machine, n->input_bytes[0], MEMORY_LOGITS);
    drop_from(&h, 0);
    machine_drop(g->machine, entropy);
}

static const struct operation chunked_entropy = {KERNELS_CHUNKED_ENTROPY, chunked_entropy_backward};

struct var op_chunked_entropy(struct graph *g, struct var logits, uint64_t tokens)
{
    struct node *n = graph_add(g, &chunked_entropy);
    struct held rows = room_for(g, READ_ROWS);
    hold(&rows, 4 * tokens, READ_ROWS);
    graph_keep(g, n, logits.storage);
    struct var out = op_unary(g, n, logits, tokens, 4);
    drop_from(&rows, 0);
    if (n)
        NODE_DETAIL(n, struct chunked_entropy)->tokens = tokens;
    return out;
}
