// DeepSpeed's ZeRO, stages 1 and 2 (0.19.8, deepspeed/runtime/zero/stage_1_and_2.py): every rank
// has all parameters in bf16, in one flat tensor; fp32 copies, moments and (stage 2) gradients are
// cut into equal parts of that tensor, of which rank 0's is followed here.
//
// Parameters, gradients and the step are as DeepSpeed does them by default: contiguous gradients,
// bf16 gradients. The stages differ in when gradients are reduced: stage 2 in the hook of each
// parameter, stage 1 all at once after the last backward pass of a step. With overlap_comm there
// are two buckets and a stream for reductions, and stage 1 reduces in the last pass's hooks, too
// (its gradients stay until the end). Each of the optimizer's groups has its own flat tensor and
// its own parts. What is frozen stays as it came: only what is trained is flat.
#include "core/strategies/zero/zero.h"

#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/strategies/strategies.h"
#include "core/strategies/trainer.h"

enum { MASTER_WIDTH = 4, NORM_WIDTH = 8, START_ALIGNMENT = 2, STREAM_HANDSHAKE = 2 };

// Gradients on their way: small ones are copied into one buffer, a large one goes by itself.
struct bucket {
    struct storage *buffers[2]; // the second with overlap_comm: filled while the first is reduced
    int filling;
    int *parameters;
    int count;
    uint64_t elements;
};

// Parameters that the optimizer treats alike.
struct group {
    uint64_t elements, part; // of all, and of a rank's part
    int owned_count;         // parameters that begin in rank 0's part
};

struct zero {
    uint64_t ranks, bucket_elements, owned_elements;
    struct group groups[ZERO_GROUPS];
    uint64_t *starts;         // of each parameter in its group's flat tensor
    int *uses_left;           // of a parameter in this backward pass
    struct storage **earlier; // stage 1: gradients of the micro-batches before
    struct bucket bucket;
    struct storage *owned;       // reduced gradients of rank 0's part, of this micro-batch
    struct storage *accumulated; // and of the first
    uint64_t micro_batch;        // of the step, from 1
    bool drops_early;            // stage 2: a gradient of another rank's part, once it is reduced
    bool overlaps;               // overlap_comm
    uint16_t stream;             // that gradients are reduced on
};

static struct zero *zero_of(const struct trainer *t)
{
    return t->state;
}

int zero_group_of(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    bool is_vector = p->rows == 1 || p->columns == 1;
    return t->habits->decays_matrices && is_vector && !t->job->lora_rank;
}

static uint64_t elements_of(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    return p->rows * p->columns;
}

static void drop(struct trainer *t, struct storage **s)
{
    machine_drop(t->machine, *s);
    *s = NULL;
}

static bool is_last_micro_batch(const struct trainer *t)
{
    return zero_of(t)->micro_batch == trainer_micro_batches(t->job);
}

static const struct group *group_of(const struct trainer *t, int parameter)
{
    return &zero_of(t)->groups[zero_group_of(t, parameter)];
}

static bool is_frozen(const struct trainer *t, int parameter)
{
    const struct parameter *p = &t->graph.parameters[parameter];
    return p->frozen && !p->idle; // what is idle is flat with what is trained
}

// Whether it begins in rank 0's part.
static bool is_owned(const struct trainer *t, int parameter)
{
    return !is_frozen(t, parameter) && zero_of(t)->starts[parameter] < group_of(t, parameter)->part;
}

// Of such a parameter: the elements that lie in it.
static uint64_t owned_elements(const struct trainer *t, int parameter)
{
    const struct zero *z = t->state;
    uint64_t left = group_of(t, parameter)->part - z->starts[parameter];
    uint64_t whole = elements_of(t, parameter);
    return whole < left ? whole : left;
}

// ------------------------------------------------------------------ reducing

// Stretches of the bucket that belong to one rank are reduced together, up to a bucket's elements
// at a time; several stretches are joined in a copy first. Under sequence parallel they are reduced
// in fp32 (allreduce_bucket), whatever the file says.
struct joiner {
    uint64_t stretch, owner; // the one that may still grow
    uint64_t elements;       // of those before, not yet reduced
    int count;
};

