// How fast a log is read, one thread: a gigabyte of what trainers print, with the message at its
// end. The text is made piece by piece, so that what is timed is the reading. Run the release
// build.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/buf.h"
#include "core/base/compiler.h"
#include "core/doctor/doctor.h"

enum { ARENA_BYTES = 64 << 20, PIECE_BYTES = 1 << 20, PIECES = 1000 };

static double seconds(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// What a healthy run prints.
static void put_training(struct buf *b, int i)
{
    buf_printf(b, "{'loss': %d.%04d, 'grad_norm': 4.742300987243652, 'learning_rate': 2.8e-06}\n",
               i % 7, i % 9973);
    buf_printf(b, "\r %2d%%|\xE2\x96\x88\xE2\x96\x88        | %d/100000 [04:27<8:45:34,  6.53s/it]",
               i % 100, i);
    buf_printf(b, "[rank%d]: step %d - global_seqlen/mean:14253.1 - actor/entropy_loss:0.2%d\n",
               i % 8, i, i);
    buf_printf(b,
               "\033[36m(WorkerDict pid=%d)\033[0m INFO:2025-03-0%d 11:17:52,185:After offload, "
               "memory allocated (GB): 12.%d, memory reserved (GB): 13.2\n",
               29000 + i % 8, i % 9, i % 100);
}

// The same out-of-memory again and again, as a job that catches it prints.
static void put_failures(struct buf *b, int i)
{
    buf_printf(b,
               "[rank%d]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. "
               "GPU %d has a total capacity of 79.10 GiB of which 210.38 MiB is free. Including "
               "non-PyTorch memory, this process has 78.48 GiB memory in use. Of the allocated "
               "memory 74.81 GiB is allocated by PyTorch, and 336.73 MiB is reserved by PyTorch "
               "but unallocated.\n",
               i % 8, 226 + i % 1000, i % 8);
}

// A traceback's lines: rich in words that errors are made of.
static void put_tracebacks(struct buf *b, int i)
{
    buf_printf(b,
               "[rank%d]:   File \"/usr/lib/python3.12/site-packages/torch/nn/modules/module.py\", "
               "line %d, in _call_impl\n[rank%d]:     return forward_call(*args, **kwargs)\n",
               i % 8, i % 3000, i % 8);
}

// Whole tracebacks, of eight ranks in each other's lines.
static void put_exceptions(struct buf *b, int i)
{
    static const char *const lines[] = {"Traceback (most recent call last):",
                                        "  File \"/app/train.py\", line 71, in <module>",
                                        "    main()",
                                        "  File \"/app/train.py\", line 40, in main",
                                        "    trainer.train(resume_from_checkpoint=None)",
                                        "module.DataGone: shard 7 is not there"};
    const int count = (int)(sizeof lines / sizeof *lines);
    buf_printf(b, "[rank%d]: %s\n", i % 8, lines[i / 8 % count]);
}

// One line of nothing but anchors of messages that need more than the line says.
static void put_anchors(struct buf *b, int i)
{
    static const char *const anchors[] = {"NVRM: Xid ", "out of memory ", "AssertionError",
                                          "OOMKilled "};
    const int each = 1000; // of them in a row
    buf_put_z(b, anchors[i / each % (int)(sizeof anchors / sizeof *anchors)]);
}

// Bytes a second.
static double run(struct arena a, const char *name, void (*put)(struct buf *b, int i), int pieces)
{
    char *block = NEW(&a, char, PIECE_BYTES + 4096);
    struct buf piece = buf_over(block, PIECE_BYTES + 4096);
    for (int i = 0; piece.n < PIECE_BYTES; i++)
        put(&piece, i);
    struct doctor *d = doctor_new(&a);
    double start = seconds();
    for (int i = 0; i < pieces; i++)
        doctor_feed(d, buf_str(&piece));
    struct doctor_result r = doctor_end(d, &a);
    double taken = seconds() - start;
    printf("%6.0f MB/s  %4.2f s for %.2f GB  %s, %llu lines, %td findings\n",
           (double)r.bytes / taken / 1e6, taken, (double)r.bytes / 1e9, name,
           (unsigned long long)r.lines, r.count);
    return (double)r.bytes / taken;
}

int main(void)
{
    void *block = malloc(ARENA_BYTES);
    if (!block)
        return EXIT_FAILURE;
    struct arena a = arena_over(block, ARENA_BYTES, NULL);
    double plain = run(a, "training", put_training, PIECES);
    run(a, "tracebacks", put_tracebacks, PIECES);
    run(a, "nothing but failures", put_failures, PIECES / 10);
    run(a, "nothing but exceptions", put_exceptions, PIECES / 10);
    double anchors = run(a, "nothing but anchors", put_anchors, PIECES / 20);
    printf("a byte of nothing but anchors costs %.0f bytes of training\n", plain / anchors);
    free(block);
    return EXIT_SUCCESS;
}
