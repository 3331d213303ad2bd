// See kernel.h.
#include "core/time/kernel.h"

#include "core/base/num.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double parts(uint64_t whole, uint64_t part)
{
    return (double)u64_divide_up(whole, part);
}

static double rounded_up(double x)
{
    double whole = (double)(uint64_t)x;
    return whole < x ? whole + 1 : whole;
}

// ------------------------------------------------------------------ bytes

double moving_seconds(const struct rates *r, double bytes)
{
    return r->kernel_gap + bytes / r->bandwidth;
}

// ------------------------------------------------------------------ products

double product_flops(const struct product_shape *p)
{
    double each = 2 * (double)p->rows * (double)p->columns * (double)p->depth * (double)p->count;
    return each * (double)(1 + p->more);
}

// cuBLAS's tiles on compute capability 9.0, and how much of the rate of the largest they reach: a
// smaller tile reads more for each product.
static const struct {
    uint64_t rows, columns;
    double part;
} tiles[] = {{128, 256, 1}, {256, 128, 1}, {128, 128, 0.85}, {64, 128, 0.6}, {64, 64, 0.4}};

// One choice: tiles in waves over the multiprocessors, each over a part of the depth; the parts of
// one tile are added up in fp32 afterwards.
static double tiled_seconds(const struct rates *r, const struct product_shape *p, int tile,
                            uint64_t splits)
{
    double flops = p->width == 4 ? r->wide_product_flops : r->product_flops;
    double part = tiles[tile].part * (p->grouped ? r->grouped_part : 1);
    double each = flops / r->multiprocessors * part;
    double count = parts(p->rows, tiles[tile].rows) * parts(p->columns, tiles[tile].columns) *
                   (double)p->count;
    double waves = rounded_up(count * (double)splits / r->multiprocessors);
    double depth = (double)p->depth / (double)splits;
    double area = (double)(tiles[tile].rows * tiles[tile].columns);
    double summed = splits > 1 ? 4 * (double)(splits + 1) * (double)p->rows * (double)p->columns *
                                     (double)p->count / r->bandwidth
                               : 0;
    return waves * 2 * area * depth / each + summed;
}

// What is added to is read before a tile ends, and nothing hides that: with it the 91 products of
// SimuMax 4dcaae5's table for B200 that add to fp32 and take half a millisecond or more are
// met within 2 % in the median, without it 7 % too low.
static const double SUM_BYTES = 4;

double product_seconds(const struct rates *r, const struct product_shape *p)
{
    double best = 0;
    for (int tile = 0; tile < (int)(sizeof tiles / sizeof *tiles); tile++)
        for (uint64_t splits = 1; splits <= 8; splits *= 2) {
            double seconds = tiled_seconds(r, p, tile, splits);
            best = best <= 0 || seconds < best ? seconds : best;
        }
    double read = (double)p->rows * (double)p->depth + (double)p->depth * (double)p->columns;
    double made = (double)p->rows * (double)p->columns, count = (double)p->count;
    double bytes = read * p->width + made * (p->added ? 2 * SUM_BYTES : p->width);
    double moved = bytes * count / r->bandwidth;
    best += p->added ? SUM_BYTES * made * count / r->bandwidth : 0;
    return (r->kernel_gap + larger(best, moved)) * (double)(1 + p->more);
}

// ------------------------------------------------------------------ attention

// Pairs of a query and a key, with or without half of the blocks on the diagonal.
static double pairs_of(const struct attending_shape *a, bool counted)
{
    enum { BLOCK = 128 };
    double tokens = (double)a->tokens;
    if (a->all_pairs)
        return tokens * tokens;
    return tokens * (tokens + (counted ? 1 : BLOCK)) / 2;
}

static double flops_of(const struct attending_shape *a, bool counted)
{
    double forward = 4 * pairs_of(a, counted) * (double)(a->rows * a->heads * a->head_dim);
    return a->backward ? 2.5 * forward : forward;
}

// The backward pass multiplies five times where the forward pass does twice; a model counts four.
double attending_flops(const struct attending_shape *a)
{
    return flops_of(a, true) * (a->backward ? 0.8 : 1);
}

// Where the blocks of a causal mask end: the last queries of a sequence see all of it, and the rest
// of the card waits for a part of what they take. With it, and a start, the rates of cuDNN and
// FlashAttention 2 on one H200 are the same from 1024 to 32768 tokens, 4 to 32 heads, within 5 %
// (torch 2.11, share/torch_kernels.py); backward passes also clear, add up and cast the gradient
// of q in fp32.
static double uneven_part(const struct attending_shape *a)
{
    return a->all_pairs ? 0 : a->flash2 ? 1 : a->backward ? 0.7 : 0.5;
}

double attending_seconds(const struct rates *r, const struct attending_shape *a)
{
    enum { BLOCK = 128 };
    static const double start = 8e-6, start_back = 18e-6, gradient_bytes = 32;
    double rate = a->flash2     ? a->backward ? r->flash2_back_flops : r->flash2_flops
                  : a->backward ? r->attention_back_flops
                                : r->attention_flops;
    double thin = a->head_dim < 128 ? 0.5 + (double)a->head_dim / 256 : 1;
    double q = (double)(a->rows * a->tokens * a->heads * a->head_dim);
    double k = (double)(a->rows * a->tokens * a->kv_heads * a->head_dim);
    double moved = 2 * (a->backward ? 6 * q + 6 * k : 2 * q + 2 * k) / r->bandwidth;
    rate *= thin * (a->all_pairs ? r->masked_part : 1);
    double longest =
        4.0 * (double)BLOCK * (double)(a->tokens * a->head_dim) * (a->backward ? 2.5 : 1);
    double work = flops_of(a, false) / rate + uneven_part(a) * longest * r->multiprocessors / rate;
    if (a->backward)
        work += gradient_bytes * q / r->bandwidth;
    return r->kernel_gap + (a->backward ? start_back : start) + larger(work, moved);
}
