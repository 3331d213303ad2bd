// The keys are those of torch 2.5 to 2.11 (torch/csrc/cuda/memory_snapshot.cpp and
// torch/utils/viz/MemoryViz.js, which reads them).
#include "core/report/snapshot.h"

#include <string.h>

#include "core/trace/pickle_out.h"

enum {
    PIECE = 1000, // items of a list at once, as Python's own pickles have them
    KEY_BYTES = 512,
};

// ------------------------------------------------------------------ owners

struct walk {
    struct snapshot_owners owners;
    ptrdiff_t phase, module;        // marks that hold now
    uint32_t numbers[MEMORY_KINDS]; // of owners since the last mark; 0: none yet
};

static void pass_marks(struct walk *w, const struct history *h, ptrdiff_t event)
{
    ptrdiff_t phase = w->phase, module = w->module;
    while (phase + 1 < h->phase_count && h->phases[phase + 1].event <= event)
        phase++;
    while (module + 1 < h->module_count && h->modules[module + 1].event <= event)
        module++;
    if (phase == w->phase && module == w->module)
        return;
    w->phase = phase;
    w->module = module;
    memset(w->numbers, 0, sizeof w->numbers);
}

static uint32_t number_of(struct walk *w, struct arena *a, enum memory_kind kind)
{
    struct snapshot_owners *o = &w->owners;
    if (w->numbers[kind])
        return w->numbers[kind];
    o->items = arena_grow(a, o->items, sizeof *o->items, o->count, &o->capacity);
    o->items[o->count] = (struct snapshot_owner){kind, w->phase, w->module};
    w->numbers[kind] = (uint32_t)o->count++;
    return w->numbers[kind];
}

struct snapshot_owners snapshot_owners_of(struct history *h, struct arena *a)
{
    struct walk w = {.phase = -1, .module = -1};
    (void)number_of(&w, a, MEMORY_UNKNOWN); // no tag
    for (ptrdiff_t i = 0; i < h->trace.count; i++) {
        struct event *e = &h->trace.events[i];
        pass_marks(&w, h, i);
        if (e->kind == EVENT_ALLOC)
            e->tag = number_of(&w, a, (enum memory_kind)e->tag);
    }
    return w.owners;
}

// ------------------------------------------------------------------ stacks

struct writer {
    struct pickle_out p;
    const struct recording *r;
    struct arena *arena;
};

// "layers.3.mlp.up_proj" of "layers.{layer}.mlp.up_proj.weight"; of one whose own work is over,
// what it is part of.
static struct str module_of(struct arena *a, const struct module_mark *m)
{
    struct str path = str_cut_last(str_from(m->parameter), '.').head;
    struct str_cut part = str_cut_last(path, '.');
    if (m->done)
        path = part.found ? part.head : STR_NONE;
    struct str_cut opened = str_cut(path, '{'), closed = str_cut(opened.tail, '}');
    if (!opened.found)
        return path;
    if (!str_is(closed.head, "layer")) // a vision tower's blocks are not told apart
        return str_format(a, "%.*s*%.*s", STR_ARGS(opened.head), STR_ARGS(closed.tail));
    return str_format(a, "%.*s%d%.*s", STR_ARGS(opened.head), m->layer, STR_ARGS(closed.tail));
}

static void put_frame(struct writer *w, struct str name, struct str file)
{
    char block[KEY_BYTES];
    struct buf key = buf_over(block, sizeof block);
    ASSERT(name.n + file.n < KEY_BYTES - 8); // tensors of our tables, phases, kinds
    buf_printf(&key, "frame:%.*s:%.*s", STR_ARGS(file), STR_ARGS(name));
    if (pickle_out_recall(&w->p, buf_str(&key)))
        return;
    pickle_out_dict(&w->p);
    pickle_out_field_text(&w->p, "name", name);
    pickle_out_field_text(&w->p, "filename", file);
    pickle_out_field_u64(&w->p, "line", 0);
    pickle_out_dict_end(&w->p);
    pickle_out_remember(&w->p, buf_str(&key));
}

static void put_stack(struct writer *w, const struct snapshot_owner *o)
{
    const struct history *h = w->r->history;
    struct arena *a = w->arena;
    const struct module_mark *m = o->module >= 0 ? &h->modules[o->module] : NULL;
    struct str path = m && m->parameter ? module_of(a, m) : STR_NONE;
    pickle_out_list(&w->p);
    put_frame(w, str_from(memory_kind_name(o->kind)), path.n ? path : STR("model"));
    while (path.n) {
        struct str_cut part = str_cut_last(path, '.');
        put_frame(w, part.found ? part.tail : path, part.found ? part.head : STR("model"));
        path = part.found ? part.head : STR_NONE;
    }
    if (o->phase >= 0)
        put_frame(w, str_from(phase_name(h->phases[o->phase].phase)),
                  str_format(a, "step %d", h->phases[o->phase].step));
    pickle_out_list_end(&w->p);
}

static void put_frames(struct writer *w, uint32_t tag)
{
    char block[KEY_BYTES];
    struct buf key = buf_over(block, sizeof block);
    buf_printf(&key, "stack:%u", tag);
    pickle_out_key(&w->p, "frames");
    if (pickle_out_recall(&w->p, buf_str(&key)))
        return;
    put_stack(w, &w->r->owners->items[tag]);
    pickle_out_remember(&w->p, buf_str(&key));
}

// ------------------------------------------------------------------ events

