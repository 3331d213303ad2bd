// Clipping, the optimizer and zero_grad, as torch 2.11 does them over lists of tensors.
#include "core/base/num.h"
#include "core/strategies/strategies.h"
#include "core/strategies/trainer.h"

// The time of operators over lists of all trained tensors, which together read and write so many
// times their bytes. A launch has 320 chunks of 65536 elements at most
// (ATen/native/cuda/MultiTensorApply.cuh).
static void time_lists(struct trainer *t, uint64_t passes, int operators)
{
    enum { ELEMENTS_A_LAUNCH = 65536 * 320 };
    const struct rates *r = machine_rates(t->machine);
    uint64_t bytes = 0, elements = 0;
    for (int i = 0; i < t->trained_count; i++) {
        elements += t->trained[i].elements;
        bytes += t->trained[i].elements * t->trained[i].width;
    }
    bool sharded = t->job->strategy == STRATEGY_FSDP2;
    double launches = (double)u64_divide_up(elements, ELEMENTS_A_LAUNCH);
    machine_move(t->machine, passes * bytes);
    machine_slow(t->machine, MOVING_LISTS, passes * bytes);
    machine_host(t->machine,
                 operators * (launches * r->launch +
                              t->trained_count * (sharded ? r->sharded_tensor : r->tensor)));
}

// torch.nn.utils.clip_grad_norm_ with foreach: partial sums of 65536 elements for every tensor and
// one norm each (ATen/native/cuda/ForeachReduceOp.cu), stacked and normed once more.
void optimizer_clip(struct trainer *t)
{
    time_lists(t, 1, 1);
    time_lists(t, 2, 1);
    uint64_t largest = 0, count = (uint64_t)t->trained_count;
    for (int i = 0; i < t->trained_count; i++)
        if (t->trained[i].elements > largest)
            largest = t->trained[i].elements;
    struct errand e = errand_of(t->machine, t->trained_count + 6);
    int32_t *norms = NEW(t->machine->arena, int32_t, t->trained_count);
    int32_t partial = errand_take(&e, 4 * count * u64_divide_up(largest, 65536), MEMORY_WORKSPACE);
    for (int i = 0; i < t->trained_count; i++)
        norms[i] = errand_take(&e, t->trained[i].width, MEMORY_WORKSPACE);
    errand_drop(&e, partial);
    uint32_t width = t->trained[0].width;
    int32_t stacked = errand_take(&e, count * width, MEMORY_WORKSPACE);
    int32_t norm = errand_take(&e, width, MEMORY_WORKSPACE);
    errand_drop(&e, stacked);
    for (int i = t->trained_count - 1; i >= 0; i--)
        errand_drop(&e, norms[i]);
    for (int i = 0; i < 3; i++)
        errand_drop(&e, errand_take(&e, width, MEMORY_WORKSPACE));
    errand_drop(&e, norm);
    errand_run(&e);
}

static void make_state(struct trainer *t, struct trained *tensor)
{
    struct machine *m = t->machine;
    uint64_t bytes = tensor->elements * tensor->width;
    if (!job_is_sharded(t->job)) // else it may be a part of several
        graph_at_parameter(&t->graph, tensor->parameter);
    if (t->job->optimizer == OPTIMIZER_ADAMW_FUSED)
        tensor->state.step = machine_take(m, 4, MEMORY_OPTIMIZER);
    tensor->state.first = machine_take(m, bytes, MEMORY_OPTIMIZER);
    tensor->state.second = machine_take(m, bytes, MEMORY_OPTIMIZER);
}

// torch/optim/adam.py, _multi_tensor_adam: decay (a read and a write), lerp (3), mul (2), addcmul
// (3), sqrt (2), div (2), add (2), addcdiv (4). Fused: four read, three written. bitsandbytes'
// states have a byte an element.
static void time_step(struct trainer *t)
{
    enum { FOREACH_PASSES = 20, FOREACH_OPERATORS = 8, FUSED_PASSES = 7, EIGHT_BIT_PASSES = 5 };
    enum optimizer kind = t->job->optimizer;
    if (kind == OPTIMIZER_ADAMW)
        time_lists(t, FOREACH_PASSES, FOREACH_OPERATORS);
    else if (kind == OPTIMIZER_SGD)
        time_lists(t, 3, 1);
    else
        time_lists(t, job_has_bitsandbytes(t->job) ? EIGHT_BIT_PASSES : FUSED_PASSES, 1);
}

// torch/optim/adamw.py: state at the first step (deepspeed/ops/adam/fused_adam.py: the same, but
// for a step that is a number); the foreach form keeps the square roots of all second moments at
// once.
void optimizer_step(struct trainer *t)
{
    struct machine *m = t->machine;
    time_step(t);
    if (t->job->optimizer == OPTIMIZER_SGD)
        return;
    if (t->job->optimizer == OPTIMIZER_ADAFACTOR) {
        adafactor_step(t);
        return;
    }
    if (job_has_bitsandbytes(t->job)) {
        bitsandbytes_step(t);
        return;
    }
    if (job_cuts_tensors(t->job)) {
        tensor_step(t);
        return;
    }
    if (t->job->optimizer == OPTIMIZER_MUON)
        muon_step(t);
    for (int i = 0; i < t->trained_count; i++)
        if (!t->trained[i].state.first)
            make_state(t, &t->trained[i]);
    if (t->job->optimizer == OPTIMIZER_ADAMW_FUSED || t->job->optimizer == OPTIMIZER_ADAM_DS)
        return;
    machine_module(m, NULL, 0, true);
    struct errand e = errand_of(m, t->trained_count);
    for (int i = 0; i < t->trained_count; i++) {
        const struct trained *tensor = &t->trained[i];
        uint64_t bytes = muon_takes(t, tensor) ? 0 : tensor->elements * tensor->width;
        (void)errand_take(&e, bytes, MEMORY_OPTIMIZER);
    }
    for (int32_t place = e.places; place > 0; place--)
        errand_drop(&e, place);
    errand_run(&e);
}

// transformers/trainer.py, get_decay_parameter_names: matrices are decayed and come first, norms
// and biases are not.
int optimizer_group(const struct trainer *t, const struct trained *tensor)
{
    const struct parameter *p = &t->graph.parameters[tensor->parameter];
    return t->habits->decays_matrices && !job_is_zero(t->job) && p->columns == 1;
}

void optimizer_step_one(struct trainer *t, struct trained *tensor)
{
    struct trainer one = *t;
    one.trained = tensor;
    one.trained_count = 1;
    optimizer_step(&one);
    t->has_quantile_maps = one.has_quantile_maps;
}

void optimizer_zero(struct trainer *t)
{
    for (int i = 0; i < t->trained_count; i++) {
        machine_drop(t->machine, t->trained[i].gradient);
        t->trained[i].gradient = NULL;
    }
}

// The host waits for all gradients, then its cores update their shards.
void optimizer_on_host(struct trainer *t)
{
    uint64_t elements = 0;
    for (int i = 0; i < t->trained_count; i++)
        elements += t->trained[i].elements;
    machine_update_on_host(t->machine, elements);
}

void optimizer_update(struct trainer *t)
{
    if (!t->job->offload) {
        scaler_unscale(t);
        t->strategy->clip(t);
        trainer_read_value(t);
        scaler_step(t, optimizer_step);
    } else {
        optimizer_on_host(t);
    }
    t->strategy->zero(t);
}
