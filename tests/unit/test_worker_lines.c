// Lines for Fathom among a trainer's other output, in pieces of any size.
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "host/trials/last_line.h"
#include "host/trials/worker_lines.h"
#include "tests/support/t.h"

static char block[4 << 20];

struct heard {
    int starts, steps;
    struct step_record last;
    char gpu[WORKER_NAME_BYTES];
};

static void on_start(void *context, const struct worker_lines *w)
{
    struct heard *h = context;
    h->starts++;
    (void)snprintf(h->gpu, sizeof h->gpu, "%s", w->gpu);
}

static void on_step(void *context, const struct step_record *step)
{
    struct heard *h = context;
    h->steps++;
    h->last = *step;
}

static struct worker_lines *listener(struct heard *h)
{
    struct arena a = arena_over(block, sizeof block, NULL);
    struct worker_lines *w = NEW(&a, struct worker_lines, 1);
    w->scratch = a;
    w->watch = (struct worker_watch){h, on_start, on_step};
    return w;
}

// Two steps of a real trial (Qwen3-0.6B, 24576 tokens, one H200), and the noise around them.
static const char trial[] =
    "Loading weights: 100%|####| 1/1\n"
    "{\"fathom\": \"start\", \"torch\": \"2.11.0+cu130\", \"transformers\": \"5.17.0\", \"gpu\": "
    "\"NVIDIA H200\", \"total_bytes\": 150109880320, \"used_bytes\": 552402944}\n"
    "{\"loss\": 1.0}\n"
    "{\"fathom\": \"step\", \"step\": 1, \"allocated_bytes\": 69020871680, \"requested_bytes\": "
    "69019829256, \"reserved_bytes\": 83338723328, \"end_allocated_bytes\": 8412330496, "
    "\"retries\": 3, \"phases\": {\"reference\": 19170992128}, \"seconds\": 13.523}\n"
    "{\"fathom\": \"step\", \"step\": 2, \"allocated_bytes\": 73789271552, \"requested_bytes\": "
    "73788228620, \"reserved_bytes\": 83336626176, \"end_allocated_bytes\": 8412330496, "
    "\"retries\": 6, \"seconds\": 7.725}\n"
    "{\"fathom\": \"save\", \"allocated_bytes\": 73789271553, \"seconds\": 1}\n"
    "{\"fathom\": \"done\", \"seconds\": 23.683}\n";

static void check_trial(const struct worker_lines *w, const struct heard *h)
{
    CHECK(h->starts == 1 && h->steps == 2);
    CHECK_STR(str_from(h->gpu), "NVIDIA H200");
    CHECK_STR(str_from(w->versions), "torch 2.11.0+cu130, transformers 5.17.0");
    CHECK_U64(w->total_bytes, UINT64_C(150109880320));
    CHECK_U64(h->last.number, 2);
    CHECK_U64(h->last.allocated_bytes, UINT64_C(73789271552));
    CHECK_U64(h->last.requested_bytes, UINT64_C(73788228620));
    CHECK_U64(h->last.reserved_bytes, UINT64_C(83336626176));
    CHECK_U64(h->last.end_allocated_bytes, UINT64_C(8412330496));
    CHECK_U64(h->last.retries, 6);
    CHECK(h->last.seconds == 7.725);
    CHECK_U64(w->peaks.steps, 2);
    CHECK_U64(w->peaks.reserved_bytes, UINT64_C(83338723328));
    CHECK_U64(w->peaks.allocated_bytes, UINT64_C(73789271553)); // of the checkpoint
}

TEST(each_step_is_told)
{
    for (ptrdiff_t piece = 1; piece < 2000; piece += 37) {
        struct heard h = {0};
        struct worker_lines *w = listener(&h);
        struct str all = str_from(trial);
        for (ptrdiff_t i = 0; i < all.n; i += piece)
            worker_lines_feed(w, str_slice(all, i, i + piece < all.n ? i + piece : all.n));
        check_trial(w, &h);
    }
}

// A script that reports by itself says nothing of ranks, and takes nothing back.
TEST(ranks_that_are_played)
{
    struct heard h = {0};
    struct worker_lines *w = listener(&h);
    worker_lines_feed(w, STR("{\"fathom\": \"start\", \"ranks\": 64}\n{\"fathom\": \"start\"}\n"
                             "{\"fathom\": \"peaks\", \"reserved_bytes\": 7}\n"));
    CHECK_U64(w->ranks, 64);
    CHECK_U64(w->peaks.reserved_bytes, 7);
    CHECK_U64(w->peaks.steps, 0);
}

