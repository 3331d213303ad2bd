// See step_time.h.
#include "core/predict/step_time.h"

#include "core/time/benchmark.h"

// One of the usual hosts of eight GPUs has 14 to 16 cores for each; so had the one of the H200 that
// was measured (tests/runs/h200_runs.jsonl).
enum { USUAL_CORES = 16, MOST_CORES = 4096 };

// Where collectives move nothing, FSDP1's weights and what Ulysses exchanges are whatever the
// memory held. A card draws less for it and clocks higher: on one H200 products and attention of
// zeros, or of no numbers, take 0.78 and 0.82 of what random ones do, for a second each (share/
// torch_kernels.py: 1755 MHz at 478 W, not 1455 MHz at 700 W).
static void empty_data(struct rates *r, const struct job *job)
{
    static const double products = 816e12 / 989.5e12, attention = 695e12 / 989.5e12;
    double peak = (double)job->hardware.card.bf16.value;
    bool weights = job->strategy == STRATEGY_FSDP1;
    uint64_t ranks = weights ? job_ranks(job) : job->ulysses;
    double own = 1 / (double)ranks; // which a rank has itself
    if (weights) {
        r->product_flops = 1 / ((1 - own) / (products * peak) + own / r->product_flops);
        r->product_lasting = 1 + (r->product_lasting - 1) * own;
    }
    if (ranks > 1) {
        r->attention_flops = r->attention_back_flops =
            1 / ((1 - own) / (attention * peak) + own / r->attention_flops);
        r->attention_lasting = 1 + (r->attention_lasting - 1) * own;
    }
}

bool timeline_for(struct timeline *t, const struct job *job, struct error *e)
{
    const struct setting *cores = settings_find_z(job->given, "host-cores");
    struct network network;
    uint64_t count = USUAL_CORES * job->hardware.gpus_per_node;
    if (!network_of(&network, &job->hardware, settings_find_z(job->given, "network"), e) ||
        (cores && !setting_number(&count, cores, UNIT_PLAIN, (struct range){1, MOST_CORES}, e)))
        return false;
    timeline_start(t, &job->hardware.card, &network);
    if (!rates_measured(&t->burst, &t->measured, &job->hardware.card, job->given, e))
        return false;
    if (network.silent && job_ranks(job) > 1)
        empty_data(&t->burst, job);
    t->rates = t->burst;
    t->cores = (double)count / (double)job->hardware.gpus_per_node;
    return true;
}

// What a step holds beside the update.
static const char *held_beside(const struct job *job)
{
    if (job_generates(job))
        return "a step holds generation, whose time is not modelled";
    if (job->recipe == RECIPE_TRINITY)
        return "trinity's step holds a rollout, whose time is not modelled";
    if (job->recipe == RECIPE_VERL)
        return "verl's step holds a rollout, whose time is not modelled";
    return NULL;
}

const char *step_update_unknown(const struct job *job)
{
    const struct gpu *card = &job->hardware.card;
    if (job_attention_kernel(job) >= KERNEL_EFFICIENT || job->precision == PRECISION_FP32)
        return "the time of attention without cuDNN or FlashAttention is not modelled";
    if (job->checkpoint_offload)
        return "the time of checkpoints' way to the host is not modelled";
    if (job->traits & IS_NVME)
        return "the time of files on NVMe is not modelled";
    if (job->precision == PRECISION_FP32)
        return "the rates of products in fp32 are not modelled";
    if (job->pipeline > 1 && settings_find_z(job->given, "pp-rank"))
        return "a step's time is that of all stages together: ask without pp-rank";
    if (job->optimizer == OPTIMIZER_MUON)
        return "the time of Muon's products is not modelled";
    if (job_pages_optimizer(job))
        return "the time of paged state's way is not modelled";
    if (!card->bf16.value || !card->bandwidth.value || !card->multiprocessors)
        return "the card's rates are not known";
    return NULL;
}

// Of an update that can be timed it is what else the step holds.
const char *step_time_unknown(const struct job *job)
{
    const char *update = step_update_unknown(job);
    return update ? update : held_beside(job);
}

// The largest part of the step.
static const char *bound_of(double seconds, const struct elapsed *s)
{
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"compute", s->busy[WORK_PRODUCTS] + s->busy[WORK_ATTENTION]},
                 {"memory", s->busy[WORK_MEMORY]},
                 {"launch", s->starved},
                 {"communication", s->exposed},
                 {"host", s->busy[WORK_HOST_UPDATE]}};
    int best = 0;
    for (int i = 1; i < COUNT_OF(parts); i++)
        best = parts[i].seconds > parts[best].seconds ? i : best;
    double counted = 0;
    for (int i = 0; i < COUNT_OF(parts); i++)
        counted += parts[i].seconds;
    return seconds - counted > parts[best].seconds ? "launch" : parts[best].name;
}

