// Histories as text: "action address(hex) size stream", one event a line, as torch's snapshot names
// the actions. Two more actions are ours: empty_cache and reset_peaks, which no recording shows.
#ifndef FATHOM_TRACE_TEXT_H
#define FATHOM_TRACE_TEXT_H

#include "core/base/buf.h"
#include "core/trace/trace.h"

// Appends the events of `text` to an empty trace and links them; `name` stands in messages. Tags,
// which the text does not carry, are the event's position in the text, from 1.
bool trace_parse(struct trace *t, struct str text, struct str name, struct error *e) MUST_USE;

void trace_write(const struct trace *t, struct buf *out);

#endif
