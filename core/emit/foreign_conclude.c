// What follows from several keys, or from several files of one job: strategies and precisions that
// one file assumes and another says, batches out of totals, the GPUs that train.
#include "core/base/num.h"
#include "core/emit/foreign_rows.h"
#include "core/hardware/hardware.h"

struct conclusion {
    struct settings *out;
    struct foreign *found;
    const struct settings *given;
    struct error *error;
    uint64_t ranks; // 0: not known
};

static const struct setting *fact(const struct conclusion *c, const char *name)
{
    return settings_find_z(&c->found->facts, name);
}

static bool fact_is(const struct conclusion *c, const char *name, const char *value)
{
    const struct setting *item = fact(c, name);
    return item && str_equal_nocase(item->value, str_from(value));
}

static bool count_of(struct conclusion *c, uint64_t *value, const struct setting *item)
{
    return !item ||
           setting_number(value, item, UNIT_COUNT, (struct range){0, UINT64_C(1) << 40}, c->error);
}

static bool fact_count(struct conclusion *c, uint64_t *value, const char *name)
{
    return count_of(c, value, fact(c, name));
}

// What the user gave wins over what the files say.
static const struct setting *effective(const struct conclusion *c, const char *name)
{
    const struct setting *item = settings_find_z(c->given, name);
    return item ? item : settings_find_z(c->out, name);
}

static bool put(struct conclusion *c, const char *name, struct str value, struct str where)
{
    return foreign_put(c->out, c->found, (struct setting){str_from(name), value, where}, c->error);
}

static bool put_count(struct conclusion *c, const char *name, uint64_t value, struct str where)
{
    struct str text = str_format(c->out->arena, "%llu", (unsigned long long)value);
    return put(c, name, text, where);
}

static bool put_unless_there(struct conclusion *c, const char *name, struct str value,
                             struct str where)
{
    return settings_find_z(c->out, name) || put(c, name, value, where);
}

static bool is_sharded(const struct setting *strategy)
{
    return strategy && !str_is(strategy->value, "single") && !str_is(strategy->value, "ddp");
}

// What the trainer of the files is asked to do, where the files do not say it in that word.
static bool conclude_accelerate(struct conclusion *c)
{
    const struct setting *kind = fact(c, "kind"), *mixed = fact(c, "mixed");
    const struct setting *file = fact(c, "deepspeed-file");
    if (file && !fact(c, "DeepSpeed"))
        return FAIL(c->error, UNSUPPORTED, file->where,
                    "what matters is in that file: give it to --from too");
    if (kind && !put_unless_there(c, "strategy", kind->value, kind->where))
        return false;
    const struct setting *strategy = effective(c, "strategy");
    if (!fact(c, "Accelerate") || fact(c, "TRL") || fact(c, "LLaMA-Factory"))
        return true;
    if (mixed && str_equal_nocase(mixed->value, STR("no")))
        return put_unless_there(c, "precision", STR("bf16"), mixed->where);
    if (mixed && str_equal_nocase(mixed->value, STR("fp16")))
        return put_unless_there(c, "precision", STR("fp16"), mixed->where);
    if (is_sharded(strategy))
        return put_unless_there(c, "precision", STR("mixed"), strategy->where);
    return !mixed || put_unless_there(c, "precision", STR("autocast"), mixed->where);
}

// scripts/train.py, accumulation_of: under FSDP every micro-batch is reduced, whoever's step it is.
static bool conclude_own_script(struct conclusion *c)
{
    const struct setting *own = fact(c, "own-script"), *strategy = effective(c, "strategy");
    uint64_t accumulation = 1;
    if (!own || !strategy || !str_starts(strategy->value, STR("fsdp")))
        return true;
    if (!count_of(c, &accumulation, effective(c, "accum")))
        return false;
    return accumulation < 2 || put_unless_there(c, "sync-each-batch", STR("on"), own->where);
}

// scripts/train.py, kernels_of: what is not asked for is off, unlike with use_liger_kernel
// alone.
static bool conclude_own_kernels(struct conclusion *c)
{
    const struct setting *loss = settings_find_z(c->out, "loss");
    if (!fact(c, "own-script") || !loss || !str_is(loss->value, "liger"))
        return true;
    return put_unless_there(c, "layer-kernels", STR("torch"), loss->where);
}

