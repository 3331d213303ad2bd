// The hunt and the outcomes, without any process: every transition as a row.
#include "core/probe/hunt.h"
#include "tests/t.h"

enum { MOST_TRIALS = 200 };

static struct hunt trinity_hunt(uint64_t expected)
{
    return (struct hunt){.grid = {.trinity = true, .max_position = 40960},
                         .start = 4096,
                         .predicted = true,
                         .expected = expected,
                         .most_tries = 3};
}

struct played {
    struct hunt_step end;
    struct trial trials[MOST_TRIALS];
    ptrdiff_t count;
};

// Plays a machine on which `longest` is the longest length that fits.
static struct played play(const struct hunt *h, uint64_t longest)
{
    struct played p = {0};
    for (;;) {
        p.end = hunt_next(h, p.trials, p.count);
        if (p.end.state != HUNT_TRY || p.count == MOST_TRIALS)
            return p;
        bool fits = p.end.context <= longest;
        p.trials[p.count++] =
            (struct trial){p.end.context, fits ? OUTCOME_FITS : OUTCOME_GPU_MEMORY};
    }
}

TEST(a_right_prediction_costs_two_launches)
{
    static const uint64_t lengths[] = {4096, 20480, 40960, 51200, 92160};
    for (ptrdiff_t i = 0; i < COUNT_OF(lengths); i++) {
        struct hunt h = trinity_hunt(lengths[i]);
        struct played p = play(&h, lengths[i]);
        CHECK(p.end.state == HUNT_DONE);
        CHECK_U64(p.end.longest, lengths[i]);
        CHECK_U64((uint64_t)p.count, 2);
        CHECK(p.end.fails_at > lengths[i]);
    }
}

TEST(nothing_fits_costs_one_launch)
{
    struct hunt h = trinity_hunt(0);
    struct played p = play(&h, 0);
    CHECK(p.end.state == HUNT_DONE);
    CHECK_U64(p.end.longest, 0);
    CHECK_U64(p.end.fails_at, 4096);
    CHECK_U64((uint64_t)p.count, 1);
}

TEST(a_prediction_that_is_one_step_off_costs_one_more)
{
    struct hunt low = trinity_hunt(16384), high = trinity_hunt(24576);
    struct played p = play(&low, 20480);
    CHECK_U64(p.end.longest, 20480);
    CHECK_U64((uint64_t)p.count, 3);
    p = play(&high, 20480);
    CHECK_U64(p.end.longest, 20480);
    CHECK_U64((uint64_t)p.count, 2);
}

static bool tries_each_once(const struct played *p)
{
    for (ptrdiff_t a = 0; a < p->count; a++)
        for (ptrdiff_t b = 0; b < a; b++)
            if (p->trials[a].context == p->trials[b].context)
                return false;
    return true;
}

static void check_from(uint64_t expected, uint64_t longest)
{
    struct hunt h = trinity_hunt(expected);
    struct played p = play(&h, longest);
    CHECK(p.end.state == HUNT_DONE && p.count <= 16);
    CHECK_U64(p.end.longest, longest);
    CHECK(tries_each_once(&p));
}

TEST(every_prediction_leads_to_every_answer)
{
    static const uint64_t lengths[] = {0,     4096,  8192,  12288, 16384, 20480,  24576, 28672,
                                       32768, 36864, 40960, 51200, 61440, 143360, 512000};
    for (ptrdiff_t i = 0; i < COUNT_OF(lengths); i++)
        for (ptrdiff_t k = 0; k < COUNT_OF(lengths); k++)
            check_from(lengths[i], lengths[k]);
}

TEST(without_a_prediction_the_steps_double)
{
    struct hunt h = trinity_hunt(0);
    h.predicted = false;
    struct played p = play(&h, 92160);
    CHECK_U64(p.end.longest, 92160);
    CHECK_U64(p.trials[0].context, 4096);
    CHECK(p.count <= 9);
}

TEST(the_linear_order_is_the_published_one)
{
    struct hunt h = trinity_hunt(40960);
    h.linear = true;
    struct played p = play(&h, 51200);
    CHECK_U64((uint64_t)p.count, 12);
    CHECK_U64(p.trials[0].context, 4096);
    CHECK_U64(p.trials[9].context, 40960);
    CHECK_U64(p.trials[10].context, 51200);
    CHECK_U64(p.trials[11].context, 61440);
    CHECK_U64(hunt_linear_launches(&h, &p.end), 12);
    p = play(&h, 0);
    CHECK_U64(hunt_linear_launches(&h, &p.end), 1);
}

