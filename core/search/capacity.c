// The search of capacity.h: where the floor leaves the safe range, by interpolation; then length by
// length.
#include "core/search/capacity.h"

#include "core/base/num.h"
#include "core/base/units.h"
#include "core/predict/real_time.h"

// The share of the limit up to which a floor is safe. Of 900 plans tried length by length (seven
// models on five cards: single, ddp, fsdp1, fsdp2, offload and trinity; its grid and finer ones) no
// classic one failed below 0.82 and no expandable one below 0.99 of it.
enum { SURE_CLASSIC = 75, SURE_EXPANDABLE = 94, WHOLE = 100 };

// The same for lengths that must leave a margin: what is cached and not in use counts. Of 264 such
// searches (five models, 14 kinds of job, with and without --margin) all that needed no strides
// found what trying every length found.
enum { SURE_TO_LEAVE_CLASSIC = 50, SURE_TO_LEAVE_EXPANDABLE = 75 };

// A range of more lengths than this is first searched in strides, which may pass over a single
// length that fails.
enum { MOST_IN_A_ROW = 32, STRIDES = 16 };

// By what factor to go up while looking for a length above the safe range; and how many lengths a
// line may be trusted for.
enum { GALLOP = 8, NEAR_ENOUGH = 2 };

enum { MOST_FACTOR = 1000000 }; // six digits of a factor are printed

enum { MOST_LENGTHS = 1 << 24 }; // a power of two

struct search {
    const struct capacity_request *request;
    struct arena arena;
    struct grid grid;
    struct capacity *found;
    enum grade aim;
    struct wanted wanted;
    uint64_t limit_bytes, sure_bytes;
    ptrdiff_t last; // the last length that can be asked for
    struct error *error;
};

struct point {
    ptrdiff_t index;
    uint64_t floor_bytes;
};

static bool settings_at(struct settings *all, const struct capacity_request *r, uint64_t context,
                        struct error *e)
{
    struct str length = str_format(all->arena, "%llu", (unsigned long long)context);
    for (ptrdiff_t i = 0; i < r->settings->count; i++)
        if (!settings_add(all, r->settings->items[i], e))
            return false;
    return settings_set(all, (struct setting){STR("context"), length, STR("--grid")}, e);
}

bool capacity_grid(struct grid *g, struct arena scratch, const struct capacity_request *r,
                   struct error *e)
{
    struct settings all = settings_in(&scratch);
    *g = r->grid;
    return settings_at(&all, r, grid_length(g, 0), e) &&
           job_taken_tokens(&g->above, scratch, &all, e);
}

bool capacity_job(struct job *job, struct arena *a, const struct capacity_request *r,
                  uint64_t context, struct error *e)
{
    struct settings all = settings_in(a);
    if (!settings_at(&all, r, context, e) || !job_from_settings(job, a, &all, e))
        return false;
    struct outside outside = outside_of(job);
    struct wanted w;
    return wanted_read(&w, *a, job, limit_of(job, &outside), e);
}

static bool job_at(struct job *job, struct search *s, struct arena *a, ptrdiff_t index,
                   struct error *e)
{
    return capacity_job(job, a, s->request, grid_length(&s->grid, index), e);
}

// False: not modelled, and no longer length is.
static bool try_job(struct job *job, struct search *s, struct arena *a, ptrdiff_t index)
{
    struct error refusal = {0};
    if (index <= s->last && job_at(job, s, a, index, &refusal))
        return true;
    if (index <= s->last) {
        s->last = index - 1;
        s->found->end = refusal;
    }
    return false;
}

// A length that is not modelled, or for which the host is too small, is above everything.
static bool floor_at(struct point *p, struct search *s, ptrdiff_t index)
{
    struct arena a = s->arena;
    struct job *job = NEW(&a, struct job, 1);
    struct prediction made;
    *p = (struct point){index, U64_SATURATED};
    if (!try_job(job, s, &a, index))
        return true;
    s->found->simulations++;
    if (!predict_floor(&made, &a, job, s->error))
        return false;
    bool host_is_short = s->wanted.host_bytes && host_bytes_most(&made.host) > s->wanted.host_bytes;
    p->floor_bytes = host_is_short ? U64_SATURATED : made.floor_bytes;
    return true;
}

// The last length before the line through two points meets the sure bytes; where the upper one is
// not modelled, their middle. A floor is the largest of sums that grow evenly with the length, so
// between two points it is on or below the line.
static ptrdiff_t crossing(const struct search *s, struct point low, struct point high)
{
    if (high.floor_bytes == U64_SATURATED)
        return low.index + (high.index - low.index) / 2;
    uint64_t from = grid_length(&s->grid, low.index), to = grid_length(&s->grid, high.index);
    double share =
        (double)(s->sure_bytes - low.floor_bytes) / (double)(high.floor_bytes - low.floor_bytes);
    uint64_t length = from + (uint64_t)(share * (double)(to - from));
    ptrdiff_t below = low.index, above = high.index;
    while (above - below > 1) {
        ptrdiff_t middle = below + (above - below) / 2;
        *(grid_length(&s->grid, middle) <= length ? &below : &above) = middle;
    }
    return below;
}

