// The models' forward pass from tokens to the last hidden state, written as transformers 5.17 reads
// (modeling_qwen3.py and the families that share its shape): one operator a call, with Python's
// lifetimes (scope.h). What a layer is, is in layer.c and the files of other shapes.
#include "core/models/forward.h"

#include "core/models/kin.h"
#include "core/models/units.h"
#include "core/models/vision/vision.h"
#include "core/ops/scratch.h"

// ------------------------------------------------------------------ what layers are given

// Those of split sequences come with the batch.
static struct var positions_of(struct trainer *t, uint64_t tokens)
{
    struct graph *g = &t->graph;
    if (t->ring.ranks > 1)
        return same(ring_positions(&t->ring));
    if (job_shifts_early(t->job))
        return (struct var){NULL, NO_NODE, 8, tokens};
    return made_of(g, constant(g, tokens, 8));
}

// Cosine and sine of the rotary embedding: computed in fp32, kept in the compute type.
static void rotary(struct trainer *t, uint64_t tokens, struct layer_arguments *to)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->job->model;
    units_see_rotary(t);
    if (model_has(m, FEATURE_ROTARY_COMPLEX)) {
        complex_rotary(t, tokens, to);
        return;
    }
    bool halves = model_has(m, FEATURE_ROTARY_HALVES);
    uint64_t values = tokens * m->rotary_dim / (halves ? 2 : 1);
    uint32_t width = model_has(m, FEATURE_ROTARY_WIDE) ? 4 : t->width;
    struct scope f = scope_in(g);
    local(&f, constant(g, tokens, 4)); // positions
    struct var angles = local(&f, constant(g, tokens * m->rotary_dim / 2, 4));
    gemm_workspace(g); // the angles are a matrix product
    local(&f, halves ? angles : constant(g, values, 4));
    struct var cosine = local(&f, made_of(g, constant(g, values, 4)));
    struct var sine = local(&f, made_of(g, constant(g, values, 4)));
    to->cosine = taken(width == 4 ? cosine : constant(g, values, width));
    to->sine = taken(width == 4 ? sine : constant(g, values, width));
    ends(&f);
}

// Everything that layers are given besides their input.
static struct var make_arguments(struct trainer *t)
{
    // without padding, sequences follow each other in one row; generate numbers those of each row
    bool each = t->job->loss == LOSS_POLICY || t->cache;
    uint64_t tokens = each ? job_tokens(t->job) : job_sequence_tokens(t->job);
    struct layer_arguments *full = &t->arguments[LAYER_FULL];
    struct layer_arguments *sliding = &t->arguments[LAYER_SLIDING];
    struct var positions =
        taken(has_pictures(t) && has_grids(t) ? picture_positions(t) : positions_of(t, tokens));
    if (model_has(&t->job->model, FEATURE_SCORES_BIASED))
        full->cosine = taken(biases_of_keys(t));
    make_masks(t);
    if (model_has(&t->job->model, FEATURE_NO_ROTARY))
        return positions;
    if (has_grids(t))
        rotary_of_grids(t, full);
    else
        rotary(t, tokens, full);
    if (model_has(&t->job->model, FEATURE_LOCAL_ROTARY)) {
        rotary(t, tokens, sliding);
    } else {
        sliding->cosine = var_share(full->cosine);
        sliding->sine = var_share(full->sine);
    }
    return positions;
}

static struct var embed(struct trainer *t)
{
    struct graph *g = &t->graph;
    bool scales = model_has(&t->job->model, FEATURE_EMBEDDING_SCALE); // within the embedding
    struct var rows = op_embedding(g, t->embedding, t->ids);
    bool cut = g->parameters[t->embedding].cut == CUT_WORDS; // a rank has rows of its own words
    struct var plain = unnamed(cut ? op_summed(g, rows) : rows);
    if (!scales)
        plain = op_leaf(g, plain, t->embedding);
    if (model_has(&t->job->model, FEATURE_ALIBI))
        return rms_norm(g, plain, t->embedding + 1);
    if (model_has(&t->job->model, FEATURE_MULTIPLIERS))
        return scale(g, plain);
    if (!scales)
        return plain;
    struct var factor = {NULL, NO_NODE, t->width, 1}; // a buffer, cast where it has another type
    if (job_is_mixed(t->job))
        factor = constant(g, 1, t->width);
    return op_leaf(g, multiply_constant(g, plain, factor), t->embedding);
}

// ------------------------------------------------------------------ the model

typedef void layer_forward(struct graph *g, struct var *out, struct var in, void *what);

// The first row that fits.
static layer_forward *layer_of(const struct model *m)
{
    static const struct {
        feature_set has;
        layer_forward *layer;
    } rows[] = {
        {FEATURE_HEADS_AMONG, falcon_layer},  {FEATURE_SCORES_BIASED, mpt_layer},
        {FEATURE_QUERIES_SCALED, opt_layer},  {FEATURE_PARALLEL, parallel_layer},
        {FEATURE_PARTS_HELD, stablelm_layer}, {FEATURE_HEADS_LAST, gpt_layer},
        {FEATURE_ALIBI, bloom_layer},
    };
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (model_has(m, rows[i].has))
            return rows[i].layer;
    return decoder_layer;
}

