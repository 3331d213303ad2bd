// Fathom's side of the supervision: the loop that reads the command's output, writes the log, and
// watches time and signals. host/trials/keeper_process.c is the other side.
#include "host/trials/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/files/folder.h"
#include "host/trials/descendants.h"
#include "host/trials/keeper_process.h"

enum { OUTPUT_BYTES = 256 * 1024, TICK_MS = 1000, ORPHANS_MS = 5000 };
// A keeper that is to end something and stays stopped so long after it was continued is killed.
enum { STOPPED_MS = 2000 };

uint64_t monotonic_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

// Pipes to and from a keeper that was just made.
struct line {
    pid_t pid;
    int orders, news, output;
};

enum { READ_END, WRITE_END };

static void close_pair(const int *pair)
{
    close(pair[READ_END]);
    close(pair[WRITE_END]);
}

// `output` is where the command writes; -1 makes a pipe for it. Orders go through a socket, which
// can be written to without SIGPIPE when the keeper is dead. What a keeper that was killed leaves
// behind falls to us. Who has inherited an ignored SIGCHLD never learns how a child ended.
static bool start_keeper(struct line *l, const struct keeper_job *job, int output, struct error *e)
{
    int orders[2], news[2], pipe_of_output[2] = {-1, output};
    (void)signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders) != 0)
        return FAIL(e, IO, STR_NONE, "no pipe can be made (%s)", strerror(errno));
    if (pipe2(news, O_CLOEXEC) != 0) {
        close_pair(orders);
        return FAIL(e, IO, STR_NONE, "no pipe can be made (%s)", strerror(errno));
    }
    if (output < 0 && pipe2(pipe_of_output, O_CLOEXEC) != 0) {
        close_pair(orders);
        close_pair(news);
        return FAIL(e, IO, STR_NONE, "no pipe can be made (%s)", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0)
        be_keeper(job, orders[READ_END], news[WRITE_END], pipe_of_output[WRITE_END]);
    int reason = errno;
    close(orders[READ_END]);
    close(news[WRITE_END]);
    if (output < 0)
        close(pipe_of_output[WRITE_END]);
    *l = (struct line){pid, orders[WRITE_END], news[READ_END], pipe_of_output[READ_END]};
    if (pid > 0)
        return true;
    close(l->orders);
    close(l->news);
    if (l->output >= 0)
        close(l->output);
    return FAIL(e, IO, STR_NONE, "no process can be started (%s)", strerror(reason));
}

static void close_orders(struct line *l)
{
    if (l->orders >= 0)
        close(l->orders);
    l->orders = -1;
}

struct run {
    const struct keeper_job *job;
    const struct keeper_watch *watch;
    struct line line;
    char *buffer;
    int log, log_error; // errno of the first write that failed
    int output_error;   // errno of the read that failed
    uint64_t log_bytes, began_ms, next_tick_ms, deadline_ms;
    bool timed_out, interrupted, lost;
    uint64_t ordered_ms; // when the keeper was first told to end; 0: not yet
    uint64_t kill_at_ms; // of what a keeper left behind
    bool has_news;
    struct news news;
};

static void give_order(const struct line *l, enum order what)
{
    char byte = (char)what;
    if (l->orders >= 0)
        (void)!send(l->orders, &byte, 1, MSG_NOSIGNAL);
}

// A keeper that was stopped hears nothing. It is continued; where that does not help after an order
// to end, it is killed, and what it kept falls to us.
static void rouse(pid_t keeper, uint64_t ordered_ms)
{
    bool late = ordered_ms && monotonic_ms() >= ordered_ms + STOPPED_MS;
    if (process_is_stopped(keeper))
        (void)kill(keeper, late ? SIGKILL : SIGCONT);
}

void keeper_rouse(struct process keeper)
{
    if (process_is_alive(keeper))
        rouse((pid_t)keeper.pid, 0);
}

static void order_end(struct run *r, enum order what)
{
    give_order(&r->line, what);
    if (!r->ordered_ms)
        r->ordered_ms = monotonic_ms();
    rouse(r->line.pid, r->ordered_ms);
}

static void write_log(struct run *r, struct str bytes)
{
    while (bytes.n && !r->log_error) {
        ssize_t n = write(r->log, bytes.p, (size_t)bytes.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            r->log_error = errno;
            order_end(r, ORDER_KILL);
            return;
        }
        r->log_bytes += (uint64_t)n;
        bytes = str_slice(bytes, n, bytes.n);
    }
}