// The last length of the sure range, or one near it, and two points that the floor's line goes
// through; -1 where the first length is above the range.
static bool find_sure(ptrdiff_t *sure, struct point *low, struct point *high, struct search *s)
{
    *sure = -1;
    *low = (struct point){-1, 0};
    if (!floor_at(high, s, 0))
        return false;
    if (high->floor_bytes > s->sure_bytes)
        return true;
    while (high->floor_bytes <= s->sure_bytes) {
        *low = *high;
        if (!floor_at(high, s, GALLOP * (low->index + 1) - 1))
            return false;
    }
    for (;;) {
        struct point p;
        *sure = crossing(s, *low, *high);
        bool modelled = high->floor_bytes != U64_SATURATED;
        if (*sure == low->index || (modelled && *sure - low->index <= NEAR_ENOUGH))
            return true;
        if (!floor_at(&p, s, *sure))
            return false;
        *(p.floor_bytes <= s->sure_bytes ? low : high) = p;
    }
}

enum trial { REACHES, FAILS, NOT_MODELLED };

static void keep_peak(struct capacity *c, const struct prediction *p)
{
    c->allocated_bytes = p->allocated_bytes;
    c->requested_bytes = p->requested_bytes;
    c->reserved_bytes = p->reserved_bytes;
    c->host_bytes = p->host_bytes;
    c->time = p->time;
    c->verdict = p->verdict;
    c->phase = p->phase;
    c->step = p->step;
    c->told = prediction_peak(&c->told_phase, p);
}

static void keep_stop(struct capacity *c, const struct prediction *p)
{
    c->stop.verdict = p->verdict;
    c->stop.host = p->host;
    c->stop.oom = p->oom;
    c->stop.kind = p->oom_kind;
    c->stop.phase = p->phase;
    c->stop.step = p->step;
}

static uint64_t next_length(const struct search *s, ptrdiff_t index)
{
    uint64_t length = grid_length(&s->grid, index + 1);
    return length == UINT64_MAX ? 0 : length;
}

static bool try_length(enum trial *v, struct search *s, ptrdiff_t index)
{
    struct arena a = s->arena;
    struct job *job = NEW(&a, struct job, 1);
    struct capacity *c = s->found;
    struct prediction p;
    *v = NOT_MODELLED;
    if (!try_job(job, s, &a, index))
        return true;
    c->simulations++;
    c->replays++;
    if (!predict_fit(&p, &a, job, s->error))
        return false;
    *v = p.verdict.grade >= s->aim ? REACHES : FAILS;
    if (*v == REACHES) {
        c->context = grid_length(&s->grid, index);
        c->next = next_length(s, index);
        keep_peak(c, &p);
    } else {
        c->fails_at = grid_length(&s->grid, index);
        keep_stop(c, &p);
    }
    return true;
}

// Tries lengths from `from` on, `stride` apart. *last_fit is the last that reaches the aim before
// the first that does not, or as it was.
static bool climb(ptrdiff_t *last_fit, struct search *s, ptrdiff_t from, ptrdiff_t stride)
{
    for (ptrdiff_t i = from;; i += stride) {
        enum trial v;
        if (!try_length(&v, s, i))
            return false;
        if (v == NOT_MODELLED)
            s->found->fails_at = 0;
        if (v != REACHES)
            return true;
        *last_fit = i;
    }
}

// Apart by how many lengths to climb first, so that a fine grid does not cost hundreds of trials.
static ptrdiff_t stride_of(const struct search *s, struct point low, struct point high)
{
    if (low.index < 0 || high.floor_bytes == U64_SATURATED)
        return 1;
    uint64_t a_length =
        (high.floor_bytes - low.floor_bytes) / (uint64_t)(high.index - low.index) + 1;
    uint64_t lengths = (s->limit_bytes - s->sure_bytes) / a_length;
    return lengths > MOST_IN_A_ROW ? (ptrdiff_t)(lengths / STRIDES) : 1;
}

// What was taken for sure is tried where nothing above it fits.
static bool confirm(struct search *s, ptrdiff_t sure, ptrdiff_t last_fit)
{
    if (sure < 0 || last_fit > sure)
        return true;
    enum trial v;
    struct capacity above = *s->found;
    if (!try_length(&v, s, sure))
        return false;
    if (v == REACHES) {
        s->found->fails_at = above.fails_at;
        return true;
    }
    return climb(&last_fit, s, 0, 1);
}

