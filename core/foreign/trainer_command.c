// See trainer_command.h. Words as transformers' HfArgumentParser takes them: "--key value",
// "--key=value", "--key" alone for true, "--no_key" for false, and several values for lists.
#include "core/foreign/trainer_command.h"

#include "core/base/buf.h"
#include "core/foreign/programs.h"

enum { MOST_WORDS = 500 };

struct trainer_command trainer_command_in(struct arena *a)
{
    return (struct trainer_command){.said = settings_in(a)};
}

static bool add(struct trainer_command *c, struct setting item, struct error *e)
{
    return c->said.count >= MOST_WORDS || settings_set(&c->said, item, e);
}

// "gradient_checkpointing_kwargs '{"use_reentrant": false}'", which nearly every command has.
static struct setting opened(struct arena *a, struct setting dictionary)
{
    struct str end = str_cut_last(dictionary.value, ':').tail;
    return (struct setting){str_join(a, dictionary.key, STR(".use_reentrant")),
                            str_trim(str_cut(end, '}').head), dictionary.where};
}

static bool add_at(struct trainer_command *c, int index, struct str value, struct error *e)
{
    struct str key = str_format(c->said.arena, "%.*s.%d", STR_ARGS(c->last.key), index);
    return add(c, (struct setting){key, value, c->last.where}, e);
}

// The last key has all its values; where they are several they are there already.
static bool settle(struct trainer_command *c, struct error *e)
{
    struct setting item = c->last;
    bool there = !item.key.n || c->values > 1;
    if (c->runs && str_is(item.key, "config"))
        item.key = STR("launcher.trainer_file");
    bool lists =
        str_is(item.key, "lora_target_modules") || str_is(item.key, "lora_modules_to_save");
    if (!there && c->values && lists)
        there = add_at(c, 0, item.value, e);
    c->last.key = STR_NONE;
    if (there)
        return true;
    return add(
        c, str_is(item.key, "gradient_checkpointing_kwargs") ? opened(c->said.arena, item) : item,
        e);
}

// "--max-length" and "--max_length" are the same.
static struct str key_of(const struct trainer_command *c, struct str name)
{
    struct arena *a = c->said.arena;
    struct buf spelled = buf_in(a);
    for (ptrdiff_t i = 0; i < name.n; i++)
        buf_char(&spelled, (char)(name.p[i] == '-' ? '_' : name.p[i]));
    struct str key = buf_str(&spelled);
    bool by_trl = c->launcher && str_is(str_from(c->launcher), "trl");
    if (c->runs && !c->hands_on && !(by_trl && launcher_takes(key)))
        return key;
    return str_format(a, "launcher.%s%.*s", launcher_section(key), STR_ARGS(key));
}

static bool read_key(struct trainer_command *c, struct str word, struct str where, struct error *e)
{
    struct str_cut pair = str_cut(str_slice(word, 2, word.n), '=');
    if (!settle(c, e))
        return false;
    bool denied = c->runs && !pair.found && str_starts(pair.head, STR("no_"));
    struct str name = denied ? str_slice(pair.head, 3, pair.head.n) : pair.head;
    struct str alone = denied ? STR("false") : STR("true");
    if (!name.n)
        return true;
    c->last = (struct setting){key_of(c, name), pair.found ? pair.tail : alone, where};
    c->values = pair.found;
    return true;
}

static bool read_value(struct trainer_command *c, struct str value, struct error *e)
{
    c->values++;
    if (c->values == 1) {
        c->last.value = value;
        return true;
    }
    if (c->values == 2 && !add_at(c, 0, c->last.value, e))
        return false;
    return add_at(c, c->values - 1, value, e);
}

static bool add_said(struct trainer_command *c, const char *key, struct str value, struct error *e)
{
    return !value.n || add(c, (struct setting){str_from(key), value, c->where}, e);
}

// What stands before a launcher is not its own: "srun --nodes 2 torchrun".
static void begin_launcher(struct trainer_command *c, const char *launcher)
{
    c->said.count = 0;
    c->last.key = STR_NONE;
    c->launcher = launcher;
    c->awaits_task = words_have("trl|llamafactory-cli|axolotl", '|', str_from(launcher));
}

// "examples/scripts/dpo.py", "trl.scripts.sft", and behind "trl" the task.
static bool read_program(struct trainer_command *c, struct str word, struct str where,
                         struct error *e)
{
    const char *launcher = c->awaits_module ? launcher_of_module(word) : NULL;
    struct str ending = STR(".py"), scripts = STR("trl.scripts.");
    struct str_cut folder = str_cut_last(word, '/');
    c->awaits_module = false;
    if (launcher) {
        begin_launcher(c, launcher);
        return true;
    }
    c->script = folder.found ? folder.tail : word;
    if (str_ends(c->script, ending))
        c->script.n -= ending.n;
    if (str_starts(c->script, scripts))
        c->script = str_slice(c->script, scripts.n, c->script.n);
    c->where = where;
    if (!settle(c, e))
        return false;
    c->runs = true;
    return true;
}

static bool is_document(struct str word)
{
    return str_ends(word, STR(".yaml")) || str_ends(word, STR(".yml")) ||
           str_ends(word, STR(".json"));
}

// Behind the program: a file of the trainer's, "key=value" of LLaMA-Factory, values of a key.
static bool read_argument(struct trainer_command *c, struct str word, struct str where,
                          struct error *e)
{
    struct str_cut pair = str_cut(word, '=');
    if (c->last.key.n)
        return read_value(c, word, e);
    if (is_document(word))
        return add(c, (struct setting){STR("launcher.trainer_file"), word, where}, e);
    if (!pair.found || !pair.head.n || c->hands_on)
        return true;
    return add(c, (struct setting){pair.head, pair.tail, where}, e);
}

