// LoRA and QLoRA: frozen weights with a trained product of two thin matrices beside them, as peft
// 0.21 runs it (tuners/lora/layer.py and bnb.py), over weights in bf16, in fp32 under autocast, or
// packed to four bits by bitsandbytes 0.50.
//
// The types are those that the trainers end up with. peft makes adapters in fp32 (its
// autocast_adapter_dtype; over packed weights it has no other type to follow), TRL 1.16 casts those
// over packed weights to bf16. Norms, embedding and head are in the type that the model is loaded
// in: by TRL in fp32 unless its user says otherwise; elsewhere in bf16, and
// prepare_model_for_kbit_training, which TRL does not call, makes them fp32. Under checkpointing
// the embedding's output requires a gradient. Dropout is 0. Where the trainer runs under autocast
// without preparing anything (axolotl, LLaMA-Factory), adapters stay in fp32 over a packed base.
// What is cast and unpacked around a packed product was seen operator by operator with peft 0.21.0
// and bitsandbytes 0.50.2 on a CPU; public jobs of trl 0.13 on A100s say the same
// (tests/measured/public_jobs.py).
#include "core/models/adapters.h"

#include "core/base/num.h"
#include "core/models/parameters.h"
#include "core/models/vision/vision.h"
#include "core/ops/ops.h"

// bitsandbytes/functional.py: the scale for a block of elements is itself packed to 8 bits, with a
// scale for 256; tables of 16 and 256 numbers and an offset for each weight.
enum { SCALE_BLOCK = 256, CODE_BYTES = 64, SCALE_CODE_BYTES = 1024 };

uint64_t stored_elements(const struct parameter *p)
{
    enum { PACKED_IN_ONE = 4 };
    uint64_t elements = p->rows * p->columns;
    return p->packed ? u64_divide_up(elements, PACKED_IN_ONE) : elements;
}

void take_tables(struct trainer *t, const struct parameter *p)
{
    struct machine *m = t->machine;
    uint64_t scales = u64_divide_up(p->rows * p->columns, PACKED_BLOCK);
    machine_take(m, p->single ? 4 * scales : scales, MEMORY_PARAMETERS);
    machine_take(m, CODE_BYTES, MEMORY_PARAMETERS);
    if (p->single)
        return;
    machine_take(m, 4, MEMORY_PARAMETERS); // the offset
    machine_take(m, 4 * u64_divide_up(scales, SCALE_BLOCK), MEMORY_PARAMETERS);
    machine_take(m, SCALE_CODE_BYTES, MEMORY_PARAMETERS);
}

static void pack_scales(struct trainer *t, const struct parameter *p)
{
    struct machine *m = t->machine;
    uint64_t elements = p->rows * p->columns, scales = u64_divide_up(elements, PACKED_BLOCK);
    machine_take(m, 4, MEMORY_PARAMETERS); // the offset: the scales' mean
    struct storage *shifted = machine_take(m, packed_scale_bytes(elements), MEMORY_PARAMETERS);
    if (!t->has_scale_code)
        machine_take(m, SCALE_CODE_BYTES, MEMORY_PARAMETERS);
    t->has_scale_code = true;
    machine_take(m, 4 * u64_divide_up(scales, SCALE_BLOCK), MEMORY_PARAMETERS);
    machine_take(m, scales, MEMORY_PARAMETERS);
    machine_take(m, SCALE_CODE_BYTES, MEMORY_PARAMETERS); // a copy of the one that all share
    machine_drop(m, shifted);
}

// A weight comes to the card as it is loaded and is packed there.
void pack_weight(struct trainer *t, struct parameter *p)
{
    struct machine *m = t->machine;
    uint64_t elements = p->rows * p->columns;
    struct storage *whole = machine_take(m, p->width * elements, MEMORY_PARAMETERS);
    struct storage *wide = machine_take(m, packed_scale_bytes(elements), MEMORY_PARAMETERS);
    p->weight = machine_take(m, u64_divide_up(elements, 2), MEMORY_PARAMETERS);
    machine_take(m, CODE_BYTES, MEMORY_PARAMETERS);
    if (!p->single) {
        pack_scales(t, p);
        machine_drop(m, wide);
    }
    machine_drop(m, whole);
}

static void take_thin(struct trainer *t, int parameter)
{
    struct parameter *p = &t->graph.parameters[parameter];
    if (!t->strategy->load)
        p->weight = machine_take(t->machine, p->rows * p->columns * p->width, MEMORY_PARAMETERS);
}

static int make_thin(struct trainer *t, const char *name, uint64_t rows, uint64_t columns)
{
    struct graph *g = &t->graph;
    struct parameter *p = &g->parameters[g->parameter_count];
    *p = (struct parameter){.name = name, .rows = rows, .columns = columns, .width = t->width};
    if ((t->job->packed && !t->strategy->load) || job_widens_adapters(t->job))
        p->width = 4;
    return g->parameter_count++;
}

