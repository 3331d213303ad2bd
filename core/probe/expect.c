// A configuration that is not modelled can still be probed: then nothing is expected of it.
#include "core/probe/expect.h"

#include "core/models/trainer.h"

void expect_longest(struct expectation *x, struct arena *a, const struct settings *job,
                    const struct grid *grid)
{
    struct error e = {0};
    struct capacity c;
    struct capacity_request r = {.settings = job, .grid = *grid};
    *x = (struct expectation){0};
    if (capacity_find(&c, *a, &r, &e))
        *x = (struct expectation){.known = true, .longest = c.context};
    else
        x->why_not = str_copy(a, str_from(e.message));
}

struct grid expect_grid(struct arena scratch, const struct settings *job, const struct grid *grid)
{
    struct error unknown = {0};
    struct capacity_request r = {.settings = job, .grid = *grid};
    struct grid found;
    return capacity_grid(&found, scratch, &r, &unknown) ? found : *grid;
}

void expect_trial(struct expected_trial *x, struct arena scratch, const struct settings *job,
                  uint64_t context)
{
    struct error e = {0};
    struct job *p = NEW(&scratch, struct job, 1);
    struct prediction *made = NEW(&scratch, struct prediction, 1);
    struct capacity_request r = {.settings = job};
    *x = (struct expected_trial){0};
    if (!capacity_job(p, &scratch, &r, context, &e) || !predict(made, &scratch, p, &e))
        return;
    x->known = true;
    x->fits = made->fits;
    x->reserved_bytes = made->reserved_bytes;
    bool timed = made->fits && !made->time.unknown && !made->time.beside;
    x->step_seconds = timed ? made->time.seconds : 0;
}

// Of a job only what limit_of and outside_of look at is filled in.
bool expect_limit(struct card_limit *x, struct arena scratch, const struct settings *job,
                  struct error *e)
{
    struct job *p = NEW(&scratch, struct job, 1);
    struct settings effective = settings_in(&scratch);
    struct error unknown = {0};
    bool card = hardware_from_settings(&p->hardware, &scratch, job, &unknown);
    if (!recipe_fill(&effective, job, card && job_ranks(p) > 1, e) ||
        !job_read_settings(p, &effective, e))
        return false;
    struct outside outside = outside_of(p);
    uint64_t limit = card || p->limit_bytes ? limit_of(p, &outside) : 0;
    if (!limit)
        return FAIL(e, BAD_INPUT, STR("--as"),
                    "what this card leaves torch is not known; --memory-limit says it");
    *x = (struct card_limit){limit, card ? cublas_workspace_bytes(&p->hardware.card) : 0};
    return true;
}
