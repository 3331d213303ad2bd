// A document under construction: a tree of keys with values, each with an optional note. One tree,
// two writers: YAML carries the notes as comments, JSON has none and leaves them out.
#ifndef FATHOM_EMIT_DOCUMENT_H
#define FATHOM_EMIT_DOCUMENT_H

#include "core/base/buf.h"
#include "core/base/str.h"

enum node_kind {
    NODE_MAP,
    NODE_LIST,
    NODE_TEXT,    // quoted where it must be
    NODE_LITERAL, // a number, true, false, null: written as it is
};

struct node {
    enum node_kind kind;
    struct str key; // in a map
    struct str value;
    struct str note; // written above; lines are broken as needed
    struct node *first, *last, *next;
};

struct node *document_in(struct arena *a); // an empty map

// The node at "a.b.0.c", made with the maps and lists (where the next part is a number) above it.
struct node *document_at(struct node *root, struct arena *a, struct str path);

void document_yaml(struct buf *out, const struct node *root);
void document_json(struct buf *out, const struct node *root);

// One scalar, as YAML reads it back as the same text.
void put_yaml_text(struct buf *out, struct str text);

// `text` as comment lines: "# " after `indent` spaces, broken at line feeds and spaces. Other
// control characters become spaces.
void put_comment(struct buf *out, struct str text, ptrdiff_t indent);

#endif
