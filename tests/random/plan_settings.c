// A plan leaves nothing out: no setting that a user may add to a question, and that does not change
// what is trained, makes its answer faster than the plan without it found, beyond the hundredth in
// which times are the same. Settings and their values are those of the table; what is not asked is
// listed with its reason, and a row of the table that is neither is a failure.
//
// plan_settings quick|few|all|pairs [PART]: few layers in three questions or in more, or whole
// models (an hour); pairs add two settings at a time to few layers. PART: only questions that have
// it in their words.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/job.h"
#include "core/plan/plan.h"

enum { MIB_OF_A_PLAN = 3072, MOST_TEXT = 1024, MOST_ADDED = 256 };

// ------------------------------------------------------------------ what is added

static const struct {
    const char *names; // "|" between them
    const char *why;
} left_out[] = {
    {"model|gpu|layers|like|tied|context|recipe|for|around|task|images|image-size|freeze|batching|"
     "sample-tokens|teacher|prompt|response|beta",
     "another job"},
    {"precision|optimizer|lora|lora-targets|lora-whole|lora-dropout|dora|quantize",
     "does not train the same"},
    {"batch|accum", "what a plan divides the batch into"},
    {"torch|memory-limit|cp-rank|pp-rank|eval-batch|eval-size|eval-logits|save|save-hf|load-once",
     "what is around a step, or told of one"},
    {"precompute-reference", "takes its time before the first step"},
    {"checkpoint-offload|tiled-mlp|log-prob-max-token-len", "no files say it"},
    {"reduce-bucket-size|prefetch-bucket-size|persistence-threshold|sub-group-size|"
     "max-live-parameters|max-reuse-distance",
     "any number; zero-buckets has those that are used"},
};

// Of counts; others have theirs from the table.
static const struct {
    const char *names;
    const char *values; // a comma between them
} counts[] = {
    {"sp|cp|tp|ep|pp|etp|replicate|virtual-pp", "1,2,4,8"},
    {"max-token-len", "4096,8192,16384"},
    {"last-stage-layers", "1,2"},
};

// What means something only beside another.
static const char *const joined[] = {
    "strategy=zero1 offload=optimizer",
    "strategy=zero2 offload=optimizer",
    "strategy=zero3 offload=optimizer",
    "strategy=zero3 offload=all",
    "strategy=fsdp2 offload=all",
    "loss=liger layer-kernels=liger",
    "activation-offload=on checkpointing=off",
};

struct added {
    char words[MOST_ADDED][64];
    int count;
};

static void add(struct added *to, const char *name, struct str value)
{
    if (to->count < MOST_ADDED)
        (void)snprintf(to->words[to->count++], sizeof to->words[0], "%s=%.*s", name,
                       STR_ARGS(value));
}

static bool is_left_out(const char *name)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(left_out); i++)
        if (words_have(left_out[i].names, '|', str_from(name)))
            return true;
    return false;
}

static bool add_counts(struct added *to, const char *name)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++)
        if (words_have(counts[i].names, '|', str_from(name))) {
            struct words w = words_of(counts[i].values, ',');
            while (words_next(&w))
                add(to, name, w.word);
            return true;
        }
    return false;
}

static bool add_values(struct added *to, const struct setting_def *def)
{
    if (def->kind == SETTING_SWITCH) {
        add(to, def->name, STR("on"));
        add(to, def->name, STR("off"));
        if (def->third)
            add(to, def->name, str_from(def->third));
        return true;
    }
    for (int i = 0; i < def->word_count; i++)
        if (strchr(def->words[i], ':'))
            add(to, def->name, STR("chunked:256"));
        else
            add(to, def->name, str_from(def->words[i]));
    return def->word_count || add_counts(to, def->name);
}

// False where a setting of the table is nowhere.
static bool find_added(struct added *to)
{
    bool all = true;
    for (const struct setting_def *d = NULL; (d = setting_def_next(d));)
        if ((d->uses & USE_JOB) && !is_left_out(d->name) && !add_values(to, d)) {
            printf("FAILED: %s is neither added nor left out\n", d->name);
            all = false;
        }
    for (ptrdiff_t i = 0; i < COUNT_OF(joined); i++)
        (void)snprintf(to->words[to->count++], sizeof to->words[0], "%s", joined[i]);
    return all;
}

// ------------------------------------------------------------------ questions

struct checked {
    const struct added *added;
    void *block;
    ptrdiff_t bytes;
    long compared, refused, failed;
};

struct found {
    bool answered, safe;
    double seconds;
    char words[MOST_TEXT];
};

