// The reader of logs: what it finds must not depend on how the text comes.
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/units.h"
#include "core/doctor/internal.h"
#include "tests/support/t.h"

static struct doctor_result read_pieces(struct arena *a, struct str text, ptrdiff_t piece)
{
    struct doctor *d = doctor_new(a);
    for (ptrdiff_t at = 0; at < text.n; at += piece)
        doctor_feed(d, str_slice(text, at, at + piece < text.n ? at + piece : text.n));
    return doctor_end(d, a);
}

static struct doctor_result read_text(struct arena *a, const char *text)
{
    return read_pieces(a, str_from(text), PTRDIFF_MAX / 2);
}

static bool same_finding(const struct doctor_finding *a, const struct doctor_finding *b)
{
    return a->kind == b->kind && a->rank == b->rank && a->gpu == b->gpu && a->step == b->step &&
           a->steps_total == b->steps_total && a->line == b->line && a->count == b->count &&
           a->last_line == b->last_line && a->known == b->known && a->survived == b->survived &&
           memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0 && str_equal(a->text, b->text);
}

static bool same_result(const struct doctor_result *a, const struct doctor_result *b)
{
    bool same = a->count == b->count && a->lines == b->lines && a->last_step == b->last_step &&
                a->steps_total == b->steps_total && !a->cause == !b->cause;
    for (ptrdiff_t i = 0; same && i < a->count; i++)
        same = same_finding(&a->findings[i], &b->findings[i]);
    return same && (!a->cause || same_finding(a->cause, b->cause));
}

