// Jobs out of settings with spaces between them, as tests ask for them; what fails, fails the test.
#ifndef FATHOM_TESTS_JOBS_H
#define FATHOM_TESTS_JOBS_H

#include "core/predict/predict.h"

bool job_of(struct job *p, struct arena *a, const char *settings, struct error *e);

// In what is left of the test's arena, which may hold the settings.
struct job *job_in(struct arena *a, const char *settings);
struct prediction predicted_in(struct arena *a, const char *settings);
struct trace history_in(struct arena *a, const char *settings);

#endif
