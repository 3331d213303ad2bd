// A row's settings are laid over those that were given; what they leave as it is, is no change. All
// rows but the first also take what costs nothing: expandable segments and checkpointing.
#include "core/search/remedy.h"

#include "core/base/buf.h"
#include "core/base/num.h"
#include "core/predict/varied.h"

#define EVERY_RECIPE 0u
#define OF(recipe)   (1u << RECIPE_##recipe)
#define OF_YAML      (OF(AXOLOTL) | OF(LLAMAFACTORY))

// Settings that depend on the job.
enum computed {
    AS_WRITTEN,
    ONE_SEQUENCE,       // a micro-batch of one sequence, and the accumulation that keeps the batch
    MORE_RANKS,         // share a sequence: `times`, where fewer do
    MORE_TENSORS,       // ranks that share each weight: `times`, where fewer do
    SHORTER,            // `times` quarters of the length
    MORE_GPUS,          // `times` as many
    ONE_EVALUATED,      // a sequence at a time in evaluation, where there is one
    NO_WHOLE_GRADIENTS, // between micro-batches, where they are kept
    NO_REFERENCE,       // beside the model, where there is one
    SAVED_SHARDS,       // instead of whole weights
    READ_ONCE,          // by a node's first rank
    TRLS_LOSS,          // with the strategy there is, which TRL would choose another for
    TRLS_SHARDS,        // the same where nothing is sharded
    UNSHARDED,          // where nothing is
    NARROW_WEIGHTS,     // where they are fp32 under autocast
    REPLICAS,           // of shards, where there are more than experts
    EIGHT_BITS,         // of the optimizer, where all weights are trained
    FOUR_BITS,          // of what adapters leave as it is
    ADAPTERS,           // instead of all weights
    ADAPTERS_OVER_FOUR, // bits
};

static const struct remedy_row {
    const char *what, *settings;
    unsigned recipes;
    enum computed computed;
    int times;
} rows[] = {
    {"expandable segments", "expandable=on"},
    {"and checkpointing", "checkpointing=on"},
    {"and fused kernels", "fused-kernels=on", OF(TRINITY)},
    {"or less at once in evaluation", "", EVERY_RECIPE, ONE_EVALUATED},
    {"or only losses in evaluation", "eval-logits=off"},
    {"or shards in checkpoints", "", EVERY_RECIPE, SAVED_SHARDS},
    {"or weights read once a node", "", EVERY_RECIPE, READ_ONCE},
    {"or the reference before training", "", OF(TRL), NO_REFERENCE},
    {"or a chunked loss", "loss=chunked:2048"},
    {"or Liger's kernels and loss", "loss=liger layer-kernels=liger",
     OF_YAML | OF(TRANSFORMERS) | OF(DEEPSPEED)},
    {"or TRL's chunked loss", "", OF(HF) | OF(TRANSFORMERS), TRLS_LOSS},
    {"or that and sharding", "", OF(HF) | OF(TRANSFORMERS), TRLS_SHARDS},
    {"or frozen weights in four bits", "", EVERY_RECIPE, FOUR_BITS},
    {"or one sequence at a time", "", EVERY_RECIPE, ONE_SEQUENCE},
    {"or gradients reduced each time", "", OF(TRL) | OF(TRANSFORMERS), NO_WHOLE_GRADIENTS},
    {"or sharding", "strategy=fsdp2", OF(HF) | OF(TRANSFORMERS) | OF(TRL) | OF_YAML},
    {"or stage 3", "strategy=zero3", OF(DEEPSPEED) | OF_YAML},
    {"or tensor parallel 2", "tp=2", OF(MEGATRON), MORE_TENSORS, 2},
    {"or tensor parallel 4", "tp=4", OF(MEGATRON), MORE_TENSORS, 4},
    {"or tensor parallel 8", "tp=8", OF(MEGATRON), MORE_TENSORS, 8},
    {"or context parallel 2", "cp=2", EVERY_RECIPE, MORE_RANKS, 2},
    {"or context parallel 4", "cp=4", EVERY_RECIPE, MORE_RANKS, 4},
    {"or context parallel 8", "cp=8", EVERY_RECIPE, MORE_RANKS, 8},
    {"or sequence parallel 2", "sp=2", EVERY_RECIPE, MORE_RANKS, 2},
    {"or sequence parallel 4", "sp=4", EVERY_RECIPE, MORE_RANKS, 4},
    {"or sequence parallel 8", "sp=8", EVERY_RECIPE, MORE_RANKS, 8},
    {"or the optimizer in host memory", "offload=optimizer"},
    {"or all in host memory", "offload=all",
     OF(HF) | OF(TRANSFORMERS) | OF(TRL) | OF(DEEPSPEED) | OF(VERL)},
    {"or stage 3, all in host memory", "strategy=zero3 offload=all", OF_YAML},
    {"or stage 3, all in host memory", "strategy=zero3 offload=all",
     OF(HF) | OF(TRANSFORMERS) | OF(TRL), UNSHARDED},
    {"or all in host memory", "strategy=fsdp2 offload=all save-hf=never", OF(TRINITY)},
    {"or all there, and sp 4", "strategy=fsdp2 offload=all save-hf=never sp=4", OF(TRINITY),
     MORE_RANKS, 4},
    {"or three quarters as long", "", EVERY_RECIPE, SHORTER, 3},
    {"or half as long", "", EVERY_RECIPE, SHORTER, 2},
    {"or weights in bf16", "", OF(TRL) | OF(TRANSFORMERS), NARROW_WEIGHTS},
    {"or no more shards than experts", "", OF(HF) | OF(TRANSFORMERS) | OF(TRL), REPLICAS},
    {"or Adam in eight bits", "", EVERY_RECIPE, EIGHT_BITS},
    {"or adapters instead of all", "", EVERY_RECIPE, ADAPTERS},
    {"or these over four bits", "", EVERY_RECIPE, ADAPTERS_OVER_FOUR},
    {"or twice the GPUs", "", EVERY_RECIPE, MORE_GPUS, 2},
    {"or four times the GPUs", "", EVERY_RECIPE, MORE_GPUS, 4},
};

