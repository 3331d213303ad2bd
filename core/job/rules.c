// What no framework can do, what recipes need and what strategies need: whoever asks, it cannot be.
// rules_targets.c and rules_unmodelled.c are looked at after these.
#include "core/job/rules.h"

#include "core/job/conditions.h"

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
// Seen with peft 0.21 and torch 2.11: IndexError in tuners/lora/dora.py, get_lora_weight.
#define FSDP1_DORA                                                                                \
    "DoRA does not run under fsdp1: peft asks a shard for its layer's width; single, ddp, fsdp2 " \
    "and DeepSpeed run it"
// Seen with trl 1.16 and deepspeed 0.19.8 (trainer/utils.py, maybe_gather_lm_head_ctx): 'Tensor'
// object has no attribute 'ds_status'.
#define ZERO3_ACTIVATIONS                                                                         \
    "activation-offload does not run under zero3: TRL looks for DeepSpeed's marks on the head's " \
    "weight that comes back from the host; zero1, zero2, fsdp2 and one GPU run it"
// Seen with torch 2.11 (distributed/fsdp/sharded_grad_scaler.py, found_inf of one element): output
// with shape [] doesn't match the broadcast shape [1].
#define TIED_COPY                                                                                 \
    "the head is tied to the embedding, and transformers ties it anew under fsdp2, which peft's " \
    "copy does not let it do; DeepSpeed and ddp run it"
#define FSDP1_FUSED_FP16 \
    "in fp16 fsdp1's scaler hands torch's fused Adam a tensor that it refuses: --optimizer adamw"

// accelerate 1.15, accelerator.py, _prepare_tp: "from transformers.integrations.tensor_parallel
// import ReplicateParallel", which 5.0 had and 5.2 has not (ImportError); parallelism_config.py,
// __post_init__.
#define LONELY_TENSORS                                                                          \
    "tensor parallel runs alone: beside fsdp2 and cp Accelerate 1.15 dies of importing "        \
    "ReplicateParallel, which transformers has not had since 5.2, beside replicas it refuses; " \
    "--strategy single, or fsdp2 without --tp"
// Seen with peft 0.21 and transformers 5.17 (tuners/lora/layer.py, forward): "The size of tensor a
// (1024) must match the size of tensor b (2048)".
#define CUT_LORA                                                                               \
    "peft's adapters are whole beside layers that tensor parallel cuts, and their sum fails; " \
    "fsdp2 shards both"
#define MEGATRON_LOSS                                                                   \
    "Megatron computes its loss over the vocabulary's parts: --loss full, or fused as " \
    "TransformerEngine does it"
#define MEGATRON_ADAM "Megatron's Adam is TransformerEngine's FusedAdam: leave --optimizer out"

