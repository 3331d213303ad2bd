// What helps when a role runs out of memory, computed; and, where no division can be, the least
// change under which one can.
#include "core/base/num.h"
#include "core/search/split.h"

// ------------------------------------------------------------------ changes

struct advice {
    struct split_change *changes;
    int count;
    const struct split_request *request;
    const struct split *best;
};

// Less than half a hundredth of a role's memory is no help.
static void advise(struct advice *a, struct split_change c)
{
    c.helps = sat_add(c.after, c.before / 200) < c.before;
    if (a->count < SPLIT_MOST_CHANGES)
        a->changes[a->count++] = c;
}

static struct serve_request server_of_role(const struct advice *a, enum split_role role)
{
    struct serve_request s = role == ROLE_TEACHER ? a->request->teacher : a->request->rollout;
    s.tp = a->best->parts[role].tp;
    s.pp = u64_most(a->best->parts[role].pp, 1);
    return s;
}

// Bytes of each GPU without which a server does not run: weights, what a batch takes, one sequence,
// and a teacher's scores.
static uint64_t need_of(const struct serve_request *s, enum split_role role)
{
    struct server_state x;
    uint64_t scores = role == ROLE_TEACHER ? score_bytes(s) : 0;
    server_of(&x, s);
    return sat_add(sat_add(sat_add(x.weights, x.activation), sat_add(x.other, x.holds.one)),
                   scores);
}

static void compare(struct advice *a, enum split_role role, const struct serve_request *changed,
                    struct str words)
{
    struct serve_request now = server_of_role(a, role);
    struct split_change c = {.role = role, .words = words};
    c.before = need_of(&now, role);
    c.after = need_of(changed, role);
    advise(a, c);
}

// The same weights in fp8, as -FP8 names and --quantization say.
static bool read_packed(struct serve_request *s, const struct split_request *r,
                        const struct serve_request *like, struct error *e)
{
    struct settings own = settings_in(r->arena);
    struct str engine = like->server == SERVER_VLLM ? STR("vllm") : STR("sglang");
    struct setting items[] = {{STR("model"), like->model->name, STR_NONE},
                              {STR("gpu"), r->card, STR_NONE},
                              {STR("engine"), engine, STR_NONE},
                              {STR("dtype"), STR("fp8"), STR_NONE},
                              {STR("context"), split_context(r), STR_NONE}};
    for (ptrdiff_t i = 0; i < COUNT_OF(items); i++)
        if (!settings_add(&own, items[i], e))
            return false;
    return serve_read(s, r->arena, &own, e);
}

static void advise_server(struct advice *a, enum split_role role)
{
    const struct split_request *r = a->request;
    struct serve_request wider = server_of_role(a, role), shorter = wider, smaller = wider, packed;
    struct error none = {0};
    unsigned long long tp = 2 * wider.tp, response = r->response / 2;
    wider.tp *= 2;
    if (wider.tp <= r->hardware.gpus_per_node && serve_divides(wider.model, wider.tp))
        compare(a, role, &wider, str_format(r->arena, "engines of %llu GPUs", tp));
    if (role == ROLE_TEACHER && read_packed(&packed, r, &r->teacher, &none)) {
        packed.tp = a->best->parts[role].tp;
        packed.pp = u64_most(a->best->parts[role].pp, 1);
        compare(a, role, &packed, STR("weights in fp8 (-FP8)"));
    }
    unsigned long long chunk = a->best->parts[role].chunk / 2;
    smaller.chunk = smaller.batch_tokens = chunk;
    if (chunk >= 1024)
        compare(a, role, &smaller,
                str_format(r->arena, "%s %llu",
                           smaller.server == SERVER_VLLM ? "--max-num-batched-tokens"
                                                         : "--chunked-prefill-size",
                           chunk));
    shorter.context = r->prompt + response;
    compare(a, role, &shorter, str_format(r->arena, "answers of %llu tokens", response));
}

