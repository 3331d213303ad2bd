// A run of `fathom probe` as far as it is pure: which cells there are and in which order, what is
// expected of each, and what one trial of a cell is. The host finds out what the run stands on,
// then starts, watches, stores and prints.
#ifndef FATHOM_PROBE_PLAN_H
#define FATHOM_PROBE_PLAN_H

#include "core/probe/expect.h"
#include "core/probe/options.h"
#include "core/probe/record.h"
#include "core/probe/story.h"

// What only a host can find out.
struct probe_place {
    struct str found;              // the card of this machine: "H200:memory=...", empty: none known
    struct str present;            // as NVML names it, where trials run here: "NVIDIA H200"
    struct str torch;              // the version that will train; empty: not known
    struct str program;            // this one, from the root
    struct str shipped;            // the folder of the files that come with Fathom
    struct str python_path;        // the player of ranks, and what the environment names
    struct str socket;             // of the torch worker's server; empty where none runs
    struct str checkpoints;        // what the environment names; empty: nothing
    const struct str *model_paths; // of the models of the list, from the root; empty: no file
};

struct probe_run {
    struct arena *arena;
    const struct settings *settings;
    struct probe_options options;
    struct probe_place place;
    struct str card; // that is meant, "A100-80G"; empty where none is known
    bool limited;    // torch is to be kept to a card's memory
    ptrdiff_t cell_count;
    struct probe_story story; // of the cells that were planned
    struct error refusal;     // the first of a cell that the engine leaves out
};

// Takes the options; no cell is planned yet.
bool probe_run_read(struct probe_run *r, struct arena *a, const struct settings *s,
                    struct error *e) MUST_USE;

// Which card is meant: the one of --as, else this machine's.
bool probe_run_card(struct probe_run *r, struct error *e) MUST_USE;

// One cell.
struct cell_plan {
    struct probe_run *run;
    struct probe_cell *cell;
    struct settings settings, job; // of its trials; of predictions
    struct hunt hunt;
    struct str model; // as the engine takes it
    struct str path;  // of the model, empty where it is no file
    struct str config, machine;
    struct card_limit limit; // zero where torch has all of the card
};

// A cell that is not possible has its refusal, and no trials.
bool plan_cell(struct cell_plan *p, struct probe_run *r, ptrdiff_t index, struct error *e) MUST_USE;

// What the store knows it by.
struct cell_record plan_record(const struct cell_plan *p);

// Of the trial with this number of a length, from 1.
struct str plan_log(const struct cell_plan *p, uint64_t context, int number);

struct planned_trial {
    struct trial_request request;
    uint64_t timeout_ms; // a retry may take longer
    struct expected_trial expected;
};
struct planned_trial plan_trial(const struct cell_plan *p, const struct hunt_step *step,
                                struct str log);

// Its command, in that of the launcher.
bool plan_launch(struct launch *l, struct arena *a, const struct probe_options *o,
                 const struct trial_request *r, struct error *e) MUST_USE;

// Gives the cell the commands of its first trials, if the first fits.
bool plan_commands(const struct cell_plan *p, struct error *e) MUST_USE;

#endif
