// What rules ask of a job beyond its traits.
#include "core/job/conditions.h"

#include "core/base/num.h"

bool has_no_context(const struct job *j)
{
    return !j->context;
}

static bool is_of(const struct job *j, enum recipe recipe)
{
    return j->recipe == recipe;
}

bool is_trinity(const struct job *j)
{
    return is_of(j, RECIPE_TRINITY);
}

bool is_verls(const struct job *j) // or of Trinity, which trains with it
{
    return is_trinity(j) || is_of(j, RECIPE_VERL);
}

bool is_not_verls(const struct job *j)
{
    return !is_verls(j);
}

bool is_not_policy(const struct job *j) // whose trainers compute a policy gradient
{
    return !is_verls(j) && !is_of(j, RECIPE_MEGATRON);
}

// But for frozen weights in TRL's step, which has them in fp32 elsewhere.
bool widens_what_it_trains(const struct job *j)
{
    bool keeps_narrow = j->lora_rank && is_trl(j) && !job_is_zero(j);
    return job_is_sharded(j) && !keeps_narrow;
}

bool is_policy(const struct job *j)
{
    return is_verls(j) || (is_of(j, RECIPE_MEGATRON) && j->task != TASK_SFT);
}

bool is_deepspeed(const struct job *j)
{
    return is_of(j, RECIPE_DEEPSPEED);
}

bool is_trl(const struct job *j)
{
    return is_of(j, RECIPE_TRL);
}

// trl 1.16, sft_trainer.py, compute_loss: fused_lm_head, whatever loss_type says; so were 14 jobs
// of real_trainers.jsonl that said nll.
bool has_no_whole_loss(const struct job *j)
{
    return is_trl(j) && j->version > 0 && j->loss == LOSS_FULL && j->task == TASK_SFT;
}

bool stands_on_accelerate(const struct job *j)
{
    return is_trl(j) || is_of(j, RECIPE_TRANSFORMERS);
}

bool calls_its_head(const struct job *j) // as a module
{
    return !job_fuses_head(j);
}

bool has_older_head(const struct job *j) // TRL's, in chunks by itself or whole
{
    return is_trl(j) && calls_its_head(j);
}

bool is_trainers(const struct job *j) // transformers', and what stands on it
{
    return is_of(j, RECIPE_TRANSFORMERS) || is_of(j, RECIPE_AXOLOTL) ||
           is_of(j, RECIPE_LLAMAFACTORY);
}

// axolotl/loaders/model.py, _configure_embedding_dtypes: they go back to bf16 with adapters, fsdp
// or an attention that needs it.
bool keeps_wide_embeddings(const struct job *j)
{
    return is_of(j, RECIPE_AXOLOTL) && !job_is_sharded(j) && !j->lora_rank &&
           job_attention(j) != ATTENTION_FLASH2;
}

bool is_verl(const struct job *j)
{
    return is_of(j, RECIPE_VERL);
}

bool is_megatron(const struct job *j)
{
    return is_of(j, RECIPE_MEGATRON);
}

bool is_another_recipe(const struct job *j)
{
    return !str_is(str_from(recipe_words[j->recipe]), target_defs[j->target].recipe);
}

bool is_single_on_several(const struct job *j)
{
    return j->strategy == STRATEGY_SINGLE && is_not_policy(j) && !job_cuts_tensors(j);
}

bool shards_over_nothing(const struct job *j)
{
    return !is_trinity(j) && !is_verl(j);
}

static bool does_not_divide(uint64_t size, uint64_t whole)
{
    return !size || whole % size;
}

bool sp_misses_gpus(const struct job *j)
{
    return does_not_divide(j->ulysses, job_ranks(j));
}

bool sp_misses_heads(const struct job *j)
{
    return does_not_divide(j->ulysses, j->model.heads);
}

bool sp_misses_kv_heads(const struct job *j)
{
    return j->model.kv_heads % j->ulysses && j->ulysses % j->model.kv_heads;
}

bool sp_misses_context(const struct job *j)
{
    return does_not_divide(j->ulysses, j->context);
}

