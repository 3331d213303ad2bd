// Qwen3-VL's vision tower, and its images on their way into the text, as transformers 5.17 runs
// them (modeling_qwen3_vl.py, whose classes modeling_qwen3_vl_moe.py has too, and vision_utils.py):
// the patches of all images in one row, attention for each image by itself, mergers that make a
// token of four patches, and the features of three earlier blocks, which the first layers of the
// text are given.
//
// The convolution over patches has its kernel for a stride, so that it is a product; what cuDNN
// takes for it meanwhile is not known.
#include "core/models/vision/tower.h"

#include <string.h>

#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/models/forward.h"
#include "core/models/parameters.h"
#include "core/models/units.h"
#include "core/ops/scratch.h"

static const struct vision *vision_of(const struct trainer *t)
{
    return &t->job->model.vision;
}

bool has_pictures(const struct trainer *t)
{
    return t->tower && t->tower->images;
}

// ------------------------------------------------------------------ building

static void add_to(struct trainer *t, struct vision_parameters *p, const struct tensor *row)
{
    int number = parameter_add(t, row);
    ASSERT(row->role);
    memcpy((char *)p + row->role, &number, sizeof number);
}

// All rows of a place for one block after another.
static void add_parts(struct trainer *t, struct vision_parameters *parts, enum place place)
{
    const struct parameters *all = &t->job->parameters;
    bool more = true;
    for (int i = 0; more; i++) {
        int first = t->graph.parameter_count;
        more = false;
        for (ptrdiff_t j = 0; j < all->tensor_count; j++)
            if (all->tensors[j].place == place && (uint64_t)i < all->tensors[j].copies) {
                add_to(t, &parts[i], &all->tensors[j]);
                parts[i].first = first;
                more = true;
            }
    }
}

static void add_rows(struct trainer *t, struct tower *w)
{
    const struct parameters *all = &t->job->parameters;
    enum place last = PLACE_MODEL;
    for (ptrdiff_t i = 0; i < all->tensor_count; i++) {
        const struct tensor *row = &all->tensors[i];
        if (row->part != PART_VISION)
            continue;
        if (row->place == PLACE_MODEL)
            add_to(t, &w->stem, row);
        else if (row->place != last)
            add_parts(t, row->place == PLACE_VISION_BLOCK ? w->blocks : w->mergers, row->place);
        last = row->place;
    }
}

bool has_grids(const struct trainer *t)
{
    return t->tower && !model_has(&t->job->model, FEATURE_VISION_SIGLIP);
}

static bool has_windows(const struct trainer *t)
{
    return model_has(&t->job->model, FEATURE_VISION_WINDOWS);
}

static void add_piece(struct pieces *p, uint64_t patches)
{
    p->patches[p->count++] = patches;
}

// get_vision_window_index: merged patches in squares, those at the edges smaller.
static void cut_image(struct tower *w, struct image_grid grid, const struct vision *v)
{
    uint64_t merge = u64_most(v->merge, 1);
    uint64_t high = grid.height / merge, wide = grid.width / merge;
    uint64_t side = image_window(v);
    add_piece(&w->whole, grid.height * grid.width);
    for (uint64_t y = 0; y < high; y += side)
        for (uint64_t x = 0; x < wide; x += side)
            add_piece(&w->windows,
                      u64_least(side, high - y) * u64_least(side, wide - x) * merge * merge);
}

static void cut_images(struct trainer *t, struct tower *w)
{
    const struct job *job = t->job;
    struct arena *a = t->machine->arena;
    struct image_grid grid;
    w->images = job->images * job_rows(job);
    if (!w->images || !image_grid_of(&grid, &job->model, job->image_width, job->image_height))
        return;
    w->patches = grid.height * grid.width * w->images;
    w->whole.patches = NEW(a, uint64_t, (ptrdiff_t)w->images);
    w->windows.patches =
        NEW(a, uint64_t, (ptrdiff_t)(w->images * image_windows(&job->model, grid)));
    for (uint64_t i = 0; i < w->images; i++)
        cut_image(w, grid, &job->model.vision);
}