_Static_assert(COUNT_OF(rows) <= REMEDIES_MOST, "more remedies than there is room for");

static struct str one_sequence(struct arena *a, const struct job *j)
{
    uint64_t accum = sat_mul(j->batch, j->accumulation);
    if (j->batch == 1)
        return STR_NONE;
    if (j->recipe == RECIPE_TRINITY)
        return str_format(a, "max-token-len=%llu",
                          (unsigned long long)u64_divide_up(j->context, j->ulysses));
    return str_format(a, "batch=1 accum=%llu", (unsigned long long)accum);
}

// Ranks that share a sequence still get equal parts.
static struct str shorter(struct arena *a, const struct job *j, int quarters)
{
    uint64_t shared = 2 * j->ring * j->ulysses;
    uint64_t tokens = j->context / 4 * (uint64_t)quarters / shared * shared;
    return tokens ? str_format(a, "context=%llu", (unsigned long long)tokens) : STR_NONE;
}

// Whose jobs have all weights on each GPU unless told otherwise.
static bool recipe_copies(enum recipe recipe)
{
    return recipe == RECIPE_TRANSFORMERS || recipe == RECIPE_AXOLOTL ||
           recipe == RECIPE_LLAMAFACTORY;
}

// More nodes where one is full, and shards where each GPU would have the same as one.
static struct str more_gpus(struct arena *a, const struct job *j, int times)
{
    const struct hardware *h = &j->hardware;
    uint64_t whole = h->card.per_node ? h->card.per_node : 8, factor = (uint64_t)times;
    uint64_t here = h->gpus_per_node, nodes = h->nodes;
    while (factor > 1 && here * 2 <= whole) {
        here *= 2;
        factor /= 2;
    }
    nodes *= factor;
    bool alike = j->packed || j->strategy == STRATEGY_DDP || recipe_copies(j->recipe);
    const char *sharded = alike && !job_is_sharded(j) ? " strategy=fsdp2" : "";
    if (nodes == 1)
        return str_format(a, "gpu=%llux%s%s", (unsigned long long)here, h->card.name, sharded);
    return str_format(a, "gpu=%llux%llux%s%s", (unsigned long long)nodes, (unsigned long long)here,
                      h->card.name, sharded);
}

static struct str trls_loss(struct arena *a, const struct job *j)
{
    if (j->strategy == STRATEGY_SINGLE || j->strategy == STRATEGY_FSDP2 ||
        settings_find_z(j->given, "strategy"))
        return STR("recipe=trl");
    const char *strategy = setting_def_find(STR("strategy"))->words[j->strategy];
    return str_format(a, "recipe=trl strategy=%s", strategy);
}

// TRL's file has one type for all around packed weights.
static struct str four_bits(struct arena *a, const struct job *j, bool so, const char *before)
{
    if (!so || j->packed)
        return STR_NONE;
    bool narrows =
        j->recipe == RECIPE_TRL && !job_is_sharded(j) && settings_find_z(j->given, "precision");
    return str_format(a, "%squantize=nf4%s", before, narrows ? " precision=bf16" : "");
}

// FSDP2 cuts weights of experts by expert: more ranks than these have nothing but padding.
static struct str replicas(struct arena *a, const struct job *j)
{
    uint64_t experts = j->model.experts.count, ranks = job_ranks(j);
    bool padded = j->strategy == STRATEGY_FSDP2 && j->replicas == 1 && experts && ranks > experts;
    return padded ? str_format(a, "replicate=%llu", (unsigned long long)(ranks / experts))
                  : STR_NONE;
}

