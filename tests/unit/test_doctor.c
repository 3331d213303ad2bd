// The reader of logs: what it finds must not depend on how the text comes.
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/units.h"
#include "tests/support/logs.h"

static bool same_finding(const struct doctor_finding *a, const struct doctor_finding *b)
{
    return a->kind == b->kind && a->rank == b->rank && a->gpu == b->gpu && a->step == b->step &&
           a->steps_total == b->steps_total && a->line == b->line && a->count == b->count &&
           a->phase == b->phase && a->last_line == b->last_line && a->known == b->known &&
           a->survived == b->survived && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0 &&
           str_equal(a->text, b->text);
}

static bool same_result(const struct doctor_result *a, const struct doctor_result *b)
{
    bool same = memcmp(a->said, b->said, sizeof a->said) == 0 && a->count == b->count &&
                a->lines == b->lines && a->last_step == b->last_step &&
                a->steps_total == b->steps_total && !a->cause == !b->cause;
    for (ptrdiff_t i = 0; same && i < a->count; i++)
        same = same_finding(&a->findings[i], &b->findings[i]);
    return same && (!a->cause || same_finding(a->cause, b->cause));
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// What logs are made of, the bad with the good.
static void put_noise(struct buf *b, uint32_t r)
{
    switch (r % 13) {
    case 0:
        buf_printf(b,
                   "[rank%u]: CUDA out of memory. Tried to allocate %u.00 MiB. GPU %u has a "
                   "total capacity of 79.10 GiB of which %u.50 MiB is free. Of the allocated "
                   "memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
                   "PyTorch but unallocated.\n",
                   r % 12, r % 4000, r % 8, r % 100);
        return;
    case 1:
        buf_printf(b, "\r %u%%|##  | %u/1000 [00:10<01:00,  1.00it/s]", r % 100, r % 1000);
        return;
    case 2:
        buf_printf(b, "\033[31mRuntime\033[0mError: CUDA error: \033[1mout of\033[0m memory\r\n");
        return;
    case 3:
        buf_repeat(b, r % 2 ? 'x' : ' ', (ptrdiff_t)(r % 9000));
        return;
    case 4:
        buf_put(b, (struct str){"\0\xFF\xC3(\033[", 6});
        return;
    case 5:
        buf_put_z(b, "Killed\n");
        return;
    case 6:
        buf_printf(b, "\nstep: %u - loss 1.5\n", r % 5000);
        return;
    case 7:
        buf_put_z(b, "  exitcode  : -9 (pid: 1)\n\n");
        return;
    case 8:
        buf_printf(b,
                   "[rank%u]: Traceback (most recent call last):\n[rank%u]:   File \"a.py\", line "
                   "%u, in f\n[rank%u]: a.Odd: %u\n",
                   r % 3, r % 2, r % 50, r % 3, r);
        return;
    case 9:
        buf_printf(b, "Loading checkpoint shards: %3u%%|# | %u/14 [00:41<00:31]\n", r % 101,
                   r % 15);
        return;
    case 10:
        buf_put_z(b, "***** Running Evaluation *****\n  Num examples = 5,000\n  Batch size = 8\n");
        return;
    case 11:
        buf_printf(
            b,
            "[rank%u]: Traceback (most recent call last):\n[rank%u]:   File \"a.py\", line 3, "
            "in %s\n[rank%u]: CUDA out of memory. Tried to allocate %u.00 MiB.\n",
            r % 3, r % 3, r % 2 ? "evaluate" : "_init_group", r % 3, r % 900);
        return;
    default:
        buf_repeat(b, '\n', (ptrdiff_t)(r % 5));
    }
}

TEST(pieces_do_not_matter)
{
    enum { ROUNDS = 4, BYTES = 3 << 20 };
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct arena *a = test_arena();
        struct buf text = buf_in(a);
        uint32_t state = round + 1;
        while (text.n < (round < 2 ? 20000 : BYTES))
            put_noise(&text, next_random(&state));
        struct doctor_result whole = read_pieces(a, buf_str(&text), text.n);
        CHECK(whole.count > 3);
        static const ptrdiff_t pieces[] = {1, 7, 4096, (2 << 20) - 1};
        for (ptrdiff_t i = 0; i < COUNT_OF(pieces); i++) {
            struct doctor_result r = read_pieces(a, buf_str(&text), pieces[i]);
            if (!same_result(&whole, &r))
                test_failed(__FILE__, __LINE__, "round %u differs in pieces of %td", round,
                            pieces[i]);
        }
    }
}

