// ZeRO-3's building: which modules come before and after which, experts and towers among them, and
// the parts that a rank takes of everything (deepspeed/runtime/zero/partition_parameters.py and
// stage3.py, 0.19.8).
#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/parameters.h"
#include "core/models/vision/tower.h"
#include "core/strategies/strategies.h"
#include "core/strategies/zero/zero.h"
#include "core/strategies/zero/zero3.h"

enum { MASTER_WIDTH = 4 };

static void drop(struct trainer *t, struct storage **s)
{
    machine_drop(t->machine, *s);
    *s = NULL;
}

// A block without children is called where an MLP would be; else its router, its experts and their
// activation are, and an MLP beside them with its own.
static void find_neighbours_of_experts(struct zero3 *z, const struct layer_parameters *l)
{
    int inside = !z->has_leaf_blocks;
    z->forward[l->before_mlp_norm].after = inside;
    z->forward[l->gate_up].after = inside;
    z->backward[l->gate_up] = (struct neighbours){1 + inside, inside};
    if (l->shared_gate < 0)
        return;
    z->backward[l->gate_up].before = 0;
    z->forward[l->shared_gate] = (struct neighbours){1, 1};
    z->backward[l->shared_down].before = 3; // the layer, the block, the MLP
    z->backward[l->shared_up].after = 1;
}

// An adapter that is added to a weight of the block is in the block.
static void add_folded(struct trainer *t, struct zero3 *z, int block, int weight)
{
    const struct parameter *p = &t->graph.parameters[weight];
    for (int i = 0; p->folds && i < adapter_tensors(p); i++) {
        coordinator_add(z->coordinator, block, p->adapter + i);
        z->in_block[p->adapter + i] = true;
    }
}

static void find_blocks(struct trainer *t, struct zero3 *z)
{
    z->has_leaf_blocks = zero3_is_leaf(&t->job->model);
    for (int i = 0; i < (int)t->job->model.layers; i++) {
        const struct layer_parameters *l = &t->layers[i];
        const int theirs[] = {l->gate_up_bias, l->experts_down, l->experts_down_bias,
                              z->has_leaf_blocks ? l->router : -1};
        if (l->router < 0)
            continue;
        const int folded[] = {l->gate_up, l->experts_down, l->router};
        z->in_block[l->gate_up] = true;
        if (z->has_leaf_blocks)
            coordinator_set_leaf(z->coordinator, l->gate_up);
        for (int j = 0; j < COUNT_OF(theirs); j++) {
            coordinator_add(z->coordinator, l->gate_up, theirs[j]);
            if (theirs[j] >= 0)
                z->in_block[theirs[j]] = true;
        }
        for (int j = 0; j < COUNT_OF(folded); j++)
            add_folded(t, z, l->gate_up, folded[j]);
    }
}

static void find_neighbours_of_mlp(struct zero3 *z, const struct layer_parameters *l, bool tiled)
{
    int first = l->gate >= 0 ? l->gate : l->gate_up >= 0 ? l->gate_up : l->up;
    if (l->before_mlp_norm >= 0)
        z->forward[l->before_mlp_norm].after = 1; // the MLP
    else
        z->forward[first].before = 1;
    z->forward[first].after = 1;                       // its activation
    z->backward[l->down].before = tiled ? 0 : 2;       // the layer, the MLP
    z->backward[l->up >= 0 ? l->up : first].after = 1; // the activation
}

static void join_biases(struct coordinator *c, const struct vision_parameters *p)
{
    coordinator_add(c, p->patch, p->patch_bias);
    coordinator_add(c, p->norm, p->norm_bias);
    coordinator_add(c, p->norm2, p->norm2_bias);
    coordinator_add(c, p->qkv, p->qkv_bias);
    coordinator_add(c, p->proj, p->proj_bias);
    coordinator_add(c, p->fc1, p->fc1_bias);
    coordinator_add(c, p->fc2, p->fc2_bias);
    coordinator_add(c, p->q, p->q_bias);
    coordinator_add(c, p->k, p->k_bias);
    coordinator_add(c, p->v, p->v_bias);
    coordinator_add(c, p->gate, p->gate_bias);
    coordinator_add(c, p->up, p->up_bias);
}

