// transformers' Adafactor (5.17, optimization.py) as its Trainer sets it up: no first moment, no
// relative steps, no scaling by the parameter. Of a matrix it keeps the means of squared gradients
// by row and by column, of a vector all of them. It takes one parameter after another, and Python
// keeps the last one's update until the next is there.
#include "core/strategies/strategies.h"

// Of experts' weights each expert's matrix is one of a stack.
struct shape {
    uint64_t stack, rows, columns;
};

struct locals {
    struct storage *update;
    struct storage *gradient, *weight; // in fp32, where they are bf16
};

static struct storage *take(const struct trainer *t, uint64_t bytes)
{
    return machine_take(t->machine, bytes, MEMORY_OPTIMIZER);
}

static void assign(const struct trainer *t, struct storage **name, struct storage *value)
{
    machine_drop(t->machine, *name);
    *name = value;
}

// Scratch of norms is a few KiB, left out.
static struct storage *root_mean_square(const struct trainer *t)
{
    struct storage *norm = take(t, 4), *divided = take(t, 4);
    machine_drop(t->machine, norm);
    return divided;
}

static void make_state(const struct trainer *t, struct trained *tensor, const struct shape *p)
{
    bool factored = p->columns > 1;
    tensor->state.first = take(t, 4 * p->stack * p->rows);
    tensor->state.second = factored ? take(t, 4 * p->stack * p->columns) : NULL;
}

// The means, then what the update is divided by: the product of their reciprocal roots.
static void factor(struct trainer *t, const struct shape *p, struct locals *l)
{
    struct machine *m = t->machine;
    uint64_t row_bytes = 4 * p->stack * p->rows, column_bytes = 4 * p->stack * p->columns;
    const struct reduction columns = {p->stack * p->columns, p->rows};
    machine_scratch(m, row_bytes);
    struct storage *means = take(t, column_bytes);
    reduction_scratch(&t->graph, &columns);
    machine_drop(m, means);
    struct storage *mean = take(t, 4 * p->stack), *by_row = take(t, row_bytes);
    machine_drop(m, mean);
    struct storage *by_column = take(t, column_bytes);
    struct storage *product = take(t, row_bytes * p->columns);
    machine_drop(m, by_column);
    machine_drop(m, by_row);
    assign(t, &l->update, product);
}

static uint64_t columns_of_experts(const struct trainer *t, int parameter)
{
    const struct model *model = &t->job->model;
    int layer = t->graph.parameters[parameter].layer;
    if (!model->layer[layer].experts)
        return 0;
    return parameter == t->layers[layer].gate_up        ? model->hidden
           : parameter == t->layers[layer].experts_down ? model->experts.intermediate
                                                        : 0;
}

// DeepSpeed's parts and FSDP1's are flat: vectors.
static struct shape shape_of(const struct trainer *t, const struct trained *tensor)
{
    if (job_is_zero(t->job) || t->job->strategy == STRATEGY_FSDP1)
        return (struct shape){1, tensor->elements, 1};
    const struct parameter *p = &t->graph.parameters[tensor->parameter];
    uint64_t columns = columns_of_experts(t, tensor->parameter);
    return columns ? (struct shape){p->rows, p->columns / columns, columns}
                   : (struct shape){1, p->rows, p->columns};
}

static void update_one(struct trainer *t, struct trained *tensor, struct locals *l)
{
    const struct shape shape = shape_of(t, tensor), *p = &shape;
    uint64_t bytes = 4 * tensor->elements;
    bool narrow = tensor->width < 4;
    assign(t, &l->gradient, NULL);
    l->gradient = narrow ? take(t, bytes) : NULL;
    if (!tensor->state.first)
        make_state(t, tensor, p);
    assign(t, &l->weight, NULL);
    l->weight = narrow ? take(t, bytes) : NULL;
    assign(t, &tensor->state.step, root_mean_square(t)); // which it calls RMS
    struct storage *square = take(t, bytes), *sum = take(t, bytes);
    machine_drop(t->machine, square);
    assign(t, &l->update, sum);
    if (p->columns > 1)
        factor(t, p, l);
    else
        assign(t, &l->update, take(t, bytes));
    struct storage *size = root_mean_square(t), *clipped = take(t, 4);
    machine_drop(t->machine, size);
    machine_drop(t->machine, clipped);
    machine_scratch(t->machine, bytes); // subtracted as the sum with its negative
}

// Matrices are decayed and come first, vectors are not (transformers/trainer.py,
// get_decay_parameter_names).
void adafactor_step(struct trainer *t)
{
    struct locals l = {0};
    for (int vectors = 0; vectors < 2; vectors++)
        for (int i = 0; i < t->trained_count; i++)
            if ((shape_of(t, &t->trained[i]).columns == 1) == vectors)
                update_one(t, &t->trained[i], &l);
    assign(t, &l.update, NULL);
    assign(t, &l.gradient, NULL);
    assign(t, &l.weight, NULL);
}
