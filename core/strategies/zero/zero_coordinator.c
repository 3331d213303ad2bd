// Gathering ahead and letting go, step by step as DeepSpeed decides it. Sizes are elements.
#include "core/strategies/zero/zero_coordinator.h"

#include "core/base/num.h"
#include "core/models/adapters.h"
#include "core/strategies/zero/zero_pending.h"

enum { MOST_MODULE_PARAMETERS = 12, NEVER = -1 };

enum status { STATUS_AWAY, STATUS_COMING, STATUS_HERE };

// Several parameters that come in one collective, each copied out of it when the first is needed.
// The whole goes when the last has been asked for.
struct gathering {
    struct storage *whole; // NULL for a parameter that came by itself
    int *parameters;
    int count, waiting;
    bool is_done;
    double there_at; // in time
};

struct piece {
    uint64_t elements, shard;
    enum status status;
    bool persists;
    unsigned users; // modules that run now: see below
    bool is_read;   // by a module that is not its own
    struct gathering *gathering;
    int others[MOST_MODULE_PARAMETERS - 1]; // of the same module
    int other_count;
    bool is_leaf; // and their module has no children that are gathered by themselves
};

// What a coordinator knows of a parameter in the pass that it wrote down.
struct course {
    int64_t last;            // the latest step that it was gathered for
    ptrdiff_t first, coming; // of the visits; coming: the first that is not behind
};

// Its own module, a head that shares it, its reader, and whoever holds one that a layer was run
// again with.
enum { USER_MODULE = 1, USER_HEAD = 2, USER_READER = 4, USER_HOLDER = 8 };

struct use {
    int parameter;
    int64_t step;
};

// A parameter comes in a module of the pass that was written down, as far as is known now.
struct visit {
    int64_t step;
    ptrdiff_t next; // of the same parameter; NEVER: none
    bool in_leaf;
};

// Which of a module's parameters stay when it is left, as bits.
struct answer {
    int module;
    unsigned stays;
    const struct answer *next; // of the same step
};

struct coordinator {
    struct trainer *trainer;
    struct coordinator *second; // of another engine on the same modules: see coordinator_double
    uint16_t stream;
    struct piece *pieces; // shared with the second's
    struct course *courses;
    int *modules; // of the pass that was written down
    ptrdiff_t module_count, module_capacity;
    struct use *uses; // in that pass, in order
    ptrdiff_t use_count, next_use;
    int *ahead;           // room for all parameters, while they are chosen
    struct visit *visits; // NULL: not looked for yet
    uint64_t *passed[2];  // elements before each module of the pass; [0]: without those of leaves
    const struct answer **answers; // by step
    ptrdiff_t answer_steps, answer_capacity;
    bool is_recording, is_known;
    bool is_searched; // what each module may let go was found, in the first pass that was known
    struct pending fetches;
    struct zero_sizes sizes;
    int64_t step, available;
    uint64_t ranks;
};

int module_of_head(const struct trainer *t)
{
    return t->head == t->embedding ? t->graph.parameter_count : t->head;
}

int module_of_root(const struct trainer *t)
{
    return t->graph.parameter_count + 1;
}

int module_around(const struct trainer *t, int weight)
{
    return module_of_root(t) + 1 + weight;
}

uint64_t coordinator_shard(const struct coordinator *c, int parameter)
{
    return c->pieces[parameter].shard;
}

void coordinator_add(struct coordinator *c, int module, int parameter)
{
    if (module < 0 || parameter < 0)
        return;
    struct piece *p = &c->pieces[module];
    ASSERT(p->other_count < MOST_MODULE_PARAMETERS - 1);
    p->others[p->other_count++] = parameter;
    c->visits = NULL;
}

void coordinator_set_leaf(struct coordinator *c, int module)
{
    c->pieces[module].is_leaf = true;
    c->visits = NULL;
}

struct module {
    int parameters[MOST_MODULE_PARAMETERS];
    int count;
    unsigned user;
    bool is_leaf;
};

static struct module reader_of(const struct coordinator *c, int parameter)
{
    return (struct module){
        .parameters = {parameter}, .count = c->pieces[parameter].is_read, .user = USER_READER};
}

