// What a language model is made of: its shapes, layer by layer, and from them every parameter
// tensor. A model comes from flat settings, either a row of the catalogue or a config.json that the
// host flattened under "config."; both take the same road.
//
// What distinguishes one family from another is data: a row of the family table (features, defaults
// that transformers assumes when config.json is silent) and rows of the tensor table (which tensor
// exists under which feature, and its shape). A new family is rows, not code.
#ifndef FATHOM_MODEL_MODEL_H
#define FATHOM_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"
#include "core/model/cut.h"
#include "core/settings/settings.h"

// What a model has, as bits of a set.
__extension__ typedef unsigned __int128 feature_set;
#define FEATURE(n)            ((feature_set)1 << (n))
#define FEATURE_TIED          FEATURE(0) // the head is the embedding
#define FEATURE_QKV_BIAS      FEATURE(1) // biases on the query, key and value projections
#define FEATURE_OUTPUT_BIAS   FEATURE(2) // a bias on the attention's output projection
#define FEATURE_MLP_BIAS      FEATURE(3) // biases on the MLP's projections
#define FEATURE_QK_NORM       FEATURE(4) // a norm over each head of q and k
#define FEATURE_POST_NORMS    FEATURE(5) // norms after attention and MLP too, before the residual sum
#define FEATURE_SINKS         FEATURE(6)  // one learned attention sink a head
#define FEATURE_MLA           FEATURE(7)  // multi-head latent attention
#define FEATURE_QUERY_LORA    FEATURE(8)  // MLA with a low-rank query too
#define FEATURE_EXPERTS       FEATURE(9)  // some layers are mixtures of experts
#define FEATURE_SHARED_EXPERT FEATURE(10) // an expert that sees every token
#define FEATURE_EXPERT_BIAS   FEATURE(11) // biases inside experts and on the router
#define FEATURE_ATTENTION_CAP FEATURE(12) // soft-capped attention scores
#define FEATURE_LOGIT_CAP     FEATURE(13) // soft-capped logits
#define FEATURE_VISION_QWEN3  FEATURE(14) // Qwen3-VL's tower: merger and deepstack mergers
#define FEATURE_VISION_SIGLIP FEATURE(15) // SigLIP tower and Gemma's projector
#define FEATURE_VISION_POOLED FEATURE(31) // and SigLIP's pooling head, whose output nobody reads
#define FEATURE_VISION_WINDOWS \
    FEATURE(120) // Qwen2.5-VL's tower: most of its blocks attend within windows
#define FEATURE_ROUTER_BALANCE \
    FEATURE(16) // a balancing bias a routed expert, kept with the weights
#define FEATURE_NORM_FROM_ONE     FEATURE(17) // norms scale by one plus their weight, in fp32
#define FEATURE_NORM_WIDE         FEATURE(18) // norms multiply by their weight in fp32
#define FEATURE_NORMS_AFTER       FEATURE(19) // two norms a layer, after attention and MLP only
#define FEATURE_QK_NORM_WIDE      FEATURE(20) // with FEATURE_QK_NORM: over all heads together
#define FEATURE_QK_NORM_LATE      FEATURE(21) // with FEATURE_QK_NORM: when v has been projected too
#define FEATURE_EMBEDDING_SCALE   FEATURE(22) // embeddings are multiplied by a constant
#define FEATURE_FUSED_PROJECTIONS FEATURE(23) // q, k and v are one matrix
#define FEATURE_ROTARY_PART       FEATURE(24) // a first part of each head is rotated, the rest joined
#define FEATURE_ROTARY_HALVES     FEATURE(25) // rotary positions for half a head, which is cut in two
#define FEATURE_ROTARY_WIDE       FEATURE(26) // rotary positions in fp32
#define FEATURE_LOCAL_ROTARY      FEATURE(27) // layers with a window have rotary positions of their own
#define FEATURE_ROUTER_WIDE       FEATURE(28) // experts are weighed in fp32
#define FEATURE_ROUTER_FIRST      FEATURE(29) // the router comes before the experts
#define FEATURE_MULTIPLIERS \
    FEATURE(30) // embeddings, residuals and logits are multiplied by numbers
