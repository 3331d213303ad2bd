// See activity.h.
#include "core/time/activity.h"

#include <string.h>

void activity_begin(struct activity *a, double time)
{
    memset(a->busy, 0, sizeof a->busy);
    a->begins = time;
}

void activity_add(struct activity *a, enum spent_on kind, double from, double to)
{
    double width = a->seconds / (double)ACTIVITY_POINTS;
    double first = (from - a->begins) / width, last = (to - a->begins) / width;
    if (!(width > 0) || last <= 0 || first >= (double)ACTIVITY_POINTS)
        return;
    first = first > 0 ? first : 0;
    last = last < (double)ACTIVITY_POINTS ? last : (double)ACTIVITY_POINTS;
    for (int i = (int)first; i < ACTIVITY_POINTS && i < last; i++) {
        double begin = first > i ? first : i, end = last < i + 1 ? last : i + 1;
        a->busy[kind][i] += (end - begin) * width;
    }
}
