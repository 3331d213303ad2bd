// Command lines that start trainers, as settings.
#include "core/foreign/foreign.h"
#include "tests/support/t.h"

#include <string.h>

// "key=value ...": each is there, or is not where the value is "-".
static void check_says(const struct settings *read, const char *says)
{
    struct settings wanted = settings_in(read->arena);
    struct error e = {0};
    CHECK(settings_read(&wanted, str_from(says), ' ', STR_NONE, &e));
    for (ptrdiff_t i = 0; i < wanted.count; i++) {
        const struct setting *item = settings_find(read, wanted.items[i].key);
        struct str value = wanted.items[i].value;
        CHECK_STR(item ? item->value : STR_NONE,
                  str_is(value, "-") ? "" : str_z(read->arena, value));
    }
}

// A script and, behind "---" lines, files of the job as "key=value ..."; what the user gives beside
// them; what is read: settings, "!" and the error, and behind "?" the note that must be the first.
struct row {
    const char *script, *given, *says;
};

static bool read_job(struct settings *read, struct foreign *f, const struct row *r, struct error *e)
{
    struct settings given = settings_in(read->arena), script = settings_in(read->arena);
    struct str rest = str_from(r->script);
    const char *files = strstr(r->script, "---");
    if (files)
        rest.n = files - r->script;
    if (!settings_read(&given, str_from(r->given), ' ', STR("--gpu"), e) ||
        !script_flatten(&script, rest, STR("launch.sh"), e) || !foreign_read(read, f, &script, e))
        return false;
    for (; files; files = strstr(files + 3, "---")) {
        struct settings file = settings_in(read->arena);
        const char *end = strstr(files + 3, "---");
        struct str text = str_from(files + 3);
        if (end)
            text.n = end - files - 3;
        if (!settings_read(&file, text, ' ', STR("file.yaml:1:1"), e) ||
            !foreign_read(read, f, &file, e))
            return false;
    }
    return foreign_conclude(read, f, &given, e);
}

static void check_rows(const struct row *rows, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        struct settings read = settings_in(test_arena());
        struct foreign f = foreign_in(read.arena);
        struct error e = {0};
        bool ok = read_job(&read, &f, &rows[i], &e), refused = rows[i].says[0] == '!';
        CHECK(ok == !refused);
        if (refused)
            CHECK_STR(str_from(e.message), rows[i].says + 1);
        else
            CHECK_STR(str_from(e.message), "");
        if (refused || !ok)
            continue;
        struct str_cut parts = str_cut(str_from(rows[i].says), '?');
        check_says(&read, str_z(read.arena, parts.head));
        CHECK_STR(f.note_count ? f.notes[0] : STR_NONE, str_z(read.arena, parts.tail));
    }
}

#define PADDED                                                                                 \
    "?launch.sh: predicted with rows of one length; rows of several are padded, with a mask: " \
    "--batching padded"

// What a trainer gets on its command line are keys of its files; other commands are not its own.
TEST(command_lines_of_trainers)
{
    static const struct row rows[] = {
        {"trl dpo --model_name_or_path Qwen/Qwen3-8B --max_length=4096", "",
         "model=Qwen/Qwen3-8B context=4096 task=dpo" PADDED},
        {"MODEL=Qwen/Qwen3-4B\npython prepare.py --max_length 9\n"
         "torchrun --nproc_per_node 8 reward_modeling.py \\\n  --model_name_or_path $MODEL \\\n"
         "  --max-length 2048 --gradient_accumulation_steps 8 2>&1 | tee log --append\n",
         "", "model=Qwen/Qwen3-4B context=2048 accum=8 task=reward strategy=ddp" PADDED},
        {"accelerate launch --num_processes 1 a/sft.py --model_name_or_path x --use_peft "
         "--lora_target_modules q_proj v_proj --no_remove_unused_columns "
         "--per_device_train_batch_size 1 "
         "--gradient_checkpointing_kwargs '{\"use_reentrant\": false}' && rm -r --force x",
         "", "model=x lora=16 lora-targets=q,v task=sft"},
        {"trl sft --model_name_or_path x --use_peft --lora_dropout 0 --lora_modules_to_save "
         "lm_head",
         "", "model=x lora=16 lora-whole=head" PADDED},
        {"accelerate launch --config_file a.yaml sft.py --model_name_or_path x", "",
         "!what matters is in 'a.yaml': give it to --from too"},
        {"trl sft --model_name_or_path x --odd 3", "",
         "!odd '3' of TRL is not read, and may change memory"},
        {"llamafactory-cli train --stage sft --model_name_or_path x --bf16 --cutoff_len 512 "
         "--use_reentrant_gc false",
         "", "model=x context=512"},
    };
    check_rows(rows, COUNT_OF(rows));
}

