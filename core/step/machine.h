// The memory of a simulated training process: storages that are allocated, shared and let go, each
// change an event of a history that torch's allocator is later given to replay. Nothing here knows
// what a storage is for, beyond the kind that a report names it by.
#ifndef FATHOM_STEP_MACHINE_H
#define FATHOM_STEP_MACHINE_H

#include "core/base/arena.h"
#include "core/trace/trace.h"

// What memory is used for; the tag of its events.
enum memory_kind {
    MEMORY_UNKNOWN,
    MEMORY_PARAMETERS,
    MEMORY_GRADIENTS,
    MEMORY_OPTIMIZER,
    MEMORY_CHECKPOINTS, // inputs of layers, kept for recomputation
    MEMORY_LOGITS,      // and their copies
    MEMORY_SAVED,       // kept by operators for their backward
    MEMORY_WORKING,
    MEMORY_GATHERED, // whole layers put together from shards
    MEMORY_WORKSPACE,
    MEMORY_INPUTS,
    MEMORY_KINDS,
};

const char *memory_kind_name(enum memory_kind kind);

// What the process is doing.
enum phase { PHASE_BUILD, PHASE_FORWARD, PHASE_LOSS, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_COUNT };

const char *phase_name(enum phase phase);

struct phase_mark {
    ptrdiff_t event; // the first of this phase
    enum phase phase;
    int step; // from 1; 0 while building
};

enum { STREAM_COMPUTE = 0 };

struct storage {
    uint64_t bytes;
    uint32_t block;
    uint16_t stream;
    uint16_t references;
    struct storage *next_spare;
};

struct machine {
    struct arena *arena;
    struct trace *trace;
    struct storage *spare;
    uint32_t *spare_blocks;
    ptrdiff_t spare_block_count, spare_block_capacity;
    uint16_t stream; // where the next allocation goes
    struct phase_mark *phases;
    ptrdiff_t phase_count, phase_capacity;
    int step;
    uint64_t flops; // of all operators so far
    uint64_t moved_bytes;
};

struct machine machine_with(struct arena *a, struct trace *trace);

// One reference is the caller's. Of no bytes: NULL, as torch allocates nothing then.
struct storage *machine_take(struct machine *m, uint64_t bytes, enum memory_kind kind);
struct storage *storage_share(struct storage *s);        // NULL passes through
void machine_drop(struct machine *m, struct storage *s); // one reference less
void machine_scratch(struct machine *m, uint64_t bytes); // taken and given back at once
void machine_mark(struct machine *m, enum event_kind kind);
void machine_phase(struct machine *m, enum phase phase);

#endif
