// What a run was at when it died, one row each: what to call it, what it says about the memory, and
// what to change there, the cheapest first. And the frames of a traceback that tell.
#include "core/base/compiler.h"
#include "core/doctor/internal.h"

#define SHARE                                                                       \
    "a smaller share for the inference engine: vllm_gpu_memory_utilization (TRL), " \
    "rollout.gpu_memory_utilization (verl), --mem-fraction-static (sglang)"
#define SLEEP "an engine that sleeps while others work: vllm_enable_sleep_mode, free_cache_engine"

const struct doctor_phase_kind doctor_phases[] = {
    [DOCTOR_PHASE_UNKNOWN] = {0},
    [DOCTOR_PHASE_LOAD] =
        {.name = "load",
         .where = "while loading the model",
         .meaning = "No step had begun: the weights themselves, or copies of them, did not fit. A "
                    "smaller batch, shorter sequences or gradient checkpointing change nothing "
                    "here.",
         .remedies = {"weights loaded in bf16 (dtype: bfloat16): in fp32 they take twice as much",
                      "no device_map and no .to(device) before sharding: each rank then puts whole "
                      "weights on its card",
                      "sharded from the start: zero3_init_flag: true (ZeRO-3), "
                      "fsdp_cpu_ram_efficient_loading: true (FSDP)",
                      "for adapters, a base in 4 bits (QLoRA)",
                      "more GPUs to shard over, or cards with more memory"},
         .host_meaning = "Weights were being loaded: each rank reads a whole copy of them into the "
                         "host's memory, unless one is told to read for all.",
         .host_remedies = {"one rank that reads for all: fsdp_cpu_ram_efficient_loading: true with "
                           "fsdp_sync_module_states: true (FSDP), zero3_init_flag: true (ZeRO-3)",
                           "weights loaded in bf16 (dtype: bfloat16): in fp32 they take twice as "
                           "much",
                           "safetensors files, which are mapped, in place of pytorch_model.bin",
                           "fewer ranks on each node, or more host memory for the job"}},
    [DOCTOR_PHASE_RESUME] =
        {.name = "resume",
         .where = "while reading a checkpoint",
         .meaning = "Weights or optimizer states of a checkpoint were read beside those that the "
                    "run had made already. A smaller batch or gradient checkpointing change "
                    "nothing here.",
         .remedies = {"read it to the host first (map_location=\"cpu\")",
                      "checkpoints of shards: fsdp_state_dict_type: SHARDED_STATE_DICT, or "
                      "DeepSpeed's own",
                      "begin from the checkpoint's weights, without its optimizer states",
                      "load_best_model_at_end: false, where that is what read it"},
         .host_meaning = "A checkpoint was being read: each rank may hold all of it in the host's "
                         "memory.",
         .host_remedies = {"checkpoints of shards: fsdp_state_dict_type: SHARDED_STATE_DICT, or "
                           "DeepSpeed's own",
                           "fewer ranks on each node, or more host memory for the job"}},
    [DOCTOR_PHASE_FORWARD] = {.name = "forward", .where = "in the forward pass"},
    [DOCTOR_PHASE_BACKWARD] = {.name = "backward", .where = "in the backward pass"},
    [DOCTOR_PHASE_OPTIMIZER] =
        {.name = "optimizer",
         .where = "in the optimizer",
         .meaning = "The optimizer's states did not fit, or what it needs beside them: they are "
                    "made in its first step and stay (Adam: two numbers for each trained "
                    "parameter). None of it depends on the batch: a smaller one, shorter sequences "
                    "or gradient checkpointing make no room.",
         .remedies = {"an 8-bit optimizer (optim: adamw_bnb_8bit or paged_adamw_8bit)",
                      "states sharded over the GPUs: FSDP, ZeRO-2, ZeRO-3; more GPUs then help",
                      "states in the host's memory (offload_optimizer of DeepSpeed, FSDP's "
                      "offload_params)",
                      "adapters (LoRA, QLoRA), whose states are small"},
         .host_meaning = "Optimizer states were being made in the host's memory: about 12 bytes "
                         "for each trained parameter, over the ranks of a node.",
         .host_remedies = {"states that stay on the cards, or go to NVMe",
                           "an 8-bit optimizer, or adapters (LoRA, QLoRA)",
                           "more nodes to shard over, or more host memory for the job"}},
    [DOCTOR_PHASE_EVALUATION] =
        {.name = "evaluation",
         .where = "in evaluation",
         .meaning = "This was an evaluation, no step that trains. It has a batch of its own, 8 "
                    "sequences a GPU unless transformers' Trainer is told otherwise, and keeps "
                    "nothing for a backward pass: gradient checkpointing and the training's batch "
                    "change nothing here.",
         .remedies = {"a smaller per_device_eval_batch_size",
                      "prediction_loss_only: true where only the loss is looked at; else "
                      "preprocess_logits_for_metrics that keeps the argmax and no logits",
                      "eval_accumulation_steps, which moves what is kept to the host",
                      "shorter sequences in the evaluation's data"},
         .host_meaning = "An evaluation was running: where metrics are computed, the predictions "
                         "of all its batches are kept in the host's memory.",
         .host_remedies = {"prediction_loss_only: true where only the loss is looked at; else "
                           "preprocess_logits_for_metrics that keeps the argmax and no logits",
                           "batch_eval_metrics: true; fewer sequences to evaluate"}},
    [DOCTOR_PHASE_SAVE] =
        {.name = "save",
         .where = "while saving",
         .meaning = "A checkpoint was being made, no step: whole weights or optimizer states are "
                    "gathered for it. A smaller batch, shorter sequences or gradient checkpointing "
                    "change nothing here.",
         .remedies = {"a checkpoint of shards: fsdp_state_dict_type: SHARDED_STATE_DICT (FSDP); "
                      "stage3_gather_16bit_weights_on_model_save: false (ZeRO-3), and "
                      "zero_to_fp32.py afterwards",
                      "whole weights gathered in the host's memory, on rank 0 alone: "
                      "FullStateDictConfig(offload_to_cpu=True, rank0_only=True)",
                      "save_only_model: true, where nobody resumes from it",
                      "torch.cuda.empty_cache() before the save"},
         .host_meaning = "A checkpoint was being made: whole weights or optimizer states are "
                         "gathered in the host's memory for it.",
         .host_remedies = {"a checkpoint of shards: fsdp_state_dict_type: SHARDED_STATE_DICT "
                           "(FSDP); stage3_gather_16bit_weights_on_model_save: false (ZeRO-3)",
                           "save_only_model: true, where nobody resumes from it",
                           "more host memory for the job"}},
    [DOCTOR_PHASE_ENGINE] =
        {.name = "engine",
         .where = "while the inference engine started",
         .meaning = "An inference engine takes its share of the card when it starts: weights, the "
                    "cache, CUDA graphs. The training's batch and gradient checkpointing change "
                    "nothing here.",
         .remedies = {SHARE, "enforce_eager; a smaller max_model_len and max_num_seqs", SLEEP,
                      "more tensor parallel GPUs for the engine, or GPUs of its own (vllm_mode: "
                      "server)"}},
    [DOCTOR_PHASE_GENERATE] =
        {.name = "generate",
         .where = "while generating",
         .meaning = "Answers were being generated: keys and values of all sequences at a time, and "
                    "logits of each next token. Gradient checkpointing changes nothing here.",
         .remedies = {"fewer sequences at a time (num_generations, generation_batch_size, "
                      "max_num_seqs), shorter answers (max_completion_length)",
                      SHARE,
                      "an inference engine (use_vllm) in place of the model's own generate; "
                      "ds3_gather_for_generation: false under ZeRO-3",
                      SLEEP}},
    [DOCTOR_PHASE_SCORE] =
        {.name = "score",
         .where = "while scoring answers",
         .meaning = "A forward pass that only scores answers (old or reference probabilities, a "
                    "reward): logits decide, and nothing is kept for a backward pass. Gradient "
                    "checkpointing changes nothing here.",
         .remedies = {"fewer sequences at a time: log_prob_micro_batch_size_per_gpu (verl), "
                      "per_device_train_batch_size (TRL)",
                      "shorter answers (max_completion_length, response_length)",
                      "probabilities in chunks: use_liger_kernel (TRL), use_fused_kernels (verl)",
                      "no reference model (beta: 0), or one that is offloaded meanwhile"}},
    [DOCTOR_PHASE_SYNC] =
        {.name = "sync",
         .where = "while giving weights to the inference engine",
         .meaning = "Weights were gathered for the inference engine, whose own share of the card "
                    "was taken already. The training's batch and gradient checkpointing change "
                    "nothing here.",
         .remedies = {SHARE, SLEEP, "weights given layer by layer (rollout.layered_summon in verl)",
                      "GPUs of its own for the engine (vllm_mode: server)"}},
};