static int add_thin(struct trainer *t, const char *name, uint64_t rows, uint64_t columns)
{
    int thin = make_thin(t, name, rows, columns);
    take_thin(t, thin);
    return thin;
}

// peft/tuners/lora/dora.py, update_layer: the norms of the weight, of which a packed one is copied
// and unpacked, with a change that is made whole and is nothing yet.
static void add_magnitude(struct trainer *t, struct parameter *p)
{
    struct machine *m = t->machine;
    uint64_t elements = p->rows * p->columns;
    uint32_t made = p->packed ? 4 : t->width, wide = made > p->width ? made : p->width;
    struct storage *copy = NULL, *scales = NULL, *weight = NULL;
    if (t->strategy->load && !p->packed) { // all of it is in host memory then
        p->magnitude = add_thin(t, "lora_magnitude_vector.weight", p->rows, 1);
        return;
    }
    if (p->packed) {
        copy = machine_take(m, elements / 2, MEMORY_WORKSPACE);
        if (!p->single)
            scales = machine_take(m, packed_scale_bytes(elements), MEMORY_WORKSPACE);
        weight = machine_take(m, elements * p->width, MEMORY_WORKSPACE);
        machine_drop(m, scales);
    }
    struct storage *change = machine_take(m, elements * made, MEMORY_WORKSPACE);
    struct storage *scaled = machine_take(m, elements * made, MEMORY_WORKSPACE);
    struct storage *sum = machine_take(m, elements * wide, MEMORY_WORKSPACE);
    machine_drop(m, scaled);
    p->magnitude = add_thin(t, "lora_magnitude_vector.weight", p->rows, 1);
    machine_drop(m, sum);
    machine_drop(m, change);
    machine_drop(m, weight);
    machine_drop(m, copy);
}

void adapter_add(struct trainer *t, int weight)
{
    uint64_t rank = t->job->lora_rank;
    struct parameter *p = &t->graph.parameters[weight];
    p->adapter = add_thin(t, "lora_A.weight", rank, p->columns);
    add_thin(t, "lora_B.weight", p->rows, rank);
    if (t->job->dora)
        add_magnitude(t, p);
}

// tuners/lora/layer.py, ParamWrapper.update_layer: a factor for each expert, side by side; gate and
// up, which are one parameter, get both their ranks
// (utils/transformers_weight_conversion.py, _convert_peft_config_moe).
static void fold_add(struct trainer *t, int weight, const struct tensor *row)
{
    const struct model *m = &t->job->model;
    struct parameter *p = &t->graph.parameters[weight];
    bool both = row->target & 1u << TARGET_GATE, stacked = row->part == PART_EXPERTS;
    uint64_t rank = t->job->lora_rank * (stacked ? p->rows : 1) * (both ? 2 : 1);
    uint64_t in = !stacked || both ? m->hidden : m->experts.intermediate;
    p->folds = true;
    p->adapter = make_thin(t, "lora_A.weight", rank, in);
    make_thin(t, "lora_B.weight", stacked ? p->columns / in : p->rows, rank);
}

// Parameters come after all modules.
static void take_folds(struct trainer *t)
{
    const struct graph *g = &t->graph;
    for (int i = 0; i < g->parameter_count; i++)
        for (int j = 0; g->parameters[i].folds && j < adapter_tensors(&g->parameters[i]); j++)
            take_thin(t, g->parameters[i].adapter + j);
}

static void cast_parameter(struct trainer *t, int parameter, uint32_t width)
{
    struct parameter *p = &t->graph.parameters[parameter];
    if (p->packed || p->width == width)
        return;
    struct storage *cast =
        machine_take(t->machine, p->rows * p->columns * width, MEMORY_PARAMETERS);
    machine_drop(t->machine, p->weight);
    p->weight = cast;
    p->width = width;
}

// Once all have been made in the type that the base computes in.
static void cast_adapters(struct trainer *t, int first, uint32_t width)
{
    for (int i = first; i < t->graph.parameter_count; i++)
        if (width == 4 || t->graph.parameters[i].columns > 1) // TRL leaves magnitudes in fp32
            cast_parameter(t, i, width);
}

void take_adapters(struct trainer *t, uint32_t width)
{
    enum { MADE_WIDTH = 4 };
    struct graph *g = &t->graph;
    for (int i = 0; i < g->parameter_count; i++) {
        struct parameter *p = &g->parameters[i];
        if (!p->frozen)
            p->weight =
                machine_take(t->machine, p->rows * p->columns * MADE_WIDTH, MEMORY_PARAMETERS);
    }
    for (int i = 0; i < g->parameter_count && width != MADE_WIDTH; i++) {
        struct parameter *p = &g->parameters[i];
        if (p->frozen)
            continue;
        struct storage *made = p->weight;
        p->weight = machine_take(t->machine, p->rows * p->columns * width, MEMORY_PARAMETERS);
        machine_drop(t->machine, made);
    }
}

