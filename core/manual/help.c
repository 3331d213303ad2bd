// `fathom help`: an overview, the settings, one of them, or one command.
#include "core/manual/manual.h"

#include "core/job/recipe.h"

// The last line of a long list of values; those before it are printed, broken after a "|".
static struct str last_line(struct buf *b, struct str left, const struct view *v)
{
    enum { INDENT = 2 };
    while (INDENT + text_width(left) > v->width) {
        struct str head = str_slice(left, 0, v->width - INDENT);
        struct str_cut cut = str_cut_last(head, '|');
        if (!cut.found)
            break;
        put_ink(b, v, INK_BOLD, str_slice(left, 0, cut.head.n + 1));
        buf_put_z(b, "\n  ");
        left = str_join(b->arena, STR("    "), str_slice(left, cut.head.n + 1, left.n));
    }
    return left;
}

static void print_pair(struct buf *b, struct str left, const char *right, const struct view *v)
{
    enum { TEXT_COLUMN = 22 };
    buf_put_z(b, "  ");
    left = last_line(b, left, v);
    put_ink(b, v, INK_BOLD, left);
    ptrdiff_t used = 2 + text_width(left);
    if (used + 2 > TEXT_COLUMN) {
        buf_char(b, '\n');
        used = 0;
    }
    struct buf wrapped = buf_in(b->arena);
    buf_wrapped(&wrapped, str_from(right), TEXT_COLUMN, v->width);
    buf_put(b, str_slice(buf_str(&wrapped), used, wrapped.n));
}

static void print_option(struct buf *b, const char *name, const char *values, const char *text,
                         const struct view *v)
{
    struct str left =
        values ? str_format(b->arena, "--%s %s", name, values) : str_format(b->arena, "--%s", name);
    print_pair(b, left, text, v);
}

static const char *default_of(const struct setting_def *d)
{
    return d->usual ? d->usual : d->fallback;
}

// Under which conditions a recipe sets it: " with fsdp1|fsdp2 on several GPUs".
static void put_conditions(struct buf *b, const struct recipe_row *row)
{
    const struct {
        bool asked;
        const char *words;
    } conditions[] = {
        {row->several, "on several GPUs"},
        {row->alone, "on one GPU"},
        {row->offloaded, "with offload"},
        {row->adapted, "with adapters"},
        {row->packed, "over packed weights"},
        {row->fused, "with Liger's loss"},
        {row->stretched, "with a tiled MLP or checkpoints in host memory"},
        {row->cut, "with tensor parallel"},
        {row->recomputed, "with checkpointing"},
    };
    if (row->tasks)
        buf_printf(b, " for %s", row->tasks);
    if (row->strategies)
        buf_printf(b, " with %s", row->strategies);
    for (ptrdiff_t i = 0; i < COUNT_OF(conditions); i++)
        if (conditions[i].asked)
            buf_printf(b, " %s", conditions[i].words);
    if (row->versions)
        buf_printf(b, " in %s", row->versions);
}

// What recipes set instead: "; trl: mixed with fsdp1|fsdp2".
static void put_recipe_defaults(struct buf *b, const struct setting_def *d)
{
    for (ptrdiff_t i = 0; i < recipe_row_count; i++) {
        const struct recipe_row *row = &recipe_rows[i];
        if (!row->recipe || !str_is(str_from(d->name), row->setting) ||
            str_is(str_from(default_of(d)), row->value))
            continue;
        buf_printf(b, "; %s: %s", row->recipe, row->value);
        put_conditions(b, row);
    }
}

// In full, what recipes set; in short, that they do.
enum detail { IN_FULL, IN_SHORT };

static const char *setting_text(struct arena *a, const struct setting_def *d, enum detail detail)
{
    if (!default_of(d))
        return d->text;
    struct buf b = buf_in(a), recipes = buf_in(a);
    put_recipe_defaults(&recipes, d);
    buf_printf(&b, "%s (default: %s", d->text, default_of(d));
    if (detail == IN_FULL)
        buf_put(&b, buf_str(&recipes));
    else if (recipes.n)
        buf_put_z(&b, ", or the recipe's");
    buf_put_z(&b, ")");
    return str_z(a, buf_str(&b));
}

