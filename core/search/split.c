// See split.h.
#include "core/search/split.h"

#include "core/base/num.h"
#include "core/time/network.h"

#include <string.h>

const char *split_role_name(enum split_role r)
{
    static const char *const names[] = {"teacher", "train", "rollout"};
    return names[r];
}

const char *split_choice_name(enum split_choice c)
{
    static const char *const names[] = {"best", "most teacher", "most training", "balanced"};
    return names[c];
}

// ------------------------------------------------------------------ reading

// What a framework trains with.
static const struct {
    const char *framework, *recipe;
} recipes[] = {{"slime", "megatron"}, {"trinity", "trinity"}, {"verl", "verl"}, {"trl", NULL}};

static bool add_recipe(struct settings *training, const struct settings *s, struct error *e)
{
    const struct setting *item = settings_find_z(s, "framework");
    for (ptrdiff_t i = 0; item && i < COUNT_OF(recipes); i++) {
        if (!str_is(item->value, recipes[i].framework))
            continue;
        if (!recipes[i].recipe)
            return FAIL(
                e, UNSUPPORTED, item->where,
                "TRL's distillation holds the teacher beside the student on every GPU: "
                "'fathom predict --recipe trl --task distill --teacher MODEL' answers that");
        struct setting recipe = {STR("recipe"), str_from(recipes[i].recipe), item->where};
        return settings_add(training, recipe, e);
    }
    return true;
}

static bool count_of(uint64_t *count, const struct settings *s, const char *key, struct error *e)
{
    const struct setting *item = settings_find_z(s, key);
    return !item ||
           setting_number(count, item, UNIT_COUNT, (struct range){1, UINT64_C(1) << 28}, e);
}

// "8x" or "2x8x" before the card.
static struct str without_counts(struct str spec)
{
    for (int i = 0; i < 2; i++) {
        ptrdiff_t n = 0;
        while (n < spec.n && char_is_digit(spec.p[n]))
            n++;
        if (n && n < spec.n && char_lower(spec.p[n]) == 'x')
            spec = str_slice(spec, n + 1, spec.n);
    }
    return spec;
}

static bool add(struct settings *s, const char *key, struct str value, struct str where,
                struct error *e)
{
    return settings_set(s, (struct setting){str_from(key), value, where}, e);
}

static struct str context_of(const struct split_request *r)
{
    unsigned long long tokens = r->prompt + r->response;
    return str_format(r->arena, "%llu", tokens);
}

// The student is the model, with what its own file says; the teacher is of the catalogue.
static bool read_server(struct serve_request *server, const struct split_request *r,
                        const struct settings *s, bool teacher, struct error *e)
{
    const struct setting *engine = settings_find_z(s, "engine");
    const struct setting *name = settings_find_z(s, teacher ? "teacher" : "model");
    struct settings own = settings_in(r->arena);
    for (ptrdiff_t i = 0; i < s->count && !teacher; i++)
        if (setting_is_document(s->items[i].key) && !settings_add(&own, s->items[i], e))
            return false;
    struct str context = context_of(r);
    return add(&own, "model", name->value, name->where, e) &&
           add(&own, "gpu", r->card, r->where, e) &&
           add(&own, "engine", engine ? engine->value : STR("vllm"),
               engine ? engine->where : STR_NONE, e) &&
           add(&own, "context", context, STR_NONE, e) && serve_read(server, r->arena, &own, e);
}

static bool read_training(struct split_request *r, const struct settings *s, struct error *e)
{
    const struct setting *model = settings_find_z(s, "model");
    const struct setting *images = settings_find_z(s, "images");
    const struct setting *size = settings_find_z(s, "image-size");
    struct str context = context_of(r);
    r->training = settings_in(r->arena);
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (setting_is_document(s->items[i].key) && !settings_add(&r->training, s->items[i], e))
            return false;
    return add(&r->training, "model", model->value, model->where, e) &&
           add(&r->training, "context", context, STR_NONE, e) &&
           (!images || settings_add(&r->training, *images, e)) &&
           (!size || settings_add(&r->training, *size, e)) && add_recipe(&r->training, s, e);
}

static bool read_batches(struct split_request *r, const struct settings *s, struct error *e)
{
    const struct setting *batch = settings_find_z(s, "global-batch");
    r->prompts = 64;
    r->samples = 8;
    r->prompt = 1024;
    r->response = 4096;
    if (!count_of(&r->prompts, s, "rollout-batch", e) || !count_of(&r->samples, s, "samples", e) ||
        !count_of(&r->prompt, s, "prompt", e) || !count_of(&r->response, s, "response", e))
        return false;
    r->global_batch = r->prompts * r->samples;
    if (!count_of(&r->global_batch, s, "global-batch", e))
        return false;
    if (r->global_batch > r->prompts * r->samples)
        return FAIL(e, BAD_INPUT, batch->where,
                    "a step of %llu sequences needs more than the %llu that an iteration makes: "
                    "%llu prompts of %llu answers",
                    (unsigned long long)r->global_batch,
                    (unsigned long long)(r->prompts * r->samples), (unsigned long long)r->prompts,
                    (unsigned long long)r->samples);
    return true;
}

