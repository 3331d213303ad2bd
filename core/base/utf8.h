// UTF-8: what is shown to people and written into JSON must be valid; input need not be.
#ifndef FATHOM_BASE_UTF8_H
#define FATHOM_BASE_UTF8_H

#include "core/base/str.h"

// The first character of a text (not empty) as people and terminals would take it.
struct glyph {
    ptrdiff_t n;    // its bytes; a byte that begins no character stands alone
    unsigned point; // U+FFFD for such a byte
    bool plain; // stands in a line as itself: it steers no terminal, turns no text around, breaks
                // no line
};
struct glyph utf8_glyph(struct str s);

// Length of the valid sequence at the start of s (not empty), or 0.
ptrdiff_t utf8_length(struct str s);

#endif
