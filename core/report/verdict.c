// A verdict's words, and its keys in JSON.
#include "core/report/verdict.h"

#include "core/base/units.h"

enum { MILLION = 1000000 };

enum ink verdict_ink(const struct verdict *v)
{
    return v->grade == GRADE_SAFE ? INK_GOOD : v->grade == GRADE_TIGHT ? INK_WARN : INK_BAD;
}

// "0.32 % as in the worst of 76 measured runs (plain step under fsdp2)": by how much more torch may
// reserve.
static void put_short(struct buf *b, const struct evidence *v)
{
    uint64_t parts = evidence_short(v);
    buf_printf(b, "%.2g %% ", (double)parts * 100 / (double)MILLION);
    if (!v->runs)
        buf_put_z(b, "as in 20 of 21 jobs that others published, as this kind was not measured");
    else if (parts > v->errors.reserved_short)
        buf_printf(b, "as of 95 in 100 runs of all kinds, with only %llu of this one (%s)",
                   (unsigned long long)v->runs, v->kind);
    else
        buf_printf(b, "as in the worst of %llu measured runs (%s)", (unsigned long long)v->runs,
                   v->kind);
}

// "81 MiB is free, and 1.22 GiB should be: ..."
static void put_little_is_free(struct buf *b, const struct verdict *v)
{
    put_bytes(b, v->free_bytes);
    buf_put_z(b, " is free, and ");
    put_bytes(b, verdict_margin_bytes(v));
    if (v->wanted.margin_given) {
        buf_put_z(b, " is asked for");
        return;
    }
    buf_put_z(b, " should be: torch may reserve ");
    put_bytes(b, v->error_bytes);
    buf_put_z(b, " more than predicted, ");
    put_short(b, &v->evidence);
    if (!v->spread_bytes)
        return;
    buf_put_z(b, ", and ");
    put_bytes(b, v->spread_bytes);
    buf_put_z(b, " more may live outside it");
}

void put_tight_because(struct buf *b, const struct verdict *v)
{
    bool little = v->free_bytes < verdict_margin_bytes(v);
    if (v->grade != GRADE_TIGHT)
        return;
    if (little)
        put_little_is_free(b, v);
    if (!v->flushes || v->wanted.margin_given)
        return;
    buf_printf(b, "%safter step 1 torch still flushes its cache to find room, ",
               little ? "; " : "");
    buf_printf(b, v->flushes == 1 ? "once" : "%llu times", (unsigned long long)v->flushes);
}

void put_host_short(struct buf *b, const struct verdict *v, const struct host_bytes *host)
{
    uint64_t most = host_bytes_most(host);
    buf_put_z(b, "needs ");
    put_bytes(b, most);
    buf_put_z(b, " of host memory on a node that has ");
    put_bytes(b, v->wanted.host_bytes);
    if (most > host->train)
        buf_put_z(b, most == host->load   ? ", to load"
                     : most == host->save ? ", to save"
                                          : ", to evaluate");
}

void put_confidence(struct buf *b, const struct verdict *v)
{
    if (v->grade == GRADE_NO)
        return;
    buf_put_z(b, "nvidia-smi should show ");
    put_bytes(b, v->driver_low_bytes);
    buf_put_z(b, " to ");
    put_bytes(b, v->driver_high_bytes);
    if (v->free_bytes < verdict_margin_bytes(v) && !v->wanted.margin_given)
        return; // the rest is said there
    buf_put_z(b, "; torch may reserve more than predicted, ");
    put_short(b, &v->evidence);
}

// ------------------------------------------------------------------ JSON

static void part_json(struct json_out *j, const char *key, uint64_t millionths)
{
    json_out_key(j, key);
    json_out_double(j, (double)millionths / (double)MILLION);
}

static void evidence_json(struct json_out *j, const struct evidence *v)
{
    json_out_key(j, "evidence");
    json_out_object(j);
    json_out_field_str(j, "kind", str_from(v->kind));
    json_out_field_u64(j, "runs", v->runs);
    json_out_field_str(j, "source", str_from(v->source));
    part_json(j, "allocated_worst", v->errors.allocated_worst);
    part_json(j, "reserved_median", v->errors.reserved_median);
    part_json(j, "reserved_worst", v->errors.reserved_worst);
    part_json(j, "reserved_short", v->errors.reserved_short);
    part_json(j, "reserved_margin", evidence_short(v));
    json_out_object_end(j);
}

static void driver_json(struct json_out *j, const char *key, const struct verdict *v,
                        uint64_t bytes)
{
    json_out_key(j, key);
    if (v->grade == GRADE_NO)
        json_out_null(j);
    else
        json_out_u64(j, bytes);
}

void verdict_json(struct json_out *j, const struct verdict *v)
{
    struct buf because = buf_in(j->out->arena);
    put_tight_because(&because, v);
    json_out_field_str(j, "verdict", str_from(grade_name(v->grade)));
    json_out_field_u64(j, "margin_bytes", verdict_margin_bytes(v));
    json_out_key(j, "tight_because");
    if (because.n)
        json_out_str(j, buf_str(&because));
    else
        json_out_null(j);
    driver_json(j, "driver_low_bytes", v, v->driver_low_bytes);
    driver_json(j, "driver_high_bytes", v, v->driver_high_bytes);
    evidence_json(j, &v->evidence);
}

void report_host(struct buf *out, const struct view *v, uint64_t bytes, const struct wanted *w)
{
    struct buf b = buf_in(out->arena);
    if (!bytes)
        return;
    buf_put_z(&b, "host memory: ");
    put_bytes(&b, bytes);
    buf_put_z(&b, " on each node");
    if (w->host_bytes) {
        buf_put_z(&b, ", of ");
        put_bytes(&b, w->host_bytes);
    } else {
        buf_put_z(&b, ", taken to be there unless --host-memory says what there is");
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
}
