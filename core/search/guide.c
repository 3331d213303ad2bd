// The table of configurations, the order, and the choice.
#include "core/search/guide.h"

#include <string.h>

#include "core/base/num.h"

#define EXPANDABLE "expandable segments, which torch's allocator grows in place: less fragmentation"
#define EXPORT     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
#define ABSENT     "-"
#define AGAIN      "gradient checkpointing, layers are computed again in the backward pass"
#define RING       "ring attention, N GPUs share one sequence by context"
#define KERNELS    "verl's fused kernels, which make no logits of all tokens"
#define CHUNKS     "verl's entropy in chunks, which are recomputed"
#define ULYSSES    "Ulysses sequence parallel, N GPUs share one sequence"

const struct guide_part guide_parts[] = {
    // Ray's workers have the environment of the ray start that began them.
    {"Env",
     {EXPANDABLE, EXPANDABLE, EXPANDABLE, EXPANDABLE},
     {EXPORT, EXPORT " on every node before starting Ray", EXPORT, EXPORT}},
    {"Ckpt", {ABSENT, ABSENT, ABSENT, AGAIN}, {"-", "-", "-", "gradient_checkpointing: true"}},
    {"Shard",
     {ABSENT, ABSENT, ABSENT, "FSDP2: parameters, gradients and optimizer in shards"},
     {"-", "-", "-", "fsdp_version: 2, FULL_SHARD"}},
    {"Liger",
     {ABSENT, ABSENT, ABSENT, "Liger's kernels and its loss, which makes no logits of all tokens"},
     {"-", "-", "-",
      "use_liger_kernel (LLaMA-Factory: enable_liger_kernel, axolotl: its plug-in)"}},
    {"SP=N",
     {ULYSSES, ULYSSES, ULYSSES, ULYSSES},
     {"Ulysses over N GPUs", "trainer.ulysses_sequence_parallel_size: N", "Ulysses over N GPUs",
      "Ulysses over N GPUs"}},
    {"CP=N",
     {RING, RING, RING, RING},
     {"parallelism_config: cp_size: N (Accelerate)", "-", "-",
      "parallelism_config: cp_size: N (Accelerate)"}},
    {"Fused",
     {KERNELS, KERNELS, KERNELS, KERNELS},
     {"-", "trainer.trainer_config.actor_rollout_ref.model.use_fused_kernels: true", "-", "-"}},
    {"Entropy",
     {CHUNKS, CHUNKS, CHUNKS, CHUNKS},
     {"-",
      "trainer.trainer_config.actor_rollout_ref.actor.entropy_from_logits_with_chunking: true, "
      "entropy_checkpointing: true",
      "-", "-"}},
    {"Offload",
     {"FSDP2 with parameters, gradients and optimizer in host memory",
      "FSDP2 with parameters, gradients and optimizer in host memory",
      "ZeRO-3 with parameters, gradients and optimizer in host memory",
      "FSDP2 with parameters, gradients and optimizer in host memory"},
     {"fully_shard(..., offload_policy=CPUOffloadPolicy())",
      "trainer.trainer_strategy: fsdp2, trainer.offload_policy: true, "
      "trainer.save_hf_checkpoint: never",
      "zero_optimization: stage 3, offload_param.device: cpu, offload_optimizer.device: cpu",
      "fsdp_offload_params: true"}},
};

const ptrdiff_t guide_part_count = COUNT_OF(guide_parts);

#define SHARDED "expandable=on checkpointing=on strategy=fsdp2"
#define LIGER   "loss=liger layer-kernels=liger"

// In order of trouble; those that a framework cannot run are passed over. The published ones alone
// are, in this order, what the published guide follows from the published capacities with.
const struct configuration configurations[] = {
    {"vanilla", "", .published = true},
    {"Env", "expandable=on", .published = true},
    {"Env + Ckpt", "expandable=on checkpointing=on", .trainers = true},
    {"Env + Ckpt + Shard", SHARDED, .trainers = true},
    {"Env + Ckpt + Liger", "expandable=on checkpointing=on " LIGER, .trainers = true},
    {"Env + Ckpt + Shard + Liger", SHARDED " " LIGER, .trainers = true},
    {"Env + Fused", "expandable=on fused-kernels=on"},
    {"Env + Entropy", "expandable=on entropy-saving=on", .unusual = true},
    {"CP=2", "cp=2"},
    {"Env + CP=2", "expandable=on cp=2"},
    {"CP=4", "cp=4"},
    {"Env + CP=4", "expandable=on cp=4"},
    {"CP=8", "cp=8"},
    {"Env + CP=8", "expandable=on cp=8"},
    {"SP=2", "sp=2", .published = true},
    {"Env + SP=2", "expandable=on sp=2", .published = true},
    {"SP=4", "sp=4", .published = true},
    {"Env + SP=4", "expandable=on sp=4", .published = true},
    {"SP=8", "sp=8"},
    {"Env + SP=8", "expandable=on sp=8"},
    {"Env + Offload", "expandable=on", .offload = true, .published = true},
    {"Env + Ckpt + Liger + Offload", "expandable=on checkpointing=on " LIGER, .offload = true,
     .trainers = true},
    {"Env + Offload + CP=2", "expandable=on cp=2", .offload = true},
    {"Env + Offload + CP=4", "expandable=on cp=4", .offload = true},
    {"Env + Offload + CP=8", "expandable=on cp=8", .offload = true},
    {"Env + Offload + SP=2", "expandable=on sp=2", .offload = true, .published = true},
    {"Env + Offload + SP=4", "expandable=on sp=4", .offload = true, .published = true},
    {"Env + Offload + SP=8", "expandable=on sp=8", .offload = true},
};

