// Trinity's test starts at 4096 tokens or at its start_length, and goes up by 4096 while the length
// is below the positions of the model, then by a quarter of that.
#include "core/search/grid.h"

#include "core/base/num.h"

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

static uint64_t trinity_length(const struct grid *g, uint64_t index)
{
    uint64_t first = g->first ? g->first : TRINITY_STEP, quarter = g->max_position / 4;
    uint64_t short_of = g->max_position > first ? g->max_position - first : 0;
    uint64_t small_steps = u64_divide_up(short_of, TRINITY_STEP);
    if (index <= small_steps || !quarter)
        return first + index * TRINITY_STEP;
    return first + small_steps * TRINITY_STEP + (index - small_steps) * quarter;
}

static uint64_t length_at(const struct grid *g, ptrdiff_t index)
{
    if (g->lengths)
        return index < g->length_count ? g->lengths[index] : UINT64_MAX;
    return g->trinity ? trinity_length(g, (uint64_t)index) : ((uint64_t)index + 1) * g->step;
}

uint64_t grid_length(const struct grid *g, ptrdiff_t index)
{
    ptrdiff_t left_out = 0;
    while (g->above && length_at(g, left_out) <= g->above)
        left_out++;
    return length_at(g, left_out + index);
}
