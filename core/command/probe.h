// What `fathom probe` answers, once the host has made the trials or read the store.
#ifndef FATHOM_COMMAND_PROBE_H
#define FATHOM_COMMAND_PROBE_H

#include "core/command/command.h"
#include "core/probe/options.h"
#include "core/report/probe.h"

// Negative where nothing was found to fit.
void probe_answer_story(struct answer *a, const struct query *q, const struct probe_story *story);

// A dry run has told its commands already, as it planned them; its object has them too.
void probe_answer_plan(struct answer *a, const struct query *q, const struct probe_story *story);

void probe_answer_records(struct answer *a, const struct query *q, enum export_form form,
                          struct records records);

#endif