static void join(struct trainer *t, struct joiner *j)
{
    struct storage *joined = NULL;
    if (j->count > 1)
        joined = machine_take_on(t->machine, zero_of(t)->stream, j->elements * t->width,
                                 MEMORY_WORKSPACE);
    struct storage *wide = NULL;
    if (t->job->ulysses > 1 && j->count)
        wide = machine_take_on(t->machine, zero_of(t)->stream, j->elements * MASTER_WIDTH,
                               MEMORY_WORKSPACE);
    machine_drop(t->machine, joined);
    machine_drop(t->machine, wide);
    j->elements = 0;
    j->count = 0;
}

static void end_stretch(struct trainer *t, struct joiner *j)
{
    if (!j->stretch)
        return;
    j->elements += j->stretch;
    j->stretch = 0;
    j->count++;
    if (j->elements > zero_of(t)->bucket_elements)
        join(t, j);
}

static void add_parameter(struct trainer *t, struct joiner *j, int parameter)
{
    const struct zero *z = t->state;
    uint64_t part = group_of(t, parameter)->part;
    uint64_t at = z->starts[parameter], end = at + elements_of(t, parameter);
    while (at < end) {
        uint64_t rank = at / part, stop = (rank + 1) * part;
        stop = stop < end ? stop : end;
        if (rank != j->owner)
            end_stretch(t, j);
        j->owner = rank;
        j->stretch += stop - at;
        at = stop;
    }
}

static void average(struct trainer *t)
{
    struct joiner j = {0};
    machine_wait(t->machine, zero_of(t)->stream, STREAM_COMPUTE);
    machine_launch(t->machine, STREAM_HANDSHAKE);
    for (int i = 0; i < zero_of(t)->bucket.count; i++)
        add_parameter(t, &j, zero_of(t)->bucket.parameters[i]);
    end_stretch(t, &j);
    join(t, &j);
}

static void norm(struct trainer *t, uint64_t elements)
{
    machine_scratch(t->machine, elements * NORM_WIDTH); // norms are taken in fp64
}

// With an optimizer in host memory a reduced gradient goes there in fp32; before the last
// micro-batch in bf16, through a buffer that exists.
static void send_to_host(struct trainer *t, struct parameter *p, int parameter)
{
    if (!is_last_micro_batch(t))
        return;
    norm(t, owned_elements(t, parameter));
    machine_scratch(t->machine, owned_elements(t, parameter) * MASTER_WIDTH);
    drop(t, &p->gradient);
}

// What was reduced in place on another stream, or copied back to, comes back when that is done. Of
// a gradient that several other ranks have parts of, a copy was reduced, and nothing waits for it.
static void drop_reduced(struct trainer *t, int parameter)
{
    const struct zero *z = t->state;
    struct storage **s = &t->graph.parameters[parameter].gradient;
    uint64_t at = z->starts[parameter], part = group_of(t, parameter)->part;
    bool is_in_one = at / part == (at + elements_of(t, parameter) - 1) / part;
    if (z->overlaps && (is_in_one || is_owned(t, parameter)))
        machine_drop_after(t->machine, *s, z->stream);
    else
        machine_drop(t->machine, *s);
    *s = NULL;
}

static void keep_gradient(struct trainer *t, int parameter)
{
    struct zero *z = t->state;
    struct parameter *p = &t->graph.parameters[parameter];
    if (t->job->offload) {
        send_to_host(t, p, parameter);
        return;
    }
    if (!z->owned)
        z->owned =
            machine_take_on(t->machine, z->stream, z->owned_elements * t->width, MEMORY_GRADIENTS);
    drop_reduced(t, parameter);
    p->gradient = storage_share(z->owned);
}

static void reduce(struct trainer *t)
{
    struct zero *z = t->state;
    struct bucket *b = &z->bucket;
    machine_follow(t->machine, z->stream, STREAM_COMPUTE);
    uint32_t width = t->job->ulysses > 1 ? MASTER_WIDTH : t->width;
    machine_collect(t->machine, z->stream, REDUCE_SCATTER, z->ranks, b->elements * width);
    if (!z->overlaps)
        machine_follow(t->machine, STREAM_COMPUTE, z->stream);
    average(t);
    for (int i = 0; i < b->count; i++) {
        int parameter = b->parameters[i];
        if (is_owned(t, parameter))
            keep_gradient(t, parameter);
        else if (z->drops_early)
            drop_reduced(t, parameter);
    }
    b->count = 0;
    b->elements = 0;
}

