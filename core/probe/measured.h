// What was measured, beside what is predicted: the settings with which a prediction answers for a
// trial of a store, and the trial of the very configuration that is predicted.
#ifndef FATHOM_PROBE_MEASURED_H
#define FATHOM_PROBE_MEASURED_H

#include "core/probe/record.h"
#include "core/settings/settings.h"

// What `fathom predict` takes for the configuration of this trial, the card being the one that was
// meant (--as). False where there is no such prediction, and why.
bool measured_settings(struct settings *out, const struct cell_record *c,
                       const struct attempt_record *t, struct error *e) MUST_USE;

// The same for the very trial: with the limit that torch was kept to then.
bool measured_trial_settings(struct settings *out, const struct cell_record *c,
                             const struct attempt_record *t, struct error *e) MUST_USE;

struct measured {
    const struct cell_record *cell; // NULL: none was found
    const struct attempt_record *attempt;
};

// The newest that decided about the length and means the same as `settings`, which are those of a
// prediction: the same model, machine, length and training, however it is written. Where they name
// no version of torch, any is meant.
struct measured measured_find(struct arena scratch, const struct cell_record *cells,
                              ptrdiff_t count, const struct settings *settings);

// A setting of the trial, such as "as" or "one-gpu"; empty where it was not given.
struct str measured_setting(const struct cell_record *c, const char *name);

#endif
