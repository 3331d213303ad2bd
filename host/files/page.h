// The page for browsers, as the program carries it where it was built with one (`make page`).
#ifndef FATHOM_HOST_FILES_PAGE_H
#define FATHOM_HOST_FILES_PAGE_H

#include "core/command/command.h"

// `fathom page`: the page as a file of the answer.
bool page_command(struct answer *a, const struct query *q, struct error *e) MUST_USE;

#endif
