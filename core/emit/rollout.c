// Generation beside training: how a context is shared by prompt and answer, how many answers a
// prompt gets, what a step has, and over how many GPUs an engine spreads the model.
#include "core/base/num.h"
#include "core/emit/draft.h"

enum {
    USUAL_SAMPLES = 8,
    PUBLISHED_PROMPT = 2048, // of Trinity's capacity test
};

static bool read_count(uint64_t *value, const struct setting *item, struct error *e)
{
    const struct setting_def *def = item ? setting_def_find(item->key) : NULL;
    return !item || setting_number(value, item, UNIT_COUNT, (struct range){def->min, def->max}, e);
}

static bool is_too_long(const struct draft *j, const struct setting *part, uint64_t tokens,
                        struct error *e)
{
    if (tokens < j->job->context)
        return false;
    FAIL(e, BAD_INPUT, part->where, "%.*s %llu leaves nothing of the context's %llu tokens",
         STR_ARGS(part->key), (unsigned long long)tokens, (unsigned long long)j->job->context);
    return true;
}

static uint64_t usual_prompt(const struct draft *j)
{
    bool published = draft_is(j, IS_CAPACITY, 0) && j->job->context / 2 >= PUBLISHED_PROMPT;
    return published ? PUBLISHED_PROMPT : j->job->context / 4;
}

// The sum is the context where no other was given (job.c), and is refused where one was.
bool draft_lengths(struct draft *j, struct error *e)
{
    uint64_t context = j->job->context;
    const struct setting *prompt = settings_find_z(j->settings, "prompt");
    const struct setting *response = settings_find_z(j->settings, "response");
    if (!read_count(&j->prompt, prompt, e) || !read_count(&j->response, response, e))
        return false;
    if (prompt && response && j->prompt + j->response != context)
        return FAIL(e, BAD_INPUT, response->where,
                    "prompt %llu and response %llu are not the context's %llu tokens",
                    (unsigned long long)j->prompt, (unsigned long long)j->response,
                    (unsigned long long)context);
    if ((prompt && is_too_long(j, prompt, j->prompt, e)) ||
        (response && is_too_long(j, response, j->response, e)))
        return false;
    if (!prompt)
        j->prompt = response ? context - j->response : usual_prompt(j);
    j->response = context - j->prompt;
    draft_count(j, "prompt", j->prompt);
    draft_count(j, "response", j->response);
    return true;
}

// Where nobody says: 8, 4 or 2; else the most below 8 that divide a step's answers, or all of them.
static uint64_t usual_samples(uint64_t answers)
{
    for (uint64_t samples = USUAL_SAMPLES; samples > 1; samples /= 2)
        if (answers % samples == 0)
            return samples;
    for (uint64_t samples = USUAL_SAMPLES; samples > 1; samples--)
        if (answers % samples == 0)
            return samples;
    return answers;
}

static bool find_samples(uint64_t *samples, const struct draft *j, struct error *e)
{
    const struct setting *given = settings_find_z(j->settings, "samples");
    *samples = draft_is(j, IS_CAPACITY, 0) ? j->sequences : usual_samples(j->sequences);
    if (!read_count(samples, given, e))
        return false;
    if (given && j->sequences % *samples)
        return FAIL(e, BAD_INPUT, given->where,
                    "%llu answers a prompt do not divide the %llu answers of a step",
                    (unsigned long long)*samples, (unsigned long long)j->sequences);
    bool compares = draft_is(j, IS_ROLLOUT, IS_CAPACITY | IS_OPD);
    return !compares || *samples > 1 ||
           FAIL(e, BAD_INPUT, given ? given->where : STR("--batch"),
                "this task compares at least two answers to a prompt; a step has %llu",
                (unsigned long long)j->sequences);
}

bool draft_has_samples(const struct draft *j, struct error *e)
{
    uint64_t samples;
    return !draft_is(j, IS_ROLLOUT, IS_CAPACITY | IS_OPD) || find_samples(&samples, j, e);
}

bool draft_samples(struct draft *j, struct error *e)
{
    uint64_t samples;
    if (!find_samples(&samples, j, e))
        return false;
    draft_count(j, "repeat_times", samples);
    draft_count(j, "prompts", j->sequences / samples);
    return true;
}

// ------------------------------------------------------------------ the engine

// Bytes of one GPU's share.
struct share {
    uint64_t tp, weights, keys, room;
};

