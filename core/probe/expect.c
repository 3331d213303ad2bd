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
    x->limit_bytes = p->limit_bytes;
    x->workspace_bytes = cublas_workspace_bytes(&p->hardware.card);
    if (!predict(made, &scratch, p, &e))
        return;
    x->known = true;
    x->fits = made->fits;
    x->reserved_bytes = made->reserved_bytes;
}
