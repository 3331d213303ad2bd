// Reading a store for one configuration. A store that nobody named and that cannot be read says
// nothing.
#include "host/measured.h"

#include "core/probe/measured.h"
#include "host/file.h"
#include "host/store.h"

static bool add_text(struct settings *s, const char *key, struct str value, struct error *e)
{
    return settings_add(s, (struct setting){str_from(key), value, STR("the store")}, e);
}

static bool add_count(struct settings *s, const char *key, uint64_t value, struct error *e)
{
    return !value || add_text(s, key, str_format(s->arena, "%llu", (unsigned long long)value), e);
}

static bool add_trial(struct settings *s, const struct attempt_record *t, struct error *e)
{
    return add_text(s, "measured.outcome", str_from(outcome_rows[t->outcome].name), e) &&
           add_count(s, "measured.reserved_bytes", t->peaks.reserved_bytes, e) &&
           add_count(s, "measured.allocated_bytes", t->peaks.allocated_bytes, e) &&
           add_text(s, "measured.log", t->log, e);
}

static bool read_cells(struct cell_record **cells, ptrdiff_t *count, struct arena *a,
                       struct str path, struct error *e)
{
    struct store *store;
    if (!store_open(&store, a, path, STORE_READ, e))
        return false;
    bool ok = store_read(cells, count, store, a, e);
    store_close(store);
    return ok;
}

bool measured_resolve(struct settings *s, struct error *e)
{
    const struct setting *named = settings_find_z(s, "store");
    const struct setting *context = settings_find_z(s, "context");
    struct str path = named ? named->value : STR("logs/probe.db");
    struct error ignored = {0};
    struct hardware hardware;
    struct cell_record *cells;
    ptrdiff_t count;
    struct measured_question q = {.settings = s, .hardware = &hardware};
    if (!named && path_kind(*s->arena, path) != PATH_FILE)
        return true;
    if (!read_cells(&cells, &count, s->arena, path, named ? e : &ignored))
        return !named;
    if (!context || !hardware_from_settings(&hardware, s->arena, s, &ignored) ||
        unit_parse(&q.context, UNIT_COUNT, context->value) != UNIT_OK)
        return true; // the prediction itself will say what is wrong
    const struct attempt_record *found = measured_find(cells, count, &q);
    return !found || add_trial(s, found, e);
}