static void add_to_bucket(struct trainer *t, int parameter)
{
    struct zero *z = t->state;
    struct bucket *b = &z->bucket;
    struct parameter *p = &t->graph.parameters[parameter];
    uint64_t elements = elements_of(t, parameter);
    if (b->elements + elements > z->bucket_elements) {
        reduce(t);
        b->filling = z->overlaps && !b->filling;
    }
    struct storage *moved = NULL;
    if (elements <= z->bucket_elements)
        moved = storage_share(b->buffers[b->filling]);
    else if (t->job->offload) // a copy of its own
        moved = machine_take(t->machine, elements * t->width, MEMORY_GRADIENTS);
    if (moved) {
        drop(t, &p->gradient);
        p->gradient = moved;
    }
    machine_launch(t->machine, elements <= z->bucket_elements); // the copy
    machine_move(t->machine, 2 * elements * t->width);
    b->parameters[b->count++] = parameter;
    b->elements += elements;
}

// ------------------------------------------------------------------ the backward pass

// The hook of a parameter: whether its last gradient of this pass is there.
static bool is_complete(struct trainer *t, int parameter)
{
    struct zero *z = zero_of(t);
    if (--z->uses_left[parameter] > 0)
        return false;
    for (int i = 0; i <= z->overlaps && !z->bucket.buffers[i]; i++)
        z->bucket.buffers[i] =
            machine_take(t->machine, z->bucket_elements * t->width, MEMORY_GRADIENTS);
    return true;
}

// Stage 1: added to what was there; with overlap_comm the last micro-batch's goes as in stage 2.
static void gradient_stays(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    machine_host(t->machine, machine_rates(t->machine)->zero_gradient);
    struct storage **earlier = &zero_of(t)->earlier[parameter];
    if (!is_complete(t, parameter))
        return;
    if (*earlier) {
        drop(t, &g->parameters[parameter].gradient);
        g->parameters[parameter].gradient = *earlier;
        *earlier = NULL;
    }
    if (zero_of(t)->overlaps && is_last_micro_batch(t))
        add_to_bucket(t, parameter);
}

static void gradient_goes(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    machine_host(t->machine, machine_rates(t->machine)->zero_gradient);
    if (is_complete(t, parameter))
        add_to_bucket(t, parameter);
}

static bool is_of_mlp(const struct trainer *t, int parameter)
{
    for (int i = 0; i < (int)t->job->model.layers; i++) {
        const struct layer_parameters *l = &t->layers[i];
        if (parameter == l->gate || parameter == l->up || parameter == l->down)
            return true;
    }
    return false;
}

int zero_uses_of(const struct trainer *t, int parameter)
{
    const struct job *p = t->job;
    if (p->tiled_mlp && is_of_mlp(t, parameter))
        return (int)u64_divide_up(job_tokens(p), job_tile_tokens(p));
    if (parameter != t->head)
        return 1;
    int chunks = p->loss == LOSS_CHUNKED && !job_fuses_head(p)
                     ? (int)u64_divide_up(job_tokens(p), p->loss_chunk)
                     : 1;
    return (p->loss == LOSS_NONE ? 0 : chunks) + (t->head == t->embedding);
}

static void before_forward(struct trainer *t)
{
    struct zero *z = t->state;
    struct graph *g = &t->graph;
    z->micro_batch = is_last_micro_batch(t) ? 1 : z->micro_batch + 1;
    for (int i = 0; i < g->parameter_count; i++) {
        z->uses_left[i] = zero_uses_of(t, i);
        z->earlier[i] = g->parameters[i].gradient;
        g->parameters[i].gradient = NULL;
    }
}

static void drop_gradients(struct trainer *t)
{
    for (int i = 0; i < t->graph.parameter_count; i++)
        drop(t, &t->graph.parameters[i].gradient);
}

