// Resolving: settings are completed by the recipe and the table, read into fields, and checked
// against the rules.
#include "core/job/job.h"

#include "core/base/num.h"
#include "core/job/fields.h"
#include "core/job/rules.h"
#include "core/trace/event.h"

// Attention's scratch has eight bytes for an element of its input, twice.
enum {
    LARGEST_BYTES_PER_ELEMENT = 16,
    MOST_CHUNKS = 2048,
    MOST_IN_ENTROPY = 1 << 28,
    MOST_PIECES = 1 << 14
};
enum { USUAL_IMAGE = 1024 };         // pixels of a side
enum { BATCH_BYTES_PER_TOKEN = 32 }; // no more than four columns

// Tasks that one framework alone is modelled with: its trainer is meant where nobody is named.
static const char *const recipe_of_task[TASKS] = {
    [TASK_REWARD] = "trl", [TASK_DPO] = "trl",     [TASK_KTO] = "trl", [TASK_GRPO] = "trl",
    [TASK_RLOO] = "trl",   [TASK_DISTILL] = "trl", [TASK_OPD] = "trl", [TASK_CAPACITY] = "trinity",
};

static const char *recipe_by_task(const struct setting *task)
{
    int word = task ? setting_word(setting_def_find(task->key), task->value) : -1;
    return word >= 0 ? recipe_of_task[word] : NULL;
}

// What --for implies, or else --task, unless the user says it: whose training step it is.
static bool add_implied_recipe(struct settings *given, struct error *e)
{
    const struct setting *target = settings_find_z(given, "for"),
                         *task = settings_find_z(given, "task");
    const char *recipe = recipe_by_task(task);
    struct job only = {0};
    if (settings_find_z(given, "recipe") || (!target && !recipe))
        return true;
    const struct setting *around = settings_find_z(given, "around");
    if (target && (!read_for(&only, target, e) || (around && !read_around(&only, around, e))))
        return false;
    if (target)
        recipe = target_defs[only.target].recipe;
    struct str where = target ? target->where : task->where;
    return settings_add(given, (struct setting){STR("recipe"), str_from(recipe), where}, e);
}

// A prompt and a response are a context, unless the user says one too.
static bool add_implied_context(struct settings *given, struct error *e)
{
    const struct setting *parts[] = {settings_find_z(given, "prompt"),
                                     settings_find_z(given, "response")};
    uint64_t tokens[COUNT_OF(parts)] = {0};
    for (ptrdiff_t i = 0; i < COUNT_OF(parts); i++) {
        const struct setting_def *def = parts[i] ? setting_def_find(parts[i]->key) : NULL;
        if (!def || settings_find_z(given, "context"))
            return true;
        if (!setting_number(&tokens[i], parts[i], UNIT_COUNT, (struct range){def->min, def->max},
                            e))
            return false;
    }
    unsigned long long sum = tokens[0] + tokens[1];
    struct str context = str_format(given->arena, "%llu", sum);
    return settings_add(given, (struct setting){STR("context"), context, parts[1]->where}, e);
}

// slime fills micro-batches up to so many tokens a GPU; a longer sample has one of its own
// (slime/utils/dp_schedule.py).
static void pack_for_slime(struct job *j, uint64_t sequences)
{
    j->batch = u64_most(1, sat_mul(j->token_limit, j->ring) / j->context);
    j->accumulation = u64_divide_up(sequences, j->batch);
    j->token_limit = 0;
}

// verl cuts the sequences of a sequence parallel group into as few micro-batches as hold at most so
// many tokens a GPU, and evens them out (utils/seqlen_balancing.py). The limit is then said by
// them.
static bool spread_tokens(struct job *j, struct error *e)
{
    uint64_t sequences = sat_mul(j->batch, j->accumulation);
    const struct setting *item = settings_find_z(j->given, "max-token-len");
    if (j->recipe == RECIPE_MEGATRON && j->token_limit && j->context) {
        pack_for_slime(j, sequences);
        return true;
    }
    bool verls = j->recipe == RECIPE_TRINITY || j->recipe == RECIPE_VERL;
    if (!j->token_limit || !j->context || !verls)
        return true;
    if (sat_mul(j->token_limit, j->ulysses) < j->context)
        return FAIL(e, BAD_INPUT, item->where,
                    "one sequence of %llu tokens with sp %llu does not fit into %llu tokens a GPU",
                    (unsigned long long)j->context, (unsigned long long)j->ulysses,
                    (unsigned long long)j->token_limit);
    j->accumulation =
        u64_divide_up(sat_mul(sequences, j->context), sat_mul(j->token_limit, j->ulysses));
    j->batch = u64_divide_up(sequences, j->accumulation);
    j->token_limit = 0;
    return true;
}

