// See pipeline.h.
#include "core/time/pipeline.h"

#include "core/base/num.h"

// What one operation of a rank hands over, all at once: torch's batch_isend_irecv, which it waits
// for (batch_p2p_comm, batch_p2p_sync).
enum { RECEIVE_PREVIOUS = 1, SEND_NEXT = 2, RECEIVE_NEXT = 4, SEND_PREVIOUS = 8, DIRECTIONS = 4 };

enum turn_kind { TURN_FORWARD, TURN_BACKWARD, TURN_TALK };

struct turn {
    enum turn_kind kind;
    unsigned talk;
    uint64_t index; // of forward or backward passes
};

struct rank {
    uint64_t at; // its next turn
    double now;
    bool posted;
    uint64_t talks[DIRECTIONS]; // so far, by direction
};

struct course {
    const struct pipeline *p;
    uint64_t batches;
    struct rank *ranks;
    double *posted;  // by link between ranks, direction and side, and number; below 0: not yet
    double *done[2]; // forward and backward, by stage of all ranks' and micro-batch; the same
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

static const struct passing *passing_of(const struct pipeline *p, uint64_t rank)
{
    return rank == 0 ? &p->first : rank == p->ranks - 1 ? &p->last : &p->between;
}

uint64_t turns_ahead(const struct pipeline *p, uint64_t rank)
{
    uint64_t behind = p->ranks - rank - 1;
    return p->stages == 1 ? behind : 2 * behind + (p->stages - 1) * p->ranks;
}

// forward_backward_pipelining_with_interleaving: as many micro-batches as there are ranks go
// through a stage before the next stage has them; the way back begins with the last stage.
uint64_t turn_stage(const struct pipeline *p, uint64_t turn, bool back)
{
    uint64_t at = turn % (p->ranks * p->stages) / p->ranks;
    return back ? p->stages - 1 - at : at;
}

uint64_t turn_batch(const struct pipeline *p, uint64_t turn)
{
    return turn / (p->ranks * p->stages) * p->ranks + turn % p->ranks;
}

// ------------------------------------------------------------------ one stage a rank

// forward_backward_pipelining_without_interleaving.
static uint64_t turns_of(uint64_t ahead, uint64_t batches)
{
    uint64_t steady = batches - ahead;
    return 6 * ahead + 4 * steady + (steady > 0);
}

static struct turn steady_turn(uint64_t at, uint64_t ahead, uint64_t batches)
{
    bool last = at / 4 + 1 == batches - ahead;
    switch (at % 4) {
    case 0:
        return (struct turn){TURN_FORWARD, 0, ahead + at / 4};
    case 1:
        return (struct turn){TURN_TALK, SEND_NEXT | RECEIVE_NEXT, 0};
    case 2:
        return (struct turn){TURN_BACKWARD, 0, at / 4};
    default:
        return (struct turn){TURN_TALK, SEND_PREVIOUS | (last ? 0 : RECEIVE_PREVIOUS), 0};
    }
}

static struct turn turn_at(uint64_t at, uint64_t ahead, uint64_t batches)
{
    uint64_t steady = batches - ahead;
    static const unsigned before[] = {RECEIVE_PREVIOUS, 0, SEND_NEXT};
    static const unsigned after[] = {RECEIVE_NEXT, 0, SEND_PREVIOUS};
    if (at < 3 * ahead)
        return at % 3 == 1 ? (struct turn){TURN_FORWARD, 0, at / 3}
                           : (struct turn){TURN_TALK, before[at % 3], 0};
    at -= 3 * ahead;
    if (steady && at == 0)
        return (struct turn){TURN_TALK, RECEIVE_PREVIOUS, 0};
    at -= steady ? 1 : 0;
    if (at < 4 * steady)
        return steady_turn(at, ahead, batches);
    at -= 4 * steady;
    return at % 3 == 1 ? (struct turn){TURN_BACKWARD, 0, steady + at / 3}
                       : (struct turn){TURN_TALK, after[at % 3], 0};
}

// Where a rank's part of a message is noted, and where its partner's.
static double *post_of(const struct course *c, uint64_t rank, int direction, bool partner)
{
    bool next = (1 << direction) & (SEND_NEXT | RECEIVE_NEXT);
    bool back = (1 << direction) & (SEND_PREVIOUS | RECEIVE_NEXT);
    bool sends = (1 << direction) & (SEND_NEXT | SEND_PREVIOUS);
    uint64_t link = next ? rank : rank - 1;
    uint64_t place = (link * 2 + back) * 2 + (sends != partner);
    return &c->posted[place * c->batches + c->ranks[rank].talks[direction]];
}

static unsigned talk_of(const struct course *c, uint64_t rank, unsigned talk)
{
    if (rank == 0)
        talk &= ~(unsigned)(RECEIVE_PREVIOUS | SEND_PREVIOUS);
    if (rank == c->p->ranks - 1)
        talk &= ~(unsigned)(SEND_NEXT | RECEIVE_NEXT);
    return talk;
}

// False where a partner is not there yet.
static bool talk(const struct course *c, uint64_t rank, unsigned bits)
{
    struct rank *r = &c->ranks[rank];
    double end = r->now;
    for (int d = 0; d < DIRECTIONS; d++)
        if (bits & 1u << d && !r->posted)
            *post_of(c, rank, d, false) = r->now;
    r->posted = true;
    for (int d = 0; d < DIRECTIONS; d++) {
        if (!(bits & 1u << d))
            continue;
        double other = *post_of(c, rank, d, true);
        if (other < 0)
            return false;
        end = later(end, later(r->now, other) + c->p->transfer);
    }
    for (int d = 0; d < DIRECTIONS; d++)
        r->talks[d] += bits >> d & 1;
    r->now = end;
    r->posted = false;
    return true;
}

static bool advance_alone(const struct course *c, uint64_t rank)
{
    struct rank *r = &c->ranks[rank];
    uint64_t ahead = u64_least(turns_ahead(c->p, rank), c->batches);
    const struct passing *own = passing_of(c->p, rank);
    bool moved = false;
    for (; r->at < turns_of(ahead, c->batches); r->at++) {
        struct turn t = turn_at(r->at, ahead, c->batches);
        if (t.kind == TURN_TALK && !talk(c, rank, talk_of(c, rank, t.talk)))
            return moved;
        r->now += t.kind == TURN_FORWARD    ? own->forward[STAGE_FIRST]
                  : t.kind == TURN_BACKWARD ? own->backward[STAGE_FIRST]
                                            : 0;
        moved = true;
    }
    return moved;
}

// ------------------------------------------------------------------ several stages a rank

// Messages go beside what is computed (overlap_p2p_comm, as Megatron-LM's arguments have it where
// stages are interleaved): a turn waits for its input alone.
static bool advance_turn(const struct course *c, uint64_t rank, uint64_t turn, bool back)
{
    struct rank *r = &c->ranks[rank];
    const struct pipeline *p = c->p;
    uint64_t own = turn_stage(p, turn, back), at = own * p->ranks + rank;
    uint64_t all = p->ranks * p->stages, batch = turn_batch(p, turn);
    bool comes = back ? at + 1 < all : at > 0;
    double input = 0;
    if (comes) {
        input = c->done[back][(back ? at + 1 : at - 1) * c->batches + batch];
        if (input < 0)
            return false;
        input += p->transfer;
    }
    const struct passing *takes = passing_of(p, rank);
    int place = stage_place(own, p->stages);
    r->now = later(r->now, input) + (back ? takes->backward : takes->forward)[place];
    c->done[back][at * c->batches + batch] = r->now;
    return true;
}

static bool advance_several(const struct course *c, uint64_t rank)
{
    struct rank *r = &c->ranks[rank];
    uint64_t turns = c->batches * c->p->stages;
    uint64_t ahead = u64_least(turns_ahead(c->p, rank), turns);
    bool moved = false;
    for (; r->at < 2 * turns; r->at++) {
        uint64_t both = r->at - ahead; // forward and backward in turn
        bool first = r->at < ahead, last = !first && both >= 2 * (turns - ahead);
        bool back = !first && (last || both % 2);
        uint64_t turn = first ? r->at : last ? r->at - turns : both / 2 + (back ? 0 : ahead);
        if (!advance_turn(c, rank, turn, back))
            return moved;
        moved = true;
    }
    return moved;
}

// ------------------------------------------------------------------ all ranks

static double *unknown(struct arena *a, uint64_t count)
{
    double *times = NEW(a, double, (ptrdiff_t)count);
    for (uint64_t i = 0; i < count; i++)
        times[i] = -1;
    return times;
}

static double course_seconds(const struct pipeline *p, uint64_t batches, struct arena a)
{
    struct course c = {.p = p, .batches = batches};
    c.ranks = NEW(&a, struct rank, (ptrdiff_t)p->ranks);
    if (p->stages == 1)
        c.posted = unknown(&a, p->ranks * 4 * batches);
    for (int back = 0; p->stages > 1 && back < 2; back++)
        c.done[back] = unknown(&a, p->ranks * p->stages * batches);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint64_t i = 0; i < p->ranks; i++)
            moved |= (p->stages == 1 ? advance_alone : advance_several)(&c, i);
    }
    double end = 0;
    for (uint64_t i = 0; i < p->ranks; i++)
        end = later(end, c.ranks[i].now + passing_of(p, i)->rest);
    return end;
}