// Whose layers are recomputed: FSDP's own switch, the Trainer's, or that of emit's train.py. Where
// FSDP's is off, the trainer may still do it.
static bool conclude_recomputation(struct conclusion *c)
{
    const struct setting *layers = fact(c, "layers-recomputed"), *trainer = fact(c, "recomputed");
    const struct setting *said = fact(c, "own-script"), *trl = fact(c, "TRL");
    bool by_layers = fact_is(c, "layers-recomputed", "true");
    bool on = by_layers || fact_is(c, "recomputed", "true");
    if (trl && !trainer) // trl/trainer/base_config.py: gradient_checkpointing = True
        on = true;
    said = trl ? trl : said;
    said = by_layers ? layers : said;
    said = trainer ? trainer : said;
    return !said || put(c, "checkpointing", on ? STR("on") : STR("off"), said->where);
}

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
    bool sharded = is_sharded(strategy);
    bool cut = strategy && str_is(strategy->value, "fsdp2");
    if (cut && !fact(c, "stored")) // accelerate/utils/fsdp_utils.py, incompatible_params4bit
        return FAIL(c->error, UNSUPPORTED, packed->where,
                    "packed weights are shards under fsdp2 with bnb_4bit_quant_storage: bfloat16 "
                    "only; without it every GPU keeps all of them, which is not modelled");
    return put(c, "quantize", fact(c, "nested") ? STR("nf4") : STR("nf4-single"), packed->where) &&
           put(c, "precision", sharded ? STR("mixed") : STR("bf16"), packed->where);
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
        return FAIL(c->error, UNSUPPORTED, dtype->where,
                    "torch's scaler refuses gradients in fp16, and bf16 weights under it are not "
                    "modelled: dtype: float32");
    return put(c, "precision", STR("fp16"), said->where);
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
        return FAIL(c->error, UNSUPPORTED, where,
                    "of the dtypes bfloat16 and float32 are modelled");
    if (fact_is(c, "bf16", "false") && !narrow)
        return FAIL(c->error, UNSUPPORTED, fact(c, "bf16")->where,
                    "training in float32 is not modelled; dtype: bfloat16 is");
    const struct setting *packed = fact(c, "packed");
    if (packed)
        return conclude_packed_precision(c, packed, narrow);
    if (fact_is(c, "bf16", "false"))
        return put(c, "precision", STR("bf16"), where);
    if (is_sharded(strategy) || (!strategy && c->ranks > 1))
        return put(c, "precision", STR("mixed"), where);
    if (narrow)
        return FAIL(c->error, UNSUPPORTED, where,
                    "bf16 weights under bf16's autocast are not modelled; with bf16: false they "
                    "are");
    return put(c, "precision", STR("autocast"), where);
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

// "q_proj" and "v_proj" are our q,v.
static struct str adapted_layers(const struct conclusion *c)
{
    struct buf names = buf_in(c->out->arena);
    for (ptrdiff_t i = 0; i < c->found->facts.count; i++) {
        const struct setting *item = &c->found->facts.items[i];
        struct str projection = STR("_proj");
        struct words list = words_of(str_z(c->out->arena, item->value), ',');
        while (str_starts(item->key, STR("lora_target_modules.")) && words_next(&list)) {
            struct str name = str_trim(list.word);
            if (str_ends(name, projection))
                name = str_slice(name, 0, name.n - projection.n);
            buf_put_z(&names, names.n ? "," : "");
            buf_put(&names, name);
        }
    }
    return buf_str(&names);
}

// TRL's ModelConfig has a rank of 16 and a dropout of 0.05, LLaMA-Factory a rank of 8 and none.
static bool conclude_adapters(struct conclusion *c, const struct setting *adapters)
{
    const struct setting *dropout = fact(c, "dropout");
    struct str layers = fact(c, "all-linear") ? STR_NONE : adapted_layers(c);
    uint64_t rank = fact(c, "LLaMA-Factory") ? 8 : 16;
    if (!adapters)
        return true;
    bool drops = dropout ? !fact_is(c, "dropout", "0") && !fact_is(c, "dropout", "0.0")
                         : fact(c, "TRL") != NULL;
    if (drops)
        foreign_note(c->found,
                     str_format(c->out->arena, "%.*s: the dropout of adapters is not in the answer",
                                STR_ARGS(adapters->where)));
    return fact_count(c, &rank, "rank") && put_count(c, "lora", rank, adapters->where) &&
           (!layers.n || put(c, "lora-targets", layers, adapters->where));
}

