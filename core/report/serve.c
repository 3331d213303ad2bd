// See serve.h.
#include "core/report/serve.h"

#include "core/base/num.h"

static void put_thousandths(struct buf *b, uint64_t thousandths)
{
    if (thousandths % 10)
        buf_printf(b, "0.%03llu", (unsigned long long)thousandths);
    else
        buf_printf(b, "0.%02llu", (unsigned long long)thousandths / 10);
}

// Why it does not start, as a sentence.
static struct str reason(struct arena *a, const struct serve_story *s)
{
    const struct server_state *x = &s->server;
    struct buf b = buf_in(a);
    switch (x->verdict) {
    case SERVES:
        break;
    case LACKS_WEIGHTS:
        buf_put_z(&b, "the weights of a GPU take ");
        put_gib(&b, x->weights);
        buf_put_z(&b, ", and ");
        put_gib(&b, x->free);
        buf_put_z(&b, " are free");
        break;
    case LACKS_FREE:
        put_thousandths(&b, x->thousandths);
        buf_put_z(&b, " of the card is ");
        put_gib(&b, x->budget);
        buf_put_z(&b, ", more than the ");
        put_gib(&b, x->free);
        buf_put_z(&b, " that are free at start");
        break;
    case LACKS_CACHE:
        buf_put_z(&b, "nothing is left for keys and values: ");
        put_gib(&b, x->lacking);
        buf_put_z(&b, " are lacking");
        break;
    case LACKS_SEQUENCE:
        buf_put_z(&b, "one sequence of ");
        put_tokens(&b, s->request.context);
        buf_put_z(&b, " tokens takes ");
        put_gib(&b, x->holds.one);
        buf_put_z(&b, " of cache, and ");
        put_gib(&b, x->cache);
        buf_put_z(&b, " are left");
        break;
    case LACKS_OUTSIDE:
        put_gib(&b, x->outside);
        buf_put_z(&b, " are left beside weights and cache, and a chunk's tensors and CUDA graphs "
                      "take ");
        put_gib(&b, x->activation + x->graphs);
        break;
    case LACKS_POSITIONS:
        buf_put_z(&b, "the model has ");
        put_grouped(&b, s->request.model->max_position);
        buf_put_z(&b, " positions, and both servers refuse more");
        break;
    }
    return buf_str(&b);
}

static const char *fraction_flag(const struct serve_story *s)
{
    return s->request.server == SERVER_VLLM ? "--gpu-memory-utilization" : "--mem-fraction-static";
}

static struct str remedy(struct arena *a, const struct serve_story *s)
{
    struct buf b = buf_in(a);
    switch (s->change.kind) {
    case REMEDY_NONE:
        buf_put_z(&b, "no fraction, length or number of GPUs up to 64 was found that helps");
        break;
    case REMEDY_FRACTION:
        buf_printf(&b, "%s ", fraction_flag(s));
        put_thousandths(&b, s->change.value);
        buf_put_z(&b, " starts");
        break;
    case REMEDY_CONTEXT:
        buf_printf(&b, "--context %llu starts", (unsigned long long)s->change.value);
        break;
    case REMEDY_SEQUENCES:
        buf_printf(&b, "--max-num-seqs %llu starts", (unsigned long long)s->change.value);
        break;
    case REMEDY_TP:
        buf_printf(&b, "--tp %llu starts, on as many GPUs", (unsigned long long)s->change.value);
        break;
    }
    return buf_str(&b);
}

// The server's own command line, with every value that follows.
static struct str command_line(struct arena *a, const struct serve_story *s)
{
    const struct serve_request *r = &s->request;
    const struct server_state *x = &s->server;
    bool vllm = r->server == SERVER_VLLM;
    struct buf b = buf_in(a);
    buf_put_z(&b, vllm ? "vllm serve " : "python -m sglang.launch_server --model-path ");
    put_plain(&b, r->weights.n ? r->weights : r->model->name);
    if (r->tp > 1)
        buf_printf(&b, " %s %llu", vllm ? "--tensor-parallel-size" : "--tp-size",
                   (unsigned long long)r->tp);
    if (r->pp > 1)
        buf_printf(&b, " %s %llu", vllm ? "--pipeline-parallel-size" : "--pp-size",
                   (unsigned long long)r->pp);
    buf_printf(&b, " %s %llu %s ", vllm ? "--max-model-len" : "--context-length",
               (unsigned long long)r->context, fraction_flag(s));
    put_thousandths(&b, x->thousandths);
    if (vllm)
        buf_printf(&b, " --max-num-seqs %llu --max-num-batched-tokens %llu",
                   (unsigned long long)x->sequences, (unsigned long long)x->batch_tokens);
    else
        buf_printf(&b, " --max-running-requests %llu --chunked-prefill-size %llu",
                   (unsigned long long)x->sequences, (unsigned long long)x->chunk);
    if (!vllm && !r->eager)
        buf_printf(&b, " --cuda-graph-max-bs %llu", (unsigned long long)x->graph_batch);
    if (r->eager)
        buf_put_z(&b, vllm ? " --enforce-eager" : " --disable-cuda-graph");
    if (r->cache_bytes == 1)
        buf_put_z(&b, vllm ? " --kv-cache-dtype fp8" : " --kv-cache-dtype fp8_e4m3");
    return buf_str(&b);
}

