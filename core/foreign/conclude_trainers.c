// What TRL, LLaMA-Factory and axolotl make of their files: tasks, precisions, adapters and kernels
// that one key assumes and another says.
#include "core/foreign/conclude.h"

// trl/trainer/utils.py, get_quantization_config: products over packed weights are in `dtype`. Where
// that is bf16, so are the adapters, and autocast has nothing to cast.
static bool conclude_packed_precision(struct conclusion *c, const struct setting *packed,
                                      bool narrow)
{
    if (!narrow)
        return FAIL(c->error, UNSUPPORTED, packed->where,
                    "products over packed weights in float32 are not modelled; with dtype: "
                    "bfloat16 they are");
    const struct setting *strategy = effective(c, "strategy");
    bool mixed = is_sharded(strategy) && !fact_is(c, "bf16", "false");
    bool cut = strategy && str_is(strategy->value, "fsdp2");
    if (cut && !fact(c, "stored")) // accelerate/utils/fsdp_utils.py, incompatible_params4bit
        return FAIL(c->error, UNSUPPORTED, packed->where,
                    "packed weights are shards under fsdp2 with bnb_4bit_quant_storage: bfloat16 "
                    "only; without it every GPU keeps all of them, which is not modelled");
    return put(c, "quantize", fact(c, "nested") ? STR("nf4") : STR("nf4-single"), packed->where) &&
           put(c, "precision", mixed ? STR("mixed") : STR("bf16"), packed->where);
}

static bool is_zero(const struct setting *strategy)
{
    return strategy && str_starts(strategy->value, STR("zero"));
}

// torch/amp/grad_scaler.py: "Attempting to unscale FP16 gradients."
static bool conclude_trl_fp16(struct conclusion *c)
{
    const struct setting *said = fact(c, "fp16"), *dtype = fact(c, "dtype");
    if (dtype && !fact_is(c, "dtype", "float32") && !is_zero(effective(c, "strategy")))
        return replaced(c, "precision", STR("fp16"), said->where) ||
               FAIL(c->error, UNSUPPORTED, dtype->where,
                    "torch's scaler refuses gradients in fp16, and bf16 weights under it are not "
                    "modelled: dtype: float32");
    return put(c, "precision", STR("fp16"), said->where);
}

static const struct setting *packed_by(const struct conclusion *c)
{
    const struct setting *given = settings_find_z(c->given, "quantize");
    return given ? (str_is(given->value, "off") ? NULL : given) : fact(c, "packed");
}

// bf16 is on unless it is turned off, and models are loaded in float32 (TRL 1.14).
static bool conclude_trl_precision(struct conclusion *c)
{
    const struct setting *trl = fact(c, "TRL"), *dtype = fact(c, "dtype");
    const struct setting *strategy = effective(c, "strategy");
    struct str where = dtype ? dtype->where : trl->where;
    bool narrow = fact_is(c, "dtype", "bfloat16") || fact_is(c, "dtype", "auto");
    if (fact(c, "fp16"))
        return conclude_trl_fp16(c);
    if (dtype && !narrow && !fact_is(c, "dtype", "float32"))
        return replaced(c, "precision", STR("dtype"), where) ||
               FAIL(c->error, UNSUPPORTED, where,
                    "of the dtypes bfloat16 and float32 are modelled");
    const struct setting *packed = packed_by(c);
    if (packed)
        return conclude_packed_precision(c, packed, narrow);
    if (fact_is(c, "bf16", "false"))
        return put(c, "precision", narrow ? STR("bf16") : STR("fp32"), where);
    bool sharded = is_sharded(strategy) || (!strategy && c->ranks > 1);
    bool adapts = fact(c, "adapters") || effective(c, "lora");
    bool frozen = adapts && !is_zero(strategy); // and so not widened
    if (narrow && (!sharded || frozen))
        return put(c, "precision", STR("bf16-autocast"), where);
    return put(c, "precision", sharded ? STR("mixed") : STR("autocast"), where);
}

// TRL's files do not name their task; emit's are named after it.
static struct str task_of(struct str place)
{
    static const char *const tasks[] = {"dpo", "kto", "reward", "grpo", "rloo", "distill"};
    struct str path = str_cut_last(str_cut_last(place, ':').head, ':').head;
    struct str_cut folder = str_cut_last(path, '/');
    struct str name = folder.found ? folder.tail : path;
    for (ptrdiff_t i = 0; i < COUNT_OF(tasks); i++)
        if (str_starts(name, str_from(tasks[i])))
            return str_from(tasks[i]);
    return STR("sft");
}

