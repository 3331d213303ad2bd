// A command that starts a trainer, word by word: what stands behind the script ("sft.py") or the
// task ("trl dpo") are keys of the trainer's files, what stands before it is its launcher's.
#ifndef FATHOM_FOREIGN_TRAINER_COMMAND_H
#define FATHOM_FOREIGN_TRAINER_COMMAND_H

#include "core/settings/settings.h"

struct trainer_command {
    struct settings said; // so far: keys of files, and those of its launcher under "launcher."
    struct setting last;  // the last key, with its first value
    int values;           // how many it has; those from the second on are in `said`
    const char *launcher; // what starts the program, NULL: not known
    struct str script;    // what is started: "sft", "axolotl.cli.train"
    struct str where;     // it stands
    bool awaits_task;     // behind "trl"
    bool awaits_module;   // behind "-m"
    bool runs;            // behind the script or the task
    bool hands_on;        // behind "--": what is the launcher's again
};

struct trainer_command trainer_command_in(struct arena *a);

// The next word of a command, with its place.
bool trainer_command_word(struct trainer_command *c, struct str word, struct str where,
                          struct error *e) MUST_USE;

// At the end of a command: whether a trainer was told something, which is then in `said`, with
// what started it: "launcher.by", "launcher.program", and as far as its name says it
// "launcher.trainer" and "launcher.task".
bool trainer_command_is_meant(struct trainer_command *c, bool *meant, struct error *e) MUST_USE;

#endif