// Once all ranks are busy, every further micro-batch takes as long as the one before.
double pipeline_seconds(const struct pipeline *p, struct arena scratch)
{
    uint64_t full = 2 * p->ranks, most = 2 * full;
    if (p->batches <= most)
        return course_seconds(p, p->batches, scratch);
    double early = course_seconds(p, full, scratch), late = course_seconds(p, most, scratch);
    return late + (late - early) * (double)(p->batches - most) / (double)(most - full);
}

static double busy_seconds(const struct pipeline *p, const struct passing *own)
{
    double sum = 0;
    for (uint64_t i = 0; i < p->stages; i++) {
        int place = stage_place(i, p->stages);
        sum += own->forward[place] + own->backward[place];
    }
    return sum * (double)p->batches + own->rest;
}

double pipeline_bubble(const struct pipeline *p, double seconds)
{
    double busy = busy_seconds(p, &p->first) + busy_seconds(p, &p->last) +
                  busy_seconds(p, &p->between) * (double)(p->ranks - 2);
    return 1 - busy / (double)p->ranks / seconds;
}

static struct passing forward_alone(struct passing p)
{
    for (int i = 0; i < STAGE_PLACES; i++)
        p.backward[i] = 0;
    p.rest = 0;
    return p;
}

double pipeline_reading(const struct pipeline *p, struct arena scratch)
{
    struct pipeline q = *p;
    q.first = forward_alone(p->first);
    q.between = forward_alone(p->between);
    q.last = forward_alone(p->last);
    return p->ranks == 1 ? busy_seconds(&q, &q.first) : pipeline_seconds(&q, scratch);
}
