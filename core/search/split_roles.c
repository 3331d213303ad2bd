// What a number of GPUs does in a role: a server as core/serve computes it, on what others leave of
// the card, and training as predicted.
#include "core/base/num.h"
#include "core/search/split.h"

static uint64_t sequences_of(const struct split_request *r)
{
    return r->prompts * r->samples;
}

// ------------------------------------------------------------------ servers

// The teacher reads every sequence once and generates nothing.
static double teacher_seconds(const struct split_request *r, const struct server_state *x,
                              uint64_t engines)
{
    double tokens = (double)sequences_of(r) * (double)(r->prompt + r->response);
    return tokens / (x->prefill.tokens_per_second * (double)engines);
}

// Prompts are read, then every answer grows by a token a step, later ones when there is room. The
// cache is read at the mean length.
static double rollout_seconds(const struct split_request *r, const struct serve_request *server,
                              const struct server_state *x, uint64_t engines)
{
    struct serve_request mean = *server;
    struct server_state at_mean;
    uint64_t each = u64_divide_up(sequences_of(r), engines);
    uint64_t room = u64_most(u64_least(x->holds.sequences, x->sequences), 1);
    mean.context = r->prompt + r->response / 2;
    mean.sequences = u64_least(each, room);
    server_of(&at_mean, &mean);
    double waves = (double)each / (double)mean.sequences; // as one ends, another begins
    double prompts = (double)each * (double)r->prompt / x->prefill.tokens_per_second;
    return prompts + waves * (double)r->response * at_mean.decode.seconds;
}

// Beside others a server has a smaller card, with the batches and chunks of the real one. vLLM's
// fraction is then of the whole card, SGLang's of what is free when it starts.
static void leave_room(struct serve_request *server, struct hardware *smaller, uint64_t taken)
{
    struct sglang_choice c = sglang_choice_of(server);
    *smaller = *server->hardware;
    if (server->server == SERVER_VLLM)
        vllm_batch_of(server);
    server->chunk = server->chunk ? server->chunk : c.chunk;
    server->graph_batch = server->graph_batch ? server->graph_batch : c.graph_batch;
    uint64_t memory = smaller->card.memory.value;
    smaller->card.memory.value = memory > taken ? memory - taken : 0;
    server->hardware = smaller;
}

// What is free beside what a server takes for itself.
static uint64_t free_beside(const struct server_state *x, const struct serve_request *server)
{
    bool sglang = server->server == SERVER_SGLANG;
    uint64_t used = sglang ? sat_add(x->activation, x->graphs) : x->budget;
    uint64_t room = sglang ? x->outside : x->free;
    used = sat_add(used, sglang || x->graphs_counted ? 0 : x->graphs);
    return room > used ? room - used : 0;
}

static struct split_part part_of(const struct split_request *r, enum split_role role,
                                 const struct split_place *place, uint64_t *lacking)
{
    struct serve_request server = role == ROLE_TEACHER ? r->teacher : r->rollout;
    uint64_t card = server.hardware->card.memory.value;
    struct split_part p = {.gpus = place->gpus, .tp = place->tp, .pp = place->pp};
    struct hardware smaller;
    struct server_state x;
    server.tp = place->tp;
    server.pp = place->pp;
    p.engines = place->gpus / (place->tp * place->pp);
    if (place->taken)
        leave_room(&server, &smaller, place->taken);
    if (server.hardware->card.memory.value < GIB)
        return p;
    server_of(&x, &server);
    p.weights = x.weights;
    if (!server_starts(&x) || !x.prefill.known || !x.holds.sequences)
        return p;
    bool of_card = server.server == SERVER_VLLM;
    p.possible = true;
    p.reserved = x.budget;
    p.thousandths = of_card ? (uint64_t)((double)x.budget * 1000 / (double)card) : x.thousandths;
    p.sequences = x.holds.sequences;
    p.cache = x.cache;
    p.asleep = x.asleep;
    p.chunk = of_card ? x.batch_tokens : x.chunk;
    p.scores = role == ROLE_TEACHER ? score_bytes(&server) : 0;
    uint64_t room = free_beside(&x, &server);
    *lacking = p.scores > room ? p.scores - room : 0;
    p.seconds = role == ROLE_TEACHER ? teacher_seconds(r, &x, p.engines)
                                     : rollout_seconds(r, &server, &x, p.engines);
    return p;
}

