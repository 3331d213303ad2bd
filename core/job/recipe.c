// What each recipe sets, as rows. A row never overrides what the user gave; rows that hang on the
// strategy come after those that set it. hf has none: it is the plain step that fathom simulates,
// written by hand around transformers' models.
#include "core/job/recipe.h"

const struct recipe_row recipe_rows[] = {
    {.recipe = "trl",
     .setting = "strategy",
     .value = "fsdp2",
     .several = true,
     .evidence = "trl/accelerate_configs/fsdp2.yaml, the one that context parallel needs"},
    {.recipe = "trl",
     .setting = "precision",
     .value = "mixed",
     .strategies = "fsdp1|fsdp2",
     .evidence = "bf16 is SFTConfig's default; accelerate 1.15 casts the shards to fp32"},
    {.recipe = "trl",
     .setting = "precision",
     .value = "autocast",
     .strategies = "single|ddp",
     .evidence = "models are loaded in float32 (trl/trainer/utils.py), bf16 is autocast"},
    {.recipe = "trl",
     .setting = "checkpointing",
     .value = "on",
     .evidence = "trl/trainer/base_config.py: gradient_checkpointing = True"},
    {.recipe = "trl",
     .setting = "optimizer",
     .value = "adamw-fused",
     .evidence = "transformers/training_args.py: adamw_torch_fused since torch 2.8"},
    {.recipe = "trl",
     .setting = "loss",
     .value = "chunked:256",
     .evidence = "trl 1.13, sft_trainer.py: chunked_nll, _CHUNKED_LM_HEAD_CHUNK_SIZE"},
    {.recipe = "deepspeed",
     .setting = "strategy",
     .value = "zero3",
     .evidence = "trl/accelerate_configs/zero3.yaml"},
    {.recipe = "trinity",
     .setting = "strategy",
     .value = "fsdp2",
     .offloaded = true,
     .evidence = "trinity's capacity test: --offload needs trainer_strategy fsdp2"},
    {.recipe = "trinity",
     .setting = "strategy",
     .value = "fsdp1",
     .evidence = "trinity's capacity test: trainer_strategy fsdp"},
    {.recipe = "trinity",
     .setting = "batch",
     .value = "2",
     .evidence = "trinity's capacity test: max_token_len_per_gpu holds two sequences"},
    {.recipe = "trinity",
     .setting = "accum",
     .value = "4",
     .evidence = "trinity's capacity test: eight sequences for each sequence parallel group"},
    {.recipe = "trinity", .setting = "torch", .value = "2.8", .evidence = "what verl 0.5 runs on"},
};

const ptrdiff_t recipe_row_count = COUNT_OF(recipe_rows);

bool recipe_row_holds(const struct recipe_row *row, const struct settings *effective)
{
    const struct setting *item = settings_find_z(effective, row->setting);
    const struct setting *recipe = settings_find_z(effective, "recipe");
    return item && recipe && str_is(recipe->value, row->recipe) &&
           item->value.p == row->value; // a user's text lies elsewhere
}

// Without one, single on one GPU: the fallback of the setting.
static bool has_strategy(const struct settings *s, const char *strategies, bool several)
{
    const struct setting *given = settings_find_z(s, "strategy");
    struct str strategy = given ? given->value : several ? STR("fsdp2") : STR("single");
    return words_have(strategies, '|', strategy);
}

static bool is_offloaded(const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "offload");
    return item && !str_is(item->value, "off");
}

static bool applies(const struct recipe_row *row, struct str recipe, const struct settings *s,
                    bool several)
{
    return str_is(recipe, row->recipe) && !settings_find_z(s, row->setting) &&
           (several || !row->several) && (is_offloaded(s) || !row->offloaded) &&
           (!row->strategies || has_strategy(s, row->strategies, several));
}

bool recipe_fill(struct settings *effective, const struct settings *given, bool several,
                 struct error *e)
{
    const struct setting *recipe = settings_find_z(given, "recipe");
    for (ptrdiff_t i = 0; i < given->count; i++)
        if (!settings_add(effective, given->items[i], e))
            return false;
    for (ptrdiff_t i = 0; recipe && i < recipe_row_count; i++) {
        struct setting item = {str_from(recipe_rows[i].setting), str_from(recipe_rows[i].value),
                               recipe->where};
        if (!applies(&recipe_rows[i], recipe->value, effective, several))
            continue;
        if (!setting_check(setting_def_find(item.key), &item, e) ||
            !settings_add(effective, item, e))
            return false;
    }
    return true;
}
