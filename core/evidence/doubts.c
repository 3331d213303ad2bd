// What nobody measured, as rows: when it matters, and what it is.
#include "core/evidence/evidence.h"

#include "core/allocator/torch.h"

enum { ZERO3_MEASURED_TOKENS = 32768 }; // tests/runs/h200_zero.jsonl
enum { PACKED_MEASURED_TOKENS = 1536 };

_Static_assert(TORCH_NEWEST == 11, "the doubt about other versions of torch names this one");

static bool has_collectives(const struct job *job)
{
    return job_ranks(job) > 1;
}

static bool is_other_architecture(const struct job *job)
{
    return job->hardware.card.capability != 90;
}

static bool is_other_torch(const struct job *job)
{
    return job->torch_minor != TORCH_NEWEST;
}

static bool uses_host(const struct job *job)
{
    return (job->offload && !job_is_zero(job)) || job->checkpoint_offload ||
           job->activation_offload;
}

// Unlike ao1 to ao3 of real_trainers.jsonl: which of what is kept are views, families decide.
static bool is_other_hosted(const struct job *job)
{
    return job->activation_offload && !job->checkpointing &&
           !words_have("qwen3", '|', str_from(job->model.family->model_type));
}

static bool is_long_zero3(const struct job *job)
{
    return job->strategy == STRATEGY_ZERO3 && job_tokens(job) > ZERO3_MEASURED_TOKENS;
}

static bool is_zero_alone(const struct job *job)
{
    return job_is_zero(job) && job_ranks(job) == 1;
}

// Unlike the runs of tests/runs/h200_cp.jsonl.
static bool is_other_ring(const struct job *job)
{
    return job->ring > 1 && (job->precision != PRECISION_MIXED || job->batch != 1 || job->offload ||
                             model_has(&job->model, FEATURE_EXPERTS));
}

// Unlike tests/runs/h200_cp.jsonl and real_trainers.jsonl.
static bool is_other_trl(const struct job *job)
{
    return job->recipe == RECIPE_TRL && job->loss != LOSS_CHUNKED;
}

// Of the run of real_trainers.jsonl that generates, s12, training needs more.
static bool is_generated(const struct job *job)
{
    return job_generates(job);
}

// rf9 and j20 of real_trainers.jsonl: what is reserved is exact, and 5.5 % too much.
static bool is_generated_in_units(const struct job *job)
{
    return job_generates(job) && job->strategy == STRATEGY_FSDP1;
}

// As the libraries run them, drawn at random and predicted before they were measured (n1_0 to n2_65
// of real_trainers.jsonl): 8-bit and paged optimizers, SGD, DoRA, dropout, ddp, evaluations.
static bool is_of_libraries(const struct job *job)
{
    return job->recipe == RECIPE_TRANSFORMERS || job->recipe == RECIPE_TRL;
}

static bool evaluates(const struct job *job)
{
    return job->evaluation_batch > 0;
}

static bool evaluates_elsewhere(const struct job *job)
{
    return evaluates(job) && !is_of_libraries(job);
}

static bool uses_files(const struct job *job)
{
    return job->traits & IS_NVME;
}

static bool keeps_logits(const struct job *job)
{
    return job->keeps_logits;
}

static bool is_replicated(const struct job *job)
{
    return job->replicas > 1;
}

// core/recipes/evaluate.c
static bool evaluates_whole(const struct job *job)
{
    return evaluates(job) && job->ring > 1 && job->recipe == RECIPE_TRL;
}

// Only these ask the card for anything.
static bool saves(const struct job *job)
{
    bool gathers = job->strategy == STRATEGY_ZERO3 || job->strategy == STRATEGY_FSDP1 ||
                   job->strategy == STRATEGY_FSDP2;
    return job->saving == SAVING_WHOLE && (gathers || model_has(&job->model, FEATURE_EXPERTS));
}

// TRL and transformers' Trainer were measured with it, DeepSpeed in the plain step without.
static bool has_other_overlap(const struct job *job)
{
    bool with = job->recipe == RECIPE_TRL || job->recipe == RECIPE_TRANSFORMERS;
    bool other = job->overlap_comm != with;
    return job->strategy == STRATEGY_ZERO2 && !job->offload && other;
}

// t11 of real_trainers.jsonl was on one GPU, dz3 under zero3.
static bool is_distilled_spread(const struct job *job)
{
    bool measured = job->strategy == STRATEGY_ZERO1 || job->strategy == STRATEGY_ZERO3;
    return job->teacher != NULL && job_ranks(job) > 1 && !measured;
}