bool cp_misses_gpus(const struct job *j)
{
    return does_not_divide(j->ring, job_ranks(j));
}

bool cp_misses_context(const struct job *j)
{
    return does_not_divide(2 * j->ring, j->context);
}

bool has_no_such_rank(const struct job *j)
{
    return j->ring_rank >= j->ring;
}

bool tp_misses_gpus(const struct job *j)
{
    return does_not_divide(j->tensor, job_ranks(j) / (j->ulysses * j->ring));
}

bool tp_misses_heads(const struct job *j)
{
    return does_not_divide(j->tensor, j->model.heads);
}

bool ep_misses_gpus(const struct job *j)
{
    return does_not_divide(j->expert, job_ranks(j));
}

bool spreads_experts(const struct job *j)
{
    return j->expert > 1;
}

bool is_packed_without_adapters(const struct job *j)
{
    return j->packed && !j->lora_rank;
}

bool is_packed_by_axolotl(const struct job *j)
{
    return is_of(j, RECIPE_AXOLOTL) && is_packed_elsewhere(j);
}

bool is_packed_elsewhere(const struct job *j)
{
    bool whole = j->strategy == STRATEGY_SINGLE || j->strategy == STRATEGY_DDP;
    bool flat = j->strategy == STRATEGY_ZERO1 || j->strategy == STRATEGY_ZERO2;
    bool cut =
        (j->strategy == STRATEGY_FSDP1 || j->strategy == STRATEGY_FSDP2 ||
         j->strategy == STRATEGY_ZERO3) &&
        (job_fuses_head(j) || is_of(j, RECIPE_TRANSFORMERS) || is_of(j, RECIPE_LLAMAFACTORY));
    bool flat_in_fp16 = j->precision == PRECISION_FP16 && job_is_zero(j) && flat;
    bool held = j->precision == PRECISION_MIXED ? flat || cut : whole || flat_in_fp16;
    return j->packed && !held;
}

bool has_targets_without_adapters(const struct job *j)
{
    return settings_find_z(j->given, "lora-targets") && !j->lora_rank;
}

bool keeps_checkpoints_for_nothing(const struct job *j)
{
    return j->checkpoint_offload && !j->checkpointing;
}

bool saves_hf(const struct job *j)
{
    return settings_find_z(j->given, "save-hf") && !is_trinity(j);
}

bool limits_tokens_twice(const struct job *j)
{
    return settings_find_z(j->given, "max-token-len") && settings_find_z(j->given, "batch");
}

static bool limits_tokens(const struct job *j)
{
    return j->token_limit > 0;
}

bool limits_reference_elsewhere(const struct job *j)
{
    return j->reference_limit && is_not_verls(j);
}

bool reads_less_than_a_sequence(const struct job *j)
{
    return j->reference_limit && sat_mul(j->reference_limit, j->ulysses) < j->context;
}

bool limits_tokens_elsewhere(const struct job *j)
{
    return limits_tokens(j) && is_not_verls(j) && !is_megatron(j);
}

bool is_another_recipe_with_adapters(const struct job *j)
{
    return !is_of(j, RECIPE_HF) && !is_trl(j) && !is_trainers(j) && !is_deepspeed(j);
}

static bool is_not_fused(const struct job *j)
{
    return !job_fuses_head(j);
}

bool has_another_step_over_shards(const struct job *j)
{
    bool own_loop = is_of(j, RECIPE_HF) && j->strategy == STRATEGY_FSDP2;
    return is_not_fused(j) && !is_trainers(j) && !own_loop;
}

bool compares_in_factory(const struct job *j)
{
    bool pairs = j->task == TASK_DPO || j->task == TASK_REWARD;
    return is_of(j, RECIPE_LLAMAFACTORY) && pairs;
}