static bool start(struct search *s, const struct capacity_request *r)
{
    struct capacity *c = s->found;
    *c = (struct capacity){0};
    uint64_t longest = setting_def_find(STR("context"))->max;
    struct arena a = s->arena;
    struct job *job = NEW(&a, struct job, 1);
    // Any first length shows the model; the grid's own needs it.
    if (!capacity_grid(&s->grid, a, r, s->error) || !job_at(job, s, &a, 0, s->error))
        return false;
    struct outside outside = outside_of(job);
    s->grid.max_position = c->max_position = job->model.max_position;
    c->native = job->model.native;
    c->first = grid_length(&s->grid, 0);
    c->next = next_length(s, -1);
    c->limit_bytes = s->limit_bytes = limit_of(job, &outside);
    c->outside_bytes = outside_bytes(&outside);
    if (!wanted_read(&s->wanted, a, job, s->limit_bytes, s->error))
        return false;
    int sure = job->expandable ? SURE_EXPANDABLE : SURE_CLASSIC;
    if (s->aim == GRADE_SAFE) {
        s->limit_bytes -= s->wanted.margin_bytes; // less than the limit, or it would be refused
        sure = job->expandable ? SURE_TO_LEAVE_EXPANDABLE : SURE_TO_LEAVE_CLASSIC;
    }
    s->sure_bytes = s->limit_bytes / WHOLE * (uint64_t)sure;
    for (ptrdiff_t more = MOST_LENGTHS; more; more /= 2)
        if (grid_length(&s->grid, s->last + more) <= longest)
            s->last += more;
    return true;
}

static bool find(struct search *s, const struct capacity_request *r)
{
    struct point low, high;
    ptrdiff_t sure;
    if (!start(s, r) || !find_sure(&sure, &low, &high, s))
        return false;
    ptrdiff_t stride = stride_of(s, low, high), last_fit = sure;
    s->found->stride = (int)stride;
    if (stride > 1 && !climb(&last_fit, s, sure + stride, stride))
        return false;
    return climb(&last_fit, s, last_fit + 1, 1) && confirm(s, sure, last_fit);
}

static bool scan(struct search *s, const struct capacity_request *r)
{
    ptrdiff_t last_fit;
    return start(s, r) && climb(&last_fit, s, 0, 1);
}

// The longest safe length, and of the longest that fits what stops the next one.
static void join(struct capacity *c, const struct capacity *safe)
{
    struct capacity fits = *c;
    *c = *safe;
    c->fits_context = fits.context;
    c->fails_at = fits.fails_at;
    c->stop = fits.stop;
    c->end = fits.end;
    c->simulations += fits.simulations;
    c->replays += fits.replays;
    c->stride = fits.stride > safe->stride ? fits.stride : safe->stride;
    if (fits.context > safe->context) {
        c->tight_at = safe->fails_at;
        c->tight = safe->stop.verdict;
    }
}

typedef bool search_method(struct search *s, const struct capacity_request *r);

// Over the user's own data, where they are described.
static bool find_real_time(struct capacity *c, struct arena scratch,
                           const struct capacity_request *r, struct error *e)
{
    struct job *job = NEW(&scratch, struct job, 1);
    step_time_of_update(&c->time);
    return !c->context || (capacity_job(job, &scratch, r, c->context, e) &&
                           real_time_find(&c->time, scratch, job, e));
}

// Without a margin all that fits is safe.
static bool search_both(struct capacity *c, struct arena scratch, const struct capacity_request *r,
                        search_method *method, struct error *e)
{
    struct search s = {.request = r, .arena = scratch, .found = c, .aim = GRADE_TIGHT, .error = e};
    if (!method(&s, r))
        return false;
    c->fits_context = c->context;
    bool no_margin = s.wanted.margin_given && !s.wanted.margin_bytes;
    if (!r->safe || no_margin || !c->context)
        return true;
    struct capacity safe;
    s = (struct search){
        .request = r, .arena = scratch, .found = &safe, .aim = GRADE_SAFE, .error = e};
    if (!method(&s, r))
        return false;
    join(c, &safe);
    return true;
}

bool capacity_find(struct capacity *c, struct arena scratch, const struct capacity_request *r,
                   struct error *e)
{
    return search_both(c, scratch, r, find, e) && find_real_time(c, scratch, r, e);
}

bool capacity_scan(struct capacity *c, struct arena scratch, const struct capacity_request *r,
                   struct error *e)
{
    return search_both(c, scratch, r, scan, e) && find_real_time(c, scratch, r, e);
}

bool capacity_same(const struct capacity *a, const struct capacity *b)
{
    return a->context == b->context && a->fits_context == b->fits_context &&
           a->tight_at == b->tight_at && a->fails_at == b->fails_at &&
           a->reserved_bytes == b->reserved_bytes;
}

const char *capacity_end_text(const struct capacity *c)
{
    return c->end.code ? c->end.message : "no longer one can be asked for";
}

bool capacity_needs_yarn(const struct capacity *c)
{
    return c->max_position && c->context > c->max_position;
}

double yarn_factor(uint64_t length, uint64_t max_position)
{
    uint64_t scale = 10000;
    if (!max_position)
        return 0;
    while (scale > 1 && length / max_position >= MOST_FACTOR / scale)
        scale /= 10;
    return (double)u64_divide_up(sat_mul(length, scale), max_position) / (double)scale;
}

double capacity_yarn_factor(const struct capacity *c)
{
    return yarn_factor(c->context, c->max_position);
}

uint64_t capacity_left_bytes(const struct capacity *c)
{
    return c->limit_bytes > c->reserved_bytes ? c->limit_bytes - c->reserved_bytes : 0;
}
