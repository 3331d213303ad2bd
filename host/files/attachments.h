// The files of an answer, put where the user wants them.
#ifndef FATHOM_HOST_FILES_ATTACHMENTS_H
#define FATHOM_HOST_FILES_ATTACHMENTS_H

#include "core/command/command.h"

// Makes the answer's folder where it names one. Where files must be kept, all are looked for before
// the first is written.
bool attachments_write(struct arena scratch, const struct answer *a, struct error *e) MUST_USE;

#endif
