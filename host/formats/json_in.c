// A bounded recursion over jansson's tree.
#include "host/formats/json_in.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "host/formats/json_parse.h"
#include "host/formats/key_path.h"

struct flattening {
    struct settings *settings;
    struct str source;
    struct key_path path;
};

static bool flatten(struct flattening *f, json_t *value, int depth, struct error *e);

static struct str real_text(struct arena *a, double value)
{
    const double exact_below = 9007199254740992.0; // 2^53
    if (fabs(value) < exact_below && floor(value) == value)
        return str_format(a, "%lld", (long long)value);
    return str_format(a, "%.17g", value);
}

static bool add(struct flattening *f, struct str value, struct error *e)
{
    struct str key = str_join(f->settings->arena, key_path_str(&f->path), STR_NONE);
    return settings_add(f->settings, (struct setting){key, value, f->source}, e);
}

static bool flatten_object(struct flattening *f, json_t *object, int depth, struct error *e)
{
    ptrdiff_t before = f->path.n;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        struct str key = str_from(json_object_iter_key(i));
        if (!key_path_push(&f->path, key, f->source, e) ||
            !flatten(f, json_object_iter_value(i), depth, e))
            return false;
        key_path_cut(&f->path, before);
    }
    return true;
}

static bool flatten_array(struct flattening *f, const json_t *array, int depth, struct error *e)
{
    if (json_array_size(array) == 0)
        return add(f, STR("[]"), e);
    ptrdiff_t before = f->path.n;
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!key_path_push_index(&f->path, (ptrdiff_t)i, f->source, e) ||
            !flatten(f, json_array_get(array, i), depth, e))
            return false;
        key_path_cut(&f->path, before);
    }
    return true;
}

static bool flatten(struct flattening *f, json_t *value, int depth, struct error *e)
{
    struct arena *a = f->settings->arena;
    if ((json_is_object(value) || json_is_array(value)) && depth == FLATTEN_MAX_DEPTH)
        return json_too_deep(f->source, e);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return flatten_object(f, value, depth + 1, e);
    case JSON_ARRAY:
        return flatten_array(f, value, depth + 1, e);
    case JSON_STRING: {
        struct str text = {json_string_value(value), (ptrdiff_t)json_string_length(value)};
        return add(f, str_join(a, text, STR_NONE), e);
    }
    case JSON_INTEGER:
        return add(f, str_format(a, "%" JSON_INTEGER_FORMAT, json_integer_value(value)), e);
    case JSON_REAL:
        return add(f, real_text(a, json_real_value(value)), e);
    case JSON_TRUE:
        return add(f, STR("true"), e);
    case JSON_FALSE:
        return add(f, STR("false"), e);
    case JSON_NULL:
        return add(f, STR("null"), e);
    }
    __builtin_trap();
}

bool json_flatten(struct settings *s, struct str text, struct str prefix, struct str source,
                  struct error *e)
{
    struct flattening f = {.settings = s, .source = source};
    if (!key_path_init(&f.path, prefix, source, e))
        return false;
    json_t *root = json_parse(*s->arena, text, source, e);
    if (!root)
        return false;
    ptrdiff_t before = s->count;
    bool ok = json_is_object(root) ? flatten(&f, root, 0, e)
                                   : FAIL(e, BAD_INPUT, source, "this is not a JSON object");
    if (!ok)
        s->count = before;
    json_decref(root);
    return ok;
}
