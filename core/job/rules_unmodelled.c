// What could be, and is not modelled. It stops predictions; files are written all the same.
#include "core/job/rules.h"

#include "core/job/conditions.h"

#define OTHER_FP32                                                                                 \
    "fp32 is modelled in the steps of hf, transformers and trl, on one GPU, under ddp and fsdp2, " \
    "without Liger's kernels"
#define AXOLOTL_FP16 "fp16 is not modelled in the step of axolotl; bf16 is"
#define FACTORY_FP16                                                                               \
    "under fp16 LLaMA-Factory 0.9.5 leaves weights below adapters in the type they are saved in, " \
    "as 0.9.1 does under FSDP, which is not modelled; zero1, zero2 and zero3 cast them, and "      \
    "alone "                                                                                       \
    "or under ddp 0.9.1 loads them in fp16: --recipe llamafactory@0.9.1"
#define PLAIN_SPLIT                                                                              \
    "split sequences are modelled with FlashAttention and cuDNN, which need half precision and " \
    "compute capability 8.0"
#define ZERO3_LOSS                                                                             \
    "zero3 is modelled with the full loss, Liger's and TRL 1.16's fused head only; zero1 and " \
    "zero2 with chunks too"
#define FSDP1_LOSS "fsdp1 is modelled with the full loss and TRL's in its step; fsdp2 with any"
#define SHARDED_LORA                                                                             \
    "LoRA is modelled on one GPU, under ddp, fsdp2 and DeepSpeed, under fsdp1 as transformers' " \
    "Trainer runs it, in TRL over shards as 1.16 does"
#define OTHER_MUON \
    "muon is modelled in hf's step on one GPU and under ddp, without experts and adapters"
#define PACKED_COPY                                                                          \
    "modules trained whole beside packed weights are modelled on one GPU, under ddp, zero1 " \
    "and zero2"
#define PACKED_TOWER \
    "a vision tower in four bits is modelled on one GPU, under ddp, zero1 and zero2"
#define SPREAD_COPY "modules trained whole are not modelled where sequences are split"
#define SPREAD_KERNELS                                                                     \
    "Liger's layer kernels are not modelled under sequence parallel, but in the steps of " \
    "deepspeed and hf"
// liger_kernel 0.8.5, transformers/model/qwen3.py: lm_head_weight=self.lm_head.weight, a DTensor
// where fully_shard has had the head by itself.
#define APART_LIGER                                                                                \
    "liger's loss reads the head's weight, which hf's loop, and accelerate under adapters, shard " \
    "by itself where it is not tied; transformers' Trainer without adapters has it whole there"