// A step well before a message that is one very long line, the whole at some distance from the
// start of the text.
static struct str long_story(struct arena *a, ptrdiff_t start)
{
    struct buf text = buf_in(a);
    buf_repeat(&text, '.', start - (240 << 10));
    buf_put_z(&text, "\nstep 7 of many\n");
    buf_repeat(&text, '.', start - text.n);
    buf_put_z(&text, "\n3: RuntimeError: ");
    buf_repeat(&text, '.', 6900);
    buf_put_z(&text, " ncclSystemError: System call ");
    buf_repeat(&text, '.', 2000);
    buf_put_z(&text, " CUDA error: out of memory ");
    buf_repeat(&text, '.', 9000);
    return buf_str(&text);
}

// At every distance from where the window is moved, the same is found.
TEST(edges_of_the_window)
{
    enum { WINDOW = 2 << 20, AHEAD = 136 << 10, KEPT = 260 << 10 };
    static const ptrdiff_t edges[] = {WINDOW - 2 * AHEAD, WINDOW - AHEAD, WINDOW,
                                      2 * WINDOW - AHEAD - KEPT};
    for (ptrdiff_t i = 0; i < COUNT_OF(edges); i++)
        for (ptrdiff_t near = -1200; near<1200; near += near> - 40 && near < 40 ? 5 : 300) {
            struct arena *a = test_arena();
            struct str text = long_story(a, edges[i] + near);
            struct doctor_result r = read_pieces(a, text, 1 << 16);
            CHECK_STR(str_from(kind_of(&r)), "outside-allocator");
            CHECK_U64((uint64_t)r.count, 2); // a line counts as one thing, for 7 KiB of it
            const struct doctor_finding *f = r.count == 2 ? &r.findings[1] : r.findings;
            CHECK_STR(str_from(f->kind->name), "nccl-error");
            CHECK(f->line == 4 && f->step == 7);
        }
}

TEST(one_endless_line)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    buf_repeat(&text, 'a', 5 << 20);
    buf_put_z(&text, " torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. ");
    buf_repeat(&text, 'b', 5 << 20);
    struct doctor_result r = read_pieces(a, buf_str(&text), 100000);
    CHECK_STR(str_from(kind_of(&r)), "gpu-memory");
    CHECK_U64(r.lines, 1);
    CHECK_U64(r.cause->bytes[DOCTOR_TRIED], 2 * GIB);
    CHECK(r.cause->text.n <= DOCTOR_TEXT_BYTES);
}

#define OOM(tried, rest)                                                                    \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " tried ". GPU 0 has a " \
    "total capacity of 79.10 GiB of which " rest " is reserved by PyTorch but unallocated.\n"