// Files of orpo look like those of dpo, but for the names that people give them.
static bool check_no_orpo(const struct conclusion *c, const struct setting *trl)
{
    struct words parts = words_of(str_z(c->out->arena, trl->where), '/');
    while (words_next(&parts))
        if (str_starts(parts.word, STR("orpo")) && !settings_find_z(c->given, "task"))
            return FAIL(c->error, UNSUPPORTED, trl->where,
                        "orpo is not modelled; if the file is of another task, --task says which");
    return true;
}

// The file's name says it, and where it does not, what only distillation, grpo and dpo have.
static struct str trl_task(const struct conclusion *c, const struct setting *trl)
{
    struct str named = task_of(trl->where);
    if (settings_find_z(c->out, "teacher"))
        return STR("distill");
    if (!str_is(named, "sft"))
        return named;
    if (fact(c, "answers") || fact(c, "completion") || fact(c, "rewarded") ||
        fact(c, "policy-loss") || fact(c, "vllm"))
        return STR("grpo");
    return fact(c, "beta") || fact(c, "prompted") ? STR("dpo") : named;
}

// trl/trainer/sft_config.py, and those of dpo, kto and reward: max_length = 1024
static bool conclude_trl_context(struct conclusion *c, const struct setting *trl)
{
    const struct setting *task = effective(c, "task");
    bool generates = task && words_have("grpo|rloo|distill", '|', task->value);
    return generates || fact(c, "uncut") || put_unless_there(c, "context", STR("1024"), trl->where);
}

// Of dpo and kto it says nothing that is modelled.
static bool conclude_kl(struct conclusion *c)
{
    const struct setting *beta = fact(c, "beta"), *task = settings_find_z(c->out, "task");
    bool generates = task && (str_is(task->value, "grpo") || str_is(task->value, "rloo"));
    return !beta || !generates || put(c, "beta", beta->value, beta->where);
}

// trl/scripts/distillation.py: a teacher has the student's dtype unless it is given one.
static bool conclude_teacher(struct conclusion *c)
{
    const struct setting *teacher = settings_find_z(c->out, "teacher");
    const struct setting *own = fact(c, "teacher-dtype");
    const char *dtype = own ? "teacher-dtype" : "dtype";
    return !teacher || fact_is(c, dtype, "bfloat16") || fact_is(c, dtype, "auto") ||
           FAIL(c->error, UNSUPPORTED, own ? own->where : teacher->where,
                "a teacher is modelled in bf16; this file loads it in the student's dtype: "
                "teacher_model_init_kwargs: {dtype: bfloat16}");
}

static bool conclude_reentrant(struct conclusion *c)
{
    const struct setting *said = fact(c, "reentrant");
    return !said ||
           put_unless_there(c, "reentrant",
                            fact_is(c, "reentrant", "true") ? STR("on") : STR("off"), said->where);
}

// trl/accelerate_configs/fsdp2.yaml: fsdp_state_dict_type is FULL_STATE_DICT.
static bool conclude_named_file(struct conclusion *c)
{
    const struct setting *kind = fact(c, "kind");
    return !fact_is(c, "kind", "fsdp2") || put_unless_there(c, "save", STR("full"), kind->where);
}

// Before 1.15 nll is of all logits at once; later ones compute it as they do by default.
static bool conclude_plain_loss(struct conclusion *c)
{
    const struct setting *plain = fact(c, "plain-loss"), *recipe = effective(c, "recipe");
    bool older = recipe && str_is(recipe->value, "trl@1.13");
    return !plain || !older || put(c, "loss", STR("full"), plain->where);
}

bool conclude_trl(struct conclusion *c)
{
    const struct setting *trl = fact(c, "TRL");
    if (!trl)
        return true;
    // transformers/training_args.py: per_device_train_batch_size = 8
    return check_no_orpo(c, trl) && conclude_reentrant(c) && conclude_named_file(c) &&
           conclude_plain_loss(c) && conclude_adapters(c, fact(c, "adapters")) &&
           put_unless_there(c, "batch", STR("8"), trl->where) &&
           put_unless_there(c, "task", trl_task(c, trl), trl->where) &&
           conclude_trl_context(c, trl) && conclude_kl(c) && conclude_answers(c) &&
           conclude_teacher(c) && conclude_trl_precision(c);
}

