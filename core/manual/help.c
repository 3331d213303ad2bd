// `fathom help`: an overview, the settings, or one command.
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
    if (row->strategies)
        buf_printf(b, " with %s", row->strategies);
    if (row->several)
        buf_put_z(b, " on several GPUs");
    if (row->offloaded)
        buf_put_z(b, " with offload");
    if (row->adapted)
        buf_put_z(b, " with adapters");
    if (row->packed)
        buf_put_z(b, " over packed weights");
    if (row->compared)
        buf_put_z(b, " for kto");
    if (row->cut)
        buf_put_z(b, " with tensor parallel");
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

static const char *setting_text(struct arena *a, const struct setting_def *d)
{
    if (!default_of(d))
        return d->text;
    struct buf b = buf_in(a);
    buf_printf(&b, "%s (default: %s", d->text, default_of(d));
    put_recipe_defaults(&b, d);
    buf_put_z(&b, ")");
    return str_z(a, buf_str(&b));
}

static void print_setting(struct buf *b, const struct setting_def *d, const struct view *v)
{
    struct str letter = d->letter ? str_format(b->arena, "-%c, ", d->letter) : STR_NONE;
    bool alone = d->kind == SETTING_FLAG;
    struct str values = alone ? STR_NONE : setting_values(b->arena, d);
    struct str left = str_format(b->arena, "%.*s--%s%s%.*s", STR_ARGS(letter), d->name,
                                 alone ? "" : " ", STR_ARGS(values));
    print_pair(b, left, setting_text(b->arena, d), v);
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
    buf_put_z(b, "\n'fathom COMMAND --help' explains one, 'fathom help settings' lists the "
                 "settings.\n");
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
            print_setting(b, def, v);
}

static void one_command(struct buf *b, const struct command *c, const struct view *v)
{
    buf_put_z(b, "usage: ");
    put_usage(b, c);
    buf_put_z(b, "\n\n");
    buf_wrapped(b, str_from(c->description), 0, v->width);
    buf_put_z(b, "\nOptions:\n");
    const struct setting_def *d = NULL;
    while ((d = command_setting(c, d)))
        print_setting(b, d, v);
    print_globals(b, v);
    buf_put_z(b, "\nExamples:\n");
    for (int i = 0; i < COMMAND_MAX_EXAMPLES && c->examples[i].arguments; i++) {
        buf_printf(b, "  fathom %s\n", c->examples[i].arguments);
        buf_wrapped(b, str_from(c->examples[i].text), 6, v->width);
    }
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
    bool settings = topic && str_is(topic->value, "settings");
    if (topic && !c && !settings)
        return command_unknown(topic->value, e);
    if (q->json)
        tables_json(&a->out);
    else if (c)
        one_command(&a->out, c, &q->view);
    else if (settings)
        all_settings(&a->out, &q->view);
    else
        overview(&a->out, &q->view);
    return true;
}
