// What is known of a configuration, and what has to be: by floors and estimates first, which take a
// part of the time that a prediction does.
#include <string.h>

#include "core/base/num.h"
#include "core/emit/emit.h"
#include "core/plan/bounds.h"
#include "core/plan/estimate.h"
#include "core/plan/search.h"
#include "core/predict/varied.h"

bool plan_can_write(struct arena scratch, const struct job *job, struct error *e)
{
    struct draft *draft = NEW(&scratch, struct draft, 1);
    return !job->target || (draft_from_job(draft, &scratch, job, e) && emit_check(draft, e) &&
                            draft_has_samples(draft, e));
}

// As far as it is of use.
static bool predict_so_far(struct prediction *p, struct arena scratch, const struct job *job,
                           struct plan_use use, struct error *e)
{
    struct job *played = NEW(&scratch, struct job, 1);
    *played = *job;
    if (!varied_read(played, &scratch, e) || !predict_hastily(p, &scratch, played, use.bytes, e))
        return false;
    if (use.only_safe && p->verdict.grade != GRADE_SAFE) {
        step_time_of_update(&p->time);
        return true;
    }
    return predict_real_time(p, &scratch, played, e);
}

bool plan_predict(struct prediction *p, struct arena scratch, const struct job *job,
                  struct error *e)
{
    return predict_so_far(p, scratch, job, (struct plan_use){0}, e);
}

static bool predict_candidate(const struct plan *p, struct plan_candidate *c, struct plan_use use,
                              struct arena scratch, struct error *e)
{
    struct job *job = NEW(&scratch, struct job, 1);
    return plan_job(job, &scratch, p, c, e) && plan_can_write(scratch, job, e) &&
           predict_so_far(&c->prediction, scratch, job, use, e);
}

static bool count_most(uint64_t *most, const struct plan *p, struct plan_candidate c,
                       struct arena scratch, struct error *e)
{
    struct job *job = NEW(&scratch, struct job, 1);
    c.count = 1;
    if (!plan_job(job, &scratch, p, &c, e))
        return false;
    *most = job_stage_layers(job);
    return *most > 1 || FAIL(e, UNSUPPORTED, STR("--checkpointing"), "a stage has but one layer");
}

// The fewest layers whose recomputation is safe, by halving: each takes time and gives room. Where
// no count is, all but one; and no more are tried than take so long, if that is limited.
static bool predict_some(const struct plan *p, struct plan_candidate *c, double most_seconds,
                         struct arena scratch, struct error *e)
{
    struct plan_candidate at = *c;
    uint64_t few = 0, enough;
    if (!count_most(&enough, p, *c, scratch, e))
        return false;
    for (uint64_t all = enough; enough - few > 1;) {
        at.count = (few + enough) / 2;
        if (!predict_candidate(p, &at, (struct plan_use){0}, scratch, e))
            return false;
        bool safe = plan_is_safe(&at);
        if (safe || enough == all)
            *c = at;
        if (!safe && most_seconds > 0 && at.prediction.time.seconds > most_seconds)
            break;
        *(safe ? &enough : &few) = at.count;
    }
    return true;
}

bool plan_try_candidate(const struct plan *p, struct plan_candidate *c, struct plan_use use,
                        struct arena scratch, struct error *e)
{
    return plan_dials_say_some(c->dial) ? predict_some(p, c, use.seconds, scratch, e)
                                        : predict_candidate(p, c, use, scratch, e);
}

bool search_asks(const struct search *s, const struct plan_group *g)
{
    return (!s->strategy || str_is(str_from(g->family->strategy), s->strategy)) &&
           (s->phase != SEARCH_FRONT || g->family->gpus == s->plan->best_gpus);
}

double search_seconds(const struct search *s, const struct plan_group *g,
                      const struct plan_candidate *c)
{
    return plan_least_seconds(s->plan, g, c);
}

double search_bound(const struct search *s, const struct plan_group *g,
                    const struct plan_candidate *c)
{
    const struct plan *p = s->plan;
    if (s->phase == SEARCH_FRONT)
        return plan_least_seconds(p, g, c);
    switch (p->request.goal) {
    case GOAL_SPEED:
        return plan_least_seconds(p, g, c);
    case GOAL_COST:
        return plan_least_seconds(p, g, c) * (double)g->family->gpus;
    case GOAL_MEMORY:
        return plan_least_reserved(p, g, c);
    case GOAL_SIMPLICITY:
    case PLAN_GOALS:
        break;
    }
    return c->trouble;
}

// ------------------------------------------------------------------ what is left out

// A safe one takes no longer, and is no more trouble.
static bool is_dominated(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; g->family->ordered && i < g->candidate_count; i++)
        if (plan_is_safe(&g->candidates[i]) && plan_is_beyond(c, &g->candidates[i]))
            return true;
    return false;
}

static bool is_as_good(const struct plan_candidate *f, double seconds, double bytes)
{
    return plan_is_safe(f) && f->prediction.time.seconds <= seconds * PLAN_SAME &&
           (double)f->prediction.reserved_bytes <= bytes * PLAN_SAME;
}

