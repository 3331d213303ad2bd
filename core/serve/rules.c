// What servers do by version and card where nobody says otherwise, each row with its evidence; and
// what a profiling run takes at once. Figures from logs: tests/runs/servers.jsonl.
#include "core/base/num.h"
#include "core/serve/serve.h"

#define CENTI_GIB(n) ((n) * GIB / 100)

// vLLM by version, the last row that has begun. 0.17: top-k and top-p by a Triton kernel
// (topk_topp_triton.py) in place of a sort, whose copies were counted from logs: 9.1 of 0.8 to 0.16
// on vocabularies of 128k to 201k. 0.13: v1/worker/workspace.py. 0.18: what lives outside torch,
// logs of the H100. 0.20: 96a85c5. 0.27: mem_utils.py counts all that is gone from the card.
static const struct vllm_row {
    uint64_t since;
    struct server_rules rules;
} vllm_rows[] = {
    {SERVER_VERSION(0, 0), {900, 910, false, false, CENTI_GIB(10), CENTI_GIB(30), false, true}},
    {SERVER_VERSION(8, 0), {900, 910, false, false, CENTI_GIB(13), CENTI_GIB(55), false, false}},
    {SERVER_VERSION(13, 0), {900, 910, false, false, CENTI_GIB(13), CENTI_GIB(55), true, false}},
    {SERVER_VERSION(17, 0), {900, 300, true, false, CENTI_GIB(13), CENTI_GIB(55), true, false}},
    {SERVER_VERSION(18, 0), {900, 300, true, false, CENTI_GIB(25), CENTI_GIB(207), true, false}},
    {SERVER_VERSION(20, 0), {920, 300, true, true, CENTI_GIB(25), CENTI_GIB(207), true, false}},
    {SERVER_VERSION(27, 0), {920, 300, true, true, CENTI_GIB(25), CENTI_GIB(25), true, false}},
};

// Stages of a pipeline, each alone on its GPU: logs of 0.19.
static const uint64_t OUTSIDE_STAGE = CENTI_GIB(7);

// The second model runner, by default since 0.25 for models without experts and states, and for
// some families with experts (config/vllm.py, DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES): one copy of
// the logits in fp32 (v1/worker/gpu/sample/sampler.py), no graphs counted.
static bool has_second_runner(const struct serve_request *r)
{
    static const char families_with_experts[] = "deepseek_v2 granitemoe qwen2_moe";
    const struct model *m = r->model;
    if (r->version < SERVER_VERSION(25, 0) || model_has(m, FEATURE_DELTA_NET))
        return false;
    return !model_has(m, FEATURE_EXPERTS) ||
           words_have(families_with_experts, ' ', str_from(m->family->model_type));
}

struct server_rules server_rules_of(const struct serve_request *r)
{
    struct server_rules rules = vllm_rows[0].rules;
    for (ptrdiff_t i = 0; i < COUNT_OF(vllm_rows); i++)
        if (r->version >= vllm_rows[i].since)
            rules = vllm_rows[i].rules;
    if (has_second_runner(r)) {
        rules.sampler_hundredth = 100;
        rules.graphs_counted = false;
    }
    if (r->pp > 1 && r->tp == 1)
        rules.outside = OUTSIDE_STAGE;
    else if (r->tp > 1)
        rules.outside = rules.outside_tp;
    return rules;
}

// Four tensors of the hidden width, and what the widest part makes of its input: gate and up and
// their product, or heads and what they give (CodeLlama, Granite, Llama at 0.19 and before 0.8).
static uint64_t widest_part(const struct serve_request *r)
{
    const struct model *m = r->model;
    uint64_t matrices = model_has(m, FEATURE_NO_GATE) ? 2 : 3;
    bool dense = model_expert_layers(m) < m->layers;
    uint64_t mlp = dense ? matrices * m->intermediate / r->tp : 0;
    uint64_t shared = 3 * m->experts.shared_intermediate / r->tp;
    uint64_t heads = 2 * (m->heads + m->kv_heads) * m->head_dim / r->tp;
    return u64_most(heads, u64_most(mlp, shared));
}

// fused_moe.py, TritonExperts.workspace_shapes: a row for each expert that a token is sent to.
static uint64_t expert_rows(const struct serve_request *r, uint64_t tokens)
{
    const struct model *m = r->model;
    uint64_t inner = m->experts.intermediate / r->tp;
    uint64_t width = u64_most(inner, m->hidden) + u64_most(2 * inner, m->hidden);
    bool here = model_has(m, FEATURE_EXPERTS) && !r->format->padded;
    return here ? sat_mul(sat_mul(tokens, m->experts.per_token), width * r->element_bytes) : 0;
}

uint64_t forward_bytes(const struct serve_request *r, uint64_t tokens)
{
    uint64_t width = 4 * r->model->hidden + widest_part(r);
    return sat_add(sat_mul(sat_mul(tokens, width), r->element_bytes), expert_rows(r, tokens));
}

