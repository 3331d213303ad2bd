// The tape of nodes and the engine that runs it backwards.
#include "core/autograd/graph.h"

#include <string.h>

#include "core/base/num.h"

enum { FIRST_PARAMETER = -2 };

int32_t input_of_parameter(int parameter)
{
    return FIRST_PARAMETER - parameter;
}

// ------------------------------------------------------------------ nodes and tensors

static void pass(struct graph *g, struct node *n, struct outcome *out)
{
    (void)g;
    for (int i = 0; i < NODE_INPUTS; i++)
        if (n->inputs[i] != NO_NODE)
            out[i] = (struct outcome){.gradient = storage_share(n->gradient),
                                      .view = n->gradient_is_view};
}

const struct operation operation_pass = {KERNELS_PASS, pass};
static const struct operation checkpoint = {.kernels = KERNELS_CHECKPOINT}; // see run_checkpoint
static const struct operation tiled = {.kernels = KERNELS_TILED};           // see run_tiled

// CUDA loads a kernel when it is first used, for which the host may have to wait until the card is
// idle. That it does is inferred: without it FSDP1's deferred frees of a first step end later than
// in the recording t07.
static void load_kernels(struct graph *g, const struct operation *operation, bool backward)
{
    uint64_t theirs = UINT64_C(1) << operation->kernels;
    if (g->loaded[backward] & theirs)
        return;
    machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
    g->loaded[backward] |= theirs;
}

static struct node *add_node(struct graph *g, const struct operation *operation)
{
    if (g->count == g->capacity)
        g->nodes =
            arena_grow(g->machine->arena, g->nodes, sizeof *g->nodes, g->count, &g->capacity);
    struct node *n = &g->nodes[g->count++];
    memset(n, 0, offsetof(struct node, saved)); // of these, only saved_count are looked at
    n->operation = operation;
    for (int i = 0; i < NODE_INPUTS; i++)
        n->inputs[i] = NO_NODE;
    if (g->keeping)
        n->frame = g->frame;
    return n;
}

void graph_called(struct graph *g)
{
    if (!g->stopped)
        machine_host(g->machine, machine_rates(g->machine)->call);
}

struct node *graph_add(struct graph *g, const struct operation *operation)
{
    graph_called(g);
    load_kernels(g, operation, false);
    return g->recording ? add_node(g, operation) : NULL;
}

struct node *graph_add_for(struct graph *g, const struct operation *operation, struct var x)
{
    if (x.node != NO_NODE)
        return graph_add(g, operation);
    graph_called(g);
    load_kernels(g, operation, false);
    return NULL;
}

void graph_keep(struct graph *g, struct node *n, struct storage *s)
{
    if (g->frame && !g->keeping) { // the first run counts what the second will keep
        g->frame->kept++;
        if (n)
            g->frame->last_keeper = (int32_t)(n - g->nodes);
    }
    if (g->frame && !g->stopped)
        machine_host(g->machine, machine_rates(g->machine)->keep);
    if (g->stopped || !g->keeping)
        return;
    if (n) {
        ASSERT(n->saved_count < NODE_SAVED);
        bool offloads = g->offload.on && !g->frame && n->operation != &operation_pass;
        n->saved[n->saved_count++] =
            offloads ? offload_pack(&g->offload, g->machine, s) : storage_share(s);
    }
    if (g->frame && ++g->frame->kept_so_far == g->frame->kept)
        g->stopped = true;
}

struct var graph_output(struct graph *g, struct node *n, uint64_t elements, uint32_t width)
{
    struct storage *s = g->stopped ? NULL : machine_take(g->machine, elements * width, g->kind);
    return (struct var){s, n ? (int32_t)(n - g->nodes) : NO_NODE, width, elements};
}

void *node_detail(struct node *n, ptrdiff_t bytes)
{
    ASSERT(bytes <= NODE_DETAIL_BYTES);
    return n->detail;
}

void var_drop(struct graph *g, struct var *v)
{
    machine_drop(g->machine, v->storage);
    v->storage = NULL;
}

struct var var_share(struct var v)
{
    storage_share(v.storage);
    return v;
}

