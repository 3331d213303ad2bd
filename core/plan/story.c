// See story.h. Each row is predicted as any other configuration.
#include "core/plan/story.h"

#include "core/base/num.h"
#include "core/plan/batch.h"
#include "core/plan/front.h"
#include "core/plan/space.h"

static bool is_given(const struct plan *p, const char *setting)
{
    return settings_find_z(p->request.settings, setting) != NULL;
}

static void predict_words(struct plan_row *row, struct arena scratch, const struct plan *p)
{
    struct settings *s = NEW(&scratch, struct settings, 1);
    struct job *job = NEW(&scratch, struct job, 1);
    struct error *e = &row->refusal;
    *s = settings_in(&scratch);
    *e = (struct error){0};
    for (ptrdiff_t i = 0; i < p->base.count; i++)
        if (!settings_add(s, p->base.items[i], e))
            return;
    if (!settings_change(s, row->words, e) || !job_from_settings(job, &scratch, s, e))
        return;
    row->gpus = job_ranks(job);
    row->possible =
        plan_can_write(scratch, job, e) && plan_predict(&row->prediction, scratch, job, e);
}

static bool row_is_safe(const struct plan_row *row)
{
    return row->possible && row->prediction.verdict.grade == GRADE_SAFE;
}

// One configuration, however its words are ordered.
static bool is_same(const struct plan_row *row, const struct plan_row *other)
{
    const struct prediction *p = &row->prediction, *q = &other->prediction;
    return row->possible && other->possible && p->fits && q->fits && row->batch == other->batch &&
           row->gpus == other->gpus && p->reserved_bytes == q->reserved_bytes &&
           p->time.seconds == q->time.seconds;
}

// Not the best itself, and no row twice.
static bool is_known(const struct plan_story *s, const struct plan_row *row)
{
    const struct plan_candidate *best = s->plan.best;
    struct plan_row chosen = {.batch = best->batch,
                              .gpus = best->family->gpus,
                              .possible = true,
                              .prediction = best->prediction};
    if (is_same(row, &chosen))
        return true;
    for (int i = 0; i < s->row_count; i++)
        if (str_equal(s->rows[i].options, row->options) || is_same(row, &s->rows[i]))
            return true;
    return false;
}

static void add_row(struct plan_story *s, struct arena *a, struct plan_row *row)
{
    row->options = plan_options(a, &s->plan, row->words);
    if (s->row_count < PLAN_MOST_ROWS && !is_known(s, row))
        s->rows[s->row_count++] = *row;
}

// The largest micro-batch with which these words are safe, or the smallest where none is; false
// where they cannot be.
static bool find_largest(struct plan_row *row, struct arena *a, const struct plan *p,
                         struct str words, const struct plan_family *f)
{
    const char *what = row->what;
    for (ptrdiff_t i = f->micro_count - 1; i >= 0; i--) {
        uint64_t batch = f->micro[i];
        uint64_t accum = p->request.global_batch / f->data_parallel / batch;
        *row = (struct plan_row){.what = what, .batch = batch, .accum = accum};
        row->words = str_format(a, "%.*s batch=%llu accum=%llu", STR_ARGS(words),
                                (unsigned long long)batch, (unsigned long long)accum);
        predict_words(row, *a, p);
        if (!row->possible)
            return false;
        if (row_is_safe(row))
            break;
    }
    return row->words.n;
}

static void add_largest(struct plan_story *s, struct arena *a, const char *what, struct str words,
                        const struct plan_family *f)
{
    struct plan_row *row = NEW(a, struct plan_row, 1);
    row->what = what;
    if (find_largest(row, a, &s->plan, words, f))
        add_row(s, a, row);
}

static const struct plan_family *family_of(const struct plan *p, const char *strategy)
{
    for (ptrdiff_t i = 0; i < p->family_count; i++)
        if (str_is(str_from(p->families[i].strategy), strategy) && p->families[i].micro_count)
            return &p->families[i];
    return NULL;
}

// What is recommended everywhere.
static void add_folklore(struct plan_story *s, struct arena *a)
{
    static const char *const settings[] = {"strategy", "checkpointing", "offload"};
    const struct plan_family *f = family_of(&s->plan, "zero3");
    for (ptrdiff_t i = 0; i < COUNT_OF(settings); i++)
        if (is_given(&s->plan, settings[i]))
            return;
    if (f)
        add_largest(s, a, "ZeRO-3, checkpointing, offload",
                    STR("strategy=zero3 checkpointing=on offload=optimizer"), f);
}

