// One table a format. The first row whose key and value match decides; "*" at the end of a key
// stands for the rest of it.
#include "core/emit/foreign.h"

#include "core/base/num.h"
#include "core/hardware/hardware.h"

enum effect {
    SETS,    // `setting` to `gives`, or to the file's own value where that is NULL
    NOTHING, // on memory
    REFUSED, // because of `gives`
    COUNTS,  // into the field of struct foreign that `setting` names
};

struct foreign_row {
    const char *key;
    const char *value; // NULL: any
    enum effect effect;
    const char *setting, *gives;
};

static const struct foreign_row accelerate_rows[] = {
    {"distributed_type", "NO", SETS, "strategy", "single"},
    {"distributed_type", "MULTI_GPU", SETS, "strategy", "ddp"},
    {"distributed_type", "FSDP", SETS, "strategy", "fsdp1"},
    {"distributed_type", "DEEPSPEED", SETS, "strategy", "zero2"},
    {"distributed_type", NULL, REFUSED, NULL, "this kind of training is not modelled"},
    {"mixed_precision", "no", SETS, "precision", "bf16"},
    {"mixed_precision", "bf16", SETS, "precision", "autocast"},
    {"mixed_precision", NULL, REFUSED, NULL, "of the precisions no and bf16 are modelled"},
    {"num_machines", NULL, COUNTS, "machines"},
    {"num_processes", NULL, COUNTS, "processes"},
    {"use_cpu", "true", REFUSED, NULL, "training on the CPU is not modelled"},
    {"fsdp_config.fsdp_version", "1", SETS, "strategy", "fsdp1"},
    {"fsdp_config.fsdp_version", "2", SETS, "strategy", "fsdp2"},
    {"fsdp_config.fsdp_sharding_strategy", "FULL_SHARD", NOTHING},
    {"fsdp_config.fsdp_sharding_strategy", "1", NOTHING},
    {"fsdp_config.fsdp_sharding_strategy", "SHARD_GRAD_OP", SETS, "reshard", "off"},
    {"fsdp_config.fsdp_sharding_strategy", "2", SETS, "reshard", "off"},
    {"fsdp_config.fsdp_reshard_after_forward", "true", SETS, "reshard", "on"},
    {"fsdp_config.fsdp_reshard_after_forward", "false", SETS, "reshard", "off"},
    {"fsdp_config.fsdp_reshard_after_forward", "FULL_SHARD", NOTHING},
    {"fsdp_config.fsdp_offload_params", "true", SETS, "offload", "all"},
    {"fsdp_config.fsdp_offload_params", "false", NOTHING},
    {"fsdp_config.fsdp_activation_checkpointing", "true", SETS, "checkpointing", "on"},
    {"fsdp_config.fsdp_activation_checkpointing", "false", NOTHING}, // the trainer may still
    {"fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", NOTHING},
    {"fsdp_config.fsdp_auto_wrap_policy", NULL, REFUSED, NULL,
     "only units of a decoder layer are modelled: TRANSFORMER_BASED_WRAP"},
    {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", NULL, NOTHING},
    {"fsdp_config.fsdp_backward_prefetch", "BACKWARD_PRE", NOTHING},
    {"fsdp_config.fsdp_forward_prefetch", "false", NOTHING},
    {"fsdp_config.fsdp_use_orig_params", "true", NOTHING},
    {"fsdp_config.fsdp_sync_module_states", NULL, NOTHING},
    {"fsdp_config.fsdp_cpu_ram_efficient_loading", NULL, NOTHING},
    {"fsdp_config.fsdp_state_dict_type", NULL, NOTHING},
    {"fsdp_config.fsdp_min_num_params", NULL, NOTHING},
    {"deepspeed_config.zero_stage", "1", SETS, "strategy", "zero1"},
    {"deepspeed_config.zero_stage", "2", SETS, "strategy", "zero2"},
    {"deepspeed_config.zero_stage", "3", SETS, "strategy", "zero3"},
    {"deepspeed_config.gradient_accumulation_steps", "auto", NOTHING},
    {"deepspeed_config.gradient_accumulation_steps", NULL, SETS, "accum"},
    {"deepspeed_config.offload_optimizer_device", "none", NOTHING},
    {"deepspeed_config.offload_optimizer_device", "cpu", SETS, "offload", "optimizer"},
    {"deepspeed_config.offload_param_device", "none", NOTHING},
    {"deepspeed_config.offload_param_device", "cpu", SETS, "offload", "all"},
    {"deepspeed_config.deepspeed_config_file", NULL, REFUSED, NULL,
     "what matters is in that file: give it to --from instead"},
    {"deepspeed_config.gradient_clipping", NULL, NOTHING},
    {"deepspeed_config.zero3_*", NULL, NOTHING},
    {"deepspeed_config.deepspeed_multinode_launcher", NULL, NOTHING},
    {"deepspeed_config.deepspeed_hostfile", NULL, NOTHING},
    {"parallelism_config.parallelism_config_cp_size", NULL, SETS, "cp"},
    {"parallelism_config.parallelism_config_sp_size", NULL, SETS, "sp"},
    {"parallelism_config.parallelism_config_tp_size", "1", NOTHING},
    {"parallelism_config.parallelism_config_dp_replicate_size", "1", NOTHING},
    {"parallelism_config.parallelism_config_dp_replicate_size", NULL, REFUSED, NULL,
     "shards that are replicated are not modelled"},
    {"parallelism_config.parallelism_config_dp_shard_size", NULL, NOTHING},
    {"parallelism_config.parallelism_config_cp_*", NULL, NOTHING},
    {"parallelism_config.parallelism_config_sp_*", NULL, NOTHING},
    {"compute_environment", NULL, NOTHING},
    {"machine_rank", NULL, NOTHING},
    {"main_process_*", NULL, NOTHING},
    {"main_training_function", NULL, NOTHING},
    {"rdzv_backend", NULL, NOTHING},
    {"same_network", NULL, NOTHING},
    {"debug", NULL, NOTHING},
    {"use_cpu", "false", NOTHING},
    {"downcast_bf16", NULL, NOTHING},
    {"enable_cpu_affinity", NULL, NOTHING},
    {"gpu_ids", NULL, NOTHING},
    {"tpu_*", NULL, NOTHING},
};

// Bucket sizes are read past: a prediction has those that emit writes.
static const struct foreign_row deepspeed_rows[] = {
    {"train_micro_batch_size_per_gpu", "auto", NOTHING},
    {"train_micro_batch_size_per_gpu", NULL, SETS, "batch"},
    {"gradient_accumulation_steps", "auto", NOTHING},
    {"gradient_accumulation_steps", NULL, SETS, "accum"},
    {"bf16.enabled", "true", SETS, "precision", "mixed"},
    {"bf16.enabled", "auto", SETS, "precision", "mixed"},
    {"bf16.enabled", NULL, REFUSED, NULL, "DeepSpeed is modelled in bf16 only"},
    {"fp16.enabled", "true", REFUSED, NULL, "DeepSpeed is modelled in bf16 only"},
    {"fp16.*", NULL, NOTHING},
    {"zero_optimization.stage", "1", SETS, "strategy", "zero1"},
    {"zero_optimization.stage", "2", SETS, "strategy", "zero2"},
    {"zero_optimization.stage", "3", SETS, "strategy", "zero3"},
    {"zero_optimization.stage", NULL, REFUSED, NULL, "the stages are 1, 2 and 3"},
    {"zero_optimization.offload_optimizer.device", "cpu", SETS, "offload", "optimizer"},
    {"zero_optimization.offload_optimizer.device", "none", NOTHING},
    {"zero_optimization.offload_optimizer.pin_memory", NULL, NOTHING},
    {"zero_optimization.offload_param.device", "cpu", SETS, "offload", "all"},
    {"zero_optimization.offload_param.device", "none", NOTHING},
    {"zero_optimization.offload_param.pin_memory", NULL, NOTHING},
    {"zero_optimization.offload_*", NULL, REFUSED, NULL, "only offload to host memory is modelled"},
    {"zero_optimization.reduce_bucket_size", NULL, NOTHING},
    {"zero_optimization.allgather_bucket_size", NULL, NOTHING},
    {"zero_optimization.allgather_partitions", "true", NOTHING},
    {"zero_optimization.reduce_scatter", "true", NOTHING},
    {"zero_optimization.contiguous_gradients", "true", NOTHING},
    {"zero_optimization.overlap_comm", NULL, NOTHING},
    {"zero_optimization.sub_group_size", NULL, NOTHING},
    {"zero_optimization.stage3_*", NULL, NOTHING},
    {"sequence_parallel_size", NULL, SETS, "sp"},
    {"optimizer.type", "AdamW", SETS, "optimizer", "adamw"},
    {"optimizer.type", "Adam", SETS, "optimizer", "adamw"},
    {"optimizer.params.*", NULL, NOTHING},
    {"scheduler.*", NULL, NOTHING},
    {"gradient_clipping", NULL, NOTHING},
    {"train_batch_size", NULL, NOTHING},
    {"steps_per_print", NULL, NOTHING},
    {"wall_clock_breakdown", NULL, NOTHING},
};

#define VERL_ACTOR "trainer.trainer_config.actor_rollout_ref.actor."
#define VERL_REF   "trainer.trainer_config.actor_rollout_ref.ref."

// The reference model of Trinity is part of its step; only the actor's settings are read.
static const struct foreign_row trinity_rows[] = {
    {"model.max_model_len", NULL, SETS, "context"},
    {"model.model_path", NULL, SETS, "model"},
    {"trainer.trainer_strategy", "fsdp", SETS, "strategy", "fsdp1"},
    {"trainer.trainer_strategy", "fsdp2", SETS, "strategy", "fsdp2"},
    {"trainer.trainer_strategy", NULL, REFUSED, NULL, "only fsdp and fsdp2 are modelled"},
    {"trainer.ulysses_sequence_parallel_size", NULL, SETS, "sp"},
    {"trainer.optimizer_offload", "true", SETS, "offload", "optimizer"},
    {"trainer.param_offload", "true", SETS, "offload", "all"},
    {"trainer.offload_policy", "true", SETS, "offload", "all"},
    {"trainer.save_hf_checkpoint", "last", NOTHING},
    {"trainer.save_hf_checkpoint", NULL, SETS, "save-hf"},
    {VERL_ACTOR "fsdp_config.optimizer_offload", "true", SETS, "offload", "optimizer"},
    {VERL_ACTOR "fsdp_config.param_offload", "true", SETS, "offload", "all"},
    {VERL_ACTOR "fsdp_config.offload_policy", "true", SETS, "offload", "all"},
    {VERL_ACTOR "fsdp_config.reshard_after_forward", "false", SETS, "reshard", "off"},
    {"trainer.trainer_config.actor_rollout_ref.model.enable_gradient_checkpointing", "false", SETS,
     "checkpointing", "off"},
    {"trainer.trainer_config.actor_rollout_ref.model.use_fused_kernels", "true", SETS,
     "fused-kernels", "on"},
    {VERL_ACTOR "entropy_from_logits_with_chunking", "true", SETS, "entropy-saving", "on"},
    {VERL_ACTOR "entropy_checkpointing", "true", NOTHING}, // of itself a few values a token
    {"trainer.megatron.*", NULL, REFUSED, NULL, "Megatron is not modelled"},
    {"model.lora_configs.*", NULL, REFUSED, NULL, "LoRA is not read from Trinity's files"},
    {"*", NULL, NOTHING},
};

static const struct format {
    const char *name, *recipe;
    const char *mark; // a key that only this format has
    const struct foreign_row *rows;
    ptrdiff_t row_count;
} formats[] = {
    {"Accelerate", NULL, "distributed_type", accelerate_rows, COUNT_OF(accelerate_rows)},
    {"DeepSpeed", NULL, "zero_optimization.stage", deepspeed_rows, COUNT_OF(deepspeed_rows)},
    {"Trinity-RFT", "trinity", "algorithm.algorithm_type", trinity_rows, COUNT_OF(trinity_rows)},
};

static bool key_matches(const char *pattern, struct str key)
{
    struct str p = str_from(pattern);
    if (str_ends(p, STR("*")))
        return str_starts(key, str_slice(p, 0, p.n - 1));
    return str_equal(p, key);
}

// Accelerate takes the keys of fsdp_config with and without their prefix.
static struct str usual_key(struct arena *a, struct str key)
{
    struct str section = STR("fsdp_config."), prefix = STR("fsdp_config.fsdp_");
    if (!str_starts(key, section) || str_starts(key, prefix))
        return key;
    return str_join(a, prefix, str_slice(key, section.n, key.n));
}

static const struct foreign_row *find_row(const struct format *f, struct str key, struct str value)
{
    for (ptrdiff_t i = 0; i < f->row_count; i++) {
        const struct foreign_row *r = &f->rows[i];
        if (key_matches(r->key, key) && (!r->value || str_equal_nocase(value, str_from(r->value))))
            return r;
    }
    return NULL;
}

static bool take(struct settings *out, struct foreign *found, const struct format *f,
                 const struct setting *item, struct error *e)
{
    struct str key = usual_key(out->arena, item->key);
    const struct foreign_row *r = find_row(f, key, item->value);
    if (!r)
        return FAIL(e, UNSUPPORTED, item->where,
                    "%.*s '%.*s' of %s is not read, and may change memory",
                    STR_ARGS(str_short(key)), STR_ARGS(str_short(item->value)), f->name);
    if (r->effect == REFUSED)
        return FAIL(e, UNSUPPORTED, item->where, "%s", r->gives);
    if (r->effect == COUNTS) {
        bool machines = str_is(str_from(r->setting), "machines");
        found->where = machines ? found->where : item->where;
        return setting_number(machines ? &found->machines : &found->processes, item, UNIT_PLAIN,
                              (struct range){1, 1 << 20}, e);
    }
    struct str value = r->gives ? str_from(r->gives) : item->value;
    struct setting made = {str_from(r->setting), value, item->where};
    const struct setting *earlier = settings_find(out, made.key);
    bool less = str_is(made.value, "optimizer") && earlier && str_is(earlier->value, "all");
    return r->effect == NOTHING || less || settings_set(out, made, e);
}

// What follows from several keys together.
static bool conclude_accelerate(struct settings *out, struct error *e)
{
    const struct setting *strategy = settings_find_z(out, "strategy");
    const struct setting *precision = settings_find_z(out, "precision");
    bool sharded =
        strategy && !str_is(strategy->value, "single") && !str_is(strategy->value, "ddp");
    struct setting mixed = {STR("precision"), STR("mixed"), STR_NONE};
    if (!sharded || (precision && !str_is(precision->value, "autocast")))
        return true;
    mixed.where = precision ? precision->where : strategy->where;
    return settings_set(out, mixed, e);
}

static uint64_t number_at(const struct settings *file, const char *key, uint64_t fallback)
{
    const struct setting *item = settings_find_z(file, key);
    uint64_t value = fallback;
    if (item && unit_parse(&value, UNIT_PLAIN, item->value) != UNIT_OK)
        return fallback;
    return value;
}

// A step's sequences, dealt out to the groups of GPUs that share them, in micro-batches.
static bool take_micro_batches(struct settings *out, const struct settings *file, uint64_t groups,
                               uint64_t batch, struct error *e)
{
    const struct setting *step = settings_find_z(file, "buffer.train_batch_size");
    uint64_t sequences = number_at(file, "buffer.train_batch_size", 0);
    uint64_t together = sat_mul(groups, batch);
    if (!step || !sequences || !together)
        return true;
    uint64_t count = u64_divide_up(sequences, together);
    struct str accum = str_format(out->arena, "%llu", (unsigned long long)count);
    return settings_set(out, (struct setting){STR("accum"), accum, step->where}, e);
}

// The GPUs that train are those that neither generate nor teach. The token limit of a GPU says how
// many sequences of full length a micro-batch has.
static bool conclude_trinity(struct settings *out, struct foreign *found,
                             const struct settings *file, struct error *e)
{
    uint64_t all =
        number_at(file, "cluster.node_num", 1) * number_at(file, "cluster.gpu_per_node", 0);
    uint64_t beside = number_at(file, "explorer.rollout_model.engine_num", 1) *
                      number_at(file, "explorer.rollout_model.tensor_parallel_size", 1);
    uint64_t teachers = number_at(file, "explorer.auxiliary_models.0.engine_num", 0) *
                        number_at(file, "explorer.auxiliary_models.0.tensor_parallel_size", 1);
    uint64_t context = number_at(file, "model.max_model_len", 0);
    uint64_t sp = number_at(file, "trainer.ulysses_sequence_parallel_size", 1);
    const struct setting *mode = settings_find_z(file, "mode");
    const struct setting *limit = settings_find_z(file, "trainer.max_token_len_per_gpu");
    beside = mode && str_is(mode->value, "train") ? 0 : beside + teachers;
    found->processes = all > beside ? all - beside : 0;
    found->where = STR("cluster");
    if (!limit)
        return true;
    uint64_t tokens = number_at(file, "trainer.max_token_len_per_gpu", 0) * sp;
    if (!context || !tokens || tokens % context)
        return FAIL(e, UNSUPPORTED, limit->where,
                    "only micro-batches of whole sequences are modelled: max_token_len_per_gpu "
                    "times sp must be a multiple of max_model_len");
    struct str batch = str_format(out->arena, "%llu", (unsigned long long)(tokens / context));
    return settings_set(out, (struct setting){STR("batch"), batch, limit->where}, e) &&
           take_micro_batches(out, file, found->processes / sp, tokens / context, e);
}

bool foreign_settings(struct settings *out, struct foreign *f, const struct settings *file,
                      struct error *e)
{
    const struct format *format = NULL;
    *f = (struct foreign){0};
    for (ptrdiff_t i = 0; i < COUNT_OF(formats) && !format; i++)
        format = settings_find_z(file, formats[i].mark) ? &formats[i] : NULL;
    if (!format)
        return true;
    f->format = format->name;
    f->recipe = format->recipe;
    // The mark first: what a section says wins over what its kind of training assumes.
    const struct setting *mark = settings_find_z(file, format->mark);
    if (!take(out, f, format, mark, e))
        return false;
    for (ptrdiff_t i = 0; i < file->count; i++)
        if (&file->items[i] != mark && !str_is(file->items[i].value, "null") &&
            !take(out, f, format, &file->items[i], e))
            return false;
    if (format->rows == accelerate_rows)
        return conclude_accelerate(out, e);
    return format->rows != trinity_rows || conclude_trinity(out, f, file, e);
}

bool foreign_gpu(struct settings *s, const struct foreign *f, struct error *e)
{
    const struct setting *gpu = settings_find_z(s, "gpu");
    struct hardware h;
    uint64_t machines = f->machines ? f->machines : 1;
    if (!gpu || !f->processes || str_is(gpu->value, "auto"))
        return true;
    if (f->processes % machines)
        return FAIL(e, BAD_INPUT, f->where, "%llu processes do not divide among %llu machines",
                    (unsigned long long)f->processes, (unsigned long long)machines);
    struct setting item = *gpu;
    if (gpu_find(item.value)) {
        item.value =
            str_format(s->arena, "%llux%llux%.*s", (unsigned long long)machines,
                       (unsigned long long)(f->processes / machines), STR_ARGS(gpu->value));
        return settings_set(s, item, e);
    }
    if (!hardware_from_spec(&h, s->arena, gpu, e))
        return false;
    if (hardware_gpus(&h) != f->processes)
        return FAIL(e, BAD_INPUT, f->where, "the file trains on %llu GPUs, and %.*s are %llu",
                    (unsigned long long)f->processes, STR_ARGS(str_short(gpu->value)),
                    (unsigned long long)hardware_gpus(&h));
    return true;
}