static void drop_arguments(struct graph *g, struct frame *f)
{
    for (int i = FRAME_ALSO - 1; i >= 0; i--)
        var_drop(g, &f->also[i]);
    var_drop(g, &f->input);
}

void graph_hold_cast(struct graph *g, struct storage *s)
{
    g->casts =
        arena_grow(g->machine->arena, g->casts, sizeof *g->casts, g->cast_count, &g->cast_capacity);
    g->casts[g->cast_count++] = s;
}

void graph_end_autocast(struct graph *g)
{
    if (!g->cast_count)
        return;
    while (g->cast_count)
        machine_drop(g->machine, g->casts[--g->cast_count]);
    for (int i = 0; i < g->parameter_count; i++)
        g->parameters[i].cast = NULL;
}

// ------------------------------------------------------------------ checkpoints, forward

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
        add_node(g, &operation_pass);
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

struct var graph_checkpoint(struct graph *g, struct var in,
                            void (*forward)(struct graph *g, struct var *out, struct var in,
                                            void *what),
                            void *what)
{
    struct frame *f = NEW(g->machine->arena, struct frame, 1);
    machine_host(g->machine, machine_rates(g->machine)->frame);
    *f = (struct frame){
        .forward = forward, .what = what, .input = in, .input_on_host = g->checkpoints_on_host};
    if (g->offload.on) {
        offload_skip(&g->offload); // _NoopSaveInputs keeps an empty tensor first
        f->input.storage = offload_pack(&g->offload, g->machine, in.storage);
    } else if (f->input_on_host) {
        f->input.storage = NULL;
    } else {
        storage_share(in.storage);
    }
    for (int i = 0; i < FRAME_ALSO; i++)
        f->also[i] = var_share(g->shared_arguments[i]);
    struct var out = run_first(g, f, in);
    if (f->exposes && g->recording)
        add_node(g, &operation_pass);
    struct node *n = graph_add(g, &checkpoint);
    if (!n) {
        drop_arguments(g, f);
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

// ------------------------------------------------------------------ pieces, forward

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
    struct node *n = graph_add(g, &tiled);
    if (n) {
        n->inputs[0] = in.node;
        NODE_DETAIL(n, struct tiling)->pieces = p;
    }
    graph_keep(g, n, in.storage);
    return (struct var){joined, n ? (int32_t)(n - g->nodes) : NO_NODE, in.width, in.elements};
}

// ------------------------------------------------------------------ gradients

static void drop_used_on(struct machine *m, struct storage *s, uint16_t stream)
{
    if (s->stream == stream)
        machine_drop(m, s);
    else
        machine_drop_after(m, s, stream);
}

// A parameter that is used more than once gathers its gradients as any tensor does, on the stream
// that it was made on.
static void give_to_parameter(struct graph *g, int parameter, const struct outcome *o)
{
    struct parameter *p = &g->parameters[parameter];
    struct storage *s = o->gradient;
    p->ready = g->ready_count++;
    if (!p->gradient) {
        p->gradient = s;
        p->gradient_is_view = o->view;
        return;
    }
    uint16_t stream = g->parameter_stream;
    machine_move_on(g->machine, stream, 3 * s->bytes);
    if (p->gradient_is_view) {
        struct storage *sum = machine_take_on(g->machine, stream, s->bytes, MEMORY_GRADIENTS);
        drop_used_on(g->machine, p->gradient, stream);
        p->gradient = sum;
        p->gradient_is_view = false;
    }
    drop_used_on(g->machine, s, stream);
}

static void hand_on(struct graph *g, int32_t input, const struct outcome *o)
{
    if (input <= FIRST_PARAMETER) {
        give_to_parameter(g, FIRST_PARAMETER - input, o);
        return;
    }
    if (input == NO_NODE) {
        machine_drop(g->machine, o->gradient);
        return;
    }
    struct node *n = &g->nodes[input];
    if (!n->has_gradient) {
        n->has_gradient = true;
        n->gradient = o->gradient;
        n->gradient_is_view = o->view;
        return;
    }
    machine_move(g->machine, 3 * o->gradient->bytes);
    bool in_place = n->gradient && n->gradient->references == 1 && !n->gradient_is_view;
    if (!in_place) {
        struct storage *sum = machine_take(g->machine, o->gradient->bytes, MEMORY_WORKING);
        machine_drop(g->machine, n->gradient);
        n->gradient = sum;
        n->gradient_is_view = false;
    }
    machine_drop(g->machine, o->gradient);
}

static void let_go(struct graph *g, struct node *n)
{
    for (int i = 0; i < n->saved_count; i++)
        machine_drop(g->machine, n->saved[i]);
    n->saved_count = 0;
}

void graph_forget_recomputed(struct graph *g, struct node *n)
{
    if (n->frame)
        let_go(g, n);
}

static void reduce(struct graph *g, struct outcome *o)
{
    struct storage *sum = machine_take(g->machine, o->reduced_bytes, MEMORY_GRADIENTS);
    if (o->reduction)
        reduction_scratch(g, o->reduction);
    machine_move(g->machine, o->gradient->bytes + o->reduced_bytes);
    if (o->reduction && o->reduction->outputs) // else along rows
        machine_slow(g->machine, MOVING_SUMMED, o->gradient->bytes);
    machine_drop(g->machine, o->gradient);
    o->gradient = sum;
}

static void cast(struct graph *g, struct outcome *o)
{
    struct storage *narrow = machine_take(g->machine, o->cast_bytes, MEMORY_WORKING);
    machine_move(g->machine, o->gradient->bytes + o->cast_bytes);
    machine_drop(g->machine, o->gradient);
    o->gradient = narrow;
}

// ------------------------------------------------------------------ checkpoints, backward

static void run_nodes(struct graph *g, int32_t from, int32_t down_to);

// Leaves the gradients at the nodes that stand for others.
static void run_tail(struct graph *g, struct tail *t, const struct outcome *seed)
{
    int32_t first = g->count;
    for (int32_t i = 0; i < t->all; i++) {
        struct node *n = add_node(g, &operation_pass);
        *n = t->nodes[i];
        for (int j = 0; j < NODE_INPUTS; j++)
            n->inputs[j] += i < t->count && n->inputs[j] > NO_NODE ? first : 0;
    }
    hand_on(g, t->out > NO_NODE ? first + t->out : t->out, seed);
    run_nodes(g, first + t->count - 1, first);
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
            hand_on(g, leaf + n->inputs[0], &o);
    }
}