void tower_build(struct trainer *t)
{
    const struct vision *v = vision_of(t);
    struct arena *a = t->machine->arena;
    ptrdiff_t depth = (ptrdiff_t)v->depth, mergers = (ptrdiff_t)v->deepstack;
    if (!depth)
        return;
    struct tower *w = t->tower = NEW(a, struct tower, 1);
    w->blocks = NEW(a, struct vision_parameters, depth);
    w->mergers = NEW(a, struct vision_parameters, mergers);
    w->calls = NEW(a, struct block_call, depth);
    memset(&w->stem, -1, sizeof w->stem);
    memset(w->blocks, -1, sizeof *w->blocks * (size_t)depth);
    for (ptrdiff_t i = 0; i < mergers; i++)
        memset(&w->mergers[i], -1, sizeof *w->mergers);
    for (int i = 0; i < (int)v->depth; i++)
        w->calls[i] = (struct block_call){t, i};
    w->first = t->graph.parameter_count;
    add_rows(t, w);
    w->end = t->graph.parameter_count;
    cut_images(t, w);
}

static void leave_idle(struct trainer *t, int first, int last)
{
    for (int i = first; i <= last; i++) {
        struct parameter *p = &t->graph.parameters[i];
        p->idle = !p->frozen;
        p->frozen = true;
    }
}

// What gets no gradient has no optimizer state either, be it frozen or idle, as a pooling head is
// and a feature's merger where no layer is left for it.
// And a model that is made on the card (from_config, as in tests/runs/h200_vl.jsonl) has two heads
// for a moment, before one is tied to the embedding.
void tower_settle(struct trainer *t)
{
    const struct tower *w = t->tower;
    struct graph *g = &t->graph;
    if (!w)
        return;
    if (t->head < 0 && g->parameters[t->embedding].weight)
        machine_scratch(t->machine, g->parameters[t->embedding].weight->bytes);
    for (int i = 0; i < g->parameter_count; i++) {
        bool visual = i >= w->first && i < w->end;
        g->parameters[i].frozen = t->job->freeze == (visual ? FREEZE_VISION : FREEZE_LANGUAGE);
    }
    if (!w->images)
        leave_idle(t, w->first, w->end - 1);
    if (w->stem.pooling >= 0)
        leave_idle(t, w->stem.pooling, w->stem.pooling_end);
    for (uint64_t i = t->job->model.layers; i < vision_of(t)->deepstack; i++)
        leave_idle(t, w->mergers[i].norm, w->mergers[i].fc2_bias);
}

struct span tower_span(const struct trainer *t)
{
    const struct tower *w = t->tower;
    return w ? (struct span){w->first, w->end} : (struct span){0, 0};
}

struct span tower_block(const struct trainer *t, int block)
{
    const struct vision_parameters *p = t->tower->blocks;
    bool last = block + 1 == (int)vision_of(t)->depth;
    return (struct span){p[block].first, last ? p[block].fc2_bias + 1 : p[block + 1].first};
}

// peft's all-linear reaches the tower, too; names of the text's layers do not.
void tower_adapters(struct trainer *t)
{
    const struct tower *w = t->tower;
    const struct job *job = t->job;
    if (!w || job->lora_targets != LORA_ALL_TARGETS || job->freeze == FREEZE_VISION)
        return;
    for (uint64_t i = 0; i < job->model.vision.depth; i++) {
        adapter_add(t, w->blocks[i].qkv);
        adapter_add(t, w->blocks[i].proj);
        if (has_windows(t)) {
            adapter_add(t, w->blocks[i].gate);
            adapter_add(t, w->blocks[i].up);
        } else {
            adapter_add(t, w->blocks[i].fc1);
        }
        adapter_add(t, w->blocks[i].fc2);
    }
    adapter_add(t, w->stem.fc1);
    adapter_add(t, w->stem.fc2);
    for (uint64_t i = 0; i < job->model.vision.deepstack; i++) {
        adapter_add(t, w->mergers[i].fc1);
        adapter_add(t, w->mergers[i].fc2);
    }
}

