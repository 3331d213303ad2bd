// The plan: equal to trying everything, whatever the goal; its bounds; its arithmetic of epochs.
#include <string.h>

#include "core/plan/bounds.h"
#include "core/plan/story.h"
#include "core/predict/epoch.h"
#include "tests/support/t.h"

static struct settings *settings_of(struct arena *a, const char *text)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct error e = {0};
    *s = settings_in(a);
    if (!settings_read(s, str_from(text), ' ', STR("test"), &e) || !settings_check(s, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    return s;
}

static struct plan *plan_made(struct arena *a, const char *text, enum plan_goal goal,
                              bool exhaustive, bool front)
{
    struct plan *p = NEW(a, struct plan, 1);
    struct plan_request r;
    struct error e = {0};
    if (!plan_request_read(&r, settings_of(a, text), &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    r.goal = goal;
    r.exhaustive = exhaustive;
    r.front = front;
    if (!plan_make(p, a, &r, NULL, &e))
        test_failed(__FILE__, __LINE__, "%s: %s", text, e.message);
    return p;
}

static const struct plan *plan_of(struct arena *a, const char *text, enum plan_goal goal,
                                  bool exhaustive)
{
    return plan_made(a, text, goal, exhaustive, false);
}

// Few layers, so that it is quick; limits at which some configurations fit and others do not.
static const char *const spaces[] = {
    "recipe=trl model=Qwen3-4B gpu=2xRTX4090 layers=2 context=2048 global-batch=4 "
    "memory-limit=8GiB loss=chunked:256",
    "recipe=trl model=Qwen3-4B gpu=2xRTX4090 layers=2 context=2048 global-batch=4 "
    "memory-limit=5GiB loss=chunked:256",
    "recipe=trl model=Qwen3-4B gpu=2xRTX4090 layers=2 context=2048 global-batch=4 "
    "memory-limit=4GiB loss=chunked:256 layer-kernels=torch",
    "recipe=trl task=reward model=Qwen3-4B gpu=4xRTX4090 layers=2 context=1024 global-batch=8 "
    "memory-limit=5GiB cp=1",
    "recipe=trl model=Qwen3-0.6B gpu=2xH100-80G layers=2 context=8192 global-batch=1",
    "recipe=trl model=Qwen3-0.6B gpu=2xH100-80G layers=8 context=2048 global-batch=4 "
    "memory-limit=6GiB loss=chunked:256 sp=1 cp=1",
    "recipe=transformers model=Qwen3-0.6B gpu=A100-80G layers=3 context=4096 global-batch=6 "
    "memory-limit=12GiB",
    "recipe=deepspeed model=Qwen3-1.7B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=8GiB",
    "recipe=hf model=Qwen3-1.7B gpu=2x2xH100-80G layers=2 context=2048 global-batch=4 "
    "memory-limit=6GiB loss=full",
    "recipe=megatron model=Qwen3-4B gpu=4xH100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=6GiB",
    "recipe=megatron model=Qwen3-4B gpu=4xH100-80G layers=12 context=4096 global-batch=8 "
    "memory-limit=14GiB",
    "recipe=megatron model=Qwen3-30B-A3B gpu=4xH100-80G layers=6 context=2048 global-batch=4 "
    "memory-limit=24GiB tp=1",
    "recipe=megatron model=Qwen3-0.6B gpu=2xH100-80G layers=20 context=16384 global-batch=4 "
    "memory-limit=22GiB tp=2 cp=1 pp=1",
    "recipe=trinity model=Qwen3-0.6B gpu=4xA100-80G layers=2 context=8192 global-batch=8 "
    "memory-limit=20GiB",
    "recipe=verl model=Qwen3-0.6B gpu=2xA100-80G layers=2 context=4096 global-batch=4 "
    "memory-limit=9GiB",
    "recipe=trinity model=Qwen2.5-1.5B gpu=A10G layers=12 context=32768 global-batch=4 "
    "fused-kernels=on memory-limit=16GiB",
    "recipe=trl model=gemma-2-2b gpu=4xB200 layers=2 context=32768 global-batch=8 strategy=fsdp2 "
    "reshard=off offload=off expandable=off",
    "recipe=trl task=grpo model=Qwen3-0.6B gpu=2xA100-80G layers=2 prompt=512 response=3584 "
    "global-batch=8 memory-limit=6GiB",
    "recipe=trl task=rloo beta=0.05 model=Qwen3-0.6B gpu=2xA100-80G layers=2 prompt=512 "
    "response=3584 global-batch=4 memory-limit=6GiB",
};

// What few layers tell of a step's time is never longer than the step is.
static ptrdiff_t check_estimates(const struct plan_group *g, const struct plan_group *tried)
{
    for (ptrdiff_t i = 0; i < g->estimate_count; i++)
        for (ptrdiff_t k = 0; k < tried->candidate_count; k++) {
            const struct plan_candidate *c = &tried->candidates[k];
            if (memcmp(c->dial, g->estimates[i].dial, sizeof c->dial) == 0)
                CHECK(g->estimates[i].seconds <= c->prediction.time.seconds);
        }
    return g->estimate_count;
}

// `tried` is all there is, of which any goal can choose.
static void check_same(struct arena *a, const char *text, enum plan_goal goal,
                       const struct plan *tried)
{
    const struct plan *found = plan_of(a, text, goal, false);
    const struct plan_candidate *best = plan_choose(tried, goal);
    CHECK(!found->best == !best);
    CHECK(found->predicted < tried->predicted);
    if (!found->best || !best)
        return;
    struct str words = plan_words(a, found->best), wanted = plan_words(a, best);
    if (!str_equal(words, wanted))
        test_failed(__FILE__, __LINE__, "%s for %s: %.*s, but %.*s", text, plan_goal_words[goal],
                    STR_ARGS(words), STR_ARGS(wanted));
    CHECK_U64(found->best->prediction.reserved_bytes, best->prediction.reserved_bytes);
    CHECK(found->best->prediction.time.seconds == best->prediction.time.seconds);
}

static bool is_told(const struct plan_front *f, const struct plan_candidate *c, double same)
{
    for (int i = 0; i < f->count; i++) {
        const struct prediction *p = &f->points[i]->prediction;
        if (p->time.seconds <= c->prediction.time.seconds * same &&
            (double)p->reserved_bytes <= (double)c->prediction.reserved_bytes * same)
            return true;
    }
    return false;
}

static void check_point(const struct plan_front *front, const struct plan_candidate *c, double step)
{
    for (int i = 0; i < front->count; i++) {
        const struct prediction *p = &front->points[i]->prediction;
        CHECK(c->prediction.time.seconds * step >= p->time.seconds ||
              (double)c->prediction.reserved_bytes * step >= (double)p->reserved_bytes);
    }
}

// Whatever the goal, nothing beats in both what is told of memory against time, and nothing is
// missing, as near as a step in it is.
static void check_front(struct arena *a, const char *text, enum plan_goal goal,
                        const struct plan *tried)
{
    const double step = 1.01 * 1.01;
    const struct plan *found = plan_made(a, text, goal, false, true);
    const struct plan_candidate *c;
    struct plan_front *front = NEW(a, struct plan_front, 1);
    plan_find_front(front, found);
    double most =
        front->count && goal != GOAL_MEMORY ? 2 * front->points[0]->prediction.time.seconds : 1e300;
    CHECK(front->count < PLAN_MOST_PARETO);
    for (ptrdiff_t g = 0, n = 0; (c = plan_next(tried, &g, &n));) {
        bool elsewhere = found->best && c->family->gpus != found->best->family->gpus;
        bool late = plan_is_late(c); // told of where it is the best
        if (late || !plan_is_safe(c) || elsewhere || c->prediction.time.seconds > most)
            continue;
        if (!is_told(front, c, step))
            test_failed(__FILE__, __LINE__, "%s for %s: %.*s is missing", text,
                        plan_goal_words[goal], STR_ARGS(plan_words(a, c)));
        check_point(front, c, step);
    }
}

TEST(the_plan_is_what_trying_everything_finds)
{
    static const enum plan_goal goals[] = {GOAL_SPEED, GOAL_MEMORY, GOAL_SIMPLICITY};
    int empty = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(spaces); i++) {
        struct arena *a = test_arena();
        const struct plan *tried = plan_of(a, spaces[i], GOAL_SPEED, true);
        empty += !tried->best;
        for (ptrdiff_t g = 0; g < COUNT_OF(goals); g++) {
            check_same(a, spaces[i], goals[g], tried);
            check_front(a, spaces[i], goals[g], tried);
        }
    }
    CHECK_U64((uint64_t)empty, 1);
}

static void check_best_of(struct arena *a, struct plan *p, struct plan *all, const char *strategy)
{
    const struct plan_candidate *c = plan_best_of(p, a, strategy, NULL);
    const struct plan_candidate *wanted = plan_best_of(all, a, strategy, NULL);
    CHECK(c && wanted && plan_is_safe(c) == plan_is_safe(wanted));
    if (c && wanted && plan_is_safe(wanted) && !str_equal(plan_words(a, c), plan_words(a, wanted)))
        test_failed(__FILE__, __LINE__, "%s: %.*s, but %.*s", plan_goal_words[p->request.goal],
                    STR_ARGS(plan_words(a, c)), STR_ARGS(plan_words(a, wanted)));
}

TEST(few_layers_take_no_longer)
{
    ptrdiff_t compared = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(spaces); i++) {
        struct arena *a = test_arena();
        if (!strstr(spaces[i], "layers=8") && !strstr(spaces[i], "layers=12"))
            continue;
        const struct plan *tried = plan_of(a, spaces[i], GOAL_SPEED, true);
        const struct plan *found = plan_made(a, spaces[i], GOAL_SPEED, false, true);
        for (ptrdiff_t g = 0; g < found->group_count; g++)
            compared += check_estimates(&found->groups[g], &tried->groups[g]);
    }
    CHECK(compared > 40);
}

// A strategy's own best is found, whatever was left out for the sake of another's.
TEST(each_strategy_is_shown_at_its_best)
{
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "fsdp2", "zero3"};
    static const enum plan_goal goals[] = {GOAL_SPEED, GOAL_SIMPLICITY};
    struct arena *a = test_arena();
    struct plan *all = plan_made(a, spaces[1], GOAL_SPEED, true, false);
    for (ptrdiff_t g = 0; g < COUNT_OF(goals); g++) {
        struct plan *p = plan_made(a, spaces[1], goals[g], false, false);
        all->request.goal = goals[g];
        for (ptrdiff_t i = 0; i < COUNT_OF(strategies); i++)
            check_best_of(a, p, all, strategies[i]);
    }
}

