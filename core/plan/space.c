// What there is to choose from. Rules of core/job say what is possible: a row here that a framework
// cannot run is refused by them, and no condition stands here.
#include "core/plan/space.h"

#include "core/base/num.h"

const char *const plan_goal_words[PLAN_GOALS] = {
    [GOAL_SPEED] = "speed",
    [GOAL_COST] = "cost",
    [GOAL_MEMORY] = "memory",
    [GOAL_SIMPLICITY] = "simplicity",
};

// Gathering once more, computing once more and moving to the host take time; segments take none.
// Whether layers are gathered once or twice is no trouble to anybody.
const struct plan_dial plan_dials[PLAN_DIALS] = {
    {"reshard", {"off", "on"}, {0, 0}, "fsdp2", false},
    {"checkpointing", {"off", "on"}, {0, 1}, NULL, false},
    {"offload", {"off", "optimizer", "all"}, {0, 4, 5}, NULL, false},
    {"expandable", {"off", "on"}, {0, 1}, NULL, true},
};

// What has no order in time. Trouble: what has to be installed, understood and watched.
struct axis_value {
    const char *words;
    int trouble;
};

static const struct {
    const char *name;
    int trouble;
    int shards; // of DeepSpeed's first stages, 0 without any; -1: another
    bool verls; // only where verl trains; elsewhere fsdp2 does the same in no more memory
} strategies[] = {{"single", 0, -1, false}, {"ddp", 1, 0, false},   {"zero1", 2, 1, false},
                  {"zero2", 3, 2, false},   {"fsdp1", 3, -1, true}, {"fsdp2", 3, -1, false},
                  {"zero3", 4, -1, false}};

static const struct axis_value losses[] = {{"", 0}, {"loss=full", 1}};
static const struct axis_value syncs[] = {{"", 0}, {"sync-each-batch=on", 1}};

enum { SHARING_TROUBLE = 3, PIPELINE_TROUBLE = 4, REPLICA_TROUBLE = 1, MOST_SHARING = 64 };
enum { MOST_STAGES = 16, LEAST_SHARED_TOKENS = 4096 };

static bool is_given(const struct plan *p, const char *setting)
{
    return settings_find_z(p->request.settings, setting) != NULL;
}

// Divisors, so that micro-batches of one size make up the batch; where there is but one, it is
// reduced after it whatever is said. Of a pipeline no fewer than it has stages, of which half would
// wait.
static void find_micro(struct plan_family *f, const struct plan_request *r)
{
    uint64_t each = r->global_batch / f->data_parallel;
    uint64_t most = u64_least(each / f->stages, r->lean ? 1 : each);
    if (r->global_batch % f->data_parallel)
        return;
    for (uint64_t b = 1; b <= most && b <= 65536 && f->micro_count < PLAN_MOST_MICRO; b++)
        if (each % b == 0 && !(f->synced && b == each))
            f->micro[f->micro_count++] = b;
}

static bool has_dial(const struct plan *p, const struct plan_family *f, const struct plan_dial *d)
{
    return !is_given(p, d->setting) &&
           (!d->strategies || words_have(d->strategies, '|', str_from(f->strategy)));
}

// One GPU has nothing to shard: what shards is for its offload there, and nothing else was
// measured; but where verl trains, which knows nothing else.
static bool needs_offload(const struct plan *p, const struct plan_family *f,
                          const struct plan_dial *d)
{
    return f->gpus == 1 && p->job.recipe != RECIPE_TRINITY &&
           str_is(str_from(d->setting), "offload") &&
           !words_have("single|ddp", '|', str_from(f->strategy));
}

static void find_dials(const struct plan *p, struct plan_family *f)
{
    for (int i = 0; i < PLAN_DIALS; i++) {
        const struct plan_dial *d = &plan_dials[i];
        f->values[i] = 1;
        f->first[i] = 0;
        if (!has_dial(p, f, d))
            continue;
        f->first[i] = needs_offload(p, f, d);
        while (f->first[i] + f->values[i] < PLAN_MOST_VALUES &&
               d->values[f->first[i] + f->values[i]])
            f->values[i]++;
    }
}

// Data parallel ranks are what is left of the GPUs after those that share a sequence, as
// transformers' Trainer, accelerate and DeepSpeed count them (trainer.py, dp world size).
static bool add_family(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    struct arena scratch = *a;
    struct settings s = settings_in(&scratch);
    struct job *job = NEW(&scratch, struct job, 1);
    for (ptrdiff_t i = 0; i < p->base.count; i++)
        if (!settings_add(&s, p->base.items[i], e))
            return false;
    if (!settings_change(&s, f.words, e))
        return false;
    f.refused = !job_from_settings(job, &scratch, &s, &f.refusal);
    if (!f.refused) {
        f.gpus = job_ranks(job);
        f.untimed = step_update_unknown(job);
        struct outside outside = outside_of(job);
        f.limit_bytes = limit_of(job, &outside);
        f.data_parallel = f.gpus / (job->ring * job->ulysses * job->tensor * job->pipeline);
        f.ordered = job->ring <= job->hardware.gpus_per_node;
        f.stages = is_given(p, "pp") ? 1 : job->pipeline;
        find_micro(&f, &p->request);
    }
    find_dials(p, &f);
    f.nodes = 1;
    for (int i = 0; i < PLAN_DIALS; i++)
        f.nodes *= f.values[i];
    ASSERT(f.nodes <= 64); // bits of plan_group.hope
    p->all += f.nodes * f.micro_count;
    f.group = p->group_count;
    p->group_count += f.micro_count;
    p->families =
        arena_grow(a, p->families, sizeof *p->families, p->family_count, &p->family_capacity);
    p->families[p->family_count++] = f;
    return true;
}