// All of peft's linear layers where none is named, or all that have a name; beside experts those
// are fewer, and in a vision tower.
static void conclude_targets(struct job *j)
{
    if (j->lora_rank && !j->lora_targets)
        j->lora_targets = LORA_ALL_TARGETS;
    bool fewer = model_has(&j->model, FEATURE_EXPERTS) || j->model.vision.depth;
    if (j->lora_targets == LORA_NAMED_TARGETS && !fewer)
        j->lora_targets = LORA_ALL_TARGETS;
}

// Fields that depend on others where nothing is given.
static void conclude(struct job *j)
{
    // The last but one: it joins halves, as all but the last do, and most of its blocks are whole.
    if (!settings_find_z(j->given, "cp-rank"))
        j->ring_rank = j->ring > 1 ? j->ring - 2 : 0;
    // A quarter of the context, as emit writes it where nobody says (core/emit/rollout.c).
    if (job_generates(j) && !settings_find_z(j->given, "prompt"))
        j->prompt = !j->response               ? j->context / 4
                    : j->response < j->context ? j->context - j->response
                                               : 0;
    if (j->task == TASK_RLOO && !settings_find_z(j->given, "beta")) // trl 1.16: beta = 0.05
        j->has_kl = true;
    if (!j->image_width)
        j->image_width = j->image_height = USUAL_IMAGE;
    conclude_targets(j);
    j->overlap_comm &= job_is_zero(j);
    job_settle_zero_sizes(j);
    // trl 1.16, trainer/sft_trainer.py and the others, whatever they are told
    j->reentrant |= j->recipe == RECIPE_TRL && j->lora_rank && j->strategy == STRATEGY_ZERO3;
    j->reentrant &= j->checkpointing;
    bool several = j->accumulation > 1;
    bool between = several && job_is_sharded(j) && !job_is_zero(j);
    // transformers 5.17, trainer.py: no_sync around all but the last micro-batch, of ddp too
    bool defers = between || (several && j->strategy == STRATEGY_DDP);
    j->reduces_last = defers && !j->sync_each_batch;
    j->sync_each_batch |= !between; // there is nothing to keep
}

// Of a token's largest tensor.
static uint64_t width_of(const struct model *m)
{
    const struct vision *v = &m->vision;
    uint64_t of_text = u64_most(u64_most(m->vocab, m->intermediate), m->heads * m->head_dim);
    uint64_t pixels = v->channels * v->temporal_patch * v->patch * v->patch;
    uint64_t merged = v->merge * v->merge; // patches of a token
    return u64_most(of_text,
                    sat_mul(merged, u64_most(u64_most(4 * v->hidden, v->intermediate), pixels)));
}

// Tokens of the largest forward pass: of training, of a reference, of evaluation, or of all answers
// of a step, which are generated together.
static uint64_t most_tokens(const struct job *p)
{
    struct job evaluated = *p;
    evaluated.batch = p->evaluation_batch;
    uint64_t answers = job_generates(p) ? sat_mul(p->batch, p->accumulation) : 0;
    uint64_t read = sat_mul(job_sequence_tokens(p), u64_most(job_reference_batch(p), answers));
    return u64_most(job_tokens(p), u64_most(job_tokens(&evaluated), read));
}

// Sizes that no card holds are refused before they are multiplied further; a history of millions of
// chunks would say nothing new.
static bool has_countable_images(const struct job *p, struct error *e)
{
    struct image_grid grid;
    if (!job_image_tokens(p) || !image_grid_of(&grid, &p->model, p->image_width, p->image_height))
        return true;
    uint64_t pieces = sat_mul(image_windows(&p->model, grid), sat_mul(p->images, job_rows(p)));
    return pieces <= MOST_PIECES ||
           FAIL(e, UNSUPPORTED, STR("--images"),
                "a micro-batch of %llu images, or windows of them, is more than is followed: %d",
                (unsigned long long)pieces, MOST_PIECES);
}

