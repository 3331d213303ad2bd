// Frameworks' files as settings: what is read, what follows, what is refused, what is said.
#include "core/foreign/foreign.h"
#include "core/job/job.h"
#include "host/formats/variables.h"
#include "tests/support/t.h"

#include <stdlib.h>

static struct str value_of(const struct settings *s, const char *key)
{
    const struct setting *item = settings_find_z(s, key);
    return item ? item->value : STR_NONE;
}

// A file's keys and, after " | ", what the user gives beside it; what is read of it: settings, with
// "-" for one that must not be there, "!" and the error, or "?" and a note after them.
struct reading {
    const char *file, *says;
};

static bool read_text(struct settings *read, struct foreign *f, struct str text, struct error *e)
{
    struct arena *a = read->arena;
    struct settings given = settings_in(a);
    struct str_cut halves = str_cut(text, '|');
    if (!settings_read(&given, halves.tail, ' ', STR("--gpu"), e))
        return false;
    for (struct str_cut c = str_cut(halves.head, ';');; c = str_cut(c.tail, ';')) {
        struct settings file = settings_in(a);
        if (!settings_read(&file, c.head, ' ', STR("run/file.yaml:1:1"), e) ||
            !foreign_read(read, f, &file, e))
            return false;
        if (!c.found)
            break;
    }
    return foreign_conclude(read, f, &given, e) && settings_check(read, e);
}

static void check_says(struct arena *a, const struct settings *read, struct str says)
{
    struct settings wanted = settings_in(a);
    struct error e = {0};
    CHECK(settings_read(&wanted, says, ' ', STR_NONE, &e));
    for (ptrdiff_t i = 0; i < wanted.count; i++) {
        struct str value = wanted.items[i].value;
        CHECK_STR(value_of(read, str_z(a, wanted.items[i].key)),
                  str_is(value, "-") ? "" : str_z(a, value));
    }
}

static void check_reading(const struct reading *r)
{
    struct arena *a = test_arena();
    struct settings read = settings_in(a);
    struct foreign f = foreign_in(a);
    struct error e = {0};
    bool ok = read_text(&read, &f, str_from(r->file), &e);
    if (r->says[0] == '!') {
        CHECK(!ok);
        CHECK_STR(str_from(e.message), r->says + 1);
        return;
    }
    struct str_cut parts = str_cut(str_from(r->says), '?');
    CHECK_STR(str_from(e.message), "");
    CHECK(ok && f.format);
    check_says(a, &read, parts.head);
    CHECK_STR(f.note_count ? f.notes[0] : STR_NONE, str_z(a, parts.tail));
}

static void check_readings(const struct reading *rows, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        check_reading(&rows[i]);
}

#define BUCKETS                                                                               \
    " zero-buckets=deepspeed?run/file.yaml:1:1: predicted with DeepSpeed's own buckets, 500 " \
    "million elements; \"auto\" in its JSON file makes them small"

#define COMPILED                                                                          \
    "!torch.compile is not modelled; in the one job that was measured it took allocated " \
    "memory from 32.7 to 21.1 GiB, so that the prediction without this key is an upper "  \
    "bound: take it out and ask again"