// The least time and memory that it can take are both no less than a safe one takes, or it is too
// slow to be told of, or has no room. What is known at least cost comes first.
static bool is_behind_front(const struct plan *p, const struct plan_group *g,
                            const struct plan_candidate *c, double most_seconds)
{
    double seconds = plan_least_seconds(p, g, c);
    if (most_seconds > 0 && seconds > most_seconds)
        return true;
    double bytes = plan_least_reserved(p, g, c);
    if (bytes > (double)g->family->safe_bytes)
        return true;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (is_as_good(&g->candidates[i], seconds, bytes))
            return true;
    for (ptrdiff_t i = 0; i < p->settled_count; i++)
        if (p->settled[i]->family->gpus == p->best_gpus &&
            is_as_good(p->settled[i], seconds, bytes))
            return true;
    return false;
}

static bool was_tried(const struct plan_group *g, const struct plan_candidate *c)
{
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (memcmp(g->candidates[i].dial, c->dial, sizeof c->dial) == 0)
            return true;
    return false;
}

// What the goal counts of the best so far, with what was found in the group meanwhile.
static double found_with(const struct search *s, const struct plan_group *g)
{
    double least = s->found;
    for (ptrdiff_t i = g->settled; i < g->candidate_count; i++) {
        double measure = plan_measure(s->plan->request.goal, &g->candidates[i]);
        if (plan_is_safe(&g->candidates[i]) && (least <= 0 || measure < least))
            least = measure;
    }
    return least;
}

static bool is_no_simpler(const struct plan_candidate *c, double seconds,
                          const struct plan_candidate *than)
{
    double known = than->prediction.time.seconds;
    return c->trouble > than->trouble ? seconds >= known
                                      : c->trouble == than->trouble && seconds > known;
}

// Of those that count the same the choice is as fast as any, and the simplest of those
// (plan_choose_of). Once nothing can count less than what was found, what is slower changes
// nothing; nor does ever what is no simpler than one that counts no more, and no faster.
static bool is_no_choice(const struct search *s, const struct plan_group *g,
                         const struct plan_candidate *c)
{
    const struct plan_candidate *choice = s->choice;
    if (!choice)
        return false;
    double seconds = plan_least_seconds(s->plan, g, c), known = choice->prediction.time.seconds;
    return (s->lowest >= s->found && seconds > known * PLAN_SAME) ||
           (is_no_simpler(c, seconds, choice) &&
            search_bound(s, g, c) >= plan_measure(s->plan->request.goal, choice));
}

// DeepSpeed's file is tuned on as many GPUs as the best has.
static bool is_tuned_elsewhere(const struct search *s, const struct plan_group *g)
{
    return g->family->tuned && s->choice && g->family->gpus != s->choice->family->gpus;
}

bool search_leaves_out(const struct search *s, const struct plan_group *g,
                       const struct plan_candidate *c)
{
    const struct plan *p = s->plan;
    if (was_tried(g, c))
        return true;
    if (p->request.exhaustive)
        return false;
    if (plan_is_late(c) != s->late)
        return true;
    if (is_tuned_elsewhere(s, g))
        return true;
    if (s->phase == SEARCH_FRONT)
        return (plan_group_unshared(p, g) && g->family->shards <= 0) ||
               is_behind_front(p, g, c, s->most_seconds);
    if (s->phase == SEARCH_SECONDS)
        return plan_is_hopeless(p, g, c);
    double found = found_with(s, g);
    return (found > 0 && !plan_counts(p->request.goal, c)) ||
           (p->request.goal != GOAL_MEMORY && is_dominated(g, c)) || is_no_choice(s, g, c) ||
           (found > 0 && search_bound(s, g, c) > found * PLAN_SAME) || plan_is_hopeless(p, g, c);
}

// ------------------------------------------------------------------ what is tried

// Several were predicted and none of them is safe: it may be that nothing is, and then no time
// counts.
static bool finds_nothing(const struct search *s, const struct plan_group *g)
{
    enum { SEVERAL = 8 };
    bool several = s->late || s->tries >= SEVERAL;
    return s->phase == SEARCH_BEST && several && found_with(s, g) <= 0;
}

bool search_needs_estimate(const struct search *s, const struct plan_group *g,
                           const struct plan_candidate *c)
{
    bool counts = s->phase != SEARCH_BEST || s->plan->request.goal != GOAL_MEMORY;
    return counts && !finds_nothing(s, g) && plan_can_estimate(s->plan, g->family) &&
           !plan_has_estimate(g, c);
}