// transformers 5.17: a model has its checkpoint's type unless dtype says another, and bf16 is off
// (modeling_utils.py, training_args.py). Before 5 (4.57, modeling_utils.py) it is float32.
static bool is_wide(const struct conclusion *c)
{
    return fact_is(c, "dtype", "float32") || (is_before_5(c) && !fact(c, "dtype"));
}

static struct str transformers_precision(const struct conclusion *c)
{
    bool wide = is_wide(c), bf16 = fact_is(c, "bf16", "true");
    if (bf16 && is_sharded(effective(c, "strategy")))
        return STR("mixed");
    if (bf16)
        return wide ? STR("autocast") : STR("bf16-autocast");
    return wide ? STR("fp32") : STR("bf16");
}

// A type that only the script says is not known here, but that torch's scaler refuses all others
// is.
static bool conclude_type(struct conclusion *c, const struct setting *file)
{
    const struct setting *fp16 = fact(c, "fp16");
    if (!fp16)
        return put_unless_there(c, "precision", transformers_precision(c), file->where);
    if (is_wide(c) || is_sharded(effective(c, "strategy")))
        return put(c, "precision", STR("fp16"), fp16->where);
    if (replaced(c, "precision", STR("fp16"), fp16->where))
        return true;
    if (effective(c, "lora"))
        return FAIL(c->error, UNSUPPORTED, fp16->where,
                    "weights in fp16 below adapters in fp32 are not modelled; in bf16 they are as "
                    "large: --precision bf16-autocast");
    return FAIL(c->error, UNSUPPORTED, fp16->where,
                "torch's scaler refuses gradients of weights that are loaded as they are saved: "
                "dtype float32, or --precision fp16 where the script itself says so");
}

bool conclude_transformers(struct conclusion *c)
{
    const struct setting *file = fact(c, "transformers"), *liger = fact(c, "liger");
    const struct setting *dtype = fact(c, "dtype");
    if (!file)
        return true;
    if (dtype && !words_have("auto|bfloat16|float32", '|', dtype->value))
        return FAIL(c->error, UNSUPPORTED, dtype->where,
                    "of the dtypes bfloat16 and float32 are modelled");
    return (!liger || (put(c, "layer-kernels", STR("liger"), liger->where) &&
                       put(c, "loss", STR("liger"), liger->where))) &&
           conclude_reentrant(c) && put_unless_there(c, "batch", STR("8"), file->where) &&
           conclude_type(c, file);
}

static bool lacks_bf16(struct conclusion *c, const struct setting *said)
{
    return replaced(c, "precision", STR("training in float32"), said->where) ||
           FAIL(c->error, UNSUPPORTED, said->where,
                "training in float32 is not modelled; bf16: true is");
}

// llamafactory/hparams/model_args.py and axolotl/loaders/model.py: scales are packed, too, unless
// the file says otherwise.
static bool conclude_packing(struct conclusion *c)
{
    const struct setting *packed = fact(c, "packed");
    struct str how = fact(c, "single-scales") ? STR("nf4-single") : STR("nf4");
    return !packed || put(c, "quantize", how, packed->where);
}

// llamafactory/data/collator.py: sdpa gets a mask of all pairs, flash-attn where each row begins.
static bool conclude_neat_packing(struct conclusion *c)
{
    const struct setting *neat = fact(c, "neat"), *attention = effective(c, "attention");
    bool flash = attention && str_starts(attention->value, STR("flash"));
    if (!neat || !flash)
        return !neat || put(c, "batching", STR("packed"), neat->where);
    foreign_note(c->found, str_format(c->out->arena,
                                      "%.*s: packed rows are predicted as full ones: flash-attn's "
                                      "kernels need no mask",
                                      STR_ARGS(neat->where)));
    return true;
}

// The files of DeepSpeed that LLaMA-Factory 0.9.5 comes with, unless one is given: buckets of half
// a billion elements in stage 2, "auto" in stage 3, no overlap.
static bool conclude_stock(struct conclusion *c)
{
    const struct setting *stock = fact(c, "stock");
    if (!stock || fact(c, "DeepSpeed"))
        return true;
    struct str name = str_cut_last(stock->value, '/').tail;
    bool third = str_starts(name, STR("ds_z3")), off = str_ends(name, STR("_offload_config.json"));
    struct str what = third ? STR("all") : STR("optimizer");
    return put(c, "strategy", third ? STR("zero3") : STR("zero2"), stock->where) &&
           (!off || put(c, "offload", what, stock->where)) &&
           (third || put(c, "zero-buckets", STR("deepspeed"), stock->where)) &&
           put(c, "overlap-comm", STR("off"), stock->where);
}