TEST(verdicts_from_numbers)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"exhaustion", OOM("4.00 GiB", "1.00 GiB is free. Including non-PyTorch memory, this "
                                       "process has 78.10 GiB memory in use. Of the allocated "
                                       "memory 75.00 GiB is allocated by PyTorch, and 2.00 GiB")},
        {"fragmentation",
         OOM("4.00 GiB", "1.00 GiB is free. Including non-PyTorch memory, this "
                         "process has 78.10 GiB memory in use. Of the allocated "
                         "memory 70.00 GiB is allocated by PyTorch, and 7.00 GiB")},
        {"full", OOM("1.50 GiB", "1.00 GiB is free. Including non-PyTorch memory, this process "
                                 "has 78.10 GiB memory in use. Of the allocated memory 76.00 GiB "
                                 "is allocated by PyTorch, with 10.00 MiB allocated in private "
                                 "pools (e.g., CUDA Graphs), and 1.00 GiB")},
        {"limit",
         OOM("4.00 GiB", "40.00 GiB is free. Including non-PyTorch memory, this process "
                         "has 39.10 GiB memory in use. 39.55 GiB allowed; Of the "
                         "allocated memory 37.00 GiB is allocated by PyTorch, and 1.00 GiB")},
        {"other-process",
         OOM("4.00 GiB", "1.00 GiB is free. Process 71 has 50.00 GiB memory in use. Including "
                         "non-PyTorch memory, this process has 28.10 GiB memory in use. Of the "
                         "allocated memory 27.00 GiB is allocated by PyTorch, and 0 bytes")},
        {"other-process",
         OOM("4.00 GiB", "1.00 GiB is free. Process 71 has 50.00 GiB memory in use. Process 72 "
                         "has 28.10 GiB memory in use. Of the allocated memory 27.00 GiB is "
                         "allocated by PyTorch, and 0 bytes")},
        {"exhaustion", OOM("4.00 GiB", "1.00 GiB is free. Process 72 has 78.10 GiB memory in use. "
                                       "Of the allocated memory 77.00 GiB is allocated by "
                                       "PyTorch, and 0 bytes")},
        {"refused", OOM("4.00 GiB", "5.00 GiB is free. Of the allocated memory 70.00 GiB is "
                                    "allocated by PyTorch, and 0 bytes")},
        {"oversize", OOM("80.00 GiB", "79.00 GiB is free. Of the allocated memory 0 bytes is "
                                      "allocated by PyTorch, and 0 bytes")},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (strcmp(kind_of(&r), rows[i].kind) != 0)
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
    }
}

TEST(numbers_in_a_container)
{
    struct doctor_result r =
        read_text(test_arena(),
                  OOM("64.00 MiB", "57.00 MiB is free. Process 1 has 5.49 GiB memory in use. "
                                   "Process 2 has 4.63 GiB memory in use. Process 3 has 18.00 GiB "
                                   "memory in use. Of the allocated memory 4.98 GiB is allocated "
                                   "by PyTorch, and 28.38 MiB"));
    CHECK(doctor_knows(r.cause, DOCTOR_PROCESS));
    CHECK_U64(r.cause->bytes[DOCTOR_PROCESS] * 100 / GIB, 548);
    CHECK_U64(r.cause->bytes[DOCTOR_OTHERS] * 100 / GIB, 2262);
    CHECK(!doctor_knows(r.cause, DOCTOR_ALLOWED) && !doctor_knows(r.cause, DOCTOR_NEEDED));
}

TEST(ranks_as_launchers_mark_them)
{
    static const struct {
        int rank;
        const char *text;
    } rows[] = {
        {3, "[rank3]: RuntimeError: CUDA error: out of memory"},
        {5, "[1,5]<stderr>:RuntimeError: CUDA error: out of memory"},
        {12, "12: RuntimeError: CUDA error: out of memory"},
        {4, "[default4]:RuntimeError: CUDA error: out of memory"},
        {1, "(Worker_TP1 pid=550) ERROR CUDA error: out of memory"},
        {6, "(VllmWorker rank=6 pid=3073) CUDA error: out of memory"},
        {7, "[2025-01-29 08:52:43 TP7] CUDA error: out of memory"},
        {2, "[PG ID 0 PG GUID 0(default_pg) Rank 2] CUDA error: out of memory"},
        {-1, "train.py:17: CUDA error: out of memory"},
        {-1, "RuntimeError: CUDA error: out of memory"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (!r.cause || r.cause->rank != rows[i].rank)
            test_failed(__FILE__, __LINE__, "'%s' is of rank %lld", rows[i].text,
                        r.cause ? (long long)r.cause->rank : -2);
    }
}

TEST(interleaved_ranks_are_told_apart)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    for (int i = 0; i < 30; i++)
        for (int rank = 0; rank < 3; rank++)
            buf_printf(&text, "[rank%d]: CUDA error: %s\n", rank,
                       rank == 1 ? "out of memory" : "unspecified launch failure");
    struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
    CHECK_U64((uint64_t)r.count, 3);
    CHECK_STR(str_from(kind_of(&r)), "outside-allocator");
    CHECK_U64((uint64_t)r.cause->rank, 1);
    CHECK_U64(r.cause->count, 30);
    CHECK_U64(r.cause->line, 2);
    CHECK_U64(r.cause->last_line, 89);
}

