// YAML from outside becomes flat settings, by the same rules as JSON (json_in.h), and each value
// carries its own place, "request.yaml:3:7". Parsing is libyaml's; yaml_in.c is the only file that
// knows it. Of YAML only plain data is taken: no anchors, aliases or tags, one document.
#ifndef FATHOM_HOST_FORMATS_YAML_IN_H
#define FATHOM_HOST_FORMATS_YAML_IN_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/str.h"
#include "core/settings/settings.h"

// Adds the document's values; an empty document adds nothing. Scalars keep the text the user wrote
// (yes stays "yes"); an unquoted null, ~ or nothing counts as absent. Two values under one flat key
// are refused, however they are spelled ("a.b: 1" beside "a: {b: 2}").
bool yaml_flatten(struct settings *s, struct str text, struct str source, struct error *e) MUST_USE;

#endif
