// What follows from several keys, or from several files of one job: strategies and precisions that
// one file assumes and another says, batches out of totals, and what a trainer or a framework of
// reinforcement learning makes of its own files (conclude_trainers, conclude_rl).
#include "core/foreign/conclude.h"
#include "core/job/job.h"

static void forget(struct settings *s, const char *key)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (!str_is(s->items[i].key, key))
            s->items[kept++] = s->items[i];
    s->count = kept;
}

// deepspeed/runtime/engine.py, _configure_fp16_optimizer: nothing is sharded, and bf16 weights have
// fp32 masters, as many bytes as autocast over fp32 weights keeps.
static bool conclude_stage_0(struct conclusion *c)
{
    const struct setting *stage = fact(c, "stage-0");
    bool alone = c->found->recipe && str_is(str_from(c->found->recipe), "deepspeed");
    if (!stage)
        return true;
    forget(c->out, "precision");
    if (alone)
        c->found->recipe = NULL;
    foreign_note(c->found, str_format(c->out->arena,
                                      "%.*s: stage 0 shards nothing, and is predicted as ddp; "
                                      "DeepSpeed's own buffers are not in the answer",
                                      STR_ARGS(stage->where)));
    return put_unless_there(c, "strategy", STR("ddp"), stage->where) &&
           (!alone || put(c, "precision", STR("autocast"), stage->where));
}

// What the trainer of the files is asked to do, where the files do not say it in that word.
static bool conclude_accelerate(struct conclusion *c)
{
    const struct setting *kind = fact(c, "kind"), *mixed = fact(c, "mixed");
    const struct setting *file = fact(c, "deepspeed-file"), *launched = fact(c, "accelerate-file");
    if (launched && !fact(c, "Accelerate"))
        file = launched;
    if (file && (file == launched || !fact(c, "DeepSpeed")))
        return FAIL(c->error, UNSUPPORTED, file->where,
                    "what matters is in '%.*s': give it to --from too",
                    STR_ARGS(str_short_path(file->value)));
    if (!conclude_stage_0(c))
        return false;
    const struct setting *tp = effective(c, "tp");
    bool alone = tp && !str_is(tp->value, "1") && kind && str_is(kind->value, "ddp");
    if (kind && !put_unless_there(c, "strategy", alone ? STR("single") : kind->value, kind->where))
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

// Sizes that a file may name, and DeepSpeed's own where "auto" may stand and nothing does.
static const struct zero_size {
    const char *fact, *setting;
    const uint64_t *own;
    bool in_third; // stage 3 alone has it
} zero_sizes[] = {
    {"bucket", "reduce-bucket-size", &zero_sizes_of_deepspeed.reduced, false},
    {"prefetch", "prefetch-bucket-size", &zero_sizes_of_deepspeed.ahead, true},
    {"persistence", "persistence-threshold", &zero_sizes_of_deepspeed.persists, true},
    {"sub-group", "sub-group-size", NULL, true},
    {"max-live", "max-live-parameters", NULL, true},
    {"max-reuse", "max-reuse-distance", NULL, true},
};

static bool put_zero_size(struct conclusion *c, const struct zero_size *z, bool some_auto,
                          struct str where)
{
    const struct setting *said = fact(c, z->fact);
    bool none = said && str_is(said->value, "0"); // what is less than a parameter is as little
    if (said && !str_is(said->value, "auto"))
        return put(c, z->setting, none ? STR("1") : said->value, said->where);
    return said || !z->own || !some_auto || put_count(c, z->setting, *z->own, where);
}

// Where a file names none, as Accelerate's YAML, which cannot, buckets are DeepSpeed's own.
static bool conclude_buckets(struct conclusion *c)
{
    const struct setting *file = fact(c, "DeepSpeed"), *strategy = effective(c, "strategy"),
                         *kind = fact(c, "kind");
    file = kind && str_starts(kind->value, STR("zero")) && !file ? kind : file;
    if (!file || !strategy || !words_have("zero1 zero2 zero3", ' ', strategy->value))
        return true;
    if (!fact(c, "bucket"))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: predicted with DeepSpeed's own buckets, 500 million "
                                "elements; \"auto\" in its JSON file makes them small",
                                STR_ARGS(file->where)));
    bool third = str_is(strategy->value, "zero3"), some_auto = false;
    for (ptrdiff_t i = 0; i < COUNT_OF(zero_sizes); i++)
        some_auto |= (third || !zero_sizes[i].in_third) && fact_is(c, zero_sizes[i].fact, "auto");
    for (ptrdiff_t i = 0; i < COUNT_OF(zero_sizes); i++)
        if ((third || !zero_sizes[i].in_third) &&
            !put_zero_size(c, &zero_sizes[i], some_auto, file->where))
            return false;
    return some_auto || put_unless_there(c, "zero-buckets", STR("deepspeed"), file->where);
}

