// vsnprintf, and nothing else of stdio, for all of core.
#include "core/base/fmt.h"

#include <stdio.h>

ptrdiff_t fmt_length(const char *format, va_list args)
{
    int n = vsnprintf(NULL, 0, format, args);
    ASSERT(n >= 0);
    return n;
}

// The longest prefix of s[0..n) that does not end inside a UTF-8 sequence.
static ptrdiff_t whole_characters(const char *s, ptrdiff_t n)
{
    ptrdiff_t lead = n - 1;
    while (lead > 0 && ((unsigned char)s[lead] & 0xC0) == 0x80)
        lead--;
    if (lead < 0)
        return 0;
    unsigned char c = (unsigned char)s[lead];
    ptrdiff_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return n - lead < length ? lead : n;
}

ptrdiff_t fmt_into(char *out, ptrdiff_t capacity, const char *format, va_list args)
{
    ASSERT(capacity > 0);
    int wanted = vsnprintf(out, (size_t)capacity, format, args);
    ASSERT(wanted >= 0);
    if (wanted < capacity)
        return wanted;
    ptrdiff_t n = whole_characters(out, capacity - 1);
    out[n] = 0;
    return n;
}
