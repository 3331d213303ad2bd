// See split.h.
#include "core/search/split.h"

#include "core/base/num.h"
#include "core/time/network.h"
#include "core/time/rates.h"

#include <string.h>

const char *split_role_name(enum split_role r)
{
    static const char *const names[] = {"teacher", "train", "rollout"};
    return names[r];
}

const char *split_choice_name(enum split_choice c)
{
    static const char *const names[] = {"best",      "most teacher", "most training",
                                        "balanced",  "one step off", "apart",
                                        "colocated", "together"};
    return names[c];
}

// ------------------------------------------------------------------ where roles are

uint64_t split_first(const struct split *s, enum split_role role)
{
    uint64_t teacher = s->layout == LAYOUT_TOGETHER ? 0 : s->parts[ROLE_TEACHER].gpus;
    if (role == ROLE_TEACHER)
        return 0;
    if (role == ROLE_ROLLOUT || s->layout != LAYOUT_APART)
        return teacher;
    return teacher + s->parts[ROLE_ROLLOUT].gpus + s->idle;
}

// Whether no engine of a role lies in two nodes, unless it has them whole.
static bool is_placed(const struct split *s, enum split_role role, uint64_t per_node)
{
    const struct split_part *p = &s->parts[role];
    bool nodes = p->pp > 1 && role != ROLE_TRAIN; // a server's stages are nodes
    uint64_t unit = nodes ? per_node : p->tp, first = split_first(s, role);
    bool one_node = first / per_node == (first + p->gpus - 1) / per_node;
    return (first % unit == 0 || one_node) && per_node % p->tp == 0;
}

// ------------------------------------------------------------------ how long they take

// The student's weights go to every engine over the slowest link there is.
static double sync_seconds(const struct split_request *r)
{
    struct network n;
    struct error none = {0};
    double bytes = 2 * (double)r->rollout.parameters.total;
    if (!network_of(&n, &r->hardware, NULL, &none))
        return 0;
    return bytes / (r->hardware.nodes > 1 && n.node < n.link ? n.node : n.link);
}

static enum split_role slowest_of(const struct split *s)
{
    enum split_role slowest = ROLE_TEACHER;
    for (enum split_role i = ROLE_TRAIN; i < SPLIT_ROLES; i++)
        if (s->parts[i].seconds > s->parts[slowest].seconds)
            slowest = i;
    return slowest;
}

// Training's state to host memory and back, and a teacher's weights that wake.
static void count_moves(struct split *s, const struct split_request *r)
{
    double link = rates_of(&r->hardware.card).host_link;
    uint64_t moved = s->offloaded ? 2 * s->parts[ROLE_TRAIN].state : 0, kept = 0;
    uint64_t each = u64_least(s->parts[ROLE_TRAIN].gpus, r->hardware.gpus_per_node);
    if (s->offloaded)
        kept = s->parts[ROLE_TRAIN].state;
    if (s->layout == LAYOUT_TOGETHER) {
        moved = sat_add(moved, s->parts[ROLE_TEACHER].weights);
        kept = sat_add(kept, s->parts[ROLE_TEACHER].weights);
    }
    s->moves = link > 0 ? (double)moved / link : 0;
    s->host = sat_mul(kept, each);
}

static void conclude(struct split *s, const struct split_request *r)
{
    double teacher = s->parts[ROLE_TEACHER].seconds, train = s->parts[ROLE_TRAIN].seconds;
    double rollout = s->parts[ROLE_ROLLOUT].seconds;
    double made = teacher > rollout ? teacher : rollout; // scored as they are finished
    s->possible = true;
    s->sync = sync_seconds(r);
    s->slowest = slowest_of(s);
    if (s->layout != LAYOUT_APART)
        count_moves(s, r);
    if (s->layout == LAYOUT_TOGETHER)
        made = teacher + rollout;
    s->iteration = made + train + s->moves + s->sync;
    s->one_off = s->layout == LAYOUT_APART ? (made > train ? made : train) + s->sync : 0;
}

// ------------------------------------------------------------------ divisions

