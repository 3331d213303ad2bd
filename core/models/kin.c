// See kin.h. A layer is what its row in the model says and what its parameters are; nothing else of
// it differs from that of others.
#include "core/models/kin.h"

#include "core/models/units.h"

enum { ROLES = sizeof(struct layer_parameters) / sizeof(int) };
_Static_assert(sizeof(struct layer_parameters) % sizeof(int) == 0, "numbers of parameters only");

static bool same_shape(const struct parameter *a, const struct parameter *b)
{
    return a->rows == b->rows && a->columns == b->columns && a->width == b->width &&
           a->tied == b->tied && a->frozen == b->frozen && a->idle == b->idle &&
           a->packed == b->packed && a->single == b->single && a->folds == b->folds;
}

static bool same_parameter(const struct graph *g, const struct parameter *a,
                           const struct parameter *b)
{
    int count = adapter_tensors(a);
    bool same = same_shape(a, b) && count == adapter_tensors(b);
    for (int i = 0; same && i < count; i++)
        same = same_shape(&g->parameters[a->adapter + i], &g->parameters[b->adapter + i]) &&
               (!a->magnitude || a->magnitude - a->adapter == b->magnitude - b->adapter);
    return same;
}

static bool same_kind(const struct layer_kind *a, const struct layer_kind *b)
{
    return a->sliding == b->sliding && a->experts == b->experts && a->unrotated == b->unrotated &&
           a->linear == b->linear;
}

// Counted from the first.
static bool same_roles(const struct layer_parameters *a, const struct layer_parameters *b)
{
    const int *of_a = (const int *)a, *of_b = (const int *)b;
    for (int i = 0; i < ROLES; i++)
        if (of_a[i] < 0 ? of_b[i] >= 0 : of_a[i] - a->first != of_b[i] - b->first)
            return false;
    return true;
}

static int count_of(const struct trainer *t, int layer)
{
    bool last = layer + 1 == (int)t->job->model.layers;
    return (last ? t->final_norm : t->layers[layer + 1].first) - t->layers[layer].first;
}

static bool are_alike(const struct trainer *t, int a, int b)
{
    const struct graph *g = &t->graph;
    const struct layer_parameters *of_a = &t->layers[a], *of_b = &t->layers[b];
    int count = count_of(t, a);
    bool alike = count == count_of(t, b) && same_roles(of_a, of_b) &&
                 same_kind(&t->job->model.layer[a], &t->job->model.layer[b]);
    for (int i = 0; alike && i < count; i++)
        alike = same_parameter(g, &g->parameters[of_a->first + i], &g->parameters[of_b->first + i]);
    return alike;
}

// Strategies are told of them in the middle of the layer.
static bool has_units_inside(const struct trainer *t, int layer)
{
    return t->job->model.layer[layer].experts &&
           (unit_of_experts(t, layer, true) >= 0 || unit_of_experts(t, layer, false) >= 0);
}

struct kin kin_of(struct trainer *t, int layer)
{
    enum { LOOKED_BACK = 8 }; // patterns of layers are no longer
    struct layer_call *calls = t->calls;
    calls[layer].like = layer + 1;
    if (has_units_inside(t, layer))
        return (struct kin){0};
    for (int i = layer - 1; i >= 0 && i >= layer - LOOKED_BACK; i--)
        if (are_alike(t, i, layer)) {
            calls[layer].like = calls[i].like;
            break;
        }
    return (struct kin){calls[layer].like, t->layers[layer].first, count_of(t, layer)};
}
