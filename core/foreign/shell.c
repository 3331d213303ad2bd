// See shell.h. Conditions are followed where they compare plain values; what stands under others
// may be run, and a variable that is set there keeps the value it had. A loop's variables are not
// known. Functions are read where they stand.
#include "core/foreign/shell.h"

#include "core/foreign/shell_expand.h"

enum { MOST_VARIABLES = 500 };

struct shell shell_in(struct arena *a, struct arena scratch, struct str text, struct str source,
                      struct error *e)
{
    return (struct shell){.arena = a,
                          .scratch = scratch,
                          .unused = scratch,
                          .unsure = {.arena = a},
                          .error = e,
                          .text = text,
                          .source = source,
                          .line = 1,
                          .variables = settings_in(a),
                          .runs = TRUTH_YES,
                          .status = TRUTH_YES};
}

static enum truth both(enum truth a, enum truth b)
{
    if (a == TRUTH_NO || b == TRUTH_NO)
        return TRUTH_NO;
    return a == TRUTH_YES && b == TRUTH_YES ? TRUTH_YES : TRUTH_UNSURE;
}

static enum truth denied(enum truth a)
{
    return a == TRUTH_UNSURE ? a : a == TRUTH_YES ? TRUTH_NO : TRUTH_YES;
}

static enum truth either(enum truth a, enum truth b)
{
    return denied(both(denied(a), denied(b)));
}

// Whether what is read now is run.
static enum truth is_run(const struct shell *s)
{
    enum truth runs = s->runs;
    for (int i = 0; i < s->depth; i++)
        runs = both(runs, s->blocks[i].runs);
    return runs;
}

static bool is_in_loop(const struct shell *s)
{
    for (int i = 0; i < s->depth; i++)
        if (s->blocks[i].kind == BLOCK_LOOP)
            return true;
    return false;
}

static bool is_plain(struct str value)
{
    return !str_cut(value, '$').found;
}

static bool set_variable(struct shell *s, struct str name, struct str value)
{
    const struct setting *known = settings_find(&s->variables, name);
    struct setting item = {known ? known->key : str_copy(s->arena, name), str_copy(s->arena, value),
                           s->source};
    return settings_set(&s->variables, item, s->error) &&
           (s->variables.count <= MOST_VARIABLES ||
            FAIL(s->error, BAD_INPUT, s->source, "more than %d variables are set", MOST_VARIABLES));
}

static bool assign(struct shell *s, struct str name, struct str value, bool appends)
{
    enum truth runs = is_run(s);
    const struct setting *known = settings_find(&s->variables, name);
    struct str earlier = known ? known->value : STR_NONE;
    struct str unknown = str_format(&s->scratch, "${%.*s}", STR_ARGS(name));
    if (runs == TRUTH_NO)
        return true;
    if (appends)
        value = str_join(&s->scratch, known ? earlier : unknown, value);
    if (runs == TRUTH_YES)
        return set_variable(s, name, value);
    if (is_in_loop(s) || !known)
        return set_variable(s, name, unknown);
    if (is_plain(earlier) && is_plain(value) && !str_equal(earlier, value))
        shell_add_word(&s->unsure, (struct shell_word){known->key, s->line});
    return true;
}

static void assign_array(struct shell *s, struct str name, const struct shell_words *words,
                         bool appends)
{
    enum truth runs = is_run(s);
    struct shell_array *array = s->arrays;
    while (array && !str_equal(array->name, name))
        array = array->next;
    if (runs == TRUTH_NO || (runs == TRUTH_UNSURE && is_in_loop(s)))
        return;
    if (runs == TRUTH_UNSURE)
        shell_add_word(&s->unsure, (struct shell_word){str_copy(s->arena, name), s->line});
    if (runs == TRUTH_UNSURE && array)
        return;
    if (!array && s->array_count++ == MOST_VARIABLES) {
        (void)FAIL(s->error, BAD_INPUT, s->source, "more than %d arrays are set", MOST_VARIABLES);
        return;
    }
    if (!array) {
        array = NEW(s->arena, struct shell_array, 1);
        *array = (struct shell_array){.name = str_copy(s->arena, name), .next = s->arrays};
        s->arrays = array;
    }
    if (!appends)
        array->words.count = 0;
    array->words.arena = s->arena;
    for (ptrdiff_t i = 0; i < words->count; i++) {
        struct shell_word word = words->items[i];
        word.text = str_copy(s->arena, word.text);
        shell_add_word(&array->words, word);
    }
}

