// Files of TRL, LLaMA-Factory and axolotl as settings.
#include "tests/support/readings.h"

#define WRAPPED "fsdp_config.fsdp_auto_wrap_policy=TRANSFORMER_BASED_WRAP "
#define TRL     "model_name_or_path=Qwen/Qwen3-4B per_device_train_batch_size=1 "
#define PADDED                                                                               \
    "?run/file.yaml: predicted with rows of one length; rows of several are padded, with a " \
    "mask: --batching padded"
#define UNCUT                                                                                     \
    "?run/file.yaml:1:1: TRL cuts answers (max_completion_length 2048), and prompts not at all: " \
    "--context says how long both are"
#define TAUGHT TRL "teacher_model_name_or_path=Qwen/Qwen3-8B "
static const struct reading trl_rows[] = {
    {"model_name_or_path=Qwen/Qwen3-4B max_length=4096 |gpu=H100-80G",
     "model=Qwen/Qwen3-4B context=4096 batch=8 precision=autocast checkpointing=on "
     "task=sft" PADDED},
    {TRL "per_device_train_batch_size=2 packing=true", "batch=2 batching=packed"},
    {TRL "attn_implementation=eager", "attention=eager"},
    {TRL "attn_implementation=flash_attention_2", "attention=flash2"},
    {TRL "attn_implementation=flex_attention", "!of the attentions sdpa, eager and flash-attn 2 "
                                               "and 3 are modelled (--attention stands in for it)"},
    {TRL ";distributed_type=FSDP " WRAPPED "fsdp_config.fsdp_version=2 "
         "fsdp_config.fsdp_state_dict_type=FULL_STATE_DICT "
         "fsdp_config.fsdp_cpu_ram_efficient_loading=false",
     "save=full load-once=off"},
    {TRL ";distributed_type=FSDP " WRAPPED "fsdp_config.fsdp_version=2 "
         "fsdp_config.fsdp_state_dict_type=SHARDED_STATE_DICT",
     "save=- load-once=-"},
    {TRL ";distributed_type=DEEPSPEED deepspeed_config.zero_stage=3 "
         "deepspeed_config.zero3_save_16bit_model=false",
     "strategy=zero3 save=sharded" BUCKETS},
    {TAUGHT "teacher_model_init_kwargs.dtype=bfloat16 max_completion_length=512 |context=2048",
     "task=distill teacher=Qwen/Qwen3-8B precision=autocast"},
    {TAUGHT "dtype=bfloat16 bf16=false |context=2048", "task=distill precision=bf16"},
    {TAUGHT "max_completion_length=512",
     "!a teacher is modelled in bf16; this file loads it in the student's dtype: "
     "teacher_model_init_kwargs: {dtype: bfloat16}"},
    {TRL "dtype=bfloat16 bf16=false gradient_checkpointing=false |gpu=H100-80G",
     "precision=bf16 checkpointing=off"},
    {TRL "dtype=bfloat16 |gpu=H100-80G", "precision=bf16-autocast"},
    {TRL "dtype=auto bf16=true use_peft=true lora_dropout=0 |gpu=H100-80G",
     "lora=16 precision=bf16-autocast"},
    {TRL "dtype=bfloat16 |gpu=8xH100-80G", "precision=mixed"},
    {TRL "dtype=bfloat16 use_peft=true |gpu=8xH100-80G strategy=fsdp2", "precision=bf16-autocast"},
    {TRL "dtype=bfloat16 use_peft=true |gpu=8xH100-80G strategy=zero3", "precision=mixed"},
    {TRL "dtype=bfloat16 |gpu=8xH100-80G strategy=ddp", "precision=bf16-autocast"},
    {TRL "bf16=false", "precision=fp32"},
    {TRL "dtype=float32 model_init_kwargs.dtype=bfloat16 |gpu=H100-80G", "precision=bf16-autocast"},
    {TRL "accelerate_config=fsdp2 num_processes=8 max_length=512",
     "strategy=fsdp2 save=full precision=mixed"},
    {TRL "accelerate_config=zero3 max_length=512", "strategy=zero3 precision=mixed" BUCKETS},
    {TRL "accelerate_config=mine.yaml", "!what matters is in 'mine.yaml': give it to --from too"},
    {TRL "env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True env.NCCL_DEBUG=INFO",
     "expandable=on"},
    {TRL "attn_implementation=kernels-community/vllm-flash-attn3", "attention=flash3"},
    {TRL "optim=adamw_torch loss_type=nll per_device_train_batch_size=2 "
         "gradient_accumulation_steps=3",
     "optimizer=adamw loss=- batch=2 accum=3" PADDED},
    {TRL "gradient_checkpointing_kwargs.use_reentrant=true", "reentrant=on"},
    {TRL "gradient_checkpointing_kwargs.use_reentrant=false", "reentrant=off"},
    {TRL "loss_type=chunked_nll", "loss=chunked:256 sync-each-batch=-"},
    {TRL "accelerator_config.gradient_accumulation_kwargs.sync_each_batch=true",
     "sync-each-batch=on"},
    {TRL "gradient_checkpointing=false;distributed_type=FSDP " WRAPPED "num_processes=8 "
         "fsdp_config.fsdp_version=2 fsdp_config.fsdp_activation_checkpointing=true",
     "checkpointing=on strategy=fsdp2 precision=mixed"},
    {TRL "use_peft=true lora_r=32 lora_dropout=0", "lora=32 lora-targets=-"},
    {TRL "use_peft=true lora_dropout=0.0 lora_target_modules.0=q_proj "
         "lora_target_modules.1=v_proj",
     "lora=16 lora-targets=q,v"},
    {TRL "use_peft=true", "lora=16 lora-dropout=on"},
    {TRL "lora_r=32", "lora=-"},
    {TRL "use_peft=true lora_dropout=0.0 use_dora=true", "lora=16 dora=on"},
    {TRL "use_peft=true lora_dropout=0.0 load_in_4bit=true use_bnb_nested_quant=true "
         "dtype=bfloat16 |gpu=2xH100-80G",
     "quantize=nf4 precision=bf16"},
    {TRL "use_peft=true lora_dropout=0.0 load_in_4bit=true use_bnb_nested_quant=true "
         "dtype=bfloat16;" STAGE "|gpu=2xH100-80G",
     "quantize=nf4 precision=mixed strategy=zero2"},
    {TRL "use_peft=true lora_dropout=0.0 load_in_4bit=true use_bnb_nested_quant=true "
         "dtype=bfloat16 bnb_4bit_quant_storage=bfloat16|gpu=2xH100-80G strategy=fsdp2",
     "quantize=nf4 precision=mixed"},
    {TRL "use_peft=true lora_dropout=0.0 load_in_4bit=true use_bnb_nested_quant=true "
         "dtype=bfloat16 bf16=false bnb_4bit_quant_storage=bfloat16|gpu=2xH100-80G strategy=fsdp2",
     "quantize=nf4 precision=bf16"},
    {TRL "use_peft=true lora_dropout=0.0 load_in_4bit=true use_bnb_nested_quant=true "
         "dtype=bfloat16|gpu=2xH100-80G strategy=fsdp2",
     "!packed weights are shards under fsdp2 with bnb_4bit_quant_storage: bfloat16 only; without "
     "it every GPU keeps all of them, which is not modelled"},
    {TRL "use_peft=true lora_dropout=0.0 load_in_4bit=true dtype=bfloat16",
     "quantize=nf4-single precision=bf16"},
    {TRL "use_peft=true load_in_4bit=true",
     "!products over packed weights in float32 are not modelled; with dtype: bfloat16 they "
     "are"},
    {TRL "num_generations=8 |context=4096", "task=grpo samples=8 context=- prompt=-"},
    {TRL "max_prompt_length=512 max_completion_length=2048",
     "task=grpo context=2560 prompt=512 response=-"},
    {TRL "max_prompt_length=512 max_completion_length=1536", "context=2048 prompt=-"},
    {TRL "max_completion_length=2048 |context=2560", "context=- prompt=512"},
    {TRL "max_completion_length=2048 |context=2048", "response=2048"},
    {TRL "max_completion_length=2048", "context=-" UNCUT},
    {TRL "reward_funcs.0=accuracy_reward temperature=0.9 top_p=0.95 top_k=50 min_p=0.1 "
         "repetition_penalty=1.1 epsilon=0.2 epsilon_high=0.28 delta=4 num_iterations=2 "
         "scale_rewards=false reward_weights.0=1 mask_truncated_completions=true "
         "log_completions=true wandb_project=x system_prompt=y vllm_gpu_memory_utilization=0.3 "
         "|context=4096",
     "task=grpo"},
    {TRL "loss_type=dr_grpo |context=4096", "task=grpo loss=-"},
    {TRL "loss_type=surprise",
     "!loss_type 'surprise' of TRL is not modelled (--loss stands in for it)"},
    {TRL "use_vllm=true |context=4096",
     "!vLLM on the GPUs that train takes vllm_gpu_memory_utilization of each (0.3 where nothing is "
     "said), which is not modelled: --memory-limit says what it leaves the trainer; with "
     "vllm_mode: server it has GPUs of its own"},
    {TRL "use_vllm=true |context=4096 memory-limit=50GiB",
     "task=grpo?run/file.yaml:1:1: answers come from vLLM, beside --memory-limit: predicted as if "
     "the trainer generated them, which takes as much or more"},
    {TRL "use_vllm=true vllm_mode=server steps_per_generation=8 |context=4096",
     "task=grpo?run/file.yaml:1:1: answers come from vLLM's own GPUs: predicted as if the trainer "
     "generated them, which takes as much or more"},
    {TRL "num_generations=8 steps_per_generation=4 gradient_accumulation_steps=4 |context=4096",
     "accum=4"},
    {TRL "num_generations=8 generation_batch_size=16 |context=4096 gpu=8xH100-80G",
     "!answers of 2 micro-batches are generated at once here; modelled are those of one step, "
     "which has 1"},
    {TRL "num_generations=8 generation_batch_size=8 |context=4096 gpu=8xH100-80G", "task=grpo"},
    {TRL "entropy_coef=0.01",
     "!an entropy bonus, whose gradient goes through all logits, is not modelled"},
    {TRL "reward_model_name_or_path=m", "!a reward model beside the trained one is not modelled"},
    {TRL "attn_implementation=flash_attention_3", "attention=flash3"},
    {TRL "attn_implementation=kernels-community/flash-attn3", "attention=flash3"},
    {TRL "attn_implementation=kernels-community/vllm-flash-attn3", "attention=flash3"},
    {TRL "attn_implementation=kernels-community/flash-attn2", "attention=flash2"},
    {TRL "use_peft=true lora_dropout=0 lora_modules_to_save.0=lm_head "
         "lora_modules_to_save.1=embed_tokens",
     "lora=16 lora-whole=head,embed"},
    {TRL "use_peft=true lora_dropout=0 lora_modules_to_save.0=score", "lora=16 lora-whole=-"},
    {TRL "use_peft=true lora_modules_to_save.0=input_layernorm",
     "!of modules that are trained whole embed_tokens and lm_head are modelled, not "
     "'input_layernorm'"},
    {TRL "label_smoothing_factor=0.1",
     "!labels are smoothed over all logits once more, which is not modelled"},
    {TRL "max_length=null", "context=-"},
    {TRL, "context=1024"},
    {TRL "packing=true", "batching=packed"},
    {TRL "eval_strategy=steps", "task=sft eval-batch=8"},
    {TRL "evaluation_strategy=no use_liger=true", "eval-batch=- layer-kernels=liger"},
    {TRL "eval_strategy=epoch per_device_eval_batch_size=2", "eval-batch=2"},
    {TRL "eval_strategy=no per_device_eval_batch_size=2", "eval-batch=-"},
    {TRL "eval_strategy=steps num_generations=8 |context=4096", "task=grpo eval-batch=8"},
    {TRL "eval_strategy=steps num_generations=8 use_peft=true lora_dropout=0.0 |context=4096",
     "task=grpo eval-batch=-?run/file.yaml:1:1: evaluation generates answers with adapters and is "
     "not predicted"},
    {TRL "torch_compile=true", COMPILED},
    {TRL "torch_compile_mode=default", COMPILED},
    {TRL "torch_compile=false", "task=sft"},
    {TRL "fp16=true", "precision=fp16"},
    {TRL "fp16=true bf16=false dtype=float32", "precision=fp16"},
    {TRL "fp16=true dtype=float16", "!torch's scaler refuses gradients in fp16, and bf16 "
                                    "weights under it are not modelled: dtype: float32"},
    {TRL "optim=lion_8bit",
     "!optim 'lion_8bit' is not modelled; of transformers' optimizers "
     "adamw_torch, adamw_torch_fused, adamw_8bit, paged_adamw_8bit, "
     "paged_adamw_32bit, adafactor and sgd are (--optimizer stands in for it)"},
    {TRL "optim=paged_adamw_8bit", "optimizer=adamw-paged-8bit"},
    {TRL "optim=adamw_bnb_8bit", "optimizer=adamw-8bit"},
    {TRL "optim=paged_adamw_32bit", "optimizer=adamw-paged"},
    {TRL "deepspeed=ds.json", "!what matters is in 'ds.json': give it to --from too"},
    {TRL "per_device_train_batch_size=2;" STAGE "train_micro_batch_size_per_gpu=4",
     "batch=4?run/file.yaml:1:1: batch 4, in place of 2 at run/file.yaml:1:1"},
};

