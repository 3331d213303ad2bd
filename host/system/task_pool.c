// Threads take the next task until none is left. Where the system gives no thread at all, the
// caller's does the work.
#include "host/system/task_pool.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "host/system/memory.h"

enum { MOST_THREADS = 64, PROGRESS_MS = 100 };

struct shared {
    const struct task_pool *pool;
    const struct tasks *tasks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ptrdiff_t next, done; // under the lock, as what follows
    int running;
};

static bool take(struct shared *s, ptrdiff_t *index)
{
    pthread_mutex_lock(&s->lock);
    bool found = s->next < s->tasks->count;
    *index = s->next;
    s->next += found;
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void finish(struct shared *s, ptrdiff_t tasks, int threads)
{
    pthread_mutex_lock(&s->lock);
    s->done += tasks;
    s->running -= threads;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void work(struct shared *s)
{
    struct host_memory memory;
    struct error e = {0};
    if (!host_memory_reserve(&memory, &e)) {
        if (s->pool->exhausted)
            s->pool->exhausted(NULL);
        __builtin_trap();
    }
    struct arena arena = host_arena(&memory, s->pool->exhausted);
    for (ptrdiff_t index; take(s, &index);) {
        s->tasks->run(s->tasks->context, index, arena);
        finish(s, 1, 0);
    }
    host_memory_release(&memory);
}

static void *thread_main(void *argument)
{
    work(argument);
    finish(argument, 0, 1);
    return NULL;
}

static int thread_count(const struct task_pool *pool, const struct tasks *tasks)
{
    long processors = pool->threads ? pool->threads : sysconf(_SC_NPROCESSORS_ONLN);
    long most = tasks->count < MOST_THREADS ? (long)tasks->count : MOST_THREADS;
    return processors < 1 ? 1 : processors > most ? (int)most : (int)processors;
}

static struct timespec soon(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += PROGRESS_MS * 1000000L;
    at.tv_sec += at.tv_nsec / 1000000000L;
    at.tv_nsec %= 1000000000L;
    return at;
}

static void report(const struct shared *s, ptrdiff_t done)
{
    const struct tasks *t = s->tasks;
    if (s->pool->progress)
        s->pool->progress(s->pool->context, t->before + done, t->of ? t->of : t->count);
}

static void wait_for_all(struct shared *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->running) {
        struct timespec at = soon();
        pthread_cond_timedwait(&s->changed, &s->lock, &at);
        ptrdiff_t done = s->done;
        pthread_mutex_unlock(&s->lock);
        report(s, done);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    report(s, s->done);
}

static void run(void *host, const struct tasks *tasks)
{
    struct shared s = {.pool = host, .tasks = tasks};
    pthread_t threads[MOST_THREADS];
    int wanted = thread_count(s.pool, tasks), started = 0;
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    s.running = wanted;
    while (started < wanted && pthread_create(&threads[started], NULL, thread_main, &s) == 0)
        started++;
    finish(&s, 0, wanted - started);
    if (!started)
        work(&s);
    wait_for_all(&s);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
}

struct runner task_pool_runner(struct task_pool *pool)
{
    return (struct runner){run, pool};
}