const ptrdiff_t configuration_count = COUNT_OF(configurations);

// DeepSpeed's strategy is that of its recipe.
const char *const guide_offload[GUIDE_DIALECT_COUNT] = {
    [GUIDE_TORCH] = "strategy=fsdp2 offload=all",
    [GUIDE_TRINITY] = "strategy=fsdp2 offload=all save-hf=never",
    [GUIDE_DEEPSPEED] = "offload=all",
    [GUIDE_TRAINER] = "strategy=fsdp2 offload=all",
};

// ------------------------------------------------------------------ the order

// Once, however often it is named.
static void add_configuration(struct guide *g, struct arena *a, const struct configuration *c)
{
    for (ptrdiff_t i = 0; i < g->sweep.variant_count; i++)
        if (str_is(g->sweep.variants[i].name, c->name))
            return;
    struct str settings = str_from(c->settings);
    if (c->offload)
        settings = str_format(a, "%s %s", c->settings, guide_offload[g->dialect]);
    bool ringed = strstr(c->settings, "cp=") != NULL;
    if (g->target == FOR_SLIME && !ringed) // whose files choose what is not said
        settings = str_format(a, "%.*s cp=1", STR_ARGS(settings));
    if (g->target)
        settings = str_format(a, "%.*s for=%s", STR_ARGS(settings), target_defs[g->target].name);
    g->sweep.variants[g->sweep.variant_count++] = (struct variant){str_from(c->name), settings};
}

// Without case and spaces, so that "env+sp=2" will do.
static bool same_name(struct str a, struct str b)
{
    ptrdiff_t i = 0, j = 0;
    for (;;) {
        while (i < a.n && a.p[i] == ' ')
            i++;
        while (j < b.n && b.p[j] == ' ')
            j++;
        if (i == a.n || j == b.n)
            return i == a.n && j == b.n;
        if (char_lower(a.p[i++]) != char_lower(b.p[j++]))
            return false;
    }
}

static bool add_named(struct guide *g, struct arena *a, const struct setting *name, struct error *e)
{
    struct str_nearest nearest = str_nearest_to(name->value);
    for (ptrdiff_t i = 0; i < configuration_count; i++) {
        if (same_name(name->value, str_from(configurations[i].name))) {
            add_configuration(g, a, &configurations[i]);
            return true;
        }
        str_nearest_offer(&nearest, str_from(configurations[i].name));
    }
    FAIL(e, BAD_INPUT, name->where, "the guide has no configuration '%.*s'",
         STR_ARGS(str_short(name->value)));
    if (nearest.best.n)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return HINT(e, "they are made of vanilla, Env, Ckpt, Shard, Liger, Fused, CP=2 to 8, SP=2 to 8 "
                   "and Offload, as in Env + SP=2");
}

static bool is_usual(const struct guide *g, const struct configuration *c)
{
    return !c->unusual && (!c->trainers || g->dialect == GUIDE_TRAINER);
}

static bool read_order(struct guide *g, struct arena *a, const struct setting *order,
                       struct error *e)
{
    struct setting *names = NULL;
    ptrdiff_t count = configuration_count;
    bool published = order && str_is(order->value, "published");
    if (order && !published && !list_split(&names, &count, a, order, e))
        return false;
    g->sweep.variants = NEW(a, struct variant, count);
    g->sweep.variant_count = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        if (names && !add_named(g, a, &names[i], e))
            return false;
        if (!names && (published ? configurations[i].published : is_usual(g, &configurations[i])))
            add_configuration(g, a, &configurations[i]);
    }
    return true;
}

