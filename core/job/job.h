// One resolved job: settings, recipe, model and machine become one value, once, and every command
// receives it. What the user did not say is what the recipe's framework does (recipe.h), what
// cannot be or is not modelled is a row (rules.h), and which setting fills which field is a row of
// table.c.
#ifndef FATHOM_JOB_JOB_H
#define FATHOM_JOB_JOB_H

#include "core/hardware/hardware.h"
#include "core/job/recipe.h"
#include "core/job/target.h"
#include "core/job/traits.h"
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
    STRATEGY_MEGATRON, // its distributed optimizer
};
enum precision {
    PRECISION_BF16,
    PRECISION_AUTOCAST,
    PRECISION_BF16_AUTOCAST, // weights in bf16, fp32 adapters beside them
    PRECISION_MIXED,
    PRECISION_FP16, // autocast or, where weights are sharded, mixed, with a scaler
    PRECISION_FP32,
};
enum optimizer {
    OPTIMIZER_ADAMW,
    OPTIMIZER_ADAMW_FUSED,
    OPTIMIZER_SGD,
    OPTIMIZER_ADAMW_8BIT,    // bitsandbytes
    OPTIMIZER_ADAMW_8BIT_HF, // as transformers' Trainer sets it up
    OPTIMIZER_ADAFACTOR,     // transformers'
    OPTIMIZER_PAGED_8BIT,    // bitsandbytes, in unified memory
    OPTIMIZER_PAGED,         // the same in 32 bits
    OPTIMIZER_MUON,          // torch's, and its AdamW for what is no matrix of a layer
    OPTIMIZER_ADAM_DS,       // DeepSpeed's FusedAdam
};
enum offload { OFFLOAD_OFF, OFFLOAD_OPTIMIZER, OFFLOAD_ALL };
enum loss {
    LOSS_FULL,
    LOSS_CHUNKED,
    LOSS_NONE,
    LOSS_LIGER,
    LOSS_POLICY,
    LOSS_FUSED, // TransformerEngine's
};
enum save { SAVE_LAST, SAVE_NEVER, SAVE_ALWAYS };
enum saving { SAVING_SHARDS, SAVING_WHOLE, SAVING_NEVER }; // by transformers' Trainer
enum quantize { QUANTIZE_OFF, QUANTIZE_NF4, QUANTIZE_NF4_SINGLE };
#define ZERO_FILE_BUFFER UINT64_C(100000000) // elements, offload_param.buffer_size of DeepSpeed
enum buckets { BUCKETS_AUTO, BUCKETS_OF_DEEPSPEED };

// What DeepSpeed takes at once and keeps, in elements; as settings 0: as its buckets are.
struct zero_sizes {
    uint64_t reduced;   // reduce_bucket_size
    uint64_t ahead;     // stage3_prefetch_bucket_size
    uint64_t persists;  // stage3_param_persistence_threshold
    uint64_t sub_group; // sub_group_size
    uint64_t live;      // stage3_max_live_parameters
    uint64_t reuse;     // stage3_max_reuse_distance
};
enum layer_kernels { KERNELS_OF_TORCH, KERNELS_OF_LIGER };
enum attention {
    ATTENTION_AUTO,
    ATTENTION_SDPA,
    ATTENTION_EAGER,
    ATTENTION_FLASH2,
    ATTENTION_FLASH3
};
enum task {
    TASK_SFT,
    TASK_REWARD,
    TASK_DPO,
    TASK_KTO,
    TASK_GRPO,
    TASK_RLOO,
    TASK_DISTILL,
    TASK_CAPACITY,
    TASK_PRETRAIN, // another word for sft
    TASK_OPD,      // another word for distill
};
enum whole_module { WHOLE_EMBEDDING, WHOLE_HEAD };
enum context_comm { CONTEXT_HANDED, CONTEXT_DEALT }; // how Megatron's context parallel talks
enum freeze { FREEZE_NONE, FREEZE_VISION, FREEZE_LANGUAGE };
enum batching { BATCHING_FULL, BATCHING_PADDED, BATCHING_PACKED };