static void read_output(struct run *r)
{
    ssize_t n = read(r->line.output, r->buffer, OUTPUT_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        r->output_error = n < 0 ? errno : 0;
        if (n < 0)
            order_end(r, ORDER_KILL);
        close(r->line.output);
        r->line.output = -1;
        return;
    }
    struct str bytes = {r->buffer, n};
    write_log(r, bytes);
    if (r->watch->output)
        r->watch->output(r->watch->context, bytes);
}

static void read_news(struct run *r)
{
    struct news n;
    ssize_t got = read(r->line.news, &n, sizeof n);
    if (got == (ssize_t)sizeof n) {
        r->news = n;
        r->has_news = n.kind != NEWS_STARTED;
        if (n.kind == NEWS_STARTED && r->watch->running)
            r->watch->running(r->watch->context, process_of(n.pid));
    } else if (got == 0 || (got < 0 && errno != EINTR)) {
        close(r->line.news);
        r->line.news = -1;
        r->lost = !r->has_news;
    }
}

// The keeper is dead and what it kept has fallen to us: SIGTERM, the grace, SIGKILL. Whoever still
// holds the output after that is none of the trial's.
static void end_orphans(struct run *r)
{
    uint64_t now = monotonic_ms();
    bool first = !r->kill_at_ms;
    if (first)
        r->kill_at_ms = now + keeper_grace(r->job);
    bool late = now >= r->kill_at_ms;
    ptrdiff_t left = descendants_signal(first ? SIGTERM : late ? SIGKILL : 0, r->job->spared);
    if (left == 0 && late && r->line.output >= 0) {
        close(r->line.output);
        r->line.output = -1;
    }
    r->lost = left > 0 || r->line.output >= 0;
}

