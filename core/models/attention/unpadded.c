// Rows of which some are shorter, as the package flash-attn attends: tokens that pad them are left
// out, and zeros where they were (transformers 5.17, modeling_flash_attention_utils.py,
// _upad_input; flash-attn 2.7.4, bert_padding.py, pad_input). The host counts them in every layer.
#include "core/models/forward.h"

// All tokens but a few: rows are nearly full in the worst batch. Tokens of all heads have to lie
// together.
static struct var picked(struct graph *g, struct var x, uint64_t rows, struct var numbers)
{
    const struct trainer *t = g->owner;
    bool apart = job_lays_heads_out(t->job) || model_has(&t->job->model, FEATURE_ROTARY_PART);
    return index_rows(g, apart ? copy(g, x) : same(x), rows, numbers);
}

// fa_peft_integration_check: queries first.
static struct heads in_kernels_type(struct scope *f, struct heads h)
{
    struct graph *g = f->graph;
    uint32_t width = g->wide ? 4 : 2;
    struct heads low;
    low.q = local(f, cast(g, h.q, width));
    low.k = local(f, cast(g, h.k, width));
    low.v = local(f, cast(g, h.v, width));
    return low;
}

// A single token that follows others is no row to leave anything out of; what it sees is.
struct var unpadded_attention(struct graph *g, struct heads h, const struct attention_shape *shape,
                              const struct layer_call *call)
{
    const struct model *m = &call->trainer->job->model;
    uint64_t tokens = h.q.elements / (m->heads * m->head_dim);
    uint64_t seen = h.k.elements / (m->kv_heads * m->head_dim);
    struct scope f = scope_in(g);
    struct heads low = in_kernels_type(&f, h), rows;
    struct var numbers = local(&f, unnamed(op_row_numbers(g, seen)));
    rows.k = local(&f, picked(g, low.k, seen, numbers));
    rows.v = local(&f, index_rows(g, low.v, seen, numbers));
    rows.q = local(&f, tokens == seen ? picked(g, low.q, tokens, numbers) : same(low.q));
    struct var mixed = local(&f, attend(g, rows, shape));
    if (tokens != seen)
        return returns(&f, same(mixed));
    return returns(&f, spread_rows(g, mixed, tokens, numbers));
}
