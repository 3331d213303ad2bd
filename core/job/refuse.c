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

static bool put_number(struct buf *b, const struct job *j, struct str name)
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
            buf_printf(b, "%llu", (unsigned long long)numbers[i].value);
            return true;
        }
    return false;
}

static void put_name(struct buf *b, const struct job *j, struct str name)
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
            buf_put_z(b, names[i].text);
}

bool rule_refuse(const struct rule *r, const struct job *j, struct error *e)
{
    char block[320], place[40];
    struct buf why = buf_over(block, sizeof block), where = buf_over(place, sizeof place);
    const struct setting *given = settings_find_z(j->given, r->setting);
    struct str rest = str_from(r->why);
    for (bool name = false; rest.n; name = !name) {
        struct str_cut cut = str_cut(rest, '@');
        if (!name)
            buf_put(&why, cut.head);
        else if (!put_number(&why, j, cut.head))
            put_name(&why, j, cut.head);
        rest = cut.tail;
    }
    buf_printf(&where, "--%s", r->setting);
    error_set(e, r->code, (struct error_site){__FILE__, __LINE__},
              given && given->where.n ? given->where : buf_str(&where), "%.*s",
              STR_ARGS(buf_str(&why)));
    return false;
}
