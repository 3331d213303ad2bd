// Reading a plan. What is not modelled is refused here, in one sentence that says what is.
#include "core/step/plan.h"

#include "core/allocator/torch.h"
#include "core/base/num.h"
#include "core/trace/event.h"

// Attention's scratch has eight bytes for an element of its input, twice.
enum { LARGEST_BYTES_PER_ELEMENT = 16, MOST_CHUNKS = 2048 };

struct reader {
    const struct settings *settings;
    struct error *error;
};

static bool read_count(struct reader *r, uint64_t *value, const char *name)
{
    const struct setting *item = settings_find_z(r->settings, name);
    return !item ||
           setting_number(value, item, UNIT_COUNT, (struct range){0, UINT64_MAX}, r->error);
}

static bool read_switch(struct reader *r, bool *value, const char *name)
{
    const struct setting *item = settings_find_z(r->settings, name);
    return !item || setting_switch(value, item, r->error);
}

// The position of the value among the setting's choices.
static void read_choice(struct reader *r, int *value, const char *name)
{
    const struct setting *item = settings_find_z(r->settings, name);
    struct words words = words_of(setting_def_find(str_from(name))->values, '|');
    for (int i = 0; item && words_next(&words); i++)
        if (str_equal(words.word, item->value))
            *value = i;
}

// full, chunked:N or none.
static bool read_loss(struct reader *r, struct plan *p)
{
    const struct setting *item = settings_find_z(r->settings, "loss");
    if (!item || str_is(item->value, "full"))
        return true;
    struct str_cut cut = str_cut(item->value, ':');
    struct setting chunk = {STR("the chunk of loss"), cut.tail, item->where};
    if (str_is(item->value, "none")) {
        p->loss = LOSS_NONE;
        return true;
    }
    p->loss = LOSS_CHUNKED;
    if (!str_is(cut.head, "chunked") || !cut.found)
        return FAIL(r->error, BAD_INPUT, item->where,
                    "loss must be full, chunked:TOKENS or none, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    return setting_number(&p->loss_chunk, &chunk, UNIT_COUNT, (struct range){1, 1 << 28}, r->error);
}

static bool read_numbers(struct reader *r, struct plan *p)
{
    const struct setting *limit = settings_find_z(r->settings, "memory-limit");
    const struct setting *torch = settings_find_z(r->settings, "torch");
    int strategy = (int)(plan_ranks(p) > 1 ? STRATEGY_FSDP2 : STRATEGY_SINGLE);
    int optimizer = OPTIMIZER_ADAMW, offload = 0;
    read_choice(r, &offload, "offload");
    p->offload = offload > 1;
    read_choice(r, &strategy, "strategy");
    if (strategy > STRATEGY_FSDP2)
        return FAIL(r->error, UNSUPPORTED, STR("--strategy"), "DeepSpeed is not modelled yet");
    if (offload == 1)
        return FAIL(r->error, UNSUPPORTED, STR("--offload"),
                    "offloading the optimizer alone is not modelled; all is");
    p->strategy = (enum strategy)strategy;
    int precision = plan_is_sharded(p) ? PRECISION_MIXED : PRECISION_BF16;
    read_choice(r, &precision, "precision");
    read_choice(r, &optimizer, "optimizer");
    p->precision = (enum precision)precision;
    p->optimizer = (enum optimizer)optimizer;
    return read_count(r, &p->context, "context") && read_count(r, &p->batch, "batch") &&
           read_count(r, &p->accumulation, "accum") && read_count(r, &p->ulysses, "sp") &&
           read_switch(r, &p->checkpointing, "checkpointing") &&
           read_switch(r, &p->reshard, "reshard") && read_switch(r, &p->expandable, "expandable") &&
           read_loss(r, p) &&
           (!limit || setting_number(&p->limit_bytes, limit, UNIT_BYTES,
                                     (struct range){0, UINT64_MAX}, r->error)) &&
           (!torch || torch_version_parse(&p->torch_minor, torch->value, r->error));
}

static bool is_modelled(const struct plan *p, struct str where, struct error *e)
{
    bool qwen3_moe = str_is(str_from(p->model.family->model_type), "qwen3_moe");
    static const unsigned not_yet = FEATURE_MLA | FEATURE_POST_NORMS | FEATURE_SINKS |
                                    FEATURE_OUTPUT_BIAS | FEATURE_MLP_BIAS | FEATURE_VISION_QWEN3 |
                                    FEATURE_VISION_SIGLIP;
    if (p->model.features & not_yet || (model_has(&p->model, FEATURE_EXPERTS) && !qwen3_moe))
        return FAIL(e, UNSUPPORTED, where,
                    "training of %s is not modelled yet; Qwen3 (with experts too), Qwen2.5, Llama "
                    "and Mistral are",
                    p->model.family->title);
    if (qwen3_moe && p->precision == PRECISION_AUTOCAST)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "autocast over a mixture of experts is not modelled; bf16 is");
    if (p->model.sliding_window && p->model.sliding_window < p->context)
        return FAIL(e, UNSUPPORTED, where,
                    "attention windows shorter than the context are not modelled yet");
    return true;
}