// Where nothing says it, as in Accelerate's YAML, which cannot, on in stage 3 and off before it;
// LLaMA-Factory's own files, which its recipe is as, turn it off.
static bool conclude_overlap(struct conclusion *c)
{
    const struct setting *strategy = settings_find_z(c->out, "strategy");
    const struct setting *overlap = fact(c, "overlap");
    bool third = strategy && str_is(strategy->value, "zero3");
    const struct setting *recipe = settings_find_z(c->given, "recipe");
    bool on = overlap ? str_is(overlap->value, "true") : third;
    bool llamafactory =
        recipe ? str_starts(recipe->value, STR("llamafactory")) : fact(c, "LLaMA-Factory") != NULL;
    if (!third && !(strategy && words_have("zero1 zero2", ' ', strategy->value)))
        return true;
    if (third && on && !llamafactory)
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

// Gradients of a rank's shard are as many whichever parameters they are of, and are reduced in the
// type they have, unless a file says otherwise (runtime/engine.py, communication_data_type).
static bool conclude_reduction(struct conclusion *c)
{
    const struct setting *in_turn = fact(c, "round-robin"), *type = fact(c, "reduced-in");
    const struct setting *strategy = effective(c, "strategy"),
                         *precision = effective(c, "precision");
    bool halves = precision && str_is(precision->value, "fp16");
    if (in_turn && strategy && words_have("zero1 zero2", ' ', strategy->value))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: parameters are dealt to the GPUs in turn; predicted in the "
                                "model's order, with shards of the same size",
                                STR_ARGS(in_turn->where)));
    return !type || str_is(type->value, halves ? "fp16" : "bf16") ||
           FAIL(c->error, UNSUPPORTED, type->where,
                "gradients that are reduced in another type than the weights' are not modelled");
}

// runtime/engine.py: of GPUs that share a sequence in fp32, unless the file says otherwise;
// modelled in the weights' type in DeepSpeed's own step, as ArcticTraining's files say it, and in
// fp32 else.
static void note_shared_reduction(struct conclusion *c)
{
    const struct setting *type = fact(c, "shared-reduced-in"), *file = fact(c, "DeepSpeed");
    const struct setting *recipe = settings_find_z(c->given, "recipe"), *sp = effective(c, "sp");
    struct str step = recipe ? str_cut(recipe->value, '@').head : str_from(c->found->recipe);
    bool narrow = str_is(step, "deepspeed");
    bool says_narrow = type && !str_is(type->value, "fp32");
    if (!file || !sp || str_is(sp->value, "1") || narrow == says_narrow)
        return;
    foreign_note(
        c->found,
        str_format(c->out->arena,
                   "%.*s: gradients of GPUs that share a sequence are predicted as reduced "
                   "in %s (seq_parallel_communication_data_type)",
                   STR_ARGS((type ? type : file)->where),
                   narrow ? "the weights' type, which takes less than fp32"
                          : "fp32, which takes more"));
}

static bool conclude_deepspeed(struct conclusion *c)
{
    const struct setting *adam = fact(c, "deepspeed-adam"), *wide = fact(c, "without-bf16");
    if (wide && !effective(c, "precision"))
        return FAIL(c->error, UNSUPPORTED, wide->where,
                    "DeepSpeed is modelled in bf16 and fp16 only");
    note_shared_reduction(c);
    if (!conclude_nvme(c) || !conclude_buckets(c) || !conclude_reduction(c))
        return false;
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

// The GPUs that the user named, where they are a number and not only a card, win over the files'.
void conclude_ranks(struct conclusion *c)
{
    const struct setting *gpu = effective(c, "gpu");
    struct foreign *f = c->found;
    struct error ignored = {0};
    struct hardware h;
    bool named =
        gpu && !str_is(gpu->value, "auto") && hardware_from_spec(&h, c->out->arena, gpu, &ignored);
    if (f->processes)
        c->ranks = f->processes;
    else if (named)
        c->ranks = hardware_gpus(&h);
    if (!named || !f->processes || gpu_find(gpu->value) || hardware_gpus(&h) == f->processes)
        return;
    foreign_note(f, str_format(c->out->arena, "%.*s: --gpu %.*s in place of the file's %llu GPUs",
                               STR_ARGS(f->where), STR_ARGS(str_short(gpu->value)),
                               (unsigned long long)f->processes));
    c->ranks = hardware_gpus(&h);
    f->processes = 0;
    f->machines = h.nodes;
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
        if (c->found->format && str_is(item->key, "model"))
            item->value = known_part(item->value);
        if (!given && check(item, &(struct error){0}))
            continue;
        if (!given) {
            *c->error = unknown;
            return false;
        }
        item->value = given->value;
    }
    return true;
}