_Static_assert(COUNT_OF(doctor_phases) == DOCTOR_PHASES, "a row for each");

// ------------------------------------------------------------------ frames

// What a frame may say against those that called it.
enum force {
    DECIDES,
    REFINES, // where a step, or nothing, is known
    FILLS,   // where nothing is known
};

struct frame_row {
    const char *function, *file; // the whole name, a part of the path or NULL
    enum doctor_phase phase;
    enum force force;
    const char *remedy; // where those of the phase are too general
};

#define KEPT_LOGITS "keep less: it died gathering what all batches predicted, not inside of one"
#define FOREACH                                                                               \
    "optim: adamw_torch_fused (fused=True): the update list by list makes copies of what it " \
    "updates"

// transformers, TRL, accelerate, peft, torch, DeepSpeed, Lightning, verl, vLLM, sglang.
static const struct frame_row frame_rows[] = {
    {"training_step", NULL, DOCTOR_PHASE_FORWARD, DECIDES, NULL},
    {"train_step", NULL, DOCTOR_PHASE_FORWARD, DECIDES, NULL},
    {"compute_loss", NULL, DOCTOR_PHASE_FORWARD, FILLS, NULL},
    {"backward", NULL, DOCTOR_PHASE_BACKWARD, DECIDES, NULL},

    {"evaluate", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"_evaluate", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"evaluation_loop", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"prediction_loop", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"prediction_step", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"predict", "/transformers/", DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"nested_concat", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, KEPT_LOGITS},
    {"torch_pad_and_concatenate", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, KEPT_LOGITS},
    {"gather_for_metrics", NULL, DOCTOR_PHASE_EVALUATION, FILLS, KEPT_LOGITS},
    {"validation_step", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"validate", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"_validate", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"_run_sanity_check", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},
    {"evaluate_and_print_results", NULL, DOCTOR_PHASE_EVALUATION, DECIDES, NULL},

    {"_save_checkpoint", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_checkpoint", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_model", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"_save", "/transformers/", DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_pretrained", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_state", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_16bit_model", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_fsdp_model", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"save_fsdp_optimizer", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"_save_optimizer_and_scheduler", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"safe_save_model_for_hf_trainer", NULL, DOCTOR_PHASE_SAVE, DECIDES, NULL},
    {"_zero3_consolidated_16bit_state_dict", NULL, DOCTOR_PHASE_SAVE, REFINES, NULL},
    {"_full_pre_state_dict_hook", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},
    {"_full_post_state_dict_hook", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},
    {"full_optim_state_dict", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},
    {"_optim_state_dict", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},
    {"get_model_state_dict", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},
    {"get_optimizer_state_dict", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},
    {"_get_model_state_dict", NULL, DOCTOR_PHASE_SAVE, FILLS, NULL},

    {"step", "/torch/optim/", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "/bitsandbytes/optim/", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "/apex/optimizers/", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "/accelerate/optimizer.py", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "/transformers/optimization.py", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "/deepspeed/runtime/", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "/deepspeed/ops/", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"step", "grad_scaler.py", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_maybe_opt_step", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"optimizer_step", NULL, DOCTOR_PHASE_OPTIMIZER, REFINES, NULL},
    {"_init_group", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"init_state", "/bitsandbytes/", DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"initialize_optimizer_states", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_initialize_optimizer_states", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_create_fp32_partitions", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_setup_for_real_optimizer", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_configure_zero_optimizer", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_take_model_step", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_multi_tensor_adam", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, FOREACH},
    {"_multi_tensor_adamw", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, FOREACH},
    {"_single_tensor_adam", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},
    {"_single_tensor_adamw", NULL, DOCTOR_PHASE_OPTIMIZER, DECIDES, NULL},

    {"from_pretrained", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_load_pretrained_model", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_load_state_dict_into_model", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_load_state_dict_into_meta_model", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_load_state_dict_into_zero3_model", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"load_checkpoint_in_model", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"fsdp2_load_full_state_dict", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_zero_init_param", NULL, DOCTOR_PHASE_LOAD, FILLS, NULL},
    {"prepare", "/accelerate/", DOCTOR_PHASE_LOAD, FILLS, NULL},
    {"prepare_model", "/accelerate/", DOCTOR_PHASE_LOAD, FILLS, NULL},
    {"prepare_model_for_kbit_training", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_move_model_to_device", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_configure_distributed_model", "/deepspeed/", DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"_build_model_optimizer", NULL, DOCTOR_PHASE_LOAD, DECIDES, NULL},
    {"to", "/torch/nn/modules/module.py", DOCTOR_PHASE_LOAD, FILLS, NULL},
    {"cuda", "/torch/nn/modules/module.py", DOCTOR_PHASE_LOAD, FILLS, NULL},

    {"_load_from_checkpoint", NULL, DOCTOR_PHASE_RESUME, DECIDES, NULL},
    {"_load_best_model", NULL, DOCTOR_PHASE_RESUME, DECIDES, NULL},
    {"_load_optimizer_and_scheduler", NULL, DOCTOR_PHASE_RESUME, DECIDES, NULL},
    {"deepspeed_load_checkpoint", NULL, DOCTOR_PHASE_RESUME, DECIDES, NULL},
    {"load_fsdp_model", NULL, DOCTOR_PHASE_RESUME, DECIDES, NULL},
    {"load_fsdp_optimizer", NULL, DOCTOR_PHASE_RESUME, DECIDES, NULL},
    {"load_checkpoint", NULL, DOCTOR_PHASE_RESUME, FILLS, NULL},

    {"_initialize_kv_caches", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"determine_available_memory", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"determine_num_available_blocks", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"initialize_kv_cache", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"initialize_cache", "/vllm/", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"profile_run", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"capture_model", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"load_model", "/vllm/", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"__init__", "/vllm/entrypoints/llm.py", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"__init__", "/vllm/v1/engine/core.py", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"load_model", "/sglang/", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"init_memory_pool", "/sglang/", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"init_cuda_graphs", "/sglang/", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"init_device_graphs", "/sglang/", DOCTOR_PHASE_ENGINE, DECIDES, NULL},
    {"_build_rollout", NULL, DOCTOR_PHASE_ENGINE, DECIDES, NULL},

    {"generate", "/transformers/generation/", DOCTOR_PHASE_GENERATE, REFINES, NULL},
    {"generate", "/vllm/", DOCTOR_PHASE_GENERATE, REFINES, NULL},
    {"_generate", "/trl/", DOCTOR_PHASE_GENERATE, REFINES, NULL},
    {"_generate_single_turn", NULL, DOCTOR_PHASE_GENERATE, REFINES, NULL},
    {"generate_sequences", NULL, DOCTOR_PHASE_GENERATE, REFINES, NULL},
    {"execute_model", "/vllm/", DOCTOR_PHASE_GENERATE, REFINES, NULL},
    {"forward_batch_generation", "/sglang/", DOCTOR_PHASE_GENERATE, REFINES, NULL},

    {"_generate_and_score_completions", "/trl/", DOCTOR_PHASE_SCORE, REFINES, NULL},
    {"_calculate_rewards", "/trl/", DOCTOR_PHASE_SCORE, REFINES, NULL},
    {"compute_log_prob", NULL, DOCTOR_PHASE_SCORE, REFINES, NULL},
    {"compute_ref_log_prob", NULL, DOCTOR_PHASE_SCORE, REFINES, NULL},

    {"_move_model_to_vllm", NULL, DOCTOR_PHASE_SYNC, DECIDES, NULL},
    {"move_model_to_vllm", NULL, DOCTOR_PHASE_SYNC, DECIDES, NULL},
    {"sync_weights", "/trl/", DOCTOR_PHASE_SYNC, DECIDES, NULL},
    {"__enter__", "/verl/workers/sharding_manager/", DOCTOR_PHASE_SYNC, DECIDES, NULL},
    {"rollout_mode", "/verl/", DOCTOR_PHASE_SYNC, DECIDES, NULL},
};

struct frame {
    struct str file, function;
};

// A notebook's "File PATH:7, in Trainer.evaluate(self)".
static struct frame frame_of_notebook(struct str text)
{
    ptrdiff_t in = text_find(text, STR(", in "), 0);
    struct str name = str_cut(str_slice(text, in < 0 ? text.n : in + 5, text.n), '(').head;
    struct str_cut class = str_cut_last(name, '.');
    return (struct frame){str_slice(text, 0, in < 0 ? 0 : in), class.found ? class.tail : name};
}

// 'File "PATH", line 7, in NAME', or rich's "PATH:7 in NAME   |" in its box, where a long path
// begins on the line before.
static struct frame frame_of(struct str content)
{
    struct str text = str_trim(content);
    bool boxed = str_starts(text, STR("\xE2\x94\x82"));
    text = boxed ? str_trim(str_slice(text, 3, text.n)) : text;
    if (str_starts(text, STR("File \""))) {
        struct str_cut path = str_cut(str_slice(text, 6, text.n), '"');
        struct str_cut name = str_cut_last(path.tail, ' ');
        return (struct frame){path.head, name.tail};
    }
    if (str_starts(text, STR("File ")))
        return frame_of_notebook(str_slice(text, 5, text.n));
    struct str_cut place = str_cut(text, ' ');
    bool numbered = place.head.n && char_is_digit(place.head.p[place.head.n - 1]);
    if (!boxed || !numbered || !str_starts(place.tail, STR("in ")))
        return (struct frame){0};
    return (struct frame){place.head, str_cut(str_slice(place.tail, 3, place.tail.n), ' ').head};
}

static const struct frame_row *row_of(const struct frame *f)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(frame_rows); i++) {
        const struct frame_row *r = &frame_rows[i];
        bool named =
            f->function.n && f->function.p[0] == r->function[0] && str_is(f->function, r->function);
        if (named && (!r->file || text_has(f->file, r->file)))
            return r;
    }
    return NULL;
}

