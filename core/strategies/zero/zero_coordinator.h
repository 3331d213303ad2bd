// Which parameters are whole on the card under ZeRO-3, and when (DeepSpeed 0.19.8,
// deepspeed/runtime/zero/partitioned_param_coordinator.py). Each module's parameters are gathered
// before it runs and let go after. The first pass is written down; from the second on parameters
// that come next in it are gathered ahead, and those that come soon again stay.
#ifndef FATHOM_STRATEGIES_ZERO_COORDINATOR_H
#define FATHOM_STRATEGIES_ZERO_COORDINATOR_H

#include "core/models/trainer.h"

enum { NO_PARAMETERS = -1 }; // a module that has none of its own

struct coordinator;

struct coordinator *coordinator_for(struct trainer *t, uint16_t stream, struct zero_sizes sizes);

// A second engine on the same modules, which have the hooks of both then. In a forward pass, and
// where a layer is run again, each module calls the first's, then the second's. What calls an
// engine in a backward pass is the module's own, made by the first (parameter_offload.py,
// pre_bwd_fn and post_bwd_fn): it is called once for each engine's hook where a backward pass
// begins, and as its count of gradients begins anew with each, once where it ends. So the second
// knows no backward pass. And what is left over after one is asked of the second, which has nothing
// (stage3.py, release_backward_leftovers): it stays until the step.
void coordinator_double(struct coordinator *c, struct zero_sizes sizes);

// A module is the number of its weight; one that shares the embedding has module_of_head, the model
// itself module_of_root, peft's around a weight and its adapter module_around.
int module_of_head(const struct trainer *t);
int module_of_root(const struct trainer *t);
int module_around(const struct trainer *t, int weight);

// A further parameter of a module's own: a bias, or the other ones of experts.
void coordinator_add(struct coordinator *c, int module, int parameter);
void coordinator_set_leaf(struct coordinator *c, int module); // of several parameters at once

void coordinator_begin(struct coordinator *c, int outermost); // a forward pass, by its module
void coordinator_enter(struct coordinator *c, int module);
void coordinator_leave(struct coordinator *c, int module);
void coordinator_enter_backward(struct coordinator *c, int module);
void coordinator_leave_backward(struct coordinator *c, int module);

// A module reads a weight of another without calling that: the model its head's, peft's its first
// adapter's. The first time it is gathered where the module runs, and noted as a parameter of the
// reader's own (deepspeed/runtime/zero/parameter_offload.py, ZeROOrderedDict).
void coordinator_read(struct coordinator *c, int parameter);

// A frozen weight that a layer needs to be run again is held for whoever's backward pass began
// last (partitioned_param_coordinator.py, update_recompute_parameters), and goes with that even if
// it comes again soon. With reentrant checkpoints that is the model: until the end. Without, the
// layer's last module, whose backward pass asks for what was kept.
void coordinator_hold(struct coordinator *c, int parameter);
void coordinator_let_held_go(struct coordinator *c);
void coordinator_end_backward(struct coordinator *c);
// Of a module whose backward pass ended unseen (release_backward_leftovers).
void coordinator_drop_leftover(struct coordinator *c, int parameter);

void coordinator_let_all_go(struct coordinator *c);
void coordinator_forget(struct coordinator *c);            // what was written down of a pass
void coordinator_gather_persistent(struct coordinator *c); // after an optimizer step

uint64_t coordinator_shard(const struct coordinator *c, int parameter); // elements of a rank's part

#endif
