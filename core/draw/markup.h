// Text from outside inside SVG and HTML, Markdown and CSV.
#ifndef FATHOM_DRAW_MARKUP_H
#define FATHOM_DRAW_MARKUP_H

#include "core/base/buf.h"

// What is not plain (core/base/utf8.h) is shown as '?'.
void put_escaped(struct buf *b, struct str s);

// In one line; characters that would begin markup stand for themselves.
void put_markdown(struct buf *b, struct str s);

// A cell, in one line and quoted where it must be. A spreadsheet computes what begins with = + - or
// @: text that does, and is no number, gets an apostrophe before it.
void put_csv(struct buf *b, struct str cell);

#endif
