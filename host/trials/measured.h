// What a store of trials knows of the configuration that is to be predicted, added to the settings
// under "measured.".
#ifndef FATHOM_HOST_TRIALS_MEASURED_H
#define FATHOM_HOST_TRIALS_MEASURED_H

#include "core/settings/settings.h"

// Looks into the store that the settings name, or into logs/probe.db where that is there.
bool measured_resolve(struct settings *s, struct error *e) MUST_USE;

#endif