// modeling_utils.py, enable_input_require_grads: of the two towers it finds the embedding of
// Qwen2.5-VL's (_input_embed_layer).
static bool has_leaf(const struct trainer *t)
{
    return t->graph.embedding_is_leaf && has_windows(t);
}

static bool is_trained(const struct trainer *t)
{
    const struct tower *w = t->tower;
    const struct parameter *all = t->graph.parameters;
    return !all[w->first].frozen || all[w->blocks[0].fc2].adapter || has_leaf(t);
}

void tower_buffers(struct trainer *t)
{
    const struct vision *v = vision_of(t);
    if (t->tower && !has_grids(t)) // position_ids
        machine_take(t->machine, 8 * v->positions, MEMORY_PARAMETERS);
    for (int i = 0; has_grids(t) && i < 2; i++) // frequencies, and a copy
        machine_take(t->machine, v->hidden / v->heads, MEMORY_PARAMETERS);
}

static uint64_t pixel_values(const struct trainer *t)
{
    const struct vision *v = vision_of(t);
    uint64_t times = u64_most(v->temporal_patch, 1);
    return t->tower->patches * v->channels * times * v->patch * v->patch;
}

// image_grid_thw, pixel_values and mm_token_type_ids (Gemma 3: token_type_ids).
void take_pictures(struct trainer *t)
{
    struct tower *w = t->tower;
    if (!has_pictures(t) || t->habits->batch_columns)
        return;
    uint64_t values = pixel_values(t), tokens = job_tokens(t->job);
    if (has_grids(t))
        machine_take(t->machine, 24 * w->images, MEMORY_INPUTS);
    w->pixels = (struct var){machine_take(t->machine, values * t->width, MEMORY_INPUTS), NO_NODE,
                             t->width, values};
    struct storage *is_image = machine_take(t->machine, tokens, MEMORY_INPUTS);
    machine_take(t->machine, (has_grids(t) ? 4 : 8) * tokens, MEMORY_INPUTS);
    machine_drop(t->machine, is_image);
}

// The same as columns of a trainer's batches, in fp32 as processors make them. Those of
// micro-batches that are not simulated are one tensor.
void load_pictures(struct trainer *t, uint64_t batches)
{
    enum { COLUMNS = 3 };
    struct tower *w = t->tower;
    struct machine *m = t->machine;
    if (!has_pictures(t))
        return;
    uint64_t values = pixel_values(t), types = (has_grids(t) ? 4 : 8) * job_tokens(t->job);
    uint64_t grids = has_grids(t) ? 24 * w->images : 0;
    int count = COLUMNS * (int)batches + 1;
    struct storage **loaded = NEW(m->arena, struct storage *, count);
    for (int i = 0; i + 1 < count; i += COLUMNS) {
        loaded[i] = machine_take(m, 4 * values, MEMORY_INPUTS);
        loaded[i + 1] = grids ? machine_take(m, grids, MEMORY_INPUTS) : NULL;
        loaded[i + 2] = machine_take(m, types, MEMORY_INPUTS);
    }
    uint64_t others = t->job->accumulation - batches;
    loaded[count - 1] = machine_take(m, others * (4 * values + grids + types), MEMORY_INPUTS);
    for (int i = 0; w->loaded && i < count; i++)
        machine_drop(m, w->loaded[i]);
    w->loaded = loaded;
    w->pixels = (struct var){loaded[0], NO_NODE, 4, values};
}

// In the type of the tower's weights.
static struct var pixels_of(struct trainer *t)
{
    const struct tower *w = t->tower;
    return w->cast.storage ? same(borrowed(w->cast))
                           : cast(&t->graph, borrowed(w->pixels), t->width);
}