static void read_interrupt(struct run *r)
{
    struct signalfd_siginfo info;
    if (read(r->job->interrupts, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    order_end(r, r->interrupted ? ORDER_KILL : ORDER_END);
    if (r->interrupted && r->kill_at_ms)
        r->kill_at_ms = monotonic_ms();
    r->interrupted = true;
}

static void watch_time(struct run *r)
{
    uint64_t now = monotonic_ms();
    if (r->deadline_ms && r->watch->waits && r->watch->waits(r->watch->context))
        r->deadline_ms = now + r->job->timeout_ms;
    if (r->deadline_ms && now >= r->deadline_ms && !r->timed_out) {
        r->timed_out = true;
        order_end(r, ORDER_END);
    }
    if (now >= r->next_tick_ms) {
        r->next_tick_ms = now + TICK_MS;
        rouse(r->line.pid, r->ordered_ms);
        if (r->watch->tick)
            r->watch->tick(r->watch->context, now - r->began_ms);
    }
}

static int until_something(const struct run *r)
{
    uint64_t now = monotonic_ms(), next = r->next_tick_ms;
    if (r->lost)
        return KILL_AGAIN_MS;
    if (r->deadline_ms && !r->timed_out && r->deadline_ms < next)
        next = r->deadline_ms;
    return next <= now ? 0 : (int)(next - now);
}

static void follow(struct run *r)
{
    while (r->line.news >= 0 || r->line.output >= 0 || r->lost) {
        struct pollfd fds[] = {{r->line.output, POLLIN, 0},
                               {r->line.news, POLLIN, 0},
                               {r->job->interrupts, POLLIN, 0}};
        int ready = poll(fds, COUNT_OF(fds), until_something(r));
        if (ready > 0 && fds[0].revents)
            read_output(r);
        if (ready > 0 && fds[1].revents)
            read_news(r);
        if (ready > 0 && fds[2].revents)
            read_interrupt(r);
        if (r->lost)
            end_orphans(r);
        watch_time(r);
    }
}

static bool cannot_write_log(struct str path, int reason, struct error *e)
{
    if (reason == ENOSPC || reason == EDQUOT)
        return FAIL(e, IO, path, "the disk is full, so this log cannot be written");
    if (reason == EROFS || reason == EACCES || reason == EPERM)
        return FAIL(e, IO, path, "this log may not be written (%s)", strerror(reason));
    return FAIL(e, IO, path, "this log cannot be written (%s)", strerror(reason));
}

static int open_log(struct arena scratch, struct str path, struct error *e)
{
    if (!folder_make(scratch, str_cut_last(path, '/').head, e))
        return -1;
    enum { ANEW = O_CREAT | O_TRUNC | O_APPEND, AT_ONCE = O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
    int fd = open(str_z(&scratch, path), O_WRONLY | ANEW | AT_ONCE, 0666);
    if (fd < 0)
        cannot_write_log(path, errno, e);
    return fd;
}

static bool not_started(const struct keeper_job *job, int reason, struct error *e)
{
    if (reason == EAGAIN || reason == ENOMEM || reason == EMFILE || reason == ENFILE)
        return FAIL(e, IO, STR_NONE, "no process can be started (%s)", strerror(reason));
    return FAIL(e, BAD_INPUT, STR_NONE, "'%s' cannot be started (%s)", job->arguments[0],
                strerror(reason));
}

static bool judge(struct keeper_result *out, const struct run *r, struct error *e)
{
    if (r->has_news && r->news.kind == NEWS_NOT_STARTED)
        return not_started(r->job, r->news.value, e);
    if (r->log_error)
        return cannot_write_log(r->job->log, r->log_error, e);
    if (r->output_error)
        return FAIL(e, IO, STR_NONE, "the output of a trial cannot be read (%s)",
                    strerror(r->output_error));
    bool exited = WIFEXITED(r->news.value);
    *out = (struct keeper_result){
        .end = !r->has_news                      ? KEEPER_LOST
               : r->news.asked && r->interrupted ? KEEPER_INTERRUPTED
               : r->news.asked && r->timed_out   ? KEEPER_TIMED_OUT
               : exited                          ? KEEPER_EXITED
                                                 : KEEPER_SIGNALLED,
        .status = exited ? WEXITSTATUS(r->news.value) : WTERMSIG(r->news.value),
        .interrupted = r->interrupted,
        .elapsed_ms = monotonic_ms() - r->began_ms,
        .log_bytes = r->log_bytes,
    };
    return true;
}

// Its status, of wait.
static int wait_for_keeper(pid_t pid)
{
    uint64_t began = monotonic_ms();
    for (;;) {
        int status = 0;
        pid_t found = waitpid(pid, &status, WNOHANG);
        if (found == pid || (found < 0 && errno != EINTR))
            return status;
        rouse(pid, began);
        usleep(KILL_AGAIN_MS * 1000);
    }
}

bool keeper_run(struct keeper_result *out, struct arena *a, const struct keeper_job *job,
                const struct keeper_watch *watch, struct error *e)
{
    struct run r = {.job = job, .watch = watch, .began_ms = monotonic_ms()};
    r.buffer = NEW(a, char, OUTPUT_BYTES);
    r.next_tick_ms = r.began_ms + TICK_MS;
    r.deadline_ms = job->timeout_ms ? r.began_ms + job->timeout_ms : 0;
    uint64_t kills = control_group_kills(*a);
    r.log = open_log(*a, job->log, e);
    if (r.log < 0)
        return false;
    bool ok = start_keeper(&r.line, job, -1, e);
    if (ok) {
        bool told = !watch->started || watch->started(watch->context, process_of(r.line.pid), e);
        if (told)
            give_order(&r.line, ORDER_GO);
        else
            close_orders(&r.line);
        follow(&r);
        close_orders(&r.line);
        (void)wait_for_keeper(r.line.pid);
        ok = told && judge(out, &r, e);
    }
    close(r.log);
    if (ok)
        out->oom_kills = control_group_kills(*a) - kills;
    return ok;
}

// A keeper that was killed has left its command to us.
static void end_what_is_left(int status)
{
    if (!WIFSIGNALED(status))
        return;
    for (int ms = 0; ms < ORPHANS_MS && descendants_signal(SIGKILL, 0); ms += KILL_AGAIN_MS)
        usleep(KILL_AGAIN_MS * 1000);
}

bool keeper_begin(struct keeper *k, struct arena scratch, const struct keeper_job *job,
                  struct error *e)
{
    struct line l;
    int log = open_log(scratch, job->log, e);
    if (log < 0)
        return false;
    bool ok = start_keeper(&l, job, log, e);
    close(log);
    if (!ok)
        return false;
    struct news n = {.kind = NEWS_NOT_STARTED, .value = ESRCH}; // where the keeper is dead already
    struct pollfd told = {l.news, POLLIN, 0};
    uint64_t began = monotonic_ms();
    give_order(&l, ORDER_GO);
    while (poll(&told, 1, TICK_MS) <= 0)
        rouse(l.pid, began);
    (void)!read(l.news, &n, sizeof n);
    close(l.news);
    *k = (struct keeper){.pid = l.pid, .control = l.orders};
    if (n.kind == NEWS_STARTED)
        return true;
    keeper_end(k);
    return not_started(job, n.value, e);
}

bool keeper_is_alive(struct keeper *k)
{
    char byte;
    if (k->pid > 0 && recv(k->control, &byte, 1, MSG_DONTWAIT) == 0)
        keeper_end(k);
    return k->pid > 0;
}

void keeper_end(struct keeper *k)
{
    if (k->pid <= 0)
        return;
    close(k->control);
    end_what_is_left(wait_for_keeper(k->pid));
    k->pid = 0;
}
