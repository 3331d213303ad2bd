// DeepSpeed's ZeRO, stages 1 and 2 (0.19.8, deepspeed/runtime/zero/stage_1_and_2.py): every rank
// has all parameters in bf16, in one flat tensor; fp32 copies, moments and (stage 2) gradients are
// cut into equal parts of that tensor, of which rank 0's is followed here.
//
// Parameters, gradients and the step are as DeepSpeed does them by default:
// contiguous gradients, no overlap of reduction with the backward pass, bf16 gradients. The stages
// differ in when gradients are reduced: stage 2 in the hook of each parameter, stage 1 all at once
// after the last backward pass of a step.
#include "core/strategies/zero.h"

#include "core/base/num.h"
#include "core/strategies/strategies.h"
#include "core/strategies/trainer.h"

enum { MASTER_WIDTH = 4, NORM_WIDTH = 8, START_ALIGNMENT = 2 };

// Gradients on their way: small ones are copied into one buffer, a large one goes by itself.
struct bucket {
    struct storage *buffer;
    int *parameters;
    int count;
    uint64_t elements;
};

struct zero {
    uint64_t ranks, bucket_elements, partition_elements;
    uint64_t *starts;         // of each parameter in the flat tensor; one more for the end
    int owned_count;          // parameters that begin in rank 0's part
    int *uses_left;           // of a parameter in this backward pass
    struct storage **earlier; // stage 1: gradients of the micro-batches before
    struct bucket bucket;
    struct storage *owned;       // reduced gradients of rank 0's part, of this micro-batch
    struct storage *accumulated; // and of the first
    uint64_t micro_batch;        // of the step, from 1
    bool drops_early;            // stage 2: a gradient of another rank's part, once it is reduced
};

static struct zero *zero_of(const struct trainer *t)
{
    return t->state;
}

