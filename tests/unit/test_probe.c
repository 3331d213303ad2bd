// The hunt, the outcomes and the run, without any process: every transition as a row.
#include "core/base/buf.h"
#include "core/probe/tell.h"
#include "tests/support/t.h"

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

// Lengths that a hunt has jumped over were not tried, whatever is known of longer ones.
TEST(the_linear_order_jumps_over_nothing)
{
    struct hunt h = trinity_hunt(16384);
    struct played hunted = play(&h, 16384);
    CHECK_U64((uint64_t)hunted.count, 2); // 16384 and 20480
    h.linear = true;
    static const uint64_t wanted[] = {4096, 8192, 12288};
    for (ptrdiff_t i = 0; i < COUNT_OF(wanted); i++) {
        struct hunt_step step = hunt_next(&h, hunted.trials, hunted.count);
        CHECK(step.state == HUNT_TRY);
        CHECK_U64(step.context, wanted[i]);
        hunted.trials[hunted.count++] = (struct trial){step.context, OUTCOME_FITS};
    }
    struct hunt_step end = hunt_next(&h, hunted.trials, hunted.count);
    CHECK(end.state == HUNT_DONE);
    CHECK_U64(end.longest, 16384);
    CHECK_U64(end.fails_at, 20480);
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
    {{.unplayed = true}, NULL, OUTCOME_CONFIGURATION},
    {{.unplayed = true, .said_done = true}, NULL, OUTCOME_CONFIGURATION},
    {{.unplayed = true, .status = 1}, "exhaustion", OUTCOME_GPU_MEMORY},
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

// ------------------------------------------------------------------ the run

static char block[64 << 20];

static struct arena fresh(void)
{
    return arena_over(block, sizeof block, NULL);
}

// A run of these settings on a machine without a card that is known.
static struct probe_run run_of(struct arena *a, const char *text, const struct str *paths)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct probe_run r;
    struct error e = {0};
    *s = settings_in(a);
    CHECK(settings_read(s, str_from(text), '\n', STR("test"), &e));
    CHECK(probe_run_read(&r, a, s, &e));
    r.place.model_paths = paths;
    CHECK(probe_run_card(&r, &e));
    return r;
}

static struct cell_plan planned(struct probe_run *r, ptrdiff_t index)
{
    struct cell_plan p;
    struct error e = {0};
    CHECK(plan_cell(&p, r, index, &e));
    CHECK_STR(str_from(e.message), "");
    return p;
}

TEST(cells_go_by_model_gpus_and_size)
{
    static const char *const titles[] = {
        "Qwen3-0.6B, 2 GPUs, sp 1", "Qwen3-0.6B, 2 GPUs, sp 4", "Qwen3-0.6B, 4 GPUs, sp 1",
        "Qwen3-0.6B, 4 GPUs, sp 4", "Qwen3-4B, 2 GPUs, sp 1",   "Qwen3-4B, 2 GPUs, sp 4",
        "Qwen3-4B, 4 GPUs, sp 1",   "Qwen3-4B, 4 GPUs, sp 4",
    };
    struct arena a = fresh();
    struct probe_run r =
        run_of(&a, "engine=torch\nmodel=Qwen3-0.6B,Qwen3-4B\ngpus=2,4\nsp=1,4", NULL);
    CHECK_U64((uint64_t)r.cell_count, COUNT_OF(titles));
    for (ptrdiff_t i = 0; i < r.cell_count; i++) {
        struct cell_plan p = planned(&r, i);
        CHECK_STR(p.cell->title, titles[i]);
        CHECK_U64((uint64_t)r.story.count, (uint64_t)i + 1);
        CHECK(p.cell->possible == (p.cell->gpus % p.cell->sp == 0));
    }
    CHECK_STR(r.story.cells[1].refusal, "sp 4 does not divide the 2 GPUs");
}

