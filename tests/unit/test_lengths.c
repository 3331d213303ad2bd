// Real lengths: what batches of them are padded to, and what steps of them take.
#include "core/predict/lengths.h"
#include "core/predict/real_time.h"
#include "tests/support/t.h"

static bool is_near(double a, double b)
{
    return a > b * 0.999 && a < b * 1.001;
}

static struct settings settings_from(const char *text)
{
    struct error e = {0};
    struct settings s = settings_in(test_arena());
    CHECK(settings_read(&s, str_from(text), '\n', STR("test"), &e));
    return s;
}

static struct lengths lengths_from(const char *text)
{
    struct error e = {0};
    struct settings s = settings_from(text);
    struct lengths l;
    CHECK(lengths_read(&l, &s, &e));
    return l;
}

// Two dice of four sides: the larger is 3.125 on average.
TEST(a_batch_is_as_long_as_its_longest)
{
    struct lengths l = lengths_from("data.lengths=100 200 300 400\ndata.count=4");
    CHECK_U64(l.count, 4);
    CHECK(is_near(lengths_mean(&l, 1000), 250));
    CHECK(is_near(lengths_longest(&l, 1000, 1), 250));
    CHECK(is_near(lengths_longest(&l, 1000, 2), 312.5));
    CHECK(lengths_longest(&l, 1000, 1000) > 399);
    CHECK(is_near(lengths_mean(&l, 250), 200)); // the rest is cut
}

TEST(typical_lengths_are_spread_alike)
{
    struct lengths l = lengths_from("data.lengths=100 200 300 400");
    double typical[4];
    lengths_typical(typical, 4, &l, 1);
    for (int i = 0; i < 4; i++)
        CHECK(is_near(typical[i], 100 * (i + 1)));
    lengths_typical(typical, 4, &l, 1000);
    CHECK(is_near(typical[0], 400));
}

TEST(lengths_are_said_once)
{
    struct error e = {0};
    struct settings s = settings_from("data.lengths=100\nmean-length=100");
    struct lengths l;
    CHECK(!lengths_read(&l, &s, &e));
    s = settings_from("data.lengths=100 many");
    CHECK(!lengths_read(&l, &s, &e));
}

static struct step_time time_of(const char *more)
{
    struct arena scratch = *test_arena();
    struct error e = {0};
    struct job *job = NEW(&scratch, struct job, 1);
    struct prediction *p = NEW(&scratch, struct prediction, 1);
    struct settings *s = NEW(&scratch, struct settings, 1);
    *s = settings_in(&scratch);
    CHECK(settings_read(s, STR("model=Qwen3-4B\ngpu=8xH100-80G\ncontext=8192\nbatch=2"), '\n',
                        STR("test"), &e));
    CHECK(settings_read(s, str_from(more), '\n', STR("test"), &e));
    CHECK(job_from_settings(job, &scratch, s, &e) && predict(p, &scratch, job, &e));
    return p->time;
}

// Sequences that are all as long as the context take what they took; shorter ones less, and those
// that are short on average more than those that all are.
TEST(real_lengths_decide_the_time)
{
    struct step_time full = time_of(""), same = time_of("mean-length=8192");
    struct step_time half = time_of("mean-length=4096");
    CHECK(is_near(same.seconds, full.seconds));
    CHECK(is_near(same.tokens_per_second, full.tokens_per_second));
    CHECK(half.seconds < 0.6 * full.seconds && half.seconds > 0.3 * full.seconds);
    CHECK(is_near(half.longest, full.seconds));
}

TEST(mixed_lengths_wait_for_the_longest)
{
    struct step_time full = time_of("");
    struct step_time mixed = time_of("data.lengths=1024 1024 1024 8192 9216\ndata.count=160");
    CHECK(is_near(mixed.mean_tokens, (3 * 1024 + 2 * 8192) / 5.0));
    CHECK(mixed.seconds > 0.9 * full.seconds); // of 16 sequences one is long
    CHECK(mixed.tokens_per_second < 0.6 * full.tokens_per_second);
    CHECK_U64(mixed.epoch_steps, 10);
}
