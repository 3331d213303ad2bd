// Playing a layer from notes. Where no free waits for another stream, memory and time do not depend
// on each other: then all that is asked for up to the next thing that outlives the layer is asked
// for at once.
#include "core/autograd/stamp_notes.h"

int stamp_parameter_of(const struct graph *g, const struct kin *k, int32_t name)
{
    int weight = k->first + name / 4, part = name % 4;
    return part ? g->parameters[weight].adapter + part - 1 : weight;
}

static void add_time(struct timeline *t, const struct note *n)
{
    switch ((enum timed_kind)(n->kind - NOTE_TIME)) {
    case TIMED_HOST:
        t->now.host += n->amount;
        break;
    case TIMED_WORK:
        timeline_work(t, n->stream, (enum spent_on)n->of, n->amount);
        break;
    case TIMED_MORE:
        timeline_more(t, n->stream, n->amount);
        break;
    case TIMED_FLOPS:
        t->now.flops += n->amount;
        break;
    case TIMED_OTHER:
        break;
    }
}

// Of the layer's input: what is shared and dropped meanwhile is not counted.
static void play_kept(struct graph *g, const struct note *n, struct storage **input)
{
    ASSERT(*input); // only a backward pass has such notes
    if (n->kind == NOTE_BRING) {
        *input = offload_unpack(&g->offload, g->machine, *input);
        g->offload.input = *input;
    } else {
        (*input)->references = (uint32_t)n->bytes;
        offload_settle(&g->offload, g->machine, NULL, 0);
    }
}

static void play_other(struct graph *g, const struct stamp *s, const struct kin *k,
                       const struct note *n)
{
    if (n->kind == NOTE_LAUNCH) {
        machine_launch(g->machine, n->bytes);
    } else if (n->kind == NOTE_GIVE) {
        graph_give(g, stamp_parameter_of(g, k, (int32_t)n->bytes),
                   &(struct outcome){.gradient = s->places[n->place - 1].storage, .view = n->of});
    } else if (n->kind == NOTE_KEEP) {
        s->weights[n->place] = storage_share(g->parameters[k->first + (int)n->bytes].weight);
    } else if (n->kind == NOTE_LET_GO) {
        machine_drop(g->machine, s->weights[n->place]);
    } else if (n->kind == NOTE_SYNCHRONIZE) {
        machine_synchronize(g->machine, g->machine->clock[STREAM_COMPUTE]);
    } else if (n->kind == NOTE_ADAPTER) {
        g->adapter(g, stamp_parameter_of(g, k, n->place), n->of);
    } else if (n->kind == NOTE_MODULE) {
        g->module(g, stamp_parameter_of(g, k, n->place), n->operation, (enum module_moment)n->of);
    } else {
        g->gradient_ready(g, stamp_parameter_of(g, k, n->place));
    }
}

static void play_in_order(struct machine *m, const struct phrase *p, struct block **blocks)
{
    for (const struct note *n = p->notes, *last = n + p->count; n < last; n++) {
        if (n->kind == NOTE_USE)
            blocks[n->place - 1] = machine_use(m, n->stream, n->bytes, (enum memory_kind)n->of);
        else if (n->kind == NOTE_LEAVE)
            machine_leave(m, blocks[n->place - 1], n->bytes);
        else
            add_time(m->time, n);
    }
}

// Where nobody plays, it does not matter when what waits is let go.
static void play_phrase(struct machine *m, struct phrase *p, struct block **blocks)
{
    if (m->play && m->first_waiting) {
        play_in_order(m, p, blocks);
        return;
    }
    machine_make(m, &p->bout, blocks);
    for (ptrdiff_t i = 0; i < p->time_count; i++)
        add_time(m->time, &p->times[i]);
}

static void let_guest_go(struct machine *m, struct storage *s)
{
    ASSERT(s);
    s->references = 1;
    machine_drop(m, s);
}

static void play(struct graph *g, const struct stamp *s, const struct kin *k,
                 struct storage *outside[OUTSIDE_COUNT])
{
    struct machine *m = g->machine;
    m->layers_noted++;
    for (const struct note *n = s->score, *last = n + s->score_count; n < last; n++) {
        if (n->kind == NOTE_PHRASE) {
            play_phrase(m, &s->phrases[n->place], s->blocks);
        } else if (n->kind == NOTE_TAKE) {
            s->places[n->place - 1].storage =
                machine_take_on(m, n->stream, n->bytes, (enum memory_kind)n->of);
        } else if (n->kind == NOTE_FREE) {
            let_guest_go(m, outside[-1 - n->place]);
        } else if (n->kind == NOTE_BRING || n->kind == NOTE_SETTLE) {
            play_kept(g, n, &outside[OUTSIDE_INPUT]);
        } else {
            play_other(g, s, k, n);
        }
    }
}

static int32_t input_in_layer(const struct graph *g, const struct kin *k, int32_t named)
{
    return input_of_parameter(stamp_parameter_of(g, k, parameter_of_input(named)));
}

// The notes' tail with this layer's parameters.
static struct tail tail_of(struct graph *g, const struct stamp *s, const struct kin *k)
{
    struct tail t = stamp_copy_tail(g->machine->arena, &s->tail);
    for (int32_t i = 0; i < t.count; i++) {
        struct node *n = &t.nodes[i];
        for (int j = 0; j < NODE_INPUTS; j++)
            if (n->inputs[j] < NO_NODE)
                n->inputs[j] = input_in_layer(g, k, n->inputs[j]);
        if (n->frozen_module)
            n->frozen_module = stamp_parameter_of(g, k, n->frozen_module - 1) + 1;
    }
    return t;
}

struct var stamp_play_forward(struct graph *g, const struct stamp *s, struct frame *f)
{
    struct var out = s->out;
    struct storage *none[OUTSIDE_COUNT] = {0};
    play(g, s, &f->kin, none);
    out.storage = s->places[s->result - 1].storage;
    out.storage->references = s->result_references;
    f->kept = s->kept;
    f->tail = tail_of(g, s, &f->kin);
    return out;
}

struct outcome stamp_play_backward(struct graph *g, const struct stamp *s, struct frame *f,
                                   const struct node *n)
{
    struct storage *outside[OUTSIDE_COUNT] = {n->gradient, f->input.storage};
    for (int i = 0; i < FRAME_ALSO; i++)
        outside[OUTSIDE_ALSO + i] = f->also[i].storage;
    play(g, s, &f->kin, outside);
    for (int i = 0; i < OUTSIDE_COUNT; i++) {
        const struct guest *o = &s->guests[i];
        if (o->storage && !(i == OUTSIDE_INPUT && s->brings))
            outside[i]->references += o->left - o->references;
    }
    f->input.storage = NULL;
    for (int i = 0; i < FRAME_ALSO; i++)
        f->also[i].storage = NULL;
    struct storage *result = s->result > 0 ? s->places[s->result - 1].storage : n->gradient;
    if (s->result > 0)
        result->references = s->result_references;
    g->kind = MEMORY_WORKING;
    return (struct outcome){.gradient = result, .view = s->result_is_view};
}