static bool is_countable(const struct job *p, struct error *e)
{
    if (!has_countable_images(p, e))
        return false;
    const struct model *m = &p->model;
    uint64_t widest = u64_most(width_of(m), p->teacher ? width_of(p->teacher) : 0);
    bool masks = job_masks_windows(p) || job_masks_rows(p) || job_masks_always(p);
    uint64_t pairs = job_attends_eagerly(p) ? sat_mul(m->heads, p->context)
                     : masks                ? job_sequence_tokens(p)
                                            : 0;
    widest = widest > pairs ? widest : pairs;
    widest = widest > p->lora_rank ? widest : p->lora_rank;
    uint64_t tokens = most_tokens(p);
    uint64_t largest = sat_mul(sat_mul(tokens, widest), LARGEST_BYTES_PER_ELEMENT);
    uint64_t gathered = sat_mul(sat_mul(job_tokens(p), m->kv_heads * m->head_dim), 4 * p->ring);
    uint64_t batches = sat_mul(sat_mul(job_tokens(p), BATCH_BYTES_PER_TOKEN), p->accumulation);
    largest = largest > gathered ? largest : gathered;
    largest = largest > batches ? largest : batches;
    if (largest >= EVENT_MAX_BYTES || sat_mul(p->parameters.total, 4) >= EVENT_MAX_BYTES)
        return FAIL(e, BAD_INPUT, STR("--context"),
                    "%llu tokens of this model are more than can be counted",
                    (unsigned long long)tokens);
    if (p->loss == LOSS_CHUNKED && !job_fuses_head(p) &&
        u64_divide_up(job_tokens(p), p->loss_chunk) > MOST_CHUNKS)
        return FAIL(
            e, BAD_INPUT, STR("--loss"), "%llu tokens in chunks of %llu are more than %d chunks",
            (unsigned long long)job_tokens(p), (unsigned long long)p->loss_chunk, MOST_CHUNKS);
    if (p->entropy_saving && job_tokens(p) > MOST_IN_ENTROPY)
        return FAIL(e, BAD_INPUT, STR("--entropy-saving"),
                    "the entropy of %llu tokens at once has more chunks than can be followed; %d "
                    "tokens in a micro-batch are the most",
                    (unsigned long long)job_tokens(p), MOST_IN_ENTROPY);
    return true;
}

// What a target's files have no word for would silently be left out.
static bool can_be_written(const struct job *j, struct error *e)
{
    for (ptrdiff_t i = 0; i < j->given->count && j->target; i++) {
        const struct setting *item = &j->given->items[i];
        const struct setting_def *def = setting_def_find(item->key);
        bool written = def && def->uses & (USE_JOB | USE_FILES) && !(def->uses & USE_PREDICTION);
        bool usual = def && def->fallback && str_is(item->value, def->fallback);
        bool spoken = !written || usual || def->written_by & 1u << j->target;
        if (!spoken)
            return FAIL(e, BAD_INPUT, item->where, "files for %s have no word for %s",
                        target_defs[j->target].title, def->name);
    }
    return true;
}

static bool check_rules(struct job *j, struct error *e)
{
    j->traits = job_traits(j);
    j->unmodelled = (struct error){0};
    if (!can_be_written(j, e))
        return false;
    const struct rule *broken = rule_broken(j, ERROR_BAD_INPUT);
    if (broken)
        return rule_refuse(broken, j, e);
    broken = rule_broken(j, ERROR_UNSUPPORTED);
    if (broken)
        rule_refuse(broken, j, &j->unmodelled);
    return true;
}

bool job_is_modelled(const struct job *j, struct error *e)
{
    if (j->unmodelled.code)
        *e = j->unmodelled;
    return !j->unmodelled.code && is_countable(j, e);
}

bool job_check(struct job *j, struct error *e)
{
    return check_rules(j, e) && job_is_modelled(j, e);
}

// AutoModelForSequenceClassification with one label (trl 1.16, trainer/reward_trainer.py).
// LLaMA-Factory keeps the model's head beside one of its own.
static bool score_rows(struct job *j, struct arena *a, struct error *e)
{
    if (j->task != TASK_REWARD || j->recipe == RECIPE_LLAMAFACTORY)
        return true;
    j->model.labels = 1;
    j->model.unties_words |= model_has(&j->model, FEATURE_TIED);
    j->model.features &= ~FEATURE_TIED;
    return parameters_of(&j->parameters, a, &j->model, e);
}

