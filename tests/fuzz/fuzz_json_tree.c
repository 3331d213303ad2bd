// Any bytes as a JSON document. What jansson accepts is accepted, with the same values; what is
// refused has a message.
#include "host/formats/json_parse.h"
#include "host/formats/json_tree.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[32 << 20];

static bool is_same(const json_t *wanted, const struct value *got);

static bool is_same_list(const json_t *wanted, const struct value *got)
{
    bool same = (ptrdiff_t)json_array_size(wanted) == value_count(got) && got->kind == VALUE_LIST;
    for (size_t i = 0; same && i < json_array_size(wanted); i++)
        same = is_same(json_array_get(wanted, i), value_at(got, (ptrdiff_t)i));
    return same;
}

static bool is_same_dict(json_t *wanted, const struct value *got)
{
    bool same =
        got->kind == VALUE_DICT && (ptrdiff_t)json_object_size(wanted) * 2 == got->as.items->count;
    const char *key;
    json_t *item;
    ptrdiff_t at = 0;
    json_object_foreach(wanted, key, item)
    {
        const struct value *pair = got->as.items->values + at;
        same = same && pair[0].kind == VALUE_TEXT && str_is(*pair[0].as.text, key) &&
               is_same(item, &pair[1]);
        at += 2;
        if (!same)
            break;
    }
    return same;
}

// jansson's numbers are all reals where one is too large; Python's NaN is an empty object to it.
static bool is_same(const json_t *wanted, const struct value *got)
{
    union {
        const json_t *kept;
        json_t *owned;
    } w = {wanted};
    struct str text;
    double number;
    bool flag;
    switch (json_typeof(wanted)) {
    case JSON_OBJECT:
        if (json_object_size(wanted) == 0 && got->kind == VALUE_NONE)
            return true;
        return is_same_dict(w.owned, got);
    case JSON_ARRAY:
        return is_same_list(wanted, got);
    case JSON_STRING:
        return value_str(&text, got) && str_is(text, json_string_value(wanted));
    case JSON_INTEGER:
        return got->kind == VALUE_INTEGER && got->as.integer == json_integer_value(wanted);
    case JSON_REAL: {
        bool equal = value_double(&number, got) && !(number < json_real_value(wanted)) &&
                     !(number > json_real_value(wanted));
        return equal;
    }
    case JSON_TRUE:
    case JSON_FALSE:
        return value_bool(&flag, got) && flag == json_is_true(wanted);
    case JSON_NULL:
        return got->kind == VALUE_NONE;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = exact_arena(block, sizeof block, size);
    struct error e = {0}, other = {0};
    struct value root;
    bool ok = json_tree(&root, &a, exact, STR("f"), &e);
    ASSERT(ok == (e.code == ERROR_NONE) && (ok || e.message[0]));
    json_t *wanted = json_parse(a, exact, STR("f"), &other);
    bool deep = !ok && strstr(e.message, "nested deeper");
    bool lenient = size && memchr(data, 0, size); // jansson passes over a NUL behind a number
    ASSERT(!wanted || deep || lenient || (ok && is_same(wanted, &root)));
    json_decref(wanted);
    exact_free(exact);
    return 0;
}
