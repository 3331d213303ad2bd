// Inside the room: what the files of the table of settings are written with, and their rows, each
// list ended by a row without a name.
#ifndef FATHOM_JOB_TABLE_H
#define FATHOM_JOB_TABLE_H

#include "core/job/fields.h"

#define FIELD(member) {offsetof(struct job, member), sizeof(((struct job *)0)->member)}
#define WORDS(array)  .words = (array), .word_count = COUNT_OF(array)

// A choice is the word at its enum's value: none may be missing.
#define EACH(array, count) _Static_assert(COUNT_OF(array) == (count), "a value without a word")

extern const struct setting_def training_settings[], asked_settings[], task_settings[],
    serving_settings[];

#endif