static uint64_t sampler_bytes(const struct serve_request *r, const struct server_rules *rules)
{
    static const uint64_t rest =
        48 * MIB; // what 40 logs of 0.19 have beside the tensors named here
    uint64_t rows = u64_least(r->sequences, r->batch_tokens), processors = 108;
    if (r->hardware->card.multiprocessors)
        processors = r->hardware->card.multiprocessors;
    uint64_t wide = sat_mul(sat_mul(rows, r->model->vocab), 4);
    uint64_t bytes = wide / 100 * rules->sampler_hundredth;
    bytes = sat_add(bytes, sat_mul(sat_mul(rows, r->model->vocab), r->element_bytes));
    if (rules->sampler_buffer)
        bytes = sat_add(bytes, sat_mul(u64_least(rows, processors), r->model->vocab) * 4);
    uint64_t hidden = sat_mul(sat_mul(r->batch_tokens, r->model->hidden), r->element_bytes);
    return sat_add(sat_add(bytes, hidden), rest);
}

static const feature_set any_vision =
    FEATURE_VISION_QWEN3 | FEATURE_VISION_SIGLIP | FEATURE_VISION_WINDOWS;

// The encoder on as many of the largest images as a batch may have tokens of.
static uint64_t encoder_bytes(const struct serve_request *r)
{
    enum { LARGEST_IMAGE = 16384, SIGLIP_TOKENS = 256 };
    const struct vision *v = &r->model->vision;
    const struct served_model *t = r->model->served;
    if (t) {
        uint64_t images = u64_most(r->batch_tokens / t->image_tokens, 1);
        return images * t->image_tokens * t->patches * t->patch_width * r->element_bytes;
    }
    bool siglip = model_has(r->model, FEATURE_VISION_SIGLIP);
    uint64_t patches = siglip ? sat_mul(r->batch_tokens / SIGLIP_TOKENS, v->positions)
                              : LARGEST_IMAGE * v->merge * v->merge;
    uint64_t matrices = model_has(r->model, FEATURE_VISION_WINDOWS) ? 3 : 2;
    uint64_t width = 4 * v->hidden + matrices * v->intermediate / r->tp;
    return sat_mul(sat_mul(patches, width), r->element_bytes);
}

// What the encoder gave for the largest item stays while the language model is profiled: Qwen3-VL's
// has a row for the text's input and one for each deep layer that it is added to. 0.11 took a video
// of 153,600 tokens for it, others an image of 16,384 (logs' "Encoder cache ... budget"; the cache
// of Qwen3-VL-30B-A3B on four RTX 3090 under 0.11 is 2.4 GiB smaller than without).
static uint64_t embedding_bytes(const struct serve_request *r)
{
    enum { IMAGE = 16384, VIDEO = 153600 };
    bool video = r->version >= SERVER_VERSION(11, 0) && r->version < SERVER_VERSION(12, 0);
    uint64_t rows = 1 + r->model->vision.deepstack;
    if (!model_has(r->model, FEATURE_VISION_QWEN3))
        return sat_mul(sat_mul(r->batch_tokens, r->model->hidden), r->element_bytes);
    return sat_mul(sat_mul(video ? VIDEO : IMAGE, rows * r->model->hidden), r->element_bytes);
}

// What profiling sees on the last stage, or on an earlier one that samples nothing but keeps the
// two tensors that it sends on.
uint64_t profile_bytes(const struct serve_request *r, const struct server_rules *rules, bool last)
{
    bool sees = (r->model->features & any_vision) || r->model->served;
    uint64_t row = sat_mul(sat_mul(r->batch_tokens, r->model->hidden), r->element_bytes);
    uint64_t forward = forward_bytes(r, r->batch_tokens);
    uint64_t tail = last ? sampler_bytes(r, rules) : 0;
    if (rules->workspaces)
        tail = sat_add(tail, expert_rows(r, r->batch_tokens));
    if (!last)
        forward = sat_add(forward, 2 * row);
    uint64_t bytes = u64_most(forward, tail);
    if (!sees)
        return bytes;
    // Embeddings of the images, and the text's in which they are put.
    return u64_most(encoder_bytes(r), sat_add(bytes, sat_add(embedding_bytes(r), row)));
}

// CUDA graphs, as estimated: MiB a layer with all 51 sizes up to 512 captured twice, in the median
// of 42 logs of 0.19 (17 to 30, and 26 to 50 with experts).
uint64_t graph_bytes(const struct serve_request *r)
{
    enum { ALL_SIZES = 51, DENSE = 22, WITH_EXPERTS = 36 };
    uint64_t largest = u64_least(2 * r->sequences, 512);
    uint64_t sizes = 3 + u64_least(largest, 256) / 8 + (largest > 256 ? (largest - 256) / 16 : 0);
    uint64_t layer = model_has(r->model, FEATURE_EXPERTS) ? WITH_EXPERTS : DENSE;
    uint64_t layers = u64_divide_up(r->model->layers, r->pp);
    return r->eager ? 0 : layers * layer * MIB * u64_least(sizes, ALL_SIZES) / ALL_SIZES;
}

