// The only place that formats with printf rules. Kept apart so that the WebAssembly build shows
// exactly which libc output functions it drags in.
#ifndef FATHOM_BASE_FMT_H
#define FATHOM_BASE_FMT_H

#include <stdarg.h>
#include <stddef.h>

#include "core/base/compiler.h"

// Bytes the text would take, without its NUL.
ptrdiff_t fmt_length(const char *format, va_list args) PRINTF_LIKE(1, 0);

// Writes at most capacity-1 bytes and a NUL; longer text is cut at a UTF-8 boundary.
// Returns the bytes written.
ptrdiff_t fmt_into(char *out, ptrdiff_t capacity, const char *format, va_list args)
    PRINTF_LIKE(3, 0);

#endif