// One family with the words of an axis added to it.
static struct plan_family with(struct arena *a, struct plan_family f, struct str words, int trouble)
{
    if (words.n && f.words.n)
        f.words = str_format(a, "%.*s %.*s", STR_ARGS(f.words), STR_ARGS(words));
    else if (words.n)
        f.words = words;
    f.trouble += trouble;
    return f;
}

// The same with words that say where: families are compared in one place.
static struct plan_family placed(struct arena *a, struct plan_family f, struct str words,
                                 int trouble)
{
    f.place = f.place.n ? str_format(a, "%.*s %.*s", STR_ARGS(f.place), STR_ARGS(words)) : words;
    return with(a, f, words, trouble);
}

// Ranks that share a sequence, in doublings, with the framework's own loss, which is the smaller;
// and replicas of the shards, one a node.
static bool add_shared(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    static const char *const ways[] = {"cp", "sp"};
    ptrdiff_t alone = p->family_count;
    uint64_t gpus = hardware_gpus(&p->job.hardware), nodes = p->job.hardware.nodes;
    f.alone = -1;
    if (!add_family(p, a, f, e))
        return false;
    if (nodes > 1 && !is_given(p, "replicate")) {
        struct str words = str_format(a, "replicate=%llu", (unsigned long long)nodes);
        if (!add_family(p, a, placed(a, f, words, REPLICA_TROUBLE), e))
            return false;
    }
    if (f.other_loss || is_given(p, "cp") || is_given(p, "sp"))
        return true;
    for (ptrdiff_t w = 0; w < COUNT_OF(ways); w++) {
        f.alone = alone;
        for (uint64_t n = 2; n <= gpus && n <= MOST_SHARING && gpus % n == 0; n *= 2) {
            struct str words = str_format(a, "%s=%llu", ways[w], (unsigned long long)n);
            if (!add_family(p, a, placed(a, f, words, SHARING_TROUBLE), e))
                return false;
            if (!p->families[p->family_count - 1].refused)
                f.alone = p->family_count - 1;
        }
    }
    return true;
}

static bool add_losses(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    for (ptrdiff_t l = 0; l < COUNT_OF(losses); l++)
        for (ptrdiff_t s = 0; s < COUNT_OF(syncs); s++) {
            bool other_loss = *losses[l].words, synced = *syncs[s].words;
            bool sharded = str_is(str_from(f.strategy), "fsdp2");
            if ((other_loss && (is_given(p, "loss") || p->job.task != TASK_SFT)) ||
                (synced && (is_given(p, "sync-each-batch") || !sharded)))
                continue;
            struct plan_family g = with(a, f, str_from(losses[l].words), losses[l].trouble);
            g = with(a, g, str_from(syncs[s].words), syncs[s].trouble);
            g.other_loss = other_loss;
            g.synced = synced;
            if (!add_shared(p, a, g, e))
                return false;
        }
    return true;
}

struct sharing_ranks {
    uint64_t cp, rest; // ranks that share a sequence, and that are left for stages
};

// Stages of a pipeline, in doublings that divide the layers, where whoever shares a sequence has
// enough of it to be busy.
static bool add_stages(struct plan *p, struct arena *a, struct plan_family f,
                       struct sharing_ranks r, struct error *e)
{
    uint64_t first = p->job.pipeline, cp = r.cp;
    uint64_t last = is_given(p, "pp") ? first : u64_least(r.rest, MOST_STAGES);
    for (uint64_t n = first; n <= last; n *= 2) {
        bool wanted = n == first || (p->job.model.layers % n == 0 &&
                                     (cp == 1 || p->job.context / cp >= LEAST_SHARED_TOKENS));
        struct str words = str_format(a, "pp=%llu", (unsigned long long)n);
        if (wanted && !add_family(p, a, placed(a, f, words, n > 1 ? PIPELINE_TROUBLE : 0), e))
            return false;
    }
    return true;
}

// Megatron's tensor, context and pipeline parallel, in doublings, the first within a node; all are
// always said, as its files choose by a rule of thumb what is not.
static bool add_megatron(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    uint64_t gpus = hardware_gpus(&p->job.hardware), node = p->job.hardware.gpus_per_node;
    uint64_t tp = p->job.tensor, cp = p->job.ring;
    uint64_t most_tp = is_given(p, "tp") ? tp : node, most_cp = is_given(p, "cp") ? cp : gpus;
    f.strategy = "megatron";
    f.alone = -1;
    f.shards = -1;
    for (uint64_t t = tp; t <= most_tp; t *= 2)
        for (uint64_t c = cp; c <= most_cp && t * c <= gpus; c *= 2) {
            struct str words =
                str_format(a, "tp=%llu cp=%llu", (unsigned long long)t, (unsigned long long)c);
            int trouble = (t > 1 ? SHARING_TROUBLE : 0) + (c > 1 ? SHARING_TROUBLE : 0);
            struct sharing_ranks r = {c, gpus / (t * c)};
            if (!add_stages(p, a, placed(a, f, words, trouble), r, e))
                return false;
        }
    return true;
}

