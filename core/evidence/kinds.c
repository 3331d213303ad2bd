// The kinds of job that were measured. Figures are those of `python3 tests/accuracy.py`, which
// fails where a run is further off than its row says, and prints the row as it should be.
#include "core/evidence/evidence.h"

#include "core/base/num.h"

enum { MILLION = 1000000 };

// Fewer runs than this say little about the next one: it is given at least what 95 of 100 runs of
// all kinds stay within.
enum { FEW_RUNS = 10, SHORT_OF_MOST = 14000 };

enum trait {
    LORA = 1,
    PACKED = 1 << 1,
    EIGHT_BIT = 1 << 2,
    LIGER = 1 << 3,
    RING = 1 << 4,
    ULYSSES = 1 << 5,
    OFFLOAD = 1 << 6,
    HOST_CHECKPOINTS = 1 << 7,
    FUSED_KERNELS = 1 << 8,
    ENTROPY_SAVING = 1 << 9,
    FACTORED = 1 << 10,
    LIGER_LAYERS = 1 << 11,
    HOST_ACTIVATIONS = 1 << 12,
    RAGGED = 1 << 13, // rows padded or packed
    SCORED = 1 << 14, // reward models
    VISION = 1 << 15, // a vision tower, be it idle
};

#define BIT(n)     (1u << (n))
#define PLAIN      BIT(RECIPE_HF)
#define DEEPSPEED  (BIT(RECIPE_HF) | BIT(RECIPE_DEEPSPEED))
#define TRINITY    BIT(RECIPE_TRINITY)
#define TRL        BIT(RECIPE_TRL)
#define TRAINER    BIT(RECIPE_TRANSFORMERS)
#define REPLICATED (BIT(STRATEGY_SINGLE) | BIT(STRATEGY_DDP))
#define SHARDED    (BIT(STRATEGY_FSDP1) | BIT(STRATEGY_FSDP2))

#define H200      "h200_runs.jsonl, h200_models.jsonl, h200_unseen.jsonl"
#define CP        "h200_cp.jsonl"
#define ZERO      "h200_zero.jsonl"
#define LIBRARIES "h200_lora.jsonl"
#define REAL      "real_trainers.jsonl"
#define FAMILIES  "h200_families.jsonl"

