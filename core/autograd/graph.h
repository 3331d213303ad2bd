// Eager autograd over sizes. Running an operator allocates what torch's would and adds a node that
// keeps what its backward needs; graph_backward then runs the nodes in torch's order, allocating
// gradients, adding up where paths meet, and letting go of what was kept. Recomputation under
// checkpointing is derived: the layer's own forward is run again, up to the last tensor that
// anything keeps. The nodes behind that one, the layer's tail, ask for nothing that was kept, so
// that torch runs them before it recomputes anything; the first forward pass notes them.
//
// What happens when, in torch 2.11 (torch/csrc/autograd/engine.cpp, torch/utils/checkpoint.py, and
// as recorded in tests/data/traces): a node computes its gradients; recomputed tensors it kept go;
// gradients of broadcast inputs are summed to shape; the incoming gradient goes; what it kept from
// the forward pass goes; the results are handed on, in order of its inputs.
#ifndef FATHOM_AUTOGRAD_GRAPH_H
#define FATHOM_AUTOGRAD_GRAPH_H

#include "core/autograd/machine.h"
#include "core/autograd/offload.h"
#include "core/autograd/stamp.h"
#include "core/model/cut.h"

enum { ARGUMENT_POSITIONS, ARGUMENT_COSINE, ARGUMENT_SINE, ARGUMENT_MASK, FRAME_ALSO };

enum { NODE_INPUTS = 3, NODE_SAVED = 8, NODE_DETAIL_BYTES = 24, NO_NODE = -1 };

// A tensor: its storage (one reference is the holder's) and the node it came from. Views share
// both.
struct var {
    struct storage *storage;
    int32_t node;
    uint32_t width; // bytes an element
    uint64_t elements;
    int place; // which name of a forward holds it (core/models/scope.h)
};

static inline uint64_t var_bytes(struct var v)
{
    return v.elements * v.width;
}

// A sum over rows needs scratch once it is split over thread blocks (ATen/native/cuda/Reduce.cuh).
struct reduction {
    uint64_t outputs, inputs_per_output;
};

// The gradient for one input before it is handed on.
struct outcome {
    struct storage *gradient;
    bool view;                         // reshaped on the way: torch will not add into it
    uint64_t reduced_bytes;            // not 0: summed to this size first
    uint64_t cast_bytes;               // not 0: cast to this size then
    const struct reduction *reduction; // by how many, or NULL: so few that no scratch is needed
};

struct engine;
struct frame;
struct graph;
struct node;

// A kind of node: what it does with a gradient that comes to it. The rows are those of core/ops,
// each beside its forward pass, and two of the engine's own.
struct operation {
    int kernels; // which bit of graph.loaded is theirs
    // Fills in the gradients for the node's inputs; n->gradient stays the node's.
    void (*backward)(struct graph *g, struct node *n, struct outcome out[NODE_INPUTS]);
    bool sizes_only; // its nodes' details say nothing but sizes, the same in layers that are alike
};

// Of those of operators so many come first that both passes load at once.
enum {
    KERNELS_PASS,
    KERNELS_CHECKPOINT,
    KERNELS_TILED,
    FIRST_KERNELS,
    SHARED_KERNELS = 12,
    MOST_KERNELS = 64
};

// The gradient goes on as it is, to every input (a leaf has none).
extern const struct operation operation_pass;

// A module with parameters of its own, named by its weight: when it is called and when that is
// over, forward and backward; and when another reads that weight without calling it.
enum module_moment {
    MOMENT_FORWARD,
    MOMENT_FORWARD_DONE,
    MOMENT_BACKWARD,
    MOMENT_BACKWARD_DONE,
    MOMENT_READ
};

struct node {
    const struct operation *operation;
    int32_t inputs[NODE_INPUTS]; // node, NO_NODE, or a parameter (see input_of_parameter)
    int saved_count;
    uint64_t input_bytes[NODE_INPUTS];
    struct storage *gradient;
    bool gradient_is_view;
    bool has_gradient;
    int frozen_module;   // not 0: one more than the frozen weight whose module it is
    struct frame *frame; // the checkpoint it was recomputed for, or the one it stands for
    _Alignas(uint64_t) unsigned char detail[NODE_DETAIL_BYTES]; // the operator's own
    struct storage *saved[NODE_SAVED];
};

// A node's detail as its operator's type; zeros in a new node.
#define NODE_DETAIL(n, type) ((type *)node_detail(n, sizeof(type)))
void *node_detail(struct node *n, ptrdiff_t bytes);

