// `fathom completion SHELL`: scripts that complete commands, options, and the values the tables
// know (choices, model names, cards).
#include "core/hardware/hardware.h"
#include "core/manual/manual.h"
#include "core/model/model.h"

static void put_choices(struct buf *b, struct str choices)
{
    for (ptrdiff_t i = 0; i < choices.n; i++)
        buf_put(b, choices.p[i] == '|' ? STR(" ") : str_slice(choices, i, i + 1));
}

// Words that may follow --name, separated by spaces; empty where anything may.
static void put_values(struct buf *b, const struct setting_def *d)
{
    if (d->kind == SETTING_SWITCH || d->kind == SETTING_FLAG) {
        buf_put_z(b, "on off");
    } else if (d->kind == SETTING_CHOICE) {
        put_choices(b, setting_values(b->arena, d));
    } else if (str_is(str_from(d->name), "model")) {
        const struct catalog_model *row;
        for (ptrdiff_t i = 0; (row = catalog_model_at(i)); i++)
            buf_printf(b, "%s%s", i ? " " : "", row->name);
    } else if (str_is(str_from(d->name), "gpu")) {
        buf_put_z(b, "auto");
        const struct gpu *g;
        for (ptrdiff_t i = 0; (g = gpu_at(i)); i++)
            buf_printf(b, " %s", g->name);
    } else if (str_is(str_from(d->name), "topic")) {
        buf_put_z(b, "settings");
        for (ptrdiff_t i = 0; i < command_count; i++)
            buf_printf(b, " %s", commands[i].name);
    }
}

static void put_options(struct buf *b, const struct command *c)
{
    const struct setting_def *d = NULL;
    while ((d = command_setting(c, d)))
        buf_printf(b, "--%s ", d->name);
    for (ptrdiff_t i = 0; i < global_option_count; i++)
        buf_printf(b, "%s--%s", i ? " " : "", global_options[i].name);
}

static void put_command_names(struct buf *b)
{
    for (ptrdiff_t i = 0; i < command_count; i++)
        buf_printf(b, "%s%s", i ? " " : "", commands[i].name);
}

static void bash(struct buf *b)
{
    buf_put_z(b, "_fathom() {\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
                 "    local words=\n"
                 "    case $previous in\n");
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        buf_printf(b, "    --%s) words=\"", def->name);
        put_values(b, def);
        buf_put_z(b, "\" ;;\n");
    }
    buf_put_z(b, "    --from) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
                 "    *) case ${COMP_WORDS[1]} in\n");
    for (ptrdiff_t i = 0; i < command_count; i++) {
        buf_printf(b, "        %s) words=\"", commands[i].name);
        put_options(b, &commands[i]);
        if (commands[i].operand) {
            buf_char(b, ' ');
            put_values(b, setting_def_find(str_from(commands[i].operand)));
        }
        buf_put_z(b, "\" ;;\n");
    }
    buf_put_z(b, "        esac ;;\n    esac\n    [ \"$COMP_CWORD\" = 1 ] && words=\"");
    put_command_names(b);
    buf_put_z(b, "\"\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                 "    [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- \"$word\"))\n"
                 "}\ncomplete -F _fathom fathom\n");
}

static void zsh(struct buf *b)
{
    buf_put_z(b, "#compdef fathom\nautoload -U +X bashcompinit && bashcompinit\n");
    bash(b);
}

// Single quotes keep everything literal for fish but themselves and backslashes.
static void put_fish_quoted(struct buf *b, const char *text)
{
    buf_char(b, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buf_char(b, '\\');
        buf_char(b, *text);
    }
    buf_char(b, '\'');
}

static void fish_setting(struct buf *b, const struct command *c, const struct setting_def *d)
{
    buf_printf(b, "complete -c fathom -n '__fish_seen_subcommand_from %s' -l %s -x -a '", c->name,
               d->name);
    put_values(b, d);
    buf_put_z(b, "' -d ");
    put_fish_quoted(b, d->text);
    buf_char(b, '\n');
}

static void fish_command(struct buf *b, const struct command *c)
{
    buf_printf(b, "complete -c fathom -n __fish_use_subcommand -f -a %s -d ", c->name);
    put_fish_quoted(b, c->summary);
    buf_char(b, '\n');
    const struct setting_def *d = NULL;
    while ((d = command_setting(c, d)))
        fish_setting(b, c, d);
    if (!c->operand)
        return;
    buf_printf(b, "complete -c fathom -n '__fish_seen_subcommand_from %s' -a '", c->name);
    put_values(b, setting_def_find(str_from(c->operand)));
    buf_put_z(b, "'\n");
}

static void fish(struct buf *b)
{
    for (ptrdiff_t i = 0; i < command_count; i++)
        fish_command(b, &commands[i]);
    for (ptrdiff_t i = 0; i < global_option_count; i++) {
        buf_printf(b, "complete -c fathom -l %s %s-d ", global_options[i].name,
                   global_options[i].values ? "-r " : "");
        put_fish_quoted(b, global_options[i].text);
        buf_char(b, '\n');
    }
}

bool completion_answer(struct answer *a, const struct query *q, struct error *e)
{
    static const struct {
        const char *shell;
        void (*write)(struct buf *b);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const struct setting *shell = settings_find_z(q->settings, "shell");
    if (!shell)
        return FAIL(e, BAD_INPUT, STR_NONE, "completion needs a shell: bash, zsh or fish");
    struct buf b = buf_in(q->arena);
    for (ptrdiff_t i = 0; i < COUNT_OF(shells); i++)
        if (str_is(shell->value, shells[i].shell))
            shells[i].write(&b);
    answer_text(a, q, buf_str(&b));
    return true;
}