TEST(context_parallel_sizes_are_cells_too)
{
    static const char *const rows[][2] = {
        {"Qwen3-0.6B, 2 GPUs, sp 1", "logs/Qwen3-0.6B/gpu-2/sp-1/model_len-4096.log"},
        {"Qwen3-0.6B, 2 GPUs, sp 1, cp 2", "logs/Qwen3-0.6B/gpu-2/sp-1/cp-2/model_len-4096.log"},
        {"Qwen3-0.6B, 2 GPUs, sp 1, cp 4", ""},
        {"Qwen3-0.6B, 2 GPUs, sp 2", "logs/Qwen3-0.6B/gpu-2/sp-2/model_len-4096.log"},
        {"Qwen3-0.6B, 2 GPUs, sp 2, cp 2", ""},
        {"Qwen3-0.6B, 2 GPUs, sp 2, cp 4", ""},
    };
    struct arena a = fresh();
    struct probe_run r =
        run_of(&a, "engine=torch\nmodel=Qwen3-0.6B\ngpus=2\nsp=1,2\ncp=1,2,4\ncp-rank=1", NULL);
    CHECK_U64((uint64_t)r.cell_count, COUNT_OF(rows));
    for (ptrdiff_t i = 0; i < r.cell_count; i++) {
        struct cell_plan p = planned(&r, i);
        CHECK_STR(p.cell->title, rows[i][0]);
        CHECK(p.cell->possible == (rows[i][1][0] != 0));
        if (p.cell->possible)
            CHECK_STR(plan_log(&p, 4096, 1), rows[i][1]);
        const struct setting *cp = settings_find_z(&p.settings, "cp");
        CHECK(!!cp == (p.cell->cp > 1) && !!cp == !!settings_find_z(&p.settings, "cp-rank"));
    }
    CHECK_STR(r.story.cells[2].refusal, "cp 4 does not divide the 2 GPUs");
}

TEST(a_trial_is_told_where_it_stands)
{
    struct arena a = fresh();
    struct probe_run r =
        run_of(&a, "engine=trinity\nmodel=Qwen3-0.6B\ngpus=2\nlog-dir=l\ncheckpoint-path=c", NULL);
    struct cell_plan p = planned(&r, 0);
    struct hunt_step step = {.context = 8192, .try = 2};
    struct planned_trial t = plan_trial(&p, &step, plan_log(&p, 8192, 2));
    CHECK_STR(t.request.log, "l/Qwen3-0.6B/gpu-2/sp-1/model_len-8192.2.log");
    CHECK_STR(t.request.model, "Qwen/Qwen3-0.6B");
    CHECK_STR(t.request.checkpoints, "c/fathom-trial");
    CHECK_STR(t.request.shipped, "l/share");
    r = run_of(&a, "engine=trinity\nmodel=Qwen3-0.6B", NULL);
    r.place.checkpoints = STR("/scratch");
    p = planned(&r, 0);
    CHECK_STR(plan_trial(&p, &step, STR("x")).request.checkpoints, "/scratch/fathom-trial");
}

// However a folder is written, its trials are of one cell.
TEST(a_folder_is_one_model)
{
    static const char *const rows[][2] = {
        {"./m", "/home/m"}, {"m/", "/home/m"}, {"/home/m/config.json", "/home/m/config.json"}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena a = fresh();
        struct str path = str_from(rows[i][1]);
        struct str text = str_format(&a,
                                     "engine=torch\nmodel=%s\nconfig.model_type=qwen3\n"
                                     "config.hidden_size=64\nconfig.num_hidden_layers=2\n"
                                     "config.num_attention_heads=4\nconfig.vocab_size=64\n"
                                     "config.num_key_value_heads=4\nconfig.intermediate_size=64",
                                     rows[i][0]);
        struct probe_run r = run_of(&a, str_z(&a, text), &path);
        struct cell_plan p = planned(&r, 0);
        CHECK(str_starts(plan_record(&p).key, STR("model=/home/m\n")));
        CHECK_STR(p.model, "/home/m");
        CHECK_STR(p.cell->model, "m");
    }
}

TEST(a_dry_run_shows_the_schedulers_line)
{
    struct arena a = fresh();
    struct error e = {0};
    struct probe_run r = run_of(&a,
                                "engine=command\ncommand=train {context}\nlauncher=slurm\n"
                                "gpus=8\nuntil=4096",
                                NULL);
    struct cell_plan p = planned(&r, 0);
    CHECK(plan_commands(&p, &e));
    CHECK_U64((uint64_t)p.cell->command_count, 1);
    CHECK_STR(p.cell->commands[0],
              "sh logs/share/slurm_trial.sh "
              "logs/model/gpu-8/sp-1/model_len-4096.log.sh "
              "logs/model/gpu-8/sp-1/model_len-4096.log.job 8\n"
              "    runs: FATHOM_CONTEXT=4096 FATHOM_GPUS=8 FATHOM_SP=1 FATHOM_CP=1 "
              "FATHOM_MODEL='' FATHOM_LOG=logs/model/gpu-8/sp-1/model_len-4096.log "
              "FATHOM_TRY=1 FATHOM_YARN_FACTOR=1 FATHOM_LIMIT_BYTES=0 "
              "bash -o pipefail -c 'train 4096'");
}

