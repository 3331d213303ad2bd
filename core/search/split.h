// How the GPUs of a machine are divided between a teacher that scores, a student that trains and
// the engines that generate its answers, each on GPUs of its own. Every division of them all is
// looked at: servers as core/serve computes them, training as predicted, in whole numbers of
// engines that the models' heads allow and that lie within a node.
#ifndef FATHOM_SEARCH_SPLIT_H
#define FATHOM_SEARCH_SPLIT_H

#include "core/predict/predict.h"
#include "core/serve/serve.h"

enum { SPLIT_LEAST = 3, SPLIT_MOST = 64 };

enum split_role { ROLE_TEACHER, ROLE_TRAIN, ROLE_ROLLOUT, SPLIT_ROLES };

const char *split_role_name(enum split_role r); // "teacher"

// What a number of GPUs does in a role.
struct split_part {
    bool possible;
    uint64_t gpus, tp, engines;
    uint64_t reserved; // bytes on each
    double seconds;    // of an iteration
    bool borrowed;     // training: from the plain step, the framework's being not known
};

struct split {
    bool possible;
    struct split_part parts[SPLIT_ROLES];
    double sync; // seconds until the engines have the new weights
    double iteration, one_off;
    enum split_role slowest;
};

enum split_choice {
    SPLIT_BEST,
    SPLIT_MOST_TEACHER,
    SPLIT_MOST_TRAINING,
    SPLIT_BALANCED,
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
    uint64_t gpus, prompts, samples, global_batch, prompt, response;
};

struct split_result {
    struct split choices[SPLIT_CHOICES];
    struct split more;                                    // the best with one GPU more
    uint64_t longest_response;                            // for which the best division has room
    struct split_part parts[SPLIT_ROLES][SPLIT_MOST + 2]; // by number of GPUs
};

bool split_read(struct split_request *r, struct arena *a, const struct settings *s,
                struct error *e) MUST_USE;

// Fails where a role cannot be had on any number of GPUs, or no division has room for all.
bool split_find(struct split_result *x, const struct split_request *r, struct error *e) MUST_USE;

// Where a role's GPUs begin, in the order teacher, rollout, training.
uint64_t split_first(const struct split *s, enum split_role role);

#endif