const struct rule unmodelled_rules[] = {
    {IS_MEGATRON, IS_SFT | IS_GRPO | IS_OPD, NULL, 0, NOT_YET, "task",
     "of slime's tasks grpo and opd are modelled, and of Megatron's sft"},
    {0, 0, leaves_sizes_open, IN(SLIME), NOT_YET, "tp",
     "launch.sh chooses Megatron's sizes by a rule of thumb; where --tp and --cp are both given, "
     "the job is predicted"},
    {0, 0, has_other_layers_than_megatron, 0, NOT_YET, "model",
     "@family@ is not modelled as Megatron's; Qwen, Llama, Mistral and DeepSeek are, without "
     "windows"},
    {IS_SELECTIVE | IS_CP, 0, NULL, 0, NOT_YET, "checkpointing",
     "selective recomputation is not modelled with context parallel; on and off are"},
    {IS_MEGATRON | IS_LORA, 0, NULL, 0, NOT_YET, "lora", "Megatron has no adapters of its own"},
    {IS_MEGATRON, 0, is_ragged, 0, NOT_YET, "batching",
     "Megatron is modelled with sequences of one length, and slime with them packed"},
    {IS_MEGATRON, 0, evaluates_at_all, 0, NOT_YET, "eval-batch",
     "Megatron's evaluation is not modelled"},
    {IS_MEGATRON, 0, saves, 0, NOT_YET, "save", "Megatron's checkpoints are not modelled"},
    {0, 0, is_unpredicted_task, 0, NOT_YET, "task",
     "the training step of this task is not modelled here; of --recipe trl those of sft, reward, "
     "dpo, kto, grpo, rloo and distill are, and llamafactory's reward and dpo with "
     "adapters"},
    {IS_FSDP, 0, compares_in_factory, 0, NOT_YET, "strategy",
     "LLaMA-Factory's reward and dpo are modelled on one GPU, under ddp and DeepSpeed"},
    {0, 0, compares_oddly_in_factory, 0, NOT_YET, "task",
     "LLaMA-Factory's reward and dpo are modelled in 0.9.5, with rows that are not packed, without "
     "evaluation, offload, Liger's kernels and shared sequences, reward with checkpointing and "
     "adapters alone; --recipe trl has more"},
    {0, 0, has_no_teacher, 0, NOT_YET, "teacher",
     "trl distils from a model beside the trained one: --teacher Qwen3-8B is an example"},
    {IS_REPLICATED, 0, is_verls, 0, NOT_YET, "replicate",
     "replicas of shards are not modelled under @recipe@; in the steps of hf, trl and transformers "
     "they are"},
    {0, 0, saves_elsewhere, 0, NOT_YET, "save",
     "saving is modelled as transformers' Trainer and TRL do it"},
    {0, 0, evaluates_elsewhere, 0, NOT_YET, "eval-batch",
     "evaluation is modelled as transformers' Trainer and TRL do it"},
    {IS_LORA, 0, evaluates_answers, 0, NOT_YET, "eval-batch",
     "evaluation that generates answers is not modelled with adapters, which PEFT runs without "
     "autocast; without them it is"},
    {0, 0, is_ragged_elsewhere, 0, NOT_YET, "batching",
     "packed rows are modelled under --recipe trl, padded ones also under transformers, axolotl "
     "and llamafactory; elsewhere every sequence is full"},
    {IS_SP, 0, is_padded_by_package, 0, NOT_YET, "batching",
     "padded rows are not modelled with flash-attn under sequence parallel; with sdpa they are"},
    {0, 0, keeps_wide_embeddings, 0, NOT_YET, "attention",
     "with this attention axolotl keeps norms, embedding and head in fp32 beside bf16 layers, "
     "which "
     "is not modelled; with --attention flash2, adapters, fsdp or DeepSpeed it does not"},
    {IS_CP, 0, is_ragged, 0, NOT_YET, "batching",
     "padded and packed rows are not modelled under context parallel"},
    {0, 0, is_older_task, 0, NOT_YET, "recipe",
     "this task is modelled as TRL 1.16 trains it: --recipe trl@1.16"},
    {0, 0, is_unpredicted_policy_task, 0, NOT_YET, "task",
     "of the tasks of @recipe@ the step of grpo is modelled"},
    {IS_TP, 0, is_cut_elsewhere, 0, NOT_YET, "tp",
     "tensor parallel is modelled as transformers 5.17 and TRL 1.16 run it, and Megatron: --recipe "
     "trl, transformers or megatron"},
    {IS_TP, 0, is_cut_otherwise, 0, NOT_YET, "tp",
     "transformers cuts @family@ by a plan of its own, or has none, which is not modelled"},
    {IS_TP, 0, is_cut_for_another_task, 0, NOT_YET, "tp",
     "distillation under tensor parallel is not modelled"},
    {IS_TP, 0, is_cut_in_parts, 0, NOT_YET, "tp",
     "tensor parallel is modelled with torch's AdamW, without packed weights, Liger's loss and "
     "activations in host memory"},
    {0, IS_MEGATRON, spreads_experts, 0, NOT_YET, "ep",
     "expert parallel is modelled as Megatron's: --recipe megatron"},
    {IS_NVME, IS_ZERO3, NULL, 0, NOT_YET, "nvme",
     "offload to NVMe is DeepSpeed's, in stage 3: --strategy zero3"},
    {IS_NVME, IS_OFFLOAD_OPTIMIZER, NULL, 0, NOT_YET, "nvme",
     "nothing goes to nvme without --offload"},
    {0, IS_CHECKPOINTING, is_verls, 0, NOT_YET, "checkpointing",
     "the step of @recipe@ is modelled with checkpointing only"},
    {0, 0, strays_from_plain_opt, 0, NOT_YET, "model",
     "@family@ with norms behind its sums or words of another width is modelled on one GPU or "
     "under "
     "ddp, with the whole loss and outside TRL only"},
    {0, 0, is_counted_only, 0, NOT_YET, "model",
     "@family@ is counted, but no step is modelled; fathom probe --engine torch measures one, "
     "with --fake without a GPU"},
    {IS_VISION, 0, is_not_plain, 0, NOT_YET, "recipe",
     "@family@ is modelled in the plain step, transformers' Trainer and TRL's sft; for texts, with "
     "--freeze vision, in those of axolotl and llamafactory"},
    {IS_LORA, 0, has_other_layers, 0, NOT_YET, "lora",
     "LoRA over @family@ is not modelled; over models without latent or linear attention it is"},
    {IS_LORA, 0, adapts_siglips_images, 0, NOT_YET, "images",
     "LoRA over @family@ is modelled for texts, without images"},
    {IS_VISION | IS_ZERO3 | IS_FROZEN_LANGUAGE, 0, NULL, 0, NOT_YET, "freeze",
     "a frozen language model is not modelled under zero3 (what is reserved was 10 % more)"},
    {IS_VISION | IS_FSDP1, 0, has_untrained_part, 0, NOT_YET, "images",
     "under fsdp1 a vision tower is modelled where all of the model is trained: with images, "
     "without freeze"},
    {IS_VISION | IS_NF4, 0, has_images, 0, NOT_YET, "images",
     "a vision tower in four bits is modelled for texts, without images"},
    {IS_VISION | IS_NF4 | IS_FSDP, 0, NULL, 0, NOT_YET, "quantize", PACKED_TOWER},
    {IS_VISION | IS_NF4 | IS_ZERO3, 0, NULL, 0, NOT_YET, "quantize", PACKED_TOWER},
    {IS_LORA | IS_ZERO3, 0, has_siglip, 0, NOT_YET, "strategy",
     "LoRA over @family@ is not modelled under zero3; under zero2 and fsdp2 it is"},
    {IS_VISION | IS_LORA | IS_ZERO3, 0, has_idle_adapters, 0, NOT_YET, "lora",
     "adapters on an idle vision tower are not modelled under zero3: --freeze vision"},
    {IS_VISION | IS_FSDP1 | IS_LORA, 0, NULL, 0, NOT_YET, "lora",
     "adapters of a model with vision are not modelled under fsdp1; under fsdp2 they are"},
    {IS_VISION | IS_LORA, 0, names_no_layer, 0, CANNOT, "lora-targets",
     "these are layers of the language model, which is frozen; all-linear has the tower's"},
    {IS_VISION | IS_SP, 0, NULL, 0, NOT_YET, "sp",
     "sequence parallel is not modelled over @family@"},
    {IS_VISION | IS_CP, 0, NULL, 0, NOT_YET, "cp",
     "context parallel is not modelled over @family@"},
    {0, 0, has_other_attention, 0, NOT_YET, "attention",
     "a vision tower is modelled with sdpa only"},
    {0, 0, has_odd_batches, 0, NOT_YET, "images",
     "images are modelled in full rows that are trained on: no padding, packing or evaluation"},
    {0, 0, keeps_images_elsewhere, 0, NOT_YET, "images",
     "images are not modelled with activations in host memory"},
    {0, 0, is_special_under_trinity, 0, NOT_YET, "model",
     "@family@ is not modelled as @recipe@ trains it; Qwen, Llama and Mistral without windows "
     "are"},
    {0, 0, generates_without_cache, 0, NOT_YET, "task",
     "answers of @family@ are not modelled: generate keeps something else than keys and values, "
     "or in another shape"},
    {0, 0, is_before_grouped_experts, 0, NOT_YET, "recipe",
     "experts are modelled as transformers 5 runs them, all at once; this @recipe@ comes with one "
     "that calls each by itself"},
    {IS_SP, 0, has_own_attention, 0, NOT_YET, "sp",
     "@family@ is not modelled under sequence parallel: leave --sp out"},
    {0, 0, is_latent_and_another, 0, NOT_YET, "attention",
     "latent attention is modelled with sdpa only"},
    {IS_SP, 0, is_asked_eager, 0, NOT_YET, "attention",
     "eager attention is not modelled under sequence parallel; sdpa is"},
    {IS_CP, 0, is_hybrid, 0, NOT_YET, "cp",
     "linear attention is not modelled under context parallel; fsdp2 without it is"},
    {IS_AUTOCAST, 0, multiplies_outside_linear, 0, NOT_YET, "precision",
     "@family@ is not modelled under autocast; bf16 is"},
    // fsdp2 casts a layer's fp32 positions, recomputation gets them as they were (torch 2.11).
    {IS_FSDP2 | IS_MIXED | IS_CHECKPOINTING, 0, has_wide_rotary, 0, CANNOT, "precision",
     "@family@ fails in fsdp2's mixed precision with checkpointing (torch 2.11); fsdp1 and bf16 "
     "work"},
    {IS_FSDP2 | IS_MIXED, 0, has_wide_rotary, 0, NOT_YET, "precision",
     "@family@ in fsdp2's mixed precision is not modelled; fsdp1 and bf16 are"},
    {IS_FSDP | IS_AUTOCAST, 0, has_nothing_to_widen, 0, NOT_YET, "precision",
     "autocast under fsdp is modelled where it says that transformers' Trainer has adapters over "
     "weights in fp32; elsewhere mixed is its policy for bf16 compute"},
    {IS_OFFLOAD_OPTIMIZER, IS_OFFLOAD_ALL | IS_ZERO | IS_MEGATRON, NULL, 0, NOT_YET, "offload",
     "an optimizer in host memory is modelled under DeepSpeed only"},
    {IS_OFFLOAD_ALL | IS_FSDP | IS_BNB, 0, NULL, 0, NOT_YET, "optimizer",
     "bitsandbytes' optimizers are modelled on the card, not in host memory: --optimizer adamw"},
    {IS_OFFLOAD_ALL | IS_FSDP1, 0, is_verls, 0, NOT_YET, "offload",
     "@recipe@ under fsdp1 is not modelled with offload; under fsdp2 it is"},
    {IS_OFFLOAD_ALL, IS_FSDP | IS_ZERO3, NULL, 0, NOT_YET, "offload",
     "offload of everything is modelled under fsdp and zero3, on several GPUs"},
    {IS_SP | IS_ZERO, 0, is_special_family, 0, NOT_YET, "sp",
     "sequence parallel under DeepSpeed is not modelled over @family@; over Qwen, Llama and "
     "Mistral "
     "without experts and windows it is"},
    {IS_SP, 0, has_own_adapters, 0, NOT_YET, "sp",
     "sequence parallel under DeepSpeed is modelled in the steps of trl, transformers, hf and "
     "deepspeed"},
    {IS_SP, IS_FSDP2 | IS_ZERO, is_not_verls, 0, NOT_YET, "sp",
     "sequence parallel is modelled under fsdp2 and DeepSpeed"},
    {IS_SP, 0, has_older_head, 0, NOT_YET, "sp",
     "sequence parallel is modelled as TRL 1.16 trains: --recipe trl@1.16"},
    {IS_CP, IS_FSDP2 | IS_MEGATRON, NULL, 0, NOT_YET, "cp",
     "context parallel is modelled under fsdp2, as in accelerate"},
    {IS_ZERO, IS_MIXED, NULL, 0, NOT_YET, "precision",
     "DeepSpeed is modelled in mixed precision only: bf16 with fp32 master copies"},
    {IS_ZERO, 0, is_special_under_zero, 0, NOT_YET, "strategy",
     "@family@ is not modelled under DeepSpeed; fsdp2 is"},
    {IS_ZERO3 | IS_CHUNKED, 0, calls_its_head, 0, NOT_YET, "loss", ZERO3_LOSS},
    {IS_ZERO3 | IS_NO_LOSS, 0, NULL, 0, NOT_YET, "loss", ZERO3_LOSS},
    {IS_ZERO, IS_RESHARD, NULL, 0, NOT_YET, "reshard",
     "DeepSpeed decides itself what it keeps; reshard off is a policy of fsdp2"},
    {IS_FSDP1 | IS_CHUNKED, 0, is_chunked_by_hand, 0, NOT_YET, "loss", FSDP1_LOSS},
    {IS_FSDP1 | IS_NO_LOSS, 0, NULL, 0, NOT_YET, "loss", FSDP1_LOSS},
    {IS_NF4, 0, is_packed_by_axolotl, 0, NOT_YET, "quantize",
     "packed weights that axolotl shards with patches of its own (monkeypatch/accelerate) are not "
     "modelled; --recipe transformers is the Trainer's step with the file's settings"},
    {IS_ZERO3, 0, is_packed_elsewhere, 0, NOT_YET, "quantize",
     "packed weights under zero3 are modelled as TRL 1.16 and transformers' Trainer run them; in "
     "this step they are under zero2: --strategy zero2"},
    {0, 0, is_packed_elsewhere, 0, NOT_YET, "quantize",
     "nf4 is modelled on one GPU, under ddp, zero1 and zero2, and in mixed precision under fsdp "
     "and "
     "zero3 as TRL 1.16 and transformers' Trainer run it"},
    {IS_NF4 | IS_OFFLOAD_ALL, 0, NULL, 0, NOT_YET, "offload",
     "packed weights are not modelled in host memory; without offload of all they are"},
    {IS_FP32 | IS_NF4, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP16, 0, trains_as_axolotl, 0, NOT_YET, "precision", AXOLOTL_FP16},
    {IS_FP16 | IS_LORA, IS_ZERO, loads_as_saved, 0, NOT_YET, "precision", FACTORY_FP16},
    {IS_FP32, 0, has_other_step_in_fp32, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32 | IS_ZERO, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32 | IS_FSDP1, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32 | IS_LIGER, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32, 0, has_liger_layers, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32, 0, is_latent, 0, NOT_YET, "precision",
     "latent attention is not modelled in fp32; bf16 is"},
    {IS_SP, 0, attends_plainly, 0, NOT_YET, "sp", PLAIN_SPLIT},
    {IS_CP, 0, attends_plainly, 0, NOT_YET, "cp", PLAIN_SPLIT},
    {IS_LORA, 0, names_parts_of_a_layer, 0, CANNOT, "lora-targets",
     "a layer of @family@ computes several of these at once, and peft finds none of that name: "
     "--lora-targets all-linear"},
    {IS_LORA | IS_EXPERTS, 0, adapts_other_experts, 0, NOT_YET, "lora",
     "LoRA over @family@ is not modelled; over the experts of Qwen, Mixtral, OLMoE, GLM-4.5 and "
     "MiniMax-M2 it is, and over gpt-oss's attention"},
    {IS_NF4, 0, packs_gpt_oss, 0, NOT_YET, "quantize",
     "@family@ is saved in MXFP4, over which transformers takes no other packing; over its weights "
     "in "
     "bf16 adapters are modelled"},
    {IS_LORA | IS_EXPERTS, 0, names_experts_elsewhere, 0, NOT_YET, "lora-targets",
     "what the older peft of @recipe@ makes of gate, up and down beside experts is not modelled; "
     "q,k,v,o is, and all-linear, which is that there"},
    {IS_LORA | IS_ZERO3, 0, folds_outside_leaves, 0, NOT_YET, "lora-targets",
     "adapters of experts are modelled under zero3 over Qwen3 and Mixtral; elsewhere q,k,v,o is"},
    {IS_LORA, 0, is_another_recipe_with_adapters, 0, NOT_YET, "lora",
     "LoRA is modelled in the steps of hf, trl, transformers, axolotl, llamafactory and deepspeed"},
    {IS_LORA | IS_FSDP, 0, has_another_step_over_shards, 0, NOT_YET, "lora", SHARDED_LORA},
    // trl/trainer/utils.py, add_fused_lm_head: hidden states go to where the head's shards are.
    {IS_LORA | IS_OFFLOAD_ALL | IS_FSDP2, 0, has_untied_head, 0, NOT_YET, "offload",
     "over adapters TRL computes a head in host memory there, which is not modelled; without "
     "offload it is"},
    {IS_LORA | IS_ZERO3, 0, has_older_head, 0, NOT_YET, "lora", SHARDED_LORA},
    {IS_MUON, 0, has_own_muon, 0, NOT_YET, "optimizer",
     "the Muon of @recipe@ is one of its own and not modelled; --recipe hf has torch's"},
    {IS_MUON | IS_FSDP, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON | IS_ZERO, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON | IS_EXPERTS, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON | IS_LORA, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON, 0, is_older_than_muon, 0, NOT_YET, "optimizer", "torch has muon since 2.9"},
    {IS_ADAFACTOR | IS_EXPERTS, 0, has_other_experts, 0, NOT_YET, "optimizer",
     "adafactor is not modelled over the experts of @family@; adamw-fused is"},
    {0, 0, offloads_another_loss, 0, NOT_YET, "activation-offload",
     "activation-offload is modelled with TRL 1.16's own loss only"},
    {0, 0, offloads_reentrantly, 0, NOT_YET, "activation-offload",
     "activation-offload is modelled without reentrant checkpoints: --reentrant off"},
    {0, 0, offloads_twice, 0, NOT_YET, "activation-offload",
     "activation-offload takes the inputs of recomputed layers along; leave checkpoint-offload "
     "out"},
    {0, 0, has_no_whole_loss, 0, CANNOT, "loss",
     "TRL 1.16 never makes all logits at once, whatever its loss_type says: leave --loss out, or "
     "--recipe trl@1.13 means the older"},
    {0, IS_ZERO, has_own_buckets, 0, CANNOT, "zero-buckets",
     "buckets are a setting of DeepSpeed: --strategy zero3"},
    {IS_ZERO, IS_ZERO3, job_sizes_third_stage, 0, CANNOT, "strategy",
     "of DeepSpeed's sizes only reduce-bucket-size is there before stage 3"},
    {0, IS_ZERO3, tiles_mlp, 0, NOT_YET, "tiled-mlp",
     "a tiled MLP is modelled under zero3, as DeepSpeed's TiledMLP"},
    {0, 0, tiles_elsewhere, 0, NOT_YET, "tiled-mlp",
     "a tiled MLP is modelled in the step of deepspeed: --recipe deepspeed"},
    {0, 0, tiles_special_mlp, 0, NOT_YET, "tiled-mlp",
     "a tiled MLP is not modelled over @family@; over Qwen, Llama and Mistral without experts and "
     "windows it is"},
    {0, 0, packs_samples_elsewhere, 0, NOT_YET, "sample-tokens",
     "samples within a sequence are modelled in the step of deepspeed, with the package "
     "flash-attn: --recipe deepspeed --attention flash2"},
    {IS_LORA, 0, tiles_mlp, 0, NOT_YET, "tiled-mlp", "a tiled MLP is not modelled with LoRA"},
    {0, 0, has_special_liger_layers, 0, NOT_YET, "layer-kernels",
     "Liger's layer kernels are not modelled over @family@; over Qwen, Llama and Mistral without "
     "experts and windows they are"},
    {IS_SP, 0, has_spread_liger_layers, 0, NOT_YET, "layer-kernels", SPREAD_KERNELS},
    {0, 0, has_other_liger_layers, 0, NOT_YET, "layer-kernels",
     "Liger's layer kernels are modelled with sdpa in the steps of hf, transformers and trl"},
    {IS_LIGER | IS_FSDP2, 0, cuts_head_apart, 0, NOT_YET, "loss", APART_LIGER},
    {IS_LIGER, 0, is_trl, 0, NOT_YET, "loss",
     "with use_liger_kernel TRL 1.16 keeps its own fused loss, which is modelled: leave --loss "
     "out; --layer-kernels liger has the rest"},
    {IS_LIGER, 0, changes_logits, 0, NOT_YET, "loss",
     "liger's loss over soft-capped logits or multiplied ones is not modelled; the full loss is"},
    {IS_LORA_WHOLE | IS_FSDP1, 0, NULL, 0, NOT_YET, "lora-whole",
     "modules trained whole beside adapters are not modelled under fsdp1; elsewhere they are"},
    {IS_LORA_WHOLE | IS_FSDP2, 0, copies_tied_embedding, 0, NOT_YET, "lora-whole",
     "a copy of a tied embedding is not modelled under fsdp2; under DeepSpeed it is"},
    {IS_LORA_WHOLE | IS_NF4 | IS_FSDP, 0, NULL, 0, NOT_YET, "lora-whole", PACKED_COPY},
    {IS_LORA_WHOLE | IS_NF4 | IS_ZERO3, 0, NULL, 0, NOT_YET, "lora-whole", PACKED_COPY},
    {IS_LORA_WHOLE | IS_ZERO3, 0, reads_originals, 0, NOT_YET, "lora-whole",
     "modules trained whole beside adapters are not modelled under zero3 where a reference is "
     "read; "
     "under zero2 and fsdp2 they are"},
    {IS_LORA_WHOLE | IS_VISION, 0, NULL, 0, NOT_YET, "lora-whole",
     "modules trained whole are not modelled in a model with vision"},
    {IS_LORA_WHOLE | IS_SP, 0, NULL, 0, NOT_YET, "sp", SPREAD_COPY},
    {IS_LORA_WHOLE | IS_CP, 0, NULL, 0, NOT_YET, "cp", SPREAD_COPY},
    {IS_LORA_WHOLE | IS_OFFLOAD_OPTIMIZER, 0, NULL, 0, NOT_YET, "offload",
     "modules trained whole beside adapters are not modelled with offload"},
    {IS_LORA_DROPOUT | IS_DORA, 0, NULL, 0, NOT_YET, "lora-dropout",
     "a dropout before adapters is not modelled with DoRA, which runs the base once more for it"},
    {0},
};
