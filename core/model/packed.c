// What a configuration says of its weights: by which package they are packed (quant_method, as
// transformers 5.17 reads it in quantizers/auto.py).
#include "core/model/draft.h"

static const struct {
    const char *method;
    struct packing packing;
} methods[] = {
    {"aqlm", {.name = "AQLM"}},
    {"auto-round", {.name = "AutoRound"}},
    {"awq", {.name = "AWQ"}},
    {"bitnet", {.name = "BitNet"}},
    {"compressed-tensors", {.name = "compressed-tensors"}},
    {"eetq", {.name = "EETQ"}},
    {"fbgemm_fp8", {.name = "FBGEMM's FP8"}},
    {"fp8", {.name = "FP8"}},
    {"fp_quant", {.name = "FP-Quant"}},
    {"gguf", {.name = "GGUF"}},
    {"gptq", {.name = "GPTQ"}},
    {"higgs", {.name = "HIGGS"}},
    {"hqq", {.name = "HQQ"}},
    {"quanto", {.name = "quanto"}},
    {"quark", {.name = "Quark"}},
    {"spqr", {.name = "SpQR"}},
    {"torchao", {.name = "torchao"}},
    {"vptq", {.name = "VPTQ"}},
};

static const struct packing four_bits = {NULL, "bitsandbytes' nf4", true, "bnb-4bit"};
static const struct packing eight_bits = {NULL, "bitsandbytes' int8", false, "bnb-8bit"};

static bool says(const struct settings *s, const char *key)
{
    const struct setting *item = settings_find_z(s, key);
    return item && (str_is(item->value, "true") || str_is(item->value, "True"));
}

static const struct setting *method_of(const struct settings *s)
{
    const struct setting *now = settings_find_z(s, "config.quantization_config.quant_method");
    return now ? now : settings_find_z(s, "config.compression_config.quant_method");
}

static const struct packing *unknown(struct arena *a, struct str method)
{
    struct packing *p = NEW(a, struct packing, 1);
    p->name = str_z(a, str_short(method));
    return p;
}

// transformers 5.17, quantizers/quantizer_mxfp4.py: gpt-oss is trained unpacked, in bf16
// (Mxfp4Config(dequantize=True)), as the catalogue's rows are.
static bool is_unpacked_to_train(const struct model *m, struct str method)
{
    return str_is(method, "mxfp4") && str_is(str_from(m->family->model_type), "gpt_oss");
}

const struct packing *packing_of_config(struct arena *a, const struct settings *s,
                                        const struct model *m)
{
    const struct setting *method = method_of(s);
    if (says(s, "config.quantization_config.load_in_4bit"))
        return &four_bits;
    if (says(s, "config.quantization_config.load_in_8bit"))
        return &eight_bits;
    if (!method || str_is(method->value, "null") || is_unpacked_to_train(m, method->value))
        return NULL;
    for (ptrdiff_t i = 0; i < COUNT_OF(methods); i++)
        if (str_equal_nocase(method->value, str_from(methods[i].method)))
            return &methods[i].packing;
    return unknown(a, method->value);
}
