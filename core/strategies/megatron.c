// Megatron-LM's data parallelism with its distributed optimizer (core 0.13, 23e00ed): weights in
// bf16 and gradients in fp32 lie in one buffer each, of which every data parallel rank updates its
// part (core/distributed/param_and_grad_buffer.py, core/optimizer/distrib_optimizer.py).
#include "core/models/megatron/megatron.h"
#include "core/base/num.h"
#include "core/strategies/strategies.h"

enum { ALIGNED_PARAMETER = 64, ALIGNED_BUCKET = 128, WIDE = 4 };

static uint64_t elements_of(const struct parameter *p)
{
    return p->rows * p->columns;
}

static uint64_t lcm(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static uint64_t ranks_of(const struct job *p, bool experts)
{
    return experts ? megatron_expert_ranks(p) : megatron_data_ranks(p);
}

// From the last parameter to the first, as their gradients come; experts have a buffer of their
// own, over other ranks.
static uint64_t buffer_elements(const struct trainer *t, bool experts)
{
    const struct graph *g = &t->graph;
    const bool *is_expert = megatron_of(t)->is_expert;
    uint64_t end = 0;
    for (int i = g->parameter_count - 1; i >= 0; i--)
        if (is_expert[i] == experts)
            end = u64_align_up(end, ALIGNED_PARAMETER) + elements_of(&g->parameters[i]);
    return u64_align_up(end, lcm(ranks_of(t->job, experts), ALIGNED_BUCKET));
}

// Each parameter moves into the buffer, and what it was made in goes.
static void build_buffers(struct trainer *t, bool experts)
{
    struct graph *g = &t->graph;
    struct machine *m = t->machine;
    uint64_t all = buffer_elements(t, experts);
    struct storage *weights = machine_take(m, all * t->width, MEMORY_PARAMETERS);
    machine_take(m, all * WIDE, MEMORY_GRADIENTS);
    for (int i = g->parameter_count - 1; i >= 0; i--) {
        if (megatron_of(t)->is_expert[i] != experts)
            continue;
        machine_drop(m, g->parameters[i].weight);
        g->parameters[i].weight = storage_share(weights);
    }
}

// The first rank's part of the buffer, and with it of some parameters: fp32 masters, made of a copy
// in bf16 each. The precision-aware optimizer has none (config.use_precision_aware_optimizer); in
// host memory they are that of HybridDeviceOptimizer's (core/optimizer/cpu_offloading).
static void build_masters(struct trainer *t, bool experts)
{
    struct graph *g = &t->graph;
    struct machine *m = t->machine;
    uint64_t at = 0, part = buffer_elements(t, experts) / ranks_of(t->job, experts);
    int first = t->trained_count;
    for (int i = g->parameter_count - 1; i >= 0; i--) {
        if (megatron_of(t)->is_expert[i] != experts)
            continue;
        uint64_t begin = u64_align_up(at, ALIGNED_PARAMETER);
        at = begin + elements_of(&g->parameters[i]);
        if (begin >= part)
            break;
        uint64_t own = u64_least(at, part) - begin;
        t->trained[t->trained_count++] =
            (struct trained){.elements = own, .width = WIDE, .parameter = i};
    }
    bool has_masters = !t->job->precision_aware && t->job->offload == OFFLOAD_OFF;
    for (int i = t->trained_count - 1; has_masters && i >= first; i--) {
        struct trained *tensor = &t->trained[i];
        struct storage *narrow = machine_take(m, tensor->elements * t->width, MEMORY_WORKING);
        tensor->weight = machine_take(m, tensor->elements * WIDE, MEMORY_OPTIMIZER);
        machine_drop(m, narrow);
    }
}

static void build(struct trainer *t)
{
    t->trained = NEW(t->machine->arena, struct trained, t->graph.parameter_count);
    for (int experts = 0; experts < 2; experts++)
        build_buffers(t, experts);
    for (int experts = 0; experts < 2; experts++)
        build_masters(t, experts);
}

static void collect(struct trainer *t, enum collective kind, uint32_t width)
{
    const struct job *p = t->job;
    for (int experts = 0; experts < 2; experts++) {
        struct ranks_apart g = {ranks_of(p, experts),
                                experts ? p->expert * p->expert_tensor : p->tensor};
        machine_collect_in(t->machine, g, kind, buffer_elements(t, experts) * width);
    }
}

// Gradients go down in fp32, weights come back in bf16.
static void update_on_host(struct trainer *t)
{
    uint64_t elements = 0;
    for (int i = 0; i < t->trained_count; i++)
        elements += t->trained[i].elements;
    machine_host_copy(t->machine, STREAM_COMPUTE, elements * WIDE);
    machine_update_on_host(t->machine, elements);
    machine_host_copy(t->machine, STREAM_COMPUTE, elements * t->width);
}

// Masters, two moments and a pinned copy of the gradients, of this rank's part.
static uint64_t host_bytes(const struct job *p)
{
    uint64_t experts = p->parameters.by_part[PART_EXPERTS], rest = p->parameters.total - experts;
    uint64_t part = rest / (p->tensor * p->pipeline) / megatron_data_ranks(p) +
                    experts / (p->expert * p->pipeline) / megatron_expert_ranks(p);
    return p->offload ? sat_mul(part, UINT64_C(4) * WIDE) : 0;
}

// The whole buffer is cleared before a step, and before it is summed looked through for what is no
// number (check_for_nan_in_grad) and divided by the ranks (gradient_scaling_factor).
static void prepare_gradients(struct trainer *t)
{
    for (int experts = 0; experts < 2; experts++) {
        uint64_t bytes = buffer_elements(t, experts) * WIDE;
        if (!bytes)
            continue;
        machine_move(t->machine, bytes);
        machine_move(t->machine, bytes);
        if (megatron_data_ranks(t->job) > 1)
            machine_move(t->machine, 2 * bytes);
    }
}

// TransformerEngine's FusedAdam: state at the first step, two values an element, and where there
// are no masters the 16 bits that weights lack of them (store_param_remainders).
static void update(struct trainer *t)
{
    struct machine *m = t->machine;
    uint64_t elements = 0;
    prepare_gradients(t);
    collect(t, REDUCE_SCATTER, WIDE);
    if (t->job->offload) {
        update_on_host(t);
        collect(t, GATHER, t->width);
        return;
    }
    for (int i = t->trained_count - 1; i >= 0; i--) {
        struct trained *tensor = &t->trained[i];
        elements += tensor->elements;
        if (tensor->state.first)
            continue;
        tensor->state.first = machine_take(m, tensor->elements * WIDE, MEMORY_OPTIMIZER);
        tensor->state.second = machine_take(m, tensor->elements * WIDE, MEMORY_OPTIMIZER);
        if (t->job->precision_aware)
            tensor->weight = machine_take(m, tensor->elements * t->width, MEMORY_OPTIMIZER);
    }
    // Norm and clipping of this part, the update of weights and two moments, and weights' copies.
    machine_move(m, WIDE * elements);
    machine_move(m, UINT64_C(2) * WIDE * elements);
    machine_move(m, UINT64_C(7) * WIDE * elements);
    machine_move(m, (WIDE + t->width) * elements);
    collect(t, GATHER, t->width);
}

const struct strategy_kind megatron_strategy = {
    .build = build, .update = update, .host_bytes = host_bytes};
