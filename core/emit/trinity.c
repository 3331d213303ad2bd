// Trinity-RFT 0.6 (verl 0.8 and later) and, with --verl 0.5, the layout of 0.4. Its loader rejects
// every key it does not know. `--gpu` counts the GPUs that train; the engines that generate and the
// teacher have their own beside them.
#include "core/base/num.h"
#include "core/emit/emit.h"

#define FSDP_CONFIG_ROWS(part)                                                              \
    {"trainer.trainer_config.actor_rollout_ref." part ".fsdp_config.param_offload",         \
     ROW_TRAIT,                                                                             \
     NULL,                                                                                  \
     IS_LEGACY | IS_OFFLOAD_OPTIMIZER,                                                      \
     0,                                                                                     \
     NULL,                                                                                  \
     IS_OFFLOAD_ALL},                                                                       \
        {"trainer.trainer_config.actor_rollout_ref." part ".fsdp_config.optimizer_offload", \
         ROW_LITERAL, "true", IS_LEGACY | IS_OFFLOAD_OPTIMIZER},                            \
    {                                                                                       \
        "trainer.trainer_config.actor_rollout_ref." part ".fsdp_config.offload_policy",     \
            ROW_LITERAL, "true", IS_LEGACY | IS_OFFLOAD_ALL | IS_FSDP2                      \
    }

