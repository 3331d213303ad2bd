// Which rule a job breaks, and the sentence that says so: names between "@" are the job's own
// values.
#include "core/base/buf.h"
#include "core/job/rules.h"

static bool breaks(const struct job *j, const struct rule *r)
{
    return (j->traits & r->when) == r->when && !(j->traits & r->unless) &&
           (!r->in || r->in & 1u << j->target) && (!r->test || r->test(j));
}

const struct rule *rule_broken(const struct job *j, enum error_code code)
{
    static const struct rule *const lists[] = {needed_rules, target_rules, unmodelled_rules};
    for (ptrdiff_t i = 0; i < COUNT_OF(lists); i++)
        for (const struct rule *r = lists[i]; r->why; r++)
            if (r->code == code && breaks(j, r))
                return r;
    return NULL;
}

static bool number_of(uint64_t *value, const struct job *j, struct str name)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"gpus", job_ranks(j)},
        {"sp", j->ulysses},
        {"cp", j->ring},
        {"last_cp", j->ring - 1},
        {"tp", j->tensor},
        {"pp", j->pipeline},
        {"last_pp", j->pipeline - 1},
        {"stage_layers", job_stage_layers(j)},
        {"layers", j->model.layers},
        {"experts", j->model.experts.count},
        {"ep", j->expert},
        {"heads", j->model.heads},
        {"kv_heads", j->model.kv_heads},
        {"max_position", j->model.max_position},
        {"image_tokens", job_image_tokens(j)},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(numbers); i++)
        if (str_is(name, numbers[i].name)) {
            *value = numbers[i].value;
            return true;
        }
    return false;
}

static const char *name_of(const struct job *j, struct str name)
{
    const struct {
        const char *name, *text;
    } names[] = {
        {"family", j->model.family->title},
        {"gpu", j->hardware.card.name},
        {"recipe", recipe_defs[j->recipe].title},
        {"strategy", setting_def_find(STR("strategy"))->words[j->strategy]},
        {"packing", j->model.packing ? j->model.packing->name : ""},
        {"target", target_defs[j->target].title},
        {"target_recipe", target_defs[j->target].recipe},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(names); i++)
        if (str_is(name, names[i].name))
            return names[i].text;
    return "";
}

// What follows a value agrees with it: "the one GPU", "Phi-3 and Phi-4 are".
struct agreement {
    const char *written, *instead;
};

static const struct agreement of_one[] = {
    {" GPUs", " GPU"},       {" layers", " layer"},
    {" experts", " expert"}, {" attention heads", " attention head"},
    {" heads", " head"},     {0},
};

static const struct agreement of_several[] = {
    {" is ", " are "},       {" has ", " have "},   {" reads ", " read "},
    {" writes ", " write "}, {" fails ", " fail "}, {0},
};

static const struct agreement *agreement_of(const struct agreement *rows, struct str rest)
{
    while (rows->written && !str_starts(rest, str_from(rows->written)))
        rows++;
    return rows->written ? rows : NULL;
}

static bool is_several(struct str title)
{
    for (struct str_cut c = str_cut(title, ' '); c.found; c = str_cut(c.tail, ' '))
        if (str_starts(c.tail, STR("and ")))
            return true;
    return false;
}

// Writes the value, and returns what is left to be said.
static struct str put_value(struct buf *b, const struct job *j, struct str name, struct str rest)
{
    const struct agreement *agrees = NULL;
    uint64_t number;
    if (number_of(&number, j, name)) {
        agrees = number == 1 ? agreement_of(of_one, rest) : NULL;
        if (agrees)
            buf_put_z(b, "one");
        else
            buf_printf(b, "%llu", (unsigned long long)number);
    } else {
        struct str text = str_from(name_of(j, name));
        agrees = is_several(text) ? agreement_of(of_several, rest) : NULL;
        buf_put(b, text);
    }
    if (!agrees)
        return rest;
    buf_put_z(b, agrees->instead);
    return str_slice(rest, str_from(agrees->written).n, rest.n);
}

bool rule_refuse(const struct rule *r, const struct job *j, struct error *e)
{
    char block[320], place[40];
    struct buf why = buf_over(block, sizeof block), where = buf_over(place, sizeof place);
    const struct setting *given = settings_find_z(j->given, r->setting);
    struct str rest = str_from(r->why);
    for (bool name = false; rest.n; name = !name) {
        struct str_cut cut = str_cut(rest, '@');
        bool version = name && !cut.found; // "--recipe trl@1.16"
        rest = name && !version ? put_value(&why, j, cut.head, cut.tail) : cut.tail;
        if (version)
            buf_put_z(&why, "@");
        if (!name || version)
            buf_put(&why, cut.head);
    }
    buf_printf(&where, "--%s", r->setting);
    error_set(e, r->code, (struct error_site){__FILE__, __LINE__},
              given && given->where.n ? given->where : buf_str(&where), "%.*s",
              STR_ARGS(buf_str(&why)));
    return false;
}
