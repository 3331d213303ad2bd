// What no log stands behind, as rows: tests/runs/servers.jsonl has vLLM up to 0.19 on one, two and
// four H100, and SGLang on one GPU.
#include "core/serve/serve.h"

static bool is_vllm(const struct serve_request *r)
{
    return r->server == SERVER_VLLM;
}

static bool is_newer(const struct serve_request *r)
{
    return is_vllm(r) && r->version >= SERVER_VERSION(20, 0);
}

static bool has_tower(const struct serve_request *r)
{
    return is_vllm(r) && model_has(r->model, FEATURE_VISION_QWEN3 | FEATURE_VISION_WINDOWS);
}

static bool has_states(const struct serve_request *r)
{
    return model_has(r->model, FEATURE_DELTA_NET);
}

static bool is_spread(const struct serve_request *r)
{
    return r->server == SERVER_SGLANG ? r->tp * r->pp > 1 : r->tp > 4 || (r->tp > 1 && r->pp > 1);
}

static bool is_other_card(const struct serve_request *r)
{
    return is_vllm(r) && r->tp > 1 && r->hardware->card.capability != 90;
}

static bool has_window_pool(const struct serve_request *r)
{
    return r->server == SERVER_SGLANG && model_sliding_layers(r->model) > 0;
}

static const struct doubt {
    bool (*holds)(const struct serve_request *r);
    const char *text;
} rows[] = {
    {is_newer, "logs of vLLM end at 0.19 here; what newer ones do differently is read from their "
               "source, and one log says what their second model runner takes"},
    {has_tower, "what profiling takes for images of this tower follows from vLLM's source alone"},
    {has_states,
     "no log of linear attention was compared: states and blocks follow from the source"},
    {is_spread, "no log of so many GPUs was compared"},
    {is_other_card, "what NCCL and its kin take on several GPUs was seen on the H100 only"},
    {has_window_pool, "SGLang's pool for windows follows from its source alone"},
};

const char *serve_doubt(const struct serve_request *r, ptrdiff_t *i)
{
    while (*i < COUNT_OF(rows) && !rows[*i].holds(r))
        ++*i;
    return *i < COUNT_OF(rows) ? rows[(*i)++].text : NULL;
}
