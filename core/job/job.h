// What is to be trained and how: the settings of a prediction, read and checked.
#ifndef FATHOM_JOB_JOB_H
#define FATHOM_JOB_JOB_H

#include "core/hardware/hardware.h"
#include "core/job/recipe.h"
#include "core/model/model.h"
#include "core/settings/settings.h"

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
enum optimizer {
    OPTIMIZER_ADAMW,
    OPTIMIZER_ADAMW_FUSED,
    OPTIMIZER_SGD,
    OPTIMIZER_ADAMW_8BIT,    // bitsandbytes
    OPTIMIZER_ADAMW_8BIT_HF, // as transformers' Trainer sets it up
};
enum offload { OFFLOAD_OFF, OFFLOAD_OPTIMIZER, OFFLOAD_ALL };
enum loss { LOSS_FULL, LOSS_CHUNKED, LOSS_NONE, LOSS_LIGER, LOSS_POLICY };
enum save { SAVE_LAST, SAVE_NEVER, SAVE_ALWAYS };

// The linear layers that can have an adapter, in the order of transformers' modules.
enum lora_target {
    TARGET_Q,
    TARGET_K,
    TARGET_V,
    TARGET_O,
    TARGET_GATE,
    TARGET_UP,
    TARGET_DOWN,
    TARGET_COUNT,
};

struct job {
    struct model model;
    struct parameters parameters;
    struct hardware hardware;
    const struct settings *settings; // as given, and as the recipe fills them up
    enum recipe recipe;
    uint64_t context, batch, accumulation;
    enum strategy strategy;
    enum precision precision;
    enum optimizer optimizer;
    enum loss loss;
    uint64_t loss_chunk; // tokens
    bool checkpointing, reshard, expandable;
    enum offload offload; // optimizer, or parameters and gradients too, in host memory
    bool checkpoint_offload;
    uint64_t ulysses;         // sequence parallel size
    uint64_t ring, ring_rank; // context parallel size, and which of its ranks is simulated
    uint64_t lora_rank;       // 0: every parameter is trained
    unsigned lora_targets;    // bits by enum lora_target
    bool packed;              // linear layers in four bits (nf4, double quantisation)
    uint64_t limit_bytes;     // 0: what the card leaves
    bool fused_kernels;       // of verl: a policy gradient without logits of all tokens
    bool entropy_saving;      // of verl: the entropy in chunks, under a checkpoint
    enum save save_hf;        // a checkpoint in Hugging Face's format
    int torch_minor;
};

bool job_from_settings(struct job *p, struct arena *a, const struct settings *s,
                       struct error *e) MUST_USE;

// Whether the job is possible, modelled and of a size that can be counted; says why not.
bool job_check(const struct job *p, struct str where, struct error *e) MUST_USE;

bool job_attends_eagerly(const struct job *p); // operator by operator, scores of all pairs
bool job_masks_windows(const struct job *p);   // layers with a window need a mask
bool job_is_sharded(const struct job *p);
bool job_has_8bit_optimizer(const struct job *p);
bool job_uses_flash(const struct job *p); // FlashAttention 2, where torch would not choose cuDNN
bool job_is_zero(const struct job *p);    // DeepSpeed
void job_put_targets(struct buf *b, const struct job *p); // as --lora-targets has them
uint64_t job_ranks(const struct job *p);
uint64_t job_tokens(const struct job *p);          // of one micro-batch on one GPU
uint64_t job_sequence_tokens(const struct job *p); // of one sequence on one GPU

#endif
