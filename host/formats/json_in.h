// JSON from outside becomes flat settings: {"a": {"b": [1, true]}} gives a.b.0 = 1 and
// a.b.1 = true. null stays "null", for it can mean more than an absent key; an empty array
// stays "[]"; an empty object gives nothing.
// Parsing is jansson's; this file and safetensors.c are the only ones that know it.
#ifndef FATHOM_HOST_FORMATS_JSON_IN_H
#define FATHOM_HOST_FORMATS_JSON_IN_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/str.h"
#include "core/settings/settings.h"

// Adds the document's values under prefix + key; each one's place is `source`. Duplicate keys,
// nesting beyond 32 levels and a top level that is not an object are refused. Integers are exact;
// NaN and Infinity, which Python writes although JSON has no such numbers, give nothing.
bool json_flatten(struct settings *s, struct str text, struct str prefix, struct str source,
                  struct error *e) MUST_USE;

#endif
