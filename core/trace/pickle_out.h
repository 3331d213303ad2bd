// Writes a Python pickle of plain values (protocol 2), such as torch's memory snapshots are. What
// recurs, texts always and others where the caller says so, is written once and referred to then.
#ifndef FATHOM_TRACE_PICKLE_OUT_H
#define FATHOM_TRACE_PICKLE_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

struct pickle_memo {
    struct str key;
    uint32_t number;
};

struct pickle_out {
    struct buf *out;
    struct pickle_memo *memo; // a hash table, at most half full
    ptrdiff_t memo_capacity;
    uint32_t memo_count;
};

struct pickle_out pickle_out_to(struct buf *out);
void pickle_out_end(struct pickle_out *p);

// Keys and values follow each other.
void pickle_out_dict(struct pickle_out *p);
void pickle_out_dict_end(struct pickle_out *p);

// Readers keep all items since the last of these in memory: a long list is given in pieces.
void pickle_out_list(struct pickle_out *p);
void pickle_out_list_piece(struct pickle_out *p);
void pickle_out_list_end(struct pickle_out *p);

void pickle_out_text(struct pickle_out *p, struct str text);
void pickle_out_u64(struct pickle_out *p, uint64_t value);
void pickle_out_bool(struct pickle_out *p, bool value);
void pickle_out_pair(struct pickle_out *p); // of the last two values

// Refers to what was remembered under this key; false: it has to be written, and may be remembered.
bool pickle_out_recall(struct pickle_out *p, struct str key);
void pickle_out_remember(struct pickle_out *p, struct str key);

void pickle_out_key(struct pickle_out *p, const char *key);
void pickle_out_field_u64(struct pickle_out *p, const char *key, uint64_t value);
void pickle_out_field_text(struct pickle_out *p, const char *key, struct str value);

#endif
