// A call over pieces of its input, of which only the input is kept: each piece is run again, with a
// backward pass of its own, when the gradient comes.
#include "core/autograd/backward.h"
#include "core/base/num.h"

const struct operation operation_tiled = {.kernels = KERNELS_TILED};

// ------------------------------------------------------------------ forward

struct pieces {
    void (*forward)(struct graph *g, struct var *out, struct var in, void *what);
    void *what;
    struct var whole;  // without storage
    uint64_t elements; // of one piece
};

struct tiling {
    const struct pieces *pieces;
};

static uint64_t piece_of(uint64_t all, uint64_t at, uint64_t most)
{
    return all - at < most ? all - at : most;
}

// Without a graph, all pieces kept until they are joined.
static struct storage *join_pieces(struct graph *g, struct var in, const struct pieces *p)
{
    int count = (int)u64_divide_up(in.elements, p->elements), made = 0;
    struct var *out = NEW(g->machine->arena, struct var, count);
    struct frame *frame = g->frame;
    bool recording = g->recording, keeping = g->keeping;
    g->frame = NULL;
    g->recording = g->keeping = false;
    for (uint64_t at = 0; at < in.elements; at += p->elements) {
        struct var piece = {in.storage, NO_NODE, in.width, piece_of(in.elements, at, p->elements)};
        p->forward(g, &out[made++], piece, p->what);
    }
    g->frame = frame;
    g->recording = recording;
    g->keeping = keeping;
    struct var joined = graph_output(g, NULL, in.elements, in.width);
    for (int i = 0; i < made; i++)
        var_drop(g, &out[i]);
    return joined.storage;
}

struct var graph_tiled(struct graph *g, struct var in, uint64_t elements,
                       void (*forward)(struct graph *g, struct var *out, struct var in, void *what),
                       void *what)
{
    struct pieces *p = NEW(g->machine->arena, struct pieces, 1);
    *p = (struct pieces){forward, what, {.width = in.width, .elements = in.elements}, elements};
    struct storage *joined = join_pieces(g, in, p);
    struct node *n = graph_add(g, &operation_tiled);
    if (n) {
        n->inputs[0] = in.node;
        NODE_DETAIL(n, struct tiling)->pieces = p;
    }
    graph_keep(g, n, in.storage);
    return (struct var){joined, n ? (int32_t)(n - g->nodes) : NO_NODE, in.width, in.elements};
}

// ------------------------------------------------------------------ backward

// One piece, again and backwards; its gradient is added to its place in that of the whole. Its
// output has a name until the next one's has it.
static void run_piece(struct graph *g, struct var *out, const struct pieces *p, struct var in,
                      struct storage *gradient)
{
    int32_t leaf = g->count;
    struct var before = *out;
    in.node = leaf;
    graph_add_node(g, &operation_pass);
    graph_note_recomputation(g, true);
    g->kind = MEMORY_SAVED;
    p->forward(g, out, in, p->what);
    g->kind = MEMORY_WORKING;
    graph_note_recomputation(g, false);
    var_drop(g, &before);
    struct outcome seed = {.gradient = storage_share(gradient), .view = true};
    graph_hand_on(g, out->node, &seed);
    graph_run_nodes(g, g->count - 1, leaf + 1);
    machine_drop(g->machine, g->nodes[leaf].gradient);
    g->count = leaf;
}

void tiled_run(struct graph *g, int32_t index)
{
    struct node n = g->nodes[index]; // the array may move while nodes are added
    const struct pieces *p = NODE_DETAIL(&n, struct tiling)->pieces;
    struct outcome result = {.gradient =
                                 machine_take(g->machine, var_bytes(p->whole), MEMORY_WORKING)};
    struct var in = p->whole, out = {0};
    graph_load_kernels(g, &operation_tiled, true);
    in.storage = n.saved[0];
    for (uint64_t at = 0; at < p->whole.elements; at += p->elements) {
        in.elements = piece_of(p->whole.elements, at, p->elements);
        run_piece(g, &out, p, in, n.gradient);
    }
    var_drop(g, &out);
    struct node *now = &g->nodes[index];
    if (now->frame)
        graph_let_go(g, now);
    machine_drop(g->machine, now->gradient);
    now->gradient = NULL;
    graph_release(g, now, true);
    graph_hand_on(g, n.inputs[0], &result);
}
