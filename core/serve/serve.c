// A request from settings, and its answer: the budget of a GPU, taken apart in the servers' order.
#include "core/serve/serve.h"

#include "core/base/num.h"

// NCCL's before the first measurement: free at start on an H100 with one GPU 78.68 GiB, with two or
// four 77.66. Without NVLink it has none of the buffers for it: a guess, not measured.
static const uint64_t GROUP_BYTES = 102 * GIB / 100, PCIE_GROUP_BYTES = GIB / 4;

// Before, vLLM looked at the card first and started NCCL then (row 83 of the logs).
static const uint64_t GROUP_FIRST = SERVER_VERSION(8, 0);

// A CUDA context where the card's row has none.
static const uint64_t CONTEXT_BYTES = GIB / 2;

// What SGLang's "mem usage" of loading has beside tensors: 0.07 to 0.14 GiB in five of seven logs.
static const uint64_t SGLANG_LOADING = 100 * MIB;

// SGLANG_VLM_CACHE_SIZE_MB.
static const uint64_t SGLANG_IMAGES = 100 * MIB;

const char *server_name(enum server s)
{
    return s == SERVER_VLLM ? "vLLM" : "SGLang";
}

// ------------------------------------------------------------------ reading

// The oldest of which there is a log (tests/runs/servers.jsonl: vLLM 0.6.6, SGLang 0.4.1).
static uint64_t oldest_minor(enum server s)
{
    return s == SERVER_VLLM ? 6 : 4;
}

// Of the commits that were read (serve.h).
static uint64_t newest_minor(enum server s)
{
    return s == SERVER_VLLM ? 27 : 5;
}

// "0.19.1" or "v0.8.5.post1": parts beyond the third matter not. Neither server has had a 1.0, so
// that "19" is a slip for 0.19.
static bool read_version(struct serve_request *r, struct str text, struct str where,
                         struct error *e)
{
    uint64_t parts[3] = {0}, oldest = oldest_minor(r->server);
    struct str rest = text;
    if (rest.n && char_lower(rest.p[0]) == 'v')
        rest = str_slice(rest, 1, rest.n);
    for (int i = 0; i < 3 && rest.n; i++) {
        struct str_cut c = str_cut(rest, '.');
        ptrdiff_t digits = 0;
        while (digits < c.head.n && digits < 4 && char_is_digit(c.head.p[digits]))
            parts[i] = parts[i] * 10 + (uint64_t)(c.head.p[digits++] - '0');
        if (!digits)
            return FAIL(e, BAD_INPUT, where, "a version is such as 0.19.1, not '%.*s'",
                        STR_ARGS(str_short(text)));
        rest = c.tail;
    }
    if (parts[0])
        return FAIL(e, BAD_INPUT, where, "%s has no version '%.*s' that is known; 0.%llu is such",
                    server_name(r->server), STR_ARGS(str_short(text)),
                    (unsigned long long)(parts[1] ? newest_minor(r->server) : parts[0]));
    if (parts[1] < oldest)
        return FAIL(e, BAD_INPUT, where,
                    "%s is modelled from 0.%llu on, as in @0.%llu.1, not '%.*s'",
                    server_name(r->server), (unsigned long long)oldest, (unsigned long long)oldest,
                    STR_ARGS(str_short(text)));
    r->version = SERVER_VERSION(parts[1], parts[2]);
    return true;
}