static char char_at(const struct shell *s, ptrdiff_t offset)
{
    return shell_char(s->text, s->at + offset);
}

static bool is_at(const struct shell *s, const char *text)
{
    return str_starts(str_slice(s->text, s->at, s->text.n), str_from(text));
}

static void skip_comment(struct shell *s)
{
    while (s->at < s->text.n && s->text.p[s->at] != '\n')
        s->at++;
}

static void skip_to(struct shell *s, ptrdiff_t end)
{
    for (; s->at < end && s->at < s->text.n; s->at++)
        s->line += s->text.p[s->at] == '\n';
}

// Spaces, and lines that go on.
static void skip_spaces(struct shell *s)
{
    for (;;) {
        bool goes_on = char_at(s, 0) == '\\' && char_at(s, 1) == '\n';
        bool returns = char_at(s, 0) == '\\' && char_at(s, 1) == '\r' && char_at(s, 2) == '\n';
        if (s->at < s->text.n && shell_is_space(char_at(s, 0)))
            s->at++;
        else if (goes_on || returns)
            skip_to(s, s->at + (returns ? 3 : 2));
        else
            return;
    }
}

static void read_word(struct shell *s, struct shell_words *to, bool assigned)
{
    struct shell_reader r = {.text = s->text, .at = s->at, .line = s->line};
    shell_read_word(s, &r, to, assigned);
    s->at = r.at;
    s->line = r.line;
}

static struct shell_words read_array(struct shell *s)
{
    struct shell_words words = {.arena = &s->scratch};
    s->at++;
    while (s->at < s->text.n && s->error->code == ERROR_NONE) {
        ptrdiff_t before;
        skip_spaces(s);
        if (char_at(s, 0) == ')')
            break;
        if (char_at(s, 0) == '#')
            skip_comment(s);
        before = s->at;
        read_word(s, &words, false);
        if (s->at == before)
            skip_to(s, s->at + 1);
    }
    s->at += s->at < s->text.n;
    return words;
}

// "NAME=", "NAME+=" at this place: how long.
static ptrdiff_t assignment_at(struct str rest, struct str *name, bool *appends)
{
    *name = shell_name_at(rest);
    *appends = str_starts(str_slice(rest, name->n, rest.n), STR("+="));
    bool plain = str_starts(str_slice(rest, name->n, rest.n), STR("="));
    if (!name->n || char_is_digit(name->p[0]) || !(plain || *appends))
        return 0;
    return name->n + (*appends ? 2 : 1);
}

struct str shell_assigned_name(struct str word)
{
    struct str name;
    bool appends;
    return assignment_at(word, &name, &appends) ? name : STR_NONE;
}

// Behind "NAME=": an array is set at once, a value becomes the word "NAME=value".
static void read_assignment(struct shell *s, struct shell_words *to)
{
    struct str name, rest = str_slice(s->text, s->at, s->text.n);
    bool appends;
    struct shell_words value = {.arena = &s->scratch};
    int line = s->line;
    s->at += assignment_at(rest, &name, &appends);
    if (char_at(s, 0) == '(') {
        value = read_array(s);
        assign_array(s, name, &value, appends);
        return;
    }
    read_word(s, &value, true);
    if (!value.count)
        return;
    struct str text = str_format(&s->scratch, "%.*s%s%.*s", STR_ARGS(name), appends ? "+=" : "=",
                                 STR_ARGS(value.items[0].text));
    shell_add_word(to, (struct shell_word){text, line});
}

