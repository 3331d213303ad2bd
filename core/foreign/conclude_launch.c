// What a command says by how it starts its trainer: how many processes there are, and what becomes
// of several GPUs where nothing says how to shard.
#include "core/foreign/conclude.h"
#include "core/hardware/hardware.h"

#define DEFAULT_FILE                                                                       \
    "predicted as DDP: nothing says how to shard; a default_config.yaml that `accelerate " \
    "config` wrote would, and must then be given to --from too"
#define DATA_PARALLEL                                                                            \
    "one process is started: over several GPUs transformers' Trainer has nn.DataParallel then, " \
    "which is not modelled; accelerate launch or torchrun starts a process for each"

// accelerate/commands/launch.py, _validate_launch_command; transformers/trainer.py, _wrap_model.
static const struct launching {
    const char *by;
    bool ddp;
    const char *note, *refused;
} launchings[] = {
    {"accelerate", true, DEFAULT_FILE, NULL},
    {"trl", true, DEFAULT_FILE, NULL},
    {"torchrun", true, NULL, NULL},
    {"deepspeed", true, NULL, NULL},
    {"python", false, NULL, DATA_PARALLEL},
    {"-", false, NULL, "how this is started is not read: --strategy ddp, fsdp2, ... says it"},
};

static bool is_more_than_one(const struct setting *size)
{
    return size && !str_is(size->value, "1");
}

// accelerate 1.15, utils/dataclasses.py, FullyShardedDataParallelPlugin: NO_WRAP is the default, of
// flags as of files, and of both versions (utils/fsdp_utils.py, fsdp2_prepare_auto_wrap_policy).
// Tensor parallel shards nothing, nor does one GPU.
static bool check_units(struct conclusion *c)
{
    const struct setting *kind = fact(c, "kind");
    bool whole = kind && str_is(kind->value, "fsdp1") && !fact(c, "wraps-layers") &&
                 !is_more_than_one(effective(c, "tp")) && c->ranks != 1;
    if (!whole || replaced(c, "strategy", STR("one unit of all layers"), kind->where))
        return true;
    return FAIL(c->error, UNSUPPORTED, kind->where,
                "without %sfsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP Accelerate makes one unit "
                "of all layers, which is not modelled (--strategy stands in for it)",
                fact(c, "Accelerate") ? "" : "--");
}

static bool read_words(struct conclusion *c, const struct setting *said, bool old)
{
    bool wraps = !old;
    struct words words = {.rest = said->value, .separator = ' '};
    while (words_next(&words)) {
        bool known = words_have("true full_shard auto_wrap shard_grad_op offload", ' ', words.word);
        if (!known)
            return FAIL(c->error, UNSUPPORTED, said->where,
                        "of transformers' ways to shard full_shard, shard_grad_op, auto_wrap and "
                        "offload are %s, not '%.*s' (--strategy stands in for it)",
                        old ? "modelled" : "FSDP2's", STR_ARGS(str_short(words.word)));
        wraps = wraps || str_is(words.word, "auto_wrap");
        if ((str_is(words.word, "shard_grad_op") && !put(c, "reshard", STR("off"), said->where)) ||
            (str_is(words.word, "offload") && !put(c, "offload", STR("all"), said->where)))
            return false;
    }
    return wraps || FAIL(c->error, UNSUPPORTED, said->where,
                         "without auto_wrap transformers 4 makes one unit of all layers, which is "
                         "not modelled (--strategy stands in for it)");
}

