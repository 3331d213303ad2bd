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
    {"reshard", {{"off", 0}, {"on", 0}}, "fsdp2", false},
    {"checkpointing",
     {{"off", 0}, {"selective", 1, "megatron"}, {"some", 1, "megatron", true}, {"on", 1}},
     NULL,
     false},
    {"offload",
     {{"off", 0},
      {"optimizer", 4,
       "zero1|zero2|zero3|megatron"}, // what rules refuse elsewhere is not asked for
      {"all", 5, "fsdp1|fsdp2|zero3"}},
     NULL,
     false},
    {"expandable", {{"off", 0}, {"on", 1}}, NULL, true},
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

// The framework's own; all tokens' at once, where that is another; Liger's, where the framework's
// own is whole (TRL's is fused already); and verl's without logits, or with the entropy in chunks.
enum { LIGER_TROUBLE = 2 }; // one package, whatever of it is turned on
enum { LOSS_OWN, LOSS_WHOLE, LOSS_OF_LIGER, LOSS_FUSED_BY_VERL, LOSS_IN_CHUNKS };
static const struct axis_value losses[] = {[LOSS_OWN] = {"", 0},
                                           [LOSS_WHOLE] = {"loss=full", 1},
                                           [LOSS_OF_LIGER] = {"loss=liger", LIGER_TROUBLE},
                                           [LOSS_FUSED_BY_VERL] = {"fused-kernels=on", 1},
                                           [LOSS_IN_CHUNKS] = {"entropy-saving=on", 1}};
static const struct axis_value syncs[] = {{"", 0}, {"sync-each-batch=on", 1}};
static const struct axis_value layers[] = {{"", 0}, {"layer-kernels=liger", LIGER_TROUBLE}};

// Torch's own attention, or the package flash-attn, where the framework has the other.
enum { FLASH_TROUBLE = 2 };
static const struct axis_value torchs_attention = {"attention=sdpa", 0};
static const struct axis_value package_attention = {"attention=flash2", FLASH_TROUBLE};

enum {
    REPLICA_TROUBLE = 1,
    TUNED_TROUBLE = 1,
    HOSTED_TROUBLE = 3,
    MOST_SHARING = 64,
    MOST_NODES_OF_SHARDS = 8
};

bool plan_is_given(const struct plan *p, const char *setting)
{
    return settings_find_z(p->request.settings, setting) != NULL;
}

// KTO compares a row with its neighbour.
uint64_t plan_fewest_rows(const struct job *job)
{
    return job->task == TASK_KTO ? 2 : 1;
}

// Divisors, so that micro-batches of one size make up the batch; where there is but one, it is
// reduced after it whatever is said. Of a pipeline no fewer than it has stages, of which half would
// wait.
static void find_micro(struct plan_family *f, const struct plan *p)
{
    const struct plan_request *r = &p->request;
    uint64_t each = r->global_batch / f->data_parallel, fewest = plan_fewest_rows(&p->job);
    uint64_t most = u64_least(each / f->stages, r->lean ? fewest : each);
    if (r->global_batch % f->data_parallel)
        return;
    for (uint64_t b = fewest; b <= most && b <= 65536 && f->micro_count < PLAN_MOST_MICRO; b++)
        if (each % b == 0 && !(f->synced && b == each))
            f->micro[f->micro_count++] = b;
}

static bool has_dial(const struct plan *p, const struct plan_family *f, const struct plan_dial *d)
{
    bool said = f->hosted && str_is(str_from(d->setting), "checkpointing");
    return !said && !plan_is_given(p, d->setting) &&
           (!d->strategies || words_have(d->strategies, '|', str_from(f->strategy)));
}

static bool trains_with_verl(const struct plan *p)
{
    return p->job.recipe == RECIPE_TRINITY || p->job.recipe == RECIPE_VERL;
}

static bool has_value(const struct plan_family *f, const struct plan_value *v)
{
    if (v->some && f->in_turn)
        return false; // one of both
    return !v->strategies || words_have(v->strategies, '|', str_from(f->strategy));
}

static void find_dials(const struct plan *p, struct plan_family *f)
{
    for (int i = 0; i < PLAN_DIALS; i++) {
        const struct plan_dial *d = &plan_dials[i];
        bool has = has_dial(p, f, d);
        f->values[i] = 0;
        for (int v = 0; v < PLAN_MOST_VALUES && d->values[v].words; v++)
            if (has_value(f, &d->values[v]) && (has || !v))
                f->dials[i][f->values[i]++] = v;
    }
}

