#include "tests/support/readings.h"

struct str value_of(const struct settings *s, const char *key)
{
    const struct setting *item = settings_find_z(s, key);
    return item ? item->value : STR_NONE;
}

bool read_text(struct settings *read, struct foreign *f, struct str text, struct error *e)
{
    struct arena *a = read->arena;
    struct settings given = settings_in(a);
    struct str_cut halves = str_cut_last(text, '|'); // a pattern may have others
    halves.head = halves.found ? halves.head : text;
    halves.tail = halves.found ? halves.tail : STR_NONE;
    if (!settings_read(&given, halves.tail, ' ', STR("--gpu"), e))
        return false;
    for (struct str_cut c = str_cut(halves.head, ';');; c = str_cut(c.tail, ';')) {
        struct settings file = settings_in(a);
        if (!settings_read(&file, c.head, ' ', STR("run/file.yaml:1:1"), e) ||
            !foreign_read(read, f, &file, e))
            return false;
        if (!c.found)
            break;
    }
    return foreign_conclude(read, f, &given, e) && settings_check(read, e);
}

void check_says(struct arena *a, const struct settings *read, struct str says)
{
    struct settings wanted = settings_in(a);
    struct error e = {0};
    CHECK(settings_read(&wanted, says, ' ', STR_NONE, &e));
    for (ptrdiff_t i = 0; i < wanted.count; i++) {
        struct str value = wanted.items[i].value;
        CHECK_STR(value_of(read, str_z(a, wanted.items[i].key)),
                  str_is(value, "-") ? "" : str_z(a, value));
    }
}

static void check_reading(const struct reading *r)
{
    struct arena *a = test_arena();
    struct settings read = settings_in(a);
    struct foreign f = foreign_in(a);
    struct error e = {0};
    bool ok = read_text(&read, &f, str_from(r->file), &e);
    if (r->says[0] == '!') {
        CHECK(!ok);
        CHECK_STR(str_from(e.message), r->says + 1);
        return;
    }
    struct str_cut parts = str_cut(str_from(r->says), '?');
    CHECK_STR(str_from(e.message), "");
    CHECK(ok && f.format);
    check_says(a, &read, parts.head);
    CHECK_STR(f.note_count ? f.notes[0] : STR_NONE, str_z(a, parts.tail));
}

void check_readings(const struct reading *rows, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        check_reading(&rows[i]);
}
