// jansson's tree copied into ours, and freed.
#include "host/formats/json_tree.h"

#include <jansson.h>

#include "host/formats/json_parse.h"

struct copying {
    struct arena *arena;
    struct str source;
    struct error *error;
};

static bool copy(struct copying *c, struct value *out, json_t *in, int depth);

static bool copy_object(struct copying *c, struct value *out, json_t *in, int depth)
{
    *out = value_container(c->arena, VALUE_DICT);
    for (void *i = json_object_iter(in); i; i = json_object_iter_next(in, i)) {
        struct value pair[2];
        pair[0] = value_text(c->arena, str_copy(c->arena, str_from(json_object_iter_key(i))));
        if (!copy(c, &pair[1], json_object_iter_value(i), depth + 1))
            return false;
        value_append_all(c->arena, out, pair, 2);
    }
    return true;
}

static bool copy_array(struct copying *c, struct value *out, const json_t *in, int depth)
{
    *out = value_container(c->arena, VALUE_LIST);
    for (size_t i = 0; i < json_array_size(in); i++) {
        struct value item;
        if (!copy(c, &item, json_array_get(in, i), depth + 1))
            return false;
        value_append(c->arena, out, item);
    }
    return true;
}

static bool copy(struct copying *c, struct value *out, json_t *in, int depth)
{
    if (depth > JSON_MAX_NESTING)
        return json_too_deep(c->source, c->error);
    switch (json_typeof(in)) {
    case JSON_OBJECT:
        return copy_object(c, out, in, depth);
    case JSON_ARRAY:
        return copy_array(c, out, in, depth);
    case JSON_STRING: {
        struct str text = {json_string_value(in), (ptrdiff_t)json_string_length(in)};
        *out = value_text(c->arena, str_copy(c->arena, text));
        return true;
    }
    case JSON_INTEGER:
        *out = value_integer(json_integer_value(in));
        return true;
    case JSON_REAL:
        *out = (struct value){VALUE_REAL, {.real = json_real_value(in)}};
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = (struct value){VALUE_BOOL, {.boolean = json_is_true(in)}};
        return true;
    case JSON_NULL:
        *out = (struct value){VALUE_NONE, {0}};
        return true;
    }
    __builtin_trap();
}

bool json_tree(struct value *root, struct arena *a, struct str text, struct str source,
               struct error *e)
{
    json_t *parsed = json_parse(*a, text, source, e);
    if (!parsed)
        return false;
    struct copying c = {a, source, e};
    bool ok = copy(&c, root, parsed, 0);
    json_decref(parsed);
    return ok;
}
