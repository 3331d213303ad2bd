// slime at 624b824 (2026-08): Megatron trains, sglang generates, Ray places both. GRPO and
// on-policy distillation. Ray is told which GPUs are its own before it starts; the teacher has the
// others, so no order of device numbers is relied on.
#include <inttypes.h>

#include "core/base/num.h"
#include "core/emit/emit.h"

// Megatron's arguments for a model, as slime ships them (scripts/models). Each must match the
// config.json, which slime checks.
static const struct {
    const char *name, *script;
} model_rows[] = {
    {"Qwen3-0.6B", "qwen3-0.6B"},
    {"Qwen3-1.7B", "qwen3-1.7B"},
    {"Qwen3-4B", "qwen3-4B"},
    {"Qwen3-8B", "qwen3-8B"},
    {"Qwen3-14B", "qwen3-14B"},
    {"Qwen3-32B", "qwen3-32B"},
    {"Qwen3-30B-A3B", "qwen3-30B-A3B"},
    {"Qwen3-235B-A22B", "qwen3-235B-A22B"},
    {"Qwen3-0.6B-Base", "qwen3-0.6B"},
    {"Qwen3-1.7B-Base", "qwen3-1.7B"},
    {"Qwen3-4B-Base", "qwen3-4B"},
    {"Qwen3-8B-Base", "qwen3-8B"},
    {"Qwen3-14B-Base", "qwen3-14B"},
    {"Qwen3-30B-A3B-Base", "qwen3-30B-A3B"},
    {"Qwen3-4B-Instruct-2507", "qwen3-4B-Instruct-2507"},
    {"Qwen2.5-0.5B", "qwen2.5-0.5B"},
    {"Qwen2.5-1.5B", "qwen2.5-1.5B"},
    {"Qwen2.5-1.5B-Instruct", "qwen2.5-1.5B"},
    {"Qwen2.5-3B", "qwen2.5-3B"},
    {"Qwen2.5-7B", "qwen2.5-7B"},
    {"Qwen2.5-7B-Instruct", "qwen2.5-7B"},
    {"Qwen2.5-32B", "qwen2.5-32B"},
    {"Qwen2.5-32B-Instruct", "qwen2.5-32B"},
};

static const struct line teacher_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# The teacher: it only reads sequences and scores their tokens.\n"
             "set -euo pipefail"},
    {.text = "export CUDA_VISIBLE_DEVICES=\"${TEACHER_DEVICES:-@teacher_devices@}\"\n"
             "exec python3 -m sglang.launch_server \\\n"
             "    --model-path @teacher@ \\\n"
             "    --host 0.0.0.0 \\\n"
             "    --port \"${TEACHER_PORT:-13141}\" \\\n"
             "    --tp @teacher_gpus@ \\\n"
             "    --chunked-prefill-size 4096 \\\n"
             "    --mem-fraction-static 0.85"},
};

static const struct line head_lines[] = {
    {.text =
         "#!/usr/bin/env bash\n"
         "# slime, @task@: @name@, @context@ tokens a sequence; @step@.\n"
         "# @predicted@\n"
         "# Needs slime at 624b824 (2026-08) or later, with the sglang and Megatron of its image.\n"
         "# SLIME and MEGATRON name the two checkouts.\n"
         "# Predicted with --model @weights@"},
    {.text = "set -euo pipefail\n"
             "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
             "SLIME=${SLIME:-$HOME/slime}\n"
             "MEGATRON=${MEGATRON:-$HOME/Megatron-LM}\n"
             "save=@save-to@\n"
             "[[ $save = /* ]] || save=$here/$save\n"
             "data=@dataset@\n"
             "[[ $data = /* ]] || data=$here/$data\n"
             "model=@model@\n"
             "[[ ! -d $here/$model ]] || model=$here/$model\n"
             "download='import sys, huggingface_hub as hub; "
             "print(hub.snapshot_download(sys.argv[1]))'\n"
             "[ -d \"$model\" ] || model=$(python3 -c \"$download\" \"$model\")\n"
             "load=$model\n"
             "[ ! -f \"$save/latest_checkpointed_iteration.txt\" ] || load=$save"},
    {.text = "# Ray makes one line of shell text of a job's words and quotes only spaces (2.49).\n"
             "special='[][:cntrl:]\"'\\''`$\\;&|<>(){}[*?!#~^]'\n"
             "for path in \"$save\" \"$data\" \"$model\"; do\n"
             "    if [[ $path =~ $special ]]; then\n"
             "        echo \"Ray would run this path as text of a shell's: $path\" >&2\n"
             "        exit 2\n"
             "    fi\n"
             "done"},
};

