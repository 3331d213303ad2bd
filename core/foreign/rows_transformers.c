// What scripts around transformers' Trainer take beside its arguments: those of run_clm.py, and
// names that scripts of users have for the same.
#include "core/foreign/rows.h"

#include "core/base/arena.h"

const struct foreign_row transformers_rows[] = {
    {"model_name_or_path", NULL, SETS, "model"},
    {"block_size", NULL, SETS, "context"},
    {"model_max_length", NULL, SETS, "context"},
    {"max_seq_length", NULL, SETS, "context"},
    {"max_length", NULL, SETS, "context"},
    {"dtype", NULL, FACT, "dtype"},
    {"torch_dtype", NULL, FACT, "dtype"},
    {"gradient_checkpointing", "true", FACT, "recomputed"},
    {"gradient_checkpointing", "false", FACT, "recomputed"},
    {"gradient_checkpointing_kwargs.use_reentrant", NULL, FACT, "reentrant"},
    {"use_liger_kernel", "true", FACT, "liger"},
    {"use_liger_kernel", "false", NOTHING},
    {"attn_implementation", "sdpa", NOTHING},
    {"attn_implementation", "eager", SETS, "attention", "eager"},
    {"attn_implementation", FLASH2_NAMES, SETS, "attention", "flash2"},
    {"attn_implementation", FLASH3_NAMES, SETS, "attention", "flash3"},
    {"attn_implementation", NULL, REFUSED, NULL, NO_OTHER_ATTENTION},
    {"config_overrides", NULL, REFUSED, NULL,
     "a configuration that is changed on loading is not read: --model takes a config.json"},
    {"cache_dir", NULL, NOTHING},
    {"config_name", NULL, NOTHING},
    {"data_path", NULL, NOTHING},
    {"dataset*", NULL, NOTHING},
    {"keep_linebreaks", NULL, NOTHING},
    {"low_cpu_mem_usage", NULL, NOTHING},
    {"max_eval_samples", NULL, NOTHING},
    {"max_train_samples", NULL, NOTHING},
    {"model_revision", NULL, NOTHING},
    {"model_type", NULL, NOTHING},
    {"overwrite_cache", NULL, NOTHING},
    {"preprocessing_num_workers", NULL, NOTHING},
    {"streaming", NULL, NOTHING},
    {"token", NULL, NOTHING},
    {"tokenizer_*", NULL, NOTHING},
    {"train_file", NULL, NOTHING},
    {"trust_remote_code", NULL, NOTHING},
    {"use_fast_tokenizer", NULL, NOTHING},
    {"validation_*", NULL, NOTHING},
};
const ptrdiff_t transformers_row_count = COUNT_OF(transformers_rows);
