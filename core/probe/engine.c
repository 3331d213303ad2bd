// The table of engines, and what they share.
#include "core/probe/engine.h"

const struct engine engines[] = {
    {.name = "torch", .needs_model = true, .serves = true, .limits = true, .build = torch_build},
    {.name = "accelerate",
     .needs_model = true,
     .recipe = "hf",
     .limits = true,
     .build = accelerate_build},
    {.name = "deepspeed",
     .needs_model = true,
     .recipe = "deepspeed",
     .limits = true,
     .build = deepspeed_build},
    {.name = "command", .build = command_build},
    {.name = "trinity",
     .needs_model = true,
     .recipe = "trinity",
     .saves = true,
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

double trial_yarn_factor(const struct trial_request *r)
{
    bool longer = r->max_position && r->context > r->max_position;
    return longer ? (double)r->context / (double)r->max_position : 0;
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
