// From a job to the facts that files are filled with.
#include "core/emit/draft.h"

#include "core/base/num.h"

bool draft_is(const struct draft *j, trait_set when, trait_set unless)
{
    return (j->traits & when) == when && !(j->traits & unless);
}

// Every setting that the table binds to a field, by its name.
static void take_settings(struct draft *j)
{
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        if (def->field.size)
            draft_fact(j, def->name, job_value(j->arena, j->job, def));
}

// Texts that become words of a command must not look like options.
static bool take_text(struct draft *j, const char *name, const char *fallback, struct error *e)
{
    const struct setting *item = settings_find_z(j->settings, name);
    if (item && str_starts(item->value, STR("-")))
        return FAIL(e, BAD_INPUT, item->where, "%s must not begin with a dash", name);
    draft_fact(j, name, item ? item->value : str_from(fallback));
    return true;
}

static bool take_count(uint64_t *value, struct draft *j, const char *name, struct error *e)
{
    const struct setting *item = settings_find_z(j->settings, name);
    const struct setting_def *def = setting_def_find(str_from(name));
    if (item && !setting_number(value, item, UNIT_COUNT, (struct range){def->min, def->max}, e))
        return false;
    draft_count(j, name, *value);
    return true;
}

// context / max_position, rounded up to four decimals.
static struct str yarn_factor(const struct draft *j)
{
    uint64_t scaled = u64_divide_up(sat_mul(j->job->context, 10000), j->job->model.max_position);
    return str_format(j->arena, "%llu.%04llu", (unsigned long long)(scaled / 10000),
                      (unsigned long long)(scaled % 10000));
}

static void take_model(struct draft *j)
{
    struct str weights = model_weights_place(j->arena, j->settings, "model");
    struct str name = str_cut_last(weights, '/').found ? str_cut_last(weights, '/').tail : weights;
    draft_fact(j, "weights", weights);
    draft_fact(j, "teacher", model_weights_place(j->arena, j->settings, "teacher"));
    const char *wrapped = job_wrapped_classes(j->job);
    draft_fact(j, "wrapped", wrapped ? str_from(wrapped) : STR_NONE);
    draft_fact(j, "name", name.n ? name : STR("model"));
    bool third = j->job->attention == ATTENTION_FLASH3; // eager and flash2 are traits
    draft_fact(j, "attn_implementation", third ? STR("flash_attention_3") : STR("sdpa"));
    bool longer = draft_is(j, IS_YARN, 0);
    draft_fact(j, "model", longer ? STR("model-yarn") : weights);
    draft_fact(j, "yarn_factor", longer ? yarn_factor(j) : STR_NONE);
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"max_position", j->job->model.max_position},
        {"layers", j->job->model.layers},
        {"hidden", j->job->model.hidden},
        {"intermediate", j->job->model.intermediate},
        {"heads", j->job->model.heads},
        {"kv_heads", j->job->model.kv_heads},
        {"head_dim", j->job->model.head_dim},
        {"vocab", j->job->model.vocab},
        {"experts", j->job->model.experts.count},
        {"experts_per_token", j->job->model.experts.per_token},
        {"expert_intermediate", j->job->model.experts.intermediate},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(counts); i++)
        draft_count(j, counts[i].name, counts[i].value);
}

struct str draft_adapted(const struct draft *j, const char *between)
{
    struct buf out = buf_in(j->arena);
    struct words names = words_of(str_z(j->arena, draft_text(j, "lora-targets")), ',');
    while (words_next(&names))
        buf_printf(&out, "%s%.*s_proj", out.n ? between : "", STR_ARGS(names.word));
    return buf_str(&out);
}

struct str draft_whole(const struct draft *j)
{
    static const struct {
        const char *families, *modules[2]; // in the order of enum whole_module
    } rows[] = {{"gpt_neox", {"embed_in", "embed_out"}},
                {"gpt2|gpt_bigcode|gptj|mpt", {"wte", "lm_head"}},
                {"bloom|falcon", {"word_embeddings", "lm_head"}},
                {NULL, {"embed_tokens", "lm_head"}}};
    struct buf out = buf_in(j->arena);
    struct str family = str_from(j->job->model.family->model_type);
    int at = 0;
    while (rows[at].families && !words_have(rows[at].families, '|', family))
        at++;
    for (int i = 0; i < COUNT_OF(rows[at].modules); i++)
        if (j->job->lora_whole & 1u << i)
            buf_printf(&out, "%s%s", out.n ? "," : "", rows[at].modules[i]);
    return buf_str(&out);
}

static void take_spread(struct draft *j)
{
    const struct job *job = j->job;
    uint64_t replicas = job_ranks(job) / (job->ulysses * job->ring * job->tensor * job->pipeline);
    j->sequences = sat_mul(sat_mul(job->batch, job->accumulation), replicas);
    j->traits |= j->rollout_gpus ? IS_APART : 0;
    draft_count(j, "gpus", job_ranks(job));
    draft_count(j, "nodes", job->hardware.nodes);
    draft_count(j, "gpus_per_node", job->hardware.gpus_per_node);
    draft_count(j, "replicas", replicas);
    draft_count(j, "dp_shard", replicas / job->replicas);
    draft_step(j);
    draft_count(j, "pad", job->ulysses > 1 ? job->ulysses : 2 * job->ring);
    draft_fact(j, "gpu", str_from(job->hardware.card.name));
}

static bool take_texts(struct draft *j, struct error *e)
{
    j->traits |= settings_find_z(j->settings, "dataset") ? 0 : IS_NO_DATASET;
    return take_text(j, "model", "", e) && take_text(j, "nvme", "", e) &&
           take_text(j, "dataset", "", e) && take_text(j, "teacher", "", e) &&
           take_text(j, "save-to", "checkpoints", e);
}

bool draft_from_job(struct draft *j, struct arena *a, const struct job *job, struct error *e)
{
    *j = (struct draft){.arena = a,
                        .job = job,
                        .settings = job->given,
                        .traits = job->traits,
                        .tp = job->tensor,
                        .cp = job->ring};
    take_settings(j);
    if (!take_texts(j, e) || !take_count(&j->rollout_gpus, j, "rollout", e) || !draft_lengths(j, e))
        return false;
    take_spread(j);
    take_model(j);
    draft_needs(j);
    return true;
}