TEST(with_fewer_gpus_where_cost_counts)
{
    struct arena *a = test_arena();
    const struct plan *tried = plan_of(a, spaces[0], GOAL_COST, true);
    check_same(a, spaces[0], GOAL_COST, tried);
    check_front(a, spaces[0], GOAL_COST, tried);
}

static bool is_beyond(const struct plan_candidate *c, const struct plan_candidate *o)
{
    for (int d = 0; d < PLAN_DIALS; d++)
        if (c->dial[d] < o->dial[d])
            return false;
    return c != o;
}

static ptrdiff_t check_order(const struct plan_group *g, const struct plan_candidate *c)
{
    ptrdiff_t compared = 0;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++) {
        const struct plan_candidate *o = &g->candidates[i];
        if (!is_beyond(c, o))
            continue;
        CHECK(c->prediction.time.seconds >= o->prediction.time.seconds);
        CHECK(c->prediction.floor_bytes <= o->prediction.floor_bytes);
        CHECK(c->trouble >= o->trouble);
        compared++;
    }
    return compared;
}

// Both predicted as their words say it.
static void check_fewest(struct arena a, const struct plan *p, const struct plan_candidate *c)
{
    struct plan_candidate fewer = *c;
    struct error e = {0};
    fewer.count--;
    struct job *job = NEW(&a, struct job, 1);
    CHECK(plan_is_safe(c) && c->count > 1);
    CHECK(plan_job(job, &a, p, &fewer, &e) && plan_predict(&fewer.prediction, a, job, &e));
    CHECK(!plan_is_safe(&fewer));
    CHECK(fewer.prediction.time.seconds < c->prediction.time.seconds);
}