// Unlike tests/runs/factory_fake.jsonl.
bool compares_oddly_in_factory(const struct job *j)
{
    bool split = j->ulysses > 1 || j->ring > 1;
    bool scores = j->task == TASK_REWARD && (!j->checkpointing || j->lora_whole);
    bool liger = j->loss != LOSS_FULL || j->layer_kernels != KERNELS_OF_TORCH;
    return compares_in_factory(j) &&
           (job_stands_on_4(j) || j->batching == BATCHING_PACKED || j->evaluation_batch ||
            j->offload || liger || split || scores);
}

bool is_unpredicted_task(const struct job *j)
{
    bool known = j->task != TASK_CAPACITY;
    bool factorys = compares_in_factory(j) && j->lora_rank;
    return j->task != TASK_SFT && is_not_verls(j) && !(is_trl(j) && known) && !factorys &&
           !is_megatron(j);
}

bool is_trls_own_task(const struct job *j)
{
    return j->task == TASK_KTO || j->task == TASK_RLOO;
}

bool compares_a_row_alone(const struct job *j)
{
    return is_trl(j) && j->batch == 1;
}

bool compares_one_answer(const struct job *j)
{
    bool compares = j->task == TASK_GRPO || j->task == TASK_RLOO;
    uint64_t sharing = sat_mul(sat_mul(j->ring, j->ulysses), j->tensor);
    return is_trl(j) && compares && j->batch == 1 && j->accumulation == 1 &&
           job_ranks(j) <= sharing;
}

bool has_no_teacher(const struct job *j)
{
    return is_trl(j) && j->task == TASK_DISTILL && !j->teacher;
}

// distillation_trainer.py compares the chances of all words.
bool learns_other_words(const struct job *j)
{
    return j->teacher && j->teacher->vocab != j->model.vocab;
}

bool keeps_logits_of_nothing(const struct job *j)
{
    return j->keeps_logits && (!j->evaluation_batch || !j->evaluation_rows);
}

bool keeps_beyond_counting(const struct job *j)
{
    return job_kept_logits(j) > UINT64_C(1) << 46;
}

bool replicates_across_nodes(const struct job *j)
{
    return j->replicas != j->hardware.nodes;
}

bool replicates_unevenly(const struct job *j)
{
    uint64_t dealt = job_ranks(j) / j->ring;
    return dealt % j->replicas || dealt == j->replicas;
}

bool saves(const struct job *j)
{
    return settings_find_z(j->given, "save") && j->saving != SAVING_NEVER;
}

bool saves_elsewhere(const struct job *j)
{
    return saves(j) && !is_trl(j) && !is_trainers(j) && !is_trinity(j) && !j->target;
}

bool saves_under_trinity(const struct job *j)
{
    return saves(j) && is_verls(j);
}

bool never_saves(const struct job *j)
{
    return settings_find_z(j->given, "save") && j->saving == SAVING_NEVER;
}

bool saves_shards(const struct job *j)
{
    return saves(j) && j->saving == SAVING_SHARDS;
}

static bool evaluates(const struct job *j)
{
    return j->evaluation_batch > 0;
}

bool evaluates_answers(const struct job *j)
{
    return evaluates(j) && job_generates(j);
}

// Files say it with their own figures (core/emit/rollout.c).
bool has_parts_of_another(const struct job *j)
{
    return !j->target && j->prompt && j->response && j->prompt + j->response != j->context;
}

bool evaluates_elsewhere(const struct job *j)
{
    return evaluates(j) && !is_trl(j) && !is_trainers(j);
}

bool packs_rows(const struct job *j)
{
    return j->batching == BATCHING_PACKED;
}

bool is_ragged(const struct job *j)
{
    return j->batching != BATCHING_FULL;
}

// transformers makes the same mask for whoever pads.
bool is_ragged_elsewhere(const struct job *j)
{
    bool pads = is_trainers(j) && j->batching == BATCHING_PADDED;
    return is_ragged(j) && !is_trl(j) && !pads;
}

bool is_padded_by_package(const struct job *j)
{
    return j->batching == BATCHING_PADDED && job_attends_by_package(j);
}

bool is_packed_without_sft(const struct job *j)
{
    return j->batching == BATCHING_PACKED && j->task != TASK_SFT;
}

