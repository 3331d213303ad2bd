// What the keys of frameworks' files mean, as rows: one table a format. The first row whose key and
// value match decides; "*" at the end of a key stands for the rest of it. A key without a row is
// refused: a table ends with what is known to change nothing, never with everything else.
#ifndef FATHOM_EMIT_FOREIGN_ROWS_H
#define FATHOM_EMIT_FOREIGN_ROWS_H

#include "core/foreign/foreign.h"

enum effect {
    SETS,    // `name` to `gives`, or to the file's own value where that is NULL
    NOTHING, // on memory
    REFUSED, // because of `gives`, which follows key and value where there is a `name`
    NOTED,   // is passed over, and `gives` is said
    FACT,    // is remembered under `name`; foreign_conclude sees those of all files together
    OPEN,    // the same, whether or not it refers to a value that is not read
};

// Measured with transformers' Trainer on one H200: Qwen3-0.6B in bf16, 2 x 4096 tokens, without
// checkpointing.
#define NO_COMPILING                                                                             \
    "torch.compile is not modelled; in the one job that was measured it took allocated memory "  \
    "from 32.7 to 21.1 GiB, so that the prediction without this key is an upper bound: take it " \
    "out and ask again"

#define NO_REPLICAS "shards that are replicated are not modelled"

// transformers 5.17, modeling_flash_attention_utils.py: the packages, and kernels of the same
// versions out of the hub.
#define FLASH2_NAMES "flash_attention_2 kernels-community/flash-attn2 kernels-community/flash-attn"
#define FLASH3_NAMES                                                                      \
    "flash_attention_3 kernels-community/flash-attn3 kernels-community/vllm-flash-attn3 " \
    "vllm-flash-attn3"
#define NO_WHOLE_MODULES "modules that are trained whole beside adapters are not modelled"

// Reasons of rows that are REFUSED, each with the option that stands in for the key.
#define NO_OTHER_ATTENTION \
    "of the attentions sdpa, eager and flash-attn 2 and 3 are modelled", "attention"
#define NO_INT8          "weights in 8 bits are not modelled; in 4 bits (nf4) they are", "quantize"
#define NO_OTHER_WEIGHTS "this quantisation is not modelled; nf4 with adapters is", "quantize"
#define NO_OTHER_TUNING  "of the ways to tune full and lora are modelled", "lora"
#define NO_OTHER_LOSS    "this loss is not modelled; the full one is", "loss"
#define NO_OTHER_CHECKPOINTS \
    "this way of recomputing or offloading layers is not modelled", "checkpointing"
#define NO_OTHER_OPTIMIZER "of the optimizers those that optim names are modelled", "optimizer"
#define NO_OTHER_PRECISION "of the precisions bf16 is modelled", "precision"

struct foreign_row {
    const char *key;
    const char *value; // one of these, space-separated; NULL: any
    enum effect effect;
    const char *name, *gives;
    const char *option; // of what is REFUSED: given, it stands in for the key
};

struct foreign_format {
    const char *name, *recipe;
    const char *marks; // keys that only this format has, space-separated
    const struct foreign_row *rows;
    const ptrdiff_t *row_count;
    const char *inside; // prefixes under which keys of verl's workers stand, space-separated
    bool has_arguments; // of transformers' Trainer among its keys
};

extern const struct foreign_format foreign_formats[];
extern const ptrdiff_t foreign_format_count;

// transformers 5.17, training_args.py, OptimizerNames: what of them is modelled.
#define OTHER_OPTIMIZERS                                                                        \
    "is not modelled; of transformers' optimizers adamw_torch, adamw_torch_fused, adamw_8bit, " \
    "paged_adamw_8bit, paged_adamw_32bit, adafactor and sgd are",                               \
        "optimizer"

// Of trainers that are driven by one YAML, and of the Trainer's arguments (rows.c).
extern const struct foreign_row llamafactory_rows[], axolotl_rows[], trainer_rows[];
extern const ptrdiff_t llamafactory_row_count, axolotl_row_count, trainer_row_count;

// Of rows_deepspeed.c and rows_trl.c.
extern const struct foreign_row deepspeed_rows[], trl_rows[];
extern const ptrdiff_t deepspeed_row_count, trl_row_count;

// Of RL (rows_rl.c); keys of verl's workers are actor, ref, rollout, model and critic.
extern const struct foreign_row trinity_rows[], verl_rows[], worker_rows[];
extern const ptrdiff_t trinity_row_count, verl_row_count, worker_row_count;

// Of slime's command (rows_slime.c).
extern const struct foreign_row slime_rows[];
extern const ptrdiff_t slime_row_count;

// What launch scripts export, in whichever format the rest is.
extern const struct foreign_row script_rows[];
extern const ptrdiff_t script_row_count;

// Of Accelerate's file, whose keys are flags of its launcher, too.
extern const struct foreign_row accelerate_rows[];
extern const ptrdiff_t accelerate_row_count;

// What transformers' own scripts and a user's with its Trainer take (rows_transformers.c).
extern const struct foreign_row transformers_rows[];
extern const ptrdiff_t transformers_row_count;

// Reads the commands that were kept, as the trainer that each starts.
bool foreign_read_commands(struct settings *out, struct foreign *f, const struct settings *given,
                           struct error *e) MUST_USE;

// Said once, however often it holds.
void foreign_note(struct foreign *f, struct str text);

// Remembers a key that emit does not carry over.
void foreign_leave(struct foreign *f, struct str key);

// Refuses a value that names a variable which is not set and has no default.
bool foreign_is_resolved(const struct setting *item, struct error *e) MUST_USE;

// The same, and any other value that refers to one elsewhere.
bool foreign_is_plain(const struct setting *item, struct error *e) MUST_USE;

// Sets it, and notes the other value that was there.
bool foreign_put(struct settings *out, struct foreign *f, struct setting item,
                 struct error *e) MUST_USE;

#endif