// ------------------------------------------------------------------ the lengths

// In its place among the ascending ones, once.
static bool add_length(struct guide *g, uint64_t length, struct error *e)
{
    ptrdiff_t at = g->length_count;
    while (at > 0 && g->lengths[at - 1] >= length)
        at--;
    if (at < g->length_count && g->lengths[at] == length)
        return true;
    if (g->length_count == GUIDE_MOST_LENGTHS)
        return FAIL(e, BAD_INPUT, STR("--lengths"),
                    "a guide has at most %d lengths; a coarser --grid makes fewer",
                    GUIDE_MOST_LENGTHS);
    for (ptrdiff_t i = g->length_count++; i > at; i--)
        g->lengths[i] = g->lengths[i - 1];
    g->lengths[at] = length;
    return true;
}

static bool read_lengths(struct guide *g, struct arena *a, const struct setting *list,
                         struct error *e)
{
    struct setting *items;
    ptrdiff_t count;
    g->lengths = NEW(a, uint64_t, GUIDE_MOST_LENGTHS);
    g->lengths_are_given = list != NULL;
    if (!list)
        return true;
    if (!list_split(&items, &count, a, list, e))
        return false;
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t length;
        struct range any = {0, UINT64_MAX};
        if (!setting_number(&length, &items[i], UNIT_COUNT, any, e) || !add_length(g, length, e))
            return false;
    }
    return true;
}

static uint64_t longest_of(const struct guide *g)
{
    uint64_t longest = 0;
    for (ptrdiff_t i = 0; i < g->sweep.cell_count; i++)
        if (g->sweep.cells[i].possible && g->sweep.cells[i].capacity.context > longest)
            longest = g->sweep.cells[i].capacity.context;
    return longest;
}

// The shortest length that leaves a model's rows room for text.
static uint64_t first_of(const struct guide *g, ptrdiff_t model)
{
    uint64_t first = UINT64_MAX;
    for (ptrdiff_t i = 0; i < g->sweep.cell_count; i++)
        if (g->sweep.cells[i].possible && g->sweep.cells[i].model == model)
            first = u64_least(first, g->sweep.cells[i].capacity.first);
    return first;
}

// Every model's lengths up to the longest that anything trains, and the next.
static bool find_lengths(struct guide *g, struct grid grid, struct error *e)
{
    uint64_t longest = longest_of(g);
    for (ptrdiff_t m = 0; m < g->sweep.model_count; m++) {
        grid.max_position = guide_max_position(g, m);
        uint64_t length = 0, first = first_of(g, m);
        for (ptrdiff_t i = 0; length <= longest; i++) {
            length = grid_length(&grid, i);
            if (length >= first && !add_length(g, length, e))
                return false;
        }
    }
    return true;
}

// ------------------------------------------------------------------ the guide

static bool read_request(struct capacity_request *r, const struct guide *g,
                         const struct settings *settings, struct error *e)
{
    const struct setting *grid = settings_find_z(settings, "grid");
    *r = (struct capacity_request){.settings = settings, .grid = {.trinity = true}, .safe = true};
    if (g->length_count && grid)
        return FAIL(e, BAD_INPUT, grid->where, "lengths are given; a grid would be others");
    if (g->length_count)
        r->grid = (struct grid){.lengths = g->lengths, .length_count = g->length_count};
    return grid_parse(&r->grid, grid, e);
}

// That was named, or that the named framework's files run.
static struct str recipe_of(const struct settings *s)
{
    const struct setting *recipe = settings_find_z(s, "recipe"),
                         *target = settings_find_z(s, "for");
    if (recipe)
        return str_cut(recipe->value, '@').head;
    for (int i = 0; target && i < TARGETS; i++)
        if (str_is(target->value, target_defs[i].name))
            return str_from(target_defs[i].recipe);
    return STR_NONE;
}

static enum guide_dialect dialect_of(const struct settings *s)
{
    static const struct {
        const char *recipe;
        enum guide_dialect dialect;
    } rows[] = {{"trinity", GUIDE_TRINITY},
                {"deepspeed", GUIDE_DEEPSPEED},
                {"transformers", GUIDE_TRAINER},
                {"axolotl", GUIDE_TRAINER},
                {"llamafactory", GUIDE_TRAINER}};
    struct str name = recipe_of(s);
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (str_is(name, rows[i].recipe))
            return rows[i].dialect;
    return GUIDE_TORCH;
}

// The framework whose rules decide what is offered, unless the user chose the order or a target.
static enum target usual_target(const struct settings *s)
{
    struct str recipe = recipe_of(s), name = recipe.n ? recipe : STR("hf");
    if (settings_find_z(s, "order") || settings_find_z(s, "for"))
        return FOR_NOTHING;
    for (int i = 0; i < RECIPES; i++)
        if (str_is(name, recipe_words[i]))
            return target_of_recipe(recipe_words[i]);
    return FOR_NOTHING;
}

