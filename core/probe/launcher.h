// How a trial's command gets to run: here, or as a job of a scheduler. A launcher wraps the command
// in another one that starts the job, shows its output, and ends with its status; everything else
// about trials stays the same.
#ifndef FATHOM_PROBE_LAUNCHER_H
#define FATHOM_PROBE_LAUNCHER_H

#include "core/probe/options.h"

bool launcher_wrap(struct launch *l, struct arena *a, enum launcher launcher,
                   const struct trial_request *r, struct error *e) MUST_USE;

#endif