// A teacher that has too little beside its budget gets a smaller one.
struct split_part server_part(const struct split_request *r, enum split_role role,
                              const struct split_place *place)
{
    struct split_place smaller = *place;
    uint64_t lacking = 0;
    struct split_part p = part_of(r, role, place, &lacking);
    if (!p.possible || !lacking)
        return p;
    smaller.taken = sat_add(place->taken, lacking);
    return part_of(r, role, &smaller, &lacking);
}

static void take_better(struct split_part *best, const struct split_part *p)
{
    if (p->possible && (!best->possible || p->seconds < best->seconds))
        *best = *p;
    else if (!best->weights || p->weights < best->weights)
        best->weights = best->possible ? best->weights : p->weights;
}

struct split_part best_server(const struct split_request *r, enum split_role role, uint64_t gpus,
                              uint64_t taken)
{
    enum { MOST_STAGES = 8 };
    const struct model *m = role == ROLE_TEACHER ? r->teacher.model : r->rollout.model;
    uint64_t node = r->hardware.gpus_per_node;
    struct split_part best = {.gpus = gpus};
    for (uint64_t tp = 1; tp <= u64_least(gpus, node); tp++) {
        struct split_place place = {gpus, tp, 1, taken};
        if (gpus % tp || node % tp || !serve_divides(m, tp))
            continue;
        struct split_part p = server_part(r, role, &place);
        take_better(&best, &p);
    }
    for (uint64_t pp = 2; !best.possible && pp <= u64_least(gpus / node, MOST_STAGES); pp++) {
        struct split_place place = {gpus, node, pp, taken};
        if (gpus % (node * pp) || pp > m->layers || !serve_divides(m, node))
            continue;
        struct split_part p = server_part(r, role, &place);
        take_better(&best, &p);
    }
    return best;
}

// ------------------------------------------------------------------ training

struct step_question {
    uint64_t gpus, accumulation, tp, pp;
    bool plain; // whatever the framework
};

// The machine of a training job: whole nodes where one is not enough.
static struct str machine_of(struct arena *a, const struct split_request *r, uint64_t gpus)
{
    uint64_t nodes = u64_divide_up(gpus, r->hardware.gpus_per_node);
    return str_format(a, "%llux%llux%.*s", (unsigned long long)nodes,
                      (unsigned long long)(gpus / nodes), STR_ARGS(r->card));
}

static bool add(struct settings *s, const char *key, struct str value, struct str where,
                struct error *e)
{
    return settings_set(s, (struct setting){str_from(key), value, where}, e);
}

static struct str count_text(struct arena *a, uint64_t count)
{
    return str_format(a, "%llu", (unsigned long long)count);
}

static bool predict_step(struct prediction *found, struct arena *a, const struct split_request *r,
                         const struct step_question *q, struct error *e)
{
    struct job *job = NEW(a, struct job, 1);
    struct settings s = settings_in(a);
    for (ptrdiff_t i = 0; i < r->training.count; i++) {
        bool skipped = q->plain && str_is(r->training.items[i].key, "recipe");
        if (!skipped && !settings_add(&s, r->training.items[i], e))
            return false;
    }
    return add(&s, "gpu", machine_of(a, r, q->gpus), r->where, e) &&
           (q->tp == 1 || add(&s, "tp", count_text(a, q->tp), STR_NONE, e)) &&
           (q->pp == 1 || add(&s, "pp", count_text(a, q->pp), STR_NONE, e)) &&
           add(&s, "accum", count_text(a, q->accumulation), STR_NONE, e) &&
           job_from_settings(job, a, &s, e) && predict_fit(found, a, job, e);
}

static void take_prediction(struct split_part *p, const struct prediction *found, double steps)
{
    const struct outside *o = &found->outside;
    int last = found->steps_done > 0 ? found->steps_done - 1 : 0;
    p->reserved = found->reserved_bytes;
    p->limit = found->limit_bytes;
    p->margin = verdict_margin_bytes(&found->verdict);
    p->state = found->steps[last].end_allocated_bytes;
    p->outside = sat_add(o->context_bytes, sat_add(o->modules_bytes, o->nccl_bytes));
    p->possible = found->verdict.grade == GRADE_SAFE && !found->time.unknown;
    p->seconds = found->time.unknown ? 0 : steps * found->time.seconds;
}

