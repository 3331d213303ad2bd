// slime at 624b824 (2026-08) for models of text; 0.3.0 for Qwen3-VL, which was the last that
// trained it (#2251 removed megatron-bridge), with its --multimodal-keys and the text model's
// arguments.
#include "core/emit/division.h"

static const struct line head_lines[] = {
    {.text = "#!/usr/bin/env bash\n"
             "# slime, on-policy distillation: @teacher@ teaches @weights@, @layout@.\n"
             "# @train_says@"},
    {0, IS_VISION,
     "# Needs slime at 624b824 (2026-08) or later, with its image's sglang and Megatron."},
    {IS_VISION, 0,
     "# Needs slime 0.3.0, the last that trained Qwen3-VL, with its image's sglang and Megatron."},
};

static const struct line router_lines[] = {
    {IS_NODES, 0,
     "# Teachers of several nodes behind one address.\n"
     "if [[ $TEACHER_URLS = *' '* ]]; then\n"
     "    read -ra urls <<<\"$TEACHER_URLS\"\n"
     "    python3 -m sglang_router.launch_router --worker-urls \"${urls[@]}\" --port 13140 \\\n"
     "        >\"$here/router.log\" 2>&1 &\n"
     "    teachers+=($!)\n"
     "    trap 'kill \"${teachers[@]}\" 2>/dev/null || true' EXIT\n"
     "    TEACHER_URL=http://$(hostname -i | cut -d' ' -f1):13140\n"
     "    until curl -sf \"$TEACHER_URL/health\" >/dev/null; do sleep 5; done\n"
     "fi"},
};

static const struct line argument_lines[] = {
    {.text = "SLIME=${SLIME:-$HOME/slime}\n"
             "MEGATRON=${MEGATRON:-$HOME/Megatron-LM}\n"
             "data=@dataset@\n"
             "[[ $data = /* ]] || data=$here/$data\n"
             "model=$SLIME_SCRIPT_STUDENT_MODEL\n"
             "download='import sys, huggingface_hub as hub; "
             "print(hub.snapshot_download(sys.argv[1]))'\n"
             "[ -d \"$model\" ] || model=$(python3 -c \"$download\" \"$model\")\n"
             "load=$model\n"
             "[ ! -f \"$here/checkpoints/latest_checkpointed_iteration.txt\" ] || "
             "load=$here/checkpoints"},
    {IS_VISION, 0, "export MODEL_ARGS_ROTARY_BASE=5000000"},
    {.text = "source \"$SLIME/scripts/models/@model_script@.sh\"\n"
             "arguments=(\n"
             "    --actor-num-nodes @train_nodes@\n"
             "    --actor-num-gpus-per-node @train_per_node@\n"
             "    --num-gpus-per-node @student_per_node@"},
    {0, IS_APART,
     "    # One set of GPUs trains and generates in turn, what waits is in host memory."},
    {0, IS_APART, "    --colocate"},
    {IS_APART, 0, "    --rollout-num-gpus @rollout_gpus@"},
    {.text = "    # @rollout_says@"},
    {.text = "    --rollout-num-gpus-per-engine @rollout_tp@\n"
             "    --sglang-mem-fraction-static @rollout_memory@\n"
             "    \"${MODEL_ARGS[@]}\"\n"
             "    --hf-checkpoint \"$model\"\n"
             "    --load \"$load\"\n"
             "    --save \"$here/checkpoints\"\n"
             "    --save-interval 20\n"
             "    --prompt-data \"$data\"\n"
             "    --input-key prompt\n"
             "    --apply-chat-template\n"
             "    --rollout-shuffle\n"
             "    --num-rollout 300\n"
             "    --rollout-batch-size @prompts@\n"
             "    --n-samples-per-prompt @samples@\n"
             "    --global-batch-size @sequences@\n"
             "    --balance-data\n"
             "    --rollout-max-context-len @context@\n"
             "    --rollout-max-prompt-len @prompt@\n"
             "    --rollout-max-response-len @response@\n"
             "    --rollout-temperature 1"},
    {IS_VISION, 0,
     "    # A sample's pictures are a list under \"images\", with <image> in its prompt for each.\n"
     "    --multimodal-keys '{\"image\": \"images\"}'\n"
     "    --megatron-to-hf-mode bridge"},
    {.text = "    --advantage-estimator grpo\n"
             "    --use-opd\n"
             "    --opd-type sglang\n"
             "    --opd-kl-coef 1.0\n"
             "    --custom-rm-path slime.rollout.on_policy_distillation.reward_func\n"
             "    --custom-reward-post-process-path "
             "slime.rollout.on_policy_distillation.post_process_rewards\n"
             "    --rm-url \"$TEACHER_URL/generate\"\n"
             "    --entropy-coef 0.00\n"
             "    # No --use-kl-loss, not even with coefficient 0: it loads a reference model.\n"
             "    --tensor-model-parallel-size @train_tp@"},
    {IS_TP, 0, "    --sequence-parallel"},
    {.text =
         "    --pipeline-model-parallel-size @train_pp@\n"
         "    --context-parallel-size 1\n"
         "    --expert-model-parallel-size 1\n"
         "    --expert-tensor-parallel-size 1\n"
         "    --recompute-granularity full\n"
         "    --recompute-method uniform\n"
         "    --recompute-num-layers 1\n"
         "    # One sequence of full length in a micro-batch; a smaller global batch would take\n"
         "    # nothing off this.\n"
         "    --use-dynamic-batch-size\n"
         "    --max-tokens-per-gpu @context@\n"
         "    --optimizer adam\n"
         "    --lr 1e-6\n"
         "    --lr-decay-style constant\n"
         "    --weight-decay 0.1\n"
         "    --adam-beta1 0.9\n"
         "    --adam-beta2 0.98\n"
         "    --attention-dropout 0.0\n"
         "    --hidden-dropout 0.0\n"
         "    --accumulate-allreduce-grads-in-fp32\n"
         "    --attention-softmax-in-fp32\n"
         "    --attention-backend flash\n"
         ")"},
};

static const struct line run_lines[] = {
    {.text = "environment='{\"env_vars\": {\"PYTHONPATH\": \"'$MEGATRON'\", "
             "\"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\"}}'"},
    {IS_APART, 0,
     "# ASYNC=1: training on the answers of the iteration before.\n"
     "program=train.py\n"
     "[ \"${ASYNC:-0}\" = 0 ] || program=train_async.py"},
    {0, IS_APART, "program=train.py"},
    {.text = "cd \"$SLIME\"\n"
             "ray job submit --address=\"${RAY_DASHBOARD:-http://127.0.0.1:8265}\" "
             "--runtime-env-json=\"$environment\" \\\n"
             "    -- python3 \"$program\" \"${arguments[@]}\" \"$@\""},
};

static void emit(struct emit_files *files, const struct draft *j)
{
    struct buf out = buf_in(j->arena);
    lines_into(&out, j, head_lines, COUNT_OF(head_lines));
    lines_into(&out, j, division_head_lines, division_head_count);
    lines_into(&out, j, division_teacher_lines, division_teacher_count);
    lines_into(&out, j, router_lines, COUNT_OF(router_lines));
    lines_into(&out, j, argument_lines, COUNT_OF(argument_lines));
    lines_into(&out, j, division_ray_lines, division_ray_count);
    lines_into(&out, j, run_lines, COUNT_OF(run_lines));
    emit_add(files, "launch.sh", buf_str(&out));
}

const struct division_writer division_slime = {.framework = "slime", .emit = emit};
