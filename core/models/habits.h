// What a framework does inside a step where torch leaves it the choice; a recipe's row has it.
#ifndef FATHOM_MODELS_HABITS_H
#define FATHOM_MODELS_HABITS_H

#include <stdbool.h>

// Where FSDP2 has the head of a model that does not tie it.
enum head_unit {
    HEAD_ALONE,
    HEAD_WITH_NORM, // the last norm and the head (tied or not) are whole from their first use on
    HEAD_IN_ROOT,
};

struct trainer;

struct habits {
    bool reads_values;     // the host waits for the loss, then for the norm of the gradients
    bool reads_loss;       // for the loss before the backward pass alone, or what is told of it
    bool checks_loss;      // and after it: transformers' logging_nan_inf_filter
    bool reads_positions;  // and for the positions, before each attention
    bool sends_parameters; // FSDP1's sync_module_states: from the first rank to the others
    bool sums_narrow;      // FSDP reduces gradients in bf16, as accelerate sets it up
    bool device_map;       // on one GPU the model comes by a device map
    bool cuts_on_card;     // FSDP2's units come whole and are cut there
    bool keeps_parameters; // FSDP1's use_orig_params: the optimizer sees parameters, not units
    bool one_unit;         // FSDP2 has all of a model that is read as one, on the card
    bool decays_matrices;  // the optimizer has norms and biases in a group of their own
    int batch_columns;     // of a step's batches, which all come before it; 0: token ids, once
    enum head_unit head_unit;
    // Where a job's model is read as it was loaded, before anything is made to train it.
    void (*read_first)(struct trainer *t);
};

#endif
