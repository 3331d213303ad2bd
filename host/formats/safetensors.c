// The format: eight bytes of little-endian header length, a JSON header, then the data. All that a
// header claims is checked before it is added, because the file may come from anyone.
// Source: safetensors 0.7 (safetensors/src/tensor.rs: MAX_HEADER_SIZE, enum Dtype).
#include "host/formats/safetensors.h"

#include <string.h>

#include "core/base/buf.h"
#include "core/base/num.h"
#include "host/files/file.h"
#include "host/formats/json_parse.h"

enum {
    LENGTH_BYTES = 8,
    HEADER_MAX_BYTES = 100 * 1000 * 1000,
    INDEX_MAX_BYTES = 64 << 20,
    FILES_MAX = 4096,
};

static const struct dtype {
    const char *name;
    uint64_t bits;
    bool packed; // stands for quantized weights; BOOL and I64 are masks and position numbers
} dtypes[WEIGHTS_DTYPES] = {
    {"BOOL", 8, false},       {"F4", 4, true},          {"F6_E2M3", 6, true}, {"F6_E3M2", 6, true},
    {"U8", 8, true},          {"I8", 8, true},          {"F8_E5M2", 8, true}, {"F8_E4M3", 8, true},
    {"F8_E8M0", 8, true},     {"I16", 16, true},        {"U16", 16, true},    {"F16", 16, false},
    {"BF16", 16, false},      {"I32", 32, true},        {"U32", 32, true},    {"F32", 32, false},
    {"C64", 64, false},       {"F64", 64, false},       {"I64", 64, false},   {"U64", 64, false},
    {"F8_E4M3FNUZ", 8, true}, {"F8_E5M2FNUZ", 8, true},
};

struct tensor {
    const char *name;
    json_t *json;
    struct str source;
};

static bool refuse(const struct tensor *t, const char *reason, struct error *e)
{
    return FAIL(e, BAD_INPUT, t->source, "tensor '%.80s' %s", t->name, reason);
}

static bool dtype_read(ptrdiff_t *dtype, const struct tensor *t, struct error *e)
{
    const char *name = json_string_value(json_object_get(t->json, "dtype"));
    if (!name)
        return refuse(t, "has no dtype", e);
    for (ptrdiff_t i = 0; i < WEIGHTS_DTYPES; i++) {
        if (str_is(str_from(name), dtypes[i].name)) {
            *dtype = i;
            return true;
        }
    }
    return FAIL(e, BAD_INPUT, t->source, "tensor '%.80s' has the unknown dtype '%.40s'", t->name,
                name);
}

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool elements_read(uint64_t *elements, const struct tensor *t, struct error *e)
{
    const json_t *shape = json_object_get(t->json, "shape");
    if (!json_is_array(shape))
        return refuse(t, "has no shape", e);
    uint64_t product = 1;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *size = json_array_get(shape, i);
        if (!is_count(size))
            return refuse(t, "has a shape that is not a list of sizes", e);
        product = sat_mul(product, (uint64_t)json_integer_value(size));
    }
    if (product == U64_SATURATED)
        return refuse(t, "has a shape with more elements than can be counted", e);
    *elements = product;
    return true;
}

// The size by its offsets, checked against the size by its dtype and shape.
static bool extent_read(uint64_t *end, const struct tensor *t, uint64_t bits, struct error *e)
{
    const json_t *offsets = json_object_get(t->json, "data_offsets");
    const json_t *begin_json = json_array_get(offsets, 0), *end_json = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !is_count(begin_json) || !is_count(end_json))
        return refuse(t, "has no data_offsets of the form [begin, end]", e);
    uint64_t first = (uint64_t)json_integer_value(begin_json);
    uint64_t last = (uint64_t)json_integer_value(end_json);
    if (first > last)
        return refuse(t, "has data_offsets that end before they begin", e);
    if (bits == U64_SATURATED || bits % 8 != 0 || last - first != bits / 8)
        return refuse(t, "has data_offsets that do not match its dtype and shape", e);
    *end = last;
    return true;
}

