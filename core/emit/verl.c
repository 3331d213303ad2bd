// verl 0.8 and later, FSDP, GRPO: one command with the list of overrides. Hydra rejects a key that
// its configuration does not have.
#include "core/base/num.h"
#include "core/emit/emit.h"

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# verl, GRPO: @name@, @context@ tokens a sequence; @step@.\n"
             "# @predicted@\n"
             "# Needs verl >= 0.8 (the layout of keys), with the vLLM that it names."},
};

static const struct line run_lines[] = {
    {IS_NODES, 0, RAY_CLUSTER_LINE},
    {.text = "overrides=(\n    algorithm.adv_estimator=grpo\n    algorithm.use_kl_in_reward=false"},
    {0, IS_NO_DATASET, "    data.train_files=@dataset@\n    data.val_files=@dataset@"},
    {IS_NO_DATASET | IS_VISION, 0,
     "    # An example with images, as verl's examples/data_preprocess/geo3k.py writes it.\n"
     "    data.train_files=\"$HOME/data/geo3k/train.parquet\"\n"
     "    data.val_files=\"$HOME/data/geo3k/test.parquet\""},
    {IS_VISION, 0, "    data.image_key=images"},
    {IS_NO_DATASET, IS_VISION,
     "    # An example: put your own here.\n"
     "    data.train_files=\"$HOME/data/gsm8k/train.parquet\"\n"
     "    data.val_files=\"$HOME/data/gsm8k/test.parquet\""},
    {.text =
         "    # Prompts a step; times rollout.n they are the @sequences@ answers of one update.\n"
         "    data.train_batch_size=@prompts@\n"
         "    data.max_prompt_length=@prompt@\n"
         "    data.max_response_length=@response@\n"
         "    data.filter_overlong_prompts=true\n"
         "    actor_rollout_ref.model.path=@model@\n"
         "    actor_rollout_ref.model.use_remove_padding=true"},
    {IS_CHECKPOINTING, 0, "    actor_rollout_ref.model.enable_gradient_checkpointing=true"},
    {0, IS_CHECKPOINTING, "    actor_rollout_ref.model.enable_gradient_checkpointing=false"},
    {IS_FUSED_KERNELS, 0, "    actor_rollout_ref.model.use_fused_kernels=true"},
    {IS_ENTROPY_SAVING, 0,
     "    actor_rollout_ref.actor.entropy_from_logits_with_chunking=true\n"
     "    actor_rollout_ref.actor.entropy_checkpointing=true"},
    {IS_FSDP2, 0,
     "    actor_rollout_ref.actor.strategy=fsdp2\n"
     "    actor_rollout_ref.actor.fsdp_config.strategy=fsdp2\n"
     "    actor_rollout_ref.ref.fsdp_config.strategy=fsdp2"},
    {0, IS_FSDP2, "    actor_rollout_ref.actor.strategy=fsdp"},
    {.text = "    actor_rollout_ref.actor.optim.lr=1e-6\n"
             "    actor_rollout_ref.actor.ppo_mini_batch_size=@prompts@\n"
             "    # @batch@ sequences of full length in a micro-batch, divided by sp.\n"
             "    actor_rollout_ref.actor.use_dynamic_bsz=true\n"
             "    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=@token_limit@\n"
             "    actor_rollout_ref.actor.ulysses_sequence_parallel_size=@sp@\n"
             "    actor_rollout_ref.actor.use_kl_loss=true\n"
             "    actor_rollout_ref.actor.kl_loss_coef=0.001\n"
             "    actor_rollout_ref.actor.kl_loss_type=low_var_kl\n"
             "    actor_rollout_ref.actor.entropy_coeff=0"},
    {0, IS_RESHARD, "    actor_rollout_ref.actor.fsdp_config.reshard_after_forward=false"},
    {IS_OFFLOAD_ALL, 0, "    actor_rollout_ref.actor.fsdp_config.param_offload=true"},
    {IS_OFFLOAD_OPTIMIZER, 0, "    actor_rollout_ref.actor.fsdp_config.optimizer_offload=true"},
    {IS_OFFLOAD_ALL | IS_FSDP2, 0, "    actor_rollout_ref.actor.fsdp_config.offload_policy=true"},
    {.text = "    # The reference model waits in host memory.\n"
             "    actor_rollout_ref.ref.fsdp_config.param_offload=true\n"
             "    # The engine shares the GPUs and gives its memory back while training.\n"
             "    actor_rollout_ref.rollout.name=vllm"},
    {.text = "    # @rollout_why@"},
    {.text = "    # @rollout_room@"},
    {.text = "    actor_rollout_ref.rollout.tensor_model_parallel_size=@rollout_tp@\n"
             "    actor_rollout_ref.rollout.gpu_memory_utilization=@rollout_memory@\n"
             "    actor_rollout_ref.rollout.free_cache_engine=true\n"
             "    actor_rollout_ref.rollout.n=@repeat_times@\n"
             "    trainer.n_gpus_per_node=@gpus_per_node@\n"
             "    trainer.nnodes=@nodes@\n"
             "    trainer.logger=console\n"
             "    trainer.project_name=fathom\n"
             "    trainer.experiment_name=@experiment@\n"
             "    trainer.default_local_dir=@save-to@\n"
             "    trainer.save_freq=100\n"
             "    trainer.test_freq=-1\n"
             "    trainer.val_before_train=false\n"
             "    trainer.total_epochs=1\n"
             ")\n"
             "python3 -m verl.trainer.main_ppo \"${overrides[@]}\" \"$@\""},
};

// Hydra reads commas, braces and spaces in a value as its own syntax.
static bool is_hydra_plain(struct str text)
{
    for (ptrdiff_t i = 0; i < text.n; i++)
        for (const char *c = " ,:{}[]()'\"\\=$"; *c; c++)
            if (text.p[i] == *c || (unsigned char)text.p[i] < 0x20)
                return false;
    return true;
}

static bool prepare(struct draft *j, struct error *e)
{
    static const char *const texts[] = {"model", "dataset", "save-to"};
    // Training gives most of the card back while answers are generated.
    struct generator vllm = {.name = "vLLM",
                             .key = "gpu_memory_utilization",
                             .thousandths = 600,
                             .own = 4 * GIB,
                             .gpus = job_ranks(j->job),
                             .node = j->job->hardware.gpus_per_node};
    for (ptrdiff_t i = 0; i < COUNT_OF(texts); i++)
        if (!is_hydra_plain(draft_text(j, texts[i])))
            return FAIL(e, BAD_INPUT, str_format(j->arena, "--%s", texts[i]),
                        "%s holds a character that Hydra's overrides read as their own", texts[i]);
    if (!draft_samples(j, e) || !draft_engine(j, vllm, e))
        return false;
    draft_count(j, "token_limit",
                u64_divide_up(sat_mul(j->job->batch, j->job->context), j->job->ulysses));
    draft_fact(j, "experiment", str_format(j->arena, "%.*s-grpo", STR_ARGS(draft_text(j, "name"))));
    return true;
}

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena);
    lines_into(&launch, j, head_lines, COUNT_OF(head_lines));
    lines_into(&launch, j, environment_lines, environment_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    emit_yarn_script(files, j);
}

const struct writer writer_verl = {
    .prepare = prepare,
    .emit = emit,
};
