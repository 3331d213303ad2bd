// Inside the room: what conclusions are drawn from, and how one asks and answers there.
#ifndef FATHOM_FOREIGN_CONCLUDE_H
#define FATHOM_FOREIGN_CONCLUDE_H

#include "core/base/num.h"
#include "core/foreign/rows.h"

struct conclusion {
    struct settings *out;
    struct foreign *found;
    const struct settings *given;
    struct error *error;
    uint64_t ranks; // 0: not known
};

static inline const struct setting *fact(const struct conclusion *c, const char *name)
{
    return settings_find_z(&c->found->facts, name);
}

static inline bool fact_is(const struct conclusion *c, const char *name, const char *value)
{
    const struct setting *item = fact(c, name);
    return item && str_equal_nocase(item->value, str_from(value));
}

static inline bool count_of(struct conclusion *c, uint64_t *value, const struct setting *item)
{
    return !item ||
           setting_number(value, item, UNIT_COUNT, (struct range){0, UINT64_C(1) << 40}, c->error);
}

static inline bool fact_count(struct conclusion *c, uint64_t *value, const char *name)
{
    return count_of(c, value, fact(c, name));
}

// What the user gave wins over what the files say.
static inline const struct setting *effective(const struct conclusion *c, const char *name)
{
    const struct setting *item = settings_find_z(c->given, name);
    return item ? item : settings_find_z(c->out, name);
}

// Whether transformers before 5 are meant, whose Trainer has arguments that today's lacks.
static inline bool is_before_5(const struct conclusion *c)
{
    const struct setting *recipe = effective(c, "recipe");
    return recipe && str_starts(recipe->value, STR("transformers@4."));
}

// "$HOME/models/Qwen3-8B": the folder is not known here, and the model is, by its name.
static inline struct str known_part(struct str path)
{
    while (path.n > 1 && str_ends(path, STR("/")))
        path.n--;
    struct str_cut cut = str_cut_last(path, '/');
    return cut.found && str_cut(cut.head, '$').found ? cut.tail : path;
}

static inline bool put(struct conclusion *c, const char *name, struct str value, struct str where)
{
    return foreign_put(c->out, c->found, (struct setting){str_from(name), value, where}, c->error);
}

static inline bool put_count(struct conclusion *c, const char *name, uint64_t value,
                             struct str where)
{
    struct str text = str_format(c->out->arena, "%llu", (unsigned long long)value);
    return put(c, name, text, where);
}

static inline bool put_unless_there(struct conclusion *c, const char *name, struct str value,
                                    struct str where)
{
    return settings_find_z(c->out, name) || put(c, name, value, where);
}

static inline bool is_sharded(const struct setting *strategy)
{
    return strategy && !str_is(strategy->value, "single") && !str_is(strategy->value, "ddp");
}

bool conclude_trl(struct conclusion *c);
bool conclude_transformers(struct conclusion *c);
bool conclude_answers(struct conclusion *c);
bool conclude_adapters(struct conclusion *c, const struct setting *adapters);
bool conclude_llamafactory(struct conclusion *c);
bool conclude_axolotl(struct conclusion *c);
bool conclude_rl(struct conclusion *c);
bool conclude_slime(struct conclusion *c);

// Of what started the trainer (conclude_launch.c).
bool conclude_launch(struct conclusion *c);
bool count_processes(struct conclusion *c);
bool check_trainer_file(const struct conclusion *c);

// Whether a number is left to the surroundings of a script, and has to be the user's then.
bool is_open(const struct setting *item);
bool take_given_gpus(struct conclusion *c, const struct setting *open);

// How many train, by the files or, where the user named a number of them, by the user.
void conclude_ranks(struct conclusion *c);

// Whether the user gave an option that stands in for what the file says; that is noted then.
bool replaced(struct conclusion *c, const char *option, struct str said, struct str where);

// The GPUs that train, of a cluster that frameworks of RL name by nodes.
bool conclude_gpus(struct conclusion *c);

#endif
