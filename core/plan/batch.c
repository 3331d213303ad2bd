// See batch.h.
#include "core/plan/batch.h"

#include "core/base/num.h"
#include "core/plan/plan.h"
#include "core/plan/space.h"
#include "core/predict/lengths.h"
#include "core/predict/real_time.h"
#include "core/predict/varied.h"

enum {
    MOST_BATCH = 65536,
    MOST_SHARING = 8,
    SEVERAL = 2,
    USUAL_EVALUATION_BATCH = 8,
    USUAL_ANSWERS = 8
};

#define OF_TRAINER \
    "per_device_train_batch_size x gradient_accumulation_steps x (GPUs / (tp x cp x sp))"
#define PADDING \
    "context parallel pads sequences to a multiple of 2 x cp, Ulysses of sp (pad_to_multiple_of)"
#define READ_TRAINER "transformers 5.17, trainer.py: get_total_train_batch_size, get_batch_samples"

// Trainers with a mean over tokens; those whose loss is a mean over the pairs of a micro-batch; the
// assertion of DeepSpeed, whose world is divided by sp too; and frameworks with samples of RL.
static const struct batch_rule by_tokens = {
    OF_TRAINER, PADDING,
    "the same however it is made up: the loss is a mean over all tokens of the step "
    "(num_items_in_batch)",
    READ_TRAINER};
static const struct batch_rule by_pairs = {OF_TRAINER ", in pairs", PADDING,
                                           "the same however it is made up, but for the last step "
                                           "of an epoch: each micro-batch has a mean "
                                           "over its pairs, and all count alike",
                                           READ_TRAINER};
static const struct batch_rule by_deepspeed = {
    OF_TRAINER,
    "DeepSpeed asserts train_batch_size = micro-batch x accumulation x (GPUs / sp); " PADDING,
    "the same however it is made up: the loss is a mean over all tokens of the step "
    "(num_items_in_batch)",
    "deepspeed 0.19, runtime/config.py, _batch_assertion; " READ_TRAINER};
static const struct batch_rule by_answers = {
    OF_TRAINER ", in answers", "with a multiple of the answers to a prompt in it (num_generations)",
    "the same however it is made up: the loss is a mean over the tokens of all answers that were "
    "generated together (loss_type dapo); with loss_type grpo, and in rloo, each micro-batch has a "
    "mean over its answers, and all count alike",
    "trl 1.16, grpo_trainer.py, _compute_loss; grpo_config.py, __post_init__; rloo_trainer.py"};
static const struct batch_rule by_verl = {
    "ppo_mini_batch_size x samples, of which each of (GPUs / sp) ranks takes an equal part",
    "without use_dynamic_bsz, which emit's files have, a rank's part must be a multiple of the "
    "micro-batch, and the batch one of the GPUs",
    "the same however it is made up: a mean over the tokens of all ranks (batch_num_tokens)",
    "verl 0.9.1, trainer/ppo/core_algos.py, agg_loss; workers/utils/losses.py; utils/config.py, "
    "validate_config"};
static const struct batch_rule by_trinity = {
    "batch_size x repeat_times, one update of all of it",
    "it must be a multiple of GPUs / sp; micro-batches are made by tokens "
    "(max_token_len_per_gpu)",
    "the same however it is made up: micro-batches count by their rows", "Trinity-RFT 0.6, config"};
static const struct batch_rule by_slime = {
    "rollout_batch_size x samples = global_batch_size x steps of a rollout",
    "global_batch_size must be a multiple of (GPUs / (tp x pp x cp)) x micro_batch_size, and at "
    "least that many where micro-batches are made by tokens",
    "the same however it is made up: a mean over samples, or over all tokens "
    "(--calculate-per-token-loss)",
    "slime, utils/dp_schedule.py"};

