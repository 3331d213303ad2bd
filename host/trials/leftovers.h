// Trials that outlived both their Fathom and their keeper. Everything that a run starts has the
// run's mark in its environment, and the store has it too, with the process that leads the trial's
// session.
#ifndef FATHOM_HOST_TRIALS_LEFTOVERS_H
#define FATHOM_HOST_TRIALS_LEFTOVERS_H

#include "host/system/interrupts.h"
#include "host/trials/probe.h"
#include "host/trials/store.h"

// Puts a mark of this run's own into its environment, and says it: "FATHOM_RUN=...".
struct str run_mark(struct arena *a);

struct leftovers {
    struct store *store;
    struct arena *arena;
    const struct probe_console *console;
    const struct interrupts *interrupts; // end the wait
    bool end;                            // else they are named, and nothing starts beside them
    uint64_t grace_ms;
};

// Fails where such a trial runs and is not to be ended, or cannot be.
bool leftovers_settle(const struct leftovers *l, struct error *e) MUST_USE;

#endif
