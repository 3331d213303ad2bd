// Frameworks' files as settings: what is read, what follows, what is refused, what is said.
#include "core/foreign/foreign.h"
#include "core/job/job.h"
#include "host/formats/variables.h"
#include "tests/support/readings.h"

#include <stdlib.h>

#define FSDP "distributed_type=FSDP fsdp_config.fsdp_auto_wrap_policy=TRANSFORMER_BASED_WRAP "
#define ONE_UNIT                                                                              \
    "!without fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP Accelerate makes one unit of all " \
    "layers, which is not modelled (--strategy stands in for it)"

TEST(accelerate)
{
    static const struct reading rows[] = {
        {"deepspeed_config.zero_stage=3 distributed_type=DEEPSPEED num_processes=8",
         "strategy=zero3 precision=mixed" BUCKETS},
        {FSDP "fsdp_config.version=2", "strategy=fsdp2 precision=mixed"},
        {FSDP, "strategy=fsdp1"},
        {"distributed_type=FSDP", ONE_UNIT},
        {"distributed_type=FSDP fsdp_config.version=2", ONE_UNIT},
        {"distributed_type=DEEPSPEED", "strategy=zero2" BUCKETS},
        {"distributed_type=MULTI_GPU mixed_precision=bf16", "strategy=ddp precision=autocast"},
        {"distributed_type=NO mixed_precision=no", "strategy=single precision=bf16"},
        {"distributed_type=NO dynamo_config.dynamo_backend=INDUCTOR", COMPILED},
        {"distributed_type=NO dynamo_backend=INDUCTOR", COMPILED},
        {"distributed_type=NO dynamo_config.dynamo_backend=NO mixed_precision=no",
         "strategy=single precision=bf16"},
        {"distributed_type=NO mixed_precision=fp16", "strategy=single precision=fp16"},
        {FSDP "fsdp_config.version=2 mixed_precision=fp16", "strategy=fsdp2 precision=fp16"},
        {"distributed_type=MEGATRON_LM",
         "!this kind of training is not modelled (--strategy stands in for it)"},
        {"distributed_type=FSDP fsdp_config.fsdp_auto_wrap_policy=NO_WRAP",
         "!only units of a decoder layer are modelled: TRANSFORMER_BASED_WRAP"},
        {"distributed_type=FSDP fsdp_config.surprise=1",
         "!fsdp_config.fsdp_surprise '1' of Accelerate is not read, and may change memory"},
        {"distributed_type=FSDP mixed_precision=fp8",
         "!of the precisions no, bf16 and fp16 are modelled (--precision stands in for it)"},
        {"distributed_type=FSDP parallelism_config.parallelism_config_tp_size=2", "tp=2"},
        {FSDP "parallelism_config.parallelism_config_dp_replicate_size=2", "replicate=2"},
        {FSDP "fsdp_config.fsdp_sharding_strategy=HYBRID_SHARD num_machines=2 "
              "num_processes=16",
         "replicate=2"},
        {"distributed_type=FSDP fsdp_config.fsdp_sharding_strategy=NO_SHARD",
         "!of the ways to shard FULL_SHARD, SHARD_GRAD_OP and HYBRID_SHARD are read (--strategy "
         "stands in for it)"},
        {"distributed_type=DEEPSPEED deepspeed_config.deepspeed_config_file=ds.json",
         "!what matters is in 'ds.json': give it to --from too"},
        {"distributed_type=DEEPSPEED deepspeed_config.deepspeed_config_file=ds.json;"
         "zero_optimization.stage=3 bf16.enabled=true zero_optimization.reduce_bucket_size=auto",
         "strategy=zero3 precision=mixed"},
    };
    check_readings(rows, COUNT_OF(rows));
}

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
    {STAGE "optimizer.type=Lamb", "!optimizer.type 'Lamb' is not modelled; of DeepSpeed's "
                                  "optimizers AdamW and Adam are (--optimizer stands in for it)"},
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
         "batch=2 accum=8?run/file.yaml:1:1: gradients of GPUs that share a sequence are predicted "
         "as reduced in the weights' type, which takes less than fp32 "
         "(seq_parallel_communication_data_type)"},
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
        {VERL "data.max_prompt_length=512 data.max_response_length=1024 trainer.nnodes=1 "
              "trainer.n_gpus_per_node=8 actor_rollout_ref.actor.ppo_mini_batch_size=32 "
              "actor_rollout_ref.rollout.n=8 "
              "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16",
         "context=1536 batch=16 accum=2?run/file.yaml:1:1: predicted with rows as long as they may "
         "be, 16 x 1536 tokens a micro-batch; --context says how long yours are on average"},
        {VERL "data.max_prompt_length=512 data.max_response_length=512 trainer.nnodes=4 "
              "trainer.n_gpus_per_node=8 actor_rollout_ref.actor.ppo_mini_batch_size=256 "
              "actor_rollout_ref.rollout.n=5 actor_rollout_ref.actor.use_dynamic_bsz=true "
              "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24000 "
              "actor_rollout_ref.actor.fsdp_config.grad_offload=False",
         "context=1024 batch=20 accum=2?run/file.yaml:1:1: predicted with rows as long as they may "
         "be; a mini-batch fills this limit from 600 tokens a row on average: --context says how "
         "long yours are"},
        {VERL "data.max_prompt_length=1024 data.max_response_length=1024 trainer.nnodes=1 "
              "trainer.n_gpus_per_node=2 actor_rollout_ref.actor.ppo_mini_batch_size=256 "
              "actor_rollout_ref.rollout.n=5 "
              "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 |context=384",
         "prompt=192 batch=16 accum=40"},
        {VERL "actor_rollout_ref.actor.surprise=1",
         "!actor_rollout_ref.actor.surprise '1' of verl is not read, and may change memory"},
        {"actor_rollout_ref.model.path=x algorithm.adv_estimator=gae",
         "!a critic beside the policy (adv_estimator gae) is not modelled"},
    };
#undef VERL
    check_readings(rows, COUNT_OF(rows));
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
        {"gpu=4xH100-80G", "4xH100-80G"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct settings s = settings_in(a);
        struct foreign f = {.format = "Accelerate", .machines = 2, .processes = 8};
        struct error e = {0};
        CHECK(settings_read(&s, str_from(rows[i][0]), ' ', STR("--gpu"), &e));
        CHECK(foreign_gpu(&s, &f, &e));
        CHECK_STR(value_of(&s, "gpu"), rows[i][1]);
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