// The words of the best, but those of its batches, with another value of checkpointing if that is
// not NULL.
static struct str words_of_best(struct arena *a, const struct plan *p, const char *checkpointing)
{
    const struct plan_candidate *best = p->best;
    const struct plan_family *f = best->family;
    struct buf b = buf_in(a);
    buf_put(&b, f->words);
    for (int i = 0; i < PLAN_DIALS; i++) {
        bool other = checkpointing && str_is(str_from(plan_dials[i].setting), "checkpointing");
        if (plan_says(f, i))
            buf_printf(&b, " %s=%s", plan_dials[i].setting,
                       other ? checkpointing : plan_dials[i].values[best->dial[i]].words);
    }
    return buf_str(&b);
}

// Everything as the best has it, but checkpointing, for the sake of the micro-batch.
static void add_largest_batch(struct plan_story *s, struct arena *a)
{
    add_largest(s, a, "the largest micro-batch", words_of_best(a, &s->plan, "on"),
                s->plan.best->family);
}

// What a package is worth that the best needs and that has to be installed for it: without it as
// the best is otherwise, or with checkpointing.
static void add_without(struct plan_story *s, struct arena *a, const char *what, struct str other)
{
    const struct plan *p = &s->plan;
    const struct plan_family *f = p->best->family;
    struct plan_row *row = NEW(a, struct plan_row, 1);
    row->what = what;
    bool found = find_largest(row, a, p, str_join(a, words_of_best(a, p, NULL), other), f);
    if (!found || !row_is_safe(row))
        found = find_largest(row, a, p, str_join(a, words_of_best(a, p, "on"), other), f);
    if (found)
        add_row(s, a, row);
}

static void add_without_packages(struct plan_story *s, struct arena *a)
{
    const struct plan *p = &s->plan;
    const struct plan_family *f = p->best->family;
    bool loss = words_have(str_z(a, f->words), ' ', STR("loss=liger"));
    bool chosen = f->liger && !is_given(p, "layer-kernels");
    if (loss || chosen)
        add_without(s, a, "without liger-kernel",
                    loss ? STR(" layer-kernels=torch loss=full") : STR(" layer-kernels=torch"));
    if (words_have(str_z(a, f->words), ' ', STR("attention=flash2")))
        add_without(s, a, "without flash-attn", STR(" attention=sdpa"));
}

// What the framework does where nothing is said.
static void add_defaults(struct plan_story *s, struct arena *a)
{
    const struct plan *p = &s->plan;
    const struct plan_candidate *best = p->best;
    const struct job *j = &p->job;
    uint64_t ranks = job_ranks(j) / (j->ring * j->ulysses * j->tensor * j->pipeline);
    if (p->request.global_batch % ranks)
        return;
    struct plan_row *row = NEW(a, struct plan_row, 1);
    *row = (struct plan_row){.what = "as the framework has it", .batch = 1};
    row->accum = p->request.global_batch / ranks;
    row->words = str_format(a, "batch=1 accum=%llu", (unsigned long long)row->accum);
    predict_words(row, *a, p);
    if (row->possible && (best->batch != 1 || best->trouble))
        add_row(s, a, row);
}

// Everything as the best has it; where that cannot be, as when its optimizer is the host's, one
// sequence at a time as the framework has it.
static void add_optimizer(struct plan_story *s, struct arena *a, const char *what,
                          const char *optimizer)
{
    const struct plan *p = &s->plan;
    struct plan_row *row = NEW(a, struct plan_row, 1);
    uint64_t ranks = p->best->family->data_parallel;
    *row = (struct plan_row){.what = what, .batch = p->best->batch, .accum = p->best->accum};
    row->words = str_format(a, "%.*s optimizer=%s", STR_ARGS(plan_words(a, p->best)), optimizer);
    predict_words(row, *a, p);
    if (!row->possible) {
        *row =
            (struct plan_row){.what = what, .batch = 1, .accum = p->request.global_batch / ranks};
        row->words =
            str_format(a, "batch=1 accum=%llu%s optimizer=%s", (unsigned long long)row->accum,
                       is_given(p, "expandable") ? "" : " expandable=on", optimizer);
        predict_words(row, *a, p);
    }
    row->otherwise = true;
    if (row->possible)
        add_row(s, a, row);
}

// What keeps less beside the weights, and does not train the same: told of, never chosen.
static void add_optimizers(struct plan_story *s, struct arena *a)
{
    if (is_given(&s->plan, "optimizer"))
        return;
    add_optimizer(s, a, "adamw-8bit: trains otherwise", "adamw-8bit");
    add_optimizer(s, a, "adafactor: trains otherwise", "adafactor");
}

static void add_strategies(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    struct plan *p = &s->plan;
    const char *last = "";
    for (ptrdiff_t i = 0; i < p->family_count; i++) {
        const char *strategy = p->families[i].strategy;
        if (str_is(str_from(strategy), last) ||
            str_is(str_from(strategy), p->best->family->strategy))
            continue;
        last = strategy;
        const struct plan_candidate *c = plan_best_of(p, a, strategy, runner);
        if (!c)
            continue;
        bool cut = c->family->gpus > 1 && str_is(str_from(strategy), "single");
        struct plan_row row = {
            .what = cut ? "tensor parallel" : strategy, .batch = c->batch, .accum = c->accum};
        row.words = plan_words(a, c);
        row.gpus = c->family->gpus;
        row.possible = true;
        row.prediction = c->prediction;
        add_row(s, a, &row);
    }
}

