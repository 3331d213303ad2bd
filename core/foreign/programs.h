// Whose trainer a program is, by the names that libraries give their scripts and commands and by
// what it is told.
#ifndef FATHOM_FOREIGN_PROGRAMS_H
#define FATHOM_FOREIGN_PROGRAMS_H

#include "core/settings/settings.h"

struct program {
    const char *name;    // the script's begins so: "sft" is sft.py and sft_vlm.py
    const char *trainer; // a recipe's name
    const char *task;    // NULL: the trainer's file says it, or none is modelled
    bool unmodelled;
};

// NULL where the name says nothing.
const struct program *program_find(struct str name);

// Where its name does not tell: by keys that only one trainer has, else NULL.
const char *program_by_keys(struct str script, const struct settings *said);

// "accelerate", "torchrun", ... where the word starts programs, else NULL.
const char *launcher_find(struct str word);
const char *launcher_of_module(struct str module);

// Under which section of its file Accelerate has a flag of its launcher: "fsdp_config.".
const char *launcher_section(struct str flag);

// Whether `trl` hands this flag to Accelerate's launcher.
bool launcher_takes(struct str flag);

#endif
