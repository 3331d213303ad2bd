// The table of engines, and what they share.
#include "core/probe/engine.h"

#include "core/base/num.h"

const struct engine engines[] = {
    {.name = "torch", .needs_model = true, .serves = true, .limits = true, .build = torch_build},
    {.name = "accelerate",
     .needs_model = true,
     .recipe = "hf",
     .limits = true,
     .is_played = true,
     .build = accelerate_build},
    {.name = "deepspeed",
     .needs_model = true,
     .recipe = "deepspeed",
     .limits = true,
     .is_played = true,
     .build = deepspeed_build},
    {.name = "transformers",
     .needs_model = true,
     .recipe = "transformers",
     .limits = true,
     .is_played = true,
     .build = transformers_build},
    {.name = "trl",
     .needs_model = true,
     .recipe = "trl",
     .limits = true,
     .saves = true,
     .is_played = true,
     .build = trl_build},
    {.name = "command", .is_played = true, .build = command_build},
    {.name = "trinity",
     .needs_model = true,
     .recipe = "trinity",
     .saves = true,
     .hides_failures = true, // trinity/cli/launcher.py (0.6.0) logs what it catches, and returns
     .failure = "Explorer or Trainer failed",
     .whole_card = true,
     .build = trinity_build},
    {0},
};

const struct engine *engine_find(struct str name)
{
    for (const struct engine *e = engines; e->name; e++)
        if (str_is(name, e->name))
            return e;
    return NULL;
}

struct str path_as_argument(struct arena *a, struct str path)
{
    return str_starts(path, STR("-")) ? str_join(a, STR("./"), path) : path;
}

void launch_argument(struct launch *l, struct arena *a, struct str text)
{
    ASSERT(l->argument_count + 1 < LAUNCH_MAX_ARGUMENTS);
    l->arguments[l->argument_count++] = str_z(a, text);
}

void launch_variable(struct launch *l, struct arena *a, const char *name, struct str value)
{
    ASSERT(l->environment_count + 1 < LAUNCH_MAX_ARGUMENTS);
    struct str text = str_format(a, "%s=%.*s", name, STR_ARGS(value));
    l->environment[l->environment_count++] = str_z(a, text);
}

static struct str count_text(struct arena *a, uint64_t count)
{
    return str_format(a, "%llu", (unsigned long long)count);
}

static bool is_one_gpu(const struct settings *cell)
{
    const struct setting *item = settings_find_z(cell, "one-gpu");
    return item && str_is(engine_value_text(item), "on");
}

bool trial_is_played(const struct engine *engine, const struct settings *cell)
{
    return engine->is_played && is_one_gpu(cell);
}

// Fake tensors are one rank's; the others are played.
static bool plays_ranks(const struct trial_request *r)
{
    return is_one_gpu(r->cell) || (settings_find_z(r->cell, "fake") && r->gpus > 1);
}

void launch_watched(struct launch *l, struct arena *a, const struct trial_request *r)
{
    bool plays = plays_ranks(r);
    launch_variable(l, a, "PYTHONPATH", r->python_path);
    if (plays)
        launch_variable(l, a, "FATHOM_PLAY_RANKS", count_text(a, r->gpus));
    launch_variable(l, a, "FATHOM_PLAY_LIMIT", count_text(a, r->limit_bytes));
    l->gpus = plays ? 1 : 0;
}

void launch_played(struct launch *l, struct arena *a, const struct trial_request *r)
{
    if (is_one_gpu(r->cell))
        launch_watched(l, a, r);
}

// A command runs as on a machine without a GPU, and all that Python in it does is watched. The
// processor is a GPU's stand-in, to Accelerate and to DeepSpeed too.
bool launch_fake(struct launch *l, struct arena *a, const struct trial_request *r, struct error *e)
{
    const struct setting *offload = settings_find_z(r->cell, "offload");
    if (!settings_find_z(r->cell, "fake"))
        return true;
    if (offload && !str_is(offload->value, "off"))
        return FAIL(e, UNSUPPORTED, offload->where,
                    "fake tensors all stand on the processor: what is offloaded there could not be "
                    "told from the rest; --one-gpu on a GPU can");
    launch_variable(l, a, "FATHOM_PLAY_FAKE", r->program);
    launch_variable(l, a, "CUDA_VISIBLE_DEVICES", STR(""));
    launch_variable(l, a, "ACCELERATE_TORCH_DEVICE", STR("cpu"));
    launch_variable(l, a, "DS_ACCELERATOR", STR("cpu"));
    return true;
}

