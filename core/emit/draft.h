// The job that files are written for: the settings of a prediction and emit's own, read and
// checked, and what follows from them. Everything a target's table may ask is here in one of two
// forms: a trait (yes or no) and a fact (a text by name, "@gpus@" in a template).
#ifndef FATHOM_EMIT_DRAFT_H
#define FATHOM_EMIT_DRAFT_H

#include "core/hardware/hardware.h"
#include "core/model/model.h"
#include "core/settings/settings.h"

#define TRAIT(n) (UINT64_C(1) << (n))

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
#define IS_SFT      TRAIT(28)
#define IS_REWARD   TRAIT(29)
#define IS_DPO      TRAIT(30)
#define IS_GRPO     TRAIT(31)
#define IS_OPD      TRAIT(32)
#define IS_CAPACITY TRAIT(33)
#define IS_PAIRS    TRAIT(34) // of preferred and rejected answers
#define IS_ROLLOUT  TRAIT(35) // answers are generated on GPUs of their own
// The model.
#define IS_YARN     TRAIT(36) // the context is longer than the model's positions
#define IS_EXPERTS  TRAIT(37)
#define IS_TIED     TRAIT(38)
#define IS_QK_NORM  TRAIT(39)
#define IS_QKV_BIAS TRAIT(40)
// The framework.
#define IS_LEGACY         TRAIT(41) // verl before 0.8
#define IS_CONFIG         TRAIT(42) // DeepSpeed's own JSON file
#define IS_TRL_LOSS       TRAIT(43) // TRL's chunk of 256 tokens
#define IS_RAY            TRAIT(44)
#define IS_NO_DATASET     TRAIT(45)
#define IS_TP             TRAIT(46)
#define IS_SLURM          TRAIT(47)
#define IS_FILE_DATASET   TRAIT(48) // JSON or JSON lines
#define IS_ABSOLUTE_SAVE  TRAIT(49)
#define IS_OWN_YARN       TRAIT(50) // the framework's own setting for it works
#define IS_APART          TRAIT(51) // generation has GPUs of its own, as the user asked
#define IS_TEACHER_APART  TRAIT(52) // on another node
#define IS_STRATEGY_GIVEN TRAIT(53)
#define IS_TRINITY        TRAIT(54)
#define IS_OVER_NODES     TRAIT(55) // a Ray cluster of several

struct fact {
    const char *name;
    struct str text;
};

enum { DRAFT_MAX_FACTS = 96 };

struct draft {
    struct arena *arena;
    const struct settings *settings;
    struct model model;
    struct parameters parameters;
    struct hardware hardware;
    uint64_t traits;
    uint64_t gpus, sp, cp, tp, context, batch;
    uint64_t sequences;                  // of one optimizer step
    uint64_t rollout_gpus, teacher_gpus; // beside those that train
    struct fact facts[DRAFT_MAX_FACTS];
    int fact_count;
};

bool draft_from_settings(struct draft *j, struct arena *a, const struct settings *s,
                         struct error *e) MUST_USE;

// What distillation needs beside the trainer: the facts "teacher_gpus" and its count.
bool draft_teacher(struct draft *j, struct error *e) MUST_USE;

bool draft_is(const struct draft *j, uint64_t when, uint64_t unless); // all of when, none of unless

void draft_fact(struct draft *j, const char *name, struct str text);
void draft_count(struct draft *j, const char *name, uint64_t value);
struct str draft_text(const struct draft *j,
                      const char *name); // a name that is not there is a defect

// How a fact is written where it stands.
enum expansion {
    EXPAND_PLAIN,
    EXPAND_NOTE,  // on one line
    EXPAND_SHELL, // as one word
};

// Copies `text` with each "@name@" replaced.
struct str draft_expand(const struct draft *j, struct str text, enum expansion how);

#endif