static void hold_leaf(struct graph *g, struct storage *s)
{
    g->leaves = arena_grow(g->machine->arena, g->leaves, sizeof *g->leaves, g->leaf_count,
                           &g->leaf_capacity);
    g->leaves[g->leaf_count++] = storage_share(s);
}

static void drop_leaves(struct graph *g)
{
    while (g->leaf_count)
        machine_drop(g->machine, g->leaves[--g->leaf_count]);
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
    hand_on(g, f->exposed, &o);
}

static void note_recomputation(struct graph *g, bool recomputes)
{
    if (g->machine->time)
        g->machine->time->recomputes = recomputes;
}

static void recompute(struct graph *g, struct frame *f, struct var *out, struct var in)
{
    machine_host(g->machine, machine_rates(g->machine)->frame);
    note_recomputation(g, true);
    g->kind = MEMORY_SAVED;
    f->forward(g, out, in, f->what);
    g->kind = MEMORY_WORKING;
    note_recomputation(g, false);
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
    add_node(g, &operation_pass);
    recompute(g, f, &out, in);
    struct outcome seed = {.gradient = storage_share(n.gradient), .view = n.gradient_is_view};
    hand_on(g, out.node, &seed);
    run_nodes(g, g->count - 1, leaf + 1);
    struct outcome result = {.gradient = g->nodes[leaf].gradient};
    g->count = leaf;
    if (g->holds_leaves) {
        hold_leaf(g, f->input.storage);
        hold_leaf(g, result.gradient);
    }
    var_drop(g, &out);
    drop_arguments(g, f);
    machine_drop(g->machine, n.gradient);
    hand_on(g, n.inputs[0], &result);
}

