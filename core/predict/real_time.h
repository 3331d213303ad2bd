// What steps over a user's own data take: each is padded to its longest sequence, and ranks that
// share a step wait for the slowest of them.
#ifndef FATHOM_PREDICT_REAL_TIME_H
#define FATHOM_PREDICT_REAL_TIME_H

#include "core/predict/predict.h"

// From the time of the longest batch, which stays beside it. Nothing where no lengths were given.
bool real_time_find(struct step_time *t, struct arena scratch, const struct job *job,
                    struct error *e) MUST_USE;

// Jobs whose steps take as long in the mean, none of them longer than the longest: so many, `job`
// itself where its lengths are not real.
enum { REAL_TIME_JOBS = 5 };
struct real_time_jobs {
    struct job *jobs[REAL_TIME_JOBS];
    int count;
};
bool real_time_jobs(struct real_time_jobs *r, struct arena *a, const struct job *job,
                    struct error *e) MUST_USE;

#endif
