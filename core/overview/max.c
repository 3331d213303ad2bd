// One capacity in full, and the parts of it that tables and JSON share.
#include "core/overview/max.h"

#include "core/base/units.h"
#include "core/report/predict.h"
#include "core/report/step_time.h"
#include "core/report/verdict.h"

struct str machine_text(struct arena *a, const struct hardware *h)
{
    if (h->nodes > 1)
        return str_format(a, "%llu x %llu x %s", (unsigned long long)h->nodes,
                          (unsigned long long)h->gpus_per_node, h->card.name);
    return str_format(a, "%llu x %s", (unsigned long long)h->gpus_per_node, h->card.name);
}

struct str model_text(const struct sweep *s, ptrdiff_t model)
{
    struct str name = s->models[model].value;
    return name.n ? name : STR("model");
}

void put_factor(struct buf *b, double factor)
{
    char block[32];
    struct buf digits = buf_over(block, sizeof block);
    buf_printf(&digits, "%.4f", factor);
    while (digits.n && digits.p[digits.n - 1] == '0')
        digits.n--;
    if (digits.n && digits.p[digits.n - 1] == '.')
        digits.n--;
    buf_put(b, buf_str(&digits));
}

// ------------------------------------------------------------------ text

static void put_length(struct buf *b, uint64_t tokens)
{
    buf_printf(b, "%llu", (unsigned long long)tokens);
}

// "step 1 runs out of memory in the backward, asking for 2.3 GiB of logits and their copies"
static void put_stop(struct buf *b, const struct capacity *c)
{
    if (c->stop.verdict.host_is_short) {
        put_host_short(b, &c->stop.verdict, &c->stop.host);
        return;
    }
    if (c->stop.step)
        buf_printf(b, "step %d runs out of memory in the %s, asking for ", c->stop.step,
                   phase_name(c->stop.phase));
    else
        buf_printf(b, "out of memory while %s, asking for ", phase_name(c->stop.phase));
    put_bytes(b, c->stop.oom.tried_bytes);
    buf_printf(b, " (%s)", memory_kind_name(c->stop.kind));
}

// What was there at the failure: cached, and not yet taken.
static void put_cause(struct buf *b, const struct capacity *c)
{
    const struct allocator_oom *oom = &c->stop.oom;
    uint64_t reserved = oom->allocated_bytes + oom->unallocated_bytes;
    bool pieces = oom->cause == OOM_FRAGMENTATION;
    buf_put_z(b, pieces ? "fragmentation: " : "exhaustion: ");
    put_bytes(b, oom->unallocated_bytes);
    buf_put_z(b, " reserved and not allocated, ");
    put_bytes(b, oom->limit_bytes > reserved ? oom->limit_bytes - reserved : 0);
    buf_put_z(b, pieces ? " not reserved yet: enough, but not in one piece"
                        : " not reserved yet: too little, even in one piece");
}

struct str length_warning(struct arena *a, const struct sweep *s, ptrdiff_t model)
{
    const struct capacity *longest = NULL;
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        const struct cell *c = &s->cells[i];
        if (c->model == model && c->possible &&
            (!longest || c->capacity.context > longest->context))
            longest = &c->capacity;
    }
    return longest ? native_warning(a, model_text(s, model), longest->max_position,
                                    &longest->native, longest->context)
                   : STR_NONE;
}

void print_length_warnings(struct buf *out, const struct view *v, const struct sweep *s, int indent)
{
    for (ptrdiff_t m = 0; m < s->model_count; m++) {
        struct str warning = length_warning(out->arena, s, m);
        if (!warning.n)
            continue;
        warning = str_format(out->arena, "warning: %.*s", STR_ARGS(warning));
        buf_wrapped(out, warning, indent, v->width);
    }
}

void length_warnings_json(struct json_out *j, const struct sweep *s)
{
    json_out_key(j, "warnings");
    json_out_array(j);
    for (ptrdiff_t m = 0; m < s->model_count; m++) {
        struct str warning = length_warning(j->out->arena, s, m);
        if (warning.n)
            json_out_str(j, warning);
    }
    json_out_array_end(j);
}

