// Random jobs, so that one question has one answer: what emit writes is read back as the same job
// with the same peak, to the byte; max's answer is the edge of predict's; every cell of the guide
// and every remedy that fits can be written, and is predicted to fit; more memory turns no yes into
// a no, but by fragmentation, which is counted. A failure prints the request that made it.
//
// random_jobs trips|limits COUNT [SEED [MIB]]: MIB is the memory of a question; the program has
// more than any of these needs, and searches over very long contexts need most.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/emit/emit.h"
#include "core/foreign/foreign.h"
#include "core/search/guide.h"
#include "core/search/remedy.h"
#include "host/formats/json_in.h"
#include "host/formats/yaml_in.h"

enum { USUAL_MIB = 192, MOST_TEXT = 2048 };

struct draw {
    uint64_t state;
    struct arena arena;
    char request[MOST_TEXT];
    long failures, refusals, fragmented;
};

// ------------------------------------------------------------------ requests

// xorshift64*, so that a seed means the same everywhere.
static uint64_t next(struct draw *d)
{
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return d->state * UINT64_C(2685821657736338717);
}

static uint64_t below(struct draw *d, uint64_t count)
{
    return count ? (next(d) >> 33) % count : 0;
}

static const char *const models[] = {"Qwen3-0.6B",   "Qwen3-1.7B",      "Qwen3-4B",
                                     "Qwen3-8B",     "Llama-3.2-1B",    "Llama-3.1-8B",
                                     "Qwen2.5-1.5B", "Mistral-7B-v0.3", "Qwen3-VL-4B-Instruct"};
static const char *const machines[] = {"H100-80G",     "2xH100-80G", "4xA100-80G", "8xH100-80G",
                                       "2x8xH100-80G", "8xA100-40G", "H200",       "4xH200"};
static const char *const targets[] = {"accelerate", "deepspeed", "trl",     "trl",
                                      "trinity",    "verl",      "axolotl", "llamafactory"};
static const char *const lengths[] = {"2k", "4k", "8k", "12k", "16k", "32k", "48k", "64k"};

// A setting is left out three times out of four.
static const struct {
    const char *name;
    const char *values[8];
} choices[] = {
    {"strategy", {"single", "ddp", "fsdp1", "fsdp2", "zero1", "zero2", "zero3"}},
    {"precision", {"bf16", "autocast", "bf16-autocast", "mixed", "fp16"}},
    {"batch", {"1", "2", "3", "4"}},
    {"accum", {"1", "2", "4", "8"}},
    {"sp", {"1", "2", "4"}},
    {"cp", {"1", "2", "4"}},
    {"checkpointing", {"on", "off"}},
    {"reentrant", {"on", "off"}},
    {"reshard", {"on", "off"}},
    {"offload", {"off", "optimizer", "all"}},
    {"optimizer", {"adamw", "adamw-fused", "sgd", "adafactor", "adamw-8bit", "adamw-paged-8bit"}},
    {"lora", {"8", "16"}},
    {"lora-targets", {"all-linear", "q,v", "o,gate,up,down"}},
    {"lora-whole", {"embed", "head", "embed,head"}},
    {"dora", {"on", "off"}},
    {"quantize", {"nf4", "off"}},
    {"loss", {"full", "chunked:256", "liger"}},
    {"attention", {"eager", "flash2", "flash3"}}, // without one it is sdpa, as files say
    {"replicate", {"1", "2", "4"}},
    {"save", {"sharded", "full"}},
    {"load-once", {"on", "off"}},
    {"activation-offload", {"on", "off"}},
    {"tiled-mlp", {"on", "off"}},
    {"layer-kernels", {"torch", "liger"}},
    {"expandable", {"on", "off"}},
    {"sync-each-batch", {"on", "off"}},
    {"task", {"sft", "reward", "dpo", "kto", "grpo", "rloo"}},
    {"prompt", {"256", "1k"}},
    {"batching", {"full", "packed"}},
    {"precompute-reference", {"on", "off"}},
    {"save-hf", {"last", "never", "always"}},
    {"max-token-len", {"16k", "64k"}},
    {"fused-kernels", {"on", "off"}},
    {"entropy-saving", {"on", "off"}},
};

