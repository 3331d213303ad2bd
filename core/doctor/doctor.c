// The reader. Text goes through a window of two megabytes: escape sequences are dropped on the way
// in, anchors are looked for once enough text follows them, and a quarter of a megabyte stays
// behind for what a finding needs from before it. Every decision depends on distances in the text
// alone, so the sizes of the pieces that were fed do not matter.
#include "core/doctor/doctor.h"

#include <string.h>

#include "core/base/buf.h"
#include "core/doctor/internal.h"

enum {
    WINDOW_BYTES = 2 << 20,
    LINE_BEHIND = 4 << 10, // of a line, before the anchor
    BEHIND_BYTES = COURSE_BEHIND_BYTES + LINE_BEHIND,
    LINE_AHEAD = 7 << 10,                      // and after it
    TRACEBACK_BYTES = 128 << 10,               // of many ranks at once
    AHEAD_BYTES = TRACEBACK_BYTES + (8 << 10), // with a whole anchor at its end
    MOST_TRACEBACKS = 256,                     // that are open at once
    FOLLOWED_MOST = 64 << 20,                  // bytes, and as many again as the text has
    CALM_LINES = 300,                          // after which an exception is another story
    MOST_RANKS = 4096,
    RANK_LIST_BYTES = 60,
    MESSAGE_LINES = 8,
    TEXT_BEHIND = 200,
    TEXTS_BYTES = DOCTOR_TEXT_BYTES + DOCTOR_RAISED_BYTES,
    BOTH_TEXTS_BYTES = 2 * TEXTS_BYTES,
    FINDINGS_PER_KIND = 9, // ranks; the last is for all others together
    FINDINGS_MOST = KIND_COUNT * FINDINGS_PER_KIND,
    ESCAPE = 0x1B,
};

enum escape { ESCAPE_NONE, ESCAPE_BEGUN, ESCAPE_CONTROL, ESCAPE_STRING };

// One thing that one rank said: the first and the last time.
struct group {
    struct doctor_finding first, last;
    uint64_t first_place, last_place;
    bool mixed;  // of several ranks
    char *texts; // room for both
};

// Where a traceback will name its exception.
struct expected {
    uint64_t place;
    uint64_t frame_place;
    ptrdiff_t frame_bytes;
    bool ignored; // by Python, which says so before the traceback
    struct phase_told told;
};

struct doctor {
    struct arena *arena;
    struct scan *scan;
    char *window;
    ptrdiff_t filled, scanned; // bytes of the window
    uint64_t dropped;          // bytes before the window
    uint64_t lines;            // the number of the line at `counted`
    ptrdiff_t counted;
    uint64_t bytes;
    enum escape escape;
    struct course course;
    struct group *groups[KIND_COUNT];
    int group_count[KIND_COUNT];
    uint64_t *ranks[KIND_COUNT];               // bits
    struct expected expected[MOST_TRACEBACKS]; // in the order of their places
    int expected_count;
    struct turns turns;
    bool cut;
    uint64_t followed; // bytes looked through for the ends of tracebacks
};

struct doctor *doctor_new(struct arena *a)
{
    struct doctor *d = NEW(a, struct doctor, 1);
    d->arena = a;
    d->scan = scan_new(a);
    d->window = NEW(a, char, WINDOW_BYTES);
    course_begin(&d->course);
    d->window[0] = '\n'; // so that the first line begins like the others
    d->filled = d->counted = 1;
    d->lines = 1;
    return d;
}

struct sighting {
    const struct symptom *symptom;
    struct passage passage;
    ptrdiff_t place;
};

// ------------------------------------------------------------------ one message

static uint64_t count_lines(const char *p, const char *end)
{
    uint64_t lines = 0;
    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        lines++;
        p++;
    }
    return lines;
}

// The number of the line that holds this place; places only ever grow.
static uint64_t line_at(struct doctor *d, ptrdiff_t place)
{
    if (place > d->counted) {
        d->lines += count_lines(d->window + d->counted, d->window + place);
        d->counted = place;
    }
    return d->lines;
}

static ptrdiff_t line_start(const char *text, ptrdiff_t from, ptrdiff_t at)
{
    while (at > from && text[at - 1] != '\n' && text[at - 1] != '\r')
        at--;
    return at;
}

