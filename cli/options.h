// The command line, read by the command and settings tables: "fathom COMMAND [operand] --name
// value". Nothing here knows a particular command or setting.
#ifndef FATHOM_CLI_OPTIONS_H
#define FATHOM_CLI_OPTIONS_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/command/command.h"
#include "core/settings/settings.h"

enum { MOST_REQUESTS = 16 };

struct options {
    const struct command *command;
    struct settings settings;
    struct str from[MOST_REQUESTS]; // --from FILE, as often as it is given
    int from_count;
    struct str alias; // an option of another program that was given, empty for none
    bool json, help, debug, version;
};

// Can be asked before anything else is read: whatever fails is told as JSON too.
bool options_want_json(int argc, const char *const *argv);

// json is set even when reading fails, so that the failure can be told in the way asked for.
bool options_read(struct options *o, struct arena *a, int argc, const char *const *argv,
                  struct error *e) MUST_USE;

// Adds what the options of another program mean where neither they nor a request file say it.
bool options_imply(struct options *o, struct error *e) MUST_USE;

#endif
