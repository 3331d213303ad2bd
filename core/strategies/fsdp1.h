// Inside the room: FSDP1's flat parameters, which fsdp1_build.c makes and fsdp1.c runs.
#ifndef FATHOM_STRATEGIES_FSDP1_H
#define FATHOM_STRATEGIES_FSDP1_H

#include "core/strategies/strategies.h"

enum { MOST_RELEASES = 8 };

struct unit {
    int *parameters; // in the order of the flat parameter
    int count;
    uint64_t elements, shard_elements;
    struct storage *full;
    struct trained *trained; // its shard
    struct storage **thin;   // its adapters, while they are whole
    struct storage *unsent;  // gradients of micro-batches before the one that reduces them
};

struct shards {
    struct unit *units; // the layers, then the root, then the blocks of a vision tower
    int root, blocks, block_count, unit_count;
    uint64_t ranks;
    uint32_t width, stored_width, reduce_width; // of what is gathered, of shards, of gradients
    uint16_t cast_stream, gather_stream, reduce_stream;
    int first_thin, thin_count;       // the adapters' parameters, and how many a layer has
    bool is_ready;                    // the first forward pass has begun
    bool is_zeroed;                   // gradients that nobody sees wait for the next one
    struct storage *zero;             // a scalar of clipping, kept
    struct storage *summoned;         // the root in its own type, while answers are generated
    uint64_t releases[MOST_RELEASES]; // when gathered units were let go, oldest first
    int release_count;
};

static inline struct shards *shards_of(const struct trainer *t)
{
    return t->state;
}

// In the order of modules: the root, the tower's blocks, the layers.
static inline int unit_in_order(const struct shards *s, int place)
{
    if (place == 0)
        return s->root;
    return place <= s->block_count ? s->blocks + place - 1 : place - s->block_count - 1;
}

static inline bool is_whole(const struct trainer *t)
{
    return shards_of(t)->ranks == 1;
}

// verl's model that is only read waits in host memory, in the compute type. TRL's is a model like
// any other (trl/models/utils.py, prepare_fsdp).
static inline bool is_parked(const struct trainer *t)
{
    return t->is_reference && t->job->recipe != RECIPE_TRL;
}

// CPUOffload: shards wait in host memory, and the optimizer's step is there.
static inline bool is_offloaded(const struct trainer *t)
{
    return t->job->offload == OFFLOAD_ALL && !t->is_reference && !is_whole(t);
}

// And units have gradients that are no trained tensor's.
static inline bool keeps_parameters(const struct trainer *t)
{
    return t->habits->keeps_parameters && !shards_of(t)->thin_count;
}

enum { THIN_WIDTH = 4 }; // of an adapter's shard, as peft makes them

// How many adapters a unit has, and the first of them among all.
static inline int thin_of(const struct trainer *t, const struct unit *u, int *first)
{
    const struct shards *s = shards_of(t);
    int layer = (int)(u - s->units);
    *first = layer * s->thin_count;
    return layer < s->root ? s->thin_count : 0;
}

void fsdp1_load(struct trainer *t);
void fsdp1_dismiss(struct trainer *t);

#endif
