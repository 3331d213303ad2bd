// A command of the user's: a template in which {name} stands for a value of the trial. A shell runs
// it, so values are quoted for one; within quotes of the template, as those need it.
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
    const char *name;
    struct str (*text)(struct arena *a, const struct trial_request *r);
} places[] = {
    {"context", context_of},
    {"gpus", gpus_of},
    {"sp", sp_of},
    {"cp", cp_of},
    {"model", model_of},
    {"log", log_of},
    {"try", try_of},
    {"yarn_factor", trial_yarn_text},
    {"limit_bytes", limit_of_trial},
};

// Where in a shell's text a value stands: outside of quotes, or the quote that is open.
enum quote { QUOTE_NONE = 0, QUOTE_SINGLE = '\'', QUOTE_DOUBLE = '"' };

struct expansion {
    struct buf *text;
    const struct trial_request *request;
    struct str where;
    char quote;
    bool escaped; // by the backslash before
    bool has_context;
};

static void follow_quotes(struct expansion *x, char c)
{
    bool escapes = c == '\\' && x->quote != QUOTE_SINGLE && !x->escaped;
    bool quotes = (c == QUOTE_SINGLE || c == QUOTE_DOUBLE) && !x->escaped;
    if (quotes && x->quote == QUOTE_NONE)
        x->quote = c;
    else if (quotes && x->quote == c)
        x->quote = QUOTE_NONE;
    x->escaped = escapes;
}

static void put_value(struct expansion *x, struct str value)
{
    struct buf *b = x->text;
    if (x->quote == QUOTE_NONE)
        buf_char(b, '\'');
    for (ptrdiff_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        bool special = c == '"' || c == '$' || c == '`' || c == '\\';
        if (c == '\'' && x->quote != QUOTE_DOUBLE) {
            buf_put_z(b, "'\\''");
            continue;
        }
        if (special && x->quote == QUOTE_DOUBLE)
            buf_char(b, '\\');
        buf_char(b, c);
    }
    if (x->quote == QUOTE_NONE)
        buf_char(b, '\'');
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
    for (ptrdiff_t i = 0; i < COUNT_OF(places); i++) {
        if (str_is(name, places[i].name)) {
            put_value(x, places[i].text(x->text->arena, x->request));
            x->has_context |= str_is(name, "context");
            return true;
        }
    }
    return unknown_place(name, x->where, e);
}

static bool expand(struct expansion *x, struct str text, struct error *e)
{
    while (text.n) {
        ptrdiff_t n = place_length(text);
        bool brace = str_starts(text, STR("{{"));
        if (brace)
            n = 2;
        if (n && !brace && !put_place(x, str_slice(text, 1, n - 1), e))
            return false;
        if (!n || brace) {
            buf_char(x->text, text.p[0]);
            follow_quotes(x, text.p[0]);
        }
        text = str_slice(text, n ? n : 1, text.n);
    }
    return x->has_context ||
           FAIL(e, BAD_INPUT, x->where,
                "without {context} every trial would be the same; it stands for the length");
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
    launch_argument(l, a, STR("bash"));
    launch_argument(l, a, STR("-o"));
    launch_argument(l, a, STR("pipefail")); // a failure before "| tee" is one
    launch_argument(l, a, STR("-c"));
    launch_argument(l, a, buf_str(&text));
    return true;
}
