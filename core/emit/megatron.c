// Sizes for Megatron where nobody gives them: tensor and context parallel by arithmetic that the
// file prints, so that a default is plausible. Nothing here says that a job fits; sizes that are
// given are predicted.
//
// Bytes are those of Megatron's distributed optimizer (docs/user-guide/features/dist_optimizer.md)
// and training/theoretical_memory_usage.py: bf16 weights and fp32 gradients, six a parameter, and
// twelve of optimizer over the ranks that share it; logits in bf16 and fp32, their softmax and
// gradient, twelve a token and word; a recomputed layer's input, and of the layer that is computed
// 38 copies of its hidden state, the most that was published for these models.
#include "core/base/num.h"
#include "core/emit/draft.h"

enum {
    WEIGHT_AND_GRADIENT = 6,
    OPTIMIZER = 12,
    LOGITS = 12,
    WORKING_COPIES = 38,
    FILLED_PERCENT = 80, // of a card, at most
};

struct sizes {
    uint64_t tp, cp;
    uint64_t state, logits, activations;
};

static uint64_t state_bytes(const struct draft *j, uint64_t parameters, uint64_t ways)
{
    uint64_t shard = u64_divide_up(parameters, ways),
             shared = job_ranks(j->job) / ways ? job_ranks(j->job) / ways : 1;
    uint64_t optimizer = draft_is(j, IS_OFFLOAD_OPTIMIZER, 0) ? 0 : OPTIMIZER;
    return sat_add(sat_mul(shard, WEIGHT_AND_GRADIENT), sat_mul(shard, optimizer) / shared);
}

static uint64_t layer_bytes(const struct model *m, bool recomputed)
{
    uint64_t wide = model_has(m, FEATURE_EXPERTS) ? m->experts.per_token * m->experts.intermediate
                                                  : m->intermediate;
    uint64_t kept = recomputed ? 2 * m->hidden : 18 * m->hidden + 4 * wide;
    return sat_add(sat_mul(kept, m->layers), 2 * m->hidden * WORKING_COPIES);
}

static struct sizes sizes_of(const struct draft *j, uint64_t tp, uint64_t cp)
{
    const struct model *m = &j->job->model;
    uint64_t experts = j->job->parameters.by_part[PART_EXPERTS];
    uint64_t tokens = u64_divide_up(sat_mul(j->job->batch, j->job->context), cp);
    uint64_t layers = layer_bytes(m, draft_is(j, IS_CHECKPOINTING, 0));
    return (struct sizes){
        .tp = tp,
        .cp = cp,
        .state = sat_add(state_bytes(j, j->job->parameters.total - experts, tp),
                         state_bytes(j, experts, j->job->expert)),
        .logits = sat_mul(sat_mul(tokens, m->vocab), LOGITS) / tp,
        .activations = sat_mul(tokens, layers) / tp,
    };
}

static uint64_t bytes_of(const struct sizes *s)
{
    return sat_add(sat_add(s->state, s->logits), s->activations);
}

static bool is_possible(const struct draft *j, uint64_t tp, uint64_t cp)
{
    const struct model *m = &j->job->model;
    return tp && cp && m->heads % tp == 0 && (m->kv_heads % tp == 0 || tp % m->kv_heads == 0) &&
           j->job->hardware.gpus_per_node % tp == 0 && job_ranks(j->job) % tp == 0 &&
           job_ranks(j->job) / tp % cp == 0 && (cp == 1 || j->job->context % (2 * cp) == 0);
}

// Fewer GPUs to a sequence are better, tensor parallel before context parallel; where none is small
// enough, the smallest.
static bool is_better(const struct sizes *a, const struct sizes *b, uint64_t room)
{
    bool fits = bytes_of(a) <= room, fitted = bytes_of(b) <= room;
    uint64_t shares = a->tp * a->cp, shared = b->tp * b->cp;
    if (fits != fitted)
        return fits;
    if (!fits)
        return bytes_of(a) < bytes_of(b);
    return shares < shared || (shares == shared && a->tp > b->tp);
}

static struct sizes choose(const struct draft *j, uint64_t room)
{
    bool tp_given = settings_find_z(j->settings, "tp"),
         cp_given = settings_find_z(j->settings, "cp");
    struct sizes best = sizes_of(j, j->tp, j->cp);
    for (uint64_t tp = tp_given ? j->tp : 1; tp <= j->job->hardware.gpus_per_node; tp *= 2) {
        for (uint64_t cp = cp_given ? j->cp : 1; cp <= job_ranks(j->job) / tp; cp *= 2) {
            struct sizes s = sizes_of(j, tp, cp);
            if (is_possible(j, tp, cp) && is_better(&s, &best, room))
                best = s;
            if (cp_given)
                break;
        }
        if (tp_given)
            break;
    }
    return best;
}

static void take(struct draft *j, const struct sizes *s)
{
    ASSERT(j->tp && j->cp && s->tp && s->cp);
    uint64_t ranks = job_ranks(j->job) / j->job->pipeline;
    uint64_t before = ranks / j->tp / j->cp, replicas = ranks / s->tp / s->cp;
    ASSERT(before);
    j->sequences = sat_mul(j->sequences / before, replicas);
    j->tp = s->tp;
    j->cp = s->cp;
    j->traits &= ~(IS_TP | IS_CP);
    j->traits |= (s->tp > 1 ? IS_TP : 0) | (s->cp > 1 ? IS_CP : 0);
    draft_count(j, "tp", s->tp);
    draft_count(j, "cp", s->cp);
    draft_count(j, "replicas", replicas);
    draft_step(j);
}

void draft_megatron(struct draft *j)
{
    struct arena *a = j->arena;
    uint64_t room = j->job->hardware.card.memory.value / 100 * FILLED_PERCENT;
    struct sizes s = choose(j, room);
    struct str state = bytes_text(a, s.state), logits = bytes_text(a, s.logits);
    struct str activations = bytes_text(a, s.activations), sum = bytes_text(a, bytes_of(&s));
    struct str limit = bytes_text(a, room);
    take(j, &s);
    if (settings_find_z(j->settings, "tp") && settings_find_z(j->settings, "cp")) {
        draft_fact(j, "sizes_why",
                   STR("Sizes as given, and as predicted above; by a rule of thumb"));
        draft_fact(j, "sizes_sum", str_format(a, "the same takes %.*s of a card.", STR_ARGS(sum)));
        return;
    }
    draft_fact(j, "sizes_why",
               str_format(a,
                          "Not predicted, a rule of thumb: %.*s of weights, gradients and "
                          "optimizer, %.*s of logits",
                          STR_ARGS(state), STR_ARGS(logits)));
    draft_fact(j, "sizes_sum",
               str_format(a,
                          "and %.*s of activations are %.*s, %sunder %.*s (%d %% of the card)%s.",
                          STR_ARGS(activations), STR_ARGS(sum), bytes_of(&s) <= room ? "" : "not ",
                          STR_ARGS(limit), FILLED_PERCENT,
                          bytes_of(&s) <= room ? "" : ": take more GPUs or --offload optimizer"));
}
