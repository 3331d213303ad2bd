// Megatron-LM's training step: micro-batches go through the stages of a pipeline, one forward and
// one backward in turn once it is full (core/pipeline_parallel/schedules.py of core 0.13).
#include "core/models/megatron.h"
#include "core/base/num.h"
#include "core/base/units.h"
#include "core/recipes/run.h"
#include "core/strategies/strategies.h"

// A micro-batch on its way through this rank.
struct passage {
    struct graph graph;
    struct storage *in;       // what came from the stage before
    struct var out;           // its storage goes once it was sent
    struct storage *gradient; // of what came
};

static void build_stages(struct megatron *own, struct arena *a, const struct job *p)
{
    int layers = (int)(p->model.layers / p->pipeline), at = (int)p->stage;
    own->stages = NEW(a, struct stage, 1);
    own->stage_count = 1;
    own->stages[0] = (struct stage){at * layers, layers, at == 0, p->stage + 1 == p->pipeline};
}

static void build(struct run *r, const struct job *p, struct machine *m)
{
    enum { HOPPER = 90 };
    struct trainer *t = &r->trainer;
    struct megatron *own = NEW(m->arena, struct megatron, 1);
    *t = (struct trainer){.habits = &r->kind->habits, .first_stream = FIRST_SIDE_STREAM};
    t->job = p;
    t->machine = m;
    t->width = 2;
    t->strategy = &megatron_strategy;
    t->state = own;
    t->graph = trainer_graph(t, p);
    t->graph.engine = &own->engine;
    t->graph.reentrant = true;
    own->engine.ranks = p->tensor;
    own->engine.context_ranks = p->ring;
    own->engine.context_rank = p->ring_rank;
    own->engine.workspace_bytes = p->hardware.card.capability >= HOPPER ? 32 * MIB + KIB : 4 * MIB;
    build_stages(own, m->arena, p);
    megatron_parameters(t);
    t->strategy->build(t);
}

// A stage's input and output: this rank's tokens.
static uint64_t hidden_bytes(const struct job *p)
{
    return job_tokens(p) / p->tensor * p->model.hidden * 2;
}

// tokens, labels, mask of losses and positions (training/utils.py, get_batch_on_this_tp_rank).
static void load_batch(struct trainer *t, struct storage *batch[4])
{
    uint64_t tokens = job_tokens(t->job);
    const uint64_t widths[4] = {8, 8, 4, 8};
    for (int i = 0; i < 4; i++)
        batch[i] = machine_take(t->machine, widths[i] * tokens, MEMORY_INPUTS);
    t->ids = (struct var){batch[0], NO_NODE, 8, tokens};
}

static void forward(struct trainer *t, struct passage *p)
{
    struct megatron *own = megatron_of(t);
    const struct stage *stage = &own->stages[0];
    struct storage *batch[4] = {0};
    struct var in = {NULL, NO_NODE, 2, hidden_bytes(t->job) / 2};
    machine_phase(t->machine, PHASE_FORWARD);
    p->graph = t->graph;
    p->graph.nodes = NULL;
    p->graph.capacity = 0;
    if (stage->has_words || stage->has_head)
        load_batch(t, batch);
    if (!stage->has_words) {
        in.storage = machine_take(t->machine, hidden_bytes(t->job), MEMORY_CHECKPOINTS);
        p->graph.recording = p->graph.keeping = true;
        in = op_received(&p->graph, in, &p->gradient);
    }
    p->out = megatron_forward(&p->graph, stage, in);
    t->graph.gemm_ready[0] = p->graph.gemm_ready[0];
    for (int i = 0; i < 4; i++)
        machine_drop(t->machine, batch[i]);
}

static void rename_to(struct trainer *t, struct storage **name, struct storage *value)
{
    machine_drop(t->machine, *name);
    *name = value;
}

static void backward(struct trainer *t, struct passage *p)
{
    struct megatron *own = megatron_of(t);
    const struct stage *stage = &own->stages[0];
    machine_phase(t->machine, PHASE_BACKWARD);
    p->graph.gemm_ready[1] = t->graph.gemm_ready[1];
    if (stage->has_head) {
        graph_backward(&p->graph, p->out);
    } else {
        rename_to(t, &own->came, machine_take(t->machine, hidden_bytes(t->job), MEMORY_WORKING));
        graph_backward_from(&p->graph, p->out, storage_share(own->came));
    }
    t->graph.gemm_ready[1] = p->graph.gemm_ready[1];
    rename_to(t, &own->sent, p->gradient);
}

// What was sent is not kept (deallocate_pipeline_outputs).
static void send(struct trainer *t, struct passage *p)
{
    if (!megatron_of(t)->stages[0].has_head)
        var_drop(&p->graph, &p->out);
}

static void step(struct run *r)
{
    struct trainer *t = &r->trainer;
    const struct job *p = t->job;
    uint64_t ahead = u64_least(p->pipeline - p->stage - 1, p->accumulation);
    uint64_t count = u64_least(p->accumulation, ahead + DIFFERENT_MICRO_BATCHES);
    struct passage *all = NEW(t->machine->arena, struct passage, (ptrdiff_t)count);
    for (uint64_t i = 0; i < count + ahead; i++) {
        if (i < count) {
            forward(t, &all[i]);
            send(t, &all[i]);
        }
        if (i >= ahead)
            backward(t, &all[i - ahead]);
    }
    rename_to(t, &megatron_of(t)->came, NULL);
    rename_to(t, &megatron_of(t)->sent, NULL);
    machine_phase(t->machine, PHASE_OPTIMIZER);
    t->strategy->update(t);
}

const struct run_kind megatron_run = {
    .steps = 3, .build = build, .step = step, .always_distributed = true};