#define FEATURE_FUSED_MLP    FEATURE(40) // gate and up are one matrix
#define FEATURE_ROTARY_PAIRS FEATURE(41) // neighbours are turned, their angles repeated
#define FEATURE_PARTS_LATE \
    FEATURE(42) // with FEATURE_ROTARY_PART: joined when q and k have both been turned
#define FEATURE_QK_NORM_TURNED FEATURE(43) // with FEATURE_QK_NORM: behind the positions
#define FEATURE_WINDOWED_ROTARY \
    FEATURE(44) // where some layers have a window, others have no positions
#define FEATURE_ROTARY_CAST   FEATURE(45) // q and k are turned in fp32
#define FEATURE_FURTHER_NORMS FEATURE(46) // FEATURE_POST_NORMS under other names
#define FEATURE_PARTS_NAMED   FEATURE(48) // with FEATURE_PARTS_LATE: parts live as long
#define FEATURE_PARTS_HELD    FEATURE(49) // or as long as attention
#define FEATURE_NORM_CENTERED FEATURE(50) // Cohere's norms: the mean is taken off
#define FEATURE_LAYER_NORM    FEATURE(51) // torch's layer norms, with biases
#define FEATURE_NORM_PLUS_ONE FEATURE(52) // with FEATURE_LAYER_NORM: one plus their weight
#define FEATURE_PARALLEL      FEATURE(53) // attention and MLP have the same input
#define FEATURE_ONE_NORM      FEATURE(54) // with FEATURE_PARALLEL: and the same norm
#define FEATURE_NO_GATE       FEATURE(55) // the MLP is two matrices
#define FEATURE_LOGIT_SCALE   FEATURE(56) // logits are multiplied by a number
#define FEATURE_POSITIONS     FEATURE(59) // a learned row for each position
#define FEATURE_HEAD_BIAS     FEATURE(57)
#define FEATURE_SPLIT_PROJECTIONS \
    FEATURE(58) // with FEATURE_FUSED_PROJECTIONS: their gradients are joined
#define FEATURE_QUERY_SCALE FEATURE(47) // queries are multiplied by a number a position
#define FEATURE_NO_ROTARY   FEATURE(60) // nothing is turned
#define FEATURE_HEADS_LAST \
    FEATURE(61) // with FEATURE_SPLIT_PROJECTIONS: laid out as heads behind the split
#define FEATURE_QUERIES_SCALED FEATURE(63) // queries are multiplied by a number
#define FEATURE_WIDE_SCORES    FEATURE(39) // GPT-J: attention in fp32, written out
#define FEATURE_ALIBI          FEATURE(62) // a bias a head and key instead of positions
#define FEATURE_SCORES_BIASED  FEATURE(33) // MPT: such a bias in fp32, added to written-out scores
#define FEATURE_NORM_UNBIASED  FEATURE(34) // layer norms without biases
#define FEATURE_MASKED         FEATURE(35) // attention is always given a mask
#define FEATURE_KEYS_BIASED    FEATURE(70) // in which there is a bias a head and key
#define FEATURE_WORDS_PROJECTED \
    FEATURE(37) // words have vectors of another size, brought to the layers' and back
#define FEATURE_NORMS_BEHIND FEATURE(38) // a layer's norms follow its sums, and no last one does
#define FEATURE_HEADS_AMONG  FEATURE(36) // Falcon: heads are picked out of their one product

#define FEATURE_ROUTER_LOSS  FEATURE(32) // its configuration weighs a loss of the routers
#define FEATURE_ROUTER_PLAIN FEATURE(96) // a token's chances are not made to sum up to one
#define FEATURE_ROUTER_SIGMOID \
    FEATURE(97) // sigmoid scores of logits in the model's type, with a balancing bias
#define FEATURE_ROUTER_LAST    FEATURE(98)  // of logits in fp32, normed when they are chosen
#define FEATURE_ROUTER_SOFTMAX FEATURE(99)  // in fp32 throughout, scaled and not normed
#define FEATURE_ROUTER_GROUPS  FEATURE(100) // of which groups are chosen first
#define FEATURE_SHARED_GATE \
    FEATURE(101) // the shared expert is computed first and weighed by a gate of its own