// Recomputing everything takes no more than half as long again as recomputing nothing.
static ptrdiff_t check_recomputed(const struct plan_group *g, const struct plan_candidate *all)
{
    enum { CHECKPOINTING = 1 };
    ptrdiff_t compared = 0;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++) {
        const struct plan_candidate *none = &g->candidates[i];
        bool same = none->dial[CHECKPOINTING] == 0 && all->dial[CHECKPOINTING] == 3;
        for (int d = 0; d < PLAN_DIALS; d++)
            same &= d == CHECKPOINTING || none->dial[d] == all->dial[d];
        CHECK(!same || all->prediction.time.seconds <= 1.5 * none->prediction.time.seconds);
        compared += same;
    }
    return compared;
}

TEST(no_more_layers_are_recomputed_than_is_safe)
{
    ptrdiff_t compared = 0, megatrons = 0;
    for (ptrdiff_t n = 0; n < COUNT_OF(spaces); n++) {
        struct arena *a = test_arena();
        if (!str_starts(str_from(spaces[n]), STR("recipe=megatron")))
            continue;
        const struct plan *p = plan_of(a, spaces[n], GOAL_SPEED, true);
        for (ptrdiff_t g = 0; g < p->group_count; g++)
            for (ptrdiff_t i = 0; i < p->groups[g].candidate_count; i++)
                compared += check_recomputed(&p->groups[g], &p->groups[g].candidates[i]);
        if (!p->best || !plan_dials_say_some(p->best->dial))
            continue;
        check_fewest(*a, p, p->best);
        megatrons++;
    }
    CHECK(compared > 30 && megatrons > 0);
}