static bool read_engine(struct serve_request *r, const struct settings *s, struct error *e)
{
    const struct setting *item = settings_find_z(s, "engine");
    r->server = SERVER_VLLM;
    r->version = SERVER_NEWEST;
    if (!item)
        return true;
    struct str_cut c = str_cut(item->value, '@');
    if (!str_is(c.head, "vllm") && !str_is(c.head, "sglang"))
        return FAIL(e, BAD_INPUT, item->where,
                    "'serve' models vllm and sglang, with @VERSION where that is meant, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    r->server = str_is(c.head, "vllm") ? SERVER_VLLM : SERVER_SGLANG;
    return !c.found || read_version(r, c.tail, item->where, e);
}

// A decimal fraction, in thousandths.
static bool read_fraction(uint64_t *thousandths, const struct setting *item, struct error *e)
{
    struct str_cut c = str_cut(item->value, '.');
    uint64_t value = 0;
    bool ok = c.found && (str_is(c.head, "0") || !c.head.n) && c.tail.n;
    for (ptrdiff_t i = 0; i < c.tail.n && ok; i++) {
        ok = char_is_digit(c.tail.p[i]) && c.tail.n <= 6;
        if (i < 3)
            value = value * 10 + (uint64_t)(c.tail.p[i] - '0');
    }
    for (ptrdiff_t i = c.tail.n; i < 3; i++)
        value *= 10;
    if (!ok || value < 10 || value > 999)
        return FAIL(e, BAD_INPUT, item->where,
                    "%.*s is a part of a GPU's memory, from 0.01 to 0.999, not '%.*s'",
                    STR_ARGS(item->key), STR_ARGS(str_short(item->value)));
    *thousandths = value;
    return true;
}

static bool read_count(uint64_t *count, const struct settings *s, const char *key, struct error *e)
{
    const struct setting *item = settings_find_z(s, key);
    const struct setting_def *def = setting_def_find(str_from(key));
    return !item || setting_number(count, item, UNIT_COUNT, (struct range){def->min, def->max}, e);
}

// Settings of one server that the other has under another name, or not at all.
static bool check_names(const struct serve_request *r, const struct settings *s, struct error *e)
{
    static const struct {
        const char *setting;
        enum server only;
        const char *instead;
    } rows[] = {
        {"gpu-memory-utilization", SERVER_VLLM, "mem-fraction-static"},
        {"max-num-batched-tokens", SERVER_VLLM, "chunked-prefill-size"},
        {"mem-fraction-static", SERVER_SGLANG, "gpu-memory-utilization"},
        {"chunked-prefill-size", SERVER_SGLANG, "max-num-batched-tokens"},
        {"cuda-graph-max-bs", SERVER_SGLANG, "max-num-seqs"},
        {"max-total-tokens", SERVER_SGLANG, "gpu-memory-utilization"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        const struct setting *item = settings_find_z(s, rows[i].setting);
        if (item && r->server != rows[i].only)
            return FAIL(e, BAD_INPUT, item->where, "%s has no %s; it has %s",
                        server_name(r->server), rows[i].setting, rows[i].instead);
    }
    return true;
}

static bool read_options(struct serve_request *r, const struct settings *s, struct error *e)
{
    const struct setting *part = settings_find_z(
        s, r->server == SERVER_VLLM ? "gpu-memory-utilization" : "mem-fraction-static");
    const struct setting *eager = settings_find_z(s, "enforce-eager");
    r->tp = r->pp = 1;
    r->context = r->model->max_position;
    return check_names(r, s, e) && (!part || read_fraction(&r->thousandths, part, e)) &&
           (!eager || setting_switch(&r->eager, eager, e)) && read_count(&r->tp, s, "tp", e) &&
           read_count(&r->pp, s, "pp", e) && read_count(&r->context, s, "context", e) &&
           read_count(&r->sequences, s, "max-num-seqs", e) &&
           read_count(&r->batch_tokens, s, "max-num-batched-tokens", e) &&
           read_count(&r->chunk, s, "chunked-prefill-size", e) &&
           read_count(&r->graph_batch, s, "cuda-graph-max-bs", e) &&
           read_count(&r->most_tokens, s, "max-total-tokens", e);
}

// ------------------------------------------------------------------ what can be

bool serve_divides(const struct model *m, uint64_t tp)
{
    bool kv = model_has(m, FEATURE_MLA) || m->kv_heads % tp == 0 || tp % m->kv_heads == 0;
    bool mlp = model_expert_layers(m) == m->layers || m->intermediate % tp == 0;
    bool experts = !model_has(m, FEATURE_EXPERTS) || m->experts.intermediate % tp == 0;
    bool delta = !model_has(m, FEATURE_DELTA_NET) || m->delta.key_heads % tp == 0;
    return m->heads % tp == 0 && kv && mlp && experts && delta;
}

static bool check_sizes(const struct serve_request *r, const struct settings *s, struct error *e)
{
    enum { MOST_NAMED = 64 };
    const struct model *m = r->model;
    const struct setting *tp = settings_find_z(s, "tp"), *pp = settings_find_z(s, "pp");
    uint64_t gpus = hardware_gpus(r->hardware);
    char block[160];
    struct buf sizes = buf_over(block, sizeof block);
    for (uint64_t n = 1; n <= MOST_NAMED; n++)
        if (serve_divides(m, n))
            buf_printf(&sizes, "%s%llu", n > 1 ? ", " : "", (unsigned long long)n);
    if (!serve_divides(m, r->tp))
        return FAIL(
            e, BAD_INPUT, tp ? tp->where : STR("--tp"),
            "the %llu heads of %.*s, %llu of keys and values and its widths cannot be divided "
            "over %llu GPUs; over %.*s they can",
            (unsigned long long)m->heads, STR_ARGS(str_short(m->name)),
            (unsigned long long)m->kv_heads, (unsigned long long)r->tp, STR_ARGS(buf_str(&sizes)));
    if (r->pp > m->layers)
        return FAIL(e, BAD_INPUT, pp->where, "%llu stages are more than the model's %llu layers",
                    (unsigned long long)r->pp, (unsigned long long)m->layers);
    if (gpus > 1 && r->tp * r->pp > gpus)
        return FAIL(e, BAD_INPUT, tp ? tp->where : pp->where,
                    "tensor parallel %llu times %llu stages need %llu GPUs; there are %llu",
                    (unsigned long long)r->tp, (unsigned long long)r->pp,
                    (unsigned long long)(r->tp * r->pp), (unsigned long long)gpus);
    return true;
}

// vLLM's config/scheduler.py, verify_max_model_len.
static bool check_batch(const struct serve_request *r, const struct settings *s, struct error *e)
{
    struct serve_request full = *r;
    const struct setting *item = settings_find_z(s, "max-num-seqs");
    if (r->server != SERVER_VLLM || !item)
        return true;
    vllm_batch_of(&full);
    return full.sequences <= full.batch_tokens ||
           FAIL(e, BAD_INPUT, item->where,
                "vLLM refuses more sequences (%llu) than tokens of a batch (%llu); "
                "--max-num-seqs %llu or --max-num-batched-tokens %llu would do",
                (unsigned long long)full.sequences, (unsigned long long)full.batch_tokens,
                (unsigned long long)full.batch_tokens, (unsigned long long)full.sequences);
}

bool serve_read(struct serve_request *r, struct arena *a, const struct settings *s, struct error *e)
{
    struct model *m = NEW(a, struct model, 1);
    struct hardware *h = NEW(a, struct hardware, 1);
    *r = (struct serve_request){.model = m, .hardware = h};
    if (!read_engine(r, s, e) || !serve_check_name(s, e) ||
        !served_model_from_settings(m, a, s, e) || !parameters_of(&r->parameters, a, m, e) ||
        !hardware_from_settings(h, a, s, e) || !read_options(r, s, e) || !serve_read_types(r, s, e))
        return false;
    r->weights = model_weights_place(a, s, "model");
    if (!m->max_position && !settings_find_z(s, "context"))
        return FAIL(e, BAD_INPUT, STR("--context"), "the model names no length; give one");
    return check_sizes(r, s, e) && check_batch(r, s, e);
}

// ------------------------------------------------------------------ the answer

static uint64_t part_of(uint64_t bytes, uint64_t thousandths)
{
    return (uint64_t)((double)bytes * (double)thousandths / 1000);
}

// Of the stage that leaves least for the cache.
static void tightest_stage(struct server_state *a, const struct serve_request *r,
                           const struct server_rules *rules)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < r->pp; i += r->pp > 1 ? r->pp - 1 : 1) {
        struct stage s = stage_of(r, i);
        uint64_t weights = stage_weights(r, &s), taken = profile_bytes(r, rules, s.is_last);
        if (sat_add(weights, taken) <= most)
            continue;
        most = sat_add(weights, taken);
        a->weights = weights;
        a->activation = taken;
    }
}