static const char *kind_of(const struct doctor_result *r)
{
    return r->cause ? r->cause->kind->name : "-";
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// What logs are made of, the bad with the good.
static void put_noise(struct buf *b, uint32_t r)
{
    switch (r % 10) {
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

#define HEAD  "Traceback (most recent call last):\n"
#define FRAME "  File \"a.py\", line 3, in f\n    g()\n"

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

// Every exception that a traceback leads to is one, whatever its class.
TEST(tracebacks_lead_to_exceptions)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"exception", HEAD FRAME "__main__.Odd: it broke\n"},
        {"exception", HEAD FRAME "__main__.Odd\n"},
        {"exception", HEAD FRAME "FloatingPointError: the loss is nan\n"},
        {"exception", HEAD FRAME "TimeoutError\n"},
        {"-", HEAD FRAME "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"},
        {"exception", "(W pid=1) 09:12:33 [ERROR] " HEAD "(W pid=1)   File \"a.py\", line 3, in f\n"
                      "(W pid=1)     g()\n(W pid=2) x.Other: no\n(W pid=1) x.Odd: it broke\n"},
        {"exception", "2025-07-03T14:20:51.565839352Z " HEAD
                      "2025-07-03T14:20:51.56584Z   File \"a.py\", line 3, in f\n"
                      "2025-07-03T14:20:51.6Z x.Odd: it broke\n"},
        {"exception", "^C 5%|# | 1/10 [00:01<00:02]" HEAD FRAME "queue.Empty\n"},
        {"interrupted", "^C" HEAD FRAME "KeyboardInterrupt\n"},
        {"network", HEAD FRAME "requests.exceptions.ConnectionError: ('Connection aborted.', "
                               "ConnectionResetError(104, 'Connection reset by peer'))\n"},
        {"network", HEAD FRAME "huggingface_hub.errors.HfHubHTTPError: 504 Server Error\n"},
        {"child-failed", HEAD FRAME "subprocess.CalledProcessError: Command '['x']' returned\n"},
        {"ray-worker-lost", HEAD FRAME "ray.exceptions.ActorDiedError: The actor died.\n"},
        {"ray-worker-lost", HEAD FRAME "ray.exceptions.WorkerCrashedError: The worker died\n"},
        {"killed", HEAD FRAME "torch.multiprocessing.spawn.ProcessExitedException: process 1 "
                              "terminated with signal SIGKILL\n"},
        {"missing-module", HEAD FRAME "ModuleNotFoundError: No module named 'x'\n"},
        {"-", HEAD FRAME "and then nothing\nLoss: 5\n"},
        {"-", "Exception ignored in: <function F.__del__>\n" HEAD FRAME "TypeError: no\n"},
        {"-", "Traceback (most recent call last):\n"},
        {"-", "09:12:3x " HEAD "09:12:3y   File \"a.py\", line 3, in f\n09:12:3y x.Odd: no\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (strcmp(kind_of(&r), rows[i].kind) != 0)
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
        if (r.cause && !str_is(r.cause->raised, "File \"a.py\", line 3, in f"))
            test_failed(__FILE__, __LINE__, "row %td is raised in %.*s", i,
                        STR_ARGS(r.cause->raised));
    }
}

// As the libraries print them, f-strings filled in.
static const struct {
    const char *remedy, *text;
} refusals[] = {
    // accelerate 1.15.0, state.py:1000 and :1008
    {"fsdp_version: 2",
     "ValueError: `cp_size > 1` specified in the `parallelism_config`, but no `fsdp_plugin` "
     "was "
     "provided. We need a `fsdp_plugin` to use context parallelism with `cp_backend=torch`, as "
     "we also shard the model across the device mesh to save more memory\n"},
    {"fsdp_version: 2", "[rank1]: ValueError: Using `cp_size>1` requires FSDP2, but the provided "
                        "`fsdp_plugin` is using FSDP1. \n"},
    // accelerate 1.15.0, big_modeling.py:821 and :779
    {"sliding window", "ValueError: Context parallelism does not support attention layers of "
                       "type ['sliding_attention'] (model Gemma3ForCausalLM). Context "
                       "parallelism can only express full causal attention\n"},
    {"recurrent", "ValueError: Sequence parallelism does not support attention layers of type "
                  "['linear_attention'] (model Qwen3NextForCausalLM).\n"},
    // accelerate 1.15.0, parallelism_config.py:331, :338, :374, :396, :320 and :326
    {"cp_size: 1 or sp_size: 1",
     "ValueError: Context Parallelism (CP) and Sequence Parallelism (SP) are mutually "
     "exclusive. Got cp_size=2 and sp_size=2. Please set either cp_size=1 or sp_size=1.\n"},
    {"dp_shard_size", "ValueError: Tensor/Context parallelism (tp/cp_size > 1) cannot be used "
                      "with pure data parallelism (dp_replicate_size > 1 and dp_shard_size == "
                      "1). Please set dp_shard_size > 1\n"},
    {"num_processes", "ValueError: ParallelismConfig total_size (16) does not match "
                      "num_processes (8). Please adjust dp_replicate_size/ dp_shard_size\n"},
    {"FSDP2 for cp_size",
     "ValueError: ParallelismConfig is only compatible DistributedType.FSDP (version 2) or "
     "DistributedType.Multi{Device} or DistributedType.DEEPSPEED, but got NO.\n"},
    {"cp_backend: torch", "ValueError: cp_backend must be one of ['torch'], but got deepspeed\n"},
    {"sp_backend: deepspeed",
     "ValueError: sp_backend must be one of ['deepspeed'], but got torch\n"},
    // accelerate 1.15.0, utils/dataclasses.py:2240, :2248, :2300 and :2283; accelerator.py:2398
    {"torch that the message",
     "ValueError: FSDP2-based Context parallelism is only available in PyTorch 2.6.0 and later "
     "versions. Please upgrade your PyTorch version.\n"},
    {"allgather", "ValueError: Invalid cp_comm_strategy: ring. Must be one of 'allgather' or "
                  "'alltoall'.\n"},
    {"sp_attn_implementation",
     "ValueError: Invalid sp_attn_implementation: eager. 'eager' and 'flex_attention' are not "
     "supported with sequence parallelism.\n"},
    {"sp_seq_length", "ValueError: when `sp_seq_length_is_variable` is `False` `sp_seq_length` "
                      "must be provided either through the constructor or the environment "
                      "variable PARALLELISM_CONFIG_SP_SEQ_LENGTH\n"},
    {"sp_backend: deepspeed",
     "ValueError: In order to use the configured sp_size=2 with DeepSpeed, you need to "
     "configure sp_backend='deepspeed', yet you configured it to be sp_backend='x'.\n"},
    // transformers 5.17.0, trainer.py:2340, :2383 and :747
    {"attn_implementation: sdpa", "ValueError: Context parallelism is supported only with SDPA "
                                  "attention, you are using flash_attention_2.\n"},
    {"attention_mask", "ValueError: Context parallelism only supports causal attention masks. "
                       "The provided attention_mask is not causal.\n"},
    {"accelerate that", "ImportError: ParallelismConfig requires accelerate>=1.12.0). Please "
                        "upgrade accelerate to use this feature.\n"},
    // trl 1.16.0, trainer/sft_trainer.py:1157 and grpo_config.py:1072
    {"packing: false", "ValueError: Packing is not compatible with context parallelism "
                       "(`cp_size > 1`). Packing relies on a block-diagonal attention mask\n"},
    {"sp_size: 1", "ValueError: GRPOTrainer does not support sequence-dim parallelism "
                   "(`parallelism_config.cp_size > 1` or `parallelism_config.sp_size > 1`) "
                   "yet.\n"},
    // torch 2.11.0, distributed/tensor/experimental/_context_parallel/_load_balancer.py:148
    {"2 x cp_size", HEAD "  File \"_load_balancer.py\", line 148, in _generate_indices\n"
                         "    assert seq_length % (world_size * 2) == 0\n"
                         "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nAssertionError\n"},
    // and _attention.py:395, :398, :692, :922, :1214, :1545, :1551 and :1692
    {"use_cache", "NotImplementedError: is_causal requires the same query and context sequence "
                  "lengths\n"},
    {"is_causal", "RuntimeError: Load balancing requires `is_causal=True`.\n"},
    {"is_causal", "NotImplementedError: attn_bias is not supported yet\n"},
    {"flash", "NotImplementedError: CP only supports flash attention and memory efficient "
              "attention now.\n"},
    {"BLOCK_SIZE", "NotImplementedError: Q_LEN 1000 is not divisible by CP mesh world size 4 * "
                   "BLOCK_SIZE 128. This is not supported yet. \n"},
    {"buffer_seq_dims", "ValueError: `seq_dims` must have the same number of elements as "
                        "`buffers`.\n"},
    {"no_restore_buffers", "ValueError: `no_restore_buffers` must be a subset of `buffers`.\n"},
    {"allgather", "NotImplementedError: Context Parallel does not support using ring for kv "
                  "shards rotation\n"},
};

TEST(refusals_of_context_parallelism)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(refusals); i++) {
        struct doctor_result r = read_text(test_arena(), refusals[i].text);
        bool right = r.cause && strcmp(r.cause->kind->name, "context-parallel") == 0 &&
                     r.cause->kind->class == DOCTOR_CONFIGURATION && r.cause->remedy;
        if (!right || !text_has(str_from(r.cause->remedy), refusals[i].remedy))
            test_failed(__FILE__, __LINE__, "row %td is %s", i, kind_of(&r));
    }
}

