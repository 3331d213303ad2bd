// `fathom man`: the manual page in roff's man macros.
#include "core/manual/manual.h"

// roff reads a leading dot or quote as a request and a backslash as an escape; a plain dash would
// become a hyphen.
static void put_roff(struct buf *b, struct str s)
{
    for (ptrdiff_t i = 0; i < s.n; i++) {
        if (i == 0 && (s.p[i] == '.' || s.p[i] == '\''))
            buf_put_z(b, "\\&");
        if (s.p[i] == '\\')
            buf_put_z(b, "\\e");
        else if (s.p[i] == '-')
            buf_put_z(b, "\\-");
        else
            buf_char(b, s.p[i]);
    }
}

static void put_option(struct buf *b, const char *name, const char *values, const char *text)
{
    buf_put_z(b, ".TP\n.B \\-\\-");
    put_roff(b, str_from(name));
    if (values) {
        buf_char(b, ' ');
        put_roff(b, str_from(values));
    }
    buf_char(b, '\n');
    put_roff(b, str_from(text));
    buf_put_z(b, ".\n");
}

static void put_command(struct buf *b, const struct command *c)
{
    struct buf usage = buf_in(b->arena);
    put_usage(&usage, c);
    buf_put_z(b, ".TP\n.B ");
    put_roff(b, buf_str(&usage));
    buf_char(b, '\n');
    put_roff(b, str_from(c->description));
    buf_char(b, '\n');
    const struct setting_def *d = NULL;
    bool any = false;
    while ((d = command_setting(c, d))) {
        buf_put_z(b, any ? " \\-\\-" : "Settings: \\-\\-");
        put_roff(b, str_from(d->name));
        any = true;
    }
    buf_put_z(b, any ? ".\n" : "");
}

static void put_exit_status(struct buf *b)
{
    static const struct {
        const char *status, *meaning;
    } rows[] = {
        {"0", "the answer is yes, or the work is done"},
        {"1", "the answer is \"does not fit\""},
        {"2", "bad input: one sentence names the option and what is allowed"},
        {"3", "something outside failed: a file, the network, the driver"},
        {"70", "a defect of fathom itself"},
    };
    buf_put_z(b, ".SH EXIT STATUS\n");
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        buf_printf(b, ".TP\n.B %s\n", rows[i].status);
        put_roff(b, str_from(rows[i].meaning));
        buf_put_z(b, ".\n");
    }
}

static void put_environment(struct buf *b)
{
    buf_put_z(b, ".SH ENVIRONMENT\n"
                 "HF_HOME and HF_HUB_CACHE say where models are cached, HF_ENDPOINT and HF_TOKEN\n"
                 "which hub is asked and as whom, HF_HUB_OFFLINE=1 that none is.\n"
                 "NO_COLOR turns colour off; COLUMNS is the width where output is no terminal.\n");
}

bool man_answer(struct answer *a, const struct query *q, struct error *e)
{
    (void)e;
    struct buf b = buf_in(q->arena);
    buf_put_z(&b, ".TH FATHOM 1\n.SH NAME\n"
                  "fathom \\- predict the memory of training a language model\n"
                  ".SH SYNOPSIS\n.B fathom\nCOMMAND [options]\n.SH DESCRIPTION\n"
                  "Answers " MANUAL_QUESTIONS ".\n.SH COMMANDS\n");
    for (ptrdiff_t i = 0; i < command_count; i++)
        put_command(&b, &commands[i]);
    buf_put_z(&b, ".SH OPTIONS OF EVERY COMMAND\n");
    for (ptrdiff_t i = 0; i < global_option_count; i++)
        put_option(&b, global_options[i].name, global_options[i].values, global_options[i].text);
    buf_put_z(&b, ".SH SETTINGS\nNumbers accept 32k, 32768, 79.15GiB and 80GB.\n");
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        if (!def->operand)
            put_option(&b, def->name, str_z(q->arena, setting_values(q->arena, def)), def->text);
    put_exit_status(&b);
    put_environment(&b);
    answer_text(a, q, buf_str(&b));
    return true;
}
