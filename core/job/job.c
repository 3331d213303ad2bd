// Reading a job. What is not modelled is refused here, in one sentence that says what is.
#include "core/job/job.h"

#include "core/allocator/torch.h"
#include "core/base/num.h"
#include "core/trace/event.h"

// Attention's scratch has eight bytes for an element of its input, twice.
enum { LARGEST_BYTES_PER_ELEMENT = 16, MOST_CHUNKS = 2048, ALL_TARGETS = (1 << TARGET_COUNT) - 1 };

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
// full, chunked:N, none or liger.
static bool read_loss(struct reader *r, struct job *p)
{
    const struct setting *item = settings_find_z(r->settings, "loss");
    if (p->recipe == RECIPE_TRINITY) {
        p->loss = LOSS_POLICY;
        return !item || FAIL(r->error, BAD_INPUT, item->where,
                             "the trinity recipe has a loss of its own, a policy gradient");
    }
    if (!item || str_is(item->value, "full"))
        return true;
    struct str_cut cut = str_cut(item->value, ':');
    struct setting chunk = {STR("the chunk of loss"), cut.tail, item->where};
    if (str_is(item->value, "none")) {
        p->loss = LOSS_NONE;
        return true;
    }
    if (str_is(item->value, "liger")) {
        p->loss = LOSS_LIGER;
        return true;
    }
    p->loss = LOSS_CHUNKED;
    if (!str_is(cut.head, "chunked") || !cut.found)
        return FAIL(r->error, BAD_INPUT, item->where,
                    "loss must be full, chunked:TOKENS, none or liger, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    return setting_number(&p->loss_chunk, &chunk, UNIT_COUNT, (struct range){1, 1 << 28}, r->error);
}

static bool read_ring(struct reader *r, struct job *p)
{
    if (!read_count(r, &p->ring, "cp"))
        return false;
    // The last but one: it joins halves, as all but the last do, and most of its blocks are whole.
    p->ring_rank = p->ring > 1 ? p->ring - 2 : 0;
    return read_count(r, &p->ring_rank, "cp-rank");
}

static const char target_names[] = "q|k|v|o|gate|up|down"; // in the order of enum lora_target

static bool read_target(struct reader *r, struct job *p, struct str name, struct str where)
{
    struct words words = words_of(target_names, '|');
    for (int i = 0; words_next(&words); i++)
        if (str_equal(words.word, name)) {
            p->lora_targets |= 1u << i;
            return true;
        }
    return FAIL(r->error, BAD_INPUT, where,
                "lora-targets must be all-linear or a list out of q,k,v,o,gate,up,down, not '%.*s'",
                STR_ARGS(str_short(name)));
}

// all-linear, or names with commas between them.
static bool read_lora(struct reader *r, struct job *p)
{
    const struct setting *rank = settings_find_z(r->settings, "lora");
    const struct setting *targets = settings_find_z(r->settings, "lora-targets");
    int packed = 0;
    packed = settings_choice(r->settings, "quantize", packed);
    p->packed = packed > 0;
    if (!read_count(r, &p->lora_rank, "lora"))
        return false;
    if (targets && !rank)
        return FAIL(r->error, BAD_INPUT, targets->where,
                    "lora-targets needs a rank; --lora 16 is an example");
    if (!targets || str_is(targets->value, "all-linear")) {
        p->lora_targets = ALL_TARGETS;
        return true;
    }
    for (struct str_cut c = str_cut(targets->value, ',');; c = str_cut(c.tail, ',')) {
        if (!read_target(r, p, c.head, targets->where))
            return false;
        if (!c.found)
            return true;
    }
}

// verl cuts the eight sequences of a sequence parallel group into as few micro-batches as hold at
// most so many tokens a GPU, and evens them out (utils/seqlen_balancing.py).
static bool read_token_limit(struct reader *r, struct job *p)
{
    enum { SEQUENCES = 8 };
    const struct setting *item = settings_find_z(r->settings, "max-token-len");
    uint64_t tokens = 0;
    if (!item)
        return true;
    if (p->recipe != RECIPE_TRINITY)
        return FAIL(r->error, BAD_INPUT, item->where,
                    "max-token-len is a setting of trinity; --batch says it elsewhere");
    if (!read_count(r, &tokens, "max-token-len"))
        return false;
    if (sat_mul(tokens, p->ulysses) < p->context)
        return FAIL(r->error, BAD_INPUT, item->where,
                    "one sequence of %llu tokens with sp %llu does not fit into %llu tokens a GPU",
                    (unsigned long long)p->context, (unsigned long long)p->ulysses,
                    (unsigned long long)tokens);
    p->accumulation = u64_divide_up(SEQUENCES * p->context, tokens * p->ulysses);
    p->batch = u64_divide_up(SEQUENCES, p->accumulation);
    return true;
}

static bool read_numbers(struct reader *r, struct job *p)
{
    const struct setting *limit = settings_find_z(r->settings, "memory-limit");
    const struct setting *torch = settings_find_z(r->settings, "torch");
    int strategy = (int)(job_ranks(p) > 1 ? STRATEGY_FSDP2 : STRATEGY_SINGLE);
    int optimizer = OPTIMIZER_ADAMW, offload = 0, recipe = RECIPE_HF, save = SAVE_LAST;
    recipe = settings_choice(r->settings, "recipe", recipe);
    p->recipe = (enum recipe)recipe;
    offload = settings_choice(r->settings, "offload", offload);
    save = settings_choice(r->settings, "save-hf", save);
    if (p->recipe != RECIPE_TRINITY && settings_find_z(r->settings, "save-hf"))
        return FAIL(r->error, BAD_INPUT, STR("--save-hf"),
                    "only trinity's checkpoint is modelled; give --recipe trinity or leave it out");
    p->save_hf = (enum save)save;
    p->offload = (enum offload)offload;
    strategy = settings_choice(r->settings, "strategy", strategy);
    p->strategy = (enum strategy)strategy;
    int precision = job_is_sharded(p) ? PRECISION_MIXED : PRECISION_BF16;
    precision = settings_choice(r->settings, "precision", precision);
    optimizer = settings_choice(r->settings, "optimizer", optimizer);
    p->precision = (enum precision)precision;
    p->optimizer = (enum optimizer)optimizer;
    return read_count(r, &p->context, "context") && read_count(r, &p->batch, "batch") &&
           read_count(r, &p->accumulation, "accum") && read_count(r, &p->ulysses, "sp") &&
           read_ring(r, p) && read_switch(r, &p->checkpointing, "checkpointing") &&
           read_switch(r, &p->checkpoint_offload, "checkpoint-offload") &&
           read_switch(r, &p->reshard, "reshard") && read_switch(r, &p->expandable, "expandable") &&
           read_switch(r, &p->fused_kernels, "fused-kernels") &&
           read_switch(r, &p->entropy_saving, "entropy-saving") && read_loss(r, p) &&
           read_lora(r, p) && read_token_limit(r, p) &&
           (!limit || setting_number(&p->limit_bytes, limit, UNIT_BYTES,
                                     (struct range){0, UINT64_MAX}, r->error)) &&
           (!torch || torch_version_parse(&p->torch_minor, torch->value, r->error));
}

static bool is_modelled(const struct job *p, struct str where, struct error *e)
{
    static const unsigned not_yet = FEATURE_VISION_QWEN3 | FEATURE_VISION_SIGLIP;
    if (p->model.features & not_yet)
        return FAIL(e, UNSUPPORTED, where,
                    "training of %s is not modelled yet; of models with vision none is",
                    p->model.family->title);
    if (p->model.features & (FEATURE_MLA | FEATURE_SINKS) && p->ulysses > 1)
        return FAIL(e, UNSUPPORTED, STR("--sp"),
                    "%s is not modelled under sequence parallel; without it, it is",
                    p->model.family->title);
    if (model_has(&p->model, FEATURE_MLA) && p->precision == PRECISION_AUTOCAST)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "latent attention is not modelled under autocast; bf16 is");
    // fsdp2 casts a layer's fp32 positions, recomputation gets them as they were (torch 2.11).
    if (model_has(&p->model, FEATURE_ROTARY_WIDE) && p->strategy == STRATEGY_FSDP2 &&
        p->precision == PRECISION_MIXED)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "%s in fsdp2's mixed precision is not modelled, and with checkpointing torch "
                    "fails; fsdp1 and bf16 work",
                    p->model.family->title);
    return true;
}

