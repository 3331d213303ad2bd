// DeepSpeed's ZeRO-3 (0.19.8, deepspeed/runtime/zero/stage3.py): every parameter is cut into equal
// parts, one a rank; rank 0 is followed here.
//
// Gradients and the step (zero3_build.c: what stands before them). Three streams: parameters are
// gathered on one, gradients reduced on another. What one stream made and another used comes back
// when that use is over (Tensor.record_stream), by the clocks of host and card. DeepSpeed's hooks
// keep the host busy, so that few blocks wait; but one that does can keep the embedding from its
// place.
#include "core/strategies/zero/zero3.h"
#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/vision/tower.h"
#include "core/ops/ops.h"
#include "core/strategies/strategies.h"
#include "core/strategies/trainer.h"
#include "core/strategies/zero/zero.h"

enum { MASTER_WIDTH = 4, NORM_WIDTH = 8 };

static uint16_t reduce_stream(const struct trainer *t)
{
    return t->job->overlap_comm ? (uint16_t)(t->first_stream + 1) : STREAM_COMPUTE;
}

static uint64_t elements_of(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    return p->rows * p->columns;
}

static void drop(struct trainer *t, struct storage **s)
{
    machine_drop(t->machine, *s);
    *s = NULL;
}

static void scratch_on(struct trainer *t, uint16_t stream, uint64_t bytes)
{
    machine_drop(t->machine, machine_take_on(t->machine, stream, bytes, MEMORY_WORKSPACE));
}

static bool is_last_micro_batch(const struct trainer *t)
{
    return zero3_of(t)->micro_batch == trainer_micro_batches(t->job);
}

// ------------------------------------------------------------------ modules

static void enter_others(struct coordinator *c, int count)
{
    for (int i = 0; i < count; i++)
        coordinator_enter(c, NO_PARAMETERS);
}

static void enter_others_backward(struct coordinator *c, int count)
{
    for (int i = 0; i < count; i++)
        coordinator_enter_backward(c, NO_PARAMETERS);
}

static int root_unit(const struct trainer *t)
{
    return (int)t->job->model.layers;
}

static int fused_head_unit(const struct trainer *t)
{
    return root_unit(t) + 1;
}

// Experts are units too, behind these.
static int first_block(const struct trainer *t)
{
    return fused_head_unit(t) + 1;
}

// And the blocks of a vision tower behind those.
static int first_of_tower(const struct trainer *t)
{
    return first_block(t) + (int)t->job->model.layers;
}

static int block_of(const struct trainer *t, int layer, bool with_router)
{
    return with_router == zero3_of(t)->has_leaf_blocks ? first_block(t) + layer : -1;
}

// A fused head, TRL's or Liger's, reads the weight and is no call of a module; a reward's is one.
static bool reads_head(const struct job *p)
{
    return (job_fuses_head(p) && p->task != TASK_REWARD) || p->loss == LOSS_LIGER;
}

static bool is_fused_head(const struct trainer *t, int parameter, const struct operation *o)
{
    return parameter == t->head && o != &operation_embedding && reads_head(t->job);
}

// Around a model with adapters peft has two (seen in the order in which a known pass gathers).
static void begin_forward(struct trainer *t)
{
    struct coordinator *c = zero3_of(t)->coordinator;
    coordinator_begin(c, t->job->lora_rank ? NO_PARAMETERS : module_of_root(t));
    if (!t->job->lora_rank)
        return;
    enter_others(c, 1);
    coordinator_enter(c, module_of_root(t));
}

static void begin_backward(struct trainer *t)
{
    struct coordinator *c = zero3_of(t)->coordinator;
    enter_others_backward(c, t->job->lora_rank ? 2 : 0);
    coordinator_enter_backward(c, module_of_root(t));
}

static int adapter_of(const struct trainer *t, int module)
{
    const struct parameter *p = &t->graph.parameters[module];
    return module < t->graph.parameter_count && !p->folds ? p->adapter : 0;
}