// ------------------------------------------------------------------ other machines, other jobs

// The changed settings, and of what is lean what takes least; but for segments that grow, where the
// framework has none.
static bool changed_settings(struct settings *changed, const struct plan_change *c,
                             const struct plan *p, bool lean, bool grows)
{
    struct error e = {0};
    for (ptrdiff_t i = 0; i < p->request.settings->count; i++)
        if (!settings_add(changed, p->request.settings->items[i], &e))
            return false;
    bool recomputes = lean && !is_given(p, "checkpointing");
    grows = grows && lean && !is_given(p, "expandable");
    return settings_change(changed, c->words, &e) &&
           (!recomputes || settings_change(changed, STR("checkpointing=on"), &e)) &&
           (!grows || settings_change(changed, STR("expandable=on"), &e));
}

// The plan of changed settings; no best where nothing is safe or possible.
static bool plan_with(struct plan_change *c, struct arena *a, const struct plan *p,
                      struct plan_request r, const struct runner *runner)
{
    for (int grows = true; grows >= false; grows--) {
        struct settings *changed = NEW(a, struct settings, 1);
        struct error e = {0};
        *changed = settings_in(a);
        c->plan = NEW(a, struct plan, 1);
        if (!changed_settings(changed, c, p, r.lean, grows))
            return false;
        r.settings = changed;
        c->found = plan_make(c->plan, a, &r, runner, &e) && c->plan->best;
        if (e.code == ERROR_NONE || !r.lean)
            break;
    }
    return c->found;
}

static struct str machine_words(struct arena *a, const struct hardware *h, uint64_t nodes,
                                uint64_t here)
{
    if (nodes == 1)
        return str_format(a, "gpu=%llux%s", (unsigned long long)here, h->card.name);
    return str_format(a, "gpu=%llux%llux%s", (unsigned long long)nodes, (unsigned long long)here,
                      h->card.name);
}

// Twice the GPUs of a node that is not full, else one more node, or as many more as divide the
// batch.
static struct str larger_machine(struct arena *a, const struct hardware *h, uint64_t global_batch)
{
    uint64_t whole = h->card.per_node ? h->card.per_node : 8;
    if (h->custom)
        return STR_NONE;
    if (h->nodes == 1 && h->gpus_per_node * 2 <= whole)
        return global_batch % (h->gpus_per_node * 2) ? STR_NONE
                                                     : machine_words(a, h, 1, h->gpus_per_node * 2);
    for (uint64_t nodes = h->nodes + 1; nodes <= 2 * h->nodes; nodes++)
        if (global_batch % (nodes * h->gpus_per_node) == 0)
            return machine_words(a, h, nodes, h->gpus_per_node);
    return STR_NONE;
}

// The same family, so that the machine alone makes the difference.
static void find_more(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    const struct plan *p = &s->plan;
    struct plan_request r = p->request;
    struct str machine = larger_machine(a, &p->job.hardware, r.global_batch);
    if (!machine.n || p->request.goal == GOAL_COST)
        return;
    bool alone = str_is(str_from(p->best->family->strategy), "single");
    s->more.what = "more GPUs";
    s->more.words = alone ? str_join(a, machine, STR(" cp=1 sp=1")) : machine;
    r.like = alone ? NULL : p->best->family;
    r.exhaustive = r.front = false;
    (void)plan_with(&s->more, a, p, r, runner);
}

static bool is_safe_with(struct plan_change *c, struct plan_story *s, struct arena *a,
                         const struct runner *runner)
{
    struct plan_request r = s->plan.request;
    r.lean = true;
    r.exhaustive = r.front = false;
    r.goal = GOAL_SPEED;
    return plan_with(c, a, &s->plan, r, runner);
}

static bool try_change(struct plan_story *s, struct arena *a, const struct runner *runner,
                       const char *what, struct str words)
{
    struct plan_change c = {.what = what, .words = words};
    if (s->change_count == PLAN_MOST_CHANGES || !is_safe_with(&c, s, a, runner))
        return false;
    s->changes[s->change_count++] = c;
    return true;
}

static bool is_safe_at(struct plan_change *c, struct plan_story *s, struct arena *a,
                       const struct runner *runner, uint64_t context)
{
    *c = (struct plan_change){.what = "a shorter context"};
    c->words = str_format(a, "context=%llu", (unsigned long long)context);
    return is_safe_with(c, s, a, runner);
}