static struct module module_at(const struct coordinator *c, int number)
{
    const struct trainer *t = c->trainer;
    if (number == NO_PARAMETERS)
        return (struct module){.user = USER_MODULE};
    if (number == t->graph.parameter_count)
        return (struct module){.parameters = {t->embedding}, .count = 1, .user = USER_HEAD};
    if (number == module_of_root(t))
        return reader_of(c, t->head);
    if (number > module_of_root(t))
        return reader_of(c, t->graph.parameters[number - module_around(t, 0)].adapter);
    struct module m = {.parameters = {number},
                       .count = 1,
                       .user = USER_MODULE,
                       .is_leaf = c->pieces[number].is_leaf};
    for (int i = 0; i < c->pieces[number].other_count; i++)
        m.parameters[m.count++] = c->pieces[number].others[i];
    return m;
}

// ------------------------------------------------------------------ gathering

static struct storage *take(struct coordinator *c, uint64_t bytes)
{
    return machine_take_on(c->trainer->machine, c->stream, bytes, MEMORY_GATHERED);
}

// Adapters may be wider than what they are added to; packed weights are stored as the model is.
static uint32_t width_of(const struct coordinator *c, int parameter)
{
    const struct parameter *p = &c->trainer->graph.parameters[parameter];
    return p->packed ? c->trainer->width : p->width;
}

static uint64_t part_bytes(const struct coordinator *c, int parameter)
{
    return c->pieces[parameter].shard * width_of(c, parameter);
}

static struct storage **whole_of(struct coordinator *c, int parameter)
{
    return &c->trainer->graph.parameters[parameter].weight;
}

// Parts in host memory come to the card first, all of a collective at once.
static void fetch_from_host(struct coordinator *c, const struct gathering *g)
{
    struct machine *m = c->trainer->machine;
    struct storage **fetched = NEW(m->arena, struct storage *, g->count);
    if (c->trainer->job->offload != OFFLOAD_ALL)
        return;
    for (int i = 0; i < g->count; i++)
        fetched[i] = take(c, part_bytes(c, g->parameters[i]));
    for (int i = 0; i < g->count; i++)
        machine_drop(m, fetched[i]);
}

// One rank has the whole: what is gathered is a view of its part (_no_gather_coalesced in
// deepspeed/runtime/zero/partition_parameters.py).
static bool views_its_part(const struct coordinator *c)
{
    return c->ranks == 1 && c->trainer->job->offload != OFFLOAD_ALL;
}

static void start(struct coordinator *c, struct gathering *g)
{
    uint64_t bytes = 0;
    for (int i = 0; i < g->count; i++) {
        struct piece *p = &c->pieces[g->parameters[i]];
        bytes += part_bytes(c, g->parameters[i]) * c->ranks;
        c->available += (int64_t)p->elements;
        p->status = STATUS_COMING;
        p->gathering = g;
    }
    g->waiting = g->count;
    if (views_its_part(c))
        return;
    struct machine *m = c->trainer->machine;
    if (c->trainer->job->offload == OFFLOAD_ALL)
        machine_host_copy(m, c->stream, bytes / c->ranks);
    machine_collect(m, c->stream, GATHER, c->ranks, bytes);
    g->there_at = machine_when(m, c->stream);
    machine_host(m, machine_rates(m)->zero_gather);
    struct storage *whole = take(c, bytes);
    fetch_from_host(c, g);
    if (g->count == 1)
        *whole_of(c, g->parameters[0]) = whole;
    else
        g->whole = whole;
}

static void gather(struct coordinator *c, const int *parameters, int count)
{
    struct arena *a = c->trainer->machine->arena;
    struct gathering *g = NULL;
    for (int i = 0; i < count; i++) {
        if (c->pieces[parameters[i]].status != STATUS_AWAY)
            continue;
        if (!g) {
            g = NEW(a, struct gathering, 1);
            *g = (struct gathering){.parameters = NEW(a, int, count)};
        }
        int at = g->count++;
        for (; at > 0 && g->parameters[at - 1] > parameters[i]; at--)
            g->parameters[at] = g->parameters[at - 1];
        g->parameters[at] = parameters[i];
    }
    if (g)
        start(c, g);
}

