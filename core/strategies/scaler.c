// torch's GradScaler (2.11, torch/amp/grad_scaler.py) as Accelerate uses it for fp16: the loss is
// multiplied by a number on the card, gradients are divided by it where they are before they are
// clipped, and whether one of them was infinite decides if the optimizer steps.
#include "core/strategies/strategies.h"

static struct storage *take(const struct trainer *t, uint64_t bytes)
{
    return machine_take(t->machine, bytes, MEMORY_WORKSPACE);
}

struct storage *scaler_scale(struct trainer *t)
{
    struct scaler *s = &t->scaler;
    if (!job_scales_loss(t->job))
        return NULL;
    if (!s->scale) {
        s->scale = take(t, 4);
        s->growth = take(t, 4);
    }
    return take(t, 4); // the scaled loss
}

// The reciprocal is taken in fp64.
void scaler_unscale(struct trainer *t)
{
    struct machine *m = t->machine;
    if (!job_scales_loss(t->job))
        return;
    struct storage *wide = take(t, 8), *reciprocal = take(t, 8);
    machine_drop(m, wide);
    struct storage *inverse = take(t, 4);
    machine_drop(m, reciprocal);
    t->scaler.found = take(t, 4);
    machine_drop(m, inverse);
}

// A fused step is told on the card, any other waits for the host to look.
void scaler_step(struct trainer *t, void (*step)(struct trainer *t))
{
    struct machine *m = t->machine;
    bool scales = job_scales_loss(t->job), fused = t->job->optimizer == OPTIMIZER_ADAMW_FUSED;
    struct storage *sum = scales && fused ? take(t, 4) : NULL;
    if (scales && !fused)
        machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    step(t);
    machine_drop(m, sum);
    machine_drop(m, t->scaler.found);
    t->scaler.found = NULL;
}