static bool is_possible_sequence_parallel(const struct job *p, struct error *e)
{
    unsigned long long sp = (unsigned long long)p->ulysses;
    if (p->ulysses == 1)
        return true;
    if (job_is_zero(p))
        return FAIL(e, UNSUPPORTED, STR("--sp"),
                    "sequence parallel is not modelled under DeepSpeed; fsdp2 has it");
    if (p->strategy != STRATEGY_FSDP2 && p->recipe != RECIPE_TRINITY)
        return FAIL(e, BAD_INPUT, STR("--sp"), "sequence parallel needs several GPUs and fsdp2");
    if (job_ranks(p) % p->ulysses)
        return FAIL(e, BAD_INPUT, STR("--sp"), "sp %llu does not divide the %llu GPUs", sp,
                    (unsigned long long)job_ranks(p));
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

static bool is_possible_context_parallel(const struct job *p, struct error *e)
{
    unsigned long long cp = (unsigned long long)p->ring;
    if (p->ring_rank >= p->ring)
        return FAIL(e, BAD_INPUT, STR("--cp-rank"), "the ranks of cp %llu are 0 to %llu", cp,
                    cp - 1);
    if (p->ring == 1)
        return true;
    if (p->strategy != STRATEGY_FSDP2)
        return FAIL(e, BAD_INPUT, STR("--cp"),
                    "context parallel needs several GPUs and fsdp2, as in accelerate");
    if (p->ulysses > 1)
        return FAIL(e, BAD_INPUT, STR("--cp"),
                    "cp and sp exclude each other in accelerate; choose one");
    if (job_ranks(p) % p->ring)
        return FAIL(e, BAD_INPUT, STR("--cp"), "cp %llu does not divide the %llu GPUs", cp,
                    (unsigned long long)job_ranks(p));
    if (p->context % (2 * p->ring))
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "the context is not a multiple of twice cp %llu, in which it is dealt out", cp);
    return true;
}

