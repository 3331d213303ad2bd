// Supervision, with real processes: the fake trainer in each of its moods, and Fathom's own death.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "host/files/file.h"
#include "host/trials/descendants.h"
#include "tests/support/t.h"
#include "tests/support/temp.h"

static char block[8 << 20];

struct seen {
    struct arena *arena;
    uint64_t bytes;
    struct process keeper, command;
    struct buf head; // the first bytes
};

static bool on_start(void *context, struct process keeper, struct error *e)
{
    (void)e;
    ((struct seen *)context)->keeper = keeper;
    return true;
}

static void on_running(void *context, struct process command)
{
    ((struct seen *)context)->command = command;
}

static void on_output(void *context, struct str bytes)
{
    struct seen *s = context;
    s->bytes += (uint64_t)bytes.n;
    if (s->head.n < 4096)
        buf_put(&s->head, str_slice(bytes, 0, bytes.n < 4096 ? bytes.n : 4096));
}

struct setup {
    struct arena arena;
    struct str folder;
    struct keeper_job job;
    struct seen seen;
    struct keeper_watch watch;
    struct keeper_result result;
    struct error error;
    const char *arguments[16];
};

static struct setup *set_up(const char *mode)
{
    static struct setup s;
    s = (struct setup){.arena = arena_over(block, sizeof block, NULL)};
    s.folder = temp_folder(&s.arena);
    s.arguments[0] = FAKE_TRAINER;
    s.arguments[1] = mode;
    s.arguments[2] = "--context";
    s.arguments[3] = "4096";
    s.job = (struct keeper_job){.arguments = s.arguments,
                                .log = path_join(&s.arena, s.folder, STR("a/b/run.log")),
                                .grace_ms = 200,
                                .interrupts = -1};
    s.seen.head = buf_in(&s.arena);
    s.watch = (struct keeper_watch){
        .context = &s.seen, .started = on_start, .running = on_running, .output = on_output};
    return &s;
}

static void add(struct setup *s, const char *name, const char *value)
{
    int n = 0;
    while (s->arguments[n])
        n++;
    s->arguments[n] = name;
    s->arguments[n + 1] = value;
}

static bool run(struct setup *s)
{
    return keeper_run(&s->result, &s->arena, &s->job, &s->watch, &s->error);
}

// Processes of the fake trainer that are still there.
static int left_behind(void)
{
    int count = 0;
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[300], target[4096];
        (void)snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        count += strcmp(target, FAKE_TRAINER) == 0;
    }
    if (folder)
        closedir(folder);
    return count;
}

TEST(a_command_that_ends_well)
{
    struct setup *s = set_up("train");
    struct str log;
    CHECK(run(s));
    CHECK(s->result.end == KEEPER_EXITED);
    CHECK_U64((uint64_t)s->result.status, 0);
    CHECK(file_read(&log, &s->arena, s->job.log, 1 << 20, &s->error));
    CHECK_U64((uint64_t)log.n, s->seen.bytes);
    CHECK(str_starts(log, STR("{\"fathom\": \"start\"")));
    CHECK(!process_is_alive(s->seen.keeper));
    CHECK(s->seen.command.pid > 0 && s->seen.command.pid != s->seen.keeper.pid);
}

TEST(exit_statuses_and_signals)
{
    static const struct {
        const char *mode;
        enum keeper_end end;
        int status;
    } rows[] = {
        {"config", KEEPER_EXITED, 1},
        {"exit137", KEEPER_EXITED, 137},
        {"killed", KEEPER_SIGNALLED, SIGKILL},
        {"garbled", KEEPER_EXITED, 0},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct setup *s = set_up(rows[i].mode);
        CHECK(run(s));
        CHECK(s->result.end == rows[i].end);
        CHECK_U64((uint64_t)s->result.status, (uint64_t)rows[i].status);
    }
}

TEST(descendants_that_hide_are_ended)
{
    struct setup *s = set_up("stubborn");
    add(s, "--sleep", "200"); // time enough for them to hide
    CHECK(run(s));
    CHECK(s->result.end == KEEPER_EXITED);
    CHECK_U64((uint64_t)s->result.status, 0);
    CHECK(s->result.elapsed_ms >= 200); // they ignored SIGTERM, so the grace passed
    CHECK_U64((uint64_t)left_behind(), 0);
}

TEST(a_timeout_ends_what_hangs)
{
    struct setup *s = set_up("stubborn-hang");
    s->job.timeout_ms = 300;
    CHECK(run(s));
    CHECK(s->result.end == KEEPER_TIMED_OUT);
    CHECK(s->result.elapsed_ms >= 500 && s->result.elapsed_ms < 5000);
    CHECK_U64((uint64_t)left_behind(), 0);
}