TEST(steps_as_trainers_print_them)
{
    static const struct {
        long long step, total;
        const char *text;
    } rows[] = {
        {120, 1000, " 12%|#2   | 120/1000 [01:00<07:20,  2.00it/s]\n"},
        {30, 250, "Epoch 1:  12%|#2   | 30/250 [01:00<07:20,  2.00it/s]\n"},
        {7, 9, "[rank0]:  77%|####  | 7/9 [01:00<07:20,  2.00it/s]\n"},
        {-1, -1, "Loading checkpoint shards:  50%|##  | 2/4 [00:10<00:10]\n"},
        {12, -1, "step:12 - global_seqlen/mean:14253.1\n"},
        {500, 1000, " iteration      500/    1000 | consumed samples: 8000\n"},
        {10, -1, "[Rank 0] step=10, skipped=0, lr=[1e-05]\n"},
        {40, -1, "{'train/loss': 1.5, 'train/global_step': 40}\n"},
        {-1, -1, "  File \"trainer.py\", line 3318, in training_step\n"},
        {-1, -1, "slurmstepd: error: in step 3495064.0 cgroup\n"},
        {-1, -1, "nothing of the kind\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *a = test_arena();
        struct str text = str_format(a, "%sCUDA error: out of memory\n", rows[i].text);
        struct doctor_result r = read_pieces(a, text, text.n);
        if (!r.cause || r.cause->step != rows[i].step || r.cause->steps_total != rows[i].total)
            test_failed(__FILE__, __LINE__, "'%s' is step %lld", rows[i].text,
                        r.cause ? (long long)r.cause->step : -2);
    }
}

// A batch size found by trying: out of memory, and on it went.
TEST(what_a_run_survived_is_no_cause)
{
    static const char caught[] =
        "step 1 loss 2\nWARNING CUDA out of memory. Tried to allocate 2.00 "
        "GiB.\nstep 2 loss 2\nstep 3 loss 1\nstep 4 loss 1\n";
    struct arena *a = test_arena();
    struct doctor_result r = read_text(a, caught);
    CHECK(!r.cause);
    CHECK_U64((uint64_t)r.count, 1);
    CHECK(r.findings[0].survived);
    struct str twice = str_format(a, "%sCUDA out of memory. Tried to allocate 3.00 GiB.\n", caught);
    r = read_pieces(a, twice, twice.n);
    CHECK_STR(str_from(kind_of(&r)), "gpu-memory");
    CHECK_U64(r.cause->bytes[DOCTOR_TRIED], 3 * GIB);
    CHECK_U64((uint64_t)r.cause->step, 4);
    CHECK_U64(r.cause->line, 6);
}

TEST(the_heaviest_earliest_is_the_cause)
{
    struct doctor_result r = read_text(test_arena(), "[rank1]: ValueError: wrong\n"
                                                     "[rank2]: CUDA error: out of memory\n"
                                                     "[rank3]: CUDA error: out of memory\n"
                                                     "[rank0]: NCCL error in: x\n"
                                                     "  rank      : 7 (local_rank: 7)\n"
                                                     "  exitcode  : -9 (pid: 3)\n");
    CHECK_U64((uint64_t)r.cause->rank, 2);
    CHECK_U64((uint64_t)r.count, 5);
    CHECK_U64((uint64_t)r.findings[4].rank, 7);
}

// tqdm draws its bar once more when an exception closes it, wandb sums up, launchers report: none
// of that is a step that came after.
TEST(what_is_printed_on_the_way_out_is_no_progress)
{
#define FATAL "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
#define BAR   "  3%|\xE2\x96\x8E         | 52/1752 [01:10<38:12,  1.35s/it]"
    static const char *const rows[] = {
        HEAD FRAME FATAL BAR,
        HEAD FRAME FATAL BAR "\n",
        HEAD FRAME FATAL "\r" BAR "\r" BAR "\r\n",
        "  3%|2 | 49/1752 [01:07<38:12]" HEAD FRAME FATAL BAR "\n", // 0.1 s passed between two bars
        "100%|##| 3/3 [00:01<00:00]\n" HEAD FRAME FATAL BAR "\n",   // of something else
        HEAD FRAME FATAL "Epochs:   0%|  | 0/3 [01:10<?]\nSteps:" BAR "\n",
        HEAD FRAME FATAL BAR "\nEpochs:   0%|  | 0/3 [01:10<?]\n",
        "[rank0]: " FATAL "[rank1]: " FATAL BAR "\n  3%|# | 53/1752 [01:10<38:12]\n" BAR "\n",
        HEAD FRAME FATAL BAR "\nwandb: Run history:\nwandb: train/global_step \xE2\x96\x81\n"
                             "wandb: Run summary:\nwandb:   train/global_step 60\n",
        HEAD FRAME FATAL "wandb:   train/global_step 60\n",
        HEAD FRAME FATAL BAR "\n" HEAD FRAME "subprocess.CalledProcessError: Command '['python', "
                             "'t.py', 'iter=500']' returned non-zero exit status 1.\n",
        HEAD FRAME FATAL BAR
        "\n" HEAD FRAME "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "t.py FAILED\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 3)\n",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i]);
        bool right = r.cause && strcmp(r.cause->kind->name, "gpu-memory") == 0;
        if (!right || r.findings[0].survived)
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
    }
}