static const struct row rows[] = {
    {"", ROW_NOTE,
     .note =
         "Trinity-RFT, @task@: @name@, @context@ tokens a sequence, trained on @gpus@ x @gpu@.\n"
         "@predicted@\n@needs@"},
    {"mode", ROW_TEXT, "both", IS_ROLLOUT},
    {"mode", ROW_TEXT, "train", 0, IS_ROLLOUT},
    {"project", ROW_TEXT, "fathom"},
    {"name", ROW_TEXT, "@name@-@task@"},
    {"checkpoint_root_dir", ROW_TEXT, "${oc.env:TRINITY_CHECKPOINT_ROOT_DIR,./@save-to@}", 0,
     IS_ABSOLUTE_SAVE},
    {"checkpoint_root_dir", ROW_TEXT, "${oc.env:TRINITY_CHECKPOINT_ROOT_DIR,@save-to@}",
     IS_ABSOLUTE_SAVE},
    {"continue_from_checkpoint", ROW_LITERAL, "false", IS_CAPACITY},

    {"algorithm.algorithm_type", ROW_TEXT, "grpo", IS_GRPO},
    {"algorithm.algorithm_type", ROW_TEXT, "on_policy_distill", IS_OPD},
    {"algorithm.algorithm_type", ROW_TEXT, "sft", IS_SFT},
    {"algorithm.algorithm_type", ROW_TEXT, "dpo", IS_DPO},
    {"algorithm.repeat_times", ROW_LITERAL, "@repeat_times@", IS_ROLLOUT, 0, "Answers a prompt."},
    {"algorithm.advantage_fn", ROW_TEXT, "grpo", IS_CAPACITY},
    {"algorithm.sample_strategy", ROW_TEXT, "default", IS_CAPACITY},
    {"algorithm.policy_loss_fn", ROW_TEXT, "ppo", IS_CAPACITY},
    {"algorithm.kl_penalty_fn", ROW_TEXT, "none", IS_CAPACITY},
    {"algorithm.kl_loss_fn", ROW_TEXT, "k2", IS_CAPACITY, 0,
     "A KL term, so a reference model is there too."},
    {"algorithm.entropy_loss_fn", ROW_TEXT, "default", IS_CAPACITY},
    {"algorithm.advantage_fn_args.kl_coef", ROW_LITERAL, "1.0", IS_OPD},
    {"algorithm.optimizer.lr", ROW_LITERAL, "1.0e-05", 0, IS_DPO},
    {"algorithm.optimizer.lr", ROW_LITERAL, "5.0e-07", IS_DPO},
    {"algorithm.optimizer.lr_warmup_steps_ratio", ROW_LITERAL, "0.0"},
    {"algorithm.optimizer.warmup_style", ROW_TEXT, "constant", IS_LEGACY},
    {"algorithm.optimizer.lr_scheduler_type", ROW_TEXT, "constant", 0, IS_LEGACY},

    {"model.model_path", ROW_TEXT, "@weights@", IS_LEGACY},
    {"model.model_path", ROW_TEXT, "@model@", 0, IS_LEGACY},
    {"model.max_model_len", ROW_LITERAL, "@context@", 0, 0, "Prompt and answer together."},
    {"model.max_prompt_tokens", ROW_LITERAL, "@prompt@"},
    {"model.max_response_tokens", ROW_LITERAL, "@response@"},
    {"model.rope_scaling", ROW_NOTE, NULL, IS_LEGACY | IS_YARN, 0,
     "The model has @max_position@ positions."},
    {"model.rope_scaling.rope_type", ROW_TEXT, "yarn", IS_LEGACY | IS_YARN},
    {"model.rope_scaling.factor", ROW_LITERAL, "@yarn_factor@", IS_LEGACY | IS_YARN},
    {"model.rope_scaling.original_max_position_embeddings", ROW_LITERAL, "@max_position@",
     IS_LEGACY | IS_YARN},

    {"cluster.node_num", ROW_LITERAL, "@cluster_nodes@"},
    {"cluster.gpu_per_node", ROW_LITERAL, "@cluster_gpus@", IS_ROLLOUT, 0,
     "@gpus@ train, @rollout@ generate, @teacher_gpus@ teach."},
    {"cluster.gpu_per_node", ROW_LITERAL, "@cluster_gpus@", 0, IS_ROLLOUT},

    {"buffer.batch_size", ROW_LITERAL, "@prompts@", IS_ROLLOUT, 0,
     "Prompts a step; times repeat_times they are the @sequences@ answers of a training step."},
    {"buffer.train_batch_size", ROW_LITERAL, "@sequences@", IS_PAIRS, 0,
     "Pairs; each is two rows, @rows@ in a step."},
    {"buffer.train_batch_size", ROW_LITERAL, "@sequences@", 0, IS_PAIRS},
    {"buffer.total_epochs", ROW_LITERAL, "1", 0, IS_CAPACITY},
    {"buffer.total_steps", ROW_LITERAL, "2", IS_CAPACITY},
    {"buffer.explorer_input.taskset.name", ROW_TEXT, "taskset", IS_ROLLOUT},
    {"buffer.explorer_input.taskset.storage_type", ROW_TEXT, "file", IS_ROLLOUT},
    {"buffer.explorer_input.taskset.path", ROW_TEXT, "openai/gsm8k", IS_ROLLOUT | IS_NO_DATASET,
     IS_VISION, "An example: put your own here."},
    {"buffer.explorer_input.taskset.subset_name", ROW_TEXT, "main", IS_ROLLOUT | IS_NO_DATASET,
     IS_VISION},
    {"buffer.explorer_input.taskset.path", ROW_TEXT, "hiyouga/geometry3k",
     IS_ROLLOUT | IS_NO_DATASET | IS_VISION, 0, "An example with images: put your own here."},
    {"buffer.explorer_input.taskset.subset_name", ROW_TEXT, "default",
     IS_ROLLOUT | IS_NO_DATASET | IS_VISION},
    {"buffer.explorer_input.taskset.path", ROW_TEXT, "@dataset@", IS_ROLLOUT, IS_NO_DATASET},
    {"buffer.explorer_input.taskset.split", ROW_TEXT, "train", IS_ROLLOUT},
    {"buffer.explorer_input.taskset.format.prompt_key", ROW_TEXT, "question", IS_ROLLOUT,
     IS_VISION},
    {"buffer.explorer_input.taskset.format.prompt_key", ROW_TEXT, "problem",
     IS_ROLLOUT | IS_VISION},
    {"buffer.explorer_input.taskset.format.response_key", ROW_TEXT, "answer", IS_ROLLOUT},
    {"buffer.explorer_input.taskset.format.image_key", ROW_TEXT, "images", IS_ROLLOUT | IS_VISION},
    {"buffer.explorer_input.taskset.rollout_args.temperature", ROW_LITERAL, "1.0", IS_ROLLOUT},
    {"buffer.explorer_input.taskset.workflow_args.prompt_len", ROW_LITERAL, "@prompt@",
     IS_CAPACITY},
    {"buffer.explorer_input.taskset.workflow_args.max_model_len", ROW_LITERAL, "@context@",
     IS_CAPACITY},
    {"buffer.explorer_input.default_workflow_type", ROW_TEXT, "synthetic_workflow", IS_CAPACITY, 0,
     "Answers of full length that nobody generates: synthetic_workflow.py."},
    {"buffer.explorer_input.default_workflow_type", ROW_TEXT, "math_workflow", IS_GRPO,
     IS_CAPACITY | IS_VISION},
    {"buffer.explorer_input.default_workflow_type", ROW_TEXT, "simple_mm_workflow",
     IS_GRPO | IS_VISION},
    {"buffer.explorer_input.default_reward_fn_type", ROW_TEXT, "math_boxed_reward",
     IS_GRPO | IS_VISION},
    {"buffer.explorer_input.default_workflow_type", ROW_TEXT, "on_policy_distill_math_workflow",
     IS_OPD},
    {"buffer.trainer_input.experience_buffer.name", ROW_TEXT, "experience_buffer"},
    {"buffer.trainer_input.experience_buffer.storage_type", ROW_TEXT, "queue", IS_ROLLOUT},
    {"buffer.trainer_input.experience_buffer.storage_type", ROW_TEXT, "file", 0, IS_ROLLOUT},
    {"buffer.trainer_input.experience_buffer.path", ROW_TEXT, "@dataset@", 0, IS_ROLLOUT},
    {"buffer.trainer_input.experience_buffer.format.prompt_type", ROW_TEXT, "messages", IS_SFT,
     IS_VISION},
    {"buffer.trainer_input.experience_buffer.format.messages_key", ROW_TEXT, "messages", IS_SFT,
     IS_VISION},
    {"buffer.trainer_input.experience_buffer.format.prompt_type", ROW_TEXT, "plaintext",
     IS_SFT | IS_VISION},
    {"buffer.trainer_input.experience_buffer.format.prompt_key", ROW_TEXT, "problem",
     IS_SFT | IS_VISION},
    {"buffer.trainer_input.experience_buffer.format.response_key", ROW_TEXT, "response",
     IS_SFT | IS_VISION},
    {"buffer.trainer_input.experience_buffer.format.image_key", ROW_TEXT, "images",
     IS_SFT | IS_VISION},
    {"buffer.trainer_input.experience_buffer.format.prompt_type", ROW_TEXT, "plaintext", IS_DPO},
    {"buffer.trainer_input.experience_buffer.format.prompt_key", ROW_TEXT, "prompt", IS_DPO},
    {"buffer.trainer_input.experience_buffer.format.chosen_key", ROW_TEXT, "chosen", IS_DPO},
    {"buffer.trainer_input.experience_buffer.format.rejected_key", ROW_TEXT, "rejected", IS_DPO},

    {"explorer.eval_interval", ROW_LITERAL, "1000", IS_ROLLOUT},
    {"explorer.runner_per_model", ROW_LITERAL, "8", IS_ROLLOUT},
    {"explorer.rollout_model.engine_num", ROW_LITERAL, "@rollout_engines@", IS_ROLLOUT},
    {"explorer.rollout_model.tensor_parallel_size", ROW_LITERAL, "@rollout_tp@", IS_ROLLOUT, 0,
     "@rollout_why@ @rollout_room@"},
    {"explorer.rollout_model.gpu_memory_utilization", ROW_LITERAL, "@rollout_memory@", IS_ROLLOUT},
    {"explorer.rollout_model.enforce_eager", ROW_LITERAL, "true", IS_ROLLOUT},
    {"explorer.rollout_model.enable_prefix_caching", ROW_LITERAL, "false", IS_ROLLOUT},
    {"explorer.rollout_model.dtype", ROW_TEXT, "bfloat16", IS_ROLLOUT},
    {"explorer.rollout_model.seed", ROW_LITERAL, "42", IS_ROLLOUT},
    {"explorer.auxiliary_models.0.model_path", ROW_TEXT, "@teacher@", IS_OPD, 0, "The teacher."},
    {"explorer.auxiliary_models.0.engine_num", ROW_LITERAL, "1", IS_OPD},
    {"explorer.auxiliary_models.0.tensor_parallel_size", ROW_LITERAL, "@teacher_gpus@", IS_OPD},
    {"explorer.auxiliary_models.0.dtype", ROW_TEXT, "bfloat16", IS_OPD},
    {"explorer.auxiliary_models.0.max_model_len", ROW_LITERAL, "@context@", IS_OPD},
    {"explorer.auxiliary_models.0.max_prompt_tokens", ROW_LITERAL, "@prompt@", IS_OPD},
    {"explorer.auxiliary_models.0.max_response_tokens", ROW_LITERAL, "@response@", IS_OPD},

    {"trainer.trainer_type", ROW_TEXT, "verl"},
    {"trainer.trainer_strategy", ROW_TEXT, "fsdp2", IS_FSDP2},
    {"trainer.trainer_strategy", ROW_TEXT, "fsdp", 0, IS_FSDP2},
    {"trainer.save_interval", ROW_LITERAL, "100"},
    {"trainer.save_hf_checkpoint", ROW_TEXT, "@save-hf@"},
    {"trainer.grad_clip", ROW_LITERAL, "1.0"},
    {"trainer.use_dynamic_bsz", ROW_LITERAL, "true", 0, IS_PAIRS},
    {"trainer.use_dynamic_bsz", ROW_LITERAL, "false", IS_PAIRS, 0,
     "The loss takes every second row as rejected: rows must stay in order."},
    {"trainer.max_token_len_per_gpu", ROW_LITERAL, "@token_limit@", 0, 0,
     "@micro_rows@ sequences of full length in a micro-batch, divided by sp."},
    {"trainer.ulysses_sequence_parallel_size", ROW_LITERAL, "@sp@"},
    {"trainer.param_offload", ROW_TRAIT, NULL, IS_OFFLOAD_OPTIMIZER, IS_LEGACY, NULL,
     IS_OFFLOAD_ALL},
    {"trainer.optimizer_offload", ROW_LITERAL, "true", IS_OFFLOAD_OPTIMIZER, IS_LEGACY},
    {"trainer.offload_policy", ROW_LITERAL, "true", IS_OFFLOAD_ALL | IS_FSDP2, IS_LEGACY,
     "Parameters, gradients and optimizer live in host memory."},
    {"trainer.trainer_config.actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", ROW_LITERAL,
     "@micro_rows@", IS_PAIRS, 0, "Rows of @batch@ pairs."},
    {"trainer.trainer_config.actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu", ROW_LITERAL,
     "@micro_rows@", IS_PAIRS},
    FSDP_CONFIG_ROWS("actor"),
    FSDP_CONFIG_ROWS("ref"),
    {"trainer.trainer_config.actor_rollout_ref.model.enable_gradient_checkpointing", ROW_LITERAL,
     "false", 0, IS_CHECKPOINTING},
    {"trainer.trainer_config.actor_rollout_ref.model.use_fused_kernels", ROW_LITERAL, "true",
     IS_FUSED_KERNELS, 0, "Log-probabilities without logits of all tokens."},
    {"trainer.trainer_config.actor_rollout_ref.actor.entropy_from_logits_with_chunking",
     ROW_LITERAL, "true", IS_ENTROPY_SAVING},
    {"trainer.trainer_config.actor_rollout_ref.actor.entropy_checkpointing", ROW_LITERAL, "true",
     IS_ENTROPY_SAVING},
    {"trainer.trainer_config.actor_rollout_ref.actor.fsdp_config.reshard_after_forward",
     ROW_LITERAL, "false", IS_FSDP2, IS_RESHARD},

    {"synchronizer.sync_method", ROW_TEXT, "nccl", IS_ROLLOUT},
    {"synchronizer.sync_method", ROW_TEXT, "checkpoint", 0, IS_ROLLOUT},
    {"synchronizer.sync_interval", ROW_LITERAL, "1", IS_ROLLOUT},
    {"synchronizer.sync_interval", ROW_LITERAL, "100", 0, IS_ROLLOUT},
    {"synchronizer.sync_timeout", ROW_LITERAL, "1200"},
    {"monitor.monitor_type", ROW_TEXT, "tensorboard"},
};

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# Trinity-RFT, @task@: @name@, @context@ tokens a sequence.\n"
             "# @predicted@"},
};

