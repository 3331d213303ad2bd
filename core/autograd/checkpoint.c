// torch.utils.checkpoint: a call whose inside is not kept but run again when the gradient comes, up
// to the last tensor that anything keeps. The nodes behind that one, its tail, are noted in the
// first run and go backwards before anything is recomputed (graph.h).
#include "core/autograd/backward.h"

const struct operation operation_checkpoint = {.kernels = KERNELS_CHECKPOINT};

void frame_drop_arguments(struct graph *g, struct frame *f)
{
    for (int i = FRAME_ALSO - 1; i >= 0; i--)
        var_drop(g, &f->also[i]);
    var_drop(g, &f->input);
}

// ------------------------------------------------------------------ forward

// How many inputs of the nodes from `first` on lie before it.
static int32_t inputs_before(const struct graph *g, int32_t first)
{
    int32_t count = 0;
    for (int32_t i = first; i < g->count; i++)
        for (int j = 0; j < NODE_INPUTS; j++)
            count += g->nodes[i].inputs[j] > NO_NODE && g->nodes[i].inputs[j] < first;
    return count;
}

// Where a node is in a tail that begins at `first`; one before it gets a node that stands for it.
static int32_t place_in(struct tail *t, int32_t first, int32_t leaf, int32_t node)
{
    if (node <= NO_NODE)
        return node;
    if (node >= first)
        return node - first;
    for (int32_t i = t->count; i < t->all; i++)
        if (t->nodes[i].inputs[0] == node - leaf)
            return i;
    t->nodes[t->all] = (struct node){.inputs = {node - leaf, NO_NODE, NO_NODE}};
    return t->all++;
}

static void note_tail(struct graph *g, struct frame *f, int32_t leaf, int32_t out)
{
    struct tail *t = &f->tail;
    int32_t first = f->last_keeper + 1;
    t->count = t->all = g->count - first;
    t->nodes = NEW(g->machine->arena, struct node, t->count + inputs_before(g, first) + 1);
    for (int32_t i = 0; i < t->count; i++) {
        t->nodes[i] = g->nodes[first + i];
        for (int j = 0; j < NODE_INPUTS; j++)
            t->nodes[i].inputs[j] = place_in(t, first, leaf, t->nodes[i].inputs[j]);
    }
    t->out = place_in(t, first, leaf, out);
}

// The first run of a frame: nodes are added only to see which of them are its tail.
static struct var run_first(struct graph *g, struct frame *f, struct var in)
{
    int32_t leaf = g->count;
    struct var out;
    if (g->recording) {
        graph_add_node(g, &operation_pass);
        in.node = leaf;
    }
    bool keeping = g->keeping;
    g->keeping = false;
    g->frame = f;
    f->last_keeper = f->leaf = leaf;
    f->forward(g, &out, in, f->what);
    g->frame = NULL;
    g->keeping = keeping;
    if (g->recording)
        note_tail(g, f, leaf, out.node);
    g->count = leaf;
    return out;
}

static struct var first_or_stamped(struct graph *g, struct frame *f, struct var in)
{
    struct stamp *s = stamp_of_forward(g, f, in);
    if (stamp_is_made(s))
        return stamp_play_forward(g, s, f);
    stamp_begin_forward(g, s, f);
    struct var out = run_first(g, f, in);
    stamp_end_forward(g, s, f, out);
    return out;
}

struct var graph_checkpoint(struct graph *g, struct var in,
                            void (*forward)(struct graph *g, struct var *out, struct var in,
                                            void *what),
                            void *what)
{
    struct frame *f = NEW(g->machine->arena, struct frame, 1);
    machine_host(g->machine, machine_rates(g->machine)->frame);
    *f = (struct frame){
        .forward = forward, .what = what, .input = in, .input_on_host = g->checkpoints_on_host};
    f->kin = g->kin;
    if (g->offload.on) {
        offload_skip(&g->offload); // _NoopSaveInputs keeps an empty tensor first
        f->input.storage = offload_pack(&g->offload, g->machine, in.storage, LAID_OUT);
    } else if (f->input_on_host) {
        f->input.storage = NULL;
    } else {
        storage_share(in.storage);
    }
    for (int i = 0; i < FRAME_ALSO; i++)
        f->also[i] = var_share(g->shared_arguments[i]);
    struct var out = first_or_stamped(g, f, in);
    if (f->exposes && g->recording)
        graph_add_node(g, &operation_pass);
    struct node *n = graph_add(g, &operation_checkpoint);
    if (!n) {
        frame_drop_arguments(g, f);
        return out;
    }
    n->inputs[0] = in.node;
    n->frame = f;
    out.node = (int32_t)(n - g->nodes);
    return out;
}

struct var graph_expose(struct graph *g, struct var x)
{
    struct frame *f = g->frame;
    if (!f)
        return var_share(x);
    if (g->keeping) {
        f->exposed = x.node;
        return (struct var){NULL, NO_NODE, x.width, x.elements};
    }
    f->exposes = true;
    x.node = g->recording ? f->leaf : NO_NODE;
    return var_share(x);
}

// ------------------------------------------------------------------ backward

// Leaves the gradients at the nodes that stand for others.
static void run_tail(struct graph *g, struct tail *t, const struct outcome *seed)
{
    int32_t first = g->count;
    for (int32_t i = 0; i < t->all; i++) {
        struct node *n = graph_add_node(g, &operation_pass);
        *n = t->nodes[i];
        for (int j = 0; j < NODE_INPUTS; j++)
            n->inputs[j] += i < t->count && n->inputs[j] > NO_NODE ? first : 0;
    }
    graph_hand_on(g, t->out > NO_NODE ? first + t->out : t->out, seed);
    graph_run_nodes(g, first + t->count - 1, first);
    for (int32_t i = t->count; i < t->all; i++)
        t->nodes[i] = g->nodes[first + i];
    g->count = first;
}