static double unevenness(const struct split *s)
{
    double least = s->parts[0].seconds, most = least;
    for (int i = 1; i < SPLIT_ROLES; i++) {
        least = s->parts[i].seconds < least ? s->parts[i].seconds : least;
        most = s->parts[i].seconds > most ? s->parts[i].seconds : most;
    }
    return most / least;
}

static bool is_better(const struct split *s, const struct split *than, enum split_choice c)
{
    const struct split_part *mine = s->parts, *other = than->parts;
    if (!than->possible)
        return true;
    if (c == SPLIT_MOST_TEACHER && mine[ROLE_TEACHER].gpus != other[ROLE_TEACHER].gpus)
        return mine[ROLE_TEACHER].gpus > other[ROLE_TEACHER].gpus;
    if (c == SPLIT_MOST_TRAINING && mine[ROLE_TRAIN].gpus != other[ROLE_TRAIN].gpus)
        return mine[ROLE_TRAIN].gpus > other[ROLE_TRAIN].gpus;
    if (c == SPLIT_BALANCED)
        return unevenness(s) < unevenness(than);
    if (c == SPLIT_ONE_OFF)
        return s->one_off < than->one_off;
    return s->iteration < than->iteration;
}

static bool is_asked(const struct split *s, const struct split_request *r)
{
    uint64_t teacher = s->parts[ROLE_TEACHER].gpus, rollout = s->parts[ROLE_ROLLOUT].gpus;
    return (!r->teacher_gpus || r->teacher_gpus == teacher) &&
           (!r->rollout_gpus || r->rollout_gpus == rollout);
}

// Divisions by name are of GPUs of their own; only the best is of all layouts.
static bool is_among(const struct split *s, enum split_choice c)
{
    static const int layouts[SPLIT_CHOICES] = {
        [SPLIT_BEST] = -1,
        [SPLIT_COLOCATED] = LAYOUT_COLOCATED,
        [SPLIT_TOGETHER] = LAYOUT_TOGETHER,
    };
    return layouts[c] < 0 || layouts[c] == (int)s->layout;
}

static void offer(struct split choices[SPLIT_CHOICES], const struct split *s)
{
    for (int i = 0; i < SPLIT_CHOICES; i++)
        if (is_among(s, (enum split_choice)i) && is_better(s, &choices[i], (enum split_choice)i))
            choices[i] = *s;
}

static void look_apart(struct split choices[SPLIT_CHOICES], const struct split_request *r,
                       const struct split_table *t, const struct split_part *train)
{
    uint64_t node = r->hardware.gpus_per_node;
    for (uint64_t teacher = 1; teacher + train->gpus < r->gpus; teacher++) {
        struct split s = {.layout = LAYOUT_APART};
        uint64_t rest = r->gpus - teacher - train->gpus;
        s.parts[ROLE_TEACHER] = t->servers[ROLE_TEACHER][teacher];
        s.parts[ROLE_ROLLOUT] = t->servers[ROLE_ROLLOUT][rest];
        s.parts[ROLE_TRAIN] = *train;
        if (!s.parts[ROLE_TEACHER].possible || !s.parts[ROLE_ROLLOUT].possible ||
            !is_asked(&s, r) || !is_placed(&s, ROLE_TEACHER, node) ||
            !is_placed(&s, ROLE_ROLLOUT, node))
            continue;
        conclude(&s, r);
        offer(choices, &s);
    }
}

// Whether training has room beside engines that sleep.
static bool sleeps_beside(const struct split_part *train, uint64_t asleep)
{
    return sat_add(sat_add(train->reserved, train->margin), asleep) <= train->limit;
}

