// Reading a store for one configuration. A store that nobody named and that cannot be read says
// nothing.
#include "host/trials/measured.h"

#include "core/hardware/hardware.h"
#include "core/probe/measured.h"
#include "host/files/file.h"
#include "host/trials/store.h"

// An empty value says nothing and is left out.
static bool add_text(struct settings *s, const char *key, struct str value, struct error *e)
{
    return !value.n || settings_add(s, (struct setting){str_from(key), value, STR("the store")}, e);
}

static bool add_count(struct settings *s, const char *key, uint64_t value, struct error *e)
{
    return !value || add_text(s, key, str_format(s->arena, "%llu", (unsigned long long)value), e);
}

static uint64_t step_microseconds(const struct attempt_record *t)
{
    struct peaks p = {0};
    for (ptrdiff_t i = 0; i < t->step_count; i++)
        peaks_time(&p, &t->steps[i]);
    return (uint64_t)(p.step_seconds * 1e6);
}

static bool add_trial(struct settings *s, const struct measured *m, struct error *e)
{
    const struct attempt_record *t = m->attempt;
    struct str played = measured_setting(m->cell, "one-gpu");
    return add_text(s, "measured.outcome", str_from(outcome_rows[t->outcome].name), e) &&
           add_count(s, "measured.steps", t->peaks.steps, e) &&
           add_count(s, "measured.reserved_bytes", t->peaks.reserved_bytes, e) &&
           add_count(s, "measured.step_us", step_microseconds(t), e) &&
           add_count(s, "measured.allocated_bytes", t->peaks.allocated_bytes, e) &&
           add_text(s, "measured.gpu", t->gpu, e) &&
           add_text(s, "measured.as", measured_setting(m->cell, "as"), e) &&
           add_text(s, "measured.one_gpu", str_is(played, "on") ? STR("true") : STR_NONE, e) &&
           add_text(s, "measured.versions", t->versions, e) &&
           add_text(s, "measured.log", t->log, e);
}

static bool read_store(struct store_content *out, struct arena *a, struct str path,
                       struct store_part part, struct error *e)
{
    struct store *store;
    if (!store_open(&store, a, path, STORE_GLANCE, e))
        return false;
    bool ok = store_read(out, store, a, part, e);
    store_close(store);
    return ok;
}

// The machine and the length that are asked for; where they cannot be read, the prediction itself
// will say what is wrong.
static bool read_question(struct store_part *part, const struct settings *s)
{
    const struct setting *context = settings_find_z(s, "context");
    struct error ignored = {0};
    struct hardware hardware;
    if (!context || unit_parse(&part->context, UNIT_COUNT, context->value) != UNIT_OK ||
        !hardware_from_settings(&hardware, s->arena, s, &ignored))
        return false;
    part->gpus = hardware_gpus(&hardware);
    return true;
}

bool measured_resolve(struct settings *s, struct error *e)
{
    const struct setting *named = settings_find_z(s, "store");
    struct str path = named ? named->value : STR("logs/probe.db");
    struct error ignored = {0};
    struct store_part part = {0};
    struct store_content content;
    if (!read_question(&part, s) || (!named && path_kind(*s->arena, path) != PATH_FILE))
        return true;
    if (!read_store(&content, s->arena, path, part, named ? e : &ignored))
        return !named;
    struct measured found = measured_find(*s->arena, content.cells, content.count, s);
    return !found.cell || add_trial(s, &found, e);
}
