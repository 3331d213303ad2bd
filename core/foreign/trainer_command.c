// See trainer_command.h. Words as transformers' HfArgumentParser takes them: "--key value",
// "--key=value", "--key" alone for true, "--no_key" for false, and several values for lists.
#include "core/foreign/trainer_command.h"

#include "core/base/buf.h"

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
    if (!there && c->values && str_is(item.key, "lora_target_modules"))
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
    struct buf key = buf_in(c->said.arena);
    buf_put_z(&key, c->runs ? "" : "launcher.");
    for (ptrdiff_t i = 0; i < name.n; i++) {
        if (name.p[i] == '-')
            buf_char(&key, '_');
        else
            buf_char(&key, name.p[i]);
    }
    return buf_str(&key);
}

static bool read_key(struct trainer_command *c, struct str word, struct str where, struct error *e)
{
    struct str_cut pair = str_cut(str_slice(word, 2, word.n), '=');
    if (!settle(c, e))
        return false;
    bool denied = c->runs && !pair.found && str_starts(pair.head, STR("no_"));
    struct str name = denied ? str_slice(pair.head, 3, pair.head.n) : pair.head;
    struct str alone = denied ? STR("false") : STR("true");
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

static bool is_program(struct str word, const char *name)
{
    struct str_cut folder = str_cut_last(word, '/');
    return str_is(folder.found ? folder.tail : word, name);
}

// "examples/scripts/dpo.py", "reward_modeling.py".
static bool read_script(struct trainer_command *c, struct str word, struct str where,
                        struct error *e)
{
    static const char *const tasks[] = {"sft", "dpo", "kto", "reward", "grpo", "rloo"};
    struct str_cut folder = str_cut_last(word, '/');
    struct str name = folder.found ? folder.tail : word;
    if (!settle(c, e))
        return false;
    c->runs = true;
    for (ptrdiff_t i = 0; i < COUNT_OF(tasks); i++)
        if (str_starts(name, str_from(tasks[i])))
            return add(c, (struct setting){STR("launcher.task"), str_from(tasks[i]), where}, e);
    return true;
}

bool trainer_command_word(struct trainer_command *c, struct str word, struct str where,
                          struct error *e)
{
    if (str_is(word, "\\"))
        return true;
    if (str_starts(word, STR("--")) && word.n > 2)
        return read_key(c, word, where, e);
    if (!c->runs && (c->names_task || str_ends(word, STR(".py"))))
        return read_script(c, word, where, e);
    if (!c->runs && (is_program(word, "trl") || is_program(word, "llamafactory-cli"))) {
        c->names_task = true;
        return true;
    }
    return !c->last.key.n || read_value(c, word, e);
}

bool trainer_command_is_meant(struct trainer_command *c, bool *meant, struct error *e)
{
    if (!settle(c, e))
        return false;
    *meant = c->runs && (settings_find_z(&c->said, "model_name_or_path") ||
                         settings_find_z(&c->said, "per_device_train_batch_size"));
    return true;
}