static bool has_setting(const char *question, const char *words)
{
    struct words w = words_of(words, ' ');
    while (words_next(&w)) {
        struct str name = str_cut(w.word, '=').head;
        struct words q = words_of(question, ' ');
        while (words_next(&q))
            if (str_equal(str_cut(q.word, '=').head, name))
                return true;
    }
    return false;
}

static struct found ask(const struct checked *c, const char *question)
{
    struct arena a = arena_over(c->block, c->bytes, NULL);
    struct found f = {0};
    struct plan *p = NEW(&a, struct plan, 1);
    struct settings s = settings_in(&a);
    struct plan_request r;
    struct error e = {0};
    if (!settings_read(&s, str_from(question), ' ', STR("the question"), &e) ||
        !settings_check(&s, &e) || !plan_request_read(&r, &s, &e))
        return f;
    r.front = false;
    f.answered = plan_make(p, &a, &r, NULL, &e);
    f.safe = f.answered && p->best;
    if (f.safe) {
        f.seconds = p->best->prediction.time.seconds;
        (void)snprintf(f.words, sizeof f.words, "%.*s", STR_ARGS(plan_words(&a, p->best)));
    }
    return f;
}

static void compare(struct checked *c, const char *question, const struct found *plain,
                    const char *words)
{
    char more[MOST_TEXT];
    (void)snprintf(more, sizeof more, "%s %s", question, words);
    struct found f = ask(c, more);
    c->refused += !f.answered;
    c->compared += f.answered;
    if (!f.safe || (plain->safe && plain->seconds <= f.seconds * PLAN_SAME))
        return;
    c->failed++;
    printf("FAILED: %s\n  %.4f s: %s\n  %.4f s: %s with %s\n", question, plain->seconds,
           plain->words, f.seconds, f.words, words);
    (void)fflush(stdout);
}

static void check(struct checked *c, const char *question, bool pairs)
{
    const struct added *added = c->added;
    struct found plain = ask(c, question);
    if (!plain.answered) {
        printf("FAILED: no answer to %s\n", question);
        c->failed++;
        return;
    }
    for (int i = 0; i < added->count; i++) {
        const char *one = added->words[i];
        if (has_setting(question, one))
            continue;
        compare(c, question, &plain, one);
        for (int k = 0; pairs && k < i; k++) {
            char two[MOST_TEXT];
            if (has_setting(one, added->words[k]) || has_setting(question, added->words[k]))
                continue;
            (void)snprintf(two, sizeof two, "%s %s", one, added->words[k]);
            compare(c, question, &plain, two);
        }
    }
}

enum { QUICK = 3 }; // of the first questions
static const char *const few[] = {
    "recipe=trl model=Qwen3-4B gpu=RTX4090 layers=2 context=2048 global-batch=4 memory-limit=9GiB",
    "recipe=axolotl model=Qwen3-1.7B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=8GiB",
    "recipe=verl model=Qwen3-0.6B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=9GiB",
    "recipe=axolotl model=Qwen3-1.7B gpu=2xH100-80G layers=2 context=8192 global-batch=4 "
    "memory-limit=12GiB",
    "recipe=trl model=Qwen3-1.7B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "batching=packed memory-limit=10GiB",
    "recipe=trl model=Mistral-7B-v0.1 gpu=2xA100-80G layers=2 context=16384 global-batch=4 "
    "memory-limit=16GiB",
    "recipe=trl model=Qwen3-4B gpu=2xRTX4090 layers=2 context=2048 global-batch=4 "
    "memory-limit=6GiB",
    "recipe=hf model=Qwen3-1.7B gpu=2x2xH100-80G layers=2 context=2048 global-batch=4 "
    "memory-limit=6GiB",
    "recipe=transformers model=Qwen3-0.6B gpu=A100-80G layers=3 context=4096 global-batch=4 "
    "memory-limit=8GiB",
    "recipe=deepspeed model=Qwen3-1.7B gpu=A100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=6GiB",
    "recipe=llamafactory model=Qwen3-1.7B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=8GiB",
    "recipe=trinity model=Qwen3-0.6B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=9GiB",
    "recipe=megatron model=Qwen3-4B gpu=2xH100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=10GiB",
    "recipe=megatron model=Qwen3-30B-A3B gpu=2xH100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=20GiB",
    "recipe=trl task=dpo model=Qwen3-0.6B gpu=2xA100-80G layers=2 context=2048 global-batch=4 "
    "memory-limit=8GiB",
    "recipe=trl task=grpo model=Qwen3-0.6B gpu=2xA100-80G layers=2 prompt=512 response=3584 "
    "global-batch=8 memory-limit=6GiB",
};