// "28672 tokens", "20480 tokens, tight up to 28672", "nothing is safe, tight up to 4096" or
// "nothing fits".
static void print_verdict(struct buf *out, const struct view *v, const struct capacity *c)
{
    struct buf b = buf_in(out->arena);
    if (c->context) {
        put_length(&b, c->context);
        buf_put_z(&b, " tokens");
    } else {
        buf_put_z(&b, c->fits_context ? "nothing is safe" : "nothing fits");
    }
    put_ink(out, v, c->context ? INK_GOOD : c->fits_context ? INK_WARN : INK_BAD, buf_str(&b));
    if (capacity_needs_yarn(c)) {
        buf_put_z(out, ", with YaRN factor ");
        put_factor(out, capacity_yarn_factor(c));
        buf_put_z(out, " (the model ");
        put_positions(out, c->max_position, &c->native);
        buf_char(out, ')');
    }
    if (c->fits_context > c->context)
        buf_printf(out, ", tight up to %llu", (unsigned long long)c->fits_context);
    buf_char(out, '\n');
}

static void print_peak(struct buf *out, const struct view *v, const struct capacity *c)
{
    struct buf b = buf_in(out->arena);
    if (!c->context)
        return;
    put_length(&b, c->context);
    buf_put_z(&b, " tokens: ");
    put_bytes(&b, c->reserved_bytes);
    buf_put_z(&b, " reserved of the ");
    put_bytes(&b, c->limit_bytes);
    buf_put_z(&b, " that torch may take, ");
    put_bytes(&b, capacity_left_bytes(c));
    buf_put_z(&b, " left");
    if (verdict_margin_bytes(&c->verdict)) {
        buf_put_z(&b, " (");
        put_bytes(&b, verdict_margin_bytes(&c->verdict));
        buf_put_z(&b, " wanted)");
    }
    buf_printf(&b, "; the peak, ");
    put_bytes(&b, c->allocated_bytes);
    buf_printf(&b, " allocated, is in step %d, %s", c->step, phase_name(c->phase));
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void print_tight(struct buf *out, const struct view *v, const struct capacity *c)
{
    struct buf b = buf_in(out->arena);
    if (!c->tight_at)
        return;
    put_length(&b, c->tight_at);
    buf_put_z(&b, " tokens: tight, ");
    put_tight_because(&b, &c->tight);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void print_stop(struct buf *out, const struct view *v, const struct capacity *c)
{
    struct buf b = buf_in(out->arena);
    if (!c->fails_at) {
        buf_printf(&b, "longer ones are not modelled: %s", capacity_end_text(c));
        buf_wrapped(out, buf_str(&b), 2, v->width);
        return;
    }
    put_length(&b, c->fails_at);
    buf_put_z(&b, " tokens: ");
    put_stop(&b, c);
    buf_wrapped(out, buf_str(&b), 2, v->width);
    if (c->stop.verdict.host_is_short)
        return;
    struct buf cause = buf_in(out->arena);
    put_cause(&cause, c);
    buf_wrapped(out, buf_str(&cause), 4, v->width);
}

static void print_work(struct buf *out, const struct view *v, const struct capacity *c)
{
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "found with ");
    buf_count(&b, (uint64_t)c->simulations, "simulated job");
    buf_put_z(&b, " and ");
    buf_count(&b, (uint64_t)c->replays, "replay");
    if (c->stride > 1)
        buf_printf(&b,
                   "; of the lengths near the limit one in %d was tried, and all after the "
                   "last of them that fits",
                   c->stride);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

void report_max(struct buf *out, const struct view *v, const struct max_story *s)
{
    const struct capacity *c = &s->sweep->cells[0].capacity;
    print_verdict(out, v, c);
    buf_put_z(out, "  ");
    put_plain(out, s->job->model.name);
    struct str machine = machine_text(out->arena, &s->job->hardware);
    buf_printf(out, " on %.*s\n", STR_ARGS(machine));
    report_job(out, v, s->job);
    buf_char(out, '\n');
    print_peak(out, v, c);
    if (c->context)
        report_time(out, v, &c->time);
    print_tight(out, v, c);
    print_stop(out, v, c);
    print_length_warnings(out, v, s->sweep, 2);
    report_host(out, v, c->host_bytes, &c->verdict.wanted);
    report_unmeasured(out, v, s->job);
    if (s->explain)
        print_work(out, v, c);
}

// ------------------------------------------------------------------ JSON

static void peak_json(struct json_out *j, const struct capacity *c)
{
    json_out_key(j, "peak");
    if (!c->context) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_field_u64(j, "allocated_bytes", c->told.allocated_bytes);
    json_out_field_u64(j, "requested_bytes", c->told.requested_bytes);
    json_out_field_u64(j, "reserved_bytes", c->told.reserved_bytes);
    json_out_field_u64(j, "driver_bytes", c->told.reserved_bytes + c->outside_bytes);
    json_out_field_str(j, "phase", str_from(phase_name(c->told_phase)));
    json_out_object_end(j);
}

static void stop_json(struct json_out *j, const struct capacity *c)
{
    json_out_key(j, "stopped_by");
    if (!c->fails_at) {
        json_out_null(j);
        return;
    }
    bool pieces = c->stop.oom.cause == OOM_FRAGMENTATION;
    json_out_object(j);
    if (c->stop.verdict.host_is_short) {
        json_out_field_str(j, "what", STR("host memory"));
        json_out_field_u64(j, "host_bytes", host_bytes_most(&c->stop.host));
        json_out_object_end(j);
        return;
    }
    json_out_field_u64(j, "step", (uint64_t)c->stop.step);
    json_out_field_str(j, "phase", str_from(phase_name(c->stop.phase)));
    json_out_field_str(j, "what", str_from(memory_kind_name(c->stop.kind)));
    json_out_field_u64(j, "tried_bytes", c->stop.oom.tried_bytes);
    json_out_field_u64(j, "unallocated_bytes", c->stop.oom.unallocated_bytes);
    json_out_field_str(j, "cause", pieces ? STR("fragmentation") : STR("exhaustion"));
    json_out_object_end(j);
}

static void optional_u64(struct json_out *j, const char *key, uint64_t value, bool known)
{
    json_out_key(j, key);
    if (known)
        json_out_u64(j, value);
    else
        json_out_null(j);
}

static void tight_json(struct json_out *j, const struct capacity *c)
{
    struct buf because = buf_in(j->out->arena);
    optional_u64(j, "tight_at", c->tight_at, c->tight_at != 0);
    json_out_key(j, "tight_because");
    put_tight_because(&because, &c->tight);
    if (c->tight_at)
        json_out_str(j, buf_str(&because));
    else
        json_out_null(j);
}

static void capacity_json(struct json_out *j, const struct capacity *c)
{
    json_out_field_u64(j, "max_context", c->context);
    json_out_field_u64(j, "fits_context", c->fits_context);
    optional_u64(j, "step", c->next - c->context, c->next != 0);
    optional_u64(j, "fails_at", c->fails_at, c->fails_at != 0);
    json_out_key(j, "yarn_factor");
    if (capacity_needs_yarn(c))
        json_out_double(j, capacity_yarn_factor(c));
    else
        json_out_null(j);
    peak_json(j, c);
    report_time_json(j, &c->time);
    json_out_field_u64(j, "capacity_bytes", c->limit_bytes);
    optional_u64(j, "left_bytes", capacity_left_bytes(c), c->context != 0);
    optional_u64(j, "margin_bytes", verdict_margin_bytes(&c->verdict), c->context != 0);
    optional_u64(j, "host_bytes", c->host_bytes, c->host_bytes != 0);
    tight_json(j, c);
    stop_json(j, c);
}

void report_max_json(struct json_out *j, const struct max_story *s)
{
    capacity_json(j, &s->sweep->cells[0].capacity);
    length_warnings_json(j, s->sweep);
}

static void cell_name_json(struct json_out *j, const struct sweep *s, const struct cell *c)
{
    const struct hardware *h = &s->machines[c->machine].hardware;
    json_out_field_str(j, "gpu", str_from(h->card.name));
    json_out_field_u64(j, "gpus", hardware_gpus(h));
    uint64_t size;
    if (unit_parse(&size, UNIT_COUNT, s->variants[c->variant].name) == UNIT_OK)
        json_out_field_u64(j, s->varies, size);
    json_out_field_str(j, "model", model_text(s, c->model));
}

void report_max_cells_json(struct json_out *j, const struct max_story *story)
{
    const struct sweep *s = story->sweep;
    json_out_key(j, "cells");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        if (!s->cells[i].possible)
            continue;
        json_out_object(j);
        cell_name_json(j, s, &s->cells[i]);
        capacity_json(j, &s->cells[i].capacity);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_key(j, "left_out");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->cell_count; i++) {
        if (s->cells[i].possible)
            continue;
        json_out_object(j);
        cell_name_json(j, s, &s->cells[i]);
        json_out_field_str(j, "reason", str_from(s->cells[i].refusal.message));
        json_out_object_end(j);
    }
    json_out_array_end(j);
    length_warnings_json(j, s);
}
