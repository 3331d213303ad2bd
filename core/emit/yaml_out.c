// The YAML writer. Plain style is used only for texts that every reader takes as text: YAML 1.1
// readers (PyYAML, libyaml's users) turn yes, on, 1e3, 0x10, 12:30 and 2026-01-01 into something
// else. All others are double-quoted, with escapes for what is not plain (core/base/utf8.h).
#include "core/base/utf8.h"
#include "core/emit/document.h"

enum { COMMENT_WIDTH = 100, COMMENT_LEAST = 40 };

static bool is_letter(char c)
{
    char lower = char_lower(c);
    return (lower >= 'a' && lower <= 'z') || c == '_' || c == '/';
}

static bool is_reserved(struct str text)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++)
        if (str_equal_nocase(text, str_from(words[i])))
            return true;
    return false;
}

// A letter first, then letters, digits and marks that mean nothing inside a word.
static bool is_plain(struct str text)
{
    if (!text.n || !is_letter(text.p[0]) || is_reserved(text))
        return false;
    for (ptrdiff_t i = 1; i < text.n; i++) {
        char c = text.p[i];
        if (!is_letter(c) && !char_is_digit(c) && c != '-' && c != '.' && c != '+' && c != '=')
            return false;
    }
    return true;
}

void put_yaml_text(struct buf *out, struct str text)
{
    if (is_plain(text)) {
        buf_put(out, text);
        return;
    }
    buf_char(out, '"');
    while (text.n) {
        struct glyph g = utf8_glyph(text);
        if (g.point == 0xFFFD)
            buf_put_z(out, "\xEF\xBF\xBD");
        else if (g.point == '"' || g.point == '\\')
            buf_printf(out, "\\%c", text.p[0]);
        else if (g.point == '\n')
            buf_put_z(out, "\\n");
        else if (g.plain)
            buf_put(out, str_slice(text, 0, g.n));
        else
            buf_printf(out, g.point > 0xFFFF ? "\\U%08X" : "\\u%04X", g.point);
        text = str_slice(text, g.n, text.n);
    }
    buf_char(out, '"');
}

// YAML has line breaks beside the line feed (U+0085, U+2028): none may end a comment early.
static struct str printable(struct arena *a, struct str text)
{
    struct buf clean = buf_in(a);
    while (text.n) {
        struct glyph g = utf8_glyph(text);
        bool kept = g.plain || g.point == '\n';
        buf_put(&clean, kept ? str_slice(text, 0, g.n) : STR(" "));
        text = str_slice(text, g.n, text.n);
    }
    return buf_str(&clean);
}

void put_comment(struct buf *out, struct str text, ptrdiff_t indent)
{
    if (!text.n)
        return;
    struct str clean = printable(out->arena, text);
    struct buf wrapped = buf_in(out->arena);
    ptrdiff_t width = COMMENT_WIDTH - indent - 2;
    width = width > COMMENT_LEAST ? width : COMMENT_LEAST;
    for (struct str_cut c = str_cut(clean, '\n');; c = str_cut(c.tail, '\n')) {
        buf_wrapped(&wrapped, c.head, 0, width);
        if (!c.found)
            break;
    }
    for (struct str_cut c = str_cut(buf_str(&wrapped), '\n'); c.head.n; c = str_cut(c.tail, '\n')) {
        buf_repeat(out, ' ', indent);
        buf_printf(out, "# %.*s\n", STR_ARGS(c.head));
    }
}

// Within an item of a list, the first key stands on the line of the dash.
struct place {
    ptrdiff_t indent;
    bool after_dash;
};

static void put_node(struct buf *out, const struct node *n, struct place at);

// A comment cannot stand after a dash: that of an item's first key goes before it.
static void start_line(struct buf *out, const struct node *n, struct place *at, bool in_list)
{
    if (!at->after_dash) {
        put_comment(out, n->note, at->indent);
        if (in_list && n->first)
            put_comment(out, n->first->note, at->indent);
        buf_repeat(out, ' ', at->indent);
    }
    at->after_dash = false;
}

static void put_children(struct buf *out, const struct node *parent, struct place at)
{
    for (const struct node *n = parent->first; n; n = n->next) {
        start_line(out, n, &at, parent->kind == NODE_LIST);
        if (parent->kind == NODE_LIST) {
            buf_put_z(out, "- ");
            put_node(out, n, (struct place){at.indent + 2, true});
            continue;
        }
        put_yaml_text(out, n->key);
        buf_char(out, ':');
        bool nested = n->kind == NODE_MAP || n->kind == NODE_LIST;
        buf_char(out, nested && n->first ? '\n' : ' ');
        put_node(out, n, (struct place){at.indent + 2, false});
    }
}

static void put_node(struct buf *out, const struct node *n, struct place at)
{
    if ((n->kind == NODE_MAP || n->kind == NODE_LIST) && n->first) {
        put_children(out, n, at);
        return;
    }
    if (n->kind == NODE_TEXT)
        put_yaml_text(out, n->value);
    else if (n->kind == NODE_LITERAL)
        buf_put(out, n->value);
    else
        buf_put_z(out, n->kind == NODE_MAP ? "{}" : "[]");
    buf_char(out, '\n');
}

void document_yaml(struct buf *out, const struct node *root)
{
    put_comment(out, root->note, 0);
    put_node(out, root, (struct place){0, false});
}