// transformers 5.17, training_args.py, _apply_legacy_fsdp_to_config and _process_fsdp_args: FSDP2
// unless fsdp_config says otherwise, in units of a layer, each rank reading all weights. 4.41 to
// 4.57, __post_init__: FSDP1, whose units are layers where auto_wrap says so.
static bool conclude_arguments(struct conclusion *c)
{
    const struct setting *said = fact(c, "fsdp-words"), *recipe = effective(c, "recipe");
    const struct setting *layers = fact(c, "named-layers");
    bool old = is_before_5(c);
    if (layers && !old)
        return FAIL(c->error, UNSUPPORTED, layers->where,
                    "transformers 5 has no such argument, and finds the layers by itself: leave it "
                    "out; --recipe transformers@4.57 reads it");
    if (!said || replaced(c, "strategy", STR("fsdp in the arguments"), said->where))
        return true;
    if (!(fact(c, "TRL") || fact(c, "transformers")) ||
        (recipe && str_cut(recipe->value, '@').found && !old))
        return FAIL(c->error, UNSUPPORTED, said->where,
                    "fsdp in the arguments is read of today's Trainer and of transformers@4.41 to "
                    "4.57 (--strategy stands in for it)");
    return read_words(c, said, old) &&
           put(c, "strategy", old ? STR("fsdp1") : STR("fsdp2"), said->where) &&
           put_unless_there(c, "load-once", STR("off"), said->where) &&
           put_unless_there(c, "save", STR("full"), said->where);
}

bool conclude_launch(struct conclusion *c)
{
    const struct setting *by = fact(c, "launched-by");
    bool trainer = fact(c, "TRL") || fact(c, "transformers");
    if (!conclude_arguments(c))
        return false;
    bool said = effective(c, "strategy") || is_more_than_one(effective(c, "tp"));
    if (!check_units(c))
        return false;
    if (!by || !trainer || said || c->ranks < 2)
        return true;
    for (ptrdiff_t i = 0; i < COUNT_OF(launchings); i++) {
        const struct launching *l = &launchings[i];
        if (!str_is(by->value, l->by))
            continue;
        if (l->refused)
            return FAIL(c->error, UNSUPPORTED, by->where, "%s", l->refused);
        if (l->note)
            foreign_note(c->found,
                         str_format(c->out->arena, "%.*s: %s", STR_ARGS(by->where), l->note));
        return put(c, "strategy", STR("ddp"), by->where);
    }
    return true;
}

bool is_open(const struct setting *item)
{
    return item && str_cut(item->value, '$').found;
}

bool take_given_gpus(struct conclusion *c, const struct setting *open)
{
    const struct setting *gpu = effective(c, "gpu");
    if (gpu && gpu_find(gpu->value))
        return FAIL(c->error, BAD_INPUT, open->where,
                    "the number of GPUs is '%.*s', which is not read: --gpu 8x%.*s is an example",
                    STR_ARGS(str_short(open->value)), STR_ARGS(str_short(gpu->value)));
    return true;
}

static bool check_given_gpus(struct conclusion *c)
{
    static const char *const counts[] = {"processes", "machines", "per-machine",
                                         "torchrun-machines"};
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++)
        if (is_open(fact(c, counts[i])) && !take_given_gpus(c, fact(c, counts[i])))
            return false;
    return true;
}

// torchrun is told how many each machine has, by flags or by variables.
bool count_processes(struct conclusion *c)
{
    struct foreign *f = c->found;
    const struct setting *each = fact(c, "per-machine"), *all = fact(c, "processes"),
                         *machines = fact(c, "machines"), *nodes = fact(c, "torchrun-machines");
    if (!check_given_gpus(c))
        return false;
    if ((!is_open(machines) && !count_of(c, &f->machines, machines)) ||
        (!is_open(all) && !count_of(c, &f->processes, all)))
        return false;
    if (each && !all && !is_open(each) && !is_open(nodes)) {
        f->machines = 1;
        if (!count_of(c, &f->machines, nodes) || !count_of(c, &f->processes, each))
            return false;
        f->processes = sat_mul(f->processes, f->machines);
    }
    f->where = all ? all->where : each ? each->where : STR_NONE;
    conclude_ranks(c);
    return true;
}

// What a command leaves to its trainer's file, and a script to another.
bool check_trainer_file(const struct conclusion *c)
{
    const struct setting *file = c->found->trainer ? NULL : fact(c, "trainer-file");
    const struct setting *script = fact(c, "started");
    if (!file && !effective(c, "model"))
        file = script;
    return !file || FAIL(c->error, UNSUPPORTED, file->where,
                         "what matters is in '%.*s': give it to --from too",
                         STR_ARGS(str_short_path(file->value)));
}
