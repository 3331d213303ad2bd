// Sentences about trials.
#include "core/probe/tell.h"

#include "core/base/buf.h"
#include "core/base/units.h"

enum { MOST_DETAIL = 200 };

// A length that is tried although it is predicted to fail is said to be.
void tell_expectation(struct buf *b, const struct cell_plan *p)
{
    const struct probe_cell *c = p->cell;
    unsigned long long expected = (unsigned long long)c->expected;
    struct hunt_step first = hunt_next(&p->hunt, NULL, 0);
    buf_printf(b, "%.*s: ", STR_ARGS(p->cell->title));
    if (!c->predicted)
        buf_printf(b, "no prediction (%.*s)\n", STR_ARGS(c->unpredicted));
    else if (!expected)
        buf_printf(b, "predicted to fit no length from %llu tokens on%s\n",
                   (unsigned long long)first.context, c->known ? ", going on" : "");
    else if (expected < p->hunt.start)
        buf_printf(b,
                   "predicted %llu tokens, which is below the start: %llu is predicted to fail%s\n",
                   expected, (unsigned long long)first.context, c->known ? ", going on" : "");
    else
        buf_printf(b, "predicted %llu tokens%s\n", expected, c->known ? ", going on" : "");
}

void tell_refusal(struct buf *b, const struct cell_plan *p)
{
    buf_printf(b, "%.*s: not tried (%.*s)\n", STR_ARGS(p->cell->title), STR_ARGS(p->cell->refusal));
}

void tell_trial(struct buf *b, struct str title, const struct expected_trial *expected,
                const struct attempt_record *done)
{
    buf_printf(b, "%.*s: %llu tokens: %s", STR_ARGS(title), (unsigned long long)done->context,
               outcome_rows[done->outcome].title);
    if (done->peaks.reserved_bytes) {
        buf_put_z(b, ", reserved ");
        put_gib(b, done->peaks.reserved_bytes);
    }
    if (expected->known)
        buf_printf(b, ", predicted to %s", expected->fits ? "fit with " : "fail");
    if (expected->known && expected->fits)
        put_gib(b, expected->reserved_bytes);
    if (done->peaks.step_seconds > 0)
        buf_printf(b, ", a step in %.3f s", done->peaks.step_seconds);
    if (done->peaks.step_seconds > 0 && expected->step_seconds > 0)
        buf_printf(b, " (predicted: %.3f s)", expected->step_seconds);
    buf_printf(b, ", %.1f s", (double)(done->ended_ms - done->started_ms) / 1000);
    if (outcome_rows[done->outcome].verdict == LENGTH_UNDECIDED && done->detail.n) {
        buf_put_z(b, " (");
        put_plain(b, done->detail);
        buf_char(b, ')');
    }
    buf_char(b, '\n');
}

bool tell_interrupted(struct error *e)
{
    FAIL(e, CHILD, STR_NONE, "interrupted; every finished trial is kept");
    return HINT(e, "the same command goes on from there");
}

bool tell_whether_on(const struct cell_plan *p, struct str log, struct error *e)
{
    const struct hunt_step *end = &p->cell->end;
    if (end->state != HUNT_STOPPED || outcome_rows[end->reason].transient)
        return true;
    if (end->reason == OUTCOME_INTERRUPTED)
        return tell_interrupted(e);
    bool any_length = end->reason == OUTCOME_CONFIGURATION || end->reason == OUTCOME_DISK;
    struct str detail = p->cell->detail;
    detail = str_slice(detail, 0, detail.n < MOST_DETAIL ? detail.n : MOST_DETAIL);
    FAIL(e, CHILD, STR_NONE, "the trial of %llu tokens ended: %s%s%s%.*s",
         (unsigned long long)end->context, outcome_rows[end->reason].title,
         any_length ? "; another length would not change it" : "", detail.n ? ": " : "",
         STR_ARGS(detail));
    return HINT(e, "its log is %.*s", STR_ARGS(log));
}

// Cells whose trials failed again and again for passing reasons have no answer.
bool tell_whether_done(const struct probe_run *r, struct error *e)
{
    bool possible = false;
    for (ptrdiff_t i = 0; i < r->story.count; i++)
        possible |= r->story.cells[i].possible;
    *e = possible ? *e : r->refusal;
    if (e->code)
        return false;
    for (ptrdiff_t i = 0; i < r->story.count; i++) {
        const struct probe_cell *c = &r->story.cells[i];
        if (c->settled && c->end.state == HUNT_STOPPED)
            return FAIL(e, CHILD, STR_NONE, "%.*s stays undecided: %s at %llu tokens",
                        STR_ARGS(c->title), outcome_rows[c->end.reason].title,
                        (unsigned long long)c->end.context);
    }
    return true;
}