static void finish(struct coordinator *c, struct gathering *g)
{
    for (int i = 0; i < g->count && !g->is_done; i++) {
        struct piece *p = &c->pieces[g->parameters[i]];
        if (g->whole)
            *whole_of(c, g->parameters[i]) = take(c, p->elements * width_of(c, g->parameters[i]));
        p->status = STATUS_HERE;
    }
    g->is_done = true;
}

static void await(struct coordinator *c, int parameter)
{
    struct gathering *g = c->pieces[parameter].gathering;
    if (!g)
        return;
    pending_limit(&c->fetches, c->trainer->machine);
    pending_add(&c->fetches, machine_moment_at(g->there_at));
    finish(c, g);
    machine_await(c->trainer->machine, g->there_at);
    c->pieces[parameter].gathering = NULL;
    if (--g->waiting == 0)
        machine_drop(c->trainer->machine, g->whole);
}

static void let_go(struct coordinator *c, int parameter)
{
    struct piece *p = &c->pieces[parameter];
    struct storage **whole = whole_of(c, parameter);
    if (p->status != STATUS_HERE || p->users)
        return;
    zero3_drop(c->trainer, *whole, STREAM_COMPUTE);
    *whole = NULL;
    p->status = STATUS_AWAY;
    c->available -= (int64_t)p->elements;
}

// ------------------------------------------------------------------ the pass

static void write_down(struct coordinator *c, int module)
{
    c->modules = arena_grow(c->trainer->machine->arena, c->modules, sizeof *c->modules,
                            c->module_count, &c->module_capacity);
    c->modules[c->module_count++] = module;
}

// Modules become uses of parameters.
static void learn(struct coordinator *c)
{
    struct arena *a = c->trainer->machine->arena;
    c->uses = NEW(a, struct use, MOST_MODULE_PARAMETERS * c->module_count);
    for (ptrdiff_t i = 0; i < c->module_count; i++) {
        struct module m = module_at(c, c->modules[i]);
        for (int j = 0; j < m.count; j++)
            c->uses[c->use_count++] = (struct use){m.parameters[j], i};
    }
    c->is_recording = false;
    c->is_known = true;
    c->visits = NULL;
}

// Around a pass the host goes through all modules, and where the way is not known yet it compares
// what was written down with the other ranks' (reset_step, assert_ints_same_as_other_ranks: the
// numbers come back from the card).
static void greet(struct coordinator *c)
{
    struct machine *m = c->trainer->machine;
    if (!c->is_known)
        machine_synchronize(m, m->clock[STREAM_COMPUTE]);
    machine_host(m, c->trainer->graph.parameter_count * machine_rates(m)->zero_pass);
}

