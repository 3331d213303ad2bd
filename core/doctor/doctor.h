// Why a run died, read from its log. Text is fed in pieces of any size and never kept whole: logs
// have gigabytes, many ranks talking at once, colour codes, progress bars, broken UTF-8. A scan for
// a few anchor strings finds the lines that matter; only those are looked at. What comes out are
// findings (what was said, by which rank, after which step, with the numbers in it), and which of
// them is the cause. Where the log is silent a field stays unknown.
//
//     struct doctor *d = doctor_new(arena);
//     while (there is more)
//         doctor_feed(d, chunk);
//     struct doctor_result r = doctor_end(d, arena);
#ifndef FATHOM_DOCTOR_DOCTOR_H
#define FATHOM_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/str.h"

// What a supervisor has to tell apart.
enum doctor_class {
    DOCTOR_GPU_MEMORY,
    DOCTOR_HOST_MEMORY,
    DOCTOR_DEVICE_ERROR, // NCCL, CUDA, the network
    DOCTOR_TIMEOUT,
    DOCTOR_CONFIGURATION, // would fail the same way again
    DOCTOR_DISK,
    DOCTOR_STOPPED, // by a signal or a scheduler, for reasons that the log does not give
    DOCTOR_SIGN,    // a warning, never a cause
};

// How likely one finding explains the others: the heaviest is the cause, the earliest among equals.
enum doctor_weight {
    DOCTOR_WEIGHS_NOTHING,
    DOCTOR_AFTERMATH,    // what other processes say when one has died
    DOCTOR_CIRCUMSTANCE, // a kill, a timeout, an exception of no special meaning
    DOCTOR_FAULT, // a failed collective or kernel, a setting that may only have been warned of
    DOCTOR_CAUSE,
};

enum { DOCTOR_MAX_REMEDIES = 6, DOCTOR_MAX_ADVICE = 2 * DOCTOR_MAX_REMEDIES + 2 };

// What the run was at.
enum doctor_phase {
    DOCTOR_PHASE_UNKNOWN,
    DOCTOR_PHASE_LOAD,
    DOCTOR_PHASE_RESUME,
    DOCTOR_PHASE_FORWARD,
    DOCTOR_PHASE_BACKWARD,
    DOCTOR_PHASE_OPTIMIZER,
    DOCTOR_PHASE_EVALUATION,
    DOCTOR_PHASE_SAVE,
    DOCTOR_PHASE_ENGINE,
    DOCTOR_PHASE_GENERATE,
    DOCTOR_PHASE_SCORE,
    DOCTOR_PHASE_SYNC,
    DOCTOR_PHASES,
};

struct doctor_phase_kind {
    const char *name;                          // "evaluation", as JSON spells it
    const char *where;                         // "in evaluation"
    const char *meaning;                       // of GPU memory there; NULL: nothing special
    const char *remedies[DOCTOR_MAX_REMEDIES]; // in place of the kind's
    const char *host_meaning;                  // and of the host's
    const char *host_remedies[DOCTOR_MAX_REMEDIES];
};

extern const struct doctor_phase_kind doctor_phases[];

struct doctor_kind {
    const char *name;  // "fragmentation", as JSON spells it
    const char *title; // "ran out of GPU memory: fragmentation"
    enum doctor_class class;
    enum doctor_weight weight;
    bool transient;                            // may go well when merely tried again
    const char *meaning;                       // what it says about the run, one or two sentences
    const char *remedies[DOCTOR_MAX_REMEDIES]; // the cheapest first
    bool by_phase;                             // where it happened decides what helps ...
    int kept;                                  // ... beside so many of its remedies
    enum doctor_phase phase;                   // where it always happens
};

extern const struct doctor_kind doctor_kinds[];
extern const ptrdiff_t doctor_kind_count;

const char *doctor_class_name(enum doctor_class class); // "gpu_memory"

// The numbers a message may carry, in bytes.
enum doctor_field {
    DOCTOR_TRIED,
    DOCTOR_CAPACITY,
    DOCTOR_FREE,
    DOCTOR_PROCESS, // this process, with what torch does not manage
    DOCTOR_OTHERS,  // other processes on the card, together
    DOCTOR_ALLOWED,
    DOCTOR_ALLOCATED,
    DOCTOR_PRIVATE,
    DOCTOR_UNALLOCATED, // reserved less allocated
    DOCTOR_RESERVED,
    DOCTOR_NEEDED,    // by a cache that is made at the start
    DOCTOR_AVAILABLE, // for it
    DOCTOR_HOST_USED,
    DOCTOR_HOST_TOTAL,
    DOCTOR_FIELDS,
};

const char *doctor_field_name(enum doctor_field field); // "tried_bytes"

struct doctor_finding {
    const struct doctor_kind *kind;
    int64_t rank, gpu;         // -1: not said
    int64_t step, steps_total; // the last step reported before it; -1: none was
    uint64_t line;             // from 1
    uint64_t count, last_line; // of this kind and rank
    unsigned known;            // bits of doctor_field
    uint64_t bytes[DOCTOR_FIELDS];
    struct str text;      // the message as written, without colour, at most DOCTOR_TEXT_BYTES
    struct str raised;    // 'File "train.py", line 7, in main' of its traceback; empty: not said
    uint64_t ranks;       // how many ranks say something of this kind
    struct str rank_list; // which, as "0-2, 5"; empty below two
    const char *remedy;   // what this very message asks for, before its kind's; NULL: nothing more
    enum doctor_phase phase;
    const char *phase_remedy; // what the frames of its traceback ask for
    bool survived;            // steps were reported after it
    bool root;                // torchrun calls it the first failure it saw
};

enum { DOCTOR_TEXT_BYTES = 1000, DOCTOR_RAISED_BYTES = 300 };

// What trainers print of their own settings.
enum doctor_said {
    DOCTOR_SAID_BATCH, // of one GPU
    DOCTOR_SAID_ACCUMULATION,
    DOCTOR_SAID_TOTAL_BATCH, // of a step, over all GPUs
    DOCTOR_SAID_EVAL_BATCH,
    DOCTOR_SAID_EVAL_SIZE,
    DOCTOR_SAID_COUNT,
};

const char *doctor_said_name(enum doctor_said said); // "batch"

struct doctor_result {
    const struct doctor_finding *findings; // in the order of their lines
    ptrdiff_t count;
    const struct doctor_finding *cause; // NULL: the log does not say
    uint64_t lines, bytes;
    int64_t last_step, steps_total;  // -1: none was reported
    int64_t said[DOCTOR_SAID_COUNT]; // the last time; -1: not
    bool cut;                        // the text goes on, but could not be read
};

struct doctor;

struct doctor *doctor_new(struct arena *a);
void doctor_feed(struct doctor *d, struct str chunk);

void doctor_cut(struct doctor *d); // what follows could not be read

// Ends the reading: nothing may be fed after it.
struct doctor_result doctor_end(struct doctor *d, struct arena *a);

// What its phase says of it; NULL: nothing. And what to change, the cheapest first; how many.
const char *doctor_phase_meaning(const struct doctor_finding *f);
int doctor_advice(const char *rows[DOCTOR_MAX_ADVICE], const struct doctor_finding *f);

static inline bool doctor_knows(const struct doctor_finding *f, enum doctor_field field)
{
    return f->known >> field & 1;
}

#endif
