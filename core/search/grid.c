// Trinity's test starts at 4096 tokens and goes up by 4096 while the length is below what the model
// was trained for, then by a quarter of that.
#include "core/search/grid.h"

enum { MOST_STEP = 1 << 24 };

bool grid_parse(struct grid *g, const struct setting *item, struct error *e)
{
    if (!item)
        return true;
    g->trinity = str_is(item->value, "trinity");
    uint64_t step = 0;
    if (!g->trinity && unit_parse(&step, UNIT_COUNT, item->value) != UNIT_OK)
        return FAIL(e, BAD_INPUT, item->where,
                    "grid must be trinity or a number of tokens such as 1024, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    struct range range = {16, MOST_STEP};
    return g->trinity || setting_number(&g->step, item, UNIT_COUNT, range, e);
}

uint64_t grid_length(const struct grid *g, ptrdiff_t index)
{
    uint64_t number = (uint64_t)index + 1;
    if (g->lengths)
        return index < g->length_count ? g->lengths[index] : UINT64_MAX;
    if (!g->trinity)
        return number * g->step;
    uint64_t quarter = g->max_position / 4;
    uint64_t small_steps = (g->max_position + TRINITY_STEP - 1) / TRINITY_STEP;
    if (number <= small_steps || !quarter)
        return number * TRINITY_STEP;
    return small_steps * TRINITY_STEP + (number - small_steps) * quarter;
}