TEST(accelerate)
{
    static const struct reading rows[] = {
        {"deepspeed_config.zero_stage=3 distributed_type=DEEPSPEED num_processes=8",
         "strategy=zero3 precision=mixed" BUCKETS},
        {"distributed_type=FSDP fsdp_config.version=2", "strategy=fsdp2 precision=mixed"},
        {"distributed_type=FSDP", "strategy=fsdp1"},
        {"distributed_type=DEEPSPEED", "strategy=zero2" BUCKETS},
        {"distributed_type=MULTI_GPU mixed_precision=bf16", "strategy=ddp precision=autocast"},
        {"distributed_type=NO mixed_precision=no", "strategy=single precision=bf16"},
        {"distributed_type=NO dynamo_config.dynamo_backend=INDUCTOR", COMPILED},
        {"distributed_type=NO dynamo_backend=INDUCTOR", COMPILED},
        {"distributed_type=NO dynamo_config.dynamo_backend=NO mixed_precision=no",
         "strategy=single precision=bf16"},
        {"distributed_type=NO mixed_precision=fp16", "strategy=single precision=fp16"},
        {"distributed_type=FSDP fsdp_config.version=2 mixed_precision=fp16",
         "strategy=fsdp2 precision=fp16"},
        {"distributed_type=MEGATRON_LM", "!this kind of training is not modelled"},
        {"distributed_type=FSDP fsdp_config.fsdp_auto_wrap_policy=NO_WRAP",
         "!only units of a decoder layer are modelled: TRANSFORMER_BASED_WRAP"},
        {"distributed_type=FSDP fsdp_config.surprise=1",
         "!fsdp_config.fsdp_surprise '1' of Accelerate is not read, and may change memory"},
        {"distributed_type=FSDP mixed_precision=fp8",
         "!of the precisions no, bf16 and fp16 are modelled"},
        {"distributed_type=FSDP parallelism_config.parallelism_config_tp_size=2", "tp=2"},
        {"distributed_type=FSDP parallelism_config.parallelism_config_dp_replicate_size=2",
         "replicate=2"},
        {"distributed_type=FSDP fsdp_config.fsdp_sharding_strategy=HYBRID_SHARD num_machines=2 "
         "num_processes=16",
         "replicate=2"},
        {"distributed_type=FSDP fsdp_config.fsdp_sharding_strategy=NO_SHARD",
         "!of the ways to shard FULL_SHARD, SHARD_GRAD_OP and HYBRID_SHARD are read"},
        {"distributed_type=DEEPSPEED deepspeed_config.deepspeed_config_file=ds.json",
         "!what matters is in 'ds.json': give it to --from too"},
        {"distributed_type=DEEPSPEED deepspeed_config.deepspeed_config_file=ds.json;"
         "zero_optimization.stage=3 bf16.enabled=true zero_optimization.reduce_bucket_size=auto",
         "strategy=zero3 precision=mixed"},
    };
    check_readings(rows, COUNT_OF(rows));
}

#define STAGE "zero_optimization.stage=2 zero_optimization.reduce_bucket_size=auto "

