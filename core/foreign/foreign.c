// Reading one file: its format by its marks, then a row for each key. What several keys or files
// say together is in conclude.c.
#include "core/foreign/foreign.h"

#include "core/foreign/rows.h"
#include "core/hardware/hardware.h"

struct foreign foreign_in(struct arena *a)
{
    return (struct foreign){.facts = settings_in(a)};
}

static bool key_matches(struct str pattern, struct str key)
{
    if (str_ends(pattern, STR("*")))
        return str_starts(key, str_slice(pattern, 0, pattern.n - 1));
    return str_equal(pattern, key);
}

static bool has_mark(const struct settings *file, const char *marks)
{
    struct words words = words_of(marks, ' ');
    while (words_next(&words))
        for (ptrdiff_t i = 0; i < file->count; i++)
            if (key_matches(words.word, file->items[i].key))
                return true;
    return false;
}

static const struct foreign_format *format_of(const struct settings *file)
{
    for (ptrdiff_t i = 0; i < foreign_format_count; i++)
        if (has_mark(file, foreign_formats[i].marks))
            return &foreign_formats[i];
    return NULL;
}

// Accelerate and axolotl take the keys of fsdp_config with and without their prefix; TRL sets the
// variables of env (scripts/utils.py).
static struct str usual_key(struct arena *a, const struct foreign_format *f, struct str key)
{
    struct str env = STR("env.");
    if (str_is(str_from(f->name), "TRL") && str_starts(key, env))
        return str_join(a, STR("environment."), str_slice(key, env.n, key.n));
    struct str section = STR("fsdp_config."), prefix = STR("fsdp_config.fsdp_");
    struct str name = str_from(f->name);
    bool prefixed = str_starts(key, prefix);
    if (str_is(name, "Accelerate") && str_starts(key, section) && !prefixed)
        return str_join(a, prefix, str_slice(key, section.n, key.n));
    if (str_is(name, "axolotl") && prefixed)
        return str_join(a, section, str_slice(key, prefix.n, key.n));
    return key;
}

static bool value_matches(const char *one_of, struct str value)
{
    struct words words = words_of(one_of, ' ');
    while (words_next(&words))
        if (str_equal_nocase(value, words.word))
            return true;
    return !*one_of && !value.n;
}

static const struct foreign_row *find_row(const struct foreign_row *rows, ptrdiff_t count,
                                          struct str key, struct str value)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const struct foreign_row *r = &rows[i];
        if (key_matches(str_from(r->key), key) && (!r->value || value_matches(r->value, value)))
            return r;
    }
    return NULL;
}

// Of a launcher, and of no section that says how to shard.
static const struct foreign_row other_flag = {"launcher.*", NULL, NOTHING, NULL, NULL};

static const struct foreign_row *row_of(const struct foreign_format *f, struct str key,
                                        struct str value)
{
    const struct foreign_row *r = find_row(f->rows, *f->row_count, key, value);
    if (!r && f->has_arguments)
        r = find_row(trainer_rows, trainer_row_count, key, value);
    struct words inside = words_of(f->inside ? f->inside : "", ' ');
    while (!r && words_next(&inside))
        if (str_starts(key, inside.word))
            r = find_row(worker_rows, worker_row_count, str_slice(key, inside.word.n, key.n),
                         value);
    if (!r)
        r = find_row(script_rows, script_row_count, key, value);
    struct str launcher = STR("launcher.");
    if (r || !str_starts(key, launcher))
        return r;
    struct str flag = str_slice(key, launcher.n, key.n);
    r = find_row(accelerate_rows, accelerate_row_count, flag, value);
    return r || str_cut(flag, '.').found ? r : &other_flag;
}

void foreign_note(struct foreign *f, struct str text)
{
    for (int i = 0; i < f->note_count; i++)
        if (str_equal(f->notes[i], text))
            return;
    if (f->note_count < FOREIGN_NOTES)
        f->notes[f->note_count++] = text;
}

static struct str missing_variable(struct str text)
{
    struct str call = STR("${oc.env:");
    for (; text.n > call.n; text = str_slice(text, 1, text.n))
        if (str_starts(text, call))
            return str_cut(str_slice(text, call.n, text.n), '}').head;
    return STR_NONE;
}

