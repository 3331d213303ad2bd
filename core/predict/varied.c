// See varied.h.
#include "core/predict/varied.h"

#include "core/base/num.h"
#include "core/base/units.h"
#include "core/predict/sampled.h"

// In hundredths of the longest. With the batches that they had, four of five measured jobs with
// padded or packed rows are met within 0.5 % (tests/measured/real_trainers.py; some of them:
// unit.varied), so that others can be drawn and played. The first two orders were chosen of 63, two
// together, by the measured jobs and 335 runs of twenty steps, over sequences a quarter as long as
// the longest in the median: about half of such runs reserve no more than if every batch were the
// longest, which is what is predicted, and one in twenty a quarter to a third more. The third was
// chosen of 13 to stand beside them, by a run of a hundred steps of each of 81 measured jobs:
// batches that are hardly longer than those before, and packed ones are all nearly full. Of 81 runs
// that were drawn afterwards the range has 64, and 60 without it. By the quartiles of the runs' own
// lengths it has fewer; who knows them plays the batches themselves (sampled.h).
struct order {
    int count;
    uint64_t part[4];
};

static const struct order orders_usual[] = {{3, {50, 60, 100}}, {3, {80, 95, 100}}};
static const struct order order_padded = {3, {95, 99, 100}};
static const struct order order_packed = {4, {97, 98, 99, 100}};

static const struct order *order_at(const struct job *job, int i)
{
    bool packed = job->batching == BATCHING_PACKED;
    return i < COUNT_OF(orders_usual) ? &orders_usual[i] : packed ? &order_packed : &order_padded;
}

static struct varied_batch part_of(uint64_t most, uint64_t hundredths)
{
    uint64_t tokens = sat_mul(most, hundredths) / 100;
    return (struct varied_batch){.tokens = tokens ? tokens : 1};
}

static uint64_t most_tokens(const struct job *job)
{
    uint64_t packed = job->batching == BATCHING_PACKED ? job->batch : 1;
    return sat_mul(job->context, packed);
}

int varied_orders(struct varied orders[VARIED_ORDERS], const struct job *job)
{
    uint64_t most = most_tokens(job);
    if (job->batching == BATCHING_FULL || job->varied)
        return 0;
    for (int i = 0; i < VARIED_ORDERS; i++) {
        const struct order *order = order_at(job, i);
        orders[i] = (struct varied){.count = order->count};
        for (int step = 0; step < orders[i].count; step++)
            for (int k = 0; k < VARIED_BATCHES; k++)
                orders[i].batch[step][k] = part_of(most, order->part[step]);
    }
    return VARIED_ORDERS;
}

// "4096", rows of up to 4096 tokens; "4096=", all of them as long; "4096:9000", 9000 in all.
static bool read_batch(struct varied_batch *b, struct str text, const struct setting *from,
                       const struct job *job, struct error *e)
{
    uint64_t most = most_tokens(job);
    struct str_cut cut = str_cut(text, ':');
    b->even = !cut.found && text.n && text.p[text.n - 1] == '=';
    cut.head.n -= b->even;
    bool ok =
        unit_parse(&b->tokens, UNIT_COUNT, cut.head) == UNIT_OK && b->tokens && b->tokens <= most;
    if (ok && cut.found)
        ok = unit_parse(&b->filled, UNIT_COUNT, cut.tail) == UNIT_OK && b->filled >= b->tokens &&
             b->filled <= sat_mul(b->tokens, job->batch);
    return ok || FAIL(e, BAD_INPUT, from->where,
                      "'%.*s' is no batch; 1 to %llu tokens are possible, and 4096/3000:5000/4096= "
                      "are those of three steps",
                      STR_ARGS(text), (unsigned long long)most);
}

// Of one step; those that are not said are as the last of them.
static bool read_step(struct varied_batch to[VARIED_BATCHES], struct str rest,
                      const struct setting *from, const struct job *job, struct error *e)
{
    struct str_cut cut = {.tail = rest, .found = true};
    for (int i = 0; i < VARIED_BATCHES; i++) {
        if (!cut.found) {
            to[i] = to[i - 1];
            continue;
        }
        cut = str_cut(cut.tail, ',');
        if (!read_batch(&to[i], cut.head, from, job, e))
            return false;
    }
    return !cut.found || FAIL(e, BAD_INPUT, from->where,
                              "at most %d micro-batches of a step are simulated", VARIED_BATCHES);
}

static bool read_named(struct job *job, struct arena *a, const struct setting *from,
                       struct error *e)
{
    if (job->batching == BATCHING_FULL)
        return FAIL(e, BAD_INPUT, from->where,
                    "batches differ where rows are padded or packed: --batching padded");
    struct varied *v = NEW(a, struct varied, 1);
    struct str_cut cut = {.tail = from->value, .found = true};
    while (cut.found && v->count < VARIED_MOST) {
        cut = str_cut(cut.tail, '/');
        if (!read_step(v->batch[v->count++], cut.head, from, job, e))
            return false;
    }
    job->varied = v;
    return !cut.found ||
           FAIL(e, BAD_INPUT, from->where, "at most %d steps are simulated", VARIED_MOST);
}

bool varied_read(struct job *job, struct arena *a, struct error *e)
{
    const struct setting *from = settings_find_z(job->given, "batch-lengths");
    const struct setting *rank = settings_find_z(job->given, "data-rank");
    if (from && rank)
        return FAIL(e, BAD_INPUT, rank->where,
                    "data-rank is whose batches of --data are played; --batch-lengths are a rank's "
                    "already");
    return from ? read_named(job, a, from, e) : sampled_read(job, a, e);
}
