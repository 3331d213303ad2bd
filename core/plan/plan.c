// What is asked, what a candidate is in settings, which one is the best; search.c finds them.
#include "core/plan/plan.h"

#include <string.h>

#include "core/base/num.h"
#include "core/plan/bounds.h"
#include "core/plan/search.h"
#include "core/predict/lengths.h"
#include "core/predict/sampled.h"

bool plan_request_read(struct plan_request *r, const struct settings *settings, struct error *e)
{
    const struct setting *batch = settings_find_z(settings, "global-batch");
    const struct setting *goal = settings_find_z(settings, "goal");
    const struct setting *all = settings_find_z(settings, "exhaustive");
    const struct setting *tokens = settings_find_z(settings, "max-token-len");
    *r = (struct plan_request){.settings = settings};
    if (!batch)
        return FAIL(e, BAD_INPUT, STR("--global-batch"),
                    "no global batch is given: the sequences (of reward and dpo the pairs) of one "
                    "optimizer step, such as 128");
    if (tokens)
        return FAIL(e, BAD_INPUT, tokens->where,
                    "plan chooses how many sequences a micro-batch has: leave max-token-len out");
    if (!setting_number(&r->global_batch, batch, UNIT_COUNT, (struct range){1, 1 << 28}, e) ||
        (all && !setting_switch(&r->exhaustive, all, e)))
        return false;
    for (int i = 0; goal && i < PLAN_GOALS; i++)
        if (str_is(goal->value, plan_goal_words[i]))
            r->goal = (enum plan_goal)i;
    r->front = true;
    return true;
}

bool plan_says(const struct plan_family *f, int dial)
{
    return f->values[dial] > 1 || f->dials[dial][0] > 0;
}

struct str plan_words(struct arena *a, const struct plan_candidate *c)
{
    struct buf b = buf_in(a);
    buf_put(&b, c->family->words);
    buf_printf(&b, "%sbatch=%llu accum=%llu", b.n ? " " : "", (unsigned long long)c->batch,
               (unsigned long long)c->accum);
    for (int i = 0; i < PLAN_DIALS; i++) {
        const struct plan_value *v = &plan_dials[i].values[c->dial[i]];
        if (!plan_says(c->family, i))
            continue;
        if (v->some)
            buf_printf(&b, " %s=%llu", plan_dials[i].setting, (unsigned long long)c->count);
        else
            buf_printf(&b, " %s=%s", plan_dials[i].setting, v->words);
    }
    return buf_str(&b);
}

static bool lay_over(struct settings *out, const struct settings *base, struct str words,
                     struct error *e)
{
    for (ptrdiff_t i = 0; i < base->count; i++)
        if (!settings_add(out, base->items[i], e))
            return false;
    return settings_change(out, words, e);
}

bool plan_job_of(struct job *job, struct arena *a, const struct plan *p, struct str words,
                 struct error *e)
{
    struct settings *s = NEW(a, struct settings, 1);
    *s = settings_in(a);
    return lay_over(s, &p->base, words, e) && job_from_settings_like(job, a, s, &p->job, e);
}

bool plan_job(struct job *job, struct arena *a, const struct plan *p,
              const struct plan_candidate *c, struct error *e)
{
    return plan_job_of(job, a, p, plan_words(a, c), e);
}

// Whether the job is the same without one of its settings.
static bool says_nothing(struct arena scratch, const struct settings *s, ptrdiff_t without,
                         const struct job *job)
{
    struct settings fewer = settings_in(&scratch);
    struct job *other = NEW(&scratch, struct job, 1);
    struct error e = {0};
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (i != without && !settings_add(&fewer, s->items[i], &e))
            return false;
    return job_from_settings(other, &scratch, &fewer, &e) && job_same_training(other, job);
}

static bool stays(const struct plan *p, struct str key)
{
    return settings_find(p->request.settings, key) || str_is(key, "for") || str_is(key, "batch") ||
           str_is(key, "accum") || str_is(key, "gpu");
}

bool plan_settings(struct settings *out, struct arena *a, const struct plan *p, struct str words,
                   struct error *e)
{
    struct job *job = NEW(a, struct job, 1);
    *out = settings_in(a);
    if (!lay_over(out, &p->base, words, e) || !job_from_settings(job, a, out, e))
        return false;
    for (ptrdiff_t i = out->count - 1; i >= 0; i--) {
        if (stays(p, out->items[i].key) || !says_nothing(*a, out, i, job))
            continue;
        memmove(&out->items[i], &out->items[i + 1],
                (size_t)(out->count - i - 1) * sizeof *out->items);
        out->count--;
    }
    return true;
}