#define FEATURE_SHARED_FUSED    FEATURE(102) // its gate and up are one matrix
#define FEATURE_NORMS_FIRST     FEATURE(103) // modules: a layer's norms before its experts
#define FEATURE_ROTARY_COMPLEX  FEATURE(104) // positions are complex numbers
#define FEATURE_IDLE_MASK       FEATURE(105) // a mask for windows is made, be there none
#define FEATURE_DELTA_NET       FEATURE(106) // layers of linear attention among the others
#define FEATURE_DELTA_FUSED     FEATURE(107) // whose projections are two matrices, not four
#define FEATURE_GATED_ATTENTION FEATURE(108) // gates beside the queries
#define FEATURE_EXPERTS_DENSE   FEATURE(109) // every expert sees every token, weighed
#define FEATURE_ROUTER_STATICS \
    FEATURE(111)                          // Ernie: chances in fp32, chosen with a bias, then normed
#define FEATURE_SHARED_FIRST FEATURE(112) // the shared expert is computed first and added
#define FEATURE_L2_NORM      FEATURE(110) // q and k that were turned are normed, unweighed

struct feature_name {
    feature_set bit;
    const char *name; // as `fathom models` shows it
};
extern const struct feature_name feature_names[];
extern const ptrdiff_t feature_name_count;

enum window_rule {
    WINDOW_NEVER,          // no sliding window, whatever the configuration says
    WINDOW_ALL,            // every layer slides when a window is given
    WINDOW_IF_SWITCHED_ON, // use_sliding_window, from layer max_window_layers on
    WINDOW_PERIODIC,       // all but every n-th layer slide
};

// Switches of a configuration that a family's code reads; others read past them.
enum family_reads {
    READS_ATTENTION_BIAS = 1 << 0, // biases on all four attention projections
    READS_MLP_BIAS = 1 << 1,
    READS_SOFTCAPS = 1 << 2, // null turns a cap off
    READS_QKV_BIAS = 1 << 3, // attention_bias is of q, k and v only
    READS_OUTPUT_BIAS = 1 << 4,
    READS_USE_BIAS = 1 << 5, // on all projections of a layer
    READS_DROPOUT = 1 << 6,
    READS_USE_QKV_BIAS = 1 << 7,
    READS_USE_QK_NORM = 1 << 8,
    READS_PARALLEL = 1 << 9, // use_parallel_residual
    READS_ENABLE_BIAS = 1 << 10,
    READS_MULTI_QUERY = 1 << 11, // one head of keys and values
    READS_HEADS_ONLY = 1 << 13,  // as many of keys and values, whatever is said of those
    READS_HALF_MLP = 1 << 14,    // intermediate_size is of gate and up together
    READS_FALCON = 1 << 12,      // bias, new_decoder_architecture and what follows from it
    READS_NORM_PLACE = 1 << 15,  // do_layer_norm_before
    READS_POSITIONS = 1 << 16,   // position_embedding_type: rope, or nothing is turned
    READS_QK_NORM = 1 << 20,     // use_qk_norm, over each head
    READS_L2_NORM = 1 << 21,     // use_qk_norm, without weights
    READS_NORM_TOPK = 1 << 22,   // whether a token's chances sum up to one
};

// Values that training sets to zero at random.
struct dropouts {
    bool residual;  // what attention and MLP give
    bool embedding; // what the first layer is given
    bool attention; // its weights
};

struct family {
    const char *model_type; // of config.json
    const char *title;
    feature_set features; // always, unless the configuration turns one off
    unsigned reads;       // enum family_reads
    bool nested;          // shapes are under text_config
    bool unmeasured;      // no run of it stands behind predictions
    enum window_rule window;
    uint64_t window_period;  // WINDOW_PERIODIC: layers n-1, 2n-1, ... attend to everything
    bool counted_only;       // its step is not modelled
    bool causal_buffer;      // a mask of all positions is a buffer of the model
    bool scores_nothing;     // transformers has no head of it over a sequence
    bool floors_heads;       // heads of a width that does not divide are made narrower
    struct dropouts modules; // of its dropouts, those that are an nn.Dropout
    const char *refuses;     // switches that are not modelled
    const char *names;       // "q_proj=query ^norm=ln_f": other names of modules; ^ begins one
    const char *defaults;    // "key=value ..." that transformers assumes
};

