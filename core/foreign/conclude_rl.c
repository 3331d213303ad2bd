// What verl and Trinity make of their files: the GPUs that train, and micro-batches out of totals
// and limits of tokens.
#include "core/foreign/conclude.h"

static uint64_t engine_gpus(struct conclusion *c, const char *prefix)
{
    static const char *const factors[] = {"engine_num", "tensor_parallel_size",
                                          "data_parallel_size", "pipeline_parallel_size"};
    uint64_t gpus = 1;
    for (ptrdiff_t i = 0; i < COUNT_OF(factors); i++) {
        struct str key = str_format(c->out->arena, "%s%s", prefix, factors[i]);
        uint64_t factor = 1;
        if (!count_of(c, &factor, settings_find(&c->found->facts, key)))
            return 0;
        gpus = sat_mul(gpus, factor);
    }
    return gpus;
}

static bool has_model(const struct conclusion *c, struct str prefix)
{
    for (ptrdiff_t i = 0; i < c->found->facts.count; i++)
        if (str_starts(c->found->facts.items[i].key, prefix))
            return true;
    return false;
}

// Trinity's engines and the models beside them have GPUs of their own, those of verl none.
bool conclude_gpus(struct conclusion *c)
{
    enum { MOST_MODELS = 64 };
    uint64_t nodes = 1, per_node = 0, beside = 0;
    const struct setting *open = fact(c, "cluster-gpus");
    open = is_open(open) ? open : fact(c, "cluster-nodes");
    if (is_open(open))
        return take_given_gpus(c, open);
    if (!fact_count(c, &nodes, "cluster-nodes") || !fact_count(c, &per_node, "cluster-gpus"))
        return false;
    uint64_t gpus = sat_mul(per_node, nodes);
    if (fact(c, "Trinity-RFT") && !fact_is(c, "mode", "train")) {
        beside = engine_gpus(c, "explorer.rollout_model.");
        for (int i = 0; i < MOST_MODELS; i++) {
            struct str prefix = str_format(c->out->arena, "explorer.auxiliary_models.%d.", i);
            if (has_model(c, prefix))
                beside = sat_add(beside, engine_gpus(c, str_z(c->out->arena, prefix)));
        }
    }
    uint64_t left = gpus > beside ? gpus - beside : 0;
    c->found->processes = left;
    c->found->machines = per_node && left > per_node && left % per_node == 0 ? left / per_node : 0;
    c->found->where = gpus ? fact(c, "cluster-gpus")->where : STR_NONE;
    conclude_ranks(c);
    return c->error->code == ERROR_NONE;
}

struct micro_batches {
    bool verl; // by itself, with defaults of its own
    uint64_t context, sp;
    uint64_t groups;    // that share sequences; 0: not known
    uint64_t sequences; // of one group in a step; 0: not known
    uint64_t tokens;    // the limit of one micro-batch, over its group
    uint64_t batch, count;
};

// verl counts the micro-batches by the limit and evens them out (utils/seqlen_balancing.py).
static void cut(struct micro_batches *m, uint64_t sequences, uint64_t tokens)
{
    m->count = u64_divide_up(sat_mul(sequences, m->context), tokens);
    m->batch = u64_divide_up(sequences, m->count);
}

// What only files have: answers a prompt, and how the two share the context, unless a quarter is
// the prompt's, as where nobody says. Of rows that the user says are shorter each has its share.
static bool put_rollout(struct conclusion *c, uint64_t prompt, uint64_t response)
{
    const struct setting *said = fact(c, "prompt"), *answers = fact(c, "answers");
    uint64_t longest = sat_add(prompt, response), context = longest;
    bool usual = prompt == longest / 4;
    if (!count_of(c, &context, settings_find_z(c->given, "context")))
        return false;
    if (prompt && context > 1 && context < longest) {
        prompt = sat_mul(context, prompt) / longest;
        prompt = prompt ? prompt : 1;
    }
    return (!answers || put(c, "samples", answers->value, answers->where)) &&
           (usual || !prompt || !response || put_count(c, "prompt", prompt, said->where));
}

static bool read_sequences(struct conclusion *c, struct micro_batches *m)
{
    uint64_t prompts = 0, answers = 1, sequences = 0, prompt = 0, response = 0;
    const struct setting *sp = fact(c, "actor-sp"), *strategy = fact(c, "actor-strategy");
    if ((sp && !put(c, "sp", sp->value, sp->where)) ||
        (strategy && !put(c, "strategy", strategy->value, strategy->where)) ||
        !fact_count(c, &prompt, "prompt") || !fact_count(c, &response, "response") ||
        !fact_count(c, &prompts, "prompts") || !fact_count(c, &answers, "answers") ||
        !fact_count(c, &sequences, "sequences"))
        return false;
    if (prompt && response &&
        !(settings_find_z(c->out, "context") ||
          put_count(c, "context", prompt + response, fact(c, "prompt")->where)))
        return false;
    if (!put_rollout(c, prompt, response))
        return false;
    m->sp = 1;
    if (!count_of(c, &m->sp, effective(c, "sp")) ||
        !count_of(c, &m->context, effective(c, "context")))
        return false;
    m->sp = m->sp ? m->sp : 1;
    m->groups = c->ranks / m->sp;
    sequences = sequences ? sequences : sat_mul(prompts, answers);
    m->sequences = m->groups ? u64_divide_up(sequences, m->groups) : 0;
    return true;
}

