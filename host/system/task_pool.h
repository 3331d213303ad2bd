// A runner of core's tasks with threads: as many as there are processors, each with memory of its
// own. The caller's thread waits and reports progress, so what shows it need not know threads.
#ifndef FATHOM_HOST_SYSTEM_TASK_POOL_H
#define FATHOM_HOST_SYSTEM_TASK_POOL_H

#include "core/base/runner.h"
#include "host/system/memory.h"

enum { TASK_POOL_THREADS = 64 }; // at most

struct task_pool {
    int threads;                      // 0: one for each processor
    void (*exhausted)(void *context); // of a thread's memory; does not return
    void (*progress)(void *context, ptrdiff_t done, ptrdiff_t total); // NULL for none
    void *context;
    struct host_memory memory[TASK_POOL_THREADS]; // of each thread, from its first run on
};

struct runner task_pool_runner(struct task_pool *pool); // keeps the pool by reference

void task_pool_release(struct task_pool *pool); // what its threads took

#endif