// Both models read whole answers behind their prompts.
static bool check_positions(const struct split_request *r, const struct settings *s,
                            struct error *e)
{
    const struct setting *item = settings_find_z(s, "response");
    item = item ? item : settings_find_z(s, "prompt");
    const struct model *both[] = {r->teacher.model, r->rollout.model};
    for (int i = 0; i < COUNT_OF(both); i++) {
        uint64_t positions = u64_most(both[i]->max_position, both[i]->rotary_table);
        if (positions && r->prompt + r->response > positions)
            return FAIL(e, BAD_INPUT, item ? item->where : STR("--response"),
                        "a prompt of %llu tokens and an answer of %llu are more than the %llu "
                        "positions of %.*s",
                        (unsigned long long)r->prompt, (unsigned long long)r->response,
                        (unsigned long long)positions, STR_ARGS(str_short(both[i]->name)));
    }
    return true;
}

bool split_read(struct split_request *r, struct arena *a, const struct settings *s, struct error *e)
{
    const struct setting *gpu = settings_find_z(s, "gpu");
    *r = (struct split_request){.arena = a};
    if (!settings_find_z(s, "teacher"))
        return FAIL(e, BAD_INPUT, STR("--teacher"), "no teacher is given");
    if (!settings_find_z(s, "model"))
        return FAIL(e, BAD_INPUT, STR("--student"), "no student is given");
    if (!read_batches(r, s, e) || !hardware_from_settings(&r->hardware, a, s, e))
        return false;
    r->gpus = hardware_gpus(&r->hardware);
    r->card = without_counts(gpu->value);
    r->where = gpu->where;
    if (r->gpus < SPLIT_LEAST || r->gpus > SPLIT_MOST)
        return FAIL(e, BAD_INPUT, gpu->where,
                    "three roles with GPUs of their own are divided over %d to %d GPUs, not %llu",
                    SPLIT_LEAST, SPLIT_MOST, (unsigned long long)r->gpus);
    if (!r->hardware.card.bandwidth.value || !r->hardware.card.bf16.value)
        return FAIL(e, BAD_INPUT, gpu->where,
                    "the card's bandwidth and bf16 rate are needed, as in "
                    "8x{memory=48GiB,bandwidth=960GB/s,bf16=181TFLOPS}");
    return read_server(&r->teacher, r, s, true, e) && read_server(&r->rollout, r, s, false, e) &&
           check_positions(r, s, e) && read_training(r, s, e);
}

// ------------------------------------------------------------------ roles

static uint64_t sequences_of(const struct split_request *r)
{
    return r->prompts * r->samples;
}

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

static struct split_part server_part(const struct split_request *r, enum split_role role,
                                     uint64_t gpus, uint64_t tp)
{
    struct serve_request server = role == ROLE_TEACHER ? r->teacher : r->rollout;
    struct split_part p = {.gpus = gpus, .tp = tp, .engines = gpus / tp};
    struct server_state x;
    server.tp = tp;
    server_of(&x, &server);
    if (!server_starts(&x) || !x.prefill.known || !x.holds.sequences)
        return p;
    p.possible = true;
    p.reserved = x.budget;
    p.seconds = role == ROLE_TEACHER ? teacher_seconds(r, &x, p.engines)
                                     : rollout_seconds(r, &server, &x, p.engines);
    return p;
}

// The size of an engine that is fastest on so many GPUs.
static struct split_part best_server(const struct split_request *r, enum split_role role,
                                     uint64_t gpus)
{
    const struct model *m = role == ROLE_TEACHER ? r->teacher.model : r->rollout.model;
    struct split_part best = {.gpus = gpus};
    for (uint64_t tp = 1; tp <= u64_least(gpus, r->hardware.gpus_per_node); tp++) {
        if (gpus % tp || r->hardware.gpus_per_node % tp || !serve_divides(m, tp))
            continue;
        struct split_part p = server_part(r, role, gpus, tp);
        if (p.possible && (!best.possible || p.seconds < best.seconds))
            best = p;
    }
    return best;
}

struct step_question {
    uint64_t gpus, accumulation;
    bool plain; // whatever the framework
};