// Not every tower has each of these modules.
static void put_neighbours(struct neighbours *all, int module, struct neighbours n)
{
    if (module >= 0)
        all[module] = n;
}

static void find_neighbours_of_merger(struct zero3 *z, const struct vision_parameters *p)
{
    put_neighbours(z->forward, p->norm, (struct neighbours){1, 0}); // the merger
    put_neighbours(z->forward, p->fc1, (struct neighbours){0, 1});  // its activation
    put_neighbours(z->backward, p->fc2, (struct neighbours){1, 1});
    join_biases(z->coordinator, p);
}

static void find_neighbours_of_block(struct zero3 *z, const struct vision_parameters *p)
{
    int first = p->gate >= 0 ? p->gate : p->fc1;
    put_neighbours(z->forward, p->norm, (struct neighbours){1, 1});  // the block; attention
    put_neighbours(z->forward, p->norm2, (struct neighbours){0, 1}); // the MLP
    put_neighbours(z->forward, first, (struct neighbours){0, 1});    // its activation
    put_neighbours(z->backward, p->fc2, (struct neighbours){2, 1});  // the block, the MLP; that
    put_neighbours(z->backward, p->proj, (struct neighbours){1, 0}); // attention
    join_biases(z->coordinator, p);
}

// modeling_qwen3_vl.py. The tower comes between the embedding and the language model, and its many
// small modules let the parameters of that be gathered far ahead.
static void find_neighbours_of_tower(struct trainer *t, struct zero3 *z)
{
    const struct tower *w = t->tower;
    const struct vision *v = &t->job->model.vision;
    z->forward[t->layers[0].input_norm].before += 2; // the language model, its rotary embedding
    z->backward[t->final_norm].before++;
    put_neighbours(z->forward, w->stem.patch,
                   (struct neighbours){2, 0}); // the tower, its embedding
    put_neighbours(z->forward, w->stem.positions, (struct neighbours){0, 1}); // rotary embedding
    find_neighbours_of_merger(z, &w->stem);
    for (uint64_t i = 0; i < v->deepstack; i++)
        find_neighbours_of_merger(z, &w->mergers[i]);
    for (uint64_t i = 0; i < v->depth; i++)
        find_neighbours_of_block(z, &w->blocks[i]);
}

static void find_neighbours(struct trainer *t, struct zero3 *z)
{
    z->forward[t->embedding].before = 1;   // the inner model
    z->backward[t->final_norm].before = 1; // the model
    for (int i = 0; i < (int)t->job->model.layers; i++) {
        const struct layer_parameters *l = &t->layers[i];
        if (l->input_norm >= 0)
            z->forward[l->input_norm] = (struct neighbours){1, 1}; // the layer; attention
        else
            z->forward[l->qkv >= 0 ? l->qkv : l->q].before = 2;
        z->backward[l->o].before = 1; // attention
        if (l->router >= 0) {
            find_neighbours_of_experts(z, l);
            continue;
        }
        find_neighbours_of_mlp(z, l, t->job->tiled_mlp);
    }
    if (t->tower)
        find_neighbours_of_tower(t, z);
}

// A group of the optimizer's that is too large is cut; the last cut may be where it ends.
static void group_parts(struct trainer *t, const struct zero3 *z)
{
    uint64_t most = job_zero_sizes(t->job).sub_group;
    t->trained = NEW(t->machine->arena, struct trained, t->graph.parameter_count + 1);
    for (int number = 0; number < ZERO_GROUPS; number++) {
        struct trained *group = &t->trained[t->trained_count];
        for (int i = 0; i < t->graph.parameter_count; i++) {
            if (zero_group_of(t, i) != number || zero3_freezes(t, i))
                continue;
            group->width = MASTER_WIDTH;
            group->elements += coordinator_shard(z->coordinator, i);
            group += group->elements >= most;
        }
        group += group->elements > 0;
        t->trained_count = (int)(group - t->trained);
    }
}