// The exception of another process is printed after the one that carries it.
TEST(carried_exceptions)
{
    static const struct {
        const char *said, *text;
    } rows[] = {
        {"__main__.Odd: it broke",
         HEAD FRAME "ray.exceptions.RayTaskError(Odd): ray::f() (pid=1, ip=2)\n" FRAME
                    "__main__.Odd: it broke\n"},
        {"__main__.Odd: it broke",
         HEAD FRAME "multiprocessing.pool.RemoteTraceback: \n\"\"\"\n" HEAD FRAME
                    "__main__.Odd: it broke\n\"\"\"\n"},
        {"__main__.Odd: it broke",
         HEAD FRAME "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 "
                    "terminated with the following error:\n" HEAD FRAME "__main__.Odd: it broke\n"},
        {"__main__.Odd: it broke", HEAD FRAME "__main__.Odd: it broke\n\nDuring handling of the "
                                              "above exception, another exception occurred:\n"
                                              "\n" HEAD FRAME "x.Other: went too\n"},
        {"Odd: it broke",
         "\xE2\x95\xAD\xE2\x94\x80 Traceback (most recent call last) \xE2\x94\x80\n"
         "\xE2\x94\x82 a.py:3 in f\n\xE2\x95\xB0\xE2\x94\x80\nOdd: it broke\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct doctor_result r = read_text(test_arena(), rows[i].text);
        if (!r.cause || !str_is(r.cause->text, rows[i].said))
            test_failed(__FILE__, __LINE__, "row %td is %.*s", i,
                        STR_ARGS(r.cause ? r.cause->text : STR("nothing")));
    }
}

// Ranks print their tracebacks at once, loggers put times before the lines.
TEST(tracebacks_in_each_others_lines)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    static const char *const lines[] = {"Traceback (most recent call last):",
                                        "  File \"a.py\", line 3, in f", "    g()", "m.Odd: it"};
    for (int line = 0; line < 4; line++)
        for (int rank = 0; rank < 64; rank++)
            buf_printf(&text, "[rank%d]: 09:12:%d,%d ERROR %s\n", rank, 10 + rank % 50 + line,
                       100 + line, lines[line]);
    struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
    CHECK_STR(str_from(kind_of(&r)), "exception");
    CHECK_U64(r.cause->line, 3 * 64 + 1);
    CHECK_U64((uint64_t)r.cause->rank, 0);
    CHECK_U64(r.cause->ranks, 64);
    CHECK_STR(r.cause->rank_list, "0-63");
    CHECK_U64(r.cause->count, 1);
    CHECK_U64(r.findings[r.count - 1].count, 64 - 8); // those without a finding of their own
    CHECK(r.findings[r.count - 1].rank == -1);
}

