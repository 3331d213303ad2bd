// Text as a pointer and a length, passed by value. Not NUL-terminated: str_z makes that copy at
// the border to the operating system. Nothing here owns or changes the bytes it points at.
#ifndef FATHOM_BASE_STR_H
#define FATHOM_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"

struct str {
    const char *p;
    ptrdiff_t n;
};

struct str_cut {
    struct str head, tail;
    bool found; // false: head is the whole text, tail is empty
};

#define STR(literal) ((struct str){(literal), (ptrdiff_t)sizeof(literal) - 1})
#define STR_ARGS(s)  (int)(s).n, (s).p // for "%.*s"
#define STR_NONE     ((struct str){0})

struct str str_from(const char *z); // NULL gives the empty text
struct str str_copy(struct arena *a, struct str s);
char *str_z(struct arena *a, struct str s);
struct str str_join(struct arena *a, struct str head, struct str tail);
struct str str_format(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
struct str str_vformat(struct arena *a, const char *format, va_list args) PRINTF_LIKE(2, 0);

bool str_equal(struct str a, struct str b);
bool str_is(struct str s, const char *z);
bool str_equal_nocase(struct str a, struct str b); // ASCII letters only
char char_lower(char c);
bool char_is_digit(char c);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

struct str str_slice(struct str s, ptrdiff_t from, ptrdiff_t to);
struct str str_trim(struct str s);
struct str str_short(struct str s);            // at most 60 bytes, for quoting input in a message
struct str str_short_path(struct str s);       // its end, from the name of a folder or file on
struct str_cut str_cut(struct str s, char at); // at the first `at`
struct str_cut str_cut_last(struct str s, char at); // at the last `at`

// Walks the pieces of "a b c", empty ones left out: while (words_next(&w)) use w.word.
struct words {
    struct str rest, word;
    char separator;
};
struct words words_of(const char *list, char separator);
bool words_next(struct words *w);
bool words_have(const char *list, char separator, struct str word);

// Characters to insert, delete, replace or swap to turn one into the other, letters compared
// without case; stops counting at `limit` + 1.
int str_distance(struct str a, struct str b, int limit);

// The candidate nearest to `s`, or empty when none is near enough to be what was meant.
struct str_nearest {
    struct str wanted, best;
    int best_distance;
};
struct str_nearest str_nearest_to(struct str wanted);
void str_nearest_offer(struct str_nearest *n, struct str candidate);

#endif
