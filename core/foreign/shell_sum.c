// Sums of a shell: integers, variables by their bare names or with "$", + - * / % and brackets.
#include "core/foreign/shell_expand.h"

enum { MOST_NESTED = 16 };
#define MOST_VALUE (INT64_C(1) << 50) // products of two parts below it are checked against it

struct sum {
    const struct shell *shell;
    struct str text;
    ptrdiff_t at;
    int depth;
    bool bad;
};

static int64_t added(struct sum *s);

static char sign_at(struct sum *s)
{
    while (s->at < s->text.n && (shell_is_space(s->text.p[s->at]) || s->text.p[s->at] == '\n'))
        s->at++;
    return shell_char(s->text, s->at);
}

static int64_t number(struct sum *s, struct str digits)
{
    int64_t value = 0;
    s->bad |= !digits.n;
    for (ptrdiff_t i = 0; i < digits.n && !s->bad; i++) {
        s->bad = !char_is_digit(digits.p[i]) || value > MOST_VALUE / 10;
        value = value * 10 + (digits.p[i] - '0');
    }
    return value;
}

// "NAME", "$NAME", "${NAME}" and "${NAME:-1024}".
static int64_t variable(struct sum *s, bool braces)
{
    struct str rest = str_slice(s->text, s->at, s->text.n), name = shell_name_at(rest);
    const struct setting *known = settings_find(&s->shell->variables, name);
    struct str value = known ? known->value : STR_NONE;
    s->at += name.n;
    if (braces) {
        struct str_cut end = str_cut(str_slice(rest, name.n, rest.n), '}');
        bool falls_back = str_starts(end.head, STR(":-"));
        s->bad |= !end.found || (end.head.n && !falls_back);
        value = !known && falls_back ? str_slice(end.head, 2, end.head.n) : value;
        s->at += end.head.n + 1;
    }
    bool negative = str_starts(value, STR("-"));
    int64_t size = number(s, negative ? str_slice(value, 1, value.n) : value);
    return negative ? -size : size;
}

static int64_t part(struct sum *s)
{
    char c = sign_at(s);
    if (s->depth == MOST_NESTED || s->bad || !c) {
        s->bad = true;
        return 0;
    }
    if (c == '(') {
        s->at++;
        s->depth++;
        int64_t inside = added(s);
        s->depth--;
        s->bad |= sign_at(s) != ')';
        s->at++;
        return inside;
    }
    if (c == '-') {
        s->at++;
        s->depth++;
        int64_t value = -part(s);
        s->depth--;
        return value;
    }
    bool reference = c == '$', braces;
    s->at += reference;
    braces = reference && s->at < s->text.n && s->text.p[s->at] == '{';
    s->at += braces;
    struct str word = shell_name_at(str_slice(s->text, s->at, s->text.n));
    if (reference || (word.n && !char_is_digit(word.p[0])))
        return variable(s, braces);
    s->at += word.n;
    return number(s, word);
}

static bool is_small(int64_t value)
{
    return value <= MOST_VALUE && value >= -MOST_VALUE;
}

static int64_t multiplied(struct sum *s)
{
    int64_t value = part(s);
    for (char c = sign_at(s); !s->bad && (c == '*' || c == '/' || c == '%'); c = sign_at(s)) {
        s->at++;
        int64_t by = part(s);
        s->bad |= c == '*' ? value && by &&
                                 (by > MOST_VALUE || by < -MOST_VALUE ||
                                  value > MOST_VALUE / (by < 0 ? -by : by) ||
                                  value < -MOST_VALUE / (by < 0 ? -by : by))
                           : !by;
        if (s->bad)
            return 0;
        value = c == '*' ? value * by : c == '/' ? value / by : value % by;
    }
    return value;
}

static int64_t added(struct sum *s)
{
    int64_t value = multiplied(s);
    for (char c = sign_at(s); !s->bad && (c == '+' || c == '-'); c = sign_at(s)) {
        s->at++;
        int64_t more = multiplied(s);
        value = c == '+' ? value + more : value - more;
        s->bad |= !is_small(value);
    }
    return value;
}

bool shell_sum(const struct shell *s, struct str text, int64_t *value)
{
    struct sum sum = {.shell = s, .text = text};
    *value = added(&sum);
    return !sum.bad && !sign_at(&sum);
}