static uint64_t side_of_square(uint64_t pixels)
{
    uint64_t side = 0;
    while (side < 1 << 16 && sat_mul(side + 1, side + 1) <= pixels)
        side++;
    return side;
}

// llamafactory/hparams: the tower is frozen (freeze_vision_tower), and images of more pixels than
// 768 x 768 (image_max_pixels) are made smaller, unless the file says otherwise.
static bool conclude_images(struct conclusion *c, const struct setting *file)
{
    const struct setting *said = fact(c, "image-pixels");
    uint64_t pixels = UINT64_C(768) * 768;
    if (!fact(c, "vision-trained"))
        c->found->freezes_vision = file->where;
    if (!effective(c, "images") && said)
        foreign_note(c->found, str_format(c->out->arena,
                                          "%.*s: how many images a row has only the data says: "
                                          "add --images N, where launch.sh does not",
                                          STR_ARGS(said->where)));
    if (!effective(c, "images") || effective(c, "image-size"))
        return true;
    if (!count_of(c, &pixels, said))
        return false;
    unsigned long long side = (unsigned long long)side_of_square(pixels);
    return put(c, "image-size", str_format(c->out->arena, "%llux%llu", side, side),
               (said ? said : file)->where);
}

// Beside adapters, which cast their input themselves, norms in fp32 take what those in bf16 do
// (tests/runs/factory_fake.jsonl); full training has all weights in fp32 but for pure_bf16.
static bool conclude_norms(struct conclusion *c)
{
    const struct setting *wide = fact(c, "wide-norms");
    return !wide || !fact(c, "pure") ||
           FAIL(c->error, UNSUPPORTED, wide->where,
                "norms in fp32 beside bf16 weights that are trained are not modelled");
}

// Adapters are its default.
bool conclude_llamafactory(struct conclusion *c)
{
    const struct setting *file = fact(c, "LLaMA-Factory"), *pure = fact(c, "pure");
    const struct setting *liger = fact(c, "liger"), *fp16 = fact(c, "fp16");
    if (!file)
        return true;
    if (!conclude_stock(c))
        return false;
    const struct setting *tuning = fact(c, "tuning");
    bool adapts = !fact_is(c, "tuning", "full");
    if (adapts && pure && !replaced(c, "precision", STR("pure_bf16"), pure->where))
        return FAIL(c->error, UNSUPPORTED, pure->where,
                    "adapters in bf16 are not modelled; with bf16: true they are fp32");
    if (!pure && !fp16 && !fact_is(c, "bf16", "true") &&
        !lacks_bf16(c, fact(c, "bf16") ? fact(c, "bf16") : file))
        return false;
    return conclude_norms(c) && conclude_reentrant(c) && conclude_images(c, file) &&
           conclude_packing(c) && conclude_neat_packing(c) &&
           (!adapts || conclude_adapters(c, tuning ? tuning : file)) &&
           (!pure || put(c, "precision", STR("bf16"), pure->where)) &&
           (!fp16 || put(c, "precision", STR("fp16"), fp16->where)) &&
           (!liger || (put(c, "layer-kernels", STR("liger"), liger->where) &&
                       put(c, "loss", STR("liger"), liger->where))) &&
           put_unless_there(c, "context", STR("2048"), file->where) && // cutoff_len
           put_unless_there(c, "batch", STR("8"), file->where);
}

// Liger's kernels, each by a key of its own.
static bool conclude_layer_kernels(struct conclusion *c)
{
    static const char *const names[] = {"liger-rope", "liger-norm", "liger-mlp"};
    int on = 0;
    const struct setting *said = NULL;
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++)
        if (fact_is(c, names[i], "true")) {
            said = fact(c, names[i]);
            on++;
        }
    if (on == COUNT_OF(names))
        return put(c, "layer-kernels", STR("liger"), said->where);
    if (on)
        foreign_note(c->found, str_format(c->out->arena,
                                          "%.*s: some of Liger's kernels without the others are "
                                          "not modelled: predicted without",
                                          STR_ARGS(said->where)));
    return true;
}