// Sizes that no card holds are refused before they are multiplied further; a history of millions of
// chunks would say nothing new.
static bool is_countable(const struct job *p, struct error *e)
{
    const struct model *m = &p->model;
    uint64_t widest = m->vocab > m->intermediate ? m->vocab : m->intermediate;
    uint64_t attention = m->heads * m->head_dim;
    widest = widest > attention ? widest : attention;
    uint64_t pairs = job_attends_eagerly(p) ? sat_mul(m->heads, p->context)
                     : job_masks_windows(p) ? p->context
                                            : 0;
    widest = widest > pairs ? widest : pairs;
    widest = widest > p->lora_rank ? widest : p->lora_rank;
    uint64_t largest = sat_mul(sat_mul(job_tokens(p), widest), LARGEST_BYTES_PER_ELEMENT);
    uint64_t gathered = sat_mul(sat_mul(job_tokens(p), m->kv_heads * m->head_dim), 4 * p->ring);
    largest = largest > gathered ? largest : gathered;
    if (largest >= EVENT_MAX_BYTES || sat_mul(p->parameters.total, 4) >= EVENT_MAX_BYTES)
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "%llu tokens of this model are more than can be counted",
                    (unsigned long long)job_tokens(p));
    if (p->loss == LOSS_CHUNKED && u64_divide_up(job_tokens(p), p->loss_chunk) > MOST_CHUNKS)
        return FAIL(
            e, BAD_INPUT, STR("--loss"), "%llu tokens in chunks of %llu are more than %d chunks",
            (unsigned long long)job_tokens(p), (unsigned long long)p->loss_chunk, MOST_CHUNKS);
    return true;
}

// Qwen, Llama and Mistral without windows: what recipes and strategies of narrow evidence model.
static bool is_plain(const struct job *p)
{
    static const unsigned plain = FEATURE_TIED | FEATURE_QKV_BIAS | FEATURE_QK_NORM;
    return !(p->model.features & ~plain) && !job_masks_windows(p);
}

// What DeepSpeed could do, but no measured run shows.
static bool is_possible_zero(const struct job *p, struct error *e)
{
    if (!job_is_zero(p))
        return true;
    if (p->precision != PRECISION_MIXED)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "DeepSpeed is modelled in mixed precision only: bf16 with fp32 master copies");
    if (model_has(&p->model, FEATURE_EXPERTS))
        return FAIL(e, UNSUPPORTED, STR("--strategy"),
                    "a mixture of experts is not modelled under DeepSpeed; fsdp2 is");
    if (!is_plain(p))
        return FAIL(e, UNSUPPORTED, STR("--strategy"),
                    "%s is not modelled under DeepSpeed; Qwen, Llama and Mistral are",
                    p->model.family->title);
    if (p->strategy == STRATEGY_ZERO3 && p->loss != LOSS_FULL)
        return FAIL(e, UNSUPPORTED, STR("--loss"),
                    "zero3 is modelled with the full loss only; zero1 and zero2 with any");
    if (!p->reshard)
        return FAIL(e, UNSUPPORTED, STR("--reshard"),
                    "DeepSpeed decides itself what it keeps; reshard off is a policy of fsdp2");
    return true;
}

