// What differs between the versions of transformers that a step can stand on, each with its source.
#include "core/job/job.h"

// Which transformers the step stands on, where that makes a difference: 445 is 4.45.
enum { TRANSFORMERS_5 = 500 };

static int transformers_of(const struct job *p)
{
    const int trainers[] = {441, 442, 445, 446, 448, 449, 457},
              factories[] = {446}; // versions of recipe.c
    if (p->recipe == RECIPE_TRANSFORMERS && p->version < COUNT_OF(trainers))
        return trainers[p->version];
    if (p->recipe == RECIPE_LLAMAFACTORY && p->version < COUNT_OF(factories))
        return factories[p->version];
    return TRANSFORMERS_5;
}

static bool is_family(const struct job *p, const char *type)
{
    return str_is(str_from(p->model.family->model_type), type);
}

bool job_stands_on_4(const struct job *p)
{
    return transformers_of(p) < TRANSFORMERS_5;
}

bool job_shifts_logits(const struct job *p)
{
    return transformers_of(p) < 449;
}

// modeling_gpt_bigcode.py of 4.45 and 4.48.1: its loss casts nothing, and checkpointing does not
// turn its cache off, so that keys and values are handed out, views of what they were made with.
bool job_is_old_bigcode(const struct job *p)
{
    return job_shifts_logits(p) && is_family(p, "gpt_bigcode");
}

bool job_casts_logits_in_place(const struct job *p)
{
    return transformers_of(p) < 446;
}

// modeling_llama.py of 4.46.1, LlamaSdpaAttention, and integrations/sdpa_attention.py of 4.48 to
// 4.53 (4.57 leaves it to the kernel); for the package flash-attn too modeling_mistral.py
// of 4.45.2 modeling_mixtral.py of 4.47.1 and modeling_qwen2.py of 4.46.1.
bool job_repeats_heads(const struct job *p)
{
    bool package = job_attends_by_package(p) && transformers_of(p) < 448 &&
                   words_have("mistral|mixtral|qwen2", '|', str_from(p->model.family->model_type));
    return package || (transformers_of(p) < 454 && job_attention(p) == ATTENTION_SDPA);
}

bool job_lays_heads_out(const struct job *p)
{
    return job_repeats_heads(p) && job_attention(p) == ATTENTION_SDPA &&
           (job_masks_rows(p) || transformers_of(p) >= 448);
}

// _set_cos_sin_cache in the modeling files of 4.41 to 4.48: every layer has cosines and sines of
// all positions, up to the version before.
bool job_caches_positions(const struct job *p)
{
    static const struct {
        const char *families;
        int until;
    } rows[] = {{"mistral", 442}, {"qwen2|qwen2_moe|starcoder2", 445}, {"mixtral", 448}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (words_have(rows[i].families, '|', str_from(p->model.family->model_type)))
            return transformers_of(p) < rows[i].until;
    return false;
}
