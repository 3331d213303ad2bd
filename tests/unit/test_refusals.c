// Combinations of settings that must be refused, each in one sentence.
#include <string.h>

#include "tests/support/jobs.h"
#include "tests/support/t.h"

static const char *const refusals[][2] = {
    {"model=gpt-oss-20b gpu=H200 context=4096 attention=sdpa", "only eager knows"},
    {"model=Qwen3-4B gpu=8xH200 context=4k recipe=trl loss=chunked:64", "chunk is 256 tokens"},
    {"model=Qwen3-4B gpu=8xH200 context=4k teacher=Qwen3-8B", "only --task distill has a teacher"},
    {"model=Qwen3-4B gpu=8xH200 context=4k prompt=1k", "nothing is generated in this task"},
    {"model=Qwen3-4B gpu=8xH200 context=4k image-size=64x64", "reads no images"},
    {"model=Qwen3-4B gpu=8xH200 context=4k cp-rank=0", "there is no context parallel"},
    {"model=Qwen3-4B gpu=8xH200 context=4k eval-size=100", "nothing is evaluated here"},
    {"model=Qwen3-4B gpu=8xH200 context=4k recipe=trl strategy=fsdp1 offload=all "
     "optimizer=adamw-8bit",
     "are modelled on the card, not in host memory"},
    {"model=falcon-7b gpu=8xH200 context=8192 recipe=trl task=grpo", "answers of Falcon are not"},
    {"model=Qwen3-Next-80B-A3B-Instruct gpu=8xH200 context=1024 recipe=trl task=grpo",
     "answers of Qwen3-Next are not modelled"},
    {"model=Qwen3-8B gpu=8xH200 context=4096 recipe=trl task=grpo strategy=fsdp1 lora=16",
     "cannot generate with adapters under fsdp1"},
    {"model=gpt-oss-20b gpu=H200 context=4096 attention=flash2", "only eager knows"},
    {"model=Qwen3-8B gpu=8xH200 cp=2 context=4096 attention=eager", "goes round with sdpa only"},
    {"model=Qwen3-8B gpu=8xH200 sp=2 context=4096 attention=eager", "under sequence parallel"},
    {"model=Qwen3-8B gpu=8xH200 recipe=trinity context=4096 attention=sdpa", "leave --attention"},
    {"model=DeepSeek-V3 gpu=8xH200 context=4096 attention=eager", "with sdpa only"},
    {"model=Qwen3-8B gpu=H200", "no context is given"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=single", "single trains on one GPU, not on 2"},
    {"model=Qwen3-8B gpu=H200 context=4k strategy=fsdp2", "nothing to shard over on one GPU"},
    {"model=Qwen3-8B gpu=H200 context=4k strategy=fsdp1", "nothing to shard over on one GPU"},
    {"model=Qwen3-8B gpu=H200 context=4k precision=mixed", "mixed is a policy of fsdp1 and"},
    {"model=Qwen3-8B gpu=H200 context=4k strategy=ddp precision=mixed",
     "single and ddp train in bf16"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=ddp offload=all",
     "is modelled under fsdp and zero3"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=ddp sp=2",
     "sequence parallel is modelled under fsdp2"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=ddp loss=none",
     "ddp needs a gradient of every parameter"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=fsdp1 sp=2",
     "sequence parallel is modelled under fsdp2"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=fsdp1 offload=all recipe=trinity",
     "under fsdp1 is not modelled with offload"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=transformers@4.40",
     "of transformers' Trainer the versions 4.41, 4.42, 4.45, 4.46, 4.48, 4.49, 4.57, 5.0, 5.17 "
     "are "
     "known, "
     "each up to the next, not '4.40'"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=transformers@5.18", "not '5.18'"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=transformers@4.x", "not '4.x'"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=transformers@4.", "not '4.'"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=fsdp1 loss=none",
     "fsdp1 is modelled with the full loss and"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k recipe=trinity loss=full",
     "Trinity-RFT has a loss of its own"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k recipe=trinity max-token-len=2048",
     "one sequence of 4096 tokens with sp 1 does not fit into 2048 tokens a GPU"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k max-token-len=4096",
     "max-token-len is a setting of trinity"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k log-prob-max-token-len=4096",
     "log-prob-max-token-len is a setting of trinity"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k recipe=trinity log-prob-max-token-len=2048",
     "log-prob-max-token-len times sp must hold at least one sequence"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k fused-kernels=on",
     "fused kernels are a setting of trinity"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k entropy-saving=on",
     "an entropy is computed under trinity only"},
    {"model=Qwen3-8B gpu=2xA100-80G context=4k recipe=trinity strategy=ddp",
     "Trinity-RFT trains under fsdp1 or fsdp2"},
    {"model=gemma-3-1b gpu=8xA100-80G context=4k recipe=trinity",
     "is not modelled as Trinity-RFT trains it"},
    {"model=Qwen3-8B gpu=H200 context=4k offload=all", "is modelled under fsdp and zero3"},
    {"model=Qwen3-8B gpu=H200 context=4k sp=2", "sequence parallel needs several GPUs"},
    {"model=Qwen3-8B gpu=6xH200 context=4k sp=4", "sp 4 does not divide the 6 GPUs"},
    {"model=Qwen2.5-0.5B gpu=4xH200 context=4k sp=4", "sp 4 does not divide the 14"},
    {"model=Qwen3-8B gpu=8xH200 context=4097 sp=2", "the context is not a multiple of sp 2"},
    {"model=Qwen3-VL-30B-A3B gpu=8xH200 context=4k strategy=fsdp1", "a vision tower is modelled"},
    {"model=DeepSeek-V3 gpu=8xH200 context=4k sp=2", "DeepSeek-V3 is not modelled under sequence"},
    {"model=gemma-3-4b gpu=8xH200 context=4k images=20", "take 5160 tokens of its context"},
    {"model=OLMo-2-0425-1B gpu=8xH200 context=4k", "OLMo 2 fails in fsdp2's mixed precision"},
    {"model=Qwen3-8B gpu=H200 context=4k loss=half", "loss must be one of full|chunked:N|none"},
    {"model=Qwen3-8B gpu=H200 context=4k loss=chunked:0",
     "loss must be one of full|chunked:N|none"},
    {"model=Qwen3-8B gpu=H200 context=4k strategy=zero4", "strategy must be one of"},
    {"model=DeepSeek-V3 layers=1 gpu=H200 context=4k precision=fp32",
     "latent attention is not modelled in fp32"},
    {"model=Qwen3-8B gpu=H200 context=256M batch=64k", "are more than can be counted"},
    {"model=Qwen3-8B gpu=H200 context=1M loss=chunked:16", "are more than 2048 chunks"},
    {"model=Qwen3-8B gpu=2xH200 context=4k save-hf=never", "only trinity's checkpoint is modelled"},
    {"model=Qwen3-8B gpu=2xH200 context=4k recipe=deepspeed strategy=fsdp2",
     "DeepSpeed's strategies are zero1, zero2 and zero3"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=trl task=kto batch=1", "--batch 2 at least"},
    {"model=Qwen3-8B gpu=2xH200 context=4k recipe=trl sp=2", "Accelerate runs Ulysses through"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=trl@1.13 task=kto batch=2",
     "trains it: --recipe trl@1.16"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=axolotl precision=fp16",
     "not modelled in the step of"},
    {"model=Qwen3-8B gpu=H200 context=4k recipe=llamafactory precision=fp16 lora=8",
     "0.9.1 loads them in fp16: --recipe llamafactory@0.9.1"},
    {"model=Qwen3-8B gpu=2xH200 context=4k recipe=transformers sp=2", "Accelerate runs Ulysses"},
    {"model=Qwen3-8B gpu=2xH200 context=4k strategy=ddp reshard=off", "nothing is sharded here"},
    {"model=Qwen3-8B gpu=8xH200 context=4k strategy=fsdp1 replicate=2", "one replica on each node"},
};

TEST(bad_combinations_are_refused_in_one_sentence)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(refusals); i++) {
        struct job p;
        struct error e;
        if (job_of(&p, test_arena(), refusals[i][0], &e) || !strstr(e.message, refusals[i][1]))
            test_failed(__FILE__, __LINE__, "%s gives '%s'", refusals[i][0], e.message);
        CHECK_U64((uint64_t)error_exit_status(e.code), 2);
    }
}
