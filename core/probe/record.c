// See record.h.
#include "core/probe/record.h"

void peaks_time(struct peaks *p, const struct step_record *s)
{
    bool less = p->step_seconds <= 0 || s->seconds < p->step_seconds;
    if (s->number > 1 && s->seconds > 0 && less)
        p->step_seconds = s->seconds;
}
