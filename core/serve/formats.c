// How weights are packed: the formats as rows, and the words by which names of models, their
// configurations and logs tell them. Bytes include the scales that a format keeps.
#include "core/serve/serve.h"

// AWQ and GPTQ: groups of 128 with a scale in 16 bits and a zero of the weight's own width.
// Compressed tensors' w4a16 has no zeros. bitsandbytes: an absmax in 8 bits for every 64, and one
// in 32 for 256 of these. MXFP4: a byte for every 32. fp8 and int8: a scale a matrix, row or block
// of 128 x 128, which is less than a thousandth.
static const struct weight_format formats[] = {
    {"unpacked", "none", 0, false, false, NULL},
    {"fp8",
     "fp8 fp8-dynamic fp8_e4m3 fp8-block compressed-tensors-fp8 fbgemm_fp8 ptpc_fp8 w8a8-fp8", 1024,
     false, false, NULL},
    {"int8", "int8 w8a8 w8a8_int8 quantized.w8a8 w8a16 quantized.w8a16", 1025, false, false, NULL},
    {"AWQ 4 bit", "awq awq_marlin w4 w4-awq autoawq", 532, false, false, NULL},
    {"GPTQ 4 bit", "gptq gptq_marlin gptq-int4", 532, false, false, NULL},
    {"GPTQ 8 bit", "gptq-int8", 1048, false, false, NULL},
    {"int4", "int4 w4a16 quantized.w4a16", 528, false, false, NULL},
    {"bitsandbytes 4 bit", "bitsandbytes bnb bnb-4bit nf4 unsloth-bnb-4bit", 528, false, false,
     NULL},
    {"bitsandbytes 8 bit", "bnb-8bit llm_int8", 1025, false, false, NULL},
    {"MXFP4", "mxfp4", 544, true, true, NULL},
    {"NVFP4", "nvfp4 modelopt_fp4 fp4 w4a4 nvfp4-awq", 0, false, false,
     "their scales and padding differ from kernel to kernel"},
    {"GGUF", "gguf", 0, false, false, "GGUF mixes widths from tensor to tensor"},
    {"HQQ", "hqq", 0, false, false, "its groups are the model's own"},
    {"EXL2", "exl2 exl3", 0, false, false, "neither server reads it"},
    {"Quark", "quark", 0, false, false, "its scheme is the file's own"},
    {"GPTQ of another width", "gptq-other", 0, false, false, "4 and 8 bits are"},
    {"TorchAO", "torchao", 0, false, false, "its scheme is the file's own"},
};

static const struct element_type types[] = {
    {"bf16 bfloat16", 2},
    {"fp16 float16 half", 2},
    {"fp32 float32 float", 4},
};

// Words of logs that say nothing about bytes.
static const char filler[] = "auto compute weights runtime compressed-tensors compressed marlin "
                             "dynamic online";

static bool has_word(const char *words, struct str word)
{
    struct words w = words_of(words, ' ');
    while (words_next(&w))
        if (str_equal_nocase(w.word, word))
            return true;
    return false;
}

static const struct weight_format *format_of(struct str word)
{
    for (ptrdiff_t i = 1; i < COUNT_OF(formats); i++)
        if (has_word(formats[i].words, word))
            return &formats[i];
    return NULL;
}

static const struct element_type *type_of(struct str word)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(types); i++)
        if (has_word(types[i].words, word))
            return &types[i];
    return NULL;
}

static bool is_between(char c)
{
    return c == ' ' || c == '(' || c == ')' || c == ',' || c == '/' || c == '+';
}

// Cuts the next word off the text; false when none is left.
static bool next_word(struct str *word, struct str *rest)
{
    while (rest->n && is_between(rest->p[0]))
        *rest = str_slice(*rest, 1, rest->n);
    ptrdiff_t n = 0;
    while (n < rest->n && !is_between(rest->p[n]))
        n++;
    *word = str_slice(*rest, 0, n);
    *rest = str_slice(*rest, n, rest->n);
    return word->n > 0;
}

static const char modelled[] = "bf16, fp16, fp32, fp8, int8 (w8a8), w4a16, AWQ, GPTQ, "
                               "bitsandbytes' 4 and 8 bit, and MXFP4 are";

static bool refuse_format(const struct weight_format *f, struct str where, struct error *e)
{
    FAIL(e, UNSUPPORTED, where, "weights in %s are not modelled: %s", f->name, f->refused);
    return HINT(e, "%s", modelled);
}

bool serve_check_name(const struct settings *s, struct error *e)
{
    const struct setting *name = settings_find_z(s, "model");
    const char *what = name ? model_name_unmodelled(name->value) : NULL;
    return !what || FAIL(e, UNSUPPORTED, name->where, "%s not modelled", what);
}

static bool read_dtype(struct serve_request *r, const struct setting *item, struct error *e)
{
    struct str rest = item->value, word;
    while (next_word(&word, &rest)) {
        const struct weight_format *f = format_of(word);
        const struct element_type *t = type_of(word);
        if (t)
            r->element_bytes = t->bytes;
        if (f)
            r->format = f;
        if (!f && !t && !has_word(filler, word))
            return FAIL(
                e, BAD_INPUT, item->where,
                "dtype is what is computed in (auto, bf16, fp16, fp32) and how weights are "
                "packed (fp8, w8a8, w4a16, awq, gptq, bnb-4bit, bnb-8bit, mxfp4), not '%.*s'",
                STR_ARGS(str_short(word)));
    }
    return true;
}