// The machine of a training job: whole nodes of equally many where one is not enough.
static struct str machine_of(struct arena *a, const struct split_request *r, uint64_t gpus)
{
    uint64_t nodes = u64_divide_up(gpus, r->hardware.gpus_per_node);
    return str_format(a, "%llux%llux%.*s", (unsigned long long)nodes,
                      (unsigned long long)(gpus / nodes), STR_ARGS(r->card));
}

static bool predict_step(struct prediction *found, struct arena *a, const struct split_request *r,
                         const struct step_question *q, struct error *e)
{
    struct job *job = NEW(a, struct job, 1);
    struct settings s = settings_in(a);
    struct str count = str_format(a, "%llu", (unsigned long long)q->accumulation);
    for (ptrdiff_t i = 0; i < r->training.count; i++) {
        bool skipped = q->plain && str_is(r->training.items[i].key, "recipe");
        if (!skipped && !settings_add(&s, r->training.items[i], e))
            return false;
    }
    return add(&s, "gpu", machine_of(a, r, q->gpus), r->where, e) &&
           add(&s, "accum", count, STR_NONE, e) && job_from_settings(job, a, &s, e) &&
           predict_fit(found, a, job, e);
}

// Seconds of a step of so many micro-batches; 0: it is not safe. Where a framework's own time is
// not modelled, the plain step's is taken.
static bool train_step(double *seconds, struct split_part *p, const struct split_request *r,
                       uint64_t accumulation, struct error *e)
{
    struct arena scratch = *r->arena;
    struct prediction *found = NEW(&scratch, struct prediction, 1);
    struct step_question q = {p->gpus, accumulation, false};
    *seconds = 0;
    if (!predict_step(found, &scratch, r, &q, e))
        return false;
    p->reserved = u64_most(p->reserved, found->reserved_bytes);
    if (found->verdict.grade != GRADE_SAFE)
        return true;
    p->borrowed = found->time.unknown != NULL;
    q.plain = true;
    if (p->borrowed && !predict_step(found, &scratch, r, &q, e))
        return false;
    *seconds = found->time.unknown ? 0 : found->time.seconds;
    return true;
}

// Micro-batches of one sequence: the first has the optimizer's step with it, each further one takes
// what the second adds.
static bool train_part(struct split_part *p, const struct split_request *r, uint64_t gpus,
                       struct error *e)
{
    double one = 0, two = 0;
    *p = (struct split_part){.gpus = gpus, .tp = 1, .engines = 1};
    if (gpus % u64_divide_up(gpus, r->hardware.gpus_per_node))
        return true; // nodes of several sizes are not simulated
    if (!train_step(&one, p, r, 1, e) || !train_step(&two, p, r, 2, e))
        return false;
    uint64_t steps = sequences_of(r) / r->global_batch; // the rest is dropped
    double micro = (double)u64_divide_up(r->global_batch, gpus);
    p->possible = one > 0 && two > 0;
    p->seconds = (double)steps * (one + (micro - 1) * (two > one ? two - one : 0));
    return true;
}

// ------------------------------------------------------------------ divisions

uint64_t split_first(const struct split *s, enum split_role role)
{
    uint64_t first = 0;
    if (role != ROLE_TEACHER)
        first += s->parts[ROLE_TEACHER].gpus;
    if (role == ROLE_TRAIN)
        first += s->parts[ROLE_ROLLOUT].gpus;
    return first;
}

// Whether no engine of a role lies in two nodes.
static bool is_placed(const struct split *s, enum split_role role, uint64_t per_node)
{
    const struct split_part *p = &s->parts[role];
    return split_first(s, role) % p->tp == 0 && per_node % p->tp == 0;
}

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

static struct split split_of(const struct split_request *r, const struct split_result *x,
                             const uint64_t gpus[SPLIT_ROLES])
{
    struct split s = {.possible = true};
    for (int i = 0; i < SPLIT_ROLES; i++) {
        s.parts[i] = x->parts[i][gpus[i]];
        s.possible = s.possible && s.parts[i].possible;
    }
    if (!s.possible)
        return s;
    s.possible = is_placed(&s, ROLE_TEACHER, r->hardware.gpus_per_node) &&
                 is_placed(&s, ROLE_ROLLOUT, r->hardware.gpus_per_node);
    double teacher = s.parts[ROLE_TEACHER].seconds, train = s.parts[ROLE_TRAIN].seconds;
    double rollout = s.parts[ROLE_ROLLOUT].seconds;
    double made = teacher > rollout ? teacher : rollout; // scored as they are finished
    s.sync = sync_seconds(r);
    s.iteration = made + train + s.sync;
    s.one_off = (made > train ? made : train) + s.sync;
    s.slowest = slowest_of(&s);
    return s;
}

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
    return s->iteration < than->iteration;
}

