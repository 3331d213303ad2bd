// The best way to train, and not only one that fits: every configuration that the framework runs,
// `emit` writes and that trains the same (strategy, ranks that share a sequence, micro-batch,
// checkpointing, loss, kernels, offload, DeepSpeed's overlap and buckets, segments; of Megatron
// tensor, context, pipeline and expert parallel sizes), of which those are kept that are safe, best
// first. tests/random/plan_settings.c asks whether a setting that is added finds anything better.
//
// A family is what has no order in time (strategy, loss, when gradients are reduced, ranks that
// share a sequence); a group is a family with one size of its micro-batches. Inside a group dials
// have an order: a value further on takes no less time, no less trouble and no more live memory.
// Families have an order in memory, and those that share sequences one in time and memory against
// those that share less (tests/unit/test_plan.c holds all of it against trying). From what was
// predicted bounds follow for what was not: nothing beyond a safe configuration is better; nothing
// is faster than what lies before it, smaller than what lies behind it; and what has no room by its
// floor (predict.h), or by the line of few layers, has none with more sequences at once. So room is
// looked for first, by floors alone; then how long what has room takes at least; then the best;
// then what beats it in memory for more time. Last comes what may be faster where time counts, or
// safe where nothing else is: some layers recomputed and not all, no more than is safe, several
// stages a rank, and a file of DeepSpeed's that says what the framework's does not.
#ifndef FATHOM_PLAN_PLAN_H
#define FATHOM_PLAN_PLAN_H

#include "core/base/runner.h"
#include "core/predict/predict.h"
#include "core/predict/stages.h"

enum plan_goal { GOAL_SPEED, GOAL_COST, GOAL_MEMORY, GOAL_SIMPLICITY, PLAN_GOALS };
extern const char *const plan_goal_words[PLAN_GOALS];

// As near as this, times are the same, and the simpler one is the better.
#define PLAN_SAME 1.01

// What is found without an allocator, of copies to the host that wait for others, lies this near.
#define PLAN_LOOSE 0.99

enum { PLAN_DIALS = 4, PLAN_MOST_VALUES = 4, PLAN_MOST_MICRO = 64 };

struct plan_value {
    const char *words;
    int trouble;
    const char *strategies; // only of these, "|" between them; NULL: all
    bool some;              // a count, of which the least that is safe is looked for (try.c);
                            // it has no order against the value before it
};

struct plan_dial {
    const char *setting;
    struct plan_value values[PLAN_MOST_VALUES]; // in the order of time; no words: no more
    const char *strategies;                     // of these only; NULL: all
    bool same_memory;                           // its values are all the same to live memory
};
extern const struct plan_dial plan_dials[PLAN_DIALS];

struct plan_family {
    struct str words; // "strategy=zero3 cp=2"
    const char *strategy;
    struct str place; // replicas and who shares a sequence, of its words
    ptrdiff_t alone; // the same family whose sequences are shared by fewer; -1: they are not shared
    ptrdiff_t synced_alone; // that one with gradients reduced at other times; -1: there is none
    ptrdiff_t group;        // its first
    ptrdiff_t same_strategy, same_place; // the first families that have them, too
    const struct plan_floor *floors;     // settled ones of the place, of its first family
    uint64_t limit_bytes;                // what torch may take, and
    uint64_t safe_bytes;                 // no more than this is safe
    int shards; // by DeepSpeed's first stages, 0 without any; -1: by another
    bool other_loss, synced, attends_otherwise;
    bool liger;      // layers by its kernels
    ptrdiff_t ahead; // the same with those, which are never slower; -1: there is none
    bool tuned;      // DeepSpeed's file does not say what the framework has it say, and
    ptrdiff_t usual; // this family is as the framework has it
    bool hosted;     // what is kept for the backward pass waits in host memory
    bool loose;      // and so does what no layer recomputes: known to PLAN_LOOSE, as clocks decide
    bool in_turn;    // ranks have several stages in turn, and
    ptrdiff_t plain; // this family one each
    bool ordered;    // dials are in the order of time: not where a ring leaves its node, and
    double slower;   // a step takes so much of its time at least, however the card clocks
    int trouble;
    uint64_t gpus;
    uint64_t data_parallel;          // as the framework counts it
    uint64_t stages;                 // of a pipeline that nobody asked for, or one
    uint64_t pipeline, turns;        // stages, and how many a rank has in turn, whoever asked
    uint64_t micro[PLAN_MOST_MICRO]; // sequences of a micro-batch that make up the global batch
    ptrdiff_t micro_count;           // 0: none do
    int dials[PLAN_DIALS][PLAN_MOST_VALUES]; // the values that each has here, in order
    int values[PLAN_DIALS];                  // how many
    ptrdiff_t nodes;                         // all values of all dials
    bool refused;                            // by a rule
    const char *untimed;                     // why no time is known of any; NULL where it is
    struct error refusal;
};

struct plan_group {
    const struct plan_family *family;
    uint64_t batch, accum;
    uint64_t refused;                  // by a rule, as bits
    struct plan_candidate *candidates; // that were predicted
    ptrdiff_t candidate_count;
    ptrdiff_t settled; // of them, which tasks of other groups may look at
    struct plan_floor *floors;
    ptrdiff_t floor_count, floors_settled;
    struct plan_end *ends; // of predictions that were not made to theirs
    ptrdiff_t end_count;
    struct plan_estimate *estimates; // of seconds alone (estimate.h)
    ptrdiff_t estimate_count, estimates_settled;
    struct plan_bound *bounds; // by dials (bounds.c)
    struct error refusal;      // the first that is not about a dial, else the first
};