#define SFT " sft.py --model_name_or_path x --per_device_train_batch_size 1"
#define BY_DEFAULT                                                                           \
    "?launch.sh:1: predicted as DDP: nothing says how to shard; a default_config.yaml that " \
    "`accelerate config` wrote would, and must then be given to --from too"

// Several GPUs without a word on sharding: a process each, or nn.DataParallel in one.
TEST(how_trainers_are_started)
{
    static const struct row rows[] = {
        {"accelerate launch --multi_gpu --num_processes 8" SFT, "gpu=H100-80G",
         "strategy=ddp precision=autocast"},
        {"accelerate launch" SFT, "gpu=8xH100-80G", "strategy=ddp" BY_DEFAULT},
        {"accelerate launch --num_processes 8" SFT, "gpu=H100-80G", "strategy=ddp" BY_DEFAULT},
        {"accelerate launch" SFT, "gpu=H100-80G", "task=sft"},
        {"accelerate launch" SFT, "gpu=8xH100-80G strategy=zero3", "precision=mixed"},
        {"trl sft --model_name_or_path x --per_device_train_batch_size 1 --num_processes 8", "",
         "strategy=ddp" BY_DEFAULT},
        {"trl sft --model_name_or_path x --per_device_train_batch_size 1 --accelerate_config fsdp2",
         "gpu=8xH100-80G", "strategy=fsdp2"},
        {"torchrun --nnodes 2 --nproc_per_node 8" SFT, "gpu=H100-80G", "strategy=ddp"},
        {"python3 -m torch.distributed.run --nproc-per-node=8" SFT, "", "strategy=ddp"},
        {"deepspeed --num_gpus 8" SFT, "", "strategy=ddp"},
        {"torchrun --nproc_per_node $N" SFT, "gpu=8xH100-80G", "strategy=ddp"},
        {"torchrun --nproc_per_node $N" SFT, "gpu=H100-80G",
         "!the number of GPUs is '$N', which is not read: --gpu 8xH100-80G is an example"},
        {"python" SFT, "gpu=H100-80G", "task=sft"},
        {"python" SFT, "gpu=8xH100-80G",
         "!one process is started: over several GPUs transformers' Trainer has nn.DataParallel "
         "then, which is not modelled; accelerate launch or torchrun starts a process for each"},
        {"$START" SFT, "gpu=8xH100-80G",
         "!how this is started is not read: --strategy ddp, fsdp2, ... says it"},
    };
    check_rows(rows, COUNT_OF(rows));
}

// transformers 5.17 still reads words, as FSDP2.
TEST(fsdp_among_the_arguments)
{
    static const struct row rows[] = {
        {"torchrun --nproc_per_node 8" SFT " --fsdp 'full_shard auto_wrap'", "gpu=H100-80G",
         "strategy=fsdp2 load-once=off save=full reshard=- offload=-"},
        {"torchrun --nproc_per_node 8" SFT " --fsdp 'shard_grad_op offload'", "gpu=H100-80G",
         "strategy=fsdp2 reshard=off offload=all"},
        {"torchrun --nproc_per_node 8" SFT " --fsdp false", "gpu=H100-80G", "strategy=ddp"},
        {"torchrun --nproc_per_node 8" SFT " --fsdp hybrid_shard", "gpu=H100-80G",
         "!of transformers' ways to shard full_shard, shard_grad_op, auto_wrap and offload are "
         "FSDP2's, not 'hybrid_shard' (--strategy stands in for it)"},
        {"torchrun --nproc_per_node 8" SFT " --fsdp true --fsdp_config f.json", "gpu=H100-80G",
         "!what is in the arguments for FSDP is not read; Accelerate's own file is (--strategy "
         "stands in for it)"},
        {"torchrun --nproc_per_node 8" SFT
         " --fsdp true --fsdp_transformer_layer_cls_to_wrap Qwen3DecoderLayer",
         "gpu=H100-80G",
         "!transformers 5 has no such argument, and finds the layers by itself: leave it out; "
         "--recipe transformers@4.57 reads it"},
        {"torchrun --nproc_per_node 8" SFT " --fsdp full_shard", "gpu=H100-80G recipe=trl@1.14",
         "!fsdp in the arguments is read of today's Trainer and of transformers@4.41 to 4.57 "
         "(--strategy stands in for it)"},
    };
    check_rows(rows, COUNT_OF(rows));
}

