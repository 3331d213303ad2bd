// How long the data take: steps by each framework's own arithmetic, hours, GPU hours and what they
// cost.
#ifndef FATHOM_PREDICT_EPOCH_H
#define FATHOM_PREDICT_EPOCH_H

#include "core/job/job.h"

// What becomes of the sequences that do not fill a batch.
enum remainder {
    REMAINDER_TRAINED,       // the last step is a smaller one
    REMAINDER_MICRO_DROPPED, // micro-batches that are not full are not trained on
    REMAINDER_DROPPED,       // nor steps
};

struct remainder_row {
    enum remainder remainder;
    const char *text;     // "the last 23 of 160791 are ..."
    const char *evidence; // where it was read
};

extern const struct remainder_row remainder_rows[RECIPES];
extern const struct remainder_row remainder_of_answers;

struct data {
    uint64_t size;    // 0: not given
    uint64_t rows;    // that they are packed into; 0: each is one
    uint64_t answers; // to each of them, that a batch counts
    bool grouped;     // whole prompts only
    uint64_t epochs;
    bool priced;
    double price; // of a GPU for an hour
};

// Reads data-size, epochs and price.
bool data_read(struct data *d, const struct settings *s, struct error *e) MUST_USE;

struct split {
    uint64_t batch, accum, data_parallel;
};

// Rows of so many tokens that sequences are packed into, of this mean length.
uint64_t packed_rows(uint64_t sequences, double mean_tokens, uint64_t row_tokens);

uint64_t steps_per_epoch(enum recipe recipe, uint64_t size, struct split split);

struct training_time {
    uint64_t steps_per_epoch, steps;
    double hours, gpu_hours, cost;
};

struct training_time training_time_of(const struct data *d, enum recipe recipe, struct split split,
                                      uint64_t gpus, double step_s);

#endif