// The host puts variables in where they are set, or have a default.
bool foreign_is_resolved(const struct setting *item, struct error *e)
{
    struct str name = missing_variable(item->value);
    return !name.n || FAIL(e, BAD_INPUT, item->where,
                           "the variable %.*s is not set, and the file has no default for it",
                           STR_ARGS(str_short(name)));
}

// "${model}", "$MODEL", "$(nproc)"; the end of a pattern ("^lm_head$") is none.
static bool refers(struct str text)
{
    for (ptrdiff_t i = 0; i + 1 < text.n; i++) {
        char next = char_lower(text.p[i + 1]);
        bool names = (next >= 'a' && next <= 'z') || char_is_digit(next) || next == '_';
        if (text.p[i] == '$' && (names || next == '{' || next == '(' || next == '@'))
            return true;
    }
    return false;
}

bool foreign_is_plain(const struct setting *item, struct error *e)
{
    return foreign_is_resolved(item, e) &&
           (!refers(item->value) ||
            FAIL(e, UNSUPPORTED, item->where, "'%.*s' refers to a value that is not read",
                 STR_ARGS(str_short(item->value))));
}

static bool not_read(const struct foreign_format *f, const struct setting *item, struct error *e)
{
    enum { LONGEST = 100 }; // verl's keys are long, and their ends tell them apart
    struct str key =
        str_slice(item->key, item->key.n > LONGEST ? item->key.n - LONGEST : 0, item->key.n);
    return FAIL(e, UNSUPPORTED, item->where, "%.*s '%.*s' of %s is not read, and may change memory",
                STR_ARGS(key), STR_ARGS(str_short(item->value)), f->name);
}

void foreign_leave(struct foreign *f, struct str key)
{
    for (int i = 0; i < f->left_count; i++)
        if (str_equal(f->left[i], key))
            return;
    if (f->left_count < FOREIGN_LEFT)
        f->left[f->left_count++] = key;
}

static void remember_left(struct foreign *f, struct str key)
{
    static const char *const keys[] = {
        "learning_rate", "num_train_epochs", "num_epochs",   "max_steps", "lr_scheduler*",
        "warmup_*",      "weight_decay",     "lora_alpha",   "adam_*",    "max_grad_norm",
        "use_rslora",    "peft_use_rslora",  "label_smooth*"};
    for (ptrdiff_t i = 0; i < COUNT_OF(keys); i++)
        if (key_matches(str_from(keys[i]), key))
            foreign_leave(f, key);
}

// What an option may stand in for is refused once all options are known (foreign_conclude).
static bool refuse(struct foreign *found, struct arena *a, const struct foreign_row *r,
                   const struct setting *item, struct error *e)
{
    struct str value = str_short(item->value);
    struct str why = r->name ? str_format(a, "%s '%.*s' %s", r->name, STR_ARGS(value), r->gives)
                             : str_from(r->gives);
    if (!r->option || found->refusal_count == FOREIGN_REFUSALS)
        return FAIL(e, UNSUPPORTED, item->where, "%.*s", STR_ARGS(why));
    struct str said = str_format(a, "%.*s: %.*s", STR_ARGS(item->key), STR_ARGS(value));
    found->refusals[found->refusal_count++] =
        (struct foreign_refusal){str_from(r->option), said, why, item->where};
    return true;
}