#define OWN                                                                                  \
    " train.py --model_name_or_path x --model_max_length 512 --per_device_train_batch_size " \
    "1 --lazy_preprocess True --data_path a.json --eval_data_path b.json"
#define OWN_ON_8 "torchrun --nproc_per_node 8" OWN
#define OWN_ON_1 "torchrun --nproc_per_node 1" OWN
#define LAYERS   " --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer"

// The commands of Alpaca and what came of it: before transformers 5 the words meant FSDP1.
TEST(fsdp_among_older_arguments)
{
    static const struct row rows[] = {
        {OWN_ON_8 " --bf16 True --fsdp 'full_shard auto_wrap'" LAYERS " --evaluation_strategy no",
         "gpu=A100-40G recipe=transformers@4.41",
         "strategy=fsdp1 load-once=off save=full precision=mixed eval-batch=-"},
        {OWN_ON_8 " --fp16 True --fsdp 'shard_grad_op auto_wrap'",
         "gpu=V100-32G recipe=transformers@4.57", "strategy=fsdp1 reshard=off precision=fp16"},
        {OWN_ON_8 " --bf16 True --fsdp full_shard", "gpu=A100-40G recipe=transformers@4.57",
         "!without auto_wrap transformers 4 makes one unit of all layers, which is not modelled "
         "(--strategy stands in for it)"},
        {OWN_ON_8 " --fsdp 'hybrid_shard auto_wrap'", "gpu=A100-40G recipe=transformers@4.57",
         "!of transformers' ways to shard full_shard, shard_grad_op, auto_wrap and offload are "
         "modelled, not 'hybrid_shard' (--strategy stands in for it)"},
        {OWN_ON_8 " --fsdp full_shard", "gpu=A100-40G recipe=transformers@5.0",
         "!fsdp in the arguments is read of today's Trainer and of transformers@4.41 to 4.57 "
         "(--strategy stands in for it)"},
    };
    check_rows(rows, COUNT_OF(rows));
}

// Weights are loaded as they are saved since transformers 5, before in fp32; in fp16 torch's scaler
// takes nothing else where they are not sharded.
TEST(types_of_weights_that_scripts_load)
{
    static const struct row rows[] = {
        {OWN_ON_1 " --bf16 True", "gpu=H200 recipe=transformers", "precision=bf16-autocast"},
        {OWN_ON_1 " --bf16 True", "gpu=H200 recipe=transformers@4.57", "precision=autocast"},
        {OWN_ON_1 " --bf16 True --torch_dtype bfloat16", "gpu=H200 recipe=transformers@4.57",
         "precision=bf16-autocast"},
        {OWN_ON_1, "gpu=H200 recipe=transformers@4.41", "precision=fp32"},
        {OWN_ON_1 " --fp16 True", "gpu=H200 recipe=transformers@4.41", "precision=fp16"},
        {OWN_ON_1 " --fp16 True --dtype float32", "gpu=H200 recipe=transformers", "precision=fp16"},
        {OWN_ON_8 " --fp16 True", "gpu=H200 recipe=transformers strategy=zero3", "precision=fp16"},
        {OWN_ON_1 " --fp16 True", "gpu=H200 recipe=transformers",
         "!torch's scaler refuses gradients of weights that are loaded as they are saved: dtype "
         "float32, or --precision fp16 where the script itself says so"},
        {OWN_ON_1 " --fp16 True", "gpu=H200 recipe=transformers precision=fp16",
         "context=512?launch.sh:1: --precision fp16 in place of fp16"},
        {OWN_ON_1 " --fp16 True", "gpu=H200 recipe=transformers lora=8",
         "!weights in fp16 below adapters in fp32 are not modelled; in bf16 they are as large: "
         "--precision bf16-autocast"},
    };
    check_rows(rows, COUNT_OF(rows));
}

