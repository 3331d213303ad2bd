// The machine a job runs on: how many nodes, how many GPUs in each, and the card. A card is a row
// of the catalogue, or a custom one written out; every figure carries where it comes from, and a
// figure nobody measured says so.
#ifndef FATHOM_HARDWARE_HARDWARE_H
#define FATHOM_HARDWARE_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"
#include "core/settings/settings.h"

// A value of 0 is unknown. `source` is never NULL where the value is known.
struct figure {
    uint64_t value;
    const char *source;
};

struct gpu {
    const char *name;
    const char *also; // other spellings, space-separated; '-' and case never matter
    const char *title;
    const char *nvml_name;   // how NVML calls it, NULL where not known
    struct figure memory;    // bytes, as torch sees them
    struct figure context;   // bytes of a bare CUDA context, outside torch's allocator
    struct figure bandwidth; // memory, bytes a second
    struct figure bf16;      // dense operations a second
    struct figure fp8;
    struct figure link; // to another GPU of the node, bytes a second one way
    const char *link_kind;
    uint64_t per_node; // GPUs of the usual node
    int capability;    // compute capability times ten; 0 for other vendors
    uint64_t multiprocessors, threads_per_multiprocessor; // 0: unknown
};

extern const struct gpu gpu_catalog[];
extern const ptrdiff_t gpu_catalog_count;
extern const struct gpu further_cards[]; // that nobody measured
extern const ptrdiff_t further_card_count;

const struct gpu *gpu_at(ptrdiff_t i); // of both; NULL: there are no more

// Whether a name that is no card's is that of an accelerator without CUDA or ROCm.
bool gpu_is_other_make(struct str name);

const struct gpu *gpu_find(struct str name);
const struct gpu *gpu_find_nvml(struct str nvml_name);

// The figures of a card by name: what a custom card may set, and what replies and tables show.
struct gpu_field {
    const char *key;          // "memory"
    const char *json_out_key; // "memory_bytes"
    ptrdiff_t offset;         // of its struct figure in struct gpu
    enum unit_kind kind;
    struct range range;
    const char *text;
};
extern const struct gpu_field gpu_fields[];
extern const ptrdiff_t gpu_field_count;
struct figure gpu_figure(const struct gpu *g, const struct gpu_field *f);

struct hardware {
    struct gpu card;
    uint64_t nodes, gpus_per_node;
    bool custom;
    bool spread; // one count was given, beyond a node's: it was divided into nodes
};

// Reads "8xH100-80G", "4x8xA100-80G", "H200", "8x{memory=48GiB,bf16=181TFLOPS}" or the same without
// braces, "8xcustom:memory=48GiB,...", and "H100-80G:memory=94GiB" for a changed catalogue card.
// A count beyond eight that whole nodes of the card's usual size make up is so many nodes.
// "auto" is the host's to resolve and is refused here.
bool hardware_from_spec(struct hardware *h, struct arena *a, const struct setting *spec,
                        struct error *e) MUST_USE;
bool hardware_from_settings(struct hardware *h, struct arena *a, const struct settings *s,
                            struct error *e) MUST_USE;

uint64_t hardware_gpus(const struct hardware *h);

#endif
