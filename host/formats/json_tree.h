// A JSON document as a tree of values, for documents whose shape matters more than their keys (a
// memory snapshot); settings and configurations are flattened instead (json_in.h).
#ifndef FATHOM_HOST_FORMATS_JSON_TREE_H
#define FATHOM_HOST_FORMATS_JSON_TREE_H

#include "core/base/error.h"
#include "core/base/value.h"

// A later key wins. Texts point into `text`, which must outlive the tree.
bool json_tree(struct value *root, struct arena *a, struct str text, struct str source,
               struct error *e) MUST_USE;

#endif
