// See line.h.
#include "core/command/line.h"

static bool is_bare(struct str value)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._/@:,+-=%";
    for (ptrdiff_t i = 0; i < value.n; i++)
        if (!str_cut(STR(safe), value.p[i]).found)
            return false;
    return value.n > 0;
}

// As a shell reads it.
static void put_word(struct buf *b, struct str value)
{
    if (is_bare(value)) {
        buf_put(b, value);
        return;
    }
    buf_char(b, '\'');
    for (ptrdiff_t i = 0; i < value.n; i++) {
        if (value.p[i] == '\'')
            buf_put_z(b, "'\\''");
        else
            buf_char(b, value.p[i]);
    }
    buf_char(b, '\'');
}

// The settings as options of a command, those that it takes.
struct str command_line(struct arena *a, const char *name, const struct settings *s)
{
    const struct command *c = command_find(str_from(name));
    struct buf b = buf_in(a);
    buf_printf(&b, "fathom %s", name);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting *item = &s->items[i];
        if (setting_is_document(item->key) || !command_takes(c, item->key))
            continue;
        buf_printf(&b, " --%.*s ", STR_ARGS(item->key));
        put_word(&b, item->value);
    }
    return str_plain(a, buf_str(&b));
}