// Where the plain step stands for verl's: three of its published runs under FSDP read in 0.25, 0.26
// and 0.28 of what update_actor takes.
static double reading_of(const struct split_request *r, const struct step_time *t)
{
    static const double part = 0.26;
    if (!r->framework || !r->framework->reads || t->unknown)
        return 0;
    return t->reading > 0 ? t->reading : part * t->seconds;
}

// Where a framework's own time is not modelled, or nothing of it, the plain step's is taken.
static bool predict_part(struct split_part *p, struct error *why, const struct split_request *r,
                         const struct step_question *asked, struct error *e)
{
    struct arena scratch = *r->arena;
    struct prediction *found = NEW(&scratch, struct prediction, 1);
    struct step_question q = *asked;
    struct error reason = {0};
    uint64_t whole = sequences_of(r) / r->global_batch; // the rest is dropped
    double steps = (double)whole;
    if (r->framework && !r->framework->recipe)
        (void)FAIL(&reason, UNSUPPORTED, STR_NONE,
                   "%s's distillation from a server is not modelled", r->framework->name);
    bool known = !reason.code && predict_step(found, &scratch, r, &q, &reason);
    if (!known && reason.code != ERROR_UNSUPPORTED) {
        *e = reason;
        return false;
    }
    if (known)
        take_prediction(p, found, steps);
    if (known && !found->time.unknown) {
        p->seconds += steps * reading_of(r, &found->time);
        return true;
    }
    p->borrowed = true;
    p->borrowed_all = !known;
    q.plain = true;
    q.tp = q.pp = 1;
    if (!known)
        *why = reason;
    bool safe = known && found->verdict.grade == GRADE_SAFE;
    if (known && !safe)
        return true;
    if (!predict_step(found, &scratch, r, &q, e))
        return false;
    if (!known)
        take_prediction(p, found, steps);
    p->possible = known ? !found->time.unknown : p->possible;
    p->seconds = found->time.unknown ? 0 : steps * found->time.seconds;
    p->seconds += steps * reading_of(r, &found->time);
    return true;
}

// Sizes that a framework can be told; stages only where each has a micro-batch at a time.
static bool is_size(const struct split_request *r, const struct split_part *p)
{
    const struct model *m = r->rollout.model;
    return p->gpus % (p->tp * p->pp) == 0 && (p->tp == 1 || serve_divides(m, p->tp)) &&
           (p->pp == 1 || (m->layers % p->pp == 0 && p->micro >= p->pp));
}

static bool take_size(struct split_part *best, struct error *why, const struct split_request *r,
                      struct split_part one, struct error *e)
{
    one.micro = u64_divide_up(r->global_batch, one.gpus / (one.tp * one.pp));
    const struct step_question q = {one.gpus, one.micro, one.tp, one.pp, false};
    if (!is_size(r, &one))
        return true;
    if (!predict_part(&one, why, r, &q, e))
        return false;
    bool first = one.tp == 1 && one.pp == 1;
    if (first || (one.possible && (!best->possible || one.seconds < best->seconds)))
        *best = one;
    return true;
}

bool train_part(struct split_part *p, struct error *why, const struct split_request *r,
                uint64_t gpus, struct error *e)
{
    enum { MOST_STAGES = 8 };
    bool sizes = r->framework && r->framework->sizes;
    uint64_t most = u64_least(sizes ? r->hardware.gpus_per_node : 1, gpus);
    struct split_part best = {.gpus = gpus, .tp = 1, .pp = 1, .engines = 1};
    uint64_t node = r->hardware.gpus_per_node;
    bool whole = false; // one GPU has room for all layers: it waits for nobody
    for (uint64_t tp = 1; tp <= most && !best.borrowed_all; tp *= 2)
        for (uint64_t pp = 1; pp <= MOST_STAGES && pp * tp <= gpus; pp *= 2) {
            struct split_part one = {.gpus = gpus, .tp = tp, .pp = pp, .engines = 1};
            bool wide = pp * tp > node && best.possible;
            bool left_out = best.borrowed_all || (pp > 1 && (whole || wide || !sizes));
            if (!left_out && !take_size(&best, why, r, one, e))
                return false;
            whole |= tp * pp == 1 && best.possible;
        }
    *p = best;
    return true;
}
