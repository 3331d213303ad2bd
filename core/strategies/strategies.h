// The strategies, and what several of them share. A strategy is a file that fills a row, and a line
// of the table in strategies.c.
#ifndef FATHOM_STRATEGIES_STRATEGIES_H
#define FATHOM_STRATEGIES_STRATEGIES_H

#include "core/models/trainer.h"

extern const struct strategy_kind single_strategy, ddp_strategy, fsdp1_strategy, fsdp2_strategy,
    zero1_strategy, zero2_strategy, zero3_strategy, megatron_strategy, tensor_strategy;

const struct strategy_kind *strategy_kind_of(enum strategy strategy);

// What is frozen stays as it was loaded: as it computes, but where TRL, or a loop of one's own,
// loads all of it in fp32, which packed weights are not stored as. `wide` is then its width.
uint32_t trainer_frozen_width(const struct trainer *t, uint32_t wide);

uint64_t shards_host_bytes(const struct job *p); // of FSDP's, on a node

// single.c: whole parameters with whole gradients, each trained by itself.
void whole_build(struct trainer *t);
void whole_update(struct trainer *t);

// tensor_parallel.c: AdamW tensor by tensor, where some are DTensors and others are not.
void tensor_step(struct trainer *t);

// device_map.c: whether transformers brings the model to its one card by a device map, and how.
bool device_map_loads(const struct trainer *t);
void device_map_load(struct trainer *t);

// optimizer.c: the parts of a step, and a step made of them and of the strategy's own clip and
// zero.
void optimizer_clip(struct trainer *t);
void optimizer_step(struct trainer *t);
void optimizer_step_one(struct trainer *t, struct trained *tensor); // of several, by itself
void optimizer_on_host(struct trainer *t);                          // in time alone
void optimizer_zero(struct trainer *t);
void optimizer_update(struct trainer *t);

// Parameters that the Trainer's optimizer treats alike, in its order.
enum { OPTIMIZER_GROUPS = 2 };
int optimizer_group(const struct trainer *t, const struct trained *tensor);

// adafactor.c
void adafactor_step(struct trainer *t);

// scaler.c: the scaled loss, which goes after its backward pass, NULL where nothing is scaled; and
// what surrounds an optimizer's step.
struct storage *scaler_scale(struct trainer *t);
void scaler_unscale(struct trainer *t);
void scaler_step(struct trainer *t, void (*step)(struct trainer *t));

// muon.c
bool muon_takes(const struct trainer *t, const struct trained *tensor);
void muon_step(struct trainer *t);

// bitsandbytes.c
void bitsandbytes_step(struct trainer *t);

#endif