// Of lora_A and lora_B the weight they stand beside, which peft's module calls first; -1.
static int weight_beside(const struct trainer *t, int module)
{
    return module < t->graph.parameter_count ? zero3_of(t)->weights[module] : -1;
}

static bool is_first_thin(const struct trainer *t, int module)
{
    int weight = weight_beside(t, module);
    return weight >= 0 && adapter_of(t, weight) == module;
}

static bool is_second_thin(const struct trainer *t, int module)
{
    return weight_beside(t, module) >= 0 && !is_first_thin(t, module);
}

// What a layer that is run again keeps: with the first of a block's weights the others.
static void hold_frozen(struct trainer *t, int module)
{
    const struct zero3 *z = zero3_of(t);
    const struct parameter *all = t->graph.parameters;
    int end = module + 1;
    while (z->in_block[module] && z->in_block[end] && all[end].layer == all[module].layer)
        end++;
    for (int i = module; i < end; i++)
        if (zero3_freezes(t, i))
            coordinator_hold(z->coordinator, i);
}

static void enter_forward(struct trainer *t, int module)
{
    struct zero3 *z = zero3_of(t);
    if (weight_beside(t, module) < 0)
        enter_others(z->coordinator, z->forward[module].before);
    if (adapter_of(t, module))
        coordinator_enter(z->coordinator, module_around(t, module));
    bool plain = !zero3_has_magnitude(t, weight_beside(t, module));
    if (is_first_thin(t, module) && plain) { // its type is asked for, and dropout called
        coordinator_read(z->coordinator, module);
        enter_others(z->coordinator, 1);
    }
    coordinator_enter(z->coordinator, module);
    if (t->graph.in_backward && module < t->graph.parameter_count)
        hold_frozen(t, module);
}

static void leave_forward(struct trainer *t, int module)
{
    struct zero3 *z = zero3_of(t);
    int weight = weight_beside(t, module);
    coordinator_leave(z->coordinator, module);
    if (zero3_has_magnitude(t, weight))
        return;
    if (is_second_thin(t, module))
        coordinator_leave(z->coordinator, module_around(t, weight));
    if (is_second_thin(t, module))
        enter_others(z->coordinator, z->forward[weight].after);
    else if (weight < 0 && !adapter_of(t, module))
        enter_others(z->coordinator, z->forward[module].after);
}

// A block of experts goes by the first of their weights.
static int module_of_block(const struct trainer *t, int unit)
{
    return t->layers[unit - first_block(t)].gate_up;
}

// Of the host's time for a module a third is spent before it begins, the rest before what it used
// is let go; in the backward pass as much as that again for its gradient (history of Qwen3-8B, 12
// layers: 0.11 to 0.25 ms until the next is gathered, 0.25 to 0.5 for a gradient, 0.13 to 0.19
// after that).
static void spend(struct trainer *t, int thirds)
{
    machine_host(t->machine, machine_rates(t->machine)->zero_module * thirds / 3);
}

static void enter_unit(struct trainer *t, int unit)
{
    struct coordinator *c = zero3_of(t)->coordinator;
    if (zero3_of(t)->is_whole)
        return;
    if (unit == root_unit(t))
        begin_forward(t);
    if (unit == fused_head_unit(t))
        coordinator_read(c, t->head);
    if (unit >= first_block(t) && unit < first_of_tower(t)) {
        spend(t, 3);
        enter_forward(t, module_of_block(t, unit));
    }
}

static void leave_unit(struct trainer *t, int unit)
{
    if (zero3_of(t)->is_whole)
        return;
    if (unit == root_unit(t))
        coordinator_leave(zero3_of(t)->coordinator, module_of_root(t));
    if (unit >= first_block(t) && unit < first_of_tower(t))
        leave_forward(t, module_of_block(t, unit));
}

// Once masks are made; a tower's is among its neighbours.
static void enter_rotary(struct trainer *t)
{
    if (!zero3_of(t)->is_whole && !t->tower)
        enter_others(zero3_of(t)->coordinator, 1);
}

static void enter_around_backward(struct trainer *t, int weight)
{
    struct zero3 *z = zero3_of(t);
    enter_others_backward(z->coordinator, z->backward[weight].before);
    coordinator_enter_backward(z->coordinator, module_around(t, weight));
}

