// What files are written from: the resolved job, and what only files have (a data set, a place to
// save, GPUs beside those that train). Everything a writer's table may ask is here in one of two
// forms: a trait (yes or no) and a fact (a text by name, "@gpus@" in a template).
#ifndef FATHOM_EMIT_DRAFT_H
#define FATHOM_EMIT_DRAFT_H

#include "core/job/job.h"

struct fact {
    const char *name;
    struct str text;
};

enum { DRAFT_MAX_FACTS = 128 };

struct draft {
    struct arena *arena;
    const struct job *job;
    const struct settings *settings;     // as given
    trait_set traits;                    // the job's, and those of its files
    uint64_t sequences;                  // of one optimizer step
    uint64_t rollout_gpus, teacher_gpus; // beside those that train
    uint64_t prompt, response;           // tokens; their sum is the context
    uint64_t rollout_tp;                 // GPUs of one engine that generates
    uint64_t tp, cp;                     // the job's, or what Megatron gets instead
    struct fact facts[DRAFT_MAX_FACTS];
    int fact_count;
};

bool draft_from_job(struct draft *j, struct arena *a, const struct job *job,
                    struct error *e) MUST_USE;

// What distillation needs beside the trainer: the facts "teacher_gpus" and its count.
bool draft_teacher(struct draft *j, struct error *e) MUST_USE;

// The context's parts, out of --prompt and --response.
bool draft_lengths(struct draft *j, struct error *e) MUST_USE;

// Answers a prompt: the facts "repeat_times" and "prompts" of a step.
bool draft_samples(struct draft *j, struct error *e) MUST_USE;
bool draft_has_samples(const struct draft *j, struct error *e) MUST_USE; // that they can be so

// An engine that generates, and where its GPUs are.
struct generator {
    const char *name, *key; // of its memory's fraction
    uint64_t thousandths;   // of a card that it may take
    uint64_t own;           // bytes of that for what is neither weights nor keys and values
    uint64_t gpus;          // that generate, 0 where there may be as many as it needs
    uint64_t node, spare;   // GPUs of a node of engines only, and free ones beside the trainer
};

// Over how many GPUs it spreads the model: the fewest that hold the weights and one sequence. Sets
// rollout_tp and the facts "rollout_tp", "rollout_memory", "rollout_why" and "rollout_room".
bool draft_engine(struct draft *j, struct generator x, struct error *e) MUST_USE;

// DeepSpeed's buckets: what transformers puts in for "auto".
bool draft_deepspeed(struct draft *j, struct error *e) MUST_USE;

// The layers with adapters as transformers calls them, "q_proj,v_proj".
struct str draft_adapted(const struct draft *j, const char *between);

// The modules that are trained whole beside them, "embed_tokens,lm_head".
struct str draft_whole(const struct draft *j);

// Megatron's tp and cp, as far as nobody gave them: the facts "sizes_why" and "sizes_sum".
void draft_megatron(struct draft *j);

void draft_step(struct draft *j); // what one step has: the facts "sequences", "rows" and "step"

struct str draft_aside(const struct draft *j); // a sentence on what nobody asked for

void draft_needs(struct draft *j); // the facts "needs" (versions, and why) and "resumes"

bool draft_is(const struct draft *j, trait_set when,
              trait_set unless); // all of when, none of unless

void draft_fact(struct draft *j, const char *name, struct str text);
void draft_count(struct draft *j, const char *name, uint64_t value);
struct str draft_text(const struct draft *j,
                      const char *name); // a name that is not there is a defect

// How a fact is written where it stands.
enum expansion {
    EXPAND_PLAIN,
    EXPAND_NOTE,  // on one line
    EXPAND_SHELL, // as one word
};

// Copies `text` with each "@name@" replaced.
struct str draft_expand(const struct draft *j, struct str text, enum expansion how);

#endif
