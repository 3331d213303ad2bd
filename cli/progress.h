// A bar on standard error while many tasks run: only on a terminal, only after a second, and erased
// at the end.
#ifndef FATHOM_CLI_PROGRESS_H
#define FATHOM_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    bool shown, terminal;
    double started, written; // seconds; 0: not yet
};

struct progress progress_of_terminal(void);
void progress_show(void *progress, ptrdiff_t done, ptrdiff_t total);
void progress_end(struct progress *p); // erases what is there still

#endif
