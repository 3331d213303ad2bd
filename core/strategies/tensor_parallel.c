// transformers' tensor parallel under its Trainer: every GPU of the job has a share of each layer's
// matrices and its own copy of the norms. Nothing gathers or reduces gradients.
#include "core/strategies/strategies.h"

// transformers/trainer.py, _mixed_mesh_grad_norm: one norm after another, of what is whole and of
// what is cut, then each gradient is multiplied in place.
static void clip_each(struct trainer *t)
{
    struct machine *m = t->machine;
    struct storage **norms = NEW(m->arena, struct storage *, t->trained_count);
    for (int i = 0; i < t->trained_count; i++) {
        norms[i] = machine_take(m, t->trained[i].width, MEMORY_WORKSPACE);
        machine_move(m, 3 * t->trained[i].elements * t->trained[i].width);
    }
    machine_scratch(m, 4 * (uint64_t)t->trained_count);
    for (int i = t->trained_count - 1; i >= 0; i--)
        machine_drop(m, norms[i]);
}

static void make_states(struct trainer *t, int group)
{
    struct machine *m = t->machine;
    for (int i = 0; i < t->trained_count; i++) {
        struct trained *tensor = &t->trained[i];
        uint64_t bytes = tensor->elements * tensor->width;
        if (optimizer_group(t, tensor) != group || tensor->state.first)
            continue;
        graph_at_parameter(&t->graph, tensor->parameter);
        tensor->state.first = machine_take(m, bytes, MEMORY_OPTIMIZER);
        tensor->state.second = machine_take(m, bytes, MEMORY_OPTIMIZER);
    }
    machine_module(m, NULL, 0, true);
}

// torch/optim/adam.py, _single_tensor_adam: the root of the second moment, and what it becomes when
// it is divided; 8 operators a tensor (see time_step in optimizer.c).
static void update_one(struct trainer *t, const struct trained *tensor)
{
    enum { PASSES = 20 };
    struct machine *m = t->machine;
    uint64_t bytes = tensor->elements * tensor->width;
    struct storage *root = machine_take(m, bytes, MEMORY_OPTIMIZER);
    struct storage *divided = machine_take(m, bytes, MEMORY_OPTIMIZER);
    machine_drop(m, root);
    machine_move(m, PASSES * bytes);
    machine_host(m, machine_rates(m)->cut_tensor);
    machine_drop(m, divided);
}

// transformers/trainer_optimizer.py, _get_adamw_torch: neither fused nor foreach where DTensors and
// other tensors are mixed.
void tensor_step(struct trainer *t)
{
    for (int group = 0; group < OPTIMIZER_GROUPS; group++) {
        make_states(t, group);
        for (int i = 0; i < t->trained_count; i++)
            if (optimizer_group(t, &t->trained[i]) == group)
                update_one(t, &t->trained[i]);
    }
}

// gather_state_dict_for_save: each weight whole, one after another; parts that lie side by side are
// gathered first and then joined.
static void save_each(struct trainer *t, bool hf)
{
    struct machine *m = t->machine;
    for (int i = 0; hf && i < t->graph.parameter_count; i++) {
        const struct parameter *p = &t->graph.parameters[i];
        uint64_t bytes = p->rows * p->columns * p->width * t->job->tensor;
        if (!p->cut)
            continue;
        struct storage *gathered = NULL, *whole = machine_take(m, bytes, MEMORY_WORKING);
        if (p->cut == CUT_INPUTS) {
            gathered = whole;
            whole = machine_take(m, bytes, MEMORY_WORKING);
        }
        machine_drop(m, gathered);
        machine_drop(m, whole);
    }
}

const struct strategy_kind tensor_strategy = {
    .build = whole_build,
    .clip = clip_each,
    .update = whole_update,
    .zero = optimizer_zero,
    .save = save_each,
};