// How many there are of each; table.c has as many words.
enum {
    STRATEGIES = STRATEGY_MEGATRON + 1,
    PRECISIONS = PRECISION_FP32 + 1,
    OPTIMIZERS = OPTIMIZER_ADAM_DS + 1,
    OFFLOADS = OFFLOAD_ALL + 1,
    LOSSES = LOSS_FUSED + 1,
    SAVES = SAVE_ALWAYS + 1,
    SAVINGS = SAVING_NEVER + 1,
    QUANTIZES = QUANTIZE_NF4_SINGLE + 1,
    BUCKETS = BUCKETS_OF_DEEPSPEED + 1,
    LAYER_KERNELS = KERNELS_OF_LIGER + 1,
    ATTENTIONS = ATTENTION_FLASH3 + 1,
    TASKS = TASK_OPD + 1,
    BATCHINGS = BATCHING_PACKED + 1,
    FREEZES = FREEZE_LANGUAGE + 1,
    CONTEXT_COMMS = CONTEXT_DEALT + 1,
};

// Batches that differ in length, in the order in which they come.
enum { VARIED_STEPS = 3, VARIED_BATCHES = 3, VARIED_FIRST = 16, VARIED_MOST = 32 };
struct varied_batch {
    uint64_t tokens; // of its longest row; of packed rows together
    uint64_t filled; // of all its sequences; 0: not said, as if none were shorter
    bool even;       // its rows are all as long: none is padded, and no mask is made
};
struct varied {
    int count;                                              // of steps that are said
    struct varied_batch batch[VARIED_MOST][VARIED_BATCHES]; // by step and micro-batch
    // Where a sampler drew them: which steps of how many in an epoch, and whose.
    uint64_t number[VARIED_MOST];
    uint64_t steps; // 0: they were named
    uint64_t rank;
};

struct job {
    struct model model;
    struct parameters parameters;
    struct hardware hardware;
    const struct model *teacher; // that trl distils from, beside what is trained; NULL: none
    const struct parameters *teacher_parameters;
    const struct settings *given;    // as the user, a file or a search gave them
    const struct settings *settings; // all of them: as given, by the recipe, by default
    enum recipe recipe;
    int version;        // of the recipe, as recipe_defs numbers them
    enum target target; // whose files are meant; FOR_NOTHING where none are
    bool in_slurm;      // inside a Slurm job
    enum task task;
    enum batching batching;
    uint64_t response;         // where it was given; the prompt is then the rest
    uint64_t prompt;           // tokens of a sequence that carry no loss
    uint64_t sample_tokens;    // of the samples a sequence is packed from; 0: it is one
    uint64_t evaluation_batch; // sequences a GPU that are evaluated at once; 0: none
    uint64_t evaluation_rows;  // of all GPUs; 0: not said
    bool keeps_logits;         // of all of them, for metrics
    bool has_kl;               // grpo and rloo: a KL term, and with it a reference
    bool precomputed;          // the reference's log-probabilities are computed before training
    uint64_t context, batch, accumulation;
    const struct varied *varied;        // NULL: every batch is the longest that there can be
    uint64_t padding;                   // tokens of a micro-batch that stand for none
    uint64_t images;                    // of a sequence
    uint64_t image_width, image_height; // pixels, before the processor
    enum freeze freeze;
    enum strategy strategy;
    enum precision precision;
    enum optimizer optimizer;
    enum loss loss;
    uint64_t loss_chunk;      // tokens
    enum attention attention; // as asked for; job_attention says which it is
    bool checkpointing, reshard, expandable;
    bool reentrant;             // layers are run again as graphs of their own
    bool selective;             // of a layer only attention is recomputed, and not the rest
    uint64_t recomputed_layers; // the first so many of each stage; 0: all of them, or none
    bool overlap_comm; // stage 2 reduces from two buckets beside the backward pass, 3 gathers so
    bool backward_prefetch; // FSDP1: of a layer's parameters, while the one behind it is computed
    bool sync_each_batch;   // gradients are reduced after each micro-batch, not after the last
    bool reduces_last;      // after the last of several: fsdp unless that is said, and ddp
    enum offload offload;   // optimizer, or parameters and gradients too, in host memory
    bool checkpoint_offload;
    enum buckets zero_buckets;        // how much DeepSpeed reduces and gathers at once
    struct zero_sizes zero_sizes;     // where they were said; job_zero_sizes says which they are
    bool tiled_mlp;                   // over pieces of the sequence, as DeepSpeed does it
    bool activation_offload;          // all that is kept, as TRL does it
    enum layer_kernels layer_kernels; // of norms, positions and MLPs
    uint64_t ulysses;                 // sequence parallel size
    uint64_t ring, ring_rank;         // context parallel size, and which of its ranks is simulated
    uint64_t tensor, expert;          // parallel sizes, of frameworks that have them
    uint64_t pipeline, stage;         // stages, and which of them is simulated
    enum context_comm context_comm;
    uint64_t expert_tensor;   // ranks that share an expert: 1, or the tensor parallel ones
    uint64_t last_layers;     // of the last stage; 0: as many as the others have
    uint64_t interleaved;     // stages of each rank of a pipeline
    bool precision_aware;     // Megatron's optimizer has no masters, but what weights lack of them
    uint64_t replicas;        // of fsdp2's shards, each over as many ranks (HSDP)
    uint64_t lora_rank;       // 0: every parameter is trained
    unsigned lora_targets;    // bits by enum lora_target
    unsigned lora_whole;      // bits by enum whole_module: trained beside adapters, all of it
    bool lora_dropout;        // before adapters
    bool dora;                // and a magnitude for each output of an adapted layer
    enum quantize packed;     // linear layers in four bits, and how their scales are
    uint64_t token_limit;     // of a micro-batch on one GPU, where the user set it; else 0
    uint64_t reference_limit; // the same of trinity's reference model; 0: the policy's
    uint64_t limit_bytes;     // 0: what the card leaves
    bool fused_kernels;       // of verl: a policy gradient without logits of all tokens
    bool entropy_saving;      // of verl: the entropy in chunks, under a checkpoint
    enum save save_hf;        // a checkpoint in Hugging Face's format
    enum saving saving;       // checkpoints of transformers' Trainer and TRL
    bool loads_once;          // under fsdp by a node's first rank, under zero3 by zero.Init
    int torch_minor;
    trait_set traits;        // what rules and files ask of it, traits.h
    struct error unmodelled; // why nothing is predicted of it; no code where it is
};