// Looks in ever larger steps: what ends a line is mostly near, and each line is looked for once.
static ptrdiff_t line_end(const char *text, ptrdiff_t at, ptrdiff_t limit)
{
    for (ptrdiff_t step = 128; at < limit; at += step, step *= 2) {
        size_t n = (size_t)(step < limit - at ? step : limit - at);
        const char *feed = memchr(text + at, '\n', n);
        n = feed ? (size_t)(feed - text - at) : n;
        const char *back = memchr(text + at, '\r', n);
        if (back || feed)
            return (back ? back : feed) - text;
    }
    return limit;
}

static struct passage passage_at(const struct doctor *d, ptrdiff_t place)
{
    const char *text = d->window;
    bool at_line_end = text[place] == '\n';
    ptrdiff_t limit = place + LINE_AHEAD < d->filled ? place + LINE_AHEAD : d->filled;
    ptrdiff_t earliest = place > LINE_BEHIND ? place - LINE_BEHIND : 0;
    ptrdiff_t start = at_line_end ? place : line_start(text, earliest, place);
    ptrdiff_t end = line_end(text, at_line_end ? place + 1 : place, limit);
    if (at_line_end && end < limit)
        end++;
    bool cut = start > 0 && start == earliest && text[start - 1] != '\n';
    return (struct passage){
        .line = {text + start, end - start}, .anchor = place - start, .cut = cut};
}

// A message that goes on over the next lines.
static struct str lines_from(const struct doctor *d, ptrdiff_t place)
{
    ptrdiff_t limit = place + LINE_AHEAD < d->filled ? place + LINE_AHEAD : d->filled, end = place;
    for (int i = 0; i < MESSAGE_LINES && end < limit; i++) {
        const char *feed = memchr(d->window + end, '\n', (size_t)(limit - end));
        end = feed ? feed + 1 - d->window : limit;
    }
    return (struct str){d->window + place, end - place};
}

// What a message is quoted as: from a little before the anchor.
static struct str quotation(const struct passage *p)
{
    ptrdiff_t start = p->anchor > TEXT_BEHIND ? p->anchor - TEXT_BEHIND : 0;
    struct str text = str_trim(str_slice(p->line, start, p->line.n));
    return str_slice(text, 0, text.n < DOCTOR_TEXT_BYTES ? text.n : DOCTOR_TEXT_BYTES);
}

static struct group *group_of(struct doctor *d, const struct doctor_finding *f)
{
    ptrdiff_t kind = f->kind - doctor_kinds;
    int *count = &d->group_count[kind];
    if (!d->groups[kind])
        d->groups[kind] = NEW(d->arena, struct group, FINDINGS_PER_KIND);
    for (int i = 0; i < *count; i++) {
        struct group *g = &d->groups[kind][i];
        if (!g->mixed && g->first.rank == f->rank && g->first.gpu == f->gpu)
            return g;
    }
    if (*count < FINDINGS_PER_KIND)
        return &d->groups[kind][(*count)++];
    d->groups[kind][FINDINGS_PER_KIND - 1].mixed = true;
    return &d->groups[kind][FINDINGS_PER_KIND - 1];
}

static void count_rank(struct doctor *d, const struct doctor_finding *f)
{
    ptrdiff_t kind = f->kind - doctor_kinds;
    if (f->rank < 0 || f->rank >= MOST_RANKS)
        return;
    if (!d->ranks[kind])
        d->ranks[kind] = NEW(d->arena, uint64_t, MOST_RANKS / 64);
    d->ranks[kind][f->rank / 64] |= UINT64_C(1) << f->rank % 64;
}

static bool is_exception(const struct doctor_kind *kind)
{
    ptrdiff_t i = kind - doctor_kinds;
    return i == KIND_EXCEPTION || i == KIND_MISSING_MODULE || i == KIND_NETWORK;
}

// Whether a story ended before this one began: what follows so much later was not caused by it.
static bool is_another_story(const struct doctor_finding *earlier, const struct doctor_finding *f)
{
    return earlier->kind->weight == DOCTOR_CIRCUMSTANCE && is_exception(earlier->kind) &&
           is_exception(f->kind) && f->line > earlier->last_line + CALM_LINES;
}

static struct str put_text(char *room, struct str text, ptrdiff_t most)
{
    text = str_slice(text, 0, text.n < most ? text.n : most);
    if (text.n)
        memcpy(room, text.p, (size_t)text.n);
    return (struct str){room, text.n};
}

