// The tape of nodes and the engine that runs it backwards. Nodes that are run again before they
// give a gradient are in checkpoint.c and tiled.c.
#include <string.h>

#include "core/autograd/backward.h"

enum { FIRST_PARAMETER = -2 };

int32_t input_of_parameter(int parameter)
{
    return FIRST_PARAMETER - parameter;
}

int parameter_of_input(int32_t input)
{
    return FIRST_PARAMETER - input;
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
// CUDA loads a kernel when it is first used, for which the host may have to wait until the card is
// idle. That it does is inferred: without it FSDP1's deferred frees of a first step end later than
// in the recording t07. In the backward pass what is done element by element launches what came
// with its forward pass: by the times of a history (Qwen3-0.6B, ZeRO-3) the host took 5 to 17 ms
// more for the first power, mean, negation and SiLU, none for their first backward passes, and 3 to
// 9 ms for the first products of those.
void graph_load_kernels(struct graph *g, const struct operation *operation, bool backward)
{
    uint64_t theirs = UINT64_C(1) << operation->kernels;
    bool came = backward && operation->kernels >= FIRST_KERNELS &&
                operation->kernels < FIRST_KERNELS + SHARED_KERNELS;
    if (came || g->loaded[backward] & theirs)
        return;
    machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
    g->loaded[backward] |= theirs;
}

struct node *graph_add_node(struct graph *g, const struct operation *operation)
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
    graph_load_kernels(g, operation, false);
    return g->recording ? graph_add_node(g, operation) : NULL;
}

struct node *graph_add_for(struct graph *g, const struct operation *operation, struct var x)
{
    if (x.node != NO_NODE)
        return graph_add(g, operation);
    graph_called(g);
    graph_load_kernels(g, operation, false);
    return NULL;
}

bool graph_offloads(const struct graph *g)
{
    return g->offload.on && !g->frame && g->keeping && !g->stopped;
}

struct storage *graph_packed(struct graph *g, struct storage *s, enum laid laid)
{
    return offload_pack(&g->offload, g->machine, s, laid);
}

void graph_keep_packed(struct node *n, struct storage *s)
{
    ASSERT(n->saved_count < NODE_SAVED);
    n->saved[n->saved_count++] = s;
}

static void keep_in(struct graph *g, struct node *n, struct storage *s)
{
    ASSERT(n->saved_count < NODE_SAVED);
    bool offloads = g->offload.on && !g->frame && n->operation != &operation_pass;
    n->saved[n->saved_count++] =
        offloads ? offload_pack(&g->offload, g->machine, s, LAID_OUT) : storage_share(s);
    if (g->machine->stamp)
        stamp_kept(g, s);
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
    if (n)
        keep_in(g, n, s);
    if (g->frame && ++g->frame->kept_so_far == g->frame->kept)
        g->stopped = true;
}

