// Ctrl-C and its relatives as something to read: while a trial runs, they must end it in order.
#ifndef FATHOM_HOST_SYSTEM_INTERRUPTS_H
#define FATHOM_HOST_SYSTEM_INTERRUPTS_H

#include <signal.h>
#include <stdbool.h>

struct interrupts {
    int fd; // a signalfd of SIGINT, SIGTERM and, unless it is ignored, SIGHUP; -1: there is none
    sigset_t before;
};

struct interrupts interrupts_catch(void);
bool interrupts_pending(const struct interrupts *i); // one came, and is taken
void interrupts_release(struct interrupts *i);

#endif