TEST(trl)
{
#undef TRL
    check_readings(trl_rows, COUNT_OF(trl_rows));
}

#define LF "model_name_or_path=Qwen/Qwen3-8B stage=sft "
static const struct reading llamafactory_readings[] = {
    {LF "finetuning_type=full bf16=true cutoff_len=4096 per_device_train_batch_size=2 "
        "gradient_accumulation_steps=4 use_reentrant_gc=false",
     "model=Qwen/Qwen3-8B context=4096 batch=2 accum=4 lora=- precision=- task=sft"},
    {LF "bf16=true use_reentrant_gc=false", "lora=8 context=2048 batch=8 lora-targets=-"},
    {LF "bf16=true use_reentrant_gc=false lora_rank=32 lora_target=q_proj,v_proj",
     "lora=32 lora-targets=q,v"},
    {LF "bf16=true use_reentrant_gc=false lora_target.0=q_proj lora_target.1=v_proj",
     "lora=8 lora-targets=q,v"},
    {LF "bf16=true use_reentrant_gc=false lora_target=all lora_dropout=0.1",
     "lora=8 lora-dropout=on"},
    {LF "bf16=true use_reentrant_gc=false", "checkpointing=- reentrant=off"},
    {LF "bf16=true", "checkpointing=- reentrant=-"},
    {LF "bf16=true disable_gradient_checkpointing=true", "checkpointing=off"},
    {LF "bf16=true use_reentrant_gc=false quantization_bit=4", "quantize=nf4"},
    {LF "bf16=true use_reentrant_gc=false quantization_bit=4 double_quantization=false",
     "quantize=nf4-single"},
    {LF "bf16=true quantization_bit=8", "!weights in 8 bits are not modelled; in 4 bits (nf4) "
                                        "they are (--quantize stands in for it)"},
    {LF "finetuning_type=full pure_bf16=true use_reentrant_gc=false", "precision=bf16"},
    {LF "pure_bf16=true", "!adapters in bf16 are not modelled; with bf16: true they are fp32"},
    {LF "finetuning_type=full", "!training in float32 is not modelled; bf16: true is"},
    {LF "finetuning_type=freeze",
     "!of the ways to tune full and lora are modelled (--lora stands in for it)"},
    {LF "bf16=true use_reentrant_gc=false flash_attn=fa2", "attention=flash2"},
    {LF "bf16=true use_reentrant_gc=false flash_attn=auto", "attention=-"},
    {LF "bf16=true use_reentrant_gc=false flash_attn=true", "attention=flash2"},
    {LF "bf16=true use_reentrant_gc=false flash_attn=off", "attention=eager"},
    {LF "bf16=true use_reentrant_gc=false evaluation_strategy=steps "
        "per_device_eval_batch_size=1",
     "eval-batch=1"},
    {LF "fp16=true use_reentrant_gc=false finetuning_type=full", "precision=fp16"},
    {LF "bf16=true use_reentrant_gc=false enable_liger_kernel=true",
     "layer-kernels=liger loss=liger"},
    {LF "bf16=true use_reentrant_gc=false neat_packing=true", "batching=packed"},
    {LF "bf16=true use_reentrant_gc=false neat_packing=true flash_attn=fa2",
     "batching=- attention=flash2?run/file.yaml:1:1: packed rows are predicted as full ones: "
     "flash-attn's kernels need no mask"},
    {LF "bf16=true use_reentrant_gc=false flash_attn=fa3", "attention=flash3"},
    {LF "bf16=true use_reentrant_gc=false additional_target=embed_tokens,lm_head",
     "lora=8 lora-whole=embed,head"},
    {LF "bf16=true use_reentrant_gc=false upcast_layernorm=true", "lora=8"},
    {LF "finetuning_type=full pure_bf16=true upcast_layernorm=true",
     "!norms in fp32 beside bf16 weights that are trained are not modelled"},
    {LF "bf16=true additional_target=embed_tokens,norm",
     "!of modules that are trained whole embed_tokens and lm_head are modelled, not 'norm'"},
    {LF "bf16=true surprise=1", "!surprise '1' of LLaMA-Factory is not read, and may change "
                                "memory"},
    {LF "bf16=true use_reentrant_gc=false packing=true", "batching=-"},
    {LF "bf16=true torch_compile=true", COMPILED},
    {LF "bf16=true use_galore=true",
     "!of the optimizers those that optim names are modelled (--optimizer stands in for it)"},
    {LF "bf16=true use_reentrant_gc=false finetuning_type=full "
        "deepspeed=examples/deepspeed/ds_z3_config.json",
     "strategy=zero3 zero-buckets=- offload=- overlap-comm=off"},
    {LF "bf16=true use_reentrant_gc=false finetuning_type=full "
        "deepspeed=examples/deepspeed/ds_z2_offload_config.json",
     "strategy=zero2 zero-buckets=deepspeed offload=optimizer overlap-comm=off"},
    {LF "bf16=true use_reentrant_gc=false finetuning_type=full "
        "deepspeed=examples/deepspeed/ds_z2_config.json;" STAGE "bf16.enabled=auto",
     "strategy=zero2 zero-buckets=-"},
    {LF "bf16=true deepspeed=my.json", "!what matters is in 'my.json': give it to --from too"},
    {"model_name_or_path=m stage=dpo bf16=true use_reentrant_gc=false", "task=dpo"},
    {"model_name_or_path=m stage=ppo",
     "!of the stages sft, pt, rm, dpo and kto are read (--task stands in for it)"},
    {LF "bf16=true use_reentrant_gc=false;environment.OPTIM_TORCH=0", "expandable=off"},
};

