// Text slices and the edit distance behind every "did you mean".
#include "core/base/str.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/fmt.h"

enum { LONGEST_COMPARED = 64 }; // names are short; longer input is never a near miss

struct str str_from(const char *z)
{
    return z ? (struct str){z, (ptrdiff_t)strlen(z)} : STR_NONE;
}

struct str str_copy(struct arena *a, struct str s)
{
    return (struct str){str_z(a, s), s.n};
}

char *str_z(struct arena *a, struct str s)
{
    char *z = NEW(a, char, s.n + 1);
    if (s.n)
        memcpy(z, s.p, (size_t)s.n);
    return z;
}

struct str str_join(struct arena *a, struct str head, struct str tail)
{
    char *p = NEW(a, char, head.n + tail.n + 1);
    if (head.n)
        memcpy(p, head.p, (size_t)head.n);
    if (tail.n)
        memcpy(p + head.n, tail.p, (size_t)tail.n);
    return (struct str){p, head.n + tail.n};
}

struct str str_vformat(struct arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    ptrdiff_t n = fmt_length(format, again);
    va_end(again);
    char *p = NEW(a, char, n + 1);
    fmt_into(p, n + 1, format, args);
    return (struct str){p, n};
}

struct str str_format(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str text = str_vformat(a, format, args);
    va_end(args);
    return text;
}

bool str_equal(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

// Most words differ in their first letter. A text may have a zero byte inside.
bool str_is(struct str s, const char *z)
{
    ptrdiff_t i = 0;
    while (z && i < s.n && z[i] && z[i] == s.p[i])
        i++;
    return i == s.n && (!z || !z[i]);
}

char char_lower(char c)
{
    if (c < 'A' || c > 'Z')
        return c;
    return (char)(c - 'A' + 'a');
}

bool char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool str_equal_nocase(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (ptrdiff_t i = 0; i < a.n; i++)
        if (char_lower(a.p[i]) != char_lower(b.p[i]))
            return false;
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_equal(str_slice(s, 0, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_equal(str_slice(s, s.n - suffix.n, s.n), suffix);
}

struct str str_slice(struct str s, ptrdiff_t from, ptrdiff_t to)
{
    ASSERT(from >= 0 && from <= to && to <= s.n);
    return s.p ? (struct str){s.p + from, to - from} : s;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct str str_trim(struct str s)
{
    while (s.n && is_space(s.p[0]))
        s = str_slice(s, 1, s.n);
    while (s.n && is_space(s.p[s.n - 1]))
        s = str_slice(s, 0, s.n - 1);
    return s;
}

enum { QUOTED = 60 };

struct str str_short(struct str s)
{
    ptrdiff_t n = s.n < QUOTED ? s.n : QUOTED;
    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return str_slice(s, 0, n);
}

struct str str_short_path(struct str s)
{
    if (s.n <= QUOTED)
        return s;
    struct str end = str_cut(str_slice(s, s.n - QUOTED, s.n), '/').tail;
    return end.n ? end : str_short(s);
}

static struct str_cut cut_at(struct str s, ptrdiff_t i)
{
    if (i < 0 || i >= s.n)
        return (struct str_cut){.head = s};
    return (struct str_cut){str_slice(s, 0, i), str_slice(s, i + 1, s.n), true};
}

struct str_cut str_cut(struct str s, char at)
{
    const char *found = s.n ? memchr(s.p, at, (size_t)s.n) : NULL;
    return cut_at(s, found ? found - s.p : s.n);
}

struct str_cut str_cut_last(struct str s, char at)
{
    ptrdiff_t i = s.n - 1;
    while (i >= 0 && s.p[i] != at)
        i--;
    return cut_at(s, i);
}

struct words words_of(const char *list, char separator)
{
    return (struct words){.rest = str_from(list), .separator = separator};
}

bool words_next(struct words *w)
{
    do {
        if (!w->rest.n)
            return false;
        struct str_cut c = str_cut(w->rest, w->separator);
        w->word = c.head;
        w->rest = c.tail;
    } while (!w->word.n);
    return true;
}

bool words_have(const char *list, char separator, struct str word)
{
    struct words w = words_of(list, separator);
    while (words_next(&w))
        if (str_equal(w.word, word))
            return true;
    return false;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

int str_distance(struct str a, struct str b, int limit)
{
    ptrdiff_t apart = a.n > b.n ? a.n - b.n : b.n - a.n;
    if (a.n > LONGEST_COMPARED || b.n > LONGEST_COMPARED || apart > limit)
        return limit + 1;
    int rows[3][LONGEST_COMPARED + 1];
    int *before = rows[0], *previous = rows[1], *row = rows[2];
    for (ptrdiff_t j = 0; j <= b.n; j++)
        previous[j] = before[j] = (int)j;
    for (ptrdiff_t i = 1; i <= a.n; i++) {
        row[0] = (int)i;
        for (ptrdiff_t j = 1; j <= b.n; j++) {
            char x = char_lower(a.p[i - 1]), y = char_lower(b.p[j - 1]);
            int best = min_int(min_int(row[j - 1], previous[j]) + 1, previous[j - 1] + (x != y));
            bool swapped =
                i > 1 && j > 1 && x == char_lower(b.p[j - 2]) && y == char_lower(a.p[i - 2]);
            row[j] = swapped ? min_int(best, before[j - 2] + 1) : best;
        }
        int *spare = before;
        before = previous;
        previous = row;
        row = spare;
    }
    return min_int(previous[b.n], limit + 1);
}

// A third of the characters may differ before a suggestion becomes a guess.
static int tolerated(struct str wanted)
{
    return wanted.n < 3 ? 1 : (int)(wanted.n / 3);
}

struct str_nearest str_nearest_to(struct str wanted)
{
    return (struct str_nearest){.wanted = wanted, .best_distance = tolerated(wanted) + 1};
}

// Of several that only go on from what was wanted, the last: names count their versions upwards.
static bool goes_on_too(const struct str_nearest *n, struct str candidate)
{
    return n->wanted.n && n->best.n == candidate.n && str_starts(n->best, n->wanted) &&
           str_starts(candidate, n->wanted);
}

void str_nearest_offer(struct str_nearest *n, struct str candidate)
{
    int distance = str_distance(n->wanted, candidate, n->best_distance);
    if (distance < n->best_distance || goes_on_too(n, candidate)) {
        n->best_distance = distance;
        n->best = candidate;
    }
}