// Where the framework recomputes layers reentrantly unless it is told: it takes longer, and no less
// memory. TRL says that PEFT needs it under ZeRO-3 (1.16, trainer/sft_trainer.py).
static bool recomputes_reentrantly(const struct plan *p, struct arena scratch, struct str words)
{
    struct job *job = NEW(&scratch, struct job, 1);
    struct error none;
    bool given = plan_is_given(p, "checkpointing");
    struct str asked =
        given ? words : str_format(&scratch, "%.*s checkpointing=on", STR_ARGS(words));
    return !plan_is_given(p, "reentrant") && plan_job_of(job, &scratch, p, asked, &none) &&
           job->reentrant && !(job->lora_rank && job->strategy == STRATEGY_ZERO3);
}

// What has to stay free, whatever predictions of its kind were off by (core/predict/verdict.c).
static uint64_t safe_bytes(const struct plan *p, const struct plan_family *f, const struct job *job)
{
    uint64_t free = p->wanted.margin_given ? p->wanted.margin_bytes
                    : job->limit_bytes     ? 0
                                           : spread_of(job).more_bytes;
    return f->limit_bytes > free ? f->limit_bytes - free : 0;
}

// What products and attention take for a moment, of what they take where a step is nothing else.
static double least_part_of_time(struct arena scratch, const struct job *job)
{
    struct timeline *t = NEW(&scratch, struct timeline, 1);
    struct error none;
    if (!timeline_for(t, job, &none))
        return 0;
    double products = t->burst.product_lasting, attention = t->burst.attention_lasting;
    double most = products > attention ? products : attention;
    return most > 1 ? 1 / most : 1;
}