TEST(what_is_missing_or_wrong_counts_as_nothing)
{
    struct heard h = {0};
    struct worker_lines *w = listener(&h);
    worker_lines_feed(w, STR("{\"fathom\": \"step\", \"allocated_bytes\": -5, \"reserved_bytes\": "
                             "\"many\", \"seconds\": -1}\n"));
    CHECK(h.steps == 1 && h.last.number == 1);
    CHECK_U64(h.last.allocated_bytes, 0);
    CHECK_U64(h.last.reserved_bytes, 0);
    CHECK(h.last.seconds == 0);
    worker_lines_feed(w, STR("{\"fathom\": \"step\"\n{\"fathom\": 7}\n{\"fathom\":}\n"));
    CHECK_U64((uint64_t)h.steps, 1);
}

TEST(bars_orders_and_missing_ends_lose_nothing)
{
    struct heard h = {0};
    struct worker_lines *w = listener(&h);
    worker_lines_feed(w, STR(" 50%|##  |\r{\"step\": 1, \"fathom\": \"step\"}\r\n{\"loss\": 2}\n"));
    CHECK(h.steps == 1);
    worker_lines_feed(w, STR("{\"fathom\": \"step\", \"reserved_bytes\": 5}"));
    CHECK(h.steps == 1);
    worker_lines_end(w);
    CHECK(h.steps == 2);
    CHECK_U64(w->peaks.reserved_bytes, 5);
    worker_lines_end(w);
    CHECK(h.steps == 2);
}

TEST(endless_steps_are_not_all_told)
{
    struct heard h = {0};
    struct worker_lines *w = listener(&h);
    for (int i = 0; i < WORKER_MOST_STEPS + 10; i++)
        worker_lines_feed(w, STR("{\"fathom\": \"step\", \"reserved_bytes\": 9}\n"));
    CHECK_U64((uint64_t)h.steps, WORKER_MOST_STEPS);
    CHECK_U64(w->peaks.steps, WORKER_MOST_STEPS + 10);
    worker_lines_feed(w, STR("{\"fathom\": \"step\", \"reserved_bytes\": 10}\n"));
    CHECK_U64(w->peaks.reserved_bytes, 10); // peaks are
}

TEST(a_script_of_emit_says_its_peak)
{
    struct heard h = {0};
    struct worker_lines *w = listener(&h);
    worker_lines_feed(w, STR("measured peak: 61.50 GiB reserved, 55.25 GiB allocated\n"));
    CHECK_U64(w->peaks.reserved_bytes, 123 * GIB / 2);
    CHECK_U64(w->peaks.allocated_bytes, 221 * GIB / 4);
    CHECK_U64((uint64_t)h.steps, 0);
}

TEST(a_job_says_when_it_waits_and_when_it_runs)
{
    struct heard h = {0};
    struct worker_lines *w = listener(&h);
    CHECK(!w->queued);
    worker_lines_feed(w, STR("{\"fathom\": \"queued\", \"state\": \"PENDING\"}\n"));
    CHECK(w->queued);
    worker_lines_feed(w, STR("{\"fathom\": \"step\", \"step\": 1}\n"));
    CHECK(w->queued);
    worker_lines_feed(w, STR("{\"fathom\": \"running\", \"state\": \"RUNNING\"}\n"));
    CHECK(!w->queued);
}

// ------------------------------------------------------------------ the last line

static struct str last_of(const char *text, ptrdiff_t piece)
{
    static struct arena a;
    a = arena_over(block, sizeof block, NULL);
    struct last_line *l = NEW(&a, struct last_line, 1);
    struct str all = str_from(text);
    for (ptrdiff_t i = 0; i < all.n; i += piece)
        last_line_feed(l, str_slice(all, i, i + piece < all.n ? i + piece : all.n));
    return last_line_text(l, &a);
}

TEST(the_last_line_is_plain_and_not_for_fathom)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"\n\r\n \n", ""},
        {"one", "one"},
        {"one\ntwo\n", "two"},
        {"one\n\033[1;31mtwo\033[0m\a \n\n\n", "two"},
        {" 10%|#  |\r 20%|## |\r", "20%|## |"},
        {"one\n{\"fathom\": \"running\"}\n{\"fathom\": \"done\"}\n", "one"},
        {"{\"fathom\": \"done\"}\n", ""},
        {"one\n\033[", "one"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        for (ptrdiff_t piece = 1; piece < 40; piece += 6)
            CHECK_STR(last_of(rows[i][0], piece), rows[i][1]);
}

TEST(a_line_longer_than_what_is_kept_loses_its_beginning)
{
    static char text[3 * LAST_LINE_BYTES];
    memset(text, 'a', sizeof text - 1);
    for (ptrdiff_t piece = 1000; piece < (ptrdiff_t)sizeof text; piece += 5000)
        CHECK_U64((uint64_t)last_of(text, piece).n, LAST_LINE_BYTES);
}
