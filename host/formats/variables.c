// Braces are matched, and what is inside is resolved first. A file cannot nest without end.
#include "host/formats/variables.h"

#include <stdlib.h>

enum { MOST_NESTED = 8 };

static struct str unquoted(struct str text)
{
    text = str_trim(text);
    bool quoted =
        text.n > 1 && (text.p[0] == '"' || text.p[0] == '\'') && text.p[text.n - 1] == text.p[0];
    return quoted ? str_slice(text, 1, text.n - 1) : text;
}

// What stands for "${call}".
static struct str value_of(struct arena *a, struct str call)
{
    struct str decode = STR("oc.decode:"), env = STR("oc.env:");
    if (str_starts(call, decode))
        return unquoted(str_slice(call, decode.n, call.n));
    if (str_starts(call, env)) {
        struct str_cut cut = str_cut(str_slice(call, env.n, call.n), ',');
        const char *found = getenv(str_z(a, str_trim(cut.head)));
        if (found || cut.found)
            return found ? str_copy(a, str_from(found)) : unquoted(cut.tail);
    }
    return str_format(a, "${%.*s}", STR_ARGS(call));
}

struct braces {
    struct str text;
    ptrdiff_t *closes; // where the brace closes that opens at each place; 0: nowhere
};

static struct braces braces_of(struct arena *a, struct str text)
{
    struct braces b = {text, NEW(a, ptrdiff_t, text.n + 1)};
    struct arena scratch = *a;
    ptrdiff_t *open = NEW(&scratch, ptrdiff_t, text.n + 1);
    ptrdiff_t depth = 0;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        if (text.p[i] == '{')
            open[depth++] = i;
        else if (text.p[i] == '}' && depth)
            b.closes[open[--depth]] = i;
    }
    return b;
}

static struct str resolved(struct arena *a, const struct braces *b, ptrdiff_t from, ptrdiff_t to,
                           int depth)
{
    struct buf out = buf_in(a);
    for (ptrdiff_t i = from; i < to; i++) {
        bool opens = b->text.p[i] == '$' && i + 1 < to && b->text.p[i + 1] == '{';
        ptrdiff_t end = opens ? b->closes[i + 1] : 0;
        if (!end || depth == MOST_NESTED) {
            buf_char(&out, b->text.p[i]);
            continue;
        }
        buf_put(&out, value_of(a, resolved(a, b, i + 2, end, depth + 1)));
        i = end;
    }
    return buf_str(&out);
}

void variables_resolve(struct settings *s)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        struct str value = s->items[i].value;
        if (!str_cut(value, '$').found)
            continue;
        struct braces b = braces_of(s->arena, value);
        s->items[i].value = resolved(s->arena, &b, 0, value.n, 0);
    }
}
