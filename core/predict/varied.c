// See varied.h.
#include "core/predict/varied.h"

#include "core/base/num.h"
#include "core/base/units.h"

// In hundredths of the longest. With the batches that they had, 44 of 67 measured jobs with padded
// or packed rows are met within 0.5 % (tests/measured/samplers.py; some of them: unit.varied), so
// that others can be drawn and played: runs of twenty steps of these jobs, over sequences a quarter
// as long as the longest in the median. About half of them reserve no more than if every batch were
// the longest, which is what is predicted, and one in twenty a quarter to a third more. These
// orders were chosen of 63, two together, by the measured jobs and 335 such runs. Of 268 runs that
// were drawn afterwards the range has 81 of 100, and 39 without them; of the measured jobs 53, and
// 33. By the quartiles of the runs' own lengths (--data) it has fewer: 71 of 100 where these have
// 85, of padded rows.
static const uint64_t orders_usual[VARIED_ORDERS][VARIED_STEPS] = {{50, 60, 100}, {80, 95, 100}};

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
    for (int i = 0; i < VARIED_ORDERS; i++)
        for (int step = 0; step < VARIED_STEPS; step++)
            for (int k = 0; k < VARIED_BATCHES; k++)
                orders[i].batch[step][k] = part_of(most, orders_usual[i][step]);
    return VARIED_ORDERS;
}

static bool read_batch(struct varied_batch *b, struct str text, const struct setting *from,
                       uint64_t most, struct error *e)
{
    b->even = text.n && text.p[text.n - 1] == '=';
    text.n -= b->even;
    if (unit_parse(&b->tokens, UNIT_COUNT, text) != UNIT_OK || !b->tokens || b->tokens > most)
        return FAIL(e, BAD_INPUT, from->where,
                    "'%.*s' is no batch; 1 to %llu tokens are possible, and 4096/3000/4096= are "
                    "those of three steps",
                    STR_ARGS(text), (unsigned long long)most);
    return true;
}

// Of one step; those that are not said are as the last of them.
static bool read_step(struct varied_batch to[VARIED_BATCHES], struct str rest,
                      const struct setting *from, uint64_t most, struct error *e)
{
    struct str_cut cut = {.tail = rest, .found = true};
    for (int i = 0; i < VARIED_BATCHES; i++) {
        if (!cut.found) {
            to[i] = to[i - 1];
            continue;
        }
        cut = str_cut(cut.tail, ',');
        if (!read_batch(&to[i], cut.head, from, most, e))
            return false;
    }
    return !cut.found || FAIL(e, BAD_INPUT, from->where,
                              "at most %d micro-batches of a step are simulated", VARIED_BATCHES);
}

bool varied_read(struct job *job, struct arena *a, struct error *e)
{
    const struct setting *from = settings_find_z(job->given, "batch-lengths");
    if (!from)
        return true;
    if (job->batching == BATCHING_FULL)
        return FAIL(e, BAD_INPUT, from->where,
                    "batches differ where rows are padded or packed: --batching padded");
    struct varied *v = NEW(a, struct varied, 1);
    struct str_cut cut = {.tail = from->value, .found = true};
    for (int step = 0; step < VARIED_STEPS; step++) {
        if (!cut.found) {
            for (int i = 0; i < VARIED_BATCHES; i++)
                v->batch[step][i] = v->batch[step - 1][i];
            continue;
        }
        cut = str_cut(cut.tail, '/');
        if (!read_step(v->batch[step], cut.head, from, most_tokens(job), e))
            return false;
    }
    job->varied = v;
    return !cut.found ||
           FAIL(e, BAD_INPUT, from->where, "at most %d steps are simulated", VARIED_STEPS);
}
