// Command lines that start a trainer, as "accelerate launch --config_file F sft.py --max_length N"
// or "trl dpo --max_length N": what stands behind the script are keys of the trainer's files.
#ifndef FATHOM_FOREIGN_TRAINER_COMMAND_H
#define FATHOM_FOREIGN_TRAINER_COMMAND_H

#include "core/settings/settings.h"

struct trainer_command {
    struct settings said;  // so far: keys of files, and those of its launcher under "launcher."
    struct setting last;   // the last key, with its first value
    int values;            // how many it has; those from the second on are in `said`
    bool names_task, runs; // behind "trl", and behind the script or the task
};

struct trainer_command trainer_command_in(struct arena *a);

// The next word of a command, with its place.
bool trainer_command_word(struct trainer_command *c, struct str word, struct str where,
                          struct error *e) MUST_USE;

// At the end of a command: whether a trainer was told something, which is then in `said`.
bool trainer_command_is_meant(struct trainer_command *c, bool *meant, struct error *e) MUST_USE;

#endif