static void print_setting(struct buf *b, const struct setting_def *d, enum detail detail,
                          const struct view *v)
{
    struct str letter = d->letter ? str_format(b->arena, "-%c, ", d->letter) : STR_NONE;
    bool alone = d->kind == SETTING_FLAG;
    struct str values = alone ? STR_NONE : setting_values(b->arena, d);
    struct str left = str_format(b->arena, "%.*s--%s%s%.*s", STR_ARGS(letter), d->name,
                                 alone ? "" : " ", STR_ARGS(values));
    print_pair(b, left, setting_text(b->arena, d, detail), v);
}

static void print_globals(struct buf *b, const struct view *v)
{
    for (ptrdiff_t i = 0; i < global_option_count; i++)
        print_option(b, global_options[i].name, global_options[i].values, global_options[i].text,
                     v);
}

static void overview(struct buf *b, const struct view *v)
{
    buf_wrapped(b, STR("fathom: " MANUAL_QUESTIONS "."), 0, v->width);
    buf_put_z(b, "\nusage: fathom COMMAND [options]\n\n");
    for (ptrdiff_t i = 0; i < command_count; i++)
        print_pair(b, str_from(commands[i].name), commands[i].summary, v);
    buf_put_z(b, "\nEvery command takes:\n");
    print_globals(b, v);
    buf_char(b, '\n');
    buf_wrapped(b,
                STR("'fathom COMMAND --help' explains a command, 'fathom help NAME' a setting, "
                    "'fathom help settings' all of them."),
                0, v->width);
}

static void all_settings(struct buf *b, const struct view *v)
{
    buf_wrapped(b,
                STR("Each setting is an option, a key of a --from file, and a key under "
                    "\"settings\" in JSON replies."),
                0, v->width);
    buf_char(b, '\n');
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        if (!def->operand)
            print_setting(b, def, IN_FULL, v);
}

// One setting, with what each recipe sets and how that is known.
static void one_setting(struct buf *b, const struct setting_def *d, const struct view *v)
{
    print_setting(b, d, IN_SHORT, v);
    for (ptrdiff_t i = 0; i < recipe_row_count; i++) {
        const struct recipe_row *row = &recipe_rows[i];
        struct buf text = buf_in(b->arena);
        if (!row->recipe || !str_is(str_from(d->name), row->setting))
            continue;
        buf_printf(&text, "%s: %s", row->recipe, row->value);
        put_conditions(&text, row);
        buf_printf(&text, " (%s)", row->evidence);
        buf_wrapped(b, buf_str(&text), 4, v->width);
    }
}

static bool is_explained(const struct setting_def *d)
{
    return !(d->uses & USE_JOB) || d->uses & USE_OFTEN;
}

// What a command takes beyond what its help explains.
static void name_the_others(struct buf *b, const struct command *c, const struct view *v)
{
    struct buf names = buf_in(b->arena);
    const struct setting_def *d = NULL;
    while ((d = command_setting(c, d)))
        if (!is_explained(d))
            buf_printf(&names, "%s--%s", names.n ? ", " : "", d->name);
    if (!names.n)
        return;
    buf_char(b, '\n');
    buf_wrapped(b,
                str_format(b->arena,
                           "Further settings of a job: %.*s. 'fathom help NAME' explains one, "
                           "'fathom help settings' all of them.",
                           STR_ARGS(buf_str(&names))),
                0, v->width);
}