const struct evidence_row evidence_rows[] = {
    {"plain step on one GPU", PLAIN, BIT(STRATEGY_SINGLE), 0, 0, H200, 66, {210, 0, 420, 210}},
    {"images on one GPU",
     PLAIN,
     BIT(STRATEGY_SINGLE),
     VISION,
     0,
     "h200_vl.jsonl",
     23,
     {1200, 110, 18000, 19000}},
    {"plain step under ddp", PLAIN, BIT(STRATEGY_DDP), 0, 0, H200, 3, {0, 0, 0, 0}},
    {"plain step under fsdp1", PLAIN, BIT(STRATEGY_FSDP1), 0, 0, H200, 18, {0, 0, 9600, 43}},
    {"plain step under fsdp2",
     PLAIN,
     BIT(STRATEGY_FSDP2),
     0,
     OFFLOAD,
     H200,
     76,
     {87, 0, 3200, 3200}},
    {"plain step under fsdp2 with sequence parallel",
     PLAIN,
     BIT(STRATEGY_FSDP2),
     ULYSSES,
     OFFLOAD,
     H200,
     9,
     {32, 0, 850, 0}},
    {"plain step under fsdp2 with context parallel",
     PLAIN,
     BIT(STRATEGY_FSDP2),
     RING,
     0,
     CP,
     6,
     {0, 0, 0, 0}},
    {"TRL under fsdp2",
     TRL,
     BIT(STRATEGY_FSDP2),
     0,
     RING | HOST_CHECKPOINTS,
     CP ", " REAL,
     33,
     {1100, 0, 25000, 1600}},
    {"TRL under fsdp2 with offload",
     TRL,
     BIT(STRATEGY_FSDP2),
     OFFLOAD,
     0,
     REAL,
     3,
     {1, 0, 67000, 72000}},
    {"Megatron",
     BIT(RECIPE_MEGATRON),
     BIT(STRATEGY_MEGATRON),
     0,
     RING,
     "megatron_b200.csv", // 43 rows of 19 peaks
     19,
     {1400, 6700, 36000, 37000}},
    {"TRL on one GPU", TRL, BIT(STRATEGY_SINGLE), 0, 0, REAL, 30, {900, 610, 14000, 14000}},
    {"TRL under zero2", TRL, BIT(STRATEGY_ZERO2), 0, 0, REAL, 7, {1, 0, 6900, 0}},
    {"adapters in TRL under zero3", TRL, BIT(STRATEGY_ZERO3), LORA, 0, REAL, 8, {320, 0, 4200, 0}},
    {"TRL under zero3", TRL, BIT(STRATEGY_ZERO3), 0, 0, REAL, 18, {6800, 290, 94000, 110000}},
    {"adapters in TRL under zero2", TRL, BIT(STRATEGY_ZERO2), LORA, 0, REAL, 2, {0, 0, 0, 0}},
    {"adapters in TRL under fsdp1", TRL, BIT(STRATEGY_FSDP1), LORA, 0, REAL, 1, {250, 910, 910, 0}},
    {"padded and packed rows in TRL under zero3",
     TRL,
     BIT(STRATEGY_ZERO3),
     RAGGED,
     SCORED,
     REAL,
     2,
     {6000, 36000, 72000, 78000}},
    {"padded rows beside adapters in TRL under fsdp2",
     TRL,
     BIT(STRATEGY_FSDP2),
     LORA | RAGGED,
     0,
     REAL,
     1,
     {0, 3400, 3400, 0}},
    {"adapters beside reward models in TRL, sharded",
     TRL,
     BIT(STRATEGY_FSDP1) | BIT(STRATEGY_FSDP2) | BIT(STRATEGY_ZERO3),
     LORA | SCORED,
     0,
     REAL,
     3,
     {250, 520, 1400, 520}},
    {"adapters over nf4 weights in TRL under zero3",
     TRL,
     BIT(STRATEGY_ZERO3),
     LORA | PACKED,
     0,
     REAL,
     1,
     {1, 88000, 88000, 0}},
    {"TRL under zero1", TRL, BIT(STRATEGY_ZERO1), 0, 0, REAL, 1, {0, 5600, 5600, 0}},
    {"TRL under fsdp1", TRL, BIT(STRATEGY_FSDP1), 0, 0, REAL, 4, {360, 3500, 16000, 16000}},
    {"padded and packed rows in TRL under zero2",
     TRL,
     BIT(STRATEGY_ZERO2),
     RAGGED,
     0,
     REAL,
     1,
     {6900, 0, 0, 0}},
    {"8-bit optimizers in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     EIGHT_BIT,
     0,
     REAL,
     2,
     {830, 2400, 3600, 3700}},
    {"adapters over nf4 weights in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     LORA | PACKED,
     0,
     REAL,
     3,
     {1, 0, 0, 0}},
    {"adapters over nf4 weights in TRL under fsdp2",
     TRL,
     BIT(STRATEGY_FSDP2),
     LORA | PACKED,
     0,
     REAL,
     1,
     {100, 13000, 13000, 13000}},
    {"adapters beside reward models in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     LORA | SCORED,
     0,
     REAL,
     2,
     {3, 4500, 9000, 9100}},
    {"Liger's layer kernels in TRL, sharded",
     TRL,
     BIT(STRATEGY_FSDP2) | BIT(STRATEGY_ZERO3),
     LIGER_LAYERS,
     0,
     REAL,
     4,
     {9, 1600, 32000, 33000}},
    {"Liger's kernels in transformers' Trainer, sharded",
     TRAINER,
     SHARDED,
     LIGER | LIGER_LAYERS,
     0,
     REAL,
     3,
     {1, 0, 260, 260}},
    {"adapters in transformers' Trainer on one GPU",
     TRAINER,
     BIT(STRATEGY_SINGLE),
     LORA,
     0,
     REAL,
     1,
     {0, 0, 0, 0}},
    {"adapters in transformers' Trainer, sharded",
     TRAINER,
     BIT(STRATEGY_FSDP1) | BIT(STRATEGY_ZERO3),
     LORA,
     0,
     REAL,
     2,
     {94, 4000, 7700, 7800}},
    {"transformers' Trainer under zero2 and zero3",
     TRAINER,
     BIT(STRATEGY_ZERO2) | BIT(STRATEGY_ZERO3),
     0,
     0,
     REAL,
     4,
     {0, 0, 530, 530}},
    {"padded and packed rows in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     RAGGED,
     SCORED,
     REAL,
     8,
     {4100, 17000, 33000, 28000}},
    {"padded and packed rows in TRL under fsdp2",
     TRL,
     BIT(STRATEGY_FSDP2),
     RAGGED,
     SCORED,
     REAL,
     3,
     {320, 21000, 28000, 8600}},
    {"reward models in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     SCORED,
     0,
     REAL,
     4,
     {50, 830, 57000, 60000}},
    {"reward models in TRL, sharded",
     TRL,
     SHARDED | BIT(STRATEGY_ZERO2) | BIT(STRATEGY_ZERO3),
     SCORED,
     0,
     REAL,
     9,
     {450, 0, 4600, 4600}},
    {"Liger's layer kernels in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     LIGER_LAYERS,
     0,
     REAL,
     2,
     {82, 790, 1200, 390}},
    {"activation offloading in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     HOST_ACTIVATIONS,
     0,
     REAL,
     2,
     {1, 3800, 5400, 0}},
    {"adafactor in TRL on one GPU",
     TRL,
     BIT(STRATEGY_SINGLE),
     FACTORED,
     0,
     REAL,
     2,
     {0, 480, 950, 950}},
    {"adapters in TRL on one GPU", TRL, BIT(STRATEGY_SINGLE), LORA, 0, REAL, 9, {130, 0, 12000, 0}},
    {"adapters in TRL under fsdp2",
     TRL,
     BIT(STRATEGY_FSDP2),
     LORA,
     0,
     REAL,
     8,
     {170, 0, 22000, 380}},
    {"transformers' Trainer on one GPU",
     TRAINER,
     BIT(STRATEGY_SINGLE),
     0,
     0,
     REAL ", " FAMILIES,
     74,
     {1300, 0, 6900, 6900}},
    {"images in TRL, LoRA",
     TRL,
     BIT(STRATEGY_SINGLE) | BIT(STRATEGY_FSDP2),
     VISION | LORA,
     0,
     "h200_vl_later.jsonl",
     3,
     {13000, 660, 16000, 16000}},
    {"images in a trainer on one GPU",
     TRAINER | TRL,
     BIT(STRATEGY_SINGLE),
     VISION,
     0,
     "h200_vl.jsonl",
     4,
     {290, 2800, 37000, 6000}},
    {"images in a trainer, sharded",
     TRAINER | TRL,
     SHARDED,
     VISION,
     0,
     "h200_vl.jsonl",
     5,
     {5700, 0, 170, 170}},
    {"images in a trainer under DeepSpeed",
     TRAINER | TRL,
     BIT(STRATEGY_ZERO2) | BIT(STRATEGY_ZERO3),
     VISION,
     0,
     "h200_vl.jsonl",
     6,
     {320, 450, 3600, 3600}},
    {"transformers' Trainer under fsdp1",
     TRAINER,
     BIT(STRATEGY_FSDP1),
     0,
     0,
     REAL,
     4,
     {0, 60, 150, 150}},
    {"transformers' Trainer under fsdp2",
     TRAINER,
     BIT(STRATEGY_FSDP2),
     0,
     0,
     REAL ", " FAMILIES,
     10,
     {0, 0, 0, 0}},
    {"DeepSpeed zero1 and zero2",
     DEEPSPEED,
     BIT(STRATEGY_ZERO1) | BIT(STRATEGY_ZERO2),
     0,
     OFFLOAD,
     ZERO,
     12,
     {0, 0, 92, 92}},
    {"DeepSpeed zero3", DEEPSPEED, BIT(STRATEGY_ZERO3), 0, 0, ZERO, 11, {110, 4400, 16000, 16000}},
    {"DeepSpeed zero3 with offload",
     DEEPSPEED,
     BIT(STRATEGY_ZERO3),
     OFFLOAD,
     0,
     ZERO,
     4,
     {520, 33000, 76000, 82000}},
    {"adapters over nf4 weights",
     PLAIN,
     BIT(STRATEGY_SINGLE),
     LORA | PACKED,
     EIGHT_BIT | LIGER,
     LIBRARIES,
     8,
     {0, 930, 11000, 11000}},
    {"adapters", PLAIN, REPLICATED, LORA, LIGER, LIBRARIES, 19, {810, 1100, 11000, 8000}},
    {"8-bit optimizer",
     PLAIN,
     REPLICATED,
     EIGHT_BIT,
     LORA | LIGER,
     LIBRARIES,
     5,
     {500, 6000, 54000, 57000}},
    {"Liger's loss", PLAIN, REPLICATED, LIGER, 0, LIBRARIES, 4, {0, 0, 0, 0}},
    {"trinity",
     TRINITY,
     SHARDED,
     0,
     ULYSSES | OFFLOAD,
     "trinity_played.jsonl, trinity_probed.jsonl",
     7,
     {16, 6600, 48000, 19000}},
    {"trinity with fused kernels or entropy in chunks",
     TRINITY,
     SHARDED,
     0,
     FUSED_KERNELS | ENTROPY_SAVING | ULYSSES | OFFLOAD,
     "h200_entropy.jsonl",
     3,
     {180, 28000, 31000, 32000}},
};

