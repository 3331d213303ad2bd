// What the files of stamps share: the notes themselves. A storage that is made while notes are
// filled has the number of its note's place, one that was there before and may be let go a negative
// one; all others have none, and may be shared and dropped but not be let go.
#ifndef FATHOM_AUTOGRAD_STAMP_NOTES_H
#define FATHOM_AUTOGRAD_STAMP_NOTES_H

#include "core/allocator/allocator.h"
#include "core/autograd/graph.h"

enum { MOST_WEIGHTS_KEPT = 16 };
enum { OUTSIDE_GRADIENT, OUTSIDE_INPUT, OUTSIDE_ALSO, OUTSIDE_COUNT = OUTSIDE_ALSO + FRAME_ALSO };

// NOTE_TAKE and NOTE_FREE: of what outlives the call, or was there before; NOTE_USE and NOTE_LEAVE:
// of all else, which needs no storage when it is played.
enum note_kind {
    NOTE_USE,
    NOTE_LEAVE,
    NOTE_PHRASE,
    NOTE_TAKE,
    NOTE_FREE,
    NOTE_LAUNCH,
    NOTE_GIVE,
    NOTE_TELL,
    NOTE_MODULE,
    NOTE_ADAPTER,
    NOTE_SYNCHRONIZE,
    NOTE_KEEP,
    NOTE_LET_GO,
    NOTE_BRING,
    NOTE_SETTLE,
    NOTE_TIME
};

struct note {
    uint8_t kind; // enum note_kind, or with NOTE_TIME added what of the timeline's
    uint8_t of;   // enum memory_kind, spent_on or module_moment; of a gradient: it is a view; of an
                  // adapter: it was called
    uint16_t stream;
    int32_t place; // or a parameter's name, or a phrase's number
    union {
        uint64_t bytes; // or launches, or references
        double amount;
        const struct operation *operation;
    };
};

// What decides what a layer does, beyond what it is.
struct occasion {
    uint64_t begun; // the bits of when the step was, at whose rates kernels take their time
    uint64_t loaded[2];
    uint64_t elements, gradient_bytes;
    uint64_t also_bytes[FRAME_ALSO];
    uint32_t width, gradient_references, input_references;
    uint32_t memory, stream, parameter_stream;
    uint32_t ready, flags; // bits
};

// A storage that was there before.
struct guest {
    struct storage *storage;
    uint32_t references, least; // before, and at least meanwhile; least 0: it was let go
    uint32_t left;
};

// What was made.
struct place {
    struct storage *storage; // NULL: it is gone, or is only used
    ptrdiff_t note;
};

// Notes in a row that are of time, or of what is only used: in their order, and told apart.
struct phrase {
    const struct note *notes, *times;
    ptrdiff_t count, time_count;
    struct bout bout;
};

struct stamp {
    struct kin kin;
    bool backward, made, spoilt;
    int tries;
    struct occasion when, passing; // the last that was another
    struct note *notes;
    ptrdiff_t count, capacity;
    struct place *places; // numbered from one
    int32_t place_count;
    ptrdiff_t place_capacity;
    int32_t alive;
    struct note *score; // the others, and phrases
    ptrdiff_t score_count;
    struct phrase *phrases;
    struct block **blocks;    // by place
    struct storage **weights; // that are kept
    int32_t weight_count;
    struct guest guests[OUTSIDE_COUNT];
    struct arena *arena;
    struct var out; // forward
    int kept;
    struct tail tail;
    int32_t result; // place, and how it is left
    uint32_t result_references;
    bool result_is_view;
    bool brings; // its input from host memory, and
    bool gives;  // does not let it go: the next does
};

// A name for a parameter that means the same in every layer of a kind: its place in the layer, an
// adapter's by that of the weight; -1: it is in none.
int32_t stamp_name_of(const struct graph *g, const struct kin *k, int parameter);

// The parameter of a layer that has the name.
int stamp_parameter_of(const struct graph *g, const struct kin *k, int32_t name);

struct tail stamp_copy_tail(struct arena *a, const struct tail *t);

#endif
