// Text inside SVG and HTML.
#ifndef FATHOM_REPORT_MARKUP_H
#define FATHOM_REPORT_MARKUP_H

#include "core/base/buf.h"

// Control characters are shown as '?'.
void put_escaped(struct buf *b, struct str s);

#endif
