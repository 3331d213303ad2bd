// See rates.h. What kernels reach was measured on one H200, shape by shape (torch 2.11,
// share/torch_kernels.py; tests/runs/kernels_h200.jsonl); what a host takes was fitted to every
// other row of tests/measured/step_times.py. Other cards have the H200's parts of their own peaks,
// changed where public measurements say so; nothing was measured there. Which constants there are,
// and their last changes, were chosen seeing all 109 rows of the H200 and the public pairs: only
// the rows called unseen in tests/measured/step_times.py came after all but two, zero_gradient and
// new_shape.
#include "core/time/rates.h"

// Of 989.5e12 products a second a burst of ten milliseconds reaches 785e12, and a second of them
// 638e12: the card draws its 700 W and clocks at 1455 of 1980 MHz. So with attention, forward and
// backward alike: 650e12 in bursts, 560e12 for a second. Memory: 4.3e12 of 4.8e12 bytes a second,
// at any clock.
static const double PRODUCT_PART = 0.793, ATTENTION_PART = 0.657, BACK_PART = 1,
                    BANDWIDTH_PART = 0.9;
static const double PRODUCT_LASTING = 1.226, ATTENTION_LASTING = 1.165;

// B200 (SimuMax 4dcaae5, configs/system/b200_bf16_ceperm.json: TransformerEngine's products, 75
// calls of each shape in a row, and cuDNN's attention, whose operations are counted there without
// a mask, twice those of a causal one). 514 products against the rates of a burst: those of 20 to
// 100 us take 1.02 times as long, 1.0 to 5 ms 1.53, above 5 ms 1.555, which is 0.4 s of them on one
// card. Steps of seconds on eight cards at once show more: 1.72 is fitted to the rows of
// tests/runs/megatron_b200.csv with 8 micro-batches and one stage. Attention at 32768 tokens
// 0.61 to 0.65 of the peak forward and 0.48 to 0.55 backward, at 131072, a kernel of 30 ms and
// more, 0.50 and 0.42.
static const double BLACKWELL_PRODUCT_LASTING = 1.72, BLACKWELL_ATTENTION_LASTING = 1.24;
static const double BLACKWELL_ATTENTION = 0.62, BLACKWELL_BACK = 0.52;

// The best of any shape on an H200 (stas00/ml-engineering 744d01e: 794.5 of 989.5), which the
// parts of other cards are compared with.
static const double BEST_H200 = 0.803;

// fp32 without tensor cores is a sixteenth of bf16 with them on compute capability 8.0 and 9.0;
// four fifths of it on the H200 (50.5e12 of 4096 x 4096 x 4096).
static const double WIDE_PART = 0.8 / 16;

// torch's grouped_mm on the H200 against products of the same shape: 670e12 with 512 rows for each
// expert or more, 560e12 where they are 768 deep.
static const double GROUPED_PART = 0.85;

// cuDNN with a mask of all pairs on the H200: 313e12 forward, 300e12 backward.
static const double MASKED_PART = 0.47;

// Parts of the peak by compute capability. best: ml-engineering 744d01e, MAMF. FlashAttention 2:
// its paper has up to 73 % forward and 63 % backward on the A100 (arXiv 2307.08691); 360e12 and
// 340e12 on the H200. What lasts on others than H200 and B200 is taken to be as on the H200.
static const struct architecture {
    int capability;
    double best, attention, attention_back, flash2, flash2_back, bandwidth;
    double product_lasting, attention_lasting; // 0: the H200's
} architectures[] = {
    {80, 0.869, 0.70, 0.62, 0.70, 0.62, 0.88, 0, 0},
    {90, BEST_H200, ATTENTION_PART, ATTENTION_PART *BACK_PART, 0.364, 0.344, BANDWIDTH_PART, 0, 0},
    {100, 0.776, BLACKWELL_ATTENTION, BLACKWELL_BACK, 0.36, 0.30, 0.67, BLACKWELL_PRODUCT_LASTING,
     BLACKWELL_ATTENTION_LASTING},
    {103, 0.786, BLACKWELL_ATTENTION, BLACKWELL_BACK, 0.36, 0.30, 0.67, BLACKWELL_PRODUCT_LASTING,
     BLACKWELL_ATTENTION_LASTING},
};

// Any other card: as the A100, with less of the best.
static const struct architecture other = {0, 0.80, 0.56, 0.50, 0.56, 0.50, 0.88, 0, 0};

static const struct architecture *architecture_of(const struct gpu *card)
{
    for (int i = 0; i < COUNT_OF(architectures); i++)
        if (architectures[i].capability == card->capability)
            return &architectures[i];
    return &other;
}