TEST(llamafactory_is_read)
{
#undef LF
    check_readings(llamafactory_readings, COUNT_OF(llamafactory_readings));
}

#define AXOLOTL "base_model=Qwen/Qwen3-8B bf16=auto "
#define KERNELS "lora_mlp_kernel=false "
static const struct reading axolotl_readings[] = {
    {AXOLOTL "sequence_len=4096 micro_batch_size=2 gradient_accumulation_steps=8",
     "model=Qwen/Qwen3-8B context=4096 batch=2 accum=8 attention=sdpa checkpointing=- lora=-"},
    {AXOLOTL "flash_attention=true gradient_checkpointing=true", "attention=flash2 "
                                                                 "checkpointing=on context=512"},
    {AXOLOTL "bf16=full micro_batch_size=1", "batch=1 precision=-"},
    {AXOLOTL "bf16=full adapter=lora", "!bf16: full is modelled where all weights are trained, "
                                       "on one GPU or under ddp; bf16: true "
                                       "elsewhere too"},
    {AXOLOTL "attn_implementation=flex_attention",
     "!of the attentions sdpa, eager and flash-attn 2 and 3 are modelled (--attention stands in "
     "for it)"},
    {AXOLOTL KERNELS "adapter=lora lora_r=32 lora_target_linear=true", "lora=32 lora-targets=-"},
    {AXOLOTL KERNELS "adapter=qlora load_in_4bit=true lora_r=16 lora_target_modules.0=q_proj "
                     "lora_target_modules.1=up_proj",
     "lora=16 quantize=nf4 lora-targets=q,up"},
    {AXOLOTL "adapter=lora lora_r=8",
     "lora=8?run/file.yaml:1:1: axolotl's own kernels for adapters (lora_mlp_kernel and "
     "others, on by default) are not in the answer"},
    {AXOLOTL "load_in_8bit=true",
     "!weights in 8 bits are not modelled; in 4 bits (nf4) they are (--quantize stands in for it)"},
    {AXOLOTL "fsdp_version=2 fsdp_config.offload_params=true", "strategy=fsdp2 offload=all"},
    {AXOLOTL "fsdp.0=full_shard fsdp_config.fsdp_offload_params=false", "strategy=fsdp1 offload=-"},
    {AXOLOTL "liger_rope=true liger_rms_norm=true liger_glu_activation=true "
             "liger_fused_linear_cross_entropy=true",
     "layer-kernels=liger loss=liger"},
    {AXOLOTL "liger_rope=true",
     "layer-kernels=-?run/file.yaml:1:1: some of Liger's kernels without the others are not "
     "modelled: predicted without"},
    {AXOLOTL "plugins.0=axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
     "loss=-?run/file.yaml:1:1: cut cross entropy is not modelled: predicted with the full "
     "loss, which takes more"},
    {AXOLOTL "sample_packing=true",
     "batching=-?run/file.yaml:1:1: packed rows are predicted as full ones: flash-attn's "
     "kernels and torch's varlen need no mask"},
    {AXOLOTL "rl=kto", "task=kto"},
    {AXOLOTL "rl=orpo", "!of axolotl's rl dpo, kto and grpo are read (--task stands in for it)"},
    {AXOLOTL "reward_model=true", "task=reward"},
    {"base_model=m", "!training in float32 is not modelled; bf16: true is"},
    {AXOLOTL "context_parallel_size=2",
     "!axolotl's ring attention (ring_flash_attn) is not modelled; accelerate's context "
     "parallel is, in TRL's step: --recipe trl --cp (--cp stands in for it)"},
    {AXOLOTL "attn_implementation=kernels-community/flash-attn3", "attention=flash3"},
    {AXOLOTL "tensor_parallel_size=2", "tp=2"},
    {AXOLOTL "fsdp_version=2 fsdp_config.fsdp_reshard_after_forward=true dp_shard_size=4 "
             "embeddings_skip_upcast=true |gpu=8xH100-80G",
     "strategy=fsdp2 replicate=2"},
    {AXOLOTL "fsdp_version=2 dp_shard_size=4 dp_replicate_size=4 |gpu=8xH100-80G",
     "!dp_shard_size 4 does not fit 8 GPUs with what else is split"},
    {AXOLOTL "fsdp_config.version=2 fsdp_config.fsdp_backward_prefetch=BACKWARD_PRE",
     "strategy=fsdp2 backward-prefetch=-?run/file.yaml:1:1: axolotl 0.19 hands "
     "backward_prefetch to nobody: predicted without; --backward-prefetch on is what older "
     "versions do with it"},
    {AXOLOTL "fsdp_config.fsdp_version=1 fsdp_config.auto_wrap_policy=SIZE_BASED_WRAP",
     "!only units of a decoder layer are modelled: TRANSFORMER_BASED_WRAP"},
    {AXOLOTL KERNELS "adapter=lora lora_r=8 lora_target_linear=true "
                     "lora_modules_to_save.0=embed_tokens lora_modules_to_save.1=lm_head",
     "lora=8 lora-whole=embed,head"},
    {AXOLOTL KERNELS "adapter=lora lora_modules_to_save.0=norm |lora-whole=embed",
     "lora-whole=-?run/file.yaml:1:1: --lora-whole embed in place of lora_modules_to_save.0"},
    {AXOLOTL "dpo_use_liger_kernel=true",
     "!this loss is not modelled; the full one is (--loss stands in for it)"},
    {AXOLOTL "num_labels=1 use_kernels=false unfrozen_parameters.0=^model.visual",
     "freeze=language"},
    {AXOLOTL "torch_compile=auto", COMPILED},
    {AXOLOTL "tiled_mlp=true", "!axolotl's tiled MLP is not modelled"},
    {AXOLOTL "surprise=true", "!surprise 'true' of axolotl is not read, and may change "
                              "memory"},
    {AXOLOTL "deepspeed=zero3.json", "!what matters is in 'zero3.json': give it to --from too"},
};