// By how much predictions were off: tests/measured/step_times.py, 109 steps on one H200; and
// tests/measured/public_speeds.py, 200 published speeds on A100 and H100. Hosts differ more than
// cards: some launch twice as fast as the one that was measured.
enum basis {
    ON_H200,
    PUBLISHED,
    UNCOMPARED,
    UPDATE_ALONE,
    HOST_COPIES,
    OTHER_HOST,
    OWN_CARD,
    MEGATRON_B200,
    MEGATRON,
};
static const struct {
    double faster, slower;
    const char *text;
} ranges[] = {
    [ON_H200] = {1.15, 1.15, "as near as 19 of 20 steps measured on one H200"},
    [PUBLISHED] = {1.21, 1.21, "as near as 9 of 10 published speeds on A100 and H100"},
    [UNCOMPARED] = {1.3, 1.3, "from the card's rates; no speed on it was compared"},
    [UPDATE_ALONE] = {1.3, 1.3, "from the card's rates; no update of this kind was compared"},
    [HOST_COPIES] =
        {1.3, 1.3,
         "from the host link's rate; two steps with such copies on one H200 were 3 and 5 % faster"},
    [OTHER_HOST] = {2, 1.21, "a host may launch twice as fast as the measured one"},
    [OWN_CARD] = {1.15, 1.15,
                  "by the rates that probe --kernels measured on your card; as near as 19 of 20 "
                  "steps on one H200 by such rates"},
    [MEGATRON_B200] = {1.06, 1.22, "as near as 43 published steps of Megatron-LM on 8 x B200"},
    [MEGATRON] = {1.06, 1.3,
                  "as near as steps of Megatron-LM on 64 and 128 H100, of which two are "
                  "published"},
};

static enum basis basis_of(const struct job *job, const struct timeline *line, const char *bound_by)
{
    struct str card = str_from(job->hardware.card.name);
    bool h200 = str_is(card, "H200");
    if (held_beside(job))
        return UPDATE_ALONE;
    if (line->measured)
        return OWN_CARD;
    if (job->hardware.custom)
        return UNCOMPARED;
    if (h200 && job_ranks(job) == 1)
        return ON_H200;
    if (job->activation_offload)
        return HOST_COPIES;
    if (job->recipe == RECIPE_MEGATRON)
        return str_is(card, "B200")       ? MEGATRON_B200
               : str_is(card, "H100-80G") ? MEGATRON
                                          : UNCOMPARED;
    if (str_is(str_from(bound_by), "launch"))
        return OTHER_HOST;
    return h200 || str_is(card, "H100-80G") || str_is(card, "A100-80G") ? PUBLISHED : UNCOMPARED;
}

static void set_range(struct step_time *t, const struct job *job, const struct timeline *line)
{
    enum basis basis = basis_of(job, line, t->bound_by);
    t->basis = ranges[basis].text;
    t->low = t->seconds / ranges[basis].faster;
    t->high = t->seconds * ranges[basis].slower;
}

struct step_time step_time_of(const struct job *job, double seconds, const struct timeline *line)
{
    const struct elapsed *spent = &line->now;
    struct step_time t = {.unknown = step_time_unknown(job), .seconds = seconds};
    if (step_update_unknown(job))
        return t;
    t.seconds = seconds -= line->beside;
    t.waits = spent->starved + spent->exposed;
    double peak = (double)job->hardware.card.bf16.value;
    double shared = (double)(job->tensor * job->pipeline); // by ranks that have the same tokens
    t.tokens_per_second = (double)(job_tokens(job) * job->accumulation) / seconds / shared;
    t.mfu = spent->flops / seconds / peak;
    t.bound_by = bound_of(seconds, spent);
    set_range(&t, job, line);
    if (job_ranks(job) > 1)
        t.inside = line->network.silent ? "nothing" : line->network.inside;
    if (job->hardware.nodes > 1 && !line->network.silent)
        t.across = line->network.across;
    return t;
}

void step_time_of_update(struct step_time *t)
{
    if (!t->unknown || !t->bound_by)
        return;
    t->beside = t->unknown;
    t->unknown = NULL;
}
