// Text made from the command and settings tables: help, the manual page, shell completions. Adding
// a row there changes all of them. What they share is here; each answer is its own file.
#ifndef FATHOM_MANUAL_MANUAL_H
#define FATHOM_MANUAL_MANUAL_H

#include "core/base/buf.h"
#include "core/command/command.h"

// What the program is asked.
#define MANUAL_QUESTIONS                                                                         \
    "what training configuration of this language model fits on these GPUs, how long a context " \
    "can it train, and why did a run die"

// "fathom models [MODEL] [options]"
void put_usage(struct buf *b, const struct command *c);

// A text-only answer: as it is, or under the key "text" when JSON is wanted.
void answer_text(struct answer *a, const struct query *q, struct str text);

#endif
