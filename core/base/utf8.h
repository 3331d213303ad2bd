// UTF-8: what is shown to people and written into JSON must be valid; input need not be.
#ifndef FATHOM_BASE_UTF8_H
#define FATHOM_BASE_UTF8_H

#include "core/base/str.h"

// Length of the valid sequence at the start of s (not empty), or 0.
ptrdiff_t utf8_length(struct str s);

#endif