bool computes_no_reference(const struct job *j)
{
    return j->precomputed && j->task != TASK_DPO && j->task != TASK_KTO;
}

bool asks_before_its_end(const struct job *j)
{
    return j->prompt >= j->context && j->context;
}

bool teaches_nobody(const struct job *j)
{
    return settings_find_z(j->given, "teacher") && j->task != TASK_DISTILL && j->task != TASK_OPD;
}

bool prompts_for_nothing(const struct job *j)
{
    bool texts = j->task == TASK_SFT || j->task == TASK_PRETRAIN || j->task == TASK_REWARD;
    return texts && (settings_find_z(j->given, "prompt") || settings_find_z(j->given, "response"));
}

bool sizes_no_image(const struct job *j)
{
    return settings_find_z(j->given, "image-size") != NULL;
}

bool is_rank_of_no_ring(const struct job *j)
{
    return settings_find_z(j->given, "cp-rank") != NULL;
}

bool sizes_no_evaluation(const struct job *j)
{
    return settings_find_z(j->given, "eval-size") && !j->evaluation_batch;
}

// On the GPUs that train, where nobody gives it others.
bool generates_in_turn(const struct job *j)
{
    return !settings_find_z(j->given, "rollout");
}

bool has_kl_elsewhere(const struct job *j)
{
    return settings_find_z(j->given, "beta") && (!job_generates(j) || j->task == TASK_DISTILL);
}

bool distills(const struct job *j) // from a model that is told
{
    return is_trl(j) && j->task == TASK_DISTILL && j->teacher;
}

bool is_older_task(const struct job *j)
{
    return j->task != TASK_SFT && is_trl(j) && j->version == 0;
}

bool is_unpredicted_policy_task(const struct job *j)
{
    return is_verls(j) && j->task != TASK_GRPO && !(is_trinity(j) && j->task == TASK_CAPACITY);
}

bool offloads_activations(const struct job *j)
{
    return j->activation_offload;
}

bool offloads_elsewhere(const struct job *j)
{
    return j->activation_offload && !is_trl(j);
}

// trl 1.16: sft_, reward_, dpo_ and kto_config.py have it, the others not.
bool offloads_in_another_trainer(const struct job *j)
{
    return j->activation_offload && j->task != TASK_SFT && j->task != TASK_REWARD &&
           j->task != TASK_DPO && j->task != TASK_KTO;
}

bool offloads_reentrantly(const struct job *j)
{
    return j->activation_offload && j->reentrant;
}

// verl/workers/fsdp_workers.py: use_reentrant False; megatron/core/tensor_parallel/random.py.
bool has_own_checkpoints(const struct job *j)
{
    return is_verls(j) || is_of(j, RECIPE_MEGATRON);
}

bool offloads_another_loss(const struct job *j)
{
    return j->activation_offload && !job_fuses_head(j);
}

bool offloads_twice(const struct job *j)
{
    return j->activation_offload && j->checkpoint_offload;
}

bool has_own_buckets(const struct job *j)
{
    return j->zero_buckets == BUCKETS_OF_DEEPSPEED || job_says_zero_sizes(j);
}

bool packs_samples_elsewhere(const struct job *j)
{
    return j->sample_tokens && (j->recipe != RECIPE_DEEPSPEED || !job_attends_by_package(j) ||
                                j->batching != BATCHING_FULL);
}

bool tiles_mlp(const struct job *j)
{
    return j->tiled_mlp;
}

bool tiles_special_mlp(const struct job *j)
{
    return j->tiled_mlp && is_special_family(j);
}

bool tiles_elsewhere(const struct job *j)
{
    return j->tiled_mlp && !is_deepspeed(j) && !is_of(j, RECIPE_HF);
}

bool has_liger_layers(const struct job *j)
{
    return j->layer_kernels == KERNELS_OF_LIGER;
}

bool has_spread_liger_layers(const struct job *j)
{
    bool split = j->ulysses > 1 && !is_deepspeed(j) && !is_of(j, RECIPE_HF);
    return has_liger_layers(j) && split;
}