static void add(struct draw *d, const char *name, const char *value)
{
    size_t used = strlen(d->request);
    (void)snprintf(d->request + used, MOST_TEXT - used, "%s%s=%s", used ? " " : "", name, value);
}

static void draw_request(struct draw *d, bool with_context)
{
    d->request[0] = 0;
    add(d, "model", models[below(d, COUNT_OF(models))]);
    add(d, "gpu", machines[below(d, COUNT_OF(machines))]);
    add(d, "for", targets[below(d, COUNT_OF(targets))]);
    if (with_context)
        add(d, "context", lengths[below(d, COUNT_OF(lengths))]);
    for (ptrdiff_t i = 0; i < COUNT_OF(choices); i++) {
        uint64_t count = 0;
        while (count < COUNT_OF(choices[i].values) && choices[i].values[count])
            count++;
        if (below(d, 4) == 0)
            add(d, choices[i].name, choices[i].values[below(d, count)]);
    }
}

static void fail(struct draw *d, const char *what, const char *more)
{
    printf("FAILED %s: %s\n  %s\n", what, more, d->request);
    d->failures++;
}

static bool read_words(struct settings *s, struct arena *a, struct str words, struct error *e)
{
    *s = settings_in(a);
    return settings_read(s, words, ' ', STR("the request"), e) && settings_check(s, e);
}

static bool resolve(struct job *j, struct arena *a, const char *words, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    return read_words(s, a, str_copy(a, str_from(words)), e) && job_resolve(j, a, s, e);
}

static bool write_files(struct emit_files *files, struct arena *a, const struct job *j,
                        struct error *e)
{
    struct draft *draft = NEW(a, struct draft, 1);
    if (!draft_from_job(draft, a, j, e) || !emit_check(draft, e))
        return false;
    draft_fact(draft, "predicted", STR("-"));
    return emit_files(files, draft, e);
}

// ------------------------------------------------------------------ round trips

static bool flatten(struct settings *s, const struct emit_file *f, struct error *e)
{
    if (str_ends(f->name, STR(".sh")))
        return script_flatten(s, f->content, f->name, e);
    if (str_ends(f->name, STR(".json")))
        return json_flatten(s, f->content, STR_NONE, f->name, e);
    return !str_ends(f->name, STR(".yaml")) || yaml_flatten(s, f->content, f->name, e);
}

// As `--from FOLDER --gpu CARD --torch VERSION` would.
static bool read_back(struct job *j, struct arena *a, const struct emit_files *files,
                      const struct job *written, struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1), given = settings_in(a);
    struct foreign found = foreign_in(a);
    const struct setting *gpu = settings_find_z(written->given, "gpu");
    struct str torch = job_value(a, written, setting_def_find(STR("torch")));
    *s = settings_in(a);
    if (!settings_add(&given, *gpu, e))
        return false;
    for (ptrdiff_t i = 0; i < files->count; i++) {
        struct settings file = settings_in(a);
        if (!flatten(&file, &files->items[i], e) || !foreign_read(s, &found, &file, e))
            return false;
    }
    if (!foreign_conclude(s, &found, &given, e))
        return false;
    struct setting recipe = {STR("recipe"), str_from(found.recipe), STR("the files")};
    return settings_set(s, *gpu, e) && (!found.recipe || settings_set(s, recipe, e)) &&
           settings_set(s, (struct setting){STR("torch"), torch, STR("--torch")}, e) &&
           settings_check(s, e) && job_resolve(j, a, s, e);
}

static bool predicted(struct prediction *p, struct arena a, const struct job *j)
{
    struct error e = {0};
    return job_is_modelled(j, &e) && predict_fit(p, &a, j, &e);
}

static bool same_peak(const struct prediction *p, const struct prediction *q)
{
    return p->fits == q->fits && p->allocated_bytes == q->allocated_bytes &&
           p->reserved_bytes == q->reserved_bytes;
}

// The same of the job that was read back, and of the one asked for without the time.
static void check_memory(struct draw *d, struct arena a, const struct prediction *p,
                         const struct job *asked, const struct job *found)
{
    struct error e = {0};
    struct prediction q = {0};
    if (!predicted(&q, a, found) || !same_peak(p, &q))
        fail(d, "read back, it has another peak", "-");
    else if (!predict_memory(&q, &a, asked, &e) || !same_peak(p, &q))
        fail(d, "without the time it has another peak", "-");
}

