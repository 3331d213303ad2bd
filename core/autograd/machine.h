// The memory of a simulated training process: storages that are allocated, shared and let go, each
// change an event of a history that torch's allocator plays, at once or later. Nothing here knows
// what a storage is for, beyond the kind that a report names it by.
#ifndef FATHOM_AUTOGRAD_MACHINE_H
#define FATHOM_AUTOGRAD_MACHINE_H

#include "core/base/arena.h"
#include "core/time/timeline.h"
#include "core/trace/trace.h"

// What memory is used for; the tag of its events.
enum memory_kind {
    MEMORY_UNKNOWN,
    MEMORY_PARAMETERS,
    MEMORY_REFERENCE, // parameters of a model that is only read
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
enum phase {
    PHASE_BUILD,
    PHASE_GENERATE,  // answers, by the model that is trained
    PHASE_REFERENCE, // the forward pass of a model that is only read
    PHASE_FORWARD,
    PHASE_LOSS,
    PHASE_BACKWARD,
    PHASE_OPTIMIZER,
    PHASE_SYNC, // weights go to whoever generates with them
    PHASE_EVALUATE,
    PHASE_SAVE,
    PHASE_COUNT
};

const char *phase_name(enum phase phase);

struct phase_mark {
    ptrdiff_t event; // the first of this phase
    enum phase phase;
    int step; // from 1; 0 while building
};

// A module that is at work from this event on, named by its parameter; without a name: none.
struct module_mark {
    ptrdiff_t event;
    const char *parameter; // "layers.{layer}.mlp.up_proj.weight"
    int layer;
    bool done; // its own work is over: what follows belongs to what it is part of
};

// The compute stream, and three for each of two models.
enum { STREAM_COMPUTE = 0, FIRST_SIDE_STREAM = 1, MODEL_STREAMS = 3, MACHINE_STREAMS = 7 };

struct storage {
    uint64_t bytes;
    struct block *place; // of the allocator that plays along
    uint32_t block;
    uint16_t stream;
    uint32_t references;
    uint8_t width;        // of an element, where an operator made it
    bool on_host;         // no block: it stands for a tensor in host memory
    bool recorded;        // Tensor.record_stream of the compute stream
    uint64_t number;      // of one in host memory: its maker's
    uint64_t done_at;     // of one that waits for another stream: when that is done
    double done_time;     // the same by the clock
    struct storage *next; // spare, or waiting
    uint64_t mark;        // where it is and who made it, while a loop is watched
    int32_t stamped;      // its number in the notes that are being filled; 0: none
};

// A loop that makes the same calls over and over. Once the allocator is where it was after an
// earlier turn, without the driver in between, it goes round: the turns that follow need not be
// made. What is let go when the next is there moves between places, so that it may take a while:
// six turns are usual in a ring, forty not rare.
struct turn {
    uint64_t print;             // of what it did, and where
    uint64_t alive;             // of what is there after it
    uint64_t clock, host_clock; // then
    struct elapsed elapsed;
};

struct turns {
    struct turn earlier; // the last but so many; Brent's way of finding a cycle
    uint64_t since, moves_at;
};

struct block;
struct move;
struct request;
struct stamp;

// A row of allocations and frees, of what nobody shares and no other stream uses.
struct bout {
    struct move *moves;
    ptrdiff_t count;
    bool prepared; // by whoever plays
    uint32_t asked;
    uint64_t launches;              // allocations of the compute stream
    uint64_t most_bytes, net_bytes; // what they add at most, and in the end: in whole units
};

// Whoever plays events as soon as they are made.
struct playing {
    // NULL: no memory is left, and what plays has taken itself out of the machine.
    struct block *(*serve)(void *player, const struct request *request, bool *grew);
    void (*free)(void *player, struct block *b);
    void (*free_later)(void *player, struct block *b);
    // Unless a flush came first.
    void (*free_at_last)(void *player, struct block *b, uint32_t handle);
    void (*mark)(void *player, enum event_kind kind);
    // Many, of which the trace and the machine's handles are counted on by whoever asks; prepared
    // once.
    void (*prepare)(void *player, struct move *moves, ptrdiff_t count);
    void (*run)(void *player, const struct move *moves, ptrdiff_t count, struct block **places);
};

struct machine {
    struct arena *arena;
    struct trace *trace;
    struct storage *spare;
    uint32_t *spare_blocks;
    ptrdiff_t spare_block_count, spare_block_capacity;
    uint32_t blocks_made; // handles given out, where none is used again
    uint16_t stream;      // where the next allocation goes
    // Time is counted in allocations of the compute stream; other streams add nothing to it, they
    // only come after what they have waited for.
    uint64_t clock[MACHINE_STREAMS];
    uint64_t host_clock;           // what the host knows to be done
    struct storage *first_waiting; // let go while another stream may still use them, oldest first
    struct storage *last_waiting;
    uint64_t next_done; // no later than the first of them is done
    double next_time;   // the same by the clock
    // What no allocator could do without: live blocks in whole units of it. A flush completes the
    // frees that wait for other streams, so these count as done.
    uint64_t live_bytes, floor_bytes;
    const struct playing *play; // NULL: the history is only written
    void *player;
    bool grew;      // the last event was a request for which the driver was asked
    uint64_t place; // of the block that it made, while a loop is watched
    uint64_t print; // of the turn so far
    uint64_t alive; // sum of the marks
    uint64_t taken; // in this turn
    bool driven;    // the driver was asked in it
    bool watched;
    bool has_turns; // a loop was watched
    bool makes_all; // turns of loops: for a history that is read by others
    struct phase_mark *phases;
    ptrdiff_t phase_count, phase_capacity;
    struct module_mark *modules; // while all turns are made
    ptrdiff_t module_count, module_capacity;
    int step;
    uint64_t managed_bytes;               // in unified memory, never let go
    uint64_t sent_bytes, most_sent_bytes; // that stand for tensors of the card in host memory
    struct timeline *time;                // NULL: nobody asks when it happens
    struct stamp *stamp;   // notes that are being filled (core/autograd/stamp.h); NULL: none are
    bool each_layer;       // is made: none is played from notes
    bool brief;            // few micro-batches of a pipeline stand for all
    uint64_t layers_noted; // that were
};

struct machine machine_with(struct arena *a, struct trace *trace);

// One reference is the caller's. Of no bytes: NULL, as torch allocates nothing then.
struct storage *machine_take(struct machine *m, uint64_t bytes, enum memory_kind kind);
struct storage *machine_take_on(struct machine *m, uint16_t stream, uint64_t bytes,
                                enum memory_kind kind);
// What stands for a tensor in host memory.
struct storage *machine_take_host(struct machine *m, uint64_t bytes, uint64_t number);
// The same of one in unified memory, which the driver moves between host and card.
struct storage *machine_take_managed(struct machine *m, uint64_t bytes);
static inline struct storage *storage_share(struct storage *s) // NULL passes through
{
    if (s)
        s->references++;
    return s;
}
void machine_drop(struct machine *m, struct storage *s); // one reference less

// The same of what nobody shares and no other stream uses, by its block alone, which is NULL where
// nothing plays. Not while a loop is watched or a history kept.
struct block *machine_use(struct machine *m, uint16_t stream, uint64_t bytes,
                          enum memory_kind kind);
void machine_leave(struct machine *m, struct block *b, uint64_t bytes);

// Many of these at once, added up before, while no free that waits for another stream can come
// between them.
void bout_add(struct bout *b, const struct move *next);
void machine_make(struct machine *m, struct bout *b, struct block **places);

// What is taken and let go again before anyone else asks for anything: said first, in its order,
// and then done at once if it may be.
struct errand {
    struct machine *machine;
    struct move *moves;
    ptrdiff_t count;
    int32_t places;
};
struct errand errand_of(struct machine *m, ptrdiff_t takes);                  // at most
int32_t errand_take(struct errand *e, uint64_t bytes, enum memory_kind kind); // its place
void errand_drop(struct errand *e, int32_t place);
void errand_run(const struct errand *e);

// Tensor.record_stream, then one reference less: if it was the last, the block may be used again
// from the first allocation that finds `stream`'s work so far done.
void machine_drop_after(struct machine *m, struct storage *s, uint16_t stream);
void machine_wait(struct machine *m, uint16_t stream, uint16_t other); // for the other's work
void machine_synchronize(struct machine *m, uint64_t clock); // the host waits for a clock's value
// A stream's work so far: whether the host knows it to be done, and to wait for it.
struct stream_moment {
    uint64_t clock;
    double time;
};
struct stream_moment machine_moment(const struct machine *m, uint16_t stream);
struct stream_moment machine_moment_at(double time); // by the clock alone
bool machine_is_done(const struct machine *m, struct stream_moment moment);
void machine_await_moment(struct machine *m, struct stream_moment moment);
void machine_launch(struct machine *m, uint64_t count);  // on the compute stream, of no allocation
void machine_scratch(struct machine *m, uint64_t bytes); // taken and given back at once
void machine_mark(struct machine *m, enum event_kind kind);
void machine_phase(struct machine *m, enum phase phase);
void machine_module(struct machine *m, const char *parameter, int layer, bool done);

// Kernels of the stream in use, for their time alone: one that reads and writes so many bytes,
// matrix products, attention. And the host's own work, in seconds.
void machine_move(struct machine *m, uint64_t bytes);
void machine_move_more(struct machine *m, uint64_t bytes); // in the same kernel
// As many of the last kernel's bytes come at such a kernel's rate.
void machine_slow(struct machine *m, enum moving kind, uint64_t bytes);
void machine_move_on(struct machine *m, uint16_t stream, uint64_t bytes);
void machine_follow(struct machine *m, uint16_t stream, uint16_t other); // waits, in time alone
void machine_multiply(struct machine *m, const struct product_shape *p);
void machine_attend(struct machine *m, const struct attending_shape *a);
double machine_when(const struct machine *m, uint16_t stream); // its work so far is done
void machine_await(struct machine *m, double time);            // the compute stream, for that
void machine_await_on(struct machine *m, uint16_t stream, double time);
void machine_collect(struct machine *m, uint16_t stream, enum collective kind, uint64_t ranks,
                     uint64_t bytes);
void machine_collect_in(struct machine *m, struct ranks_apart g, enum collective kind,
                        uint64_t bytes);
void machine_host_copy(struct machine *m, uint16_t stream, uint64_t bytes);
static inline const struct rates *machine_rates(const struct machine *m) // never NULL
{
    static const struct rates none = {0};
    return m->time ? &m->time->rates : &none;
}
void machine_update_on_host(struct machine *m, uint64_t elements); // once all streams are done
static inline void machine_host(struct machine *m, double seconds)
{
    if (m->time)
        timeline_host(m->time, seconds);
}

// Around a loop, and after each turn: how many turns of the `left` that follow it and make the same
// calls are not to be made. Loops are not watched within each other.
struct turns machine_turns(struct machine *m);
uint64_t machine_turn_done(struct machine *m, struct turns *t, uint64_t left);
void machine_turns_end(struct machine *m);

#endif