// What a configuration has alive and how long it takes at least, from a simulation without
// allocator, or of what it was predicted to. Of memory alone the first two steps, and no further
// than the limit.
struct plan_floor {
    const struct plan_family *family;
    uint64_t batch, accum;
    int dial[PLAN_DIALS];
    uint64_t bytes;
    double seconds;                // 0: not asked
    double at_work;                // of those, without what it waits
    bool rough;                    // of few layers
    const struct plan_floor *next; // of the same place, that was settled before
};

// How long something takes at least, by the same with few layers. A rough one is of a step on a
// card that clocks as high as it can; `parts` of what its ranks do are then products and attention.
struct plan_estimate {
    int dial[PLAN_DIALS];
    double seconds;
    bool rough;
    double parts[SEEN_STAGES];
};

// How long something takes at least, by all that was known when so much was.
struct plan_bound {
    double seconds;
    ptrdiff_t learnt;
};

// Where a prediction ended that nobody asked to go on: so much is reserved at least.
struct plan_end {
    int dial[PLAN_DIALS];
    uint64_t bytes;
};

struct plan_candidate {
    const struct plan_family *family;
    uint64_t batch, accum;
    int dial[PLAN_DIALS];
    uint64_t count; // where one of them says some
    int trouble;
    bool rough; // its floor is that of few layers
    struct prediction prediction;
};

struct plan_request {
    const struct settings *settings; // as given
    uint64_t global_batch;
    enum plan_goal goal;
    bool exhaustive;                // nothing is left out
    bool front;                     // all that no other beats in both memory and time (story.h)
    bool lean;                      // only what takes little: one sequence at a time
    const struct plan_family *like; // only this family, on another machine; NULL: all
};

struct plan {
    struct plan_request request;
    struct settings base; // of every candidate: as given, and whose files are meant
    struct job job;       // of the base
    uint64_t longest_row; // of the user's data, where the batches drawn from it are played; else 0
    bool real_lengths;    // of the user's data are what time is counted by
    struct plan_family *families;
    ptrdiff_t family_count, family_capacity;
    struct plan_group *groups;
    ptrdiff_t group_count;
    const struct plan_candidate **settled; // of all groups, what tasks may look at
    ptrdiff_t settled_count;
    ptrdiff_t floor_count;             // that are settled
    ptrdiff_t learnt;                  // how often something was, of time
    struct wanted wanted;              // to be left free
    bool tight;                        // of use is what fits at all, not only what is safe
    ptrdiff_t predicted;               // candidates, of
    ptrdiff_t all;                     // that there are
    const struct plan_candidate *best; // NULL: nothing is safe
    uint64_t best_gpus;                // of the machine that memory against time is told of
};

// Reads global-batch, goal and exhaustive.
bool plan_request_read(struct plan_request *r, const struct settings *settings,
                       struct error *e) MUST_USE;

// Into zeroed memory. Fails where no configuration is possible, or time is not known of any.
bool plan_make(struct plan *p, struct arena *a, const struct plan_request *r,
               const struct runner *runner, struct error *e) MUST_USE;

// Whether the plan says a dial: one that is given, or that a family does not have, it leaves alone.
bool plan_says(const struct plan_family *f, int dial);

// "batch=2 accum=8 strategy=zero3 ...": what is laid over the base.
struct str plan_words(struct arena *a, const struct plan_candidate *c);

// The settings of these words over the base, without those that say what would be anyway.
bool plan_settings(struct settings *out, struct arena *a, const struct plan *p, struct str words,
                   struct error *e) MUST_USE;

// "--strategy zero3 --batch 2": what is left of the words then.
struct str plan_options(struct arena *a, const struct plan *p, struct str words);

bool plan_job(struct job *job, struct arena *a, const struct plan *p,
              const struct plan_candidate *c, struct error *e) MUST_USE;
bool plan_job_of(struct job *job, struct arena *a, const struct plan *p, struct str words,
                 struct error *e) MUST_USE;

// Of safe candidates, what the goal counts: seconds, seconds of all GPUs, bytes, trouble.
double plan_measure(enum plan_goal goal, const struct plan_candidate *c);
bool plan_is_safe(const struct plan_candidate *c);

// Whether it is there for the sake of time alone, and so comes last; and whether this goal chooses
// it where something else is safe.
bool plan_is_late(const struct plan_candidate *c);
bool plan_counts(enum plan_goal goal, const struct plan_candidate *c);

// Fails where the files that are meant cannot be written.
bool plan_can_write(struct arena scratch, const struct job *job, struct error *e) MUST_USE;

// Of the batches that the trainer draws from the user's data, where that is known, and with the
// time that is ranked by: a step's over the data, or where steps hold what is not modelled the
// update's.
bool plan_predict(struct prediction *p, struct arena scratch, const struct job *job,
                  struct error *e) MUST_USE;

const struct plan_candidate *plan_choose(const struct plan *p, enum plan_goal goal);

// The best of one strategy, which is searched for it; what came nearest where none is safe; NULL
// where none is possible.
const struct plan_candidate *plan_best_of(struct plan *p, struct arena *a, const char *strategy,
                                          const struct runner *runner);

// The next candidate of all groups, both from 0; NULL after the last.
const struct plan_candidate *plan_next(const struct plan *p, ptrdiff_t *group, ptrdiff_t *i);

#endif