static void enter_module_backward(struct trainer *t, int module)
{
    struct zero3 *z = zero3_of(t);
    int weight = weight_beside(t, module);
    if (is_second_thin(t, module)) {
        if (!zero3_has_magnitude(t, weight))
            enter_around_backward(t, weight);
    } else if (weight < 0 && !adapter_of(t, module)) {
        enter_others_backward(z->coordinator, z->backward[module].before);
    }
    coordinator_enter_backward(z->coordinator, module);
}

static bool reads_patches(const struct trainer *t, int module)
{
    const struct tower *w = t->tower;
    return w && (module == w->stem.patch || module == w->stem.positions);
}

// The embedding's gradients go nowhere, so that nothing says when its backward pass is over; so
// with what reads an image. A module that was called without a graph since counts its inputs from 0
// again (parameter_offload.py, ds_grads_remaining) and never comes to the last.
static void leave_module_backward(struct trainer *t, int module)
{
    struct zero3 *z = zero3_of(t);
    bool ends = module != t->embedding && module != t->positions && !reads_patches(t, module);
    if (ends && !z->is_unseen[module])
        coordinator_leave_backward(z->coordinator, module);
    if (module == z->holder) {
        coordinator_let_held_go(z->coordinator);
        z->holder = -1;
    }
    int weight = weight_beside(t, module);
    if (is_first_thin(t, module) && zero3_has_magnitude(t, weight))
        coordinator_leave_backward(z->coordinator, t->graph.parameters[weight].magnitude);
    else if (is_first_thin(t, module))
        enter_others_backward(z->coordinator, 1);
    if (adapter_of(t, module) && !z->is_unseen[module])
        coordinator_leave_backward(z->coordinator, module_around(t, module));
    if (weight_beside(t, module) < 0)
        enter_others_backward(z->coordinator, z->backward[module].after);
}

static void at_dora(struct trainer *t, int weight, const struct operation *operation,
                    enum module_moment moment)
{
    struct coordinator *c = zero3_of(t)->coordinator;
    if (moment == MOMENT_FORWARD)
        zero3_enter_dora(t, weight);
    if (moment == MOMENT_BACKWARD && operation == &operation_pass) {
        enter_around_backward(t, weight);
        coordinator_enter_backward(c, t->graph.parameters[weight].magnitude);
    }
    if (moment != MOMENT_FORWARD_DONE)
        return;
    coordinator_leave(c, t->graph.parameters[weight].magnitude);
    coordinator_leave(c, module_around(t, weight));
    enter_others(c, zero3_of(t)->forward[weight].after);
}

static void at_module(struct graph *g, int parameter, const struct operation *operation,
                      enum module_moment moment)
{
    struct trainer *t = g->owner;
    struct zero3 *z = zero3_of(t);
    if (is_fused_head(t, parameter, operation) || z->in_block[parameter] || z->is_whole)
        return;
    spend(t, moment == MOMENT_FORWARD_DONE ? 2 : 1);
    int with_magnitude = zero3_weight_of_magnitude(t, parameter);
    if (with_magnitude >= 0) {
        at_dora(t, with_magnitude, operation, moment);
        return;
    }
    bool is_head = parameter == t->head && operation == &operation_linear;
    int module = is_head ? module_of_head(t) : parameter;
    switch (moment) {
    case MOMENT_FORWARD:
        z->is_unseen[module] = !g->recording;
        enter_forward(t, module);
        break;
    case MOMENT_FORWARD_DONE:
        leave_forward(t, module);
        break;
    case MOMENT_BACKWARD:
        if (!z->is_fetched_early)
            enter_module_backward(t, module);
        z->is_fetched_early = false;
        break;
    case MOMENT_BACKWARD_DONE:
        leave_module_backward(t, module);
        break;
    case MOMENT_READ:
        zero3_read_in_dora(t, module);
        break;
    }
}

