// Low-rank adapters over a frozen model, and its weights in four bits.
#ifndef FATHOM_MODELS_ADAPTERS_H
#define FATHOM_MODELS_ADAPTERS_H

#include "core/models/trainer.h"

// Freezes the model that has been built and adds the job's adapters.
void adapters_build(struct trainer *t);
void adapter_add(struct trainer *t, int weight);

// Puts a weight of four bits on the card; its scales and tables stay beside it.
void pack_weight(struct trainer *t, struct parameter *p);

// Of a weight as a shard of it is cut: packed ones are bf16 of which each holds four of their
// elements (bnb_4bit_quant_storage), in a single column.
uint64_t stored_elements(const struct parameter *p);

// All parameters as named_parameters has them: an original before its copy, peft's matrices behind
// their weight. Gives how many.
int parameters_in_order(const struct trainer *t, int *order);

// Adapters on the card beside packed weights, in fp32 as peft makes them, then in this width.
void take_adapters(struct trainer *t, uint32_t width);

// What stays beside such a weight that comes by other means.
void take_tables(struct trainer *t, const struct parameter *p);

// peft's prepare_model_for_kbit_training: what is not packed becomes fp32.
void prepare_packed(struct trainer *t);

#endif
