// What rules and tables of files ask of a job, as bits: yes or no, so that a row can say under
// which of them it holds.
#ifndef FATHOM_JOB_TRAITS_H
#define FATHOM_JOB_TRAITS_H

#include <stdint.h>

__extension__ typedef unsigned __int128 trait_set; // one bit a trait

#define TRAIT(n) ((trait_set)1 << (n))

// The machine and how the job is spread over it.
#define IS_SEVERAL           TRAIT(0) // GPUs
#define IS_NODES             TRAIT(1) // several nodes
#define IS_DDP               TRAIT(2)
#define IS_FSDP1             TRAIT(3)
#define IS_FSDP2             TRAIT(4)
#define IS_FSDP              TRAIT(5) // either
#define IS_ZERO              TRAIT(6) // any stage of DeepSpeed's
#define IS_ZERO1             TRAIT(7)
#define IS_ZERO2             TRAIT(8)
#define IS_ZERO3             TRAIT(9)
#define IS_SP                TRAIT(10)
#define IS_CP                TRAIT(11)
#define IS_RESHARD           TRAIT(12)
#define IS_OFFLOAD_ALL       TRAIT(13) // optimizer, gradients and parameters in host memory
#define IS_OFFLOAD_OPTIMIZER TRAIT(14) // the optimizer at least
#define IS_NVME              TRAIT(15)
// What a step does.
#define IS_BF16          TRAIT(16) // pure
#define IS_AUTOCAST      TRAIT(17)
#define IS_MIXED         TRAIT(18)
#define IS_BF16_AUTOCAST TRAIT(78) // bf16 weights under autocast
#define IS_CHECKPOINTING TRAIT(19)
#define IS_EXPANDABLE    TRAIT(20)
#define IS_CHUNKED       TRAIT(21) // loss
#define IS_NO_LOSS       TRAIT(22)
#define IS_ACCUMULATES   TRAIT(23)
#define IS_ADAMW         TRAIT(24)
#define IS_FUSED         TRAIT(25)
#define IS_SGD           TRAIT(26)
#define IS_TORCH_NEW     TRAIT(27) // 2.9 and later read PYTORCH_ALLOC_CONF
// The task.
#define IS_SFT         TRAIT(28)
#define IS_REWARD      TRAIT(29)
#define IS_DPO         TRAIT(30)
#define IS_GRPO        TRAIT(31)
#define IS_OPD         TRAIT(32)
#define IS_CAPACITY    TRAIT(33)
#define IS_PAIRS       TRAIT(34) // of preferred and rejected answers
#define IS_ROLLOUT     TRAIT(35) // answers are generated on GPUs of their own
#define IS_PACKED      TRAIT(38) // sequences in one row
#define IS_PRECOMPUTED TRAIT(39) // the reference's log-probabilities
#define IS_KL          TRAIT(47) // a KL term of grpo or rloo
#define IS_COMPARED    TRAIT(40) // with a reference: dpo and kto
// The model.
#define IS_YARN    TRAIT(36) // the context is longer than the model's positions
#define IS_EXPERTS TRAIT(37)
// The framework.
#define IS_LEGACY         TRAIT(41) // verl before 0.8
#define BY_SLIME          TRAIT(42) // of a division of GPUs, whose draft has no job
#define IS_TRL_LOSS       TRAIT(43) // TRL's chunk of 256 tokens
#define IS_RAY            TRAIT(44)
#define IS_NO_DATASET     TRAIT(45)
#define IS_TP             TRAIT(46)
#define IS_FILE_DATASET   TRAIT(48) // JSON or JSON lines
#define IS_ABSOLUTE_SAVE  TRAIT(49)
#define IS_OWN_YARN       TRAIT(50) // the framework's own setting for it works
#define IS_APART          TRAIT(51) // generation has GPUs of its own, as the user asked
#define IS_TEACHER_APART  TRAIT(52) // on another node
#define IS_STRATEGY_GIVEN TRAIT(53)
#define IS_ADAFACTOR      TRAIT(54) // optimizer
#define IS_OVER_NODES     TRAIT(55) // a Ray cluster of several
// Also of the step.
#define IS_8BIT           TRAIT(56) // optimizer
#define IS_LIGER          TRAIT(57) // loss
#define IS_POLICY         TRAIT(58) // loss
#define IS_FUSED_KERNELS  TRAIT(59) // verl's
#define IS_ENTROPY_SAVING TRAIT(60) // verl's
#define IS_LORA           TRAIT(61)
#define IS_SYNCED         TRAIT(62) // gradients after each micro-batch
#define IS_PREFETCHED     TRAIT(99) // FSDP1's layers on their way back
// Also of the model.
#define IS_VISION          TRAIT(63)
#define IS_IMAGES          TRAIT(71) // read by it
#define IS_FROZEN_VISION   TRAIT(72) // its tower is not trained
#define IS_FROZEN_LANGUAGE TRAIT(73) // all else is not
// Again of the step.
#define IS_FLASH2       TRAIT(64) // attention by the package flash-attn, as asked for
#define IS_EAGER        TRAIT(65) // attention operator by operator, as asked or as there is no other
#define IS_NF4          TRAIT(66)  // frozen weights in four bits
#define IS_NF4_SINGLE   TRAIT(126) // and their scales in fp32
#define IS_LORA_TARGETS TRAIT(67)  // adapters on some layers only
#define IS_DORA         TRAIT(90)  // adapters with magnitudes
#define IS_LORA_WHOLE   TRAIT(91)  // modules trained whole beside adapters
#define IS_LORA_DROPOUT TRAIT(118) // adapters with a dropout
#define IS_NAMED        TRAIT(74)  // layers that FSDP does not find by itself
#define IS_KTO          TRAIT(68)
#define IS_EVALUATED    TRAIT(77)
#define IS_REDUCED_WIDE TRAIT(76) // gradients, in fp32, of ranks that share a sequence
#define IS_OVERLAP      TRAIT(70) // of gradients' reduction, and of gathering in stage 3
#define IS_SDPA         TRAIT(69) // attention by torch, as asked for
// Of the files' rows.
#define IS_REENTRANT TRAIT(79)  // checkpointing
#define IS_PADDED    TRAIT(120) // to the longest of their batch
// Of Megatron.
#define IS_MEGATRON   TRAIT(110)
#define IS_PP         TRAIT(111)
#define IS_FUSED_LOSS TRAIT(112) // TransformerEngine's
#define IS_SELECTIVE  TRAIT(113) // recomputation, of attention alone
#define IS_PARTLY     TRAIT(119) // checkpointing, of so many layers
#define IS_LAST_STAGE TRAIT(114) // has a number of layers of its own
#define IS_IN_TURN    TRAIT(115) // several stages a rank
#define IS_DEALT      TRAIT(116) // context parallel by heads
#define IS_AWARE      TRAIT(117) // precision-aware optimizer
// Of checkpoints and loading.
#define IS_SAVED_WHOLE  TRAIT(121)
#define IS_SAVED_SHARDS TRAIT(122) // as they are on each rank
#define IS_LIGER_LAYERS TRAIT(125) // norms, positions and MLPs
#define IS_REPLICATED   TRAIT(124) // shards, as HSDP has them
#define IS_LOADED_ONCE  TRAIT(123) // by a node's first rank
// Again of the step: optimizers and precisions.
#define IS_BNB     TRAIT(96) // optimizer of bitsandbytes
#define IS_PAGED   TRAIT(97) // in unified memory
#define IS_FP16    TRAIT(94) // and autocast or mixed
#define IS_FP32    TRAIT(95) // all of it
#define IS_MUON    TRAIT(98) // optimizer
#define IS_ADAM_DS TRAIT(75) // the same, DeepSpeed's

struct job;

// Those that follow from the job itself; what only files have (a data set, a place of the teacher)
// is added by emit.
trait_set job_traits(const struct job *j);

#endif
