// Megatron's families: tensor, context, pipeline and expert parallel sizes, in doublings. All are
// always said, as its files choose by a rule of thumb what is not.
#include "core/base/num.h"
#include "core/plan/space.h"

enum {
    PIPELINE_TROUBLE = 4,
    EXPERT_TROUBLE = 1,
    TURNS_TROUBLE = 1,
    MOST_STAGES = 16,
    MOST_TURNS = 4
};

// Whoever shares a sequence has as many tokens of it at least, and beside other stages more of
// them, so that there is work for each.
enum { LEAST_TOKENS = 2048, LEAST_STAGED_TOKENS = 4096 };

struct sizes {
    uint64_t tp, cp, pp;
};

// Stages that a rank has in turn: the more there are, the less ranks wait for each other at the
// ends of a step and the fewer layers are on their way twice; beyond four that is next to nothing.
static uint64_t turns_of(const struct plan *p, uint64_t stages)
{
    uint64_t layers = p->job.model.layers, turns = MOST_TURNS;
    bool even = stages > 1 && layers % stages == 0 && !plan_is_given(p, "virtual-pp");
    while (even && turns > 1 && layers / stages % turns)
        turns--;
    return even ? turns : 1;
}

static bool add_turns(struct plan *p, struct arena *a, struct plan_family f, uint64_t stages,
                      struct error *e)
{
    uint64_t turns = turns_of(p, stages);
    ptrdiff_t plain = p->family_count;
    struct str words = str_format(a, "virtual-pp=%llu", (unsigned long long)turns);
    if (!plan_add_family(p, a, f, e) || turns == 1)
        return turns == 1 && plain < p->family_count;
    f = plan_placed(a, f, words, TURNS_TROUBLE);
    f.in_turn = true;
    f.plain = plain;
    return plan_add_family(p, a, f, e);
}

// The experts' GPUs are those of one stage, and each has as many of them.
static bool add_experts(struct plan *p, struct arena *a, struct plan_family f, struct sizes s,
                        struct error *e)
{
    uint64_t gpus = hardware_gpus(&p->job.hardware), count = p->job.model.experts.count;
    uint64_t first = p->job.expert;
    uint64_t last = plan_is_given(p, "ep") || !count ? first : u64_least(count, gpus / s.pp);
    for (uint64_t n = first; n <= last; n *= 2) {
        struct str words = count ? str_format(a, "ep=%llu", (unsigned long long)n) : STR_NONE;
        struct plan_family g = words.n ? plan_placed(a, f, words, n > 1 ? EXPERT_TROUBLE : 0) : f;
        bool wanted = n == first || (count % n == 0 && gpus / s.pp % n == 0);
        if (wanted && !add_turns(p, a, g, s.pp, e))
            return false;
    }
    return true;
}

// Layers of the last of so many stages where they cannot all have as many: the others have as few
// more as that leaves it any. 0: they can.
static uint64_t last_layers(const struct plan *p, uint64_t stages)
{
    uint64_t layers = p->job.model.layers, each = u64_divide_up(layers, stages);
    bool given = plan_is_given(p, "last-stage-layers") || plan_is_given(p, "virtual-pp");
    if (given || layers % stages == 0 || each * (stages - 1) >= layers)
        return 0;
    return layers - each * (stages - 1);
}

static bool add_stages(struct plan *p, struct arena *a, struct plan_family f, struct sizes s,
                       struct error *e)
{
    uint64_t first = p->job.pipeline, rest = hardware_gpus(&p->job.hardware) / (s.tp * s.cp);
    uint64_t last = plan_is_given(p, "pp") ? first : u64_least(rest, MOST_STAGES);
    for (s.pp = first; s.pp <= last; s.pp *= 2) {
        uint64_t left = last_layers(p, s.pp);
        bool even = p->job.model.layers % s.pp == 0;
        bool wanted =
            s.pp == first ||
            ((even || left) && (s.cp == 1 || p->job.context / s.cp >= LEAST_STAGED_TOKENS));
        struct str words = str_format(a, "pp=%llu", (unsigned long long)s.pp);
        if (left)
            words = str_format(a, "%.*s last-stage-layers=%llu", STR_ARGS(words),
                               (unsigned long long)left);
        struct plan_family g = plan_placed(a, f, words, s.pp > 1 ? PIPELINE_TROUBLE : 0);
        if (wanted && !add_experts(p, a, g, s, e))
            return false;
    }
    return true;
}

// Tensor parallel within a node.
bool plan_megatron_families(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    uint64_t gpus = hardware_gpus(&p->job.hardware), node = p->job.hardware.gpus_per_node;
    struct sizes s = {p->job.tensor, p->job.ring, 1};
    uint64_t most_tp = plan_is_given(p, "tp") ? s.tp : node;
    uint64_t first_cp = s.cp, most_cp = plan_is_given(p, "cp") ? s.cp : gpus;
    f.strategy = "megatron";
    f.alone = -1;
    f.shards = -1;
    for (; s.tp <= most_tp; s.tp *= 2)
        for (s.cp = first_cp; s.cp <= most_cp && s.tp * s.cp <= gpus; s.cp *= 2) {
            struct str words = str_format(a, "tp=%llu cp=%llu", (unsigned long long)s.tp,
                                          (unsigned long long)s.cp);
            int shared = (s.tp > 1) + (s.cp > 1);
            bool wanted = s.cp == first_cp || p->job.context / s.cp >= LEAST_TOKENS;
            if (wanted &&
                !add_stages(p, a, plan_placed(a, f, words, shared * PLAN_SHARING_TROUBLE), s, e))
                return false;
        }
    return true;
}
