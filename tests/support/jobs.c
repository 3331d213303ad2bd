// Jobs out of settings with spaces between them.
#include "tests/support/jobs.h"

#include "tests/support/t.h"

bool job_of(struct job *p, struct arena *a, const char *settings, struct error *e)
{
    struct settings s = settings_in(a);
    *e = (struct error){0};
    return settings_read(&s, str_from(settings), ' ', STR("test"), e) && settings_check(&s, e) &&
           job_from_settings(p, a, &s, e);
}

struct job *job_in(struct arena *a, const char *settings)
{
    struct job *job = NEW(a, struct job, 1);
    struct error e;
    if (!job_of(job, a, settings, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return job;
}

struct prediction predicted_in(struct arena *a, const char *settings)
{
    struct job *job = NEW(a, struct job, 1);
    struct prediction p = {0};
    struct error e;
    if (!job_of(job, a, settings, &e) || !predict(&p, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return p;
}

struct trace history_in(struct arena *a, const char *settings)
{
    struct job *job = NEW(a, struct job, 1);
    struct trace t = {0};
    struct error e;
    if (!job_of(job, a, settings, &e) || !predict_history(&t, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", settings, e.message);
    return t;
}