const ptrdiff_t evidence_row_count = COUNT_OF(evidence_rows);

static unsigned traits_of(const struct job *job)
{
    const struct {
        bool has;
        enum trait trait;
    } rows[] = {
        {job->lora_rank > 0, LORA},
        {job->packed, PACKED},
        {job_has_8bit_optimizer(job), EIGHT_BIT},
        {job->optimizer == OPTIMIZER_ADAFACTOR, FACTORED},
        {job->layer_kernels == KERNELS_OF_LIGER, LIGER_LAYERS},
        {job->activation_offload, HOST_ACTIVATIONS},
        {job->batching != BATCHING_FULL, RAGGED},
        {job->model.labels > 0, SCORED},
        {job->model.vision.depth > 0, VISION},
        {job->loss == LOSS_LIGER, LIGER},
        {job->ring > 1, RING},
        {job->ulysses > 1, ULYSSES},
        {job->offload != OFFLOAD_OFF, OFFLOAD},
        {job->checkpoint_offload, HOST_CHECKPOINTS},
        {job->fused_kernels, FUSED_KERNELS},
        {job->entropy_saving, ENTROPY_SAVING},
    };
    unsigned traits = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        traits |= rows[i].has ? (unsigned)rows[i].trait : 0;
    return traits;
}

static bool covers(const struct evidence_row *row, const struct job *job)
{
    unsigned traits = traits_of(job);
    return row->recipes & BIT(job->recipe) && row->strategies & BIT(job->strategy) &&
           (traits & row->needs) == row->needs && !(traits & ~(row->needs | row->allows));
}