static struct str words_if(bool so, const char *words)
{
    return so ? str_from(words) : STR_NONE;
}

static struct str words_of_row(struct arena *a, const struct job *j, const struct remedy_row *row)
{
    switch (row->computed) {
    case AS_WRITTEN:
        return str_from(row->settings);
    case ONE_SEQUENCE:
        return one_sequence(a, j);
    case MORE_RANKS:
        return words_if(j->ring * j->ulysses < (uint64_t)row->times, row->settings);
    case MORE_TENSORS:
        return words_if(j->tensor < (uint64_t)row->times, row->settings);
    case SHORTER:
        return shorter(a, j, row->times);
    case MORE_GPUS:
        return more_gpus(a, j, row->times);
    case ONE_EVALUATED:
        return words_if(j->evaluation_batch > 1, "eval-batch=1");
    case NO_WHOLE_GRADIENTS:
        return words_if(!j->sync_each_batch, "sync-each-batch=on");
    case SAVED_SHARDS:
        return words_if(j->saving == SAVING_WHOLE && settings_find_z(j->given, "save"),
                        "save=sharded");
    case READ_ONCE:
        return words_if(!j->loads_once, "load-once=on");
    case TRLS_LOSS:
        return trls_loss(a, j);
    case TRLS_SHARDS:
        return words_if(j->strategy == STRATEGY_DDP, "recipe=trl strategy=fsdp2");
    case UNSHARDED:
        return words_if(!job_is_sharded(j), row->settings);
    case NARROW_WEIGHTS:
        return words_if(j->precision == PRECISION_AUTOCAST && !j->packed,
                        "precision=bf16-autocast");
    case REPLICAS:
        return replicas(a, j);
    case EIGHT_BITS:
        return words_if(!j->lora_rank, "optimizer=adamw-8bit");
    case FOUR_BITS:
        return four_bits(a, j, j->lora_rank > 0, "");
    case ADAPTERS:
        return words_if(!j->lora_rank, "lora=16");
    case ADAPTERS_OVER_FOUR:
        return four_bits(a, j, !j->lora_rank, "lora=16 ");
    case NO_REFERENCE:
        return words_if(job_reads_reference(j) && !job_generates(j) && !j->lora_rank,
                        "precompute-reference=on");
    }
    __builtin_trap();
}

static bool says(const struct setting *item, const struct setting_def *def, struct str value)
{
    bool on, wanted;
    struct error ignored = {0};
    struct setting other = {.value = value};
    if (!item)
        return false;
    if (def->kind == SETTING_SWITCH && setting_switch(&on, item, &ignored) &&
        setting_switch(&wanted, &other, &ignored))
        return on == wanted;
    return str_equal(item->value, value);
}

// To another strategy, with which frameworks set other things by themselves (LLaMA-Factory
// segments).
static bool is_moved(const struct job *j, const struct settings *words)
{
    const struct setting *to = settings_find_z(words, "strategy");
    return to && !says(settings_find_z(j->settings, "strategy"), setting_def_find(STR("strategy")),
                       to->value);
}

// "--expandable on --sp 2": what the words change of the job, and where they name another recipe, a
// strategy that was not given, either; where they name another strategy, all that was not given.
static const char *options_of(struct arena *a, const struct job *j, const struct settings *words)
{
    struct buf b = buf_in(a);
    bool elsewhere = settings_find_z(words, "recipe") != NULL, moved = is_moved(j, words);
    for (ptrdiff_t i = 0; i < words->count; i++) {
        const struct setting *item = &words->items[i];
        bool anew = str_is(item->key, "strategy") ? elsewhere : moved;
        const struct settings *known = anew ? j->given : j->settings;
        if (says(settings_find(known, item->key), setting_def_find(item->key), item->value))
            continue;
        buf_printf(&b, "%s--%.*s %.*s", b.n ? " " : "", STR_ARGS(item->key), STR_ARGS(item->value));
    }
    return str_z(a, buf_str(&b));
}

// The target whose rules hold: the one that was named, or the one the recipe's users have, if the
// job itself could be written for it and predicted as it is written.
static bool stands_in_target(struct settings *given, struct arena scratch, const struct job *j,
                             struct error *e)
{
    enum target target = target_of_recipe(recipe_words[j->recipe]);
    struct setting item = {STR("for"), str_from(target_defs[target].name), STR_NONE};
    struct settings tried = settings_in(&scratch);
    struct job *same = NEW(&scratch, struct job, 1);
    struct error refusal = {0};
    if (j->target || !target)
        return true;
    for (ptrdiff_t i = 0; i < given->count; i++)
        if (!settings_add(&tried, given->items[i], e))
            return false;
    if (!settings_set(&tried, item, e))
        return false;
    bool stands = job_resolve(same, &scratch, &tried, &refusal) && job_is_modelled(same, &refusal);
    return !stands || settings_set(given, item, e);
}

