// A command of the user's, which a shell runs. Every value of the trial is in its environment,
// where no text of a shell's is made of it. In the command itself {name} stands for a value only
// where that is a number or a plain word, which means the same wherever a shell finds it.
#include "core/base/buf.h"
#include "core/probe/engine.h"

static struct str count_text(struct arena *a, uint64_t count)
{
    return str_format(a, "%llu", (unsigned long long)count);
}

static struct str context_of(struct arena *a, const struct trial_request *r)
{
    return count_text(a, r->context);
}

static struct str gpus_of(struct arena *a, const struct trial_request *r)
{
    return count_text(a, r->gpus);
}

static struct str sp_of(struct arena *a, const struct trial_request *r)
{
    return count_text(a, r->sp);
}

static struct str cp_of(struct arena *a, const struct trial_request *r)
{
    return count_text(a, r->cp);
}

static struct str model_of(struct arena *a, const struct trial_request *r)
{
    (void)a;
    return r->model;
}

static struct str log_of(struct arena *a, const struct trial_request *r)
{
    (void)a;
    return r->log;
}

static struct str try_of(struct arena *a, const struct trial_request *r)
{
    return str_format(a, "%d", r->try);
}

static struct str limit_of_trial(struct arena *a, const struct trial_request *r)
{
    return count_text(a, r->limit_bytes);
}

static const struct {
    const char *name, *variable;
    struct str (*text)(struct arena *a, const struct trial_request *r);
} places[] = {
    {"context", "FATHOM_CONTEXT", context_of},
    {"gpus", "FATHOM_GPUS", gpus_of},
    {"sp", "FATHOM_SP", sp_of},
    {"cp", "FATHOM_CP", cp_of},
    {"model", "FATHOM_MODEL", model_of},
    {"log", "FATHOM_LOG", log_of},
    {"try", "FATHOM_TRY", try_of},
    {"yarn_factor", "FATHOM_YARN_FACTOR", trial_yarn_text},
    {"limit_bytes", "FATHOM_LIMIT_BYTES", limit_of_trial},
};

struct expansion {
    struct buf *text;
    const struct trial_request *request;
    struct str where;
    bool has_context;
};

static bool is_plain(char c)
{
    struct str marks = STR("_.,:/=+-");
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    for (ptrdiff_t i = 0; i < marks.n; i++)
        letter |= c == marks.p[i];
    return letter || char_is_digit(c);
}

// Why a value cannot stand in a shell's text wherever that may be; empty where it can.
static struct str trouble_with(struct arena *a, struct str value)
{
    ptrdiff_t i = 0;
    while (i < value.n && is_plain(value.p[i]))
        i++;
    if (!value.n)
        return STR("is empty");
    if (i == value.n)
        return value.p[0] == '-' ? STR("begins with '-'") : STR_NONE;
    if (value.p[i] == ' ')
        return STR("has a space");
    bool shown = value.p[i] > ' ' && value.p[i] <= '~';
    return shown ? str_format(a, "has a %c", value.p[i])
                 : STR("has a character that is no plain one");
}

// The length of a "{name}" of small letters at the beginning of `s`, 0 where there is none.
static ptrdiff_t place_length(struct str s)
{
    ptrdiff_t i = 1;
    while (i < s.n && ((s.p[i] >= 'a' && s.p[i] <= 'z') || s.p[i] == '_'))
        i++;
    return s.n > 2 && s.p[0] == '{' && i > 1 && i < s.n && s.p[i] == '}' ? i + 1 : 0;
}

static bool unknown_place(struct str name, struct str where, struct error *e)
{
    FAIL(e, BAD_INPUT, where, "'{%.*s}' stands for nothing", STR_ARGS(str_short(name)));
    return HINT(e, "{context}, {gpus}, {sp}, {cp}, {model}, {log}, {try}, {yarn_factor} and "
                   "{limit_bytes} are known; '{{' is a brace");
}

static bool put_place(struct expansion *x, struct str name, struct error *e)
{
    struct arena *a = x->text->arena;
    for (ptrdiff_t i = 0; i < COUNT_OF(places); i++) {
        if (!str_is(name, places[i].name))
            continue;
        struct str value = places[i].text(a, x->request);
        struct str trouble = trouble_with(a, value);
        if (trouble.n)
            return FAIL(e, BAD_INPUT, x->where, "{%s}: its value %.*s; write \"$%s\" instead",
                        places[i].name, STR_ARGS(trouble), places[i].variable);
        buf_put(x->text, value);
        return true;
    }
    return unknown_place(name, x->where, e);
}

static bool expand(struct expansion *x, struct str text, struct error *e)
{
    struct str context = STR("{context}"), variable = STR("FATHOM_CONTEXT");
    char before = 0; // "${name}" is the shell's own
    while (text.n) {
        ptrdiff_t n = before == '$' ? 0 : place_length(text);
        bool brace = str_starts(text, STR("{{"));
        x->has_context |= (n && str_starts(text, context)) || str_starts(text, variable);
        if (n && !put_place(x, str_slice(text, 1, n - 1), e))
            return false;
        if (!n)
            buf_char(x->text, text.p[0]);
        before = text.p[0];
        text = str_slice(text, n ? n : brace ? 2 : 1, text.n);
    }
    return x->has_context || FAIL(e, BAD_INPUT, x->where,
                                  "without {context} or $FATHOM_CONTEXT every trial would be the "
                                  "same; they stand for the length");
}

bool command_build(struct launch *l, struct arena *a, const struct trial_request *r,
                   struct error *e)
{
    const struct setting *item = settings_find_z(r->cell, "command");
    if (!item)
        return FAIL(e, BAD_INPUT, STR("--command"), "the command engine needs --command");
    struct buf text = buf_in(a);
    struct expansion x = {.text = &text, .request = r, .where = item->where};
    if (!expand(&x, item->value, e))
        return false;
    const struct setting *expandable = settings_find_z(r->cell, "expandable");
    bool on = false;
    if (expandable && !setting_switch(&on, expandable, e))
        return false;
    if (on) // torch 2.9 and later read the second name
        launch_variable(l, a, "PYTORCH_CUDA_ALLOC_CONF", STR("expandable_segments:True"));
    if (on)
        launch_variable(l, a, "PYTORCH_ALLOC_CONF", STR("expandable_segments:True"));
    for (ptrdiff_t i = 0; i < COUNT_OF(places); i++)
        launch_variable(l, a, places[i].variable, places[i].text(a, r));
    bool fake = settings_find_z(r->cell, "fake");
    struct str workspace = fake ? trial_workspace_text(a, r) : STR_NONE;
    fake ? launch_watched(l, a, r) : launch_played(l, a, r);
    if (!launch_fake(l, a, r, e))
        return false;
    if (workspace.n)
        launch_variable(l, a, "CUBLAS_WORKSPACE_CONFIG", workspace);
    launch_argument(l, a, STR("bash"));
    launch_argument(l, a, STR("-o"));
    launch_argument(l, a, STR("pipefail")); // a failure before "| tee" is one
    launch_argument(l, a, STR("-c"));
    launch_argument(l, a, buf_str(&text));
    return true;
}
