// From the head of a Python traceback to the line that names the exception. Launchers and loggers
// put a prefix before every line (a rank, a time, a process), and the lines of other processes come
// in between, so the lines that belong together are those with the same prefix.
#include <string.h>

#include "core/base/compiler.h"
#include "core/doctor/internal.h"

enum { MOST_LINES = 2000 };

static struct str line_of(struct str text, ptrdiff_t at)
{
    const char *feed = memchr(text.p + at, '\n', (size_t)(text.n - at));
    return str_slice(text, at, feed ? feed - text.p : text.n);
}

// Whether a digit is part of a time of day: times differ from line to line.
static bool is_time(struct str line, ptrdiff_t at)
{
    enum { FRACTION_MOST_BYTES = 16 };
    ptrdiff_t end = at, start = at;
    ptrdiff_t earliest = at > FRACTION_MOST_BYTES ? at - FRACTION_MOST_BYTES : 0;
    while (end < line.n && char_is_digit(line.p[end]))
        end++;
    if (end + 1 < line.n && line.p[end] == ':' && char_is_digit(line.p[end + 1]))
        return true;
    while (start > earliest &&
           (char_is_digit(line.p[start]) || line.p[start] == ',' || line.p[start] == '.'))
        start--;
    return line.p[start] == ':' && start > 0 && char_is_digit(line.p[start - 1]);
}

static ptrdiff_t digits_end(struct str line, ptrdiff_t at)
{
    while (at < line.n && char_is_digit(line.p[at]))
        at++;
    return at;
}

// How much of the line is the prefix, with another time in it; -1: it begins otherwise.
static ptrdiff_t prefix_length(struct str line, struct str prefix)
{
    ptrdiff_t at = 0;
    for (ptrdiff_t i = 0; i < prefix.n; i++, at++) {
        if (at == line.n)
            return -1;
        if (line.p[at] == prefix.p[i])
            continue;
        bool here = char_is_digit(prefix.p[i]), there = char_is_digit(line.p[at]);
        bool after_digit = i > 0 && char_is_digit(prefix.p[i - 1]); // one may have fewer digits
        bool digits = (here && there) || ((here || there) && after_digit);
        if (!digits || !is_time(prefix, here ? i : i - 1))
            return -1;
        i = digits_end(prefix, i) - 1;
        at = digits_end(line, at) - 1;
    }
    return at;
}

// Frames and their source are set in; rich draws a box around them.
static bool is_inside(struct str content)
{
    return str_starts(content, STR("  ")) || str_starts(content, STR("File \"")) ||
           str_starts(content, STR("\xE2\x94")) || str_starts(content, STR("\xE2\x95"));
}

static bool starts_name(char c)
{
    return (char_lower(c) >= 'a' && char_lower(c) <= 'z') || c == '_';
}

static bool ends_as_exceptions_do(struct str name)
{
    static const char *const endings[] = {"Error",     "Exception", "Interrupt", "Exit",
                                          "Iteration", "Warning",   "Group",     "error",
                                          "timeout",   "Timeout",   "Expired"};
    for (ptrdiff_t i = 0; i < COUNT_OF(endings); i++)
        if (str_ends(name, str_from(endings[i])))
            return true;
    return false;
}

// "DataGone", where "Epoch" is more likely another line that came in between.
static bool is_camel(struct str name)
{
    for (ptrdiff_t i = 1; i < name.n; i++)
        if (name.p[i] >= 'A' && name.p[i] <= 'Z' && name.p[i - 1] >= 'a' && name.p[i - 1] <= 'z')
            return true;
    return false;
}

// What an exception is called, with its module: builtin ones have none and end like "Error", rich
// leaves the module out, and a script's own have none either. Empty where the line is another.
static struct str exception_name(struct str content, bool boxed)
{
    ptrdiff_t end = 0;
    while (end < content.n &&
           (starts_name(content.p[end]) || char_is_digit(content.p[end]) || content.p[end] == '.'))
        end++;
    struct str name = str_slice(content, 0, end);
    struct str rest = str_slice(content, end, content.n);
    if (str_starts(rest, STR("("))) // RayTaskError(ValueError)
        rest = str_cut(rest, ')').tail;
    bool complete = !str_trim(rest).n || str_starts(rest, STR(": ")) || str_is(str_trim(rest), ":");
    if (!complete || !name.n || !starts_name(name.p[0]))
        return STR_NONE;
    struct str_cut module = str_cut_last(name, '.');
    struct str class = module.found ? module.tail : name;
    bool capital = class.n && class.p[0] >= 'A' && class.p[0] <= 'Z';
    bool known =
        ends_as_exceptions_do(class) || (capital && (module.found || boxed || is_camel(class)));
    return known ? name : STR_NONE;
}

// These only carry what happened to another process, which is printed after them.
static bool carries_another(struct str name)
{
    return str_ends(name, STR("RemoteTraceback")) ||
           str_ends(name, STR("ProcessRaisedException")) || str_ends(name, STR("ChildFailedError"));
}

// The text before the head in its line: a prefix, what a progress bar left there, rich's box, or
// the exception, which notebooks name there.
static struct str prefix_of(struct str text, ptrdiff_t head)
{
    ptrdiff_t start = head;
    while (start > 0 && text.p[start - 1] != '\n' && text.p[start - 1] != '\r')
        start--;
    struct str before = str_slice(text, start, head);
    ptrdiff_t box = text_find(before, STR("\xE2\x95\xAD"), 0);
    if (str_ends(before, STR("  ")) && exception_name(str_trim(before), false).n)
        return STR_NONE;
    return box < 0 ? before : str_slice(before, 0, box);
}

static void take_frame(struct traceback *t, struct str content)
{
    if (str_starts(content, STR("  File \"")) || str_starts(content, STR("File \"")))
        t->frame = str_trim(content);
}

// Some loggers say time and level before the first line of a message only: what stands before the
// first frame is the part of the prefix that all lines have.
static struct str shared_prefix(struct str line, struct str prefix)
{
    ptrdiff_t frame = text_find(line, STR("  File \""), 0);
    bool shorter = frame >= 0 && frame < prefix.n;
    struct str shared = str_slice(prefix, 0, shorter ? frame : 0);
    if (shorter && prefix_length(line, shared) == frame)
        return shared;
    return is_inside(line) && prefix_length(line, prefix) < 0 ? STR_NONE : prefix;
}

struct traceback traceback_follow(struct str text, ptrdiff_t head)
{
    struct traceback t = {.exception = -1};
    struct str prefix = prefix_of(text, head), first = line_of(text, head);
    bool boxed = text_has(first, "\xE2\x94\x80"), begun = false;
    ptrdiff_t at = head + first.n + 1, fallback = -1;
    for (int i = 0; i < MOST_LINES && at < text.n; i++) {
        struct str line = line_of(text, at);
        ptrdiff_t start = at;
        at += line.n + 1;
        if (at > text.n)
            break; // its end is not in sight
        if (!begun)
            prefix = shared_prefix(line, prefix);
        ptrdiff_t skipped = prefix_length(line, prefix);
        if (skipped < 0)
            continue;
        struct str content = str_slice(line, skipped, line.n);
        begun = begun || is_inside(content);
        take_frame(&t, content);
        phase_follow(&t.told, content);
        if (str_starts(content, STR("Traceback (most")))
            break;
        struct str name = begun && !is_inside(content) ? exception_name(content, boxed) : STR_NONE;
        if (!name.n || carries_another(name))
            continue;
        fallback = start + skipped;
        if (!str_ends(name, STR("RayTaskError"))) // its cause follows
            break;
    }
    t.exception = fallback;
    return t;
}