const struct rule needed_rules[] = {
    {.test = has_no_context,
     .code = CANNOT,
     .setting = "context",
     .why = "no context is given; --context 32k is an example"},
    {.test = is_packed_otherwise,
     .code = NOT_YET,
     .setting = "model",
     .why = "these weights are packed by @packing@, over which training is not modelled; name the "
            "model that they were made of"},
    {.test = is_nf4_unsaid,
     .code = CANNOT,
     .setting = "model",
     .why = "these weights are packed by bitsandbytes: adapters train over them with --quantize "
            "nf4 --lora 16, or name the model that they were made of"},
    {0, IS_VISION, has_images, 0, CANNOT, "images", "@family@ reads no images"},
    {0, IS_VISION, freezes_part, 0, CANNOT, "freeze",
     "freeze names a part of a model with vision, and @family@ has none"},
    {IS_VISION, 0, trains_nothing, 0, CANNOT, "freeze",
     "without images the vision tower has nothing to be trained on: --images 1"},
    {IS_VISION, 0, has_odd_images, 0, CANNOT, "image-size",
     "one side of an image may be 200 times as long as the other, no more"},
    {IS_VISION, 0, has_no_room_for_text, 0, CANNOT, "images",
     "the images of a sequence take @image_tokens@ tokens of its context and leave none for text"},
    {IS_VISION, 0, has_unfit_tower, 0, CANNOT, "images",
     "the tower's out_hidden_size is not the hidden_size of the text: no image can stand in it"},
    {IS_VISION | IS_DDP, 0, waits_for_tower, 0, CANNOT, "freeze",
     "without images ddp waits for gradients that the vision tower never gets: --freeze vision"},
    {.test = is_another_recipe,
     .in = IN_EVERY_TARGET,
     .code = CANNOT,
     .setting = "recipe",
     .why =
         "files for @target@ run another training step: --recipe @target_recipe@, or leave it out"},

    // What recipes need.
    {0, 0, trains_in_bf16_only, 0, CANNOT, "gpu",
     "@recipe@ trains in bf16, which @gpu@ has not; cards of compute capability 8.0 and later do"},
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
    {IS_PARTLY, IS_MEGATRON, NULL, 0, CANNOT, "checkpointing",
     "so many layers are recomputed by Megatron alone (--recipe megatron); elsewhere on is all and "
     "off none"},
    {IS_PARTLY, 0, recomputes_more_than_there_is, 0, CANNOT, "checkpointing",
     "a stage has @stage_layers@ layers; --checkpointing on recomputes all"},
    {IS_FUSED_LOSS, IS_MEGATRON, NULL, 0, CANNOT, "loss",
     "fused is TransformerEngine's loss in Megatron; --loss liger is fused elsewhere"},
    {IS_MEGATRON, IS_ADAMW, NULL, 0, CANNOT, "optimizer", MEGATRON_ADAM},
    {IS_MEGATRON | IS_FUSED, 0, NULL, 0, CANNOT, "optimizer", MEGATRON_ADAM},
    {IS_MEGATRON | IS_OFFLOAD_ALL, 0, NULL, 0, CANNOT, "offload",
     "Megatron offloads the optimizer: --offload optimizer"},
    {IS_CP, 0, is_verls, 0, CANNOT, "cp", "@recipe@ has no context parallel; --sp is Ulysses"},
    // trl 1.16.0, trainer/kto_trainer.py:845; a job of one row died so on an H200.
    {IS_KTO, 0, compares_a_row_alone, 0, CANNOT, "batch",
     "TRL's KTO compares each row with its neighbour in the batch: --batch 2 at least"},
    // trl 1.14.2, trainer/grpo_config.py:1055, rloo_config.py:626, distillation_config.py:398.
    {IS_CP, 0, job_generates, 0, CANNOT, "cp",
     "TRL refuses context parallel where the trainer generates (grpo, rloo, distill): its inputs "
     "are made after the batch was divided"},
    // trl 1.16.0, trainer/grpo_config.py and rloo_config.py, __post_init__: num_generations < 2.
    {0, 0, compares_one_answer, 0, CANNOT, "batch",
     "this task compares at least two answers to a prompt, and a step has one: --batch 2"},
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
    // transformers 5.17, trainer.py, place_model_on_device; trl's issue 6470 and pull request 6527:
    // "Expected all tensors to be on the same device, but got index is on cuda:0, different from
    // other tensors on cpu". TRL 1.16 loads a reference for it, but for no adapters.
    {IS_PRECOMPUTED | IS_LORA | IS_FSDP, IS_NF4, NULL, 0, CANNOT, "precompute-reference",
     "TRL reads with the model itself where it has adapters, before fsdp brings it to the card: "
     "leave --precompute-reference out, which holds no second model there either"},
    {0, 0, has_kl_elsewhere, 0, CANNOT, "beta",
     "beta is a setting of --recipe trl with --task grpo or rloo, where it decides whether a "
     "reference model is held"},
    {0, 0, teaches_nobody, 0, CANNOT, "teacher", "only --task distill has a teacher"},
    {0, 0, prompts_for_nothing, 0, CANNOT, "prompt",
     "nothing is generated in this task: its texts are as long as the context"},
    {0, IS_VISION, sizes_no_image, 0, CANNOT, "image-size", "this model reads no images"},
    {0, IS_CP, is_rank_of_no_ring, 0, CANNOT, "cp-rank", "there is no context parallel: --cp 2"},
    {0, 0, sizes_no_evaluation, 0, CANNOT, "eval-size",
     "nothing is evaluated here: --eval-batch 8 is how many sequences are at once"},
    {IS_CHUNKED, IS_TRL_LOSS, is_trl, 0, CANNOT, "loss",
     "TRL's chunk is 256 tokens: --loss chunked:256"},
    {0, 0, has_parts_of_another, 0, CANNOT, "response",
     "prompt and response together are the context; leave one of the three out"},
    {0, 0, asks_before_its_end, 0, CANNOT, "prompt",
     "a prompt is shorter than the context, or nothing is left to answer"},
    {0, 0, limits_tokens_twice, 0, CANNOT, "batch",
     "max-token-len says how many sequences a micro-batch has; leave batch out"},
    {0, 0, limits_tokens_elsewhere, 0, CANNOT, "max-token-len",
     "max-token-len is a setting of trinity; --batch says it elsewhere"},
    {0, 0, limits_reference_elsewhere, 0, CANNOT, "log-prob-max-token-len",
     "log-prob-max-token-len is a setting of trinity and verl, which have a reference model"},
    {0, 0, reads_less_than_a_sequence, 0, CANNOT, "log-prob-max-token-len",
     "log-prob-max-token-len times sp must hold at least one sequence"},

    {0, 0, asks_verl_for_another, 0, CANNOT, "attention",
     "@recipe@ attends by the package flash-attn; leave --attention out"},
    {0, 0, asks_sinks_for_another, 0, CANNOT, "attention",
     "@family@ has sinks, which of these only eager knows"},
    {0, 0, asks_written_for_another, 0, CANNOT, "attention",
     "@family@ writes attention out: of these there is eager only"},
    {0, 0, asks_falcon_for_another, 0, NOT_YET, "attention",
     "@family@ is modelled with sdpa only, and without context parallel"},
    {IS_CP, IS_MEGATRON, asks_for_no_sdpa, 0, CANNOT, "attention",
     "torch's context parallel goes round with sdpa only"},
    // trl 1.16, trainer/sft_trainer.py:1404.
    {IS_CP | IS_PACKED, IS_MEGATRON, NULL, 0, CANNOT, "batching",
     "context parallel drops the mask that keeps packed sequences apart, and TRL refuses the two "
     "together: leave --batching out"},
    {IS_CP, 0, job_attends_eagerly, 0, CANNOT, "cp",
     "torch's context parallel goes round with sdpa only, and @family@ has eager attention"},
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
     "mixed is a policy of fsdp1 and fsdp2 and of DeepSpeed; single and ddp train in bf16, "
     "autocast "
     "or bf16-autocast"},
    // accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model, and accelerator.py, prepare_model.
    {IS_BF16_AUTOCAST, 0, widens_what_it_trains, 0, CANNOT, "precision",
     "bf16 weights that are trained become fp32 under fsdp, and have fp32 masters under DeepSpeed: "
     "--precision mixed"},
    {IS_BF16_AUTOCAST, 0, has_own_adapters, 0, CANNOT, "precision",
     "bf16 weights are --precision bf16 in the step of @recipe@"},
    {IS_BF16_AUTOCAST | IS_NF4, 0, NULL, 0, CANNOT, "precision",
     "around packed weights all is bf16 or fp32: --precision bf16 or autocast"},
    {0, IS_RESHARD | SHARDED, is_not_policy, 0, CANNOT, "reshard",
     "nothing is sharded here; reshard is a policy of fsdp2"},
    {IS_DDP | IS_NO_LOSS, 0, has_untied_head, 0, CANNOT, "loss",
     "ddp needs a gradient of every parameter, and without a loss the head has none"},
    {0, 0, keeps_checkpoints_for_nothing, 0, CANNOT, "checkpoint-offload",
     "without checkpointing no layer is recomputed, and nothing waits in the host"},
    {IS_REENTRANT, 0, has_own_checkpoints, 0, CANNOT, "reentrant",
     "@recipe@ has a way of its own to recompute layers: leave reentrant out"},
    {0, 0, offloads_elsewhere, 0, CANNOT, "activation-offload",
     "activation-offload is a setting of TRL: --recipe trl; --checkpoint-offload is FSDP's"},
    {0, 0, offloads_in_another_trainer, 0, CANNOT, "activation-offload",
     "of TRL's trainers those of sft, reward, dpo and kto offload activations"},
    {0, 0, scores_nothing, 0, CANNOT, "model",
     "transformers has no @family@ that scores a sequence (AutoModelForSequenceClassification), "
     "which "
     "a reward model is; it has Qwen3, Llama, Mistral and Gemma, among others"},
    {0, 0, scores_under_liger, 0, CANNOT, "layer-kernels",
     "TRL's reward trainer fails with Liger's kernels, which make its model a language model "
     "again: leave layer-kernels out"},
    {0, 0, is_packed_without_adapters, 0, CANNOT, "quantize",
     "weights in four bits cannot be trained; --lora 16 trains adapters over them"},
    {IS_DORA, IS_LORA, NULL, 0, CANNOT, "dora", "dora needs a rank; --lora 16 is an example"},
    {IS_DORA | IS_FSDP1, 0, NULL, 0, CANNOT, "dora", FSDP1_DORA},
    {IS_LORA_DROPOUT, IS_LORA, NULL, 0, CANNOT, "lora-dropout",
     "a dropout before adapters needs a rank; --lora 16 is an example"},
    {IS_LORA_WHOLE, IS_LORA, NULL, 0, CANNOT, "lora-whole",
     "modules are trained whole beside adapters, which need a rank; --lora 16 is an example"},
    {IS_LORA_WHOLE, 0, copies_score, 0, CANNOT, "lora-whole",
     "a reward model's head is trained whole whatever is said; embed is what can be added"},
    {IS_LORA_WHOLE | IS_FSDP2, 0, copies_tied_head, 0, CANNOT, "lora-whole", TIED_COPY},
    {IS_LORA_WHOLE | IS_FSDP1, 0, reads_copied_head, 0, CANNOT, "lora-whole",
     "TRL reads the head where fsdp1 has it in parts; fsdp2 and DeepSpeed run it"},
    {IS_LORA_WHOLE | IS_ZERO3, 0, joins_two_widths, 0, CANNOT, "lora-whole",
     "DeepSpeed cannot join copies in bf16 with peft's adapters in fp32 under zero3; zero2 runs "
     "it, "
     "and so does TRL"},
    // peft 0.21.0, tuners/lora/layer.py, ParamWrapper.__init__.
    {IS_LORA_DROPOUT, 0, folds_experts, 0, CANNOT, "lora-dropout",
     "peft has no dropout for adapters over experts; --lora-targets q,k,v,o leaves them as they "
     "are"},
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
    {IS_ZERO3, 0, offloads_activations, 0, CANNOT, "activation-offload", ZERO3_ACTIVATIONS},
    {IS_FP16 | IS_FSDP1 | IS_FUSED, 0, NULL, 0, CANNOT, "optimizer", FSDP1_FUSED_FP16},
    // Seen with trl 1.16 and torch 2.11: "expected mat1 and mat2 to have the same dtype, but got:
    // float != c10::BFloat16", of two jobs.
    {IS_FSDP1 | IS_LORA, 0, job_generates, 0, CANNOT, "lora",
     "TRL cannot generate with adapters under fsdp1: the head gets fp32 states beside bf16 "
     "weights; "
     "fsdp2 and DeepSpeed run it"},
    {IS_ADAM_DS, IS_ZERO, NULL, 0, CANNOT, "optimizer",
     "adam-ds is DeepSpeed's: --strategy zero2; elsewhere adamw-fused keeps the same"},
    {IS_ADAM_DS, 0, NULL, IN_EVERY_TARGET, CANNOT, "optimizer",
     "files hand torch's AdamW to DeepSpeed: --optimizer adamw-fused, which keeps the same"},
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
    {IS_SP, IS_ZERO, stands_on_accelerate, 0, CANNOT, "sp",
     "Accelerate runs Ulysses through DeepSpeed only: --strategy zero3; under fsdp2 --cp splits "
     "sequences"},
    // deepspeed 0.19.8, runtime/sequence_parallel/ulysses_sp.py, refill: every batch needs
    // positions and labels, which no other collator of TRL 1.16 makes; what is packed for
    // FlashAttention has bounds of rows beside, which it cannot cut.
    {IS_SP, IS_SFT, is_trl, 0, CANNOT, "sp", "TRL splits sequences for sft only"},
    {IS_SP | IS_ZERO, 0, packs_rows, 0, CANNOT, "batching",
     "DeepSpeed's sequence parallel cannot cut TRL's packed rows; padded ones it can"},
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
     "replicas are of fsdp's shards; ddp replicates the whole model"},
    // torch/distributed/fsdp/_init_utils.py, _init_intra_and_inter_node_groups
    {IS_REPLICATED | IS_FSDP1, 0, replicates_across_nodes, 0, CANNOT, "replicate",
     "fsdp1's HYBRID_SHARD has one replica on each node; fsdp2 has as many as are asked for"},
    {IS_REPLICATED, 0, replicates_unevenly, 0, CANNOT, "replicate",
     "replicate divides the @gpus@ GPUs (by cp, where sequences are split) into groups of at least "
     "two, each with all shards; one GPU a group is ddp"},
    {IS_TP, 0, tp_misses_gpus, 0, CANNOT, "tp",
     "tp @tp@ does not divide the GPUs that share a sequence"},
    {IS_TP, 0, tp_misses_heads, 0, CANNOT, "tp",
     "tp @tp@ does not divide the @heads@ attention heads"},
    {IS_TP, 0, is_cut_beside_others, 0, CANNOT, "tp", LONELY_TENSORS},
    {IS_TP, 0, is_cut_for_some, 0, CANNOT, "tp",
     "transformers' tensor parallel is of all GPUs of the job: --tp @gpus@"},
    {IS_TP, 0, is_cut_through_heads, 0, CANNOT, "tp",
     "tp @tp@ does not divide the @kv_heads@ heads of keys and values"},
    {IS_TP | IS_LORA, IS_MEGATRON, NULL, 0, CANNOT, "lora", CUT_LORA},
    {IS_TP, 0, is_cut_unevenly, 0, CANNOT, "tp",
     "tp @tp@ does not divide the words of the head or the MLP's inner values"},
    {0, 0, ep_misses_gpus, 0, CANNOT, "ep", "ep @ep@ does not divide the @gpus@ GPUs"},
    {IS_NF4, 0, packs_without_bf16, 0, CANNOT, "quantize", NO_BF16_ADAPTERS},
    {IS_NF4 | IS_FP16, 0, is_trl, 0, CANNOT, "precision", NO_SCALED_ADAPTERS},
    {0, IS_FP32, has_no_bf16, IN_YAML_FAMILY, CANNOT, "gpu",
     "@gpu@ has no bf16, in which files for @target@ are written; for trl and transformers they "
     "are in fp16 too"},
    {IS_BF16, 0, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {IS_AUTOCAST, IS_FP16, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {IS_BF16_AUTOCAST, 0, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {IS_MIXED, IS_FP16, has_no_bf16, 0, CANNOT, "precision", NO_BF16},
    {0, 0, has_flash_without_half, 0, CANNOT, "attention", NO_FLASH},
    {IS_FP16, 0, is_policy, 0, CANNOT, "precision", "@recipe@ trains in bf16"},
    {0},
};
