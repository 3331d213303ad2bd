// What is told of a replay, in the order a reader asks: is it the real thing, how much was needed,
// what did it look like, who held it, and what would have been otherwise.
#include "core/report/replay.h"

enum { MOST_ROWS = 8 };

static const char *mode_name(bool expandable)
{
    return expandable ? "expandable segments" : "classic segments";
}

// ------------------------------------------------------------------ text

static void print_head(struct buf *out, const struct view *v, const struct replay_story *s)
{
    const struct replay_result *r = &s->result;
    put_ink(out, v, INK_BOLD, s->name);
    buf_char(out, '\n');
    struct buf b = buf_in(out->arena);
    put_grouped(&b, (uint64_t)r->events);
    buf_put_z(&b, " events, ");
    put_grouped(&b, (uint64_t)r->allocations);
    buf_printf(&b, " allocations, %s", mode_name(s->options.expandable));
    if (s->recorded) {
        buf_printf(&b, "; %td of %td driver calls reproduced", r->segment_events_matched,
                   r->segment_events);
        if (r->segment_events_extra)
            buf_printf(&b, " and %td made that were not recorded", r->segment_events_extra);
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
    if (s->unknown_actions) {
        b = buf_in(out->arena);
        buf_count(&b, (uint64_t)s->unknown_actions, "event");
        buf_printf(&b, " of unknown kinds %s passed over",
                   s->unknown_actions == 1 ? "was" : "were");
        buf_wrapped(out, buf_str(&b), 2, v->width);
    }
    if (r->unknown_frees) {
        b = buf_in(out->arena);
        buf_printf(&b,
                   "%td frees are of blocks from before the history, whose memory is not counted",
                   r->unknown_frees);
        buf_wrapped(out, buf_str(&b), 2, v->width);
    }
}

static void print_mismatch(struct buf *out, const struct view *v, const struct tape_mismatch *m)
{
    if (!m->found)
        return;
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "first difference at event %td: recorded ", m->event);
    if (m->wanted.kind == EVENT_KINDS)
        buf_put_z(&b, "nothing");
    else
        buf_printf(&b, "%s of %llu bytes", event_kind_name(m->wanted.kind),
                   (unsigned long long)m->wanted.bytes);
    buf_put_z(&b, ", replayed ");
    if (m->got.kind == EVENT_KINDS)
        buf_put_z(&b, "nothing");
    else
        buf_printf(&b, "%s of %llu bytes", event_kind_name(m->got.kind),
                   (unsigned long long)m->got.bytes);
    buf_put_z(&b, "; an allocator setting that the recording does not tell (garbage collection's "
                  "limit, max_split_size, roundup) would do that");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_size(struct buf *out, uint64_t bytes)
{
    struct str size = bytes_text(out->arena, bytes);
    buf_printf(out, "%*s%.*s", (int)(10 - size.n), "", STR_ARGS(size));
}

static void print_peaks(struct buf *out, const struct replay_story *s)
{
    const struct replay_result *r = &s->result, *w = &s->what_if;
    static const char *const names[] = {"allocated", "requested", "reserved"};
    const uint64_t peaks[] = {r->allocated.bytes, r->requested.bytes, r->reserved.bytes};
    const uint64_t others[] = {w->allocated.bytes, w->requested.bytes, w->reserved.bytes};
    buf_char(out, '\n');
    if (s->has_what_if)
        buf_printf(out, "  %26s  %10s\n", s->recorded ? "recorded" : "as it is", "what if");
    for (ptrdiff_t i = 0; i < COUNT_OF(peaks); i++) {
        buf_printf(out, "  peak %-10s ", names[i]);
        put_size(out, peaks[i]);
        if (s->has_what_if) {
            buf_put_z(out, "  ");
            put_size(out, others[i]);
        } else if (i == 2 && r->allocated.bytes) {
            buf_printf(out, "  %.2f times the allocated",
                       (double)r->reserved.bytes / (double)r->allocated.bytes);
        }
        buf_char(out, '\n');
    }
    if (s->has_what_if && (r->ooms || w->ooms))
        buf_printf(out, "  %-15s %10s  %10s\n", "out of memory", r->ooms ? "yes" : "no",
                   w->ooms ? "yes" : "no");
    if (r->retries || r->flushes)
        buf_printf(out, "  %llu flush%s for want of memory, %td calls of empty_cache\n",
                   (unsigned long long)r->retries, r->retries == 1 ? "" : "es", r->flushes);
}

static void print_oom(struct buf *out, const struct view *v, const struct replay_result *r)
{
    if (!r->ooms)
        return;
    const struct allocator_oom *o = &r->oom;
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "Out of memory at event %td: ", r->oom_event);
    put_bytes(&b, o->tried_bytes);
    buf_put_z(&b, " more were asked of the driver with ");
    put_bytes(&b, o->allocated_bytes);
    buf_put_z(&b, " allocated and ");
    put_bytes(&b, o->unallocated_bytes);
    buf_put_z(&b, " cached but not usable for it. ");
    buf_put_z(&b,
              o->cause == OOM_FRAGMENTATION
                  ? "That is fragmentation: what is cached and what is free would have been enough "
                    "in one piece."
                  : "That is exhaustion: even with what is cached it would not have been enough.");
    if (o->free_known) {
        buf_put_z(&b, " The card had ");
        put_bytes(&b, o->free_bytes);
        buf_put_z(&b, o->by_limit ? " free: a limit refused it." : " free.");
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void print_blocks(struct buf *out, const struct view *v, const struct replay_story *s)
{
    static const struct column columns[] = {{"  largest blocks", .right = true},
                                            {"stream", .right = true},
                                            {"asked for by", .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (ptrdiff_t i = 0; i < s->moment.block_count && i < MOST_ROWS; i++) {
        const struct moment_block *b = &s->moment.blocks[i];
        table_cell(&t, bytes_text(t.arena, b->bytes));
        table_cell(&t, str_format(t.arena, "%d", b->stream));
        table_cell(&t, s->block_owners[i]);
    }
    buf_printf(out, "\n  %s\n", s->at_oom ? "Where memory ran out:" : "At the allocated peak:");
    table_print(&t, out, v);
}

static void print_pins(struct buf *out, const struct view *v, const struct replay_story *s)
{
    static const struct column columns[] = {{"  segment", .right = true},
                                            {"in use", .right = true},
                                            {"largest hole", .right = true},
                                            {"pinned by", .right = true},
                                            {"asked for by", .priority = 1, .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (ptrdiff_t i = 0; i < s->moment.segment_count && i < MOST_ROWS; i++) {
        const struct moment_segment *m = &s->moment.segments[i];
        if (!m->live_blocks || m->live_bytes == m->reserved_bytes)
            continue;
        table_cell(&t, bytes_text(t.arena, m->reserved_bytes));
        table_cell(&t, bytes_text(t.arena, m->live_bytes));
        table_cell(&t, bytes_text(t.arena, m->largest_free_bytes));
        table_cell(&t, str_format(t.arena, "%.*s block%s",
                                  STR_ARGS(grouped_text(t.arena, (uint64_t)m->live_blocks)),
                                  m->live_blocks > 1 ? "s" : ""));
        table_cell(&t, s->segment_owners[i]);
    }
    if (t.cell_count) {
        buf_put_z(out, "\n  Segments that hold unused memory and cannot be returned:\n");
        table_print(&t, out, v);
    }
}

static void print_other(struct buf *out, const struct view *v, const struct replay_result *r,
                        struct str what)
{
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "%.*s the same program ", STR_ARGS(what));
    if (r->ooms) {
        buf_printf(&b, "runs out of memory at event %td, asking for ", r->oom_event);
        put_bytes(&b, r->oom.tried_bytes);
    } else {
        buf_put_z(&b, "completes");
    }
    buf_put_z(&b, ": peak allocated ");
    put_bytes(&b, r->allocated.bytes);
    buf_put_z(&b, ", reserved ");
    put_bytes(&b, r->reserved.bytes);
    if (r->retries)
        buf_printf(&b, ", %llu flush%s for want of memory", (unsigned long long)r->retries,
                   r->retries == 1 ? "" : "es");
    buf_char(&b, '.');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static struct str what_if_text(struct arena *a, const struct allocator_options *o)
{
    struct buf b = buf_in(a);
    buf_printf(&b, "%s of torch 2.%d", mode_name(o->expandable), o->torch_minor);
    if (o->limited) {
        buf_put_z(&b, " under a limit of ");
        put_bytes(&b, o->limit_bytes);
    }
    if (o->device_bytes) {
        buf_put_z(&b, " on a card of ");
        put_bytes(&b, o->device_bytes);
    }
    return buf_str(&b);
}

void report_replay(struct buf *out, const struct view *v, const struct replay_story *s)
{
    print_head(out, v, s);
    print_mismatch(out, v, &s->result.first_mismatch);
    print_peaks(out, s);
    buf_put_z(out, !s->has_what_if ? "\n" : s->recorded ? "\n  As recorded:\n" : "\n  As it is:\n");
    struct replay_outcome recorded = replay_recorded(s);
    struct chart chart = replay_chart(out->arena, &recorded, "");
    chart_text(out, v, &chart);
    print_oom(out, v, &s->result);
    print_blocks(out, v, s);
    print_pins(out, v, s);
    buf_char(out, '\n');
    const char *other = mode_name(!s->options.expandable);
    print_other(out, v, &s->other, str_format(out->arena, "With %s", other));
    if (s->has_what_if) {
        struct str what = what_if_text(out->arena, &s->what_if_options);
        print_other(out, v, &s->what_if,
                    str_format(out->arena, "What if: with %.*s", STR_ARGS(what)));
    }
}

struct replay_outcome replay_recorded(const struct replay_story *s)
{
    return (struct replay_outcome){&s->options, &s->result, &s->series, s->events};
}

struct replay_outcome replay_what_if(const struct replay_story *s)
{
    return (struct replay_outcome){&s->what_if_options, &s->what_if, &s->what_if_series,
                                   s->what_if_events};
}

// What torch may reserve; 0: as much as it likes.
static uint64_t limit_of_options(const struct allocator_options *o)
{
    uint64_t card = o->device_bytes > o->outside_bytes ? o->device_bytes - o->outside_bytes : 0;
    if (!o->limited)
        return card;
    return card && card < o->limit_bytes ? card : o->limit_bytes;
}

struct chart replay_chart(struct arena *a, const struct replay_outcome *o, const char *title)
{
    const struct replay_series *s = o->series;
    uint64_t *cached = NEW(a, uint64_t, REPLAY_SERIES_POINTS);
    for (ptrdiff_t i = 0; i < s->count; i++)
        cached[i] = s->reserved_bytes[i] > s->allocated_bytes[i]
                        ? s->reserved_bytes[i] - s->allocated_bytes[i]
                        : 0;
    return (struct chart){
        .title = title,
        .time_axis = "over the events of the history",
        .layers = {{"allocated", "#2a6f97", "█", s->allocated_bytes},
                   {"reserved, not allocated", "#e9c46a", "░", cached}},
        .layer_count = 2,
        .points = s->count,
        .limit_bytes = limit_of_options(o->options),
        .failed = o->result->ooms > 0,
        .failed_point = o->result->ooms ? o->result->oom_event * s->count / o->events : 0,
    };
}

void report_replay_svg(struct buf *svg, const struct replay_story *s)
{
    struct arena *a = svg->arena;
    struct replay_outcome recorded = replay_recorded(s), what_if = replay_what_if(s);
    const char *how = s->recorded ? "recorded" : "as it is";
    struct str title =
        str_format(a, "%.*s, %s: %s", STR_ARGS(s->name), how, mode_name(s->options.expandable));
    struct str other = str_format(a, "what if: %.*s", STR_ARGS(what_if_text(a, what_if.options)));
    struct chart charts[2] = {replay_chart(a, &recorded, str_z(a, title)),
                              replay_chart(a, &what_if, str_z(a, other))};
    chart_svg(svg, charts, s->has_what_if ? 2 : 1, NULL);
}

// ------------------------------------------------------------------ JSON

static void event_json(struct json_out *j, const char *key, const struct event *event)
{
    json_out_key(j, key);
    if (event->kind == EVENT_KINDS) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_field_str(j, "action", str_from(event_kind_name(event->kind)));
    json_out_field_u64(j, "bytes", event->bytes);
    json_out_object_end(j);
}

static void mismatch_json(struct json_out *j, const struct tape_mismatch *m)
{
    json_out_key(j, "first_mismatch");
    if (!m->found) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_field_u64(j, "event", (uint64_t)m->event);
    event_json(j, "recorded", &m->wanted);
    event_json(j, "replayed", &m->got);
    json_out_object_end(j);
}

static void optional_bytes(struct json_out *j, const char *key, bool known, uint64_t bytes)
{
    json_out_key(j, key);
    if (known)
        json_out_u64(j, bytes);
    else
        json_out_null(j);
}

static void oom_json(struct json_out *j, const struct replay_result *r)
{
    const struct allocator_oom *o = &r->oom;
    json_out_key(j, "oom");
    if (!r->ooms) {
        json_out_null(j);
        return;
    }
    bool known = o->device_bytes > 0;
    json_out_object(j);
    json_out_field_u64(j, "event", (uint64_t)r->oom_event);
    json_out_field_u64(j, "requested_bytes", o->requested_bytes);
    json_out_field_u64(j, "tried_bytes", o->tried_bytes);
    optional_bytes(j, "capacity_bytes", known, o->device_bytes);
    optional_bytes(j, "free_bytes", o->free_known, o->free_bytes);
    optional_bytes(j, "limit_bytes", o->limited, o->limit_bytes);
    json_out_field_u64(j, "allocated_bytes", o->allocated_bytes);
    json_out_field_u64(j, "unallocated_bytes", o->unallocated_bytes);
    json_out_field_str(j, "cause",
                       o->cause == OOM_FRAGMENTATION ? STR("fragmentation") : STR("exhaustion"));
    json_out_key(j, "message");
    struct buf message = buf_in(j->out->arena);
    oom_message(o, &message);
    if (known)
        json_out_str(j, buf_str(&message));
    else
        json_out_null(j);
    json_out_object_end(j);
}

static void outcome_json(struct json_out *j, const struct replay_result *r)
{
    json_out_key(j, "peak");
    json_out_object(j);
    json_out_field_u64(j, "allocated_bytes", r->allocated.bytes);
    json_out_field_u64(j, "requested_bytes", r->requested.bytes);
    json_out_field_u64(j, "active_bytes", r->active.bytes);
    json_out_field_u64(j, "reserved_bytes", r->reserved.bytes);
    json_out_object_end(j);
    json_out_field_u64(j, "retries", r->retries);
    json_out_field_u64(j, "empty_cache_calls", (uint64_t)r->flushes);
    oom_json(j, r);
}

static void mode_json(struct json_out *j, const struct allocator_options *o)
{
    json_out_field_str(j, "mode", o->expandable ? STR("expandable") : STR("classic"));
    json_out_field_str(j, "torch", str_format(j->out->arena, "2.%d", o->torch_minor));
}

static void blocks_json(struct json_out *j, const struct replay_story *s)
{
    json_out_key(j, "largest_blocks");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < s->moment.block_count && i < MOST_ROWS; i++) {
        const struct moment_block *b = &s->moment.blocks[i];
        json_out_object(j);
        json_out_field_u64(j, "bytes", b->bytes);
        json_out_field_u64(j, "requested_bytes", b->requested_bytes);
        json_out_field_u64(j, "stream", b->stream);
        json_out_field_str(j, "asked_for_by", s->block_owners[i]);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void alternative_json(struct json_out *j, const char *key, const struct allocator_options *o,
                             const struct replay_result *r)
{
    json_out_key(j, key);
    json_out_object(j);
    json_out_field_str(j, "numbers_of", STR("what_if"));
    mode_json(j, o);
    optional_bytes(j, "limit_bytes", o->limited, o->limit_bytes);
    outcome_json(j, r);
    json_out_object_end(j);
}

void report_replay_json(struct json_out *j, const struct replay_story *s)
{
    const struct replay_result *r = &s->result;
    json_out_field_str(j, "numbers_of", s->recorded ? STR("recording") : STR("program"));
    mode_json(j, &s->options);
    optional_bytes(j, "limit_bytes", s->options.limited, s->options.limit_bytes);
    json_out_field_u64(j, "events", (uint64_t)r->events);
    json_out_field_u64(j, "unknown_actions", (uint64_t)s->unknown_actions);
    json_out_field_u64(j, "allocations", (uint64_t)r->allocations);
    json_out_field_u64(j, "segment_events", (uint64_t)r->segment_events);
    json_out_field_u64(j, "segment_events_matched", (uint64_t)r->segment_events_matched);
    json_out_field_u64(j, "segment_events_extra", (uint64_t)r->segment_events_extra);
    mismatch_json(j, &r->first_mismatch);
    outcome_json(j, r);
    blocks_json(j, s);
    struct allocator_options other = s->options;
    other.expandable = !other.expandable;
    alternative_json(j, "other_mode", &other, &s->other);
    if (s->has_what_if) {
        alternative_json(j, "what_if", &s->what_if_options, &s->what_if);
    } else {
        json_out_key(j, "what_if");
        json_out_null(j);
    }
}
