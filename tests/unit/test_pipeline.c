// The schedules of a pipeline: by what is known of them in closed form, and by what must not change
// their time.
#include "core/time/pipeline.h"
#include "tests/support/t.h"

static struct passing passing(double forward, double backward, double rest)
{
    struct passing p = {.rest = rest};
    for (int i = 0; i < STAGE_PLACES; i++) {
        p.forward[i] = forward;
        p.backward[i] = backward;
    }
    return p;
}

static struct pipeline even(uint64_t ranks, uint64_t stages, uint64_t batches)
{
    struct passing each = passing(1, 2, 0);
    return (struct pipeline){each, each, each, ranks, stages, batches, 0};
}

static bool is_about(double value, double wanted)
{
    return value > wanted - 1e-9 && value < wanted + 1e-9;
}

static double seconds(const struct pipeline *p)
{
    return pipeline_seconds(p, *test_arena());
}

static void check_even(uint64_t ranks, uint64_t stages, uint64_t batches)
{
    struct pipeline p = even(ranks, stages, batches);
    double work = 3 * (double)(batches * stages), waits = 3 * (double)(ranks - 1);
    CHECK(is_about(seconds(&p), work + waits));
    CHECK(is_about(pipeline_bubble(&p, work + waits), waits / (work + waits)));
}

// As many passes as there are other ranks come before a rank has all it needs, and of several
// stages a rank each is shorter.
TEST(even_stages_wait_for_the_ranks_before_them)
{
    for (uint64_t ranks = 2; ranks <= 8; ranks *= 2)
        for (uint64_t batches = ranks; batches <= 64; batches += ranks)
            for (uint64_t stages = 1; stages <= 3; stages++)
                check_even(ranks, stages, batches);
}

TEST(fewer_batches_than_ranks_go_through_one_after_another)
{
    struct pipeline p = even(8, 1, 2);
    CHECK(is_about(seconds(&p), 8 * 3 + 3));
    p.batches = 1;
    CHECK(is_about(seconds(&p), 8 * 3));
}

// The head makes the last rank slow: all others wait for it at every micro-batch.
TEST(the_slowest_rank_sets_the_pace)
{
    struct pipeline p = even(4, 1, 100);
    p.last = passing(1.5, 3, 0);
    double hundred = seconds(&p);
    p.batches = 200;
    CHECK(is_about(seconds(&p) - hundred, 100 * 4.5));
    p.batches = 1;
    CHECK(is_about(seconds(&p), 3 * 3 + 4.5));
}

// One stage a rank waits for what it hands over, both ways at once but for the first and the last;
// several hand it over beside what they compute.
TEST(transfers_are_waited_for_unless_stages_are_interleaved)
{
    struct pipeline p = even(2, 1, 50), q = even(2, 2, 50);
    p.transfer = q.transfer = 0.1;
    double alone = seconds(&p), several = seconds(&q);
    p.transfer = q.transfer = 0;
    CHECK(is_about(alone - seconds(&p), 0.1 * (50 + 1)));
    CHECK(several - seconds(&q) < 0.1 * 10);
}

// A pass that only reads has no way back.
TEST(reading_takes_the_forward_passes)
{
    struct pipeline p = even(4, 1, 16), alone = even(1, 1, 16);
    CHECK(is_about(pipeline_reading(&p, *test_arena()), 16 + 3));
    CHECK(is_about(pipeline_reading(&alone, *test_arena()), 16));
}

// The first rank comes back last; what follows on another is done while it waits.
TEST(a_rank_that_is_done_goes_on_by_itself)
{
    struct pipeline p = even(4, 1, 16);
    p.last.rest = 5;
    CHECK(is_about(seconds(&p), 3 * (16 + 3)));
    p.first.rest = 1;
    CHECK(is_about(seconds(&p), 3 * (16 + 3) + 1));
}