static void judge(struct server_state *a, const struct serve_request *r, uint64_t taken)
{
    uint64_t positions = u64_most(r->model->max_position, r->model->rotary_table);
    a->cache = a->budget > taken ? a->budget - taken : 0;
    a->lacking = a->budget > taken ? 0 : taken - a->budget;
    a->holds = cache_answer_of(r, &a->layout, a->cache);
    a->verdict = SERVES;
    if (a->weights > a->free)
        a->verdict = LACKS_WEIGHTS;
    else if (r->server == SERVER_VLLM && a->budget > a->free)
        a->verdict = LACKS_FREE;
    else if (!a->holds.tokens)
        a->verdict = LACKS_CACHE;
    else if (r->server == SERVER_VLLM && !a->holds.sequences)
        a->verdict = LACKS_SEQUENCE;
    if (positions && r->context > positions)
        a->verdict = LACKS_POSITIONS;
}

static void vllm_answer(struct server_state *a, struct serve_request *r)
{
    struct server_rules rules = server_rules_of(r);
    vllm_batch_of(r);
    r->thousandths = r->thousandths ? r->thousandths : rules.thousandths;
    a->budget = part_of(a->card, r->thousandths);
    tightest_stage(a, r, &rules);
    a->other = rules.outside;
    a->graphs = graph_bytes(r);
    a->graphs_counted = rules.graphs_counted;
    uint64_t taken = sat_add(sat_add(a->weights, a->activation), a->other);
    judge(a, r, sat_add(taken, a->graphs_counted ? a->graphs : 0));
}

