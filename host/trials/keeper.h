// A command under supervision. Between Fathom and the command stands a keeper process in a session
// of its own, to which every orphan of the command falls (subreaper). When the command ends, when
// Fathom says so, or when Fathom dies (end of file on a pipe), the keeper ends every descendant,
// also those with sessions of their own: SIGTERM, a grace, SIGKILL until none is left. Only then is
// the trial over. When the keeper itself is killed, its orphans fall to Fathom, which ends them the
// same way.
#ifndef FATHOM_HOST_TRIALS_KEEPER_H
#define FATHOM_HOST_TRIALS_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"

// A process that no later one with the same number is taken for.
struct process {
    int64_t pid, started; // in ticks since the machine's start
};

bool process_is_alive(struct process p);

// Continues a keeper that was stopped: it would neither hear nor end anything.
void keeper_rouse(struct process keeper);

struct keeper_job {
    const char *const *arguments;   // ends with NULL
    const char *const *environment; // "NAME=value" to set and "NAME" to unset, ends with NULL
    struct str log;                 // what the command writes goes here; folders are made
    uint64_t timeout_ms;            // 0: none
    uint64_t grace_ms;              // between SIGTERM and SIGKILL
    uint64_t farewell_ms;           // of that, what a command gets even after a second interruption
    int interrupts;                 // a signalfd: the first signal ends, the second kills; or -1
    pid_t spared;                   // a child of ours that is not the trial's; 0: none
};

// Told while the command runs. Any may be NULL.
struct keeper_watch {
    void *context;
    bool (*started)(void *context, struct process keeper, struct error *e);
    void (*running)(void *context, struct process command); // which leads a session of its own
    void (*output)(void *context, struct str bytes);
    void (*tick)(void *context, uint64_t elapsed_ms); // about once a second
    bool (*waits)(void *context); // for its turn: the time does not count against the timeout
};

// A command that had ended before it was to be ended has its own status, whatever it left behind.
enum keeper_end {
    KEEPER_EXITED,
    KEEPER_SIGNALLED,
    KEEPER_TIMED_OUT,
    KEEPER_INTERRUPTED,
    KEEPER_LOST, // the keeper was killed; how the command ended is not known
};

struct keeper_result {
    enum keeper_end end;
    int status;       // exit status or signal, of the command itself
    bool interrupted; // while anything of it still ran
    uint64_t elapsed_ms, log_bytes;
    uint64_t oom_kills; // by the kernel in our control group meanwhile
};

// Fails where the command cannot be started or the log cannot be written. The watch may take from
// the same arena.
bool keeper_run(struct keeper_result *r, struct arena *a, const struct keeper_job *job,
                const struct keeper_watch *watch, struct error *e) MUST_USE;

// The same without waiting: a server that lives until keeper_end. Its output goes to the log
// directly.
struct keeper {
    pid_t pid;
    int control; // closing it ends everything
};
bool keeper_begin(struct keeper *k, struct arena scratch, const struct keeper_job *job,
                  struct error *e) MUST_USE;
bool keeper_is_alive(struct keeper *k); // whether its command is; where not, ends what is left
void keeper_end(struct keeper *k);

uint64_t monotonic_ms(void);

#endif