// FSDP casts what a model is called with (torch 2.11, _fsdp_state.py, _pre_forward), and so does
// transformers' Trainer under DeepSpeed (5.17, trainer.py, _prepare_input): the call holds it.
void hold_pictures(struct trainer *t)
{
    struct tower *w = t->tower;
    bool casts = t->job->strategy != STRATEGY_SINGLE && t->job->strategy != STRATEGY_DDP;
    if (has_pictures(t) && casts && t->habits->batch_columns && w->pixels.width != t->width)
        w->cast = taken(cast(&t->graph, borrowed(w->pixels), t->width));
}

void let_pictures_go(struct trainer *t)
{
    if (t->tower)
        var_drop(&t->graph, &t->tower->cast);
}

// A convolution whose steps are as wide as its kernel.
struct var embed_pixels(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct vision_parameters *stem = &t->tower->stem;
    g->convolves = true;
    struct var patches = linear(g, pixels_of(t), stem->patch, stem->patch_bias);
    g->convolves = false;
    return patches;
}

// ------------------------------------------------------------------ where patches are

// vision_utils.py, get_vision_interpolation_indices_and_weights: four rows of the table of
// positions for each patch, and how much of each.
static void interpolate(struct trainer *t, struct var *indices, struct var *weights)
{
    enum { NUMBERS = 11 }; // heights, widths, starts, within ... row, col
    struct graph *g = &t->graph;
    uint64_t patches = t->tower->patches;
    struct scope f = scope_in(g);
    for (int i = 0; i < NUMBERS; i++)
        local(&f, made_of(g, constant(g, patches, 8)));
    for (int i = 0; i < 2; i++) { // of height and width
        local(&f, made_of(g, constant(g, 2 * patches, 8)));
        local(&f, made_of(g, constant(g, 2 * patches, 4)));
    }
    struct var taps = constant(g, 2 * patches, 8);
    *indices = taken(after(g, constant(g, 4 * patches, 8), taps));
    *weights = taken(constant(g, 4 * patches, 4));
    ends(&f);
}

// Row and column of each patch; the images' are joined.
static struct var places_of_patches(struct graph *g, uint64_t patches)
{
    struct var each = constant(g, 2 * patches, 8);
    return after(g, constant(g, 2 * patches, 8), each);
}

// Qwen3VLVisionRotaryEmbedding: a quarter of a head's values for each of two coordinates, in fp32.
static struct var recomposed(struct graph *g, struct var x)
{
    struct var parts = made_of(g, x);
    return after(g, constant(g, 2 * x.elements, 4), parts);
}

static void rotary_of_patches(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct vision *v = vision_of(t);
    uint64_t patches = t->tower->patches, values = patches * (v->hidden / v->heads) / 2;
    struct scope f = scope_in(g);
    local(&f, constant(g, 2 * patches, 4)); // positions
    local(&f, constant(g, values, 4));      // angles
    struct var cosine = local(&f, made_of(g, constant(g, values, 4)));
    struct var sine = local(&f, made_of(g, constant(g, values, 4)));
    assign(&f, &cosine, recomposed(g, borrowed(cosine)));
    assign(&f, &sine, recomposed(g, borrowed(sine)));
    t->tower->arguments.cosine = taken(cosine);
    t->tower->arguments.sine = taken(sine);
    ends(&f);
}

// ------------------------------------------------------------------ a block

// Qwen2.5-VL's norms are those of its text, without a bias.
struct var tower_norm(struct graph *g, struct var x, int weight, int bias)
{
    if (bias < 0)
        return rms_norm(g, x, weight);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD);
    struct var wide = cast(g, x, g->autocast ? 4 : x.width);
    struct var scale = op_parameter(g, weight), shift = op_parameter(g, bias);
    bool together = has_grids(g->owner);
    struct var out = (together ? op_layer_norm : op_layer_norm_apart)(g, wide, scale, shift);
    graph_at_module(g, weight, &operation_multiply_weight, MOMENT_FORWARD_DONE);
    return after(g, out, wide);
}