static bool tensor_add(struct weights *w, uint64_t *data_end, const struct tensor *t,
                       struct error *e)
{
    ptrdiff_t dtype = 0;
    uint64_t elements = 0, end = 0;
    if (!json_is_object(t->json))
        return refuse(t, "is not described by a JSON object", e);
    if (!dtype_read(&dtype, t, e) || !elements_read(&elements, t, e))
        return false;
    uint64_t bits = sat_mul(elements, dtypes[dtype].bits);
    if (!extent_read(&end, t, bits, e))
        return false;
    w->tensors++;
    w->parameters = sat_add(w->parameters, elements);
    w->bytes = sat_add(w->bytes, bits / 8);
    w->dtype_bytes[dtype] = sat_add(w->dtype_bytes[dtype], bits / 8);
    *data_end = end > *data_end ? end : *data_end;
    if (w->parameters == U64_SATURATED || w->bytes == U64_SATURATED)
        return refuse(t, "makes the total larger than can be counted", e);
    return true;
}

// Masks stored as bytes (GPT-2's attn.bias) are a few percent; quantized weights far more.
static bool is_quantized(const struct weights *w)
{
    uint64_t packed = 0;
    for (ptrdiff_t i = 0; i < WEIGHTS_DTYPES; i++)
        packed = sat_add(packed, dtypes[i].packed ? w->dtype_bytes[i] : 0);
    return packed > 0 && packed >= w->bytes / 10;
}

static json_t *parse(struct arena scratch, struct str text, struct str source, struct error *e)
{
    json_t *root = json_parse(scratch, text, source, e);
    if (!root || json_is_object(root))
        return root;
    FAIL(e, BAD_INPUT, source, "its JSON is not an object");
    json_decref(root);
    return NULL;
}

static bool header_read(struct weights *w, uint64_t *data_end, json_t *root, struct str source,
                        struct error *e)
{
    struct weights sum = *w;
    uint64_t end = 0;
    for (void *i = json_object_iter(root); i; i = json_object_iter_next(root, i)) {
        struct tensor t = {json_object_iter_key(i), json_object_iter_value(i), source};
        bool tensor = !str_is(str_from(t.name), "__metadata__");
        if (tensor && !tensor_add(&sum, &end, &t, e))
            return false;
    }
    sum.quantized = is_quantized(&sum);
    *w = sum;
    *data_end = end;
    return true;
}

bool safetensors_header_read(struct weights *w, struct arena scratch, struct str header_json,
                             struct str source, struct error *e)
{
    json_t *root = parse(scratch, header_json, source, e);
    uint64_t data_end;
    bool ok = root && header_read(w, &data_end, root, source, e);
    json_decref(root);
    return ok;
}

static bool header_length_read(uint64_t *length, struct arena scratch, struct str path,
                               uint64_t file_bytes, struct error *e)
{
    struct str prefix;
    struct file_part part = {0, LENGTH_BYTES};
    if (!file_read_part(&prefix, &scratch, path, part, e))
        return false;
    if (prefix.n < LENGTH_BYTES)
        return FAIL(e, BAD_INPUT, path, "this is too short to be a safetensors file (%td bytes)",
                    prefix.n);
    uint64_t bytes = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        bytes = bytes << 8 | (unsigned char)prefix.p[i];
    if (str_is(prefix, "version ")) {
        FAIL(e, BAD_INPUT, path, "this is a Git LFS pointer, not the file itself");
        return HINT(e, "fetch the weights with 'git lfs pull'");
    }
    if (bytes > HEADER_MAX_BYTES)
        return FAIL(e, BAD_INPUT, path,
                    "the header claims to be %llu bytes long, but the format allows %d",
                    (unsigned long long)bytes, HEADER_MAX_BYTES);
    if (bytes > file_bytes - LENGTH_BYTES)
        return FAIL(e, BAD_INPUT, path,
                    "the header claims to be %llu bytes long, but the file has only %llu",
                    (unsigned long long)bytes, (unsigned long long)file_bytes);
    *length = bytes;
    return true;
}

bool safetensors_file_read(struct weights *w, struct arena scratch, struct str path,
                           struct error *e)
{
    uint64_t file_bytes = 0, length = 0, data_end = 0;
    struct str header = STR_NONE;
    if (!file_size(&file_bytes, scratch, path, e) ||
        !header_length_read(&length, scratch, path, file_bytes, e) ||
        !file_read_part(&header, &scratch, path, (struct file_part){LENGTH_BYTES, (int64_t)length},
                        e))
        return false;
    json_t *root = parse(scratch, header, path, e);
    struct weights sum = *w;
    bool ok = root && header_read(&sum, &data_end, root, path, e);
    uint64_t needed = sat_add(data_end, length + LENGTH_BYTES);
    if (ok && needed > file_bytes)
        ok = FAIL(e, BAD_INPUT, path, "the file is cut short: it has %llu of %llu bytes",
                  (unsigned long long)file_bytes, (unsigned long long)needed);
    json_decref(root);
    if (!ok)
        return false;
    sum.files++;
    *w = sum;
    return true;
}