static bool copy(struct settings *out, const struct settings *from, struct error *e)
{
    for (ptrdiff_t i = 0; i < from->count; i++)
        if (!settings_add(out, from->items[i], e))
            return false;
    return true;
}

// Another recipe is another framework's, and its own target's rules hold.
static bool lay_over(struct settings *changed, struct str words, struct error *e)
{
    struct settings without = settings_in(changed->arena), laid = settings_in(changed->arena);
    if (!settings_read(&laid, words, ' ', STR_NONE, e) || !settings_change(changed, words, e))
        return false;
    if (!settings_find_z(&laid, "recipe"))
        return true;
    for (ptrdiff_t i = 0; i < changed->count; i++)
        if (!str_is(changed->items[i].key, "for") && !settings_add(&without, changed->items[i], e))
            return false;
    *changed = without;
    return true;
}

// What a row changes: its own words, and but for the first what costs nothing.
struct change {
    struct str own, all;
    const char *options; // of all; empty where its own words change nothing
};

static bool read_change(struct change *c, struct arena *a, const struct job *job, struct str gratis,
                        struct error *e)
{
    struct settings own = settings_in(a), all = settings_in(a);
    c->all = str_format(a, "%.*s %.*s", STR_ARGS(gratis), STR_ARGS(c->own));
    if (!settings_change(&own, c->own, e) || !settings_change(&all, c->all, e))
        return false;
    c->options = *options_of(a, job, &own) ? options_of(a, job, &all) : "";
    return true;
}

// The first of a list follows nothing.
static const char *without_joint(const char *what)
{
    struct str text = str_from(what);
    return str_starts(text, STR("or "))    ? what + STR("or ").n
           : str_starts(text, STR("and ")) ? what + STR("and ").n
                                           : what;
}

static bool is_possible(struct arena scratch, const struct settings *base, struct str words)
{
    struct settings changed = settings_in(&scratch);
    struct job *other = NEW(&scratch, struct job, 1);
    struct error refusal = {0};
    return copy(&changed, base, &refusal) && lay_over(&changed, words, &refusal) &&
           job_resolve(other, &scratch, &changed, &refusal);
}

// What costs nothing, as far as the framework leaves it to its user.
static struct str free_changes(struct arena scratch, const struct settings *base)
{
    static const char *const words[] = {"expandable=on checkpointing=on", "checkpointing=on",
                                        "expandable=on"};
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++)
        if (is_possible(scratch, base, str_from(words[i])))
            return str_from(words[i]);
    return STR_NONE;
}

// A change that no rule forbids joins the others with what it would do.
static bool try_change(struct remedies *r, struct arena *a, const struct settings *base,
                       struct remedy found, struct str words)
{
    struct settings changed = settings_in(a);
    struct job *other = NEW(a, struct job, 1);
    struct error refusal = {0};
    if (!copy(&changed, base, &refusal) || !lay_over(&changed, words, &refusal) ||
        !job_resolve(other, a, &changed, &refusal) || !job_is_modelled(other, &refusal))
        return refusal.code == ERROR_BAD_INPUT || refusal.code == ERROR_UNSUPPORTED;
    struct arena scratch = *a;
    if (!varied_read(other, &scratch, &refusal))
        return true; // batches that were named are of another job
    if (!predict(&found.prediction, &scratch, other, &refusal))
        return false;
    if (!r->count)
        found.what = without_joint(found.what);
    r->items[r->count++] = found;
    return true;
}

bool remedies_find(struct remedies *r, struct arena *a, const struct job *job, struct error *e)
{
    struct settings *base = NEW(a, struct settings, 1);
    *base = settings_in(a);
    *r = (struct remedies){0};
    if (!copy(base, job->given, e) || !stands_in_target(base, *a, job, e))
        return false;
    struct str gratis = free_changes(*a, base);
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        bool meant = !rows[i].recipes || rows[i].recipes & 1u << job->recipe;
        struct change c = {.own = meant ? words_of_row(a, job, &rows[i]) : STR_NONE};
        if (!c.own.n)
            continue;
        if (!read_change(&c, a, job, i == 0 ? STR_NONE : gratis, e))
            return false;
        bool pairs =
            rows[i].computed == ONE_SEQUENCE && (job->task == TASK_REWARD || job->task == TASK_DPO);
        struct remedy found = {.what = pairs ? "or one pair at a time" : rows[i].what,
                               .options = c.options};
        if (*c.options && !try_change(r, a, base, found, c.all))
            return FAIL(e, BUG, STR_NONE, "a remedy cannot be predicted");
    }
    return true;
}