// What the framework's files cannot say at all (adapters, say) is searched without them.
static bool search(struct guide *g, struct arena *a, const struct capacity_request *r,
                   const struct runner *runner, struct error *e)
{
    struct error refusal = {0};
    if (sweep_run(&g->sweep, a, runner, r, g->target ? &refusal : e))
        return true;
    if (!g->target)
        return false;
    g->target = FOR_NOTHING;
    return read_order(g, a, NULL, e) && sweep_run(&g->sweep, a, runner, r, e);
}

bool guide_make(struct guide *g, struct arena *a, const struct settings *settings,
                const struct runner *runner, struct error *e)
{
    struct capacity_request *r = &g->request;
    *g = (struct guide){.dialect = dialect_of(settings), .target = usual_target(settings)};
    if (!sweep_read(&g->sweep, a, settings, e) ||
        !read_order(g, a, settings_find_z(settings, "order"), e) ||
        !read_lengths(g, a, settings_find_z(settings, "lengths"), e) ||
        !read_request(r, g, settings, e) || !search(g, a, r, runner, e))
        return false;
    return g->length_count || find_lengths(g, r->grid, e);
}

ptrdiff_t guide_choice(const struct guide *g, ptrdiff_t machine, ptrdiff_t model, uint64_t length)
{
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++) {
        const struct cell *c = sweep_cell(&g->sweep, machine, v, model);
        if (c->possible && c->capacity.first <= length && c->capacity.context >= length)
            return v;
    }
    return -1;
}

ptrdiff_t guide_rows(const struct guide *g, ptrdiff_t machine)
{
    for (ptrdiff_t row = 0; row < g->length_count && !g->lengths_are_given; row++) {
        bool any = false;
        for (ptrdiff_t m = 0; m < g->sweep.model_count; m++)
            any = any || guide_choice(g, machine, m, g->lengths[row]) >= 0;
        if (!any)
            return row + 1;
    }
    return g->length_count;
}

const struct error *guide_refusal(const struct guide *g, ptrdiff_t machine, ptrdiff_t model)
{
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++)
        if (sweep_cell(&g->sweep, machine, v, model)->possible)
            return NULL;
    return &sweep_cell(&g->sweep, machine, 0, model)->refusal;
}

const struct capacity *guide_end(const struct guide *g, ptrdiff_t machine, ptrdiff_t model)
{
    const struct capacity *longest = NULL;
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++) {
        const struct cell *c = sweep_cell(&g->sweep, machine, v, model);
        if (c->possible && (!longest || c->capacity.context > longest->context))
            longest = &c->capacity;
    }
    return longest && !longest->fails_at && longest->end.code ? longest : NULL;
}

bool guide_is_possible(const struct guide *g, ptrdiff_t configuration)
{
    for (ptrdiff_t machine = 0; machine < g->sweep.machine_count; machine++)
        if (sweep_row_is_possible(&g->sweep, machine, configuration))
            return true;
    return false;
}

uint64_t guide_max_position(const struct guide *g, ptrdiff_t model)
{
    for (ptrdiff_t machine = 0; machine < g->sweep.machine_count; machine++)
        for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++) {
            const struct cell *c = sweep_cell(&g->sweep, machine, v, model);
            if (c->possible)
                return c->capacity.max_position;
        }
    return 0;
}

bool guide_part_is_used(const struct guide *g, const struct guide_part *part)
{
    struct str stem = str_cut(str_from(part->name), '=').head;
    for (ptrdiff_t v = 0; v < g->sweep.variant_count; v++) {
        struct str rest = g->sweep.variants[v].name;
        while (guide_is_possible(g, v) && rest.n) {
            struct str_cut cut = str_cut(rest, '+');
            if (str_equal(str_cut(str_trim(cut.head), '=').head, stem))
                return true;
            rest = cut.tail;
        }
    }
    return false;
}

struct str guide_options(struct arena *a, const struct guide *g, ptrdiff_t configuration)
{
    struct words words = words_of(str_z(a, g->sweep.variants[configuration].settings), ' ');
    struct buf b = buf_in(a);
    while (words_next(&words)) {
        struct str_cut pair = str_cut(words.word, '=');
        if (pair.found)
            buf_printf(&b, "%s--%.*s %.*s", b.n ? " " : "", STR_ARGS(pair.head),
                       STR_ARGS(pair.tail));
    }
    return buf_str(&b);
}
