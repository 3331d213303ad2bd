// A document as a tree of plain values: what a JSON file and a pickle of plain containers have in
// common. Readers of outside bytes build it, readers of meaning walk it; nobody changes it after.
// A pickle may make a list contain itself, so a walk goes only as deep as it knows names for.
#ifndef FATHOM_BASE_VALUE_H
#define FATHOM_BASE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/str.h"

enum value_kind {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_LIST, // tuples too
    VALUE_DICT, // items are key, value, key, value; a later key wins
};

struct value_items;

struct value {
    enum value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct str *text;
        struct value_items *items;
    } as;
};

struct value_items {
    struct value *values;
    ptrdiff_t count, capacity;
};

struct value value_text(struct arena *a, struct str text); // keeps the bytes by reference
struct value value_integer(int64_t integer);
struct value value_container(struct arena *a, enum value_kind kind); // empty
void value_append(struct arena *a, struct value *container, struct value item);
void value_append_all(struct arena *a, struct value *container, const struct value *items,
                      ptrdiff_t count);

// NULL where `dict` is no dictionary or has no such key.
const struct value *value_get(const struct value *dict, const char *key);

// 0 and no items where `list` is NULL or no list.
ptrdiff_t value_count(const struct value *list);
const struct value *value_at(const struct value *list, ptrdiff_t index);

// What a walk mostly wants; false where it is something else (or NULL).
bool value_u64(uint64_t *out, const struct value *v); // a real without a fraction counts
bool value_str(struct str *out, const struct value *v);
bool value_bool(bool *out, const struct value *v);
bool value_double(double *out, const struct value *v);

#endif
