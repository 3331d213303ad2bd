// Configurations of frameworks as requests: what files of Accelerate, DeepSpeed, TRL, Trinity-RFT,
// verl and slime say of a job, as settings. A key that changes memory and is not known is refused,
// never read past. Several files may describe one job; what follows from all of them is concluded
// last.
#ifndef FATHOM_EMIT_FOREIGN_H
#define FATHOM_EMIT_FOREIGN_H

#include "core/settings/settings.h"

enum { FOREIGN_NOTES = 8, FOREIGN_REFUSALS = 16, FOREIGN_COMMANDS = 16, FOREIGN_LEFT = 12 };

// A key that is not modelled, unless the user gives the option that stands in for it.
struct foreign_refusal {
    struct str option, said, why, where;
};

struct foreign {
    const char *format; // of the last file, NULL: a request of our own
    const char *recipe; // whose step the files mean, NULL for the default
    struct settings facts;
    struct str notes[FOREIGN_NOTES]; // what a user should know of the reading
    int note_count;
    struct foreign_refusal refusals[FOREIGN_REFUSALS];
    int refusal_count;
    uint64_t machines;   // 0: not said
    uint64_t processes;  // that train, on all machines; 0: not said
    struct str where;    // of the number of processes
    const char *trainer; // whose files were read, as a recipe's name; NULL: none yet
    ptrdiff_t taken;     // keys that said something, and commands
    // Commands, and requests of our own behind them: read when all files were, as flags win.
    struct settings commands[FOREIGN_COMMANDS];
    int command_count;
    struct str freezes_vision; // where a file says, or means, that a vision tower is not trained
    struct str left[FOREIGN_LEFT]; // keys that say how to train, and nothing of memory
    int left_count;
};

struct foreign foreign_in(struct arena *a);

// Adds what `file`, a flattened document, sets; a later file wins, and what it contradicts is
// noted. A request of our own is taken as it is.
bool foreign_read(struct settings *out, struct foreign *f, const struct settings *file,
                  struct error *e) MUST_USE;

// Whether a key of a file names another one of the job, of a kind that was not read yet.
bool foreign_wants(const struct foreign *f, struct str key);

// What follows from the files together, and from what the user gave beside them.
bool foreign_conclude(struct settings *out, struct foreign *f, const struct settings *given,
                      struct error *e) MUST_USE;

// A bare card's name becomes as many of them as the file has processes.
bool foreign_gpu(struct settings *s, const struct foreign *f, struct error *e) MUST_USE;

// What the files leave to their framework, once model and machine are known: that a vision tower is
// frozen, and where another framework's step is predicted, or its files written, the choices of
// their own. `more` gets what `s` does not have.
bool foreign_settle(struct settings *more, const struct settings *s, const struct foreign *f,
                    struct error *e) MUST_USE;

// Says which keys emit does not carry over: it has values of its own for them.
void foreign_note_left(struct foreign *f, struct arena *a);

// A launch script as a document: overrides of verl as they are, slime's arguments and emit's own,
// what a trainer gets on its command line, what is exported, what is sourced, and the model that
// yarn.py copies.
bool script_flatten(struct settings *s, struct str text, struct str source,
                    struct error *e) MUST_USE;

#endif
