// What follows from several keys, or from several files of one job: strategies and precisions that
// one file assumes and another says, batches out of totals, and what a trainer or a framework of
// reinforcement learning makes of its own files (conclude_trainers, conclude_rl).
#include "core/foreign/conclude.h"
#include "core/hardware/hardware.h"

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
                    STR_ARGS(str_short(file->value)));
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
           conclude_replicas(&c) && note_padding(&c);
}
