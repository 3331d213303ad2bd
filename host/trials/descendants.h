// Processes as /proc shows them: who descends from us, whether one is still the one that was meant,
// and how often the kernel killed for want of memory in our control group.
#ifndef FATHOM_HOST_TRIALS_DESCENDANTS_H
#define FATHOM_HOST_TRIALS_DESCENDANTS_H

#include "core/base/arena.h"
#include "host/trials/keeper.h"

// Sends it to every process that descends from this one, however far, but not through `spared`, and
// says how many are alive; 0 is no signal.
ptrdiff_t descendants_signal(int signal_number, pid_t spared);

// Processes of a trial that nobody keeps any more: those of the session that `leader` leads, while
// it is alive, and those whose environment has the mark.
struct trial_left {
    ptrdiff_t count;
    pid_t first;
};
struct trial_left trial_signal(int signal_number, struct process leader, struct str mark);

struct process process_of(pid_t pid); // started is 0 where there is none
bool process_is_stopped(pid_t pid);

uint64_t control_group_kills(struct arena scratch); // 0 where it cannot be known

#endif