TEST(axolotl_is_read)
{
#undef AXOLOTL
#undef KERNELS
    check_readings(axolotl_readings, COUNT_OF(axolotl_readings));
}

#define STANDS_IN "?run/file.yaml:1:1: --"
TEST(an_option_stands_in_for_a_key_that_is_not_modelled)
{
    static const struct reading rows[] = {
        {"base_model=m bf16=true optimizer=adamw_torch_4bit |optimizer=adamw-8bit",
         "optimizer=-" STANDS_IN "optimizer adamw-8bit in place of optimizer: adamw_torch_4bit"},
        {"base_model=m bf16=true load_in_8bit=true |quantize=nf4",
         "quantize=-" STANDS_IN "quantize nf4 in place of load_in_8bit: true"},
        {"base_model=m bf16=true use_eaft=true |loss=full",
         "loss=-" STANDS_IN "loss full in place of use_eaft: true"},
        {"base_model=m context_parallel_size=2 bf16=true |cp=2",
         "cp=-" STANDS_IN "cp 2 in place of context_parallel_size: 2"},
        {"base_model=m |precision=bf16",
         "precision=-" STANDS_IN "precision bf16 in place of training in float32"},
        {"model_name_or_path=m stage=sft bf16=true use_muon=true |optimizer=muon",
         "lora=8" STANDS_IN "optimizer muon in place of use_muon: true"},
        {"model_name_or_path=m stage=sft bf16=true use_dft_loss=true |optimizer=muon",
         "!this loss is not modelled; the full one is (--loss stands in for it)"},
        {"model_name_or_path=m loss_type=dft |loss=full",
         "loss=-" STANDS_IN "loss full in place of loss_type: dft"},
        {"model_name_or_path=m load_in_8bit=true use_peft=true dtype=bfloat16 |quantize=nf4",
         "precision=bf16" STANDS_IN "quantize nf4 in place of load_in_8bit: true"},
        {"distributed_type=FSDP " WRAPPED "num_processes=2 |gpu=8xH100-80G",
         "strategy=fsdp1" STANDS_IN "gpu 8xH100-80G in place of the file's 2 GPUs"},
        {"distributed_type=FSDP " WRAPPED "num_processes=2 |gpu=H100-80G", "strategy=fsdp1"},
    };
    check_readings(rows, COUNT_OF(rows));
}