static void put_line(struct table *t, const char *what, uint64_t bytes, const char *text)
{
    table_cell(t, str_format(t->arena, "  %s", what));
    struct buf b = buf_in(t->arena);
    put_gib(&b, bytes);
    table_cell(t, buf_str(&b));
    table_cell_z(t, text);
}

static void print_budget(struct buf *out, const struct view *v, const struct serve_story *s)
{
    static const struct column columns[] = {
        {"  on each GPU"}, {"bytes", .right = true}, {"what", .priority = 1, .wraps = true}};
    const struct server_state *x = &s->server;
    bool vllm = s->request.server == SERVER_VLLM;
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    put_line(&t, "card", x->card, "as torch sees it");
    put_line(&t, "free at start", x->free, "less the CUDA context and NCCL");
    put_line(&t, "budget", x->budget,
             vllm ? "the part of the card that it may use" : "the part of what is free");
    put_line(&t, "weights", x->weights, s->request.format->name);
    put_line(&t, vllm ? "profiling" : "a chunk's tensors", x->activation,
             vllm ? "the tensors of a full batch, or of sampling" : "outside the budget");
    if (x->other)
        put_line(&t, "other", x->other, vllm ? "outside torch" : "images that are kept");
    if (x->graphs)
        put_line(&t, "CUDA graphs", x->graphs,
                 x->graphs_counted ? "estimated, within the budget" : "on top of the budget");
    put_line(&t, "keys and values", x->cache, "what is left");
    table_print(&t, out, v);
}