static bool speaks_after(const struct frame_row *r, enum doctor_phase known)
{
    bool step = known == DOCTOR_PHASE_FORWARD || known == DOCTOR_PHASE_BACKWARD;
    switch (r->force) {
    case DECIDES:
        return true;
    case REFINES:
        return known == DOCTOR_PHASE_UNKNOWN || step || known == DOCTOR_PHASE_SCORE;
    case FILLS:
        return known == DOCTOR_PHASE_UNKNOWN;
    }
    return false;
}

void phase_follow(struct phase_told *told, struct str content)
{
    struct frame f = frame_of(content);
    const struct frame_row *r = row_of(&f);
    if (!r || !speaks_after(r, told->phase))
        return;
    if (r->phase != told->phase || r->remedy)
        told->remedy = r->remedy;
    told->phase = r->phase;
}

// ------------------------------------------------------------------ advice

static bool is_by_phase(const struct doctor_finding *f)
{
    return f->kind->by_phase && doctor_phases[f->phase].meaning;
}

static bool is_of_host(const struct doctor_finding *f)
{
    return f->kind->class != DOCTOR_GPU_MEMORY;
}

const char *doctor_phase_meaning(const struct doctor_finding *f)
{
    const struct doctor_phase_kind *p = &doctor_phases[f->phase];
    if (!is_by_phase(f))
        return NULL;
    return is_of_host(f) ? p->host_meaning : p->meaning;
}

int doctor_advice(const char *rows[DOCTOR_MAX_ADVICE], const struct doctor_finding *f)
{
    const struct doctor_phase_kind *p = &doctor_phases[f->phase];
    bool by_phase = doctor_phase_meaning(f) != NULL;
    const char *const *more = is_of_host(f) ? p->host_remedies : p->remedies;
    int count = 0, kept = by_phase ? f->kind->kept : DOCTOR_MAX_REMEDIES;
    if (f->remedy)
        rows[count++] = f->remedy;
    for (int i = 0; i < kept && f->kind->remedies[i]; i++)
        rows[count++] = f->kind->remedies[i];
    if (by_phase && f->phase_remedy && !is_of_host(f))
        rows[count++] = f->phase_remedy;
    for (int i = 0; by_phase && i < DOCTOR_MAX_REMEDIES && more[i]; i++)
        rows[count++] = more[i];
    return count;
}