bool has_special_liger_layers(const struct job *j)
{
    static const char *seen = "gemma2"; // w24 and rf13 of tests/runs/real_trainers.jsonl
    return has_liger_layers(j) && is_special_family(j) &&
           !words_have(seen, '|', str_from(j->model.family->model_type));
}

bool has_other_liger_layers(const struct job *j)
{
    return has_liger_layers(j) && (is_asked_eager(j) || is_policy(j));
}

bool is_chunked_by_hand(const struct job *j)
{
    return !is_trl(j);
}

bool loss_is_given(const struct job *j)
{
    return settings_find_z(j->given, "loss") != NULL;
}

// An embedding has no row behind its last.
bool passes_learned_positions(const struct job *j)
{
    return model_has(&j->model, FEATURE_POSITIONS) && j->context > j->model.max_position;
}

bool is_packed_otherwise(const struct job *j)
{
    return j->model.packing && !j->model.packing->nf4;
}

bool is_nf4_unsaid(const struct job *j)
{
    return j->model.packing && j->model.packing->nf4 && !j->packed;
}

bool has_no_muon(const struct job *j)
{
    return is_trl(j) || is_of(j, RECIPE_TRANSFORMERS);
}

// llamafactory/third_party/muon, axolotl/core/builders/base.py (axolotl.contribs).
bool has_own_muon(const struct job *j)
{
    return is_trainers(j) && !is_of(j, RECIPE_TRANSFORMERS);
}

bool is_older_than_muon(const struct job *j)
{
    enum { MUON_SINCE = 9 };
    return j->torch_minor < MUON_SINCE;
}

bool attends_plainly(const struct job *j)
{
    return job_attention_kernel(j) >= KERNEL_EFFICIENT;
}

bool cuts_head_apart(const struct job *j)
{
    return (is_of(j, RECIPE_HF) || j->lora_rank) && has_untied_head(j);
}

bool has_own_adapters(const struct job *j)
{
    return is_of(j, RECIPE_AXOLOTL) || is_of(j, RECIPE_LLAMAFACTORY);
}

bool trains_as_axolotl(const struct job *j)
{
    return is_of(j, RECIPE_AXOLOTL);
}

// llamafactory/model/loader.py of 0.9.5: torch_dtype auto; patcher.py of 0.9.1: the type that is
// computed in, but under FSDP.
bool loads_as_saved(const struct job *j)
{
    return is_of(j, RECIPE_LLAMAFACTORY) && (!job_stands_on_4(j) || job_is_sharded(j));
}

bool has_other_step_in_fp32(const struct job *j)
{
    return !is_of(j, RECIPE_HF) && !is_of(j, RECIPE_TRANSFORMERS) && !is_trl(j);
}

bool has_long_parts(const struct job *j)
{
    return u64_divide_up(j->parameters.total, job_ranks(j)) > INT32_MAX;
}

// deepspeed 0.19.8, runtime/swap_tensor/partitioned_param_swapper.py, get_buffer: an assertion.
bool passes_file_buffer(const struct job *j)
{
    return u64_divide_up(j->model.vocab * j->model.hidden, job_ranks(j)) > ZERO_FILE_BUFFER;
}

bool has_narrow_embedding(const struct job *j) // in the state of the plain step
{
    return job_has_8bit_optimizer(j) && j->optimizer != OPTIMIZER_ADAMW_8BIT_HF;
}

bool has_no_bf16(const struct job *j)
{
    enum { AMPERE = 80 };
    return j->hardware.card.capability && j->hardware.card.capability < AMPERE;
}

bool trains_in_bf16_only(const struct job *j)
{
    return has_no_bf16(j) && (is_verls(j) || is_megatron(j));
}

bool packs_without_bf16(const struct job *j)
{
    return is_trl(j) && has_no_bf16(j);
}

bool has_flash_without_half(const struct job *j)
{
    return job_attends_by_package(j) && (has_no_bf16(j) || j->precision == PRECISION_FP32);
}
