// See rates.h. What was measured on one H200 was fitted to every other row of tests/step_times.py
// (those that a fake process group does not make run on empty data), all at once, to the mean error
// of their logarithms; the other half judges. Other cards have its parts of their own peaks,
// changed where public measurements say so; nothing was measured there.
#include "core/time/rates.h"

// Fitted: 672e12 products a second of 989.5e12, attention 567e12 and 465e12 (backward at 0.82 of
// forward, which was taken, not fitted), 3.89e12 bytes a second of 4.8e12.
static const double PRODUCT_PART = 0.679, ATTENTION_PART = 0.573, BACK_PART = 0.82,
                    BANDWIDTH_PART = 0.81;

// The best of any shape on an H200 (stas00/ml-engineering 744d01e: 794.5 of 989.5), which the
// parts of other cards are compared with.
static const double BEST_H200 = 0.803;

// fp32 without tensor cores is a sixteenth of bf16 with them on compute capability 8.0 and 9.0;
// four fifths of it, by one row: experts in fp32 (s22).
static const double WIDE_PART = 0.8 / 16;

// SimuMax 4dcaae5, fitted to their runs on B200: grouped products 0.30 of the peak where others
// have 0.49.
static const double GROUPED_PART = 0.61;

// Two rows with a mask, one padded and one packed (s2, s3).
static const double MASKED_PART = 0.42;

// Parts of the peak by compute capability. best: ml-engineering 744d01e, MAMF. FlashAttention 2:
// its paper has 50 to 73 % on the A100 (arXiv 2307.08691), that of the third 35 % on the H100
// (arXiv 2407.08608), with which two published steps at a million tokens come out within 2 %
// (tests/public_speeds.py). 10.0: SimuMax 4dcaae5, fitted to B200.
static const struct architecture {
    int capability;
    double best, attention, attention_back, flash2, flash2_back, bandwidth;
} architectures[] = {
    {80, 0.869, 0.60, 0.50, 0.60, 0.50, 0.78},
    {90, BEST_H200, ATTENTION_PART, ATTENTION_PART *BACK_PART, 0.36, 0.30, BANDWIDTH_PART},
    {100, 0.776, 0.706, 0.694, 0.36, 0.30, 0.67},
    {103, 0.786, 0.706, 0.694, 0.36, 0.30, 0.67},
};

// Any other card: as the A100, with less of the best.
static const struct architecture other = {0, 0.80, 0.50, 0.42, 0.50, 0.42, 0.8};

static const struct architecture *architecture_of(const struct gpu *card)
{
    for (int i = 0; i < COUNT_OF(architectures); i++)
        if (architectures[i].capability == card->capability)
            return &architectures[i];
    return &other;
}

// The host of the measured H200, fitted with the rest, then lowered by 7 %, which halves the worst
// errors of all rows: runs of the same operators differ by half there (h37 and h43); flat_unit to
// two rows of FSDP1 (h95, h98), zero_module to one of ZeRO-3 (z1), and host_adam to four rows with
// offload (h91 to h94) on 16 cores. The link: ml-engineering 744d01e, PCIe Gen5 x16 on 8 x H200.
static const struct rates host = {.call = 29e-6,
                                  .engine = 21e-6,
                                  .launch = 4.7e-6,
                                  .keep = 2.9e-6,
                                  .frame = 500e-6,
                                  .unit = 620e-6,
                                  .unit_tensor = 56e-6,
                                  .flat_unit = 200e-6,
                                  .zero_module = 570e-6,
                                  .tensor = 5.2e-6,
                                  .sharded_tensor = 4.5e-6,
                                  .step = 1e-3,
                                  .host_link = 55e9,
                                  .host_adam = 31e6};

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
    r.masked_part = MASKED_PART;
    r.bandwidth = (double)card->bandwidth.value * a->bandwidth;
    r.kernel_gap = 5.3e-6;
    r.multiprocessors =
        (double)(card->multiprocessors ? card->multiprocessors : USUAL_MULTIPROCESSORS);
    return r;
}
