// Launch scripts, as far as they say what is trained: words "section.key=value" are overrides of
// verl wherever they stand; lines of emit's own "arguments=( ... )" are what train.py gets.
#include "core/emit/foreign.h"

struct script {
    struct settings *settings;
    struct str source;
    struct error *error;
    int line;
    bool in_arguments;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// The next word of a line, without its quotes; a comment ends the line.
static bool next_word(struct str *word, struct str *rest, struct arena *a)
{
    struct str text = str_trim(*rest);
    struct buf out = buf_in(a);
    char quote = 0;
    ptrdiff_t i = 0;
    if (!text.n || text.p[0] == '#')
        return false;
    for (; i < text.n && (quote || !is_space(text.p[i])); i++) {
        char c = text.p[i];
        bool mark = c == '\'' || c == '"';
        if (quote && c == quote)
            quote = '\0';
        else if (!quote && mark)
            quote = c;
        else
            buf_char(&out, c);
    }
    *word = buf_str(&out);
    *rest = str_slice(text, i, text.n);
    return true;
}

static bool put(struct script *s, struct str key, struct str value)
{
    struct str where = str_format(s->settings->arena, "%.*s:%d", STR_ARGS(s->source), s->line);
    struct setting item = {key, value, where};
    return !key.n || settings_set(s->settings, item, s->error);
}

static bool is_override(struct str key)
{
    static const char sections[] =
        "actor_rollout_ref|algorithm|data|trainer|critic|reward_model|"
        "reward_manager|custom_reward_function|global_profiler|ray_kwargs";
    struct str_cut cut = str_cut(key, '.');
    return cut.found && words_have(sections, '|', cut.head);
}

// "--name value", or "--name" alone.
static bool read_argument(struct script *s, struct str word, struct str rest)
{
    struct arena *a = s->settings->arena;
    struct str value = STR("on");
    if (!str_starts(word, STR("--")))
        return true;
    struct str key = str_join(a, STR("arguments."), str_slice(word, 2, word.n));
    (void)next_word(&value, &rest, a);
    return put(s, key, value);
}

static bool read_word(struct script *s, struct str word)
{
    while (str_starts(word, STR("+")))
        word = str_slice(word, 1, word.n);
    struct str_cut pair = str_cut(word, '=');
    return !pair.found || !is_override(pair.head) || put(s, pair.head, pair.tail);
}

// Words that a script of another program also has, and that change what is trained.
static bool read_command(struct script *s, struct str word, struct str *rest)
{
    struct arena *a = s->settings->arena;
    struct str next;
    if (str_is(word, "export") && next_word(&next, rest, a)) {
        struct str_cut pair = str_cut(next, '=');
        return !pair.found || put(s, str_join(a, STR("environment."), pair.head), pair.tail);
    }
    if (str_is(word, "yarn.py") && next_word(&next, rest, a)) {
        if (!put(s, STR("yarn.model"), next))
            return false;
        return !next_word(&next, rest, a) || put(s, STR("yarn.copy"), next);
    }
    return read_word(s, word);
}

static bool read_line(struct script *s, struct str line)
{
    struct str word, rest = line;
    if (str_is(str_trim(line), "arguments=(") || str_is(str_trim(line), ")")) {
        s->in_arguments = !str_is(str_trim(line), ")");
        return true;
    }
    while (next_word(&word, &rest, s->settings->arena)) {
        if (s->in_arguments)
            return read_argument(s, word, rest);
        if (!read_command(s, word, &rest))
            return false;
    }
    return true;
}

bool script_flatten(struct settings *out, struct str text, struct str source, struct error *e)
{
    struct script s = {.settings = out, .source = source, .error = e};
    for (struct str_cut c = str_cut(text, '\n');; c = str_cut(c.tail, '\n')) {
        s.line++;
        if (!read_line(&s, c.head))
            return false;
        if (!c.found)
            return true;
    }
}
