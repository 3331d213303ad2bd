// What a step's kernels and the host before them do when. The host hands kernels to streams, each
// of which works them off in order; it runs ahead by a bounded queue, and waits where it has to
// know a result. Times are seconds since the process began.
#ifndef FATHOM_TIME_TIMELINE_H
#define FATHOM_TIME_TIMELINE_H

#include "core/time/activity.h"
#include "core/time/kernel.h"
#include "core/time/network.h"
#include "core/time/pipeline.h"

// What part of a step is taken to be products and attention, where no step was seen.
#define PART_AT_FIRST 0.5

enum { TIMELINE_STREAMS = 7, MOST_LAUNCHES_AHEAD = 1024, KNOWN_PRODUCTS = 128 };

// A time and what had been done by then; what is between two of them can be repeated.
struct elapsed {
    double host, compute;    // clocks
    double busy[WORK_KINDS]; // of all streams
    double starved;          // the compute stream had nothing: the host was late
    double exposed;          // it waited for another stream
    double flops;            // without what is recomputed
};

// Layers multiply the same shapes over and over.
struct known_product {
    struct product_shape shape;
    double seconds; // 0: none is known here
};

// What was added to a timeline, for whoever adds it again.
enum timed_kind { TIMED_HOST, TIMED_WORK, TIMED_MORE, TIMED_FLOPS, TIMED_OTHER };
struct timed {
    enum timed_kind what;
    int stream;
    enum spent_on kind;
    double amount; // seconds, or what is counted
};

struct timeline {
    struct rates burst, rates; // rates: as the step has them
    bool measured;             // on the user's own card, by probe --kernels
    struct network network;
    double cores; // of the host, for each GPU
    double pace;  // what the card takes, of what its rates say
    struct elapsed now;
    double begun;                     // the step
    bool is_known;                    // what part of a step is products and attention
    double part;                      // is
    double beside;                    // seconds of it that are not the update's
    double stream[TIMELINE_STREAMS];  // when it will have done what it has; [0] is now.compute's
    double ends[MOST_LAUNCHES_AHEAD]; // of the last kernels of the compute stream
    uint64_t launched;
    struct known_product known[KNOWN_PRODUCTS]; // at these rates, by a hash of their shapes
    struct activity *activity;                  // to be filled; NULL: nobody looks
    bool recomputes;                            // or else does what is no work of the model's
    struct passing passing;                     // of a rank of a pipeline, in the last step
    void (*told)(void *listener, const struct timed *what); // NULL: nobody listens
    void *listener;
};

// Of a timeline that is all zero.
void timeline_start(struct timeline *t, const struct gpu *card, const struct network *network);

// Around a step: its time is between them, and what it spent counts from the beginning. At its end
// the host waits for all streams.
double timeline_begin(struct timeline *t);
double timeline_end(struct timeline *t);
double timeline_latest(const struct timeline *t); // when the host and all streams will be done

static inline void timeline_tell(const struct timeline *t, struct timed what)
{
    if (t->told)
        t->told(t->listener, &what);
}
static inline void timeline_host(struct timeline *t, double seconds) // of the host alone
{
    t->now.host += seconds;
    timeline_tell(t, (struct timed){.what = TIMED_HOST, .amount = seconds});
}
static inline void timeline_flops(struct timeline *t, double count)
{
    t->now.flops += count;
    timeline_tell(t, (struct timed){.what = TIMED_FLOPS, .amount = count});
}
void timeline_host_update(struct timeline *t, double parameters); // the optimizer on its cores
void timeline_await(struct timeline *t, int stream, double time);
void timeline_wait(struct timeline *t, int stream, int other);
void timeline_synchronize(struct timeline *t, int stream); // the host waits for a stream

void timeline_move(struct timeline *t, int stream, double bytes);
void timeline_move_more(struct timeline *t, int stream, double bytes); // in the last kernel
void timeline_more(struct timeline *t, int stream, double seconds);    // the same by its time
void timeline_slow(struct timeline *t, int stream, enum moving kind, double bytes); // of that
void timeline_multiply(struct timeline *t, int stream, const struct product_shape *p);
void timeline_attend(struct timeline *t, int stream, const struct attending_shape *a);
void timeline_work(struct timeline *t, int stream, enum spent_on kind, double seconds);
void timeline_collect(struct timeline *t, int stream, double seconds); // nothing, of none
void timeline_host_copy(struct timeline *t, int stream, double bytes); // either way

// As if what was done since `before` had been done `times` times more.
void timeline_repeat(struct timeline *t, const struct elapsed *before, double times);

#endif
