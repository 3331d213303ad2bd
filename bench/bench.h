// What the measurements of this folder share: the clock, the settings of a question, and a list of
// them one after another, each beside the seconds that it may take.
#ifndef FATHOM_BENCH_BENCH_H
#define FATHOM_BENCH_BENCH_H

#include "core/settings/settings.h"
#include "host/system/memory.h"

double bench_seconds(void);

// False where one of them is no setting.
bool bench_settings(struct settings *s, struct arena *a, const char *text,
                    struct error *e) MUST_USE;

struct bench_row {
    const char *settings;
    double allowed; // seconds
};

// Answers the question and writes what came out of it.
typedef bool bench_question(struct str *told, struct arena *a, const struct settings *s,
                            struct error *e);

// The status of the process: whether each could be answered.
int bench_rows(const struct bench_row *rows, ptrdiff_t count, bench_question *question);

#endif
