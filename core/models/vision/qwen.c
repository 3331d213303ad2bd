// The towers of Qwen3-VL and Qwen2.5-VL, as transformers 5.17 runs them (modeling_qwen3_vl.py,
// whose classes modeling_qwen3_vl_moe.py has too, modeling_qwen2_5_vl.py and vision_utils.py): the
// patches of all images in one row, attention for each image or window by itself, mergers that make
// a token of four patches, and the features of three earlier blocks.
#include "core/models/forward.h"
#include "core/models/units.h"
#include "core/models/vision/tower.h"

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

const struct tower_kind deep_tower = {run_tower, vision_block};
const struct tower_kind windowed_tower = {run_windowed_tower, vision_block};