// The file's name says it, and where it does not, what only distillation and grpo have.
static struct str trl_task(const struct conclusion *c, const struct setting *trl)
{
    struct str named = task_of(trl->where);
    if (settings_find_z(c->out, "teacher"))
        return STR("distill");
    return fact(c, "answers") && str_is(named, "sft") ? STR("grpo") : named;
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

static bool conclude_trl(struct conclusion *c)
{
    const struct setting *trl = fact(c, "TRL");
    if (!trl)
        return true;
    // transformers/training_args.py: per_device_train_batch_size = 8
    return conclude_adapters(c, fact(c, "adapters")) &&
           put_unless_there(c, "batch", STR("8"), trl->where) &&
           put_unless_there(c, "task", trl_task(c, trl), trl->where) && conclude_kl(c) &&
           conclude_teacher(c) && conclude_trl_precision(c);
}

static void note_reentrant(struct conclusion *c, const struct setting *said)
{
    foreign_note(c->found, str_format(c->out->arena,
                                      "%.*s: reentrant checkpoints are not modelled: predicted as "
                                      "with use_reentrant false",
                                      STR_ARGS(said->where)));
}

static bool lacks_bf16(const struct conclusion *c, const struct setting *said)
{
    return FAIL(c->error, UNSUPPORTED, said->where,
                "training in float32 is not modelled; bf16: true is");
}

// Adapters are its default, and checkpoints are reentrant but under fsdp2.
// llamafactory/hparams/model_args.py: double_quantization is on unless the file says otherwise.
static bool conclude_llamafactory_packing(struct conclusion *c)
{
    const struct setting *packed = fact(c, "packed");
    struct str how = fact(c, "single-scales") ? STR("nf4-single") : STR("nf4");
    return !packed || put(c, "quantize", how, packed->where);
}

static bool conclude_llamafactory(struct conclusion *c)
{
    const struct setting *file = fact(c, "LLaMA-Factory"), *pure = fact(c, "pure");
    const struct setting *reentrant = fact(c, "reentrant"), *liger = fact(c, "liger");
    const struct setting *strategy = effective(c, "strategy");
    if (!file)
        return true;
    const struct setting *tuning = fact(c, "tuning");
    bool adapts = !fact_is(c, "tuning", "full");
    bool fsdp2 = strategy && str_is(strategy->value, "fsdp2");
    if (adapts && pure)
        return FAIL(c->error, UNSUPPORTED, pure->where,
                    "adapters in bf16 are not modelled; with bf16: true they are fp32");
    if (!pure && !fact_is(c, "bf16", "true"))
        return lacks_bf16(c, fact(c, "bf16") ? fact(c, "bf16") : file);
    if (!fact_is(c, "recomputed", "false") && !fact_is(c, "reentrant", "false") && !fsdp2)
        note_reentrant(c, reentrant ? reentrant : file);
    return conclude_llamafactory_packing(c) &&
           (!adapts || conclude_adapters(c, tuning ? tuning : file)) &&
           (!pure || put(c, "precision", STR("bf16"), pure->where)) &&
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

// fsdp is version 1 unless said, and axolotl's kernels for adapters are on unless turned off.
static bool conclude_axolotl(struct conclusion *c)
{
    const struct setting *file = fact(c, "axolotl"), *wrapped = fact(c, "wrapped");
    const struct setting *version = fact(c, "fsdp-version"), *kernels = fact(c, "kernels");
    const struct setting *attention = fact(c, "attention"), *adapters = fact(c, "adapters");
    if (!file)
        return true;
    if (!fact_is(c, "bf16", "true"))
        return lacks_bf16(c, file);
    struct str strategy = version ? version->value : STR("fsdp1");
    if ((wrapped || version) &&
        !put(c, "strategy", strategy, version ? version->where : wrapped->where))
        return false;
    if (version && str_is(strategy, "fsdp2") && !fact(c, "save-whole") && // accelerate's default
        !put_unless_there(c, "save", STR("sharded"), version->where))
        return false;
    if (fact_is(c, "reentrant", "true"))
        note_reentrant(c, fact(c, "reentrant"));
    if (adapters && !(kernels && fact_is(c, "kernels", "false")))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: axolotl's own kernels for adapters (lora_mlp_kernel and "
                                "others, on by default) are not in the answer",
                                STR_ARGS((kernels ? kernels : adapters)->where)));
    return conclude_adapters(c, adapters) && conclude_layer_kernels(c) &&
           put(c, "attention", attention ? attention->value : STR("sdpa"),
               (attention ? attention : file)->where) &&
           put_unless_there(c, "context", STR("512"), file->where); // sequence_len
}