// What FSDP1 could do, but no measured run shows.
static bool is_possible_fsdp1(const struct job *p, struct error *e)
{
    if (p->strategy != STRATEGY_FSDP1 || p->recipe == RECIPE_TRINITY)
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
    return true;
}

static bool is_possible_trinity(const struct job *p, struct error *e)
{
    if (p->recipe != RECIPE_TRINITY)
        return true;
    if (p->strategy != STRATEGY_FSDP1 && p->strategy != STRATEGY_FSDP2)
        return FAIL(e, BAD_INPUT, STR("--strategy"), "trinity trains under fsdp1 or fsdp2");
    if (p->offload == OFFLOAD_OPTIMIZER)
        return FAIL(e, BAD_INPUT, STR("--offload"),
                    "trinity's offload policy under fsdp2 keeps everything in host memory: all");
    if (p->precision != PRECISION_MIXED)
        return FAIL(e, BAD_INPUT, STR("--precision"), "trinity trains in mixed precision");
    if (!p->checkpointing)
        return FAIL(e, UNSUPPORTED, STR("--checkpointing"),
                    "the trinity recipe is modelled with checkpointing only");
    if (!is_plain(p))
        return FAIL(e, UNSUPPORTED, STR("--model"),
                    "%s is not modelled under the trinity recipe; Qwen, Llama and Mistral without "
                    "experts and windows are",
                    p->model.family->title);
    if (p->ring > 1)
        return FAIL(e, BAD_INPUT, STR("--cp"), "trinity has no context parallel; --sp is Ulysses");
    return true;
}

static bool is_possible_recipe(const struct job *p, struct error *e)
{
    if (p->recipe == RECIPE_DEEPSPEED && !job_is_zero(p))
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "DeepSpeed's strategies are zero1, zero2 and zero3");
    if (p->recipe == RECIPE_TRL && p->ulysses > 1)
        return FAIL(
            e, UNSUPPORTED, STR("--sp"),
            "Accelerate runs Ulysses through DeepSpeed only, where it is not modelled; TRL's "
            "context parallel is --cp");
    if (!p->reshard && !job_is_sharded(p))
        return FAIL(e, BAD_INPUT, STR("--reshard"),
                    "nothing is sharded here; reshard is a policy of fsdp2");
    if (p->recipe != RECIPE_TRINITY && p->fused_kernels)
        return FAIL(
            e, BAD_INPUT, STR("--fused-kernels"),
            "fused kernels are a setting of trinity; a chunked loss saves logits elsewhere");
    if (p->recipe != RECIPE_TRINITY && p->entropy_saving)
        return FAIL(e, BAD_INPUT, STR("--entropy-saving"),
                    "an entropy is computed under trinity only; give --recipe trinity");
    if (p->recipe == RECIPE_TRL && p->loss == LOSS_NONE)
        return FAIL(e, BAD_INPUT, STR("--loss"), "TRL trains with a head; hf also without");
    if (p->recipe == RECIPE_TRL && job_is_sharded(p) && p->accumulation > 1)
        return FAIL(e, UNSUPPORTED, STR("--accum"),
                    "transformers' Trainer keeps whole gradients between micro-batches (no_sync), "
                    "which is not modelled; hf shards them each time");
    if (p->checkpoint_offload && !p->checkpointing)
        return FAIL(e, BAD_INPUT, STR("--checkpoint-offload"),
                    "without checkpointing no layer is recomputed, and nothing waits in the host");
    return true;
}