static bool is_possible_sequence_parallel(const struct plan *p, struct error *e)
{
    unsigned long long sp = (unsigned long long)p->ulysses;
    if (p->ulysses == 1)
        return true;
    if (p->strategy != STRATEGY_FSDP2)
        return FAIL(e, BAD_INPUT, STR("--sp"), "sequence parallel needs several GPUs and fsdp2");
    if (plan_ranks(p) % p->ulysses)
        return FAIL(e, BAD_INPUT, STR("--sp"), "sp %llu does not divide the %llu GPUs", sp,
                    (unsigned long long)plan_ranks(p));
    if (p->model.heads % p->ulysses)
        return FAIL(e, BAD_INPUT, STR("--sp"), "sp %llu does not divide the %llu attention heads",
                    sp, (unsigned long long)p->model.heads);
    if (p->model.kv_heads % p->ulysses && p->ulysses % p->model.kv_heads)
        return FAIL(e, BAD_INPUT, STR("--sp"),
                    "sp %llu and the %llu heads of keys and values do not divide each other", sp,
                    (unsigned long long)p->model.kv_heads);
    if (p->context % p->ulysses)
        return FAIL(e, BAD_INPUT, STR("--context"), "the context is not a multiple of sp %llu", sp);
    return true;
}

// Sizes that no card holds are refused before they are multiplied further; a history of millions of
// chunks would say nothing new.
static bool is_countable(const struct plan *p, struct error *e)
{
    const struct model *m = &p->model;
    uint64_t widest = m->vocab > m->intermediate ? m->vocab : m->intermediate;
    uint64_t attention = m->heads * m->head_dim;
    widest = widest > attention ? widest : attention;
    uint64_t largest = sat_mul(sat_mul(plan_tokens(p), widest), LARGEST_BYTES_PER_ELEMENT);
    if (largest >= EVENT_MAX_BYTES || sat_mul(p->parameters.total, 4) >= EVENT_MAX_BYTES)
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "%llu tokens of this model are more than can be counted",
                    (unsigned long long)plan_tokens(p));
    if (p->loss == LOSS_CHUNKED && u64_divide_up(plan_tokens(p), p->loss_chunk) > MOST_CHUNKS)
        return FAIL(
            e, BAD_INPUT, STR("--loss"), "%llu tokens in chunks of %llu are more than %d chunks",
            (unsigned long long)plan_tokens(p), (unsigned long long)p->loss_chunk, MOST_CHUNKS);
    return true;
}

