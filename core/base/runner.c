// The runner of a host without threads.
#include "core/base/runner.h"

void runner_run(const struct runner *r, struct arena scratch, const struct tasks *tasks)
{
    if (r) {
        r->run(r->host, tasks);
        return;
    }
    for (ptrdiff_t i = 0; i < tasks->count; i++)
        tasks->run(tasks->context, i, scratch);
}