// By its name in the catalogue; others are for files only.
static bool read_teacher(struct job *j, struct arena *a, struct error *e)
{
    const struct setting *given = settings_find_z(j->given, "teacher");
    if (!given || !job_generates(j) || j->task != TASK_DISTILL)
        return true;
    struct settings only = settings_in(a);
    struct model *m = NEW(a, struct model, 1);
    struct parameters *p = NEW(a, struct parameters, 1);
    if (!settings_add(&only, (struct setting){STR("model"), given->value, given->where}, e) ||
        !model_from_settings(m, a, &only, e) || !parameters_of(p, a, m, e))
        return false;
    j->teacher = m;
    j->teacher_parameters = p;
    return true;
}

static bool read_model(struct job *j, struct arena *a, const struct settings *s,
                       const struct job *like, struct error *e)
{
    if (!like)
        return model_from_settings(&j->model, a, s, e) &&
               parameters_of(&j->parameters, a, &j->model, e);
    j->model = like->model;
    j->parameters = like->parameters;
    return true;
}

// What no rule has been asked about.
static bool read_job(struct job *j, struct arena *a, const struct settings *s,
                     const struct job *like, struct error *e)
{
    struct settings *given = NEW(a, struct settings, 1), *all = NEW(a, struct settings, 1);
    *j = (struct job){0};
    *given = *all = settings_in(a);
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (!settings_add(given, s->items[i], e))
            return false;
    j->given = given;
    j->settings = all;
    if (!add_implied_recipe(given, e) || !add_implied_context(given, e) ||
        !read_model(j, a, s, like, e) || !hardware_from_settings(&j->hardware, a, s, e) ||
        !recipe_fill(all, given, job_ranks(j) > 1, e) || !job_read_settings(j, all, e) ||
        !score_rows(j, a, e) || !read_teacher(j, a, e) || !spread_tokens(j, e))
        return false;
    job_settle_dropouts(j);
    conclude(j);
    return true;
}

static bool resolve(struct job *j, struct arena *a, const struct settings *s,
                    const struct job *like, struct error *e)
{
    struct job found;
    if (!read_job(&found, a, s, like, e) || !check_rules(&found, e))
        return false;
    *j = found;
    return true;
}

bool job_resolve(struct job *j, struct arena *a, const struct settings *s, struct error *e)
{
    return resolve(j, a, s, NULL, e);
}

bool job_from_settings_like(struct job *j, struct arena *a, const struct settings *s,
                            const struct job *like, struct error *e)
{
    return resolve(j, a, s, like, e) && job_is_modelled(j, e);
}

bool job_taken_tokens(uint64_t *taken, struct arena scratch, const struct settings *s,
                      struct error *e)
{
    struct job *j = NEW(&scratch, struct job, 1);
    if (!read_job(j, &scratch, s, NULL, e))
        return false;
    *taken = u64_most(j->prompt, job_image_tokens(j));
    return true;
}

bool job_from_settings(struct job *j, struct arena *a, const struct settings *s, struct error *e)
{
    return job_from_settings_like(j, a, s, NULL, e);
}

// transformers 5.17 takes sdpa wherever a model has it, Gemma 2 too, whose scores are then not
// capped; gpt-oss has none (_supports_sdpa). verl asks for the package flash-attn everywhere.
enum attention job_attention(const struct job *p)
{
    if (p->attention != ATTENTION_AUTO)
        return p->attention;
    if (p->recipe == RECIPE_TRINITY || p->recipe == RECIPE_VERL)
        return ATTENTION_FLASH2;
    bool eager = model_has(&p->model, FEATURE_SINKS | FEATURE_ALIBI | FEATURE_WIDE_SCORES |
                                          FEATURE_SCORES_BIASED);
    return eager ? ATTENTION_EAGER : ATTENTION_SDPA;
}

bool job_attends_by_package(const struct job *p)
{
    return job_attention(p) == ATTENTION_FLASH2 || job_attention(p) == ATTENTION_FLASH3;
}

// Sequence parallel has its own.
bool job_attends_eagerly(const struct job *p)
{
    return job_attention(p) == ATTENTION_EAGER && p->ulysses == 1;
}

// FlashAttention's kernels know windows themselves.
bool job_masks_windows(const struct job *p)
{
    return job_has_windows(p) && !job_attends_by_package(p);
}