static ptrdiff_t check_in_turn(const struct plan *p, const struct plan_candidate *c)
{
    const struct plan_candidate *o;
    ptrdiff_t compared = 0;
    for (ptrdiff_t g = 0, i = 0; (o = plan_next(p, &g, &i));) {
        if (o->family != &p->families[c->family->plain] || o->batch != c->batch ||
            memcmp(o->dial, c->dial, sizeof o->dial) != 0)
            continue;
        double part = (double)c->accum / (double)(c->accum + c->family->pipeline - 1);
        CHECK(c->prediction.time.seconds >= part * o->prediction.time.seconds);
        CHECK(c->prediction.floor_bytes >= o->prediction.floor_bytes);
        compared++;
    }
    return compared;
}

// Several stages a rank leave less to wait for, and have more micro-batches on their way.
TEST(stages_in_turn_take_no_less)
{
    static const char *const text = "recipe=megatron model=Qwen3-4B gpu=4xH100-80G layers=12 "
                                    "context=4096 global-batch=8";
    ptrdiff_t compared = 0;
    const struct plan *p = plan_of(test_arena(), text, GOAL_SPEED, true);
    const struct plan_candidate *c;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        compared += c->family->in_turn ? check_in_turn(p, c) : 0;
    CHECK(compared > 30);
}

// Along a dial no step becomes shorter, no live byte is added: what the bounds stand on.
TEST(dials_are_in_order)
{
    ptrdiff_t compared = 0;
    const struct plan *p = plan_of(test_arena(), spaces[0], GOAL_SPEED, true);
    for (ptrdiff_t g = 0; g < p->group_count; g++)
        for (ptrdiff_t i = 0; i < p->groups[g].candidate_count; i++)
            compared += check_order(&p->groups[g], &p->groups[g].candidates[i]);
    CHECK(compared > 100);
}

static const struct plan_candidate *tried_at(const struct plan_group *g, const struct plan_floor *f)
{
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (memcmp(g->candidates[i].dial, f->dial, sizeof f->dial) == 0)
            return &g->candidates[i];
    return NULL;
}