struct var graph_output(struct graph *g, struct node *n, uint64_t elements, uint32_t width)
{
    struct storage *s = g->stopped ? NULL : machine_take(g->machine, elements * width, g->kind);
    if (s)
        s->width = (uint8_t)width;
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

// ------------------------------------------------------------------ gradients

static void drop_used_on(struct machine *m, struct storage *s, uint16_t stream)
{
    if (s->stream == stream)
        machine_drop(m, s);
    else
        machine_drop_after(m, s, stream);
}

// torch/distributed/tensor/_ops/_embedding_ops.py: the gradient of a cut embedding is made for all
// words, and stays so (run tp18) but where it meets the head's: its own part is taken then, and the
// sum is out of place (history of tp1).
static void add_own_part(struct graph *g, struct parameter *p, struct storage *whole)
{
    struct machine *m = g->machine;
    uint64_t bytes = whole->bytes / g->tensor_ranks;
    struct storage *part = machine_take(m, bytes, MEMORY_GRADIENTS);
    struct storage *sum = machine_take(m, bytes, MEMORY_GRADIENTS);
    machine_move(m, 5 * bytes);
    machine_drop(m, part);
    machine_drop(m, p->gradient);
    p->gradient = sum;
    machine_drop(m, whole);
}

// A parameter that is used more than once gathers its gradients as any tensor does, on the stream
// that it was made on.
void graph_give(struct graph *g, int parameter, const struct outcome *o)
{
    struct parameter *p = &g->parameters[parameter];
    struct storage *s = o->gradient;
    p->ready = g->ready_count++;
    if (p->gradient && p->cut == CUT_WORDS && s->bytes > p->rows * p->columns * p->width) {
        add_own_part(g, p, s);
        return;
    }
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

static void give_to_parameter(struct graph *g, int parameter, const struct outcome *o)
{
    struct stamp *noting = stamp_pause_to_give(g, parameter, o);
    graph_give(g, parameter, o);
    stamp_resume(g, noting);
}

static void tell_of_gradient(struct graph *g, int parameter)
{
    struct stamp *noting = stamp_pause_to_tell(g, parameter);
    g->gradient_ready(g, parameter);
    stamp_resume(g, noting);
}

void graph_hand_on(struct graph *g, int32_t input, const struct outcome *o)
{
    if (input <= FIRST_PARAMETER) {
        give_to_parameter(g, parameter_of_input(input), o);
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

void graph_let_go(struct graph *g, struct node *n)
{
    for (int i = 0; i < n->saved_count; i++) {
        struct stamp *noting = stamp_pause_to_let_go(g, n->saved[i]);
        machine_drop(g->machine, n->saved[i]);
        stamp_resume(g, noting);
    }
    n->saved_count = 0;
}

void graph_forget_recomputed(struct graph *g, struct node *n)
{
    if (n->frame)
        graph_let_go(g, n);
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

// ------------------------------------------------------------------ nodes, backward

void graph_release(struct graph *g, struct node *n, bool had_kept)
{
    if (!n->frame) {
        graph_let_go(g, n);
        return;
    }
    if (had_kept && --n->frame->releases_left == 0)
        frame_drop_arguments(g, n->frame);
}

static void hand_on_inputs(struct graph *g, const struct node *n, const struct outcome *out)
{
    for (int i = 0; i < NODE_INPUTS; i++)
        if (out[i].gradient && n->inputs[i] > FIRST_PARAMETER)
            graph_hand_on(g, n->inputs[i], &out[i]);
}

static void give_to_parameters(struct graph *g, const struct node *n, const struct outcome *out)
{
    for (int i = 0; i < NODE_INPUTS; i++)
        if (out[i].gradient && n->inputs[i] <= FIRST_PARAMETER)
            give_to_parameter(g, parameter_of_input(n->inputs[i]), &out[i]);
    for (int i = 0; g->gradient_ready && i < NODE_INPUTS; i++)
        if (out[i].gradient && n->inputs[i] <= FIRST_PARAMETER)
            tell_of_gradient(g, parameter_of_input(n->inputs[i]));
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
    if (!g->module)
        return;
    struct stamp *noting = stamp_pause_for_module(g, parameter, operation, (int)moment);
    g->module(g, parameter, operation, moment);
    stamp_resume(g, noting);
}

void graph_at_adapter(struct graph *g, int parameter, bool done)
{
    if (!g->adapter || g->in_backward)
        return;
    struct stamp *noting = stamp_pause_for_adapter(g, parameter, done);
    g->adapter(g, parameter, done);
    stamp_resume(g, noting);
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
            graph_at_module(g, parameter_of_input(n->inputs[i]), n->operation, moment);
            return;
        }
    if (n->frozen_module)
        graph_at_module(g, n->frozen_module - 1, n->operation, moment);
}

static void settle_offloaded(struct graph *g, struct node *n)
{
    if (!g->offload.asked)
        return;
    struct stamp *noting = stamp_pause_to_settle(g);
    offload_settle(&g->offload, g->machine, n->saved, n->saved_count);
    stamp_resume(g, noting);
}

static void run_node(struct graph *g, int32_t index)
{
    struct node *n = &g->nodes[index];
    at_module_of(g, n, MOMENT_BACKWARD);
    struct outcome out[NODE_INPUTS] = {0};
    bool had_kept = n->saved_count > 0;
    machine_host(g->machine, machine_rates(g->machine)->engine);
    graph_load_kernels(g, n->operation, true);
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
        settle_offloaded(g, n);
    machine_drop(g->machine, n->gradient);
    n->gradient = NULL;
    graph_release(g, n, had_kept);
    if (!g->module) // else a hook comes between a module and its input
        hand_on_inputs(g, n, out);
    give_to_parameters(g, n, out);
    if (g->module)
        hand_on_inputs(g, n, out);
    at_module_of(g, n, MOMENT_BACKWARD_DONE);
}

void graph_run_nodes(struct graph *g, int32_t from, int32_t down_to)
{
    for (int32_t i = from; i >= down_to; i--) {
        if (!g->nodes[i].has_gradient)
            continue;
        if (g->nodes[i].operation == &operation_checkpoint)
            checkpoint_run(g, i);
        else if (g->nodes[i].operation == &operation_tiled)
            tiled_run(g, i);
        else
            run_node(g, i);
    }
}

static void drop_leaves(struct graph *g)
{
    while (g->leaf_count)
        machine_drop(g->machine, g->leaves[--g->leaf_count]);
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
    graph_hand_on(g, out.node, &seed);
    graph_run_nodes(g, g->count - 1, 0);
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