struct str plan_options(struct arena *a, const struct plan *p, struct str words)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct settings changed = settings_in(a);
    struct error e = {0};
    struct buf b = buf_in(a);
    if (!plan_settings(s, a, p, words, &e) || !settings_change(&changed, words, &e))
        return words;
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (settings_find(&changed, s->items[i].key))
            buf_printf(&b, "%s--%.*s %.*s", b.n ? " " : "", STR_ARGS(s->items[i].key),
                       STR_ARGS(s->items[i].value));
    return buf_str(&b);
}

bool plan_is_safe(const struct plan_candidate *c)
{
    return !c->prediction.time.unknown && c->prediction.verdict.grade == GRADE_SAFE;
}

const struct plan_candidate *plan_next(const struct plan *p, ptrdiff_t *group, ptrdiff_t *i)
{
    while (*group < p->group_count && *i >= p->groups[*group].candidate_count) {
        ++*group;
        *i = 0;
    }
    return *group < p->group_count ? &p->groups[*group].candidates[(*i)++] : NULL;
}

double plan_measure(enum plan_goal goal, const struct plan_candidate *c)
{
    switch (goal) {
    case GOAL_SPEED:
        return c->prediction.time.seconds;
    case GOAL_COST:
        return c->prediction.time.seconds * (double)c->family->gpus;
    case GOAL_MEMORY:
        return (double)c->prediction.reserved_bytes;
    case GOAL_SIMPLICITY:
    case PLAN_GOALS:
        break;
    }
    return c->trouble;
}

bool plan_is_late(const struct plan_candidate *c)
{
    return c->family->in_turn || c->family->tuned || plan_dials_say_some(c->dial);
}

bool plan_counts(enum plan_goal goal, const struct plan_candidate *c)
{
    bool tuned = goal == GOAL_MEMORY && c->family->tuned && !plan_dials_say_some(c->dial);
    return goal == GOAL_SPEED || goal == GOAL_COST || tuned || !plan_is_late(c);
}

// The simpler, then the faster, then the smaller; then the first.
static bool is_better(enum plan_goal goal, const struct plan_candidate *c,
                      const struct plan_candidate *than)
{
    const struct prediction *p = &c->prediction, *q = &than->prediction;
    if (c->trouble != than->trouble)
        return c->trouble < than->trouble;
    if (goal == GOAL_COST && plan_measure(goal, c) != plan_measure(goal, than))
        return plan_measure(goal, c) < plan_measure(goal, than);
    if (p->time.seconds != q->time.seconds)
        return p->time.seconds < q->time.seconds;
    return p->reserved_bytes < q->reserved_bytes;
}

static bool is_of(const struct plan_candidate *c, const char *strategy)
{
    return !strategy || str_is(str_from(c->family->strategy), strategy);
}

#define ANYTHING 1e300

// What is safe of a strategy, with what the goal does not choose, or without.
struct choice {
    const struct plan *plan;
    enum plan_goal goal;
    const char *strategy;
    bool any;
    double most, seconds; // that it may count, and take
};

static bool has(const struct choice *o, const struct plan_candidate *c)
{
    return is_of(c, o->strategy) && (o->any || plan_counts(o->goal, c)) && plan_is_safe(c) &&
           plan_measure(o->goal, c) <= o->most && c->prediction.time.seconds <= o->seconds;
}

static double least_of(const struct choice *o, enum plan_goal goal)
{
    const struct plan_candidate *c;
    double least = ANYTHING;
    for (ptrdiff_t f = 0, i = 0; (c = plan_next(o->plan, &f, &i));)
        if (has(o, c) && plan_measure(goal, c) < least)
            least = plan_measure(goal, c);
    return least;
}

// What counts least, what of that is fastest, and what of that is simplest, each to 1 %.
static const struct plan_candidate *choose_among(struct choice o)
{
    const struct plan_candidate *best = NULL, *c;
    o.most = least_of(&o, o.goal) * PLAN_SAME;
    o.seconds = least_of(&o, GOAL_SPEED) * PLAN_SAME;
    for (ptrdiff_t f = 0, i = 0; (c = plan_next(o.plan, &f, &i));)
        if (has(&o, c) && (!best || is_better(o.goal, c, best)))
            best = c;
    return best;
}

