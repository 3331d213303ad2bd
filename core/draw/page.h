// A document written once and shown in two ways: Markdown, or one HTML page that needs nothing
// else. Text is escaped by the writers.
#ifndef FATHOM_DRAW_PAGE_H
#define FATHOM_DRAW_PAGE_H

#include "core/base/buf.h"

enum { PAGE_PLAIN = -1, PAGE_NONE = -2 }; // shades of a cell: without colour, and greyed out

struct page_methods;

struct page {
    struct buf *out;
    const struct page_methods *methods;
};

// A shade is 0 (light work) to 100 (hard).
struct page_methods {
    void (*begin)(struct buf *out, struct str title);
    void (*heading)(struct buf *out, struct str text);
    void (*paragraph)(struct buf *out, struct str text);
    void (*list_begin)(struct buf *out);
    void (*list_item)(struct buf *out, int number, struct str text, int shade);
    void (*list_end)(struct buf *out);
    void (*table_begin)(struct buf *out, const struct str *titles, ptrdiff_t count);
    void (*row_begin)(struct buf *out);
    void (*cell)(struct buf *out, struct str text, int shade);
    void (*row_end)(struct buf *out);
    void (*table_end)(struct buf *out);
    void (*code)(struct buf *out, struct str text);
    void (*end)(struct buf *out);
};

extern const struct page_methods page_markdown, page_html;

#endif