bool engine_value_is_in(struct str value, const char *values)
{
    struct words words = words_of(values, '|');
    while (words_next(&words))
        if (str_equal(value, words.word) ||
            (str_ends(words.word, STR(":")) && str_starts(value, words.word)))
            return true;
    return false;
}

struct str engine_value_text(const struct setting *item)
{
    const struct setting_def *def = setting_def_find(item->key);
    struct error ignored = {0};
    bool on;
    bool switches = def && (def->kind == SETTING_SWITCH || def->kind == SETTING_FLAG);
    if (!switches || !setting_switch(&on, item, &ignored))
        return item->value;
    return on ? STR("on") : STR("off");
}

bool engine_check_values(const char *engine, const struct engine_setting *rows,
                         const struct settings *cell, struct error *e)
{
    for (; rows->name; rows++) {
        const struct setting *item = settings_find_z(cell, rows->name);
        if (item && rows->values && !engine_value_is_in(engine_value_text(item), rows->values))
            return FAIL(e, BAD_INPUT, item->where, "the %s engine does %s %s, not '%.*s'", engine,
                        rows->name, rows->values, STR_ARGS(str_short(item->value)));
    }
    return true;
}

// Frameworks multiply again and cut off the fraction: the product must not come out short of the
// context. Nine decimals are fewer than one token for any model.
double trial_yarn_factor(const struct trial_request *r)
{
    static const uint64_t scale = 1000000000;
    if (!r->max_position || r->context <= r->max_position)
        return 0;
    uint64_t scaled = u64_divide_up(sat_mul(r->context, scale), r->max_position);
    double factor = (double)scaled / (double)scale;
    while (factor * (double)r->max_position < (double)r->context)
        factor = (double)++scaled / (double)scale;
    return factor;
}

// Blocks of 4 MiB and 16 KiB, which torch's own defaults are made of.
struct str trial_workspace_text(struct arena *a, const struct trial_request *r)
{
    enum { LARGE = 4 << 20, SMALL = 16 << 10 };
    unsigned long long large = r->workspace_bytes / LARGE;
    unsigned long long small = r->workspace_bytes % LARGE / SMALL;
    if (!r->workspace_bytes)
        return STR_NONE;
    return small ? str_format(a, ":4096:%llu:16:%llu", large, small)
                 : str_format(a, ":4096:%llu", large);
}

struct str trial_yarn_text(struct arena *a, const struct trial_request *r)
{
    double factor = trial_yarn_factor(r);
    return str_format(a, "%.15g", factor > 0 ? factor : 1.0);
}

static bool is_plain(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    struct str others = STR("-_./=:,@%+");
    for (ptrdiff_t i = 0; i < others.n; i++)
        if (c == others.p[i])
            return true;
    return letter || char_is_digit(c);
}

static void put_word(struct buf *b, struct str word)
{
    bool plain = word.n > 0;
    for (ptrdiff_t i = 0; i < word.n; i++)
        plain = plain && is_plain(word.p[i]);
    if (plain) {
        buf_put(b, word);
        return;
    }
    buf_char(b, '\'');
    for (ptrdiff_t i = 0; i < word.n; i++) {
        if (word.p[i] == '\'')
            buf_put_z(b, "'\\''");
        else
            buf_char(b, word.p[i]);
    }
    buf_char(b, '\'');
}

void launch_print(struct buf *b, const struct launch *l)
{
    for (int i = 0; i < l->environment_count; i++) {
        struct str_cut pair = str_cut(str_from(l->environment[i]), '=');
        buf_printf(b, "%.*s=", STR_ARGS(pair.head));
        put_word(b, pair.tail);
        buf_char(b, ' ');
    }
    for (int i = 0; i < l->argument_count; i++) {
        put_word(b, str_from(l->arguments[i]));
        if (i + 1 < l->argument_count)
            buf_char(b, ' ');
    }
}
