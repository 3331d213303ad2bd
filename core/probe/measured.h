// A trial of the very configuration that is predicted, among those of a store.
#ifndef FATHOM_PROBE_MEASURED_H
#define FATHOM_PROBE_MEASURED_H

#include "core/base/settings.h"
#include "core/hardware/hardware.h"
#include "core/probe/record.h"

struct measured_question {
    const struct settings *settings; // of a prediction
    const struct hardware *hardware;
    uint64_t context;
};

// The newest that decided about this length, or NULL.
const struct attempt_record *measured_find(const struct cell_record *cells, ptrdiff_t count,
                                           const struct measured_question *q);

#endif