TEST(axolotl_names_layers_by_patterns)
{
#define PATTERN "base_model=m bf16=true lora_mlp_kernel=false adapter=lora lora_target_modules="
    static const struct reading rows[] = {
        {PATTERN "model.language_model.layers.[\\d]+.(mlp|cross_attn|self_attn)."
                 "(up|down|gate|q|k|v|o)_proj |",
         "lora-targets=up,down,gate,q,k,v,o"},
        {PATTERN "model\\.layers\\.\\d+\\.(self_attn)\\.(q|v|up)_proj |", "lora-targets=q,v"},
        {PATTERN "model.language_model.layers.[\\d]+.(_checkpoint_wrapped_module.)?(mlp|self_attn)."
                 "(up|down)_proj |",
         "lora-targets=up,down"},
        {PATTERN ".*\\.layers\\.(3|7)\\.self_attn\\.(q|k|v|o)_proj |",
         "!of patterns those of q, k, v, o, gate, up and down_proj in all layers of a language "
         "model are read; --lora-targets names others"},
        {PATTERN "model.layers.3.mlp.up_proj |lora-targets=up",
         "lora-targets=-?run/file.yaml:1:1: --lora-targets up in place of lora_target_modules"},
        {"base_model=m bf16=true lora_mlp_kernel=false adapter=qlora load_in_4bit=true "
         "bnb_config_kwargs.bnb_4bit_use_double_quant=false",
         "quantize=nf4-single"},
        {"base_model=m bf16=true adapter=qlora load_in_4bit=true "
         "unfrozen_parameters.0=^model.language_model.* unfrozen_parameters.1=^lm_head.*",
         "freeze=- quantize=nf4?run/file.yaml:1:1: beside an adapter unfrozen_parameters is left "
         "out: predicted with adapters alone"},
    };
#undef PATTERN
    check_readings(rows, COUNT_OF(rows));
}