static bool is_possible_offload(const struct job *p, struct error *e)
{
    bool zero_offloads = p->strategy == STRATEGY_ZERO2 || p->strategy == STRATEGY_ZERO3;
    if (p->offload == OFFLOAD_OPTIMIZER && !zero_offloads)
        return FAIL(e, BAD_INPUT, STR("--offload"),
                    "an optimizer in host memory is modelled under zero2 and zero3 only");
    if (p->offload == OFFLOAD_ALL && p->strategy != STRATEGY_FSDP2 && p->strategy != STRATEGY_ZERO3)
        return FAIL(e, BAD_INPUT, STR("--offload"),
                    "offload is a policy of fsdp2 and zero3, which need several GPUs");
    return true;
}

// Operators of other families have not been taught which of their inputs need no gradient.
static bool is_possible_adapter(const struct job *p, struct error *e)
{
    if (p->packed && !p->lora_rank)
        return FAIL(e, BAD_INPUT, STR("--quantize"),
                    "weights in four bits cannot be trained; --lora 16 trains adapters over them");
    if (p->packed && (p->precision != PRECISION_BF16 || p->strategy != STRATEGY_SINGLE))
        return FAIL(e, UNSUPPORTED, STR("--quantize"),
                    "nf4 is modelled on one GPU (single) with bf16 compute only");
    if (p->lora_rank && !is_plain(p))
        return FAIL(
            e, UNSUPPORTED, STR("--lora"),
            "LoRA over %s is not modelled; over Qwen, Llama and Mistral without experts and "
            "windows it is",
            p->model.family->title);
    if (p->lora_rank && p->recipe != RECIPE_HF)
        return FAIL(e, UNSUPPORTED, STR("--lora"),
                    "LoRA is modelled in the plain step only (recipe hf)");
    if (p->lora_rank && p->ring > 1)
        return FAIL(e, UNSUPPORTED, STR("--lora"), "LoRA is not modelled under context parallel");
    if (p->lora_rank && job_is_sharded(p))
        return FAIL(e, UNSUPPORTED, STR("--lora"),
                    "LoRA is not modelled under fsdp and DeepSpeed; single and ddp are");
    if (p->lora_rank && p->checkpoint_offload)
        return FAIL(e, UNSUPPORTED, STR("--lora"),
                    "LoRA is not modelled with checkpoints in host memory");
    return true;
}

bool job_has_8bit_optimizer(const struct job *p)
{
    return p->optimizer == OPTIMIZER_ADAMW_8BIT || p->optimizer == OPTIMIZER_ADAMW_8BIT_HF;
}

// What other libraries do, no measured run shows when sharded or in another step.
static bool is_possible_library(const struct job *p, struct error *e)
{
    if (job_has_8bit_optimizer(p) && job_is_sharded(p))
        return FAIL(
            e, UNSUPPORTED, STR("--optimizer"),
            "the 8-bit optimizer is not modelled under fsdp and DeepSpeed; single and ddp are");
    if (p->loss == LOSS_LIGER && job_is_sharded(p))
        return FAIL(e, UNSUPPORTED, STR("--loss"),
                    "liger's loss is not modelled under fsdp and DeepSpeed; a chunked loss is");
    if (p->loss == LOSS_LIGER && p->recipe == RECIPE_TRL)
        return FAIL(e, UNSUPPORTED, STR("--loss"),
                    "liger's loss is not modelled in TRL's step; its chunked loss is");
    if (p->loss == LOSS_LIGER && model_has(&p->model, FEATURE_LOGIT_CAP))
        return FAIL(e, UNSUPPORTED, STR("--loss"),
                    "liger's loss over soft-capped logits is not modelled; the full loss is");
    return true;
}

