// Adapters of experts and routers, which transformers 5 keeps as parameters of modules that are no
// linear layers: peft 0.21 wraps such a module and has torch's parametrize hand out the weight with
// its change, made whole (tuners/lora/layer.py, ParamWrapper). All experts are one stack, W +
// scaling * B A by one baddbmm, in the weight's type; a router's change is made first and then
// added. Registering evaluates it once for a look at its shape, the module's first use once more;
// that one stays until the wrapper is left. What is allocated in which order was seen in the
// allocator's history of an unmodified job (u35 of tests/runs/real_trainers.jsonl).
//
// peft divides its alpha by the rank; where that is one, torch leaves out two products of a
// factor's size.
#include "core/ops/operation.h"

// ------------------------------------------------------------------ a stack of experts

struct fold {
    uint32_t experts, rows, columns, rank, width;
};

static struct product_shape for_stack(const struct fold *d, uint64_t rows, uint64_t columns,
                                      uint64_t depth)
{
    return (struct product_shape){rows, columns, depth, d->experts, d->width};
}

// BaddbmmBackward0. B lies with the experts last and is copied for every product that it is in.
static void fold_backward(struct graph *g, struct node *n, struct outcome *out)
{
    const struct fold *d = NODE_DETAIL(n, struct fold);
    uint64_t left = n->input_bytes[0], right = n->input_bytes[1];
    struct storage *product = take_working(g, left);
    gemm_workspace(g);
    multiplies(g, for_stack(d, d->rows, d->rank, d->columns));
    out[0].gradient = make_working(g, left, left);
    machine_drop(g->machine, product);
    product = take_working(g, right);
    machine_scratch(g->machine, left);
    multiplies(g, for_stack(d, d->rank, d->columns, d->rows));
    out[1].gradient = make_working(g, right, right);
    machine_drop(g->machine, product);
}

static const struct operation fold = {KERNELS_FOLD, fold_backward};

static struct fold shape_of(const struct graph *g, const struct parameter *p)
{
    const struct parameter *a = &g->parameters[p->adapter], *b = a + 1;
    return (struct fold){(uint32_t)p->rows, (uint32_t)b->rows, (uint32_t)a->columns,
                         (uint32_t)(a->rows / p->rows), p->width};
}

static void multiply_stack(struct graph *g, const struct fold *d, struct var left)
{
    if (g->stopped)
        return;
    machine_scratch(g->machine, var_bytes(left));
    gemm_workspace(g);
    multiplies(g, for_stack(d, d->rows, d->columns, d->rank));
}

static struct var fold_stack(struct graph *g, const struct parameter *p, const struct folded *f)
{
    const struct fold d = shape_of(g, p);
    struct node *n = graph_add_for(g, &fold, f->left);
    graph_keep(g, n, f->left.storage);
    graph_keep(g, n, f->right.storage);
    struct var out = graph_output(g, n, p->rows * p->columns, p->width);
    node_input(n, 0, f->left);
    node_input(n, 1, f->right);
    if (n)
        *NODE_DETAIL(n, struct fold) = d;
    multiply_stack(g, &d, f->left);
    return out;
}

// get_delta_factors, and the first evaluation.
static void open_stack(struct graph *g, const struct parameter *p, struct folded *f)
{
    const struct fold d = shape_of(g, p);
    struct var thin = op_reshape(g, op_parameter(g, p->adapter));
    struct var turned = op_relayout(g, op_parameter(g, p->adapter + 1));
    f->left = op_cast(g, turned, p->width);
    f->right = op_cast(g, thin, p->width);
    var_drop(g, &turned);
    var_drop(g, &thin);
    struct var whole = op_constant(g, p->rows * p->columns, p->width);
    multiply_stack(g, &d, f->left);
    var_drop(g, &whole);
}

// ------------------------------------------------------------------ a router

static struct var thin_factor(struct graph *g, int parameter)
{
    bool casts = g->autocast && g->parameters[parameter].width != 2;
    return casts ? cast_weight(g, parameter) : op_parameter(g, parameter);
}

// get_delta_weight: (B @ A) * scaling, in the weight's type. What is on the right is cast first.
static void open_matrix(struct graph *g, const struct parameter *p, struct folded *f)
{
    uint64_t elements = p->rows * p->columns;
    struct var a = thin_factor(g, p->adapter);
    struct var b = thin_factor(g, p->adapter + 1);
    struct var product = op_product(g, b, a, elements, g->parameters[p->adapter].rows);
    var_drop(g, &b);
    var_drop(g, &a);
    struct var scaled = op_scale(g, product);
    var_drop(g, &product);
    f->left = op_cast(g, scaled, p->width);
    var_drop(g, &scaled);
    struct var whole = op_constant(g, elements, p->width);
    var_drop(g, &whole);
}

// ------------------------------------------------------------------ the wrapper

static bool is_stack(const struct graph *g, const struct parameter *p)
{
    return g->parameters[p->adapter].columns != p->columns;
}

void op_fold(struct graph *g, int parameter, struct folded *f)
{
    struct parameter *p = &g->parameters[parameter];
    *f = (struct folded){0};
    if (!p->folds || g->without_adapters)
        return;
    (is_stack(g, p) ? open_stack : open_matrix)(g, p, f);
    p->folded = f;
}

struct var op_weight(struct graph *g, int parameter)
{
    const struct parameter *p = &g->parameters[parameter];
    struct folded *f = p->folded;
    if (!f)
        return op_parameter(g, parameter);
    if (!f->is_made)
        f->weight =
            is_stack(g, p) ? fold_stack(g, p, f) : op_add(g, op_parameter(g, parameter), f->left);
    f->is_made = true;
    return var_share(f->weight);
}

void op_unfold(struct graph *g, int parameter)
{
    struct folded *f = g->parameters[parameter].folded;
    if (!f)
        return;
    var_drop(g, &f->weight);
    var_drop(g, &f->left);
    var_drop(g, &f->right);
    g->parameters[parameter].folded = NULL;
}
