// How the GPUs of a machine are divided between a teacher that scores, a student that trains and
// the engines that generate its answers. Every division is looked at: servers as core/serve
// computes them, training as predicted, in whole numbers of engines that the models' heads allow
// and that lie within a node (or over whole nodes, where one has no room); each role on GPUs of its
// own, or in turn on the same, the engine asleep while the student trains.
#ifndef FATHOM_SEARCH_SPLIT_H
#define FATHOM_SEARCH_SPLIT_H

#include "core/predict/predict.h"
#include "core/serve/serve.h"

enum { SPLIT_MOST = 1024, SPLIT_MOST_STEPS = 64 };

enum split_role { ROLE_TEACHER, ROLE_TRAIN, ROLE_ROLLOUT, SPLIT_ROLES };

const char *split_role_name(enum split_role r); // "teacher"

enum split_layout {
    LAYOUT_APART,     // every role has GPUs of its own
    LAYOUT_COLOCATED, // engines and training take turns, the teacher is apart
    LAYOUT_TOGETHER,  // all three take turns
    SPLIT_LAYOUTS
};

const char *split_layout_name(enum split_layout l); // "colocated"

// Frameworks that run such jobs, and which layouts they run.
struct split_framework {
    const char *name, *engine;
    const char *recipe; // NULL: its step is not modelled
    unsigned layouts;   // bits
    bool sizes;         // training is divided by tensor parallelism too
    bool keeps;         // training's state stays on the card
    bool even;          // the batch is divided by the GPUs that train without a rest
    bool inside;        // the framework starts the teacher itself
    bool reads;         // the student's log-probabilities of its answers, before it trains on them
    const char *why;    // the other layouts are not there
};
extern const struct split_framework split_frameworks[];
extern const ptrdiff_t split_framework_count;

// What a number of GPUs does in a role.
struct split_part {
    bool possible;
    uint64_t gpus, tp, pp, engines;
    uint64_t reserved; // bytes on each: what a server may use, what torch reserves
    double seconds;    // of an iteration

    // A server.
    uint64_t thousandths, sequences, weights, cache, asleep, chunk;
    uint64_t scores; // the teacher: bytes for log-probabilities, beside what it may use

    // Training.
    bool borrowed; // seconds, or all, of the plain step, the framework's being not known
    bool borrowed_all;
    uint64_t limit, margin; // what torch may take, and what is left free of it for a safe answer
    uint64_t state;         // bytes that stay between steps: weights and optimizer
    uint64_t outside;       // bytes beside torch
    uint64_t micro;         // micro-batches of one sequence in a step
};

struct split {
    bool possible;
    enum split_layout layout;
    bool offloaded; // training's state is in host memory while others have the GPUs
    struct split_part parts[SPLIT_ROLES];
    uint64_t idle;    // GPUs that nobody has
    uint64_t host;    // bytes of a node for what sleeps there
    double sync;      // seconds until the engines have the new weights
    double moves;     // to host memory and back, and weights that wake
    double iteration; // each role after the other, but for scores, which come with answers
    double one_off;   // training on the answers of the iteration before; 0: cannot be
    enum split_role slowest;
};

enum split_choice {
    SPLIT_BEST,
    SPLIT_MOST_TEACHER,
    SPLIT_MOST_TRAINING,
    SPLIT_BALANCED,
    SPLIT_ONE_OFF,
    SPLIT_APART,
    SPLIT_COLOCATED,
    SPLIT_TOGETHER,
    SPLIT_CHOICES
};

const char *split_choice_name(enum split_choice c); // "most teacher"

struct split_request {
    struct arena *arena;
    struct settings training; // of the student's job, but for its GPUs
    struct serve_request teacher, rollout;
    struct hardware hardware;
    struct str card; // as --gpu spells it, without counts
    struct str where;
    const struct split_framework *framework; // NULL: none
    unsigned layouts;                        // that are looked at
    uint64_t gpus, prompts, samples, global_batch, prompt, response;
    uint64_t teacher_gpus, rollout_gpus; // as asked for; 0: as many as is best
};

// What was found for each number of GPUs.
struct split_table {
    struct split_part servers[SPLIT_ROLES][SPLIT_MOST + 9];
    struct split_part trains[SPLIT_MOST_STEPS]; // by number of GPUs, rising
    int train_count;
};

struct split_result {
    struct split choices[SPLIT_CHOICES];
    struct split more;         // the best with one GPU more, or with one node
    uint64_t more_gpus;        // that are
    uint64_t longest_response; // for which the best division has room
    uint64_t largest_batch;    // prompts of an iteration in the time that the slowest role takes
    struct error borrowed_why; // the framework's own step is not known
    struct split_table *table;
};

bool split_read(struct split_request *r, struct arena *a, const struct settings *s,
                struct error *e) MUST_USE;

// Fails where a role cannot be had on any number of GPUs, or no division has room for all.
bool split_find(struct split_result *x, const struct split_request *r, struct error *e) MUST_USE;

// Where a role's GPUs begin: teacher, rollout, training, those that take turns from the same.
uint64_t split_first(const struct split *s, enum split_role role);

// ------------------------------------------------------------------ roles

// Where a server runs: so many GPUs in engines of tp x pp, and what others have on each card.
struct split_place {
    uint64_t gpus, tp, pp;
    uint64_t taken;
};

struct split_part server_part(const struct split_request *r, enum split_role role,
                              const struct split_place *place);

// The size of an engine that is fastest on so many GPUs, beside what others have there.
struct split_part best_server(const struct split_request *r, enum split_role role, uint64_t gpus,
                              uint64_t taken);

// The seconds are those that 'predict' gives for as many micro-batches.
bool train_part(struct split_part *p, struct error *why, const struct split_request *r,
                uint64_t gpus, struct error *e) MUST_USE;

// Why no division can be: the least change that would help.
bool split_no_room(const struct split_table *t, const struct split_request *r,
                   struct error *e) MUST_USE;

struct str split_context(const struct split_request *r);

// ------------------------------------------------------------------ advice

// What to change when a role runs out of memory, and by how much that helps.
struct split_change {
    enum split_role role;
    const char *change;     // "--response 2048"
    struct str words;       // the change, with its number
    uint64_t before, after; // bytes of each card
    bool helps;
};

enum { SPLIT_MOST_CHANGES = 12 };

// Sets the count of changes, role by role.
int split_advice(struct split_change changes[SPLIT_MOST_CHANGES], const struct split_request *r,
                 const struct split_result *x);

#endif
