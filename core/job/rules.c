// The rules, in the order in which they are looked at: what no framework can do, what recipes and
// strategies need, what each target cannot run, what is not modelled.
#include "core/job/rules.h"

#include "core/job/conditions.h"

#define SHARDED (IS_FSDP | IS_ZERO)

// Nothing else warns: torch counts emulation as support (cuda.is_bf16_supported, seen in 2.15), and
// with it transformers 5.17's Trainer (is_torch_bf16_gpu_available).
#define NO_BF16                                                                                    \
    "@gpu@ has no bf16, which torch only emulates there, without tensor cores: --precision fp16; " \
    "cards of compute capability 8.0 and later have it"
// trl 1.16, trainer/sft_trainer.py and the others: param.data.to(torch.bfloat16). torch 2.11:
// "_amp_foreach_non_finite_check_and_unscale_cuda" not implemented for 'BFloat16' (trl#4901).
#define NO_BF16_ADAPTERS                                                                       \
    "TRL makes adapters over packed weights bf16, which @gpu@ has not, and torch's scaler of " \
    "fp16 does not know: --recipe transformers trains them in fp16, or leave quantize out"
#define NO_SCALED_ADAPTERS                                                                      \
    "TRL makes adapters over packed weights bf16, which torch's scaler of fp16 does not know: " \
    "--precision bf16"
#define NO_FLASH                                                                            \
    "the package flash-attn needs half precision and compute capability 8.0; sdpa attends " \
    "everywhere"
#define OTHER_FP32                                                                               \
    "fp32 is modelled in the steps of hf and transformers, on one GPU and under ddp and fsdp2, " \
    "without Liger's kernels"
#define OTHER_FP16 "fp16 is not modelled under fsdp1 and in the steps of axolotl and LLaMA-Factory"
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
// Seen with bitsandbytes 0.50.2 and torch 2.11: "got mixed torch.Tensor and DTensor".
#define FSDP2_BNB                                                                                \
    "bitsandbytes' optimizers cannot step over fsdp2's shards, which are DTensors; single, ddp " \
    "and DeepSpeed run them, and fsdp2 runs adamw-fused"
// accelerate 1.15, utils/deepspeed.py, map_pytorch_optim_to_deepspeed.
#define HOST_BNB                                                                                  \
    "with an offloaded optimizer Accelerate puts DeepSpeed's own Adam in the place of this one: " \
    "--optimizer adamw"
// bitsandbytes 0.50, backends/cuda/ops.py: ct.c_int32(g.numel()).
#define LONG_BNB                                                                                 \
    "bitsandbytes counts a tensor's elements in 32 bits, and a rank's part of this model under " \
    "@strategy@ is longer; zero3 has it in pieces, and more GPUs have smaller parts"
// Seen with transformers 5.17 and torch 2.11: "got mixed torch.Tensor and DTensor".
#define FSDP2_ADAFACTOR                                                                         \
    "transformers' adafactor cannot step over fsdp2's shards, which are DTensors; single, ddp " \
    "and DeepSpeed run it"
#define OTHER_MUON \
    "muon is modelled in hf's step on one GPU and under ddp, without experts and adapters"
// Seen with peft 0.21 and torch 2.11: IndexError in tuners/lora/dora.py, get_lora_weight.
#define FSDP1_DORA                                                                                \
    "DoRA does not run under fsdp1: peft asks a shard for its layer's width; single, ddp, fsdp2 " \
    "and DeepSpeed run it"
#define PACKED_DORA        "DoRA over packed weights is not modelled where they are shards"
#define SPREAD_ACTIVATIONS "activation-offload is not modelled under DeepSpeed and context parallel"
#define SPREAD_KERNELS                                                                          \
    "Liger's layer kernels are not modelled under zero1, zero2 and sequence parallel, but for " \
    "zero3 in the step of deepspeed"
// liger_kernel 0.8.5, transformers/model/qwen3.py: lm_head_weight=self.lm_head.weight, a DTensor
// where fully_shard has had the head by itself.
#define APART_LIGER                                                                                \
    "liger's loss reads the head's weight, which hf's loop, and accelerate under adapters, shard " \
    "by itself where it is not tied; transformers' Trainer without adapters has it whole there"

#define MEGATRON_LOSS                                                                   \
    "Megatron computes its loss over the vocabulary's parts: --loss full, or fused as " \
    "TransformerEngine does it"
#define MEGATRON_ADAM "Megatron's Adam is TransformerEngine's FusedAdam: leave --optimizer out"

#define CANNOT  ERROR_BAD_INPUT
#define NOT_YET ERROR_UNSUPPORTED