TEST(a_large_log_is_kept_whole)
{
    struct setup *s = set_up("log");
    add(s, "--bytes", "104857600");
    uint64_t bytes;
    CHECK(run(s));
    CHECK(s->seen.bytes >= 104857600);
    CHECK(file_size(&bytes, s->arena, s->job.log, &s->error));
    CHECK_U64(bytes, s->seen.bytes);
}

TEST(a_command_that_is_not_there)
{
    struct setup *s = set_up("train");
    s->arguments[0] = "/nonexistent/trainer";
    CHECK(!run(s));
    CHECK(s->error.code == ERROR_BAD_INPUT);
    CHECK_STR(str_from(s->error.message),
              "'/nonexistent/trainer' cannot be started (No such file or directory)");
}

TEST(environment_is_set_and_unset)
{
    struct setup *s = set_up("train");
    const char *script[] = {"sh", "-c", "echo $FATHOM_TEST_A:${HOME-unset}", NULL};
    const char *environment[] = {"FATHOM_TEST_A=b c", "HOME", NULL};
    s->job.arguments = script;
    s->job.environment = environment;
    CHECK(run(s));
    CHECK_STR(buf_str(&s->seen.head), "b c:unset\n");
}

TEST(a_full_disk_is_told_in_one_sentence)
{
    struct setup *s = set_up("log");
    add(s, "--bytes", "104857600");
    s->job.log = STR("/dev/full");
    CHECK(!run(s));
    CHECK(s->error.code == ERROR_IO);
    CHECK_STR(str_from(s->error.message), "the disk is full, so this log cannot be written");
    CHECK_U64((uint64_t)left_behind(), 0);
}

TEST(a_folder_that_may_not_be_written)
{
    struct setup *s = set_up("train");
    s->job.log = STR("/proc/1/logs/run.log"); // refuses root as well
    CHECK(!run(s));
    CHECK(s->error.code == ERROR_IO);
    CHECK_STR(str_from(s->error.where), "/proc/1/logs");
}

