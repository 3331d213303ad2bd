// Words of a shell: quotes, escapes, "$NAME", "${NAME:-other}", "${ARRAY[@]}", sums, and of
// commands in brackets the two that name a script's own folder. Everything else stays as it is.
#include "core/foreign/shell_expand.h"

#include <inttypes.h>

enum {
    MOST_NESTED = 8,
    WORD_BYTES = 16, // what an empty word counts for
};

// A word being put together.
struct word {
    struct shell *shell;
    struct shell_words *to;
    struct buf text;
    int line;
    bool begun;    // "" is a word, too
    bool assigned; // never parted
};

bool shell_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || char_is_digit(c) || c == '_';
}

struct str shell_name_at(struct str text)
{
    ptrdiff_t n = 0;
    while (n < text.n && is_name(text.p[n]))
        n++;
    return str_slice(text, 0, n);
}

// Variables that hold themselves twice, again and again, are not put in any more from here on.
static bool has_room(struct shell *s, ptrdiff_t bytes)
{
    enum { SOME = 16 << 10, AGAIN = 4 };
    s->put_in += bytes;
    return s->put_in <= SOME + AGAIN * s->text.n;
}

void shell_add_word(struct shell_words *to, struct shell_word word)
{
    to->items = arena_grow(to->arena, to->items, sizeof *to->items, to->count, &to->capacity);
    to->items[to->count++] = word;
}

static void end_word(struct word *w)
{
    if (w->begun)
        shell_add_word(w->to, (struct shell_word){buf_str(&w->text), w->line});
    w->begun = false;
    w->text = buf_in(&w->shell->scratch);
}

static void put(struct word *w, struct str text)
{
    w->begun = true;
    buf_put(&w->text, text);
}

static bool parts(char c)
{
    return shell_is_space(c) || c == '\n';
}

// A value that stands without quotes is parted at its spaces.
static void put_parts(struct word *w, struct str value, bool quoted)
{
    if (quoted || w->assigned) {
        put(w, value);
        return;
    }
    for (ptrdiff_t from = 0, i = 0; i <= value.n; i++) {
        bool ends = i == value.n || parts(value.p[i]);
        if (ends && i > from)
            put(w, str_slice(value, from, i));
        if (ends && i < value.n)
            end_word(w);
        from = ends ? i + 1 : from;
    }
}

static ptrdiff_t array_bytes(const struct shell_array *array)
{
    ptrdiff_t bytes = 0;
    for (ptrdiff_t i = 0; i < array->words.count; i++)
        bytes += WORD_BYTES + array->words.items[i].text.n;
    return bytes;
}

static void put_array(struct word *w, struct shell_array *array, struct str whole, bool quoted)
{
    array->used = true;
    if (!has_room(w->shell, array_bytes(array))) {
        put(w, whole);
        return;
    }
    for (ptrdiff_t i = 0; i < array->words.count; i++) {
        if (i && w->assigned)
            put(w, STR(" "));
        else if (i)
            end_word(w);
        if (!w->begun)
            w->line = array->words.items[i].line;
        put_parts(w, array->words.items[i].text, quoted);
    }
}

static void put_value(struct word *w, struct str value, struct str whole, bool quoted)
{
    if (has_room(w->shell, WORD_BYTES + value.n))
        put_parts(w, value, quoted);
    else
        put(w, whole);
}

// "<<EOF" at `at`, behind the signs: the name, and where it ends.
static struct str document_name(struct str text, ptrdiff_t *at)
{
    while (*at < text.n && (text.p[*at] == '-' || shell_is_space(text.p[*at])))
        ++*at;
    bool quoted = *at < text.n && (text.p[*at] == '\'' || text.p[*at] == '"');
    *at += quoted;
    struct str name = shell_name_at(str_slice(text, *at, text.n));
    *at += name.n + quoted;
    return name;
}

ptrdiff_t shell_behind_document(struct str text, ptrdiff_t at, struct str name)
{
    while (at < text.n) {
        struct str_cut line = str_cut(str_slice(text, at, text.n), '\n');
        at += line.head.n + line.found;
        if (str_equal(str_trim(line.head), name) || !line.found)
            return at;
    }
    return at;
}

static ptrdiff_t behind_quote(struct str text, ptrdiff_t at)
{
    char mark = text.p[at];
    for (at++; at < text.n && text.p[at] != mark; at++)
        at += text.p[at] == '\\' && mark == '"';
    return at + 1;
}

ptrdiff_t shell_behind_bracket(struct shell *s, struct str text, ptrdiff_t at)
{
    enum { MOST_OPEN = 64 };
    char opens = text.p[at], closes = opens == '{' ? '}' : ')';
    int depth = 0;
    for (ptrdiff_t i = at; i < text.n && s->never_closed < MOST_OPEN; i++) {
        char c = text.p[i];
        bool document = c == '<' && i + 1 < text.n && text.p[i + 1] == '<' && opens == '(' &&
                        !(i + 2 < text.n && text.p[i + 2] == '<');
        if (c == '\\') {
            i++;
        } else if (c == '\'' || c == '"') {
            i = behind_quote(text, i) - 1;
        } else if (document) {
            ptrdiff_t end = i + 2;
            struct str name = document_name(text, &end);
            i = name.n ? shell_behind_document(text, end, name) - 1 : i + 1;
        } else {
            depth += (c == opens) - (c == closes);
            if (!depth)
                return i + 1;
        }
    }
    s->never_closed++;
    return 0;
}

