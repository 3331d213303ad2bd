// The versions that a file needs, and why. Of the rows of a package the first that holds is said.
// Read in the packages' own metadata and sources: TRL 1.9 to 1.16, transformers 5.17, Accelerate
// 1.15, DeepSpeed 0.19, Trinity-RFT 0.6, verl 0.8; Accelerate's own minima in its documentation.
#include "core/emit/draft.h"

static const struct need {
    const char *package;
    unsigned in; // files of these
    trait_set when, unless;
    const char *text;
} needs[] = {
    {"trl", IN(TRL), IS_LIGER_LAYERS | IS_SFT, 0,
     "trl >= 1.16 (its own loss beside Liger's layers)"},
    // 1.14.0 and before call trainer.train() without the checkpoint (trl/scripts/*.py).
    {"trl", IN(TRL), 0, 0,
     "trl >= 1.14.1 (to go on from a checkpoint; 1.10 to 1.14.0 read the file and begin again)"},
    {"axolotl", IN(AXOLOTL), 0, 0, "axolotl >= 0.19 (attn_implementation)"},
    {"llamafactory", IN(LLAMAFACTORY), 0, 0, "llamafactory >= 0.9.5"},
    {"flash-attn", IN_ACCELERATE_FAMILY, IS_FLASH2, 0, "flash-attn"},
    {"liger-kernel", IN_ACCELERATE_FAMILY, IS_LIGER, 0, "liger-kernel"},
    {"liger-kernel", IN_ACCELERATE_FAMILY, IS_LIGER_LAYERS, 0, "liger-kernel"},
    {"bitsandbytes", IN_YAML_FAMILY, IS_NF4, 0, "bitsandbytes"},
    {"transformers", IN(TRINITY), 0, IS_LEGACY, "transformers >= 5.12.1 (Trinity-RFT 0.6's own)"},
    {"transformers", IN_ACCELERATE_FAMILY, IS_TP, 0, "transformers >= 5.17 (tensor parallel)"},
    {"transformers", IN_ACCELERATE_FAMILY, IS_ACCUMULATES | IS_FSDP | IS_SYNCED, 0,
     "transformers >= 5.2 (sync_each_batch)"},
    {"transformers", IN(TRL), 0, 0, "transformers >= 4.56.2 (TRL's own)"},
    {"transformers", IN(ACCELERATE) | IN(DEEPSPEED) | IN(TRANSFORMERS), 0, 0,
     "transformers >= 4.56 (dtype)"},
    {"accelerate", IN_ACCELERATE_FAMILY, IS_TP, 0, "accelerate >= 1.12 (tensor parallel)"},
    {"accelerate", IN_ACCELERATE_FAMILY, IS_SP, 0, "accelerate >= 1.12 (Ulysses)"},
    {"accelerate", IN_ACCELERATE_FAMILY, IS_CP, 0, "accelerate >= 1.11 (context parallel)"},
    {"accelerate", IN(TRL), 0, 0, "accelerate >= 1.10.1 (TRL 1.16's own)"},
    {"accelerate", IN_ACCELERATE_FAMILY, IS_FSDP2, 0, "accelerate >= 1.6 (FSDP2)"},
    {"accelerate", IN_ACCELERATE_FAMILY, 0, 0, "accelerate >= 1.1 (transformers 5's own)"},
    {"torch", IN_ACCELERATE_FAMILY, IS_FSDP2, 0, "torch >= 2.6 (FSDP2)"},
    {"torch", IN_ACCELERATE_FAMILY, 0, 0, "torch >= 2.5 (transformers 5's own)"},
    {"deepspeed", IN(TRL), IS_ZERO, 0, "deepspeed >= 0.18.6 (TRL's own)"},
    {"deepspeed", IN_ACCELERATE_FAMILY, IS_SP | IS_ZERO, 0, "deepspeed >= 0.18.2 (Ulysses)"},
    {"trinity", IN(TRINITY), 0, IS_LEGACY,
     "trinity-rft >= 0.6 with verl >= 0.8 (the layout of keys)"},
    {"trinity", IN(TRINITY), IS_LEGACY, 0, "trinity-rft 0.4 with verl 0.5 (the layout of keys)"},
    {"vllm", IN(TRINITY), IS_ROLLOUT, IS_LEGACY, "vllm 0.19.1 to 0.23 (Trinity-RFT 0.6's own)"},
    {"images", IN(TRINITY), IS_VISION, 0, "qwen_vl_utils (images)"},
};

void draft_needs(struct draft *j)
{
    struct buf out = buf_in(j->arena);
    const char *said = "";
    for (ptrdiff_t i = 0; i < COUNT_OF(needs); i++) {
        const struct need *n = &needs[i];
        if (!(n->in & 1u << j->job->target) || !draft_is(j, n->when, n->unless) ||
            str_is(str_from(said), n->package))
            continue;
        said = n->package;
        buf_printf(&out, "%s%s", out.n ? ", " : "Needs ", n->text);
    }
    if (out.n)
        buf_char(&out, '.');
    draft_fact(j, "needs", buf_str(&out));
    draft_fact(j, "resumes",
               j->job->target == FOR_TRL     ? STR("TRL 1.14.1 and later go on from the newest "
                                                       "checkpoint, earlier ones begin again")
               : draft_is(j, IS_CAPACITY, 0) ? STR("the test starts anew")
                                             : STR("training goes on from the newest checkpoint"));
}