static bool has_fused_kernels_spread(const struct job *job)
{
    return job->fused_kernels && job_ranks(job) > 1;
}

static bool saves_entropy_spread(const struct job *job)
{
    return job->entropy_saving && job_ranks(job) > 1;
}

static bool is_of_trainer(const struct job *job)
{
    return job->recipe == RECIPE_TRANSFORMERS;
}

static bool is_megatron(const struct job *job)
{
    return job->recipe == RECIPE_MEGATRON;
}

// Unlike tests/runs/megatron_b200.csv.
static bool is_recomputed_by_megatron(const struct job *job)
{
    return is_megatron(job) && (job->checkpointing || job->selective);
}

static bool has_megatrons_own_loss(const struct job *job)
{
    return is_megatron(job) && job->loss != LOSS_FUSED;
}

static bool is_handed_round_by_megatron(const struct job *job)
{
    return is_megatron(job) && job->ring > 1 && job->context_comm == CONTEXT_HANDED;
}

static bool is_other_model_of_megatron(const struct job *job)
{
    const feature_set others = FEATURE_TIED | FEATURE_QKV_BIAS | FEATURE_QK_NORM;
    bool cut = (job->tensor > 1 && model_has(&job->model, FEATURE_EXPERTS)) ||
               job->interleaved > 1 || job->precision_aware;
    return is_megatron(job) && (cut || job->batch > 1 || (job->model.features & others));
}

static bool is_trl_alone(const struct job *job)
{
    return job->recipe == RECIPE_TRL && job->strategy == STRATEGY_SINGLE;
}

// Unlike lg3 and lg4 of real_trainers.jsonl.
static bool has_ringed_kernels(const struct job *job)
{
    return job->layer_kernels == KERNELS_OF_LIGER && job->ring > 1;
}

static bool is_liger_spread(const struct job *job)
{
    return job->loss == LOSS_LIGER &&
           (job->strategy == STRATEGY_DDP ||
            (job_is_sharded(job) && !is_of_trainer(job) && !job_is_zero(job)));
}

// Unlike tests/runs/h200_lora.jsonl.
static bool is_other_8bit(const struct job *job)
{
    return job_has_8bit_optimizer(job) && !is_of_libraries(job) &&
           (job->recipe != RECIPE_HF || job->strategy != STRATEGY_SINGLE);
}

static bool is_fp16(const struct job *job)
{
    return job->precision == PRECISION_FP16 && !is_trl_alone(job); // h16 of real_trainers.jsonl
}

static bool is_adapted_in_fp32(const struct job *job) // rf19 of real_trainers.jsonl
{
    return job->precision == PRECISION_FP32 && job->recipe == RECIPE_TRL &&
           job->strategy == STRATEGY_FSDP2 && job->lora_rank;
}

static bool is_fp32(const struct job *job)
{
    return job->precision == PRECISION_FP32 && !is_adapted_in_fp32(job);
}

// TRL's step was compared with the library's on fake tensors too
// (tests/runs/bf16_autocast_fake.jsonl).
static bool is_narrow_under_autocast(const struct job *job)
{
    return job->precision == PRECISION_BF16_AUTOCAST && !is_of_libraries(job);
}

static bool attends_plainly(const struct job *job)
{
    bool seen = job->task == TASK_DISTILL || is_adapted_in_fp32(job); // t11 of real_trainers.jsonl
    return !seen && !job_attends_eagerly(job) && job_attention_kernel(job) >= KERNEL_EFFICIENT;
}

static bool is_muon(const struct job *job)
{
    return job->optimizer == OPTIMIZER_MUON;
}

// Unlike t14, w2, x19, x30, y6, n1_12 and n1_61 of real_trainers.jsonl.
static bool is_other_adafactor(const struct job *job)
{
    bool measured = job->strategy == STRATEGY_SINGLE ||
                    (is_of_libraries(job) && job->strategy == STRATEGY_DDP) ||
                    (job->recipe == RECIPE_TRL && job_is_sharded(job));
    return job->optimizer == OPTIMIZER_ADAFACTOR && !measured;
}

static bool is_paged(const struct job *job)
{
    return job_pages_optimizer(job) && !(is_of_libraries(job) && job_has_8bit_optimizer(job));
}

static bool is_ddp_spread(const struct job *job)
{
    return job->strategy == STRATEGY_DDP && job_ranks(job) > 1 && !is_of_libraries(job);
}

