// `fathom replay`: a recorded history through the allocator, as it was and as it might have been.
#include "core/report/replay.h"
#include "core/command/command.h"
#include "core/hardware/hardware.h"
#include "core/replay/snapshot.h"
#include "core/trace/pickle.h"
#include "core/trace/text.h"

enum { BLOCKS_SHOWN = 8 };

struct history {
    struct trace trace;
    struct allocator_options options;
    const struct value *tree; // of a snapshot, NULL for a trace
    uint64_t device;
    ptrdiff_t unknown_actions;
};

static bool read_snapshot(struct history *h, const struct query *q, const struct value *tree,
                          struct str name, struct error *e)
{
    struct snapshot s;
    if (!snapshot_read(&s, q->arena, tree, name, e))
        return false;
    *h = (struct history){s.trace, s.options, tree, s.device, s.unknown_actions};
    return true;
}

static bool read_history(struct history *h, const struct query *q, struct str name, struct error *e)
{
    struct value *tree = NEW(q->arena, struct value, 1);
    if (q->tree)
        return read_snapshot(h, q, q->tree, name, e);
    if (pickle_begins(q->document))
        return pickle_parse(tree, q->arena, q->document, name, e) &&
               read_snapshot(h, q, tree, name, e);
    if (str_starts(str_trim(q->document), STR("[")))
        return FAIL(
            e, BAD_INPUT, name,
            "this is a JSON list; a snapshot is what torch.cuda.memory._snapshot() returns, "
            "a dictionary");
    *h = (struct history){.trace = trace_in(q->arena),
                          .options = allocator_options_default(TORCH_NEWEST)};
    if (!trace_parse(&h->trace, q->document, name, e))
        return false;
    return h->trace.count || FAIL(e, BAD_INPUT, name, "this file holds no history: it is empty");
}

static bool has_driver_events(const struct trace *t)
{
    for (ptrdiff_t i = 0; i < t->count; i++)
        if (event_is_driver(t->events[i].kind))
            return true;
    return false;
}

// What the settings change; *changed says whether there were any.
static bool apply_settings(struct allocator_options *o, bool *changed, const struct query *q,
                           struct error *e)
{
    const struct setting *torch = settings_find_z(q->settings, "torch");
    const struct setting *expandable = settings_find_z(q->settings, "expandable");
    const struct setting *limit = settings_find_z(q->settings, "memory-limit");
    struct range any = {0, UINT64_MAX};
    struct hardware h;
    *changed = torch || expandable || limit || settings_find_z(q->settings, "gpu");
    if ((torch && !torch_version_parse(&o->torch_minor, torch->value, e)) ||
        (expandable && !setting_switch(&o->expandable, expandable, e)) ||
        (limit && !setting_number(&o->limit_bytes, limit, UNIT_BYTES, any, e)))
        return false;
    o->limited = o->limited || limit;
    if (!settings_find_z(q->settings, "gpu"))
        return true;
    if (!hardware_from_settings(&h, q->arena, q->settings, e))
        return false;
    o->device_bytes = h.card.memory.value;
    o->outside_bytes = h.card.context.value;
    return true;
}

static struct str owner_of(const struct history *h, struct arena *a, uint32_t tag)
{
    if (tag == EVENT_NO_TAG)
        return STR("before the history");
    struct str frame =
        h->tree ? snapshot_frame(a, h->tree, h->device, (ptrdiff_t)tag - 1) : STR_NONE;
    return frame.n ? frame : str_format(a, "event %u", tag);
}

// Plays up to the moment of interest once more to see who is alive there.
static bool look_at_peak(struct replay_story *s, const struct history *h, struct arena *a,
                         struct error *e)
{
    s->at_oom = s->result.ooms > 0;
    ptrdiff_t event = s->at_oom ? s->result.oom_event : s->result.allocated.event;
    struct replay_request q = {
        .trace = &h->trace, .options = s->options, .follow = s->recorded, .stop_after = event + 1};
    struct replay_result r;
    if (!replay_run(&r, a, &q, e))
        return false;
    s->moment = moment_of(a, r.allocator, BLOCKS_SHOWN);
    s->block_owners = NEW(a, struct str, s->moment.block_count);
    s->segment_owners = NEW(a, struct str, s->moment.segment_count);
    for (ptrdiff_t i = 0; i < s->moment.block_count; i++)
        s->block_owners[i] = owner_of(h, a, s->moment.blocks[i].tag);
    for (ptrdiff_t i = 0; i < s->moment.segment_count && i < BLOCKS_SHOWN; i++)
        s->segment_owners[i] = owner_of(h, a, s->moment.segments[i].largest_live_tag);
    return true;
}

static bool play_alternatives(struct replay_story *s, const struct history *h,
                              const struct query *q, struct error *e)
{
    struct trace program = replay_program(q->arena, &h->trace, &s->result);
    struct replay_request request = {.trace = &program, .options = s->options};
    s->what_if_options = s->options;
    if (!replay_other_mode(&s->other, q->arena, &request, e) ||
        !apply_settings(&s->what_if_options, &s->has_what_if, q, e))
        return false;
    request.options = s->what_if_options;
    request.series = &s->what_if_series;
    s->what_if_events = program.count;
    return !s->has_what_if || replay_run(&s->what_if, q->arena, &request, e);
}

static bool play(struct replay_story *s, const struct history *h, const struct query *q,
                 struct error *e)
{
    s->options = h->options;
    s->unknown_actions = h->unknown_actions;
    s->events = h->trace.count;
    s->recorded = has_driver_events(&h->trace);
    replay_infer(&s->options, &h->trace);
    struct replay_request request = {
        .trace = &h->trace, .options = s->options, .follow = s->recorded, .series = &s->series};
    return replay_run(&s->result, q->arena, &request, e) && look_at_peak(s, h, q->arena, e) &&
           play_alternatives(s, h, q, e);
}

static void attach_picture(struct answer *a, const struct query *q, const struct replay_story *s)
{
    const struct setting *svg = settings_find_z(q->settings, "svg");
    if (!svg)
        return;
    struct buf picture = buf_in(q->arena);
    report_replay_svg(&picture, s);
    answer_attach(a, q->arena, (struct attachment){svg->value, buf_str(&picture)});
}

bool replay_answer(struct answer *a, const struct query *q, struct error *e)
{
    const struct setting *file = settings_find_z(q->settings, "file");
    struct history h = {0};
    struct replay_story *s = NEW(q->arena, struct replay_story, 1);
    if (!file)
        return FAIL(e, BAD_INPUT, STR_NONE, "replay needs a file: a snapshot or a trace");
    s->name = file->value;
    if (!read_history(&h, q, file->value, e) || !play(s, &h, q, e))
        return false;
    attach_picture(a, q, s);
    if (!q->json) {
        report_replay(&a->out, &q->view, s);
        return true;
    }
    struct json_out j = json_out_to(&a->out);
    json_out_object(&j);
    json_out_key(&j, "settings");
    settings_json(&j, q->settings);
    report_replay_json(&j, s);
    json_out_object_end(&j);
    json_out_end(&j);
    return true;
}