const struct batch_rule *batch_rule_of(const struct job *job)
{
    switch (job->recipe) {
    case RECIPE_VERL:
        return &by_verl;
    case RECIPE_TRINITY:
        return &by_trinity;
    case RECIPE_MEGATRON:
        return &by_slime;
    case RECIPE_HF:
    case RECIPE_TRANSFORMERS:
    case RECIPE_TRL:
    case RECIPE_DEEPSPEED:
    case RECIPE_AXOLOTL:
    case RECIPE_LLAMAFACTORY:
    case RECIPES:
        break;
    }
    if (batch_counts_answers(job))
        return &by_answers;
    bool pairs = job->task == TASK_REWARD || job->task == TASK_DPO;
    return pairs ? &by_pairs : job_is_zero(job) ? &by_deepspeed : &by_tokens;
}

static bool read_count(uint64_t *value, const struct settings *s, const char *name, struct error *e)
{
    const struct setting *item = settings_find_z(s, name);
    return !item || setting_number(value, item, UNIT_COUNT, (struct range){1, 1 << 28}, e);
}

bool batch_counts_answers(const struct job *job)
{
    return job->task == TASK_GRPO || job->task == TASK_RLOO;
}

const char *batch_unit(const struct job *job)
{
    return batch_counts_answers(job)                           ? "answer"
           : job->task == TASK_REWARD || job->task == TASK_DPO ? "pair"
                                                               : "sequence";
}

// Sequences whose length nobody tells fill their rows.
static bool read_rows(struct data *d, const struct settings *s, const struct job *job,
                      struct error *e)
{
    struct lengths lengths;
    if (job->batching != BATCHING_PACKED || !d->size)
        return true;
    if (!lengths_read(&lengths, s, e))
        return false;
    if (lengths.parts)
        d->rows = packed_rows(d->size, lengths_mean(&lengths, job->context), job->context);
    return true;
}

bool data_read_units(struct data *d, const struct settings *s, const struct job *job,
                     uint64_t global_batch, struct error *e)
{
    uint64_t answers = USUAL_ANSWERS;
    if (!batch_counts_answers(job))
        return read_rows(d, s, job, e);
    const struct setting *given = settings_find_z(s, "samples");
    if (!read_count(&answers, s, "samples", e))
        return false;
    if (given && global_batch % answers)
        return FAIL(e, BAD_INPUT, given->where,
                    "%llu answers a step are no multiple of %llu to each prompt",
                    (unsigned long long)global_batch, (unsigned long long)answers);
    while (global_batch % answers)
        answers--;
    d->answers = answers;
    d->grouped = true;
    return true;
}

struct str batch_words(struct arena *a, const struct batch_row *row)
{
    struct buf b = buf_in(a);
    buf_printf(&b, "batch=%llu accum=%llu", (unsigned long long)row->batch,
               (unsigned long long)row->accum);
    if (row->cp > 1)
        buf_printf(&b, " cp=%llu", (unsigned long long)row->cp);
    if (row->sp > 1)
        buf_printf(&b, " sp=%llu", (unsigned long long)row->sp);
    return buf_str(&b);
}

static bool job_with(struct job *job, struct arena *a, const struct batch_story *s,
                     struct str words, struct error *e)
{
    struct settings *changed = NEW(a, struct settings, 1);
    *changed = settings_in(a);
    for (ptrdiff_t i = 0; i < s->base.count; i++)
        if (!settings_add(changed, s->base.items[i], e))
            return false;
    return settings_change(changed, words, e) && job_resolve(job, a, changed, e);
}

// ------------------------------------------------------------------ what is asked

static uint64_t ranks_of(const struct job *job)
{
    return job_ranks(job) / (job->ring * job->ulysses * job->tensor * job->pipeline);
}

