// A trainer for tests of supervision: it fits up to a limit, or dies in one of the ways in which
// trainers die, and leaves behind what they leave behind.
//
//     fake_trainer MODE --context N [--limit N] [--sleep MS] [--launches FILE] [--bytes N]
//                  [--failures N]
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
    long context, limit, sleep_ms, bytes, failures;
    const char *launches; // one line is added for each launch
    long launch;          // which one this is for its context, from 1
};

static void pause_for(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0)
        continue;
}

// A line of 16 bytes a launch: written at once, so that a kill leaves whole lines.
static void note_launch(struct options *o)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%15ld\n", o->context);
    int fd = open(o->launches, O_RDWR | O_CREAT | O_APPEND, 0666);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        exit(99);
    lseek(fd, 0, SEEK_SET);
    while (read(fd, line, 16) == 16)
        o->launch += strtol(line, NULL, 10) == o->context;
    close(fd);
}

static void run_out_of_memory(void)
{
    (void)printf(
        "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 13.91 GiB. GPU 0 has "
        "a total capacity of 79.15 GiB of which 3.14 GiB is free. Including non-PyTorch "
        "memory, this process has 76.01 GiB memory in use. Of the allocated memory 71.82 "
        "GiB is allocated by PyTorch, and 2.03 GiB is reserved by PyTorch but unallocated."
        "\n");
    (void)fflush(stdout);
}

static int train(const struct options *o)
{
    (void)printf("{\"fathom\": \"start\", \"torch\": \"2.11.0\", \"gpu\": \"Fake\"}\n");
    pause_for(o->sleep_ms);
    if (o->context > o->limit) {
        run_out_of_memory();
        return 1;
    }
    for (int step = 1; step <= 2; step++)
        (void)printf(
            "{\"fathom\": \"step\", \"step\": %d, \"allocated_bytes\": %ld, \"requested_bytes\": "
            "%ld, \"reserved_bytes\": %ld, \"end_allocated_bytes\": 10, \"retries\": 0, "
            "\"seconds\": 0.5}\n",
            step, o->context * 1000, o->context * 999, o->context * 1100);
    (void)printf("{\"fathom\": \"done\", \"seconds\": 1.0}\n");
    return 0;
}

static int hang(const struct options *o)
{
    (void)o;
    (void)printf("waiting\n");
    (void)fflush(stdout);
    while (pause() != 0)
        continue;
    return 0;
}

// A process that ignores what it can, in a session of its own, its parents gone.
static void leave_behind(void)
{
    if (fork() != 0)
        return;
    setsid();
    if (fork() != 0)
        _exit(0);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    for (;;)
        pause();
}

static int stubborn(const struct options *o)
{
    leave_behind();
    leave_behind();
    if (fork() == 0) {
        (void)signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    }
    return train(o);
}

static int stubborn_hang(const struct options *o)
{
    (void)signal(SIGTERM, SIG_IGN);
    leave_behind();
    return hang(o);
}

static int talkative(const struct options *o)
{
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (long left = o->bytes; left > 0; left -= (long)sizeof line)
        if (fwrite(line, 1, sizeof line, stdout) != sizeof line)
            return 1;
    return train(o);
}

static int garbled(const struct options *o)
{
    unsigned state = 12345;
    for (long i = 0; i < 100000; i++) {
        state = state * 1103515245 + 12345;
        (void)putchar((int)(state >> 16 & 0xFF));
    }
    (void)putchar('\n');
    return train(o);
}

static int killed(const struct options *o)
{
    (void)o;
    (void)printf("loading\n");
    (void)fflush(stdout);
    (void)raise(SIGKILL);
    return 0;
}

static int exit_137(const struct options *o)
{
    (void)o;
    (void)printf("bash: line 1: 77 Killed  python train.py\n");
    return 137;
}

static int out_of_disk(const struct options *o)
{
    (void)o;
    (void)printf("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
                 "OSError: [Errno 28] No space left on device\n");
    return 1;
}