struct batches {
    uint64_t train, micro, steps, ranks;
};

// deepspeed/runtime/config.py, _set_batch_related_parameters: what is missing follows.
static void fill_batches(struct batches *b)
{
    if (!b->micro && !b->steps)
        b->steps = 1;
    if (!b->steps)
        b->steps = b->train / b->micro / b->ranks;
    if (!b->micro)
        b->micro = b->train / b->ranks / b->steps;
}

static bool conclude_batch(struct conclusion *c)
{
    const struct setting *all = fact(c, "train-batch"), *micro = fact(c, "micro-batch");
    const struct setting *steps = fact(c, "accumulation");
    struct batches b = {0};
    uint64_t sp = 1;
    if (!count_of(c, &b.train, all) || !count_of(c, &b.micro, micro) ||
        !count_of(c, &b.steps, steps) || !count_of(c, &sp, effective(c, "sp")))
        return false;
    b.ranks = sp ? c->ranks / sp : 0;
    if (b.train && b.ranks) {
        fill_batches(&b);
        if (sat_mul(sat_mul(b.micro, b.steps), b.ranks) != b.train)
            return FAIL(c->error, BAD_INPUT, all->where,
                        "train_batch_size %llu is not train_micro_batch_size_per_gpu %llu x "
                        "gradient_accumulation_steps %llu x %llu GPUs",
                        (unsigned long long)b.train, (unsigned long long)b.micro,
                        (unsigned long long)b.steps, (unsigned long long)b.ranks);
    }
    struct str where = all ? all->where : STR_NONE;
    return (!b.micro || put_count(c, "batch", b.micro, micro ? micro->where : where)) &&
           (!b.steps || put_count(c, "accum", b.steps, steps ? steps->where : where));
}

// A prediction has the buckets that emit writes and transformers puts in for "auto": as many
// elements as the hidden size squared. DeepSpeed's own default is 500 million, 0.93 GiB in bf16.
static void note_buckets(struct conclusion *c)
{
    enum { USUAL = 100000000 }; // a hidden size of 10000
    const struct setting *bucket = fact(c, "bucket"), *file = fact(c, "DeepSpeed");
    file = fact_is(c, "kind", "zero2") && !file ? fact(c, "kind") : file;
    uint64_t elements = UINT64_MAX;
    if (!file || fact_is(c, "bucket", "auto"))
        return;
    if (bucket && unit_parse(&elements, UNIT_COUNT, bucket->value) == UNIT_OK && elements < USUAL)
        return;
    struct str where = bucket ? bucket->where : file->where;
    foreign_note(c->found,
                 str_format(c->out->arena,
                            "%.*s: DeepSpeed's buckets of %.*s elements take up to 1 GiB more than "
                            "is predicted, which is with \"auto\"",
                            STR_ARGS(where), STR_ARGS(bucket ? bucket->value : STR("5e8"))));
}

// Where nothing says it, as in Accelerate's YAML, which cannot, on in stage 3 and off before it.
static bool conclude_overlap(struct conclusion *c)
{
    const struct setting *strategy = settings_find_z(c->out, "strategy");
    const struct setting *overlap = fact(c, "overlap");
    bool third = strategy && str_is(strategy->value, "zero3");
    bool on = overlap ? str_is(overlap->value, "true") : third;
    if (!third && !(strategy && words_have("zero1 zero2", ' ', strategy->value)))
        return true;
    if (third && on)
        return true;
    return put_unless_there(c, "overlap-comm", on ? STR("on") : STR("off"), strategy->where);
}

// Its Adam is FusedAdam, or CPUAdam where the optimizer is offloaded (runtime/engine.py).
// Both are there, or the optimizer alone: what else DeepSpeed can put apart is not modelled.
static bool conclude_nvme(struct conclusion *c)
{
    const struct setting *optimizer = fact(c, "optimizer-on-nvme"),
                         *parameters = fact(c, "parameters-on-nvme"), *path = fact(c, "nvme-path"),
                         *offload = effective(c, "offload");
    const struct setting *on = optimizer ? optimizer : parameters;
    if (!on)
        return true;
    if (!path)
        return FAIL(c->error, BAD_INPUT, on->where, "DeepSpeed needs nvme_path beside this device");
    if (!optimizer || (offload && str_is(offload->value, "all")))
        return FAIL(c->error, UNSUPPORTED, on->where,
                    "parameters and optimizer in different places are not modelled");
    struct str what = parameters ? STR("all") : STR("optimizer");
    return put(c, "offload", what, on->where) && put(c, "nvme", path->value, path->where);
}

