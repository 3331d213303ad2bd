// How far the run had come and what it was at, as its lines report it on the way. Only what a
// traceback does not tell is taken from here.
#include "core/base/num.h"
#include "core/doctor/internal.h"

enum { STEP_BEHIND = COURSE_BEHIND_BYTES };

static bool is_unfinished(const struct progress *g)
{
    return g->found && g->bar && g->step < g->total;
}

// A bar that begins while another has not ended counts something inside of it, until that one is
// drawn again.
static void nest(struct course *c, const struct progress *from, const struct progress *to)
{
    if (!from->found || from->total == to->total)
        return;
    bool back = c->nested && to->total == c->outer.total;
    c->nested = !back && to->bar && is_unfinished(from);
    if (!back)
        c->outer = *from;
}

static void advance(struct course *c, const struct progress *g, uint64_t start)
{
    if (g->earlier >= 0)
        c->earlier_place = start + (uint64_t)g->earlier;
    else if (progress_went_on(&c->progress, g))
        c->earlier_place = c->progress_place;
    else if (g->total != c->progress.total || g->step < c->progress.step)
        c->earlier_place = 0;
    c->progress = *g;
    c->progress_place = start + (uint64_t)g->at;
}

void course_follow(struct course *c, struct str window, uint64_t dropped, ptrdiff_t place)
{
    ptrdiff_t from = place > STEP_BEHIND ? place - STEP_BEHIND : 0;
    uint64_t sought = c->sought > dropped ? c->sought - dropped : 0;
    if ((uint64_t)from < sought)
        from = (ptrdiff_t)sought;
    if (from >= place)
        return;
    struct progress_between between;
    struct progress g = progress_last(&between, str_slice(window, from, place));
    bool changed = between.last.found && !between.closed;
    c->sought = dropped + (uint64_t)place;
    if (!g.found)
        return;
    if (changed)
        nest(c, &c->progress, &between.last);
    nest(c, changed ? &between.last : &c->progress, &g);
    advance(c, &g, dropped + (uint64_t)from);
}

void course_begin(struct course *c)
{
    c->progress = (struct progress){.step = -1, .total = -1};
    c->outer = c->then = c->progress;
    for (int i = 0; i < DOCTOR_SAID_COUNT; i++)
        c->said[i] = -1;
}

// ------------------------------------------------------------------ what lines say

// "15,011".
static int64_t number_at(struct str text)
{
    int64_t value = 0;
    ptrdiff_t i = 0;
    for (; i < text.n && i < 16 && (char_is_digit(text.p[i]) || text.p[i] == ','); i++)
        if (text.p[i] != ',')
            value = value * 10 + (text.p[i] - '0');
    return i > 0 && char_is_digit(text.p[0]) ? value : -1;
}

void course_hear(struct course *c, const struct symptom *s, struct str rest, uint64_t place)
{
    if (s->flags & SYMPTOM_PHASE) {
        c->phase = s->phase;
        c->phase_place = place;
        c->then = c->nested ? c->outer : c->progress;
        return;
    }
    bool elsewhere = s->phase && c->phase != s->phase;
    int64_t number = number_at(str_slice(rest, str_from(s->anchor).n, rest.n));
    if (number >= 0 && !elsewhere)
        c->said[s->said] = number;
}

// Whether the run went on after the line that named a phase.
static bool is_over(const struct course *c)
{
    if (c->progress_place <= c->phase_place)
        return false;
    if (c->then.found && c->then.total == c->progress.total)
        return c->progress.step > c->then.step;
    return c->phase != DOCTOR_PHASE_EVALUATION; // whose own bar it is
}

enum doctor_phase course_phase(const struct course *c)
{
    return c->phase && !is_over(c) ? c->phase : DOCTOR_PHASE_UNKNOWN;
}

// An evaluation's bar counts its batches.
struct progress course_steps(const struct course *c, enum doctor_phase phase)
{
    if (phase != DOCTOR_PHASE_EVALUATION)
        return c->progress;
    if (c->nested)
        return c->outer;
    bool heard = c->phase == DOCTOR_PHASE_EVALUATION && c->progress_place > c->phase_place;
    if (heard && c->progress.total != c->then.total)
        return c->then;
    bool after_another = c->outer.found && c->outer.total != c->progress.total;
    return after_another ? (struct progress){.step = -1, .total = -1} : c->progress;
}

// ------------------------------------------------------------------ what came after

bool course_survived(const struct course *c, const struct doctor_finding *f, uint64_t place)
{
    struct progress before = {.step = f->step, .total = f->steps_total, .found = f->step >= 0};
    bool same_count = before.found && before.total == c->progress.total;
    if (!c->progress.found || c->progress_place <= place)
        return false;
    if (same_count && !progress_went_on(&before, &c->progress))
        return false;
    return c->earlier_place > place || (same_count && !c->progress.bar);
}