// FSDP1's HYBRID_SHARD: every node has all shards.
static bool conclude_replicas(struct conclusion *c)
{
    const struct setting *hybrid = fact(c, "hybrid");
    if (!hybrid || c->found->machines < 2)
        return true;
    struct str nodes = str_format(c->out->arena, "%llu", (unsigned long long)c->found->machines);
    return put_unless_there(c, "replicate", nodes, hybrid->where);
}

// transformers/training_args.py: per_device_eval_batch_size = 8. Answers that adapters generate in
// evaluation are not modelled.
static bool conclude_evaluation(struct conclusion *c)
{
    const struct setting *evaluates = fact(c, "evaluates"), *rows = fact(c, "eval-rows");
    const struct setting *task = effective(c, "task");
    bool generates = task && words_have("grpo|rloo|distill", '|', task->value);
    if (!evaluates)
        return true;
    if (!generates || !effective(c, "lora"))
        return put_unless_there(c, "eval-batch", rows ? rows->value : STR("8"),
                                (rows ? rows : evaluates)->where);
    foreign_note(c->found,
                 str_format(c->out->arena,
                            "%.*s: evaluation generates answers with adapters and is not predicted",
                            STR_ARGS(evaluates->where)));
    return true;
}

// Said of the job only where its trainer is known to save as transformers' does.
static bool conclude_saving(struct conclusion *c)
{
    const struct setting *whole = fact(c, "save-whole"), *shards = fact(c, "save-shards");
    const struct setting *strategy = effective(c, "strategy");
    const struct setting *recipe = settings_find_z(c->given, "recipe");
    bool named = recipe && words_have("trl|transformers|axolotl|llamafactory", '|',
                                      str_cut(recipe->value, '@').head);
    if (!named && !fact(c, "TRL") && !fact(c, "LLaMA-Factory") && !fact(c, "axolotl"))
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

// What was refused and has an option that stands in for it.
static bool conclude_refusals(struct conclusion *c)
{
    for (int i = 0; i < c->found->refusal_count; i++) {
        const struct foreign_refusal *r = &c->found->refusals[i];
        if (!replaced(c, str_z(c->out->arena, r->option), r->said, r->where))
            return FAIL(c->error, UNSUPPORTED, r->where, "%.*s (--%.*s stands in for it)",
                        STR_ARGS(r->why), STR_ARGS(r->option));
    }
    return true;
}

bool replaced(struct conclusion *c, const char *option, struct str said, struct str where)
{
    const struct setting *given = settings_find_z(c->given, option);
    if (given)
        foreign_note(c->found,
                     str_format(c->out->arena, "%.*s: --%s %.*s in place of %.*s", STR_ARGS(where),
                                option, STR_ARGS(str_short(given->value)), STR_ARGS(said)));
    return given != NULL;
}

bool foreign_conclude(struct settings *out, struct foreign *f, const struct settings *given,
                      struct error *e)
{
    struct conclusion c = {out, f, given, e, 0};
    if (!foreign_read_commands(out, f, given, e) || !fill_in(&c))
        return false;
    if (!f->format)
        return true;
    if (!conclude_refusals(&c) || !check_trainer_file(&c) || !count_processes(&c))
        return false;
    return conclude_model(&c) && conclude_accelerate(&c) && conclude_launch(&c) &&
           conclude_rl(&c) && conclude_slime(&c) && conclude_trl(&c) && conclude_transformers(&c) &&
           conclude_llamafactory(&c) && conclude_axolotl(&c) && conclude_deepspeed(&c) &&
           conclude_overlap(&c) && conclude_own_script(&c) && conclude_own_kernels(&c) &&
           conclude_recomputation(&c) && conclude_saving(&c) && conclude_evaluation(&c) &&
           conclude_replicas(&c) && note_padding(&c);
}
