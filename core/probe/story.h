// What a run of `fathom probe` found, for reports.
#ifndef FATHOM_PROBE_STORY_H
#define FATHOM_PROBE_STORY_H

#include "core/probe/hunt.h"

enum { DRY_RUN_TRIALS = 2 };

struct probe_cell {
    struct str model; // its name
    struct str title; // "Qwen3-0.6B, 2 GPUs, sp 2"
    struct str card;
    uint64_t gpus, sp, cp, max_position;
    bool possible;      // what the configuration itself rules out is not tried
    struct str refusal; // why not
    bool predicted;
    uint64_t expected;      // 0: none fits
    struct str unpredicted; // why there is no prediction
    bool settled;           // the hunt has ended
    struct hunt_step end;
    struct str detail;        // of the trial that stopped it
    uint64_t launches, known; // trials made now; trials that the store knew already
    uint64_t linear_launches;
    uint64_t seconds;
    struct str commands[DRY_RUN_TRIALS]; // of a dry run, which makes none of these trials
    ptrdiff_t command_count;
};

struct probe_story {
    struct probe_cell *cells;
    ptrdiff_t count;
    uint64_t seconds;
};

#endif