// Each trained parameter, whole for a moment; from the host comes this rank's part of it.
static void pass_through(struct trainer *t, const struct zero3 *z, bool from_host)
{
    for (int i = 0; i < t->graph.parameter_count; i++) {
        if (zero3_freezes(t, i))
            continue;
        uint64_t part = coordinator_shard(z->coordinator, i) * t->graph.parameters[i].width;
        struct storage *whole = machine_take(t->machine, part * z->ranks, MEMORY_WORKSPACE);
        if (from_host)
            machine_scratch(t->machine, part);
        drop(t, &whole);
    }
}

// Parts of parameters, then fp32 copies of them, which are cast and then copied once more.
static uint64_t take_parts(struct trainer *t)
{
    struct machine *m = t->machine;
    uint64_t all = 0, largest = 0;
    for (int i = 0; i < t->trained_count; i++) {
        all += t->trained[i].elements;
        largest = t->trained[i].elements > largest ? t->trained[i].elements : largest;
    }
    if (t->job->offload == OFFLOAD_ALL)
        return all;
    machine_take(m, all * (job_widens_adapters(t->job) ? MASTER_WIDTH : t->width),
                 MEMORY_PARAMETERS);
    struct storage *converted = NULL; // a name, which keeps a group's until the next one's is there
    for (int i = 0; i < t->trained_count && !t->job->offload; i++) {
        uint64_t bytes = t->trained[i].elements * MASTER_WIDTH;
        struct storage *next = machine_take(m, bytes, MEMORY_OPTIMIZER);
        drop(t, &converted);
        converted = next;
        t->trained[i].weight = machine_take(m, bytes, MEMORY_OPTIMIZER);
    }
    drop(t, &converted);
    if (!t->job->offload)
        machine_scratch(m, largest * MASTER_WIDTH); // a gradient, to see its size
    return all;
}

// The model as zero.Init makes it: each parameter cut at once, the head too that is tied later;
// then filled, one after another. TRL asks for fp32, which is cast (deepspeed/runtime/zero/
// partition_parameters.py, zero_wrapper_for_fp_tensor_constructor). Gives the parts.
static struct storage **make_parts(struct trainer *t, const struct zero3 *z, bool wide)
{
    struct machine *m = t->machine;
    int count = z->base_count, last = t->head == t->embedding ? count : count - 1;
    struct storage **parts = NEW(m->arena, struct storage *, count + 1);
    for (int i = 0; i <= last; i++) {
        uint64_t elements = coordinator_shard(z->coordinator, i < count ? i : t->head);
        struct storage *made = NULL;
        if (wide)
            made = machine_take(m, elements * z->ranks * MASTER_WIDTH, MEMORY_WORKSPACE);
        struct storage *whole = machine_take(m, elements * z->ranks * t->width, MEMORY_WORKSPACE);
        drop(t, &made);
        parts[i] = machine_take(m, elements * t->width,
                                t->is_reference ? MEMORY_REFERENCE : MEMORY_PARAMETERS);
        drop(t, &whole);
    }
    for (int i = 0; i < count; i++)
        machine_scratch(m, coordinator_shard(z->coordinator, i) * z->ranks * t->width);
    drop(t, &parts[count]);
    return parts;
}

// What learns from a teacher has another shape.
static struct trainer *learner_of(struct trainer *t)
{
    if (!t->learner)
        return t;
    struct trainer *other = NEW(t->machine->arena, struct trainer, 1);
    *other = (struct trainer){.job = t->learner,
                              .machine = t->machine,
                              .habits = t->habits,
                              .strategy = t->strategy,
                              .width = t->width};
    other->graph = trainer_graph(other, t->learner);
    parameters_build(other);
    return other;
}