static bool is_fsdp1_whole(const struct job *job)
{
    bool trainer = is_of_trainer(job) || job->recipe == RECIPE_TRL; // b6 and b24 there
    return job->strategy == STRATEGY_FSDP1 && !job->checkpointing && !trainer;
}

// Others measured six such jobs on A100s: what torch allocated, and nvidia-smi's figure
// (tests/runs/public_jobs.jsonl).
static bool is_older_trainer(const struct job *job)
{
    return job_stands_on_4(job);
}

static bool is_fsdp1_in_bf16(const struct job *job)
{
    return job->strategy == STRATEGY_FSDP1 && job->precision == PRECISION_BF16;
}

static bool is_adam_ds(const struct job *job)
{
    return job->optimizer == OPTIMIZER_ADAM_DS;
}

static bool is_sgd(const struct job *job)
{
    return job->optimizer == OPTIMIZER_SGD && !is_of_libraries(job);
}

static bool has_odd_experts(const struct job *job)
{
    return model_has(&job->model, FEATURE_EXPERTS) && (job->ulysses > 1 || job->offload);
}

// tests/runs/sharded_experts.jsonl: as predicted, but where two runs of one job differ.
static bool has_sharded_experts(const struct job *job)
{
    bool waits = job->strategy == STRATEGY_FSDP1 || job->strategy == STRATEGY_ZERO3;
    bool other = job_is_zero(job) && job->recipe != RECIPE_TRANSFORMERS;
    return model_has(&job->model, FEATURE_EXPERTS) &&
           (waits || other || job->recipe == RECIPE_TRINITY || job->recipe == RECIPE_VERL);
}

static bool is_hybrid(const struct job *job)
{
    bool trainer = job->recipe == RECIPE_TRANSFORMERS || job->recipe == RECIPE_TRL;
    return model_has(&job->model, FEATURE_DELTA_NET) &&
           (!trainer || job->strategy != STRATEGY_SINGLE);
}

// j46 of real_trainers.jsonl, run three times: 9 to 10 % more in its later steps than is predicted.
static bool is_kto_in_parts(const struct job *job)
{
    return job->task == TASK_KTO && job->strategy == STRATEGY_ZERO3;
}

static bool is_unmeasured_family(const struct job *job)
{
    return job->model.family->unmeasured;
}

static bool is_likened(const struct job *job)
{
    return job->model.likened != NULL;
}

static bool is_likeness(const struct job *job)
{
    return job->model.like != NULL;
}

// Unlike tests/runs/h200_zero.jsonl: Qwen, Llama and Mistral; v5, w19 and w24 of
// real_trainers.jsonl, and h200_family_trainers.jsonl.
static bool is_other_under_zero(const struct job *job)
{
    struct str type = str_from(job->model.family->model_type);
    const feature_set measured = FEATURE_TIED | FEATURE_QKV_BIAS | FEATURE_QK_NORM;
    bool other = (job->model.features & ~measured) || job_has_windows(job);
    bool said = job->model.family->unmeasured || model_has(&job->model, FEATURE_EXPERTS) ||
                job->model.vision.depth > 0;
    bool seen = job->recipe == RECIPE_TRL &&
                ((job->strategy == STRATEGY_ZERO3 && words_have("gemma2|phi3", '|', type)) ||
                 (job->strategy == STRATEGY_ZERO2 && words_have("gemma2|glm4", '|', type)));
    bool trained = is_of_trainer(job) && job->strategy == STRATEGY_ZERO3 && str_is(type, "gemma2");
    return job_is_zero(job) && other && !said && !seen && !trained;
}

// Unlike tests/runs/h200_vl.jsonl.
static bool is_other_vision(const struct job *job)
{
    bool alone = job->strategy == STRATEGY_SINGLE && job->recipe == RECIPE_HF;
    bool adapted = job->lora_rank && job->recipe != RECIPE_TRL;
    bool idle = !job->images && !(job->freeze == FREEZE_VISION && job->strategy == STRATEGY_FSDP2 &&
                                  job->recipe == RECIPE_TRANSFORMERS);
    bool fsdp1 = job->strategy == STRATEGY_FSDP1 && job->recipe == RECIPE_TRANSFORMERS;
    bool trainer = (job->recipe == RECIPE_TRANSFORMERS || job->recipe == RECIPE_TRL) &&
                   (fsdp1 || job->strategy == STRATEGY_SINGLE || job->strategy == STRATEGY_FSDP2 ||
                    job->strategy == STRATEGY_ZERO2 || job->strategy == STRATEGY_ZERO3);
    return job->model.vision.depth && (idle || adapted || !(alone || trainer));
}