// One as long as the sequence gets a mask too (masking_utils.py, _ignore_causal_mask_sdpa).
bool job_has_windows(const struct job *p)
{
    return p->model.sliding_window && p->model.sliding_window <= job_sequence_tokens(p) &&
           p->ulysses == 1;
}

// LLaMA-Factory 0.9.5, train/sft/workflow.py: its collator pads to a multiple of eight tokens.
static bool pads_single_rows(const struct job *p)
{
    return p->recipe == RECIPE_LLAMAFACTORY && p->batching == BATCHING_PADDED;
}

bool job_has_uneven_rows(const struct job *p)
{
    bool several = p->batching == BATCHING_PACKED || job_rows(p) > 1 || pads_single_rows(p);
    return p->batching != BATCHING_FULL && several;
}

bool job_unpads(const struct job *p)
{
    return p->batching == BATCHING_PADDED && job_has_uneven_rows(p) && job_attends_by_package(p);
}

// Packed and padded rows are attended in pieces where the package does it: no longer than the
// context, and one of that length is the most that a row holds.
uint64_t job_sample_tokens(const struct job *p)
{
    bool in_pieces = job_has_uneven_rows(p) && job_attends_by_package(p);
    return in_pieces && !p->sample_tokens ? p->context : p->sample_tokens;
}

// A mask of rows that are all of one length says nothing, and none is made.
bool job_masks_rows(const struct job *p)
{
    // Gemma 3's images are seen from all of their tokens.
    if (p->images && model_has(&p->model, FEATURE_VISION_SIGLIP))
        return true;
    return job_has_uneven_rows(p) && job_attention(p) == ATTENTION_SDPA;
}

// modeling_falcon.py: allow_is_causal_skip=False.
bool job_masks_always(const struct job *p)
{
    return model_has(&p->model, FEATURE_MASKED) && job_attention(p) == ATTENTION_SDPA;
}

// trl 1.16, distillation_trainer.py: the student's forward stands in for the model's own
// (_ForwardRedirection), in which accelerate would have autocast.
static bool loses_autocast(const struct job *p)
{
    return p->recipe == RECIPE_TRL && p->task == TASK_DISTILL;
}

static bool is_autocast(const struct job *p)
{
    return p->precision == PRECISION_AUTOCAST || p->precision == PRECISION_BF16_AUTOCAST;
}

bool job_computes_wide(const struct job *p)
{
    return p->precision == PRECISION_FP32 ||
           (p->precision == PRECISION_AUTOCAST && loses_autocast(p));
}

// Accelerate has both its autocast and a policy under FSDP: what is asked for then is that weights
// are loaded in fp32, which shards of frozen ones are not without it.
bool job_shards_wide(const struct job *p)
{
    return p->precision == PRECISION_AUTOCAST && job_is_sharded(p);
}

// trl/trainer/utils.py, create_model_from_path: fp32 unless a dtype is given. transformers' Trainer
// leaves frozen weights as they are saved, in bf16.
bool job_shards_frozen_wide(const struct job *p)
{
    bool loads_wide = p->recipe == RECIPE_TRL || p->recipe == RECIPE_HF || job_shards_wide(p);
    return loads_wide && !p->packed && p->precision != PRECISION_BF16_AUTOCAST;
}

// axolotl 0.19 and LLaMA-Factory 0.9.5 train adapters in fp32 over weights in bf16 or four bits
// under the Trainer's autocast. Over bf16 weights alone autocast casts nothing.
static bool adapts_narrow_weights(const struct job *p)
{
    return p->lora_rank && (p->recipe == RECIPE_AXOLOTL || p->recipe == RECIPE_LLAMAFACTORY);
}

bool job_autocasts(const struct job *p)
{
    return (is_autocast(p) && !loses_autocast(p) && !job_is_sharded(p)) ||
           (p->precision == PRECISION_FP16 && !job_is_sharded(p)) ||
           (adapts_narrow_weights(p) && p->precision == PRECISION_BF16);
}

// With peft's prepare_model_for_kbit_training a model is loaded in bf16, packed, and the rest of it
// cast; TRL 1.16 does not call it and loads in fp32 (trainer/utils.py, create_model_from_path).
bool job_is_prepared(const struct job *p)
{
    return p->packed && job_is_wide(p) && p->recipe != RECIPE_TRL;
}

bool job_loads_wide(const struct job *p)
{
    return job_is_wide(p) && !job_is_prepared(p);
}

