// JSON text into jansson's tree, with the errors told our way. For the files that walk such trees:
// json_in.c and safetensors.c, the only ones that know jansson; json_tree.c reads by itself.
#ifndef FATHOM_HOST_FORMATS_JSON_PARSE_H
#define FATHOM_HOST_FORMATS_JSON_PARSE_H

#include <jansson.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

// No document we read has a reason to be deeper; what walks a tree stops there.
enum { JSON_MAX_NESTING = 32 };
bool json_too_deep(struct str where, struct error *e); // fails with the sentence for it

// NULL where it failed. The caller gives the tree back with json_decref.
json_t *json_parse(struct arena scratch, struct str text, struct str source, struct error *e);

#endif