TEST(a_start_is_not_gone_below)
{
    struct hunt h = trinity_hunt(20480);
    h.start = 10000;
    struct played p = play(&h, 8192);
    CHECK(p.end.state == HUNT_DONE);
    CHECK_U64(p.end.longest, 0);
    CHECK_U64(p.end.fails_at, 12288);
}

// What one more trial leads to, after a fit at 20480.
struct transition {
    enum outcome outcomes[4]; // of trials at 24576, in their order; ends with OUTCOMES
    enum hunt_state state;
    uint64_t context; // to try next
    int try;
};

TEST(every_outcome_leads_somewhere)
{
    static const struct transition rows[] = {
        {{OUTCOME_FITS, OUTCOMES}, HUNT_TRY, 28672, 1},
        {{OUTCOME_GPU_MEMORY, OUTCOMES}, HUNT_DONE, 0, 1},
        {{OUTCOME_HOST_MEMORY, OUTCOMES}, HUNT_DONE, 0, 1},
        {{OUTCOME_DEVICE_ERROR, OUTCOMES}, HUNT_TRY, 24576, 2},
        {{OUTCOME_DEVICE_ERROR, OUTCOME_DEVICE_ERROR, OUTCOMES}, HUNT_TRY, 24576, 3},
        {{OUTCOME_DEVICE_ERROR, OUTCOME_TIMEOUT, OUTCOME_DEVICE_ERROR, OUTCOMES},
         HUNT_STOPPED,
         24576,
         4},
        {{OUTCOME_DEVICE_ERROR, OUTCOME_FITS, OUTCOMES}, HUNT_TRY, 28672, 1},
        {{OUTCOME_MEMORY_TAKEN, OUTCOMES}, HUNT_TRY, 24576, 2},
        {{OUTCOME_TIMEOUT, OUTCOMES}, HUNT_TRY, 24576, 2},
        {{OUTCOME_RENDEZVOUS, OUTCOMES}, HUNT_TRY, 24576, 2},
        {{OUTCOME_STOPPED, OUTCOMES}, HUNT_TRY, 24576, 2},
        {{OUTCOME_TIMEOUT, OUTCOME_GPU_MEMORY, OUTCOMES}, HUNT_DONE, 0, 1},
        {{OUTCOME_CONFIGURATION, OUTCOMES}, HUNT_STOPPED, 24576, 1},
        {{OUTCOME_DEVICE_ERROR, OUTCOME_CONFIGURATION, OUTCOMES}, HUNT_STOPPED, 24576, 1},
        {{OUTCOME_DISK, OUTCOMES}, HUNT_STOPPED, 24576, 1},
        {{OUTCOME_FAILED, OUTCOMES}, HUNT_STOPPED, 24576, 1},
        {{OUTCOME_INTERRUPTED, OUTCOMES}, HUNT_STOPPED, 24576, 1},
    };
    struct hunt h = trinity_hunt(20480);
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct trial trials[8] = {{20480, OUTCOME_FITS}};
        ptrdiff_t count = 1;
        for (; rows[i].outcomes[count - 1] != OUTCOMES; count++)
            trials[count] = (struct trial){24576, rows[i].outcomes[count - 1]};
        struct hunt_step s = hunt_next(&h, trials, count);
        CHECK(s.state == rows[i].state);
        CHECK_U64(s.context, rows[i].context);
        CHECK_U64((uint64_t)s.try, (uint64_t)rows[i].try);
        CHECK(s.longest >= 20480);
    }
}

// A length that fails where a longer one fits: the answer stays below the failure.
TEST(a_failure_below_a_fit_bounds_the_answer)
{
    struct hunt h = trinity_hunt(20480);
    struct trial trials[] = {{20480, OUTCOME_FITS}, {12288, OUTCOME_GPU_MEMORY}};
    struct hunt_step s = hunt_next(&h, trials, COUNT_OF(trials));
    CHECK(s.state == HUNT_TRY);
    CHECK(s.context < 12288);
    CHECK_U64(s.fails_at, 12288);
}