// The nodes of a frame behind the last that keeps anything, and behind these one that stands for
// each node before them that a gradient of theirs goes to; indices are counted from the first.
struct tail {
    struct node *nodes;
    int32_t count, all;
    int32_t out; // where the frame's own gradient enters
};

// One checkpointed call: enough to run it again.
struct frame {
    void (*forward)(struct graph *g, struct var *out, struct var in, void *what);
    void *what;
    struct var input;
    bool input_on_host;
    struct var also[FRAME_ALSO]; // other arguments, held as long
    int kept;                    // tensors the forward would keep
    int kept_so_far;             // while it is run again
    int releases_left;
    int32_t last_keeper; // the last node that keeps anything, in the first run
    int32_t leaf;        // its input's node, while it is run
    bool exposes;        // a tensor of it is used outside too: the node before its own waits for
    int32_t exposed;     // that one's gradient; its node, when it is run again
    struct tail tail;
    struct kin kin;
};

// A weight with its change added, in its place while peft's wrapper around the module has it there
// (core/ops/folded.c).
struct folded {
    struct var left, right; // the change's factors, or all of it
    struct var weight;      // once it has been asked for
    bool is_made;
};

struct parameter {
    const char *name;
    int layer; // that it is in; 0 also where it is in none
    uint64_t rows, columns;
    uint32_t width;           // bytes an element of the weight in use
    enum tensor_cut cut;      // over tensor parallel ranks: rows and columns are this rank's
    struct storage *weight;   // what operators use
    struct storage *cast;     // in bf16, while autocast's cache has it
    bool is_view;             // of something larger, which autocast's cache never has
    struct storage *gradient; // in `width`
    bool gradient_is_view;    // its first sum with another is out of place
    int ready;                // when its gradient came, among those of a backward pass
    bool tied;                // the embedding is the head too: what comes is gathered first
    struct storage *earlier;  // meanwhile: its gradient of earlier micro-batches
    bool frozen;              // gets no gradient
    bool idle;                // and frozen: it would be trained, but no gradient comes
    bool packed;              // four bits an element
    bool single;              // and scales in fp32, not packed themselves
    struct storage *whole;    // of a shard, while its reader has it
    int adapter;              // not 0: lora_A of this weight; lora_B is the next parameter
    int magnitude;            // not 0: DoRA's, the one behind these
    int original;             // not 0: the frozen weight that this one is a trained copy of
    bool folds;               // its adapter is added to the weight, whose layer is no linear one
    struct folded *folded;    // meanwhile
};

// Of an adapted weight: how many parameters stand behind the one that `adapter` names, it included.
static inline int adapter_tensors(const struct parameter *p)
{
    return !p->adapter ? 0 : p->magnitude ? 3 : 2;
}

struct graph {
    struct machine *machine;
    struct node *nodes;
    int32_t count;
    ptrdiff_t capacity;
    struct parameter *parameters;
    int parameter_count;
    int ready_count;
    bool recording;            // nodes are added
    bool keeping;              // nodes keep tensors
    bool stopped;              // recomputation is past the last kept tensor
    bool in_backward;          // on autograd's thread
    bool checkpoints_on_host;  // inputs of checkpointed calls wait there
    bool reentrant;            // checkpointed calls are run again as a graph of their own
    bool adapters_drop;        // before each adapter
    uint32_t adapter_rest;     // width of adapters when peft asks for it, before FSDP1 gathers them
    bool holds_leaves;         // their inputs and the gradients of these stay until the end
    bool embedding_is_leaf;    // the frozen embedding's output requires a gradient
    struct host_stash offload; // of what is kept
    struct frame *frame;       // being recomputed, or counted
    uint64_t loaded[2];        // kernels, by operator: of forward passes, of backward ones
    bool gemm_ready[2];        // a cuBLAS workspace exists: forward thread, backward thread
    bool fused_bias_ready[2];  // and one of cuBLASLt, which adds biases
    uint64_t gemm_workspace_bytes;
    bool convolves;            // cuDNN cuts patches: without cuBLAS and its workspaces
    uint16_t parameter_stream; // that the parameters in use were made on
    uint64_t exchange_ranks;   // of Ulysses
    uint64_t tensor_ranks;     // that share cut weights
    bool flash;                // attention by FlashAttention, else by cuDNN
    bool wide;                 // attention in fp32
    bool efficient;            // by torch's memory-efficient kernel, in place of both
    bool flash3;               // by its third version
    uint64_t sample_tokens;    // that FlashAttention knows apart; 0: a sequence is one sample
    bool attention_waits;      // the host looks at the positions on the card before each attention
    bool autocast;             // fp32 weights, products in bf16: each weight is cast once
    bool without_adapters;     // those of its weights are switched off
    bool flat;                 // inputs of linear layers are matrices
    struct storage **casts;    // of this autocast context
    ptrdiff_t cast_count, cast_capacity;
    struct storage **leaves; // that are held
    ptrdiff_t leaf_count, leaf_capacity;
    uint64_t multiprocessors, threads_per_multiprocessor;
    enum memory_kind kind;                   // of what operators allocate
    struct var shared_arguments[FRAME_ALSO]; // of every checkpointed call
    struct kin kin;                          // of the next
    struct stamps *stamps;
    // Called where the gradient enters a sharded unit (false) and where it has left it (true).
    void (*boundary)(struct graph *g, int unit, bool left);
    // Called at a module's moments; may be NULL. While it is there, linear layers are DeepSpeed's.
    void (*module)(struct graph *g, int parameter, const struct operation *operation,
                   enum module_moment moment);
    // Called before and after an adapter's factor in a forward pass, not where that is recomputed;
    // may be NULL.
    void (*adapter)(struct graph *g, int parameter, bool done);
    // Called once an operator's gradient has been given to a parameter; may be NULL.
    void (*gradient_ready)(struct graph *g, int parameter);
    void *owner;
    struct engine *engine; // core/ops/engine.h; NULL: no module of TransformerEngine is used
};

