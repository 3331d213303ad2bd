// Reading arguments. An option takes its value as "--name value" or "--name=value"; "--" ends them.
#include "cli/options.h"

#include "cli/elsewhere.h"

struct arguments {
    const char *const *values;
    int count, next;
};

static const struct global_option *find_global(struct str name)
{
    for (ptrdiff_t i = 0; i < global_option_count; i++)
        if (str_is(name, global_options[i].name))
            return &global_options[i];
    return NULL;
}

// `option` is what the user wrote.
static bool add_as(struct options *o, const char *option, const char *name, struct str value,
                   struct error *e)
{
    struct arena *a = o->settings.arena;
    struct setting item = {str_from(name), value, str_format(a, "--%s", option)};
    const struct setting *earlier = settings_find_z(&o->settings, name);
    if (earlier && !str_equal(earlier->value, value))
        return FAIL(e, BAD_INPUT, item.where, "%s is given twice, as '%.*s' and '%.*s'", name,
                    STR_ARGS(str_short(earlier->value)), STR_ARGS(str_short(value)));
    return settings_add(&o->settings, item, e);
}

static bool add(struct options *o, const char *name, struct str value, struct error *e)
{
    return add_as(o, name, name, value, e);
}

static bool take_value(struct str *value, const char *name, struct str_cut pair,
                       struct arguments *args, struct error *e)
{
    if (pair.found) {
        *value = pair.tail;
        return true;
    }
    if (args->next == args->count)
        return FAIL(e, BAD_INPUT, STR_NONE, "--%s needs a value", name);
    *value = str_from(args->values[args->next++]);
    return true;
}

static bool set_global(struct options *o, const struct global_option *g, struct str_cut pair,
                       struct arguments *args, struct error *e)
{
    if (g->values && o->from_count == MOST_REQUESTS)
        return FAIL(e, BAD_INPUT, STR_NONE, "--%s is given more than %d times", g->name,
                    MOST_REQUESTS);
    if (g->values) {
        struct str *from = &o->from[o->from_count++];
        return take_value(from, g->name, pair, args, e) &&
               (from->n || FAIL(e, BAD_INPUT, STR_NONE, "--%s must not be empty", g->name));
    }
    if (pair.found)
        return FAIL(e, BAD_INPUT, STR_NONE, "--%s takes no value", g->name);
    struct str name = str_from(g->name);
    o->json |= str_is(name, "json");
    o->help |= str_is(name, "help");
    o->debug |= str_is(name, "debug");
    o->version |= str_is(name, "version");
    return true;
}

// "--gpu, as in ...": whether the command takes what it begins with.
static bool takes_meant(const struct options *o, const char *meant)
{
    struct str text = str_from(meant), name = str_cut(str_slice(text, 2, text.n), ' ').head;
    name = str_cut(name, ',').head;
    return command_takes(o->command, name) || find_global(name);
}

// As it was written: "--contxt", "-m".
static bool unknown_option(const struct options *o, const char *dashes, struct str name,
                           struct error *e)
{
    const struct setting_def *elsewhere = setting_def_find(name);
    struct str_nearest nearest = str_nearest_to(name);
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        if (command_takes(o->command, str_from(def->name)))
            str_nearest_offer(&nearest, str_from(def->name));
    for (ptrdiff_t i = 0; i < global_option_count; i++)
        str_nearest_offer(&nearest, str_from(global_options[i].name));
    const char *meant = option_elsewhere(name);
    FAIL(e, BAD_INPUT, STR_NONE,
         elsewhere ? "'fathom %s' takes no %s%.*s" : "'fathom %s' has no option %s%.*s",
         o->command->name, dashes, STR_ARGS(str_short(name)));
    if (meant && takes_meant(o, meant))
        return HINT(e, "here that is %s", meant);
    if (nearest.best.n && !elsewhere)
        return HINT(e, "did you mean --%.*s?", STR_ARGS(nearest.best));
    return HINT(e, "'fathom %s --help' lists its options", o->command->name);
}

static const struct option_alias *find_alias(const struct command *c, struct str name)
{
    for (const struct option_alias *a = c->aliases; a && a->name; a++)
        if (str_is(name, a->name))
            return a;
    return NULL;
}

static bool value_follows(const struct arguments *args)
{
    return args->next < args->count && !str_starts(str_from(args->values[args->next]), STR("-"));
}

// The option of another program: it may stand alone, or take several values with spaces.
static bool read_alias(struct options *o, const struct option_alias *alias, struct str_cut pair,
                       struct arguments *args, struct error *e)
{
    struct str value = str_from(alias->bare);
    if (alias->refused)
        return FAIL(e, UNSUPPORTED, str_format(o->settings.arena, "--%s", alias->name), "%s",
                    alias->refused);
    if ((!alias->bare || pair.found || value_follows(args)) &&
        !take_value(&value, alias->name, pair, args, e))
        return false;
    while (alias->many && value_follows(args))
        value =
            str_format(o->settings.arena, "%.*s,%s", STR_ARGS(value), args->values[args->next++]);
    if (alias->spelled && str_is(value, alias->spelled))
        value = str_from(alias->meant);
    bool ours = str_is(str_from(alias->name), alias->setting);
    if (!ours)
        o->alias = str_format(o->settings.arena, "--%s", alias->name);
    return add_as(o, alias->name, alias->setting, value, e);
}

