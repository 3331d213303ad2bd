// `fathom page`: the page is the core itself as WebAssembly, so that only a program can carry it.
#include "core/command/command.h"

bool page_answer(struct answer *a, const struct query *q, struct error *e)
{
    (void)a;
    (void)q;
    return FAIL(e, UNSUPPORTED, STR_NONE, "the page is written by the program, not the library");
}