// False where the job is refused, which is no trip.
static bool trip(struct draw *d)
{
    struct arena a = d->arena;
    struct job *asked = NEW(&a, struct job, 1), *found = NEW(&a, struct job, 1);
    struct emit_files files;
    struct error e = {0}, refusal = {0};
    struct prediction p;
    draw_request(d, true);
    if (!resolve(asked, &a, d->request, &refusal) || !write_files(&files, &a, asked, &refusal))
        return false;
    if (!read_back(found, &a, &files, asked, &e)) {
        fail(d, "its files cannot be read back", e.message);
        return true;
    }
    if (asked->parameters.total != found->parameters.total || job_ranks(asked) != job_ranks(found))
        fail(d, "another model or machine was read back", "-");
    else if (!job_same_training(asked, found))
        fail(d, "another training was read back", "-");
    else if (predicted(&p, a, asked))
        check_memory(d, a, &p, asked, found);
    return true;
}

// ------------------------------------------------------------------ limits

static bool length_job(struct job *j, struct draw *d, struct arena *a, uint64_t length)
{
    struct error e = {0};
    struct str words = str_format(a, "%s context=%llu", d->request, (unsigned long long)length);
    return resolve(j, a, str_z(a, words), &e) && job_is_modelled(j, &e);
}

static enum grade grade_of(struct draw *d, struct arena a, uint64_t length)
{
    struct job *j = NEW(&a, struct job, 1);
    struct prediction p;
    struct error e = {0};
    return length_job(j, d, &a, length) && predict(&p, &a, j, &e) ? p.verdict.grade : GRADE_NO;
}

// max's answer, safe by default and what fits with --margin 0, is where predict's changes.
static void check_edge(struct draw *d, const struct capacity *c)
{
    if (c->context && grade_of(d, d->arena, c->context) != GRADE_SAFE)
        fail(d, "the longest safe context is not safe by itself", "-");
    if (c->fits_context && grade_of(d, d->arena, c->fits_context) == GRADE_NO)
        fail(d, "the longest context does not fit by itself", "-");
    if (c->fails_at && grade_of(d, d->arena, c->fails_at) != GRADE_NO)
        fail(d, "the length that stops it fits by itself", "-");
}

// Each remedy that fits can be written, and its options alone lead to the same peak.
static void check_remedies(struct draw *d, uint64_t length)
{
    struct arena a = d->arena;
    struct job *j = NEW(&a, struct job, 1), *other = NEW(&a, struct job, 1);
    struct remedies *r = NEW(&a, struct remedies, 1);
    struct error e = {0};
    if (!length_job(j, d, &a, length) || !remedies_find(r, &a, j, &e))
        return;
    for (int i = 0; i < r->count; i++) {
        struct arena scratch = a;
        struct settings *s = NEW(&scratch, struct settings, 1);
        struct emit_files files;
        struct prediction p;
        struct str words = str_from(r->items[i].options);
        bool other_framework = strstr(r->items[i].options, "--recipe") != NULL;
        struct error why = {0};
        if (!r->items[i].prediction.fits || other_framework)
            continue;
        struct str request =
            str_format(&scratch, "%s context=%llu", d->request, (unsigned long long)length);
        bool read = read_words(s, &scratch, request, &why);
        while (read && words.n) {
            struct str_cut name = str_cut(str_slice(words, 2, words.n), ' ');
            struct str_cut value = str_cut(name.tail, ' ');
            read = settings_set(s, (struct setting){name.head, value.head, STR("a remedy")}, &why);
            words = value.tail;
        }
        if (!read || !job_resolve(other, &scratch, s, &why) ||
            !write_files(&files, &scratch, other, &why))
            fail(d, r->items[i].options, why.message);
        else if (!predicted(&p, scratch, other) ||
                 p.reserved_bytes != r->items[i].prediction.reserved_bytes)
            fail(d, r->items[i].options, "the remedy alone has another peak");
    }
}

