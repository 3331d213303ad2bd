// Images on their way into the text, as transformers 5.17 has them (modeling_qwen3_vl.py and its
// kin): pixels come, a tower (qwen.c, siglip.c) makes tokens of them, which take their places among
// the embedded ones; the features of earlier blocks are given to the first layers of the text, and
// positions have three dimensions.
//
// The convolution over patches has its kernel for a stride, so that it is a product; what cuDNN
// takes for it meanwhile is not known.
#include "core/base/num.h"
#include "core/models/vision/tower.h"
#include "core/ops/scratch.h"

bool has_pictures(const struct trainer *t)
{
    return t->tower && t->tower->images;
}

// ------------------------------------------------------------------ pixels

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

// ------------------------------------------------------------------ images in the text

static const struct tower_kind *kind_of(const struct trainer *t)
{
    if (model_has(&t->job->model, FEATURE_VISION_SIGLIP))
        return &siglip_tower;
    return has_windows(t) ? &windowed_tower : &deep_tower;
}

static bool is_trained(const struct trainer *t)
{
    const struct tower *w = t->tower;
    const struct parameter *all = t->graph.parameters;
    return !all[w->first].frozen || all[w->blocks[0].fc2].adapter || has_leaf(t);
}

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
