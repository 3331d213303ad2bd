// The sparse block of Qwen3's mixtures of experts as transformers 5.17 runs it: a router
// (routers.c) and all experts at once by grouped matrix products over rows sorted by
// expert (integrations/moe.py, grouped_mm_experts_forward).
//
// No size depends on how the router chose: every token goes to per_token experts of this rank,
// which has all of them, so there are tokens * per_token rows however they are spread, and the
// products take one buffer for all groups. Rows are assumed to be more than the 4096 that torch
// sorts without cub.
#include "core/models/experts/expert_loop.h"
#include "core/models/experts/routers.h"
#include "core/models/forward.h"
#include "core/models/units.h"
#include "core/ops/scratch.h"

static void scratch(struct graph *g, uint64_t bytes)
{
    if (!g->stopped)
        machine_scratch(g->machine, bytes);
}

// ------------------------------------------------------------------ the experts

// Rows sorted by expert, and where each expert's end.
struct sorting {
    struct var experts, order;
    struct var states, weights; // of each row
    struct var offsets, mask;
};

static struct sorting sort_by_expert(struct scope *f, struct var x, const struct routing *r,
                                     uint64_t experts)
{
    struct graph *g = f->graph;
    struct sorting s;
    s.experts = local(f, constant(g, r->rows, 8));
    s.order = local(f, constant(g, r->rows, 8));
    struct var range = constant(g, r->rows, 8);
    scratch(g, sort_scratch(r->rows, 64));
    var_drop(g, &range);
    s.states = local(f, index_rows(g, x, r->tokens, constant(g, r->rows, 8)));
    s.weights = local(f, index_rows(g, r->weights, r->rows, s.order));
    local(f, constant(g, r->rows, 4)); // the experts again, narrow
    local(f, constant(g, experts, 4)); // how many rows each has
    s.offsets = local(f, constant(g, experts, 4));
    scratch(g, 1023); // a scan of one tile
    s.mask = local(f, constant(g, r->rows, 1));
    return s;
}

static struct var gated(struct graph *g, struct var x)
{
    struct scope f = scope_in(g);
    struct var both = local(&f, chunks(g, x, 2));
    struct var gate = local(&f, chunk(g, both, x.elements / 2));
    struct var up = local(&f, chunk(g, both, x.elements / 2));
    return returns(&f, multiply(g, activation(g, gate), up));
}

// gpt-oss's: both halves clamped.
static struct var gated_clamped(struct graph *g, struct var x)
{
    struct scope f = scope_in(g);
    x = local(&f, x);
    struct var gate_part = slice(g, x, x.elements / 2), up_part = slice(g, x, x.elements / 2);
    struct var gate = local(&f, clamp(g, gate_part, 1)), up = local(&f, clamp(g, up_part, 2));
    struct var active = local(&f, multiply(g, gate, sigmoid(g, scale(g, gate))));
    return returns(&f, multiply(g, add_constant(g, up), active));
}

// The bias of each row's expert, if experts have any.
static struct var bias_of_rows(struct graph *g, int parameter, struct var experts, uint64_t count)
{
    if (parameter < 0)
        return (struct var){NULL, NO_NODE, 0, 0};
    return index_rows(g, op_parameter(g, parameter), count, experts);
}

// In place.
static struct var add_bias(struct graph *g, struct var x, struct var bias)
{
    return bias.elements ? add_in_place(g, x, bias) : same(x);
}

static struct var all_experts(struct graph *g, struct var x, const struct routing *r,
                              const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    uint64_t count = m->experts.count;
    struct scope f = scope_in(g);
    struct sorting s = sort_by_expert(&f, x, r, count);
    struct var bias = local(&f, bias_of_rows(g, p->gate_up_bias, s.experts, count));
    assign(&f, &s.states, mask(g, s.states, s.mask));
    struct var both = grouped_product(g, s.states, p->gate_up, m->hidden, s.offsets);
    both = masked(g, add_bias(g, both, bias), s.mask);
    struct var inner = (p->gate_up_bias < 0 ? gated : gated_clamped)(g, both);
    assign(&f, &bias, bias_of_rows(g, p->experts_down_bias, s.experts, count));
    struct var down =
        grouped_product(g, inner, p->experts_down, m->experts.intermediate, s.offsets);
    down = local(&f, masked(g, add_bias(g, down, bias), s.mask));
    struct var weighted = local(&f, multiply(g, down, s.weights));
    struct var inverse = local(&f, constant(g, r->rows, 8)); // back into the tokens' order
    struct var range = constant(g, r->rows, 8);
    var_drop(g, &range);
    assign(&f, &weighted, index_rows(g, weighted, r->rows, inverse));
    return returns(&f, cast(g, sum_groups(g, weighted, x.elements), x.width));
}

// peft wraps the module once for each of its adapted parameters; the last is outermost.
static struct var run_experts(struct graph *g, struct var x, const struct routing *r,
                              const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    struct folded down, up;
    op_fold(g, p->experts_down, &down);
    op_fold(g, p->gate_up, &up);
    bool in_turn = job_stands_on_4(call->trainer->job);
    struct var out = (in_turn ? experts_in_turn : all_experts)(g, x, r, call);
    op_unfold(g, p->gate_up);
    op_unfold(g, p->experts_down);
    return out;
}

static struct routing run_router(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct trainer *t = call->trainer;
    const struct layer_parameters *p = &t->layers[call->layer];
    struct folded router;
    op_fold(g, p->router, &router);
    struct routing r = route(g, x, p, &t->job->model);
    op_unfold(g, p->router);
    return r;
}

// ------------------------------------------------------------------ the block

// A recomputation that has stopped calls no module.
static struct var enter_block(struct graph *g, struct var x, const struct layer_call *call,
                              bool with_router)
{
    int unit = unit_of_experts(call->trainer, call->layer, with_router);
    if (!g->stopped)
        unit_enter(call->trainer, unit);
    return unit_mark(call->trainer, x, unit, true);
}

static struct var leave_block(struct graph *g, struct var x, const struct layer_call *call,
                              bool with_router)
{
    int unit = unit_of_experts(call->trainer, call->layer, with_router);
    struct var out = unit_mark(call->trainer, x, unit, false);
    if (!g->stopped)
        unit_leave(call->trainer, unit);
    return out;
}

// utils/output_capturing.py: a hook hands out the router's logits, but not when a layer is run
// again.
static void collect(struct graph *g, struct var logits, const struct layer_call *call)
{
    struct trainer *t = call->trainer;
    if (!t->router_logits)
        return;
    struct var seen = graph_expose(g, borrowed(logits));
    if (seen.storage)
        t->router_logits[call->layer] = seen;
}

struct var experts_in(struct scope *f, struct var x, const struct layer_call *call)
{
    struct graph *g = f->graph;
    x = local(f, enter_block(g, x, call, true));
    struct routing r = run_router(g, x, call);
    local(f, r.logits);
    collect(g, r.logits, call);
    r.weights = local(f, r.weights);
    local(f, r.experts);
    struct var in = local(f, enter_block(g, x, call, false));
    struct var made = op_summed_in_place(g, run_experts(g, in, &r, call));
    struct var out = leave_block(g, made, call, false);
    return leave_block(g, out, call, true);
}
