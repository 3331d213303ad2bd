// Threads take the next task until none is left. Where the system gives no thread at all, the
// caller's does the work.
#include "host/system/task_pool.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_MS = 100 };

struct shared {
    struct task_pool *pool;
    const struct tasks *tasks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ptrdiff_t next, done; // under the lock, as what follows
    int running;
};

struct worker {
    struct shared *shared;
    struct host_memory *memory;
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

static void work(const struct worker *w)
{
    struct shared *s = w->shared;
    struct error e = {0};
    if (!w->memory->block && !host_memory_reserve(w->memory, &e)) {
        if (s->pool->exhausted)
            s->pool->exhausted(NULL);
        __builtin_trap();
    }
    struct arena arena = host_arena(w->memory, s->pool->exhausted);
    for (ptrdiff_t index; take(s, &index);) {
        s->tasks->run(s->tasks->context, index, arena);
        finish(s, 1, 0);
    }
}

static void *thread_main(void *argument)
{
    const struct worker *w = argument;
    work(w);
    finish(w->shared, 0, 1);
    return NULL;
}

static int thread_count(const struct task_pool *pool, const struct tasks *tasks)
{
    long processors = pool->threads ? pool->threads : sysconf(_SC_NPROCESSORS_ONLN);
    long most = tasks->count < TASK_POOL_THREADS ? (long)tasks->count : TASK_POOL_THREADS;
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
    pthread_t threads[TASK_POOL_THREADS];
    struct worker workers[TASK_POOL_THREADS];
    int wanted = thread_count(s.pool, tasks), started = 0;
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    s.running = wanted;
    for (int i = 0; i < TASK_POOL_THREADS; i++)
        workers[i] = (struct worker){&s, &s.pool->memory[i]};
    while (started < wanted &&
           pthread_create(&threads[started], NULL, thread_main, &workers[started]) == 0)
        started++;
    finish(&s, 0, wanted - started);
    if (!started)
        work(&workers[0]);
    wait_for_all(&s);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
}

void task_pool_release(struct task_pool *pool)
{
    for (int i = 0; i < TASK_POOL_THREADS; i++)
        host_memory_release(&pool->memory[i]);
}

struct runner task_pool_runner(struct task_pool *pool)
{
    return (struct runner){run, pool};
}