const struct plan_candidate *plan_choose_of(const struct plan *p, enum plan_goal goal,
                                            const char *strategy)
{
    struct choice o = {p, goal, strategy, false, ANYTHING, ANYTHING};
    const struct plan_candidate *best = choose_among(o);
    o.any = true;
    return best ? best : choose_among(o);
}

const struct plan_candidate *plan_choose(const struct plan *p, enum plan_goal goal)
{
    return plan_choose_of(p, goal, NULL);
}

static bool is_nearer(const struct plan_candidate *c, const struct plan_candidate *than)
{
    enum grade grade = c->prediction.verdict.grade, other = than->prediction.verdict.grade;
    if (grade != other)
        return grade > other;
    const struct prediction *p = &c->prediction, *q = &than->prediction;
    if (grade == GRADE_NO)
        return p->floor_bytes <= q->floor_bytes;
    return p->time.seconds < q->time.seconds ||
           (p->time.seconds <= q->time.seconds && p->reserved_bytes < q->reserved_bytes);
}

// Of those that are not safe the time was not asked for: it tells which of them is nearest.
static bool find_times(struct plan *p, struct arena scratch, const char *strategy, struct error *e)
{
    for (ptrdiff_t g = 0; g < p->group_count; g++)
        for (ptrdiff_t i = 0; i < p->groups[g].candidate_count; i++) {
            struct plan_candidate *c = &p->groups[g].candidates[i];
            struct arena own = scratch;
            struct job *job = NEW(&own, struct job, 1);
            if (c->prediction.hasty && is_of(c, strategy) &&
                (!plan_job(job, &own, p, c, e) || !plan_predict(&c->prediction, own, job, e)))
                return false;
        }
    return true;
}

static bool is_predicted(const struct plan *p, const char *strategy)
{
    const struct plan_candidate *c;
    for (ptrdiff_t g = 0, i = 0; (c = plan_next(p, &g, &i));)
        if (is_of(c, strategy))
            return true;
    return false;
}

const struct plan_candidate *plan_best_of(struct plan *p, struct arena *a, const char *strategy,
                                          const struct runner *runner)
{
    struct error e = {0};
    if (!plan_search(p, a, strategy, runner, &e))
        return NULL;
    const struct plan_candidate *best = plan_choose_of(p, p->request.goal, strategy), *c;
    bool safe = best != NULL;
    if (!safe &&
        (!find_times(p, *a, strategy, &e) || !plan_search_tight(p, a, strategy, runner, &e)))
        return NULL;
    if (!safe && !is_predicted(p, strategy) && !plan_search_least(p, a, strategy, &e))
        return NULL;
    for (ptrdiff_t f = 0, i = 0; !safe && (c = plan_next(p, &f, &i));)
        if (is_of(c, strategy) && !c->prediction.time.unknown && (!best || is_nearer(c, best)))
            best = c;
    return best;
}

static bool resolve_with(struct job *job, struct arena *a, const struct settings *given,
                         struct str words)
{
    struct settings *s = NEW(a, struct settings, 1);
    struct error ignored = {0};
    *s = settings_in(a);
    return lay_over(s, given, words, &ignored) && job_resolve(job, a, s, &ignored);
}

// As given; where the framework's own strategy cannot have that, with the first that can, and where
// one stage cannot, with two.
static bool resolve_any(struct job *job, struct arena *a, const struct plan *p, struct error *e)
{
    const struct settings *given = p->request.settings;
    struct str words = STR_NONE;
    if (job_resolve(job, a, given, e))
        return true;
    for (ptrdiff_t i = 0; plan_strategy_words(&words, a, i) && !settings_find_z(given, "strategy");
         i++)
        if (resolve_with(job, a, given, words))
            return true;
    return !settings_find_z(given, "pp") && resolve_with(job, a, given, STR("pp=2"));
}

