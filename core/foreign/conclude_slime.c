// What slime makes of its arguments: the model without what its rollout packs it by, the GPUs that
// train, recomputation, and micro-batches that are filled up to a limit of tokens
// (slime/utils/dp_schedule.py).
#include "core/foreign/conclude.h"

// The checkpoint is what sglang loads; Megatron trains in bf16 what was converted beside it.
static bool conclude_checkpoint(struct conclusion *c)
{
    const struct setting *said = fact(c, "checkpoint");
    if (!said || settings_find_z(c->out, "model")) // emit's script names it
        return true;
    struct str name = known_part(said->value), packed = STR("-FP8");
    if (str_ends(name, packed))
        name.n -= packed.n;
    struct setting model = {STR("model"), name, said->where};
    return (effective(c, "model") || foreign_is_plain(&model, c->error)) &&
           put(c, "model", name, said->where);
}

// Megatron's defaults where slime is told nothing (megatron/training/arguments.py).
static bool conclude_defaults(struct conclusion *c, struct str where)
{
    uint64_t tp = 1;
    bool dropped = !fact(c, "attention-dropout") || !fact(c, "hidden-dropout");
    if (!count_of(c, &tp, effective(c, "tp")))
        return false;
    if (dropped)
        return FAIL(c->error, UNSUPPORTED, where,
                    "Megatron's dropout is 0.1 unless --attention-dropout 0.0 and "
                    "--hidden-dropout 0.0 are there, which is not modelled");
    if (tp > 1 && !fact(c, "sequence-parallel"))
        return FAIL(c->error, UNSUPPORTED, where,
                    "tensor parallel is modelled with --sequence-parallel");
    if (fact(c, "experts") && !(fact(c, "grouped") && fact(c, "fused-permutation")))
        return FAIL(c->error, UNSUPPORTED, where,
                    "experts are modelled with --moe-grouped-gemm and --moe-permute-fusion");
    return put_unless_there(c, "attention", STR("auto"), where) &&
           put_unless_there(c, "tp", STR("1"), where) && put_unless_there(c, "cp", STR("1"), where);
}

// Of "uniform" in pieces of one layer all are recomputed, of "block" the first so many.
static bool conclude_recomputed(struct conclusion *c, struct str where)
{
    const struct setting *layers = fact(c, "recompute-layers"), *said = fact(c, "recompute");
    uint64_t each = 1;
    if (!said)
        return put(c, "checkpointing", STR("off"), where);
    if (!count_of(c, &each, layers))
        return false;
    if (fact_is(c, "recompute", "selective"))
        return put(c, "checkpointing", STR("selective"), said->where);
    if (fact_is(c, "recompute-method", "block"))
        return put_count(c, "checkpointing", each, layers ? layers->where : said->where);
    if (!fact(c, "recompute-method") || each != 1)
        return FAIL(c->error, UNSUPPORTED, layers ? layers->where : said->where,
                    "recomputation is modelled one layer at a time: --recompute-method uniform "
                    "--recompute-num-layers 1");
    return put(c, "checkpointing", STR("on"), said->where);
}

static bool conclude_algorithm(struct conclusion *c, struct str where)
{
    const struct setting *opd = fact(c, "opd"), *estimator = fact(c, "estimator");
    const struct setting *supervised = fact(c, "supervised");
    if (opd)
        return put(c, "task", STR("opd"), opd->where);
    if (supervised)
        foreign_note(c->found, str_format(c->out->arena,
                                          "%.*s: slime's supervised loss takes what its policy "
                                          "gradient takes, and is predicted as that",
                                          STR_ARGS(supervised->where)));
    return put(c, "task", STR("grpo"), estimator ? estimator->where : where);
}

struct samples {
    uint64_t tokens;  // of a micro-batch, over its context parallel ranks; 0: by their number
    uint64_t context; // of the longest sample
    uint64_t cp;
    uint64_t count; // of one data parallel rank in an update; 0: not known
};

// Samples of other lengths fill a micro-batch to its last token, of the longest only so many fit.
static bool fills(const struct samples *s, uint64_t longest)
{
    return s->tokens > longest && (!longest || s->tokens % longest >= s->cp);
}