// Without a graph nothing is recomputed.
static struct var layers_of(struct trainer *t, struct var embedded)
{
    struct graph *g = &t->graph;
    bool checkpointing = t->job->checkpointing && g->recording;
    layer_forward *layer = layer_of(&t->job->model);
    struct scope f = scope_in(g);
    struct var hidden = local(&f, embedded), output = local(&f, (struct var){NULL, NO_NODE, 0, 0});
    g->checkpoints_on_host = t->job->checkpoint_offload;
    for (int i = 0; i < (int)t->job->model.layers; i++) {
        struct var next;
        const struct layer_arguments *also = arguments_of(t, i);
        g->shared_arguments[ARGUMENT_COSINE] = also->cosine;
        g->shared_arguments[ARGUMENT_SINE] = also->sine;
        g->shared_arguments[ARGUMENT_MASK] = also->mask;
        g->kind = checkpointing || !g->recording ? MEMORY_WORKING : MEMORY_SAVED;
        unit_enter(t, i);
        assign(&f, &hidden, unit_mark(t, hidden, i, true));
        g->kin = checkpointing ? kin_of(t, i) : (struct kin){0};
        if (checkpointing)
            next = graph_checkpoint(g, hidden, layer, &t->calls[i]);
        else
            layer(g, &next, hidden, &t->calls[i]);
        unit_leave(t, i);
        assign(&f, &hidden, unit_mark(t, unnamed(next), i, false));
        if (model_has(&t->job->model, FEATURE_VISION_QWEN3))
            assign(&f, &output, hidden); // layer_outputs
        assign(&f, &hidden, with_deeper_features(t, hidden, i));
    }
    g->kin = (struct kin){0};
    g->checkpoints_on_host = false;
    return returns(&f, hidden);
}

// TRL asks for the routers' logits of what is trained.
static void ask_for_router_logits(struct trainer *t)
{
    bool asked = job_adds_router_loss(t->job) && t->graph.recording;
    t->router_logits =
        asked ? NEW(t->machine->arena, struct var, (ptrdiff_t)t->job->model.layers) : NULL;
}

// For past_key_values, which the output has until the loss is known.
static void make_room_for_keys(struct trainer *t)
{
    bool handed = job_is_old_bigcode(t->job) && t->job->checkpointing && t->graph.recording;
    t->handed_out =
        handed ? NEW(t->machine->arena, struct var, (ptrdiff_t)t->job->model.layers) : NULL;
}

static void drop_handed_out(struct trainer *t)
{
    for (int i = 0; t->handed_out && i < (int)t->job->model.layers; i++)
        var_drop(&t->graph, &t->handed_out[i]);
    t->handed_out = NULL;
}

// With learned positions, whose rows keep their name as the embedding does, and what is left out at
// random.
static struct var embedded_in_place(struct scope *f, struct var *embedded, struct var positions)
{
    struct graph *g = f->graph;
    const struct trainer *t = g->owner;
    if (t->positions < 0)
        return t->job->model.dropouts.embedding ? dropout(g, *embedded) : same(*embedded);
    struct var rows = local(f, learned_positions(g, positions));
    if (model_has(&t->job->model, FEATURE_WORDS_PROJECTED))
        assign(f, embedded, linear(g, *embedded, t->positions + 2, -1));
    struct var sum = add(g, *embedded, expand(g, rows, embedded->elements));
    return t->job->model.dropouts.embedding ? dropout(g, sum) : sum;
}

static void drop_angles(struct trainer *t)
{
    for (int i = 0; i < LAYER_KINDS; i++) {
        var_drop(&t->graph, &t->arguments[i].cosine);
        var_drop(&t->graph, &t->arguments[i].sine);
    }
    t->graph.shared_arguments[ARGUMENT_COSINE].storage = NULL;
    t->graph.shared_arguments[ARGUMENT_SINE].storage = NULL;
}

struct output model_forward(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct scope f = scope_in(g);
    int root = unit_number(t, PART_NORMS), embedding = unit_number(t, PART_EMBEDDING);
    g->recording = g->keeping = !t->is_reference && !t->without_graph;
    ask_for_router_logits(t);
    make_room_for_keys(t);
    g->kind = MEMORY_WORKING;
    hold_pictures(t);
    unit_enter(t, root);
    unit_enter(t, embedding);
    struct var embedded = local(&f, unit_mark(t, embed(t), embedding, false));
    unit_leave(t, embedding);
    assign(&f, &embedded, with_pictures(t, embedded));
    struct var positions = make_arguments(t);
    g->shared_arguments[ARGUMENT_POSITIONS] = positions;
    struct var first = embedded_in_place(&f, &embedded, positions);
    struct var hidden = local(&f, layers_of(t, first));
    if (g->recording)
        machine_phase(t->machine, PHASE_LOSS);
    int tail = unit_of_tail(t);
    unit_enter(t, tail);
    assign(&f, &hidden, unit_mark(t, hidden, tail, true));
    if (t->norm_count)
        assign(&f, &hidden, rms_norm(g, hidden, t->final_norm));
    if (t->job->task == TASK_REWARD) // the tail is this norm alone
        assign(&f, &hidden, unit_mark(t, hidden, tail, false));
    if (model_has(&t->job->model, FEATURE_WORDS_PROJECTED))
        assign(&f, &hidden, linear(g, hidden, t->positions + 1, -1));
    var_drop(g, &t->layer_weights);
    drop_masks(t);
    drop_pictures(t);
    struct output out = {returns(&f, hidden), positions};
    if (model_has(&t->job->model,
                  FEATURE_ROTARY_PAIRS | FEATURE_SCORES_BIASED | FEATURE_KEYS_BIASED))
        drop_angles(t); // no layer keeps them
    return out;
}

void model_let_go(struct trainer *t, struct output o)
{
    var_drop(&t->graph, &o.positions);
    let_pictures_go(t);
    drop_angles(t);
    drop_handed_out(t);
}