struct floors_seen {
    ptrdiff_t compared, above, timed;
};

static void check_floor(struct floors_seen *seen, const struct plan_floor *f,
                        const struct plan_candidate *c)
{
    double part = f->family->loose ? PLAN_LOOSE : 1;
    double bytes = part * (double)f->bytes;
    CHECK(c && bytes <= (double)c->prediction.floor_bytes);
    CHECK(c && (bytes <= (double)f->family->limit_bytes || !c->prediction.fits));
    CHECK(c && part * f->seconds <= c->prediction.time.seconds);
    seen->above += f->bytes > f->family->limit_bytes;
    seen->timed += f->seconds > 0;
    seen->compared++;
}

// Of few layers, or seen to its end: what has no room has none by what it really has alive.
TEST(few_layers_have_no_more_alive)
{
    static const char *const text =
        "recipe=trl model=Qwen3-0.6B gpu=2xRTX4090 layers=12 context=4096 global-batch=16 "
        "memory-limit=3GiB loss=chunked:256 sp=1 cp=1";
    struct floors_seen seen = {0};
    struct arena *a = test_arena();
    const struct plan *all = plan_of(a, text, GOAL_SPEED, true);
    const struct plan *p = plan_made(a, text, GOAL_SPEED, false, true);
    ptrdiff_t rough = 0;
    for (ptrdiff_t g = 0; g < p->group_count; g++)
        for (ptrdiff_t i = 0; i < p->groups[g].floor_count; i++) {
            const struct plan_floor *f = &p->groups[g].floors[i];
            check_floor(&seen, f, tried_at(&all->groups[g], f));
            rough += f->rough;
        }
    CHECK(rough > 10);
}

// What is found without an allocator, of memory alone in fewer steps and no further than the limit,
// is never more than what the whole prediction has alive, and never longer than what it takes; and
// nothing of it is called hopeless that fits.
TEST(floors_are_floors)
{
    static const enum plan_goal goals[] = {GOAL_COST, GOAL_MEMORY, GOAL_SPEED};
    struct floors_seen seen = {0};
    for (ptrdiff_t n = 0; n < COUNT_OF(goals); n++) {
        struct arena *a = test_arena();
        const struct plan *all = plan_of(a, spaces[n], goals[n], true);
        const struct plan *p = plan_made(a, spaces[n], goals[n], false, true);
        for (ptrdiff_t g = 0; g < p->group_count; g++)
            for (ptrdiff_t i = 0; i < p->groups[g].floor_count; i++)
                check_floor(&seen, &p->groups[g].floors[i],
                            tried_at(&all->groups[g], &p->groups[g].floors[i]));
    }
    CHECK(seen.compared > 100 && seen.above > 10 && seen.timed > 20);
}

// "strategy=zero3 cp=2" of "strategy=zero2 cp=2", where there is one with the same dials.
static const struct plan_candidate *with_words(struct arena scratch, const struct plan *p,
                                               const struct plan_candidate *c, const char *from,
                                               const char *to)
{
    struct str words = c->family->words;
    struct str_cut cut = str_cut(words, ' ');
    struct str head = str_is(cut.head, from) ? str_from(to) : cut.head;
    struct str other =
        cut.tail.n ? str_format(&scratch, "%.*s %.*s", STR_ARGS(head), STR_ARGS(cut.tail)) : head;
    const struct plan_candidate *o;
    for (ptrdiff_t g = 0, i = 0; (o = plan_next(p, &g, &i));)
        if (str_equal(o->family->words, other) && o->batch == c->batch &&
            memcmp(o->dial, c->dial, sizeof o->dial) == 0)
            return o;
    return NULL;
}

static int check_leaner(const struct plan_candidate *o, const struct plan_candidate *c)
{
    if (o && o != c)
        CHECK(o->prediction.floor_bytes <= c->prediction.floor_bytes);
    return o && o != c;
}