static void sglang_answer(struct server_state *a, struct serve_request *r)
{
    struct sglang_choice c = sglang_choice_of(r);
    struct stage first = stage_of(r, 0), last = stage_of(r, r->pp - 1);
    r->thousandths = r->thousandths ? r->thousandths : c.thousandths;
    r->chunk = r->batch_tokens = c.chunk;
    r->graph_batch = c.graph_batch;
    a->budget = part_of(a->free, r->thousandths);
    a->weights = u64_most(stage_weights(r, &first), stage_weights(r, &last)) + SGLANG_LOADING;
    a->activation = forward_bytes(r, r->chunk);
    a->other = r->model->vision.depth ? SGLANG_IMAGES : 0;
    a->graphs = r->eager ? 0 : 2 * r->graph_batch * MIB;
    judge(a, r, sat_add(a->weights, a->other));
    if (r->most_tokens && a->holds.tokens == r->most_tokens)
        a->cache = sat_mul(r->most_tokens, a->layout.token_bytes);
    // max_running_requests: kv_cache_configurator.py.
    uint64_t running = (uint64_t)((double)a->holds.tokens / (double)r->context * 512);
    running = u64_least(u64_most(running, 2048), 4096);
    if (!r->sequences)
        r->sequences = u64_least(running, u64_most(a->holds.tokens / 2, 1));
    uint64_t beside = sat_add(sat_add(a->weights, a->other), a->cache);
    a->outside = a->free > beside ? a->free - beside : 0;
    uint64_t needed = sat_add(a->activation, a->graphs);
    if (server_starts(a) && a->outside < needed) {
        a->verdict = LACKS_OUTSIDE;
        a->lacking = needed - a->outside;
    }
}

static uint64_t group_bytes(const struct serve_request *r)
{
    const struct gpu *card = &r->hardware->card;
    bool nvlink = card->link_kind && str_starts(str_from(card->link_kind), STR("NVLink"));
    bool later = r->server == SERVER_VLLM && r->version < GROUP_FIRST;
    if (r->tp * r->pp == 1 || later)
        return 0;
    return nvlink ? GROUP_BYTES : PCIE_GROUP_BYTES;
}

