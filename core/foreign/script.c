// Launch scripts, as far as they say what is trained: words "section.key=value" are overrides of
// verl wherever they stand; lines of emit's own "arguments=( ... )" are what train.py gets, and its
// comments "# Predicted with --name value" are what no word of the frameworks says; what a trainer
// gets on its command line are keys of its files (trainer_command).
// Variables that the script sets, or gives a default, are put in; others stay as they are.
#include "core/foreign/foreign.h"
#include "core/foreign/trainer_command.h"

struct script {
    struct settings *settings;
    struct settings variables;
    struct trainer_command trainer;
    struct str source;
    struct error *error;
    int line;
    bool in_arguments;
    ptrdiff_t put_in;   // bytes that variables were replaced by
    ptrdiff_t most_put; // beyond which they stay as they are
};

// A script sets dozens of each; what is more would be looked through for every word.
enum { MOST_VARIABLES = 500, MOST_VALUES = 2000 };

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Where the word ends that the text begins with.
static ptrdiff_t word_end(struct str text)
{
    char quote = 0;
    ptrdiff_t i = 0;
    for (; i < text.n && (quote || !is_space(text.p[i])); i++) {
        bool mark = text.p[i] == '\'' || text.p[i] == '"';
        if (quote && text.p[i] == quote)
            quote = '\0';
        else if (!quote && mark)
            quote = text.p[i];
    }
    return i;
}

