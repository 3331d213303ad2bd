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

static double most(double a, double b)
{
    return a > b ? a : b;
}

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

// No less than so much of what the other takes, where every dial is as far as the other's, or
// further. Those that move no memory but the allocator's never make a step shorter. A ring that
// leaves its node waits, and the card clocks higher for it.
static double part_of_other(const struct plan_family *f, const int dial[PLAN_DIALS],
                            const int than[PLAN_DIALS])
{
    bool some = plan_dials_say_some(dial) && plan_dials_say_some(than), same = true;
    for (int i = 0; i < PLAN_DIALS; i++) {
        bool moves = !plan_dials[i].same_memory && dial[i] != than[i];
        same &= !moves;
        if (!is_as_far(i, dial[i], than[i]) || (some && moves))
            return 0;
    }
    return same || f->ordered ? 1 : f->slower;
}

static double more_by(double seconds, double other, const struct plan_group *g,
                      const struct plan_candidate *c, const int than[PLAN_DIALS])
{
    return other > seconds ? most(seconds, other * part_of_other(g->family, c->dial, than))
                           : seconds;
}

static const struct plan_group *group_like(const struct plan *p, ptrdiff_t family, uint64_t batch)
{
    return group_shared_less(p, family, batch, 1);
}

// How much faster than what is ahead of it something may be, and than what the same takes without
// waiting where DeepSpeed's file says otherwise.
#define AHEAD   0.99
#define AT_WORK 0.98

static double by_estimates(const struct plan_group *g, const struct plan_candidate *c)
{
    double seconds = 0;
    for (ptrdiff_t i = 0; i < g->estimate_count; i++)
        seconds = more_by(seconds, g->estimates[i].seconds, g, c, g->estimates[i].dial);
    return seconds;
}

static double by_floors(const struct plan_group *g, const struct plan_candidate *c)
{
    double seconds = 0;
    for (ptrdiff_t i = 0; i < g->floor_count; i++)
        seconds = more_by(seconds, g->floors[i].seconds, g, c, g->floors[i].dial);
    return seconds;
}

static double least_at_work(const struct plan_group *g, const struct plan_candidate *c)
{
    double seconds = by_estimates(g, c);
    for (ptrdiff_t i = 0; i < g->floor_count; i++)
        seconds = more_by(seconds, g->floors[i].at_work, g, c, g->floors[i].dial);
    return AT_WORK * seconds;
}

// Of all values of all dials, one.
static ptrdiff_t bound_at(const struct plan_candidate *c)
{
    ptrdiff_t at = 0;
    for (int i = 0; i < PLAN_DIALS; i++)
        at = at * PLAN_MOST_VALUES + c->dial[i];
    return at;
}

static ptrdiff_t bounds_of_dials(void)
{
    ptrdiff_t count = 1;
    for (int i = 0; i < PLAN_DIALS; i++)
        count *= PLAN_MOST_VALUES;
    return count;
}

static double learn_of_group(struct plan *p, struct arena *a, const struct plan_group *of,
                             const struct plan_candidate *c);

static double learn_if_any(struct plan *p, struct arena *a, const struct plan_group *g,
                           const struct plan_candidate *c)
{
    return g ? learn_of_group(p, a, g, c) : 0;
}

// By the same shared by half as many, whenever those reduce.
static double learn_shared_less(struct plan *p, struct arena *a, const struct plan_group *g,
                                const struct plan_candidate *c)
{
    double seconds = 0;
    for (uint64_t part = 1; part <= 2 && g->family->alone >= 0; part++) {
        const struct plan_group *o = group_shared_less(p, g->family->alone, g->batch, part);
        const struct plan_group *q = group_shared_less(p, g->family->synced_alone, g->batch, part);
        double fewer = learn_if_any(p, a, o, c);
        double other = q ? learn_of_group(p, a, q, c) : fewer;
        seconds = most(seconds, other < fewer ? other : fewer);
    }
    return seconds;
}

// Of each group once, until more is known: groups are held against many others, and those again.
static double learn_of_group(struct plan *p, struct arena *a, const struct plan_group *of,
                             const struct plan_candidate *c)
{
    struct plan_group *g = &p->groups[of - p->groups];
    if (!g->bounds)
        g->bounds = NEW(a, struct plan_bound, bounds_of_dials());
    struct plan_bound *b = &g->bounds[bound_at(c)];
    if (b->learnt == p->learnt)
        return b->seconds;
    const struct plan_group *ahead = group_like(p, g->family->ahead, g->batch);
    const struct plan_group *usual =
        group_like(p, g->family->tuned ? g->family->usual : -1, g->batch);
    double seconds = ahead   ? AHEAD * learn_of_group(p, a, ahead, c)
                     : usual ? least_at_work(usual, c)
                             : 0;
    seconds = most(seconds, most(by_floors(g, c), by_estimates(g, c)));
    b->seconds = most(seconds, learn_shared_less(p, a, g, c));
    b->learnt = p->learnt;
    return b->seconds;
}

static const struct plan_group *group_in_turn_of(const struct plan *p, const struct plan_group *g)
{
    return group_like(p, g->family->in_turn ? g->family->plain : -1, g->batch);
}