static const struct line run_lines[] = {
    {IS_NODES, 0, RAY_CLUSTER_LINE},
    {IS_EXPANDABLE, 0, RAY_EXPORT_LINE},
    {0, IS_NODES,
     "# Ray is started here unless a cluster is there already.\n"
     "ray status >/dev/null 2>&1 ||"},
    {0, IS_NODES, "    ray start --head --num-gpus @cluster_gpus@ --disable-usage-stats"},
    {IS_CAPACITY, 0, "trinity run --config trinity.yaml --plugin-dir . \"$@\""},
    {0, IS_CAPACITY, "trinity run --config trinity.yaml \"$@\""},
};

static const struct line workflow_lines[] = {
    {.text = "# Answers of full length without generating them: what is tested is the trainer.\n"
             "import torch"},
    {.text = "\n"
             "from trinity.common.experience import EID, Experience\n"
             "from trinity.common.workflows import WORKFLOWS\n"
             "from trinity.common.workflows.workflow import SimpleWorkflow, Task\n"
             "\n\n"
             "@WORKFLOWS.register_module(\"synthetic_workflow\")\n"
             "class SyntheticWorkflow(SimpleWorkflow):\n"
             "    def reset(self, task: Task):\n"
             "        self.task = task\n"
             "        self.prompt_tokens = task.workflow_args[\"prompt_len\"]\n"
             "        self.tokens = task.workflow_args[\"max_model_len\"]\n"
             "\n"
             "    def answer(self):\n"
             "        return Experience(\n"
             "            eid=EID(),\n"
             "            tokens=torch.full((self.tokens,), 1024, dtype=torch.int32),\n"
             "            prompt_length=self.prompt_tokens,\n"
             "            logprobs=torch.ones(self.tokens - self.prompt_tokens),\n"
             "            reward=torch.tensor(0.0),\n"
             "        )\n"
             "\n"
             "    def run(self):\n"
             "        return [self.answer() for _ in range(self.repeat_times)]"},
};