struct layer_kind {
    bool sliding;   // attends to a window only
    bool experts;   // its MLP is a mixture of experts
    bool unrotated; // q and k have no positions
    bool linear;    // a gated delta net in attention's place
};

struct experts {
    uint64_t count, per_token, intermediate;
    uint64_t shared_intermediate; // all shared experts together
};

struct latent_attention {
    uint64_t query_rank, kv_rank; // query_rank 0: full-rank queries
    uint64_t nope_head_dim, rope_head_dim, value_head_dim;
};

// What an MLP without a gate does between its matrices.
enum activation_kind {
    ACTIVATION_FUSED,
    ACTIVATION_RELU,
    ACTIVATION_RELU2,
    ACTIVATION_GELU_NEW,
    ACTIVATION_BLOOM,
};

struct delta_net {
    uint64_t key_heads, value_heads, key_head_dim, value_head_dim, kernel;
};

enum { MOST_DEEPSTACK = 8, MOST_FULL = 16 };
struct vision {
    uint64_t depth, hidden, intermediate, heads;
    uint64_t patch, temporal_patch, channels, merge, positions, out_hidden, deepstack;
    uint64_t deepstack_after[MOST_DEEPSTACK]; // the blocks whose output is merged too
    uint64_t window;                          // pixels of a side, 0: every block sees all
    uint64_t full, full_at[MOST_FULL];        // how many blocks see all, and which
};

// What a model's card says beside its configuration.
struct native {
    uint64_t length;      // it was trained for, where that is less than its positions; 0: as many
    uint64_t yarn_length; // its makers tried with YaRN; 0: they say nothing
};

struct model {
    struct str name;
    struct str source;             // "catalogue", "config.json"
    const struct packing *packing; // of its weights; NULL: none
    const struct family *like;     // predicted as that family, which it is not; NULL: as what it is
    const struct catalog_model *likened; // whose shapes it is given for its name; NULL: its own
    const struct served_model *served;   // what is known of its tower; NULL: it is whole
    const struct family *family;
    feature_set features;
    uint64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab;
    uint64_t labels;   // scores of a sequence, where they take the place of the head over words
    bool unties_words; // its embedding from a head that its configuration ties to it
    uint64_t max_position;
    struct native native;
    uint64_t sliding_window; // 0: none
    uint64_t rotary_dim;     // of a head's head_dim
    uint64_t rotary_table;   // positions with what stretches them: rows of a server's table
    uint64_t first_position; // rows of learned positions before the first
    uint64_t word_width;     // of an embedded word, where it is not the layers'
    struct experts experts;
    struct latent_attention latent;
    struct dropouts dropouts;
    enum activation_kind activation;
    struct delta_net delta;
    struct vision vision;
    const struct layer_kind *layer; // [layers]
};

// Reads the settings "model" (a catalogue name) or "config.*" (a flattened config.json, "model" is
// then only its name), and "layers" and "tied".
bool model_from_settings(struct model *m, struct arena *a, const struct settings *s,
                         struct error *e) MUST_USE;

// The same for a server, which also knows models of `served_models`.
bool served_model_from_settings(struct model *m, struct arena *a, const struct settings *s,
                                struct error *e) MUST_USE;

bool model_has(const struct model *m, feature_set f);
uint64_t model_expert_layers(const struct model *m);
uint64_t model_sliding_layers(const struct model *m);

uint64_t native_length(const struct native *t, uint64_t max_position);

// "has 40960 positions, was trained for 32768".
void put_positions(struct buf *b, uint64_t max_position, const struct native *t);

// A sentence where YaRN would have to stretch a model further than anyone vouches for; else empty.
struct str native_warning(struct arena *a, struct str name, uint64_t max_position,
                          const struct native *t, uint64_t length);

// ------------------------------------------------------------------ images

// An image as the model's processor cuts it, in patches.
struct image_grid {
    uint64_t height, width;
};

// Of a model with a vision tower. False where the processor would refuse such a shape.
bool image_grid_of(struct image_grid *grid, const struct model *m, uint64_t width, uint64_t height);

// The windows of such an image that Qwen2.5-VL attends within, and a side of one in merged patches;
// where there are none, the image and all of it.
uint64_t image_windows(const struct model *m, struct image_grid grid);
uint64_t image_window(const struct vision *v);