// Training with one thing changed.
static void compare_training(struct advice *a, const struct split_request *changed, uint64_t gpus,
                             struct str words)
{
    struct split_change c = {.role = ROLE_TRAIN, .words = words};
    struct error none = {0}, why = {0};
    struct split_part p;
    if (!train_part(&p, &why, changed, gpus, &none) || !p.limit)
        return;
    c.before = a->best->parts[ROLE_TRAIN].reserved;
    c.after = p.reserved;
    advise(a, c);
}

static void advise_training(struct advice *a, const struct split_table *t)
{
    const struct split_request *r = a->request;
    const struct split_part *mine = &a->best->parts[ROLE_TRAIN];
    struct split_request fewer = *r, shorter = *r;
    unsigned long long batch = r->global_batch / 2, response = r->response / 2;
    for (int i = 0; i < t->train_count; i++) {
        const struct split_part *p = &t->trains[i];
        if (!p->possible || p->gpus <= mine->gpus || p->reserved >= mine->reserved)
            continue;
        struct str words =
            str_format(r->arena, "training on %llu GPUs", (unsigned long long)p->gpus);
        advise(a,
               (struct split_change){ROLE_TRAIN, NULL, words, mine->reserved, p->reserved, true});
        break;
    }
    fewer.global_batch = u64_most(batch, 1);
    compare_training(a, &fewer, mine->gpus, str_format(r->arena, "a global batch of %llu", batch));
    shorter.response = response;
    struct error none = {0};
    struct setting context = {STR("context"), split_context(&shorter), STR_NONE};
    shorter.training = settings_in(r->arena);
    for (ptrdiff_t i = 0; i < r->training.count; i++)
        if (!settings_add(&shorter.training, r->training.items[i], &none))
            return;
    if (settings_set(&shorter.training, context, &none))
        compare_training(a, &shorter, mine->gpus,
                         str_format(r->arena, "answers of %llu tokens", response));
}

int split_advice(struct split_change changes[SPLIT_MOST_CHANGES], const struct split_request *r,
                 const struct split_result *x)
{
    struct advice a = {changes, 0, r, &x->choices[SPLIT_BEST]};
    advise_server(&a, ROLE_TEACHER);
    advise_training(&a, x->table);
    advise_server(&a, ROLE_ROLLOUT);
    // More prompts wait in the engine's queue; they take nothing of its card.
    struct serve_request now = server_of_role(&a, ROLE_ROLLOUT);
    uint64_t need = need_of(&now, ROLE_ROLLOUT);
    unsigned long long prompts = u64_most(r->prompts / 2, 1);
    advise(&a, (struct split_change){ROLE_ROLLOUT, NULL,
                                     str_format(r->arena, "%llu prompt%s an iteration", prompts,
                                                prompts == 1 ? "" : "s"),
                                     need, need, false});
    return a.count;
}

// ------------------------------------------------------------------ where nothing can be

static uint64_t fewest_server(const struct split_request *r, enum split_role role, uint64_t most)
{
    for (uint64_t n = 1; n <= most; n++)
        if (best_server(r, role, n, 0).possible)
            return n;
    return 0;
}

// On a machine of more nodes, in powers of two.
static uint64_t more_nodes(const struct split_request *request, enum split_role role)
{
    struct split_request r = *request;
    for (r.hardware.nodes = 2; r.hardware.nodes * r.hardware.gpus_per_node <= SPLIT_MOST;
         r.hardware.nodes *= 2) {
        uint64_t gpus = r.hardware.nodes * r.hardware.gpus_per_node;
        struct error none = {0}, why = {0};
        struct split_part p = {0};
        if (role == ROLE_TRAIN && (gpus > r.global_batch || !train_part(&p, &why, &r, gpus, &none)))
            return 0;
        if (role == ROLE_TRAIN ? p.possible : best_server(&r, role, gpus, 0).possible)
            return gpus;
    }
    return 0;
}