// Halves until one is safe, then the longest above it to an eighth.
static void try_shorter(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    enum { SHORTEST = 128, STEP = 64, HALVINGS = 3 };
    struct plan_change found = {0}, longer;
    uint64_t n = s->plan.job.context / 2 / STEP * STEP;
    while (n >= SHORTEST && !is_safe_at(&found, s, a, runner, n))
        n = n / 2 / STEP * STEP;
    for (uint64_t i = 0, more = n / 2; found.found && i < HALVINGS; i++, more /= 2)
        if (is_safe_at(&longer, s, a, runner, (n + more) / STEP * STEP)) {
            found = longer;
            n += more;
        }
    if (found.found)
        s->changes[s->change_count++] = found;
}

static void try_more_gpus(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    struct hardware h = s->plan.job.hardware;
    uint64_t whole = h.card.per_node ? h.card.per_node : 8;
    for (int i = 0; i < 5 && !h.custom; i++) {
        if (h.nodes == 1 && h.gpus_per_node * 2 <= whole)
            h.gpus_per_node *= 2;
        else
            h.nodes *= 2;
        if (try_change(s, a, runner, "more GPUs", machine_words(a, &h, h.nodes, h.gpus_per_node)))
            return;
    }
}

// The smallest card of the catalogue that is larger by a fifth at least, and does.
static void try_cards(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    const struct hardware *h = &s->plan.job.hardware;
    enum { AMPERE = 80 };
    for (uint64_t above = h->card.memory.value / 5 * 6;;) {
        const struct gpu *next = NULL;
        for (ptrdiff_t i = 0; i < gpu_catalog_count; i++) {
            const struct gpu *g = &gpu_catalog[i];
            if (g->memory.value > above && g->capability >= AMPERE && g->bf16.value &&
                (!next || g->memory.value < next->memory.value))
                next = g;
        }
        if (!next)
            return;
        struct hardware other = *h;
        other.card.name = next->name;
        if (try_change(s, a, runner, "a larger card",
                       machine_words(a, &other, h->nodes, h->gpus_per_node)))
            return;
        above = next->memory.value;
    }
}

// One sequence for each rank, so that no gradients wait for another's.
static void try_smaller(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    const struct job *job = &s->plan.job;
    uint64_t ranks = job_ranks(job) / (job->ring * job->ulysses * job->tensor * job->pipeline);
    if (ranks < s->plan.request.global_batch) {
        struct plan_change c = {.what = "a smaller batch"};
        struct plan_request r = s->plan.request;
        r.global_batch = ranks;
        r.lean = true;
        r.exhaustive = r.front = false;
        r.goal = GOAL_SPEED;
        c.words = str_format(a, "global-batch=%llu", (unsigned long long)ranks);
        if (plan_with(&c, a, &s->plan, r, runner))
            s->changes[s->change_count++] = c;
    }
}

// TRL's file has one type for all around packed weights (core/search/remedy.c).
static void try_adapters(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    bool given = is_given(&s->plan, "lora");
    const char *four_bits = given ? "weights in four bits" : "adapters, four bits";
    if (!given && try_change(s, a, runner, "adapters", STR("lora=16")))
        return;
    struct str packed = given ? STR("quantize=nf4") : STR("lora=16 quantize=nf4");
    if (is_given(&s->plan, "quantize") || try_change(s, a, runner, four_bits, packed) ||
        is_given(&s->plan, "precision"))
        return;
    (void)try_change(s, a, runner, four_bits, str_join(a, packed, STR(" precision=bf16")));
}

// It does not train the same, and is the user's to choose.
static void try_optimizer(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    if (!is_given(&s->plan, "optimizer"))
        (void)try_change(s, a, runner, "an 8-bit optimizer", STR("optimizer=adamw-8bit"));
}

static void find_changes(struct plan_story *s, struct arena *a, const struct runner *runner)
{
    try_shorter(s, a, runner);
    try_smaller(s, a, runner);
    try_more_gpus(s, a, runner);
    try_optimizer(s, a, runner);
    try_adapters(s, a, runner);
    try_cards(s, a, runner);
}

bool plan_tell(struct plan_story *s, struct arena *a, const struct plan_request *r,
               const struct runner *runner, struct error *e)
{
    if (!data_read(&s->data, r->settings, e) || !plan_make(&s->plan, a, r, runner, e) ||
        !data_read_units(&s->data, r->settings, &s->plan.job, r->global_batch, e))
        return false;
    if (!s->plan.best) {
        find_changes(s, a, runner);
        return true;
    }
    add_folklore(s, a);
    add_largest_batch(s, a);
    add_without_packages(s, a);
    add_defaults(s, a);
    add_strategies(s, a, runner);
    add_optimizers(s, a);
    plan_find_front(&s->front, &s->plan);
    find_more(s, a, runner);
    return true;
}
