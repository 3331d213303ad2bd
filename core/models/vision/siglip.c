// Gemma 3's vision tower as transformers 5.17 runs it (modeling_siglip.py), and its projector
// (modeling_gemma3.py): images of one size in a batch, 256 tokens each.
//
// The convolution's channels come before its patches, and every sum with a residual keeps that
// layout, so that each norm copies its input first.
#include "core/models/forward.h"
#include "core/models/vision/tower.h"

static struct var siglip_attention(struct graph *g, struct var x, const struct block_call *call)
{
    const struct trainer *t = call->trainer;
    const struct vision *v = &t->job->model.vision;
    const struct vision_parameters *p = &t->tower->blocks[call->block];
    struct attention_shape shape = {t->tower->patches, v->heads, v->heads, v->hidden / v->heads};
    struct scope f = scope_in(g);
    x = local(&f, x);
    struct heads h;
    h.q = local(&f, linear(g, x, p->q, p->q_bias));
    h.k = local(&f, linear(g, x, p->k, p->k_bias));
    h.v = local(&f, linear(g, x, p->v, p->v_bias));
    struct var mixed = local(&f, attend(g, h, &shape));
    assign(&f, &mixed, linear(g, mixed, p->proj, p->proj_bias));
    return returns(&f, mixed);
}

static void siglip_block(struct graph *g, struct var *out, struct var in, void *what)
{
    const struct block_call *call = what;
    const struct vision_parameters *p = &call->trainer->tower->blocks[call->block];
    struct scope f = scope_in(g);
    struct var hidden = local(&f, tower_norm(g, in, p->norm, p->norm_bias));
    assign(&f, &hidden, siglip_attention(g, hidden, call));
    assign(&f, &hidden, add(g, in, hidden));
    struct var residual = local(&f, hidden);
    assign(&f, &hidden, tower_norm(g, hidden, p->norm2, p->norm2_bias));
    assign(&f, &hidden, tower_mlp(g, hidden, p));
    assign(&f, &hidden, add(g, residual, hidden));
    *out = taken(returns(&f, hidden));
}

// SiglipVisionEmbeddings: one row of positions for all images.
static struct var embed_patches(struct trainer *t)
{
    struct graph *g = &t->graph;
    const struct tower *w = t->tower;
    struct scope f = scope_in(g);
    struct var ids = {NULL, NO_NODE, 8, t->job->model.vision.positions};
    struct var patches = local(&f, embed_pixels(t));
    struct var positions = unnamed(op_embedding(g, w->stem.positions, ids));
    return returns(&f, add_row(g, patches, positions));
}

// Gemma3MultiModalProjector: patches averaged to tokens, normed and projected.
static struct var project_tokens(struct trainer *t, struct var hidden)
{
    struct graph *g = &t->graph;
    const struct model *m = &t->job->model;
    const struct tower *w = t->tower;
    struct image_grid grid = {0, 0};
    uint64_t tokens = w->images * image_tokens(m, grid);
    struct scope f = scope_in(g);
    struct var patches = local(&f, copy(g, relayout(g, hidden)));
    struct var pooled = local(&f, unnamed(op_pool(g, patches, tokens * m->vision.hidden)));
    struct var normed = local(&f, rms_norm(g, pooled, w->stem.norm2));
    // of several images, rows of a matrix have to be laid out together
    struct var flat = w->images > 1 ? copy(g, relayout(g, normed)) : same(normed);
    struct var weight = op_parameter(g, w->stem.proj);
    return returns(&f, product(g, flat, weight, tokens * m->hidden, m->vision.hidden));
}

// SiglipMultiheadAttentionPoolingHead: one query over keys and values that are projected together
// and laid out anew. Its output keeps them until the projector has returned.
static struct var pool_patches(struct graph *g, struct var last)
{
    struct var both = constant(g, 2 * last.elements, last.width);
    return after(g, constant(g, 2 * last.elements, last.width), both);
}

static void run_siglip(struct trainer *t)
{
    struct graph *g = &t->graph;
    struct tower *w = t->tower;
    struct scope f = scope_in(g);
    struct var embedded = local(&f, embed_patches(t));
    struct var hidden = local(&f, embedded);
    tower_blocks(t, &f, &hidden);
    struct var last = local(&f, tower_norm(g, hidden, w->stem.norm, w->stem.norm_bias));
    forget(&f, &embedded);
    forget(&f, &hidden);
    bool pools = model_has(&t->job->model, FEATURE_VISION_POOLED);
    struct var none = {NULL, NO_NODE, 0, 0};
    struct var pooled = local(&f, pools ? pool_patches(g, last) : none);
    w->merged = taken(project_tokens(t, last));
    forget(&f, &pooled);
    ends(&f);
}

const struct tower_kind siglip_tower = {run_siglip, siglip_block};