// A reference, in bf16, is made beside a policy whose parts are not yet joined.
static void take_reference(struct trainer *t, const struct zero3 *z)
{
    struct trainer *first = learner_of(t);
    struct zero3 its = *z;
    if (first != t) {
        its.coordinator =
            coordinator_for(first, gather_stream(t), job_zero_sizes_of_reference(first->job));
        its.base_count = first->graph.parameter_count;
    }
    struct storage **theirs = make_parts(first, &its, true);
    make_parts(t, z, false);
    for (int i = 0; i < its.base_count; i++)
        drop(t, &theirs[i]);
    machine_mark(t->machine, EVENT_EMPTY_CACHE);
}

// A quantised model is no business of zero.Init (transformers 5.17, modeling_utils.py: not
// is_quantized): every rank loads all of it, packed as bf16 (bnb_4bit_quant_storage), and DeepSpeed
// cuts one parameter after another (runtime/zero/parameter_offload.py,
// _convert_to_zero_parameters). Scales and tables are no parameters and stay whole.
static void take_packed(struct trainer *t, const struct zero3 *z)
{
    struct graph *g = &t->graph;
    device_map_load(t);
    take_adapters(t, t->width);
    machine_mark(t->machine, EVENT_EMPTY_CACHE); // transformers/trainer.py, free_memory()
    for (int i = 0; i < g->parameter_count; i++) {
        uint64_t bytes = coordinator_shard(z->coordinator, i) * t->width;
        struct storage *part = machine_take(t->machine, bytes, MEMORY_PARAMETERS);
        drop(t, &g->parameters[i].weight);
        if (!zero3_freezes(t, i)) // joined with others below
            drop(t, &part);
    }
    machine_mark(t->machine, EVENT_EMPTY_CACHE);
}

// A model that was there before DeepSpeed's configuration, as where TrainingArguments are made
// after it: every rank has all of it, which goes to the card in bf16 (engine.py,
// _configure_distributed_model), and is cut then, one parameter after another
// (parameter_offload.py, _convert_to_zero_parameters; histories of b21 and c16).
static struct storage **cut_whole(struct trainer *t, const struct zero3 *z)
{
    struct machine *m = t->machine;
    struct parameter *all = t->graph.parameters;
    struct storage **parts = NEW(m->arena, struct storage *, t->graph.parameter_count);
    bool stays = t->job->offload != OFFLOAD_ALL;
    int *order = NEW(m->arena, int, t->graph.parameter_count);
    int count = parameters_in_order(t, order);
    for (int i = 0; i < count; i++) {
        struct parameter *p = &all[order[i]];
        p->weight = machine_take(m, p->rows * p->columns * t->width, MEMORY_PARAMETERS);
    }
    for (int i = 0; i < count; i++) {
        uint64_t bytes = coordinator_shard(z->coordinator, order[i]) * t->width;
        parts[order[i]] = stays ? machine_take(m, bytes, MEMORY_PARAMETERS) : NULL;
        drop(t, &all[order[i]].weight);
    }
    return parts;
}

static bool has_frozen_parts(const struct trainer *t)
{
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (zero3_freezes(t, i))
            return true;
    return false;
}

// What is not trained stays as it was cut, be it in the host; what is matters where it is read so,
// too, before it is trained.
static void cut(struct trainer *t, struct zero3 *z)
{
    bool in_host = t->job->offload == OFFLOAD_ALL;
    bool is_seen = has_frozen_parts(t) || trainer_reads_first(t);
    if (!t->job->loads_once && !t->job->packed) {
        z->parts = cut_whole(t, z);
        z->part_count = t->graph.parameter_count;
        return;
    }
    if (in_host) {
        pass_through(t, z, false);
        pass_through(t, z, true);
    } else if (t->job->packed && is_seen) {
        take_packed(t, z);
    } else if (is_seen) {
        z->parts = make_parts(t, z, t->job->recipe == RECIPE_TRL);
        z->part_count = z->base_count;
    }
}

// zero.Init has cut the original; its copy is cut when what it was copied from has long been so.
static bool stays_as_original(const struct trainer *t, const struct zero3 *z, int parameter)
{
    return t->graph.parameters[parameter].original && z->part_count == z->base_count;
}