const struct rule rules[] = {
    {.test = has_no_context,
     .code = CANNOT,
     .setting = "context",
     .why = "no context is given; --context 32k is an example"},
    {.test = is_packed_otherwise,
     .code = NOT_YET,
     .setting = "model",
     .why = "these weights are packed (GPTQ, AWQ, FP8 and GGUF are not modelled); name the model "
            "that they were made of"},
    {.test = is_nf4_unsaid,
     .code = CANNOT,
     .setting = "model",
     .why = "these weights are packed by bitsandbytes: adapters train over them with --quantize "
            "nf4 --lora 16, or name the model that they were made of"},
    {0, IS_VISION, has_images, 0, CANNOT, "images", "@family@ reads no images"},
    {0, IS_VISION, freezes_part, 0, CANNOT, "freeze",
     "freeze names a part of a model with vision, which @family@ is not"},
    {IS_VISION, 0, trains_nothing, 0, CANNOT, "freeze",
     "without images the vision tower has nothing to be trained on: --images 1"},
    {IS_VISION, 0, has_odd_images, 0, CANNOT, "image-size",
     "one side of an image may be 200 times as long as the other, no more"},
    {IS_VISION, 0, has_no_room_for_text, 0, CANNOT, "images",
     "the images of a sequence take @image_tokens@ tokens of its context and leave none for text"},
    {IS_VISION, 0, has_unfit_tower, 0, CANNOT, "images",
     "the tower's out_hidden_size is not the hidden_size of the text: no image can stand in it"},
    {IS_VISION | IS_DDP, 0, has_idle_tower, 0, CANNOT, "freeze",
     "without images ddp waits for gradients that the vision tower never gets: --freeze vision"},
    {.test = is_another_recipe,
     .in = IN_EVERY_TARGET,
     .code = CANNOT,
     .setting = "recipe",
     .why =
         "files for @target@ run another training step: --recipe @target_recipe@, or leave it out"},

    // What recipes need.
    {IS_DDP, 0, is_verls, 0, CANNOT, "strategy", "@recipe@ trains under fsdp1 or fsdp2"},
    {IS_ZERO, 0, is_verls, 0, CANNOT, "strategy", "@recipe@ trains under fsdp1 or fsdp2"},
    {0, IS_FSDP, is_verls, 0, CANNOT, "strategy", "@recipe@ trains under fsdp1 or fsdp2"},
    {0, IS_MIXED, is_verls, 0, CANNOT, "precision",
     "@recipe@ trains fp32 shards with bf16 compute: --precision mixed"},
    {0, IS_MIXED, is_megatron, 0, CANNOT, "precision",
     "Megatron keeps fp32 masters of bf16 weights: --precision mixed"},
    {IS_MEGATRON, 0, has_megatrons_strategy_elsewhere, 0, CANNOT, "strategy",
     "megatron is the strategy of --recipe megatron"},
    {IS_PP, 0, has_stages_elsewhere, 0, CANNOT, "pp",
     "stages are Megatron's: --recipe megatron; fsdp2 shards over all GPUs"},
    {0, IS_MEGATRON, talks_otherwise, 0, CANNOT, "cp-comm",
     "cp-comm is Megatron's: --recipe megatron; torch's context parallel hands keys and values "
     "round"},
    {IS_MEGATRON | IS_CP, 0, deals_latent_heads, 0, CANNOT, "cp-comm",
     "TransformerEngine does not deal out heads of latent attention: --cp-comm p2p"},
    {IS_MEGATRON | IS_CP, 0, deals_heads_unevenly, 0, CANNOT, "cp",
     "a2a deals out the @kv_heads@ heads of keys and values by tp @tp@ times cp @cp@, which does "
     "not divide them: --cp-comm p2p"},
    {0, 0, has_no_such_stage, 0, CANNOT, "pp-rank", "the stages of pp @pp@ are 0 to @last_pp@"},
    {IS_MEGATRON | IS_SP, 0, NULL, 0, CANNOT, "sp", "Megatron splits sequences by context: --cp"},
    {0, 0, misses_megatrons_gpus, 0, CANNOT, "gpu",
     "tp @tp@ times pp @pp@ times cp @cp@ does not divide the @gpus@ GPUs"},
    {0, 0, has_ragged_stages, 0, CANNOT, "pp",
     "pp @pp@ times the stages of a rank does not divide the @layers@ layers"},
    {0, 0, has_odd_last_stage, 0, CANNOT, "last-stage-layers",
     "the stages before the last share the other layers of the @layers@ equally, one stage a rank"},
    {0, IS_PP, interleaves, 0, CANNOT, "virtual-pp",
     "stages come in turn where there are several ranks: --pp 2 --virtual-pp 2 is an example"},
    {0, 0, interleaves_too_few, 0, CANNOT, "accum",
     "with several stages a rank the micro-batches are a multiple of pp @pp@"},
    {0, IS_MEGATRON, has_precision_aware_elsewhere, 0, CANNOT, "precision-aware",
     "precision-aware is a setting of Megatron's optimizer: --recipe megatron"},
    {IS_TP, 0, cuts_groups, 0, CANNOT, "tp",
     "tp @tp@ does not divide the @kv_heads@ heads of keys and values"},
    {IS_MEGATRON, 0, deals_experts_unevenly, 0, CANNOT, "ep",
     "ep @ep@ times pp @pp@ divides the @gpus@ GPUs, and ep the @experts@ experts"},
    {0, 0, cuts_experts_otherwise, 0, CANNOT, "etp",
     "Megatron's experts are whole (--etp 1) or cut as the rest is (--etp @tp@)"},
    {IS_MEGATRON, IS_EXPERTS, spreads_experts, 0, CANNOT, "ep", "@family@ has no experts"},
    {IS_TP, 0, cuts_tokens, 0, CANNOT, "context",
     "sequence parallel deals a sequence's tokens out to tp @tp@, which does not divide them"},
    {IS_MEGATRON | IS_CHUNKED, 0, NULL, 0, CANNOT, "loss", MEGATRON_LOSS},
    {IS_MEGATRON | IS_NO_LOSS, 0, NULL, 0, CANNOT, "loss", MEGATRON_LOSS},
    {IS_MEGATRON | IS_LIGER, 0, NULL, 0, CANNOT, "loss", MEGATRON_LOSS},
    {IS_SELECTIVE, IS_MEGATRON, NULL, 0, CANNOT, "checkpointing",
     "selective is Megatron's, which recomputes attention alone: --recipe megatron"},
    {IS_FUSED_LOSS, IS_MEGATRON, NULL, 0, CANNOT, "loss",
     "fused is TransformerEngine's loss in Megatron; --loss liger is fused elsewhere"},
    {IS_MEGATRON, IS_ADAMW, NULL, 0, CANNOT, "optimizer", MEGATRON_ADAM},
    {IS_MEGATRON | IS_FUSED, 0, NULL, 0, CANNOT, "optimizer", MEGATRON_ADAM},
    {IS_MEGATRON | IS_OFFLOAD_ALL, 0, NULL, 0, CANNOT, "offload",
     "Megatron offloads the optimizer: --offload optimizer"},
    {IS_CP, 0, is_verls, 0, CANNOT, "cp", "@recipe@ has no context parallel; --sp is Ulysses"},
    // trl 1.14.2, trainer/grpo_config.py:1055, rloo_config.py:626, distillation_config.py:398.
    {IS_CP, 0, job_generates, 0, CANNOT, "cp",
     "TRL refuses context parallel where the trainer generates (grpo, rloo, distill): its inputs "
     "are made after the batch was divided"},
    {0, IS_POLICY, is_policy, 0, CANNOT, "loss",
     "@recipe@ has a loss of its own, a policy gradient"},
    {IS_POLICY, 0, is_not_policy, 0, CANNOT, "loss",
     "a policy gradient is the loss of trinity and verl; here it is full, chunked:N, none or "
     "liger"},
    {0, IS_ADAMW, is_policy, 0, CANNOT, "optimizer", "@recipe@ has torch's default AdamW only"},
    {IS_FUSED, 0, is_policy, 0, CANNOT, "optimizer", "@recipe@ has torch's default AdamW only"},
    {0, IS_ZERO, is_deepspeed, 0, CANNOT, "strategy",
     "DeepSpeed's strategies are zero1, zero2 and zero3"},
    {IS_NO_LOSS, 0, is_trl, 0, CANNOT, "loss", "TRL trains with a head; hf also without"},
    {IS_CHUNKED, 0, is_trainers, 0, CANNOT, "loss",
     "transformers' Trainer computes the full loss; --recipe trl has a chunked one"},
    {IS_NO_LOSS, 0, is_trainers, 0, CANNOT, "loss",
     "transformers' Trainer trains with a head; hf also without"},
    {IS_FUSED_KERNELS, 0, is_not_verls, 0, CANNOT, "fused-kernels",
     "fused kernels are a setting of trinity; a chunked loss saves logits elsewhere"},
    {IS_ENTROPY_SAVING, 0, is_not_verls, 0, CANNOT, "entropy-saving",
     "an entropy is computed under trinity only; give --recipe trinity"},
    {0, 0, saves_hf, 0, CANNOT, "save-hf",
     "only trinity's checkpoint is modelled; give --recipe trinity or leave it out"},
    {0, 0, keeps_logits_of_nothing, 0, CANNOT, "eval-logits",
     "logits are kept in an evaluation: --eval-batch 8 --eval-size 1000 are an example"},
    {0, 0, keeps_beyond_counting, 0, CANNOT, "eval-size",
     "logits of so many sequences are more than can be counted, or kept"},
    {0, 0, saves_under_trinity, 0, CANNOT, "save", "when trinity writes a checkpoint is --save-hf"},
    {0, IS_FSDP | IS_ZERO3, saves_shards, 0, CANNOT, "save",
     "nothing of the model is sharded here: --save full"},
    // torch 2.11, _fsdp_param_group.py, _init_mp_dtypes; seen with TRL 1.16 on an H200.
    {IS_NF4 | IS_DORA | IS_FSDP2, 0, NULL, 0, CANNOT, "dora",
     "DoRA's magnitudes stay in fp32 beside packed weights in bf16, and fsdp2 wants one type; on "
     "one "
     "GPU and under ddp it works, and so does LoRA"},
    {0, 0, is_packed_without_sft, 0, CANNOT, "batching",
     "TRL packs rows for sft only; --batching padded says mixed lengths"},
    {0, 0, computes_no_reference, 0, CANNOT, "precompute-reference",
     "only dpo and kto have a reference to compute before training"},
    {0, 0, has_kl_elsewhere, 0, CANNOT, "beta",
     "beta is a setting of --recipe trl with --task grpo or rloo, where it decides whether a "
     "reference model is held"},
    {0, 0, has_parts_of_another, 0, CANNOT, "response",
     "prompt and response together are the context; leave one of the three out"},
    {0, 0, asks_before_its_end, 0, CANNOT, "prompt",
     "a prompt is shorter than the context, or nothing is left to answer"},
    {0, 0, limits_tokens_twice, 0, CANNOT, "batch",
     "max-token-len says how many sequences a micro-batch has; leave batch out"},
    {0, 0, limits_tokens_elsewhere, 0, CANNOT, "max-token-len",
     "max-token-len is a setting of trinity; --batch says it elsewhere"},
    {0, 0, limits_reference_elsewhere, 0, CANNOT, "log-prob-max-token-len",
     "log-prob-max-token-len is a setting of trinity, which has a reference model"},
    {0, 0, reads_less_than_a_sequence, 0, CANNOT, "log-prob-max-token-len",
     "log-prob-max-token-len times sp must hold at least one sequence"},

    {0, 0, asks_verl_for_another, 0, CANNOT, "attention",
     "@recipe@ attends by the package flash-attn; leave --attention out"},
    {0, 0, asks_sinks_for_another, 0, CANNOT, "attention",
     "@family@ has sinks, which of these only eager knows"},
    {0, 0, asks_written_for_another, 0, CANNOT, "attention",
     "@family@ writes its attention out: of these it has eager only"},
    {0, 0, asks_falcon_for_another, 0, NOT_YET, "attention",
     "@family@ is modelled with sdpa only, and without context parallel"},
    {IS_CP, IS_MEGATRON, asks_for_no_sdpa, 0, CANNOT, "attention",
     "torch's context parallel goes round with sdpa only"},
    {IS_CP, 0, job_attends_eagerly, 0, CANNOT, "cp",
     "torch's context parallel goes round with sdpa only, and @family@ attends eagerly"},
    {0, 0, passes_learned_positions, 0, CANNOT, "context",
     "@family@ has learned positions, @max_position@ of them, and none for more tokens"},

    {0, 0, learns_other_words, 0, CANNOT, "teacher",
     "TRL compares a teacher's next words with the student's: both need the same vocabulary"},
    // accelerate 1.15, prepare_model: in evaluation mode FSDP's branch is passed by, and nothing is
    // moved either, since device_placement is off under FSDP. Seen with fsdp2 on an H200.
    {IS_FSDP, 0, distills, 0, CANNOT, "strategy",
     "TRL 1.16's distillation leaves the teacher in host memory under fsdp and fails when it "
     "reads; "
     "ddp and DeepSpeed take it to the card"},
    {IS_SP, 0, is_asked_eager, IN_ACCELERATE_FAMILY, CANNOT, "attention",
     "Ulysses in Accelerate runs sdpa and flash-attn only"},

    // What strategies need.
    {IS_SEVERAL, 0, is_single_on_several, 0, CANNOT, "strategy",
     "single trains on one GPU, not on @gpus@; fsdp2 shards over them"},
    {IS_FSDP, IS_SEVERAL, shards_over_nothing, 0, CANNOT, "strategy",
     "@strategy@ has nothing to shard over on one GPU; single trains there"},
    {IS_MIXED, SHARDED, is_not_policy, 0, CANNOT, "precision",
     "mixed is a policy of fsdp1 and fsdp2 and of DeepSpeed; single and ddp train in bf16 or "
     "autocast"},
    {0, IS_RESHARD | SHARDED, is_not_policy, 0, CANNOT, "reshard",
     "nothing is sharded here; reshard is a policy of fsdp2"},
    {IS_DDP | IS_NO_LOSS, 0, has_untied_head, 0, CANNOT, "loss",
     "ddp needs a gradient of every parameter, and without a loss the head has none"},
    {0, 0, keeps_checkpoints_for_nothing, 0, CANNOT, "checkpoint-offload",
     "without checkpointing no layer is recomputed, and nothing waits in the host"},
    {0, 0, offloads_elsewhere, 0, CANNOT, "activation-offload",
     "activation-offload is a setting of TRL: --recipe trl; --checkpoint-offload is FSDP's"},
    {0, 0, is_packed_without_adapters, 0, CANNOT, "quantize",
     "weights in four bits cannot be trained; --lora 16 trains adapters over them"},
    {IS_DORA, IS_LORA, NULL, 0, CANNOT, "dora", "dora needs a rank; --lora 16 is an example"},
    {IS_DORA | IS_FSDP1, 0, NULL, 0, CANNOT, "dora", FSDP1_DORA},
    {IS_LORA, 0, names_numbered_experts, 0, CANNOT, "lora-targets",
     "@family@'s experts are w1, w2 and w3 to peft: all-linear reaches them, gate, up and down do "
     "not; q,k,v,o leaves them as they are"},
    {IS_LORA, 0, folds_half, 0, CANNOT, "lora-targets",
     "peft takes gate and up of experts together, which are one weight: name both or neither"},
    {IS_DORA, 0, folds_experts, 0, CANNOT, "dora",
     "peft has no DoRA for experts; --lora-targets q,k,v,o leaves them as they are"},
    // Seen with peft 0.21.0 and torch 2.11: RuntimeError, inconsistent tensor size, in
    // tuners/lora/layer.py, get_delta_weight.
    {IS_LORA | IS_FSDP1, 0, folds_experts, 0, CANNOT, "lora-targets",
     "adapters of experts do not run under fsdp1: peft reads them where they are shards; single, "
     "ddp, fsdp2 and DeepSpeed run them, and q,k,v,o runs here"},
    {0, 0, has_targets_without_adapters, 0, CANNOT, "lora-targets",
     "lora-targets needs a rank; --lora 16 is an example"},
    {IS_BNB | IS_FSDP2, 0, NULL, 0, CANNOT, "optimizer", FSDP2_BNB},
    {IS_ADAFACTOR | IS_FSDP2, 0, NULL, 0, CANNOT, "optimizer", FSDP2_ADAFACTOR},
    {IS_BNB | IS_ZERO | IS_OFFLOAD_OPTIMIZER, 0, NULL, 0, CANNOT, "optimizer", HOST_BNB},
    {IS_ADAFACTOR | IS_ZERO | IS_OFFLOAD_OPTIMIZER, 0, NULL, 0, CANNOT, "optimizer", HOST_BNB},
    {IS_MUON, 0, has_no_muon, 0, CANNOT, "optimizer",
     "@recipe@ has no muon (transformers 5.17's Trainer knows no such name); hf has torch's"},
    {IS_BNB | IS_ZERO, IS_ZERO3, has_long_parts, 0, CANNOT, "optimizer", LONG_BNB},
    {0, 0, has_no_such_rank, 0, CANNOT, "cp-rank", "the ranks of cp @cp@ are 0 to @last_cp@"},
    {IS_SP | IS_CP, 0, NULL, 0, CANNOT, "cp",
     "cp and sp exclude each other in accelerate; choose one"},
    {IS_SP, IS_SEVERAL, NULL, 0, CANNOT, "sp", "sequence parallel needs several GPUs"},
    {IS_CP, IS_SEVERAL, NULL, 0, CANNOT, "cp", "context parallel needs several GPUs"},
    {IS_SP, 0, sp_misses_gpus, 0, CANNOT, "sp", "sp @sp@ does not divide the @gpus@ GPUs"},
    {IS_SP, 0, sp_misses_heads, 0, CANNOT, "sp",
     "sp @sp@ does not divide the @heads@ attention heads"},
    {IS_SP, 0, sp_misses_kv_heads, 0, CANNOT, "sp",
     "sp @sp@ and the @kv_heads@ heads of keys and values do not divide each other"},
    {IS_SP, 0, sp_misses_context, 0, CANNOT, "context", "the context is not a multiple of sp @sp@"},
    {IS_CP, 0, cp_misses_gpus, 0, CANNOT, "cp", "cp @cp@ does not divide the @gpus@ GPUs"},
    {IS_CP, 0, cp_misses_context, 0, CANNOT, "context",
     "the context is not a multiple of twice cp @cp@, in which it is dealt out"},
    {IS_REPLICATED, IS_FSDP, NULL, 0, CANNOT, "replicate",
     "replicas are of fsdp2's shards; ddp replicates the whole model"},
    {IS_REPLICATED, 0, replicates_unevenly, 0, CANNOT, "replicate",
     "replicate divides the @gpus@ GPUs (by cp, where sequences are split) into groups of at least "
     "two, each with all shards; one GPU a group is ddp"},
    {IS_TP, 0, tp_misses_gpus, 0, CANNOT, "tp",
     "tp @tp@ does not divide the GPUs that share a sequence"},
    {IS_TP, 0, tp_misses_heads, 0, CANNOT, "tp",
     "tp @tp@ does not divide the @heads@ attention heads"},
    {0, 0, ep_misses_gpus, 0, CANNOT, "ep", "ep @ep@ does not divide the @gpus@ GPUs"},
    {IS_NF4, 0, packs_without_bf16, 0, CANNOT, "quantize", NO_BF16_ADAPTERS},
    {IS_NF4 | IS_FP16, 0, is_trl, 0, CANNOT, "precision", NO_SCALED_ADAPTERS},
    {0, IS_FP32, has_no_bf16, IN_YAML_FAMILY, CANNOT, "gpu",
     "@gpu@ has no bf16, in which files for @target@ are written; for trl and transformers they "
     "are in fp16 too"},
    {IS_BF16, 0, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {IS_AUTOCAST, IS_FP16, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {IS_MIXED, IS_FP16, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {0, 0, has_flash_without_half, 0, CANNOT, "attention", NO_FLASH},
    {IS_FP16, 0, is_policy, 0, CANNOT, "precision", "@recipe@ trains in bf16"},

    // What each target cannot run.
    {IS_FSDP1, 0, saves_shards, IN(ACCELERATE) | IN(DEEPSPEED) | IN(TRANSFORMERS), CANNOT, "save",
     "what is written for @target@ saves shards under fsdp1, asked or not: leave --save out"},
    {IS_BF16 | IS_LORA | IS_FSDP, 0, NULL, IN(LLAMAFACTORY), CANNOT, "precision",
     "LLaMA-Factory trains adapters under fsdp in mixed precision: leave --precision out"},
    {0, 0, never_saves, IN_ACCELERATE_FAMILY, CANNOT, "save",
     "what is written for @target@ saves a checkpoint every 500 steps and the model at the end"},
    {IS_SP, IS_ZERO, NULL, IN_ACCELERATE_FAMILY, CANNOT, "sp",
     "Accelerate runs Ulysses through DeepSpeed only: --strategy zero3; under fsdp2 --cp splits "
     "sequences"},
    {IS_CP, IS_FSDP2, NULL, IN_ACCELERATE_FAMILY, CANNOT, "cp",
     "Accelerate splits sequences by context under fsdp2 only"},
    {IS_FSDP | IS_AUTOCAST, 0, NULL, IN_ACCELERATE_FAMILY, CANNOT, "precision",
     "under fsdp, Accelerate's bf16 is what mixed means; autocast is for single and ddp"},
    {IS_ZERO, IS_MIXED, NULL, IN_ACCELERATE_FAMILY, CANNOT, "precision",
     "DeepSpeed keeps fp32 masters of bf16 weights: --precision mixed"},
    {IS_ZERO, IS_RESHARD, NULL, IN_ACCELERATE_FAMILY, CANNOT, "reshard",
     "reshard is a setting of fsdp1 and fsdp2; DeepSpeed decides itself what it keeps"},
    {IS_OFFLOAD_OPTIMIZER, SHARDED, NULL, IN_ACCELERATE_FAMILY, CANNOT, "offload",
     "Accelerate offloads under fsdp and DeepSpeed only"},
    {IS_FSDP | IS_OFFLOAD_OPTIMIZER, IS_OFFLOAD_ALL, NULL, IN_ACCELERATE_FAMILY, CANNOT, "offload",
     "fsdp moves parameters, gradients and optimizer together: --offload all"},
    {IS_ZERO | IS_OFFLOAD_ALL, IS_ZERO3, NULL, IN_ACCELERATE_FAMILY, CANNOT, "offload",
     "DeepSpeed offloads parameters in stage 3 only; --offload optimizer works in every stage"},
    {IS_ZERO | IS_SGD | IS_OFFLOAD_OPTIMIZER, 0, NULL, IN_ACCELERATE_FAMILY, CANNOT, "optimizer",
     "DeepSpeed has no sgd on the host; adamw is there"},
    {IS_NVME, IS_CONFIG, NULL, IN_ACCELERATE_FAMILY, CANNOT, "nvme",
     "Accelerate's YAML does not pass an NVMe path on; --for deepspeed writes a file that does"},
    {IS_NVME, IS_OFFLOAD_OPTIMIZER, NULL, IN_ACCELERATE_FAMILY, CANNOT, "nvme",
     "nothing goes to nvme without --offload"},
    {IS_NVME | IS_OFFLOAD_ALL, 0, passes_file_buffer, 0, CANNOT, "gpu",
     "DeepSpeed's buffer for files holds 1e8 elements (buffer_size), and a rank's part of the "
     "embedding is larger; more GPUs have smaller parts, and --offload optimizer needs none"},
    {IS_NVME, IS_ZERO3, NULL, IN(DEEPSPEED) | IN_YAML_FAMILY, CANNOT, "nvme",
     "DeepSpeed uses NVMe in stage 3 only: --strategy zero3"},
    {IS_NO_LOSS, 0, NULL, IN_EVERY_TARGET, CANNOT, "loss", "training needs a loss"},
    {IS_CHUNKED, 0, NULL, IN(ACCELERATE) | IN(DEEPSPEED) | IN(TRANSFORMERS), CANNOT, "loss",
     "transformers' Trainer computes the full loss; --for trl has a chunked one"},
    {0, IS_SFT, NULL, IN(ACCELERATE) | IN(DEEPSPEED) | IN(TRANSFORMERS), CANNOT, "task",
     "train.py trains on texts: --task sft; --for trl has the others"},
    {IS_CAPACITY, 0, NULL, IN(TRL) | IN(VERL) | IN(SLIME), CANNOT, "task",
     "capacity is a test of Trinity"},
    {IS_CHUNKED, IS_TRL_LOSS, NULL, IN(TRL), CANNOT, "loss",
     "TRL's chunk is 256 tokens: --loss chunked:256"},
    {0, IS_SFT, loss_is_given, IN(TRL), CANNOT, "loss",
     "TRL takes a loss for sft only; this task has its own"},
    {IS_CP, IS_SFT, NULL, IN(TRL), CANNOT, "cp", "TRL splits sequences by context for sft only"},
    {IS_SP, IS_SFT, NULL, IN(TRL), CANNOT, "sp", "TRL splits sequences for sft only"},
    {IS_DDP, IS_SEVERAL, NULL, IN_YAML_FAMILY, CANNOT, "strategy",
     "on one GPU @target@ trains without ddp: --strategy single"},
    // trl/trainer/utils.py, get_quantization_config: bnb_4bit_compute_dtype is dtype.
    {IS_NF4 | IS_FSDP1, 0, NULL, IN(TRL), CANNOT, "strategy",
     "files for packed weights under fsdp1 are not written; under ddp and fsdp2 they are"},
    {IS_NF4 | IS_AUTOCAST, 0, NULL, IN(TRL), CANNOT, "precision",
     "TRL's file has one type for weights and for products over packed ones: --precision bf16"},
    // axolotl 0.19, loaders/model.py: "bnb_4bit_use_double_quant": True.
    {IS_NF4_SINGLE, 0, NULL, IN(AXOLOTL), CANNOT, "quantize",
     "files for axolotl have double quantisation, which is its default: --quantize nf4"},
    {IS_LORA | IS_AUTOCAST, 0, NULL, IN_YAML_FAMILY, CANNOT, "precision",
     "@target@ loads a frozen model in bf16: leave --precision out"},
    {IS_AUTOCAST, 0, NULL, IN(AXOLOTL), CANNOT, "precision",
     "axolotl loads the weights in bf16: leave --precision out"},
    {IS_FSDP | IS_BF16, 0, NULL, IN(AXOLOTL), CANNOT, "precision",
     "under fsdp axolotl trains fp32 shards with bf16 compute: --precision mixed"},
    {IS_FSDP, IS_RESHARD, NULL, IN(AXOLOTL), CANNOT, "reshard",
     "axolotl has no way to keep layers gathered: it passes reshard_after_forward on only if true"},
    {0, 0, asks_for_flash3, IN_YAML_FAMILY, CANNOT, "attention",
     "files for @target@ with flash3 are not written; with flash2 they are"},
    {IS_CP, 0, NULL, IN_YAML_FAMILY, CANNOT, "cp",
     "files for @target@ with context parallel are not written; for trl and accelerate they are"},
    {IS_SP, 0, NULL, IN_YAML_FAMILY, CANNOT, "sp",
     "files for @target@ with sequence parallel are not written; for trl and accelerate they are"},
    {IS_CHUNKED, 0, NULL, IN_YAML_FAMILY, CANNOT, "loss",
     "transformers' Trainer computes the full loss; --for trl has a chunked one"},
    {IS_ROLLOUT, 0, NULL, IN_YAML_FAMILY, CANNOT, "task",
     "for @target@ sft, reward, dpo and kto are written"},
    {IS_VISION, IS_IMAGES, NULL, IN_YAML_FAMILY, CANNOT, "images",
     "files for @target@ are written for models with vision that read images: --images 1"},
    {IS_VISION, IS_SFT, NULL, IN_YAML_FAMILY, CANNOT, "task",
     "files for @target@ with images are written for sft"},
    {IS_FSDP | IS_ACCUMULATES, IS_SYNCED, NULL, IN(ACCELERATE) | IN(TRANSFORMERS), CANNOT,
     "sync-each-batch", "train.py reduces gradients after each micro-batch: --sync-each-batch on"},
    {IS_MUON, 0, NULL, IN_EVERY_TARGET, CANNOT, "optimizer",
     "files train with transformers' Trainer, which has no muon; adamw, adafactor and sgd it has"},
    {IS_FP32, 0, NULL, IN_EVERY_TARGET, CANNOT, "precision",
     "files in fp32 are not written; in bf16 and fp16 they are"},
    {IS_FP16, 0, NULL, IN_YAML_FAMILY, CANNOT, "precision",
     "files for @target@ are written in bf16; for trl and transformers in fp16 too"},
    {IS_BNB, IS_ZERO, has_narrow_embedding, IN(ACCELERATE), CANNOT, "optimizer",
     "train.py's Trainer keeps the embedding's state in 32 bits: --optimizer adamw-8bit-hf says "
     "so, and --for transformers takes any"},
    {IS_LIGER, 0, NULL, IN(TRL), CANNOT, "loss",
     "with use_liger_kernel TRL 1.16 keeps its own fused loss: leave --loss out; --layer-kernels "
     "liger writes the key"},
    {IS_LIGER, 0, NULL, IN_RAY_FAMILY, CANNOT, "loss",
     "files with Liger's loss are written for transformers, axolotl and LLaMA-Factory"},
    {0, IS_LIGER, has_liger_layers, IN(LLAMAFACTORY), CANNOT, "layer-kernels",
     "LLaMA-Factory turns Liger's layer kernels on together with its loss: --loss liger"},
    {IS_LIGER, IS_LIGER_LAYERS, NULL, IN(LLAMAFACTORY), CANNOT, "loss",
     "LLaMA-Factory turns Liger's loss on together with its layer kernels: --layer-kernels liger"},
    {IS_LIGER, IS_SFT, NULL, IN_YAML_FAMILY, CANNOT, "loss",
     "only sft has Liger's loss over all words: leave --loss out"},
    {IS_REWARD, 0, NULL, IN(TRINITY), CANNOT, "task", "Trinity trains no reward models; trl does"},
    {0, 0, is_trls_own_task, IN(TRINITY) | IN(VERL) | IN(SLIME), CANNOT, "task",
     "of kto and rloo only files for TRL are written"},
    {0, IS_RESHARD | IS_FSDP2, NULL, IN(TRINITY) | IN(VERL), CANNOT, "reshard",
     "only fsdp2 can keep its layers gathered"},
    {0, IS_GRPO, NULL, IN(VERL), CANNOT, "task", "for verl only grpo is written"},
    {IS_LEGACY, 0, NULL, IN(VERL), CANNOT, "verl", "the overrides are those of verl 0.8 and later"},
    {IS_EXPANDABLE, 0, NULL, IN(VERL), CANNOT, "expandable",
     "verl turns expandable segments on for training by itself; the variable would stop vLLM from "
     "giving memory back"},
    {0, IS_GRPO | IS_OPD, NULL, IN(SLIME), CANNOT, "task", "for slime grpo and opd are written"},
    {IS_STRATEGY_GIVEN, 0, NULL, IN(SLIME), CANNOT, "strategy",
     "slime trains with Megatron: --tp, --cp and --ep spread it"},
    {0, IS_MEGATRON, is_megatron, 0, CANNOT, "strategy",
     "Megatron has its distributed optimizer: leave --strategy out"},
    {IS_SP, 0, NULL, IN(SLIME), CANNOT, "sp", "Megatron splits sequences by context: --cp"},
    {IS_PP, 0, leaves_sizes_open, IN(SLIME), CANNOT, "pp",
     "launch.sh chooses no sizes around stages: say --tp and --cp too"},
    {IS_OFFLOAD_ALL, 0, NULL, IN(SLIME), CANNOT, "offload",
     "Megatron offloads the optimizer: --offload optimizer"},
    {0, IS_RESHARD, NULL, IN(SLIME), CANNOT, "reshard", "reshard is a setting of fsdp2"},
    {IS_YARN, 0, NULL, IN(SLIME), CANNOT, "context",
     "the model has @max_position@ positions, and Megatron has no YaRN for it"},
    {0, 0, has_siglip, IN(TRINITY) | IN(VERL), CANNOT, "model",
     "@target@ trains no Gemma 3 with images; Qwen3-VL it does"},
    {0, 0, has_siglip, IN(SLIME), CANNOT, "model", "slime trains no Gemma 3"},
    // #2251 removed megatron-bridge, and the examples of geo3k_vlm with it.
    {IS_VISION, 0, NULL, IN(SLIME), CANNOT, "model",
     "slime 0.3.0 was the last that trained Qwen3-VL; 0.3.1 and later have Megatron's models of "
     "text, and Qwen3-VL as a teacher only"},
    {IS_VISION, 0, NULL, IN(ACCELERATE) | IN(DEEPSPEED) | IN(TRANSFORMERS), CANNOT, "model",
     "train.py trains on texts; --for trl has data with images"},
    {IS_VISION | IS_REWARD, 0, NULL, IN(TRL), CANNOT, "model",
     "TRL's reward trainer reads no images"},
    {IS_VISION | IS_LEGACY, 0, NULL, IN(TRINITY), CANNOT, "verl",
     "Qwen3-VL needs the layout of verl 0.8 and later"},
    {IS_VISION | IS_OPD, 0, NULL, IN(TRINITY), CANNOT, "model",
     "Trinity-RFT distils models of text only"},
    {IS_VISION | IS_DPO, 0, NULL, IN(TRINITY), CANNOT, "model",
     "Trinity-RFT's dpo reads no images"},
    {IS_VISION | IS_CAPACITY, 0, NULL, IN(TRINITY), CANNOT, "model",
     "the published test has sequences of text only"},

    // What could be, and is not modelled.
    {0, 0, is_verl, 0, NOT_YET, "recipe",
     "the training step of verl's own trainer is not modelled yet; that of trinity is"},
    {IS_MEGATRON, IS_SFT | IS_GRPO | IS_OPD, NULL, 0, NOT_YET, "task",
     "of slime's tasks grpo and opd are modelled, and of Megatron's sft"},
    {0, 0, leaves_sizes_open, IN(SLIME), NOT_YET, "tp",
     "launch.sh chooses Megatron's sizes by a rule of thumb; those that --tp and --cp name are "
     "predicted"},
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
     "dpo, kto, grpo, rloo and distill are"},
    {0, 0, has_no_teacher, 0, NOT_YET, "teacher",
     "trl distils from a model beside the trained one: --teacher Qwen3-8B is an example"},
    {IS_REPLICATED | IS_FSDP1, 0, NULL, 0, NOT_YET, "replicate",
     "fsdp1's HYBRID_SHARD is not modelled; replicas of fsdp2's shards are"},
    {IS_REPLICATED, 0, is_verls, 0, NOT_YET, "replicate",
     "replicas of shards are not modelled under @recipe@; in the steps of hf, trl and transformers "
     "they are"},
    {0, 0, saves_elsewhere, 0, NOT_YET, "save",
     "saving is modelled as transformers' Trainer and TRL do it"},
    {0, 0, evaluates_elsewhere, 0, NOT_YET, "eval-batch",
     "evaluation is modelled as transformers' Trainer and TRL do it"},
    {0, 0, evaluates_answers, 0, NOT_YET, "eval-batch",
     "evaluation that generates answers is not modelled"},
    {0, 0, is_ragged_elsewhere, 0, NOT_YET, "batching",
     "packed rows are modelled under --recipe trl, padded ones also under transformers, axolotl "
     "and llamafactory; elsewhere every sequence is full"},
    {0, 0, is_ragged_without_sdpa, 0, NOT_YET, "batching",
     "padded and packed rows are modelled with sdpa, which needs a mask of them"},
    {0, 0, keeps_wide_embeddings, 0, NOT_YET, "attention",
     "with this attention axolotl keeps norms, embedding and head in fp32 beside bf16 layers, "
     "which "
     "is not modelled; with --attention flash2, adapters, fsdp or DeepSpeed it does not"},
    {IS_CP, 0, is_ragged, 0, NOT_YET, "batching",
     "padded and packed rows are not modelled under context parallel"},
    {0, 0, generates_in_shards, 0, NOT_YET, "strategy",
     "TRL's grpo and rloo are modelled on one GPU, under ddp, fsdp2 and DeepSpeed, with "
     "transformers generating"},
    {0, 0, is_older_task, 0, NOT_YET, "recipe",
     "this task is modelled as TRL 1.16 trains it: --recipe trl@1.16"},
    {0, 0, is_unpredicted_policy_task, 0, NOT_YET, "task",
     "of Trinity's tasks the step of grpo is modelled"},
    {IS_TP, IS_MEGATRON, NULL, 0, NOT_YET, "tp",
     "tensor parallel, which Accelerate runs beside fsdp2 and cp, is not modelled; fsdp2 with --cp "
     "and --replicate is"},
    {0, IS_MEGATRON, spreads_experts, 0, NOT_YET, "ep",
     "expert parallel is modelled as Megatron's: --recipe megatron"},
    {IS_NVME, IS_ZERO3, NULL, 0, NOT_YET, "nvme",
     "offload to NVMe is DeepSpeed's, in stage 3: --strategy zero3"},
    {IS_NVME, IS_OFFLOAD_OPTIMIZER, NULL, 0, NOT_YET, "nvme",
     "nothing goes to nvme without --offload"},
    {0, IS_CHECKPOINTING, is_trinity, 0, NOT_YET, "checkpointing",
     "the trinity recipe is modelled with checkpointing only"},
    {0, 0, strays_from_plain_opt, 0, NOT_YET, "model",
     "@family@ with norms behind its sums or words of another width is modelled on one GPU or "
     "under "
     "ddp, with the whole loss and outside TRL only"},
    {0, 0, is_counted_only, 0, NOT_YET, "model",
     "@family@ is counted, but its step is not modelled; fathom probe --engine torch measures it, "
     "with --fake without a GPU"},
    {IS_VISION, 0, is_not_plain, 0, NOT_YET, "recipe",
     "@family@ is modelled in the plain step, transformers' Trainer and TRL's sft only"},
    {IS_VISION | IS_ZERO3 | IS_FROZEN_LANGUAGE, 0, NULL, 0, NOT_YET, "freeze",
     "a frozen language model is not modelled under zero3 (what is reserved was 10 % more)"},
    {IS_VISION | IS_FSDP1, 0, has_untrained_part, 0, NOT_YET, "images",
     "under fsdp1 a vision tower is modelled where all of the model is trained: with images, "
     "without freeze"},
    {IS_VISION | IS_FSDP1 | IS_LORA, 0, NULL, 0, NOT_YET, "lora",
     "adapters of a model with vision are not modelled under fsdp1; under fsdp2 they are"},
    {IS_VISION | IS_LORA, 0, has_idle_adapters, 0, NOT_YET, "lora",
     "adapters on an idle vision tower are not modelled: --freeze vision"},
    {IS_VISION | IS_LORA, 0, names_no_layer, 0, CANNOT, "lora-targets",
     "these are layers of the language model, which is frozen; all-linear has the tower's"},
    {IS_VISION | IS_SP, 0, NULL, 0, NOT_YET, "sp",
     "sequence parallel is not modelled over @family@"},
    {IS_VISION | IS_CP, 0, NULL, 0, NOT_YET, "cp",
     "context parallel is not modelled over @family@"},
    {IS_VISION | IS_NF4, 0, NULL, 0, NOT_YET, "quantize",
     "a vision tower in four bits is not modelled"},
    {0, 0, has_other_attention, 0, NOT_YET, "attention",
     "a vision tower is modelled with sdpa only"},
    {0, 0, has_odd_batches, 0, NOT_YET, "images",
     "images are modelled in full rows that are trained on: no padding, packing or evaluation"},
    {0, 0, keeps_images_elsewhere, 0, NOT_YET, "images",
     "images are not modelled with activations in host memory"},
    {0, 0, is_special_under_trinity, 0, NOT_YET, "model",
     "@family@ is not modelled under the trinity recipe; Qwen, Llama and Mistral without windows "
     "are"},
    {0, 0, is_before_grouped_experts, 0, NOT_YET, "recipe",
     "experts are modelled as transformers 5 runs them, all at once; this @recipe@ comes with one "
     "that calls each by itself"},
    {IS_SP, 0, has_own_attention, 0, NOT_YET, "sp",
     "@family@ is not modelled under sequence parallel; without it, it is"},
    {0, 0, is_latent_and_another, 0, NOT_YET, "attention",
     "latent attention is modelled with sdpa only"},
    {IS_SP, 0, is_asked_eager, 0, NOT_YET, "attention",
     "eager attention is not modelled under sequence parallel; sdpa is"},
    {IS_LORA, 0, is_asked_eager, 0, NOT_YET, "attention",
     "eager attention is not modelled under LoRA; sdpa is"},
    {IS_CP, 0, is_hybrid, 0, NOT_YET, "cp",
     "linear attention is not modelled under context parallel; fsdp2 without it is"},
    {IS_AUTOCAST, 0, multiplies_outside_linear, 0, NOT_YET, "precision",
     "@family@ is not modelled under autocast; bf16 is"},
    // fsdp2 casts a layer's fp32 positions, recomputation gets them as they were (torch 2.11).
    {IS_FSDP2 | IS_MIXED, 0, has_wide_rotary, 0, NOT_YET, "precision",
     "@family@ in fsdp2's mixed precision is not modelled, and with checkpointing torch fails; "
     "fsdp1 and bf16 work"},
    {IS_FSDP | IS_AUTOCAST, 0, NULL, 0, NOT_YET, "precision",
     "autocast under fsdp is not modelled; mixed is its policy for bf16 compute"},
    {IS_OFFLOAD_OPTIMIZER, IS_OFFLOAD_ALL | IS_ZERO2 | IS_ZERO3 | IS_MEGATRON, NULL, 0, NOT_YET,
     "offload", "an optimizer in host memory is modelled under zero2 and zero3 only"},
    {IS_OFFLOAD_ALL, IS_FSDP2 | IS_ZERO3, NULL, 0, NOT_YET, "offload",
     "offload of everything is modelled under fsdp2 and zero3, on several GPUs"},
    {IS_SP | IS_ZERO, IS_ZERO3, NULL, 0, NOT_YET, "sp",
     "of DeepSpeed's stages, sequence parallel is modelled under zero3"},
    {IS_SP | IS_ZERO, 0, is_special_family, 0, NOT_YET, "sp",
     "sequence parallel under zero3 is not modelled over @family@; over Qwen, Llama and Mistral "
     "without experts and windows it is"},
    {IS_SP | IS_ZERO, 0, is_trainers, 0, NOT_YET, "sp",
     "sequence parallel under zero3 is modelled in the step of deepspeed: --recipe deepspeed"},
    {IS_SP, IS_FSDP2 | IS_ZERO3, is_not_verls, 0, NOT_YET, "sp",
     "sequence parallel is modelled under fsdp2 and zero3"},
    {IS_SP, 0, is_trl, 0, NOT_YET, "sp",
     "Accelerate runs Ulysses through DeepSpeed only, where it is not modelled; TRL's context "
     "parallel is --cp"},
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
    {IS_FSDP1, IS_POLICY | IS_RESHARD, NULL, 0, NOT_YET, "reshard",
     "fsdp1 is modelled with FULL_SHARD only; fsdp2 also keeps its layers"},
    {IS_FSDP1 | IS_CHUNKED, 0, is_chunked_by_hand, 0, NOT_YET, "loss", FSDP1_LOSS},
    {IS_FSDP1 | IS_NO_LOSS, 0, NULL, 0, NOT_YET, "loss", FSDP1_LOSS},
    {0, 0, is_packed_elsewhere, 0, NOT_YET, "quantize",
     "nf4 is modelled on one GPU, under ddp, zero1 and zero2, and in mixed precision under fsdp2 "
     "and zero3 as TRL 1.16 and transformers' Trainer run it and under fsdp1 as the latter does"},
    {IS_NF4 | IS_DORA | IS_ZERO3, 0, NULL, 0, NOT_YET, "dora", PACKED_DORA},
    {IS_NF4 | IS_FSDP2 | IS_OFFLOAD_ALL, 0, NULL, 0, NOT_YET, "offload",
     "packed weights under fsdp2 are not modelled with offload; without it they are"},
    {IS_FP32 | IS_NF4, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP16 | IS_FSDP1, 0, NULL, 0, NOT_YET, "precision", OTHER_FP16},
    {IS_FP16, 0, has_own_adapters, 0, NOT_YET, "precision", OTHER_FP16},
    {IS_FP32, 0, has_other_step_in_fp32, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32 | IS_ZERO, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32 | IS_FSDP1, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32 | IS_LIGER, 0, NULL, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32, 0, has_liger_layers, 0, NOT_YET, "precision", OTHER_FP32},
    {IS_FP32, 0, is_latent, 0, NOT_YET, "precision",
     "latent attention is not modelled in fp32; bf16 is"},
    {IS_SP, 0, attends_plainly, 0, NOT_YET, "sp", PLAIN_SPLIT},
    {IS_CP, 0, attends_plainly, 0, NOT_YET, "cp", PLAIN_SPLIT},
    {IS_LORA, 0, has_other_layers, 0, NOT_YET, "lora",
     "LoRA over @family@ is not modelled; over models without latent or linear attention and "
     "SigLIP's tower it is"},
    {IS_LORA, 0, names_parts_of_a_layer, 0, CANNOT, "lora-targets",
     "a layer of @family@ computes several of these at once, and peft finds none of that name: "
     "--lora-targets all-linear"},
    {IS_LORA | IS_EXPERTS, 0, has_other_experts, 0, NOT_YET, "lora",
     "LoRA over @family@ is not modelled; over the experts of Qwen, Mixtral, OLMoE, GLM-4.5 and "
     "MiniMax-M2 it is"},
    {IS_LORA | IS_EXPERTS, 0, names_experts_elsewhere, 0, NOT_YET, "lora-targets",
     "what the older peft of @recipe@ makes of gate, up and down beside experts is not modelled; "
     "q,k,v,o is, and all-linear, which is that there"},
    {IS_LORA | IS_ZERO3, 0, folds_outside_leaves, 0, NOT_YET, "lora-targets",
     "adapters of experts are modelled under zero3 over Qwen3 and Mixtral; elsewhere q,k,v,o is"},
    {IS_LORA, 0, is_another_recipe_with_adapters, 0, NOT_YET, "lora",
     "LoRA is modelled in the steps of hf, trl, transformers and deepspeed"},
    {IS_LORA | IS_CP, 0, NULL, 0, NOT_YET, "lora", "LoRA is not modelled under context parallel"},
    {IS_LORA | IS_FSDP, 0, has_another_step_over_shards, 0, NOT_YET, "lora", SHARDED_LORA},
    {IS_LORA | IS_FSDP2, IS_MIXED, NULL, 0, NOT_YET, "precision",
     "LoRA under fsdp2 is modelled in mixed precision only"},
    // trl/trainer/utils.py, add_fused_lm_head: hidden states go to where the head's shards are.
    {IS_LORA | IS_OFFLOAD_ALL, 0, has_untied_head, 0, NOT_YET, "offload",
     "over adapters TRL computes a head in host memory there, which is not modelled; without "
     "offload it is"},
    {IS_LORA | IS_ZERO3, 0, has_older_head, 0, NOT_YET, "lora", SHARDED_LORA},
    {IS_LORA | IS_ZERO, 0, is_offloaded, 0, NOT_YET, "offload",
     "offload is not modelled with LoRA under DeepSpeed"},
    {IS_BNB | IS_FSDP1, 0, NULL, 0, NOT_YET, "optimizer",
     "bitsandbytes' optimizers are not modelled under fsdp1; under single, ddp and DeepSpeed they "
     "are"},
    {IS_ADAFACTOR | IS_FSDP1, 0, NULL, 0, NOT_YET, "optimizer",
     "adafactor is not modelled under fsdp1; under single, ddp and DeepSpeed it is"},
    {IS_MUON | IS_FSDP, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON | IS_ZERO, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON | IS_EXPERTS, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON | IS_LORA, 0, NULL, 0, NOT_YET, "optimizer", OTHER_MUON},
    {IS_MUON, 0, is_older_than_muon, 0, NOT_YET, "optimizer", "torch has muon since 2.9"},
    {IS_ADAFACTOR | IS_EXPERTS, 0, NULL, 0, NOT_YET, "optimizer",
     "adafactor is not modelled over experts; adamw-fused is"},
    {0, IS_CHECKPOINTING, offloads_activations, 0, NOT_YET, "activation-offload",
     "activation-offload is modelled with checkpointing only, which TRL turns on by itself"},
    {0, 0, offloads_another_loss, 0, NOT_YET, "activation-offload",
     "activation-offload is modelled with TRL 1.16's own loss only"},
    {0, 0, offloads_twice, 0, NOT_YET, "activation-offload",
     "activation-offload takes the inputs of recomputed layers along; leave checkpoint-offload "
     "out"},
    {IS_ZERO, 0, offloads_activations, 0, NOT_YET, "activation-offload", SPREAD_ACTIVATIONS},
    {IS_CP, 0, offloads_activations, 0, NOT_YET, "activation-offload", SPREAD_ACTIVATIONS},
    {0, IS_ZERO, has_own_buckets, 0, CANNOT, "zero-buckets",
     "zero-buckets is a setting of DeepSpeed: --strategy zero3"},
    {0, IS_ZERO3, tiles_mlp, 0, NOT_YET, "tiled-mlp",
     "a tiled MLP is modelled under zero3, as DeepSpeed's TiledMLP"},
    {0, 0, tiles_elsewhere, 0, NOT_YET, "tiled-mlp",
     "a tiled MLP is modelled in the step of deepspeed: --recipe deepspeed"},
    {0, 0, tiles_special_mlp, 0, NOT_YET, "tiled-mlp",
     "a tiled MLP is not modelled over @family@; over Qwen, Llama and Mistral without experts and "
     "windows it is"},
    {IS_LORA, 0, tiles_mlp, 0, NOT_YET, "tiled-mlp", "a tiled MLP is not modelled with LoRA"},
    {0, 0, has_special_liger_layers, 0, NOT_YET, "layer-kernels",
     "Liger's layer kernels are not modelled over @family@; over Qwen, Llama and Mistral without "
     "experts and windows they are"},
    {IS_ZERO, 0, has_spread_liger_layers, 0, NOT_YET, "layer-kernels", SPREAD_KERNELS},
    {IS_SP, 0, has_spread_liger_layers, 0, NOT_YET, "layer-kernels", SPREAD_KERNELS},
    {0, 0, has_other_liger_layers, 0, NOT_YET, "layer-kernels",
     "Liger's layer kernels are modelled with sdpa in the steps of hf, transformers and trl"},
    {IS_LIGER | IS_FSDP2, 0, cuts_head_apart, 0, NOT_YET, "loss", APART_LIGER},
    {IS_LIGER, 0, is_trl, 0, NOT_YET, "loss",
     "with use_liger_kernel TRL 1.16 keeps its own fused loss, which is modelled: leave --loss "
     "out; --layer-kernels liger has the rest"},
    {IS_LIGER, 0, changes_logits, 0, NOT_YET, "loss",
     "liger's loss over soft-capped logits or multiplied ones is not modelled; the full loss is"},
};

const ptrdiff_t rule_count = COUNT_OF(rules);