bool plan_strategy_words(struct str *words, struct arena *a, ptrdiff_t i)
{
    if (i >= COUNT_OF(strategies))
        return false;
    *words = str_format(a, "strategy=%s", strategies[i].name);
    return true;
}

static bool add_strategies(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    if (p->job.recipe == RECIPE_MEGATRON)
        return add_megatron(p, a, f, e);
    const struct setting *given = settings_find_z(p->request.settings, "strategy");
    if (given) {
        f.strategy = str_z(a, given->value);
        f.shards = -1;
        return add_losses(p, a, f, e);
    }
    struct str words;
    for (ptrdiff_t i = 0; plan_strategy_words(&words, a, i); i++) {
        if (strategies[i].verls && p->job.recipe != RECIPE_TRINITY)
            continue;
        struct plan_family g = with(a, f, words, strategies[i].trouble);
        g.strategy = strategies[i].name;
        g.shards = strategies[i].shards;
        if (!add_losses(p, a, g, e))
            return false;
    }
    return true;
}

// Where cost counts, fewer of the GPUs, too: halves of a node.
bool plan_families(struct plan *p, struct arena *a, struct error *e)
{
    const struct hardware *h = &p->job.hardware;
    struct plan_family f = {.words = STR_NONE};
    if (p->request.like) {
        f = (struct plan_family){.words = p->request.like->words,
                                 .strategy = p->request.like->strategy,
                                 .trouble = p->request.like->trouble,
                                 .shards = -1,
                                 .alone = -1};
        return add_family(p, a, f, e);
    }
    if (!add_strategies(p, a, f, e))
        return false;
    if (p->request.goal != GOAL_COST || h->custom)
        return true;
    for (uint64_t n = h->nodes / 2; n; n /= 2) {
        struct str words = str_format(a, "gpu=%llux%llux%s", (unsigned long long)n,
                                      (unsigned long long)h->gpus_per_node, h->card.name);
        if (!add_strategies(p, a, with(a, f, words, 0), e))
            return false;
    }
    for (uint64_t n = h->gpus_per_node / 2; n; n /= 2) {
        struct str words = str_format(a, "gpu=%llux%s", (unsigned long long)n, h->card.name);
        if (!add_strategies(p, a, with(a, f, words, 0), e))
            return false;
    }
    return true;
}

static ptrdiff_t other_sync(const struct plan *p, const struct plan_family *f)
{
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        const struct plan_family *o = &p->families[i];
        if (o->synced != f->synced && o->gpus == f->gpus && o->other_loss == f->other_loss &&
            str_equal(o->place, f->place) && str_is(str_from(o->strategy), f->strategy))
            return i;
    }
    return -1;
}

// So that families are compared by numbers.
static void number_families(struct plan *p)
{
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        struct plan_family *f = &p->families[i];
        const struct plan_family *o = p->families;
        while (!str_is(str_from(o->strategy), f->strategy))
            o++;
        f->same_strategy = o - p->families;
        for (o = p->families; !str_equal(o->place, f->place);)
            o++;
        f->same_place = o - p->families;
    }
}

void plan_groups(struct plan *p, struct arena *a)
{
    ptrdiff_t n = 0;
    number_families(p);
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        ptrdiff_t alone = p->families[i].alone;
        p->families[i].synced_alone = alone < 0 ? -1 : other_sync(p, &p->families[alone]);
    }
    p->groups = NEW(a, struct plan_group, p->group_count + 1);
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        const struct plan_family *f = &p->families[i];
        for (ptrdiff_t m = 0; m < f->micro_count; m++) {
            uint64_t batch = f->micro[m];
            uint64_t accum = p->request.global_batch / f->data_parallel / batch;
            p->groups[n++] = (struct plan_group){.family = f, .batch = batch, .accum = accum};
        }
    }
}

static int trouble_of(const struct plan_candidate *c)
{
    int trouble = c->family->trouble;
    for (int i = 0; i < PLAN_DIALS; i++)
        trouble += c->family->values[i] > 1 ? plan_dials[i].trouble[c->dial[i]] : 0;
    return trouble;
}

struct plan_candidate plan_node(const struct plan_group *g, ptrdiff_t node)
{
    struct plan_candidate c = {.family = g->family, .batch = g->batch, .accum = g->accum};
    for (int i = PLAN_DIALS - 1; i >= 0; i--) {
        c.dial[i] = g->family->first[i] + (int)(node % g->family->values[i]);
        node /= g->family->values[i];
    }
    c.trouble = trouble_of(&c);
    return c;
}
