// What an inference server makes of a card, as vLLM and SGLang compute it before they answer
// anyone: the weights that each GPU holds, what profiling or a fixed reserve takes, the cache of
// keys and values that is left, and how many tokens and sequences it holds. Nothing is simulated
// here: both programs divide memory by rules, which are written down with the version that has
// them.
//
// Read: vLLM a014e35 (2026-08-22) and its tags, SGLang cce0a12 (2026-08-23).
#ifndef FATHOM_SERVE_SERVE_H
#define FATHOM_SERVE_SERVE_H

#include "core/hardware/hardware.h"
#include "core/model/model.h"

enum server { SERVER_VLLM, SERVER_SGLANG };

const char *server_name(enum server s); // "vLLM"

// 0.19.1 is 19001. What has no version is the newest modelled.
#define SERVER_VERSION(minor, patch) ((uint64_t)(minor) * 1000 + (patch))
#define SERVER_NEWEST                UINT64_MAX

// How weights are packed, and which.
struct weight_format {
    const char *name;  // "fp8"
    const char *words; // what names and logs call it, space-separated
    uint64_t per_1024; // bytes of 1024 elements with their scales; 0: those of the computation
    bool experts_only; // the rest is as it is
    bool padded;       // experts are padded to what their kernels read at once
    const char *refused;
};

struct element_type {
    const char *words;
    uint64_t bytes;
};

struct serve_request {
    const struct model *model;
    struct str weights; // where they are: the hub's id, or a folder
    struct parameters parameters;
    const struct hardware *hardware;
    enum server server;
    uint64_t version;
    uint64_t tp, pp, context;
    uint64_t thousandths; // of the card, or of what is free; 0: as the server chooses
    uint64_t sequences, batch_tokens, chunk, graph_batch, most_tokens; // 0: likewise
    bool eager;
    const struct weight_format *format;
    uint64_t element_bytes, cache_bytes; // of a number in the computation, and in the cache
};

// Reads and checks a request's settings.
bool serve_read(struct serve_request *r, struct arena *a, const struct settings *s,
                struct error *e) MUST_USE;

// Refuses what a model's name says of it and nothing here models.
bool serve_check_name(const struct settings *s, struct error *e) MUST_USE;

bool serve_divides(const struct model *m, uint64_t tp); // whether so many GPUs can share it

// From "bf16", "fp8", "bf16 (compressed-tensors w8a8)", a model's name and its configuration.
bool serve_read_types(struct serve_request *r, const struct settings *s, struct error *e) MUST_USE;

// The layers [first, end) that a pipeline stage has.
struct stage {
    uint64_t first, end;
    bool is_first, is_last;
};
struct stage stage_of(const struct serve_request *r, uint64_t index);

// Bytes of weights on a GPU of that stage, tables of positions included.
uint64_t stage_weights(const struct serve_request *r, const struct stage *s);

// Elements of one tensor of the model on a GPU.
uint64_t tensor_share(const struct serve_request *r, const struct tensor *t);

// The cache.
struct cache_layout {
    uint64_t block;        // tokens of a block
    uint64_t block_bytes;  // of all layers of a group
    uint64_t groups;       // of layers that share the pool, each with blocks of its own
    uint64_t full_groups;  // of these, attending to everything
    uint64_t state_groups; // of linear attention: a block a sequence
    uint64_t token_bytes;  // SGLang: of a token in all layers
    uint64_t state_bytes;  // SGLang: of a sequence in layers of linear attention
    bool is_hybrid;        // layers differ
    bool windowed;         // all of them, or some, attend to a window
};
struct cache_layout cache_layout_of(const struct serve_request *r);

struct cache_answer {
    uint64_t tokens;    // as the server prints them
    uint64_t sequences; // of the wanted length at once
    uint64_t one;       // bytes that one such sequence takes
    uint64_t longest;   // sequence that it holds, up to the model's positions
};
struct cache_answer cache_answer_of(const struct serve_request *r, const struct cache_layout *l,
                                    uint64_t bytes);

// Seconds and rates; low and high are of tokens a second.
struct serve_speed {
    bool known;
    uint64_t batch;
    double seconds, tokens_per_second, low, high;
};

enum serve_verdict {
    SERVES,
    LACKS_WEIGHTS,   // they alone do not fit
    LACKS_FREE,      // more is asked for than is free
    LACKS_CACHE,     // nothing is left for keys and values
    LACKS_SEQUENCE,  // not one sequence of the wanted length
    LACKS_POSITIONS, // the model has not as many
    LACKS_OUTSIDE,   // SGLang: too little is left beside the budget
};

struct server_state {
    enum serve_verdict verdict;
    uint64_t card, free;                 // bytes, and those at start
    uint64_t budget;                     // vLLM: what it may use; SGLang: weights and cache
    uint64_t weights, activation, other; // on the tightest GPU
    uint64_t graphs;                     // captured, as estimated
    bool graphs_counted;                 // within the budget
    uint64_t cache, lacking;
    uint64_t outside; // SGLang: free beside weights and cache
    uint64_t asleep;  // that stays on the card when weights and cache have left it
    uint64_t thousandths, sequences, batch_tokens, chunk, graph_batch;
    struct cache_layout layout;
    struct cache_answer holds;
    struct serve_speed decode, alone, prefill;
};

void server_of(struct server_state *a, const struct serve_request *r);
bool server_starts(const struct server_state *a);

// The least change under which it starts; false where none was found.
enum serve_remedy { REMEDY_NONE, REMEDY_FRACTION, REMEDY_CONTEXT, REMEDY_SEQUENCES, REMEDY_TP };
struct serve_change {
    enum serve_remedy kind;
    uint64_t value;
};
struct serve_change serve_remedy_of(const struct serve_request *r);

// The next sentence about what nobody measured of such a request, from row *i on, which moves
// behind it; NULL after the last.
const char *serve_doubt(const struct serve_request *r, ptrdiff_t *i);

// What follows from the version of a server.
struct server_rules {
    uint64_t thousandths;       // vLLM: of the card, where nothing is said
    uint64_t sampler_hundredth; // copies of the logits in fp32 that sampling makes
    bool sampler_buffer;        // and a row of them for each multiprocessor
    bool graphs_counted;        // an estimate of CUDA graphs is taken off
    uint64_t outside, outside_tp;
    bool workspaces; // of experts stay while tokens are sampled
    bool whole_prompts;
};
struct server_rules server_rules_of(const struct serve_request *r);

// SGLang's choice of its fraction, chunks and graphs.
struct sglang_choice {
    uint64_t thousandths, chunk, graph_batch;
};
struct sglang_choice sglang_choice_of(const struct serve_request *r);

// What a forward pass of so many tokens takes at once on a GPU, without the tail.
uint64_t forward_bytes(const struct serve_request *r, uint64_t tokens);

// What a profiling run takes at once, on the last stage of a pipeline or before it.
uint64_t profile_bytes(const struct serve_request *r, const struct server_rules *rules, bool last);
uint64_t graph_bytes(const struct serve_request *r);

// What the log-probabilities of a prompt take at once, as a teacher gives them; outside of all that
// the server counts.
uint64_t score_bytes(const struct serve_request *r);
void vllm_batch_of(struct serve_request *r); // what is not given becomes the default

void serve_speeds(struct server_state *a, const struct serve_request *r);

#endif