// Whose files are meant: those that were named, or those of the recipe's users.
static bool stand_in_target(struct plan *p, struct arena *a, struct error *e)
{
    const struct settings *given = p->request.settings;
    p->base = settings_in(a);
    for (ptrdiff_t i = 0; i < given->count; i++)
        if (!settings_add(&p->base, given->items[i], e))
            return false;
    struct job *job = NEW(a, struct job, 1);
    if (!resolve_any(job, a, p, e))
        return false;
    *e = (struct error){0};
    enum target target = target_of_recipe(recipe_words[job->recipe]);
    if (!job->target && !target)
        return FAIL(e, BAD_INPUT, STR("--recipe"),
                    "plan answers with files that run, and none are written for %s",
                    recipe_defs[job->recipe].title);
    struct setting item = {STR("for"), str_from(target_defs[target].name), STR_NONE};
    if (!job->target && !settings_set(&p->base, item, e))
        return false;
    // slime's files name their prompts; plan's answer does not hang on them.
    struct setting data = {STR("dataset"), STR("prompts.jsonl"), STR_NONE};
    if (target == FOR_SLIME && !settings_find_z(&p->base, "dataset") &&
        !settings_set(&p->base, data, e))
        return false;
    p->job = *job;
    return true;
}

// Whether no micro-batch makes up the batch on its ranks.
static bool is_undivided(const struct plan *p, const struct plan_family *f)
{
    uint64_t batch = p->request.global_batch;
    return !f->refused && !f->micro_count &&
           (batch % f->data_parallel || batch / f->data_parallel < plan_fewest_rows(&p->job));
}

// Why nothing is predicted, of the first family that says it.
static bool fail_for_nothing(const struct plan *p, struct error *e)
{
    for (ptrdiff_t i = 0; i < p->family_count; i++)
        if (is_undivided(p, &p->families[i]))
            return FAIL(
                e, BAD_INPUT, STR("--global-batch"),
                "%llu sequence%s a step cannot be divided over %llu data-parallel ranks; a "
                "multiple of %llu can",
                (unsigned long long)p->request.global_batch,
                p->request.global_batch == 1 ? "" : "s",
                (unsigned long long)p->families[i].data_parallel,
                (unsigned long long)(p->families[i].data_parallel * plan_fewest_rows(&p->job)));
    for (ptrdiff_t i = 0; i < p->group_count; i++)
        if (p->groups[i].refusal.code != ERROR_NONE) {
            *e = p->groups[i].refusal;
            return false;
        }
    *e = p->job.unmodelled.code ? p->job.unmodelled : p->families[0].refusal;
    return false;
}

static bool check_time(const struct plan *p, struct error *e)
{
    const struct plan_candidate *c;
    const char *why = NULL;
    for (ptrdiff_t f = 0, i = 0; (c = plan_next(p, &f, &i));) {
        if (!c->prediction.time.unknown)
            return true;
        why = c->prediction.time.unknown;
    }
    if (!why && p->floor_count)
        return true; // nothing has room
    if (!why)
        return fail_for_nothing(p, e);
    return FAIL(e, UNSUPPORTED, STR_NONE, "plan ranks by time, and %s", why);
}

// What no configuration changes, before any is predicted.
static bool check_possible(const struct plan *p, struct arena scratch, struct error *e)
{
    struct outside outside = outside_of(&p->job);
    const char *why = NULL;
    struct wanted w;
    bool timed = false;
    if ((!p->request.lean && !lengths_check(&p->job, e)) ||
        !wanted_read(&w, scratch, &p->job, limit_of(&p->job, &outside), e))
        return false;
    for (ptrdiff_t i = 0; i < p->family_count && !timed; i++) {
        const struct plan_family *f = &p->families[i];
        timed = !f->refused && f->micro_count && !f->untimed;
        why = !f->refused && f->micro_count ? f->untimed : why;
    }
    return timed || !why || FAIL(e, UNSUPPORTED, STR_NONE, "plan ranks by time, and %s", why);
}

bool plan_make(struct plan *p, struct arena *a, const struct plan_request *r,
               const struct runner *runner, struct error *e)
{
    p->request = *r;
    struct error wrong; // check_possible says it
    struct lengths *lengths = NEW(a, struct lengths, 1);
    if (!stand_in_target(p, a, e))
        return false;
    if (!wanted_read(&p->wanted, *a, &p->job, UINT64_MAX, &wrong))
        p->wanted = (struct wanted){0};
    if (!plan_families(p, a, e) || !check_possible(p, *a, e) || !lengths_read(lengths, &p->base, e))
        return false;
    p->real_lengths = lengths->parts && p->job.batching != BATCHING_PACKED;
    if (!sampled_longest(&p->longest_row, *a, &p->job, e))
        return false;
    plan_groups(p, a);
    if (!plan_search(p, a, NULL, runner, e) || !check_time(p, e))
        return false;
    p->best = plan_choose(p, r->goal);
    return !r->front || !p->best || plan_search_front(p, a, runner, e);
}