// vLLM's _get_prompt_logprobs_dict: for all rows of a chunk the logits, their logarithms in fp32
// and a comparison of each. SGLang works in pieces (SGLANG_LOGPROB_CHUNK_SIZE 2048), two of them in
// fp32.
uint64_t score_bytes(const struct serve_request *request)
{
    enum { PIECE = 2048 };
    struct serve_request r = *request;
    if (r.server == SERVER_SGLANG)
        return sat_mul(u64_least(PIECE, r.context), sat_mul(r.model->vocab, 8));
    vllm_batch_of(&r);
    return sat_mul(u64_least(r.batch_tokens, r.context),
                   sat_mul(r.model->vocab, r.element_bytes + 4 + 1));
}

// vLLM's engine/arg_utils.py for a server: sequences and tokens of a batch, by the card's memory.
void vllm_batch_of(struct serve_request *r)
{
    const struct gpu *card = &r->hardware->card;
    bool a100 = str_starts(str_from(card->name), STR("A100")) && r->version >= SERVER_VERSION(9, 0);
    bool large = card->memory.value >= 70 * GIB && !a100 && r->version >= SERVER_VERSION(8, 0);
    bool largest = large && card->memory.value >= 160 * GIB && r->version >= SERVER_VERSION(28, 0);
    bool whole = server_rules_of(r).whole_prompts && r->context <= 32 * KIB;
    uint64_t tokens = largest ? 16384 : large ? 8192 : 2048;
    uint64_t sequences = r->sequences ? r->sequences : large ? 1024 : 256;
    if (!r->batch_tokens)
        r->batch_tokens = whole ? u64_most(tokens, r->context)
                                : u64_least(tokens, sat_mul(sequences, r->context));
    r->sequences = r->sequences ? sequences : u64_least(sequences, r->batch_tokens);
}

// SGLang's server_args.py by the MiB that nvidia-smi shows: half a GiB more than torch has (H100:
// 81559 and 79.19 GiB, H200: 143771 and 139.8).
static const struct sglang_row {
    uint64_t below; // MiB
    uint64_t chunk, graphs, graphs_tp4;
} sglang_rows[] = {
    {20 * KIB, 2048, 8, 8},      {35 * KIB, 2048, 24, 80},      {60 * KIB, 4096, 32, 160},
    {160 * KIB, 8192, 256, 512}, {UINT64_MAX, 16384, 512, 512},
};

// Before 0.4.8 the fraction was by the number of GPUs alone, then by GiB that are kept back: tenths
// of one, and more for each GPU.
static uint64_t fraction_by_gpus(uint64_t gpus)
{
    static const uint64_t rows[][2] = {{16, 790}, {8, 810}, {4, 850}, {2, 870}, {1, 880}};
    int i = 0;
    while (gpus < rows[i][0])
        i++;
    return rows[i][1];
}

static uint64_t fraction_by_reserve(uint64_t mib, uint64_t gpus)
{
    static const uint64_t rows[][3] = {
        {35 * KIB, 28, 1}, {90 * KIB, 95, 5}, {160 * KIB, 120, 5}, {UINT64_MAX, 320, 0}};
    int i = 0;
    while (mib >= rows[i][0])
        i++;
    uint64_t reserved = (rows[i][1] + rows[i][2] * gpus) * 1024 / 10;
    return mib > reserved ? (mib - reserved) * 1000 / mib : 0;
}

struct sglang_choice sglang_choice_of(const struct serve_request *r)
{
    enum { PREFILL_GRAPHS = 54 * 8, LATENT_GRAPHS = 1536, DRIVER = 500 };
    uint64_t mib = r->hardware->card.memory.value / MIB + DRIVER;
    const struct sglang_row *row = sglang_rows;
    while (mib >= row->below)
        row++;
    struct sglang_choice c = {.chunk = row->chunk,
                              .graph_batch = r->tp >= 4 ? row->graphs_tp4 : row->graphs};
    c.chunk = r->chunk ? r->chunk : c.chunk;
    c.graph_batch = r->graph_batch ? r->graph_batch : c.graph_batch;
    uint64_t graphs = model_has(r->model, FEATURE_MLA) ? LATENT_GRAPHS : PREFILL_GRAPHS;
    graphs = r->eager ? 0 : graphs + 2 * c.graph_batch;
    uint64_t reserved = 512 + u64_most(c.chunk, 2048) * 3 / 2 + r->tp * r->pp * 128 + graphs;
    if (mib > 60 * KIB)
        reserved = u64_most(reserved, 10240);
    c.thousandths = mib > reserved ? (mib - reserved) * 1000 / mib : 0;
    if (r->version < SERVER_VERSION(4, 8))
        c.thousandths = fraction_by_gpus(r->tp * r->pp);
    else if (r->version < SERVER_VERSION(5, 5))
        c.thousandths = fraction_by_reserve(mib, r->tp * r->pp);
    if ((r->model->features & any_vision) ||
        r->model->served) // a tower of 24 layers of 1024; others differ by a fifth
        c.thousandths = c.thousandths * 95 / 100;
    return c;
}
