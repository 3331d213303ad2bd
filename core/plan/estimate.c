// See estimate.h.
#include "core/plan/estimate.h"

#include <string.h>

#include "core/base/num.h"

// Layers of each stage in the two that the line is drawn through, and how far a step may lie under
// it.
enum { FEW_LAYERS = 1, MORE_LAYERS = 2 };
#define NEAR 0.98

static bool are_alike(const struct model *m)
{
    for (uint64_t i = 1; i < m->layers; i++)
        if (memcmp(&m->layer[i], &m->layer[0], sizeof *m->layer) != 0)
            return false;
    return true;
}

// Layers that every stage has. Where the last has fewer, the others' do not count: with all as many
// as it has, no step takes longer.
static uint64_t least_layers(const struct plan *p, const struct plan_family *f)
{
    uint64_t layers = p->job.model.layers, each = u64_divide_up(layers, f->pipeline);
    return layers % f->pipeline ? layers - u64_least(layers, each * (f->pipeline - 1)) : each;
}

bool plan_can_estimate(const struct plan *p, const struct plan_family *f)
{
    static const char *const cut[] = {"last-stage-layers", "virtual-pp", "pp-rank"};
    for (ptrdiff_t i = 0; i < COUNT_OF(cut); i++)
        if (plan_is_given(p, cut[i]))
            return false;
    return p->job.recipe == RECIPE_MEGATRON && !p->real_lengths && !p->request.exhaustive &&
           !f->refused && least_layers(p, f) > MORE_LAYERS && are_alike(&p->job.model);
}

bool plan_has_estimate(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->estimate_count; i++) {
        bool same = true;
        for (int d = 0; d < PLAN_DIALS; d++)
            same &= plan_dials[d].same_memory || g->estimates[i].dial[d] == c->dial[d];
        if (same)
            return true;
    }
    return false;
}

// The words of a candidate with so many layers, all stages with as many.
static struct str words_with(struct arena *a, const struct plan_candidate *c, uint64_t layers)
{
    struct buf b = buf_in(a);
    for (struct str_cut cut = {.tail = plan_words(a, c)}; cut.tail.n;) {
        cut = str_cut(cut.tail, ' ');
        if (!str_is(str_cut(cut.head, '=').head, "last-stage-layers"))
            buf_printf(&b, "%.*s ", STR_ARGS(cut.head));
    }
    uint64_t all = layers * c->family->pipeline;
    buf_printf(&b, "layers=%llu", (unsigned long long)all);
    return buf_str(&b);
}

struct few_layers {
    bool timed;                  // else room is looked for
    double seconds[2], bytes[2]; // of the two
};

static bool try_few(struct few_layers *found, struct arena scratch, const struct plan *p,
                    const struct plan_candidate *c, struct error *e)
{
    static const uint64_t layers[2] = {FEW_LAYERS, MORE_LAYERS};
    for (int i = 0; i < 2; i++) {
        struct arena own = scratch;
        struct job *job = NEW(&own, struct job, 1);
        struct prediction *q = NEW(&own, struct prediction, 1);
        if (!plan_job_of(job, &own, p, words_with(&own, c, layers[i]), e) ||
            !(found->timed ? predict_time : predict_room)(q, &own, job, e))
            return false;
        found->seconds[i] = q->time.seconds;
        found->bytes[i] = (double)q->floor_bytes;
    }
    return true;
}

// On the line through two points.
static double extended(const double at[2], uint64_t layers)
{
    double each = (at[1] - at[0]) / (MORE_LAYERS - FEW_LAYERS);
    return at[0] + each * (double)(layers - FEW_LAYERS);
}

bool plan_estimate(const struct plan *p, struct plan_look look, struct arena scratch,
                   struct error *failure)
{
    struct plan_group *g = look.group;
    struct plan_candidate c = plan_node(g, look.node);
    uint64_t layers = least_layers(p, g->family);
    struct few_layers found = {.timed = true};
    struct error e = {0};
    if (!try_few(&found, scratch, p, &c, &e)) {
        plan_note_refusal(g, look.node, &e, failure);
        return false;
    }
    struct plan_floor f = {.family = g->family, .batch = c.batch, .accum = c.accum};
    memcpy(f.dial, c.dial, sizeof f.dial);
    f.seconds = NEAR * extended(found.seconds, layers);
    for (int d = 0; d < PLAN_DIALS; d++)
        if (plan_dials[d].same_memory)
            f.dial[d] = g->family->dials[d][0];
    g->estimates[g->estimate_count++] = f;
    return true;
}

bool plan_estimate_room(uint64_t *bytes, struct arena scratch, const struct plan *p,
                        const struct plan_candidate *c, struct error *e)
{
    struct few_layers found = {.timed = false};
    if (!try_few(&found, scratch, p, c, e))
        return false;
    double most = NEAR * extended(found.bytes, least_layers(p, c->family));
    *bytes = (uint64_t)(found.bytes[0] > most ? found.bytes[0] : most);
    return true;
}