TEST(keys_that_change_nothing_or_name_their_reason)
{
    static const struct reading rows[] = {
        {"base_model=m bf16=true eta_min=7e-7 full_finetune=true", "batch=-"},
        {"base_model=m bf16=true micro_batch_size=2 batch_size=9", "batch=2 accum=4"},
        {"base_model=m bf16=true micro_batch_size=2 batch_size=8 gradient_accumulation_steps=2",
         "accum=2"},
        {"base_model=m bf16=true batch_size=8",
         "!batch_size is at least micro_batch_size, which is to be there"},
        {"base_model=m bf16=true plugins.0=a.b",
         "!the plugin 'a.b' is not modelled; of axolotl's plugins Liger's and cut cross entropy's "
         "are read"},
        {"base_model=m bf16=true fused_attn_kernel=true",
         "attention=sdpa?run/file.yaml:1:1: axolotl's fused kernel for norms and positions "
         "(fused_attn_kernel) is not in the answer"},
        {"base_model=m bf16=true quantize_moe_experts=true",
         "!experts that are packed, too (quantize_moe_experts), are not modelled; without the key "
         "they are predicted in bf16, which takes more"},
        {"base_model=m bf16=true model_config.output_router_logits=true",
         "!the routers' loss (output_router_logits) is not modelled"},
        {"model_name_or_path=m callbacks.0=push_to_hub_revision code_language=cpp "
         "prompt_column=question e2b_router_url=x repetition_n_grams=3",
         "task=sft?run/file.yaml: predicted with rows of one length; rows of several are padded, "
         "with a mask: --batching padded"},
        {"model_name_or_path=m reward_model_path=r",
         "!online dpo, whose answers a reward model or a judge compares, is not modelled; dpo and "
         "grpo are"},
        {"model=m dist_config.name=fsdp2 cutoff_len=2048",
         "!this is LLaMA-Factory's v1 layout, whose trainer is not modelled; files of "
         "llamafactory-cli train with model_name_or_path and stage are read"},
        {"model_name_or_path=m stage=sft use_reentrant_gc=false bf16=true "
         "image_max_pixels=262144 |images=1",
         "image-size=512x512 freeze=-"},
        {"zero_optimization.stage=0 bf16.enabled=true |gpu=2xH100-80G",
         "strategy=ddp precision=autocast?run/file.yaml:1:1: stage 0 shards nothing, and is "
         "predicted as ddp; DeepSpeed's own buffers are not in the answer"},
        {"distributed_type=DEEPSPEED deepspeed_config.zero_stage=3 "
         "deepspeed_config.seq_parallel_communication_data_type=bf16",
         "strategy=zero3?run/file.yaml:1:1: Accelerate 1.15 hands this key to nobody: gradients of "
         "GPUs that share a sequence are reduced in fp32, DeepSpeed's default; its JSON file has "
         "the key"},
        {STAGE "sequence_parallel_size=2 |gpu=2xH100-80G",
         "sp=2?run/file.yaml:1:1: gradients of GPUs that share a sequence are predicted as reduced "
         "in the weights' type, which takes less than fp32 (seq_parallel_communication_data_type)"},
        {STAGE "sequence_parallel_size=2 seq_parallel_communication_data_type=bf16 "
               "|gpu=2xH100-80G recipe=trl",
         "sp=2?run/file.yaml:1:1: gradients of GPUs that share a sequence are predicted as reduced "
         "in fp32, which takes more (seq_parallel_communication_data_type)"},
        {"distributed_type=FSDP " WRAPPED "fsdp_config.fsdp_version=2 "
         "fsdp_config.fsdp_state_dict_type=FULL_STATE_DICT |recipe=trl",
         "save=full"},
    };
    check_readings(rows, COUNT_OF(rows));
}
