// One trial: its command built, written down as running, kept until it ends, classified, and
// written down again.
#ifndef FATHOM_HOST_TRIALS_PROBE_TRIAL_H
#define FATHOM_HOST_TRIALS_PROBE_TRIAL_H

#include "core/probe/plan.h"
#include "host/trials/probe.h"
#include "host/trials/store.h"

struct trial_run {
    const struct probe_options *options;
    const struct probe_console *console;
    struct store *store;
    int64_t cell;
    struct str title; // "Qwen3-0.6B, 2 GPUs, sp 2"
    struct str mark;  // in the environment of all that this run starts
    int interrupts;   // a signalfd
    pid_t spared;     // the keeper of the torch worker's server, 0 where there is none
    struct planned_trial planned;
    struct arena scratch; // of the readers, apart from the arena that results are taken from
};

struct trial_end {
    struct attempt_record record; // without an id where the trial was not even written down
    bool interrupted;             // while it ran, however it ended itself
};

// Texts of the record are taken from `a`.
bool trial_run(struct trial_end *out, struct arena *a, const struct trial_run *run,
               struct error *e) MUST_USE;

#endif