static void put_speed_line(struct buf *out, const struct view *v, const struct serve_story *s)
{
    const struct server_state *x = &s->server;
    struct buf b = buf_in(out->arena);
    if (!x->decode.known) {
        buf_put_z(&b, "speed: not known, the card's rates are not");
    } else {
        buf_printf(&b,
                   "speed (computed, not measured): %.0f tokens/s for one sequence (%.0f to %.0f), "
                   "%.0f for %llu at full length (%.0f to %.0f), prompts %.0f tokens/s (%.0f to "
                   "%.0f)",
                   x->alone.tokens_per_second, x->alone.low, x->alone.high,
                   x->decode.tokens_per_second, (unsigned long long)x->decode.batch, x->decode.low,
                   x->decode.high, x->prefill.tokens_per_second, x->prefill.low, x->prefill.high);
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_title(struct buf *out, const struct view *v, const struct serve_story *s)
{
    const struct serve_request *r = &s->request;
    struct buf b = buf_in(out->arena);
    bool starts = server_starts(&s->server);
    put_plain(&b, r->model->name);
    unsigned long long gpus = r->tp * r->pp;
    buf_printf(&b, " on %llu x %s, %s: ", gpus, r->hardware->card.name, server_name(r->server));
    put_ink(out, v, INK_BOLD, buf_str(&b));
    put_ink(out, v, starts ? INK_GOOD : INK_BAD, starts ? STR("starts") : STR("does not start"));
    buf_char(out, '\n');
}

static void put_holds(struct buf *out, const struct view *v, const struct serve_story *s)
{
    const struct server_state *x = &s->server;
    uint64_t engines = hardware_gpus(s->request.hardware) / (s->request.tp * s->request.pp);
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "holds ");
    put_grouped(&b, x->holds.tokens);
    buf_put_z(&b, " tokens, ");
    put_grouped(&b, x->holds.sequences);
    buf_put_z(&b, x->holds.sequences == 1 ? " sequence of " : " sequences of ");
    put_tokens(&b, s->request.context);
    buf_put_z(&b, "; the longest that it holds alone has ");
    put_grouped(&b, x->holds.longest);
    if (x->holds.longest > x->holds.tokens)
        buf_put_z(&b, ", more than its tokens, as layers with windows or states keep less of one");
    if (engines > 1)
        buf_printf(&b, "; the machine has room for %llu such engines", (unsigned long long)engines);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_doubts(struct buf *out, const struct view *v, const struct serve_story *s)
{
    ptrdiff_t i = 0;
    for (const char *text; (text = serve_doubt(&s->request, &i));)
        buf_wrapped(out, str_format(out->arena, "not measured: %s", text), 2, v->width);
}

static void put_sleep(struct buf *out, const struct view *v, const struct serve_story *s)
{
    struct buf b = buf_in(out->arena);
    bool vllm = s->request.server == SERVER_VLLM;
    buf_put_z(&b, vllm ? "asleep (--enable-sleep-mode) it keeps "
                       : "released (--enable-memory-saver) it keeps ");
    put_gib(&b, s->server.asleep);
    buf_put_z(&b, " of the card");
    buf_put_z(&b, vllm ? "; level 1 puts the weights into host memory, level 2 drops them"
                       : "; the weights are dropped unless --enable-weights-cpu-backup is given");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

void report_serve(struct buf *out, const struct view *v, const struct serve_story *s)
{
    struct arena *a = out->arena;
    put_title(out, v, s);
    if (server_starts(&s->server))
        put_holds(out, v, s);
    else
        buf_wrapped(out,
                    str_format(a, "%.*s; %.*s", STR_ARGS(reason(a, s)), STR_ARGS(remedy(a, s))), 2,
                    v->width);
    buf_char(out, '\n');
    print_budget(out, v, s);
    buf_char(out, '\n');
    put_doubts(out, v, s);
    if (!server_starts(&s->server))
        return;
    put_speed_line(out, v, s);
    put_sleep(out, v, s);
    buf_printf(out, "  %.*s\n", STR_ARGS(command_line(a, s)));
}

static void speed_json(struct json_out *j, const char *key, const struct serve_speed *s)
{
    json_out_key(j, key);
    if (!s->known) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_field_u64(j, "batch", s->batch);
    json_out_key(j, "seconds");
    json_out_double(j, s->seconds);
    json_out_key(j, "tokens_per_s");
    json_out_double(j, s->tokens_per_second);
    json_out_key(j, "low_tokens_per_s");
    json_out_double(j, s->low);
    json_out_key(j, "high_tokens_per_s");
    json_out_double(j, s->high);
    json_out_object_end(j);
}

static void flags_json(struct json_out *j, const struct serve_story *s)
{
    const struct server_state *x = &s->server;
    json_out_key(j, "flags");
    json_out_object(j);
    json_out_key(j, s->request.server == SERVER_VLLM ? "gpu-memory-utilization"
                                                     : "mem-fraction-static");
    json_out_double(j, (double)x->thousandths / 1000);
    json_out_field_u64(j, "max-num-seqs", x->sequences);
    if (s->request.server == SERVER_VLLM) {
        json_out_field_u64(j, "max-num-batched-tokens", x->batch_tokens);
    } else {
        json_out_field_u64(j, "chunked-prefill-size", x->chunk);
        json_out_field_u64(j, "cuda-graph-max-bs", x->graph_batch);
    }
    json_out_object_end(j);
    json_out_field_str(j, "command", command_line(j->out->arena, s));
}

void report_serve_json(struct json_out *j, const struct serve_story *s)
{
    const struct server_state *x = &s->server;
    bool starts = server_starts(x);
    json_out_field_bool(j, "starts", starts);
    if (!starts) {
        json_out_field_str(j, "reason", reason(j->out->arena, s));
        json_out_field_str(j, "remedy", remedy(j->out->arena, s));
        json_out_field_u64(j, "lacking_bytes", x->lacking);
    }
    json_out_field_u64(j, "card_bytes", x->card);
    json_out_field_u64(j, "free_bytes", x->free);
    json_out_field_u64(j, "budget_bytes", x->budget);
    json_out_field_u64(j, "weights_bytes", x->weights);
    json_out_field_u64(j, "activation_bytes", x->activation);
    json_out_field_u64(j, "other_bytes", x->other);
    json_out_field_u64(j, "graph_bytes", x->graphs);
    json_out_field_bool(j, "graphs_in_budget", x->graphs_counted);
    json_out_field_u64(j, "kv_bytes", x->cache);
    json_out_field_u64(j, "asleep_bytes", x->asleep);
    json_out_field_u64(j, "kv_tokens", x->holds.tokens);
    json_out_field_u64(j, "sequences", x->holds.sequences);
    json_out_field_u64(j, "sequence_bytes", x->holds.one);
    json_out_field_u64(j, "longest_context", x->holds.longest);
    json_out_field_str(j, "weights_format", str_from(s->request.format->name));
    flags_json(j, s);
    speed_json(j, "decode", &x->decode);
    speed_json(j, "decode_alone", &x->alone);
    speed_json(j, "prefill", &x->prefill);
    json_out_field_str(
        j, "speed_basis",
        STR("computed from the rates of training's kernels; no server was measured"));
    json_out_key(j, "unmeasured");
    json_out_array(j);
    ptrdiff_t i = 0;
    for (const char *text; (text = serve_doubt(&s->request, &i));)
        json_out_str(j, str_from(text));
    json_out_array_end(j);
}