static bool says_the_same(const struct doctor_finding *a, const struct doctor_finding *b)
{
    return a->known == b->known && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void keep(struct doctor *d, struct doctor_finding f, const struct passage *p, uint64_t place)
{
    struct group *g = group_of(d, &f);
    if (!g->texts)
        g->texts = NEW(d->arena, char, BOTH_TEXTS_BYTES);
    bool is_first = g->first.count == 0 || is_another_story(&g->first, &f);
    char *room = g->texts + (is_first ? 0 : TEXTS_BYTES);
    f.text = put_text(room, quotation(p), DOCTOR_TEXT_BYTES);
    f.raised = put_text(room + DOCTOR_TEXT_BYTES, f.raised, DOCTOR_RAISED_BYTES);
    f.count = 1;
    count_rank(d, &f);
    if (is_first) {
        g->first = f;
        g->first_place = place;
    }
    g->first.count += !is_first;
    g->first.root = g->first.root || f.root;
    if (!g->first.phase && says_the_same(&g->first, &f)) { // a logger had it first
        g->first.phase = f.phase;
        g->first.phase_remedy = f.phase_remedy;
        g->first.raised = put_text(g->texts + DOCTOR_TEXT_BYTES, f.raised, DOCTOR_RAISED_BYTES);
    }
    if (!g->first.known) { // the kernel and NCCL say the sizes on a line of their own
        g->first.known = f.known;
        memcpy(g->first.bytes, f.bytes, sizeof f.bytes);
    }
    g->last = f;
    g->last.count = g->first.count;
    g->first.last_line = g->last.last_line = f.line;
    g->last_place = place;
}

// Where it happened, of the ends that have to do with memory.
static void place_in_phase(struct doctor_finding *f, const struct symptom *s,
                           const struct phase_told *told, const struct course *c)
{
    bool memory = f->kind->class == DOCTOR_GPU_MEMORY || f->kind->class == DOCTOR_HOST_MEMORY;
    if (!memory && !f->kind->by_phase)
        return;
    f->phase = told->phase ? told->phase : s->phase ? s->phase : f->kind->phase;
    if (!f->phase && f->kind->by_phase)
        f->phase = course_phase(c);
    f->phase_remedy = told->remedy;
}

static void examine(struct doctor *d, const struct sighting *seen, struct str frame,
                    const struct phase_told *told)
{
    const struct symptom *s = seen->symptom;
    const struct passage *p = &seen->passage;
    ptrdiff_t place = seen->place;
    struct doctor_finding f = {
        .kind = &doctor_kinds[s->kind], .raised = frame, .remedy = s->remedy};
    ptrdiff_t start = place - p->anchor;
    f.line = line_at(d, d->window[place] == '\n' ? place + 1 : place);
    course_follow(&d->course, (struct str){d->window, d->filled}, d->dropped, place);
    numbers_read(&f, s->flags & SYMPTOM_LINES ? lines_from(d, place) : p->line);
    if (s->flags & SYMPTOM_TORCH)
        f.kind = &doctor_kinds[numbers_judge(&f)];
    place_in_phase(&f, s, told, &d->course);
    struct progress steps = course_steps(&d->course, f.phase);
    f.step = steps.step;
    f.steps_total = steps.total;
    place_read(&f, p, (struct str){d->window, start});
    keep(d, f, p, d->dropped + (uint64_t)place);
}

// ------------------------------------------------------------------ tracebacks

// Python says so of exceptions that nothing comes of.
static bool is_ignored(struct str before)
{
    enum { LINE_BYTES = 300 };
    before = str_slice(before, before.n > LINE_BYTES ? before.n - LINE_BYTES : 0, before.n);
    before = str_trim(before);
    struct str_cut line = str_cut_last(before, '\n');
    before = line.found ? line.tail : before;
    return text_has(before, "Exception ignored in") || text_has(before, "--- Logging error ---");
}

static void expect(struct doctor *d, struct expected x)
{
    int at = d->expected_count;
    for (int i = 0; i < at; i++)
        if (d->expected[i].place == x.place)
            return;
    if (at == MOST_TRACEBACKS)
        return;
    for (; at > 0 && d->expected[at - 1].place > x.place; at--)
        d->expected[at] = d->expected[at - 1];
    d->expected[at] = x;
    d->expected_count++;
}

// Looks from the head of a traceback for its exception, which is examined in its turn.
static void follow_traceback(struct doctor *d, ptrdiff_t head, const struct passage *p)
{
    ptrdiff_t start = head - p->anchor;
    ptrdiff_t limit = head + TRACEBACK_BYTES < d->filled ? head + TRACEBACK_BYTES : d->filled;
    uint64_t place = d->dropped + (uint64_t)start;
    if (d->followed > FOLLOWED_MOST + place)
        return;
    struct traceback t =
        traceback_follow((struct str){d->window + start, limit - start}, p->anchor);
    d->followed += (uint64_t)(t.exception < 0 ? limit - head : t.exception);
    if (t.exception < 0)
        return;
    struct expected x = {.place = place + (uint64_t)t.exception,
                         .frame_bytes = t.frame.n,
                         .told = t.told,
                         .ignored = is_ignored((struct str){d->window, start})};
    x.frame_place = t.frame.n ? d->dropped + (uint64_t)(t.frame.p - d->window) : 0;
    expect(d, x);
}

// Takes what was expected before `end`; true with the one that lies behind `start`.
static bool take_expected(struct expected *x, struct doctor *d, ptrdiff_t start, ptrdiff_t end)
{
    bool found = false;
    int taken = 0;
    for (; taken < d->expected_count; taken++) {
        uint64_t place = d->expected[taken].place;
        if (place >= d->dropped + (uint64_t)end)
            break;
        found = found || place >= d->dropped + (uint64_t)start;
        *x = d->expected[taken];
    }
    d->expected_count -= taken;
    memmove(d->expected, d->expected + taken, (size_t)d->expected_count * sizeof *d->expected);
    return found;
}

static struct str frame_of(const struct doctor *d, const struct expected *x)
{
    bool in_sight = x->frame_bytes && x->frame_place >= d->dropped;
    return in_sight
               ? (struct str){d->window + (ptrdiff_t)(x->frame_place - d->dropped), x->frame_bytes}
               : STR_NONE;
}

// ------------------------------------------------------------------ one line

// An exception of no special meaning is the least that a line can say.
static bool outweighs(const struct symptom *s, const struct symptom *t)
{
    enum doctor_weight a = doctor_kinds[s->kind].weight, b = doctor_kinds[t->kind].weight;
    if (s->kind == KIND_EXCEPTION || t->kind == KIND_EXCEPTION)
        return s->kind != KIND_EXCEPTION && a > DOCTOR_WEIGHS_NOTHING;
    return a > b;
}

static void hear(struct doctor *d, const struct symptom *s, ptrdiff_t place, ptrdiff_t end)
{
    struct str text = {d->window, d->filled};
    course_follow(&d->course, text, d->dropped, place);
    course_hear(&d->course, s, str_slice(text, place, end), d->dropped + (uint64_t)place);
}

// The heaviest symptom among those that the line shows from `place` on.
static struct sighting heaviest(struct doctor *d, const struct passage *line, ptrdiff_t place)
{
    struct sighting best = {.passage = *line, .place = place};
    struct str text = {d->window, d->filled};
    struct reading reading = reading_begin();
    ptrdiff_t end = place - line->anchor + line->line.n;
    for (ptrdiff_t at = place; at < end && !reading.silenced;
         at = scan_next(d->scan, text, at + 1, end)) {
        struct passage p = *line;
        p.anchor = line->anchor + at - place;
        const struct symptom *s = symptom_at(d->scan, &p, &reading);
        if (s && s->flags & SYMPTOM_TRACEBACK)
            follow_traceback(d, at, &p);
        else if (s && s->flags & (SYMPTOM_PHASE | SYMPTOM_SAID))
            hear(d, s, at, end);
        else if (s && (!best.symptom || outweighs(s, best.symptom)))
            best = (struct sighting){s, p, at};
    }
    return best;
}

// Where to go on from.
static ptrdiff_t examine_line(struct doctor *d, ptrdiff_t place)
{
    struct passage line = passage_at(d, place);
    struct sighting seen = heaviest(d, &line, place);
    ptrdiff_t start = place - line.anchor, end = start + line.line.n;
    struct expected x = {0};
    bool raised = take_expected(&x, d, start, end);
    if (raised && !seen.symptom) {
        seen.symptom = &symptom_exception;
        seen.place = (ptrdiff_t)(x.place - d->dropped);
        seen.passage.anchor = seen.place - start;
    }
    bool ignored =
        raised && x.ignored && doctor_kinds[seen.symptom->kind].weight <= DOCTOR_CIRCUMSTANCE;
    struct str text = {d->window, d->filled};
    struct phase_told told = raised ? x.told : (struct phase_told){0};
    // A sample of the data may have many lines.
    if (seen.symptom && !ignored && !turns_hold(&d->turns, text, d->dropped, seen.place))
        examine(d, &seen, raised ? frame_of(d, &x) : STR_NONE, &told);
    bool took_line_end = d->window[place] == '\n' && line.line.n > 1;
    return took_line_end ? end - 1 : end;
}

// ------------------------------------------------------------------ the window

static void drop_old(struct doctor *d)
{
    ptrdiff_t drop = d->scanned - BEHIND_BYTES;
    if (drop <= 0)
        return;
    line_at(d, drop);
    memmove(d->window, d->window + drop, (size_t)(d->filled - drop));
    d->filled -= drop;
    d->scanned -= drop;
    d->counted -= drop;
    d->dropped += (uint64_t)drop;
}

static ptrdiff_t next_expected(const struct doctor *d, ptrdiff_t limit)
{
    if (!d->expected_count || d->expected[0].place >= d->dropped + (uint64_t)limit)
        return limit;
    return (ptrdiff_t)(d->expected[0].place - d->dropped);
}

static void scan_window(struct doctor *d, ptrdiff_t limit)
{
    struct str text = {d->window, d->filled};
    while (d->scanned < limit) {
        ptrdiff_t stop = next_expected(d, limit);
        ptrdiff_t place = scan_next(d->scan, text, d->scanned, stop);
        d->scanned = place < limit ? examine_line(d, place) : limit;
    }
}

static void append(struct doctor *d, struct str text)
{
    while (text.n) {
        ptrdiff_t room = WINDOW_BYTES - d->filled;
        ptrdiff_t taken = text.n < room ? text.n : room;
        memcpy(d->window + d->filled, text.p, (size_t)taken);
        d->filled += taken;
        text = str_slice(text, taken, text.n);
        if (d->filled == WINDOW_BYTES) {
            scan_window(d, WINDOW_BYTES - AHEAD_BYTES);
            drop_old(d);
        }
    }
}

// Colours are "ESC [ parameters letter", titles "ESC ] text BEL".
static enum escape escape_after(enum escape escape, char byte)
{
    unsigned char c = (unsigned char)byte;
    switch (escape) {
    case ESCAPE_BEGUN:
        return c == '[' ? ESCAPE_CONTROL : c == ']' ? ESCAPE_STRING : ESCAPE_NONE;
    case ESCAPE_CONTROL:
        return c >= 0x20 && c <= 0x3F ? ESCAPE_CONTROL : ESCAPE_NONE;
    case ESCAPE_STRING:
        return c == '\a' ? ESCAPE_NONE : c == ESCAPE ? ESCAPE_BEGUN : ESCAPE_STRING;
    case ESCAPE_NONE:
        break;
    }
    return ESCAPE_NONE;
}

// Passes over an escape sequence, which a line feed ends too; what follows it.
static struct str skip_escape(struct doctor *d, struct str text)
{
    ptrdiff_t i = 0;
    while (i < text.n && d->escape != ESCAPE_NONE && text.p[i] != '\n')
        d->escape = escape_after(d->escape, text.p[i++]);
    if (i < text.n)
        d->escape = ESCAPE_NONE;
    return str_slice(text, i, text.n);
}

void doctor_feed(struct doctor *d, struct str chunk)
{
    d->bytes += (uint64_t)chunk.n;
    while (chunk.n) {
        if (d->escape != ESCAPE_NONE) {
            chunk = skip_escape(d, chunk);
            continue;
        }
        const char *escape = memchr(chunk.p, ESCAPE, (size_t)chunk.n);
        ptrdiff_t plain = escape ? escape - chunk.p : chunk.n;
        append(d, str_slice(chunk, 0, plain));
        d->escape = escape ? ESCAPE_BEGUN : ESCAPE_NONE;
        chunk = str_slice(chunk, plain + (escape != NULL), chunk.n);
    }
}

void doctor_cut(struct doctor *d)
{
    d->cut = true;
}

// ------------------------------------------------------------------ the end

static bool comes_before(const struct doctor_finding *a, const struct doctor_finding *b)
{
    if (a->line != b->line)
        return a->line < b->line;
    return a->kind < b->kind;
}

static void insert(struct doctor_finding *findings, ptrdiff_t count, struct doctor_finding f)
{
    ptrdiff_t at = count;
    for (; at > 0 && comes_before(&f, &findings[at - 1]); at--)
        findings[at] = findings[at - 1];
    findings[at] = f;
}

static enum doctor_weight weight_of(const struct doctor_finding *f)
{
    return f->survived ? DOCTOR_WEIGHS_NOTHING : f->kind->weight;
}

static bool explains_better(const struct doctor_finding *f, const struct doctor_finding *cause)
{
    enum doctor_weight a = weight_of(f), b = weight_of(cause);
    bool root = f->kind == cause->kind && f->root && !cause->root;
    return a > b || (a == b && (root || is_another_story(cause, f)));
}

static const struct doctor_finding *find_cause(const struct doctor_finding *f, ptrdiff_t count)
{
    const struct doctor_finding *cause = NULL;
    for (ptrdiff_t i = 0; i < count; i++)
        if (!cause ? weight_of(&f[i]) > DOCTOR_WEIGHS_NOTHING : explains_better(&f[i], cause))
            cause = &f[i];
    return cause;
}

// "0-2, 5" of the bits that are set.
static uint64_t put_ranks(struct buf *b, const uint64_t *bits)
{
    uint64_t count = 0;
    int first = -1;
    for (int i = 0; i <= MOST_RANKS; i++) {
        bool set = i < MOST_RANKS && bits[i / 64] >> i % 64 & 1;
        count += set;
        if (set && first < 0)
            first = i;
        if (set || first < 0)
            continue;
        if (b->n < RANK_LIST_BYTES) {
            buf_put_z(b, b->n ? ", " : "");
            buf_printf(b, i - 1 == first ? "%d" : "%d-%d", first, i - 1);
        }
        first = -1;
    }
    buf_put_z(b, b->n < RANK_LIST_BYTES ? "" : ", ...");
    return count;
}

static struct doctor_finding finding_of(const struct doctor *d, struct group *g)
{
    g->first.survived = course_survived(&d->course, &g->first, g->first_place);
    g->last.survived = course_survived(&d->course, &g->last, g->last_place);
    bool first_explains = !g->first.survived || g->last.survived;
    struct doctor_finding f = first_explains ? g->first : g->last;
    if (g->mixed)
        f.rank = f.gpu = -1;
    return f;
}

// All findings of a kind know which ranks have one.
static ptrdiff_t insert_kind(struct doctor_finding *findings, ptrdiff_t count, struct doctor *d,
                             int kind, struct arena *a)
{
    struct buf list = buf_in(a);
    uint64_t ranks = d->ranks[kind] ? put_ranks(&list, d->ranks[kind]) : 0;
    struct str rank_list = ranks > 1 ? buf_str(&list) : STR_NONE;
    for (int i = 0; i < d->group_count[kind]; i++) {
        struct doctor_finding f = finding_of(d, &d->groups[kind][i]);
        f.ranks = ranks;
        f.rank_list = rank_list;
        insert(findings, count++, f);
    }
    return count;
}

struct doctor_result doctor_end(struct doctor *d, struct arena *a)
{
    struct doctor_finding *findings = NEW(a, struct doctor_finding, FINDINGS_MOST);
    ptrdiff_t count = 0;
    bool ended = d->window[d->filled - 1] == '\n';
    append(d, ended ? STR_NONE : STR("\n"));
    scan_window(d, d->filled);
    course_follow(&d->course, (struct str){d->window, d->filled}, d->dropped, d->filled);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        count = insert_kind(findings, count, d, kind, a);
    const struct doctor_finding *cause = find_cause(findings, count);
    struct progress steps = course_steps(&d->course, cause ? cause->phase : DOCTOR_PHASE_UNKNOWN);
    struct doctor_result result = {
        .findings = findings,
        .count = count,
        .cause = cause,
        .lines = line_at(d, d->filled) - 1,
        .bytes = d->bytes,
        .last_step = steps.step,
        .steps_total = steps.total,
        .cut = d->cut,
    };
    memcpy(result.said, d->course.said, sizeof result.said);
    return result;
}