// apply_rotary_pos_emb_vision: all of it in fp32.
static struct heads turned(struct graph *g, struct heads h, const struct layer_arguments *also)
{
    uint32_t width = h.q.width;
    struct scope f = scope_in(g);
    struct var q = local(&f, cast(g, h.q, 4)), k = local(&f, cast(g, h.k, 4));
    struct var q_turned = local(&f, rotate(g, q, also)), k_turned = local(&f, rotate(g, k, also));
    assign(&f, &q_turned, cast(g, q_turned, width));
    assign(&f, &k_turned, cast(g, k_turned, width));
    h.q = same(q_turned);
    h.k = same(k_turned);
    ends(&f);
    return h;
}

// Queries, keys and values as views of one product, whose gradients are stacked and laid out anew.
static struct heads project(struct scope *f, struct var x, const struct vision_parameters *p)
{
    struct graph *g = f->graph;
    struct var all = chunks(g, relayout(g, linear(g, x, p->qkv, p->qkv_bias)), 3);
    uint64_t elements = all.elements / 3;
    struct var q = chunk(g, borrowed(all), elements), k = chunk(g, borrowed(all), elements);
    struct heads h = {.v = local(f, chunk(g, borrowed(all), elements))};
    h.k = local(f, k); // a list of the three lets go of the last first
    h.q = local(f, q);
    var_drop(g, &all);
    return h;
}

static struct var part_of(struct graph *g, struct var whole, uint64_t elements)
{
    return borrowed(chunk(g, borrowed(whole), elements));
}

// Piece by piece: what torch.split gives is attended to by itself, into `made`.
static void attend_apart(struct graph *g, struct heads h, const struct pieces *p, struct var *made)
{
    const struct vision *v = vision_of(g->owner);
    struct scope f = scope_in(g);
    struct heads cut;
    cut.q = local(&f, chunks(g, h.q, (int)p->count));
    cut.k = local(&f, chunks(g, h.k, (int)p->count));
    cut.v = local(&f, chunks(g, h.v, (int)p->count));
    for (uint64_t i = 0; i < p->count; i++) {
        uint64_t values = p->patches[i] * v->hidden;
        struct attention_shape shape = {p->patches[i], v->heads, v->heads, v->hidden / v->heads};
        struct heads one;
        one.q = part_of(g, cut.q, values);
        one.k = part_of(g, cut.k, values);
        one.v = part_of(g, cut.v, values);
        made[i] = taken(attend(g, one, &shape));
        var_drop(g, &one.q);
        var_drop(g, &one.k);
        var_drop(g, &one.v);
    }
    ends(&f);
}

static const struct pieces *pieces_of(const struct block_call *call)
{
    const struct tower *w = call->trainer->tower;
    const struct vision *v = vision_of(call->trainer);
    for (uint64_t i = 0; i < v->full; i++)
        if (v->full_at[i] == (uint64_t)call->block)
            return &w->whole;
    return has_windows(call->trainer) ? &w->windows : &w->whole;
}

static struct var block_attention(struct graph *g, struct var x, const struct block_call *call)
{
    const struct trainer *t = call->trainer;
    const struct vision_parameters *p = &t->tower->blocks[call->block];
    const struct pieces *pieces = pieces_of(call);
    struct var *made = NEW(g->machine->arena, struct var, (ptrdiff_t)pieces->count);
    struct scope f = scope_in(g);
    struct var argument = taken(x); // which Module.__call__ holds until it is over
    struct heads h = project(&f, argument, p);
    struct heads with_places = turned(g, h, &t->tower->arguments);
    assign(&f, &h.q, with_places.q);
    assign(&f, &h.k, with_places.k);
    attend_apart(g, h, pieces, made);
    struct var out = local(&f, unnamed(op_join_all(g, made, pieces->count)));
    assign(&f, &out, linear(g, out, p->proj, p->proj_bias));
    out = returns(&f, out);
    for (uint64_t i = pieces->count; i > 0; i--)
        var_drop(g, &made[i - 1]);
    var_drop(g, &argument);
    return out;
}