// Bars that go on, and one line of a trainer that prints few.
TEST(steps_after_it_are_progress)
{
    static const char *const rows[] = {
        FATAL BAR "\r  3%|# | 53/1752 [01:11<38:12]\r  3%|# | 54/1752 [01:12<38:12]\n",
        BAR FATAL "\r  3%|# | 53/1752 [01:11<38:12]\r  3%|# | 55/1752 [01:12<38:12]\n",
        "step 100\n" FATAL "step 200\n",
        FATAL "step 100\nstep 200\n",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i]);
        if (r.cause || r.count != 1 || !r.findings[0].survived)
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
    }
#undef FATAL
#undef BAR
}

// A reset connection is another rank's end only where the line says so.
TEST(connections)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"peer-lost", "RuntimeError: [pair.cc:525] /gloo/ Read error: Connection reset by peer"},
        {"peer-lost", "[W TCPStore.cpp:141] recvValue failed: Connection reset by peer"},
        {"peer-lost", "RuntimeError: Connection reset by peer"},
        {"-", "wandb: ConnectionResetError(104, 'Connection reset by peer'), retrying"},
        {"-", "urllib3 Retrying after connection broken by 'Connection reset by peer'"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (strcmp(kind_of(&r), rows[i].kind) != 0)
            test_failed(__FILE__, __LINE__, "'%s' is %s", rows[i].text, kind_of(&r));
    }
}

