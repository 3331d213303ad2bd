// Every trial ever started, in a SQLite file. A trial is written down as running before it starts,
// its steps as they are reported, and its end in one transaction, so that a crash, kill -9 or a
// power cut loses at most the trial that ran, and of that not the steps it had made. One process
// at a time works with a store; others may read it.
//
// Tables: `cell`, one configuration whose longest context is hunted for; `attempt`, one trial of
// it; `step`, one training step of that. The schema's version is the file's user_version; older
// files are brought up to date by whoever works with them.
#ifndef FATHOM_HOST_TRIALS_STORE_H
#define FATHOM_HOST_TRIALS_STORE_H

#include "core/probe/hunt.h"
#include "core/probe/record.h"
#include "host/trials/keeper.h"

struct store;

// STORE_WORK makes the file where there is none, and takes the lock. The others never change it;
// STORE_GLANCE does not wait long for a program that holds it.
enum store_access { STORE_GLANCE, STORE_READ, STORE_WORK };

bool store_open(struct store **s, struct arena *a, struct str path, enum store_access access,
                struct error *e) MUST_USE;
void store_close(struct store *s); // NULL is fine

// The cell of this key, added where there is none.
bool store_cell(int64_t *id, struct store *s, const struct cell_record *c,
                struct error *e) MUST_USE;

// ------------------------------------------------------------------ one trial, in this order

bool store_begin(int64_t *id, struct store *s, int64_t cell, const struct attempt_record *a,
                 struct error *e) MUST_USE;
bool store_keeper(struct store *s, int64_t attempt, struct process keeper,
                  struct error *e) MUST_USE;
// What the environment of all its processes has; then the first of them, which leads their session.
bool store_mark(struct store *s, int64_t attempt, struct str mark, struct error *e) MUST_USE;
bool store_group(struct store *s, int64_t attempt, struct process leader, struct error *e) MUST_USE;
// Once the trainer has said where and with what it runs: versions, gpu and total_bytes of `a`.
bool store_started(struct store *s, int64_t attempt, const struct attempt_record *a,
                   struct error *e) MUST_USE;
// Of ranks that report the same step the largest values are kept.
bool store_step(struct store *s, int64_t attempt, const struct step_record *step,
                struct error *e) MUST_USE;
bool store_finish(struct store *s, int64_t attempt, const struct attempt_record *a,
                  struct error *e) MUST_USE;

// ------------------------------------------------------------------ what is known

// The trials of a cell that decided about their length, in their order, and after them those of the
// newest length that failed for passing reasons.
bool store_trials(struct trials *trials, struct store *s, struct arena *a, int64_t cell,
                  struct error *e) MUST_USE;

// Whether an attempt has its log there.
bool store_has_log(bool *known, struct store *s, struct str log, struct error *e) MUST_USE;

// A keeper that is still ending the trial of a Fathom that died; its pid is 0 where there is none.
bool store_unsettled(struct process *keeper, struct store *s, struct error *e) MUST_USE;

// Trials that were running when their Fathom died: waits until their keepers have ended what they
// kept, and marks them interrupted. Their steps stay.
bool store_settle(ptrdiff_t *count, struct store *s, struct error *e) MUST_USE;

// By what the processes of a trial are known when nobody keeps it any more.
struct traces {
    uint64_t context;
    int64_t started_ms; // since 1970
    struct str log, mark;
    struct process leader;
};

// Of the trials that were running when their Fathom died and of the newest, whose Fathom may have
// had a server.
bool store_traces(struct traces **out, ptrdiff_t *count, struct store *s, struct arena *a,
                  struct error *e) MUST_USE;

// What to read; 0 is any.
struct store_part {
    uint64_t gpus, context;
};

struct store_content {
    struct cell_record *cells;
    ptrdiff_t count;
};

// Cells in the order in which they were added, each with its attempts and their steps.
bool store_read(struct store_content *out, struct store *s, struct arena *a, struct store_part part,
                struct error *e) MUST_USE;

#endif