struct var tower_mlp(struct graph *g, struct var x, const struct vision_parameters *p)
{
    struct scope f = scope_in(g);
    x = local(&f, x);
    struct var active;
    if (p->gate < 0) {
        active = activation(g, linear(g, x, p->fc1, p->fc1_bias));
    } else { // modeling_qwen2_5_vl.py: patches are rows of a matrix
        g->flat = true;
        active = activation(g, linear(g, x, p->gate, p->gate_bias));
        active = multiply(g, active, linear(g, x, p->up, p->up_bias));
        g->flat = false;
    }
    return returns(&f, linear(g, active, p->fc2, p->fc2_bias));
}

static void vision_block(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct block_call *call = what;
    const struct vision_parameters *p = &call->trainer->tower->blocks[call->block];
    struct scope f = scope_in(g);
    struct var normed = tower_norm(g, in, p->norm, p->norm_bias);
    struct var hidden = local(&f, add(g, in, block_attention(g, normed, call)));
    normed = tower_norm(g, hidden, p->norm2, p->norm2_bias);
    assign(&f, &hidden, add(g, hidden, tower_mlp(g, normed, p)));
    *out = taken(returns(&f, hidden));
}

// ------------------------------------------------------------------ the tower

// Four patches become one token.
static struct var merge(struct graph *g, struct var x, const struct vision_parameters *p)
{
    struct scope f = scope_in(g);
    struct var normed = local(&f, tower_norm(g, x, p->norm, p->norm_bias));
    struct var active = activation(g, linear(g, normed, p->fc1, p->fc1_bias));
    return returns(&f, linear(g, active, p->fc2, p->fc2_bias));
}

// A feature for which there is no layer left is made, but no gradient comes back.
static void note_feature(struct trainer *t, struct var hidden, int block)
{
    const struct vision *v = vision_of(t);
    struct graph *g = &t->graph;
    bool recording = g->recording;
    for (uint64_t i = 0; i < v->deepstack; i++) {
        if (v->deepstack_after[i] != (uint64_t)block)
            continue;
        g->recording = recording && i < t->job->model.layers;
        t->tower->features[t->tower->feature_count++] =
            taken(merge(g, hidden, &t->tower->mergers[i]));
    }
    g->recording = recording;
}

void tower_blocks(struct trainer *t, struct scope *f, struct var *hidden)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    bool checkpointing = t->job->checkpointing && g->recording;
    int blocks = unit_number(t, PART_VISION);
    g->shared_arguments[ARGUMENT_POSITIONS].storage = NULL; // those of the text come later
    g->shared_arguments[ARGUMENT_COSINE] = w->arguments.cosine;
    g->shared_arguments[ARGUMENT_SINE] = w->arguments.sine;
    g->kind = checkpointing || !g->recording ? MEMORY_WORKING : MEMORY_SAVED;
    for (int i = 0; i < (int)vision_of(t)->depth; i++) {
        struct var next;
        int unit = blocks < 0 ? -1 : blocks + i;
        unit_enter(t, unit);
        assign(f, hidden, unit_mark(t, *hidden, unit, true));
        if (checkpointing)
            next = graph_checkpoint(g, *hidden, w->kind->block, &w->calls[i]);
        else
            w->kind->block(g, &next, *hidden, &w->calls[i]);
        unit_leave(t, unit);
        assign(f, hidden, unit_mark(t, unnamed(next), unit, false));
        note_feature(t, *hidden, i);
    }
    g->kind = MEMORY_WORKING;
    g->shared_arguments[ARGUMENT_COSINE] = g->shared_arguments[ARGUMENT_SINE] =
        (struct var){NULL, NO_NODE, 0, 0};
}

static struct var interpolated_positions(struct trainer *t, struct var indices, struct var weights)
{
    struct graph *g = &t->graph;
    struct var rows = unnamed(op_embedding(g, t->tower->stem.positions, indices));
    return sum_rows(g, multiply_constant(g, rows, weights), rows.elements / 4);
}