static struct split best_of(const struct split_request *r, const struct split_result *x,
                            uint64_t total, enum split_choice choice)
{
    struct split best = {0};
    for (uint64_t teacher = 1; teacher + 2 <= total; teacher++)
        for (uint64_t rollout = 1; teacher + rollout + 1 <= total; rollout++) {
            uint64_t gpus[SPLIT_ROLES] = {teacher, total - teacher - rollout, rollout};
            struct split s = split_of(r, x, gpus);
            if (s.possible && is_better(&s, &best, choice))
                best = s;
        }
    return best;
}

static bool fill_parts(struct split_result *x, const struct split_request *r, struct error *e)
{
    for (uint64_t n = 1; n + 1 <= r->gpus; n++) {
        struct split_part *train = &x->parts[ROLE_TRAIN][n];
        x->parts[ROLE_TEACHER][n] = best_server(r, ROLE_TEACHER, n);
        x->parts[ROLE_ROLLOUT][n] = best_server(r, ROLE_ROLLOUT, n);
        if (!train->gpus && !train_part(train, r, n, e))
            return false;
    }
    return true;
}

// The best with one GPU more: in the same node where there is one, as if so many had been asked
// for. Training on fewer is what it was.
static bool with_one_more(struct split *more, const struct split_result *x,
                          const struct split_request *request, struct error *e)
{
    struct split_request r = *request;
    struct split_result *larger = NEW(r.arena, struct split_result, 1);
    r.gpus++;
    if (r.hardware.nodes == 1)
        r.hardware.gpus_per_node++;
    memcpy(larger->parts[ROLE_TRAIN], x->parts[ROLE_TRAIN], sizeof x->parts[ROLE_TRAIN]);
    if (!fill_parts(larger, &r, e))
        return false;
    *more = best_of(&r, larger, r.gpus, SPLIT_BEST);
    return true;
}

// The fewest GPUs on which a role can be had; 0: it cannot.
static uint64_t fewest(const struct split_result *x, const struct split_request *r,
                       enum split_role role)
{
    for (uint64_t n = 1; n + 1 <= r->gpus; n++)
        if (x->parts[role][n].possible)
            return n;
    return 0;
}

static bool no_room(const struct split_result *x, const struct split_request *r, struct error *e)
{
    static const char *const words[] = {
        "teacher; packed weights (a name that ends in -FP8), more GPUs or larger cards would help",
        "student's training, safely; more GPUs, larger cards or a shorter --response would help",
        "student's engines; larger cards or a shorter --response would help"};
    uint64_t needs[SPLIT_ROLES];
    for (int i = 0; i < SPLIT_ROLES; i++) {
        needs[i] = fewest(x, r, (enum split_role)i);
        if (!needs[i])
            return FAIL(e, BAD_INPUT, r->where, "no number of GPUs up to %llu has room for the %s",
                        (unsigned long long)r->gpus - 2, words[i]);
    }
    return FAIL(e, BAD_INPUT, r->where,
                "teacher, training and engines need at least %llu, %llu and %llu GPUs, and engines "
                "within a node; there are %llu",
                (unsigned long long)needs[ROLE_TEACHER], (unsigned long long)needs[ROLE_TRAIN],
                (unsigned long long)needs[ROLE_ROLLOUT], (unsigned long long)r->gpus);
}

// Whether a division has room for answers of another length.
static bool has_room(const struct split_request *request, const struct split *s, uint64_t response)
{
    struct arena scratch = *request->arena;
    struct split_request r = *request;
    struct error none = {0};
    struct split_part train;
    r.arena = &scratch;
    r.response = response;
    r.teacher.context = r.rollout.context = r.prompt + response;
    r.training = settings_in(&scratch);
    for (ptrdiff_t i = 0; i < request->training.count; i++)
        if (!settings_add(&r.training, request->training.items[i], &none))
            return false;
    for (int i = 0; i < SPLIT_ROLES; i++) {
        const struct split_part *p = &s->parts[i];
        if (i != ROLE_TRAIN && !server_part(&r, (enum split_role)i, p->gpus, p->tp).possible)
            return false;
    }
    return add(&r.training, "context", context_of(&r), STR_NONE, &none) &&
           train_part(&train, &r, s->parts[ROLE_TRAIN].gpus, &none) && train.possible;
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

bool split_find(struct split_result *x, const struct split_request *r, struct error *e)
{
    if (!fill_parts(x, r, e))
        return false;
    for (int i = 0; i < SPLIT_CHOICES; i++)
        x->choices[i] = best_of(r, x, r->gpus, (enum split_choice)i);
    if (!x->choices[SPLIT_BEST].possible)
        return no_room(x, r, e);
    if (!with_one_more(&x->more, x, r, e))
        return false;
    x->longest_response = longest_response(r, &x->choices[SPLIT_BEST]);
    return true;
}
