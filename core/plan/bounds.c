// See bounds.h.
#include "core/plan/bounds.h"

#include <string.h>

#include "core/base/num.h"

bool plan_dials_say_some(const int dial[PLAN_DIALS])
{
    bool some = false;
    for (int i = 0; i < PLAN_DIALS; i++)
        some |= plan_dials[i].values[dial[i]].some;
    return some;
}

// Whether a value is the other, or behind it in the order of the dial.
static bool is_as_far(int dial, int value, int as)
{
    bool beside = plan_dials[dial].values[value].some && as == value - 1;
    return value >= as && !beside;
}

// Other dials change which count is the least that is safe.
bool plan_is_beyond(const struct plan_candidate *c, const struct plan_candidate *from)
{
    if (plan_dials_say_some(c->dial) && plan_dials_say_some(from->dial))
        return memcmp(c->dial, from->dial, sizeof c->dial) == 0;
    for (int i = 0; i < PLAN_DIALS; i++)
        if (!is_as_far(i, c->dial[i], from->dial[i]))
            return false;
    return true;
}

// ------------------------------------------------------------------ time

// The same shared by half as many, with as many sequences or half of them; NULL where there is
// none.
static const struct plan_group *group_shared_less(const struct plan *p, ptrdiff_t family,
                                                  uint64_t batch, uint64_t part)
{
    const struct plan_family *f = family < 0 ? NULL : &p->families[family];
    for (ptrdiff_t i = 0; f && i < f->micro_count; i++)
        if (f->micro[i] * part == batch)
            return &p->groups[f->group + i];
    return NULL;
}

const struct plan_group *plan_group_unshared(const struct plan *p, const struct plan_group *g)
{
    return group_shared_less(p, g->family->alone, g->batch, 2);
}

// Whether every dial is as far as the other's, or further, where they have an order in time, else
// the same. Those that move no memory but the allocator's never make a step shorter.
static bool is_no_faster(const struct plan_candidate *c, const int than[PLAN_DIALS])
{
    bool some = plan_dials_say_some(c->dial) && plan_dials_say_some(than);
    for (int i = 0; i < PLAN_DIALS; i++) {
        bool ordered = (c->family->ordered && !some) || plan_dials[i].same_memory;
        if (!is_as_far(i, c->dial[i], than[i]) || (!ordered && c->dial[i] != than[i]))
            return false;
    }
    return true;
}

static const struct plan_group *group_like(const struct plan *p, ptrdiff_t family, uint64_t batch)
{
    return group_shared_less(p, family, batch, 1);
}

// How much faster than what is ahead of it something may be, and than what the same takes without
// waiting where DeepSpeed's file says otherwise.
#define AHEAD   0.99
#define AT_WORK 0.98

static double most(double a, double b)
{
    return a > b ? a : b;
}

static double by_estimates(const struct plan_group *own, const struct plan_group *g,
                           const struct plan_candidate *c)
{
    double seconds = 0;
    ptrdiff_t count = g == own ? g->estimate_count : g->estimates_settled;
    for (ptrdiff_t i = 0; i < count; i++)
        if (g->estimates[i].seconds > seconds && is_no_faster(c, g->estimates[i].dial))
            seconds = g->estimates[i].seconds;
    return seconds;
}

static double by_floors(const struct plan_group *own, const struct plan_group *g,
                        const struct plan_candidate *c)
{
    double seconds = 0;
    ptrdiff_t count = g == own ? g->floor_count : g->floors_settled;
    for (ptrdiff_t i = 0; i < count; i++)
        if (g->floors[i].seconds > seconds && is_no_faster(c, g->floors[i].dial))
            seconds = g->floors[i].seconds;
    return seconds;
}

static double least_at_work(const struct plan_group *own, const struct plan_group *g,
                            const struct plan_candidate *c)
{
    double seconds = by_estimates(own, g, c);
    ptrdiff_t count = g == own ? g->floor_count : g->floors_settled;
    for (ptrdiff_t i = 0; i < count; i++)
        if (g->floors[i].at_work > seconds && is_no_faster(c, g->floors[i].dial))
            seconds = g->floors[i].at_work;
    return AT_WORK * seconds;
}