static bool is_leaner(const struct plan_candidate *o, const struct plan_candidate *c)
{
    const struct plan_family *f = o->family, *e = c->family;
    bool alike = str_is(str_from(f->strategy), e->strategy) && str_equal(f->place, e->place) &&
                 o->batch == c->batch && memcmp(o->dial, c->dial, sizeof o->dial) == 0;
    bool layers = f->liger == e->liger || (f->liger && !f->hosted);
    return alike && layers && f->synced >= e->synced && f->other_loss <= e->other_loss &&
           !f->loose && !f->tuned && !e->tuned;
}

// What DeepSpeed's first stages shard more of, what reduces each time and what keeps no logits
// never has more alive: the order between families that room is looked for in.
TEST(families_are_in_order)
{
    static const char *const orders[][2] = {{"strategy=ddp", "strategy=zero1"},
                                            {"strategy=zero1", "strategy=zero2"}};
    struct arena *a = test_arena();
    int compared = 0;
    const struct plan *p =
        plan_of(a,
                "recipe=trl model=Qwen3-4B gpu=2xRTX4090 layers=2 context=2048 global-batch=4 "
                "memory-limit=8GiB",
                GOAL_SPEED, true);
    const struct plan_candidate *c, *o;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        for (ptrdiff_t n = 0; n < COUNT_OF(orders); n++)
            if (str_is(str_cut(c->family->words, ' ').head, orders[n][0]))
                compared += check_leaner(with_words(*a, p, c, orders[n][0], orders[n][1]), c);
    CHECK(compared >= 16);
    compared = 0;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        for (ptrdiff_t h = 0, k = 0; (o = plan_next(p, &h, &k));)
            if (is_leaner(o, c))
                compared += check_leaner(o, c);
    CHECK(compared > 100);
}

// Sharing a sequence among twice as many takes no less time, with as many sequences or twice as
// many; and then, where each rank has as many tokens, no less memory but for a hundredth.
static int check_shared(const struct plan_candidate *c, const struct plan_candidate *o,
                        double least)
{
    if (o->batch == 2 * c->batch)
        CHECK((double)o->prediction.floor_bytes >= 0.998 * (double)c->prediction.floor_bytes);
    CHECK(o->prediction.time.seconds >= least);
    return 1;
}

static double least_of_syncs(const struct plan *p, const struct plan_candidate *c)
{
    double least = c->prediction.time.seconds;
    const struct plan_candidate *o;
    for (ptrdiff_t g = 0, i = 0; (o = plan_next(p, &g, &i));)
        if (str_is(str_from(o->family->strategy), c->family->strategy) &&
            str_equal(o->family->place, c->family->place) && o->batch == c->batch &&
            o->family->other_loss == c->family->other_loss &&
            memcmp(o->dial, c->dial, sizeof o->dial) == 0 && o->prediction.time.seconds < least)
            least = o->prediction.time.seconds;
    return least;
}

TEST(sharing_takes_no_less)
{
    struct arena *a = test_arena();
    int compared = 0;
    const struct plan *p = plan_of(a,
                                   "recipe=trl model=Qwen3-4B gpu=4xA100-80G layers=3 "
                                   "context=4096 global-batch=16 memory-limit=20GiB "
                                   "loss=chunked:256",
                                   GOAL_SPEED, true);
    const struct plan_candidate *c, *o;
    for (ptrdiff_t g = 0, i = 0; (o = plan_next(p, &g, &i));)
        for (ptrdiff_t h = 0, k = 0; o->family->alone >= 0 && (c = plan_next(p, &h, &k));)
            if (c->family == &p->families[o->family->alone] &&
                (o->batch == c->batch || o->batch == 2 * c->batch) &&
                memcmp(o->dial, c->dial, sizeof o->dial) == 0)
                compared += check_shared(c, o, least_of_syncs(p, c));
    CHECK(compared > 50);
}

// The same of another family.
static const struct plan_candidate *like_in(const struct plan *p, ptrdiff_t family,
                                            const struct plan_candidate *c)
{
    const struct plan_candidate *o;
    for (ptrdiff_t g = 0, i = 0; family >= 0 && (o = plan_next(p, &g, &i));)
        if (o->family == &p->families[family] && o->batch == c->batch &&
            memcmp(o->dial, c->dial, sizeof o->dial) == 0)
            return o;
    return NULL;
}