struct name_list {
    struct str *names;
    ptrdiff_t count;
    json_t *seen; // the same names, as keys
};

static bool name_add(struct name_list *list, const char *name, struct str source, struct error *e)
{
    struct str text = str_from(name);
    if (!text.n || strchr(name, '/') || strstr(name, "..") || text.n >= WEIGHTS_NAME_BYTES)
        return FAIL(e, BAD_INPUT, source, "'%.80s' is not the name of a file in the same folder",
                    name ? name : "");
    if (json_object_get(list->seen, name))
        return true;
    if (list->count == FILES_MAX)
        return FAIL(e, BAD_INPUT, source, "more than %d files are named", FILES_MAX);
    if (json_object_set_new(list->seen, name, json_true()) != 0)
        return FAIL(e, NO_MEMORY, source, "there is not enough memory to read this index");
    list->names[list->count++] = text;
    return true;
}

static bool names_of_index(struct name_list *list, json_t *index, struct str source,
                           struct error *e)
{
    json_t *map = json_object_get(index, "weight_map");
    if (!json_is_object(map))
        return FAIL(e, BAD_INPUT, source, "it has no weight_map");
    for (void *i = json_object_iter(map); i; i = json_object_iter_next(map, i)) {
        const char *name = json_string_value(json_object_iter_value(i));
        if (!name_add(list, name, source, e))
            return false;
    }
    return true;
}

static bool indexed_read(struct weights *w, struct arena scratch, struct str folder,
                         const struct name_list *list, struct error *e)
{
    for (ptrdiff_t i = 0; i < list->count; i++) {
        struct arena inner = scratch;
        struct str path = path_join(&inner, folder, list->names[i]);
        if (path_kind(inner, path) != PATH_FILE) {
            if (w->missing_files++ == 0)
                memcpy(w->first_missing, list->names[i].p, (size_t)list->names[i].n);
        } else if (!safetensors_file_read(w, inner, path, e)) {
            return false;
        }
    }
    return true;
}

static bool index_read(struct weights *w, struct arena scratch, struct str folder, struct str path,
                       struct error *e)
{
    struct str text;
    if (!file_read(&text, &scratch, path, INDEX_MAX_BYTES, e))
        return false;
    json_t *root = parse(scratch, text, path, e);
    struct name_list list = {.names = NEW(&scratch, struct str, FILES_MAX), .seen = json_object()};
    bool ok =
        root && names_of_index(&list, root, path, e) && indexed_read(w, scratch, folder, &list, e);
    json_decref(list.seen);
    json_decref(root);
    return ok;
}

bool weights_of_folder(struct weights *w, bool *found, struct arena scratch, struct str folder,
                       struct error *e)
{
    struct weights sum = {0};
    struct str single = path_join(&scratch, folder, STR("model.safetensors"));
    struct str index = path_join(&scratch, folder, STR("model.safetensors.index.json"));
    bool ok = true;
    if (path_kind(scratch, single) == PATH_FILE)
        ok = safetensors_file_read(&sum, scratch, single, e);
    else if (path_kind(scratch, index) == PATH_FILE)
        ok = index_read(&sum, scratch, folder, index, e);
    if (!ok)
        return false;
    *w = sum;
    *found = sum.files > 0;
    return true;
}

struct str weights_dtypes(struct arena *a, const struct weights *w)
{
    struct buf out = buf_in(a);
    uint64_t below = U64_SATURATED;
    for (;;) {
        uint64_t most = 0;
        for (ptrdiff_t i = 0; i < WEIGHTS_DTYPES; i++)
            if (w->dtype_bytes[i] < below && w->dtype_bytes[i] > most)
                most = w->dtype_bytes[i];
        if (!most)
            return buf_str(&out);
        for (ptrdiff_t i = 0; i < WEIGHTS_DTYPES; i++)
            if (w->dtype_bytes[i] == most)
                buf_printf(&out, "%s%s", out.n ? ", " : "", dtypes[i].name);
        below = most;
    }
}
