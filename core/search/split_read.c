// A split's request from settings: models, machine, batches, and the framework with its layouts.
#include "core/search/split.h"

#include "core/base/num.h"

#define BIT(layout) (1u << (layout))

// slime at 624b824: train.py is synchronous and has --colocate; train_async.py is one step off and
// refuses it; the teacher is a server outside of Ray. Trinity-RFT 0.6: explorer and trainer have
// GPUs of their own, the teacher is an auxiliary model; mode colocate is for one GPU. verl 0.9: one
// hybrid engine on the trainer's GPUs, the teacher in a pool of its own (workers/config/
// distillation.py). TRL 1.16: ServerDistillationTrainer, with vllm_mode colocate or server; nothing
// of training leaves the card for generation. slime (megatron_utils/actor.py: use_opd has no
// can_reuse_log_probs_in_loss) and verl (compute_log_prob) read the answers once more before they
// train; Trinity bypasses that by default. All three divide a batch by ranks (Trinity's
// config_validator.py, verl's trainer/ppo, TRL's gradient_accumulation_steps).
const struct split_framework split_frameworks[] = {
    {.name = "slime",
     .recipe = "megatron",
     .engine = "sglang",
     .layouts = BIT(LAYOUT_APART) | BIT(LAYOUT_COLOCATED),
     .sizes = true,
     .reads = true,
     .why = "slime's teacher is a server of its own"},
    {.name = "trinity",
     .recipe = "trinity",
     .engine = "vllm",
     .layouts = BIT(LAYOUT_APART),
     .inside = true,
     .even = true,
     .why = "Trinity's explorer and trainer have GPUs of their own"},
    {.name = "verl",
     .recipe = "verl",
     .engine = "vllm",
     .layouts = BIT(LAYOUT_COLOCATED),
     .inside = true,
     .reads = true,
     .even = true,
     .why = "verl's engine runs on the trainer's GPUs, and its teacher on GPUs of its own"},
    {.name = "trl",
     .engine = "vllm",
     .layouts = BIT(LAYOUT_APART) | BIT(LAYOUT_COLOCATED),
     .keeps = true,
     .even = true,
     .why =
         "TRL's teacher is a server of its own; beside the student on every GPU, 'fathom predict "
         "--recipe trl --task distill --teacher MODEL' has it"},
};

const ptrdiff_t split_framework_count = COUNT_OF(split_frameworks);

const char *split_layout_name(enum split_layout l)
{
    static const char *const names[] = {"apart", "colocated", "together"};
    return names[l];
}

static void read_framework(struct split_request *r, const struct settings *s)
{
    const struct setting *item = settings_find_z(s, "framework");
    r->layouts = BIT(SPLIT_LAYOUTS) - 1;
    for (ptrdiff_t i = 0; item && i < split_framework_count; i++)
        if (str_is(item->value, split_frameworks[i].name))
            r->framework = &split_frameworks[i];
    if (r->framework)
        r->layouts = r->framework->layouts;
}

static bool read_layout(struct split_request *r, const struct settings *s, struct error *e)
{
    const struct setting *item = settings_find_z(s, "layout");
    if (!item || str_is(item->value, "auto"))
        return true;
    for (enum split_layout l = LAYOUT_APART; l < SPLIT_LAYOUTS; l++) {
        if (!str_is(item->value, split_layout_name(l)))
            continue;
        if (!(r->layouts & BIT(l)))
            return FAIL(e, UNSUPPORTED, item->where, "%s", r->framework->why);
        r->layouts = BIT(l);
        return true;
    }
    return FAIL(e, BAD_INPUT, item->where,
                "layout is apart, colocated, together or auto, not '%.*s'",
                STR_ARGS(str_short(item->value)));
}

static bool count_of(uint64_t *count, const struct settings *s, const char *key, struct error *e)
{
    const struct setting *item = settings_find_z(s, key);
    return !item ||
           setting_number(count, item, UNIT_COUNT, (struct range){1, UINT64_C(1) << 28}, e);
}

// "8x" or "2x8x" before the card.
static struct str without_counts(struct str spec)
{
    for (int i = 0; i < 2; i++) {
        ptrdiff_t n = 0;
        while (n < spec.n && char_is_digit(spec.p[n]))
            n++;
        if (n && n < spec.n && char_lower(spec.p[n]) == 'x')
            spec = str_slice(spec, n + 1, spec.n);
    }
    return spec;
}

static bool add(struct settings *s, const char *key, struct str value, struct str where,
                struct error *e)
{
    return settings_set(s, (struct setting){str_from(key), value, where}, e);
}

struct str split_context(const struct split_request *r)
{
    unsigned long long tokens = r->prompt + r->response;
    return str_format(r->arena, "%llu", tokens);
}