// Rows of four patches in another order; the numbers are the host's, and come to the card for this.
static struct var reordered(struct graph *g, struct var x, uint64_t rows)
{
    bool recording = g->recording;
    struct var numbers = constant(g, rows, 8);
    g->recording = recording && x.node != NO_NODE;
    struct var out = index_rows(g, x, rows, (struct var){NULL, NO_NODE, 8, rows});
    g->recording = recording;
    return after(g, out, numbers);
}

static void reorder_arguments(struct graph *g, struct layer_arguments *a, uint64_t rows)
{
    struct var cosine = taken(reordered(g, a->cosine, rows));
    struct var sine = taken(reordered(g, a->sine, rows));
    var_drop(g, &a->cosine);
    var_drop(g, &a->sine);
    a->cosine = cosine;
    a->sine = sine;
}

static struct var leaf_of(struct graph *g, struct var x)
{
    struct node *leaf = graph_add(g, &operation_pass);
    graph_keep(g, leaf, x.storage);
    if (leaf)
        x.node = (int32_t)(leaf - g->nodes);
    return x;
}

// Qwen2_5_VisionTransformerPretrainedModel.forward.
static void run_windowed_tower(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    uint64_t rows = w->patches / (vision_of(t)->merge * vision_of(t)->merge);
    struct scope f = scope_in(g);
    local(&f, places_of_patches(g, w->patches));
    local(&f, constant(g, w->images + 1, 4));                    // where each image ends
    local(&f, made_of(g, constant(g, w->windows.count + 1, 4))); // and each window
    struct var embedded = embed_pixels(t);
    struct var hidden = local(&f, has_leaf(t) ? leaf_of(g, embedded) : embedded);
    assign(&f, &hidden, reordered(g, hidden, rows));
    rotary_of_patches(t);
    reorder_arguments(g, &w->arguments, rows);
    tower_blocks(t, &f, &hidden);
    struct var merged = local(&f, merge(g, hidden, &w->stem));
    assign(&f, &merged, reordered(g, merged, rows));
    w->merged = taken(merged);
    ends(&f);
    var_drop(g, &w->arguments.cosine);
    var_drop(g, &w->arguments.sine);
}

// Qwen3VLVisionModel.forward.
static void run_tower(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    struct scope f = scope_in(g);
    struct var indices, weights;
    interpolate(t, &indices, &weights);
    indices = local(&f, unnamed(indices));
    weights = local(&f, unnamed(weights));
    local(&f, places_of_patches(g, w->patches));
    local(&f, constant(g, w->images + 1, 4)); // where each image ends
    struct var hidden = local(&f, embed_pixels(t));
    struct var learned = local(&f, interpolated_positions(t, indices, weights));
    assign(&f, &hidden, add(g, hidden, cast(g, learned, hidden.width)));
    rotary_of_patches(t);
    tower_blocks(t, &f, &hidden);
    w->merged = taken(merge(g, hidden, &w->stem));
    w->last = taken(hidden);
    ends(&f);
    var_drop(g, &w->arguments.cosine);
    var_drop(g, &w->arguments.sine);
}

static const struct tower_kind deep_tower = {run_tower, vision_block};
static const struct tower_kind windowed_tower = {run_windowed_tower, vision_block};

static const struct tower_kind *kind_of(const struct trainer *t)
{
    if (model_has(&t->job->model, FEATURE_VISION_SIGLIP))
        return &siglip_tower;
    return has_windows(t) ? &windowed_tower : &deep_tower;
}

// ------------------------------------------------------------------ images in the text