static void put_event(struct writer *w, const struct event *e)
{
    struct pickle_out *p = &w->p;
    pickle_out_dict(p);
    pickle_out_field_text(p, "action", str_from(event_kind_name(e->kind)));
    pickle_out_field_u64(p, e->kind == EVENT_OOM ? "device_free" : "addr", e->address);
    pickle_out_field_u64(p, "size", e->bytes);
    pickle_out_field_u64(p, "stream", w->r->log->streams[e->stream]);
    if (e->tag != EVENT_NO_TAG)
        put_frames(w, e->tag);
    pickle_out_dict_end(p);
}

static void put_events(struct writer *w)
{
    pickle_out_key(&w->p, "device_traces");
    pickle_out_list(&w->p);
    pickle_out_list(&w->p);
    for (ptrdiff_t i = 0; i < w->r->log->count; i++) {
        if (i && i % PIECE == 0)
            pickle_out_list_piece(&w->p);
        put_event(w, &w->r->log->events[i]);
    }
    pickle_out_list_end(&w->p);
    pickle_out_list_end(&w->p);
}

// ------------------------------------------------------------------ what is left

static bool is_active(const struct block *b)
{
    return b->state == BLOCK_ALLOCATED || b->state == BLOCK_PENDING;
}

static void put_block(struct writer *w, const struct block *b)
{
    struct pickle_out *p = &w->p;
    const char *state = b->state == BLOCK_ALLOCATED ? "active_allocated"
                        : b->state == BLOCK_PENDING ? "active_pending_free"
                                                    : "inactive";
    pickle_out_dict(p);
    pickle_out_field_u64(p, "address", b->address);
    pickle_out_field_u64(p, "size", b->bytes);
    pickle_out_field_u64(p, "requested_size", is_active(b) ? b->requested_bytes : 0);
    pickle_out_field_text(p, "state", str_from(state));
    if (is_active(b) && b->tag != EVENT_NO_TAG)
        put_frames(w, b->tag);
    pickle_out_dict_end(p);
}

// A stretch of blocks with memory behind them; of an expandable segment there may be several.
struct stretch {
    const struct segment *segment;
    const struct block *first, *end;
    uint64_t bytes;
};

static void put_stretch(struct writer *w, const struct stretch *s)
{
    struct pickle_out *p = &w->p;
    uint64_t allocated = 0, active = 0, requested = 0;
    for (const struct block *b = s->first; b != s->end; b = b->next) {
        allocated += b->state == BLOCK_ALLOCATED ? b->bytes : 0;
        active += is_active(b) ? b->bytes : 0;
        requested += is_active(b) ? b->requested_bytes : 0;
    }
    pickle_out_dict(p);
    pickle_out_field_u64(p, "device", 0);
    pickle_out_field_u64(p, "address", s->first->address);
    pickle_out_field_u64(p, "total_size", s->bytes);
    pickle_out_field_u64(p, "allocated_size", allocated);
    pickle_out_field_u64(p, "active_size", active);
    pickle_out_field_u64(p, "requested_size", requested);
    pickle_out_field_u64(p, "stream", w->r->log->streams[s->segment->stream]);
    pickle_out_field_text(p, "segment_type", s->segment->small ? STR("small") : STR("large"));
    pickle_out_key(p, "segment_pool_id");
    pickle_out_u64(p, 0);
    pickle_out_u64(p, 0);
    pickle_out_pair(p);
    pickle_out_key(p, "is_expandable");
    pickle_out_bool(p, s->segment->expandable);
    pickle_out_key(p, "blocks");
    pickle_out_list(p);
    for (const struct block *b = s->first; b != s->end; b = b->next)
        put_block(w, b);
    pickle_out_list_end(p);
    pickle_out_dict_end(p);
}

static void put_segment(struct writer *w, const struct segment *segment)
{
    for (const struct block *b = segment->first; b;) {
        struct stretch s = {.segment = segment, .first = b};
        for (; b && b->state != BLOCK_UNMAPPED; b = b->next)
            s.bytes += b->bytes;
        s.end = b;
        if (s.first != s.end)
            put_stretch(w, &s);
        while (b && b->state == BLOCK_UNMAPPED)
            b = b->next;
    }
}

// In ascending order of address, as torch sorts them.
static void put_segments(struct writer *w)
{
    const struct segment *last = NULL;
    pickle_out_key(&w->p, "segments");
    pickle_out_list(&w->p);
    for (;;) {
        const struct segment *next = NULL;
        for (const struct segment *s = w->r->allocator->segments; s; s = s->next)
            if ((!last || s->address > last->address) && (!next || s->address < next->address))
                next = s;
        if (!next)
            break;
        put_segment(w, next);
        last = next;
    }
    pickle_out_list_end(&w->p);
}

void report_snapshot(struct buf *out, const struct recording *r)
{
    struct arena *a = out->arena;
    struct writer w = {pickle_out_to(out), r, a};
    pickle_out_dict(&w.p);
    pickle_out_key(&w.p, "predicted");
    pickle_out_bool(&w.p, true);
    put_events(&w);
    put_segments(&w);
    pickle_out_key(&w.p, "allocator_settings");
    pickle_out_dict(&w.p);
    pickle_out_key(&w.p, "expandable_segments");
    pickle_out_bool(&w.p, r->expandable);
    pickle_out_dict_end(&w.p);
    pickle_out_dict_end(&w.p);
    pickle_out_end(&w.p);
}
