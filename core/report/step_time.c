// See step_time.h.
#include "core/report/step_time.h"

#include "core/base/fmt.h"

void put_seconds(struct buf *b, double seconds)
{
    int digits = seconds < 1 ? 3 : seconds < 10 ? 2 : seconds < 100 ? 1 : 0;
    buf_printf(b, "%.*f s", digits, seconds);
}

// " a step of sequences of 600 tokens padded to 1100 (4.10 s as long as any), "
static void put_lengths(struct buf *b, const struct step_time *t)
{
    buf_put_z(b, t->beside ? " an update" : " a step");
    if (t->mean_tokens > 0) {
        buf_printf(b, " of sequences of %.0f tokens", t->mean_tokens);
        if (t->padded_tokens > t->mean_tokens + 0.5)
            buf_printf(b, " in rows of %.0f", t->padded_tokens);
        buf_put_z(b, " (");
        put_seconds(b, t->longest);
        buf_put_z(b, " with the longest)");
    }
    buf_put_z(b, ", ");
}

static void put_epoch(struct buf *b, const struct step_time *t)
{
    static const double hour = 3600;
    double seconds = (double)t->epoch_steps * t->seconds;
    if (!t->epoch_steps)
        return;
    buf_put_z(b, "; an epoch is ");
    buf_count(b, t->epoch_steps, "step");
    buf_put_z(b, ", ");
    if (seconds < hour / 10)
        put_seconds(b, seconds);
    else
        buf_printf(b, "%.1f hours", seconds / hour);
}

// "time: 0.619 s a step (0.538 to 0.712 s: 19 of 20 steps ...), 6617 tokens/s on each GPU, MFU 42
// %, bound by compute"
void report_time(struct buf *out, const struct view *v, const struct step_time *t)
{
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "time: ");
    if (t->unknown) {
        buf_printf(&b, "not known: %s", t->unknown);
        buf_wrapped(out, buf_str(&b), 2, v->width);
        return;
    }
    put_seconds(&b, t->seconds);
    put_lengths(&b, t);
    put_seconds(&b, t->low);
    buf_put_z(&b, " to ");
    put_seconds(&b, t->high);
    buf_printf(&b, " (%s); %.0f tokens/s on each GPU, MFU %.0f %%, bound by %s", t->basis,
               t->tokens_per_second, 100 * t->mfu, t->bound_by);
    if (t->bubble > 0)
        buf_printf(&b, "; of which a stage waits %.0f %% for others", 100 * t->bubble);
    if (t->across)
        buf_printf(&b, "; over %s, %s between nodes", t->inside, t->across);
    else if (t->inside)
        buf_printf(&b, "; over %s", t->inside);
    put_epoch(&b, t);
    if (t->beside)
        buf_printf(&b, "; of the update alone: %s", t->beside);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void field_double(struct json_out *j, const char *key, double value)
{
    json_out_key(j, key);
    json_out_double(j, value);
}

void report_time_json(struct json_out *j, const struct step_time *t)
{
    json_out_key(j, "time");
    if (t->unknown || !t->bound_by) {
        json_out_null(j);
        json_out_field_str(j, "time_unknown",
                           str_from(t->unknown ? t->unknown : "no step was simulated to its end"));
        return;
    }
    json_out_object(j);
    field_double(j, "step_s", t->seconds);
    field_double(j, "low_s", t->low);
    field_double(j, "high_s", t->high);
    field_double(j, "tokens_per_s", t->tokens_per_second);
    field_double(j, "mfu", t->mfu);
    json_out_field_str(j, "bound_by", str_from(t->bound_by));
    if (t->bubble > 0)
        field_double(j, "bubble", t->bubble);
    if (t->reading > 0)
        field_double(j, "reading_s", t->reading);
    json_out_field_str(j, "basis", str_from(t->basis));
    if (t->beside)
        json_out_field_str(j, "update_alone", str_from(t->beside));
    if (t->mean_tokens > 0) {
        field_double(j, "longest_step_s", t->longest);
        field_double(j, "mean_tokens", t->mean_tokens);
        field_double(j, "padded_tokens", t->padded_tokens);
    }
    if (t->epoch_steps) {
        json_out_field_u64(j, "steps_per_epoch", t->epoch_steps);
        field_double(j, "hours_per_epoch", (double)t->epoch_steps * t->seconds / 3600);
    }
    json_out_object_end(j);
}