static void before_forward(struct trainer *t)
{
    struct zero3 *z = zero3_of(t);
    z->micro_batch = is_last_micro_batch(t) ? 1 : z->micro_batch + 1;
    for (int i = 0; i < t->graph.parameter_count; i++)
        z->uses_left[i] = zero_uses_of(t, i);
}

// The last module of a layer that is no block of experts, beside it lora_B; -1.
static int last_module(const struct trainer *t, const struct layer_parameters *l)
{
    int last = l->router < 0 ? l->down : l->shared_down;
    return last >= 0 && adapter_of(t, last) ? adapter_of(t, last) + 1 : last;
}

// The model's own backward pass begins at its output, which with a fused head is what that gives.
// A checkpointed layer is run again when the first tensor it kept is asked for, which is in the
// backward pass of its last module; a block of experts says itself when that begins.
static void enter_backward(struct trainer *t, int unit)
{
    struct zero3 *z = zero3_of(t);
    if (unit == (reads_head(t->job) ? fused_head_unit(t) : root_unit(t)))
        begin_backward(t);
    bool of_tower = unit >= first_of_tower(t);
    if (unit >= first_block(t) && !of_tower) {
        spend(t, 3);
        enter_module_backward(t, module_of_block(t, unit));
    }
    if ((unit >= root_unit(t) && !of_tower) || !t->job->checkpointing || t->graph.reentrant)
        return;
    if (t->job->tiled_mlp) { // it has none of its own, and its input is what is asked for
        enter_others_backward(z->coordinator, 2);
        return;
    }
    int last = of_tower ? t->tower->blocks[unit - first_of_tower(t)].fc2
                        : last_module(t, &t->layers[unit]);
    if (last < 0)
        return;
    enter_module_backward(t, last);
    z->is_fetched_early = true;
    z->holder = last;
}

// ------------------------------------------------------------------ gradients

// A reduced part goes to the host in bf16 and comes back; after the last micro-batch its norm is
// taken in fp64, and it goes in fp32: at once, or to files together with the bucket's others
// (_offload_grad_partition_at_boundary, _swap_out_offload_fp32_gradients).
static struct storage *send_to_host(struct trainer *t, int place)
{
    struct zero3 *z = zero3_of(t);
    uint64_t elements = coordinator_shard(z->coordinator, z->bucket[place]);
    struct storage *copy =
        machine_take_on(t->machine, reduce_stream(t), elements * t->width, MEMORY_GRADIENTS);
    if (is_last_micro_batch(t)) {
        scratch_on(t, reduce_stream(t), elements * NORM_WIDTH);
        z->wide[place] = machine_take_on(t->machine, reduce_stream(t), elements * MASTER_WIDTH,
                                         MEMORY_GRADIENTS);
        if (!(t->job->traits & IS_NVME))
            drop(t, &z->wide[place]);
    }
    return copy;
}

static void drop_gradient(struct trainer *t, struct parameter *p)
{
    zero3_drop(t, p->gradient, reduce_stream(t));
    p->gradient = NULL;
}

static void release_gradients(struct trainer *t)
{
    struct zero3 *z = zero3_of(t);
    struct storage *last = NULL;
    for (int i = 0; i < z->bucket_count; i++) {
        struct parameter *p = &t->graph.parameters[z->bucket[i]];
        if (t->job->offload) {
            struct storage *sent = send_to_host(t, i);
            drop(t, &last);
            last = sent;
        }
        drop_gradient(t, p);
    }
    drop(t, &last);
    for (int i = 0; i < z->bucket_count; i++)
        drop(t, &z->wide[i]);
}

// stage3.py, __avg_scatter_grads, where gradients travel in fp32: one that was too large for the
// bucket is widened first.
static void widen_gradients(struct trainer *t)
{
    struct zero3 *z = zero3_of(t);
    for (int i = 0; i < z->bucket_count && z->reduces_wide; i++)
        if (t->graph.parameters[z->bucket[i]].gradient != z->buffer)
            z->widened[i] =
                machine_take_on(t->machine, reduce_stream(t),
                                elements_of(t, z->bucket[i]) * MASTER_WIDTH, MEMORY_GRADIENTS);
}