static const struct line teacher_start_lines[] = {
    {IS_OPD, IS_TEACHER_APART,
     "# The teacher has its own GPUs; it is ended with this script, and nothing else is.\n"
     "bash \"$here/teacher.sh\" >\"$here/teacher.log\" 2>&1 &\n"
     "teacher=$!\n"
     "trap 'kill \"$teacher\" 2>/dev/null || true' EXIT\n"
     "TEACHER_URL=http://127.0.0.1:${TEACHER_PORT:-13141}"},
    {IS_OPD | IS_TEACHER_APART, 0,
     "# The teacher does not fit beside the trainer: run teacher.sh on another node.\n"
     ": \"${TEACHER_URL:?set it to http://HOST:13141 of the node that runs teacher.sh}\""},
    {IS_OPD, IS_TEACHER_APART,
     "until curl -sf \"$TEACHER_URL/health_generate\" >/dev/null; do\n"
     "    kill -0 \"$teacher\" || { tail -n 20 \"$here/teacher.log\"; exit 1; }\n"
     "    sleep 5\n"
     "done"},
    {IS_OPD | IS_TEACHER_APART, 0,
     "until curl -sf \"$TEACHER_URL/health_generate\" >/dev/null; do sleep 5; done"},
};

static const struct line argument_lines[] = {
    {.text = "source \"$SLIME/scripts/models/@model_script@.sh\""},
    {.text = "arguments=(\n"
             "    --actor-num-nodes @nodes@\n"
             "    --actor-num-gpus-per-node @gpus_per_node@\n"
             "    --num-gpus-per-node @node_gpus@"},
    {0, IS_APART,
     "    # One set of GPUs trains and generates in turn.\n"
     "    --colocate"},
    {IS_APART, 0, "    --rollout-num-gpus @rollout@"},
    {.text = "    # @rollout_why@"},
    {.text = "    # @rollout_room@"},
    {.text = "    --sglang-mem-fraction-static @rollout_memory@\n"
             "    --rollout-num-gpus-per-engine @rollout_tp@\n"
             "    \"${MODEL_ARGS[@]}\"\n"
             "    --hf-checkpoint \"$model\"\n"
             "    --load \"$load\"\n"
             "    --save \"$save\"\n"
             "    --save-interval 20\n"
             "    --prompt-data \"$data\"\n"
             "    --input-key prompt\n"
             "    --apply-chat-template\n"
             "    --rollout-shuffle\n"
             "    --num-rollout 300\n"
             "    # @prompts@ prompts x @repeat_times@ answers = @sequences@: one update.\n"
             "    --rollout-batch-size @prompts@\n"
             "    --n-samples-per-prompt @repeat_times@\n"
             "    --global-batch-size @sequences@\n"
             "    --balance-data\n"
             "    --rollout-max-context-len @context@\n"
             "    --rollout-max-prompt-len @prompt@\n"
             "    --rollout-max-response-len @response@\n"
             "    --rollout-temperature 1\n"
             "    --advantage-estimator grpo"},
    {IS_GRPO, 0,
     "    --label-key label\n    --rm-type deepscaler\n"
     "    --eps-clip 0.2\n    --eps-clip-high 0.28"},
    {IS_OPD, 0,
     "    --use-opd\n"
     "    --opd-type sglang\n"
     "    --opd-kl-coef 1.0\n"
     "    --custom-rm-path slime.rollout.on_policy_distillation.reward_func\n"
     "    --custom-reward-post-process-path "
     "slime.rollout.on_policy_distillation.post_process_rewards\n"
     "    --rm-url \"$TEACHER_URL/generate\""},
    {.text = "    --entropy-coef 0.00\n"
             "    # No --use-kl-loss, not even with coefficient 0: it loads a reference model."},
    {.text = "    # @sizes_why@"},
    {.text = "    # @sizes_sum@"},
    {.text = "    --tensor-model-parallel-size @tp@"},
    {IS_TP, 0, "    --sequence-parallel"},
    {.text = "    --pipeline-model-parallel-size @pp@"},
    {IS_LAST_STAGE, 0, "    --decoder-last-pipeline-num-layers @last_layers@"},
    {IS_IN_TURN, 0, "    --num-virtual-stages-per-pipeline-rank @interleaved@"},
    {.text = "    --context-parallel-size @cp@"},
    {IS_CP | IS_DEALT, 0, "    --cp-comm-type a2a"},
    {.text = "    --expert-model-parallel-size @ep@\n"
             "    --expert-tensor-parallel-size @etp@"},
    {IS_CHECKPOINTING, 0, "    --recompute-granularity full"},
    {IS_CHECKPOINTING, IS_PARTLY,
     "    --recompute-method uniform\n"
     "    --recompute-num-layers 1"},
    {IS_PARTLY, 0,
     "    --recompute-method block\n"
     "    --recompute-num-layers @recomputed_layers@"},
    {IS_SELECTIVE, 0, "    --recompute-granularity selective"},
    {.text = "    # @batch@ sequences of full length in a micro-batch, divided by cp.\n"
             "    --use-dynamic-batch-size\n"
             "    --max-tokens-per-gpu @token_limit@\n"
             "    --optimizer adam\n"
             "    --lr 1e-6\n"
             "    --lr-decay-style constant\n"
             "    --weight-decay 0.1\n"
             "    --adam-beta1 0.9\n"
             "    --adam-beta2 0.98"},
    {IS_OFFLOAD_OPTIMIZER, 0,
     "    --optimizer-cpu-offload\n"
     "    --overlap-cpu-optimizer-d2h-h2d\n"
     "    --use-precision-aware-optimizer"},
    {IS_AWARE, IS_OFFLOAD_OPTIMIZER, "    --use-precision-aware-optimizer"},
    {.text = "    --attention-dropout 0.0\n"
             "    --hidden-dropout 0.0\n"
             "    --accumulate-allreduce-grads-in-fp32\n"
             "    --attention-softmax-in-fp32\n"
             "    --attention-backend flash\n"
             ")"},
};