static int signals_as_file(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static pid_t interrupt_after(int ms, int times)
{
    pid_t target = getpid();
    pid_t pid = fork();
    if (pid)
        return pid;
    for (int i = 0; i < times; i++) {
        usleep((useconds_t)ms * 1000);
        kill(target, SIGUSR1);
    }
    _exit(0);
}

TEST(an_interrupt_ends_and_a_second_one_kills)
{
    int interrupts = signals_as_file();
    struct setup *s = set_up("hang");
    s->job.interrupts = interrupts;
    s->job.grace_ms = 60000;
    pid_t helper = interrupt_after(300, 1);
    CHECK(run(s));
    waitpid(helper, NULL, 0);
    CHECK(s->result.end == KEEPER_INTERRUPTED);
    CHECK_U64((uint64_t)s->result.status, SIGTERM);

    s = set_up("stubborn-hang");
    s->job.interrupts = interrupts;
    s->job.grace_ms = 60000;
    helper = interrupt_after(300, 2);
    CHECK(run(s));
    waitpid(helper, NULL, 0);
    CHECK(s->result.end == KEEPER_INTERRUPTED);
    CHECK_U64((uint64_t)s->result.status, SIGKILL);
    CHECK(s->result.elapsed_ms < 10000);
    CHECK_U64((uint64_t)left_behind(), 0);
    close(interrupts);
}

TEST(when_fathom_dies_so_does_the_trial)
{
    struct setup *s = set_up("stubborn-hang");
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t fathom = fork();
    if (fathom == 0) {
        dup2(ready[1], STDERR_FILENO); // closed with the process
        close(ready[0]);
        (void)!run(s);
        _exit(0);
    }
    close(ready[1]);
    usleep(300000);
    CHECK(left_behind() > 0);
    kill(fathom, SIGKILL);
    waitpid(fathom, NULL, 0);
    for (int i = 0; i < 100 && left_behind(); i++)
        usleep(50000);
    CHECK_U64((uint64_t)left_behind(), 0);
    close(ready[0]);
}

TEST(a_server_lives_until_it_is_ended)
{
    struct setup *s = set_up("stubborn-hang");
    struct keeper k;
    CHECK(keeper_begin(&k, s->arena, &s->job, &s->error));
    usleep(300000);
    CHECK(left_behind() > 0);
    keeper_end(&k);
    CHECK_U64((uint64_t)left_behind(), 0);
}

TEST(a_server_that_is_not_there)
{
    struct setup *s = set_up("train");
    struct keeper k;
    s->arguments[0] = "/nonexistent/python";
    CHECK(!keeper_begin(&k, s->arena, &s->job, &s->error));
    CHECK(s->error.code == ERROR_BAD_INPUT);
    CHECK_STR(str_from(s->error.message),
              "'/nonexistent/python' cannot be started (No such file or directory)");
}

static bool kill_after_start(void *context, struct process keeper, struct error *e)
{
    (void)e;
    ((struct seen *)context)->keeper = keeper;
    if (fork() == 0) {
        usleep(300000);
        kill((pid_t)keeper.pid, SIGKILL);
        _exit(0);
    }
    return true;
}

TEST(when_the_keeper_is_killed_its_orphans_are_ended)
{
    int interrupts = signals_as_file();
    struct setup *s = set_up("stubborn-hang");
    s->watch.started = kill_after_start;
    s->job.timeout_ms = 400; // an order to a keeper that is dead must not end us either
    s->job.interrupts = interrupts;
    pid_t helper = interrupt_after(450, 1);
    s->job.spared = helper;
    CHECK(run(s));
    waitpid(helper, NULL, 0);
    CHECK(s->result.end == KEEPER_LOST);
    CHECK(s->result.interrupted);
    CHECK(s->result.elapsed_ms >= 500 && s->result.elapsed_ms < 5000);
    CHECK_U64((uint64_t)left_behind(), 0);
    close(interrupts);
}

TEST(a_server_whose_keeper_was_killed_is_ended)
{
    struct setup *s = set_up("stubborn-hang");
    struct keeper k;
    CHECK(keeper_begin(&k, s->arena, &s->job, &s->error));
    CHECK(keeper_is_alive(&k));
    usleep(300000);
    kill(k.pid, SIGKILL);
    for (int i = 0; i < 100 && keeper_is_alive(&k); i++)
        usleep(20000);
    CHECK(!keeper_is_alive(&k));
    CHECK_U64((uint64_t)left_behind(), 0);
    keeper_end(&k);
}

TEST(a_server_whose_keeper_is_stopped_is_ended)
{
    struct setup *s = set_up("hang");
    struct keeper k;
    CHECK(keeper_begin(&k, s->arena, &s->job, &s->error));
    usleep(300000);
    kill(k.pid, SIGSTOP);
    alarm(10); // instead of waiting for ever
    keeper_end(&k);
    alarm(0);
    CHECK_U64((uint64_t)left_behind(), 0);
}

// The command is done; what it left behind takes the whole grace.
TEST(a_status_counts_although_the_time_is_over_in_the_grace)
{
    int interrupts = signals_as_file();
    struct setup *s = set_up("stubborn");
    add(s, "--sleep", "100");
    s->job.timeout_ms = 500;
    s->job.grace_ms = 1500;
    s->job.interrupts = interrupts;
    pid_t helper = interrupt_after(800, 1);
    CHECK(run(s));
    waitpid(helper, NULL, 0);
    CHECK(s->result.end == KEEPER_EXITED);
    CHECK_U64((uint64_t)s->result.status, 0);
    CHECK(s->result.interrupted);
    CHECK_U64((uint64_t)left_behind(), 0);
    close(interrupts);
}

TEST(a_farewell_is_longer_than_the_grace_and_than_two_interruptions)
{
    int interrupts = signals_as_file();
    struct setup *s = set_up("train");
    const char *script[] = {"sh", "-c",
                            "trap 'sleep 1; echo stopped; exit 3' TERM; sleep 60 & wait", NULL};
    s->job.arguments = script;
    s->job.grace_ms = 100;
    s->job.farewell_ms = 20000;
    s->job.interrupts = interrupts;
    pid_t helper = interrupt_after(300, 2);
    CHECK(run(s));
    waitpid(helper, NULL, 0);
    CHECK(s->result.end == KEEPER_INTERRUPTED);
    CHECK_U64((uint64_t)s->result.status, 3);
    CHECK_STR(buf_str(&s->seen.head), "stopped\n");
    CHECK(s->result.elapsed_ms < 5000);
    close(interrupts);
}

static bool waits_for_output(void *context)
{
    return ((struct seen *)context)->bytes == 0;
}

TEST(time_does_not_count_while_a_command_waits_for_its_turn)
{
    struct setup *s = set_up("train");
    const char *script[] = {"sh", "-c", "sleep 1; echo runs; sleep 60", NULL};
    s->job.arguments = script;
    s->job.timeout_ms = 500;
    s->watch.waits = waits_for_output;
    CHECK(run(s));
    CHECK(s->result.end == KEEPER_TIMED_OUT);
    CHECK_STR(buf_str(&s->seen.head), "runs\n");
    CHECK(s->result.elapsed_ms >= 1500 && s->result.elapsed_ms < 10000);
}