// Fails where the job cannot be; one that can and is not modelled says so in `unmodelled`.
bool job_resolve(struct job *j, struct arena *a, const struct settings *s,
                 struct error *e) MUST_USE;

// How much of each sequence its images or its prompt take; a context must be longer.
bool job_taken_tokens(uint64_t *taken, struct arena scratch, const struct settings *s,
                      struct error *e) MUST_USE;

// The same for whoever predicts: fails where the job is not modelled, too.
bool job_from_settings(struct job *p, struct arena *a, const struct settings *s,
                       struct error *e) MUST_USE;

// The same of settings that say the model as those of another job do, which has read it.
bool job_from_settings_like(struct job *p, struct arena *a, const struct settings *s,
                            const struct job *like, struct error *e) MUST_USE;

// Only the fields that a row of the table binds, from settings that recipe_fill has completed.
bool job_read_settings(struct job *j, const struct settings *complete, struct error *e) MUST_USE;

// Whether a prediction can be made of a resolved job; says why not.
bool job_is_modelled(const struct job *j, struct error *e) MUST_USE;

// A job that was changed in a field: its traits anew, and whether it is possible, modelled and of a
// size that can be counted; says why not.
bool job_check(struct job *j, struct error *e) MUST_USE;

// Whether two jobs train the same in the same way, wherever and with whatever words; by the rows of
// the table.
bool job_same_training(const struct job *p, const struct job *q);

// What is trained and how, in one line; by the rows of the table.
void job_put_phrase(struct buf *b, const struct job *j);

// The value that the job has of a setting, as the setting is written; empty where the table binds
// it to no field.
struct str job_value(struct arena *a, const struct job *j, const struct setting_def *def);

