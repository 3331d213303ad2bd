// How text is shown: the width to fit and whether colour is wanted. The host decides both; core
// only obeys. Tables are aligned, and drop their least important columns when the width is short.
#ifndef FATHOM_BASE_VIEW_H
#define FATHOM_BASE_VIEW_H

#include <stdbool.h>

#include "core/base/buf.h"

struct view {
    ptrdiff_t width; // columns of the terminal
    bool colour;
};

enum ink { INK_PLAIN, INK_BOLD, INK_DIM, INK_GOOD, INK_BAD, INK_WARN };

// put_plain in colour, where colour is wanted.
void put_ink(struct buf *b, const struct view *v, enum ink ink, struct str s);

struct column {
    const char *title;
    bool right;   // numbers
    int priority; // 0 always shown; the highest number goes first when the width is short
    bool wraps;   // the last column only: breaks into lines before anything is dropped
};

enum { TABLE_MAX_COLUMNS = 16 };

struct table {
    struct arena *arena;
    const struct column *columns;
    ptrdiff_t column_count;
    struct str *cells;
    ptrdiff_t cell_count, capacity;
};

struct table table_in(struct arena *a, const struct column *columns, ptrdiff_t column_count);

// Cells fill rows from left to right. Texts are kept by reference and shown plain.
void table_cell(struct table *t, struct str text);
void table_cell_z(struct table *t, const char *text);

// Ends with a line naming the columns that did not fit, if any.
void table_print(const struct table *t, struct buf *out, const struct view *v);

#endif