static bool check_by_torch(const struct plan *p, const struct plan_candidate *c)
{
    const struct plan_candidate *o = like_in(p, c->family->ahead, c);
    CHECK(!o || c->prediction.time.seconds >= 0.99 * o->prediction.time.seconds);
    return o;
}

static bool check_tuned(const struct plan *p, const struct plan_candidate *c)
{
    const struct plan_candidate *o = like_in(p, c->family->tuned ? c->family->usual : -1, c);
    if (!o)
        return false;
    const struct prediction *q = &o->prediction;
    CHECK(c->prediction.time.seconds >= 0.98 * (q->time.seconds - q->time.waits));
    CHECK((double)c->prediction.floor_bytes >= 0.75 * (double)q->floor_bytes - 4e9);
    return true;
}

// Layers by torch's kernels are no faster than by Liger's; and whatever DeepSpeed's file says, a
// step takes no less than it does without waiting, nor what is alive much less.
TEST(kernels_and_files_are_held_against_others)
{
    static const char *const asked[] = {
        "recipe=trl model=Qwen3-4B gpu=2xRTX4090 layers=2 context=2048 global-batch=4 "
        "memory-limit=8GiB loss=chunked:256",
        "recipe=llamafactory model=Qwen3-0.6B gpu=2x2xA100-80G layers=3 context=2048 "
        "global-batch=4 memory-limit=12GiB",
    };
    ptrdiff_t by_torch = 0, tuned = 0;
    for (ptrdiff_t n = 0; n < COUNT_OF(asked); n++) {
        const struct plan *p = plan_of(test_arena(), asked[n], GOAL_SPEED, true);
        const struct plan_candidate *c;
        for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));) {
            by_torch += check_by_torch(p, c);
            tuned += check_tuned(p, c);
        }
    }
    CHECK(by_torch > 100 && tuned > 100);
}

static struct prediction *predicted(struct arena *a, const struct settings *s)
{
    struct job *job = NEW(a, struct job, 1);
    struct prediction *p = NEW(a, struct prediction, 1);
    struct error e = {0};
    if (!job_from_settings(job, a, s, &e) || !predict(p, a, job, &e))
        test_failed(__FILE__, __LINE__, "%s", e.message);
    return p;
}

// What is kept for the backward pass goes to the host and comes back: of many layers less is alive,
// and a step takes longer, but by no more than both copies one after the other.
TEST(activations_go_to_the_host_and_back)
{
    struct arena *a = test_arena();
    const char *at = "recipe=trl model=Qwen3-1.7B gpu=H200 context=16384 layers=24 batch=2";
    const struct prediction *off = predicted(a, settings_of(a, at));
    const struct prediction *on =
        predicted(a, settings_of(a, str_z(a, str_format(a, "%s activation-offload=on", at))));
    double inputs = 2.0 * 16384 * 2048 * 2 * 24, link = 55e9;
    CHECK(on->floor_bytes < off->floor_bytes);
    CHECK(on->time.seconds > off->time.seconds);
    CHECK(on->time.seconds < off->time.seconds + 2.5 * inputs / link);
}

// Sequences of a batch attend to themselves, in a ring as elsewhere: twice as many take twice as
// long, not four times.
TEST(rings_read_sequences_one_by_one)
{
    static const char *const ways[] = {
        "recipe=trl model=Qwen3-4B layers=2 gpu=2xH100-80G context=65536 cp=2 batch=4 accum=2",
        "recipe=trl model=Qwen3-4B layers=2 gpu=2xH100-80G context=65536 cp=2 batch=8 accum=1"};
    struct arena *a = test_arena();
    double several = predicted(a, settings_of(a, ways[0]))->time.seconds;
    double once = predicted(a, settings_of(a, ways[1]))->time.seconds;
    CHECK(once <= several * 1.01);
}