static bool conclude_deepspeed(struct conclusion *c)
{
    const struct setting *adam = fact(c, "deepspeed-adam"), *wide = fact(c, "without-bf16");
    if (wide && !effective(c, "precision"))
        return FAIL(c->error, UNSUPPORTED, wide->where,
                    "DeepSpeed is modelled in bf16 and fp16 only");
    if (!conclude_nvme(c))
        return false;
    note_buckets(c);
    const struct setting *offload = effective(c, "offload");
    bool in_torch = fact_is(c, "torch-adam", "true"),
         on_host = offload && !str_is(offload->value, "off");
    if (!conclude_batch(c) || !adam)
        return c->error->code == ERROR_NONE;
    if (in_torch || on_host)
        return put(c, "optimizer", STR("adamw"), adam->where);
    foreign_note(c->found,
                 str_format(c->out->arena,
                            "%.*s: DeepSpeed's own Adam keeps what torch's fused one keeps: "
                            "predicted as adamw-fused",
                            STR_ARGS(adam->where)));
    return put(c, "optimizer", STR("adamw-fused"), adam->where);
}

static uint64_t engine_gpus(struct conclusion *c, const char *prefix)
{
    static const char *const factors[] = {"engine_num", "tensor_parallel_size",
                                          "data_parallel_size", "pipeline_parallel_size"};
    uint64_t gpus = 1;
    for (ptrdiff_t i = 0; i < COUNT_OF(factors); i++) {
        struct str key = str_format(c->out->arena, "%s%s", prefix, factors[i]);
        uint64_t factor = 1;
        if (!count_of(c, &factor, settings_find(&c->found->facts, key)))
            return 0;
        gpus = sat_mul(gpus, factor);
    }
    return gpus;
}

static bool has_model(const struct conclusion *c, struct str prefix)
{
    for (ptrdiff_t i = 0; i < c->found->facts.count; i++)
        if (str_starts(c->found->facts.items[i].key, prefix))
            return true;
    return false;
}

// Trinity's engines and the models beside them have GPUs of their own, those of verl none.
static bool conclude_gpus(struct conclusion *c)
{
    enum { MOST_MODELS = 64 };
    uint64_t nodes = 1, per_node = 0, beside = 0;
    if (!fact_count(c, &nodes, "cluster-nodes") || !fact_count(c, &per_node, "cluster-gpus"))
        return false;
    uint64_t gpus = sat_mul(per_node, nodes);
    if (fact(c, "Trinity-RFT") && !fact_is(c, "mode", "train")) {
        beside = engine_gpus(c, "explorer.rollout_model.");
        for (int i = 0; i < MOST_MODELS; i++) {
            struct str prefix = str_format(c->out->arena, "explorer.auxiliary_models.%d.", i);
            if (has_model(c, prefix))
                beside = sat_add(beside, engine_gpus(c, str_z(c->out->arena, prefix)));
        }
    }
    uint64_t left = gpus > beside ? gpus - beside : 0;
    c->found->processes = left;
    c->found->machines = per_node && left > per_node && left % per_node == 0 ? left / per_node : 0;
    c->found->where = gpus ? fact(c, "cluster-gpus")->where : STR_NONE;
    c->ranks = c->found->processes ? c->found->processes : c->ranks;
    return c->error->code == ERROR_NONE;
}

struct micro_batches {
    bool verl; // by itself, with defaults of its own
    uint64_t context, sp;
    uint64_t groups;    // that share sequences; 0: not known
    uint64_t sequences; // of one group in a step; 0: not known
    uint64_t tokens;    // the limit of one micro-batch, over its group
    uint64_t batch, count;
};

// verl counts the micro-batches by the limit and evens them out (utils/seqlen_balancing.py).
static void cut(struct micro_batches *m, uint64_t sequences, uint64_t tokens)
{
    m->count = u64_divide_up(sat_mul(sequences, m->context), tokens);
    m->batch = u64_divide_up(sequences, m->count);
}