// Data parallel ranks are what is left of the GPUs after those that share a sequence, as
// transformers' Trainer, accelerate and DeepSpeed count them (trainer.py, dp world size).
bool plan_add_family(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    if (recomputes_reentrantly(p, *a, f.words))
        f.words = str_format(a, "%.*s reentrant=off", STR_ARGS(f.words));
    struct arena scratch = *a;
    struct job *job = NEW(&scratch, struct job, 1);
    f.refused = !plan_job_of(job, &scratch, p, f.words, &f.refusal);
    if (f.refused && f.refusal.code != ERROR_BAD_INPUT && f.refusal.code != ERROR_UNSUPPORTED) {
        *e = f.refusal;
        return false;
    }
    if (!f.refused) {
        f.liger = job->layer_kernels == KERNELS_OF_LIGER;
        f.loose = job->activation_offload && !job->checkpointing;
        f.gpus = job_ranks(job);
        f.untimed = step_update_unknown(job);
        struct outside outside = outside_of(job);
        f.limit_bytes = limit_of(job, &outside);
        f.safe_bytes = safe_bytes(p, &f, job);
        f.data_parallel = f.gpus / (job->ring * job->ulysses * job->tensor * job->pipeline);
        f.ordered = job->ring <= job->hardware.gpus_per_node;
        f.slower = least_part_of_time(scratch, job);
        f.pipeline = job->pipeline;
        f.turns = job->interleaved;
        f.stages = plan_is_given(p, "pp") ? 1 : job->pipeline;
        find_micro(&f, p);
    }
    find_dials(p, &f);
    f.nodes = 1;
    for (int i = 0; i < PLAN_DIALS; i++)
        f.nodes *= f.values[i];
    f.refused |= !f.nodes;
    f.micro_count = f.nodes ? f.micro_count : 0;
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
struct plan_family plan_placed(struct arena *a, struct plan_family f, struct str words, int trouble)
{
    f.place = f.place.n ? str_format(a, "%.*s %.*s", STR_ARGS(f.place), STR_ARGS(words)) : words;
    return with(a, f, words, trouble);
}

// transformers' tensor parallel, which is of all GPUs, within a node: its words are always all.
static bool adds_tensors(const struct plan *p, const struct plan_family *f)
{
    const struct hardware *h = &p->job.hardware;
    return h->nodes == 1 && h->gpus_per_node > 1 && str_is(str_from(f->strategy), "single") &&
           !f->other_loss && !plan_is_given(p, "tp") && !str_starts(f->words, STR("gpu="));
}

// Whether ranks that share a sequence attend as those do that share none. They mask nothing, so
// that windows, scores written out and kernels that read a mask may take longer than their
// exchange.
static bool attends_alike(const struct job *j, const struct plan_family *f)
{
    enum attention_kernel kernel = job_attention_kernel(j);
    return (kernel == KERNEL_FLASH || kernel == KERNEL_CUDNN) && !f->attends_otherwise &&
           !job_attends_eagerly(j) && !job_masks_windows(j) && !job_masks_rows(j);
}

// Each is compared with the one before it, where that runs.
static bool add_doublings(struct plan *p, struct arena *a, struct plan_family f, const char *way,
                          struct error *e)
{
    uint64_t gpus = hardware_gpus(&p->job.hardware);
    bool compared = f.alone >= 0;
    for (uint64_t n = 2; n <= gpus && n <= MOST_SHARING && gpus % n == 0; n *= 2) {
        struct str words = str_format(a, "%s=%llu", way, (unsigned long long)n);
        if (!plan_add_family(p, a, plan_placed(a, f, words, PLAN_SHARING_TROUBLE), e))
            return false;
        if (compared && !p->families[p->family_count - 1].refused)
            f.alone = p->family_count - 1;
    }
    return true;
}

// Replicas of the shards, which are those of a node, or of two, four or eight; and with as many,
// ranks that share a sequence in a ring (`rings`), as accelerate's mesh has both: where there are
// fewer sequences than GPUs, as rings that are for the length's sake hide what replicas spare.
static bool add_replicas(struct plan *p, struct arena *a, struct plan_family f, bool rings,
                         struct error *e)
{
    uint64_t nodes = p->job.hardware.nodes;
    bool alike = attends_alike(&p->job, &f);
    for (uint64_t each = 1; each <= MOST_NODES_OF_SHARDS && each * 2 <= nodes; each *= 2) {
        struct str words = str_format(a, "replicate=%llu", (unsigned long long)(nodes / each));
        struct plan_family g = plan_placed(a, f, words, REPLICA_TROUBLE);
        if (nodes % each)
            continue;
        if (!plan_add_family(p, a, g, e))
            return false;
        g.alone = alike ? p->family_count - 1 : -1;
        if (rings && !p->families[p->family_count - 1].refused && !add_doublings(p, a, g, "cp", e))
            return false;
    }
    return true;
}

// Ranks that share a sequence, in doublings, with the framework's own loss, which is the smaller.
// And replicas.
static bool add_shared(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    static const char *const ways[] = {"cp", "sp"};
    ptrdiff_t alone = p->family_count;
    uint64_t gpus = hardware_gpus(&p->job.hardware);
    bool alike = attends_alike(&p->job, &f);
    bool shares = !f.other_loss && !plan_is_given(p, "cp") && !plan_is_given(p, "sp");
    bool few = p->request.global_batch < gpus;
    f.alone = -1;
    if (!plan_add_family(p, a, f, e))
        return false;
    if (!plan_is_given(p, "replicate") && !add_replicas(p, a, f, shares && few, e))
        return false;
    if (adds_tensors(p, &f)) {
        struct str words = str_format(a, "tp=%llu", (unsigned long long)gpus);
        if (!plan_add_family(p, a, plan_placed(a, f, words, PLAN_SHARING_TROUBLE), e))
            return false;
    }
    for (ptrdiff_t w = 0; shares && w < COUNT_OF(ways); w++) {
        f.alone = alike ? alone : -1;
        if (!add_doublings(p, a, f, ways[w], e))
            return false;
    }
    return true;
}

// TRL's activation offloading, with layers that are recomputed and without. It is compared with no
// other: of few layers it has more alive, and where a card waits for it, it clocks higher.
static bool add_hosted(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    static const char *const ways[] = {"checkpointing=on activation-offload=on",
                                       "checkpointing=off activation-offload=on"};
    bool given = plan_is_given(p, "checkpointing");
    if (p->job.recipe != RECIPE_TRL || f.other_loss || plan_is_given(p, "activation-offload") ||
        !words_have("single|ddp|fsdp2", '|', str_from(f.strategy)))
        return true;
    f.alone = -1;
    f.hosted = true;
    if (given)
        return plan_add_family(p, a,
                               plan_placed(a, f, STR("activation-offload=on"), HOSTED_TROUBLE), e);
    for (ptrdiff_t i = 0; i < COUNT_OF(ways); i++)
        if (!plan_add_family(p, a, plan_placed(a, f, str_from(ways[i]), HOSTED_TROUBLE), e))
            return false;
    return true;
}

// What tasks other than sft compute is not told by --loss.
static bool has_loss(const struct plan *p, ptrdiff_t loss)
{
    bool own_is_whole = p->job.loss == LOSS_FULL;
    bool open = !plan_is_given(p, "loss") && p->job.task == TASK_SFT;
    switch (loss) {
    case LOSS_WHOLE:
        return open && !own_is_whole;
    case LOSS_OF_LIGER:
        return open && own_is_whole;
    case LOSS_FUSED_BY_VERL:
        return trains_with_verl(p) && !plan_is_given(p, "fused-kernels");
    case LOSS_IN_CHUNKS:
        return trains_with_verl(p) && !plan_is_given(p, "entropy-saving");
    default:
        return true;
    }
}

static bool add_ways(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    return add_shared(p, a, f, e) && add_hosted(p, a, f, e);
}

// Of a family and those that share its sequences, each like one of the `usual` that were added in
// the same order.
static bool add_tuned(struct plan *p, struct arena *a, struct plan_family f, ptrdiff_t usual,
                      struct error *e)
{
    ptrdiff_t first = p->family_count;
    f.tuned = true;
    if (!add_ways(p, a, f, e))
        return false;
    for (ptrdiff_t i = first; i < p->family_count; i++)
        p->families[i].usual = usual + i - first;
    return true;
}

// DeepSpeed's file as the framework has it, and otherwise: whether it talks beside the products,
// and in its third stage how much it gathers at once (in the first two larger buckets take no less
// time). What rules refuse they refuse whatever the file says, but some only where no sequence is
// shared. One GPU gathers nothing.
static bool add_deepspeed(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    struct job *job = NEW(a, struct job, 1);
    struct error refusal = {0};
    ptrdiff_t usual = p->family_count, first = usual;
    bool third = str_is(str_from(f.strategy), "zero3") && hardware_gpus(&p->job.hardware) > 1;
    if (!add_ways(p, a, f, e))
        return false;
    while (first < p->family_count && p->families[first].refused)
        first++;
    if (!str_starts(str_from(f.strategy), STR("zero")) || first == p->family_count ||
        !plan_job_of(job, a, p, p->families[first].words, &refusal))
        return true;
    struct str overlap = job->overlap_comm ? STR("overlap-comm=off") : STR("overlap-comm=on");
    struct str buckets = job->zero_buckets == BUCKETS_AUTO ? STR("zero-buckets=deepspeed")
                                                           : STR("zero-buckets=auto");
    struct plan_family other = with(a, f, overlap, TUNED_TROUBLE);
    if (!plan_is_given(p, "overlap-comm") && !add_tuned(p, a, other, usual, e))
        return false;
    if (!third || plan_is_given(p, "zero-buckets"))
        return true;
    return add_tuned(p, a, with(a, f, buckets, TUNED_TROUBLE), usual, e) &&
           (plan_is_given(p, "overlap-comm") ||
            add_tuned(p, a, with(a, other, buckets, TUNED_TROUBLE), usual, e));
}

static bool add_syncs(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    bool sharded = str_is(str_from(f.strategy), "fsdp2");
    for (ptrdiff_t s = 0; s < COUNT_OF(syncs); s++) {
        bool synced = *syncs[s].words;
        if (synced && (plan_is_given(p, "sync-each-batch") || !sharded))
            continue;
        struct plan_family g = with(a, f, str_from(syncs[s].words), syncs[s].trouble);
        g.synced = synced;
        if (!add_deepspeed(p, a, g, e))
            return false;
    }
    return true;
}

// Liger's loss is compared with no other: it keeps gradients of the head instead of logits. Nor are
// verl's.
static bool add_losses(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    for (ptrdiff_t l = 0; l < COUNT_OF(losses); l++)
        for (ptrdiff_t k = 0; k < COUNT_OF(layers); k++) {
            bool liger = *layers[k].words, again = liger && l == LOSS_OF_LIGER;
            if (!has_loss(p, l) ||
                (liger && (plan_is_given(p, "layer-kernels") || trains_with_verl(p))))
                continue;
            struct str words = str_from(losses[l].words);
            struct plan_family g = l > LOSS_WHOLE ? plan_placed(a, f, words, losses[l].trouble)
                                                  : with(a, f, words, losses[l].trouble);
            g = with(a, g, str_from(layers[k].words), again ? 0 : layers[k].trouble);
            g.other_loss = l == LOSS_WHOLE;
            if (!add_syncs(p, a, g, e))
                return false;
        }
    return true;
}

// What else there may be to attend by: torch's, where cuDNN has a kernel that is faster than the
// package's; the package, where torch's reads a mask, of windows or of rows that are not full.
static const struct axis_value *other_attention(const struct plan *p)
{
    struct job torchs = p->job;
    torchs.attention = ATTENTION_SDPA;
    if (plan_is_given(p, "attention"))
        return NULL;
    if (job_attends_by_package(&p->job))
        return job_attention_kernel(&torchs) == KERNEL_CUDNN ? &torchs_attention : NULL;
    bool masks = job_masks_windows(&p->job) || p->job.batching != BATCHING_FULL;
    return masks ? &package_attention : NULL;
}

// Ways to attend are compared with no other.
static bool add_attentions(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    const struct axis_value *other = other_attention(p);
    if (!add_losses(p, a, f, e))
        return false;
    if (!other)
        return true;
    f = plan_placed(a, f, str_from(other->words), other->trouble);
    f.attends_otherwise = true;
    return add_losses(p, a, f, e);
}

// What adapters leave as it is may be loaded in bf16, as DeepSpeed has it whatever is said; TRL's
// own default is fp32.
static bool add_types(struct plan *p, struct arena *a, struct plan_family f, struct error *e)
{
    bool open = p->job.recipe == RECIPE_TRL && p->job.lora_rank && !p->job.packed &&
                !plan_is_given(p, "precision") &&
                words_have("single|ddp|fsdp2", '|', str_from(f.strategy));
    return add_attentions(p, a, f, e) &&
           (!open || add_attentions(p, a, plan_placed(a, f, STR("precision=bf16-autocast"), 0), e));
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
        return plan_megatron_families(p, a, f, e);
    const struct setting *given = settings_find_z(p->request.settings, "strategy");
    if (given) {
        f.strategy = str_z(a, given->value);
        f.shards = -1;
        return add_types(p, a, f, e);
    }
    struct str words;
    for (ptrdiff_t i = 0; plan_strategy_words(&words, a, i); i++) {
        if (strategies[i].verls && !trains_with_verl(p))
            continue;
        struct plan_family g = with(a, f, words, strategies[i].trouble);
        g.strategy = strategies[i].name;
        g.shards = strategies[i].shards;
        if (!add_types(p, a, g, e))
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
        return plan_add_family(p, a, f, e);
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

static bool is_like(const struct plan_family *o, const struct plan_family *f)
{
    return !o->tuned && !f->tuned && o->gpus == f->gpus && o->other_loss == f->other_loss &&
           o->hosted == f->hosted && o->in_turn == f->in_turn && str_equal(o->place, f->place) &&
           str_is(str_from(o->strategy), f->strategy);
}

static ptrdiff_t other_sync(const struct plan *p, const struct plan_family *f)
{
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        const struct plan_family *o = &p->families[i];
        if (o->synced != f->synced && o->liger == f->liger && is_like(o, f))
            return i;
    }
    return -1;
}

// Layers by Liger's kernels are never slower than by torch's.
static ptrdiff_t by_liger(const struct plan *p, const struct plan_family *f)
{
    for (ptrdiff_t i = 0; i < p->family_count && !f->refused && !f->liger; i++) {
        const struct plan_family *o = &p->families[i];
        if (!o->refused && o->liger && o->synced == f->synced && is_like(o, f))
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
        p->families[i].ahead = by_liger(p, &p->families[i]);
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
        trouble += plan_says(c->family, i) ? plan_dials[i].values[c->dial[i]].trouble : 0;
    return trouble;
}

struct plan_candidate plan_node(const struct plan_group *g, ptrdiff_t node)
{
    struct plan_candidate c = {.family = g->family, .batch = g->batch, .accum = g->accum};
    for (int i = PLAN_DIALS - 1; i >= 0; i--) {
        c.dial[i] = g->family->dials[i][node % g->family->values[i]];
        node /= g->family->values[i];
    }
    c.trouble = trouble_of(&c);
    return c;
}