static const struct line run_lines[] = {
    {IS_NODES, 0, RAY_CLUSTER_LINE},
    {IS_EXPANDABLE, 0, RAY_EXPORT_LINE},
    {0, IS_NODES, "# Ray gets these GPUs and no others."},
    {0, IS_NODES,
     "export CUDA_VISIBLE_DEVICES=\"${RAY_DEVICES:-@ray_devices@}\"\n"
     "ray status >/dev/null 2>&1 ||\n"
     "    ray start --head --node-ip-address 127.0.0.1 --num-gpus @node_gpus@ "
     "--disable-usage-stats \\\n"
     "        --dashboard-host 127.0.0.1 --dashboard-port 8265"},
    {.text = "environment='{\"env_vars\": {\"PYTHONPATH\": \"'$MEGATRON'\", "
             "\"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\"'"},
    {IS_EXPANDABLE, 0,
     "environment+=', \"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\"'"},
    {IS_EXPANDABLE | IS_TORCH_NEW, 0,
     "environment+=', \"PYTORCH_ALLOC_CONF\": \"expandable_segments:True\"'"},
    {.text = "cd \"$SLIME\"\n"
             "ray job submit --address=\"${RAY_DASHBOARD:-http://127.0.0.1:8265}\" "
             "--runtime-env-json=\"$environment}}\" \\\n"
             "    -- python3 train.py \"${arguments[@]}\" \"$@\""},
};