static int misconfigured(const struct options *o)
{
    (void)o;
    (void)printf("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
                 "ValueError: hidden_size must be divisible by num_heads\n");
    return 1;
}

// Fails so many times at each length, then trains.
static int flaky(const struct options *o)
{
    if (o->launch > o->failures)
        return train(o);
    (void)printf(
        "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
        "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1691, "
        "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
        "device error.\n");
    return 1;
}

// As launchers do that log whatever they catch.
static int hidden(const struct options *o)
{
    if (o->context <= o->limit)
        return train(o);
    run_out_of_memory();
    (void)printf("Explorer or Trainer failed.\n");
    return 0;
}

// Runs out of memory, halves its batch, takes its time and goes on.
static int halves_its_batch(const struct options *o)
{
    pause_for(o->sleep_ms);
    run_out_of_memory();
    if (o->context > o->limit)
        return 1;
    pause_for(o->sleep_ms);
    for (int step = 1; step <= 3; step++)
        (void)printf("step %d/3 loss 1.0\n", step);
    return 0;
}

static int halves_its_batch_aloud(const struct options *o)
{
    struct options rest = *o;
    rest.sleep_ms = 0;
    run_out_of_memory();
    for (long slept = 0; slept < o->sleep_ms; slept += 1000) {
        (void)printf("trying again with half of it\n");
        (void)fflush(stdout);
        pause_for(1000);
    }
    return halves_its_batch(&rest);
}

// The worker's own word for it that all steps were made.
static int says_done(const struct options *o)
{
    run_out_of_memory();
    return train(o);
}

static int runs_out_and_hangs(const struct options *o)
{
    if (o->context <= o->limit)
        return train(o);
    run_out_of_memory();
    return hang(o);
}

static int loses_its_memory(const struct options *o)
{
    if (o->launch > o->failures)
        return train(o);
    (void)printf(
        "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 1.14 GiB is free. Process 77 has 40.00 GiB memory in use. "
        "Including non-PyTorch memory, this process has 38.01 GiB memory in use. Of the allocated "
        "memory 37.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but "
        "unallocated.\n");
    return 1;
}

static int slow_then_fine(const struct options *o)
{
    return o->launch > o->failures ? train(o) : hang(o);
}

static const struct {
    const char *name;
    int (*run)(const struct options *o);
} modes[] = {
    {"train", train},
    {"hang", hang},
    {"stubborn", stubborn},
    {"log", talkative},
    {"garbled", garbled},
    {"killed", killed},
    {"exit137", exit_137},
    {"disk", out_of_disk},
    {"config", misconfigured},
    {"flaky", flaky},
    {"slow", slow_then_fine},
    {"stubborn-hang", stubborn_hang},
    {"hidden", hidden},
    {"halves", halves_its_batch},
    {"halves-aloud", halves_its_batch_aloud},
    {"done", says_done},
    {"oom-hang", runs_out_and_hangs},
    {"taken", loses_its_memory},
};

int main(int argc, char **argv)
{
    struct options o = {.limit = 1 << 30};
    for (int i = 2; i + 1 < argc; i += 2) {
        long number = strtol(argv[i + 1], NULL, 10);
        o.context = strcmp(argv[i], "--context") == 0 ? number : o.context;
        o.limit = strcmp(argv[i], "--limit") == 0 ? number : o.limit;
        o.sleep_ms = strcmp(argv[i], "--sleep") == 0 ? number : o.sleep_ms;
        o.bytes = strcmp(argv[i], "--bytes") == 0 ? number : o.bytes;
        o.failures = strcmp(argv[i], "--failures") == 0 ? number : o.failures;
        o.launches = strcmp(argv[i], "--launches") == 0 ? argv[i + 1] : o.launches;
    }
    if (o.launches)
        note_launch(&o);
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            return modes[i].run(&o);
    return 98;
}