// Adapters that a script of one's own makes, with what it leaves to itself.
TEST(adapters_of_scripts)
{
#define GIVEN "gpu=H200 recipe=transformers "
    static const struct row rows[] = {
        {OWN_ON_1 " --lora_r 8", GIVEN,
         "!what adapters a script makes, and on which layers, is not read (--lora stands in for "
         "it)"},
        {OWN_ON_1 " --lora_r 8 --lora_alpha 16 --lora_dropout 0", GIVEN "lora=8",
         "context=512?launch.sh:1: --lora 8 in place of lora_r: 8"},
        {OWN_ON_1 " --lora_dropout 0.05", GIVEN "lora=8",
         "!what adapters a script makes, and on which layers, is not read (--lora-dropout stands "
         "in for it)"},
        {OWN_ON_1 " --q_lora True", GIVEN "lora=8",
         "!how a script packs weights is not read (--quantize stands in for it)"},
        {OWN_ON_1 " --use_lora False --q_lora False", GIVEN, "lora=-"},
        {OWN_ON_1 " --evaluation_strategy steps", GIVEN, "eval-batch=8"},
    };
#undef GIVEN
    check_rows(rows, COUNT_OF(rows));
}

#define WRAPPED "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP"

// Flags of Accelerate's launcher are the keys of its file, and mean nothing where neither it nor
// the file chose their way.
TEST(flags_of_the_launcher)
{
    static const struct row rows[] = {
        {"accelerate launch --use_fsdp --fsdp_version 2 " WRAPPED " --num_processes 8 "
         "--fsdp_offload_params true --fsdp-reshard-after-forward false" SFT,
         "gpu=H100-80G", "strategy=fsdp2 offload=all reshard=off precision=mixed"},
        {"accelerate launch --use_fsdp " WRAPPED SFT, "gpu=8xH100-80G", "strategy=fsdp1"},
        {"accelerate launch --use_fsdp --fsdp_version 2" SFT, "gpu=8xH100-80G",
         "!without --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP Accelerate makes one unit of all "
         "layers, which is not modelled (--strategy stands in for it)"},
        {"accelerate launch --use_fsdp " WRAPPED " --fsdp_reshard_after_forward odd" SFT,
         "gpu=8xH100-80G",
         "!launcher.fsdp_config.fsdp_reshard_after_forward 'odd' of TRL is not read, and may "
         "change memory"},
        {"accelerate launch --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu" SFT,
         "gpu=8xH100-80G",
         "strategy=zero3 offload=optimizer?launch.sh:1: predicted with DeepSpeed's own buckets, "
         "500 million elements; \"auto\" in its JSON file makes them small"},
        {"accelerate launch --use_deepspeed --deepspeed_config_file d.json" SFT, "gpu=8xH100-80G",
         "!what matters is in 'd.json': give it to --from too"},
        {"accelerate launch --zero_stage 3 --fsdp_version 2 --multi_gpu" SFT, "gpu=8xH100-80G",
         "strategy=ddp"},
        {"accelerate launch --mixed_precision fp8 --multi_gpu" SFT, "gpu=8xH100-80G",
         "!of the precisions no, bf16 and fp16 are modelled (--precision stands in for it)"},
        {"trl sft --model_name_or_path x --per_device_train_batch_size 1 --use_fsdp "
         "--fsdp_version 2 " WRAPPED,
         "gpu=8xH100-80G", "strategy=fsdp2"},
    };
    check_rows(rows, COUNT_OF(rows));
}

#define SHARDS                                                             \
    "---distributed_type=FSDP num_processes=8 fsdp_config.fsdp_version=2 " \
    "fsdp_config.fsdp_auto_wrap_policy=TRANSFORMER_BASED_WRAP"
#define TRL_FILE "---model_name_or_path=y max_length=4096 per_device_train_batch_size=1 "