static bool has_patches(const struct job *job)
{
    return job->images > 0;
}

static bool is_other_latent_attention(const struct job *job)
{
    return model_has(&job->model, FEATURE_MLA) && job_ranks(job) > 1;
}

static bool is_odd_sequence_parallel(const struct job *job)
{
    return job->ulysses > 1 &&
           (job->model.sliding_window != 0 || model_has(&job->model, FEATURE_ATTENTION_CAP));
}

// Unlike tests/runs/h200_lora.jsonl (Llama, Qwen2.5 and Qwen3, with a full loss or Liger's) and
// real_trainers.jsonl and h200_family_trainers.jsonl (TRL's own loss).
static bool is_other_adapter(const struct job *job)
{
    static const char anywhere[] = "llama|mistral|qwen2|qwen3|qwen3_vl";
    static const char in_trl[] =
        "bloom|cohere2|ernie4_5|exaone4|falcon|gemma|gemma2|gemma3_text|glm|glm4|gpt2|gpt_bigcode|"
        "gpt_neox|gptj|hunyuan_v1_dense|ministral3|nemotron|olmo2|olmo3|olmoe|opt|phi|phi3|"
        "qwen2_moe|qwen3_5_text|qwen3_moe|qwen3_vl|seed_oss|stablelm|starcoder2";
    struct str type = str_from(job->model.family->model_type);
    bool family = (words_have(anywhere, '|', type) && !job_has_windows(job)) ||
                  (job->recipe == RECIPE_TRL && words_have(in_trl, '|', type));
    bool loss = job->loss == LOSS_FULL || job->loss == LOSS_LIGER || job_fuses_head(job);
    return job->lora_rank && (!family || !loss);
}

// What is allocated then was seen in one public job of fsdp1 (tests/measured/public_jobs.py).
static bool is_adapter_spread(const struct job *job)
{
    bool own_loop = job->recipe == RECIPE_HF && job->strategy == STRATEGY_FSDP2;
    bool known = job->recipe == RECIPE_TRL || is_of_trainer(job);
    bool other = !known && (job_is_zero(job) || job->strategy == STRATEGY_FSDP1);
    return job->lora_rank && (own_loop || other);
}

static bool trains_modules_beside_packed(const struct job *job)
{
    return job->lora_whole && job->packed;
}

static bool trains_modules_whole(const struct job *job) // tests/runs/whole_fake.jsonl
{
    return job->lora_whole && !job->packed;
}

// Unlike do1 to do3, w21, w55, y4, y7, y20 and y26 of real_trainers.jsonl.
static bool is_other_dora(const struct job *job)
{
    bool sharded = job->strategy == STRATEGY_FSDP2 || job->strategy == STRATEGY_ZERO2 ||
                   job->strategy == STRATEGY_ZERO3;
    bool measured = is_of_libraries(job) && (job->strategy == STRATEGY_SINGLE || sharded);
    return job->dora && !measured;
}

// Of what torch allocated under fsdp1 others measured jobs (tests/runs/public_jobs.jsonl).
static bool drops_otherwise(const struct job *job)
{
    bool in_units = job->strategy == STRATEGY_FSDP1 || job->strategy == STRATEGY_DDP;
    bool packed_apart = job->packed && job->strategy != STRATEGY_SINGLE;
    return job_drops_in_adapters(job) && (in_units || packed_apart);
}

static bool is_packed_and_short(const struct job *job)
{
    return job->packed && job_tokens(job) <= PACKED_MEASURED_TOKENS;
}

// What is allocated then was seen in two public jobs (tests/measured/public_jobs.py), which were
// prepared.
static bool is_packed_in_fp32(const struct job *job)
{
    bool alone = job->recipe == RECIPE_TRL && job->strategy == STRATEGY_SINGLE; // n2_9, n2_41
    return job->packed && job->precision == PRECISION_AUTOCAST && !alone;
}

// Of tests/runs/real_trainers.jsonl: q4, q5, rb1 and rb4.
static bool is_packed_spread(const struct job *job)
{
    bool cut = job->strategy == STRATEGY_FSDP1 || job->strategy == STRATEGY_FSDP2 ||
               job->strategy == STRATEGY_ZERO3;
    bool measured = job->recipe == RECIPE_TRL && cut;
    return job->packed && job_ranks(job) > 1 && !measured;
}

