// Any bytes as a launch script. Each value has a unique key that is not empty and a place; read as
// a framework's file, it gives known settings or a sentence.
#include "core/foreign/foreign.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[32 << 20];

static void check_list(const struct settings *s)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting *item = &s->items[i];
        ASSERT(item->key.n && str_starts(item->where, STR("f.sh:")));
        ASSERT(settings_find(s, item->key) == item);
    }
}

static void check_foreign(const struct settings *file)
{
    struct settings out = settings_in(file->arena), given = settings_in(file->arena);
    struct foreign f = foreign_in(file->arena);
    struct error e = {0};
    bool ok = foreign_read(&out, &f, file, &e) && foreign_conclude(&out, &f, &given, &e);
    ASSERT(ok == (e.code == ERROR_NONE) && (ok || e.message[0]));
    for (ptrdiff_t i = 0; f.format && i < out.count; i++)
        ASSERT(setting_def_find(out.items[i].key));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = exact_arena(block, sizeof block, size);
    struct settings file = settings_in(&a);
    struct error e = {0};
    bool ok = script_flatten(&file, exact, STR("f.sh"), &e);
    exact_free(exact); // the list must not point into the input
    ASSERT(ok == (e.code == ERROR_NONE));
    check_list(&file);
    if (ok)
        check_foreign(&file);
    return 0;
}