static double least_seconds(const struct plan *p, const struct plan_group *own,
                            const struct plan_group *g, const struct plan_candidate *c)
{
    const struct plan_group *ahead = group_like(p, g->family->ahead, g->batch);
    const struct plan_group *usual =
        group_like(p, g->family->tuned ? g->family->usual : -1, g->batch);
    double seconds = ahead   ? AHEAD * least_seconds(p, own, ahead, c)
                     : usual ? least_at_work(own, usual, c)
                             : 0;
    seconds = most(seconds, most(by_floors(own, g, c), by_estimates(own, g, c)));
    for (uint64_t part = 1; part <= 2 && g->family->alone >= 0; part++) {
        const struct plan_group *o = group_shared_less(p, g->family->alone, g->batch, part);
        const struct plan_group *q = group_shared_less(p, g->family->synced_alone, g->batch, part);
        double fewer = o ? least_seconds(p, own, o, c) : 0;
        double other = q ? least_seconds(p, own, q, c) : fewer;
        seconds = most(seconds, other < fewer ? other : fewer);
    }
    return seconds;
}

static const struct plan_group *group_in_turn_of(const struct plan *p, const struct plan_group *g)
{
    return group_like(p, g->family->in_turn ? g->family->plain : -1, g->batch);
}

// A pipeline of P stages and N micro-batches takes as long as N + P - 1 of them; with several
// stages a rank no less than N, whatever it waits.
static double seconds_in_turn(const struct plan *p, const struct plan_group *own,
                              const struct plan_group *g, const struct plan_candidate *c)
{
    const struct plan_group *plain = group_in_turn_of(p, g);
    double seconds = least_seconds(p, own, g, c);
    if (!plain)
        return seconds;
    double part = (double)g->accum / (double)(g->accum + g->family->pipeline - 1);
    double least = part * least_seconds(p, own, plain, c);
    return least > seconds ? least : seconds;
}

// What recomputes some takes no less than what recomputes nothing; and what recomputes everything
// no more than half as long again, since a forward pass takes no longer than a backward one.
double plan_least_seconds(const struct plan *p, const struct plan_group *own,
                          const struct plan_group *g, const struct plan_candidate *c)
{
    static const double without = 2.0 / 3;
    double seconds = seconds_in_turn(p, own, g, c);
    if (g->family->loose)
        seconds *= PLAN_LOOSE;
    if (!plan_dials_say_some(c->dial))
        return seconds;
    struct plan_candidate all = *c;
    for (int i = 0; i < PLAN_DIALS; i++)
        if (plan_dials[i].values[c->dial[i]].some)
            all.dial[i] = g->family->dials[i][g->family->values[i] - 1];
    double part = without * seconds_in_turn(p, own, g, &all);
    return part > seconds ? part : seconds;
}

// ------------------------------------------------------------------ live memory

static struct plan_floor floor_of(const struct plan_candidate *c)
{
    struct plan_floor f = {.family = c->family,
                           .batch = c->batch,
                           .accum = c->accum,
                           .bytes = c->prediction.floor_bytes};
    memcpy(f.dial, c->dial, sizeof f.dial);
    return f;
}

void plan_add_floor(struct plan_group *g, const struct plan_candidate *c, bool timed)
{
    struct plan_floor f = floor_of(c);
    f.seconds = timed ? c->prediction.time.seconds : 0;
    f.at_work = timed ? f.seconds - c->prediction.time.waits : 0;
    g->floors[g->floor_count++] = f;
}

bool plan_has_floor(const struct plan_group *g, const struct plan_candidate *c, bool timed)
{
    for (ptrdiff_t i = 0; i < g->floor_count; i++) {
        bool same = !timed || g->floors[i].seconds > 0;
        for (int d = 0; d < PLAN_DIALS; d++)
            same &= plan_dials[d].same_memory || g->floors[i].dial[d] == c->dial[d];
        if (same)
            return true;
    }
    return false;
}

// Whether a family takes no more live memory than another, of one batch with the same dials: what
// DeepSpeed's first two stages shard more of, what reduces after each micro-batch, what does not
// keep logits; and with more GPUs, of more than one.
static bool is_leaner_family(const struct plan_floor *o, const struct plan_floor *c)
{
    const struct plan_family *f = o->family, *g = c->family;
    bool several = o->accum > 1 && c->accum > 1;
    if (f == g || f->loose)
        return f == g;
    return f->same_place == g->same_place &&
           (f->same_strategy == g->same_strategy || (f->shards >= g->shards && g->shards >= 0)) &&
           f->other_loss <= g->other_loss && f->synced >= g->synced &&
           (f->liger == g->liger || (f->liger && !f->hosted)) && !f->tuned && !g->tuned &&
           (f->gpus == g->gpus || (several && f->gpus > g->gpus && g->gpus > 1));
}