// Unlike tests/runs/h200_models.jsonl: Gemma 2 and gpt-oss; and b11 and rf15 of
// real_trainers.jsonl.
static bool is_other_eager_attention(const struct job *job)
{
    const feature_set measured = FEATURE_ATTENTION_CAP | FEATURE_SINKS;
    bool seen =
        job->recipe == RECIPE_TRL && str_is(str_from(job->model.family->model_type), "qwen3");
    return job->attention == ATTENTION_EAGER && !seen && !(job->model.features & measured);
}

static bool is_of_verl(const struct job *job)
{
    return job->recipe == RECIPE_VERL;
}

static bool is_packaged_attention(const struct job *job)
{
    return job->attention >= ATTENTION_FLASH2 && job->recipe != RECIPE_TRINITY &&
           job->recipe != RECIPE_VERL;
}

// Read from the sources of DeepSpeed 0.19.8 and ArcticTraining b28638e; its published lengths and
// NVML's figures agree (tests/runs/alst_h100.jsonl). As Accelerate starts it, sequence parallel was
// measured (sp1 to sp14 of real_trainers.jsonl).
static bool is_long_deepspeed(const struct job *job)
{
    bool split = job->ulysses > 1 && !job_shifts_early(job);
    bool fuses = job->loss == LOSS_LIGER && !is_of_libraries(job);
    return job_is_zero(job) && (split || job->tiled_mlp || job->checkpoint_offload || fuses ||
                                job->zero_buckets || job_says_zero_sizes(job));
}

static bool is_flash3(const struct job *job)
{
    return job_attention(job) == ATTENTION_FLASH3;
}

// Unlike tp1 to tp30 of real_trainers.jsonl.
static bool is_other_cut(const struct job *job)
{
    static const char measured[] = "llama|mistral|qwen2|qwen3|qwen3_moe|gemma2|ernie4_5";
    bool narrow = job->precision == PRECISION_BF16 || job->precision == PRECISION_AUTOCAST;
    return job_cuts_tensors(job) &&
           (!words_have(measured, '|', str_from(job->model.family->model_type)) || !narrow ||
            job_attention(job) != ATTENTION_SDPA || job->task == TASK_RLOO ||
            job->batching == BATCHING_PACKED);
}

static bool is_of_axolotl(const struct job *job)
{
    return job->recipe == RECIPE_AXOLOTL;
}

static bool is_of_llamafactory(const struct job *job)
{
    return job->recipe == RECIPE_LLAMAFACTORY;
}

