// How long a prediction takes, one thread: three steps simulated and replayed; and what more layers
// make of that, of the memory alone and with the time. Run the release build.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/predict/predict.h"

enum { ARENA_BYTES = 1 << 30, ROUNDS = 20 };

// Of the processor, so that others on the machine do not count.
static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

typedef bool (*predicting)(struct prediction *p, struct arena *a, const struct job *job,
                           struct error *e);

static bool run(struct arena a, const char *settings, predicting predicts)
{
    struct settings s = settings_in(&a);
    struct error e = {0};
    struct job job;
    struct prediction p;
    return settings_read(&s, str_from(settings), ' ', STR("bench"), &e) &&
           job_from_settings(&job, &a, &s, &e) && predicts(&p, &a, &job, &e);
}

// Milliseconds of the quickest of several; 0: it failed.
static double quickest(struct arena a, const char *settings, predicting predicts)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        if (!run(a, settings, predicts))
            return 0;
        double took = (seconds() - start) * 1000;
        least = least <= 0 || took < least ? took : least;
    }
    return least;
}

static bool time_plans(struct arena a)
{
    static const char *const plans[] = {
        "model=Qwen3-8B gpu=8xH200 context=4096",
        "model=Qwen3-8B gpu=8xH200 context=32768",
        "model=Qwen3-8B gpu=8xH200 context=32768 layers=18",
        "model=Qwen3-8B gpu=8xH200 context=262144 loss=chunked:2048",
        "model=Qwen2.5-72B gpu=4x8xH200 context=32768",
        "model=Qwen3-235B-A22B gpu=8x8xH200 context=16384",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(plans); i++) {
        double start = seconds();
        for (int round = 0; round < ROUNDS; round++)
            if (!run(a, plans[i], predict))
                return false;
        printf("%6.1f ms  %s\n", (seconds() - start) * 1000 / (double)ROUNDS, plans[i]);
    }
    return true;
}

// Qwen3-8B as its config.json has it, with its layers once, twice and four times.
#define LAYERS_OF(count)                                                               \
    " config.model_type=qwen3 config.hidden_size=4096 config.num_hidden_layers=" count \
    " config.num_attention_heads=32 config.num_key_value_heads=8 config.head_dim=128"  \
    " config.intermediate_size=12288 config.vocab_size=151936"                         \
    " config.max_position_embeddings=40960 config.tie_word_embeddings=false"
#define DEEPER(name, settings)                                                            \
    {                                                                                     \
        name,                                                                             \
        {                                                                                 \
            settings LAYERS_OF("36"), settings LAYERS_OF("72"), settings LAYERS_OF("144") \
        }                                                                                 \
    }

static bool time_layers(struct arena a)
{
    static const struct {
        const char *name;
        const char *settings[3];
    } jobs[] = {
        DEEPER("one GPU, 4096 tokens", "gpu=H200 context=4096 memory-limit=900GiB"),
        DEEPER("fsdp2, 8192 tokens, 8 H200", "gpu=8xH200 context=8192"),
        DEEPER("TRL, ZeRO-3, 8192 tokens, 8 H200",
               "gpu=8xH200 context=8192 recipe=trl strategy=zero3"),
    };
    static const struct {
        const char *what;
        predicting predicts;
    } ways[] = {{"floor", predict_floor}, {"memory", predict_memory}, {"with time", predict_fit}};
    for (ptrdiff_t i = 0; i < COUNT_OF(jobs); i++)
        for (ptrdiff_t way = 0; way < COUNT_OF(ways); way++) {
            double took[3];
            for (int deep = 0; deep < 3; deep++) {
                took[deep] = quickest(a, jobs[i].settings[deep], ways[way].predicts);
                if (took[deep] <= 0)
                    return false;
            }
            printf("%6.2f ms  %s of Qwen3-8B (%s); twice the layers %.2f times, four times %.2f\n",
                   took[0], ways[way].what, jobs[i].name, took[1] / took[0], took[2] / took[0]);
        }
    return true;
}

int main(void)
{
    void *block = malloc(ARENA_BYTES);
    if (!block)
        return EXIT_FAILURE;
    struct arena a = arena_over(block, ARENA_BYTES, NULL);
    bool ok = time_plans(a) && time_layers(a);
    free(block);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