// What was caught long before is another story.
TEST(an_exception_long_before)
{
    struct arena *a = test_arena();
    for (int lines = 200; lines <= 400; lines += 200) {
        struct buf text = buf_in(a);
        buf_put_z(&text, HEAD FRAME "ImportError: no triton\n");
        buf_repeat(&text, '\n', lines);
        buf_put_z(&text, HEAD FRAME "m.Odd: it broke\n");
        struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
        CHECK_STR(str_from(kind_of(&r)), lines < 300 ? "missing-module" : "exception");
    }
}

#define QUOTED "CUDA out of memory. Tried to allocate 2.00 GiB"

TEST(samples_of_data_are_no_messages)
{
    static const char *const data[] = {
        "{'messages': [{'role': 'user', 'content': \"RuntimeError: " QUOTED "\"}]}",
        "{\"text\": \"torch.OutOfMemoryError: " QUOTED "\"}",
        "INFO request 1: prompt: 'How to fix " QUOTED "', params: SamplingParams(",
        "<|im_start|>user RuntimeError: " QUOTED "<|im_end|>",
        "['hello', 'RuntimeError: " QUOTED "']",
        "WARNING a low ulimit causes errors like `OSError: [Errno 24] Too many open files`.",
        "<|im_start|>user\nI see this:\nRuntimeError: " QUOTED "\nHelp!<|im_end|>\n"
        "<|im_start|>assistant\nSmaller batches.<|im_end|>\n",
        "<|im_start|>user\nWhy?\n" HEAD FRAME "RuntimeError: " QUOTED "\n<|im_end|>\n",
        "When I train it I get RuntimeError: " QUOTED " (GPU 0)",
        "{'instruction': 'It\\'s broken\\nOSError: [Errno 28] No space left on device'}",
    };
    static const char *const messages[] = {
        "{\"log\":\"[rank0]: RuntimeError: " QUOTED "\\n\",\"stream\":\"stderr\"}",
        "{\"level\": \"error\", \"message\": \"" QUOTED "\"}",
        "ERROR:root:OutOfMemoryError('" QUOTED "')",
        "the model's batch is too large: " QUOTED,
        "terminate called after throwing\n  what():  " QUOTED,
        "File \"a.py\" failed: RuntimeError: " QUOTED,
        "WARNING:root:" QUOTED,
        "prompt <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nRuntimeError: " QUOTED
        "\nprompt <|im_start|>user\nHi<|im_end|>\n",
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(data); i++) {
        struct doctor_result r = read_text(test_arena(), data[i]);
        if (r.count)
            test_failed(__FILE__, __LINE__, "'%s' counts as %s", data[i], kind_of(&r));
    }
    for (ptrdiff_t i = 0; i < COUNT_OF(messages); i++) {
        struct doctor_result r = read_text(test_arena(), messages[i]);
        if (strcmp(kind_of(&r), "gpu-memory") != 0)
            test_failed(__FILE__, __LINE__, "'%s' is %s", messages[i], kind_of(&r));
    }
}

TEST(a_sample_longer_than_is_looked_at)
{
    struct arena *a = test_arena();
    struct buf text = buf_in(a);
    buf_put_z(&text, "{'text': 'A question.");
    buf_repeat(&text, 'x', 9000);
    buf_put_z(&text, "\\nRuntimeError: " QUOTED "'}\n");
    struct doctor_result r = read_pieces(a, buf_str(&text), text.n);
    CHECK_U64((uint64_t)r.count, 0);
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