// All GPUs but the teacher's, or all, in turn: with training's state on the card while answers are
// made, or in host memory.
static void look_shared(struct split choices[SPLIT_CHOICES], const struct split_request *r,
                        const struct split_table *t, const struct split_part *train)
{
    uint64_t node = r->hardware.gpus_per_node, teacher = r->gpus - train->gpus;
    struct split s = {.layout = teacher ? LAYOUT_COLOCATED : LAYOUT_TOGETHER};
    s.parts[ROLE_TRAIN] = *train;
    if (!(r->layouts & (1u << s.layout)))
        return;
    int most = r->framework && r->framework->keeps ? 0 : 1;
    for (int offloaded = 0; offloaded <= most; offloaded++) {
        uint64_t taken = sat_add(train->outside, offloaded ? 0 : train->state), asleep;
        s.offloaded = offloaded;
        s.parts[ROLE_ROLLOUT] = best_server(r, ROLE_ROLLOUT, train->gpus, taken);
        asleep = s.parts[ROLE_ROLLOUT].asleep;
        taken = sat_add(taken, asleep);
        s.parts[ROLE_TEACHER] = teacher ? t->servers[ROLE_TEACHER][teacher]
                                        : best_server(r, ROLE_TEACHER, train->gpus, taken);
        if (!teacher)
            asleep = sat_add(asleep, s.parts[ROLE_TEACHER].asleep);
        if (!s.parts[ROLE_ROLLOUT].possible || !s.parts[ROLE_TEACHER].possible ||
            !is_asked(&s, r) || !sleeps_beside(train, asleep) ||
            !is_placed(&s, ROLE_TEACHER, node) || !is_placed(&s, ROLE_ROLLOUT, node))
            continue;
        conclude(&s, r);
        offer(choices, &s);
    }
}

static void look_at_all(struct split choices[SPLIT_CHOICES], const struct split_request *r,
                        const struct split_table *t)
{
    memset(choices, 0, sizeof(struct split) * SPLIT_CHOICES);
    for (int i = 0; i < t->train_count; i++) {
        const struct split_part *train = &t->trains[i];
        if (!train->possible || train->gpus > r->gpus)
            continue;
        if (r->layouts & (1u << LAYOUT_APART))
            look_apart(choices, r, t, train);
        look_shared(choices, r, t, train);
    }
}

// ------------------------------------------------------------------ what there is to divide

// GPUs that training is tried on: every number within a node, then whole nodes, of those that
// have equally many micro-batches the fewest, and all there are.
static bool is_tried(const struct split_request *r, uint64_t gpus)
{
    uint64_t node = r->hardware.gpus_per_node, batch = r->global_batch;
    if (r->framework && r->framework->even && batch % gpus)
        return false;
    if (gpus <= node)
        return true;
    if (!node || gpus % node || gpus > batch)
        return false;
    uint64_t fewer = u64_most(gpus - node, 1);
    return gpus == r->gpus || u64_divide_up(batch, gpus) < u64_divide_up(batch, fewer);
}

static const struct split_part *find_train(const struct split_table *t, uint64_t gpus)
{
    for (int i = 0; i < t->train_count; i++)
        if (t->trains[i].gpus == gpus)
            return &t->trains[i];
    return NULL;
}

static bool fill_table(struct split_table *t, const struct split_table *known, struct error *why,
                       const struct split_request *r, struct error *e)
{
    t->train_count = 0;
    for (uint64_t n = 1; n <= r->gpus; n++) {
        const struct split_part *before = known ? find_train(known, n) : NULL;
        t->servers[ROLE_TEACHER][n] = best_server(r, ROLE_TEACHER, n, 0);
        t->servers[ROLE_ROLLOUT][n] = best_server(r, ROLE_ROLLOUT, n, 0);
        if (!is_tried(r, n) || t->train_count == SPLIT_MOST_STEPS)
            continue;
        struct split_part *train = &t->trains[t->train_count++];
        if (before)
            *train = *before;
        else if (!train_part(train, why, r, n, e))
            return false;
    }
    return true;
}

