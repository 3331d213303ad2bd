// See timeline.h.
#include "core/time/timeline.h"

#include <string.h>

enum { COMPUTE = 0 };

void timeline_start(struct timeline *t, const struct gpu *card, const struct network *network)
{
    t->rates = t->burst = rates_of(card);
    t->network = *network;
    t->pace = 1;
}

static void tell_other(const struct timeline *t)
{
    timeline_tell(t, (struct timed){.what = TIMED_OTHER});
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void note(struct timeline *t, enum spent_on kind, double from, double to)
{
    t->now.busy[kind] += to - from;
    if (t->activity)
        activity_add(t->activity, kind, from, to);
}

// The clock follows what is drawn over many milliseconds: as much of this step is taken to be
// products and attention as was of the last; of the first, half.
static void settle(struct timeline *t)
{
    double seconds = t->now.host - t->begun;
    double work = t->now.busy[WORK_PRODUCTS] + t->now.busy[WORK_ATTENTION];
    double seen = t->begun > 0 && seconds > 0 ? work / seconds : PART_AT_FIRST;
    double part = t->is_known ? t->part : seen;
    t->rates = rates_lasting(&t->burst, part < 1 ? part : 1);
    memset(t->known, 0, sizeof t->known);
    t->begun = t->now.host;
}

double timeline_begin(struct timeline *t)
{
    settle(t);
    t->now = (struct elapsed){.host = t->now.host, .compute = t->now.compute};
    if (t->activity)
        activity_begin(t->activity, t->now.host);
    t->now.host += t->rates.step;
    t->beside = 0;
    return t->now.host - t->rates.step;
}

double timeline_end(struct timeline *t)
{
    for (int i = 0; i < TIMELINE_STREAMS; i++)
        timeline_synchronize(t, i);
    return t->now.host;
}

double timeline_latest(const struct timeline *t)
{
    double latest = t->now.host;
    for (int i = 0; i < TIMELINE_STREAMS; i++)
        latest = t->stream[i] > latest ? t->stream[i] : latest;
    return latest;
}

void timeline_host_update(struct timeline *t, double parameters)
{
    double seconds = parameters / (t->rates.host_adam * t->cores);
    tell_other(t);
    note(t, WORK_HOST_UPDATE, t->now.host, t->now.host + seconds);
    t->now.host += seconds;
}

void timeline_await(struct timeline *t, int stream, double time)
{
    double before = larger(t->stream[stream], t->now.host);
    tell_other(t);
    if (t->stream[stream] >= time)
        return;
    t->stream[stream] = time;
    if (stream == COMPUTE && time > before)
        t->now.exposed += time - before;
    t->now.compute = t->stream[COMPUTE];
}

void timeline_wait(struct timeline *t, int stream, int other)
{
    timeline_await(t, stream, t->stream[other]);
}

void timeline_synchronize(struct timeline *t, int stream)
{
    tell_other(t);
    if (t->now.host < t->stream[stream])
        t->now.host = t->stream[stream];
}

// The driver takes so many launches ahead on a stream and makes the host wait beyond that.
static void queue(struct timeline *t)
{
    double *slot = &t->ends[t->launched++ % MOST_LAUNCHES_AHEAD];
    if (t->now.host < *slot)
        t->now.host = *slot;
    *slot = t->stream[COMPUTE];
}

void timeline_work(struct timeline *t, int stream, enum spent_on kind, double seconds)
{
    timeline_tell(t, (struct timed){TIMED_WORK, stream, kind, seconds});
    seconds *= t->pace;
    t->now.host += t->rates.launch;
    double start = t->stream[stream];
    if (start < t->now.host) {
        t->now.starved += stream == COMPUTE ? t->now.host - start : 0;
        start = t->now.host;
    }
    t->stream[stream] = start + seconds;
    note(t, kind, start, start + seconds);
    t->now.compute = t->stream[COMPUTE];
    if (stream == COMPUTE)
        queue(t);
}

void timeline_move(struct timeline *t, int stream, double bytes)
{
    timeline_work(t, stream, WORK_MEMORY, moving_seconds(&t->rates, bytes));
}

void timeline_move_more(struct timeline *t, int stream, double bytes)
{
    timeline_more(t, stream, bytes / t->rates.bandwidth);
}

void timeline_more(struct timeline *t, int stream, double seconds)
{
    timeline_tell(t, (struct timed){TIMED_MORE, stream, WORK_MEMORY, seconds});
    seconds *= t->pace;
    note(t, WORK_MEMORY, t->stream[stream], t->stream[stream] + seconds);
    t->stream[stream] += seconds;
    t->now.compute = t->stream[COMPUTE];
}

void timeline_slow(struct timeline *t, int stream, enum moving kind, double bytes)
{
    timeline_move_more(t, stream, bytes * (1 / t->rates.moving_part[kind] - 1));
}

static bool same_product(const struct product_shape *a, const struct product_shape *b)
{
    return a->rows == b->rows && a->columns == b->columns && a->depth == b->depth &&
           a->count == b->count && a->width == b->width && a->grouped == b->grouped &&
           a->added == b->added && a->more == b->more;
}

static double multiplying(struct timeline *t, const struct product_shape *p)
{
    uint64_t hash = p->rows * UINT64_C(0x9E3779B97F4A7C15) +
                    p->columns * UINT64_C(0xBF58476D1CE4E5B9) +
                    p->depth * UINT64_C(0x94D049BB133111EB) + p->count + p->more;
    hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93) >> 32;
    struct known_product *known = &t->known[hash % KNOWN_PRODUCTS];
    if (known->seconds <= 0 || !same_product(&known->shape, p))
        *known = (struct known_product){*p, product_seconds(&t->rates, p)};
    return known->seconds;
}

void timeline_multiply(struct timeline *t, int stream, const struct product_shape *p)
{
    timeline_flops(t, t->recomputes ? 0 : product_flops(p));
    timeline_host(t, (double)p->more * t->rates.launch);
    timeline_work(t, stream, WORK_PRODUCTS, multiplying(t, p));
}

void timeline_attend(struct timeline *t, int stream, const struct attending_shape *a)
{
    timeline_flops(t, t->recomputes ? 0 : attending_flops(a));
    timeline_work(t, stream, WORK_ATTENTION, attending_seconds(&t->rates, a));
}

void timeline_collect(struct timeline *t, int stream, double seconds)
{
    if (seconds > 0)
        timeline_work(t, stream, WORK_COLLECTIVE, seconds);
}

void timeline_host_copy(struct timeline *t, int stream, double bytes)
{
    timeline_work(t, stream, WORK_HOST_COPY, bytes / t->rates.host_link);
}

void timeline_repeat(struct timeline *t, const struct elapsed *before, double times)
{
    tell_other(t);
    double later = times * (t->now.compute - before->compute);
    double host = times * (t->now.host - before->host);
    later = later > host ? later : host;
    t->now.host += later;
    for (int i = 0; i < TIMELINE_STREAMS; i++)
        t->stream[i] += later;
    for (int i = 0; i < MOST_LAUNCHES_AHEAD; i++)
        t->ends[i] += later;
    for (int i = 0; i < WORK_KINDS; i++)
        t->now.busy[i] += times * (t->now.busy[i] - before->busy[i]);
    t->now.starved += times * (t->now.starved - before->starved);
    t->now.exposed += times * (t->now.exposed - before->exposed);
    t->now.flops += times * (t->now.flops - before->flops);
    t->now.compute = t->stream[COMPUTE];
}