static int lines_in(struct str text)
{
    int lines = 0;
    for (ptrdiff_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    return lines;
}

static void expand(struct word *w, struct str text, const struct shell_reader *from, bool quoted);

static struct shell_words words_inside(struct word *w, struct str text,
                                       const struct shell_reader *from)
{
    struct shell_words words = {.arena = &w->shell->scratch};
    struct shell_reader r = {.text = text, .line = from->line, .depth = from->depth + 1};
    while (r.at < r.text.n) {
        ptrdiff_t before = r.at;
        shell_read_word(w->shell, &r, &words, false);
        r.at += r.at == before;
    }
    return words;
}

static struct str behind_options(const struct shell_words *words)
{
    for (ptrdiff_t i = 1; i < words->count; i++)
        if (!str_starts(words->items[i].text, STR("-")))
            return words->items[i].text;
    return STR_NONE;
}

// The folder that "$(dirname PATH)" and "$(cd FOLDER && pwd)" name; a script's own is ".".
static struct str folder_inside(struct word *w, struct str command, const struct shell_reader *from)
{
    struct str text = str_trim(command);
    bool goes = str_starts(text, STR("cd ")), names = str_starts(text, STR("dirname "));
    if (from->depth >= MOST_NESTED || !(goes || names))
        return STR_NONE;
    struct shell_words words = words_inside(w, text, from);
    struct str path = behind_options(&words);
    if (goes)
        return path;
    bool own = str_is(path, "$0") || str_is(path, "${BASH_SOURCE[0]}") ||
               str_is(path, "$BASH_SOURCE") || str_is(path, "${BASH_SOURCE}");
    struct str_cut cut = str_cut_last(path, '/');
    return own ? STR(".") : cut.found ? cut.head : STR_NONE;
}

// `text` is "$(...)" or "$((...))".
static void put_command(struct word *w, struct str text, const struct shell_reader *from)
{
    int64_t sum;
    bool adds = str_starts(text, STR("$((")) && str_ends(text, STR("))"));
    if (adds && shell_sum(w->shell, str_slice(text, 3, text.n - 2), &sum)) {
        put(w, str_format(&w->shell->scratch, "%" PRId64, sum));
        return;
    }
    struct str folder = adds ? STR_NONE : folder_inside(w, str_slice(text, 2, text.n - 1), from);
    put(w, folder.n ? folder : text);
}

static struct shell_array *find_array(const struct shell *s, struct str name)
{
    for (struct shell_array *a = s->arrays; a; a = a->next)
        if (str_equal(a->name, name))
            return a;
    return NULL;
}

const struct shell_array *shell_array_find(const struct shell *s, struct str name)
{
    return find_array(s, name);
}

static void put_variable(struct word *w, struct str name, struct str whole, bool quoted)
{
    const struct setting *known = settings_find(&w->shell->variables, name);
    struct shell_array *array = find_array(w->shell, name);
    if (known)
        put_value(w, known->value, whole, quoted);
    else if (array && array->words.count)
        put_value(w, array->words.items[0].text, whole, quoted);
    else
        put(w, whole);
}

static void put_all(struct word *w, struct str name, struct str whole, bool each, bool quoted)
{
    const struct setting *known = settings_find(&w->shell->variables, name);
    struct shell_array *array = find_array(w->shell, name);
    if (array)
        put_array(w, array, whole, quoted && each);
    else if (known)
        put_value(w, known->value, whole, quoted);
}

// What follows the name in "${NAME:-other}", with its sign: -, = or +.
struct alternative {
    struct str name;
    char sign;
    bool colon; // an empty value is none
    struct str other;
};

static struct alternative alternative_of(struct str name, struct str rest)
{
    struct alternative a = {.name = name, .colon = str_starts(rest, STR(":"))};
    a.sign = shell_char(rest, a.colon);
    a.other = str_slice(rest, a.colon + 1 < rest.n ? a.colon + 1 : rest.n, rest.n);
    return a;
}

static void put_alternative(struct word *w, struct alternative a, struct str whole,
                            const struct shell_reader *from, bool quoted)
{
    const struct setting *known = settings_find(&w->shell->variables, a.name);
    bool is_set = known && !(a.colon && !known->value.n);
    if (a.sign == '+') {
        if (is_set)
            expand(w, a.other, from, quoted);
        return;
    }
    if (is_set)
        put_value(w, known->value, whole, quoted);
    else
        expand(w, a.other, from, quoted);
}

// `whole` is "${...}".
static void put_parameter(struct word *w, struct str whole, const struct shell_reader *from,
                          bool quoted)
{
    struct str inside = str_slice(whole, 2, whole.n - 1), name = shell_name_at(inside);
    struct str rest = str_slice(inside, name.n, inside.n);
    struct alternative a = alternative_of(name, rest);
    bool one = str_is(rest, "[*]"), each = str_is(rest, "[@]");
    if (str_is(inside, "@") || str_is(inside, "*"))
        return;
    if (name.n && !rest.n)
        put_variable(w, name, whole, quoted);
    else if (name.n && (one || each))
        put_all(w, name, whole, each, quoted);
    else if (name.n && (a.sign == '-' || a.sign == '=' || a.sign == '+'))
        put_alternative(w, a, whole, from, quoted);
    else
        put(w, whole);
}

// At a "$": what stands there, and where it ends.
static void read_reference(struct word *w, struct shell_reader *r, bool quoted)
{
    struct str rest = str_slice(r->text, r->at, r->text.n);
    char next = shell_char(rest, 1);
    bool opens = next == '(' || next == '{';
    ptrdiff_t end = opens ? shell_behind_bracket(w->shell, r->text, r->at + 1) - r->at : 0;
    struct str name = shell_name_at(str_slice(rest, 1, rest.n));
    if (opens && end > 0) {
        struct str whole = str_slice(rest, 0, end);
        if (next == '{')
            put_parameter(w, whole, r, quoted);
        else
            put_command(w, whole, r);
        r->line += lines_in(whole);
        r->at += end;
    } else if (name.n) {
        name = char_is_digit(name.p[0]) ? str_slice(name, 0, 1) : name;
        put_variable(w, name, str_slice(rest, 0, 1 + name.n), quoted);
        r->at += 1 + name.n;
    } else if (next == '@' || next == '*') { // nobody says what a script is started with
        r->at += 2;
    } else {
        put(w, STR("$"));
        r->at++;
    }
}

static void read_backquoted(struct word *w, struct shell_reader *r)
{
    struct str_cut end = str_cut(str_slice(r->text, r->at + 1, r->text.n), '`');
    put(w, STR("$("));
    put(w, end.head);
    put(w, STR(")"));
    r->line += lines_in(end.head);
    r->at += 1 + end.head.n + end.found;
}

static void read_escaped(struct word *w, struct shell_reader *r, bool quoted)
{
    bool ends = r->at + 1 >= r->text.n;
    char next = shell_char(r->text, r->at + 1);
    bool meant = !quoted || next == '$' || next == '"' || next == '\\' || next == '`';
    if (next == '\n')
        r->line++;
    else if (!ends)
        put(w, str_slice(r->text, meant ? r->at + 1 : r->at, r->at + 2));
    r->at += ends ? 1 : 2;
}

// An empty array between them is no word, as "$@" without arguments is none.
static void read_quoted(struct word *w, struct shell_reader *r)
{
    w->begun |= str_starts(str_slice(r->text, r->at, r->text.n), STR("\"\""));
    for (r->at++; r->at < r->text.n && r->text.p[r->at] != '"';) {
        char c = r->text.p[r->at];
        if (c == '\\') {
            read_escaped(w, r, true);
        } else if (c == '$') {
            read_reference(w, r, true);
        } else if (c == '`') {
            read_backquoted(w, r);
        } else {
            r->line += c == '\n';
            put(w, str_slice(r->text, r->at, r->at + 1));
            r->at++;
        }
    }
    r->at += r->at < r->text.n;
}

static void read_literal(struct word *w, struct shell_reader *r)
{
    struct str_cut end = str_cut(str_slice(r->text, r->at + 1, r->text.n), '\'');
    put(w, end.head);
    r->line += lines_in(end.head);
    r->at += 1 + end.head.n + end.found;
}

static void read_piece(struct word *w, struct shell_reader *r)
{
    switch (r->text.p[r->at]) {
    case '\\':
        read_escaped(w, r, false);
        break;
    case '\'':
        read_literal(w, r);
        break;
    case '"':
        read_quoted(w, r);
        break;
    case '$':
        read_reference(w, r, false);
        break;
    case '`':
        read_backquoted(w, r);
        break;
    default:
        put(w, str_slice(r->text, r->at, r->at + 1));
        r->at++;
    }
}

// What stands behind "${NAME:-".
static void expand(struct word *w, struct str text, const struct shell_reader *from, bool quoted)
{
    struct shell_reader r = {.text = text, .line = from->line, .depth = from->depth + 1};
    bool assigned = w->assigned;
    if (r.depth > MOST_NESTED) {
        put(w, text);
        return;
    }
    w->begun = true;
    w->assigned |= quoted;
    while (r.at < text.n)
        read_piece(w, &r);
    w->assigned = assigned;
}

static bool ends_word(char c)
{
    return parts(c) || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' ||
           c == '>';
}

void shell_read_word(struct shell *s, struct shell_reader *r, struct shell_words *to, bool assigned)
{
    struct word w = {s, to, buf_in(&s->scratch), r->line, assigned, assigned};
    while (r->at < r->text.n && !ends_word(r->text.p[r->at]))
        read_piece(&w, r);
    end_word(&w);
}