// Flags win over the files behind a command, in whichever order they are given, and a request of
// our own behind it over both.
TEST(flags_win_over_files)
{
    static const struct row rows[] = {
        {"accelerate launch --config_file a.yaml --num_processes 4" SFT
         " --max_length 8192" SHARDS TRL_FILE,
         "gpu=4xH100-80G",
         "model=x context=8192 strategy=fsdp2?launch.sh:1: model x, in place of y at "
         "file.yaml:1:1"},
        {"accelerate launch --multi_gpu --config_file a.yaml" SFT SHARDS, "",
         "strategy=ddp?launch.sh:1: strategy ddp, in place of fsdp2 at file.yaml:1:1"},
        {"accelerate launch --config_file a.yaml --num_processes 4" SFT " --max_length 8192" SHARDS
         "---context=2k",
         "", "context=2k?file.yaml:1:1: context 2k, in place of 8192 at launch.sh:1"},
        {"trl sft --config sft.yaml --max_length 512" TRL_FILE, "",
         "model=y context=512?launch.sh:1: context 512, in place of 4096 at file.yaml:1:1"},
        {"trl sft --config sft.yaml --max_length 512", "",
         "!what matters is in 'sft.yaml': give it to --from too"},
        {"accelerate launch s/sft.py --config sft.yaml" TRL_FILE, "", "model=y context=4096"},
        {"accelerate launch src/train.py sft.yaml" TRL_FILE, "", "model=y context=4096"},
        {"accelerate launch src/train.py sft.yaml", "",
         "!what matters is in 'sft.yaml': give it to --from too"},
        {"FORCE_TORCHRUN=1 llamafactory-cli train a.yaml cutoff_len=512"
         "---model_name_or_path=y stage=sft cutoff_len=64 bf16=true use_reentrant_gc=false",
         "", "model=y context=512?launch.sh:1: context 512, in place of 64 at file.yaml:1:1"},
        {"axolotl train a.yaml --micro-batch-size 4"
         "---base_model=y bf16=auto micro_batch_size=1 flash_attention=true",
         "", "model=y batch=4?launch.sh:1: batch 4, in place of 1 at file.yaml:1:1"},
        {"axolotl train a.yaml", "", "!what matters is in 'a.yaml': give it to --from too"},
    };
    check_rows(rows, COUNT_OF(rows));
}

#define REFUSED_AS(name)                                                                       \
    "!the trainer '" name "' is not modelled; of TRL's trainers sft, dpo, kto, reward, grpo, " \
    "rloo and distillation are"

// Whose trainer a program is: by its name, by keys that only one has, or by the user's word.
TEST(whose_trainer_it_is)
{
#define TOLD " --model_name_or_path x --per_device_train_batch_size 1"
    static const struct row rows[] = {
        {"python bco.py" TOLD " --odd 1", "", REFUSED_AS("bco")},
        {"python examples/scripts/dpo_online.py" TOLD, "", REFUSED_AS("dpo_online")},
        {"python nash_md.py" TOLD, "", REFUSED_AS("nash")},
        {"accelerate launch scripts/run_orpo.py a.yaml", "", REFUSED_AS("orpo")},
        {"trl ppo" TOLD, "", REFUSED_AS("ppo")},
        {"trl else" TOLD, "", REFUSED_AS("else")},
        {"trl vllm-serve --model x\ntrl sft" TOLD, "", "model=x task=sft"},
        {"trl sft" TOLD "\ntrl dpo" TOLD, "",
         "!this is the second trainer that the script starts: one at a time is read"},
        {"python init.py --model_name_or_path y --output_dir x\ntrl sft" TOLD, "", "model=x"},
        {"python dpo_vlm.py" TOLD, "", "task=dpo"},
        {"python train.py" TOLD, "",
         "!the name 'train' does not say whose trainer it is: --recipe trl or --recipe "
         "transformers does"},
        {"python train.py" TOLD, "recipe=trl@1.13", "model=x context=1024"},
        {"python train.py --bf16 True" TOLD, "recipe=transformers",
         "model=x context=- precision=bf16-autocast"},
        {"python run_clm.py --block_size 512 --dtype float32 --bf16" TOLD, "",
         "context=512 precision=autocast checkpointing=-"},
        {"python run_sft.py" TOLD, "",
         "!the name 'run_sft' does not say whose trainer it is: --recipe trl or --recipe "
         "transformers does"},
        {"python run_sft.py --packing" TOLD, "", "task=sft batching=packed"},
        {"python train.py --stage sft --bf16 --use_reentrant_gc false" TOLD, "", "model=x lora=8"},
    };
    check_rows(rows, COUNT_OF(rows));
}

// What sbatch tells its script, and shells within a shell.
TEST(commands_under_slurm)
{
    static const struct row rows[] = {
        {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:8\n"
         "srun --label torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE" SFT,
         "gpu=H100-80G", "strategy=ddp"},
        {"#SBATCH -N 2\nN=4\nsrun bash -c \"torchrun --nnodes $SLURM_NNODES --nproc_per_node "
         "$N" SFT "\"",
         "gpu=H100-80G", "strategy=ddp model=x"},
        {"trinity run --config a.yaml", "", "!what matters is in 'a.yaml': give it to --from too"},
        {"srun bash -c 'A=1 exec bash launch.sh'", "",
         "!what matters is in 'launch.sh': give it to --from too"},
    };
    check_rows(rows, COUNT_OF(rows));
}