// The other machine's batch, by the same arithmetic.
static bool read_was(struct batch_story *s, struct arena *a, struct error *e)
{
    const struct setting *was = settings_find_z(s->settings, "was");
    const struct setting *batch = settings_find_z(s->settings, "batch");
    const struct setting *accum = settings_find_z(s->settings, "accum");
    struct job *job = NEW(a, struct job, 1);
    if (!was && (batch || accum))
        return FAIL(e, BAD_INPUT, (batch ? batch : accum)->where,
                    "batch finds micro-batches itself; with --was GPUS they are those of another "
                    "machine");
    if (!was)
        return true;
    struct str words = str_format(a, "gpu=%.*s", STR_ARGS(was->value));
    if (!job_with(job, a, s, words, e))
        return false;
    s->was_batch = s->was_accum = 1;
    if (!read_count(&s->was_batch, s->settings, "batch", e) ||
        !read_count(&s->was_accum, s->settings, "accum", e))
        return false;
    s->was = was->value;
    s->was_ranks = ranks_of(job);
    uint64_t global = sat_mul(sat_mul(s->was_batch, s->was_accum), s->was_ranks);
    if (s->global_batch && s->global_batch != global)
        return FAIL(e, BAD_INPUT, STR("--global-batch"),
                    "%llu is not what the other machine had: %llu x %llu x %llu ranks are %llu",
                    (unsigned long long)s->global_batch, (unsigned long long)s->was_batch,
                    (unsigned long long)s->was_accum, (unsigned long long)s->was_ranks,
                    (unsigned long long)global);
    s->global_batch = global;
    return true;
}

// Frameworks whose batches are worth counting, even where no step is predicted.
static bool has_own_arithmetic(const struct job *job)
{
    return job->recipe == RECIPE_VERL || job->recipe == RECIPE_MEGATRON;
}

// The smallest batch there is: of one row, or the recipe's own where that is refused.
static bool read_job(struct batch_story *s, struct arena *a, struct error *e)
{
    return job_with(s->job, a, s, STR("batch=1"), e) || job_with(s->job, a, s, STR(""), e);
}

static bool read_request(struct batch_story *s, struct arena *a, struct error *e)
{
    static const char own[] =
        "was batch accum global-batch data-size epochs price eval-every samples";
    // What is evaluated beside steps is counted here; a job has it where it evaluates.
    bool evaluates = settings_find_z(s->settings, "eval-batch");
    s->base = settings_in(a);
    for (ptrdiff_t i = 0; i < s->settings->count; i++)
        if (!words_have(own, ' ', s->settings->items[i].key) &&
            (evaluates || !str_is(s->settings->items[i].key, "eval-size")) &&
            !settings_add(&s->base, s->settings->items[i], e))
            return false;
    if (!read_job(s, a, e) || !data_read(&s->data, s->settings, e) ||
        !read_count(&s->global_batch, s->settings, "global-batch", e) || !read_was(s, a, e) ||
        !read_count(&s->evaluation.size, s->settings, "eval-size", e) ||
        !read_count(&s->evaluation.every, s->settings, "eval-every", e))
        return false;
    s->counts_only = s->job->unmodelled.code != ERROR_NONE;
    if (s->counts_only && !has_own_arithmetic(s->job)) {
        *e = s->job->unmodelled;
        return false;
    }
    if (!lengths_check(s->job, e))
        return false;
    if (!s->global_batch)
        return FAIL(e, BAD_INPUT, STR("--global-batch"),
                    "no global batch is given, nor another machine's with --was");
    s->ranks = ranks_of(s->job);
    return data_read_units(&s->data, s->settings, s->job, s->global_batch, e);
}

// ------------------------------------------------------------------ the rows

static ptrdiff_t add_rows(struct batch_story *s, struct batch_row *rows, uint64_t cp, uint64_t sp)
{
    uint64_t shared = cp * sp * s->job->tensor * s->job->pipeline, each, count = 0;
    uint64_t ranks = job_ranks(s->job) / shared;
    if (!ranks || s->global_batch % ranks)
        return 0;
    each = s->global_batch / ranks;
    for (uint64_t b = 1; b <= each && b <= MOST_BATCH; b++) {
        if (each % b)
            continue;
        if (rows)
            rows[count] = (struct batch_row){
                .batch = b, .accum = each / b, .data_parallel = ranks, .cp = cp, .sp = sp};
        count++;
    }
    return (ptrdiff_t)count;
}