static bool read_option(struct options *o, struct str text, struct arguments *args, struct error *e)
{
    struct str_cut pair = str_cut(text, '=');
    const struct global_option *g = find_global(pair.head);
    if (g)
        return set_global(o, g, pair, args, e);
    const struct option_alias *alias = find_alias(o->command, pair.head);
    if (alias)
        return read_alias(o, alias, pair, args, e);
    const struct setting_def *def = setting_def_find(pair.head);
    if (!def || !command_takes(o->command, pair.head))
        return unknown_option(o, "--", pair.head, e);
    struct str value = STR("on");
    bool alone = def->kind == SETTING_FLAG && !pair.found;
    if (!alone && !take_value(&value, def->name, pair, args, e))
        return str_cut(str_from(def->values), '|').found ? HINT(e, "one of %s", def->values)
                                                         : false;
    return add(o, def->name, value, e);
}

// "-o value" or "-ovalue".
static bool read_letter(struct options *o, struct str text, struct arguments *args, struct error *e)
{
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        if (!def->letter || def->letter != text.p[0] ||
            !command_takes(o->command, str_from(def->name)))
            continue;
        struct str_cut pair = {.tail = str_slice(text, 1, text.n), .found = text.n > 1};
        struct str value;
        return take_value(&value, def->name, pair, args, e) && add(o, def->name, value, e);
    }
    return unknown_option(o, "-", text, e);
}

static bool read_operand(struct options *o, struct str text, struct error *e)
{
    if (!o->command->operand) {
        FAIL(e, BAD_INPUT, STR_NONE, "'fathom %s' takes no argument '%.*s'", o->command->name,
             STR_ARGS(str_short(text)));
        return HINT(e, "'fathom %s --help' lists its options", o->command->name);
    }
    return add(o, o->command->operand, text, e);
}

// Global options may stand before the command; --help and --version do without one.
static bool read_command(struct options *o, struct arguments *args, struct error *e)
{
    while (args->next < args->count) {
        struct str text = str_from(args->values[args->next++]);
        struct str_cut pair = str_cut(text.n > 2 ? str_slice(text, 2, text.n) : STR_NONE, '=');
        const struct global_option *g = find_global(pair.head);
        if (str_is(text, "-h"))
            o->help = true;
        else if (g && str_starts(text, STR("--"))) {
            if (!set_global(o, g, pair, args, e))
                return false;
        } else {
            o->command = command_find(text);
            return o->command ? true : command_unknown(text, e);
        }
    }
    if (o->version || o->help) {
        o->command = command_find(STR("help"));
        return true;
    }
    return FAIL(e, BAD_INPUT, STR_NONE, "no command is given; 'fathom help' lists them");
}

static bool read_arguments(struct options *o, struct arguments *args, struct error *e)
{
    bool options_ended = false;
    while (args->next < args->count) {
        struct str text = str_from(args->values[args->next++]);
        bool ok = true;
        if (options_ended || !str_starts(text, STR("-")) || text.n == 1)
            ok = read_operand(o, text, e);
        else if (str_is(text, "--"))
            options_ended = true;
        else if (str_is(text, "-h"))
            o->help = true;
        else if (str_starts(text, STR("--")))
            ok = read_option(o, str_slice(text, 2, text.n), args, e);
        else
            ok = read_letter(o, str_slice(text, 1, text.n), args, e);
        if (!ok)
            return false;
    }
    return true;
}

bool options_want_json(int argc, const char *const *argv)
{
    for (int i = 1; i < argc && !str_is(str_from(argv[i]), "--"); i++)
        if (str_is(str_from(argv[i]), "--json"))
            return true;
    return false;
}

bool options_read(struct options *o, struct arena *a, int argc, const char *const *argv,
                  struct error *e)
{
    struct arguments args = {argv, argc, 1};
    *o = (struct options){.settings = settings_in(a)};
    o->json = options_want_json(argc, argv);
    return read_command(o, &args, e) && read_arguments(o, &args, e);
}

bool options_imply(struct options *o, struct error *e)
{
    struct settings implied = settings_in(o->settings.arena);
    const char *text = o->alias.n ? o->command->alias_settings : NULL;
    if (!text || !settings_read(&implied, str_from(text), ' ', o->alias, e))
        return !text;
    for (ptrdiff_t i = 0; i < implied.count; i++)
        if (!settings_find(&o->settings, implied.items[i].key) &&
            !settings_add(&o->settings, implied.items[i], e))
            return false;
    return true;
}