static bool is_possible(const struct job *p, struct error *e)
{
    static const char *const strategy_names[] = {"single", "ddp",   "fsdp1", "fsdp2",
                                                 "zero1",  "zero2", "zero3"};
    if (!p->context)
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "no context is given; --context 32k is an example");
    if (p->recipe == RECIPE_TRINITY && !is_possible_trinity(p, e))
        return false;
    if (p->strategy == STRATEGY_SINGLE && job_ranks(p) > 1)
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "single trains on one GPU, not on %llu; fsdp2 shards over them",
                    (unsigned long long)job_ranks(p));
    if (job_is_sharded(p) && !job_is_zero(p) && job_ranks(p) == 1 && p->recipe != RECIPE_TRINITY)
        return FAIL(e, BAD_INPUT, STR("--strategy"),
                    "%s has nothing to shard over on one GPU; single trains there",
                    strategy_names[p->strategy]);
    if (!job_is_sharded(p) && p->precision == PRECISION_MIXED)
        return FAIL(
            e, BAD_INPUT, STR("--precision"),
            "mixed is a policy of fsdp1 and fsdp2 and of DeepSpeed; single and ddp train in bf16 "
            "or autocast");
    if (job_is_sharded(p) && !job_is_zero(p) && p->precision == PRECISION_AUTOCAST)
        return FAIL(e, UNSUPPORTED, STR("--precision"),
                    "autocast under fsdp is not modelled; mixed is its policy for bf16 compute");
    if (p->strategy == STRATEGY_DDP && p->loss == LOSS_NONE && !model_has(&p->model, FEATURE_TIED))
        return FAIL(
            e, BAD_INPUT, STR("--loss"),
            "ddp needs a gradient of every parameter, and without a loss the head has none");
    return is_possible_recipe(p, e) && is_possible_offload(p, e) && is_possible_fsdp1(p, e) &&
           is_possible_zero(p, e) && is_possible_sequence_parallel(p, e) &&
           is_possible_context_parallel(p, e) && is_possible_adapter(p, e) &&
           is_possible_library(p, e);
}

bool job_check(const struct job *p, struct str where, struct error *e)
{
    ASSERT(p->ulysses && p->ring && p->batch && p->accumulation);
    return is_possible(p, e) && is_modelled(p, where, e) && is_countable(p, e);
}

bool job_from_settings(struct job *p, struct arena *a, const struct settings *s, struct error *e)
{
    struct job found = {.batch = 1,
                        .ulysses = 1,
                        .ring = 1,
                        .accumulation = 1,
                        .checkpointing = true,
                        .reshard = true,
                        .torch_minor = TORCH_NEWEST};
    struct settings *effective = NEW(a, struct settings, 1);
    struct reader r = {effective, e};
    *effective = settings_in(a);
    found.settings = effective;
    const struct setting *model = settings_find_z(s, "model");
    struct str where = model ? model->where : STR("--model");
    if (!model_from_settings(&found.model, a, s, e) ||
        !parameters_of(&found.parameters, a, &found.model, e) ||
        !hardware_from_settings(&found.hardware, a, s, e) ||
        !recipe_fill(effective, s, job_ranks(&found) > 1, e) || !read_numbers(&r, &found) ||
        !job_check(&found, where, e))
        return false;
    *p = found;
    return true;
}

// The only attention of transformers that caps its scores, and the one it takes for sinks where no
// kernel is installed. Sequence parallel has its own.
bool job_attends_eagerly(const struct job *p)
{
    return p->model.features & (FEATURE_ATTENTION_CAP | FEATURE_SINKS) && p->ulysses == 1;
}

// A window as long as the sequence gets a mask too (masking_utils.py, _ignore_causal_mask_sdpa).
bool job_masks_windows(const struct job *p)
{
    return p->model.sliding_window && p->model.sliding_window <= job_sequence_tokens(p) &&
           p->ulysses == 1;
}

void job_put_targets(struct buf *b, const struct job *p)
{
    struct words words = words_of(target_names, '|');
    bool first = true;
    if (p->lora_targets == ALL_TARGETS) {
        buf_put_z(b, "all-linear");
        return;
    }
    for (int i = 0; words_next(&words); i++)
        if (p->lora_targets & 1u << i) {
            buf_put_z(b, first ? "" : ",");
            buf_put(b, words.word);
            first = false;
        }
}

bool job_is_sharded(const struct job *p)
{
    return p->strategy >= STRATEGY_FSDP1;
}

bool job_is_zero(const struct job *p)
{
    return p->strategy >= STRATEGY_ZERO1;
}

// torch 2.9 and later choose cuDNN on compute capability 9.0 and 10.0
// (ATen/native/transformers/cuda/sdp_utils.cpp); verl asks for the package flash-attn everywhere.
bool job_uses_flash(const struct job *p)
{
    int capability = p->hardware.card.capability;
    bool cudnn = p->torch_minor >= 9 && (capability == 90 || capability == 100);
    return p->recipe == RECIPE_TRINITY || !cudnn;
}

uint64_t job_ranks(const struct job *p)
{
    return hardware_gpus(&p->hardware);
}

uint64_t job_sequence_tokens(const struct job *p)
{
    return p->context / (p->ulysses * p->ring);
}

uint64_t job_tokens(const struct job *p)
{
    return job_sequence_tokens(p) * p->batch;
}
