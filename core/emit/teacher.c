// The teacher of a distillation: how many GPUs its bf16 weights need, with room for keys and
// values.
#include "core/emit/draft.h"

enum { WEIGHTS_PERCENT = 70 }; // of the card, as most; the rest is for keys, values and the engine

static bool heads_allow(const struct model *m, uint64_t gpus)
{
    return m->heads % gpus == 0 && (m->kv_heads % gpus == 0 || gpus % m->kv_heads == 0);
}

bool draft_teacher(struct draft *j, struct error *e)
{
    const struct setting *name = settings_find_z(j->settings, "teacher");
    struct settings alone = settings_in(j->arena);
    struct model m;
    struct parameters p;
    uint64_t room = j->job->hardware.card.memory.value / 100 * WEIGHTS_PERCENT;
    draft_count(j, "teacher_gpus", 0);
    if (!draft_is(j, IS_OPD, 0))
        return true;
    if (!name)
        return FAIL(e, BAD_INPUT, STR("--teacher"), "opd needs a teacher, such as Qwen3-32B");
    struct setting item = {STR("model"), name->value, name->where};
    if (!catalog_model_find(name->value))
        return catalog_model_unknown(name->value, name->where, e);
    if (!settings_add(&alone, item, e) || !model_from_settings(&m, j->arena, &alone, e) ||
        !parameters_of(&p, j->arena, &m, e))
        return false;
    if (m.vocab != j->job->model.vocab)
        return FAIL(e, BAD_INPUT, name->where,
                    "the teacher has %llu tokens and the student %llu; they must be the same",
                    (unsigned long long)m.vocab, (unsigned long long)j->job->model.vocab);
    for (uint64_t gpus = 1; gpus <= m.heads && !j->teacher_gpus; gpus *= 2)
        if (heads_allow(&m, gpus) && p.total / gpus * 2 <= room)
            j->teacher_gpus = gpus;
    if (!j->teacher_gpus)
        return FAIL(e, BAD_INPUT, name->where,
                    "the teacher's weights do not fit on its heads' GPUs");
    draft_count(j, "teacher_gpus", j->teacher_gpus);
    return true;
}
