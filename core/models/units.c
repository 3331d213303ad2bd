// See units.h.
#include "core/models/units.h"

#include "core/models/calls.h"

int unit_number(const struct trainer *t, enum part part)
{
    return t->strategy->unit_of ? t->strategy->unit_of(t, part) : -1;
}

int unit_of_tail(const struct trainer *t)
{
    return t->strategy->tail_of ? t->strategy->tail_of(t) : -1;
}

int unit_of_experts(const struct trainer *t, int layer, bool with_router)
{
    return t->strategy->block_of ? t->strategy->block_of(t, layer, with_router) : -1;
}

void unit_enter(struct trainer *t, int unit)
{
    if (t->strategy->enter_unit && unit >= 0)
        t->strategy->enter_unit(t, unit);
}

void unit_leave(struct trainer *t, int unit)
{
    if (t->strategy->leave_unit && unit >= 0)
        t->strategy->leave_unit(t, unit);
}

void units_see_rotary(struct trainer *t)
{
    if (t->strategy->enter_rotary)
        t->strategy->enter_rotary(t);
}

struct var unit_mark(struct trainer *t, struct var x, int unit, bool input)
{
    if (!t->strategy->unit_of || unit < 0)
        return same(x);
    return unnamed(op_boundary(&t->graph, taken(x), unit, input));
}
