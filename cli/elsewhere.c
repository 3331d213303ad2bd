// See elsewhere.h: transformers', TRL's, Accelerate's, DeepSpeed's, Megatron's and vLLM's names.
#include "cli/elsewhere.h"

#include "core/base/compiler.h"

static const struct {
    const char *theirs; // words between spaces, with hyphens
    const char *ours;
} rows[] = {
    {"batch-size micro-batch-size per-device-train-batch-size train-batch-size", "--batch"},
    {"gradient-accumulation-steps grad-accum gradient-accumulation", "--accum"},
    {"seq-len seq-length sequence-length max-length max-len max-seq-length max-seq-len "
     "max-model-len context-length cutoff-len sequence-len ctx",
     "--context"},
    {"gpus num-gpus n-gpus num-processes nproc-per-node", "--gpu, as in --gpu 8xH100-80G"},
    {"model-name-or-path model-path model-name model-id", "--model"},
    {"gradient-checkpointing activation-checkpointing", "--checkpointing on"},
    {"zero zero-stage stage", "--strategy zero3"},
    {"deepspeed", "--strategy zero3, or --from with its file"},
    {"fsdp", "--strategy fsdp2"},
    {"ddp", "--strategy ddp"},
    {"bf16", "--precision bf16"},
    {"fp16", "--precision fp16"},
    {"dtype torch-dtype mixed-precision", "--precision"},
    {"lora-r lora-rank use-peft", "--lora, as in --lora 16"},
    {"qlora", "--lora 16 --quantize nf4"},
    {"load-in-4bit", "--quantize nf4"},
    {"lora-target-modules", "--lora-targets"},
    {"optim", "--optimizer"},
    {"attn-implementation flash-attn flash-attention", "--attention, as in --attention flash2"},
    {"use-liger-kernel liger", "--layer-kernels liger, and --loss liger"},
    {"packing", "--batching packed"},
    {"cpu-offload offload-params", "--offload all"},
    {"offload-optimizer", "--offload optimizer"},
    {"tensor-parallel-size tensor-model-parallel-size tp-size", "--tp"},
    {"pipeline-parallel-size pipeline-model-parallel-size pp-size", "--pp"},
    {"context-parallel-size cp-size", "--cp"},
    {"expert-parallel-size expert-model-parallel-size ep-size", "--ep"},
    {"ulysses-sequence-parallel-size sequence-parallel-size sp-size", "--sp"},
    {"num-generations", "--samples"},
    {"config config-file", "--from"},
};

static bool is_word(struct str word, struct str name)
{
    if (word.n != name.n)
        return false;
    for (ptrdiff_t i = 0; i < word.n; i++)
        if (word.p[i] != (name.p[i] == '_' ? '-' : char_lower(name.p[i])))
            return false;
    return true;
}

const char *option_elsewhere(struct str name)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct words words = words_of(rows[i].theirs, ' ');
        while (words_next(&words))
            if (is_word(words.word, name))
                return rows[i].ours;
    }
    return NULL;
}
