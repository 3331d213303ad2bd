// TRL 1.16: trl/experimental/server_distillation, whose teacher is a server of `trl vllm-serve`;
// the student's answers come from a colocated engine that sleeps, or from a server of their own.
#include "core/emit/division.h"

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# TRL 1.16, on-policy distillation from a server: @teacher@ teaches @weights@, "
             "@layout@.\n"
             "# @train_says@"},
};

static const struct line run_lines[] = {
    {.text = "export CUDA_VISIBLE_DEVICES=$student_devices"},
    {IS_APART, 0, "# The first of the student's GPUs generate, the others train."},
    {IS_APART, 0,
     "read -ra devices <<<\"${student_devices//,/ }\"\n"
     "rollout=$(IFS=,; echo \"${devices[*]:0:@rollout_gpus@}\")\n"
     "training=$(IFS=,; echo \"${devices[*]:@rollout_gpus@}\")\n"
     "CUDA_VISIBLE_DEVICES=$rollout trl vllm-serve --model @weights@ --port 8001 \\\n"
     "    --tensor_parallel_size @rollout_tp@ --data_parallel_size @rollout_engines@ \\\n"
     "    --max_model_len @context@ --gpu_memory_utilization @rollout_memory@ \\\n"
     "    >\"$here/rollout.log\" 2>&1 &\n"
     "teachers+=($!)\n"
     "trap 'kill \"${teachers[@]}\" 2>/dev/null || true' EXIT\n"
     "until curl -sf http://127.0.0.1:8001/health/ >/dev/null; do\n"
     "    kill -0 \"${teachers[-1]}\" || { tail -n 20 \"$here/rollout.log\" >&2; exit 1; }\n"
     "    sleep 5\n"
     "done\n"
     "export CUDA_VISIBLE_DEVICES=$training"},
    {.text = "cd \"$here\"\n"
             "TEACHER_URL=$TEACHER_URL accelerate launch --config_file accelerate.yaml train.py "
             "\"$@\""},
};

static const struct row accelerate_rows[] = {
    {"compute_environment", ROW_TEXT, "LOCAL_MACHINE"},
    {"distributed_type", ROW_TEXT, "FSDP"},
    {"mixed_precision", ROW_TEXT, "bf16"},
    {"num_machines", ROW_LITERAL, "1"},
    {"num_processes", ROW_LITERAL, "@train_gpus@"},
    {"machine_rank", ROW_LITERAL, "0"},
    {"fsdp_config.fsdp_version", ROW_LITERAL, "2"},
    {"fsdp_config.fsdp_auto_wrap_policy", ROW_TEXT, "TRANSFORMER_BASED_WRAP"},
    {"fsdp_config.fsdp_reshard_after_forward", ROW_LITERAL, "true"},
    {"fsdp_config.fsdp_offload_params", ROW_LITERAL, "false"},
    {"fsdp_config.fsdp_state_dict_type", ROW_TEXT, "SHARDED_STATE_DICT"},
    {"fsdp_config.fsdp_cpu_ram_efficient_loading", ROW_LITERAL, "true"},
};

static const struct line train_lines[] = {
    {.text = "# On-policy distillation of a student whose teacher is another process.\n"
             "import os\n\n"
             "from datasets import load_dataset\n"
             "from trl.experimental.server_distillation import ServerDistillationConfig, "
             "ServerDistillationTrainer\n"},
    {.text = "DATA = os.environ.get(\"DATA\", \"@dataset_python@\")\n"
             "FILES = {\".jsonl\": \"json\", \".json\": \"json\", \".parquet\": \"parquet\"}\n"
             "kind = FILES.get(os.path.splitext(DATA)[1])\n"
             "dataset = load_dataset(kind, data_files=DATA, split=\"train\") if kind else "
             "load_dataset(DATA, split=\"train\")\n"
             "arguments = ServerDistillationConfig(\n"
             "    output_dir=\"checkpoints\",\n"
             "    teacher_model_server_url=os.environ[\"TEACHER_URL\"],\n"
             "    bf16=True,\n"
             "    gradient_checkpointing=True,\n"
             "    # One sequence at a time; a smaller global batch would take nothing off a card.\n"
             "    per_device_train_batch_size=1,\n"
             "    gradient_accumulation_steps=@micro@,\n"
             "    max_completion_length=@response@,\n"
             "    learning_rate=1e-6,\n"
             "    use_vllm=True,"},
    {0, IS_APART,
     "    vllm_mode=\"colocate\",\n"
     "    vllm_enable_sleep_mode=True,\n"
     "    vllm_gpu_memory_utilization=@rollout_memory@,\n"
     "    vllm_tensor_parallel_size=@rollout_tp@,\n"
     "    vllm_max_model_length=@context@,"},
    {IS_APART, 0,
     "    vllm_mode=\"server\",\n"
     "    vllm_server_port=8001,"},
    {.text = ")\n"
             "ServerDistillationTrainer(model=\"@weights_python@\", args=arguments, "
             "train_dataset=dataset).train()"},
};

static const struct refusal refusals[] = {
    {IS_NODES, 0, "emit", "files for TRL are written for one node"},
    {IS_VISION, 0, "student",
     "TRL's distillation from a server reads no images (1.16); verl's does: --framework verl"},
};

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf out = buf_in(j->arena);
    lines_into(&out, j, head_lines, COUNT_OF(head_lines));
    lines_into(&out, j, division_head_lines, division_head_count);
    lines_into(&out, j, division_teacher_lines, division_teacher_count);
    lines_into(&out, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&out));
    emit_yaml(files, j, "accelerate.yaml", accelerate_rows, COUNT_OF(accelerate_rows));
    struct buf train = buf_in(j->arena);
    for (ptrdiff_t i = 0; i < COUNT_OF(train_lines); i++)
        if (draft_is(j, train_lines[i].when, train_lines[i].unless))
            buf_printf(&train, "%.*s\n",
                       STR_ARGS(draft_expand(j, str_from(train_lines[i].text), EXPAND_PLAIN)));
    emit_add(files, "train.py", buf_str(&train));
}

const struct division_writer division_trl = {
    .framework = "trl",
    .refusals = refusals,
    .refusal_count = COUNT_OF(refusals),
    .emit = emit,
};
