// Reading /proc. A process may vanish between two reads: what cannot be read is passed over, and
// whoever ends processes looks again.
#include "host/trials/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "host/files/file.h"

enum { STAT_BYTES = 1024, ENVIRONMENT_BYTES = 8192, DEEPEST = 1000, MEMORY_EVENTS_BYTES = 1 << 16 };

struct status {
    long parent, session;
    int64_t started;
    char state;
};

// The fields after the name in parentheses, which may hold anything: state, parent, session, and
// the 22nd of all, the start time.
static bool read_status(struct status *out, long pid)
{
    char path[64], text[STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *after = strrchr(text, ')');
    long long started;
    // NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers
    if (!after || sscanf(after + 1,
                         " %c %ld %*d %ld %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                         "%*d %lld",
                         &out->state, &out->parent, &out->session, &started) != 4)
        return false;
    out->started = started;
    return true;
}

static bool descends_from(long pid, long ancestor, long spared)
{
    struct status s;
    for (int depth = 0; depth < DEEPEST && pid > 1; depth++) {
        if (pid == spared || !read_status(&s, pid) || (depth == 0 && s.state == 'Z'))
            return false;
        if (s.parent == ancestor)
            return true;
        pid = s.parent;
    }
    return false;
}

ptrdiff_t descendants_signal(int signal_number, pid_t spared)
{
    ptrdiff_t count = 0;
    DIR *folder = opendir("/proc");
    long self = getpid();
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 1 || *end || pid == self || !descends_from(pid, self, spared))
            continue;
        count++;
        kill((pid_t)pid, signal_number);
        if (signal_number == SIGTERM)
            kill((pid_t)pid, SIGCONT);
    }
    if (folder)
        closedir(folder);
    return count;
}

static bool environment_has(long pid, struct str mark)
{
    char path[64], text[ENVIRONMENT_BYTES];
    size_t kept = 0, most = (size_t)mark.n;
    ssize_t n;
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (!found && (n = read(fd, text + kept, sizeof text - kept)) > 0) {
        size_t length = kept + (size_t)n;
        found = memmem(text, length, mark.p, most) != NULL;
        kept = length < most ? length : most;
        memmove(text, text + length - kept, kept);
    }
    close(fd);
    return found;
}

// The session's number is the leader's as long as anybody is in it, and nobody else's.
static bool is_of_trial(long pid, const struct status *s, struct process leader, struct str mark)
{
    bool together = leader.pid > 1 && s->session == (long)leader.pid && process_is_alive(leader);
    return together || (mark.n && environment_has(pid, mark));
}

struct trial_left trial_signal(int signal_number, struct process leader, struct str mark)
{
    struct trial_left left = {0};
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    ASSERT(mark.n < ENVIRONMENT_BYTES);
    while (folder && (entry = readdir(folder))) {
        char *end;
        struct status s;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 1 || *end || pid == getpid() || !read_status(&s, pid) || s.state == 'Z' ||
            !is_of_trial(pid, &s, leader, mark))
            continue;
        left.first = left.count++ ? left.first : (pid_t)pid;
        kill((pid_t)pid, signal_number);
        if (signal_number == SIGTERM)
            kill((pid_t)pid, SIGCONT);
    }
    if (folder)
        closedir(folder);
    return left;
}

struct process process_of(pid_t pid)
{
    struct status s;
    bool there = read_status(&s, pid);
    return (struct process){pid, there ? s.started : 0};
}

bool process_is_alive(struct process p)
{
    struct status s;
    return p.pid > 0 && read_status(&s, (long)p.pid) && s.started == p.started && s.state != 'Z';
}

bool process_is_stopped(pid_t pid)
{
    struct status s;
    return read_status(&s, pid) && (s.state == 'T' || s.state == 't'); // by a signal, or traced
}

uint64_t control_group_kills(struct arena scratch)
{
    struct error ignored = {0};
    struct str text;
    if (!file_read(&text, &scratch, STR("/proc/self/cgroup"), MEMORY_EVENTS_BYTES, &ignored))
        return 0;
    struct str_cut line = str_cut(text, '\n');
    if (!str_starts(line.head, STR("0::")))
        return 0;
    struct str path = str_format(&scratch, "/sys/fs/cgroup%.*s/memory.events",
                                 STR_ARGS(str_slice(line.head, 3, line.head.n)));
    if (!file_read(&text, &scratch, path, MEMORY_EVENTS_BYTES, &ignored))
        return 0;
    for (line = str_cut(text, '\n'); line.head.n; line = str_cut(line.tail, '\n')) {
        uint64_t count;
        struct str_cut pair = str_cut(line.head, ' ');
        if (str_is(pair.head, "oom_kill") && unit_parse(&count, UNIT_PLAIN, pair.tail) == UNIT_OK)
            return count;
    }
    return 0;
}