// The parts of what is trained go to the host before the cache is emptied, to be joined
// (deepspeed/utils.py, defragment).
static void fetch_parts(struct trainer *t, const struct zero3 *z)
{
    if (!z->parts)
        return;
    for (int i = 0; i < z->part_count; i++)
        if (!zero3_freezes(t, i) && !stays_as_original(t, z, i))
            drop(t, &z->parts[i]);
    if (t->job->recipe == RECIPE_TRL && t->job->loads_once)
        zero3_make_magnitudes(t);
    machine_mark(t->machine, EVENT_EMPTY_CACHE);
}

// Parameters are made on the card, cut and filled; unless their parts go to the host, the cache is
// emptied then. Each is gathered once more when its hook is set.
static void take_state(struct trainer *t, struct zero3 *z)
{
    struct machine *m = t->machine;
    group_parts(t, z);
    fetch_parts(t, z);
    uint64_t all = take_parts(t);
    z->buffer = machine_take(m, z->bucket_elements * (z->reduces_wide ? MASTER_WIDTH : t->width),
                             MEMORY_GRADIENTS);
    if (!t->job->offload)
        machine_take(m, all * t->width, MEMORY_GRADIENTS);
    pass_through(t, z, t->job->offload == OFFLOAD_ALL);
}

// What moves a layer's input to the host under DeepSpeed stands in for torch's CheckpointFunction,
// which is reentrant (ArcticTraining b28638e, monkey_patches.py).
static void find_adapters(struct trainer *t, struct zero3 *z)
{
    struct graph *g = &t->graph;
    for (int i = 0; i < g->parameter_count; i++)
        z->weights[i] = -1;
    z->base_count = g->parameter_count;
    for (int i = 0; i < g->parameter_count; i++) {
        int adapter = g->parameters[i].adapter;
        for (int j = 0; adapter && !g->parameters[i].folds && j < 2; j++)
            z->weights[adapter + j] = i;
        if (adapter && adapter < z->base_count)
            z->base_count = adapter;
    }
    g->reentrant |= t->job->checkpoint_offload;
}

void zero3_load(struct trainer *t)
{
    struct arena *a = t->machine->arena;
    int modules = t->graph.parameter_count + 1;
    struct zero3 *z = NEW(a, struct zero3, 1);
    struct zero_sizes sizes = t->is_reference || trainer_reads_first(t)
                                  ? job_zero_sizes_of_reference(t->job)
                                  : job_zero_sizes(t->job);
    *z = (struct zero3){.coordinator = coordinator_for(t, gather_stream(t), sizes),
                        .forward = NEW(a, struct neighbours, modules),
                        .backward = NEW(a, struct neighbours, modules),
                        .is_read = NEW(a, bool, modules),
                        .is_unseen = NEW(a, bool, modules),
                        .uses_left = NEW(a, int, modules),
                        .bucket = NEW(a, int, modules),
                        .wide = NEW(a, struct storage *, modules),
                        .reduces_wide = job_reduces_wide(t->job),
                        .widened = NEW(a, struct storage *, modules),
                        .narrowed = NEW(a, struct storage *, modules),
                        .weights = NEW(a, int, modules),
                        .in_block = NEW(a, bool, modules),
                        .bucket_elements = job_zero_sizes(t->job).reduced,
                        .holder = -1,
                        .ranks = job_ranks(t->job)};
    t->state = z;
    find_blocks(t, z);
    find_neighbours(t, z);
    find_adapters(t, z);
    if (t->is_reference) {
        take_reference(t, z);
        return;
    }
    cut(t, z);
    if (!trainer_reads_first(t))
        take_state(t, z);
}

// trl 1.16, trainer/dpo_trainer.py and kto_trainer.py, _precompute_engine: the one that it was read
// with stays on the modules.
void zero3_build(struct trainer *t)
{
    struct zero3 *z = zero3_of(t);
    if (!trainer_reads_first(t))
        return;
    coordinator_double(z->coordinator, job_zero_sizes(t->job));
    take_state(t, z);
}