static const struct reading deepspeed_readings[] = {
    {STAGE "bf16.enabled=auto scheduler.type=WarmupLR", "strategy=zero2"},
    {STAGE "bf16.enabled=false fp16.enabled=true", "strategy=zero2 precision=fp16"},
    {STAGE "bf16.enabled=false", "!DeepSpeed is modelled in bf16 and fp16 only"},
    {"zero_optimization.stage=3 zero_optimization.offload_param.device=nvme",
     "!DeepSpeed needs nvme_path beside this device"},
    {"zero_optimization.stage=3 zero_optimization.offload_param.device=nvme "
     "zero_optimization.offload_param.nvme_path=/disk",
     "!parameters and optimizer in different places are not modelled"},
    {"zero_optimization.stage=3 zero_optimization.offload_optimizer.device=nvme "
     "zero_optimization.offload_optimizer.nvme_path=/disk bf16.enabled=true "
     "zero_optimization.reduce_bucket_size=auto",
     "strategy=zero3 offload=optimizer nvme=/disk"},
    {"zero_optimization.stage=3 zero_optimization.offload_param.device=tape",
     "!only offload to host memory and NVMe is modelled"},
    {"zero_optimization.stage=3 zero_optimization.zero_hpz_partition_size=8",
     "!a second copy of the shards on every node (zero_hpz_partition_size) is not modelled"},
    {STAGE "bf16.enabled=auto zero_allow_untested_optimizer=true "
           "zero_force_ds_cpu_optimizer=false aio.block_size=1048576 tensorboard.enabled=true "
           "flops_profiler.enabled=false activation_checkpointing.cpu_checkpointing=true "
           "zero_optimization.ignore_unused_parameters=true "
           "zero_optimization.load_from_fp32_weights=true "
           "zero_optimization.elastic_checkpoint=true",
     "strategy=zero2"},
    {STAGE "zero_optimization.round_robin_gradients=true",
     "strategy=zero2?run/file.yaml:1:1: parameters are dealt to the GPUs in turn; predicted in "
     "the model's order, with shards of the same size"},
    {"zero_optimization.stage=3 zero_optimization.reduce_bucket_size=auto "
     "zero_optimization.round_robin_gradients=true zero_optimization.sub_group_size=0 "
     "zero_optimization.max_live_parameters=0 zero_optimization.max_reuse_distance=1e7",
     "strategy=zero3 sub-group-size=1 max-live-parameters=1 max-reuse-distance=1e7"},
    {STAGE "bf16.enabled=true communication_data_type=bf16", "precision=mixed"},
    {STAGE "bf16.enabled=true communication_data_type=fp16",
     "!gradients that are reduced in another type than the weights' are not modelled"},
    {STAGE "communication_data_type=fp32",
     "!of the ways to reduce gradients DeepSpeed's default is modelled"},
    {STAGE "zero_optimization.contiguous_gradients=false",
     "!gradients that are not copied into a bucket are not modelled: contiguous_gradients: "
     "true"},
    {STAGE "zero_optimization.offload_optimizer.ratio=0.3",
     "!an optimizer of which a part stays on the card is not modelled"},
    {STAGE "data_types.grad_accum_dtype=fp32",
     "!gradients that are added up in a type of their own are not modelled"},
    {STAGE "compile.disable=false", COMPILED},
    {STAGE "zero_optimization.surprise=1", "!zero_optimization.surprise '1' of DeepSpeed is "
                                           "not read, and may change memory"},
    {"zero_optimization.stage=2", "strategy=zero2" BUCKETS},
    {"zero_optimization.stage=2 zero_optimization.reduce_bucket_size=2e8 "
     "zero_optimization.stage3_max_live_parameters=1e8",
     "strategy=zero2 zero-buckets=deepspeed reduce-bucket-size=2e8 max-live-parameters="},
    {"zero_optimization.stage=3 zero_optimization.reduce_bucket_size=auto "
     "zero_optimization.stage3_prefetch_bucket_size=1e7 zero_optimization.sub_group_size=1e8",
     "strategy=zero3 zero-buckets= reduce-bucket-size= prefetch-bucket-size=1e7 "
     "persistence-threshold=100000 sub-group-size=1e8 max-live-parameters="},
    {STAGE "optimizer.type=AdamW",
     "optimizer=adamw-fused?run/file.yaml:1:1: DeepSpeed's own Adam keeps what torch's fused "
     "one keeps: predicted as adamw-fused"},
    {STAGE "optimizer.type=Adam optimizer.params.torch_adam=true", "optimizer=adamw"},
    {STAGE "optimizer.type=Adam "
           "zero_optimization.offload_optimizer.device=cpu",
     "optimizer=adamw offload=optimizer"},
    {STAGE "optimizer.type=Lamb",
     "!optimizer.type 'Lamb' is not modelled; of DeepSpeed's optimizers AdamW and Adam are"},
};

TEST(deepspeed)
{
    check_readings(deepspeed_readings, COUNT_OF(deepspeed_readings));
}

// As deepspeed/runtime/config.py has it.
TEST(deepspeed_batches)
{
    static const struct reading rows[] = {
        {STAGE "train_micro_batch_size_per_gpu=2 gradient_accumulation_steps=4", "batch=2 accum=4"},
        {STAGE "train_micro_batch_size_per_gpu=2", "batch=2 accum=-"},
        {STAGE "train_batch_size=64 train_micro_batch_size_per_gpu=2 |gpu=8xH100-80G",
         "batch=2 accum=4"},
        {STAGE "train_batch_size=64 gradient_accumulation_steps=2 |gpu=8xH100-80G",
         "batch=4 accum=2"},
        {STAGE "train_batch_size=64 |gpu=8xH100-80G", "batch=8 accum=1"},
        {STAGE "train_batch_size=64 train_micro_batch_size_per_gpu=2 sequence_parallel_size=2 "
               "|gpu=8xH100-80G",
         "batch=2 accum=8"},
        {STAGE "train_batch_size=auto train_micro_batch_size_per_gpu=auto |gpu=8xH100-80G",
         "batch=- accum=-"},
        {STAGE "train_batch_size=64 train_micro_batch_size_per_gpu=2 "
               "gradient_accumulation_steps=2 |gpu=8xH100-80G",
         "!train_batch_size 64 is not train_micro_batch_size_per_gpu 2 x "
         "gradient_accumulation_steps 2 x 8 GPUs"},
        {STAGE "train_batch_size=60 train_micro_batch_size_per_gpu=4 |gpu=8xH100-80G",
         "!train_batch_size 60 is not train_micro_batch_size_per_gpu 4 x "
         "gradient_accumulation_steps 1 x 8 GPUs"},
        {"distributed_type=DEEPSPEED num_processes=4 "
         "deepspeed_config.deepspeed_config_file=d;" STAGE
         "train_batch_size=64 train_micro_batch_size_per_gpu=2",
         "batch=2 accum=8"},
    };
    check_readings(rows, COUNT_OF(rows));
}