// Looks at a node without an allocator, where that may spare the rest: at its memory, and at its
// time where the goal counts that. False where rules refuse it.
static bool look_first(const struct search *s, struct plan_group *g, ptrdiff_t node,
                       struct arena scratch, struct error *failure)
{
    const struct plan_request *r = &s->plan->request;
    bool best = s->phase == SEARCH_BEST, memory = r->goal == GOAL_MEMORY;
    struct plan_candidate c = plan_node(g, node);
    struct plan_look look = {g, node, best && !memory && found_with(s, g) > 0, false};
    bool counts = best ? r->goal != GOAL_SIMPLICITY : s->phase == SEARCH_FRONT;
    bool known = look.timed && plan_can_estimate_room(s->plan, g->family);
    return r->exhaustive || !counts || known || plan_dials_say_some(c.dial) ||
           plan_has_floor(g, &c, look.timed) || plan_look(s->plan, look, scratch, failure);
}

static bool is_on_front_before(const struct plan *p, const struct plan_candidate *f, double seconds)
{
    bool told = f == p->best || !plan_is_late(f), elsewhere = f->family->gpus != p->best_gpus;
    return told && plan_is_safe(f) && !(p->best_gpus && elsewhere) &&
           f->prediction.time.seconds <= seconds;
}

// What takes no longer than this one can reserves so much: beyond it this one is worse in both, and
// whatever it would beat, or be as good as, that one does, too.
static uint64_t most_on_front(const struct plan *p, const struct plan_group *g,
                              const struct plan_candidate *c)
{
    double seconds = plan_least_seconds(p, g, c);
    uint64_t bytes = UINT64_MAX;
    for (ptrdiff_t i = 0; i < g->candidate_count; i++)
        if (is_on_front_before(p, &g->candidates[i], seconds))
            bytes = u64_least(bytes, g->candidates[i].prediction.reserved_bytes);
    for (ptrdiff_t i = 0; i < p->settled_count; i++)
        if (is_on_front_before(p, p->settled[i], seconds))
            bytes = u64_least(bytes, p->settled[i]->prediction.reserved_bytes);
    return bytes;
}

static struct plan_use use_of(const struct search *s, const struct plan_group *g,
                              const struct plan_candidate *c)
{
    const struct plan_request *r = &s->plan->request;
    double found = found_with(s, g) * PLAN_SAME;
    struct plan_use use = {0};
    if (r->exhaustive)
        return use;
    use.only_safe = s->phase == SEARCH_BEST && !s->plan->tight && found <= 0 &&
                    (s->plan->real_lengths || s->plan->longest_row);
    if (s->late)
        use.seconds = r->goal == GOAL_COST ? found / (double)g->family->gpus : found;
    if (s->phase == SEARCH_FRONT)
        use.bytes = most_on_front(s->plan, g, c);
    else if (s->phase == SEARCH_BEST && r->goal == GOAL_MEMORY && found > 0)
        use.bytes = u64_most(most_on_front(s->plan, g, c), (uint64_t)found);
    if (s->phase != SEARCH_SECONDS && !s->plan->tight)
        use.bytes = u64_least(use.bytes ? use.bytes : UINT64_MAX, g->family->safe_bytes);
    return use;
}

// Where memory counts, how long something takes says how far its prediction is of use.
static bool estimate_first(const struct search *s, const struct search_step *step,
                           struct arena scratch, struct error *failure)
{
    const struct plan *p = s->plan;
    struct plan_group *g = step->group;
    struct plan_candidate c = plan_node(g, step->node);
    bool counts = s->phase == SEARCH_BEST && p->request.goal == GOAL_MEMORY;
    return !counts || plan_dials_say_some(c.dial) || !plan_can_estimate(p, g->family) ||
           plan_has_estimate(g, &c) ||
           plan_estimate(p, (struct plan_look){g, step->node, true, false}, scratch, failure);
}

bool search_try(const struct search *s, const struct search_step *step, struct arena scratch,
                struct error *failure)
{
    struct plan_group *g = step->group;
    struct plan_candidate *c = &g->candidates[g->candidate_count];
    struct error refusal = {0};
    *c = plan_node(g, step->node);
    if (g->refused >> step->node & 1 || search_leaves_out(s, g, c))
        return true;
    if (search_needs_estimate(s, g, c))
        return plan_estimate(s->plan, (struct plan_look){g, step->node, true, false}, scratch,
                             failure) ||
               failure->code == ERROR_NONE;
    if (!look_first(s, g, step->node, scratch, failure) || search_leaves_out(s, g, c))
        return failure->code == ERROR_NONE;
    if (s->phase != SEARCH_SECONDS && search_bound(s, g, c) > step->horizon)
        return true;
    if (!estimate_first(s, step, scratch, failure))
        return failure->code == ERROR_NONE;
    if (step->predicted)
        *step->predicted = true;
    if (plan_try_candidate(s->plan, c, use_of(s, g, c), scratch, &refusal)) {
        if (c->prediction.passed) {
            plan_add_end(g, c);
            return true;
        }
        if (!plan_dials_say_some(c->dial))
            plan_add_floor(g, c, !c->prediction.hasty);
        g->candidate_count++;
        return true;
    }
    plan_note_refusal(g, step->node, &refusal, failure);
    return failure->code == ERROR_NONE;
}