static bool read_fraction(uint64_t *thousandths, const struct setting *item, struct error *e)
{
    struct str_cut c = str_cut(item->value, '.');
    uint64_t value = 0, digits = 0;
    bool ok = c.found && (str_is(c.head, "0") || !c.head.n) && c.tail.n;
    for (ptrdiff_t i = 0; i < c.tail.n && ok; i++) {
        ok = char_is_digit(c.tail.p[i]) && ++digits <= 3;
        value = value * 10 + (uint64_t)(c.tail.p[i] - '0');
    }
    for (; digits < 3; digits++)
        value *= 10;
    if (!ok || value < 50 || value > 980)
        return FAIL(e, BAD_INPUT, item->where,
                    "%.*s is the part of a GPU's memory that the engine gets, from 0.05 to 0.98, "
                    "not '%.*s'",
                    STR_ARGS(item->key), STR_ARGS(str_short(item->value)));
    *thousandths = value;
    return true;
}

// Keys and values of one sequence of full length in one of `tp` GPUs. A latent is not divided
// (vLLM's kv_cache_interface.py, sglang's pool_configurator.py); a layer with a window is counted
// as if it had none.
static uint64_t key_bytes(const struct draft *j, uint64_t tp)
{
    const struct model *m = &j->job->model;
    uint64_t heads = m->kv_heads > tp ? m->kv_heads / tp : 1;
    uint64_t token = model_has(m, FEATURE_MLA) ? m->latent.kv_rank + m->latent.rope_head_dim
                                               : 2 * heads * m->head_dim;
    return sat_mul(sat_mul(token, 2 * m->layers), j->job->context);
}

static struct share share_of(const struct draft *j, const struct generator *x, uint64_t tp)
{
    uint64_t memory = j->job->hardware.card.memory.value, room = memory / 1000 * x->thousandths;
    return (struct share){.tp = tp,
                          .weights = j->job->parameters.total / tp * 2,
                          .keys = key_bytes(j, tp),
                          .room = room > x->own ? room - x->own : 0};
}

static bool holds(const struct share *s)
{
    return s->weights <= s->room && s->keys <= s->room - s->weights;
}

static bool divides_model(const struct model *m, uint64_t tp)
{
    bool experts = !model_has(m, FEATURE_EXPERTS) || m->experts.intermediate % tp == 0;
    return m->heads % tp == 0 && (m->kv_heads % tp == 0 || tp % m->kv_heads == 0) && experts;
}

static bool is_size(const struct draft *j, const struct generator *x, uint64_t tp)
{
    return divides_model(&j->job->model, tp) && (!x->gpus || x->gpus % tp == 0) &&
           (x->node % tp == 0 || tp <= x->spare);
}

static void say_share(struct draft *j, const struct generator *x, const struct share *s)
{
    struct arena *a = j->arena;
    struct str weights = bytes_text(a, s->weights), keys = bytes_text(a, s->keys);
    struct str room = bytes_text(a, s->room + x->own), own = bytes_text(a, x->own);
    uint64_t sequences = (s->room - s->weights) / (s->keys ? s->keys : 1);
    draft_fact(j, "rollout_why",
               str_format(a,
                          "GPUs an engine: %llu. Each has %.*s of bf16 weights, %.*s of keys and "
                          "values a full sequence",
                          (unsigned long long)s->tp, STR_ARGS(weights), STR_ARGS(keys)));
    struct str itself =
        x->own ? str_format(a, "and %.*s for %s itself, ", STR_ARGS(own), x->name) : STR_NONE;
    draft_fact(j, "rollout_room",
               str_format(a, "%.*sin %.*s (%.*s of the card): room for %llu of them at once.",
                          STR_ARGS(itself), STR_ARGS(room),
                          STR_ARGS(draft_text(j, "rollout_memory")),
                          (unsigned long long)sequences));
}

