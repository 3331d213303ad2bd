// Text being written: grows in its arena, always valid, never NUL-terminated by promise. All output
// of core (tables, JSON, help, man page) goes through one of these.
#ifndef FATHOM_BASE_BUF_H
#define FATHOM_BASE_BUF_H

#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/str.h"

struct buf {
    struct arena *arena; // NULL: of fixed size
    char *p;
    ptrdiff_t n;
    ptrdiff_t capacity;
};

struct buf buf_in(struct arena *a);
struct buf buf_over(char *block, ptrdiff_t bytes); // of fixed size: writing more is a defect
struct str buf_str(const struct buf *b);           // valid until the next write

void buf_put(struct buf *b, struct str s);
void buf_put_z(struct buf *b, const char *z);
void buf_char(struct buf *b, char c);
void buf_repeat(struct buf *b, char c, ptrdiff_t count);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);

// "1 step", "2 steps", "3 batches": of a noun that is regular.
void buf_count(struct buf *b, uint64_t n, const char *one);

// Text from outside, in one line: whatever is not plain (core/base/utf8.h) is shown as '?'.
void put_plain(struct buf *b, struct str s);
void put_plain_lines(struct buf *b, struct str s);   // line feeds and tabs are kept
struct str str_plain(struct arena *a, struct str s); // the text itself where it is plain

// Columns a terminal uses for this UTF-8 text (one per code point: we print no wide characters).
ptrdiff_t text_width(struct str s);

// Writes `s` broken at spaces so that no line passes `width`, each line after `indent` spaces.
// It is one paragraph, shown plain.
void buf_wrapped(struct buf *b, struct str s, ptrdiff_t indent, ptrdiff_t width);

#endif