// Tokens of the text that such an image takes the place of, without the two markers around them.
uint64_t image_tokens(const struct model *m, struct image_grid grid);

// ------------------------------------------------------------------ the catalogue

struct catalog_model {
    const char *name;
    const char *owner;      // on the Hugging Face hub
    const char *model_type; // its family; NULL in a variant
    const char *config;     // "key=value ..." as config.json has them
    const char *like;       // a variant: the row it shares all but `config` with
    const char *also;       // the hub's other names with the same configuration, space-separated
    const char *nick;       // names that the hub does not have, the same way
    const char *hub;        // the hub's name, where it has none that is `name`
    struct native native;   // not what the row that it is like says
};
extern const struct catalog_model named_models[]; // more of them, with the names people use
extern const ptrdiff_t named_model_count;
extern const struct catalog_model further_models[];
extern const ptrdiff_t further_model_count;

const struct catalog_model *catalog_model_at(ptrdiff_t i); // NULL: there are no more

// Models whose families are not modelled.
struct known_model {
    const char *model_type;
    uint64_t millions; // of parameters, about
    const char *names; // the hub's, with their owners
};
extern const struct known_model known_models[];
extern const ptrdiff_t known_model_count;

// The row of such a model; NULL where the name is none of them.
const struct known_model *known_model_find(struct str name);

// Case is forgiven, and a missing owner, and how the parts of a name are set apart; another owner
// is another model.
const struct catalog_model *catalog_model_find(struct str name);

// Where the weights of the model under that setting are: the hub's id of a catalogue row, the place
// of the caller's file or folder (scripts change to their own, where a relative one would be
// another's id), or what was named.
struct str model_weights_place(struct arena *a, const struct settings *s, const char *setting);

// What the end of a name says of its weights: packed, so that they are not what trains.
struct packing {
    const char *suffix;
    const char *name;
    bool nf4;           // bitsandbytes' 4 bits, which adapters train over
    const char *served; // what servers call it
};
extern const struct packing packings[];
extern const ptrdiff_t packing_count;

// A text model of the catalogue under a tower of which only the weights are known: servers are
// asked for it, training is not.
struct served_model {
    const char *name, *owner;
    const char *like;       // the text model
    uint64_t positions;     // instead of that one's
    uint64_t whole, shared; // elements of tower and projector: on every GPU, and divided over them
    uint64_t image_tokens;  // of the largest image
    uint64_t patch_width;   // elements that a patch has at once in the tower
    uint64_t patches;       // of one token
};
extern const struct served_model served_models[];
extern const ptrdiff_t served_model_count;

// What the catalogue knows of a name: a row by its own name, else that of its weights' base, else
// one that another owner's model bears the name of, else one whose name is part of it; NULL where
// there is none.
struct catalog_answer {
    const struct catalog_model *row;
    const struct packing *packing;     // NULL: its weights are plain
    bool likened;                      // another owner's, or one whose name is part of this
    const struct served_model *served; // NULL: the row is the whole model
};
struct catalog_answer catalog_model_answer(struct str name);

// "weights in NVFP4 are": what a name says of its model that nothing here models; else NULL.
const char *model_name_unmodelled(struct str name);

// Fails with "unknown model", naming the nearest known one.
bool catalog_model_unknown(struct str name, struct str where, struct error *e);

// ------------------------------------------------------------------ parameters

enum part {
    PART_EMBEDDING,
    PART_ATTENTION,
    PART_MLP,
    PART_EXPERTS,
    PART_SHARED_EXPERTS,
    PART_ROUTER,
    PART_NORMS,
    PART_HEAD,
    PART_VISION,
    PART_COUNT,
};

const char *part_name(enum part p); // "shared experts"
const char *part_key(enum part p);  // "shared_experts", as JSON spells it

// Where a tensor occurs.
enum place {
    PLACE_MODEL,
    PLACE_LAYER,
    PLACE_ATTENTION_LAYER,
    PLACE_LINEAR_LAYER,
    PLACE_DENSE_LAYER,
    PLACE_EXPERT_LAYER,
    PLACE_VISION_BLOCK,
    PLACE_VISION_DEEPSTACK,
};