static void run_checkpoint(struct graph *g, int32_t index)
{
    struct node n = g->nodes[index]; // the array may move while nodes are added
    struct frame *f = n.frame;
    int32_t leaf = g->count;
    bring_input(g, f);
    struct outcome seed = {.gradient = n.gradient, .view = n.gradient_is_view};
    run_tail(g, &f->tail, &seed);
    bool offloaded = f->input.storage && f->input.storage->on_host;
    f->input.storage = offload_unpack(&g->offload, g->machine, f->input.storage);
    struct var in = {f->input.storage, leaf, f->input.width, f->input.elements}, out;
    add_node(g, &operation_pass);
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
    run_nodes(g, g->count - 1, leaf + 1);
    struct outcome result = {.gradient = g->nodes[leaf].gradient,
                             .view = g->nodes[leaf].gradient_is_view};
    g->count = leaf;
    hand_on(g, n.inputs[0], &result);
}

// ------------------------------------------------------------------ nodes, backward

static void release(struct graph *g, struct node *n, bool had_kept)
{
    if (!n->frame) {
        let_go(g, n);
        return;
    }
    if (had_kept && --n->frame->releases_left == 0)
        drop_arguments(g, n->frame);
}

static void hand_on_inputs(struct graph *g, const struct node *n, const struct outcome *out)
{
    for (int i = 0; i < NODE_INPUTS; i++)
        if (out[i].gradient && n->inputs[i] > FIRST_PARAMETER)
            hand_on(g, n->inputs[i], &out[i]);
}

static void give_to_parameters(struct graph *g, const struct node *n, const struct outcome *out)
{
    for (int i = 0; i < NODE_INPUTS; i++)
        if (out[i].gradient && n->inputs[i] <= FIRST_PARAMETER)
            give_to_parameter(g, FIRST_PARAMETER - n->inputs[i], &out[i]);
    for (int i = 0; g->gradient_ready && i < NODE_INPUTS; i++)
        if (out[i].gradient && n->inputs[i] <= FIRST_PARAMETER)
            g->gradient_ready(g, FIRST_PARAMETER - n->inputs[i]);
}

void graph_at_module(struct graph *g, int parameter, const struct operation *operation,
                     enum module_moment moment)
{
    bool done = moment == MOMENT_FORWARD_DONE || moment == MOMENT_BACKWARD_DONE;
    if (g->stopped)
        return;
    if (parameter >= 0)
        machine_module(g->machine, g->parameters[parameter].name, g->parameters[parameter].layer,
                       done);
    if (g->module)
        g->module(g, parameter, operation, moment);
}

void graph_at_parameter(struct graph *g, int parameter)
{
    machine_module(g->machine, g->parameters[parameter].name, g->parameters[parameter].layer,
                   false);
}

static void at_module_of(struct graph *g, const struct node *n, enum module_moment moment)
{
    bool told = g->module || g->machine->makes_all;
    for (int i = 0; told && i < NODE_INPUTS; i++)
        if (n->inputs[i] <= FIRST_PARAMETER) {
            graph_at_module(g, FIRST_PARAMETER - n->inputs[i], n->operation, moment);
            return;
        }
    if (n->frozen_module)
        graph_at_module(g, n->frozen_module - 1, n->operation, moment);
}

static void run_node(struct graph *g, int32_t index)
{
    struct node *n = &g->nodes[index];
    at_module_of(g, n, MOMENT_BACKWARD);
    struct outcome out[NODE_INPUTS] = {0};
    bool had_kept = n->saved_count > 0;
    machine_host(g->machine, machine_rates(g->machine)->engine);
    load_kernels(g, n->operation, true);
    for (int i = 0; i < n->saved_count; i++)
        n->saved[i] = offload_unpack(&g->offload, g->machine, n->saved[i]);
    n->operation->backward(g, n, out);
    graph_forget_recomputed(g, n);
    for (int i = 0; i < NODE_INPUTS; i++)
        if (out[i].gradient && out[i].reduced_bytes)
            reduce(g, &out[i]);
    for (int i = 0; i < NODE_INPUTS; i++)
        if (out[i].gradient && out[i].cast_bytes)
            cast(g, &out[i]);
    if (had_kept)
        offload_settle(&g->offload, g->machine, n->saved, n->saved_count);
    machine_drop(g->machine, n->gradient);
    n->gradient = NULL;
    release(g, n, had_kept);
    if (!g->module) // else a hook comes between a module and its input
        hand_on_inputs(g, n, out);
    give_to_parameters(g, n, out);
    if (g->module)
        hand_on_inputs(g, n, out);
    at_module_of(g, n, MOMENT_BACKWARD_DONE);
}

