// One resolved job: what --for implies, which rules hold where, and what the rows of the table do.
#include "tests/support/t.h"

#include <string.h>

#include "core/job/rules.h"

static bool resolve(struct job *j, struct arena *a, const char *request, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    *s = settings_in(a);
    return settings_read(s, str_from(request), ' ', STR("test"), e) && settings_check(s, e) &&
           job_resolve(j, a, s, e);
}

#define ASKED "model=Qwen3-8B gpu=8xH100-80G context=32k "

TEST(a_target_implies_its_recipe)
{
    static const char *const pairs[][2] = {
        {ASKED "for=trl", ASKED "recipe=trl"},
        {ASKED "for=accelerate", ASKED "recipe=hf"},
        {ASKED "for=deepspeed", ASKED "recipe=deepspeed"},
        {ASKED "for=trinity", ASKED "recipe=trinity"},
        {ASKED "for=slurm around=trl", ASKED "recipe=trl"},
        {ASKED "for=transformers", ASKED "recipe=transformers"},
        {ASKED "for=axolotl strategy=fsdp2", ASKED "recipe=axolotl strategy=fsdp2"},
        {ASKED "for=llamafactory lora=16", ASKED "recipe=llamafactory lora=16"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(pairs); i++) {
        struct job by_target, by_recipe;
        struct error e = {0};
        struct arena *a = test_arena();
        CHECK(resolve(&by_target, a, pairs[i][0], &e) && resolve(&by_recipe, a, pairs[i][1], &e));
        if (!e.code && !job_same_training(&by_target, &by_recipe))
            test_failed(__FILE__, __LINE__, "'%s' is another job than '%s'", pairs[i][0],
                        pairs[i][1]);
    }
}

TEST(layers_are_recomputed_as_the_trainer_does)
{
    static const struct {
        const char *request;
        bool reentrant;
    } rows[] = {
        {ASKED "recipe=llamafactory", true},
        {ASKED "recipe=llamafactory strategy=fsdp2", false},
        {ASKED "recipe=llamafactory reentrant=off", false},
        {ASKED "recipe=axolotl checkpointing=on", true},
        {ASKED "recipe=axolotl checkpointing=on task=reward", true},
        {ASKED "recipe=axolotl checkpointing=on task=dpo", false},
        {ASKED "recipe=axolotl", false}, // recomputes nothing
        {ASKED "recipe=transformers@4.46 checkpointing=on", true},
        {ASKED "recipe=transformers checkpointing=on", false},
        {ASKED "recipe=transformers checkpointing=on reentrant=on", true},
        {ASKED "recipe=transformers checkpointing=off reentrant=on", false},
        {ASKED "recipe=trl strategy=zero3", false},
        {ASKED "recipe=trl strategy=zero3 lora=16", true},
        {ASKED "recipe=trl strategy=zero3 lora=16 reentrant=off", true}, // TRL sees to it
        {ASKED "recipe=trl strategy=zero2 lora=16", false},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct job j = {0};
        struct error e = {0};
        CHECK(resolve(&j, test_arena(), rows[i].request, &e));
        if (!e.code && j.reentrant != rows[i].reentrant)
            test_failed(__FILE__, __LINE__, "'%s' is not as its trainer has it", rows[i].request);
    }
}

TEST(packed_weights_are_on_every_gpu_unless_it_is_said)
{
    struct job j = {0};
    struct error e = {0};
    CHECK(resolve(&j, test_arena(), ASKED "lora=16 quantize=nf4", &e));
    CHECK(j.strategy == STRATEGY_DDP);
    CHECK(resolve(&j, test_arena(), ASKED "lora=16", &e));
    CHECK(j.strategy == STRATEGY_FSDP2);
}

TEST(a_job_differs_in_every_field_that_trains)
{
    static const char *const changes[] = {
        "batch=2",
        "accum=2",
        "checkpointing=off",
        "reshard=off",
        "expandable=on",
        "optimizer=sgd",
        "loss=chunked:512",
        "loss=chunked:256",
        "strategy=fsdp1",
        "precision=bf16",
        "sp=2",
        "cp=2",
        "offload=all",
        "memory-limit=40GiB",
        "task=dpo",
        "reentrant=on",
        "checkpoint-offload=on",
        "tiled-mlp=on",
        "layer-kernels=liger",
        "sample-tokens=1k",
    };
    struct job plain, other;
    struct error e = {0};
    struct arena *a = test_arena();
    CHECK(resolve(&plain, a, ASKED, &e));
    for (ptrdiff_t i = 0; i < COUNT_OF(changes); i++) {
        struct str request = str_format(a, ASKED "%s", changes[i]);
        CHECK(resolve(&other, a, str_z(a, request), &e));
        if (job_same_training(&plain, &other))
            test_failed(__FILE__, __LINE__, "'%s' changes nothing", changes[i]);
    }
}

TEST(values_come_back_as_they_are_written)
{
    static const char *const words[][2] = {
        {"loss", "chunked:512"}, {"optimizer", "sgd"},        {"checkpointing", "off"},
        {"batch", "2"},          {"strategy", "fsdp1"},       {"torch", "2.8"},
        {"task", "dpo"},         {"memory-limit", "1048576"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++) {
        struct job j = {0};
        struct error e = {0};
        struct arena *a = test_arena();
        struct str request = str_format(a, ASKED "%s=%s", words[i][0], words[i][1]);
        CHECK(resolve(&j, a, str_z(a, request), &e));
        CHECK_STR(job_value(a, &j, setting_def_find(str_from(words[i][0]))), words[i][1]);
    }
}

TEST(rules_hold_for_their_targets_only)
{
    static const struct {
        const char *request, *message;
        bool unmodelled;
    } rows[] = {
        {ASKED "sp=2", "", false},
        {ASKED "for=accelerate sp=2", "through DeepSpeed only", false},
        {ASKED "for=trl loss=chunked:512", "chunk is 256", false},
        {ASKED "recipe=trl loss=chunked:512", "chunk is 256", false},
        {ASKED "for=trl recipe=hf", "run another training step: --recipe trl", false},
        {ASKED "for=verl", "", false},
        {ASKED "for=verl checkpointing=off", "modelled with checkpointing only", true},
        {ASKED "for=trl task=dpo strategy=fsdp1", "", false},
        {ASKED "for=trl task=distill teacher=Qwen3-32B strategy=zero3", "", false},
        {ASKED "for=trl task=distill teacher=Qwen3-32B strategy=fsdp2",
         "leaves the teacher in host", false},
        {ASKED "for=trl task=dpo strategy=zero2", "", false},
        {ASKED "for=trl task=capacity", "capacity is a test of Trinity", false},
        {ASKED "for=trinity tp=2", "have no word for tp", false},
        {ASKED "recipe=axolotl", "", false},
        {ASKED "recipe=axolotl attention=sdpa", "keeps norms, embedding and head in fp32", true},
        {ASKED "recipe=axolotl attention=sdpa lora=8", "", false},
        {ASKED "recipe=axolotl attention=sdpa strategy=fsdp2", "", false},
        {ASKED "for=axolotl precision=autocast", "loads the weights in bf16", false},
        {ASKED "for=axolotl strategy=fsdp2 reshard=off", "has no way to keep layers gathered",
         false},
        {ASKED "for=llamafactory lora=8 precision=autocast", "a frozen model in bf16", false},
        {ASKED "for=llamafactory cp=2 strategy=fsdp2", "with context parallel are not written",
         false},
        {ASKED "for=llamafactory task=grpo", "sft, reward, dpo and kto are written", false},
        {ASKED "for=llamafactory task=dpo", "this task is not modelled here", true},
        {ASKED "for=transformers task=dpo", "train.py trains on texts", false},
        {"model=Qwen3-8B gpu=8xV100-32G context=4k", "V100-32G has no bf16", false},
        {ASKED "recipe=trl@1.2", "versions 1.13, 1.16", false},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct job j = {0};
        struct error e = {0};
        bool possible = resolve(&j, test_arena(), rows[i].request, &e);
        const char *said = possible ? j.unmodelled.message : e.message;
        bool right = *rows[i].message ? strstr(said, rows[i].message) != NULL : !*said;
        if (!right || (*rows[i].message && possible != rows[i].unmodelled))
            test_failed(__FILE__, __LINE__, "'%s' says '%s'", rows[i].request, said);
    }
}