bool job_is_wide(const struct job *p)
{
    bool scaled = p->precision == PRECISION_FP16 && !job_is_sharded(p);
    return (p->precision == PRECISION_AUTOCAST && !job_shards_wide(p)) ||
           p->precision == PRECISION_FP32 || (scaled && !adapts_narrow_weights(p));
}

bool job_is_mixed(const struct job *p)
{
    bool has_policy = is_autocast(p) || p->precision == PRECISION_FP16;
    return p->precision == PRECISION_MIXED || (has_policy && job_is_sharded(p));
}

// DeepSpeed has its own, a number in host memory.
bool job_scales_loss(const struct job *p)
{
    return p->precision == PRECISION_FP16 && !job_is_zero(p);
}

bool job_is_sharded(const struct job *p)
{
    return p->strategy >= STRATEGY_FSDP1 && p->strategy <= STRATEGY_ZERO3;
}

bool job_cuts_tensors(const struct job *p)
{
    return p->tensor > 1 && p->strategy == STRATEGY_SINGLE;
}

bool job_is_zero(const struct job *p)
{
    return p->strategy >= STRATEGY_ZERO1 && p->strategy <= STRATEGY_ZERO3;
}

// trl 1.16, trainer/utils.py, add_fused_lm_head; before it the loss was chunked by checkpoints.
bool job_fuses_head(const struct job *p)
{
    return p->recipe == RECIPE_TRL && p->version > 0 && p->loss == LOSS_CHUNKED;
}

// trl 1.16, trainer/sft_trainer.py and others, aux_loss_enabled: whenever the configuration has a
// coefficient for it. Its reward trainer has no such loss.
bool job_adds_router_loss(const struct job *p)
{
    bool computes = p->loss == LOSS_FULL || p->loss == LOSS_CHUNKED;
    bool trains = p->task != TASK_REWARD && p->task != TASK_DISTILL;
    return p->recipe == RECIPE_TRL && p->version > 0 && computes && trains &&
           model_has(&p->model, FEATURE_ROUTER_LOSS) && model_has(&p->model, FEATURE_EXPERTS);
}

// axolotl 0.19 (loaders/adapter.py, find_all_linear_names) and LLaMA-Factory 0.9.5
// (model/model_utils/misc.py, find_all_linear_modules) hand peft the names of linear layers, which
// transformers 5's experts are not.
bool job_folds_experts(const struct job *p)
{
    bool lists = p->recipe == RECIPE_AXOLOTL || p->recipe == RECIPE_LLAMAFACTORY;
    return p->lora_rank && model_folds_experts(&p->model) && !lists;
}

// torch 2.9 and later choose cuDNN on compute capability 9.0 and 10.0
// (ATen/native/transformers/cuda/sdp_utils.cpp).
// transformers 5.17, integrations/sdpa_attention.py: without a mask shared heads of keys and values
// are the kernel's business, which of torch 2.11's only cuDNN's and FlashAttention's know
// (sdp_utils.cpp; pytorch#191085 taught another later).
static bool shares_heads(const struct job *p)
{
    enum { MOST_SHARED_DIM = 256 };
    return p->model.heads != p->model.kv_heads && p->model.head_dim <= MOST_SHARED_DIM &&
           !job_masks_rows(p) && !job_repeats_heads(p);
}

// FlashAttention and cuDNN need half precision and compute capability 8.0.
enum attention_kernel job_attention_kernel(const struct job *p)
{
    enum { AMPERE = 80 };
    int capability = p->hardware.card.capability;
    bool cudnn = p->torch_minor >= 9 && (capability == 90 || capability == 100);
    bool flash = !job_computes_wide(p) && (!capability || capability >= AMPERE);
    if (job_attends_by_package(p) || (flash && !cudnn))
        return KERNEL_FLASH;
    if (flash)
        return KERNEL_CUDNN;
    return shares_heads(p) ? KERNEL_MATH : KERNEL_EFFICIENT;
}

// accelerate 1.15, prepare_model: outputs become fp32 where it autocasts.
// A score is one value, and a pair has two rows.
uint64_t job_kept_logits(const struct job *p)
{
    uint64_t width = p->precision == PRECISION_BF16 ? 2 : 4, rows = job_rows(p) / p->batch;
    uint64_t values = p->model.labels ? p->model.labels : sat_mul(p->context, p->model.vocab);
    uint64_t row = sat_mul(values, width * (p->batching == BATCHING_PACKED ? 1 : rows));
    return p->keeps_logits ? sat_mul(row, p->evaluation_rows) : 0;
}

