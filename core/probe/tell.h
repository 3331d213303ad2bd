// What is said while a run goes on: sentences about cells and trials, and why it ends.
#ifndef FATHOM_PROBE_TELL_H
#define FATHOM_PROBE_TELL_H

#include "core/probe/plan.h"

// Lines, each with its line feed.
void tell_expectation(struct buf *b, const struct cell_plan *p);
void tell_refusal(struct buf *b, const struct cell_plan *p);
void tell_trial(struct buf *b, struct str title, const struct expected_trial *expected,
                const struct attempt_record *done);

bool tell_interrupted(struct error *e); // fails

// Whether the run goes on after this cell; else why it ends. `log` is of the newest trial.
bool tell_whether_on(const struct cell_plan *p, struct str log, struct error *e) MUST_USE;

// Fails where nothing was possible, or a cell stays without an answer.
bool tell_whether_done(const struct probe_run *r, struct error *e) MUST_USE;

#endif