// The same where nothing of a count is left as it is.
static struct plan_candidate with_all(const struct plan_group *g, const struct plan_candidate *c)
{
    struct plan_candidate all = *c;
    for (int i = 0; i < PLAN_DIALS; i++)
        if (plan_dials[i].values[c->dial[i]].some)
            all.dial[i] = g->family->dials[i][g->family->values[i] - 1];
    return all;
}

void plan_learn_seconds(struct plan *p, struct arena *a, const struct plan_group *g,
                        const struct plan_candidate *c)
{
    const struct plan_group *plain = group_in_turn_of(p, g);
    struct plan_candidate all = with_all(g, c);
    for (int i = 0; i < 1 + plan_dials_say_some(c->dial); i++) {
        (void)learn_of_group(p, a, g, i ? &all : c);
        (void)learn_if_any(p, a, plain, i ? &all : c);
    }
}

// What was learnt of a group; of the one that is searched, with what was found since.
static double learnt_seconds(const struct plan_group *g, const struct plan_candidate *c)
{
    return g->bounds ? g->bounds[bound_at(c)].seconds : 0;
}

// A pipeline of P stages and N micro-batches takes as long as N + P - 1 of them; with several
// stages a rank no less than N, whatever it waits.
static double seconds_in_turn(const struct plan *p, const struct plan_group *g,
                              const struct plan_candidate *c)
{
    const struct plan_group *plain = group_in_turn_of(p, g);
    double seconds = most(learnt_seconds(g, c), most(by_floors(g, c), by_estimates(g, c)));
    if (!plain)
        return seconds;
    double part = (double)g->accum / (double)(g->accum + g->family->pipeline - 1);
    return most(seconds, part * learnt_seconds(plain, c));
}

// What recomputes some takes no less than what recomputes nothing; and what recomputes everything
// no more than half as long again, since a forward pass takes no longer than a backward one.
double plan_least_seconds(const struct plan *p, const struct plan_group *g,
                          const struct plan_candidate *c)
{
    static const double without = 2.0 / 3;
    double seconds = seconds_in_turn(p, g, c);
    if (g->family->loose)
        seconds *= PLAN_LOOSE;
    if (!plan_dials_say_some(c->dial))
        return seconds;
    struct plan_candidate all = with_all(g, c);
    return most(seconds, without * seconds_in_turn(p, g, &all));
}

// ------------------------------------------------------------------ live memory

static struct plan_floor floor_of(const struct plan_candidate *c)
{
    struct plan_floor f = {.family = c->family,
                           .batch = c->batch,
                           .accum = c->accum,
                           .bytes = c->prediction.floor_bytes,
                           .rough = c->rough};
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
        bool same = !g->floors[i].rough && (!timed || g->floors[i].seconds > 0);
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

// What a ring leaves of what is as large however many share a sequence.
#define RING_PART 0.998

// With several stages a rank, more micro-batches are on their way.
static double least_bytes(const struct plan *p, const struct plan_group *own,
                          const struct plan_floor *c)
{
    double bytes = known_bytes(p, own, c), fewer = 0;
    struct plan_floor other = *c;
    const struct plan_group *g = group_shared_less(p, c->family->alone, c->batch, 2);
    if (g) {
        other.family = g->family;
        other.batch = g->batch;
        fewer = RING_PART * least_bytes(p, NULL, &other);
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

// What may be reserved of any use.
static double room_of(const struct plan *p, const struct plan_family *f)
{
    return (double)(p->tight ? f->limit_bytes : f->safe_bytes);
}

bool plan_is_beyond_room(const struct plan *p, const struct plan_candidate *c)
{
    return (double)c->prediction.floor_bytes > room_of(p, c->family);
}

static bool is_leaner_beyond(const struct plan_floor *f, const struct plan_floor *c, double room)
{
    return (double)f->bytes > room && is_leaner(f, c);
}

// Whether least_bytes is more than that.
static bool needs_more(const struct plan *p, const struct plan_group *own,
                       const struct plan_floor *c, double room)
{
    double most = c->family->loose ? room / PLAN_LOOSE : room;
    struct plan_floor other = *c;
    const struct plan_group *g = group_shared_less(p, c->family->alone, c->batch, 2);
    for (ptrdiff_t i = 0; own && i < own->floor_count; i++)
        if (is_leaner_beyond(&own->floors[i], c, most))
            return true;
    for (const struct plan_floor *f = floors_near(p, c->family); f; f = f->next)
        if (is_leaner_beyond(f, c, most))
            return true;
    if (c->family->tuned) {
        other.family = &p->families[c->family->usual];
        if (needs_more(p, NULL, &other, (room + TUNED_BYTES) / TUNED_PART))
            return true;
    }
    if (!g && !c->family->in_turn)
        return false;
    other.family = g ? g->family : &p->families[c->family->plain];
    other.batch = g ? g->batch : c->batch;
    return needs_more(p, NULL, &other, g ? room / RING_PART : room);
}

bool plan_is_hopeless(const struct plan *p, const struct plan_group *own,
                      const struct plan_candidate *c)
{
    double room = room_of(p, c->family);
    const struct plan_end *end = own ? end_of(own, c) : NULL;
    struct plan_floor f = floor_of(c);
    return (end && (double)end->bytes > room) || needs_more(p, own, &f, room);
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
        if (sure_bytes(o) <= room_of(p, c->family) && is_leaner(&f, o))
            return true;
    return false;
}
