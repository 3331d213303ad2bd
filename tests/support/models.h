// Models by name and by settings, with their parameters, for the tests of core/model.
#ifndef FATHOM_TESTS_MODELS_H
#define FATHOM_TESTS_MODELS_H

#include "core/model/model.h"
#include "tests/support/t.h"

static inline bool build(struct model *m, struct parameters *p, const struct settings *s,
                         struct error *e)
{
    *m = (struct model){0};
    *p = (struct parameters){0};
    return model_from_settings(m, s->arena, s, e) && parameters_of(p, s->arena, m, e);
}

static inline bool load_settings(struct model *m, struct parameters *p, const char *text,
                                 struct error *e)
{
    struct settings s = settings_in(test_arena());
    *e = (struct error){0};
    return settings_read(&s, str_from(text), '\n', STR("test"), e) && build(m, p, &s, e);
}

static inline bool load(struct model *m, struct parameters *p, const char *name, struct error *e)
{
    struct settings s = settings_in(test_arena());
    *e = (struct error){0};
    struct setting item = {STR("model"), str_from(name), STR("test")};
    return settings_add(&s, item, e) && build(m, p, &s, e);
}

static inline uint64_t total_of(const char *settings)
{
    struct model m = {0};
    struct parameters p = {0};
    struct error e;
    if (!load_settings(&m, &p, settings, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return p.total;
}

#endif
