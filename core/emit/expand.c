// Facts by name, and templates that name them.
#include "core/base/utf8.h"
#include "core/emit/draft.h"

void draft_fact(struct draft *j, const char *name, struct str text)
{
    for (int i = 0; i < j->fact_count; i++) {
        if (str_is(str_from(name), j->facts[i].name)) {
            j->facts[i].text = text;
            return;
        }
    }
    ASSERT(j->fact_count < DRAFT_MAX_FACTS);
    j->facts[j->fact_count++] = (struct fact){name, text};
}

void draft_count(struct draft *j, const char *name, uint64_t value)
{
    draft_fact(j, name, str_format(j->arena, "%llu", (unsigned long long)value));
}

static const struct fact *find(const struct draft *j, struct str name)
{
    for (int i = 0; i < j->fact_count; i++)
        if (str_is(name, j->facts[i].name))
            return &j->facts[i];
    return NULL;
}

struct str draft_text(const struct draft *j, const char *name)
{
    const struct fact *f = find(j, str_from(name));
    ASSERT(f);
    return f->text;
}

static bool is_shell_word(struct str text)
{
    static const char marks[] = "_-./:,+=%@";
    for (ptrdiff_t i = 0; i < text.n; i++) {
        char c = char_lower(text.p[i]);
        bool mark = false;
        for (const char *m = marks; *m; m++)
            mark |= c == *m;
        if (!mark && !char_is_digit(c) && !(c >= 'a' && c <= 'z'))
            return false;
    }
    return text.n > 0;
}

// Inside single quotes everything is literal but the quote itself.
static void put_shell_word(struct buf *out, struct str text)
{
    if (is_shell_word(text)) {
        buf_put(out, text);
        return;
    }
    buf_char(out, '\'');
    for (ptrdiff_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\'')
            buf_put_z(out, "'\\''");
        else
            buf_char(out, text.p[i]);
    }
    buf_char(out, '\'');
}

static void put_one_line(struct buf *out, struct str text)
{
    while (text.n) {
        struct glyph g = utf8_glyph(text);
        buf_put(out, g.plain ? str_slice(text, 0, g.n) : STR(" "));
        text = str_slice(text, g.n, text.n);
    }
}

static void put_fact(struct buf *out, struct str text, enum expansion how)
{
    if (how == EXPAND_SHELL)
        put_shell_word(out, text);
    else if (how == EXPAND_NOTE)
        put_one_line(out, text);
    else
        buf_put(out, text);
}

static bool is_name(struct str text)
{
    for (ptrdiff_t i = 0; i < text.n; i++)
        if (text.p[i] != '_' && text.p[i] != '-' && !(text.p[i] >= 'a' && text.p[i] <= 'z'))
            return false;
    return text.n > 0;
}

struct str draft_expand(const struct draft *j, struct str text, enum expansion how)
{
    struct buf out = buf_in(j->arena);
    for (struct str_cut c = str_cut(text, '@');; c = str_cut(c.tail, '@')) {
        buf_put(&out, c.head);
        if (!c.found)
            return buf_str(&out);
        struct str_cut end = str_cut(c.tail, '@');
        if (!end.found || !is_name(end.head)) {
            buf_char(&out, '@');
            continue;
        }
        const struct fact *f = find(j, end.head);
        ASSERT(f);
        put_fact(&out, f->text, how);
        c.tail = end.tail;
    }
}
