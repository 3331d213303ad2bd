// The keeper's own side of host/trials/keeper.h, and what passes between the two.
#ifndef FATHOM_HOST_TRIALS_KEEPER_PROCESS_H
#define FATHOM_HOST_TRIALS_KEEPER_PROCESS_H

#include "host/trials/keeper.h"

// What the keeper is told and what it tells.
enum order { ORDER_GO = 'g', ORDER_END = 'e', ORDER_KILL = 'k' };
enum news_kind { NEWS_STARTED, NEWS_NOT_STARTED, NEWS_ENDED };
struct news {
    enum news_kind kind;
    int value;  // errno, or the status of wait
    pid_t pid;  // of the command that has started
    bool asked; // the command still ran when the keeper was told to end it
};

// While something is to be killed, it is killed again after so many milliseconds.
enum { KILL_AGAIN_MS = 20 };

// Between SIGTERM and SIGKILL.
uint64_t keeper_grace(const struct keeper_job *job);

// Makes the process, which is a child of Fathom's, the keeper of the job until all of it has ended.
NO_RETURN void be_keeper(const struct keeper_job *job, int orders, int news, int output);

#endif