static bool assign_word(struct shell *s, struct str word)
{
    struct str name;
    bool appends;
    ptrdiff_t n = assignment_at(word, &name, &appends);
    return !n || assign(s, name, str_slice(word, n, word.n), appends);
}

static bool all_assign(const struct shell_words *words)
{
    for (ptrdiff_t i = 0; i < words->count; i++)
        if (!shell_assigned_name(words->items[i].text).n)
            return false;
    return true;
}

static bool is_declaration(struct str word)
{
    return words_have("export declare local readonly typeset", ' ', word);
}

// "> file", "2>&1", "<<END", "<<<text", "<(command)".
static void skip_redirection(struct shell *s)
{
    struct shell_words ignored = {.arena = &s->scratch};
    bool document = is_at(s, "<<") && !is_at(s, "<<<");
    while (s->at < s->text.n && (char_at(s, 0) == '<' || char_at(s, 0) == '>' ||
                                 char_at(s, 0) == '&' || char_at(s, 0) == '|'))
        s->at++;
    if (char_at(s, 0) == '(') {
        ptrdiff_t end = shell_behind_bracket(s, s->text, s->at);
        skip_to(s, end ? end : s->at + 1);
        return;
    }
    s->at += document && char_at(s, 0) == '-';
    skip_spaces(s);
    read_word(s, &ignored, false);
    if (document && ignored.count)
        s->document = str_copy(s->arena, ignored.items[0].text);
}

static bool is_number(struct str text)
{
    for (ptrdiff_t i = 0; i < text.n; i++)
        if (!char_is_digit(text.p[i]))
            return false;
    return text.n > 0;
}

static bool ends_command(const struct shell *s)
{
    char c = char_at(s, 0);
    return s->at >= s->text.n || c == '\n' || c == ';' || c == '|' || c == '(' || c == ')' ||
           (c == '&' && char_at(s, 1) != '>');
}

static struct shell_words read_words(struct shell *s)
{
    struct shell_words words = {.arena = &s->scratch};
    bool only = true; // assignments so far
    for (skip_spaces(s); !ends_command(s) && s->error->code == ERROR_NONE; skip_spaces(s)) {
        char c = char_at(s, 0);
        struct str name;
        bool appends, declares = words.count && is_declaration(words.items[0].text);
        if (c == '#') {
            skip_comment(s);
        } else if (c == '<' || c == '>' || c == '&') {
            skip_redirection(s);
        } else if ((declares || only) &&
                   assignment_at(str_slice(s->text, s->at, s->text.n), &name, &appends)) {
            read_assignment(s, &words);
        } else {
            read_word(s, &words, false);
            only = false;
            bool redirected = char_at(s, 0) == '>' || char_at(s, 0) == '<';
            if (redirected && words.count && is_number(words.items[words.count - 1].text))
                words.count--;
        }
    }
    return words;
}