// Qwen3VLModel.forward, up to the model of text.
struct var with_pictures(struct trainer *t, struct var embedded)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    if (!has_pictures(t))
        return same(embedded);
    bool recording = g->recording;
    g->recording = recording && is_trained(t);
    w->kind = kind_of(t);
    w->kind->run(t);
    g->recording = recording;
    struct var tokens = borrowed(w->merged);
    if (has_grids(t)) // split by image, then joined again
        tokens = copy(g, relayout(g, tokens));
    w->tokens = taken(cast(g, tokens, embedded.width));
    if (!model_has(&t->job->model, FEATURE_VISION_QWEN3))
        var_drop(g, &w->merged);
    w->mask = taken(constant(g, job_tokens(t->job), 1));
    w->no_video = taken(constant(g, job_tokens(t->job), 1));
    return unnamed(op_fill_rows(g, embedded, w->mask, w->tokens));
}

void drop_pictures(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    if (!has_pictures(t))
        return;
    var_drop(g, &w->last);
    var_drop(g, &w->merged);
    for (int i = 0; i < w->feature_count; i++)
        var_drop(g, &w->features[i]);
    w->feature_count = 0;
    var_drop(g, &w->tokens);
    var_drop(g, &w->mask);
    var_drop(g, &w->no_video);
    var_drop(g, &w->positions);
}

// Qwen3VLTextModel._deepstack_process.
struct var with_deeper_features(struct trainer *t, struct var hidden, int layer)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    if (!has_pictures(t) || layer >= w->feature_count)
        return same(hidden);
    struct scope f = scope_in(g);
    struct var feature = local(&f, cast(g, borrowed(w->features[layer]), hidden.width));
    struct var out = local(&f, copy(g, hidden));
    uint64_t chosen = feature.elements / t->job->model.hidden;
    struct var rows = masked_rows(g, out, borrowed(w->mask), chosen);
    rows = local(&f, add(g, rows, feature));
    assign(&f, &out, unnamed(op_put_rows(g, taken(out), w->mask, rows)));
    return returns(&f, out);
}

// ------------------------------------------------------------------ positions in three dimensions

// get_rope_index: sequence by sequence, out of pieces for text and images.
struct var picture_positions(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    uint64_t rows = job_rows(t->job), tokens = job_sequence_tokens(t->job);
    struct scope f = scope_in(g);
    w->positions = taken(constant(g, 3 * tokens * rows, 8));
    struct var pieces = local(&f, (struct var){NULL, NO_NODE, 0, 0}),
               all = local(&f, (struct var){NULL, NO_NODE, 0, 0});
    for (uint64_t i = 0; i < rows; i++) {
        assign(&f, &pieces, constant(g, 3 * tokens, 8));
        assign(&f, &all, constant(g, 3 * tokens, 8));
    }
    struct storage *deltas = machine_take(t->machine, 8 * rows, MEMORY_WORKING);
    machine_drop(t->machine, w->deltas);
    w->deltas = deltas;
    ends(&f);
    return same((struct var){NULL, NO_NODE, 0, 0});
}

// Qwen3-VL writes into what it has, Qwen2.5-VL joins parts.
static struct var row_of_grids(struct trainer *t, uint64_t values)
{
    struct graph *g = &t->graph;
    if (!has_windows(t))
        return constant(g, values, 4);
    struct var half = constant(g, values / 2, 4);
    return after(g, constant(g, values, 4), half);
}

// Qwen3VLTextRotaryEmbedding: angles of all three, of which one row is made.
void rotary_of_grids(struct trainer *t, struct layer_arguments *to)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->job->model;
    uint64_t tokens = job_tokens(t->job), angles = 3 * tokens * m->rotary_dim / 2;
    struct scope f = scope_in(g);
    local(&f, constant(g, 3 * tokens, 4)); // positions
    local(&f, constant(g, angles, 4));
    gemm_workspace(g); // the angles are a matrix product
    struct var cosine = local(&f, made_of(g, constant(g, angles, 4)));
    struct var sine = local(&f, made_of(g, constant(g, angles, 4)));
    assign(&f, &sine, row_of_grids(t, tokens * m->rotary_dim));
    assign(&f, &cosine, row_of_grids(t, tokens * m->rotary_dim));
    to->cosine = taken(cast(g, cosine, t->width));
    to->sine = taken(cast(g, sine, t->width));
    ends(&f);
}