int32_t input_of_parameter(int parameter);
int parameter_of_input(int32_t input); // that is one

// What a sum over rows takes and gives back (reduction.c).
void reduction_scratch(struct graph *g, const struct reduction *r);

// The host's part of an operator: Python, the dispatcher, autograd's node.
void graph_called(struct graph *g);

struct node *graph_add(struct graph *g, const struct operation *operation);
void graph_keep(struct graph *g, struct node *n, struct storage *s); // NULL nodes and storages pass

// Whether what nodes keep goes to host memory; then in two moves, where a node packs what it keeps
// in another order than it lets it go, or keeps views.
bool graph_offloads(const struct graph *g);
struct storage *graph_packed(struct graph *g, struct storage *s, enum laid laid);
void graph_keep_packed(struct node *n, struct storage *s);

// What was recomputed is the backward function's own: it goes when that has returned, before its
// gradients are summed or cast to what they are for (engine.cpp, validate_outputs).
void graph_forget_recomputed(struct graph *g, struct node *n);

// A node, unless no gradient is wanted for its only input, which comes from no node then.
struct node *graph_add_for(struct graph *g, const struct operation *operation, struct var x);

struct var graph_output(struct graph *g, struct node *n, uint64_t elements, uint32_t width);

void var_drop(struct graph *g, struct var *v);
struct var var_share(struct var v);

// Runs `forward` as torch.utils.checkpoint does; `what` must live until the backward pass is over.
struct var graph_checkpoint(struct graph *g, struct var in,
                            void (*forward)(struct graph *g, struct var *out, struct var in,
                                            void *what),
                            void *what);

// A tensor that is used outside of the checkpointed call it is made in, and that the caller gets
// once more; nothing when the call is run again. One a call.
struct var graph_expose(struct graph *g, struct var x);

// Runs `forward` over pieces of the input of so many elements, joins what they give, and keeps the
// input only: each piece is run again, with a backward pass of its own, when the gradient comes
// (DeepSpeed 0.19.8, runtime/sequence_parallel/ulysses_sp.py, TiledMLP).
struct var graph_tiled(struct graph *g, struct var in, uint64_t elements,
                       void (*forward)(struct graph *g, struct var *out, struct var in, void *what),
                       void *what);

// The gradient of a parameter, from one of its uses.
void graph_give(struct graph *g, int parameter, const struct outcome *o);

void graph_at_module(struct graph *g, int parameter, const struct operation *operation,
                     enum module_moment moment);

void graph_at_adapter(struct graph *g, int parameter, bool done); // around one of its factors

// What follows is this parameter's own: its weight, its shard, its optimizer's state.
void graph_at_parameter(struct graph *g, int parameter);

// Autocast's cache of weights in bf16: takes one reference over; all go at the end of the context.
void graph_hold_cast(struct graph *g, struct storage *s);
void graph_end_autocast(struct graph *g);

// From the scalar loss back to every parameter; drops the loss.
void graph_backward(struct graph *g, struct var loss);

// From any tensor and its gradient; takes both over.
void graph_backward_from(struct graph *g, struct var out, struct storage *gradient);

#endif
