// `fathom probe` as the library sees it: it starts processes, which only the program can. The
// program answers it through host/probe.
#include "core/command/command.h"

bool probe_answer(struct answer *a, const struct query *q, struct error *e)
{
    (void)a;
    (void)q;
    return FAIL(e, UNSUPPORTED, STR_NONE,
                "probing starts training jobs, which the program can and the library cannot");
}
