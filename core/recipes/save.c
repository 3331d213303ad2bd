// A checkpoint as transformers' Trainer 5.17 writes it, and TRL with it (trainer.py, save_model and
// _save_optimizer_and_scheduler), on the card. A state dict is references: a model that is whole
// costs nothing there, but for experts, which go back to the checkpoint's own tensors before they
// are written. What is sharded is gathered as the strategy does it; torch.save brings storages to
// the host one after another.
#include "core/recipes/run.h"

// Families whose experts the loader joined: gate and up of all experts of a layer are one tensor
// here and two in the checkpoint, copied out of it (core_model_loading.py, Chunk), and all copies
// wait for the file (seen with transformers 5.17: two copies a layer, of all of gate_up). peft
// writes its adapters only.
static bool splits_experts(const struct job *p)
{
    bool joined =
        model_has(&p->model, FEATURE_EXPERTS) && !model_has(&p->model, FEATURE_EXPERT_BIAS);
    bool whole = p->strategy == STRATEGY_SINGLE || p->strategy == STRATEGY_DDP;
    return joined && whole && !p->lora_rank;
}

static void split_experts(struct trainer *t)
{
    enum { HALVES = 2 };
    struct machine *m = t->machine;
    ptrdiff_t layers = (ptrdiff_t)t->job->model.layers, count = 0;
    struct storage **copies = NEW(m->arena, struct storage *, HALVES * layers);
    for (ptrdiff_t i = 0; i < layers; i++) {
        if (t->layers[i].experts_down < 0)
            continue;
        const struct parameter *p = &t->graph.parameters[t->layers[i].gate_up];
        for (int half = 0; half < HALVES; half++)
            copies[count++] =
                machine_take(m, p->rows * p->columns / HALVES * p->width, MEMORY_WORKING);
    }
    while (count)
        machine_drop(m, copies[--count]);
}

// Adapters under ZeRO-3 are gathered whether or not the file asks for it, and what is frozen beside
// them too (save_model; deepspeed 0.19.8, engine.py, _zero3_consolidated_16bit_state_dict).
static bool saves_whole(const struct job *p)
{
    return p->saving == SAVING_WHOLE || (p->lora_rank && p->strategy == STRATEGY_ZERO3);
}

void run_save(struct run *r)
{
    struct trainer *t = &r->trainer;
    machine_phase(t->machine, PHASE_SAVE);
    if (splits_experts(t->job))
        split_experts(t);
    if (t->strategy->save)
        t->strategy->save(t, saves_whole(t->job));
}
