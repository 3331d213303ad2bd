// Which notes there are, and how they are filled. See stamp.h, and stamp_notes.h for what they are.
#include "core/autograd/stamp.h"

#include <string.h>

#include "core/autograd/stamp_notes.h"

enum { STAMP_ROWS = 12, MOST_TRIES = 4 };

struct stamps {
    struct stamp rows[STAMP_ROWS];
    int count;
};

// ------------------------------------------------------------------ parameters

int32_t stamp_name_of(const struct graph *g, const struct kin *k, int parameter)
{
    if (parameter >= k->first && parameter < k->first + k->count)
        return (parameter - k->first) * 4;
    for (int i = 0; i < k->count; i++) {
        const struct parameter *p = &g->parameters[k->first + i];
        if (p->adapter && parameter >= p->adapter && parameter < p->adapter + adapter_tensors(p))
            return i * 4 + 1 + parameter - p->adapter;
    }
    return -1;
}

// ------------------------------------------------------------------ which notes

static struct stamp *row_of(struct graph *g, const struct kin *k, bool backward)
{
    if (!g->stamps)
        g->stamps = NEW(g->machine->arena, struct stamps, 1);
    struct stamps *all = g->stamps;
    for (int i = 0; i < all->count; i++)
        if (all->rows[i].kin.like == k->like && all->rows[i].backward == backward)
            return &all->rows[i];
    if (all->count == STAMP_ROWS)
        return NULL;
    struct stamp *s = &all->rows[all->count++];
    s->kin = *k;
    s->backward = backward;
    s->arena = g->machine->arena;
    return s;
}

static uint32_t bits_of(const bool *flags, int count)
{
    uint32_t bits = 0;
    for (int i = 0; i < count; i++)
        bits |= (uint32_t)flags[i] << i;
    return bits;
}

static uint32_t ready_in(const struct graph *g)
{
    return bits_of(g->gemm_ready, 2) | bits_of(g->fused_bias_ready, 2) << 2;
}

static void occasion_of(struct occasion *o, const struct graph *g, const struct var *in,
                        const struct var *also)
{
    const struct machine *m = g->machine;
    const bool flags[] = {g->autocast,
                          g->without_adapters,
                          g->in_backward,
                          g->flat,
                          g->keeping,
                          m->time,
                          g->boundary != NULL,
                          g->gradient_ready != NULL,
                          g->module};
    memset(o, 0, sizeof *o);
    if (m->time)
        memcpy(&o->begun, &m->time->begun, sizeof o->begun);
    memcpy(o->loaded, g->loaded, sizeof o->loaded);
    o->elements = in->elements;
    o->width = in->width;
    for (int i = 0; i < FRAME_ALSO; i++)
        o->also_bytes[i] = also[i].storage ? also[i].storage->bytes : 0;
    o->memory = (uint32_t)g->kind;
    o->stream = m->stream;
    o->parameter_stream = g->parameter_stream;
    o->ready = ready_in(g);
    o->flags = bits_of(flags, (int)COUNT_OF(flags));
}

static bool can_be_stamped(const struct graph *g, const struct frame *f)
{
    const struct machine *m = g->machine;
    return f->kin.like && g->recording && !g->reentrant && !g->engine && !f->input_on_host &&
           !m->makes_all && !m->each_layer && !m->watched && !m->stamp;
}

