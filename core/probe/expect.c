// A configuration that is not modelled can still be probed: then nothing is expected of it.
#include "core/probe/expect.h"

#include "core/step/trainer.h"

void expect_longest(struct expectation *x, struct arena *a, const struct settings *plan,
                    const struct grid *grid)
{
    struct error e = {0};
    struct capacity c;
    struct capacity_request r = {.settings = plan, .grid = *grid};
    *x = (struct expectation){0};
    if (capacity_find(&c, *a, &r, &e))
        *x = (struct expectation){.known = true, .longest = c.context};
    else
        x->why_not = str_copy(a, str_from(e.message));
}

void expect_trial(struct expected_trial *x, struct arena scratch, const struct settings *plan,
                  uint64_t context)
{
    struct error e = {0};
    struct plan *p = NEW(&scratch, struct plan, 1);
    struct prediction *made = NEW(&scratch, struct prediction, 1);
    struct capacity_request r = {.settings = plan};
    *x = (struct expected_trial){0};
    if (!capacity_plan(p, &scratch, &r, context, &e))
        return;
    if (!predict(made, &scratch, p, &e))
        return;
    x->known = true;
    x->fits = made->fits;
    x->reserved_bytes = made->reserved_bytes;
}

static bool copy_machine(struct settings *out, const struct settings *plan, struct error *e)
{
    static const char *const names[] = {"model", "gpu", "memory-limit", "torch"};
    for (ptrdiff_t i = 0; i < plan->count; i++) {
        struct str key = plan->items[i].key;
        bool wanted = setting_is_document(key);
        for (ptrdiff_t k = 0; k < COUNT_OF(names); k++)
            wanted |= str_is(key, names[k]);
        if (wanted && !settings_add(out, plan->items[i], e))
            return false;
    }
    return true;
}

struct expected_limits expect_limits(struct arena scratch, const struct settings *plan,
                                     uint64_t context)
{
    struct error first = {0}, second = {0};
    struct plan *p = NEW(&scratch, struct plan, 1);
    struct settings bare = settings_in(&scratch);
    struct capacity_request r = {.settings = plan};
    bool known = capacity_plan(p, &scratch, &r, context, &first);
    if (!known && copy_machine(&bare, plan, &second)) {
        r.settings = &bare;
        known = capacity_plan(p, &scratch, &r, context, &second);
    }
    if (!known)
        return (struct expected_limits){0};
    return (struct expected_limits){p->limit_bytes, cublas_workspace_bytes(&p->hardware.card)};
}