// axolotl/utils/distributed.py, _get_parallel_config_kwargs: what is left of the GPUs beside a size
// of the shards has copies of them.
static bool conclude_axolotl_shards(struct conclusion *c)
{
    const struct setting *said = fact(c, "shards");
    uint64_t shards = 1, copies = 0, tensor = 1;
    if (!count_of(c, &shards, said) || !count_of(c, &copies, effective(c, "replicate")) ||
        !count_of(c, &tensor, effective(c, "tp")))
        return false;
    if (shards < 2 || !c->ranks)
        return true;
    uint64_t all = sat_mul(sat_mul(shards, copies ? copies : 1), tensor ? tensor : 1);
    if (copies ? all != c->ranks : c->ranks % all != 0)
        return FAIL(c->error, BAD_INPUT, said->where,
                    "dp_shard_size %llu does not fit %llu GPUs with what else is split",
                    (unsigned long long)shards, (unsigned long long)c->ranks);
    return copies || all == c->ranks || put_count(c, "replicate", c->ranks / all, said->where);
}

// axolotl/core/builders/base.py: with full the Trainer's bf16 is off, and no autocast.
static bool conclude_axolotl_type(struct conclusion *c, const struct setting *file)
{
    bool pure = fact_is(c, "bf16", "full");
    bool split = fact(c, "wrapped") || fact(c, "fsdp-version") || fact(c, "deepspeed-file");
    if (pure && (split || fact(c, "adapters")))
        return replaced(c, "precision", STR("bf16: full"), fact(c, "bf16")->where) ||
               FAIL(
                   c->error, UNSUPPORTED, fact(c, "bf16")->where,
                   "bf16: full is modelled where all weights are trained, on one GPU or under ddp; "
                   "bf16: true elsewhere too");
    return pure || fact_is(c, "bf16", "true") || lacks_bf16(c, file);
}

// axolotl/utils/config: gradient_accumulation_steps = batch_size // micro_batch_size, of one GPU.
static bool conclude_whole_batch(struct conclusion *c)
{
    const struct setting *all = fact(c, "whole-batch");
    uint64_t rows = 0, micro = 0;
    if (!all || effective(c, "accum"))
        return true;
    if (!count_of(c, &rows, all) || !count_of(c, &micro, effective(c, "batch")))
        return false;
    if (!micro || rows < micro)
        return FAIL(c->error, BAD_INPUT, all->where,
                    "batch_size is at least micro_batch_size, which is to be there");
    return put_count(c, "accum", rows / micro, all->where);
}

// axolotl/train.py: freeze_layers_except comes after the adapters, whose names it does not know.
// utils/config/__init__.py: checkpoints are reentrant by default only without it.
static bool conclude_unfrozen(struct conclusion *c)
{
    const struct setting *said = fact(c, "text-trained");
    if (!said)
        return true;
    c->found->freezes_vision = said->where;
    if (fact(c, "adapters"))
        foreign_note(c->found, str_format(c->out->arena,
                                          "%.*s: beside an adapter unfrozen_parameters is left "
                                          "out: predicted with adapters alone",
                                          STR_ARGS(said->where)));
    return put_unless_there(c, "reentrant", STR("off"), said->where);
}

// fsdp is version 1 unless said, and axolotl's kernels for adapters are on unless turned off.
bool conclude_axolotl(struct conclusion *c)
{
    const struct setting *file = fact(c, "axolotl"), *wrapped = fact(c, "wrapped");
    const struct setting *version = fact(c, "fsdp-version"), *kernels = fact(c, "kernels");
    const struct setting *attention = fact(c, "attention"), *adapters = fact(c, "adapters");
    if (!file)
        return true;
    if (!conclude_axolotl_type(c, file))
        return false;
    struct str strategy = version ? version->value : STR("fsdp1");
    if ((wrapped || version) &&
        !put(c, "strategy", strategy, version ? version->where : wrapped->where))
        return false;
    if (version && str_is(strategy, "fsdp2") && !fact(c, "save-whole") && // accelerate's default
        !put_unless_there(c, "save", STR("sharded"), version->where))
        return false;
    if (!conclude_reentrant(c) || !conclude_unfrozen(c))
        return false;
    if (adapters && !(kernels && fact_is(c, "kernels", "false")))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: axolotl's own kernels for adapters (lora_mlp_kernel and "
                                "others, on by default) are not in the answer",
                                STR_ARGS((kernels ? kernels : adapters)->where)));
    return conclude_whole_batch(c) && conclude_axolotl_shards(c) && conclude_packing(c) &&
           conclude_adapters(c, adapters) && conclude_layer_kernels(c) &&
           put(c, "attention", attention ? attention->value : STR("sdpa"),
               (attention ? attention : file)->where) &&
           put_unless_there(c, "context", STR("512"), file->where); // sequence_len
}