uint64_t zero_bucket_elements(const struct job *p)
{
    return p->model.hidden * p->model.hidden;
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

// Of a parameter that begins in rank 0's part: the elements that lie in it.
static uint64_t owned_elements(const struct trainer *t, int parameter)
{
    const struct zero *z = t->state;
    uint64_t left = z->partition_elements - z->starts[parameter];
    uint64_t whole = elements_of(t, parameter);
    return whole < left ? whole : left;
}

// ------------------------------------------------------------------ reducing

// Stretches of the bucket that belong to one rank are reduced together, up to a bucket's elements
// at a time; several stretches are joined in a copy first.
struct joiner {
    uint64_t stretch, owner; // the one that may still grow
    uint64_t elements;       // of those before, not yet reduced
    int count;
};

static void join(struct trainer *t, struct joiner *j)
{
    if (j->count > 1)
        machine_scratch(t->machine, j->elements * t->width);
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
    uint64_t at = z->starts[parameter], end = z->starts[parameter + 1];
    while (at < end) {
        uint64_t rank = at / z->partition_elements, stop = (rank + 1) * z->partition_elements;
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

static void keep_gradient(struct trainer *t, int parameter)
{
    struct zero *z = t->state;
    struct parameter *p = &t->graph.parameters[parameter];
    if (t->job->offload) {
        send_to_host(t, p, parameter);
        return;
    }
    if (!z->owned)
        z->owned = machine_take(t->machine, z->starts[z->owned_count] * t->width, MEMORY_GRADIENTS);
    drop(t, &p->gradient);
    p->gradient = storage_share(z->owned);
}

static void reduce(struct trainer *t)
{
    struct zero *z = t->state;
    struct bucket *b = &z->bucket;
    average(t);
    for (int i = 0; i < b->count; i++) {
        int parameter = b->parameters[i];
        if (parameter < z->owned_count)
            keep_gradient(t, parameter);
        else if (z->drops_early)
            drop(t, &t->graph.parameters[parameter].gradient);
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
    if (b->elements + elements > z->bucket_elements)
        reduce(t);
    struct storage *moved = NULL;
    if (elements <= z->bucket_elements)
        moved = storage_share(b->buffer);
    else if (t->job->offload) // a copy of its own
        moved = machine_take(t->machine, elements * t->width, MEMORY_GRADIENTS);
    if (moved) {
        drop(t, &p->gradient);
        p->gradient = moved;
    }
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
    if (!z->bucket.buffer)
        z->bucket.buffer =
            machine_take(t->machine, z->bucket_elements * t->width, MEMORY_GRADIENTS);
    return true;
}

// Stage 1: added to what was there.
static void gradient_stays(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    struct storage **earlier = &zero_of(t)->earlier[parameter];
    if (!is_complete(t, parameter) || !*earlier)
        return;
    drop(t, &g->parameters[parameter].gradient);
    g->parameters[parameter].gradient = *earlier;
    *earlier = NULL;
}

static void gradient_goes(struct graph *g, int parameter)
{
    struct trainer *t = g->owner;
    if (is_complete(t, parameter))
        add_to_bucket(t, parameter);
}

int zero_uses_of(const struct trainer *t, int parameter)
{
    const struct job *p = t->job;
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
    if (!z->accumulated)
        z->accumulated = storage_share(z->owned);
    drop(t, &z->bucket.buffer);
    drop(t, &z->owned);
    drop_gradients(t);
}

static void end_backward_of_all(struct trainer *t)
{
    if (!is_last_micro_batch(t))
        return;
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (t->graph.parameters[i].gradient)
            add_to_bucket(t, i);
    end_backward(t);
}

// ------------------------------------------------------------------ the step

// One norm for each gradient of this part; then all are joined and cast, and the optimizer sees
// one tensor. Updated parameters are gathered in place.
static void update(struct trainer *t)
{
    struct zero *z = t->state;
    struct trained *part = &t->trained[0];
    if (t->job->offload)
        return;
    for (int i = 0; i < z->owned_count; i++)
        norm(t, owned_elements(t, i));
    uint64_t elements = part->elements;
    struct storage *flat = z->owned_count > 1
                               ? machine_take(t->machine, elements * t->width, MEMORY_GRADIENTS)
                               : storage_share(z->accumulated);
    part->gradient = machine_take(t->machine, elements * MASTER_WIDTH, MEMORY_GRADIENTS);
    drop(t, &flat);
    drop(t, &z->accumulated);
    optimizer_step(t);
    optimizer_zero(t);
}

// ------------------------------------------------------------------ building

static uint64_t largest_parameter(const struct trainer *t)
{
    uint64_t largest = 0;
    for (int i = 0; i < t->graph.parameter_count; i++)
        if (elements_of(t, i) > largest)
            largest = elements_of(t, i);
    return largest;
}

static void lay_out(struct trainer *t, struct zero *z)
{
    int count = t->graph.parameter_count;
    for (int i = 0; i < count; i++)
        z->starts[i + 1] = z->starts[i] + elements_of(t, i);
    z->partition_elements = u64_align_up(z->starts[count], START_ALIGNMENT * z->ranks) / z->ranks;
    while (z->owned_count < count && z->starts[z->owned_count] < z->partition_elements)
        z->owned_count++;
}

// Parameters that came one by one are joined; rank 0's part is copied and cast, on the host if it
// stays there. A gradient that comes back from the host needs a place on the card.
static void take_state(struct trainer *t, const struct zero *z)
{
    struct machine *m = t->machine;
    struct graph *g = &t->graph;
    uint64_t part = z->partition_elements;
    machine_mark(m, EVENT_EMPTY_CACHE);
    machine_take(m, part * z->ranks * t->width, MEMORY_PARAMETERS);
    for (int i = 0; i < g->parameter_count; i++)
        drop(t, &g->parameters[i].weight);
    t->trained[0] = (struct trained){.elements = part, .width = MASTER_WIDTH};
    struct storage *copy = machine_take(m, part * t->width, MEMORY_WORKSPACE);
    if (!t->job->offload)
        t->trained[0].weight = machine_take(m, part * MASTER_WIDTH, MEMORY_OPTIMIZER);
    machine_drop(m, copy);
    if (!t->job->offload)
        machine_scratch(m, part * MASTER_WIDTH); // a gradient, to see its size
    else
        machine_take(m, largest_parameter(t) * t->width, MEMORY_WORKSPACE);
}

static void build(struct trainer *t)
{
    struct arena *a = t->machine->arena;
    int count = t->graph.parameter_count;
    struct zero *z = NEW(a, struct zero, 1);
    *z = (struct zero){.ranks = job_ranks(t->job),
                       .bucket_elements = zero_bucket_elements(t->job),
                       .starts = NEW(a, uint64_t, count + 1),
                       .uses_left = NEW(a, int, count),
                       .earlier = NEW(a, struct storage *, count),
                       .bucket.parameters = NEW(a, int, count)};
    t->state = z;
    lay_out(t, z);
    t->trained = NEW(a, struct trained, 1);
    t->trained_count = 1;
    take_state(t, z);
}

static void build_stage2(struct trainer *t)
{
    build(t);
    zero_of(t)->drops_early = true;
}

const struct strategy_kind zero1_strategy = {
    .build = build,
    .gradient_ready = gradient_stays,
    .before_forward = before_forward,
    .end_backward = end_backward_of_all,
    .update = update,
};

const struct strategy_kind zero2_strategy = {
    .build = build_stage2,
    .gradient_ready = gradient_goes,
    .before_forward = before_forward,
    .end_backward = end_backward,
    .update = update,
    .host_bytes = zero2_host_bytes,
};