// What only files have: answers a prompt, and how the two share the context, unless a quarter is
// the prompt's, as where nobody says.
static bool put_rollout(struct conclusion *c, uint64_t prompt, uint64_t response)
{
    const struct setting *said = fact(c, "prompt"), *answers = fact(c, "answers");
    bool usual = prompt == (prompt + response) / 4;
    return (!answers || put(c, "samples", answers->value, answers->where)) &&
           (usual || !prompt || !response || put_count(c, "prompt", prompt, said->where));
}

static bool read_sequences(struct conclusion *c, struct micro_batches *m)
{
    uint64_t prompts = 0, answers = 1, sequences = 0, prompt = 0, response = 0;
    const struct setting *sp = fact(c, "actor-sp"), *strategy = fact(c, "actor-strategy");
    if ((sp && !put(c, "sp", sp->value, sp->where)) ||
        (strategy && !put(c, "strategy", strategy->value, strategy->where)) ||
        !fact_count(c, &prompt, "prompt") || !fact_count(c, &response, "response") ||
        !fact_count(c, &prompts, "prompts") || !fact_count(c, &answers, "answers") ||
        !fact_count(c, &sequences, "sequences"))
        return false;
    if (prompt && response &&
        !(settings_find_z(c->out, "context") ||
          put_count(c, "context", prompt + response, fact(c, "prompt")->where)))
        return false;
    if (!put_rollout(c, prompt, response))
        return false;
    m->sp = 1;
    if (!count_of(c, &m->sp, effective(c, "sp")) ||
        !count_of(c, &m->context, effective(c, "context")))
        return false;
    m->sp = m->sp ? m->sp : 1;
    m->groups = c->ranks / m->sp;
    sequences = sequences ? sequences : sat_mul(prompts, answers);
    m->sequences = m->groups ? u64_divide_up(sequences, m->groups) : 0;
    return true;
}

// The limit of dynamic batches; where the file has none, two sequences, or verl's 16384 tokens.
static bool read_limit(struct conclusion *c, struct micro_batches *m)
{
    const struct setting *limit = fact(c, "actor-limit");
    limit = limit ? limit : fact(c, "limit");
    uint64_t tokens = m->verl ? 16384 : u64_divide_up(sat_mul(2, m->context), m->sp);
    if (!count_of(c, &tokens, limit))
        return false;
    m->tokens = sat_mul(tokens, m->sp);
    if (limit && !m->verl && m->tokens < sat_mul(2, m->context))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: Trinity-RFT before 0.5.1 raises this to two sequences",
                                STR_ARGS(limit->where)));
    m->tokens = m->tokens < m->context ? m->context : m->tokens;
    return true;
}

// Sequences of a micro-batch that has a fixed number of them: a GPU's, or of all groups.
static bool read_fixed(struct conclusion *c, const struct micro_batches *m, uint64_t *micro,
                       const char *names[2])
{
    const struct setting *each = fact(c, names[0]), *all = fact(c, names[1]);
    *micro = 1;
    if (!count_of(c, micro, all ? all : each))
        return false;
    if (all && m->groups)
        *micro /= m->groups;
    return *micro || FAIL(c->error, BAD_INPUT, all ? all->where : each->where,
                          "a micro-batch has at least one sequence of each GPU");
}

static bool is_dynamic(const struct conclusion *c, const char *own, const char *shared,
                       bool fallback)
{
    const char *name = fact(c, own) ? own : shared;
    return fact(c, name) ? !fact_is(c, name, "false") : fallback;
}

static bool conclude_policy(struct conclusion *c, struct micro_batches *m)
{
    enum { USUAL = 8 }; // sequences of a group in the published test
    static const char *names[] = {"actor-micro", "actor-micro-all"};
    uint64_t micro = 1, sequences = m->sequences ? m->sequences : USUAL;
    bool dynamic = is_dynamic(c, "actor-dynamic", "dynamic", !m->verl);
    if (!read_fixed(c, m, &micro, names))
        return false;
    const struct setting *task = settings_find_z(c->out, "task");
    uint64_t rows = task && str_is(task->value, "dpo") ? 2 : 1; // of a pair, which files count
    cut(m, sat_mul(sequences, rows), dynamic ? m->tokens : sat_mul(micro, m->context));
    const struct setting *said = dynamic ? fact(c, "actor-limit") : fact(c, "actor-micro");
    said = said ? said : fact(c, "limit");
    said = said ? said : fact(c, "sequences");
    said = said ? said : fact(c, m->verl ? "verl" : "Trinity-RFT");
    return put_count(c, "batch", u64_divide_up(m->batch, rows), said->where) &&
           put_count(c, "accum", m->count, said->where);
}