// And from there to the recomputed nodes.
static void hand_over(struct graph *g, const struct tail *t, int32_t leaf)
{
    for (int32_t i = t->count; i < t->all; i++) {
        const struct node *n = &t->nodes[i];
        struct outcome o = {.gradient = n->gradient, .view = n->gradient_is_view};
        if (n->has_gradient)
            graph_hand_on(g, leaf + n->inputs[0], &o);
    }
}

static void hold_leaf(struct graph *g, struct storage *s)
{
    g->leaves = arena_grow(g->machine->arena, g->leaves, sizeof *g->leaves, g->leaf_count,
                           &g->leaf_capacity);
    g->leaves[g->leaf_count++] = storage_share(s);
}

// What came for a tensor that was used outside, before the recomputed gradients do.
static void hand_in(struct graph *g, const struct frame *f, int32_t waiting)
{
    struct node *n = &g->nodes[waiting];
    if (!f->exposes || !n->has_gradient)
        return;
    struct outcome o = {.gradient = n->gradient, .view = n->gradient_is_view};
    n->has_gradient = false;
    n->gradient = NULL;
    graph_hand_on(g, f->exposed, &o);
}

static void recompute(struct graph *g, struct frame *f, struct var *out, struct var in)
{
    machine_host(g->machine, machine_rates(g->machine)->frame);
    graph_note_recomputation(g, true);
    g->kind = MEMORY_SAVED;
    f->forward(g, out, in, f->what);
    g->kind = MEMORY_WORKING;
    graph_note_recomputation(g, false);
}

static void bring_input(struct graph *g, struct frame *f)
{
    if (f->input_on_host)
        f->input.storage =
            machine_take(g->machine, f->input.elements * f->input.width, MEMORY_CHECKPOINTS);
}

// torch/utils/checkpoint.py, CheckpointFunction (use_reentrant): all of the call, then a backward
// pass of its own, while its output and the gradient that came for it are still held.
static void run_reentrant(struct graph *g, int32_t index)
{
    struct node n = g->nodes[index];
    struct frame *f = n.frame;
    int32_t leaf = g->count;
    bring_input(g, f);
    struct var in = {f->input.storage, leaf, f->input.width, f->input.elements}, out;
    graph_add_node(g, &operation_pass);
    recompute(g, f, &out, in);
    graph_end_autocast(g);
    struct outcome seed = {.gradient = storage_share(n.gradient), .view = n.gradient_is_view};
    graph_hand_on(g, out.node, &seed);
    graph_run_nodes(g, g->count - 1, leaf + 1);
    struct outcome result = {.gradient = g->nodes[leaf].gradient};
    g->count = leaf;
    if (g->holds_leaves) {
        hold_leaf(g, f->input.storage);
        hold_leaf(g, result.gradient);
    }
    var_drop(g, &out);
    frame_drop_arguments(g, f);
    machine_drop(g->machine, n.gradient);
    graph_hand_on(g, n.inputs[0], &result);
}

static void bring_offloaded(struct graph *g, struct frame *f)
{
    struct stamp *noting = stamp_pause_to_bring(g);
    f->input.storage = offload_unpack(&g->offload, g->machine, f->input.storage);
    stamp_resume_with(g, noting, f->input.storage);
}

static struct outcome run_again(struct graph *g, struct node n, int32_t index)
{
    struct frame *f = n.frame;
    int32_t leaf = g->count;
    bring_input(g, f);
    struct outcome seed = {.gradient = n.gradient, .view = n.gradient_is_view};
    run_tail(g, &f->tail, &seed);
    bool offloaded = f->input.storage && f->input.storage->on_host;
    if (offloaded)
        bring_offloaded(g, f);
    struct var in = {f->input.storage, leaf, f->input.width, f->input.elements}, out;
    graph_add_node(g, &operation_pass);
    g->frame = f;
    g->keeping = true;
    f->kept_so_far = 0;
    recompute(g, f, &out, in);
    if (offloaded) {
        g->offload.input = f->input.storage;
        f->input.storage = NULL;
    } else if (f->input_on_host) {
        var_drop(g, &f->input);
    }
    var_drop(g, &out);
    graph_end_autocast(g);
    g->frame = NULL;
    g->stopped = false;
    f->releases_left = 0;
    for (int32_t i = leaf + 1; i < g->count; i++)
        f->releases_left += g->nodes[i].saved_count > 0;
    hand_in(g, f, index - 1);
    hand_over(g, &f->tail, leaf);
    graph_run_nodes(g, g->count - 1, leaf + 1);
    struct outcome result = {.gradient = g->nodes[leaf].gradient,
                             .view = g->nodes[leaf].gradient_is_view};
    g->count = leaf;
    return result;
}

static void run_checkpoint(struct graph *g, int32_t index)
{
    struct node n = g->nodes[index]; // the array may move while nodes are added
    struct stamp *s = stamp_of_backward(g, n.frame, &n);
    struct outcome result;
    if (stamp_is_made(s)) {
        result = stamp_play_backward(g, s, n.frame, &n);
    } else {
        stamp_begin_backward(g, s, n.frame, &n);
        result = run_again(g, n, index);
        stamp_end_backward(g, s, n.frame, &result);
    }
    graph_hand_on(g, n.inputs[0], &result);
}

void checkpoint_run(struct graph *g, int32_t index)
{
    (g->reentrant ? run_reentrant : run_checkpoint)(g, index);
}
