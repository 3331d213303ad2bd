// Building and walking value trees.
#include "core/base/value.h"

#include <string.h>

struct value value_text(struct arena *a, struct str text)
{
    struct str *kept = NEW(a, struct str, 1);
    *kept = text;
    return (struct value){VALUE_TEXT, {.text = kept}};
}

struct value value_integer(int64_t integer)
{
    return (struct value){VALUE_INTEGER, {.integer = integer}};
}

struct value value_container(struct arena *a, enum value_kind kind)
{
    ASSERT(kind == VALUE_LIST || kind == VALUE_DICT);
    return (struct value){kind, {.items = NEW(a, struct value_items, 1)}};
}

void value_append(struct arena *a, struct value *container, struct value item)
{
    value_append_all(a, container, &item, 1);
}

// What is added to an empty container at once takes no more room than it needs: a history has a
// million small dictionaries that never grow.
void value_append_all(struct arena *a, struct value *container, const struct value *items,
                      ptrdiff_t count)
{
    struct value_items *held = container->as.items;
    if (count > held->capacity - held->count) {
        ptrdiff_t doubled = 2 * held->capacity;
        ptrdiff_t capacity = held->count + count > doubled ? held->count + count : doubled;
        struct value *grown = NEW(a, struct value, capacity);
        if (held->count)
            memcpy(grown, held->values, (size_t)held->count * sizeof *grown);
        held->values = grown;
        held->capacity = capacity;
    }
    if (count)
        memcpy(held->values + held->count, items, (size_t)count * sizeof *items);
    held->count += count;
}

const struct value *value_get(const struct value *dict, const char *key)
{
    if (!dict || dict->kind != VALUE_DICT)
        return NULL;
    const struct value_items *items = dict->as.items;
    for (ptrdiff_t i = items->count - 2; i >= 0; i -= 2) {
        const struct value *candidate = &items->values[i];
        if (candidate->kind == VALUE_TEXT && str_is(*candidate->as.text, key))
            return &items->values[i + 1];
    }
    return NULL;
}

ptrdiff_t value_count(const struct value *list)
{
    return list && list->kind == VALUE_LIST ? list->as.items->count : 0;
}

const struct value *value_at(const struct value *list, ptrdiff_t index)
{
    ASSERT(index >= 0 && index < value_count(list));
    return &list->as.items->values[index];
}

bool value_u64(uint64_t *out, const struct value *v)
{
    const double exact_below = 9007199254740992.0; // 2^53
    if (v && v->kind == VALUE_INTEGER && v->as.integer >= 0) {
        *out = (uint64_t)v->as.integer;
        return true;
    }
    if (v && v->kind == VALUE_REAL && v->as.real >= 0 && v->as.real < exact_below &&
        (double)(uint64_t)v->as.real == v->as.real) {
        *out = (uint64_t)v->as.real;
        return true;
    }
    return false;
}

bool value_str(struct str *out, const struct value *v)
{
    if (!v || v->kind != VALUE_TEXT)
        return false;
    *out = *v->as.text;
    return true;
}

bool value_bool(bool *out, const struct value *v)
{
    if (!v || v->kind != VALUE_BOOL)
        return false;
    *out = v->as.boolean;
    return true;
}

bool value_double(double *out, const struct value *v)
{
    if (!v || (v->kind != VALUE_REAL && v->kind != VALUE_INTEGER))
        return false;
    *out = v->kind == VALUE_REAL ? v->as.real : (double)v->as.integer;
    return true;
}
