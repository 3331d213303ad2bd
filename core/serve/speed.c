// How fast a server answers: a step that makes one token for each sequence reads the weights and
// the cache once, a prompt is products and attention. Rates are those of training's kernels
// (core/time/rates.c); nobody measured a server here.
#include "core/base/num.h"
#include "core/serve/serve.h"
#include "core/time/network.h"
#include "core/time/rates.h"

// Kernels of a layer while a token is made, under CUDA graphs: norms, products, positions,
// attention, activation; what each takes before it reads, and the part of the card's bandwidth that
// products with few rows reach of what copies do. With them one sequence of Llama-3.1-8B on an 80
// GB card makes 144 tokens a second, as SGLang's published log has it.
static const double LAYER_KERNELS = 8, KERNEL_START = 5.3e-6, READ_PART = 0.9;

// Published speeds (tests/measured/servers.py) lie within these parts of what is computed.
static const double LOW = 0.6, HIGH = 1.35;

// Seconds of the products that a token needs on one GPU: each expert has a matrix of its own.
static double token_seconds(const struct serve_request *r, const struct rates *rates)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < r->parameters.tensor_count; i++) {
        const struct tensor *t = &r->parameters.tensors[i];
        bool looked_up = t->part == PART_EMBEDDING && !model_has(r->model, FEATURE_TIED);
        double part = t->part == PART_EXPERTS
                          ? (double)r->model->experts.per_token / (double)r->model->experts.count /
                                rates->grouped_part
                          : 1;
        if (t->part != PART_VISION && !looked_up)
            sum += part * (double)tensor_share(r, t) * (double)t->copies;
    }
    return 2 * sum / (double)r->pp / rates->product_flops;
}

// Bytes of weights that a step of so many tokens reads.
static double read_bytes(const struct server_state *a, const struct serve_request *r, uint64_t rows)
{
    const struct experts *x = &r->model->experts;
    double whole = 0, unread = 0, missed = 1;
    for (uint64_t i = 0; x->count && i < rows && missed > 1e-3; i++)
        missed *= 1 - (double)x->per_token / (double)x->count;
    for (ptrdiff_t i = 0; i < r->parameters.tensor_count; i++) {
        const struct tensor *t = &r->parameters.tensors[i];
        double share = (double)tensor_share(r, t) * (double)t->copies;
        bool looked_up = t->part == PART_EMBEDDING && !model_has(r->model, FEATURE_TIED);
        whole += share;
        if (t->part == PART_VISION || looked_up)
            unread += share;
        else if (t->part == PART_EXPERTS)
            unread += missed * share;
    }
    return whole > 0 ? (double)a->weights * (1 - unread / whole) : 0;
}

static double reductions(const struct network *n, const struct serve_request *r, double rows)
{
    double bytes = rows * (double)r->model->hidden * (double)r->element_bytes;
    double layers = (double)u64_divide_up(r->model->layers, r->pp);
    return r->tp > 1 ? 2 * layers * collective_seconds(n, ALL_REDUCE, r->tp, bytes) : 0;
}

// Multiplications and additions of attention for one token, on one GPU, where it sees `seen`.
static double attention_work(const struct serve_request *r, double seen)
{
    const struct model *m = r->model;
    double head = model_has(m, FEATURE_MLA)
                      ? (double)(m->latent.nope_head_dim + m->latent.rope_head_dim)
                      : (double)m->head_dim;
    double heads = (double)m->heads / (double)r->tp;
    return 4 * seen * heads * head * (double)m->layers / (double)r->pp;
}

static struct serve_speed speed_of(uint64_t batch, double seconds, double tokens)
{
    double rate = seconds > 0 ? tokens / seconds : 0;
    return (struct serve_speed){true, batch, seconds, rate, LOW * rate, HIGH * rate};
}

static struct serve_speed decode_speed(const struct server_state *a, const struct serve_request *r,
                                       const struct network *n, uint64_t batch)
{
    struct rates rates = rates_of(&r->hardware->card);
    double rows = (double)batch, layers = (double)u64_divide_up(r->model->layers, r->pp);
    double cache = rows * (double)a->holds.one;
    double memory = (read_bytes(a, r, batch) + cache) / (READ_PART * rates.bandwidth);
    double work = rows * token_seconds(r, &rates);
    double step = (memory > work ? memory : work) + layers * LAYER_KERNELS * KERNEL_START +
                  reductions(n, r, rows);
    return speed_of(batch, step * (double)r->pp, rows);
}

static struct serve_speed prefill_speed(const struct serve_request *r, const struct network *n)
{
    struct rates burst = rates_of(&r->hardware->card), rates = rates_lasting(&burst, 1);
    double tokens = (double)u64_least(r->batch_tokens, r->context);
    double products = tokens * token_seconds(r, &rates);
    double attention = tokens * attention_work(r, (double)r->context / 2) / rates.attention_flops;
    double step = products + attention + reductions(n, r, tokens);
    return speed_of((uint64_t)tokens, step * (double)r->pp, tokens);
}

void serve_speeds(struct server_state *a, const struct serve_request *r)
{
    struct error none = {0};
    struct network n;
    struct hardware h = *r->hardware;
    const struct gpu *card = &r->hardware->card;
    h.gpus_per_node = u64_most(h.gpus_per_node, h.nodes > 1 ? 1 : r->tp * r->pp);
    if (!card->bandwidth.value || !card->bf16.value || !network_of(&n, &h, NULL, &none))
        return;
    uint64_t batch = u64_most(u64_least(a->holds.sequences, r->sequences), 1);
    a->alone = decode_speed(a, r, &n, 1);
    a->decode = decode_speed(a, r, &n, batch);
    a->prefill = prefill_speed(r, &n);
}
