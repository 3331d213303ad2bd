// Writes one JSON value into a buf: escapes, keeps 64-bit integers exact, indents by two. The
// caller opens and closes objects and arrays; a mismatch is a defect and traps.
#ifndef FATHOM_BASE_JSON_OUT_H
#define FATHOM_BASE_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

enum { JSON_OUT_MAX_DEPTH = 32 };

struct json_out {
    struct buf *out;
    int depth;
    bool has_items[JSON_OUT_MAX_DEPTH];
    bool after_key;
};

struct json_out json_out_to(struct buf *out);
void json_out_end(struct json_out *j); // everything must be closed; ends the line

void json_out_object(struct json_out *j);
void json_out_object_end(struct json_out *j);
void json_out_array(struct json_out *j);
void json_out_array_end(struct json_out *j);

void json_out_key(struct json_out *j, const char *key);
void json_out_key_str(struct json_out *j, struct str key);
void json_out_str(struct json_out *j, struct str value); // invalid UTF-8 becomes U+FFFD
void json_out_u64(struct json_out *j, uint64_t value);
void json_out_double(struct json_out *j, double value); // six significant digits; not finite: null
void json_out_bool(struct json_out *j, bool value);
void json_out_null(struct json_out *j);
void json_out_literal(struct json_out *j, struct str value); // a number, true or false, as it is

// key and value in one call
void json_out_field_str(struct json_out *j, const char *key, struct str value);
void json_out_field_u64(struct json_out *j, const char *key, uint64_t value);
void json_out_field_bool(struct json_out *j, const char *key, bool value);

#endif
