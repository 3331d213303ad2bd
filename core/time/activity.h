// What a step's streams do when: how much of each of its equal stretches goes to what. A timeline
// fills it in as it runs.
#ifndef FATHOM_TIME_ACTIVITY_H
#define FATHOM_TIME_ACTIVITY_H

enum { ACTIVITY_POINTS = 480 };

// What a stream's time goes to.
enum spent_on {
    WORK_PRODUCTS,
    WORK_ATTENTION,
    WORK_MEMORY,
    WORK_HOST_COPY,
    WORK_HOST_UPDATE,
    WORK_COLLECTIVE,
    WORK_KINDS
};

struct activity {
    double begins, seconds;                   // of the step, which must be known before
    double busy[WORK_KINDS][ACTIVITY_POINTS]; // seconds
};

void activity_begin(struct activity *a, double time); // a step: what was there is forgotten
void activity_add(struct activity *a, enum spent_on kind, double from, double to);

#endif