static bool is_llm_int8(const struct settings *s)
{
    const struct setting *method = settings_find_z(s, "config.quantization_config.quant_method");
    const struct setting *wide = settings_find_z(s, "config.quantization_config.load_in_8bit");
    return method && str_is(method->value, "bitsandbytes") && wide && str_is(wide->value, "true");
}

// GPTQ's files name their bits, compressed tensors' those of each group of layers.
static const struct weight_format *by_width(const struct settings *s)
{
    static const char group[] = "config.quantization_config.config_groups.group_0.weights.num_bits";
    const struct setting *method = settings_find_z(s, "config.quantization_config.quant_method");
    const struct setting *bits = settings_find_z(s, "config.quantization_config.bits");
    const struct setting *wide = settings_find_z(s, group);
    if (method && str_is(method->value, "gptq") && bits)
        return format_of(str_is(bits->value, "8")   ? STR("gptq-int8")
                         : str_is(bits->value, "4") ? STR("gptq")
                                                    : STR("gptq-other"));
    const struct setting *kind = settings_find_z(s, "config.quantization_config.format");
    bool packed = kind && str_is(kind->value, "pack-quantized") && wide;
    return packed && str_is(wide->value, "8") ? format_of(STR("w8a16")) : NULL;
}

// Their makers publish no other: model cards of gpt-oss, DeepSeek-V3 and R1, Kimi-K2. Moonlight is
// of the same family, and in bf16.
static const struct weight_format *usual_format(const struct model *m)
{
    enum { LARGE = 7168 };
    struct str family = str_from(m->family->model_type);
    if (str_is(family, "gpt_oss"))
        return format_of(STR("mxfp4"));
    if (m->hidden >= LARGE && (str_is(family, "deepseek_v3") || str_is(family, "kimi_k2")))
        return format_of(STR("fp8"));
    return NULL;
}

// What the model's own files say.
static const struct weight_format *native_format(const struct serve_request *r,
                                                 const struct settings *s)
{
    const struct model *m = r->model;
    const struct setting *method = settings_find_z(s, "config.quantization_config.quant_method");
    const struct setting *kind = settings_find_z(s, "config.quantization_config.format");
    const struct weight_format *wide = by_width(s);
    if (m->packing && m->packing->served)
        return format_of(str_from(m->packing->served));
    if (wide)
        return wide;
    if (is_llm_int8(s))
        return format_of(STR("bnb-8bit"));
    if (method && str_is(method->value, "compressed-tensors") && kind)
        return str_starts(kind->value, STR("nvfp4"))   ? format_of(STR("nvfp4"))
               : str_is(kind->value, "pack-quantized") ? format_of(STR("w4a16"))
               : str_is(kind->value, "int-quantized")  ? format_of(STR("w8a8"))
                                                       : format_of(STR("fp8"));
    if (method)
        return format_of(method->value);
    return usual_format(m);
}

// A method that the model's file names and nothing here knows.
static bool check_method(const struct serve_request *r, const struct settings *s, struct error *e)
{
    const struct setting *method = settings_find_z(s, "config.quantization_config.quant_method");
    const struct setting *name = settings_find_z(s, "model");
    const struct packing *packing = r->model->packing;
    if (!method && packing && !packing->served && r->format == &formats[0] && name) {
        FAIL(e, UNSUPPORTED, name->where, "weights packed by %s are not modelled", packing->name);
        return HINT(e, "%s", modelled);
    }
    if (!method || str_is(method->value, "null") || r->format != &formats[0])
        return true;
    FAIL(e, UNSUPPORTED, method->where, "weights packed by quant_method '%.*s' are not modelled",
         STR_ARGS(str_short(method->value)));
    return HINT(e, "%s", modelled);
}

static bool read_cache_type(struct serve_request *r, const struct settings *s, struct error *e)
{
    const struct setting *item = settings_find_z(s, "kv-dtype");
    r->cache_bytes = r->element_bytes;
    if (!item || str_is(item->value, "auto"))
        return true;
    const struct element_type *t = type_of(item->value);
    if (str_starts(item->value, STR("fp8")))
        r->cache_bytes = 1;
    else if (t)
        r->cache_bytes = t->bytes;
    else
        return FAIL(e, BAD_INPUT, item->where,
                    "kv-dtype must be auto, bf16, fp16, fp32 or fp8, not '%.*s'",
                    STR_ARGS(str_short(item->value)));
    return true;
}

bool serve_read_types(struct serve_request *r, const struct settings *s, struct error *e)
{
    const struct setting *dtype = settings_find_z(s, "dtype");
    const struct weight_format *native = native_format(r, s);
    r->element_bytes = 2;
    r->format = native ? native : &formats[0];
    if (dtype && !read_dtype(r, dtype, e))
        return false;
    if (r->format->refused)
        return refuse_format(r->format, dtype ? dtype->where : r->model->name, e);
    return check_method(r, s, e) && read_cache_type(r, s, e);
}
