// How fast a card and the host before it are: few physical constants, each with its evidence in
// rates.c. What a kernel takes follows from them and its shape (kernel.h).
#ifndef FATHOM_TIME_RATES_H
#define FATHOM_TIME_RATES_H

#include "core/hardware/hardware.h"

// Kernels that reach less of the bandwidth than those that read and write in order.
enum moving {
    MOVING_PLAIN,
    MOVING_WIDER,  // bf16 in, fp32 out
    MOVING_ROW,    // times a row that all share
    MOVING_COLUMN, // times a value for each row
    MOVING_TURNED, // read or written in another order: heads' positions, transposed copies
    MOVING_JOINED, // torch.cat of the halves of heads
    MOVING_SUMMED, // over tokens, to one row
    MOVING_LISTS,  // over lists of tensors
    MOVING_FUSED,  // a norm in one kernel
    MOVING_ADDED,  // rows added where an index says, in order: sorted first
    MOVING_KINDS
};

struct rates {
    // Of the card.
    double product_flops;                   // a second, of products in bf16 that fill it
    double wide_product_flops;              // in fp32
    double grouped_part;                    // of these, where experts have each their own matrix
    double attention_flops;                 // cuDNN's, forward
    double attention_back_flops;            // and backward
    double flash2_flops, flash2_back_flops; // FlashAttention 2's
    // What a second of it takes of what a burst does, whose rates these are: a card that draws its
    // limit of power clocks lower. A step has it in the part that is such work.
    double product_lasting, attention_lasting;
    double masked_part;               // of any, where a mask is read
    double bandwidth;                 // bytes a second that plain kernels read and write
    double moving_part[MOVING_KINDS]; // of it, by others
    double kernel_gap;                // seconds that a kernel takes however little it does
    double multiprocessors;
    // Of the host: seconds for each
    double call;           // operator that Python calls
    double engine;         // node of the backward pass
    double launch;         // kernel
    double keep;           // tensor that a checkpoint's hooks see
    double frame;          // checkpointed call, and again when it is run again
    double unit;           // unit that FSDP2 gathers or reduces
    double unit_tensor;    // and parameter of it
    double flat_unit;      // unit that FSDP1 gathers or reduces
    double flat_views;     // and its parameters, where they are the optimizer's
    double zero_module;    // module that ZeRO-3's hooks see
    double tensor;         // tensor in a list of the optimizer's, and operator over the list
    double sharded_tensor; // the same of FSDP2's DTensors
    double zero_gather;    // collective that brings parameters to them
    double zero_pass;      // parameter, when a pass begins
    double zero_search;    // module that they look at for another, in the first pass they know
    double adapter;        // adapter that is switched off or on
    double cut_call;       // forward of a module whose weight is a DTensor
    double cut_gradient;   // and its backward
    double cut_tensor;     // update of one, operator by operator
    double zero_gradient;  // gradient that ZeRO 1's and 2's hooks see
    double new_shape;      // batch of a shape that was not there before
    double step;           // step: the loop around it
    double host_link;      // bytes a second to and from the card
    double host_adam;      // parameters a second that one core updates
};

struct rates rates_of(const struct gpu *card);

// In a step that is products and attention to this part.
struct rates rates_lasting(const struct rates *burst, double part);

#endif