#define GRPO  "algorithm.algorithm_type=grpo model.max_model_len=8192 "
#define FOUR  "cluster.node_num=1 cluster.gpu_per_node=5 buffer.train_batch_size=32 "
#define ACTOR "trainer.trainer_config.actor_rollout_ref.actor."
#define REF   "trainer.trainer_config.actor_rollout_ref.ref."

// Four GPUs train on eight sequences each.
TEST(trinity_micro_batches)
{
    static const struct reading rows[] = {
        {GRPO FOUR, "batch=2 accum=4 log-prob-max-token-len=-"},
        {GRPO FOUR "trainer.max_token_len_per_gpu=16384", "batch=2 accum=4"},
        {GRPO FOUR "trainer.max_token_len_per_gpu=20000", "batch=2 accum=4"},
        {GRPO FOUR "trainer.max_token_len_per_gpu=32768", "batch=4 accum=2"},
        {GRPO FOUR "trainer.max_token_len_per_gpu=8192",
         "batch=1 accum=8?run/file.yaml:1:1: Trinity-RFT before 0.5.1 raises this to two "
         "sequences"},
        {GRPO FOUR ACTOR "ppo_max_token_len_per_gpu=32768 trainer.max_token_len_per_gpu=16384",
         "batch=4 accum=2"},
        {GRPO FOUR ACTOR "use_dynamic_bsz=false " ACTOR "ppo_micro_batch_size_per_gpu=1",
         "batch=1 accum=8 log-prob-max-token-len=16384"},
        {GRPO FOUR "trainer.use_dynamic_bsz=false " ACTOR "ppo_micro_batch_size_per_gpu=4",
         "batch=4 accum=2 log-prob-max-token-len=8192"},
        {GRPO FOUR "trainer.use_dynamic_bsz=false " ACTOR "ppo_micro_batch_size=8 " REF
                   "log_prob_micro_batch_size_per_gpu=2",
         "batch=2 accum=4 log-prob-max-token-len=-"},
        {GRPO FOUR REF "log_prob_max_token_len_per_gpu=65536",
         "batch=2 accum=4 log-prob-max-token-len=65536"},
        {GRPO FOUR "trainer.ulysses_sequence_parallel_size=2 " REF
                   "log_prob_max_token_len_per_gpu=4096",
         "batch=2 accum=8 sp=2 log-prob-max-token-len=4096"},
        {GRPO FOUR REF "ulysses_sequence_parallel_size=2",
         "!the reference model is modelled with the policy's strategy and sp only"},
        {GRPO "mode=train cluster.node_num=1 cluster.gpu_per_node=4 buffer.batch_size=4 "
              "algorithm.repeat_times=8",
         "batch=2 accum=4"},
        {GRPO "trainer.max_token_len_per_gpu=16384", "batch=2 accum=4"},
        {GRPO, "batch=- accum=-"},
        {"algorithm.algorithm_type=dpo model.max_model_len=8192 mode=train cluster.gpu_per_node=4 "
         "buffer.train_batch_size=32 trainer.use_dynamic_bsz=false " ACTOR
         "ppo_micro_batch_size_per_gpu=4 " REF "log_prob_micro_batch_size_per_gpu=4",
         "batch=2 accum=4 log-prob-max-token-len=-"}, // pairs of two rows
    };
    check_readings(rows, COUNT_OF(rows));
}

