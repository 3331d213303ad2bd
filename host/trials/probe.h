// `fathom probe`: cells one after another, each hunted through with real trials.
#ifndef FATHOM_HOST_TRIALS_PROBE_H
#define FATHOM_HOST_TRIALS_PROBE_H

#include "core/command/command.h"
#include "core/settings/settings.h"

// Where a run tells what it does. A line ends with a line feed; a status replaces the one before
// and is empty when there is nothing to say.
struct probe_console {
    void *context;
    void (*line)(void *context, struct str text);
    void (*status)(void *context, struct str text); // NULL where nobody watches
};

// On an interruption or a trial that stops the search, the answer holds what is known and *e says
// why it ended.
bool probe_command(struct answer *a, const struct query *q, const struct probe_console *console,
                   struct error *e) MUST_USE;

#endif
