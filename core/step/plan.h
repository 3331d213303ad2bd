// What is to be trained and how: the settings of a prediction, read and checked.
#ifndef FATHOM_STEP_PLAN_H
#define FATHOM_STEP_PLAN_H

#include "core/base/settings.h"
#include "core/hardware/hardware.h"
#include "core/model/model.h"

enum strategy {
    STRATEGY_SINGLE,
    STRATEGY_DDP,
    STRATEGY_FSDP1,
    STRATEGY_FSDP2,
    STRATEGY_ZERO1,
    STRATEGY_ZERO2,
    STRATEGY_ZERO3,
};
enum precision { PRECISION_BF16, PRECISION_AUTOCAST, PRECISION_MIXED };
enum optimizer { OPTIMIZER_ADAMW, OPTIMIZER_ADAMW_FUSED, OPTIMIZER_SGD };
enum offload { OFFLOAD_OFF, OFFLOAD_OPTIMIZER, OFFLOAD_ALL };
enum loss { LOSS_FULL, LOSS_CHUNKED, LOSS_NONE };

struct plan {
    struct model model;
    struct parameters parameters;
    struct hardware hardware;
    uint64_t context, batch, accumulation;
    enum strategy strategy;
    enum precision precision;
    enum optimizer optimizer;
    enum loss loss;
    uint64_t loss_chunk; // tokens
    bool checkpointing, reshard, expandable;
    enum offload offload; // optimizer, or parameters and gradients too, in host memory
    uint64_t ulysses;     // sequence parallel size
    uint64_t limit_bytes; // 0: what the card leaves
    int torch_minor;
};

bool plan_from_settings(struct plan *p, struct arena *a, const struct settings *s,
                        struct error *e) MUST_USE;

bool plan_is_sharded(const struct plan *p);
bool plan_is_zero(const struct plan *p); // DeepSpeed
uint64_t plan_ranks(const struct plan *p);
uint64_t plan_tokens(const struct plan *p);          // of one micro-batch on one GPU
uint64_t plan_sequence_tokens(const struct plan *p); // of one sequence on one GPU

#endif