// The next word of a line, without its quotes; a comment ends the line.
static bool next_word(struct str *word, struct str *rest, struct arena *a)
{
    struct str text = str_trim(*rest);
    char quote = 0;
    if (!text.n || text.p[0] == '#')
        return false;
    ptrdiff_t end = word_end(text);
    struct buf out = buf_over(NEW(a, char, end), end);
    for (ptrdiff_t i = 0; i < end; i++) {
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
    *rest = str_slice(text, end, text.n);
    return true;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || char_is_digit(c) || c == '_';
}

static struct str name_at(struct str text)
{
    ptrdiff_t n = 0;
    while (n < text.n && is_name(text.p[n]))
        n++;
    return str_slice(text, 0, n);
}

// $NAME, ${NAME} or ${NAME:-default} at the start of `text`: how long it is, or 0 where it is
// something else or not known.
static ptrdiff_t reference_at(const struct script *s, struct str text, struct str *value)
{
    bool braces = text.n > 1 && text.p[1] == '{';
    struct str inside = str_slice(text, braces ? 2 : 1, text.n), name = name_at(inside);
    struct str_cut end = str_cut(inside, '}');
    struct str rest = str_slice(end.head, name.n < end.head.n ? name.n : end.head.n, end.head.n);
    const struct setting *known = settings_find(&s->variables, name);
    bool falls_back = braces && str_starts(rest, STR(":-"));
    if (!name.n || (braces && (!end.found || (rest.n && !falls_back))) || (!known && !falls_back))
        return 0;
    *value = known ? known->value : str_slice(rest, 2, rest.n);
    return braces ? 2 + end.head.n + 1 : 1 + name.n;
}

static struct str expanded(struct script *s, struct str text)
{
    enum { LONGEST = 4096 }; // a variable may hold itself twice, again and again
    if (!str_cut(text, '$').found || s->put_in > s->most_put)
        return text;
    struct buf out = buf_in(s->settings->arena);
    for (ptrdiff_t i = 0; i < text.n;) {
        if (out.n > LONGEST)
            return text;
        struct str value = str_slice(text, i, i + 1);
        struct str rest = str_slice(text, i, text.n);
        ptrdiff_t n = text.p[i] == '$' ? reference_at(s, rest, &value) : 0;
        buf_put(&out, value);
        i += n ? n : 1;
        s->put_in += n ? value.n : 0;
    }
    return buf_str(&out);
}

// As settings_set, up to so many.
static bool set(struct script *s, struct settings *list, struct setting item, int most)
{
    if (!settings_set(list, item, s->error))
        return false;
    return list->count <= most || FAIL(s->error, BAD_INPUT, s->source, "more than %d %s are set",
                                       most, list == &s->variables ? "variables" : "values");
}

static bool assign(struct script *s, struct str name, struct str value)
{
    struct setting item = {name, expanded(s, value), s->source};
    bool whole = name.n && name_at(name).n == name.n;
    return !whole || set(s, &s->variables, item, MOST_VARIABLES);
}

static bool put(struct script *s, struct str key, struct str value)
{
    value = expanded(s, value);
    struct str where = str_format(s->settings->arena, "%.*s:%d", STR_ARGS(s->source), s->line);
    struct setting item = {key, value, where};
    return !key.n || set(s, s->settings, item, MOST_VALUES);
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
    if (!pair.found)
        return true;
    return is_override(pair.head) ? put(s, pair.head, pair.tail) : assign(s, pair.head, pair.tail);
}

// Words that a script of another program also has, and that change what is trained.
static bool read_command(struct script *s, struct str word, struct str *rest)
{
    struct arena *a = s->settings->arena;
    struct str next;
    if (str_is(word, "export") && next_word(&next, rest, a)) {
        struct str_cut pair = str_cut(next, '=');
        return !pair.found || (assign(s, pair.head, pair.tail) &&
                               put(s, str_join(a, STR("environment."), pair.head), pair.tail));
    }
    if (str_is(word, "yarn.py") && next_word(&next, rest, a)) {
        if (!put(s, STR("yarn.model"), next))
            return false;
        return !next_word(&next, rest, a) || put(s, STR("yarn.copy"), next);
    }
    return read_word(s, word);
}

static bool read_prediction(struct script *s, struct str text)
{
    struct str_cut pair = str_cut(str_trim(text), ' ');
    struct str key = str_join(s->settings->arena, STR("predicted."), pair.head);
    return put(s, key, str_copy(s->settings->arena, str_trim(pair.tail)));
}

static bool end_command(struct script *s)
{
    struct settings *said = &s->trainer.said;
    bool meant;
    if (!trainer_command_is_meant(&s->trainer, &meant, s->error))
        return false;
    for (ptrdiff_t i = 0; meant && i < said->count; i++) {
        struct setting item = said->items[i];
        item.value = expanded(s, item.value);
        if (!set(s, s->settings, item, MOST_VALUES))
            return false;
    }
    s->trainer = trainer_command_in(s->settings->arena);
    return true;
}

// A line that ends with a backslash goes on, and "&&", ";", "|" and ">" end a command.
static bool read_trainer(struct script *s, struct str line)
{
    struct arena *a = s->settings->arena;
    struct str word, rest = line;
    struct str where = str_format(a, "%.*s:%d", STR_ARGS(s->source), s->line);
    while (next_word(&word, &rest, a)) {
        bool ends = words_have("&& ; | || > >> & 2>&1", ' ', word);
        if (ends ? !end_command(s) : !trainer_command_word(&s->trainer, word, where, s->error))
            return false;
    }
    return str_ends(str_trim(line), STR("\\")) || end_command(s);
}

static bool read_line(struct script *s, struct str line)
{
    struct str word, rest = line, said = STR("# Predicted with --");
    if (str_starts(line, said))
        return read_prediction(s, str_slice(line, said.n, line.n));
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
    return s->in_arguments || read_trainer(s, line);
}

bool script_flatten(struct settings *out, struct str text, struct str source, struct error *e)
{
    enum { SOME = 64 << 10, AGAIN = 8 };
    struct script s = {.settings = out,
                       .variables = settings_in(out->arena),
                       .trainer = trainer_command_in(out->arena),
                       .source = source,
                       .error = e,
                       .most_put = SOME + AGAIN * text.n};
    for (struct str_cut c = str_cut(text, '\n');; c = str_cut(c.tail, '\n')) {
        s.line++;
        if (!read_line(&s, c.head))
            return false;
        if (!c.found)
            return true;
    }
}