// The first micro-batch's part is kept, those of later ones are added to it.
static void end_backward(struct trainer *t)
{
    struct zero *z = zero_of(t);
    reduce(t);
    if (z->overlaps)
        machine_synchronize(t->machine, t->machine->clock[STREAM_COMPUTE]);
    if (!z->accumulated)
        z->accumulated = storage_share(z->owned);
    drop(t, &z->bucket.buffers[0]);
    drop(t, &z->bucket.buffers[1]);
    z->bucket.filling = 0;
    drop(t, &z->owned);
    drop_gradients(t);
}

static void end_backward_of_all(struct trainer *t)
{
    if (!is_last_micro_batch(t))
        return;
    for (int i = 0; i < t->graph.parameter_count && !zero_of(t)->overlaps; i++)
        if (t->graph.parameters[i].gradient)
            add_to_bucket(t, i);
    end_backward(t);
}

// ------------------------------------------------------------------ the step

// One norm for each gradient of this part.
static void take_norms(struct trainer *t, int group)
{
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (zero_group_of(t, i) == group && is_owned(t, i))
            norm(t, owned_elements(t, i));
}

// A group's gradients are joined and cast, and the optimizer sees one tensor.
static void step_group(struct trainer *t, int number, bool is_last)
{
    struct zero *z = t->state;
    struct trained *part = &t->trained[number];
    struct storage *flat =
        z->groups[number].owned_count > 1
            ? machine_take(t->machine, part->elements * t->width, MEMORY_GRADIENTS)
            : storage_share(z->accumulated);
    part->gradient = machine_take(t->machine, part->elements * MASTER_WIDTH, MEMORY_GRADIENTS);
    drop(t, &flat);
    if (is_last)
        drop(t, &z->accumulated);
    optimizer_step_one(t, part);
    drop(t, &part->gradient);
}

// Gradients of all groups are one tensor, which goes with the last. Updated parameters are gathered
// in place.
static void update(struct trainer *t)
{
    uint64_t elements = 0;
    for (int i = 0; i < t->trained_count; i++)
        elements += t->trained[i].elements;
    machine_follow(t->machine, STREAM_COMPUTE, zero_of(t)->stream);
    if (t->job->offload) {
        machine_host_copy(t->machine, STREAM_COMPUTE, elements * (MASTER_WIDTH + t->width));
        optimizer_on_host(t);
    }
    for (int i = 0; i < t->trained_count && !t->job->offload; i++)
        take_norms(t, i);
    for (int i = 0; i < t->trained_count && !t->job->offload; i++)
        step_group(t, i, i + 1 == t->trained_count);
    uint64_t ranks = zero_of(t)->ranks;
    machine_collect(t->machine, STREAM_COMPUTE, GATHER, ranks, elements * ranks * t->width);
}

// ------------------------------------------------------------------ building

static void take(struct trainer *t, int parameter)
{
    struct parameter *p = &t->graph.parameters[parameter];
    uint32_t width = t->job->packed ? MASTER_WIDTH : t->width;
    if (p->packed)
        pack_weight(t, p);
    else
        p->weight = machine_take(t->machine, elements_of(t, parameter) * width, MEMORY_PARAMETERS);
}

static void narrow(struct trainer *t, int parameter)
{
    struct parameter *p = &t->graph.parameters[parameter];
    if (p->packed)
        return;
    struct storage *cast =
        machine_take(t->machine, elements_of(t, parameter) * t->width, MEMORY_PARAMETERS);
    drop(t, &p->weight);
    p->weight = cast;
}

// deepspeed/runtime/engine.py, _configure_distributed_model: all that is there is cast to bf16,
// adapters too, and comes to the card module by module, an adapter behind its weight. With packed
// weights it is on the card before, and the rest of it in fp32.
static void load(struct trainer *t)
{
    const struct graph *g = &t->graph;
    int *order = NEW(t->machine->arena, int, g->parameter_count);
    int count = parameters_in_order(t, order);
    for (int i = 0; i < count; i++)
        take(t, order[i]);
    for (int i = 0; i < g->parameter_count && t->job->packed; i++)
        narrow(t, i);
}

static uint64_t largest_parameter(const struct trainer *t)
{
    uint64_t largest = 0;
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (!is_frozen(t, i) && elements_of(t, i) > largest)
            largest = elements_of(t, i);
    return largest;
}