static struct evidence widest(void)
{
    struct evidence v = {.kind = "not measured", .source = ""};
    for (ptrdiff_t i = 0; i < evidence_row_count; i++) {
        const struct evidence_errors *e = &evidence_rows[i].errors;
        v.errors.allocated_worst = u64_most(v.errors.allocated_worst, e->allocated_worst);
        v.errors.reserved_median = u64_most(v.errors.reserved_median, e->reserved_median);
        v.errors.reserved_worst = u64_most(v.errors.reserved_worst, e->reserved_worst);
        v.errors.reserved_short = u64_most(v.errors.reserved_short, e->reserved_short);
    }
    return v;
}

struct evidence evidence_of(const struct job *job)
{
    for (ptrdiff_t i = 0; i < evidence_row_count && !is_doubted(job); i++) {
        const struct evidence_row *row = &evidence_rows[i];
        if (covers(row, job))
            return (struct evidence){row->kind, row->source, row->runs, row->errors};
    }
    return widest();
}

// Runs that were never short are few, however many there are.
uint64_t evidence_short(const struct evidence *v)
{
    bool few = v->runs < FEW_RUNS || !v->errors.reserved_short;
    return u64_most(v->errors.reserved_short, few ? SHORT_OF_MOST : 0);
}

uint64_t evidence_short_bytes(const struct evidence *v, uint64_t reserved_bytes)
{
    return u64_divide_up(sat_mul(reserved_bytes, evidence_short(v)), MILLION);
}