// The host of the measured H200, fitted to steps that it bounds, then lowered by 7 %, which halves
// the worst errors of all rows: runs of the same operators differ by half there (h37 and h43).
// Alone, a call takes 13 us of it, a node of the backward pass 16 us, a checkpointed call 330 us
// (share/torch_kernels.py); the rest is what transformers does around them. flat_unit is fitted to
// two rows of FSDP1 (h95, h98); flat_views is between what two allocator histories show beside it
// (Qwen3-0.6B 0.6 ms, Qwen3-30B-A3B's layers 1 ms; use_orig_params), zero_module to one of ZeRO-3
// (z1). zero_gather is what its first step takes beyond the third, a layer of u17's history (3 and
// 15 collectives more in 0.9 and 5.7 ms), zero_pass the millisecond and a half between two passes
// of u55's, zero_search what the second step takes beyond the third (1.7 s of z10 and u54, 2.5 of
// v1, 0.18 of u17's). adapter is half of what peft 0.21 and transformers 5.17 took on a slower host
// (196 linears of 28 layers: disable_adapter 38 ms, gradient_checkpointing_disable 19 ms, and as
// much to undo them), zero_gradient to one of ZeRO-2 by transformers' Trainer (Qwen3-1.7B, 4096
// tokens, 0.321 s), cut_* to tp2, tp8 and tp10 of
// tests/runs/real_trainers.jsonl (DTensors in Python, 196 modules), host_adam to four rows with
// offload (h91 to h94) on 16 cores, new_shape to what two packed jobs of TRL's take beyond their
// operators, 0.14 and 0.17 s at 8192 and 4096 tokens: their rows are never as long as those before,
// and cuDNN is taken to plan anew. The link: ml-engineering 744d01e, PCIe Gen5 x16 on 8 x H200.
static const struct rates host = {.call = 29e-6,
                                  .engine = 21e-6,
                                  .launch = 4.7e-6,
                                  .keep = 2.9e-6,
                                  .frame = 600e-6,
                                  .unit = 620e-6,
                                  .unit_tensor = 56e-6,
                                  .flat_unit = 200e-6,
                                  .flat_views = 0.8e-3,
                                  .zero_module = 415e-6,
                                  .zero_gather = 350e-6,
                                  .tensor = 5.2e-6,
                                  .sharded_tensor = 4.5e-6,
                                  .zero_pass = 4.5e-6,
                                  .zero_search = 5.3e-6,
                                  .adapter = 0.15e-3,
                                  .cut_call = 1.15e-3,
                                  .cut_gradient = 0.6e-3,
                                  .cut_tensor = 0.2e-3,
                                  .zero_gradient = 450e-6,
                                  .new_shape = 0.14,
                                  .step = 1e-3,
                                  .host_link = 55e9,
                                  .host_adam = 31e6};

// Bytes a second of large tensors against those of a plain sum on one H200, 4.3e12 (torch 2.11,
// share/torch_kernels.py): x.float() 2.15, weight * x 1.63, x * column 2.65, x * cos over heads and
// transposed copies 1.5 to 1.6, cat after negation 0.94, x.sum(0) 1.9 to 2.9, AdamW over 300
// tensors 2.9 in fp32 (fused and foreach) and 1.9 to 2.3 in bf16.
// What limits these is what a multiprocessor has under way, not memory: a card with less bandwidth
// for each of them loses less.
static const double moving_rates[MOVING_KINDS] = {
    [MOVING_PLAIN] = 1e15,     [MOVING_WIDER] = 2.15e12,  [MOVING_ROW] = 1.63e12,
    [MOVING_COLUMN] = 2.65e12, [MOVING_TURNED] = 1.55e12, [MOVING_JOINED] = 0.94e12,
    [MOVING_SUMMED] = 2.15e12, [MOVING_LISTS] = 3.9e12,   [MOVING_ADDED] = 0.42e12,
    [MOVING_FUSED] = 3.3e12};

static void set_moving(struct rates *r)
{
    static const double h200_multiprocessors = 132;
    double share = r->multiprocessors / h200_multiprocessors;
    for (int i = 0; i < MOVING_KINDS; i++) {
        double part = moving_rates[i] * share / r->bandwidth;
        r->moving_part[i] = part < 1 ? part : 1;
    }
}

struct rates rates_of(const struct gpu *card)
{
    enum { USUAL_MULTIPROCESSORS = 108 };
    const struct architecture *a = architecture_of(card);
    double peak = (double)card->bf16.value;
    struct rates r = host;
    r.product_flops = peak * PRODUCT_PART * a->best / BEST_H200;
    r.wide_product_flops = peak * WIDE_PART;
    r.grouped_part = GROUPED_PART;
    r.attention_flops = peak * a->attention;
    r.attention_back_flops = peak * a->attention_back;
    r.flash2_flops = peak * a->flash2;
    r.flash2_back_flops = peak * a->flash2_back;
    r.product_lasting = a->product_lasting > 0 ? a->product_lasting : PRODUCT_LASTING;
    r.attention_lasting = a->attention_lasting > 0 ? a->attention_lasting : ATTENTION_LASTING;
    r.masked_part = MASKED_PART;
    r.bandwidth = (double)card->bandwidth.value * a->bandwidth;
    r.kernel_gap = 2.2e-6;
    r.multiprocessors =
        (double)(card->multiprocessors ? card->multiprocessors : USUAL_MULTIPROCESSORS);
    set_moving(&r);
    return r;
}

struct rates rates_lasting(const struct rates *burst, double part)
{
    struct rates r = *burst;
    double products = 1 + (burst->product_lasting - 1) * part;
    double attention = 1 + (burst->attention_lasting - 1) * part;
    r.product_flops /= products;
    r.attention_flops /= attention;
    r.attention_back_flops /= attention;
    r.flash2_flops /= attention;
    r.flash2_back_flops /= attention;
    return r;
}