uint64_t job_shards(const struct job *p)
{
    return job_ranks(p) / (p->replicas ? p->replicas : 1);
}

uint64_t job_ranks(const struct job *p)
{
    return hardware_gpus(&p->hardware);
}

uint64_t job_stage_layers(const struct job *p)
{
    uint64_t last = u64_least(p->last_layers, p->model.layers),
             stages = p->pipeline * p->interleaved;
    uint64_t others = last ? u64_most(stages, 2) - 1 : stages;
    return u64_most(last, u64_divide_up(p->model.layers - last, others));
}

bool job_shifts_early(const struct job *p)
{
    bool accelerates = p->recipe == RECIPE_TRL || p->recipe == RECIPE_TRANSFORMERS;
    return p->ring > 1 || (p->ulysses > 1 && job_is_zero(p) && accelerates);
}

// deepspeed 0.19.8, runtime/constants.py: fp32 unless the file says otherwise, as ArcticTraining's
// recipes do (seq_parallel_communication_data_type).
bool job_reduces_wide(const struct job *p)
{
    return p->ulysses > 1 && job_is_zero(p) && p->recipe != RECIPE_DEEPSPEED;
}

uint64_t job_sequence_tokens(const struct job *p)
{
    uint64_t packed = p->batching == BATCHING_PACKED ? p->batch : 1;
    return sat_mul(p->context, packed) / (p->ulysses * p->ring);
}

// trl 1.16: chosen and rejected answers are rows of one batch; packed rows follow each other in one
// (sft_trainer.py, padding_free).
uint64_t job_rows(const struct job *p)
{
    bool pairs = p->task == TASK_REWARD || p->task == TASK_DPO;
    if (p->batching == BATCHING_PACKED)
        return 1;
    bool holds_both = p->recipe == RECIPE_TRL || p->recipe == RECIPE_LLAMAFACTORY;
    return pairs && holds_both ? sat_mul(p->batch, 2) : p->batch;
}

uint64_t job_image_tokens(const struct job *p)
{
    struct image_grid grid;
    if (!p->images || !p->model.vision.depth ||
        !image_grid_of(&grid, &p->model, p->image_width, p->image_height))
        return 0;
    return p->images * (image_tokens(&p->model, grid) + 2);
}

uint64_t job_tokens(const struct job *p)
{
    return sat_mul(job_sequence_tokens(p), job_rows(p));
}

// ArcticTraining b28638e, model/tiled_compute.py: as many shards as the sequence is hidden states
// long; torch.chunk makes them equal, the last one shorter.
uint64_t job_tile_tokens(const struct job *p)
{
    uint64_t tokens = job_tokens(p);
    uint64_t shards = p->tiled_mlp ? u64_divide_up(job_sequence_tokens(p), p->model.hidden) : 1;
    return u64_divide_up(tokens, shards ? shards : 1);
}

bool job_reads_reference(const struct job *p)
{
    return ((p->task == TASK_DPO || p->task == TASK_KTO) && !p->precomputed) ||
           (job_generates(p) && p->has_kl);
}

// trl 1.16, trainer/dpo_trainer.py and kto_trainer.py: but for FSDP, which loads a reference to
// precompute with.
bool job_reads_first(const struct job *p)
{
    return p->precomputed && p->strategy != STRATEGY_FSDP1 && p->strategy != STRATEGY_FSDP2;
}

bool job_generates(const struct job *p)
{
    return p->recipe == RECIPE_TRL &&
           (p->task == TASK_GRPO || p->task == TASK_RLOO || p->task == TASK_DISTILL);
}

// As the policy's are cut, by a limit of their own.
uint64_t job_reference_count(const struct job *p)
{
    uint64_t sequences = sat_mul(p->batch, p->accumulation);
    uint64_t tokens = sat_mul(p->reference_limit, p->ulysses);
    if (!tokens)
        return p->accumulation;
    return u64_divide_up(sat_mul(sequences, p->context), tokens > p->context ? tokens : p->context);
}

uint64_t job_reference_batch(const struct job *p)
{
    return u64_divide_up(sat_mul(p->batch, p->accumulation), job_reference_count(p));
}
