// Every setting a user may give, one row each. The names are fixed: scripts rely on them.
#include "core/base/settings.h"

const struct setting_def setting_defs[] = {
    {.name = "model",
     .kind = SETTING_TEXT,
     .values = "MODEL",
     .text = "catalogue name (Qwen3-8B), Hugging Face id, a config.json, or a model folder"},
    {.name = "gpu",
     .kind = SETTING_TEXT,
     .values = "GPUS",
     .text = "8xH100-80G, 4x8xA100-80G (nodes x GPUs), H200 (one), auto (this machine), or "
             "8xcustom:memory=48GiB,bf16=181TFLOPS"},
    {.name = "layers",
     .kind = SETTING_COUNT,
     .values = "N",
     .min = 1,
     .max = 1024,
     .fallback = "all the model has",
     .text = "fewer decoder layers than the model has"},
    {.name = "tied",
     .kind = SETTING_SWITCH,
     .values = "on|off",
     .fallback = "as the model says",
     .text = "whether the output head shares the embedding's weights"},
    {.name = "shell",
     .kind = SETTING_CHOICE,
     .values = "bash|zsh|fish",
     .text = "the shell that completions are for",
     .operand = true},
    {.name = "topic",
     .kind = SETTING_TEXT,
     .values = "TOPIC",
     .text = "what help explains: a command, or 'settings'",
     .operand = true},
};

const ptrdiff_t setting_def_count = COUNT_OF(setting_defs);