static const struct refusal refusals[] = {
    {IS_NO_DATASET, 0, "dataset", "slime reads prompts from a JSON-lines file: --dataset FILE"},
};

static struct str devices(struct arena *a, uint64_t first, uint64_t count)
{
    struct buf out = buf_in(a);
    for (uint64_t i = 0; i < count; i++)
        buf_printf(&out, "%s%" PRIu64, i ? "," : "", first + i);
    return buf_str(&out);
}

const char *slime_model_script(struct str name)
{
    const struct catalog_model *row = catalog_model_find(name);
    for (ptrdiff_t i = 0; row && i < COUNT_OF(model_rows); i++)
        if (str_is(str_from(row->name), model_rows[i].name))
            return model_rows[i].script;
    return NULL;
}

static bool find_script(struct draft *j, struct error *e)
{
    const char *script = slime_model_script(draft_text(j, "weights"));
    if (script) {
        draft_fact(j, "model_script", str_from(script));
        return true;
    }
    return FAIL(e, BAD_INPUT, STR("--model"),
                "slime ships no Megatron arguments for this model; Qwen3-8B is one it has");
}

static void place_teacher(struct draft *j)
{
    uint64_t usual = j->job->hardware.card.per_node ? j->job->hardware.card.per_node : 8;
    uint64_t ray =
        j->job->hardware.gpus_per_node + (j->job->hardware.nodes == 1 ? j->rollout_gpus : 0);
    bool apart = j->job->hardware.nodes > 1 || ray + j->teacher_gpus > usual;
    j->traits |= apart ? IS_TEACHER_APART : 0;
    draft_count(j, "node_gpus", ray);
    draft_fact(j, "ray_devices", devices(j->arena, 0, ray));
    draft_fact(j, "teacher_devices", devices(j->arena, apart ? 0 : ray, j->teacher_gpus));
}

// sglang's fraction is for weights, keys and values alone; the rest of what it needs is outside.
static bool choose_engine(struct draft *j, struct error *e)
{
    bool apart = draft_is(j, IS_APART, 0);
    struct generator sglang = {.name = "sglang",
                               .key = "mem_fraction_static",
                               .thousandths = apart ? 850 : 700,
                               .gpus = apart ? j->rollout_gpus : job_ranks(j->job),
                               .node = j->job->hardware.gpus_per_node,
                               .spare = apart && j->job->hardware.nodes == 1 ? j->rollout_gpus : 0};
    return draft_engine(j, sglang, e);
}

static bool prepare(struct draft *j, struct error *e)
{
    draft_megatron(j);
    if (!draft_samples(j, e) || !choose_engine(j, e))
        return false;
    draft_count(j, "rollout", j->rollout_gpus);
    draft_count(j, "pp", j->job->pipeline);
    draft_count(j, "etp", j->job->expert_tensor);
    draft_count(j, "last_layers", j->job->last_layers);
    draft_count(j, "recomputed_layers", j->job->recomputed_layers);
    draft_count(j, "interleaved", j->job->interleaved);
    draft_count(j, "token_limit", u64_divide_up(sat_mul(j->job->batch, j->job->context), j->cp));
    if (!find_script(j, e) || !draft_teacher(j, e))
        return false;
    place_teacher(j);
    return true;
}

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf launch = buf_in(j->arena);
    lines_into(&launch, j, head_lines, COUNT_OF(head_lines));
    lines_into(&launch, j, teacher_start_lines, COUNT_OF(teacher_start_lines));
    lines_into(&launch, j, argument_lines, COUNT_OF(argument_lines));
    lines_into(&launch, j, allocator_lines, allocator_line_count);
    lines_into(&launch, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&launch));
    if (draft_is(j, IS_OPD, 0))
        emit_script(files, j, "teacher.sh", teacher_lines, COUNT_OF(teacher_lines));
}

const struct writer writer_slime = {
    .prepare = prepare,
    .refusals = refusals,
    .refusal_count = COUNT_OF(refusals),
    .emit = emit,
};