TEST(a_prediction_below_the_start_is_said)
{
    static const struct {
        uint64_t expected, known;
        const char *text;
    } rows[] = {
        {20480, 0, "m: predicted 20480 tokens\n"},
        {20480, 2, "m: predicted 20480 tokens, going on\n"},
        {4096, 0,
         "m: predicted 4096 tokens, which is below the start: 8192 is predicted to fail\n"},
        {0, 0, "m: predicted to fit no length from 8192 tokens on\n"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena a = fresh();
        struct buf b = buf_in(&a);
        struct probe_cell c = {.title = STR("m"),
                               .predicted = true,
                               .expected = rows[i].expected,
                               .known = rows[i].known};
        struct cell_plan p = {.cell = &c, .hunt = trinity_hunt(rows[i].expected)};
        p.hunt.start = 8192;
        tell_expectation(&b, &p);
        CHECK_STR(buf_str(&b), rows[i].text);
    }
}

TEST(trials_of_a_store_are_gone_on_from)
{
    struct hunt h = trinity_hunt(20480);
    struct trial items[] = {
        {20480, OUTCOME_FITS}, {24576, OUTCOME_TIMEOUT}, {24576, OUTCOME_TIMEOUT}};
    struct trials known = {items, COUNT_OF(items), COUNT_OF(items)};
    CHECK_U64(hunt_go_on(&h, &known), 1);
    CHECK_U64((uint64_t)known.count, 3); // the third try is the third
    h.most_tries = 2;
    CHECK_U64(hunt_go_on(&h, &known), 1);
    CHECK_U64((uint64_t)known.count, 1); // used up: there are new ones
    known.count = COUNT_OF(items);
    h.most_tries = 3;
    h.until = 20480;
    CHECK_U64(hunt_go_on(&h, &known), 1);
    CHECK_U64((uint64_t)known.count, 1); // not asked for any more
}

TEST(last_words_of_a_trial)
{
    static const struct {
        const char *tail;
        bool told;
    } rows[] = {
        {"Traceback (most recent call last):\n  File \"a.py\", line 1\n"
         "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
         true},
        {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", false},
        {"Traceback (most recent call last):\nValueError: x\n", false},
        {"", false},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        CHECK(outcome_is_told(fresh(), str_from(rows[i].tail)) == rows[i].told);
    CHECK(outcome_of_error(ERROR_IO) == OUTCOME_DISK);
    CHECK(outcome_of_error(ERROR_BAD_INPUT) == OUTCOME_CONFIGURATION);
    CHECK(outcome_of_error(ERROR_CHILD) == OUTCOME_FAILED);
    struct arena a = fresh();
    CHECK_STR(outcome_detail(&a, NULL), "");
}

TEST(a_retry_may_take_longer)
{
    struct arena a = fresh();
    struct probe_run r = run_of(&a, "engine=command\ncommand=x {context}\ntimeout=100", NULL);
    struct cell_plan p = planned(&r, 0);
    static const uint64_t wanted[] = {100000, 130000, 169000};
    for (int i = 0; i < COUNT_OF(wanted); i++) {
        struct hunt_step step = {.context = 4096, .try = i + 1};
        CHECK_U64(plan_trial(&p, &step, STR("x")).timeout_ms, wanted[i]);
    }
}

TEST(what_ends_a_run)
{
    static const struct {
        enum outcome reason;
        const char *text;
    } rows[] = {
        {OUTCOME_TIMEOUT, ""},
        {OUTCOME_INTERRUPTED, "interrupted; every finished trial is kept"},
        {OUTCOME_DISK, "the trial of 8192 tokens ended: disk full; another length would not change "
                       "it: no space"},
        {OUTCOME_FAILED, "the trial of 8192 tokens ended: failed: no space"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct error e = {0};
        struct hunt_step end = {.state = HUNT_STOPPED, .context = 8192, .reason = rows[i].reason};
        struct probe_cell c = {.end = end, .detail = STR("no space")};
        struct cell_plan p = {.cell = &c};
        CHECK(tell_whether_on(&p, STR("x.log"), &e) == !rows[i].text[0]);
        CHECK_STR(str_from(e.message), rows[i].text);
    }
}

TEST(a_cell_without_an_answer_is_told)
{
    struct hunt_step end = {.state = HUNT_STOPPED, .context = 8192, .reason = OUTCOME_TIMEOUT};
    struct probe_cell c = {
        .title = STR("m, 2 GPUs"), .possible = true, .settled = true, .end = end};
    struct probe_run r = {.story = {&c, 1, 0}};
    struct error e = {0};
    CHECK(!tell_whether_done(&r, &e));
    CHECK_STR(str_from(e.message), "m, 2 GPUs stays undecided: timeout at 8192 tokens");
}
