// Reading and writing histories as text. The reader takes any bytes: what is not a history is an
// error that names the line.
#include "core/trace/text.h"

#include <string.h>

enum { FIELDS = 4 };

struct reader {
    struct trace *trace;
    struct str name;
    ptrdiff_t line;
    uint64_t last_stream; // most lines name the stream of the line before
    uint16_t last_index;
    bool has_last;
    struct error *e;
};

static bool bad(struct reader *r, const char *what, struct str text)
{
    struct str shown = text.n > 40 ? str_slice(text, 0, 40) : text;
    return FAIL(r->e, BAD_INPUT,
                str_format(r->trace->arena, "%.*s:%td", STR_ARGS(r->name), r->line), "%s: '%.*s'",
                what, STR_ARGS(shown));
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

static bool read_number(uint64_t *value, struct str text, unsigned base)
{
    if (text.n == 0)
        return false;
    uint64_t v = 0;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)digit_of(text.p[i]);
        if (digit >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            return false;
    }
    *value = v;
    return true;
}

static bool read_stream(struct reader *r, uint16_t *index, struct str text)
{
    uint64_t number;
    if (!read_number(&number, text, 10))
        return bad(r, "the stream is not a number", text);
    if (!r->has_last || number != r->last_stream) {
        if (!trace_stream(&r->last_index, r->trace, number, r->e))
            return false;
        r->last_stream = number;
        r->has_last = true;
    }
    *index = r->last_index;
    return true;
}

static ptrdiff_t cut_fields(struct str *fields, struct str line)
{
    ptrdiff_t count = 0;
    for (struct str_cut c = {.tail = line, .found = true}; c.found;) {
        c = str_cut(c.tail, ' ');
        if (c.head.n == 0)
            continue;
        if (count == FIELDS)
            return FIELDS + 1;
        fields[count++] = c.head;
    }
    return count;
}

static bool read_line(struct reader *r, struct str line)
{
    struct str fields[FIELDS];
    if (cut_fields(fields, line) != FIELDS)
        return bad(r, "a line is 'action address size stream'", line);
    struct event event = {.block = EVENT_NO_BLOCK, .tag = (uint32_t)r->trace->count + 1};
    if (!event_kind_find(&event.kind, fields[0]))
        return bad(r, "unknown action", fields[0]);
    struct str address = fields[1];
    if (str_starts(address, STR("0x")))
        address = str_slice(address, 2, address.n);
    if (!read_number(&event.address, address, 16) || event.address >= EVENT_MAX_ADDRESS)
        return bad(r, "the address is not one of a device", fields[1]);
    if (!read_number(&event.bytes, fields[2], 10) || event.bytes >= EVENT_MAX_BYTES)
        return bad(r, "the size is not one of a device", fields[2]);
    if (!read_stream(r, &event.stream, fields[3]))
        return false;
    trace_add(r->trace, event);
    return true;
}

static ptrdiff_t count_lines(struct str text)
{
    ptrdiff_t lines = 1;
    for (ptrdiff_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    return lines;
}

bool trace_parse(struct trace *t, struct str text, struct str name, struct error *e)
{
    ASSERT(t->count == 0);
    struct reader r = {.trace = t, .name = name, .e = e};
    trace_reserve(t, count_lines(text));
    for (struct str_cut c = {.tail = text, .found = true}; c.found;) {
        c = str_cut(c.tail, '\n');
        r.line++;
        struct str line = str_trim(c.head);
        if (line.n == 0 && str_trim(c.tail).n == 0)
            break;
        if (!read_line(&r, line))
            return false;
    }
    return trace_link(t, name, e);
}

void trace_write(const struct trace *t, struct buf *out)
{
    for (ptrdiff_t i = 0; i < t->count; i++) {
        const struct event *event = &t->events[i];
        uint64_t stream = event->stream < t->stream_count ? t->streams[event->stream] : 0;
        buf_printf(out, "%s %llx %llu %llu\n", event_kind_name(event->kind),
                   (unsigned long long)event->address, (unsigned long long)event->bytes,
                   (unsigned long long)stream);
    }
}
