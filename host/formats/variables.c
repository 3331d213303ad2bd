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

// The end of the braces that open at `from`, or the text's.
static ptrdiff_t closing(struct str text, ptrdiff_t from)
{
    int depth = 0;
    for (ptrdiff_t i = from; i < text.n; i++) {
        depth += text.p[i] == '{';
        depth -= text.p[i] == '}';
        if (depth == 0 && text.p[i] == '}')
            return i;
    }
    return text.n;
}

static struct str resolved(struct arena *a, struct str text, int depth)
{
    struct buf out = buf_in(a);
    for (ptrdiff_t i = 0; i < text.n; i++) {
        bool opens = text.p[i] == '$' && i + 1 < text.n && text.p[i + 1] == '{';
        ptrdiff_t end = opens ? closing(text, i + 1) : text.n;
        if (!opens || end == text.n || depth == MOST_NESTED) {
            buf_put(&out, str_slice(text, i, i + 1));
            continue;
        }
        buf_put(&out, value_of(a, resolved(a, str_slice(text, i + 2, end), depth + 1)));
        i = end;
    }
    return buf_str(&out);
}

void variables_resolve(struct settings *s)
{
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (str_cut(s->items[i].value, '$').found)
            s->items[i].value = resolved(s->arena, s->items[i].value, 0);
}