static bool conclude_reference(struct conclusion *c, const struct micro_batches *policy)
{
    static const char *names[] = {"ref-micro", "ref-micro-all"};
    struct micro_batches m = *policy;
    const struct setting *limit = fact(c, "ref-limit"), *sp = fact(c, "ref-sp");
    const struct setting *strategy = fact(c, "ref-strategy"), *own = effective(c, "strategy");
    uint64_t micro = 1, tokens = 0, size = m.sp;
    bool shared = is_dynamic(c, m.verl ? "actor-dynamic" : "dynamic", "dynamic", !m.verl);
    bool dynamic = is_dynamic(c, "ref-dynamic", "ref-dynamic", shared);
    if (!read_fixed(c, &m, &micro, names) || !count_of(c, &tokens, limit) ||
        !count_of(c, &size, sp))
        return false;
    if (size != m.sp || (strategy && own && !str_equal(strategy->value, own->value)))
        return FAIL(c->error, UNSUPPORTED, size != m.sp ? sp->where : strategy->where,
                    "the reference model is modelled with the policy's strategy and sp only");
    tokens = tokens ? sat_mul(tokens, m.sp) : m.tokens;
    tokens = dynamic ? (tokens < m.context ? m.context : tokens) : sat_mul(micro, m.context);
    cut(&m, sat_mul(policy->batch, policy->count), tokens);
    if (m.batch == policy->batch && m.count == policy->count)
        return true;
    const struct setting *said = dynamic ? limit : fact(c, "ref-micro");
    said = said ? said : fact(c, m.verl ? "verl" : "Trinity-RFT");
    return put_count(c, "log-prob-max-token-len", u64_divide_up(tokens, m.sp), said->where);
}

static bool says_batches(const struct conclusion *c)
{
    static const char *const names[] = {"sequences",   "prompts",       "limit",
                                        "actor-limit", "ref-limit",     "dynamic",
                                        "actor-micro", "actor-dynamic", "ref-dynamic"};
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++)
        if (fact(c, names[i]))
            return true;
    return false;
}

// A file without its algorithm is a piece of one: Trinity's default and verl's have a critic.
static bool conclude_algorithm(struct conclusion *c)
{
    const struct setting *trinity = fact(c, "Trinity-RFT"), *verl = fact(c, "verl");
    const struct setting *file = trinity ? trinity : verl;
    if (settings_find_z(c->out, "task"))
        return true;
    foreign_note(c->found,
                 str_format(c->out->arena,
                            "%.*s: no algorithm is named: read as grpo (%s would train with a "
                            "critic, which is not modelled)",
                            STR_ARGS(str_cut(file->where, ':').head),
                            trinity ? "Trinity-RFT" : "verl"));
    return put(c, "task", STR("grpo"), file->where);
}

static bool conclude_rl(struct conclusion *c)
{
    struct micro_batches m = {.verl = fact(c, "verl") != NULL};
    if (!m.verl && !fact(c, "Trinity-RFT"))
        return true;
    if (!conclude_algorithm(c) || !conclude_gpus(c) || !read_sequences(c, &m))
        return false;
    if (!m.context || !says_batches(c))
        return true;
    return read_limit(c, &m) && conclude_policy(c, &m) && conclude_reference(c, &m);
}

// The GPUs that the user named, where they are a number and not only a card.
static uint64_t given_ranks(const struct conclusion *c)
{
    const struct setting *gpu = effective(c, "gpu");
    struct error ignored = {0};
    struct hardware h;
    if (!gpu || str_is(gpu->value, "auto") || !hardware_from_spec(&h, c->out->arena, gpu, &ignored))
        return 0;
    return hardware_gpus(&h);
}

static bool conclude_model(struct conclusion *c)
{
    const struct setting *model = settings_find_z(c->out, "model");
    const struct setting *copy = fact(c, "yarn-copy"), *from = fact(c, "yarn-model");
    if (!model || !copy || !from || !str_equal(model->value, copy->value))
        return true;
    return settings_set(c->out, (struct setting){model->key, from->value, from->where}, c->error);
}