static bool no_teacher(const struct split_request *r, struct error *e)
{
    struct split_request packed = *r;
    struct error none = {0};
    struct split_part one =
        best_server(r, ROLE_TEACHER, u64_least(r->gpus, r->hardware.gpus_per_node), 0);
    unsigned long long gpus = more_nodes(r, ROLE_TEACHER), few = 0;
    double gib = (double)one.weights / (double)GIB;
    if (read_packed(&packed.teacher, r, &r->teacher, &none))
        few = fewest_server(&packed, ROLE_TEACHER, r->gpus);
    FAIL(e, BAD_INPUT, r->where,
         "the teacher does not fit: divided as far as %llu GPUs go, its weights take %.1f GiB of "
         "each, and a sequence needs room beside them",
         (unsigned long long)r->gpus, gib);
    if (few)
        return HINT(e, "its weights in fp8 (a name that ends in -FP8) start on %llu", few);
    if (gpus)
        return HINT(e, "%llu GPUs have room for it", gpus);
    return HINT(e, "larger cards or a shorter --response would help");
}

static bool no_training(const struct split_request *request, struct error *e)
{
    struct split_request r = *request;
    unsigned long long gpus = more_nodes(request, ROLE_TRAIN), gpu_count = request->gpus;
    struct error none = {0}, why = {0};
    struct split_part p = {0};
    FAIL(e, BAD_INPUT, r.where,
         "the student's training is not safe on any number of GPUs up to %llu", gpu_count);
    if (gpus)
        return HINT(e, "on %llu it is", gpus);
    for (r.response = request->response / 2; r.response >= 256; r.response /= 2) {
        struct setting context = {STR("context"), split_context(&r), STR_NONE};
        r.training = settings_in(r.arena);
        for (ptrdiff_t i = 0; i < request->training.count; i++)
            if (!settings_add(&r.training, request->training.items[i], &none))
                return false;
        if (!settings_set(&r.training, context, &none) ||
            !train_part(&p, &why, &r, u64_least(r.gpus, r.hardware.gpus_per_node), &none))
            break;
        if (p.possible)
            return HINT(e, "with --response %llu it is", (unsigned long long)r.response);
    }
    return HINT(e, "more GPUs, larger cards or a smaller student would help");
}

static uint64_t fewest_train(const struct split_table *t)
{
    for (int i = 0; i < t->train_count; i++)
        if (t->trains[i].possible)
            return t->trains[i].gpus;
    return 0;
}

bool split_no_room(const struct split_table *t, const struct split_request *r, struct error *e)
{
    uint64_t teacher = fewest_server(r, ROLE_TEACHER, r->gpus), train = fewest_train(t);
    uint64_t rollout = fewest_server(r, ROLE_ROLLOUT, r->gpus);
    if (!teacher)
        return no_teacher(r, e);
    if (!train)
        return no_training(r, e);
    if (!rollout)
        return FAIL(e, BAD_INPUT, r->where,
                    "no number of GPUs up to %llu has room for the student's engines; larger "
                    "cards or a shorter --response would help",
                    (unsigned long long)r->gpus);
    if (r->teacher_gpus || r->rollout_gpus)
        return FAIL(e, BAD_INPUT, r->where,
                    "no division of %llu GPUs has so many for the teacher and for rollout in whole "
                    "engines, and the rest for training; without --teacher-gpus and --rollout the "
                    "best is shown",
                    (unsigned long long)r->gpus);
    FAIL(e, BAD_INPUT, r->where,
         "teacher, training and engines need at least %llu, %llu and %llu GPUs, and engines within "
         "a node; there are %llu",
         (unsigned long long)teacher, (unsigned long long)train, (unsigned long long)rollout,
         (unsigned long long)r->gpus);
    bool apart = r->layouts & (1u << LAYOUT_APART);
    uint64_t usual = u64_most(r->hardware.card.per_node, r->hardware.gpus_per_node);
    uint64_t sum = teacher + (apart ? train + rollout : u64_most(train, rollout));
    unsigned long long least = sum > usual ? u64_align_up(sum, usual) : sum;
    return HINT(e, "%llu have room for %s", least,
                apart ? "all" : "those that take turns and the teacher");
}