static bool take(struct settings *said, struct foreign *found, const struct foreign_format *f,
                 struct setting item, struct error *e)
{
    struct arena *a = said->arena;
    item.key = usual_key(a, f, item.key);
    const struct foreign_row *r = row_of(f, item.key, item.value);
    if (r && r->effect == NOTHING && !r->value) {
        remember_left(found, item.key);
        return true;
    }
    found->taken += r && r->effect != NOTHING;
    if (r && r->effect == FACT && !r->name)
        return settings_set(&found->facts, item, e);
    if (r && r->effect == OPEN) {
        item.key = str_from(r->name);
        return settings_set(&found->facts, item, e);
    }
    bool own_value = r && r->effect == SETS && !r->gives && !r->value; // the user may give it
    if (!own_value && !foreign_is_plain(&item, e))
        return false;
    if (!r)
        return not_read(f, &item, e);
    if (r->effect == REFUSED)
        return refuse(found, a, r, &item, e);
    if (r->effect == NOTED)
        foreign_note(found, str_format(a, "%.*s: %s", STR_ARGS(item.where), r->gives));
    if (r->effect != SETS && r->effect != FACT)
        return true;
    struct str value = r->gives ? str_from(r->gives) : item.value;
    struct setting made = {str_from(r->name), value, item.where};
    if (r->effect == FACT)
        return settings_set(&found->facts, made, e);
    const struct setting *earlier = settings_find(said, made.key);
    bool less = str_is(made.value, "optimizer") && earlier && str_is(earlier->value, "all");
    return less || settings_set(said, made, e);
}

bool foreign_put(struct settings *out, struct foreign *f, struct setting item, struct error *e)
{
    const struct setting *earlier = settings_find(out, item.key);
    if (earlier && !str_equal(earlier->value, item.value))
        foreign_note(f, str_format(out->arena, "%.*s: %.*s %.*s, in place of %.*s at %.*s",
                                   STR_ARGS(item.where), STR_ARGS(item.key),
                                   STR_ARGS(str_short(item.value)),
                                   STR_ARGS(str_short(earlier->value)), STR_ARGS(earlier->where)));
    return settings_set(out, item, e);
}

static bool merge(struct settings *out, struct foreign *f, const struct settings *said,
                  struct error *e)
{
    bool first = out->count == 0;
    for (ptrdiff_t i = 0; i < said->count; i++)
        if (!(first ? settings_add(out, said->items[i], e)
                    : foreign_put(out, f, said->items[i], e)))
            return false;
    return true;
}

static bool read_own(struct settings *said, const struct settings *file, struct error *e)
{
    for (ptrdiff_t i = 0; i < file->count; i++)
        if (!str_is(file->items[i].value, "null") && !settings_add(said, file->items[i], e))
            return false;
    return true;
}

// What is null is as if it were not there, unless a row has that very value.
static bool is_said(const struct foreign_format *f, const struct setting *item)
{
    if (!str_is(item->value, "null"))
        return true;
    const struct foreign_row *r = row_of(f, item->key, item->value);
    return r && r->value;
}

static bool read_as(struct settings *out, struct foreign *f, const struct foreign_format *format,
                    const struct settings *file, struct error *e)
{
    struct settings said = settings_in(out->arena);
    f->format = format->name;
    bool stands_back = str_is(str_from(format->recipe), "deepspeed"); // under any trainer
    if (format->recipe && !(stands_back && f->recipe))
        f->recipe = format->recipe;
    for (ptrdiff_t i = 0; i < file->count; i++)
        if (is_said(format, &file->items[i]) && !take(&said, f, format, file->items[i], e))
            return false;
    const struct setting *named = settings_find_z(&f->facts, "recipe");
    if (named)
        f->recipe = str_z(out->arena, named->value);
    struct setting read = {str_from(format->name), file->items[0].where, file->items[0].where};
    bool known = has_mark(file, "launcher.*") && settings_find(&f->facts, read.key);
    return (known || settings_set(&f->facts, read, e)) && merge(out, f, &said, e);
}

static bool read_request(struct settings *out, struct foreign *f, const struct settings *file,
                         struct error *e)
{
    struct settings said = settings_in(out->arena);
    return read_own(&said, file, e) && settings_join_lists(&said, e) && merge(out, f, &said, e);
}

static bool keep_command(struct foreign *f, const struct settings *file, struct error *e)
{
    if (f->command_count == FOREIGN_COMMANDS)
        return FAIL(e, BAD_INPUT, file->items[0].where, "more than %d commands are not read",
                    FOREIGN_COMMANDS);
    f->commands[f->command_count++] = *file;
    f->taken++;
    return true;
}

bool foreign_read(struct settings *out, struct foreign *f, const struct settings *file,
                  struct error *e)
{
    const struct foreign_format *format = format_of(file);
    if (has_mark(file, "launcher.*") || (f->command_count && !format && file->count))
        return keep_command(f, file, e);
    if (!format)
        return read_request(out, f, file, e);
    if (format->recipe && words_have("trl|llamafactory|axolotl", '|', str_from(format->recipe)))
        f->trainer = format->recipe;
    return read_as(out, f, format, file, e);
}