static const char packed_on_one[] = "recipe=trl model=Qwen3-8B gpu=RTX4090 context=2048 "
                                    "global-batch=16 lora=16 quantize=nf4 precision=bf16";

static const char *const whole[] = {
    "recipe=trl model=Qwen3-4B gpu=RTX4090 context=2048 global-batch=16",
    "recipe=trl model=Qwen3-8B gpu=H200 context=8192 global-batch=16",
    "recipe=trl model=Qwen3-8B gpu=H100-80G context=8192 global-batch=16",
    "recipe=trl model=Qwen3-4B gpu=2xRTX4090 context=4096 global-batch=16",
    "recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32",
    "recipe=trl model=Qwen3-8B gpu=2x8xH100-80G context=32768 global-batch=32",
    "recipe=trl task=reward model=Qwen3-4B gpu=8xRTX4090 context=2048 global-batch=64",
    "recipe=trl task=dpo model=Qwen3-8B gpu=8xA100-80G context=4096 global-batch=32",
    "recipe=trl task=grpo model=Qwen3-4B gpu=4xH100-80G prompt=1024 response=3072 global-batch=32",
    "recipe=trl model=Qwen3-8B gpu=2xA100-40G context=4096 global-batch=16 lora=16",
    packed_on_one,
    "recipe=hf model=Qwen3-8B gpu=H100-80G context=4096 global-batch=16",
    "recipe=hf model=Qwen3-8B gpu=8xH100-80G context=8192 global-batch=32",
    "recipe=hf model=Qwen3-8B gpu=2x8xA100-80G context=16384 global-batch=32",
    "recipe=transformers model=Qwen3-4B gpu=H100-80G context=4096 global-batch=16",
    "recipe=transformers model=Qwen3-8B gpu=2xH100-80G context=4096 global-batch=16",
    "recipe=transformers model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32",
    "recipe=transformers model=Qwen3-32B gpu=2x8xH100-80G context=8192 global-batch=32",
    "recipe=deepspeed model=Qwen3-8B gpu=H200 context=4096 global-batch=16",
    "recipe=deepspeed model=Qwen3-8B gpu=8xA100-80G context=16384 global-batch=32",
    "recipe=axolotl model=Qwen3-4B gpu=A100-80G context=4096 global-batch=16",
    "recipe=axolotl model=Qwen3-8B gpu=8xA100-80G context=8192 global-batch=32",
    "recipe=llamafactory model=Qwen3-4B gpu=A100-80G context=4096 global-batch=16",
    "recipe=llamafactory model=Qwen3-8B gpu=8xA100-80G context=8192 global-batch=32",
    "recipe=verl model=Qwen3-4B gpu=8xH100-80G context=8192 global-batch=64",
    "recipe=verl model=Qwen3-1.7B gpu=A100-80G context=8192 global-batch=16",
    "recipe=trinity model=Qwen3-4B gpu=8xA100-80G context=8192 global-batch=64",
    "recipe=trinity model=Qwen3-8B gpu=2x8xA100-80G context=16384 global-batch=64",
    "recipe=megatron model=Qwen3-4B gpu=H100-80G context=4096 global-batch=16",
    "recipe=megatron model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32",
    "recipe=megatron model=Qwen3-30B-A3B gpu=2x8xH100-80G context=8192 global-batch=64",
};

int main(int count, char **arguments)
{
    static struct added added;
    struct checked c = {.added = &added, .bytes = (ptrdiff_t)MIB_OF_A_PLAN << 20};
    const char *how = count > 1 ? arguments[1] : "";
    bool pairs = strcmp(how, "pairs") == 0, quick = strcmp(how, "quick") == 0;
    if (!words_have("quick|few|all|pairs", '|', str_from(how)))
        return 2;
    bool all = strcmp(how, "all") == 0;
    const char *const *questions = all ? whole : few;
    ptrdiff_t n = all ? COUNT_OF(whole) : quick ? QUICK : COUNT_OF(few);
    c.block = malloc((size_t)c.bytes);
    if (!c.block)
        return 2;
    c.failed += !find_added(&added);
    for (ptrdiff_t i = 0; i < n; i++)
        if (count < 3 || strstr(questions[i], arguments[2]))
            check(&c, questions[i], pairs);
    printf("%ld refused\n%ld passed, %ld failed\n", c.refused, c.compared - c.failed, c.failed);
    free(c.block);
    return c.failed != 0;
}