// The limit of dynamic batches; where the file has none, two sequences, or verl's 16384 tokens.
static bool read_limit(struct conclusion *c, struct micro_batches *m)
{
    const struct setting *limit = fact(c, "actor-limit");
    limit = limit ? limit : fact(c, "limit");
    uint64_t tokens = m->verl ? 16384 : u64_divide_up(sat_mul(2, m->context), m->sp);
    if (!count_of(c, &tokens, limit))
        return false;
    m->tokens = sat_mul(tokens, m->sp);
    if (limit && !m->verl && m->tokens < sat_mul(2, m->context))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: Trinity-RFT before 0.5.1 raises this to two sequences",
                                STR_ARGS(limit->where)));
    m->tokens = m->tokens < m->context ? m->context : m->tokens;
    return true;
}

// Sequences of a micro-batch that has a fixed number of them: a GPU's, or of all groups.
static bool read_fixed(struct conclusion *c, const struct micro_batches *m, uint64_t *micro,
                       const char *names[2])
{
    const struct setting *each = fact(c, names[0]), *all = fact(c, names[1]);
    *micro = 1;
    if (!count_of(c, micro, all ? all : each))
        return false;
    if (all && m->groups)
        *micro /= m->groups;
    return *micro || FAIL(c->error, BAD_INPUT, all ? all->where : each->where,
                          "a micro-batch has at least one sequence of each GPU");
}

static bool is_dynamic(const struct conclusion *c, const char *own, const char *shared,
                       bool fallback)
{
    const char *name = fact(c, own) ? own : shared;
    return fact(c, name) ? !fact_is(c, name, "false") : fallback;
}

// Where real rows are so few tokens that all of a mini-batch are below the limit.
static void note_short_rows(struct conclusion *c, const struct micro_batches *m, struct str where)
{
    enum { SHORTER = 4 }; // as real rows often are
    uint64_t filled = m->sequences ? m->tokens / m->sequences : 0;
    if (m->verl && filled < m->context && sat_mul(SHORTER, filled) > m->context &&
        !settings_find_z(c->given, "context"))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: predicted with rows as long as they may be; a mini-batch "
                                "fills this limit from %llu tokens a row on average: --context "
                                "says how long yours are",
                                STR_ARGS(where), (unsigned long long)filled));
}

// Rows are cut to their tokens (use_remove_padding), and real ones are seldom as long as allowed.
static void note_longest_rows(struct conclusion *c, const struct micro_batches *m, struct str where)
{
    if (m->verl && m->batch > 1 && !settings_find_z(c->given, "context"))
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: predicted with rows as long as they may be, %llu x %llu "
                                "tokens a micro-batch; --context says how long yours are on "
                                "average",
                                STR_ARGS(where), (unsigned long long)m->batch,
                                (unsigned long long)m->context));
}

static bool conclude_policy(struct conclusion *c, struct micro_batches *m)
{
    enum { USUAL = 8 }; // sequences of a group in the published test
    static const char *names[] = {"actor-micro", "actor-micro-all"};
    uint64_t micro = 1, sequences = m->sequences ? m->sequences : USUAL;
    bool dynamic = is_dynamic(c, "actor-dynamic", "dynamic", !m->verl);
    if (!read_fixed(c, m, &micro, names))
        return false;
    const struct setting *task = settings_find_z(c->out, "task");
    uint64_t rows = task && str_is(task->value, "dpo") ? 2 : 1; // of a pair, which files count
    cut(m, sat_mul(sequences, rows), dynamic ? m->tokens : sat_mul(micro, m->context));
    const struct setting *said = dynamic ? fact(c, "actor-limit") : fact(c, "actor-micro");
    said = said ? said : fact(c, "limit");
    said = said ? said : fact(c, "sequences");
    said = said ? said : fact(c, m->verl ? "verl" : "Trinity-RFT");
    if (dynamic)
        note_short_rows(c, m, said->where);
    else
        note_longest_rows(c, m, said->where);
    return put_count(c, "batch", u64_divide_up(m->batch, rows), said->where) &&
           put_count(c, "accum", m->count, said->where);
}