// Without sharing, or as given; then with more ranks that share a sequence.
static void list_rows(struct batch_story *s, struct arena *a)
{
    bool given = settings_find_z(s->settings, "cp") || settings_find_z(s->settings, "sp");
    uint64_t cp = s->job->ring, sp = s->job->ulysses, gpus = job_ranks(s->job);
    ptrdiff_t count = add_rows(s, NULL, cp, sp);
    for (uint64_t n = 2; !given && n <= gpus && n <= MOST_SHARING && gpus % n == 0; n *= 2)
        count += add_rows(s, NULL, n, 1) + add_rows(s, NULL, 1, n);
    s->rows = NEW(a, struct batch_row, count + 1);
    s->row_count = add_rows(s, s->rows, cp, sp);
    for (uint64_t n = 2; !given && n <= gpus && n <= MOST_SHARING && gpus % n == 0; n *= 2) {
        s->row_count += add_rows(s, s->rows + s->row_count, n, 1);
        s->row_count += add_rows(s, s->rows + s->row_count, 1, n);
    }
}

// Whether files for the recipe's users say these words, whatever else they refuse.
static bool is_written(struct arena scratch, const struct batch_story *s, struct str words)
{
    enum target target = target_of_recipe(recipe_words[s->job->recipe]);
    struct job *job = NEW(&scratch, struct job, 1);
    struct error e = {0};
    struct str all = str_format(&scratch, "%.*s%sfor=%s", STR_ARGS(words), words.n ? " " : "",
                                target_defs[target].name);
    return s->job->target || !target ||
           (job_with(job, &scratch, s, all, &e) && plan_can_write(scratch, job, &e));
}

// That ranks share a sequence as nobody asked is told of where it runs.
static bool is_shared_in_vain(struct arena scratch, const struct batch_story *s,
                              const struct batch_row *row)
{
    struct batch_row alone = *row;
    alone.cp = s->job->ring;
    alone.sp = s->job->ulysses;
    bool shared = row->cp != alone.cp || row->sp != alone.sp;
    return shared && !is_written(scratch, s, batch_words(&scratch, row)) &&
           is_written(scratch, s, batch_words(&scratch, &alone));
}

static void predict_row(void *context, ptrdiff_t index, struct arena scratch)
{
    struct batch_story *s = context;
    struct batch_row *row = &s->rows[index];
    struct job *job = NEW(&scratch, struct job, 1);
    struct split split = {row->batch, row->accum, row->data_parallel};
    struct str words = batch_words(&scratch, row);
    row->possible =
        !is_shared_in_vain(scratch, s, row) && job_with(job, &scratch, s, words, &row->refusal);
    if (s->counts_only) {
        row->training = training_time_of(&s->data, s->job->recipe, split, job_ranks(s->job), 0);
        return;
    }
    row->possible = row->possible && job_is_modelled(job, &row->refusal) &&
                    plan_predict(&row->prediction, scratch, job, &row->refusal);
    if (row->possible && s->data.size)
        row->training = training_time_of(&s->data, job->recipe, split, job_ranks(job),
                                         row->prediction.time.seconds);
}

// Impossible ones are dropped: that a framework cannot share sequences is no news.
static void drop_refused(struct batch_story *s)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < s->row_count; i++)
        if (s->rows[i].possible)
            s->rows[kept++] = s->rows[i];
    s->row_count = kept;
}

static bool is_better(const struct batch_row *row, const struct batch_row *than)
{
    if (row->prediction.time.unknown)
        return row->batch > than->batch;
    return row->prediction.time.seconds < than->prediction.time.seconds;
}

static void choose(struct batch_story *s)
{
    for (ptrdiff_t i = 0; !s->counts_only && i < s->row_count; i++) {
        const struct batch_row *row = &s->rows[i];
        if (row->prediction.verdict.grade == GRADE_SAFE && (!s->best || is_better(row, s->best)))
            s->best = row;
    }
}