static const struct refusal refusals[] = {
    {IS_SFT | IS_NO_DATASET, 0, "dataset", "sft needs --dataset"},
    {IS_DPO | IS_NO_DATASET, 0, "dataset", "dpo needs --dataset"},
};

// The engines and the teacher share a node with the trainer where they fit, else have whole ones.
static bool place_engines(struct draft *j, struct error *e)
{
    uint64_t per_node = j->job->hardware.gpus_per_node, usual = j->job->hardware.card.per_node;
    uint64_t beside = j->rollout_gpus + j->teacher_gpus;
    bool shared = j->job->hardware.nodes == 1 && per_node + beside <= (usual ? usual : 8);
    if (!shared && beside % per_node)
        return FAIL(e, BAD_INPUT, STR("--rollout"),
                    "%llu GPUs that generate or teach must fill whole nodes of %llu beside those "
                    "that train",
                    (unsigned long long)beside, (unsigned long long)per_node);
    draft_count(j, "cluster_nodes", shared ? 1 : j->job->hardware.nodes + beside / per_node);
    draft_count(j, "cluster_gpus", shared ? per_node + beside : per_node);
    if (!shared && beside)
        j->traits |= IS_NODES;
    return true;
}

// vLLM's sampler and workspaces took 1.9 to 2.3 GiB in logs of versions 0.17 to 0.19, and what is
// outside torch up to 2.1 GiB where several GPUs work together.
static bool choose_engines(struct draft *j, struct error *e)
{
    uint64_t per_node = j->job->hardware.gpus_per_node, whole = j->job->hardware.card.per_node;
    uint64_t usual = job_ranks(j->job) < 8 ? 1 : per_node;
    bool one = j->job->hardware.nodes == 1 && whole > per_node;
    struct generator vllm = {.name = "vLLM",
                             .key = "gpu_memory_utilization",
                             .thousandths = 900,
                             .own = 4 * GIB,
                             .gpus = j->rollout_gpus,
                             .node = per_node,
                             .spare = one ? whole - per_node : 0};
    if (!draft_engine(j, vllm, e))
        return false;
    if (j->rollout_gpus)
        return true;
    if (usual == per_node && j->teacher_gpus < per_node) // the teacher is beside them
        usual = (per_node - j->teacher_gpus) / j->rollout_tp * j->rollout_tp;
    j->rollout_gpus = !usual || usual % j->rollout_tp ? j->rollout_tp : usual;
    return true;
}

