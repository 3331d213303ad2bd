// See units.h.
#include "core/models/units.h"

#include "core/ops/ops.h"

int unit_number(const struct trainer *t, enum part part)
{
    return t->sharding ? t->sharding->unit_of(t, part) : -1;
}

void unit_enter(struct trainer *t, int unit)
{
    if (t->sharding && unit >= 0)
        t->sharding->before_forward(t, unit);
}

void unit_leave(struct trainer *t, int unit)
{
    if (t->sharding && unit >= 0)
        t->sharding->after_forward(t, unit);
}

struct var unit_mark(struct trainer *t, struct var x, int unit, bool input)
{
    return t->sharding && unit >= 0 ? op_boundary(&t->graph, x, unit, input) : x;
}