static void begin(struct coordinator *c)
{
    int count = c->trainer->graph.parameter_count;
    for (int i = 0; i < count; i++) {
        bool was_coming = c->pieces[i].gathering;
        await(c, i);
        if (was_coming)
            let_go(c, i);
        c->courses[i].last = NEVER;
        c->courses[i].coming = c->courses[i].first;
    }
    c->is_searched |= c->is_known;
    greet(c);
    if (c->is_recording)
        learn(c);
    else if (!c->is_known)
        c->is_recording = true;
    c->next_use = 0;
    c->step = 0;
    c->available = 0;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// What this module needs is no longer ahead.
static void pass_over(struct coordinator *c, const struct module *m)
{
    int wanted = 0;
    for (int i = 0; i < m->count; i++)
        wanted += c->courses[m->parameters[i]].last < c->step;
    for (; c->next_use < c->use_count && wanted > 0; wanted--) {
        const struct use *u = &c->uses[c->next_use++];
        c->courses[u->parameter].last = u->step;
    }
}

static void gather_ahead(struct coordinator *c)
{
    int64_t left = (int64_t)c->sizes.live - c->available, elements = 0;
    int64_t most = left < (int64_t)c->sizes.ahead ? left : (int64_t)c->sizes.ahead;
    ptrdiff_t count = 0;
    int *parameters = c->ahead;
    while (c->next_use < c->use_count && elements < most) {
        const struct use *u = &c->uses[c->next_use++];
        const struct piece *p = &c->pieces[u->parameter];
        struct course *course = &c->courses[u->parameter];
        bool is_new = p->status == STATUS_AWAY;
        course->last = latest(course->last, u->step);
        for (ptrdiff_t i = 0; i < count; i++)
            is_new = is_new && parameters[i] != u->parameter;
        if (!is_new)
            continue;
        parameters[count++] = u->parameter;
        elements += (int64_t)p->elements;
    }
    gather(c, parameters, (int)count);
}

// A pass that goes another way than the one that was written down, as where adapters are switched
// off, or beyond its end: nothing is known any more until a pass is written down again, and what
// was on its way goes (trace_prologue and _invalidate_trace).
static void doubt(struct coordinator *c, int module)
{
    if (!c->is_known || (c->step < c->module_count && c->modules[c->step] == module))
        return;
    coordinator_forget(c);
    for (int i = 0; i < c->trainer->graph.parameter_count; i++) {
        if (!c->pieces[i].gathering)
            continue;
        await(c, i);
        let_go(c, i);
    }
}

static void look_ahead(struct coordinator *c);

// The first pass that is known is slow: for each module the host goes through those that follow, as
// far as parameters are kept for (__params_to_release, whose answers are kept:
// functools.lru_cache).
static void search_ahead(struct coordinator *c)
{
    struct machine *m = c->trainer->machine;
    if (!c->is_known || c->is_searched)
        return;
    if (!c->visits)
        look_ahead(c);
    int64_t end = c->step;
    while (end < c->module_count && c->passed[0][end] - c->passed[0][c->step] < c->sizes.reuse)
        end++;
    machine_host(m, (double)(end - c->step) * machine_rates(m)->zero_search);
}

static void enter(struct coordinator *c, int module)
{
    struct module m = module_at(c, module);
    doubt(c, module);
    if (c->is_recording)
        write_down(c, module);
    gather(c, m.parameters, m.count);
    for (int i = 0; i < m.count; i++) {
        c->pieces[m.parameters[i]].users |= m.user;
        await(c, m.parameters[i]);
    }
    if (c->is_known) {
        search_ahead(c);
        pass_over(c, &m);
        gather_ahead(c);
    }
    c->step++;
}

// What comes when, and how far away that is. From the end, so that each visit knows the next.
static void look_ahead(struct coordinator *c)
{
    struct arena *a = c->trainer->machine->arena;
    ptrdiff_t count = 0;
    c->visits = NEW(a, struct visit, MOST_MODULE_PARAMETERS * c->module_count + 1);
    for (int leaves = 0; leaves < 2; leaves++)
        c->passed[leaves] = NEW(a, uint64_t, c->module_count + 1);
    for (int i = 0; i < c->trainer->graph.parameter_count; i++)
        c->courses[i].coming = NEVER;
    for (ptrdiff_t i = c->module_count - 1; i >= 0; i--) {
        struct module m = module_at(c, c->modules[i]);
        uint64_t elements = 0;
        for (int j = 0; j < m.count; j++) {
            struct course *course = &c->courses[m.parameters[j]];
            c->visits[count] = (struct visit){i, course->coming, m.is_leaf};
            course->coming = count++;
            elements += c->pieces[m.parameters[j]].elements;
        }
        c->passed[0][i + 1] = m.is_leaf ? 0 : elements;
        c->passed[1][i + 1] = elements;
    }
    for (ptrdiff_t i = 0; i < c->module_count; i++)
        for (int leaves = 0; leaves < 2; leaves++)
            c->passed[leaves][i + 1] += c->passed[leaves][i];
    for (int i = 0; i < c->trainer->graph.parameter_count; i++)
        c->courses[i].first = c->courses[i].coming;
}

// How far ahead is counted in the parameters of modules themselves, unless the one that is left is
// a leaf: what lies in leaves is passed over then (partitioned_param_coordinator.py, 0.19.5,
// __params_to_release: recurse is asked of the module to release, not of the one that is looked
// at).
static bool comes_again_soon(struct coordinator *c, int parameter, bool sees_leaves)
{
    struct course *course = &c->courses[parameter];
    if (!c->visits)
        look_ahead(c);
    while (course->coming != NEVER && c->visits[course->coming].step < c->step)
        course->coming = c->visits[course->coming].next;
    ptrdiff_t i = course->coming;
    while (i != NEVER && !sees_leaves && c->visits[i].in_leaf)
        i = c->visits[i].next;
    const uint64_t *passed = c->passed[sees_leaves];
    return i != NEVER && passed[c->visits[i].step] - passed[c->step] < c->sizes.reuse;
}

static const struct answer *answer_of(struct coordinator *c, int module)
{
    struct arena *a = c->trainer->machine->arena;
    while (c->answer_steps <= c->step) {
        if (c->answer_steps == c->answer_capacity)
            c->answers =
                arena_grow(a, c->answers, sizeof *c->answers, c->answer_steps, &c->answer_capacity);
        c->answers[c->answer_steps++] = NULL;
    }
    const struct answer *known = c->answers[c->step];
    while (known && known->module != module)
        known = known->next;
    return known;
}

// What a module keeps when it is left at this step, as bits. That is worked out once, and the
// answer holds from then on, whatever is ahead (__params_to_release: functools.lru_cache, which
// nothing clears): a pass that ends early, as an evaluation does, leaves parameters behind.
static unsigned keeps(struct coordinator *c, int module, const struct module *m)
{
    const struct answer *known = answer_of(c, module);
    if (known)
        return known->stays;
    struct answer *made = NEW(c->trainer->machine->arena, struct answer, 1);
    *made = (struct answer){.module = module, .next = c->answers[c->step]};
    for (int i = 0; i < m->count; i++) {
        const struct piece *p = &c->pieces[m->parameters[i]];
        bool stays = p->persists || c->courses[m->parameters[i]].last > c->step ||
                     comes_again_soon(c, m->parameters[i], m->is_leaf);
        made->stays |= (unsigned)stays << i;
    }
    c->answers[c->step] = made;
    return made->stays;
}

static void leave(struct coordinator *c, int module)
{
    struct module m = module_at(c, module);
    unsigned stays = c->is_known ? keeps(c, module, &m) : 0;
    for (int i = 0; i < m.count; i++) {
        c->pieces[m.parameters[i]].users &= ~m.user;
        if (!(stays >> i & 1))
            let_go(c, m.parameters[i]);
    }
}

void coordinator_begin(struct coordinator *c, int outermost)
{
    for (; c; c = c->second) {
        begin(c);
        enter(c, outermost);
    }
}

void coordinator_enter(struct coordinator *c, int module)
{
    for (; c; c = c->second)
        enter(c, module);
}

void coordinator_leave(struct coordinator *c, int module)
{
    for (; c; c = c->second)
        leave(c, module);
}

void coordinator_enter_backward(struct coordinator *c, int module)
{
    for (const struct coordinator *each = c; each; each = each->second)
        enter(c, module);
}

void coordinator_leave_backward(struct coordinator *c, int module)
{
    leave(c, module);
}

void coordinator_read(struct coordinator *c, int parameter)
{
    struct trainer *t = c->trainer;
    struct piece *p = &c->pieces[parameter];
    if (p->status != STATUS_AWAY)
        return;
    for (struct coordinator *each = c; each && !p->is_read; each = each->second)
        each->visits = NULL;
    p->is_read = true;
    p->status = STATUS_HERE;
    if (!views_its_part(c))
        *whole_of(c, parameter) =
            machine_take(t->machine, part_bytes(c, parameter) * c->ranks, MEMORY_GATHERED);
}

void coordinator_hold(struct coordinator *c, int parameter)
{
    if (!c->pieces[parameter].persists)
        c->pieces[parameter].users |= USER_HOLDER;
}

void coordinator_let_held_go(struct coordinator *c)
{
    for (int i = 0; i < c->trainer->graph.parameter_count; i++) {
        bool was_held = c->pieces[i].users & USER_HOLDER;
        c->pieces[i].users &= ~(unsigned)USER_HOLDER;
        if (was_held)
            let_go(c, i);
    }
}

void coordinator_end_backward(struct coordinator *c)
{
    if (c->second) // has entered nothing in it, and the first is not asked
        return;
    leave(c, c->trainer->embedding);
    leave(c, module_of_root(c->trainer));
    coordinator_let_held_go(c);
}

void coordinator_drop_leftover(struct coordinator *c, int parameter)
{
    struct piece *p = &c->pieces[parameter];
    if (p->persists || c->second)
        return;
    p->users = 0;
    let_go(c, parameter);
}

void coordinator_let_all_go(struct coordinator *c)
{
    for (int i = 0; i < c->trainer->graph.parameter_count; i++) {
        await(c, i);
        c->pieces[i].users = 0;
        let_go(c, i);
    }
}

void coordinator_forget(struct coordinator *c)
{
    c->is_recording = c->is_known = false;
    c->module_count = c->use_count = 0;
    c->visits = NULL;
}

// The engine that trains has a list of its own (stage3.py, persistent_parameters).
void coordinator_gather_persistent(struct coordinator *c)
{
    struct trainer *t = c->trainer;
    uint64_t most = (c->second ? c->second : c)->sizes.persists;
    for (int i = 0; i < t->graph.parameter_count; i++) {
        struct piece *p = &c->pieces[i];
        if (p->elements > most || p->status != STATUS_AWAY)
            continue;
        if (!views_its_part(c))
            *whole_of(c, i) =
                machine_take(t->machine, part_bytes(c, i) * c->ranks, MEMORY_GATHERED);
        p->status = STATUS_HERE;
    }
}

// A weight and its bias are one module's.
static void add_biases(struct coordinator *c, const struct layer_parameters *l)
{
    coordinator_add(c, l->q, l->q_bias);
    coordinator_add(c, l->k, l->k_bias);
    coordinator_add(c, l->v, l->v_bias);
    coordinator_add(c, l->qkv, l->qkv_bias);
    coordinator_add(c, l->o, l->o_bias);
    coordinator_add(c, l->gate, l->gate_bias);
    coordinator_add(c, l->up, l->up_bias);
    coordinator_add(c, l->down, l->down_bias);
    coordinator_add(c, l->input_norm, l->input_norm_bias);
    coordinator_add(c, l->before_mlp_norm, l->before_mlp_norm_bias);
    coordinator_add(c, l->router, l->router_bias);
}

static struct coordinator *empty_coordinator(struct trainer *t, uint16_t stream,
                                             struct zero_sizes sizes)
{
    struct coordinator *c = NEW(t->machine->arena, struct coordinator, 1);
    int count = t->graph.parameter_count;
    *c = (struct coordinator){.trainer = t,
                              .stream = stream,
                              .ranks = job_ranks(t->job),
                              .sizes = sizes,
                              .courses = NEW(t->machine->arena, struct course, count),
                              .ahead = NEW(t->machine->arena, int, count)};
    for (int i = 0; i < count; i++)
        c->courses[i].last = NEVER;
    return c;
}

struct coordinator *coordinator_for(struct trainer *t, uint16_t stream, struct zero_sizes sizes)
{
    struct coordinator *c = empty_coordinator(t, stream, sizes);
    c->pieces = NEW(t->machine->arena, struct piece, t->graph.parameter_count);
    for (int i = 0; i < t->graph.parameter_count; i++) {
        uint64_t elements = stored_elements(&t->graph.parameters[i]);
        c->pieces[i] = (struct piece){.elements = elements,
                                      .shard = u64_divide_up(elements, c->ranks),
                                      .persists = elements <= sizes.persists};
    }
    for (int i = 0; i < (int)t->job->model.layers; i++)
        add_biases(c, &t->layers[i]);
    if (t->norm_count > 1)
        coordinator_add(c, t->final_norm, t->final_norm + 1);
    if (t->head_count > 1)
        coordinator_add(c, t->head, t->head + 1);
    return c;
}

void coordinator_double(struct coordinator *c, struct zero_sizes sizes)
{
    c->second = empty_coordinator(c->trainer, c->stream, sizes);
    c->second->pieces = c->pieces;
    for (int i = 0; i < c->trainer->graph.parameter_count; i++)
        c->pieces[i].persists |= c->pieces[i].elements <= sizes.persists;
}