static bool is_safe(struct arena scratch, const struct batch_story *s, uint64_t batch,
                    uint64_t least_accum)
{
    struct job *job = NEW(&scratch, struct job, 1);
    struct prediction *p = NEW(&scratch, struct prediction, 1);
    struct error e = {0};
    uint64_t each = u64_divide_up(s->global_batch, s->ranks);
    uint64_t accum = least_accum == 1 ? 1 : u64_most(SEVERAL, u64_divide_up(each, batch));
    struct str words = str_format(&scratch, "batch=%llu accum=%llu", (unsigned long long)batch,
                                  (unsigned long long)accum);
    return job_with(job, &scratch, s, words, &e) && job_is_modelled(job, &e) &&
           varied_read(job, &scratch, &e) && predict_memory(p, &scratch, job, &e) &&
           p->verdict.grade == GRADE_SAFE;
}

// Of as many micro-batches a step as make up the global batch, but of so many at least, so that it
// says of a larger one, too: doubled while it is safe, then between the last that was and the first
// that was not.
static uint64_t largest_of(const struct batch_story *s, struct arena scratch, uint64_t least_accum)
{
    uint64_t safe = 0, not_safe = s->job->batch;
    while (not_safe <= MOST_BATCH && is_safe(scratch, s, not_safe, least_accum)) {
        safe = not_safe;
        not_safe *= 2;
    }
    not_safe = u64_least(not_safe, MOST_BATCH + 1);
    while (safe && not_safe - safe > 1) {
        uint64_t middle = safe + (not_safe - safe) / 2;
        if (is_safe(scratch, s, middle, least_accum))
            safe = middle;
        else
            not_safe = middle;
    }
    return safe;
}

// Batches of the Trainer's own size unless one is given, each on every rank.
static void find_evaluation(struct batch_story *s, struct arena scratch)
{
    struct evaluation *v = &s->evaluation;
    struct job *job = NEW(&scratch, struct job, 1);
    struct prediction *p = NEW(&scratch, struct prediction, 1);
    struct error e = {0};
    if (!v->size || !s->best)
        return;
    v->batch = s->job->evaluation_batch ? s->job->evaluation_batch : USUAL_EVALUATION_BATCH;
    struct str words = batch_words(&scratch, s->best);
    words =
        str_format(&scratch, "%.*s eval-batch=%llu", STR_ARGS(words), (unsigned long long)v->batch);
    if (!job_with(job, &scratch, s, words, &e) || !job_is_modelled(job, &e) ||
        !predict_fit(p, &scratch, job, &e) || !real_time_find(&p->time, scratch, job, &e) ||
        p->time.unknown)
        return;
    uint64_t shared = job->recipe == RECIPE_TRL ? job->ulysses : job->ring * job->ulysses;
    v->batches = u64_divide_up(v->size, v->batch * (job_ranks(job) / shared));
    double shorter = p->time.mean_tokens > 0 ? p->time.seconds / p->time.longest : 1;
    v->seconds = (double)v->batches * p->evaluation_seconds * shorter;
    v->times = v->every && s->data.size ? s->best->training.steps / v->every : 0;
}

// Multiples of what a step has at least, and of the answers to a prompt where they are given.
static void find_nearest(struct batch_story *s)
{
    bool given = s->data.grouped && settings_find_z(s->settings, "samples");
    uint64_t answers = given ? s->data.answers : 1;
    s->least_rows = plan_fewest_rows(s->job);
    uint64_t each = sat_mul(s->ranks, s->least_rows), unit = each;
    while (unit % answers)
        unit += each;
    s->nearest_less = s->global_batch / unit * unit;
    s->nearest_more = s->nearest_less + unit;
}

bool batch_make(struct batch_story *s, struct arena *a, const struct settings *settings,
                const struct runner *runner, struct error *e)
{
    *s = (struct batch_story){.settings = settings, .job = NEW(a, struct job, 1)};
    if (!read_request(s, a, e))
        return false;
    list_rows(s, a);
    struct tasks tasks = {s->row_count, predict_row, s};
    runner_run(runner, *a, &tasks);
    drop_refused(s);
    choose(s);
    if (!s->row_count || s->global_batch % s->ranks)
        find_nearest(s);
    if (s->counts_only)
        return true;
    s->largest_batch = largest_of(s, *a, SEVERAL);
    s->largest_alone = largest_of(s, *a, 1);
    find_evaluation(s, *a);
    return true;
}