TEST(trinity_keys)
{
    static const struct reading rows[] = {
        {GRPO ACTOR "entropy_checkpointing=true " ACTOR "entropy_from_logits_with_chunking=true "
                    "trainer.trainer_config.actor_rollout_ref.model.use_fused_kernels=true",
         "fused-kernels=on entropy-saving=on task=grpo"},
        {GRPO "trainer.trainer_config.actor.fsdp_config.reshard_after_forward=false",
         "reshard=off"}, // the layout of 0.6
        {GRPO "trainer.trainer_strategy=fsdp " ACTOR "strategy=fsdp2",
         "strategy=fsdp2?"
         "run/file.yaml:1:1: strategy fsdp2, in place of fsdp1 at run/file.yaml:1:1"},
        {"model.max_prompt_tokens=1024 model.max_response_tokens=3072 "
         "algorithm.algorithm_type=rloo",
         "context=4096 task=grpo"},
        {"algorithm.algorithm_type=sft", "task=sft"},
        {"cluster.gpu_per_node=8 trainer.trainer_type=verl",
         "task=grpo?run/file.yaml: no algorithm is named: read as grpo (Trinity-RFT would train "
         "with a critic, which is not modelled)"},
        {"algorithm.algorithm_type=ppo",
         "!of Trinity's algorithms those with grpo's losses and no critic are modelled: grpo, "
         "multi_step_grpo, gigpo, grpo_verl, rloo, reinforceplusplus"},
        {GRPO "trainer.trainer_strategy=megatron", "!only fsdp and fsdp2 are modelled"},
        {GRPO "trainer.surprise=1",
         "!trainer.surprise '1' of Trinity-RFT is not read, and may change memory"},
        {GRPO ACTOR "surprise=1",
         "!trainer.trainer_config.actor_rollout_ref.actor.surprise '1' of Trinity-RFT is not "
         "read, and may change memory"},
        {GRPO ACTOR "fsdp_config.fsdp_size=4", "!shards that are replicated are not modelled"},
        {GRPO "mode=explore", "!of Trinity's modes both and train are modelled"},
        {GRPO "model.max_model_len=${oc.env:LEN}",
         "!the variable LEN is not set, and the file has no default for it"},
        {"algorithm.algorithm_type=grpo model.model_path=${oc.env:NAME} |model=Qwen3-8B",
         "task=grpo"},
        {"algorithm.algorithm_type=grpo model.model_path=$HOME/x |model=Qwen3-8B", "task=grpo"},
        {GRPO "model.max_model_len=${data.length}",
         "!'${data.length}' refers to a value that is not read"},
        {GRPO "checkpoint_root_dir=${oc.env:NOWHERE}", "task=grpo"},
    };
    check_readings(rows, COUNT_OF(rows));
}

TEST(verl)
{
#define VERL "actor_rollout_ref.model.path=Qwen/Qwen3-8B algorithm.adv_estimator=grpo "
    static const struct reading rows[] = {
        {VERL "data.max_prompt_length=1024 data.max_response_length=7168 trainer.nnodes=1 "
              "trainer.n_gpus_per_node=8 actor_rollout_ref.actor.ppo_mini_batch_size=16 "
              "actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.use_dynamic_bsz=true "
              "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384 "
              "actor_rollout_ref.actor.strategy=fsdp2",
         "context=8192 batch=2 accum=8 strategy=fsdp2 task=grpo model=Qwen/Qwen3-8B"},
        {VERL "actor_rollout_ref.actor.surprise=1",
         "!actor_rollout_ref.actor.surprise '1' of verl is not read, and may change memory"},
        {"actor_rollout_ref.model.path=x algorithm.adv_estimator=gae",
         "!a critic beside the policy (adv_estimator gae) is not modelled"},
    };
#undef VERL
    check_readings(rows, COUNT_OF(rows));
}

