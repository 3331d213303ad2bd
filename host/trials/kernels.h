// `fathom probe --kernels`: the card of this machine measured by share/torch_kernels.py, what it
// says kept in the user's data folder, and found there again by predictions.
#ifndef FATHOM_HOST_TRIALS_KERNELS_H
#define FATHOM_HOST_TRIALS_KERNELS_H

#include "host/trials/probe.h"

bool kernels_command(struct answer *a, const struct query *q, const struct probe_console *console,
                     struct error *e) MUST_USE;

// What was measured of the cards that are asked about, among the settings.
bool kernels_resolve(struct settings *s, struct error *e) MUST_USE;

#endif
