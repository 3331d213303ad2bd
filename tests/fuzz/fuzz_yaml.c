// Any bytes as a YAML request. Either the list has non-empty, unique keys and a place for each
// value, or it is empty and the error says where and why. Read as a framework's file, it gives
// known settings or a sentence.
#include <string.h>

#include "core/foreign/foreign.h"
#include "host/formats/variables.h"
#include "host/formats/yaml_in.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[8 << 20];

static int compare_keys(const void *left, const void *right)
{
    const struct setting *a = left, *b = right;
    if (a->key.n != b->key.n)
        return a->key.n < b->key.n ? -1 : 1;
    return memcmp(a->key.p, b->key.p, (size_t)a->key.n);
}

static void check_list(const struct settings *s)
{
    if (s->count)
        qsort(s->items, (size_t)s->count, sizeof *s->items, compare_keys);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting *item = &s->items[i];
        ASSERT(item->key.n > 0 && !memchr(item->key.p, 0, (size_t)item->key.n));
        ASSERT(str_starts(item->where, STR("f.yaml:")));
        ASSERT(i == 0 || compare_keys(item - 1, item) != 0);
    }
}

static bool is_known(const struct settings *s, const struct setting *item)
{
    return setting_def_find(item->key) && settings_find(s, item->key) == item;
}

static void check_foreign(const struct settings *file)
{
    struct settings out = settings_in(file->arena), given = settings_in(file->arena);
    struct foreign f = foreign_in(file->arena);
    struct error e = {0};
    bool ok = foreign_read(&out, &f, file, &e) && foreign_conclude(&out, &f, &given, &e);
    ASSERT(ok ? e.code == ERROR_NONE : e.message[0] && e.where[0]);
    for (ptrdiff_t i = 0; f.format && i < out.count; i++)
        ASSERT(is_known(&out, &out.items[i]));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = exact_arena(block, sizeof block, size);
    struct settings s = settings_in(&a);
    struct error e = {0};
    bool ok = yaml_flatten(&s, exact, STR("f.yaml"), &e);
    exact_free(exact); // the list must not point into the input
    ASSERT(ok == (e.code == ERROR_NONE));
    if (ok) {
        variables_resolve(&s);
        check_foreign(&s);
        check_list(&s);
    } else
        ASSERT(s.count == 0 && e.message[0] && str_starts(str_from(e.where), STR("f.yaml")));
    return 0;
}