static bool refuse_engine(const struct draft *j, const struct generator *x, const struct share *s,
                          struct error *e)
{
    struct arena *a = j->arena;
    struct str needs = bytes_text(a, sat_add(s->weights, s->keys)), room = bytes_text(a, s->room);
    const struct setting *given = settings_find_z(j->settings, "rollout-tp");
    FAIL(e, BAD_INPUT, given ? given->where : STR("--gpu"),
         "generation does not fit: over %llu GPU%s%s bf16 weights and one sequence's keys and "
         "values "
         "take %.*s of each, and %s %.*s leaves %.*s",
         (unsigned long long)s->tp, s->tp > 1 ? "s" : "",
         given ? "" : ", the most that divide the model,", STR_ARGS(needs), x->key,
         STR_ARGS(draft_text(j, "rollout_memory")), STR_ARGS(room));
    return HINT(e, "a shorter --context, larger cards or --rollout-memory give it room");
}

static bool choose_size(struct share *s, const struct draft *j, const struct generator *x,
                        struct error *e)
{
    const struct setting *given = settings_find_z(j->settings, "rollout-tp");
    uint64_t tp = 0, most = x->node > x->spare ? x->node : x->spare;
    if (!read_count(&tp, given, e))
        return false;
    if (given && !is_size(j, x, tp))
        return FAIL(e, BAD_INPUT, given->where,
                    "rollout-tp %llu must divide the %llu heads (and the %llu of keys and values, "
                    "or be a multiple of them) and the GPUs that generate, within a node",
                    (unsigned long long)tp, (unsigned long long)j->job->model.heads,
                    (unsigned long long)j->job->model.kv_heads);
    if (given) {
        *s = share_of(j, x, tp);
        return holds(s) || refuse_engine(j, x, s, e);
    }
    *s = share_of(j, x, 1);
    for (tp = 1; tp <= most && !holds(s); tp++)
        if (is_size(j, x, tp))
            *s = share_of(j, x, tp);
    return holds(s) || refuse_engine(j, x, s, e);
}

bool draft_engine(struct draft *j, struct generator x, struct error *e)
{
    const struct setting *given = settings_find_z(j->settings, "rollout-memory");
    struct share s;
    if (given && !read_fraction(&x.thousandths, given, e))
        return false;
    struct str digits = str_format(j->arena, "%03llu", (unsigned long long)x.thousandths);
    while (digits.n > 1 && str_ends(digits, STR("0")))
        digits = str_slice(digits, 0, digits.n - 1);
    draft_fact(j, "rollout_memory", str_join(j->arena, STR("0."), digits));
    if (!choose_size(&s, j, &x, e))
        return false;
    j->rollout_tp = s.tp;
    draft_count(j, "rollout_tp", s.tp);
    say_share(j, &x, &s);
    return true;
}

// A pair is two rows of a batch, of the preferred answer and of the rejected one.
void draft_step(struct draft *j)
{
    bool pairs = draft_is(j, IS_PAIRS, 0);
    uint64_t rows = sat_mul(j->sequences, pairs ? 2 : 1);
    unsigned long long count = j->sequences;
    draft_count(j, "sequences", j->sequences);
    draft_count(j, "rows", rows);
    draft_count(j, "micro_rows", sat_mul(j->job->batch, pairs ? 2 : 1));
    draft_fact(j, "step",
               pairs ? str_format(j->arena, "pairs a step: %llu, which are %llu rows", count,
                                  (unsigned long long)rows)
                     : str_format(j->arena, "%s a step: %llu",
                                  draft_is(j, IS_ROLLOUT, 0) ? "answers" : "sequences", count));
}

// What is decided without being asked for, as a sentence after the prediction's.
struct str draft_aside(const struct draft *j)
{
    struct buf out = buf_in(j->arena);
    unsigned long long prompt = j->prompt, response = j->response, pairs = j->sequences;
    bool given = settings_find_z(j->settings, "prompt") || settings_find_z(j->settings, "response");
    bool sized = settings_find_z(j->settings, "tp") && settings_find_z(j->settings, "cp");
    if (j->job->target == FOR_SLIME && !sized)
        buf_put_z(&out, " Megatron's sizes follow a rule of thumb that launch.sh states; nothing "
                        "says that they fit.");
    if (draft_is(j, IS_PAIRS, 0))
        buf_printf(&out, " A step has %llu pair%s, which %s %llu rows.", pairs,
                   pairs == 1 ? "" : "s", pairs == 1 ? "is" : "are", 2 * pairs);
    if (draft_is(j, IS_ROLLOUT, 0) && !given)
        buf_printf(&out,
                   " Prompts get %llu tokens of the context and answers %llu, unless --prompt or "
                   "--response says otherwise.",
                   prompt, response);
    return buf_str(&out);
}