// One piece, again and backwards; its gradient is added to its place in that of the whole. Its
// output has a name until the next one's has it.
static void run_piece(struct graph *g, struct var *out, const struct pieces *p, struct var in,
                      struct storage *gradient)
{
    int32_t leaf = g->count;
    struct var before = *out;
    in.node = leaf;
    add_node(g, &operation_pass);
    note_recomputation(g, true);
    g->kind = MEMORY_SAVED;
    p->forward(g, out, in, p->what);
    g->kind = MEMORY_WORKING;
    note_recomputation(g, false);
    var_drop(g, &before);
    struct outcome seed = {.gradient = storage_share(gradient), .view = true};
    hand_on(g, out->node, &seed);
    run_nodes(g, g->count - 1, leaf + 1);
    machine_drop(g->machine, g->nodes[leaf].gradient);
    g->count = leaf;
}

static void run_tiled(struct graph *g, int32_t index)
{
    struct node n = g->nodes[index]; // the array may move while nodes are added
    const struct pieces *p = NODE_DETAIL(&n, struct tiling)->pieces;
    struct outcome result = {.gradient =
                                 machine_take(g->machine, var_bytes(p->whole), MEMORY_WORKING)};
    struct var in = p->whole, out = {0};
    load_kernels(g, &tiled, true);
    in.storage = n.saved[0];
    for (uint64_t at = 0; at < p->whole.elements; at += p->elements) {
        in.elements = piece_of(p->whole.elements, at, p->elements);
        run_piece(g, &out, p, in, n.gradient);
    }
    var_drop(g, &out);
    struct node *now = &g->nodes[index];
    if (now->frame)
        let_go(g, now);
    machine_drop(g->machine, now->gradient);
    now->gradient = NULL;
    release(g, now, true);
    hand_on(g, n.inputs[0], &result);
}

static void run_nodes(struct graph *g, int32_t from, int32_t down_to)
{
    for (int32_t i = from; i >= down_to; i--) {
        if (!g->nodes[i].has_gradient)
            continue;
        if (g->nodes[i].operation == &checkpoint)
            (g->reentrant ? run_reentrant : run_checkpoint)(g, i);
        else if (g->nodes[i].operation == &tiled)
            run_tiled(g, i);
        else
            run_node(g, i);
    }
}

// torch/csrc/autograd/functions/accumulate_grad.h: what an earlier backward pass left is added to,
// in place, once all of this one's gradient is there.
static void set_earlier_aside(struct graph *g)
{
    for (int i = 0; i < g->parameter_count; i++) {
        struct parameter *p = &g->parameters[i];
        p->gradient_is_view = false;
        if (p->tied) {
            p->earlier = p->gradient;
            p->gradient = NULL;
        }
    }
}

static void add_to_earlier(struct graph *g)
{
    for (int i = 0; i < g->parameter_count; i++) {
        struct parameter *p = &g->parameters[i];
        if (!p->earlier)
            continue;
        machine_drop(g->machine, p->gradient);
        p->gradient = p->earlier;
        p->earlier = NULL;
    }
}

void graph_backward_from(struct graph *g, struct var out, struct storage *gradient)
{
    struct machine *m = g->machine;
    g->in_backward = true;
    g->ready_count = 0;
    g->kind = MEMORY_WORKING;
    struct outcome seed = {.gradient = storage_share(gradient)};
    set_earlier_aside(g);
    hand_on(g, out.node, &seed);
    run_nodes(g, g->count - 1, 0);
    drop_leaves(g);
    add_to_earlier(g);
    machine_drop(m, gradient);
    var_drop(g, &out);
    offload_end(&g->offload, m);
    g->in_backward = false;
    g->count = 0;
}

void graph_backward(struct graph *g, struct var loss)
{
    graph_backward_from(g, loss, machine_take(g->machine, 4, MEMORY_WORKING));
}
