// Command lines that answers name.
#ifndef FATHOM_COMMAND_LINE_H
#define FATHOM_COMMAND_LINE_H

#include "core/command/command.h"

// "fathom predict --model ...", as a shell reads it: of the settings those that the command takes.
struct str command_line(struct arena *a, const char *name, const struct settings *s);

#endif