void server_of(struct server_state *a, const struct serve_request *request)
{
    struct serve_request r = *request;
    const struct gpu *card = &r.hardware->card;
    uint64_t context = card->context.value ? card->context.value : CONTEXT_BYTES;
    uint64_t before = context + group_bytes(&r);
    *a = (struct server_state){.card = card->memory.value, .layout = cache_layout_of(&r)};
    a->free = a->card > before ? a->card - before : 0;
    if (r.server == SERVER_VLLM)
        vllm_answer(a, &r);
    else
        sglang_answer(a, &r);
    // Context, NCCL, what lives outside torch, and graphs: only weights and cache are in the pool
    // that sleeps (vLLM's gpu_worker.py; SGLang's memory saver drops graphs' memory too).
    a->asleep = u64_least(before, a->card) + (r.server == SERVER_VLLM ? a->other + a->graphs : 0);
    a->thousandths = r.thousandths;
    a->sequences = r.sequences;
    a->batch_tokens = r.batch_tokens;
    a->chunk = r.chunk;
    a->graph_batch = r.graph_batch;
    if (server_starts(a))
        serve_speeds(a, &r);
}

bool server_starts(const struct server_state *a)
{
    return a->verdict == SERVES;
}

static bool starts_with(const struct serve_request *r)
{
    struct server_state a;
    server_of(&a, r);
    return server_starts(&a);
}

// The least part from `from` up under which it starts, in hundredths; 0: there is none.
static uint64_t least_fraction(const struct serve_request *request, uint64_t from, uint64_t most)
{
    struct serve_request r = *request;
    for (r.thousandths = u64_align_up(from, 10); r.thousandths <= most; r.thousandths += 10)
        if (starts_with(&r))
            return r.thousandths;
    return 0;
}

// The largest below `from`, likewise.
static uint64_t most_fraction(const struct serve_request *request, uint64_t from)
{
    struct serve_request r = *request;
    for (r.thousandths = from / 10 * 10; r.thousandths; r.thousandths -= 10)
        if (starts_with(&r))
            return r.thousandths;
    return 0;
}

static uint64_t least_gpus(const struct serve_request *request)
{
    enum { MOST_TP = 64 };
    struct serve_request r = *request;
    for (r.tp = 2 * request->tp; r.tp <= MOST_TP; r.tp *= 2)
        if (serve_divides(r.model, r.tp) && starts_with(&r))
            return r.tp;
    return 0;
}

struct serve_change serve_remedy_of(const struct serve_request *request)
{
    enum { FEW_SEQUENCES = 64, MOST_FRACTION = 950 };
    struct serve_request fewer = *request;
    struct server_state a;
    server_of(&a, request);
    if (a.verdict == LACKS_POSITIONS) {
        fewer.context = request->model->max_position;
        server_of(&a, &fewer);
        fewer.context = u64_least(fewer.context, u64_most(a.holds.longest, 16));
        bool starts = starts_with(&fewer);
        return (struct serve_change){starts ? REMEDY_CONTEXT : REMEDY_NONE, fewer.context};
    }
    uint64_t free = a.free * 1000 / u64_most(a.card, 1) / 10 * 10;
    bool less = a.verdict == LACKS_FREE;
    uint64_t part = a.verdict == LACKS_OUTSIDE
                        ? most_fraction(request, a.thousandths)
                        : least_fraction(request, less ? free : a.thousandths + 1,
                                         less ? free : u64_least(free, MOST_FRACTION));
    if (part)
        return (struct serve_change){REMEDY_FRACTION, part};
    if (a.verdict == LACKS_SEQUENCE && a.holds.longest >= 16)
        return (struct serve_change){REMEDY_CONTEXT, a.holds.longest};
    fewer.sequences = u64_least(a.sequences, FEW_SEQUENCES);
    if (starts_with(&fewer))
        return (struct serve_change){REMEDY_SEQUENCES, fewer.sequences};
    uint64_t gpus = least_gpus(request);
    return (struct serve_change){gpus ? REMEDY_TP : REMEDY_NONE, gpus};
}
