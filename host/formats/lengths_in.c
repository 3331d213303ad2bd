// See lengths_in.h. The file is read piece by piece; of a line no more is kept than a JSON object
// of token ids may have.
#include "host/formats/lengths_in.h"

#include <stdlib.h>

#include "core/base/buf.h"
#include "core/base/value.h"
#include "core/predict/lengths.h"
#include "core/predict/sampler.h"
#include "host/files/stream.h"
#include "host/formats/json_tree.h"

enum { MOST_LINE = 64 << 20, MOST_TOKENS = 1 << 28, MOST_SEQUENCES = 1 << 28 };

struct reading {
    struct arena *arena;
    struct str path;
    uint32_t *lengths;
    ptrdiff_t count, capacity;
    uint64_t line;
};

static bool bad_line(const struct reading *r, const char *what, struct error *e)
{
    struct arena scratch = *r->arena;
    struct str where =
        str_format(&scratch, "%.*s:%llu", STR_ARGS(r->path), (unsigned long long)r->line);
    return FAIL(e, BAD_INPUT, where, "%s", what);
}

static bool add(struct reading *r, uint64_t tokens, struct error *e)
{
    if (!tokens || tokens > MOST_TOKENS)
        return bad_line(r, "a sequence has 1 to 268435456 tokens", e);
    if (r->count == MOST_SEQUENCES)
        return bad_line(r, "lengths of up to 268435456 sequences are read", e);
    r->lengths = arena_grow(r->arena, r->lengths, sizeof *r->lengths, r->count, &r->capacity);
    r->lengths[r->count++] = (uint32_t)tokens;
    return true;
}

// What datasets call the number of their tokens; texts have none that we could count.
static bool length_of(uint64_t *tokens, const struct value *row)
{
    static const char *const names[] = {"length", "num_tokens", "tokens", "input_ids"};
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++) {
        const struct value *v = value_get(row, names[i]);
        if (v && v->kind == VALUE_LIST) {
            *tokens = (uint64_t)value_count(v);
            return true;
        }
        if (value_u64(tokens, v))
            return true;
    }
    return false;
}

static bool add_line(struct reading *r, struct str line, struct error *e)
{
    struct arena scratch = *r->arena;
    struct value row;
    uint64_t tokens;
    r->line++;
    line = str_trim(line);
    if (!line.n)
        return true;
    if (unit_parse(&tokens, UNIT_PLAIN, line) == UNIT_OK)
        return add(r, tokens, e);
    if (line.p[0] == '{' && !json_tree(&row, &scratch, line, r->path, e))
        return false;
    return (line.p[0] == '{' && length_of(&tokens, &row))
               ? add(r, tokens, e)
               : bad_line(r,
                          "this is no length: a line is a number of tokens, or a JSON object with "
                          "length, num_tokens or input_ids",
                          e);
}

// Lines end where they end, not where pieces do.
static bool add_piece(struct reading *r, struct buf *line, struct str piece, struct error *e)
{
    while (piece.n) {
        struct str_cut cut = str_cut(piece, '\n');
        if (line->n + cut.head.n > MOST_LINE)
            return bad_line(r, "this line is longer than 64 MiB", e);
        buf_put(line, cut.head);
        if (!cut.found)
            return true;
        if (!add_line(r, buf_str(line), e))
            return false;
        line->n = 0;
        piece = cut.tail;
    }
    return true;
}

static bool read_file(struct reading *r, struct buf *line, struct error *e)
{
    struct stream *s = stream_open(r->arena, r->path, e);
    struct str piece;
    bool ok = s != NULL;
    while (ok && (ok = stream_next(&piece, s, e)) && piece.n)
        ok = add_piece(r, line, piece, e);
    if (s)
        stream_close(s);
    return ok && add_line(r, buf_str(line), e) &&
           (r->count || FAIL(e, BAD_INPUT, r->path, "there is no length in this file"));
}

static int by_length(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static struct str rows_text(const struct reading *r)
{
    struct buf b = buf_in(r->arena);
    for (ptrdiff_t i = 0; i < r->count; i++)
        buf_printf(&b, "%s%u", i ? " " : "", (unsigned)r->lengths[i]);
    return buf_str(&b);
}

// The mean of each part, rounded to whole tokens.
static void put_parts(struct buf *b, const struct reading *r)
{
    ptrdiff_t parts = r->count < MOST_LENGTHS ? r->count : MOST_LENGTHS;
    for (ptrdiff_t i = 0; i < parts; i++) {
        ptrdiff_t from = i * r->count / parts, to = (i + 1) * r->count / parts;
        uint64_t sum = 0;
        for (ptrdiff_t k = from; k < to; k++)
            sum += r->lengths[k];
        uint64_t mean = (sum + (uint64_t)(to - from) / 2) / (uint64_t)(to - from);
        buf_printf(b, "%s%llu", i ? " " : "", (unsigned long long)mean);
    }
}

bool lengths_resolve(struct settings *s, struct error *e)
{
    const struct setting *file = settings_find_z(s, "data");
    if (!file)
        return true;
    struct reading r = {.arena = s->arena, .path = file->value};
    struct buf line = buf_in(s->arena);
    if (!read_file(&r, &line, e))
        return false;
    if (settings_find_z(s, "batching") && r.count <= SAMPLER_MOST_ROWS &&
        !settings_add(s, (struct setting){STR("data.rows"), rows_text(&r), file->where}, e))
        return false;
    qsort(r.lengths, (size_t)r.count, sizeof *r.lengths, by_length);
    struct buf parts = buf_in(s->arena);
    put_parts(&parts, &r);
    struct str count = str_format(s->arena, "%llu", (unsigned long long)r.count);
    return settings_add(s, (struct setting){STR("data.lengths"), buf_str(&parts), file->where},
                        e) &&
           settings_add(s, (struct setting){STR("data.count"), count, file->where}, e);
}
