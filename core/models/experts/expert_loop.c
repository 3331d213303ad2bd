// Experts as modules of their own, called one after another, as transformers 4 has them
// (modeling_mixtral.py of 4.48.1, MixtralSparseMoeBlock; Qwen's read the same). Rows are assumed to
// be as many for each; what is kept of all of them together does not depend on it.
#include "core/models/experts/expert_loop.h"

// MixtralBlockSparseTop2MLP.
static struct var one_expert(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    uint64_t inner = m->experts.intermediate;
    struct scope f = scope_in(g);
    struct var gate = activation(g, part_product(g, x, p->gate_up, m->hidden, inner));
    struct var up = part_product(g, x, p->gate_up, m->hidden, inner);
    struct var both = local(&f, multiply(g, gate, up));
    return returns(&f, part_product(g, both, p->experts_down, inner, m->hidden));
}

struct var experts_in_turn(struct graph *g, struct var x, const struct routing *r,
                           const struct layer_call *call)
{
    const struct var nothing = {NULL, NO_NODE, 0, 0};
    uint64_t count = call->trainer->job->model.experts.count, rows = r->rows / count;
    struct scope f = scope_in(g);
    struct var sum = constant(g, x.elements, x.width);
    local(&f, constant(g, r->rows * count, 8)); // expert_mask
    struct var places = local(&f, nothing), states = local(&f, nothing), out = local(&f, nothing);
    for (uint64_t i = 0; i < count; i++) {
        assign(&f, &places, constant(g, 2 * rows, 8)); // torch.where: two views of it
        struct var which = places;
        which.elements = rows;
        struct var row = reshape(g, same(x)); // [None, top_x]: of one dimension more
        assign(&f, &states, index_rows(g, row, r->tokens, borrowed(which)));
        struct var made = one_expert(g, states, call);
        struct var weights = index_rows(g, r->weights, r->rows, borrowed(which));
        assign(&f, &out, multiply(g, made, weights));
        sum = add_to_rows(g, sum, out, borrowed(which));
    }
    return returns(&f, sum);
}