static void check_command(struct arena *a, const struct plan *p)
{
    struct settings s;
    struct error e = {0};
    CHECK(plan_settings(&s, a, p, plan_words(a, p->best), &e));
    const struct prediction *again = predicted(a, &s);
    CHECK_U64(again->reserved_bytes, p->best->prediction.reserved_bytes);
    CHECK(again->time.seconds == p->best->prediction.time.seconds);
    CHECK_U64(p->best->batch * p->best->accum * p->best->family->data_parallel,
              p->request.global_batch);
}

// What plan says is what predict says of its settings.
TEST(the_command_predicts_the_same)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(spaces); i++) {
        struct arena *a = test_arena();
        const struct plan *p = plan_of(a, spaces[i], GOAL_SPEED, false);
        if (p->best)
            check_command(a, p);
    }
}

TEST(a_head_that_its_configuration_ties_is_untied_once)
{
    struct arena *a = test_arena();
    const struct plan *p = plan_of(a,
                                   "recipe=trl task=reward model=Qwen3-0.6B gpu=2xA100-80G "
                                   "layers=2 context=2048 global-batch=4 tp=2",
                                   GOAL_SPEED, false);
    CHECK(p->best);
    check_command(a, p);
}

TEST(steps_of_an_epoch_by_framework)
{
    struct split guide = {2, 8, 8}, wide = {2, 8, 16};
    CHECK_U64(steps_per_epoch(RECIPE_TRL, 160791, guide), 1257);
    CHECK_U64(steps_per_epoch(RECIPE_TRL, 160791, wide), 629);
    CHECK_U64(steps_per_epoch(RECIPE_VERL, 160791, guide), 1256);
    CHECK_U64(steps_per_epoch(RECIPE_TRINITY, 160791, wide), 628);
    // 10,049 whole micro-batches for each rank; the last step has one of them.
    CHECK_U64(steps_per_epoch(RECIPE_TRANSFORMERS, 160791, guide), 1257);
    CHECK_U64(steps_per_epoch(RECIPE_TRANSFORMERS, 130, guide), 1);
    CHECK_U64(steps_per_epoch(RECIPE_TRL, 130, guide), 2);
    CHECK_U64(steps_per_epoch(RECIPE_TRL, 128, guide), 1);
    CHECK_U64(steps_per_epoch(RECIPE_MEGATRON, 127, guide), 0);
}

TEST(prices_are_numbers)
{
    struct arena *a = test_arena();
    struct data d;
    struct error e = {0};
    CHECK(data_read(&d, settings_of(a, "price=0.4 data-size=1000 epochs=3"), &e));
    CHECK(d.price > 0.399999 && d.price < 0.400001);
    CHECK_U64(d.size, 1000);
    CHECK_U64(d.epochs, 3);
    CHECK(data_read(&d, settings_of(a, "price=12 data-size=1"), &e) && d.price > 11.9 &&
          d.price < 12.1);
    CHECK(!data_read(&d, settings_of(a, "price=1.2.3 data-size=1"), &e));
    e = (struct error){0};
    CHECK(!data_read(&d, settings_of(a, "price=cheap data-size=1"), &e));
    e = (struct error){0};
    CHECK(!data_read(&d, settings_of(a, "price=12"), &e)); // of nothing
}

static bool has_family(const struct plan *p, struct str place)
{
    for (ptrdiff_t i = 0; i < p->family_count; i++)
        if (str_equal(p->families[i].place, place) && !p->families[i].refused)
            return true;
    return false;
}

TEST(shards_may_be_those_of_several_nodes)
{
    struct arena *a = test_arena();
    const struct plan *p = plan_of(a,
                                   "recipe=trl model=Qwen3-0.6B gpu=4x2xA100-80G layers=2 "
                                   "context=1024 global-batch=8",
                                   GOAL_SPEED, false);
    CHECK(has_family(p, STR("replicate=4")) && has_family(p, STR("replicate=2")));
    CHECK(!has_family(p, STR("replicate=1")) && !has_family(p, STR("replicate=8")));
}