// What FSDP1 could do, but no measured run shows.
static bool is_possible_fsdp1(const struct plan *p, struct error *e)
{
    if (p->strategy != STRATEGY_FSDP1)
        return true;
    if (p->precision != PRECISION_MIXED)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "fsdp1 is modelled in mixed precision only; fsdp2 also trains in bf16");
    if (model_has(&p->model, FEATURE_EXPERTS))
        return FAIL(e, UNSUPPORTED, STR("--strategy"),
                    "a mixture of experts is not modelled under fsdp1; fsdp2 is");
    if (p->loss != LOSS_FULL)
        return FAIL(e, UNSUPPORTED, STR("--loss"),
                    "fsdp1 is modelled with the full loss only; fsdp2 with any");
    if (!p->reshard)
        return FAIL(e, UNSUPPORTED, STR("--reshard"),
                    "fsdp1 is modelled with FULL_SHARD only; fsdp2 also keeps its layers");
    if (p->accumulation > 1)
        return FAIL(e, UNSUPPORTED, STR("--accum"),
                    "fsdp1 is modelled with one micro-batch a step; fsdp2 with several");
    return true;
}

static bool is_possible(const struct plan *p, struct error *e)
{
    if (!p->context)
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "no context is given; --context 32k is an example");
    if (p->strategy == STRATEGY_SINGLE && plan_ranks(p) > 1)
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "single trains on one GPU, not on %llu; fsdp2 shards over them",
                    (unsigned long long)plan_ranks(p));
    if (plan_is_sharded(p) && plan_ranks(p) == 1)
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "%s has nothing to shard over on one GPU; single trains there",
                    p->strategy == STRATEGY_FSDP1 ? "fsdp1" : "fsdp2");
    if (!plan_is_sharded(p) && p->precision == PRECISION_MIXED)
        return FAIL(
            e, BAD_INPUT, STR("--precision"),
            "mixed is a policy of fsdp1 and fsdp2; single and ddp train in bf16 or autocast");
    if (plan_is_sharded(p) && p->precision == PRECISION_AUTOCAST)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "autocast under fsdp is not modelled; mixed is its policy for bf16 compute");
    if (p->strategy != STRATEGY_FSDP2 && p->offload)
        return FAIL(e, BAD_INPUT, STR("--offload"),
                    "offload is a policy of fsdp2, which needs several GPUs");
    if (p->strategy == STRATEGY_DDP && p->loss == LOSS_NONE && !model_has(&p->model, FEATURE_TIED))
        return FAIL(
            e, BAD_INPUT, STR("--loss"),
            "ddp needs a gradient of every parameter, and without a loss the head has none");
    return is_possible_fsdp1(p, e) && is_possible_sequence_parallel(p, e);
}

bool plan_from_settings(struct plan *p, struct arena *a, const struct settings *s, struct error *e)
{
    struct plan found = {.batch = 1,
                         .ulysses = 1,
                         .accumulation = 1,
                         .checkpointing = true,
                         .reshard = true,
                         .torch_minor = TORCH_NEWEST};
    struct reader r = {s, e};
    const struct setting *model = settings_find_z(s, "model");
    struct str where = model ? model->where : STR("--model");
    if (!model_from_settings(&found.model, a, s, e) ||
        !parameters_of(&found.parameters, a, &found.model, e) ||
        !hardware_from_settings(&found.hardware, a, s, e) || !read_numbers(&r, &found) ||
        !is_possible(&found, e) || !is_modelled(&found, where, e) || !is_countable(&found, e))
        return false;
    *p = found;
    return true;
}

bool plan_is_sharded(const struct plan *p)
{
    return p->strategy == STRATEGY_FSDP1 || p->strategy == STRATEGY_FSDP2;
}

uint64_t plan_ranks(const struct plan *p)
{
    return hardware_gpus(&p->hardware);
}

uint64_t plan_sequence_tokens(const struct plan *p)
{
    return p->context / p->ulysses;
}

uint64_t plan_tokens(const struct plan *p)
{
    return plan_sequence_tokens(p) * p->batch;
}