static bool conclude_reference(struct conclusion *c, const struct micro_batches *policy)
{
    static const char *names[] = {"ref-micro", "ref-micro-all"};
    struct micro_batches m = *policy;
    const struct setting *limit = fact(c, "ref-limit"), *sp = fact(c, "ref-sp");
    const struct setting *strategy = fact(c, "ref-strategy"), *own = effective(c, "strategy");
    uint64_t micro = 1, tokens = 0, size = m.sp;
    bool shared = is_dynamic(c, m.verl ? "actor-dynamic" : "dynamic", "dynamic", !m.verl);
    bool dynamic = is_dynamic(c, "ref-dynamic", "ref-dynamic", shared);
    if (!read_fixed(c, &m, &micro, names) || !count_of(c, &tokens, limit) ||
        !count_of(c, &size, sp))
        return false;
    if (size != m.sp || (strategy && own && !str_equal(strategy->value, own->value)))
        return FAIL(c->error, UNSUPPORTED, size != m.sp ? sp->where : strategy->where,
                    "the reference model is modelled with the policy's strategy and sp only");
    tokens = tokens ? sat_mul(tokens, m.sp) : m.tokens;
    tokens = dynamic ? (tokens < m.context ? m.context : tokens) : sat_mul(micro, m.context);
    cut(&m, sat_mul(policy->batch, policy->count), tokens);
    if (m.batch == policy->batch && m.count == policy->count)
        return true;
    const struct setting *said = dynamic ? limit : fact(c, "ref-micro");
    said = said ? said : fact(c, m.verl ? "verl" : "Trinity-RFT");
    return put_count(c, "log-prob-max-token-len", u64_divide_up(tokens, m.sp), said->where);
}

static bool says_batches(const struct conclusion *c)
{
    static const char *const names[] = {
        "sequences", "prompts",     "limit",           "actor-limit",   "ref-limit",
        "dynamic",   "actor-micro", "actor-micro-all", "actor-dynamic", "ref-dynamic"};
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++)
        if (fact(c, names[i]))
            return true;
    return false;
}

// A file without its algorithm is a piece of one: Trinity's default and verl's have a critic.
static bool conclude_algorithm(struct conclusion *c)
{
    const struct setting *trinity = fact(c, "Trinity-RFT"), *verl = fact(c, "verl");
    const struct setting *file = trinity ? trinity : verl;
    if (settings_find_z(c->out, "task"))
        return true;
    foreign_note(c->found,
                 str_format(c->out->arena,
                            "%.*s: no algorithm is named: read as grpo (%s would train with a "
                            "critic, which is not modelled)",
                            STR_ARGS(str_cut(file->where, ':').head),
                            trinity ? "Trinity-RFT" : "verl"));
    return put(c, "task", STR("grpo"), file->where);
}

// Shards over fewer GPUs than there are would be replicated.
static bool check_shards(struct conclusion *c)
{
    const struct setting *size = fact(c, "fsdp-size");
    uint64_t gpus = 0;
    if (!size || str_is(size->value, "-1"))
        return true;
    if (!count_of(c, &gpus, size))
        return false;
    return (gpus && gpus == c->ranks) || FAIL(c->error, UNSUPPORTED, size->where, NO_REPLICAS);
}

// What verl does where it is told nothing, or is told elsewhere.
static bool conclude_verl(struct conclusion *c)
{
    const struct setting *verl = fact(c, "verl"), *tree = fact(c, "hydra-file");
    const struct setting *parked = fact(c, "parked"), *offload = effective(c, "offload");
    if (tree && !fact(c, "hydra-tree"))
        return FAIL(c->error, UNSUPPORTED, tree->where,
                    "what the command does not say is in Hydra's file '%.*s': give it to --from "
                    "before this one",
                    STR_ARGS(str_short(tree->value)));
    if (parked && !offload)
        foreign_note(c->found, str_format(c->out->arena,
                                          "%.*s: an update has parameters and optimizer on the "
                                          "card: predicted without offload",
                                          STR_ARGS(parked->where)));
    // trainer/config/actor/dp_actor.yaml: strategy: fsdp
    return check_shards(c) && put_unless_there(c, "strategy", STR("fsdp1"), verl->where);
}

// A whole command has verl's own values where it says nothing (trainer/config/ppo_trainer.yaml and
// data/legacy_data.yaml of 0.7).
static bool fill_in_defaults(struct conclusion *c)
{
    static const struct {
        const char *name, *value;
    } rows[] = {{"cluster-gpus", "8"}, {"cluster-nodes", "1"}, {"prompts", "256"},
                {"answers", "1"},      {"prompt", "512"},      {"response", "512"}};
    const struct setting *command = fact(c, "verl-program");
    for (ptrdiff_t i = 0; command && i < COUNT_OF(rows); i++) {
        struct setting item = {str_from(rows[i].name), str_from(rows[i].value), command->where};
        if (!fact(c, rows[i].name) && !settings_set(&c->found->facts, item, c->error))
            return false;
        command = fact(c, "verl-program"); // the list may have moved
    }
    return true;
}

bool conclude_rl(struct conclusion *c)
{
    struct micro_batches m = {.verl = fact(c, "verl") != NULL};
    if (!m.verl && !fact(c, "Trinity-RFT"))
        return true;
    if (m.verl && !fill_in_defaults(c))
        return false;
    if (!conclude_algorithm(c) || !conclude_gpus(c) || !read_sequences(c, &m))
        return false;
    if (m.verl && !conclude_verl(c))
        return false;
    if (!m.context || !says_batches(c))
        return true;
    return read_limit(c, &m) && conclude_policy(c, &m) && conclude_reference(c, &m);
}