static void lay_out(struct trainer *t, struct zero *z)
{
    int *order = NEW(t->machine->arena, int, t->graph.parameter_count);
    int count = parameters_in_order(t, order);
    for (int i = 0; i < count; i++) {
        struct group *g = &z->groups[zero_group_of(t, order[i])];
        z->starts[order[i]] = g->elements;
        g->elements += is_frozen(t, order[i]) ? 0 : elements_of(t, order[i]);
    }
    for (int i = 0; i < ZERO_GROUPS; i++) {
        struct group *g = &z->groups[i];
        g->part = u64_align_up(g->elements, START_ALIGNMENT * z->ranks) / z->ranks;
        t->trained_count += g->elements > 0;
    }
    for (int i = 0; i < count; i++) {
        if (!is_owned(t, i))
            continue;
        z->groups[zero_group_of(t, i)].owned_count++;
        z->owned_elements += elements_of(t, i);
    }
}

// Parameters that came one by one are joined; rank 0's part is copied and cast, on the host if it
// stays there.
static void take_group(struct trainer *t, int number)
{
    struct machine *m = t->machine;
    const struct zero *z = t->state;
    uint64_t part = z->groups[number].part;
    machine_mark(m, EVENT_EMPTY_CACHE);
    machine_take(m, part * z->ranks * t->width, MEMORY_PARAMETERS);
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (zero_group_of(t, i) == number && !is_frozen(t, i))
            drop(t, &t->graph.parameters[i].weight);
    t->trained[number] = (struct trained){.elements = part, .width = MASTER_WIDTH};
    struct storage *copy = machine_take(m, part * t->width, MEMORY_WORKSPACE);
    if (!t->job->offload)
        t->trained[number].weight = machine_take(m, part * MASTER_WIDTH, MEMORY_OPTIMIZER);
    machine_drop(m, copy);
}

// Gradients, to see their size. One that comes back from the host needs a place on the card.
static void take_state(struct trainer *t)
{
    struct machine *m = t->machine;
    struct storage *gradients[ZERO_GROUPS] = {0};
    for (int i = 0; i < t->trained_count; i++)
        take_group(t, i);
    for (int i = 0; i < t->trained_count && !t->job->offload; i++)
        gradients[i] = machine_take(m, t->trained[i].elements * MASTER_WIDTH, MEMORY_WORKSPACE);
    for (int i = 0; i < ZERO_GROUPS; i++)
        machine_drop(m, gradients[i]);
    if (t->job->offload)
        machine_take(m, largest_parameter(t) * t->width, MEMORY_WORKSPACE);
}

static void build(struct trainer *t)
{
    struct arena *a = t->machine->arena;
    int count = t->graph.parameter_count;
    struct zero *z = NEW(a, struct zero, 1);
    *z = (struct zero){.ranks = job_ranks(t->job),
                       .bucket_elements = job_zero_sizes(t->job).reduced,
                       .starts = NEW(a, uint64_t, count),
                       .uses_left = NEW(a, int, count),
                       .earlier = NEW(a, struct storage *, count),
                       .bucket.parameters = NEW(a, int, count)};
    t->state = z;
    lay_out(t, z);
    t->trained = NEW(a, struct trained, t->trained_count);
    take_state(t);
}

static void build_stage1(struct trainer *t)
{
    build(t);
    struct zero *z = zero_of(t);
    z->overlaps = t->job->overlap_comm;
    z->stream = z->overlaps ? t->first_stream : STREAM_COMPUTE;
}

static void build_stage2(struct trainer *t)
{
    build_stage1(t);
    zero_of(t)->drops_early = true;
}

const struct strategy_kind zero1_strategy = {
    .load = load,
    .build = build_stage1,
    .gradient_ready = gradient_stays,
    .before_forward = before_forward,
    .end_backward = end_backward_of_all,
    .update = update,
    .host_bytes = zero2_host_bytes,
};

const struct strategy_kind zero2_strategy = {
    .load = load,
    .build = build_stage2,
    .gradient_ready = gradient_goes,
    .before_forward = before_forward,
    .end_backward = end_backward,
    .update = update,
    .host_bytes = zero2_host_bytes,
};
