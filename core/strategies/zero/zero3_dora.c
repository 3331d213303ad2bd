// DoRA under ZeRO-3. Its layer (peft 0.21, tuners/lora/dora.py, DoraLinearLayer) is a module of its
// own with the magnitude: it calls lora_A and lora_B over a unit matrix, reads the weight of the
// layer that it stands beside, which is gathered once more for that and is noted as one of its own
// parameters then (deepspeed/runtime/zero/parameter_offload.py, ZeROOrderedDict), and calls both
// again. Seen in the history of an unmodified job (Qwen3-14B, three layers).
#include "core/ops/ops.h"
#include "core/ops/scratch.h"
#include "core/strategies/zero/zero3.h"

int zero3_weight_of_magnitude(const struct trainer *t, int parameter)
{
    const int *weights = zero3_of(t)->weights;
    int weight =
        parameter > 0 && parameter < t->graph.parameter_count ? weights[parameter - 1] : -1;
    return weight >= 0 && t->graph.parameters[weight].magnitude == parameter ? weight : -1;
}

bool zero3_has_magnitude(const struct trainer *t, int weight)
{
    return weight >= 0 && t->graph.parameters[weight].magnitude;
}

// peft's layer around both has asked for the adapter's type.
void zero3_enter_dora(struct trainer *t, int weight)
{
    const struct parameter *p = &t->graph.parameters[weight];
    struct coordinator *c = zero3_of(t)->coordinator;
    if (!t->graph.in_backward)
        coordinator_read(c, p->adapter);
    coordinator_enter(c, p->magnitude);
}

void zero3_read_in_dora(struct trainer *t, int weight)
{
    struct zero3 *z = zero3_of(t);
    coordinator_read(z->coordinator, weight);
    if (z->is_read[weight])
        return;
    z->is_read[weight] = true;
    coordinator_add(z->coordinator, t->graph.parameters[weight].magnitude, weight);
}

// update_layer, where zero.Init has the weights on the card: each magnitude is the norm of a weight
// that is gathered, with the adapter's product added. cuBLAS's workspace stays, in a segment that
// is not given back then.
void zero3_make_magnitudes(struct trainer *t)
{
    struct machine *m = t->machine;
    for (int i = 0; i < t->graph.parameter_count; i++) {
        const struct parameter *p = &t->graph.parameters[i];
        uint64_t bytes = p->rows * p->columns * t->width;
        if (!p->magnitude)
            continue;
        struct storage *whole = machine_take(m, bytes, MEMORY_WORKSPACE);
        struct storage *change = machine_take(m, bytes, MEMORY_WORKSPACE);
        gemm_workspace(&t->graph);
        struct storage *scaled = machine_take(m, bytes, MEMORY_WORKSPACE);
        struct storage *sum = machine_take(m, bytes, MEMORY_WORKSPACE);
        struct storage *const all[] = {scaled, sum, change, whole};
        for (ptrdiff_t j = 0; j < COUNT_OF(all); j++)
            machine_drop(m, all[j]);
    }
}