static bool same_occasion(const struct occasion *a, const struct occasion *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

// One layer may be called otherwise than all others are: notes are not given up for it.
static bool is_passing(struct stamp *s, const struct occasion *now)
{
    bool passing = s->made && s->when.begun == now->begun && !same_occasion(&s->passing, now);
    s->passing = *now;
    return passing;
}

// Those that are made, if they are of such an occasion; else to be made, unless that never ends
// well.
static struct stamp *chosen(struct stamp *s, const struct occasion *now)
{
    if (s->made && same_occasion(&s->when, now))
        return s;
    if (is_passing(s, now))
        return NULL;
    s->made = false;
    s->when = *now;
    return s->tries < MOST_TRIES ? s : NULL;
}

struct stamp *stamp_of_forward(struct graph *g, const struct frame *f, struct var in)
{
    struct occasion now;
    struct stamp *s = can_be_stamped(g, f) ? row_of(g, &f->kin, false) : NULL;
    if (!s)
        return NULL;
    occasion_of(&now, g, &in, f->also);
    return chosen(s, &now);
}

static bool is_left_alive(const struct stamp *s, const struct frame *f)
{
    for (int i = 0; i < FRAME_ALSO; i++) {
        const struct guest *o = &s->guests[OUTSIDE_ALSO + i];
        if (o->storage && f->also[i].storage->references <= o->references - o->least)
            return false;
    }
    return true;
}

struct stamp *stamp_of_backward(struct graph *g, const struct frame *f, const struct node *n)
{
    struct occasion now;
    bool can = can_be_stamped(g, f) && !f->exposes && n->gradient && f->input.storage &&
               !offload_has(&g->offload, f->input.storage);
    struct stamp *s = can ? row_of(g, &f->kin, true) : NULL;
    if (!s)
        return NULL;
    occasion_of(&now, g, &f->input, f->also);
    now.gradient_bytes = n->gradient->bytes;
    now.gradient_references = n->gradient->references;
    now.input_references = f->input.storage->references;
    now.flags |= (uint32_t)n->gradient_is_view << 16 | (uint32_t)f->input.storage->on_host << 17;
    s = chosen(s, &now);
    return s && s->made && !is_left_alive(s, f) ? NULL : s;
}

bool stamp_is_made(const struct stamp *s)
{
    return s && s->made;
}

// ------------------------------------------------------------------ filling them

static struct note *add(struct stamp *s)
{
    if (s->count == s->capacity)
        s->notes = arena_grow(s->arena, s->notes, sizeof *s->notes, s->count, &s->capacity);
    return &s->notes[s->count++];
}

void stamp_spoil(struct stamp *s)
{
    if (s)
        s->spoilt = true;
}

void stamp_took(struct stamp *s, struct storage *made, enum memory_kind kind)
{
    if (s->place_count == s->place_capacity)
        s->places =
            arena_grow(s->arena, s->places, sizeof *s->places, s->place_count, &s->place_capacity);
    s->places[s->place_count++] = (struct place){.storage = made, .note = s->count};
    made->stamped = s->place_count;
    s->alive++;
    *add(s) = (struct note){.kind = NOTE_TAKE,
                            .of = (uint8_t)kind,
                            .stream = made->stream,
                            .place = made->stamped,
                            .bytes = made->bytes};
}

void stamp_dropped(struct stamp *s, const struct storage *shared)
{
    if (shared->stamped >= 0)
        return;
    struct guest *o = &s->guests[-1 - shared->stamped];
    o->least = shared->references < o->least ? shared->references : o->least;
}

void stamp_freed(struct stamp *s, const struct storage *gone)
{
    if (!gone->stamped) {
        s->spoilt = true;
        return;
    }
    if (gone->stamped > 0) {
        s->spoilt |= gone->recorded;
        struct place *p = &s->places[gone->stamped - 1];
        *add(s) = (struct note){.kind = NOTE_LEAVE, .place = gone->stamped, .bytes = gone->bytes};
        s->notes[p->note].kind = NOTE_USE;
        p->storage = NULL;
        s->alive--;
        return;
    }
    *add(s) = (struct note){.kind = NOTE_FREE, .place = gone->stamped};
    struct guest *o = &s->guests[-1 - gone->stamped];
    s->spoilt |= o - s->guests >= OUTSIDE_ALSO;
    o->storage = NULL;
    o->least = 0;
}

void stamp_launched(struct stamp *s, uint64_t count)
{
    *add(s) = (struct note){.kind = NOTE_LAUNCH, .bytes = count};
}

static void hear(void *listener, const struct timed *what)
{
    struct stamp *s = listener;
    bool nothing = !(what->amount > 0) && what->what != TIMED_WORK;
    s->spoilt |= what->what == TIMED_OTHER;
    if (nothing)
        return;
    *add(s) = (struct note){.kind = (uint8_t)((int)NOTE_TIME + (int)what->what),
                            .of = (uint8_t)what->kind,
                            .stream = (uint16_t)what->stream,
                            .amount = what->amount};
}

static void listen(struct machine *m, struct stamp *s)
{
    m->stamp = s;
    if (!m->time)
        return;
    m->time->told = s ? hear : NULL;
    m->time->listener = s;
}

static void begin(struct graph *g, struct stamp *s, const struct frame *f)
{
    s->kin = f->kin;
    s->count = 0;
    s->place_count = 0;
    s->alive = 0;
    s->weight_count = 0;
    s->spoilt = s->brings = s->gives = false;
    memset(s->guests, 0, sizeof s->guests);
    listen(g->machine, s);
}

void stamp_begin_forward(struct graph *g, struct stamp *s, const struct frame *f)
{
    if (s)
        begin(g, s, f);
}

static void mark_outside(struct stamp *s, int number, struct storage *there)
{
    if (!there || there->stamped)
        return;
    s->guests[number] = (struct guest){there, there->references, there->references, 0};
    there->stamped = -1 - number;
}

void stamp_begin_backward(struct graph *g, struct stamp *s, const struct frame *f,
                          const struct node *n)
{
    if (!s)
        return;
    begin(g, s, f);
    mark_outside(s, OUTSIDE_GRADIENT, n->gradient);
    if (!f->input.storage->on_host)
        mark_outside(s, OUTSIDE_INPUT, f->input.storage);
    for (int i = 0; i < FRAME_ALSO; i++)
        mark_outside(s, OUTSIDE_ALSO + i, f->also[i].storage);
}

// What is left has no number any more; whether the graph is as it was.
static void end(struct graph *g, struct stamp *s)
{
    const struct occasion *o = &s->when;
    listen(g->machine, NULL);
    for (int32_t i = 0; i < s->place_count; i++)
        if (s->places[i].storage)
            s->places[i].storage->stamped = 0;
    for (int i = 0; i < OUTSIDE_COUNT; i++)
        if (s->guests[i].storage) {
            s->guests[i].left = s->guests[i].storage->references;
            s->guests[i].storage->stamped = 0;
        }
    s->spoilt |= memcmp(o->loaded, g->loaded, sizeof o->loaded) != 0 || o->ready != ready_in(g);
}

static struct move move_of(const struct note *n)
{
    return (struct move){.bytes = n->bytes,
                         .place = n->place,
                         .stream = n->stream,
                         .tag = n->of,
                         .asks = n->kind == NOTE_USE};
}

static bool is_in_phrase(const struct note *n)
{
    return n->kind <= NOTE_LEAVE || n->kind >= NOTE_TIME;
}

static struct phrase phrase_from(struct arena *a, const struct note *first, const struct note *last)
{
    ptrdiff_t moved = 0;
    for (const struct note *n = first; n < last; n++)
        moved += n->kind <= NOTE_LEAVE;
    struct move *moves = ROOM(a, struct move, moved);
    struct note *times = ROOM(a, struct note, last - first - moved);
    struct phrase p = {.notes = first, .count = last - first, .times = times};
    p.bout.moves = moves;
    for (const struct note *n = first; n < last; n++)
        if (n->kind <= NOTE_LEAVE) {
            moves[p.bout.count] = move_of(n);
            bout_add(&p.bout, &moves[p.bout.count]);
        } else {
            times[p.time_count++] = *n;
        }
    return p;
}

static void gather_phrases(struct stamp *s)
{
    int32_t phrases = 0;
    s->score = ROOM(s->arena, struct note, s->count);
    s->score_count = 0;
    s->phrases = ROOM(s->arena, struct phrase, s->count);
    s->blocks = ROOM(s->arena, struct block *, s->place_count);
    for (ptrdiff_t i = 0; i < s->count;) {
        ptrdiff_t from = i;
        while (i < s->count && is_in_phrase(&s->notes[i]))
            i++;
        if (i == from) {
            s->score[s->score_count++] = s->notes[i++];
            continue;
        }
        s->phrases[phrases] = phrase_from(s->arena, &s->notes[from], &s->notes[i]);
        s->score[s->score_count++] = (struct note){.kind = NOTE_PHRASE, .place = phrases++};
    }
}

static void settle(struct stamp *s)
{
    s->made = !s->spoilt;
    s->tries += s->spoilt;
    if (s->made)
        gather_phrases(s);
}

// Nodes whose details may say more than sizes are not handed to others.
static bool is_plain(const struct node *n)
{
    static const unsigned char nothing[NODE_DETAIL_BYTES];
    return n->operation->sizes_only || memcmp(n->detail, nothing, sizeof nothing) == 0;
}

// Parameters by the names that they have in every layer of the kind; whether they all have one.
static bool name_parameters(struct tail *t, const struct graph *g, const struct kin *k)
{
    bool named = true;
    for (int32_t i = 0; i < t->count; i++) {
        struct node *n = &t->nodes[i];
        named &= is_plain(n);
        for (int j = 0; j < NODE_INPUTS; j++)
            if (n->inputs[j] < NO_NODE) {
                int32_t name = stamp_name_of(g, k, parameter_of_input(n->inputs[j]));
                named &= name >= 0;
                n->inputs[j] = input_of_parameter(name);
            }
        if (n->frozen_module) {
            int32_t name = stamp_name_of(g, k, n->frozen_module - 1);
            named &= name >= 0;
            n->frozen_module = name + 1;
        }
    }
    return named;
}

struct tail stamp_copy_tail(struct arena *a, const struct tail *t)
{
    struct tail copy = *t;
    copy.nodes = NEW(a, struct node, t->all + 1);
    memcpy(copy.nodes, t->nodes, (size_t)t->all * sizeof *t->nodes);
    return copy;
}

void stamp_end_forward(struct graph *g, struct stamp *s, const struct frame *f, struct var out)
{
    if (!s)
        return;
    int32_t place = out.storage ? out.storage->stamped : 0;
    s->spoilt |= f->exposes || place <= 0 || s->alive != 1;
    s->out = out;
    s->result = place;
    s->result_references = out.storage ? out.storage->references : 0;
    s->kept = f->kept;
    s->tail = stamp_copy_tail(s->arena, &f->tail); // before a backward pass writes to it
    s->spoilt |= !name_parameters(&s->tail, g, &s->kin);
    end(g, s);
    settle(s);
}

void stamp_end_backward(struct graph *g, struct stamp *s, const struct frame *f,
                        const struct outcome *result)
{
    if (!s)
        return;
    int32_t place = result->gradient ? result->gradient->stamped : 0;
    bool held = f->input.storage;
    for (int i = 0; i < FRAME_ALSO; i++)
        held |= f->also[i].storage != NULL;
    bool kept = s->guests[OUTSIDE_INPUT].storage;
    for (int32_t i = 0; i < s->weight_count; i++)
        s->spoilt |= s->weights[i] != NULL;
    s->spoilt |= s->brings && (g->offload.asked || kept != s->gives);
    s->spoilt |= held || !(place > 0 || place == -1 - OUTSIDE_GRADIENT) || s->alive != (place > 0);
    s->result = place;
    s->result_references = result->gradient ? result->gradient->references : 0;
    s->result_is_view = result->view;
    end(g, s);
    settle(s);
}

// ------------------------------------------------------------------ what is done anew

struct stamp *stamp_pause_to_give(struct graph *g, int parameter, const struct outcome *o)
{
    struct stamp *s = g->machine->stamp;
    if (!s)
        return NULL;
    struct storage *given = o->gradient;
    int32_t name = stamp_name_of(g, &s->kin, parameter);
    if (name < 0 || given->stamped <= 0 || given->references != 1) {
        s->spoilt = true;
    } else {
        *add(s) = (struct note){
            .kind = NOTE_GIVE, .of = o->view, .place = given->stamped, .bytes = (uint64_t)name};
        s->places[given->stamped - 1].storage = NULL;
        s->alive--;
        given->stamped = 0;
    }
    listen(g->machine, NULL);
    return s;
}

struct stamp *stamp_pause_to_tell(struct graph *g, int parameter)
{
    struct stamp *s = g->machine->stamp;
    if (!s)
        return NULL;
    int32_t name = stamp_name_of(g, &s->kin, parameter);
    s->spoilt |= name < 0;
    *add(s) = (struct note){.kind = NOTE_TELL, .place = name};
    listen(g->machine, NULL);
    return s;
}

struct stamp *stamp_pause_for_module(struct graph *g, int parameter,
                                     const struct operation *operation, int moment)
{
    struct stamp *s = g->machine->stamp;
    if (!s)
        return NULL;
    int32_t name = stamp_name_of(g, &s->kin, parameter);
    s->spoilt |= name < 0;
    *add(s) = (struct note){
        .kind = NOTE_MODULE, .of = (uint8_t)moment, .place = name, .operation = operation};
    listen(g->machine, NULL);
    return s;
}

struct stamp *stamp_pause_for_adapter(struct graph *g, int parameter, bool done)
{
    struct stamp *s = g->machine->stamp;
    if (!s)
        return NULL;
    int32_t name = stamp_name_of(g, &s->kin, parameter);
    s->spoilt |= name < 0;
    *add(s) = (struct note){.kind = NOTE_ADAPTER, .of = done, .place = name};
    listen(g->machine, NULL);
    return s;
}

struct stamp *stamp_pause_to_synchronize(struct machine *m, uint64_t clock)
{
    struct stamp *s = m->stamp;
    if (!s)
        return NULL;
    s->spoilt |= clock != m->clock[STREAM_COMPUTE];
    *add(s) = (struct note){.kind = NOTE_SYNCHRONIZE};
    listen(m, NULL);
    return s;
}

void stamp_resume_on(struct machine *m, struct stamp *s)
{
    if (s)
        listen(m, s);
}

void stamp_resume(struct graph *g, struct stamp *s)
{
    stamp_resume_on(g->machine, s);
}

// Of others, which are in no layer, nothing is noted: they are not let go meanwhile.
void stamp_kept(struct graph *g, const struct storage *weight)
{
    struct stamp *s = g->machine->stamp;
    if (!s || !weight || weight->stamped)
        return;
    for (int i = 0; i < s->kin.count; i++) {
        struct storage *own = g->parameters[s->kin.first + i].weight;
        if (own != weight)
            continue;
        if (s->weight_count == MOST_WEIGHTS_KEPT) {
            s->spoilt = true;
            return;
        }
        if (!s->weights)
            s->weights = NEW(s->arena, struct storage *, MOST_WEIGHTS_KEPT);
        *add(s) = (struct note){.kind = NOTE_KEEP, .place = s->weight_count, .bytes = (uint64_t)i};
        s->weights[s->weight_count++] = own;
        return;
    }
}

struct stamp *stamp_pause_to_let_go(struct graph *g, const struct storage *weight)
{
    struct stamp *s = g->machine->stamp;
    for (int32_t i = 0; s && weight && i < s->weight_count; i++)
        if (s->weights[i] == weight) {
            *add(s) = (struct note){.kind = NOTE_LET_GO, .place = i};
            s->weights[i] = NULL;
            listen(g->machine, NULL);
            return s;
        }
    return NULL;
}

struct stamp *stamp_pause_to_bring(struct graph *g)
{
    struct stamp *s = g->machine->stamp;
    if (!s)
        return NULL;
    s->brings = true;
    *add(s) = (struct note){.kind = NOTE_BRING};
    listen(g->machine, NULL);
    return s;
}

void stamp_resume_with(struct graph *g, struct stamp *s, struct storage *input)
{
    if (!s)
        return;
    mark_outside(s, OUTSIDE_INPUT, input);
    listen(g->machine, s);
}

// What nothing else has by then goes when the next layer asks.
struct stamp *stamp_pause_to_settle(struct graph *g)
{
    struct stamp *s = g->machine->stamp;
    if (!s)
        return NULL;
    const struct storage *input = s->guests[OUTSIDE_INPUT].storage;
    bool own = s->brings && input && input == g->offload.input;
    s->spoilt |= !own;
    s->gives = own && input->references == 1;
    *add(s) = (struct note){.kind = NOTE_SETTLE, .bytes = own ? input->references : 0};
    listen(g->machine, NULL);
    return s;
}