// Trials of another grid count for what they say about this one's lengths.
TEST(another_grid_rounds_fits_down_and_failures_up)
{
    struct hunt h = {.grid = {.step = 3000}, .start = 3000, .most_tries = 3};
    struct trial trials[] = {{16384, OUTCOME_FITS}, {20480, OUTCOME_GPU_MEMORY}};
    struct hunt_step s = hunt_next(&h, trials, COUNT_OF(trials));
    CHECK(s.state == HUNT_TRY);
    CHECK_U64(s.longest, 15000);
    CHECK_U64(s.fails_at, 21000);
    CHECK_U64(s.context, 18000);
    struct trial below[] = {{2000, OUTCOME_FITS}};
    s = hunt_next(&h, below, COUNT_OF(below));
    CHECK(s.state == HUNT_TRY);
    CHECK_U64(s.longest, 0);
}

TEST(a_range_without_lengths_is_told)
{
    struct hunt h = {.grid = {.step = 1024}, .start = 3100, .until = 3500};
    CHECK(hunt_is_empty(&h));
    h.until = 4096;
    CHECK(!hunt_is_empty(&h));
    h.until = 0;
    CHECK(!hunt_is_empty(&h));
}

// The neighbour of the end is next, not the start.
TEST(a_prediction_beyond_the_end_starts_from_the_end)
{
    struct hunt h = trinity_hunt(512000);
    h.until = 92160;
    struct trial trials[] = {{92160, OUTCOME_GPU_MEMORY}};
    CHECK_U64(hunt_next(&h, NULL, 0).context, 92160);
    CHECK_U64(hunt_next(&h, trials, COUNT_OF(trials)).context, 81920);
}

TEST(the_published_test_begins_at_its_start_length)
{
    static const uint64_t lengths[] = {6000, 10096, 14192, 18288, 22384, 26480, 30576};
    struct hunt h = trinity_hunt(0);
    h.start = h.grid.first = 6000;
    h.linear = true;
    struct played p = play(&h, 62000);
    for (ptrdiff_t i = 0; i < COUNT_OF(lengths); i++)
        CHECK_U64(p.trials[i].context, lengths[i]);
    CHECK_U64(p.trials[9].context, 42864); // the first that is not below 40960
    CHECK_U64(p.trials[10].context, 53104);
    CHECK_U64(p.end.longest, 53104);
}

static const struct doctor_kind *kind_of(const char *name)
{
    for (ptrdiff_t i = 0; i < doctor_kind_count; i++)
        if (str_is(str_from(doctor_kinds[i].name), name))
            return &doctor_kinds[i];
    CHECK(false); // the doctor knows it
    return NULL;
}

