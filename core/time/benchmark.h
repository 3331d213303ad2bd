// What a card's kernels and its host's calls were measured to take (share/torch_kernels.py), and
// the constants that follow: those of rates.h with what was measured in their place. A median
// decides, of the products, attentions and moves that are long enough for their rate to be what
// counts.
#ifndef FATHOM_TIME_BENCHMARK_H
#define FATHOM_TIME_BENCHMARK_H

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/value.h"
#include "core/settings/settings.h"
#include "core/time/rates.h"

struct benchmark;

// Of a card that the catalogue has. Lines of the benchmark are added one by one; others are passed
// over.
struct benchmark *benchmark_new(struct arena *a, const struct gpu *card);
void benchmark_add(struct benchmark *b, const struct value *line);

// A constant as measured, and as it is assumed where nothing was.
struct measured_constant {
    const char *title, *name, *measure;
    int digits; // that are shown of the value by `scale`
    double unit, measured, assumed, scale;
};

enum { MOST_CONSTANTS = 16 };
struct measured_constants {
    const char *card;
    struct measured_constant rows[MOST_CONSTANTS];
    int count;
};

// False where too little was measured to say anything.
bool benchmark_conclude(struct measured_constants *m, struct benchmark *b);

// As lines of "name=value", to be kept.
void benchmark_write(struct buf *out, const struct measured_constants *m);

// What such lines, as settings "kernels.CARD.NAME", say of a card, in place of what is assumed.
bool rates_measured(struct rates *r, bool *found, const struct gpu *card, const struct settings *s,
                    struct error *e) MUST_USE;

#endif