// The best with one GPU more in a single node, or with one node more of several, as if so many had
// been asked for. Training on fewer is what it was.
static bool with_more(struct split_result *x, const struct split_request *request, struct error *e)
{
    struct split_request r = *request;
    struct split_table *larger = NEW(r.arena, struct split_table, 1);
    struct split *choices = NEW(r.arena, struct split, SPLIT_CHOICES);
    x->more_gpus = r.hardware.nodes == 1 ? 1 : r.hardware.gpus_per_node;
    if (r.gpus + x->more_gpus > SPLIT_MOST + 8)
        return true;
    r.gpus += x->more_gpus;
    if (r.hardware.nodes == 1)
        r.hardware.gpus_per_node++;
    else
        r.hardware.nodes++;
    if (!fill_table(larger, x->table, &x->borrowed_why, &r, e))
        return false;
    look_at_all(choices, &r, larger);
    x->more = choices[SPLIT_BEST];
    return true;
}

// ------------------------------------------------------------------ slack

static bool set_context(struct split_request *r, const struct split_request *like,
                        uint64_t response, struct error *e)
{
    r->response = response;
    r->teacher.context = r->rollout.context = r->prompt + response;
    r->training = settings_in(r->arena);
    for (ptrdiff_t i = 0; i < like->training.count; i++)
        if (!settings_add(&r->training, like->training.items[i], e))
            return false;
    struct setting context = {STR("context"), split_context(r), STR_NONE};
    return settings_set(&r->training, context, e);
}

// Whether a division has room for answers of another length.
static bool has_room(const struct split_request *request, const struct split *s, uint64_t response)
{
    struct arena scratch = *request->arena;
    struct split_request r = *request;
    struct error none = {0}, why = {0};
    struct split_part train;
    uint64_t asleep = 0;
    r.arena = &scratch;
    if (!set_context(&r, request, response, &none) ||
        !train_part(&train, &why, &r, s->parts[ROLE_TRAIN].gpus, &none) || !train.possible)
        return false;
    for (int i = 0; i < SPLIT_ROLES; i++) {
        const struct split_part *p = &s->parts[i];
        bool shared =
            s->layout == LAYOUT_TOGETHER || (s->layout == LAYOUT_COLOCATED && i == ROLE_ROLLOUT);
        uint64_t taken = sat_add(train.outside, s->offloaded ? 0 : train.state);
        struct split_place place = {p->gpus, p->tp, p->pp, shared ? taken : 0};
        if (i == ROLE_TRAIN)
            continue;
        struct split_part part = server_part(&r, (enum split_role)i, &place);
        asleep = sat_add(asleep, shared ? part.asleep : 0);
        if (!part.possible)
            return false;
    }
    return sleeps_beside(&train, asleep);
}

// In steps of 1024 tokens, up to what both models have positions for.
static uint64_t longest_response(const struct split_request *r, const struct split *s)
{
    enum { STEP = 1024 };
    uint64_t positions = u64_least(r->teacher.model->max_position, r->rollout.model->max_position);
    uint64_t low = 0, high = 0;
    if (positions > r->prompt + r->response)
        high = (positions - r->prompt - r->response) / STEP;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (has_room(r, s, r->response + middle * STEP))
            low = middle;
        else
            high = middle - 1;
    }
    return r->response + low * STEP;
}

// More prompts take no memory of a card: they wait. As many as the role that is second slowest can
// take in the time of the slowest.
static uint64_t largest_batch(const struct split_request *r, const struct split *s)
{
    double slowest = s->parts[s->slowest].seconds, second = 0;
    for (int i = 0; i < SPLIT_ROLES; i++)
        if (i != (int)s->slowest && s->parts[i].seconds > second)
            second = s->parts[i].seconds;
    return second > 0 ? (uint64_t)((double)r->prompts * slowest / second) : r->prompts;
}

bool split_find(struct split_result *x, const struct split_request *r, struct error *e)
{
    x->table = NEW(r->arena, struct split_table, 1);
    if (!fill_table(x->table, NULL, &x->borrowed_why, r, e))
        return false;
    look_at_all(x->choices, r, x->table);
    if (!x->choices[SPLIT_BEST].possible)
        return split_no_room(x->table, r, e);
    if (!with_more(x, r, e))
        return false;
    x->longest_response = longest_response(r, &x->choices[SPLIT_BEST]);
    x->largest_batch = largest_batch(r, &x->choices[SPLIT_BEST]);
    return true;
}