// Whether it never has more alive.
static bool is_leaner(const struct plan_floor *o, const struct plan_floor *c)
{
    bool several = o->accum > 1 && c->accum > 1;
    if (o->batch != c->batch && !(several && o->batch < c->batch))
        return false;
    for (int i = 0; i < PLAN_DIALS; i++)
        if (!plan_dials[i].same_memory && !is_as_far(i, o->dial[i], c->dial[i]))
            return false;
    return is_leaner_family(o, c);
}

// Those that it can be compared with.
static const struct plan_floor *floors_near(const struct plan *p, const struct plan_family *f)
{
    return p->families[f->same_place].floors;
}

static double known_bytes(const struct plan *p, const struct plan_group *own,
                          const struct plan_floor *c)
{
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; own && i < own->floor_count; i++)
        if (own->floors[i].bytes > bytes && is_leaner(&own->floors[i], c))
            bytes = own->floors[i].bytes;
    for (const struct plan_floor *f = floors_near(p, c->family); f; f = f->next)
        if (f->bytes > bytes && is_leaner(f, c))
            bytes = f->bytes;
    return c->family->loose ? PLAN_LOOSE * (double)bytes : (double)bytes;
}

// What DeepSpeed's buckets take at most, and what gradients may wait less where it talks at another
// time.
#define TUNED_PART  0.75
#define TUNED_BYTES 4e9

// With several stages a rank, more micro-batches are on their way.
static double least_bytes(const struct plan *p, const struct plan_group *own,
                          const struct plan_floor *c)
{
    static const double ring = 0.998;
    double bytes = known_bytes(p, own, c), fewer = 0;
    struct plan_floor other = *c;
    const struct plan_group *g = group_shared_less(p, c->family->alone, c->batch, 2);
    if (g) {
        other.family = g->family;
        other.batch = g->batch;
        fewer = ring * least_bytes(p, NULL, &other);
    } else if (c->family->in_turn) {
        other.family = &p->families[c->family->plain];
        fewer = least_bytes(p, NULL, &other);
    }
    if (c->family->tuned) {
        other = *c;
        other.family = &p->families[c->family->usual];
        double usual = TUNED_PART * least_bytes(p, NULL, &other) - TUNED_BYTES;
        fewer = usual > fewer ? usual : fewer;
    }
    return fewer > bytes ? fewer : bytes;
}

double plan_least_bytes(const struct plan *p, const struct plan_group *own,
                        const struct plan_candidate *c)
{
    struct plan_floor f = floor_of(c);
    return least_bytes(p, own, &f);
}

static struct plan_end *end_of(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->end_count; i++)
        if (memcmp(g->ends[i].dial, c->dial, sizeof c->dial) == 0)
            return &g->ends[i];
    return NULL;
}

double plan_least_reserved(const struct plan *p, const struct plan_group *own,
                           const struct plan_candidate *c)
{
    const struct plan_end *end = end_of(own, c);
    double bytes = plan_least_bytes(p, own, c);
    return end ? most(bytes, (double)end->bytes) : bytes;
}

void plan_add_end(struct plan_group *g, const struct plan_candidate *c)
{
    struct plan_end *end = end_of(g, c);
    if (!end)
        end = &g->ends[g->end_count++];
    memcpy(end->dial, c->dial, sizeof c->dial);
    end->bytes = c->prediction.reserved_bytes;
}

bool plan_is_hopeless(const struct plan *p, const struct plan_group *own,
                      const struct plan_candidate *c)
{
    return plan_least_bytes(p, own, c) > (double)c->family->limit_bytes;
}

// Of a floor, what is alive for certain.
static double sure_bytes(const struct plan_floor *f)
{
    return f->family->loose ? PLAN_LOOSE * (double)f->bytes : (double)f->bytes;
}

bool plan_has_room(const struct plan *p, const struct plan_candidate *c)
{
    struct plan_floor f = floor_of(c);
    for (const struct plan_floor *o = floors_near(p, c->family); o; o = o->next)
        if (sure_bytes(o) <= (double)c->family->limit_bytes && is_leaner(&f, o))
            return true;
    return false;
}