#define TRL "model_name_or_path=Qwen/Qwen3-4B per_device_train_batch_size=1 "
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
    {TRL "attn_implementation=flex_attention",
     "!of the attentions sdpa, eager and flash-attn 2 and 3 are modelled"},
    {TRL ";distributed_type=FSDP fsdp_config.fsdp_version=2 "
         "fsdp_config.fsdp_state_dict_type=FULL_STATE_DICT "
         "fsdp_config.fsdp_cpu_ram_efficient_loading=false",
     "save=full load-once=off"},
    {TRL ";distributed_type=FSDP fsdp_config.fsdp_version=2 "
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
    {TRL "loss_type=chunked_nll", "loss=chunked:256 sync-each-batch=-"},
    {TRL "accelerator_config.gradient_accumulation_kwargs.sync_each_batch=true",
     "sync-each-batch=on"},
    {TRL "gradient_checkpointing=false;distributed_type=FSDP num_processes=8 "
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
    {TRL "loss_type=surprise", "!loss_type 'surprise' of TRL is not modelled"},
    {TRL "use_vllm=true |context=4096",
     "!vLLM on the GPUs that train takes vllm_gpu_memory_utilization of each, which is not "
     "modelled; with vllm_mode: server it has GPUs of its own"},
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
    {TRL "use_peft=true lora_modules_to_save.0=lm_head",
     "!modules that are trained whole beside adapters are not modelled"},
    {TRL "label_smoothing_factor=0.1",
     "!labels are smoothed over all logits once more, which is not modelled"},
    {TRL "max_length=null", "context=-"},
    {TRL, "context=1024"},
    {TRL "packing=true", "batching=packed"},
    {TRL "eval_strategy=steps", "task=sft eval-batch=8"},
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
    {TRL "optim=lion_8bit", "!optim 'lion_8bit' is not modelled; of transformers' optimizers "
                            "adamw_torch, adamw_torch_fused, adamw_8bit, paged_adamw_8bit, "
                            "paged_adamw_32bit, adafactor and sgd are"},
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

TEST(llamafactory_is_read)
{
#define LF "model_name_or_path=Qwen/Qwen3-8B stage=sft "
    static const struct reading rows[] = {
        {LF "finetuning_type=full bf16=true cutoff_len=4096 per_device_train_batch_size=2 "
            "gradient_accumulation_steps=4 use_reentrant_gc=false",
         "model=Qwen/Qwen3-8B context=4096 batch=2 accum=4 lora=- precision=- task=sft"},
        {LF "bf16=true use_reentrant_gc=false", "lora=8 context=2048 batch=8 lora-targets=-"},
        {LF "bf16=true use_reentrant_gc=false lora_rank=32 lora_target=q_proj,v_proj",
         "lora=32 lora-targets=q,v"},
        {LF "bf16=true use_reentrant_gc=false lora_target=all lora_dropout=0.1",
         "lora=8 lora-dropout=on"},
        {LF "bf16=true",
         "checkpointing=-?run/file.yaml:1:1: reentrant checkpoints are not modelled: predicted as "
         "with use_reentrant false"},
        {LF "bf16=true disable_gradient_checkpointing=true", "checkpointing=off"},
        {LF "bf16=true use_reentrant_gc=false quantization_bit=4", "quantize=nf4"},
        {LF "bf16=true use_reentrant_gc=false quantization_bit=4 double_quantization=false",
         "quantize=nf4-single"},
        {LF "bf16=true quantization_bit=8",
         "!this quantisation is not modelled; nf4 with adapters is"},
        {LF "finetuning_type=full pure_bf16=true use_reentrant_gc=false", "precision=bf16"},
        {LF "pure_bf16=true", "!adapters in bf16 are not modelled; with bf16: true they are fp32"},
        {LF "finetuning_type=full", "!training in float32 is not modelled; bf16: true is"},
        {LF "finetuning_type=freeze", "!of the ways to tune full and lora are modelled"},
        {LF "bf16=true use_reentrant_gc=false flash_attn=fa2", "attention=flash2"},
        {LF "bf16=true use_reentrant_gc=false flash_attn=auto", "attention=-"},
        {LF "bf16=true use_reentrant_gc=false enable_liger_kernel=true",
         "layer-kernels=liger loss=liger"},
        {LF "bf16=true use_reentrant_gc=false neat_packing=true", "batching=packed"},
        {LF "bf16=true use_reentrant_gc=false neat_packing=true flash_attn=fa2",
         "batching=- attention=flash2?run/file.yaml:1:1: packed rows are predicted as full ones: "
         "flash-attn's kernels need no mask"},
        {LF "bf16=true use_reentrant_gc=false flash_attn=fa3", "attention=flash3"},
        {LF "bf16=true additional_target=embed_tokens",
         "!modules that are trained whole beside adapters are not modelled"},
        {LF "bf16=true surprise=1", "!surprise '1' of LLaMA-Factory is not read, and may change "
                                    "memory"},
        {LF "bf16=true use_reentrant_gc=false packing=true", "batching=-"},
        {LF "bf16=true torch_compile=true", COMPILED},
        {LF "bf16=true use_galore=true", "!of the optimizers those that optim names are modelled"},
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
        {"model_name_or_path=m stage=ppo", "!of the stages sft, pt, rm, dpo and kto are read"},
        {LF "bf16=true use_reentrant_gc=false;environment.OPTIM_TORCH=0", "expandable=off"},
    };
#undef LF
    check_readings(rows, COUNT_OF(rows));
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
     "!of the attentions sdpa, eager and flash-attn 2 and 3 are modelled"},
    {AXOLOTL KERNELS "adapter=lora lora_r=32 lora_target_linear=true", "lora=32 lora-targets=-"},
    {AXOLOTL KERNELS "adapter=qlora load_in_4bit=true lora_r=16 lora_target_modules.0=q_proj "
                     "lora_target_modules.1=up_proj",
     "lora=16 quantize=nf4 lora-targets=q,up"},
    {AXOLOTL "adapter=lora lora_r=8",
     "lora=8?run/file.yaml:1:1: axolotl's own kernels for adapters (lora_mlp_kernel and "
     "others, on by default) are not in the answer"},
    {AXOLOTL "load_in_8bit=true", "!this quantisation is not modelled; nf4 with adapters is"},
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
    {AXOLOTL "rl=orpo", "!of axolotl's rl dpo, kto and grpo are read"},
    {AXOLOTL "reward_model=true", "task=reward"},
    {"base_model=m", "!training in float32 is not modelled; bf16: true is"},
    {AXOLOTL "context_parallel_size=2",
     "!axolotl's ring attention (ring_flash_attn) is not modelled; accelerate's context "
     "parallel is, in TRL's step: --recipe trl --cp"},
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
    {AXOLOTL KERNELS "adapter=lora lora_modules_to_save.0=lm_head",
     "!modules that are trained whole beside adapters are not modelled"},
    {AXOLOTL "dpo_use_liger_kernel=true", "!this loss is not modelled; the full one is"},
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

TEST(later_files_win)
{
    struct arena *a = test_arena();
    struct settings read = settings_in(a);
    struct foreign f = foreign_in(a);
    struct error e = {0};
    CHECK(read_text(&read, &f, STR("batch=2 accum=3;batch=4 accum=3"), &e));
    CHECK(!f.format);
    CHECK_STR(value_of(&read, "batch"), "4");
    CHECK_STR(value_of(&read, "accum"), "3");
    CHECK_U64((uint64_t)f.note_count, 1);
    CHECK_STR(f.notes[0], "run/file.yaml:1:1: batch 4, in place of 2 at run/file.yaml:1:1");
}

static const char script[] = "#!/usr/bin/env bash\n"
                             "# data.max_length=1 is a comment\n"
                             "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
                             "    python3 yarn.py Qwen/Qwen3-8B model-yarn 1.6000\n"
                             "arguments=(\n"
                             "    --model 'model-yarn'\n"
                             "    --context 65536\n"
                             "    --checkpointing\n"
                             "    --save-to \"my runs\"\n"
                             ")\n"
                             "accelerate launch train.py \"${arguments[@]}\"\n";

TEST(launch_scripts)
{
    struct arena *a = test_arena();
    struct settings file = settings_in(a), read = settings_in(a), given = settings_in(a);
    struct foreign f = foreign_in(a);
    struct error e = {0};
    CHECK(script_flatten(&file, STR(script), STR("launch.sh"), &e));
    CHECK(foreign_read(&read, &f, &file, &e) && foreign_conclude(&read, &f, &given, &e));
    CHECK_STR(str_from(e.message), "");
    check_says(a, &read, STR("model=Qwen/Qwen3-8B context=65536 checkpointing=on expandable=on"));
    struct settings verl = settings_in(a);
    CHECK(script_flatten(&verl,
                         STR("python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=16 \\\n"
                             " +actor_rollout_ref.model.path=\"a b\" x.y=1\n"),
                         STR("l.sh"), &e));
    CHECK_U64((uint64_t)verl.count, 4); // with the program, and a key that no row knows
    CHECK_STR(value_of(&verl, "actor_rollout_ref.model.path"), "a b");
    CHECK_STR(verl.items[2].where, "l.sh:3");
}

TEST(variables_of_scripts)
{
    static const char text[] = "MODEL=Qwen/Qwen3-8B\nLEN=${LEN:-4096}\nexport N=$MODEL-x\n"
                               "python3 data.a=$MODEL data.b=\"${LEN}\" data.c=${N} \\\n"
                               "  data.d=$((LEN * 2)) data.e=$OTHER data.f=${1:-8}k data.g=${\n";
    static const char *const rows[][2] = {
        {"data.a", "Qwen/Qwen3-8B"},
        {"data.b", "4096"},
        {"data.c", "Qwen/Qwen3-8B-x"},
        {"data.d", "8192"},
        {"data.e", "$OTHER"},
        {"data.f", "8k"},
        {"data.g", "${"},
    };
    struct settings s = settings_in(test_arena());
    struct error e = {0};
    CHECK(script_flatten(&s, STR(text), STR("l.sh"), &e));
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        CHECK_STR(value_of(&s, rows[i][0]), rows[i][1]);
}

TEST(a_card_is_multiplied_by_the_processes)
{
    static const char *const rows[][2] = {
        {"gpu=H100-80G", "2x4xH100-80G"},
        {"gpu=2x4xH100-80G", "2x4xH100-80G"},
        {"gpu=auto", "auto"},
        {"gpu=4xH100-80G", "!the file trains on 8 GPUs, and 4xH100-80G are 4"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct settings s = settings_in(a);
        struct foreign f = {.format = "Accelerate", .machines = 2, .processes = 8};
        struct error e = {0};
        CHECK(settings_read(&s, str_from(rows[i][0]), ' ', STR("--gpu"), &e));
        if (foreign_gpu(&s, &f, &e))
            CHECK_STR(value_of(&s, "gpu"), rows[i][1]);
        else
            CHECK_STR(str_from(e.message), rows[i][1] + 1);
    }
}

TEST(variables)
{
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"${oc.env:FATHOM_SET}", "there"},
        {"${oc.env:FATHOM_SET,default}", "there"},
        {"${oc.env:FATHOM_UNSET,default}", "default"},
        {"${oc.env:FATHOM_UNSET, 'a b'}", "a b"},
        {"${oc.env:FATHOM_UNSET,./runs}/x", "./runs/x"},
        {"${oc.env:FATHOM_UNSET}", "${oc.env:FATHOM_UNSET}"},
        {"${oc.decode:${oc.env:FATHOM_UNSET,1.6}}", "1.6"},
        {"${oc.env:FATHOM_UNSET,${oc.env:FATHOM_SET}}", "there"},
        {"${other.key}", "${other.key}"},
        {"${oc.env:FATHOM_SET", "${oc.env:FATHOM_SET"},
        {"$HOME", "$HOME"},
    };
    CHECK(setenv("FATHOM_SET", "there", 1) == 0 && unsetenv("FATHOM_UNSET") == 0);
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct settings s = settings_in(test_arena());
        struct error e = {0};
        CHECK(settings_add(&s, (struct setting){STR("k"), str_from(rows[i][0]), STR("w")}, &e));
        variables_resolve(&s);
        CHECK_STR(s.items[0].value, rows[i][1]);
    }
}