// The student is the model, with what its own file says; the teacher is of the catalogue.
static bool read_server(struct serve_request *server, const struct split_request *r,
                        const struct settings *s, bool teacher, struct error *e)
{
    const struct setting *engine = settings_find_z(s, "engine");
    const struct setting *name = settings_find_z(s, teacher ? "teacher" : "model");
    struct settings own = settings_in(r->arena);
    struct str usual = r->framework ? str_from(r->framework->engine) : STR("vllm");
    for (ptrdiff_t i = 0; i < s->count && !teacher; i++)
        if (setting_is_document(s->items[i].key) && !settings_add(&own, s->items[i], e))
            return false;
    struct str context = split_context(r);
    return add(&own, "model", name->value, name->where, e) &&
           add(&own, "gpu", r->card, r->where, e) &&
           add(&own, "engine", engine ? engine->value : usual, engine ? engine->where : STR_NONE,
               e) &&
           add(&own, "context", context, STR_NONE, e) && serve_read(server, r->arena, &own, e);
}

static bool read_training(struct split_request *r, const struct settings *s, struct error *e)
{
    const struct setting *model = settings_find_z(s, "model");
    const struct setting *images = settings_find_z(s, "images");
    const struct setting *size = settings_find_z(s, "image-size");
    struct str context = split_context(r);
    r->training = settings_in(r->arena);
    for (ptrdiff_t i = 0; i < s->count; i++)
        if (setting_is_document(s->items[i].key) && !settings_add(&r->training, s->items[i], e))
            return false;
    return add(&r->training, "model", model->value, model->where, e) &&
           add(&r->training, "context", context, STR_NONE, e) &&
           (!images || settings_add(&r->training, *images, e)) &&
           (!size || settings_add(&r->training, *size, e)) &&
           (!r->framework || !r->framework->recipe ||
            add(&r->training, "recipe", str_from(r->framework->recipe), STR("--framework"), e));
}

static bool read_batches(struct split_request *r, const struct settings *s, struct error *e)
{
    const struct setting *batch = settings_find_z(s, "global-batch");
    r->prompts = 64;
    r->samples = 8;
    r->prompt = 1024;
    r->response = 4096;
    if (!count_of(&r->prompts, s, "rollout-batch", e) || !count_of(&r->samples, s, "samples", e) ||
        !count_of(&r->prompt, s, "prompt", e) || !count_of(&r->response, s, "response", e) ||
        !count_of(&r->teacher_gpus, s, "teacher-gpus", e) ||
        !count_of(&r->rollout_gpus, s, "rollout", e))
        return false;
    r->global_batch = r->prompts * r->samples;
    if (!count_of(&r->global_batch, s, "global-batch", e))
        return false;
    if (r->global_batch > r->prompts * r->samples)
        return FAIL(e, BAD_INPUT, batch->where,
                    "a step of %llu sequences needs more than the %llu that an iteration makes: "
                    "%llu prompts of %llu answers",
                    (unsigned long long)r->global_batch,
                    (unsigned long long)(r->prompts * r->samples), (unsigned long long)r->prompts,
                    (unsigned long long)r->samples);
    return true;
}

// Both models read whole answers behind their prompts.
static bool check_positions(const struct split_request *r, const struct settings *s,
                            struct error *e)
{
    const struct setting *item = settings_find_z(s, "response");
    item = item ? item : settings_find_z(s, "prompt");
    const struct model *both[] = {r->teacher.model, r->rollout.model};
    for (int i = 0; i < COUNT_OF(both); i++) {
        uint64_t positions = u64_most(both[i]->max_position, both[i]->rotary_table);
        if (positions && r->prompt + r->response > positions)
            return FAIL(e, BAD_INPUT, item ? item->where : STR("--response"),
                        "a prompt of %llu tokens and an answer of %llu are more than the %llu "
                        "positions of %.*s",
                        (unsigned long long)r->prompt, (unsigned long long)r->response,
                        (unsigned long long)positions, STR_ARGS(str_short(both[i]->name)));
    }
    return true;
}

bool split_read(struct split_request *r, struct arena *a, const struct settings *s, struct error *e)
{
    const struct setting *gpu = settings_find_z(s, "gpu");
    *r = (struct split_request){.arena = a};
    if (!settings_find_z(s, "teacher"))
        return FAIL(e, BAD_INPUT, STR("--teacher"),
                    "no teacher is given; --teacher Qwen3-32B is an example");
    if (!settings_find_z(s, "model"))
        return FAIL(e, BAD_INPUT, STR("--student"),
                    "no student is given; --student Qwen3-4B is an example");
    read_framework(r, s);
    if (!read_layout(r, s, e) || !read_batches(r, s, e) ||
        !hardware_from_settings(&r->hardware, a, s, e))
        return false;
    r->gpus = hardware_gpus(&r->hardware);
    r->card = without_counts(gpu->value);
    r->where = gpu->where;
    if (r->gpus > SPLIT_MOST)
        return FAIL(e, BAD_INPUT, gpu->where, "up to %d GPUs are divided, not %llu", SPLIT_MOST,
                    (unsigned long long)r->gpus);
    if (!r->hardware.card.bandwidth.value || !r->hardware.card.bf16.value)
        return FAIL(e, BAD_INPUT, gpu->where,
                    "the card's bandwidth and bf16 rate are needed, as in "
                    "8x{memory=48GiB,bandwidth=960GB/s,bf16=181TFLOPS}");
    return read_server(&r->teacher, r, s, true, e) && read_server(&r->rollout, r, s, false, e) &&
           check_positions(r, s, e) && read_training(r, s, e);
}