// And this rank's parts of them are narrowed at the end, before what was reduced goes.
static void narrow_parts(struct trainer *t, struct storage **joined)
{
    struct zero3 *z = zero3_of(t);
    if (!z->reduces_wide)
        return;
    for (int i = 0; i < z->bucket_count; i++)
        z->narrowed[i] = machine_take_on(t->machine, reduce_stream(t),
                                         coordinator_shard(z->coordinator, z->bucket[i]) * t->width,
                                         MEMORY_GRADIENTS);
    drop(t, joined);
    for (int i = 0; i < z->bucket_count; i++)
        drop(t, &z->widened[i]);
}

// deepspeed/runtime/comm/coalesced_collectives.py: one gradient that ranks divide is reduced where
// it is, others are joined, padded.
static void reduce(struct trainer *t)
{
    struct zero3 *z = zero3_of(t);
    struct storage *joined = NULL;
    uint64_t elements = 0, width = z->reduces_wide ? MASTER_WIDTH : t->width;
    if (!z->bucket_count)
        return;
    pending_limit(&z->reductions, t->machine);
    for (int i = 0; i < z->bucket_count; i++)
        elements += coordinator_shard(z->coordinator, z->bucket[i]) * z->ranks;
    widen_gradients(t);
    if (z->bucket_count > 1 || elements != z->bucket_filled)
        joined = machine_take_on(t->machine, reduce_stream(t), elements * width, MEMORY_GRADIENTS);
    machine_follow(t->machine, reduce_stream(t), STREAM_COMPUTE);
    machine_move_on(t->machine, reduce_stream(t), 2 * elements * width);
    machine_collect(t->machine, reduce_stream(t), REDUCE_SCATTER, z->ranks, elements * width);
    if (t->job->offload)
        machine_host_copy(t->machine, reduce_stream(t), elements / z->ranks * MASTER_WIDTH);
    narrow_parts(t, &joined);
    release_gradients(t);
    drop(t, &joined);
    for (int i = 0; i < z->bucket_count; i++)
        drop(t, &z->narrowed[i]);
    if (reduce_stream(t) != STREAM_COMPUTE)
        pending_add(&z->reductions, machine_moment(t->machine, reduce_stream(t)));
    z->bucket_count = 0;
    z->bucket_filled = 0;
}

static void add_to_bucket(struct trainer *t, int parameter)
{
    struct zero3 *z = zero3_of(t);
    struct parameter *p = &t->graph.parameters[parameter];
    uint64_t elements = elements_of(t, parameter);
    if (z->bucket_filled && z->bucket_filled + elements > z->bucket_elements)
        reduce(t);
    machine_wait(t->machine, reduce_stream(t), STREAM_COMPUTE);
    if (elements <= z->bucket_elements - z->bucket_filled) {
        drop_gradient(t, p);
        p->gradient = storage_share(z->buffer);
    }
    z->bucket[z->bucket_count++] = parameter;
    z->bucket_filled += elements;
}

static void gradient_ready(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    struct zero3 *z = zero3_of(t);
    bool waits = z->has_leaf_blocks && z->in_block[parameter];
    spend(t, 2);
    if (--z->uses_left[parameter] <= 0 && !waits)
        add_to_bucket(t, parameter);
}

// Gradients of a block without children are reduced when its backward pass is over (stage3.py,
// reduce_leaf_module_grads), before its parameters go.
static void leave_backward(struct trainer *t, int unit)
{
    if (unit < first_block(t) || unit >= first_of_tower(t))
        return;
    const struct layer_parameters *l = &t->layers[unit - first_block(t)];
    const struct zero3 *z = zero3_of(t);
    int end = l->first;
    while (!z->in_block[end])
        end++;
    for (; z->has_leaf_blocks && z->in_block[end]; end++)
        if (!zero3_freezes(t, end))
            add_to_bucket(t, end);
    const int folded[] = {l->gate_up, l->experts_down, l->router};
    for (int i = 0; z->has_leaf_blocks && i < COUNT_OF(folded); i++)
        for (int j = 0; t->graph.parameters[folded[i]].folds && j < 2; j++)
            add_to_bucket(t, t->graph.parameters[folded[i]].adapter + j);
    leave_module_backward(t, l->gate_up);
}

