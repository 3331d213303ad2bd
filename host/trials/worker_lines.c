// Output comes in pieces of any size; a line that does not begin as ours does is passed over.
// Progress bars end theirs with a carriage return, and the last one may have no end at all.
#include "host/trials/worker_lines.h"

#include <string.h>

#include "core/base/units.h"
#include "host/formats/json_tree.h"

// JSON, and what the training script of `fathom emit` says at the end of a trial.
static const char *const beginnings[] = {"{", "measured peak: "};

static uint64_t number_of(const struct value *line, const char *key)
{
    uint64_t value;
    return value_u64(&value, value_get(line, key)) ? value : 0;
}

static void keep_largest(uint64_t *largest, uint64_t value)
{
    *largest = value > *largest ? value : *largest;
}

static struct str text_of(const struct value *line, const char *key)
{
    struct str text = STR_NONE;
    (void)!value_str(&text, value_get(line, key));
    return text;
}

static void read_start(struct worker_lines *w, const struct value *line)
{
    struct str torch = text_of(line, "torch"), transformers = text_of(line, "transformers");
    struct str gpu = text_of(line, "gpu");
    (void)snprintf(w->versions, sizeof w->versions, "torch %.*s%s%.*s", STR_ARGS(torch),
                   transformers.n ? ", transformers " : "", STR_ARGS(transformers));
    (void)snprintf(w->gpu, sizeof w->gpu, "%.*s", STR_ARGS(gpu));
    w->total_bytes = number_of(line, "total_bytes");
    keep_largest(&w->ranks, number_of(line, "ranks"));
    if (w->watch.start)
        w->watch.start(w->watch.context, w);
}

static void read_peaks(struct worker_lines *w, const struct step_record *s)
{
    keep_largest(&w->peaks.allocated_bytes, s->allocated_bytes);
    keep_largest(&w->peaks.requested_bytes, s->requested_bytes);
    keep_largest(&w->peaks.reserved_bytes, s->reserved_bytes);
    keep_largest(&w->peaks.retries, s->retries);
}

// A step without a number follows the one before it.
static void read_step(struct worker_lines *w, struct step_record *s)
{
    w->peaks.steps++;
    s->number = s->number ? s->number : w->peaks.steps;
    peaks_time(&w->peaks, s);
    if (w->watch.step && w->peaks.steps <= WORKER_MOST_STEPS)
        w->watch.step(w->watch.context, s);
}

static struct step_record step_of(const struct value *line)
{
    struct step_record s = {
        .number = number_of(line, "step"),
        .allocated_bytes = number_of(line, "allocated_bytes"),
        .requested_bytes = number_of(line, "requested_bytes"),
        .reserved_bytes = number_of(line, "reserved_bytes"),
        .end_allocated_bytes = number_of(line, "end_allocated_bytes"),
        .retries = number_of(line, "retries"),
    };
    bool timed = value_double(&s.seconds, value_get(line, "seconds"));
    s.seconds = timed && s.seconds > 0 ? s.seconds : 0;
    return s;
}

static void read_line(struct worker_lines *w)
{
    struct error reason = {0};
    struct arena scratch = w->scratch;
    struct value line;
    struct str kind, text = {w->line, w->length};
    bool read = json_tree(&line, &scratch, text, STR_NONE, &reason);
    if (reason.code == ERROR_NO_MEMORY)
        (void)!FAIL(&w->unread, NO_MEMORY, STR_NONE,
                    "there is not enough memory to read a trial's output");
    if (!read || !value_str(&kind, value_get(&line, "fathom")))
        return;
    if (str_is(kind, "start"))
        read_start(w, &line);
    if (str_is(kind, "queued") || str_is(kind, "running"))
        w->queued = str_is(kind, "queued");
    struct step_record step = step_of(&line);
    read_peaks(w, &step); // saving a checkpoint, which is no step, has peaks too
    if (str_is(kind, "step"))
        read_step(w, &step);
    w->done |= str_is(kind, "done");
}

// "measured peak: 61.55 GiB reserved, 55.00 GiB allocated"
static void read_peak(struct worker_lines *w)
{
    double reserved, allocated;
    char text[128];
    if (w->peaks.steps) // said exactly already
        return;
    (void)snprintf(text, sizeof text, "%.*s", (int)w->length, w->line);
    // NOLINTNEXTLINE(cert-err34-c): numbers that our own script prints
    if (sscanf(text, "measured peak: %lf GiB reserved, %lf GiB allocated", &reserved, &allocated) !=
        2)
        return;
    bool sensible = reserved > 0 && reserved < 1e6 && allocated > 0 && allocated < 1e6;
    w->peaks.reserved_bytes = sensible ? (uint64_t)(reserved * (double)GIB) : 0;
    w->peaks.allocated_bytes = sensible ? (uint64_t)(allocated * (double)GIB) : 0;
}

// A trainer's own lines of JSON are not worth reading.
static bool names_us(struct str line)
{
    struct str key = STR("\"fathom\"");
    for (ptrdiff_t i = 0; i + key.n <= line.n; i++)
        if (line.p[i] == '"' && str_equal(str_slice(line, i, i + key.n), key))
            return true;
    return false;
}

static void end_line(struct worker_lines *w)
{
    bool json = w->length > 0 && w->line[0] == '{';
    if (json && names_us((struct str){w->line, w->length}))
        read_line(w);
    else if (w->length > 0 && !json)
        read_peak(w);
    w->length = 0;
}

static bool begins_as_ours(struct str line)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(beginnings); i++) {
        struct str known = str_from(beginnings[i]);
        ptrdiff_t n = line.n < known.n ? line.n : known.n;
        if (str_equal(str_slice(line, 0, n), str_slice(known, 0, n)))
            return true;
    }
    return false;
}

static void add_bytes(struct worker_lines *w, struct str bytes)
{
    if (w->length < 0)
        return;
    bool fits = w->length + bytes.n <= WORKER_LINE_BYTES;
    if (fits && bytes.n)
        memcpy(w->line + w->length, bytes.p, (size_t)bytes.n);
    w->length = fits ? w->length + bytes.n : -1;
    if (w->length > 0 && !begins_as_ours((struct str){w->line, w->length}))
        w->length = -1;
}

void worker_lines_feed(struct worker_lines *w, struct str bytes)
{
    while (bytes.n) {
        ptrdiff_t n = 0;
        while (n < bytes.n && bytes.p[n] != '\n' && bytes.p[n] != '\r')
            n++;
        add_bytes(w, str_slice(bytes, 0, n));
        if (n == bytes.n)
            return;
        end_line(w);
        bytes = str_slice(bytes, n + 1, bytes.n);
    }
}

void worker_lines_end(struct worker_lines *w)
{
    end_line(w);
}