enum attention job_attention(const struct job *p); // never auto
bool job_attends_by_package(const struct job *p);  // flash-attn, 2 or 3
bool job_attends_eagerly(const struct job *p);     // operator by operator, scores of all pairs
bool job_has_windows(const struct job *p);         // that are no longer than the sequence
bool job_masks_windows(const struct job *p);       // layers with a window need a mask
bool job_has_uneven_rows(const struct job *p);     // padded or packed
bool job_unpads(const struct job *p);              // every layer does: shorter rows, no mask
bool job_masks_rows(const struct job *p);          // every layer does: rows are padded or packed
uint64_t job_sample_tokens(const struct job *p);   // of a piece of a row; 0: it is one
bool job_masks_always(const struct job *p);        // or their family makes a mask whatever there is
bool job_computes_wide(const struct job *p);       // nothing in bf16
bool job_autocasts(const struct job *p);           // products are narrow, whatever the weights are
bool job_loads_wide(const struct job *p);          // weights come to the card in fp32
bool job_is_prepared(const struct job *p);         // what is not packed becomes fp32 (peft)
bool job_narrows_adapters(const struct job *p);    // over packed weights, by TRL
void job_settle_dropouts(struct job *j);           // once it is read
bool job_widens_adapters(const struct job *p);     // beside shards in bf16
bool job_drops_in_adapters(const struct job *p);   // a dropout that the trainer leaves as it is
bool job_is_wide(const struct job *p);             // weights are fp32, but for packed ones
// Of the layers that FSDP wraps, where Accelerate does not find them by itself; else NULL.
const char *job_wrapped_classes(const struct job *p);
bool job_shards_wide(const struct job *p); // all of the shards, frozen ones too, are fp32
bool job_shards_frozen_wide(const struct job *p);
bool job_is_mixed(const struct job *p);    // shards or masters are fp32, weights in use not
bool job_scales_loss(const struct job *p); // torch's GradScaler
bool job_is_sharded(const struct job *p);
bool job_has_8bit_optimizer(const struct job *p);
bool job_pages_optimizer(const struct job *p);  // its state is unified memory
bool job_has_bitsandbytes(const struct job *p); // as its optimizer
bool job_is_trainers(const struct job *p);      // transformers' Trainer, or one that stands on it
// transformers before 4.49 shifts logits, not labels; before 4.48 a cast takes their place.
bool job_adds_router_loss(const struct job *p); // TRL balances experts by a loss of their routers
bool job_stands_on_4(const struct job *p);      // transformers 4
bool job_shifts_logits(const struct job *p);
bool job_is_old_bigcode(const struct job *p);
bool job_casts_logits_in_place(const struct job *p);

// Whether peft reaches the model's experts and their router with all-linear.
bool job_folds_experts(const struct job *p);
// transformers 4's sdpa: shared heads of keys and values are always repeated; with a mask, and from
// 4.48 on without one, what attention is given is copied to lie head by head.
bool job_repeats_heads(const struct job *p);
bool job_lays_heads_out(const struct job *p);
bool job_caches_positions(const struct job *p); // for each layer, of all there are

bool job_fuses_head(const struct job *p); // TRL's head, whose logits are never whole
// Which of its kernels torch's sdpa chooses, or the package flash-attn's.
enum attention_kernel { KERNEL_CUDNN, KERNEL_FLASH, KERNEL_EFFICIENT, KERNEL_MATH };
enum attention_kernel job_attention_kernel(const struct job *p);
bool job_is_zero(const struct job *p);      // DeepSpeed
bool job_cuts_tensors(const struct job *p); // transformers' tensor parallel, of all GPUs
uint64_t job_ranks(const struct job *p);

// Layers of a stage of Megatron's pipeline, of those that have most.
uint64_t job_stage_layers(const struct job *p);
uint64_t job_kept_logits(const struct job *p); // bytes of an evaluation's, on every GPU
uint64_t job_shards(const struct job *p);      // ranks that share one copy of the model under fsdp2
bool job_reads_reference(const struct job *p); // beside what it trains, in every step
bool job_reads_first(const struct job *p);     // what it trains, as a reference, before it does
bool job_generates(const struct job *p);       // answers, by the trainer itself
uint64_t job_rows(const struct job *p);        // sequences of a forward pass
uint64_t job_tokens(const struct job *p);      // of one micro-batch on one GPU
uint64_t job_tile_tokens(const struct job *p); // that an MLP sees at once
// Accelerate's context and sequence parallel: labels are shifted before they are cut, and positions
// come with them.
bool job_shifts_early(const struct job *p);
bool job_reduces_wide(const struct job *p); // DeepSpeed's gradients, in fp32
extern const struct zero_sizes zero_sizes_of_deepspeed;
struct zero_sizes job_zero_sizes(const struct job *p);
// A reference model's engine is made before "auto" is replaced (trl 1.16, models/utils.py,
// prepare_deepspeed: the keys that it sets are not read).
struct zero_sizes job_zero_sizes_of_reference(const struct job *p);
bool job_says_zero_sizes(const struct job *p);
bool job_sizes_third_stage(const struct job *p);   // one that stage 3 alone has
void job_settle_zero_sizes(struct job *p);         // numbers that a word stands for become the word
uint64_t job_sequence_tokens(const struct job *p); // of one sequence on one GPU

// Of a sequence's context: its images with the two markers of each.
uint64_t job_image_tokens(const struct job *p);

// Micro-batches in which trinity's reference model reads what is trained on, and their sequences.
uint64_t job_reference_count(const struct job *p);
uint64_t job_reference_batch(const struct job *p);

#endif