static void drop_leftovers(struct trainer *t)
{
    const struct zero3 *z = zero3_of(t);
    for (int i = 0; i < t->graph.parameter_count; i++) {
        if (!z->is_unseen[i])
            continue;
        coordinator_drop_leftover(z->coordinator, i);
        if (adapter_of(t, i))
            coordinator_drop_leftover(z->coordinator, adapter_of(t, i)); // which peft's reads
    }
}

static void end_backward(struct trainer *t)
{
    reduce(t);
    if (reduce_stream(t) != STREAM_COMPUTE)
        machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
    if (t->tower) {
        coordinator_leave_backward(zero3_of(t)->coordinator, t->tower->stem.patch);
        coordinator_leave_backward(zero3_of(t)->coordinator, t->tower->stem.positions);
    }
    coordinator_end_backward(zero3_of(t)->coordinator);
    drop_leftovers(t);
}

// ------------------------------------------------------------------ the step

// The optimizer sees one group of parts after another.
static void step_group(struct trainer *t, struct trained *group)
{
    struct storage *flat = machine_take(t->machine, group->elements * t->width, MEMORY_GRADIENTS);
    group->gradient = machine_take(t->machine, group->elements * MASTER_WIDTH, MEMORY_GRADIENTS);
    drop(t, &flat);
    optimizer_step_one(t, group);
    drop(t, &group->gradient);
}

// In fp16 all of this rank's gradients are looked at at once: torch.isinf takes their absolute
// values, and each answer is a byte (has_overflow; in bf16 it is not asked).
static void check_overflow(struct trainer *t)
{
    uint64_t all = 0;
    if (t->job->precision != PRECISION_FP16)
        return;
    for (int i = 0; i < t->trained_count; i++)
        all += t->trained[i].elements;
    struct storage *absolute =
        machine_take_on(t->machine, reduce_stream(t), all * t->width, MEMORY_WORKSPACE);
    struct storage *answers = machine_take_on(t->machine, reduce_stream(t), all, MEMORY_WORKSPACE);
    drop(t, &absolute);
    drop(t, &answers);
    scratch_on(t, reduce_stream(t), all);
}

static void update(struct trainer *t)
{
    struct zero3 *z = zero3_of(t);
    coordinator_let_all_go(z->coordinator);
    machine_follow(t->machine, STREAM_COMPUTE, reduce_stream(t));
    if (t->job->offload)
        optimizer_on_host(t);
    if (!t->job->offload) {
        check_overflow(t);
        for (int i = 0; i < t->graph.parameter_count; i++)
            if (!zero3_freezes(t, i))
                machine_scratch(t->machine, coordinator_shard(z->coordinator, i) * NORM_WIDTH);
        for (int i = 0; i < t->trained_count; i++)
            step_group(t, &t->trained[i]);
    }
    coordinator_gather_persistent(z->coordinator);
}

static int unit_of(const struct trainer *t, enum part part)
{
    if (part == PART_HEAD)
        return reads_head(t->job) ? fused_head_unit(t) : -1;
    if (part == PART_VISION)
        return first_of_tower(t);
    return part == PART_EMBEDDING ? -1 : root_unit(t);
}

const struct strategy_kind zero3_strategy = {
    .load = zero3_load,
    .build = zero3_build,
    .enter_unit = enter_unit,
    .leave_unit = leave_unit,
    .enter_rotary = enter_rotary,
    .at_module = at_module,
    .gradient_ready = gradient_ready,
    .before_forward = before_forward,
    .enter_backward = enter_backward,
    .leave_backward = leave_backward,
    .end_backward = end_backward,
    .update = update,
    .unit_of = unit_of,
    .save = zero3_save,
    .make_whole = zero3_make_whole,
    .block_of = block_of,
    .host_bytes = zero3_host_bytes,
};