static void one_command(struct buf *b, const struct command *c, const struct view *v)
{
    buf_put_z(b, "usage: ");
    put_usage(b, c);
    buf_put_z(b, "\n\n");
    buf_wrapped(b, str_from(c->description), 0, v->width);
    buf_put_z(b, "\nExamples:\n");
    for (int i = 0; i < COMMAND_MAX_EXAMPLES && c->examples[i].arguments; i++) {
        buf_printf(b, "  fathom %s\n", c->examples[i].arguments);
        buf_wrapped(b, str_from(c->examples[i].text), 6, v->width);
    }
    buf_put_z(b, "\nOptions:\n");
    const struct setting_def *d = NULL;
    while ((d = command_setting(c, d)))
        if (is_explained(d))
            print_setting(b, d, IN_SHORT, v);
    print_globals(b, v);
    name_the_others(b, c, v);
}

static void command_json(struct json_out *j, const struct command *c)
{
    json_out_object(j);
    json_out_field_str(j, "name", str_from(c->name));
    json_out_field_str(j, "summary", str_from(c->summary));
    json_out_key(j, "settings");
    json_out_array(j);
    const struct setting_def *d = NULL;
    while ((d = command_setting(c, d)))
        json_out_str(j, str_from(d->name));
    json_out_array_end(j);
    json_out_object_end(j);
}

// What recipes set where nobody says it, when, and where that is known from.
static void recipes_json(struct json_out *j, const struct setting_def *d)
{
    json_out_key(j, "recipes");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < recipe_row_count; i++) {
        const struct recipe_row *row = &recipe_rows[i];
        struct buf when = buf_in(j->out->arena);
        if (!str_is(str_from(d->name), row->setting))
            continue;
        put_conditions(&when, row);
        json_out_object(j);
        if (row->recipe)
            json_out_field_str(j, "recipe", str_from(row->recipe));
        json_out_field_str(j, "value", str_from(row->value));
        json_out_field_str(j, "when", str_trim(buf_str(&when)));
        json_out_field_str(j, "evidence", str_from(row->evidence));
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void setting_json(struct json_out *j, const struct setting_def *d)
{
    static const char *const kinds[] = {
        [SETTING_TEXT] = "text",   [SETTING_CHOICE] = "choice", [SETTING_COUNT] = "count",
        [SETTING_BYTES] = "bytes", [SETTING_SWITCH] = "switch", [SETTING_FLAG] = "flag",
    };
    json_out_object(j);
    json_out_field_str(j, "name", str_from(d->name));
    json_out_field_str(j, "kind", str_from(kinds[d->kind]));
    json_out_field_str(j, "values", setting_values(j->out->arena, d));
    if (default_of(d))
        json_out_field_str(j, "default", str_from(default_of(d)));
    json_out_field_str(j, "text", str_from(d->text));
    recipes_json(j, d);
    json_out_object_end(j);
}

static void tables_json(struct buf *out)
{
    struct json_out j = json_out_to(out);
    json_out_object(&j);
    json_out_key(&j, "commands");
    json_out_array(&j);
    for (ptrdiff_t i = 0; i < command_count; i++)
        command_json(&j, &commands[i]);
    json_out_array_end(&j);
    json_out_key(&j, "settings");
    json_out_array(&j);
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        setting_json(&j, def);
    json_out_array_end(&j);
    json_out_object_end(&j);
    json_out_end(&j);
}

bool help_answer(struct answer *a, const struct query *q, struct error *e)
{
    const struct setting *topic = settings_find_z(q->settings, "topic");
    const struct command *c = topic ? command_find(topic->value) : NULL;
    const struct setting_def *setting = topic ? setting_def_find(topic->value) : NULL;
    bool settings = topic && str_is(topic->value, "settings");
    if (topic && !c && !settings && !setting)
        return command_unknown(topic->value, e);
    if (q->json)
        tables_json(&a->out);
    else if (c)
        one_command(&a->out, c, &q->view);
    else if (settings)
        all_settings(&a->out, &q->view);
    else if (setting)
        one_setting(&a->out, setting, &q->view);
    else
        overview(&a->out, &q->view);
    return true;
}