static bool prepare(struct draft *j, struct error *e)
{
    bool alone = !draft_is(j, IS_ROLLOUT, 0);
    uint64_t together = draft_is(j, IS_PAIRS, 0) ? 2 * j->job->batch : j->job->batch;
    if (!draft_teacher(j, e) || (!alone && (!draft_samples(j, e) || !choose_engines(j, e))))
        return false;
    draft_count(j, "rollout", j->rollout_gpus);
    draft_count(j, "rollout_engines", alone ? 0 : j->rollout_gpus / j->rollout_tp);
    draft_count(j, "token_limit",
                u64_divide_up(sat_mul(together, j->job->context), j->job->ulysses));
    j->traits |= str_starts(draft_text(j, "save-to"), STR("/")) ? IS_ABSOLUTE_SAVE : 0;
    if (draft_is(j, IS_LEGACY, 0))
        j->traits |= IS_OWN_YARN;
    return place_engines(j, e);
}

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena);
    emit_yaml(files, j, "trinity.yaml", rows, COUNT_OF(rows));
    lines_into(&launch, j, head_lines, COUNT_OF(head_lines));
    lines_into(&launch, j, environment_lines, environment_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    if (draft_is(j, IS_CAPACITY, 0))
        emit_script(files, j, "synthetic_workflow.py", workflow_lines, COUNT_OF(workflow_lines));
    emit_yarn_script(files, j);
}

const struct writer writer_trinity = {
    .prepare = prepare,
    .refusals = refusals,
    .refusal_count = COUNT_OF(refusals),
    .emit = emit,
};