// Keys whose value is another file of the job, and whose it is.
static const char *const named_files[][2] = {
    {"launcher.trainer_file", ""},
    {"launcher.config_file", "Accelerate"},
    {"accelerate_config", "Accelerate"},
    {"deepspeed", "DeepSpeed"},
    {"deepspeed_config.deepspeed_config_file", "DeepSpeed"},
    {"launcher.deepspeed_config.deepspeed_config_file", "DeepSpeed"},
};

bool foreign_wants(const struct foreign *f, struct str key)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(named_files); i++) {
        const char *whose = named_files[i][1];
        if (str_is(key, named_files[i][0]))
            return *whose ? !settings_find_z(&f->facts, whose) : !f->trainer;
    }
    return false;
}

static const struct foreign_format *format_named(struct str recipe)
{
    for (ptrdiff_t i = 0; i < foreign_format_count; i++)
        if (recipe.n && str_is(recipe, foreign_formats[i].recipe))
            return &foreign_formats[i];
    return NULL;
}

// A program whose name does not tell is the trainer whose files were read, or whom the user names.
static bool find_trainer(const struct foreign_format **format, const struct foreign *f,
                         const struct settings *command, const struct settings *given,
                         struct error *e)
{
    const struct setting *trainer = settings_find_z(command, "launcher.trainer");
    const struct setting *recipe = settings_find_z(given, "recipe");
    const struct setting *file = settings_find_z(command, "launcher.trainer_file");
    const struct setting *program = settings_find_z(command, "launcher.program");
    struct str name = trainer ? trainer->value : str_from(f->trainer);
    if (!name.n && recipe)
        name = str_cut(recipe->value, '@').head;
    const struct setting *unmodelled = settings_find_z(command, "launcher.unmodelled");
    if (unmodelled)
        return FAIL(e, UNSUPPORTED, unmodelled->where,
                    "the trainer '%.*s' is not modelled; of TRL's trainers sft, dpo, kto, reward, "
                    "grpo, rloo and distillation are",
                    STR_ARGS(str_short(unmodelled->value)));
    *format = str_is(name, "emit") || !program ? format_of(command) : format_named(name);
    if (*format)
        return true;
    if (file && !name.n)
        return FAIL(e, UNSUPPORTED, file->where, "what matters is in '%.*s': give it to --from too",
                    STR_ARGS(str_short_path(file->value)));
    return FAIL(e, UNSUPPORTED, program ? program->where : STR_NONE,
                "the name '%.*s' does not say whose trainer it is: --recipe trl or --recipe "
                "transformers does",
                STR_ARGS(str_short(program ? program->value : STR_NONE)));
}

bool foreign_read_commands(struct settings *out, struct foreign *f, const struct settings *given,
                           struct error *e)
{
    for (int i = 0; i < f->command_count; i++) {
        const struct settings *command = &f->commands[i];
        const struct foreign_format *format = NULL;
        if (!has_mark(command, "launcher.*")) {
            if (!read_request(out, f, command, e))
                return false;
            continue;
        }
        if (!find_trainer(&format, f, command, given, e) || !read_as(out, f, format, command, e))
            return false;
    }
    f->command_count = 0;
    return true;
}

bool foreign_gpu(struct settings *s, const struct foreign *f, struct error *e)
{
    const struct setting *gpu = settings_find_z(s, "gpu");
    uint64_t machines = f->machines ? f->machines : 1;
    if (!gpu || !f->processes || !gpu_find(gpu->value))
        return true;
    if (f->processes % machines)
        return FAIL(e, BAD_INPUT, f->where, "%llu processes do not divide among %llu machines",
                    (unsigned long long)f->processes, (unsigned long long)machines);
    struct setting item = *gpu;
    item.value = str_format(s->arena, "%llux%llux%.*s", (unsigned long long)machines,
                            (unsigned long long)(f->processes / machines), STR_ARGS(gpu->value));
    return settings_set(s, item, e);
}