// The same job on a card that leaves torch more.
static void check_more_memory(struct draw *d, uint64_t length)
{
    struct arena a = d->arena;
    struct job *j = NEW(&a, struct job, 1);
    struct prediction p, q;
    struct error e = {0};
    if (!length_job(j, d, &a, length) || !predicted(&p, a, j) || !p.fits)
        return;
    j->limit_bytes = p.limit_bytes + (UINT64_C(1) << 30) * (1 + below(d, 16));
    struct arena scratch = a;
    if (!predict(&q, &scratch, j, &e) || q.fits)
        return;
    if (q.oom.cause == OOM_FRAGMENTATION)
        d->fragmented++;
    else
        fail(d, "it fits, and with more memory it does not", "exhaustion");
}

static void check_guide(struct draw *d)
{
    struct arena a = d->arena;
    struct settings *s = NEW(&a, struct settings, 1);
    struct guide *g = NEW(&a, struct guide, 1);
    struct error e = {0};
    struct str words = str_format(
        &a, "model=%s gpu=%s recipe=%s lengths=16k,64k,128k", models[below(d, COUNT_OF(models))],
        machines[below(d, COUNT_OF(machines))], below(d, 2) ? "trl" : "trinity");
    (void)snprintf(d->request, MOST_TEXT, "guide %.*s", STR_ARGS(words));
    if (!read_words(s, &a, words, &e) || !guide_make(g, &a, s, NULL, &e))
        return;
    for (ptrdiff_t i = 0; i < g->length_count; i++) {
        ptrdiff_t choice = guide_choice(g, 0, 0, g->lengths[i]);
        struct arena scratch = a;
        struct job *j = NEW(&scratch, struct job, 1);
        struct emit_files files;
        struct prediction p;
        struct error why = {0};
        if (choice < 0)
            continue;
        struct settings own = settings_in(&scratch);
        struct str context = str_format(&scratch, "%llu", (unsigned long long)g->lengths[i]);
        bool read = true;
        for (ptrdiff_t k = 0; k < s->count && read; k++)
            read = str_is(s->items[k].key, "lengths") || settings_add(&own, s->items[k], &why);
        read = read && settings_change(&own, g->sweep.variants[choice].settings, &why) &&
               settings_set(&own, (struct setting){STR("context"), context, STR("a cell")}, &why);
        if (!read || !job_resolve(j, &scratch, &own, &why) ||
            !write_files(&files, &scratch, j, &why))
            fail(d, "a cell of the guide cannot be written", why.message);
        else if (!predicted(&p, scratch, j) || p.verdict.grade != GRADE_SAFE)
            fail(d, "a cell of the guide is not safe by itself", "-");
    }
}

static bool limit(struct draw *d)
{
    struct arena a = d->arena;
    struct settings *s = NEW(&a, struct settings, 1);
    struct capacity c;
    struct error e = {0};
    if (below(d, 8) == 0) {
        check_guide(d);
        return true;
    }
    draw_request(d, false);
    if (!read_words(s, &a, str_copy(&a, str_from(d->request)), &e))
        return false;
    struct capacity_request r = {.settings = s, .grid = {.step = 8192}, .safe = true};
    if (!capacity_find(&c, a, &r, &e))
        return false;
    check_edge(d, &c);
    if (c.fails_at)
        check_remedies(d, c.fails_at);
    if (c.fits_context)
        check_more_memory(d, c.fits_context);
    return true;
}

int main(int count, char **arguments)
{
    bool trips = count > 1 && strcmp(arguments[1], "trips") == 0;
    long wanted = count > 2 ? strtol(arguments[2], NULL, 10) : 0, made = 0;
    static struct draw drawn;
    struct draw *d = &drawn;
    if (wanted <= 0)
        return 2;
    ptrdiff_t bytes = (count > 4 ? strtol(arguments[4], NULL, 10) : USUAL_MIB) << 20;
    void *block = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (!block)
        return 2;
    uint64_t seed = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
    d->state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    printf("seed %llu\n", (unsigned long long)seed);
    while (made < wanted && d->failures < 20) {
        d->arena = arena_over(block, bytes, NULL);
        bool done = (trips ? trip : limit)(d);
        made += done;
        d->refusals += !done;
    }
    printf("%ld made, %ld refused, %ld turned by fragmentation\n", made, d->refusals,
           d->fragmented);
    printf("%ld passed, %ld failed\n", made - d->failures, d->failures);
    bool failed = d->failures != 0;
    free(block);
    return failed;
}
