// Command lines that start trainers, as settings.
#include "core/foreign/foreign.h"
#include "tests/support/t.h"

#include <string.h>

// "key=value ...": each is there.
static void check_says(const struct settings *read, const char *says)
{
    struct settings wanted = settings_in(read->arena);
    struct error e = {0};
    CHECK(settings_read(&wanted, str_from(says), ' ', STR_NONE, &e));
    for (ptrdiff_t i = 0; i < wanted.count; i++) {
        const struct setting *item = settings_find(read, wanted.items[i].key);
        CHECK(item != NULL);
        CHECK_STR(item ? item->value : STR_NONE, str_z(read->arena, wanted.items[i].value));
    }
}

// What a trainer gets on its command line are keys of its files; other commands are not its own.
TEST(command_lines_of_trainers)
{
    static const char *const rows[][2] = {
        {"trl dpo --model_name_or_path Qwen/Qwen3-8B --max_length=4096",
         "model=Qwen/Qwen3-8B context=4096 task=dpo"},
        {"MODEL=Qwen/Qwen3-4B\npython prepare.py --max_length 9\n"
         "torchrun --nproc_per_node 8 reward_modeling.py \\\n  --model_name_or_path $MODEL \\\n"
         "  --max-length 2048 --gradient_accumulation_steps 8 2>&1 | tee log --append\n",
         "model=Qwen/Qwen3-4B context=2048 accum=8 task=reward"},
        {"accelerate launch --num_processes 4 a/sft.py --model_name_or_path x --use_peft "
         "--lora_target_modules q_proj v_proj --no_remove_unused_columns "
         "--gradient_checkpointing_kwargs '{\"use_reentrant\": false}' && rm -r --force x",
         "model=x lora=16 lora-targets=q,v task=sft"},
        {"accelerate launch --config_file a.yaml sft.py --model_name_or_path x",
         "!what matters is in 'a.yaml': give it to --from too"},
        {"accelerate launch --use_fsdp sft.py --model_name_or_path x",
         "!what accelerate launch shards is read from its file (--config_file) only"},
        {"trl sft --model_name_or_path x --odd 3", "!odd '3' of TRL is not read, and may"},
        {"llamafactory-cli train --stage sft --model_name_or_path x --bf16 --cutoff_len 512",
         "model=x context=512"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct settings file = settings_in(a), read = settings_in(a), given = settings_in(a);
        struct foreign f = foreign_in(a);
        struct error e = {0};
        CHECK(script_flatten(&file, str_from(rows[i][0]), STR("launch.sh"), &e));
        bool ok = foreign_read(&read, &f, &file, &e) && foreign_conclude(&read, &f, &given, &e);
        if (rows[i][1][0] == '!')
            CHECK(!ok && strstr(e.message, rows[i][1] + 1));
        else
            check_says(&read, rows[i][1]);
        CHECK(ok == (rows[i][1][0] != '!'));
    }
}
