// The table of gates and the version it is indexed by.
#include "core/allocator/torch.h"

// First and last minor of 2.x that behave so.
static const struct {
    int since, until;
} gates[TORCH_GATES] = {
    [TORCH_NON_SPLIT_ROUNDING_OPTION] = {6, TORCH_NEWEST},
    [TORCH_FRACTION_OPTION] = {10, TORCH_NEWEST},
    [TORCH_FRACTION_ONE_IS_NO_LIMIT] = {10, TORCH_NEWEST},
    [TORCH_LARGE_SEGMENT_OPTION] = {11, TORCH_NEWEST},
    [TORCH_SPLIT_FLOOR_INCLUSIVE] = {10, TORCH_NEWEST},
    [TORCH_DIVISIONS_REST_STARTS_AFTER] = {10, TORCH_NEWEST},
    [TORCH_MESSAGE_NAMES_ALLOC_CONF] = {10, 10},
    [TORCH_MESSAGE_NEW_URL] = {11, TORCH_NEWEST},
};

bool torch_has(int minor, enum torch_gate gate)
{
    ASSERT(gate < TORCH_GATES);
    return minor >= gates[gate].since && minor <= gates[gate].until;
}

bool torch_version_parse(int *minor, struct str text, struct error *e)
{
    int value = 0;
    ptrdiff_t i = 2;
    if (str_starts(text, STR("2.")))
        for (; i < text.n && i < 4 && text.p[i] >= '0' && text.p[i] <= '9'; i++)
            value = value * 10 + (text.p[i] - '0');
    bool ends = i == text.n || (i < text.n && (text.p[i] == '.' || text.p[i] == '+'));
    if (!ends || value < TORCH_OLDEST || value > TORCH_NEWEST)
        return FAIL(e, UNSUPPORTED, STR_NONE, "torch %.*s is not one of 2.%d to 2.%d",
                    STR_ARGS(text), TORCH_OLDEST, TORCH_NEWEST);
    *minor = value;
    return true;
}