const struct doubt doubt_rows[] = {
    {has_collectives, "NCCL's buffers", false},
    {is_likeness, "this family, predicted as another (--like): a likeness", true},
    {is_likened, "this owner's model (its shapes are taken from the catalogue's of the same name)",
     false},
    {is_other_architecture, "the scratch of attention and sums on this card (taken as on an H200)",
     false},
    {is_other_torch, "the operators of this torch (those of 2.11 are simulated)", false},
    {uses_host, "host memory", false},
    {is_long_zero3,
     "how far the host runs ahead of the card under zero3 with a context this long, for which more "
     "is reserved",
     true},
    {is_zero_alone, "DeepSpeed on one GPU, but for a run of zero2 that reserved 0.9 % less", true},
    {is_other_ring, "context parallel with experts, offload, bf16 or several sequences", true},
    {is_other_trl, "TRL's step with this loss", true},
    {is_other_hosted, "activations in host memory without checkpointing over this family", true},
    {is_long_deepspeed, "DeepSpeed's ways to long contexts here (read from their sources)", true},
    {is_of_axolotl, "axolotl (taken as transformers' Trainer, which was)", true},
    {is_of_llamafactory, "LLaMA-Factory (compared with it on fake tensors)", true},
    {is_generated, "generation by the trainer, and how it fragments memory (read from its source)",
     false},
    {is_generated_in_units,
     "generation under fsdp1, but for two runs, of which one reserved 5 % less", true},
    {is_of_verl, "verl's own trainer (read from its source, played as Trinity's, which was)", true},
    {evaluates_elsewhere, "evaluation (read from the Trainer's source)", false},
    {keeps_logits, "logits that are kept in it", true},
    {uses_files, "offload to NVMe, and host memory beside it (read from DeepSpeed's source)", true},
    {is_replicated, "replicas of shards (read from torch's source)", true},
    {is_recomputed_by_megatron, "Megatron's recomputation (read from its source)", true},
    {has_megatrons_own_loss, "Megatron's own loss (read from its source)", true},
    {is_handed_round_by_megatron,
     "Megatron's context parallel that hands keys round (read from TransformerEngine's source)",
     true},
    {is_other_model_of_megatron, "Megatron over this model or cut like this", true},
    {evaluates_whole,
     "TRL's evaluation under context parallel, in which each GPU reads whole sequences", false},
    {saves, "saving (read from the Trainer's source)", false},
    {has_other_overlap, "zero2 with this choice of overlap_comm", true},
    {is_distilled_spread, "distillation on several GPUs (read from its source)", true},
    {has_fused_kernels_spread, "verl's fused kernels on several GPUs", true},
    {saves_entropy_spread, "entropy saving on several GPUs", true},
    {is_other_cut, "tensor parallel of this family, type, task or attention", true},
    {is_ddp_spread, "ddp on several GPUs (taken as on one)", false},
    {is_fsdp1_whole, "fsdp1 without checkpointing", true},
    {is_fsdp1_in_bf16, "what fsdp1 reserves in bf16", true},
    {is_older_trainer, "what transformers 4 reserves", true},
    {is_adam_ds, "DeepSpeed's own Adam (read from its source)", false},
    {is_sgd, "SGD", true},
    {has_odd_experts, "experts under sequence parallel or offload", true},
    {has_sharded_experts,
     "what experts reserve under fsdp1, DeepSpeed or Trinity (two runs of one job differed by 7 %)",
     true},
    {is_liger_spread, "Liger's loss under ddp or fsdp (read from its source)", true},
    {has_ringed_kernels, "Liger's layer kernels under context parallel", true},
    {is_other_8bit, "the 8-bit optimizer in this step or strategy", true},
    {is_paged, "paged state, and how the driver moves it", true},
    {is_muon, "Muon", true},
    {is_other_adafactor, "adafactor on several GPUs", true},
    {is_fp16, "fp16 and its scaler (taken as bf16, which was)", true},
    {is_fp32, "training in fp32", true},
    {is_narrow_under_autocast,
     "bf16 weights under autocast in this step (compared with the libraries on fake tensors)",
     true},
    {attends_plainly, "attention without FlashAttention and cuDNN (read from torch's source)",
     true},
    {is_kto_in_parts, "what KTO reserves under zero3 (9 % more than predicted in one job)", true},
    {is_unmeasured_family, "this family", true},
    {is_other_under_zero, "this family under DeepSpeed", true},
    {is_hybrid,
     "linear attention (taken without flash-linear-attention and causal-conv1d, as torch's "
     "operators)",
     true},
    {is_other_vision, "this way to train a model with vision", true},
    {has_patches, "what cuDNN takes to cut images into patches", false},
    {is_other_latent_attention, "latent attention on several GPUs", true},
    {is_odd_sequence_parallel, "sequence parallel over this family's attention", true},
    {is_other_eager_attention, "eager attention of this family", true},
    {is_packaged_attention, "the package flash-attn in this step", true},
    {is_flash3, "how much faster flash-attn 3 is than 2, whose time is taken", false},
    {is_other_adapter, "adapters with this family or loss", true},
    {is_adapter_spread, "adapters under this strategy (read from the libraries' sources)", true},
    {trains_modules_whole, "modules trained whole beside adapters (seen on fake tensors)", true},
    {trains_modules_beside_packed,
     "modules trained whole beside packed weights (read from the libraries' sources)", true},
    {drops_otherwise, "what adapters with dropout reserve here", true},
    {is_other_dora, "DoRA in this step or strategy (read from peft's source)", true},
    {is_packed_spread, "packed weights on several GPUs", true},
    {is_packed_in_fp32, "what is reserved with fp32 around packed weights", true},
    {is_packed_and_short, "packed weights with so few tokens", false},
};

const ptrdiff_t doubt_row_count = COUNT_OF(doubt_rows);

void doubts_put(struct buf *b, const struct job *job)
{
    for (ptrdiff_t i = 0; i < doubt_row_count; i++)
        if (doubt_rows[i].when(job))
            buf_printf(b, "%s%s", b->n ? "; " : "", doubt_rows[i].what);
}

bool is_doubted(const struct job *job)
{
    for (ptrdiff_t i = 0; i < doubt_row_count; i++)
        if (doubt_rows[i].widens && doubt_rows[i].when(job))
            return true;
    return false;
}
