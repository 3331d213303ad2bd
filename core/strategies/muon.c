// torch's Muon (2.11, torch/optim/_muon.py), which takes matrices only: one momentum each, and five
// rounds of Newton and Schulz in bf16 on one matrix after another. As its documentation has it,
// embedding, head and vectors are AdamW's. Python keeps the last update until the next is there.
#include "core/strategies/strategies.h"

enum { ROUNDS = 5, BF16 = 2 };

struct matrix {
    uint64_t elements, side;
    uint64_t gram; // elements of its product with itself, over the longer side
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

bool muon_takes(const struct trainer *t, const struct trained *tensor)
{
    const struct parameter *p = &t->graph.parameters[tensor->parameter];
    bool outer = tensor->parameter == t->embedding || tensor->parameter == t->head;
    return t->job->optimizer == OPTIMIZER_MUON && p->columns > 1 && !outer;
}

// _zeropower_via_newtonschulz of an update, which its caller still has; gives the result.
static struct storage *orthogonalize(const struct trainer *t, const struct matrix *m,
                                     struct storage *update, uint32_t width)
{
    struct storage *ortho = width == BF16 ? storage_share(update) : take(t, m->elements * BF16);
    struct storage *gram = NULL, *powers = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        machine_multiply(t->machine,
                         &(struct product_shape){m->side, m->side, m->elements / m->side, 1, BF16});
        machine_multiply(t->machine, &(struct product_shape){m->side, m->side, m->side, 1, BF16});
        machine_multiply(t->machine,
                         &(struct product_shape){m->side, m->elements / m->side, m->side, 1, BF16});
        assign(t, &gram, take(t, m->gram * BF16));
        assign(t, &powers, take(t, m->gram * BF16));
        assign(t, &ortho, take(t, m->elements * BF16));
    }
    assign(t, &gram, NULL);
    assign(t, &powers, NULL);
    return ortho;
}

static void update_one(const struct trainer *t, const struct trained *tensor,
                       struct storage **update)
{
    const struct parameter *p = &t->graph.parameters[tensor->parameter];
    uint64_t side = p->rows < p->columns ? p->rows : p->columns;
    struct matrix m = {tensor->elements, side, side * side};
    assign(t, update, take(t, m.elements * tensor->width)); // gradient and momentum, mixed
    assign(t, update, orthogonalize(t, &m, *update, tensor->width));
}

void muon_step(struct trainer *t)
{
    struct storage *update = NULL;
    for (int i = 0; i < t->trained_count; i++) {
        struct trained *tensor = &t->trained[i];
        if (muon_takes(t, tensor) && !tensor->state.first)
            tensor->state.first = take(t, tensor->elements * tensor->width);
    }
    if (t->machine->time)
        t->machine->time->recomputes = true; // the model's work is none of it
    for (int i = 0; i < t->trained_count; i++)
        if (muon_takes(t, &t->trained[i]))
            update_one(t, &t->trained[i], &update);
    if (t->machine->time)
        t->machine->time->recomputes = false;
    assign(t, &update, NULL);
}
