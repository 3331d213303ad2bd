// Every setting a user may give, one row each, with all that anyone wants to know of it: reading,
// checking, help, comparing, phrasing, writing into files and passing on to trials walk these rows,
// in this order. The names are fixed: scripts rely on them.
#include "core/job/table.h"

static const struct setting_def *const groups[] = {
    training_settings,
    asked_settings,
    task_settings,
    serving_settings,
};

// The row before the end of a group is followed by the first row of the group after it.
const struct setting_def *setting_def_next(const struct setting_def *def)
{
    if (!def)
        return groups[0];
    if (def[1].name)
        return def + 1;
    for (ptrdiff_t i = 0; i + 1 < COUNT_OF(groups); i++) {
        const struct setting_def *last = groups[i];
        while (last[1].name)
            last++;
        if (last == def)
            return groups[i + 1];
    }
    return NULL;
}
