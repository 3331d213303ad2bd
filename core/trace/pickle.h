// Python pickles, as far as torch's memory snapshots use them: dictionaries, lists, tuples, texts
// and numbers. An instruction that would import, call or build anything else is refused before it
// could mean something: nothing a pickle says is ever executed.
#ifndef FATHOM_TRACE_PICKLE_H
#define FATHOM_TRACE_PICKLE_H

#include "core/base/error.h"
#include "core/base/value.h"

// Protocols 2 to 5. Texts point into `bytes`, which must outlive the tree.
bool pickle_parse(struct value *root, struct arena *a, struct str bytes, struct str name,
                  struct error *e) MUST_USE;

// Whether the bytes begin as such a pickle does.
bool pickle_begins(struct str bytes);

#endif