// What a layer's forward calls its parameters: their numbers while training, -1 where a family has
// none. A row of the tensor table names the member that it fills.
struct layer_parameters {
    int first; // in the modules' order
    int q, k, v, o;
    int qkv, qkv_bias;                                              // instead of q, k and v
    int q_a, q_a_bias, q_a_norm, q_b;                               // of latent attention
    int kv_a, kv_a_bias, kv_a_norm, kv_b;                           // likewise
    int delta_shift, delta_rate, delta_conv, delta_norm, delta_out; // of a gated delta net
    int delta_qkv, delta_z, delta_b, delta_a, delta_qkvz, delta_ba;
    int sinks;
    int q_bias, k_bias, v_bias, o_bias;
    int gate_bias, up_bias, down_bias;
    int q_norm, k_norm;
    int gate, up, down; // gate and up: -1 where they are one
    int gate_up;        // of an MLP, or of all experts, an expert a row
    int experts_down, router;
    int gate_up_bias, experts_down_bias, router_bias;
    int shared_gate, shared_up, shared_down;
    int shared_gate_up; // instead of the first two
    int shared_weight;  // of the shared expert's own gate
    int input_norm, before_mlp_norm;
    int input_norm_bias, before_mlp_norm_bias; // each behind its norm
    int after_attention_norm, after_mlp_norm;
};

// The same of a vision tower: of what it has once, of a block, of a merger beside the last.
struct vision_parameters {
    int first;
    int patch, patch_bias, positions;
    int norm, norm_bias, norm2, norm2_bias;
    int qkv, qkv_bias, proj, proj_bias;
    int q, q_bias, k, k_bias, v, v_bias; // in place of qkv
    int gate, gate_bias, up, up_bias;    // in place of fc1
    int fc1, fc1_bias, fc2, fc2_bias;
    int pooling, pooling_end; // the pooling head's parameters, from the first to the last
};

// The linear layers that can have an adapter, in the order of transformers' modules.
enum lora_target {
    TARGET_Q,
    TARGET_K,
    TARGET_V,
    TARGET_O,
    TARGET_GATE,
    TARGET_UP,
    TARGET_DOWN,
    TARGET_COUNT,                  // that have a name
    TARGET_UNNAMED = TARGET_COUNT, // routers, linear attention: all-linear alone reaches them
    LORA_NAMED_TARGETS = (1 << TARGET_COUNT) - 1,     // as bits
    LORA_ALL_TARGETS = (1 << (TARGET_COUNT + 1)) - 1, // likewise: all-linear
};

// One kind of parameter tensor and how often the model has it.
struct tensor {
    const char *name; // as transformers' modules have it, {layer} and {block} standing for numbers
    enum part part;
    enum place place;
    uint64_t shape[2]; // a vector has shape[1] == 1
    uint64_t elements;
    uint64_t copies;
    ptrdiff_t role;      // the member of struct layer_parameters, or struct vision_parameters
    unsigned target;     // its bits by enum lora_target; a linear layer's, quantisation packs
    bool buffer;         // counted and kept, never trained
    enum tensor_cut cut; // of a rank's share; shape and elements are then the share's
};

bool tensor_is_in(const struct tensor *t, const struct layer_kind *layer);

// Whether peft adds an adapter to the weight itself: its module is no linear layer.
bool tensor_is_folded(const struct tensor *t);

// Whether it does so with experts, and whether their layers have numbers (w1, w2, w3), not names.
bool model_folds_experts(const struct model *m);
bool model_numbers_experts(const struct model *m);

// Whether its checkpoints have each expert's matrices by themselves.
bool model_merges_experts(const struct model *m);

// Whether there is one, with these targets, experts having theirs or not.
bool tensor_has_adapter(const struct tensor *t, bool folds, unsigned targets);

struct parameters {
    const struct tensor *tensors; // in the order of transformers' modules
    ptrdiff_t tensor_count;
    uint64_t total;
    uint64_t active; // per token: all but the experts a token is not sent to
    uint64_t by_part[PART_COUNT];
};

bool parameters_of(struct parameters *p, struct arena *a, const struct model *m,
                   struct error *e) MUST_USE;

#endif