static enum truth compared(struct str left, struct str sign, struct str right)
{
    static const char *const names[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    if (!is_plain(left) || !is_plain(right))
        return TRUTH_UNSURE;
    bool same = str_equal(left, right);
    if (str_ends(right, STR("*")))
        same = str_starts(left, str_slice(right, 0, right.n - 1));
    if (str_is(sign, "=") || str_is(sign, "=="))
        return same ? TRUTH_YES : TRUTH_NO;
    if (str_is(sign, "!="))
        return same ? TRUTH_NO : TRUTH_YES;
    uint64_t a, b;
    if (unit_parse(&a, UNIT_COUNT, left) != UNIT_OK || unit_parse(&b, UNIT_COUNT, right) != UNIT_OK)
        return TRUTH_UNSURE;
    const bool holds[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++)
        if (str_is(sign, names[i]))
            return holds[i] ? TRUTH_YES : TRUTH_NO;
    return TRUTH_UNSURE;
}

// Whether a value is empty; a variable that only the environment could set is.
static enum truth is_empty(const struct shell *s, struct str value)
{
    if (is_plain(value))
        return value.n ? TRUTH_NO : TRUTH_YES;
    bool braces = str_starts(value, STR("${"));
    struct str inside = str_slice(value, braces ? 2 : 1, value.n), name = shell_name_at(inside);
    bool whole = value.p[0] == '$' && name.n && name.n + braces == inside.n;
    return whole && !settings_find(&s->variables, name) ? TRUTH_YES : TRUTH_UNSURE;
}

// "[ ... ]", "[[ ... ]]" and "test ..."; false where it is another command.
static bool test(const struct shell *s, const struct shell_words *words, enum truth *status)
{
    const struct shell_word *w = words->items;
    ptrdiff_t n = words->count;
    *status = TRUTH_UNSURE;
    if (!n || !words_have("[ [[ test", ' ', w[0].text))
        return false;
    bool bracket = !str_is(w[0].text, "test");
    bool closed = !bracket || words_have("] ]]", ' ', w[n - 1].text);
    w++;
    n -= bracket ? 2 : 1;
    bool inverse = n > 0 && str_is(w[0].text, "!");
    w += inverse;
    n -= inverse;
    if (!closed)
        return true;
    if (n == 2 && str_is(w[0].text, "-z"))
        *status = is_empty(s, w[1].text);
    else if (n == 2 && str_is(w[0].text, "-n"))
        *status = denied(is_empty(s, w[1].text));
    else if (n == 3)
        *status = compared(w[0].text, w[1].text, w[2].text);
    *status = inverse ? denied(*status) : *status;
    return true;
}

static bool push(struct shell *s, enum shell_block_kind kind)
{
    if (s->depth == SHELL_MOST_BLOCKS)
        return FAIL(s->error, BAD_INPUT, s->source,
                    "line %d: conditions nested more than %d deep are not read", s->line,
                    SHELL_MOST_BLOCKS);
    enum truth runs = kind == BLOCK_IF ? TRUTH_YES : TRUTH_UNSURE;
    s->blocks[s->depth++] = (struct shell_block){kind, runs, TRUTH_NO};
    return true;
}

static void begin_command(struct shell *s)
{
    s->runs = s->status = TRUTH_YES;
    s->was_test = false;
}

static void begin_branch(struct shell *s, struct str word)
{
    struct shell_block *b = &s->blocks[s->depth - 1];
    enum truth holds = s->was_test ? s->status : TRUTH_UNSURE;
    if (str_is(word, "then")) {
        b->runs = both(denied(b->taken), holds);
        b->taken = either(b->taken, b->runs);
    } else {
        b->runs = str_is(word, "else") ? denied(b->taken) : TRUTH_YES;
    }
}

// "{", "}" and "!" before a command.
static bool read_mark(struct shell *s)
{
    char next = char_at(s, 1);
    bool alone = shell_is_space(next) || next == '\n' || next == '\0';
    if (!alone || !(char_at(s, 0) == '{' || char_at(s, 0) == '}' || char_at(s, 0) == '!'))
        return false;
    s->at++;
    return true;
}

// Behind "for": what it goes through is not looked at, and its variable not known.
static void read_loop(struct shell *s)
{
    skip_spaces(s);
    struct str name = shell_name_at(str_slice(s->text, s->at, s->text.n));
    if (name.n)
        (void)assign(s, name, STR_NONE, false);
    (void)read_words(s);
}

static void begin_or_end(struct shell *s, struct str word)
{
    bool within = s->depth > 0 && s->blocks[s->depth - 1].kind == BLOCK_IF;
    if (words_have("fi done esac", ' ', word))
        s->depth -= s->depth > 0;
    else if (words_have("then elif else", ' ', word) && within)
        begin_branch(s, word);
    else if (str_is(word, "if"))
        (void)push(s, BLOCK_IF);
    else if (words_have("while until for select", ' ', word))
        (void)push(s, BLOCK_LOOP);
    else if (str_is(word, "case"))
        (void)push(s, BLOCK_CASE);
    if (words_have("if then elif else do", ' ', word))
        begin_command(s);
}

// A word that begins or ends a block.
static bool read_keyword(struct shell *s)
{
    struct str rest = str_slice(s->text, s->at, s->text.n), word = shell_name_at(rest);
    char next = '\n';
    if (word.n < rest.n)
        next = rest.p[word.n];
    bool ends = shell_is_space(next) || str_cut(STR("\n;)&|<>"), next).found;
    if (!ends || !words_have("if then elif else fi while until for select case do done esac time",
                             ' ', word))
        return false;
    s->at += word.n;
    begin_or_end(s, word);
    if (words_have("for select", ' ', word))
        read_loop(s);
    else if (str_is(word, "case")) // with its first pattern
        (void)read_words(s);
    return true;
}

// "&&" and "||": the next command runs as the last one ended. One that is no test is taken to end
// well before "&&", and to end either way before "||".
static void join(struct shell *s, bool either_way)
{
    enum truth ended = either_way && !s->was_test ? TRUTH_UNSURE : s->status;
    enum truth goes_on = either_way ? denied(ended) : ended;
    s->runs = both(s->runs, goes_on);
    s->at += 2;
    for (skip_spaces(s); char_at(s, 0) == '\n'; skip_spaces(s))
        skip_to(s, s->at + 1);
}

// Signs between commands; false where a command begins.
static bool read_sign(struct shell *s)
{
    char c = char_at(s, 0);
    if (c == '\n') {
        s->at++;
        s->line++;
        if (s->document.n)
            skip_to(s, shell_behind_document(s->text, s->at, s->document));
        s->document = STR_NONE;
    } else if (c == '#') {
        skip_comment(s);
        return true;
    } else if (is_at(s, "&&") || is_at(s, "||")) {
        join(s, c == '|');
        return true;
    } else if (is_at(s, "((")) {
        ptrdiff_t end = shell_behind_bracket(s, s->text, s->at);
        skip_to(s, end ? end : s->at + 2);
        s->status = TRUTH_UNSURE;
        s->was_test = true;
        return true;
    } else if (c == ';' || c == '|' || c == '(' || c == ')' || (c == '&' && char_at(s, 1) != '>')) {
        s->at++;
        if (c == '|')
            return true;
    } else {
        return false;
    }
    // "if [ ... ]" and its "then" may be on two lines.
    s->runs = TRUTH_YES;
    return true;
}

static enum truth joined_status(const struct shell *s, enum truth own)
{
    if (s->runs == TRUTH_NO)
        return s->status;
    return s->runs == TRUTH_YES ? own : TRUTH_UNSURE;
}

// What is set or declared is done here; whether the command is one for the caller.
static bool settle(struct shell *s, const struct shell_words *words)
{
    enum truth own;
    bool is_test = test(s, words, &own);
    bool sets = all_assign(words);
    if (words->count && (sets || is_declaration(words->items[0].text)))
        for (ptrdiff_t i = 0; i < words->count; i++)
            if (!assign_word(s, words->items[i].text))
                return false;
    bool runs = is_run(s) != TRUTH_NO;
    s->status = joined_status(s, is_test ? own : TRUTH_YES);
    s->was_test = is_test || (s->was_test && s->runs != TRUTH_YES);
    return words->count && !sets && !is_test && runs;
}

bool shell_next(struct shell *s, struct shell_words *command)
{
    while (s->error->code == ERROR_NONE) {
        skip_spaces(s);
        if (s->at >= s->text.n)
            return false;
        s->scratch = s->unused;
        if (read_sign(s) || read_mark(s) || read_keyword(s))
            continue;
        ptrdiff_t before = s->at;
        *command = read_words(s);
        if (s->at == before)
            s->at++;
        if (s->error->code == ERROR_NONE && settle(s, command))
            return true;
    }
    return false;
}
