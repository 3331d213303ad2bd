// What a framework does where its files say nothing, for another framework that does otherwise.
#include "core/foreign/rows.h"
#include "core/hardware/hardware.h"
#include "core/job/recipe.h"
#include "core/model/model.h"

static bool add(struct settings *more, const struct settings *s, struct setting item,
                struct error *e)
{
    return settings_find(s, item.key) || settings_set(more, item, e);
}

static bool has_vision(const struct settings *s)
{
    struct error ignored = {0};
    struct model m;
    return model_from_settings(&m, s->arena, s, &ignored) && m.vision.depth;
}

static struct str framework_of(const struct settings *s)
{
    const struct setting *target = settings_find_z(s, "for"),
                         *recipe = settings_find_z(s, "recipe");
    struct str name = target ? target->value : recipe ? recipe->value : STR_NONE;
    return str_cut(name, '@').head;
}

bool foreign_settle(struct settings *more, const struct settings *s, const struct foreign *f,
                    struct error *e)
{
    struct str source = str_cut(str_from(f->recipe ? f->recipe : ""), '@').head;
    struct setting frozen = {STR("freeze"), STR("vision"), f->freezes_vision};
    struct error ignored = {0};
    struct hardware h;
    if (f->freezes_vision.n && has_vision(s) && !add(more, s, frozen, e))
        return false;
    if (!source.n || str_equal(source, framework_of(s)) ||
        !hardware_from_settings(&h, s->arena, s, &ignored))
        return true;
    return recipe_choices(more, s, source, hardware_gpus(&h) > 1, e);
}

void foreign_note_left(struct foreign *f, struct arena *a)
{
    struct buf b = buf_in(a);
    for (int i = 0; i < f->left_count; i++)
        buf_printf(&b, "%s%.*s",
                   !i                      ? ""
                   : i + 1 < f->left_count ? ", "
                                           : " and ",
                   STR_ARGS(f->left[i]));
    if (f->left_count)
        foreign_note(f, str_format(a, "%.*s %s not carried over: emit writes values of its own",
                                   STR_ARGS(buf_str(&b)), f->left_count > 1 ? "are" : "is"));
}
