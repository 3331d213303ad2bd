// Any bytes as a config.json. Either a model comes out whose parts add up and whose layers are all
// described, or the error says why.

#include "core/model/model.h"
#include "host/formats/json_in.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[64 << 20];

static void check_model(const struct model *m, const struct parameters *p)
{
    uint64_t sum = 0, tensors = 0;
    for (int part = 0; part < PART_COUNT; part++)
        sum += p->by_part[part];
    for (ptrdiff_t i = 0; i < p->tensor_count; i++)
        tensors += p->tensors[i].elements * p->tensors[i].copies;
    ASSERT(sum == p->total && tensors == p->total && p->active <= p->total);
    ASSERT(m->heads % m->kv_heads == 0 && m->layers > 0);
    ASSERT((model_sliding_layers(m) > 0) == (m->sliding_window > 0));
    ASSERT(model_expert_layers(m) == 0 || p->by_part[PART_EXPERTS] > 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str exact = exact_copy(data, size);
    struct arena a = exact_arena(block, sizeof block, size);
    struct settings s = settings_in(&a);
    struct error e = {0};
    struct model m;
    struct parameters p;
    struct str text = exact;
    bool ok = json_flatten(&s, text, STR("config."), STR("config.json"), &e) &&
              settings_add(&s, (struct setting){STR("model"), STR("x"), STR("--model")}, &e) &&
              model_from_settings(&m, &a, &s, &e) && parameters_of(&p, &a, &m, &e);
    ASSERT(ok == (e.code == ERROR_NONE));
    ASSERT(ok || e.message[0]);
    if (ok && s.count > 1)
        check_model(&m, &p);
    exact_free(exact);
    return 0;
}
