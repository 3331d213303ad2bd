// transformers 5.17, base_model_tp_plan of the configurations: queries, keys, values, gate and up
// are cut by outputs (heads, and as many of the MLP's inner values), output and down by inputs, the
// head by words, and with it an embedding that it is tied to (configuration_utils.py); norms are
// whole.
#include "core/models/tensor_share.h"

struct cut_row {
    ptrdiff_t role;
    enum tensor_cut cut;
};

#define AT(member) offsetof(struct layer_parameters, member)

static const struct cut_row rows[] = {
    {AT(q), CUT_OUTPUTS},      {AT(q_bias), CUT_OUTPUTS},  {AT(k), CUT_OUTPUTS},
    {AT(k_bias), CUT_OUTPUTS}, {AT(v), CUT_OUTPUTS},       {AT(v_bias), CUT_OUTPUTS},
    {AT(o), CUT_INPUTS},       {AT(gate), CUT_OUTPUTS},    {AT(gate_bias), CUT_OUTPUTS},
    {AT(up), CUT_OUTPUTS},     {AT(up_bias), CUT_OUTPUTS}, {AT(down), CUT_INPUTS},
};

static enum tensor_cut cut_of(const struct tensor *row, const struct model *m)
{
    bool tied = model_has(m, FEATURE_TIED) || m->unties_words;
    if (row->part == PART_EMBEDDING)
        return tied ? CUT_WORDS : CUT_NONE;
    if (row->part == PART_HEAD)
        return m->labels ? CUT_NONE : CUT_WORDS;
    if (row->part == PART_EXPERTS) // of every expert's gate, up and down, in columns
        return CUT_INPUTS;
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (row->role == rows[i].role)
            return rows[i].cut;
    return CUT_NONE;
}

const struct job *job_share(const struct job *p, struct arena *a)
{
    if (!job_cuts_tensors(p))
        return p;
    struct job *share = NEW(a, struct job, 1);
    *share = *p;
    struct tensor *tensors = NEW(a, struct tensor, p->parameters.tensor_count);
    for (ptrdiff_t i = 0; i < p->parameters.tensor_count; i++) {
        struct tensor *row = &tensors[i];
        *row = p->parameters.tensors[i];
        row->cut = cut_of(row, &p->model);
        if (row->cut == CUT_NONE)
            continue;
        row->shape[row->cut == CUT_INPUTS] /= p->tensor;
        row->elements /= p->tensor;
    }
    share->parameters.tensors = tensors;
    share->model.experts.intermediate /= p->tensor;
    share->model.heads /= p->tensor;
    share->model.kv_heads /= p->tensor;
    return share;
}