// The longest sample is the context that sglang may reach; where only answers are limited, as in
// most scripts, a micro-batch's limit of tokens has to hold it, and is what is predicted.
static bool conclude_context(struct conclusion *c, struct samples *s)
{
    uint64_t prompt = 0, response = 0, longest = 0;
    const struct setting *said = fact(c, "longest"), *answers = fact(c, "response");
    const struct setting *limit = fact(c, "limit");
    if (effective(c, "context"))
        return count_of(c, &s->context, effective(c, "context"));
    if (!fact_count(c, &prompt, "prompt") || !fact_count(c, &response, "response") ||
        !count_of(c, &longest, said))
        return false;
    if (!longest && prompt && response)
        longest = prompt + response;
    bool open = !longest;
    if (fills(s, open ? response : longest) || (open && s->tokens > response)) {
        foreign_note(c->found,
                     str_format(c->out->arena,
                                "%.*s: predicted with micro-batches that are full, %llu tokens%s",
                                STR_ARGS(limit->where), (unsigned long long)s->tokens,
                                open ? "; nothing else limits a sample" : ""));
        longest = s->tokens;
    }
    if (!longest)
        return FAIL(c->error, UNSUPPORTED, answers ? answers->where : fact(c, "slime")->where,
                    "nothing limits samples, and one may be longer than "
                    "--max-tokens-per-gpu: --context says how long the longest is");
    s->context = longest;
    said = said ? said : answers;
    return put_count(c, "context", longest, (said ? said : limit)->where);
}

static bool count_samples(struct conclusion *c, struct samples *s)
{
    uint64_t all = 0, prompts = 0, answers = 1, updates = 1, tp = 1, pp = 1;
    s->cp = 1;
    if (!fact_count(c, &all, "sequences") || !fact_count(c, &prompts, "prompts") ||
        !fact_count(c, &answers, "answers") || !fact_count(c, &updates, "updates") ||
        !count_of(c, &tp, effective(c, "tp")) || !count_of(c, &pp, effective(c, "pp")) ||
        !count_of(c, &s->cp, effective(c, "cp")) || !fact_count(c, &s->tokens, "limit"))
        return false;
    if (!all && updates)
        all = sat_mul(prompts, answers) / updates;
    uint64_t copies = sat_mul(sat_mul(tp, pp), s->cp);
    uint64_t ranks = copies && c->ranks > copies ? c->ranks / copies : 1;
    s->count = u64_divide_up(all, ranks);
    s->tokens = fact(c, "dynamic") ? sat_mul(s->tokens, s->cp) : 0;
    return true;
}

static bool conclude_batches(struct conclusion *c)
{
    const struct setting *limit = fact(c, "limit"), *micro = fact(c, "micro");
    const struct setting *said = fact(c, "dynamic") ? limit : micro;
    struct samples s = {0};
    uint64_t batch = 1;
    if (!count_samples(c, &s) || !conclude_context(c, &s))
        return false;
    if (fact(c, "dynamic") && !limit)
        return FAIL(c->error, BAD_INPUT, fact(c, "dynamic")->where,
                    "--use-dynamic-batch-size needs --max-tokens-per-gpu beside it");
    if (!fact(c, "dynamic") && !count_of(c, &batch, micro))
        return false;
    if (s.tokens && s.context)
        batch = s.tokens / s.context;
    batch = batch ? batch : 1;
    struct str where = said ? said->where : fact(c, "slime")->where;
    return put_count(c, "batch", batch, where) &&
           (!s.count || put_count(c, "accum", u64_divide_up(s.count, batch), where));
}

bool conclude_slime(struct conclusion *c)
{
    const struct setting *slime = fact(c, "slime"), *sourced = fact(c, "model-script");
    if (!slime)
        return true;
    if (sourced && !fact(c, "megatron-layers") && !settings_find_z(c->out, "model"))
        return FAIL(c->error, UNSUPPORTED, sourced->where,
                    "what matters is in '%.*s': give it to --from too",
                    STR_ARGS(str_short_path(sourced->value)));
    struct str where = str_cut(slime->where, ':').head;
    return conclude_checkpoint(c) && conclude_gpus(c) && conclude_defaults(c, where) &&
           conclude_recomputed(c, where) && conclude_algorithm(c, where) && conclude_batches(c);
}