TEST(signals_as_launchers_name_them)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"killed", "mpirun noticed that process rank 3 with PID 9 on node n exited on signal 9 "
                   "(Killed).\n"},
        {"crash", "=   KILLED BY SIGNAL: 11 (Segmentation fault)\n"},
        {"aborted",
         "run.sh: line 4: 12345 Aborted                 (core dumped) python train.py\n"},
        {"aborted", "terminate called after throwing an instance of 'std::runtime_error'\n"},
        {"crash", "run.sh: line 4: 12345 Illegal instruction     (core dumped) python a.py\n"},
        {"killed", "srun: error: n1: task 3: Killed\n"},
        {"child-failed", "srun: error: n1: task 3: Exited with exit code 1\n"},
        {"child-failed",
         "[ERROR] [launch.py:322:sigkill_handler] ['a'] exits with return code = 1\n"},
        {"killed", "[ERROR] [launch.py:322:sigkill_handler] ['a'] exits with return code = -9\n"},
        {"slurm-memory", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n"},
        {"time-limit", "=>> PBS: job killed: walltime 3636 exceeded limit 3600\n"},
        {"aborted", "  rank      : 5 (local_rank: 5)\n  exitcode  : -6 (pid: 1)\n"},
        {"killed", "  exitcode  : -9 (pid: 1)\n"},
        {"crash", "  exitcode  : -11 (pid: 1)\n"},
        {"child-failed", "  exitcode  : 1 (pid: 1)\n"},
        {"bus-error", "Fatal Python error: Bus error\n"},
        {"crash", "Fatal Python error: Segmentation fault\n"},
        {"loader-killed", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. "},
        {"bus-error", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. "},
        {"crash", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation "
                  "fault. "},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (strcmp(kind_of(&r), rows[i].kind) != 0)
            test_failed(__FILE__, __LINE__, "'%s' is %s", rows[i].text, kind_of(&r));
    }
}

TEST(the_root_of_a_summary)
{
    struct doctor_result r = read_text(test_arena(), "[1]:\n  rank      : 3 (local_rank: 3)\n"
                                                     "  exitcode  : -6 (pid: 1)\n"
                                                     "Root Cause (first observed failure):\n"
                                                     "[0]:\n  rank      : 5 (local_rank: 5)\n"
                                                     "  exitcode  : -6 (pid: 2)\n");
    CHECK_U64((uint64_t)r.cause->rank, 5);
    CHECK_U64(r.cause->ranks, 2);
}

TEST(messages_of_drivers_and_libraries)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"gpu-hardware", "NVRM: Xid (PCI:0000:44:00): 79, pid=1, GPU has fallen off\n"},
        {"gpu-hardware", "NVRM: Xid (PCI:0000:44:00): 48, pid=1, An uncorrectable double bit\n"},
        {"cuda-fault", "NVRM: Xid (PCI:0000:44:00): 31, pid=1, MMU Fault\n"},
        {"cuda-fault", "Indexing.cu:1093: f: block: [0,0,0], thread: [4,0,0] Assertion `i < n` "
                       "failed.\n"},
        {"gpu-setup", "RuntimeError: No CUDA GPUs are available\n"},
        {"gpu-setup", "RuntimeError: HIP error: invalid device function\n"},
        {"missing-module", "OSError: version `GLIBC_2.32' not found (required by x.so)\n"},
        {"configuration", "ValueError: The checkpoint has model type `q` but Transformers does "
                          "not recognize this architecture.\n"},
        {"peer-lost", "torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n"},
        {"resource-limit", "RuntimeError: can't start new thread\n"},
        {"host-memory", "systemd-oomd[1]: Killed /user.slice/x due to memory pressure\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (strcmp(kind_of(&r), rows[i].kind) != 0)
            test_failed(__FILE__, __LINE__, "'%s' is %s", rows[i].text, kind_of(&r));
    }
}

TEST(silence)
{
    struct arena *a = test_arena();
    struct doctor_result r = read_text(a, "");
    CHECK(!r.cause && !r.count && !r.lines && r.last_step == -1);
    r = read_text(a, "If you encounter CUDA out of memory, try a smaller batch.\n"
                     "    raise ValueError(\"No available memory for the cache blocks. \"\n"
                     "100%|##| 10/10 [00:10<00:00]\n");
    CHECK(!r.cause && !r.count);
    CHECK_U64(r.lines, 3);
}

TEST(every_kind_can_be_said)
{
    bool reached[KIND_COUNT] = {
        [KIND_EXHAUSTION] = true, [KIND_OVERSIZE] = true, [KIND_FRAGMENTATION] = true,
        [KIND_FULL] = true,       [KIND_LIMIT] = true,    [KIND_NEIGHBOUR] = true,
        [KIND_REFUSED] = true};
    for (ptrdiff_t i = 0; i < symptom_count; i++) {
        CHECK(strlen(symptoms[i].anchor) >= SCAN_PREFIX);
        reached[symptoms[i].kind] = true;
    }
    for (int i = 0; i < KIND_COUNT; i++)
        CHECK(reached[i]);
}

TEST(every_kind_is_explained)
{
    CHECK_U64((uint64_t)doctor_kind_count, KIND_COUNT);
    for (ptrdiff_t i = 0; i < doctor_kind_count; i++) {
        const struct doctor_kind *k = &doctor_kinds[i];
        bool sign = k->class == DOCTOR_SIGN;
        CHECK(k->name && k->title && k->meaning);
        CHECK((k->weight == DOCTOR_WEIGHS_NOTHING) == sign);
        CHECK((k->remedies[0] == NULL) == sign);
    }
}
