// The time of a pipeline's step, of what its first, second and last rank take each.
#ifndef FATHOM_PREDICT_STAGES_H
#define FATHOM_PREDICT_STAGES_H

#include "core/predict/step_time.h"

enum { SEEN_FIRST, SEEN_BETWEEN, SEEN_LAST, SEEN_STAGES };

// What was simulated of a rank; those between first and last are all like the second.
struct seen_stage {
    struct passing passing;
    struct step_time time;
    struct network network;
    double spent;        // by its last step
    struct elapsed last; // what that was spent on
};

// The rank that is simulated for each of them.
uint64_t seen_rank(const struct job *job, int seen);

// A pipeline of two ranks has none between them.
bool is_seen(const struct job *job, int seen);

// A step of all of them, of several.
double stages_seconds(struct arena scratch, const struct job *job,
                      const struct seen_stage seen[SEEN_STAGES]);

struct step_time step_time_of_stages(struct arena scratch, const struct job *job,
                                     const struct seen_stage seen[SEEN_STAGES]);

#endif