void prepare_packed(struct trainer *t)
{
    for (int i = 0; i < t->graph.parameter_count; i++)
        cast_parameter(t, i, 4);
    if (!job_stands_on_4(t->job)) // peft since 0.19
        machine_mark(t->machine, EVENT_EMPTY_CACHE);
    t->width = 4;
}

// trl 0.13, trainer/utils.py, peft_module_casting_to_bf16: back to bf16, but for the norms.
static void narrow_ends(struct trainer *t)
{
    cast_parameter(t, t->embedding, 2);
    cast_parameter(t, t->head, 2);
    t->width = 2;
}

static void add_in_layer(struct trainer *t, int layer)
{
    const struct job *job = t->job;
    for (ptrdiff_t i = 0; i < job->parameters.tensor_count; i++) {
        const struct tensor *row = &job->parameters.tensors[i];
        if (!tensor_has_adapter(row, job_folds_experts(job), job->lora_targets))
            continue;
        int weight = parameter_of(&t->layers[layer], row);
        if (weight >= 0 && tensor_is_folded(row))
            fold_add(t, weight, row);
        else if (weight >= 0)
            adapter_add(t, weight);
    }
}

// peft's ModulesToSaveWrapper (utils/other.py): a module that is trained beside the adapters is a
// copy, and the frozen original stays. peft casts adapters only; TRL narrows all that is trained
// over packed weights, LLaMA-Factory 0.9.5 makes it fp32 (model/adapter.py, _setup_lora_tuning).
static uint32_t copy_width(const struct trainer *t, const struct parameter *original)
{
    if (t->strategy->load)
        return original->width;
    if (job_narrows_adapters(t->job))
        return 2;
    return t->job->recipe == RECIPE_LLAMAFACTORY ? 4 : original->width;
}

static void take_copy(struct trainer *t, int parameter)
{
    struct parameter *copy = &t->graph.parameters[parameter];
    copy->frozen = false;
    copy->width = copy_width(t, copy);
    copy->weight = NULL;
    take_thin(t, parameter);
}

// Another behind all that there are, with the same weight.
static int put_behind(struct graph *g, int parameter)
{
    g->parameters[g->parameter_count] = g->parameters[parameter];
    return g->parameter_count++;
}

// What is used keeps its number: the original gets one behind all others.
static void copy_module(struct trainer *t, int parameter)
{
    int original = put_behind(&t->graph, parameter);
    t->graph.parameters[parameter].original = original;
    take_copy(t, parameter);
}

// Of tied modules each has a copy of its own, and what is not copied goes on with the original.
static void copy_modules(struct trainer *t)
{
    struct graph *g = &t->graph;
    bool tied = t->head == t->embedding;
    unsigned which = t->job->lora_whole;
    if (which)
        g->parameters[t->embedding].tied = false;
    if (which & 1u << WHOLE_EMBEDDING) {
        copy_module(t, t->embedding);
        t->head = tied ? g->parameters[t->embedding].original : t->head;
    }
    if (which & 1u << WHOLE_HEAD && tied) {
        t->head = put_behind(g, t->head);
        take_copy(t, t->head);
    }
    for (int i = 0; which & 1u << WHOLE_HEAD && i < t->head_count; i++)
        copy_module(t, t->head + i);
}

int parameters_in_order(const struct trainer *t, int *order)
{
    const struct graph *g = &t->graph;
    int count = 0, end = t->final_norm + t->norm_count + t->head_count;
    for (int i = 0; i < end; i++) {
        const struct parameter *p = &g->parameters[i];
        if (p->original)
            order[count++] = p->original;
        order[count++] = i;
        for (int j = 0; j < adapter_tensors(p); j++)
            order[count++] = p->adapter + j;
    }
    if (count < g->parameter_count) // a copy of a tied head
        order[count++] = t->head;
    return count;
}

void adapters_build(struct trainer *t)
{
    const struct job *job = t->job;
    struct graph *g = &t->graph;
    int first = g->parameter_count;
    for (int i = 0; i < first; i++) {
        g->parameters[i].frozen = true;
        g->parameters[i].idle = false;
    }
    tower_adapters(t);
    for (uint64_t i = 0; i < job->model.layers && job->freeze != FREEZE_LANGUAGE; i++)
        add_in_layer(t, (int)i);
    take_folds(t);
    g->embedding_is_leaf = job->checkpointing;
    g->adapters_drop = job_drops_in_adapters(job);
    if (t->strategy->load) { // they come with the rest, in the type that the strategy keeps
        copy_modules(t);
        return;
    }
    cast_adapters(t, first, 4);
    if (job_narrows_adapters(job))
        cast_adapters(t, first, 2);
    if (job_is_prepared(job) && job_shifts_logits(job) && job->recipe == RECIPE_TRANSFORMERS)
        narrow_ends(t);
    copy_modules(t);
}