static const struct {
    struct ending ending;
    const char *kind; // of the cause, NULL where the log is silent
    enum outcome outcome;
} endings[] = {
    {{0}, NULL, OUTCOME_FITS},
    {{0}, "exhaustion", OUTCOME_GPU_MEMORY}, // behind a pipe
    {{0}, "host-memory", OUTCOME_HOST_MEMORY},
    {{0}, "nccl-error", OUTCOME_DEVICE_ERROR},
    {{0}, "other-process", OUTCOME_MEMORY_TAKEN},
    {{0}, "peer-lost", OUTCOME_FITS}, // is said at every end
    {{0}, "exception", OUTCOME_FITS}, // may have been caught
    {{.hides_failures = true}, "exception", OUTCOME_CONFIGURATION},
    {{.hides_failures = true}, "disk-full", OUTCOME_DISK},
    {{.hides_failures = true}, "exhaustion", OUTCOME_GPU_MEMORY},
    {{.hides_failures = true}, "peer-lost", OUTCOME_FITS},
    {{0}, "rendezvous", OUTCOME_FITS}, // another port was found
    {{.admits_failure = true}, "peer-lost", OUTCOME_DEVICE_ERROR},
    {{.admits_failure = true}, NULL, OUTCOME_FAILED},
    {{.admits_failure = true, .said_done = true}, NULL, OUTCOME_FITS},
    {{.said_done = true}, "exhaustion", OUTCOME_FITS},
    {{.said_done = true, .hides_failures = true}, "exception", OUTCOME_FITS},
    {{.said_done = true, .status = 1}, "exhaustion", OUTCOME_GPU_MEMORY},
    {{.status = 1}, "other-process", OUTCOME_MEMORY_TAKEN},
    {{.status = 1}, "startup-memory", OUTCOME_MEMORY_TAKEN},
    {{.status = 1}, NULL, OUTCOME_FAILED},
    {{.status = 1}, "exhaustion", OUTCOME_GPU_MEMORY},
    {{.status = 1}, "nccl-error", OUTCOME_DEVICE_ERROR},
    {{.status = 1}, "configuration", OUTCOME_CONFIGURATION},
    {{.status = 1}, "disk-full", OUTCOME_DISK},
    {{.status = 137}, NULL, OUTCOME_HOST_MEMORY},
    {{.status = 137}, "exhaustion", OUTCOME_GPU_MEMORY},
    {{.status = 137}, "killed", OUTCOME_HOST_MEMORY},
    {{.status = 9, .signalled = true}, NULL, OUTCOME_HOST_MEMORY},
    {{.status = 11, .signalled = true}, NULL, OUTCOME_FAILED},
    {{.status = 15, .signalled = true}, NULL, OUTCOME_STOPPED},
    {{.status = 143}, NULL, OUTCOME_STOPPED},
    {{.status = 1}, "cancelled", OUTCOME_STOPPED},
    {{.status = 137}, "cancelled", OUTCOME_HOST_MEMORY},
    {{.status = 1}, "rendezvous", OUTCOME_RENDEZVOUS},
    {{.status = 1}, "time-limit", OUTCOME_TIMEOUT},
    {{.status = 126}, NULL, OUTCOME_CONFIGURATION},
    {{.status = 127}, NULL, OUTCOME_CONFIGURATION},
    {{.status = 127}, "exhaustion", OUTCOME_GPU_MEMORY},
    {{.lost = true}, "exhaustion", OUTCOME_FAILED},
    {{.lost = true, .interrupted = true}, NULL, OUTCOME_INTERRUPTED},
    {{.status = 1, .oom_killed = true}, NULL, OUTCOME_HOST_MEMORY},
    {{.status = 15, .signalled = true, .timed_out = true}, NULL, OUTCOME_TIMEOUT},
    {{.timed_out = true}, NULL, OUTCOME_TIMEOUT},
    {{.status = 15, .signalled = true, .timed_out = true}, "exhaustion", OUTCOME_GPU_MEMORY},
    {{.status = 15, .signalled = true, .timed_out = true}, "nccl-error", OUTCOME_TIMEOUT},
    {{.status = 15, .signalled = true, .interrupted = true}, "exhaustion", OUTCOME_INTERRUPTED},
};

TEST(outcomes_by_ending_and_log)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(endings); i++) {
        const char *kind = endings[i].kind;
        struct doctor_finding cause = {.kind = kind ? kind_of(kind) : NULL, .step = -1};
        struct doctor_result log = {.findings = &cause,
                                    .count = kind != NULL,
                                    .cause = kind ? &cause : NULL,
                                    .last_step = -1,
                                    .steps_total = -1};
        CHECK(outcome_of(&endings[i].ending, &log) == endings[i].outcome);
    }
}

// What was caught is told from what was not by the steps after it.
TEST(a_failure_that_was_caught_is_none)
{
    struct ending well = {0};
    struct doctor_finding f = {.kind = kind_of("exhaustion"), .step = 1, .survived = true};
    struct doctor_result log = {.findings = &f, .count = 1, .last_step = 9, .steps_total = -1};
    CHECK(outcome_of(&well, &log) == OUTCOME_FITS);
    f.survived = false;
    CHECK(outcome_of(&well, &log) == OUTCOME_GPU_MEMORY);
    log.last_step = log.steps_total = 2; // the last step, made after it
    CHECK(outcome_of(&well, &log) == OUTCOME_FITS);
    f.step = 2;
    CHECK(outcome_of(&well, &log) == OUTCOME_GPU_MEMORY);
}

TEST(outcomes_have_names)
{
    for (int i = 0; i < OUTCOMES; i++) {
        enum outcome found;
        CHECK(outcome_from_name(&found, str_from(outcome_rows[i].name)));
        CHECK_U64((uint64_t)found, (uint64_t)i);
    }
    enum outcome none;
    CHECK(!outcome_from_name(&none, STR("nothing")));
}

TEST(an_end_is_not_gone_beyond)
{
    struct hunt h = trinity_hunt(92160);
    h.until = 20000;
    struct played p = play(&h, 92160);
    CHECK(p.end.state == HUNT_DONE);
    CHECK_U64(p.end.longest, 16384);
    CHECK_U64(p.end.fails_at, 0);
    CHECK_U64((uint64_t)p.count, 1);
    CHECK_U64(hunt_linear_launches(&h, &p.end), 4);
}
