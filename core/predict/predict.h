// The prediction: three steps of the job from a fresh process, simulated and replayed.
#ifndef FATHOM_PREDICT_PREDICT_H
#define FATHOM_PREDICT_PREDICT_H

#include "core/autograd/machine.h"
#include "core/job/job.h"
#include "core/predict/host.h"
#include "core/predict/stages.h"
#include "core/predict/verdict.h"
#include "core/replay/replay.h"

enum { PREDICT_STEPS = 3 }; // and more where batches are said that differ

struct step_peak {
    uint64_t allocated_bytes, requested_bytes, reserved_bytes, end_allocated_bytes, retries;
};

// What lives on the card beside torch's allocator.
struct outside {
    uint64_t context_bytes; // of a bare process
    uint64_t modules_bytes; // kernels and libraries loaded in the first steps
    uint64_t nccl_bytes;    // buffers of collectives
};

struct prediction {
    struct step_peak steps[VARIED_MOST];
    int steps_asked, steps_done;
    struct step_peak load, evaluation, save; // where reserved_bytes is not 0
    struct step_peak resumed;                // a step that follows an evaluation
    bool fits;                               // the card; the verdict is about the host too
    struct verdict verdict;
    struct outside outside;
    uint64_t limit_bytes;                                      // what torch may reserve
    uint64_t allocated_bytes, requested_bytes, reserved_bytes; // the largest over the job
    uint64_t reserved_low_bytes, reserved_high_bytes;          // by chance; 0: not looked for
    bool hasty;               // its time is not that of real lengths, which nobody asked for
    bool passed;              // more is reserved than was asked about, and no more is known
    uint64_t needs_bytes;     // reserved, or what would be without a limit where it does not fit
    uint64_t floor_bytes;     // what no allocator could do without: live blocks, rounded
    struct allocator_oom oom; // where it does not fit
    enum memory_kind oom_kind;
    enum phase phase; // of the allocated peak, or the failure
    int step;
    enum phase train_phase; // of what steps allocate at most, wherever the job's own peak is
    uint64_t by_kind[MEMORY_KINDS]; // alive there
    uint64_t reserved_there_bytes, allocated_there_bytes;
    uint64_t host_bytes;       // of all ranks of one node while it trains; 0 without offload
    struct host_bytes host;    // phase by phase
    uint64_t managed_bytes;    // in unified memory, on the card while there is room
    struct step_time time;     // of the last step; where it generates, of its update
    double evaluation_seconds; // of one batch, where there is an evaluation
    uint64_t layers_noted;     // passes through layers that were played from another's notes
};

bool predict(struct prediction *p, struct arena *a, const struct job *job,
             struct error *e) MUST_USE;

// And what differs from run to run of one job: where the driver puts segments, which decides
// between free blocks of one size, and how far the host is ahead of the card, which decides what
// other streams are done with. The verdict is then by the most that is reached.
bool predict_with_range(struct prediction *p, struct arena *a, const struct job *job,
                        struct error *e) MUST_USE;

// The same for less work: what it would need is left out.
bool predict_fit(struct prediction *p, struct arena *a, const struct job *job,
                 struct error *e) MUST_USE;

// With the time of real lengths, up to where more is reserved than `most_bytes`; 0: without such an
// end.
bool predict_within(struct prediction *p, struct arena *a, const struct job *job,
                    uint64_t most_bytes, struct error *e) MUST_USE;

// The same in two halves: what tells whether it is safe, and the time of real lengths.
bool predict_hastily(struct prediction *p, struct arena *a, const struct job *job,
                     uint64_t most_bytes, struct error *e) MUST_USE;
bool predict_real_time(struct prediction *p, struct arena *a, const struct job *job,
                       struct error *e) MUST_USE;

// The same for more: every layer is made, also where one is like another (core/autograd/stamp.h),
// whose notes are tested against it.
bool predict_each_layer(struct prediction *p, struct arena *a, const struct job *job,
                        struct error *e) MUST_USE;

// And without the time.
bool predict_memory(struct prediction *p, struct arena *a, const struct job *job,
                    struct error *e) MUST_USE;

// Only the floor.
bool predict_floor(struct prediction *p, struct arena *a, const struct job *job,
                   struct error *e) MUST_USE;

// Whether there is room at all: the floor of the first two steps, or of as much as passes the
// limit.
bool predict_room(struct prediction *p, struct arena *a, const struct job *job,
                  struct error *e) MUST_USE;

// The floor and the time, of a step that no allocator holds up.
bool predict_time(struct prediction *p, struct arena *a, const struct job *job,
                  struct error *e) MUST_USE;

// How long ranks take, of a pipeline from few micro-batches, if a card clocks as where those parts
// of their steps are products and attention (core/time/timeline.c): in the first step with none of
// it, where parts are NULL, else in the second. Where less of it is, no step takes longer.
bool predict_outline(struct seen_stage seen[SEEN_STAGES], struct arena *a, const struct job *job,
                     const double parts[SEEN_STAGES], struct error *e) MUST_USE;

// The history that is judged, event by event. The history alone: what it means is the prediction's.
bool predict_history(struct trace *t, struct arena *a, const struct job *job,
                     struct error *e) MUST_USE;

// What the streams do in the last step; how long it takes must be there.
bool predict_streams(struct activity *streams, struct arena scratch, const struct job *job,
                     struct error *e) MUST_USE;

// The same with what was at work when: marks are in the order of their events.
struct history {
    struct trace trace;
    const struct phase_mark *phases;
    const struct module_mark *modules;
    ptrdiff_t phase_count, module_count;
};
bool predict_marked_history(struct history *h, struct arena *a, const struct job *job,
                            struct error *e) MUST_USE;

// What a job goes through, largest first decides.
struct job_phase {
    const char *name;
    struct step_peak peak;
    uint64_t host_bytes; // of a node
};
enum { JOB_PHASES = 4 };
int prediction_phases(struct job_phase phases[JOB_PHASES], const struct prediction *p);

// The peak that replies tell: that of training; where memory ran out earlier, what there was.
struct step_peak prediction_peak(enum phase *phase, const struct prediction *p);
const char *prediction_decided_by(const struct prediction *p); // or ran out in

struct outside outside_of(const struct job *job);
uint64_t outside_bytes(const struct outside *o);
uint64_t limit_of(const struct job *job, const struct outside *o); // what torch may reserve

#endif