// What the user gives beside the files need not be known to them.
static bool fill_in(struct conclusion *c)
{
    bool (*check)(const struct setting *, struct error *) =
        c->found->format ? foreign_is_plain : foreign_is_resolved;
    for (ptrdiff_t i = 0; i < c->out->count; i++) {
        struct error unknown = {0};
        struct setting *item = &c->out->items[i];
        const struct setting *given = settings_find(c->given, item->key);
        if (check(item, &unknown))
            continue;
        if (!given) {
            *c->error = unknown;
            return false;
        }
        item->value = given->value;
    }
    return true;
}

// What torchrun is told by variables.
static bool count_processes(struct conclusion *c)
{
    struct foreign *f = c->found;
    const struct setting *each = fact(c, "per-machine"), *all = fact(c, "processes");
    if (!fact_count(c, &f->machines, "machines") || !fact_count(c, &f->processes, "processes"))
        return false;
    if (each && !all) {
        f->machines = 1;
        if (!fact_count(c, &f->machines, "torchrun-machines") ||
            !fact_count(c, &f->processes, "per-machine"))
            return false;
        f->processes = sat_mul(f->processes, f->machines);
    }
    f->where = all ? all->where : each ? each->where : STR_NONE;
    c->ranks = f->processes ? f->processes : given_ranks(c);
    return true;
}

// transformers/training_args.py: per_device_eval_batch_size = 8. Answers that evaluation generates
// are not modelled.
static bool conclude_evaluation(struct conclusion *c)
{
    const struct setting *evaluates = fact(c, "evaluates"), *rows = fact(c, "eval-rows");
    const struct setting *task = effective(c, "task");
    bool generates = task && words_have("grpo|rloo|distill", '|', task->value);
    if (!evaluates)
        return true;
    if (!generates)
        return put_unless_there(c, "eval-batch", rows ? rows->value : STR("8"),
                                (rows ? rows : evaluates)->where);
    foreign_note(c->found, str_format(c->out->arena,
                                      "%.*s: evaluation generates answers and is not predicted",
                                      STR_ARGS(evaluates->where)));
    return true;
}

// Said of the job only where its trainer is known to save as transformers' does.
static bool conclude_saving(struct conclusion *c)
{
    const struct setting *whole = fact(c, "save-whole"), *shards = fact(c, "save-shards");
    const struct setting *strategy = effective(c, "strategy");
    if (!fact(c, "TRL") && !fact(c, "LLaMA-Factory") && !fact(c, "axolotl"))
        return true;
    if (whole && !put_unless_there(c, "save", STR("full"), whole->where))
        return false;
    const struct setting *parts = fact(c, "save-parts");
    bool zero3 = strategy && str_is(strategy->value, "zero3");
    bool fsdp1 = strategy && str_is(strategy->value, "fsdp1");
    if (parts && fsdp1 && !put_unless_there(c, "save", STR("sharded"), parts->where))
        return false;
    return !shards || !zero3 || put_unless_there(c, "save", STR("sharded"), shards->where);
}

// Which lengths the rows of TRL's data have, no file says.
static bool note_padding(struct conclusion *c)
{
    const struct setting *trl = fact(c, "TRL"), *batch = effective(c, "batch");
    uint64_t rows = 0;
    if (!trl || effective(c, "batching"))
        return true;
    if (!count_of(c, &rows, batch))
        return false;
    if (rows > 1)
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: predicted with rows of one length; rows of several are "
                                "padded, with a mask: --batching padded",
                                STR_ARGS(str_cut(trl->where, ':').head)));
    return true;
}

bool foreign_conclude(struct settings *out, struct foreign *f, const struct settings *given,
                      struct error *e)
{
    struct conclusion c = {out, f, given, e, 0};
    if (!fill_in(&c))
        return false;
    if (!f->format)
        return true;
    if (!count_processes(&c))
        return false;
    return conclude_model(&c) && conclude_accelerate(&c) && conclude_rl(&c) && conclude_trl(&c) &&
           conclude_llamafactory(&c) && conclude_axolotl(&c) && conclude_deepspeed(&c) &&
           conclude_overlap(&c) && conclude_own_script(&c) && conclude_own_kernels(&c) &&
           conclude_recomputation(&c) && conclude_saving(&c) && conclude_evaluation(&c) &&
           note_padding(&c);
}
