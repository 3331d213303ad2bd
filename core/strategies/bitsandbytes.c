// bitsandbytes 0.50's AdamW (optim/optimizer.py): a byte an element and a scale for 256 of them, in
// two states; tensors below 4096 elements keep fp32. The two maps of 256 numbers are shared. Paged
// states are unified memory (functional.py, get_paged), which torch's allocator never sees: filled
// on the card, they stay there while there is room, and else go to the host. It takes one parameter
// after another and waits for each.
#include "core/base/num.h"
#include "core/strategies/strategies.h"

enum { FEWEST_8BIT = 4096, STATE_BLOCK = 256, QUANTILE_MAP_BYTES = 1024, FEWEST_PAGED = 100000 };

// transformers' Trainer has the embedding's state in 32 bits (5.17, trainer.py, create_optimizer).
// DeepSpeed hands flat parts over, of no module.
static bool is_wide_embedding(const struct trainer *t, const struct trained *tensor)
{
    bool asked = job_is_trainers(t->job) || t->job->optimizer == OPTIMIZER_ADAMW_8BIT_HF;
    return asked && !job_is_zero(t->job) && tensor->parameter == t->embedding;
}

static bool is_narrow(const struct trainer *t, const struct trained *tensor)
{
    return job_has_8bit_optimizer(t->job) && tensor->elements >= FEWEST_8BIT &&
           !is_wide_embedding(t, tensor);
}

static struct storage *take_state(const struct trainer *t, uint64_t elements, uint64_t width)
{
    if (job_pages_optimizer(t->job) && elements >= FEWEST_PAGED)
        return machine_take_managed(t->machine, elements * width);
    return machine_take(t->machine, elements * width, MEMORY_OPTIMIZER);
}

static void make_state(struct trainer *t, struct trained *tensor)
{
    struct machine *m = t->machine;
    bool narrow = is_narrow(t, tensor);
    for (int i = 0; i < 2 && narrow && !t->has_quantile_maps; i++)
        machine_take(m, QUANTILE_MAP_BYTES, MEMORY_OPTIMIZER);
    t->has_quantile_maps |= narrow;
    tensor->state.first = take_state(t, tensor->elements, narrow ? 1 : 4);
    tensor->state.second = take_state(t, tensor->elements, narrow ? 1 : 4);
    for (int i = 0; i < 2 && narrow; i++)
        machine_take(m, 4 * u64_divide_up(tensor->elements, STATE_BLOCK), MEMORY_OPTIMIZER);
}

void bitsandbytes_step(struct trainer *t)
{
    for (int group = 0; group < OPTIMIZER_GROUPS; group++)
        for (int i = 0; i < t->trained_count; i++) {
            if (optimizer_group(t, &t->trained[i]) != group)
                continue;
            if (!t->trained[i].state.first)
                make_state(t, &t->trained[i]);
            machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
        }
}
