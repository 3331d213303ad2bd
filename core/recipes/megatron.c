// Megatron-LM's training step: micro-batches go through the stages of a pipeline, one forward and
// one backward in turn once it is full (core/pipeline_parallel/schedules.py of core 0.13).
#include "core/models/megatron/megatron.h"
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

// Of several stages of a rank the first has the first layers of all ranks' stages, and so on.
static void build_stages(struct megatron *own, struct arena *a, const struct job *p)
{
    int count = (int)p->interleaved, ranks = (int)p->pipeline, rank = (int)p->stage;
    int layers = (int)p->model.layers / (ranks * count);
    own->stages = NEW(a, struct stage, count);
    own->stage_count = count;
    if (p->last_layers) {
        int last = (int)p->last_layers, each = ((int)p->model.layers - last) / (ranks - 1);
        bool is_last = rank == ranks - 1;
        own->stages[0] = (struct stage){rank * each, is_last ? last : each, rank == 0, is_last};
        return;
    }
    for (int i = 0; i < count; i++) {
        int at = i * ranks + rank;
        own->stages[i] = (struct stage){at * layers, layers, at == 0, at == ranks * count - 1};
    }
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
    own->engine.expert_ranks = p->expert_tensor;
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

static void forward(struct trainer *t, struct passage *p, const struct stage *stage)
{
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
    if (!stage->has_head) // what was sent is not kept (deallocate_pipeline_outputs)
        var_drop(&p->graph, &p->out);
}

static void rename_to(struct trainer *t, struct storage **name, struct storage *value)
{
    machine_drop(t->machine, *name);
    *name = value;
}

static void backward(struct trainer *t, struct passage *p, const struct stage *stage)
{
    struct megatron *own = megatron_of(t);
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

// Which passage a turn is of: by micro-batch and stage.
static struct passage *passage_of(struct passage *all, const struct pipeline *p, uint64_t turn,
                                  bool back)
{
    return &all[turn_batch(p, turn) * p->stages + turn_stage(p, turn, back)];
}

// Micro-batches that are simulated: those in flight, and a few that find the pipeline full. How
// long a passage takes does not hang on how many are in flight, what is alive does.
static uint64_t simulated(const struct pipeline *p, uint64_t rank, bool brief)
{
    uint64_t ahead = brief ? 0 : turns_ahead(p, rank), rounds = brief ? 1 : DIFFERENT_MICRO_BATCHES;
    uint64_t most = p->stages == 1 ? ahead + DIFFERENT_MICRO_BATCHES : rounds * p->ranks;
    return u64_least(p->batches, most);
}

// Between stages the host waits for what it hands over (batch_p2p_sync), and a passage takes what
// it does alone; of one stage, what it takes of the stream.
static double begin_passage(struct timeline *time, const struct pipeline *p)
{
    if (!time)
        return 0;
    if (p->ranks == 1)
        return time->now.compute;
    timeline_synchronize(time, STREAM_COMPUTE);
    return time->now.host;
}

static void turn(struct trainer *t, struct passage *all, const struct pipeline *p, uint64_t i,
                 bool back)
{
    struct timeline *time = t->machine->time;
    uint64_t at = turn_stage(p, i, back);
    double begun = begin_passage(time, p);
    (back ? backward : forward)(t, passage_of(all, p, i, back), &megatron_of(t)->stages[at]);
    double ended = begin_passage(time, p);
    if (time)
        (back ? time->passing.backward : time->passing.forward)[stage_place(at, p->stages)] =
            ended - begun;
}

static void step(struct run *r)
{
    struct trainer *t = &r->trainer;
    struct megatron *own = megatron_of(t);
    const struct pipeline p = {
        .ranks = t->job->pipeline, .stages = t->job->interleaved, .batches = t->job->accumulation};
    uint64_t turns = simulated(&p, t->job->stage, t->machine->brief) * p.stages;
    uint64_t ahead = u64_least(turns_ahead(&p, t->job->stage), turns);
    struct passage *all = NEW(t->machine->arena, struct passage, (ptrdiff_t)turns);
    struct timeline *time = t->machine->time;
    for (uint64_t i = 0; i < turns + ahead; i++) {
        struct elapsed before = time ? time->now : (struct elapsed){0};
        if (i < turns)
            turn(t, all, &p, i, false);
        if (i >= ahead)
            turn(t, all, &p, i - ahead, true);
        if (time && i + 2 == turns && i >= ahead) // those that are not simulated are like this one
            timeline_repeat(time, &before, (double)(p.batches * p.stages - turns));
    }
    rename_to(t, &own->came, NULL);
    rename_to(t, &own->sent, NULL);
    machine_phase(t->machine, PHASE_OPTIMIZER);
    double begun = begin_passage(time, &p);
    t->strategy->update(t);
    if (time)
        time->passing.rest = begin_passage(time, &p) - begun;
}

const struct run_kind megatron_run = {
    .steps = 3, .build = build, .step = step, .always_distributed = true};