static bool read_before(struct trainer_command *c, struct str word, struct str where,
                        struct error *e)
{
    const char *launcher = launcher_find(word);
    if (str_is(word, "-m") || str_is(word, "--module")) {
        c->awaits_module = true;
        return settle(c, e);
    }
    if (c->awaits_module || c->awaits_task || str_ends(word, STR(".py")))
        return read_program(c, word, where, e);
    if (launcher && !(c->launcher && str_is(str_from(launcher), "python"))) {
        begin_launcher(c, launcher);
        return true;
    }
    return !c->last.key.n || read_value(c, word, e);
}

bool trainer_command_word(struct trainer_command *c, struct str word, struct str where,
                          struct error *e)
{
    if (str_is(word, "\\"))
        return true;
    if (str_is(word, "--")) {
        c->hands_on = c->runs;
        return settle(c, e);
    }
    if (str_starts(word, STR("--")) && !str_is(word, "--module"))
        return read_key(c, word, where, e);
    return c->runs ? read_argument(c, word, where, e) : read_before(c, word, where, e);
}

static bool is_by(const struct trainer_command *c, const char *launchers)
{
    return c->launcher && words_have(launchers, '|', str_from(c->launcher));
}

// What TrainingArguments have and programs that prepare or serve a model do not.
static bool has_arguments(const struct trainer_command *c)
{
    struct words names =
        words_of("gradient_accumulation_steps gradient_checkpointing "
                 "learning_rate num_train_epochs max_steps do_train bf16 deepspeed",
                 ' ');
    bool model = settings_find_z(&c->said, "model_name_or_path");
    if (settings_find_z(&c->said, "per_device_train_batch_size"))
        return true;
    while (model && words_next(&names))
        if (settings_find(&c->said, names.word))
            return true;
    return model && program_find(c->script);
}

// Commands of the trainers' own, and programs that are told what trainers are told.
static bool starts_trainer(const struct trainer_command *c)
{
    bool file = settings_find_z(&c->said, "launcher.trainer_file");
    if (!c->runs)
        return false;
    if (is_by(c, "trl"))
        return !words_have("env|vllm-serve|chat|skills", '|', c->script);
    if (is_by(c, "llamafactory-cli|axolotl"))
        return str_is(c->script, "train");
    return has_arguments(c) || (file && (program_find(c->script) || !is_by(c, "python")));
}

// What emit's own train.py is told stands in an array, which is read as such; its launcher's words
// are not there.
static bool keep_launcher(struct trainer_command *c, struct error *e)
{
    struct settings kept = settings_in(c->said.arena);
    for (ptrdiff_t i = 0; i < c->said.count; i++)
        if (str_starts(c->said.items[i].key, STR("launcher.")) &&
            !settings_add(&kept, c->said.items[i], e))
            return false;
    c->said = kept;
    return add_said(c, "launcher.trainer", STR("emit"), e);
}

// accelerate/commands/launch.py: flags of a way that neither a flag nor a file chose mean nothing.
static bool drop_idle(struct trainer_command *c, struct error *e)
{
    static const char *const ways[][2] = {
        {"launcher.use_fsdp", "launcher.fsdp_config."},
        {"launcher.use_fsdp", "launcher.parallelism_config."},
        {"launcher.use_deepspeed", "launcher.deepspeed_config."},
    };
    struct settings kept = settings_in(c->said.arena);
    bool file = settings_find_z(&c->said, "launcher.config_file") ||
                settings_find_z(&c->said, "accelerate_config");
    for (ptrdiff_t i = 0; i < c->said.count; i++) {
        bool idle = false;
        for (ptrdiff_t w = 0; w < COUNT_OF(ways); w++)
            idle |= !file && !settings_find_z(&c->said, ways[w][0]) &&
                    str_starts(c->said.items[i].key, str_from(ways[w][1]));
        if (!idle && !settings_add(&kept, c->said.items[i], e))
            return false;
    }
    c->said = kept;
    return true;
}

static bool say_program(struct trainer_command *c, struct error *e)
{
    struct str name = c->script, run = STR("run_");
    const struct program *p = program_find(name);
    const struct program *behind =
        str_starts(name, run) ? program_find(str_slice(name, run.n, name.n)) : NULL;
    const char *trainer = p ? p->trainer : program_by_keys(name, &c->said);
    if (is_by(c, "llamafactory-cli|axolotl"))
        trainer = is_by(c, "axolotl") ? "axolotl" : "llamafactory";
    else if (is_by(c, "trl"))
        trainer = "trl";
    bool unmodelled = is_by(c, "trl") ? !p || p->unmodelled : p && p->unmodelled;
    const struct program *known = p ? p : behind;
    if (unmodelled || (known && known->unmodelled))
        return add_said(c, "launcher.unmodelled", known ? str_from(known->name) : name, e);
    struct str task = str_from(known ? known->task : NULL);
    return add_said(c, "launcher.trainer", str_from(trainer), e) &&
           add_said(c, "launcher.task", task, e);
}

bool trainer_command_is_meant(struct trainer_command *c, bool *meant, struct error *e)
{
    if (!settle(c, e) || !drop_idle(c, e))
        return false;
    bool own = c->runs && str_is(c->script, "train") && settings_find_z(&c->said, "save_to") &&
               settings_find_z(&c->said, "context");
    *meant = own || starts_trainer(c);
    if (!*meant)
        return true;
    return add_said(c, "launcher.by", str_from(c->launcher ? c->launcher : "-"), e) &&
           add_said(c, "launcher.program", c->script, e) &&
           (own ? keep_launcher(c, e) : say_program(c, e));
}
