// Launch scripts, as far as they say what is trained. The shell (shell.h) gives the commands; here
// is what a command means: words "section.key=value" are overrides of verl wherever they stand,
// what slime's train.py gets are its arguments ("slime.tensor-model-parallel-size"), what emit's
// own train.py gets out of its "arguments=( ... )" are those of emit, and what a trainer gets on
// its command line are keys of its files (trainer_command). A file that only fills MODEL_ARGS is
// one of slime's models. Comments "# Predicted with --name value" are what no word of the
// frameworks says.
#include "core/foreign/foreign.h"
#include "core/foreign/shell.h"
#include "core/foreign/trainer_command.h"

struct script {
    struct settings *settings;
    struct shell shell;
    struct str source;
    struct error *error;
    int sourced, started;
    bool runs_slime, runs_trainer;
    bool within; // a text that a shell is given as its commands
};

enum { MOST_VALUES = 2000 };

static struct str place(const struct script *s, struct arena *a, int line)
{
    return str_format(a, "%.*s:%d", STR_ARGS(s->source), line);
}

// As settings_set, up to so many.
static bool put_at(struct script *s, struct str key, struct str value, struct str where)
{
    struct arena *a = s->settings->arena;
    struct setting item = {str_copy(a, key), str_copy(a, value), where};
    if (!key.n)
        return true;
    if (!settings_set(s->settings, item, s->error))
        return false;
    return s->settings->count <= MOST_VALUES ||
           FAIL(s->error, BAD_INPUT, s->source, "more than %d values are set", MOST_VALUES);
}

static bool put(struct script *s, struct str key, struct str value, int line)
{
    return put_at(s, key, value, place(s, s->settings->arena, line));
}

static bool put_under(struct script *s, const char *section, struct str key,
                      struct shell_word value)
{
    struct arena scratch = s->shell.scratch;
    return put(s, str_join(&scratch, str_from(section), key), value.text, value.line);
}

static struct str last_part(struct str path)
{
    struct str_cut cut = str_cut_last(path, '/');
    return cut.found ? cut.tail : path;
}

// "+key=value" adds a key that verl's files do not have, "++key=value" sets it either way.
static struct str without_plus(struct str word)
{
    while (str_starts(word, STR("+")))
        word = str_slice(word, 1, word.n);
    return word;
}

static bool is_section(struct str key)
{
    static const char sections[] =
        "actor_rollout_ref|algorithm|data|trainer|critic|reward_model|reward|"
        "reward_manager|custom_reward_function|global_profiler|ray_kwargs";
    struct str_cut cut = str_cut(key, '.');
    return cut.found && words_have(sections, '|', cut.head);
}

static bool is_key(struct str text)
{
    for (ptrdiff_t i = 0; i < text.n; i++) {
        char c = text.p[i], small = char_lower(c);
        bool letter = small >= 'a' && small <= 'z';
        if (!letter && !char_is_digit(c) && c != '_' && c != '.' && c != '-' && c != '/' &&
            c != '@')
            return false;
    }
    return text.n && text.p[0] != '-';
}

static bool has_overrides(const struct shell_words *words)
{
    for (ptrdiff_t i = 0; i < words->count; i++) {
        struct str_cut pair = str_cut(without_plus(words->items[i].text), '=');
        if (pair.found && is_section(pair.head))
            return true;
    }
    return false;
}

// "--config-name=NAME" of Hydra, which takes it in two words, too.
static struct str option_of(const struct shell_words *words, ptrdiff_t at, const char *name)
{
    struct str_cut pair = str_cut(words->items[at].text, '=');
    if (!str_is(pair.head, name))
        return STR_NONE;
    return pair.found ? pair.tail : at + 1 < words->count ? words->items[at + 1].text : STR_NONE;
}

// The next of several overrides in quotes that the shell did not part, else nothing.
static struct str next_override(struct str_cut *pair)
{
    struct str_cut next = str_cut(str_trim(pair->tail), ' ');
    struct str_cut more = str_cut(without_plus(str_trim(next.tail)), '=');
    if (!is_section(pair->head) || !more.found || !is_section(more.head))
        return STR_NONE;
    pair->tail = next.head;
    return str_trim(next.tail);
}

// "~key" takes one away.
static bool read_override(struct script *s, struct shell_word word, bool runs)
{
    for (struct str rest = word.text; rest.n;) {
        struct str_cut pair = str_cut(without_plus(rest), '=');
        bool sectioned = str_cut(pair.head, '.').found;
        if (str_starts(rest, STR("~")))
            return put(s, rest, pair.tail, word.line);
        if (!pair.found || !(is_section(pair.head) || (is_key(pair.head) && (runs || sectioned))))
            return true;
        rest = next_override(&pair);
        if (!put(s, pair.head, pair.tail, word.line))
            return false;
    }
    return true;
}

// Beside overrides of verl's sections every "key=value" is one, and a key without a section behind
// the program.
static bool read_overrides(struct script *s, const struct shell_words *words)
{
    bool runs = false;
    for (ptrdiff_t i = 0; i < words->count; i++) {
        struct shell_word word = words->items[i];
        struct str module = option_of(words, i, "-m"), tree = option_of(words, i, "--config-name");
        bool program = str_ends(word.text, STR(".py")) && !str_cut(word.text, '=').found;
        struct str name = module.n ? module : last_part(word.text);
        runs |= module.n || program;
        if ((module.n || program) && !put(s, STR("program"), name, word.line))
            return false;
        if (tree.n && !put(s, STR("hydra.config_name"), tree, word.line))
            return false;
        if (!read_override(s, word, runs))
            return false;
    }
    return true;
}

// The words behind an option, up to the next one, as one value.
static struct str values_behind(const struct shell_words *words, ptrdiff_t *at, struct buf *out)
{
    for (; *at + 1 < words->count; ++*at) {
        struct str next = words->items[*at + 1].text;
        if (str_starts(next, STR("--")))
            break;
        if (out->n)
            buf_char(out, ' ');
        buf_put(out, next);
    }
    return buf_str(out);
}

// "--name value ...", "--name=value" and "--name" alone, from a word on.
static bool read_flags(struct script *s, const char *section, const struct shell_words *words,
                       ptrdiff_t from)
{
    struct arena *scratch = &s->shell.scratch;
    for (ptrdiff_t i = from; i < words->count; i++) {
        struct shell_word word = words->items[i];
        if (!str_starts(word.text, STR("--")) || word.text.n == 2)
            continue;
        struct str_cut pair = str_cut(str_slice(word.text, 2, word.text.n), '=');
        struct buf values = buf_in(scratch);
        if (pair.found)
            buf_put(&values, pair.tail);
        ptrdiff_t before = i;
        struct shell_word value = {values_behind(words, &i, &values), word.line};
        if (!pair.found && i == before)
            value.text = STR("on");
        if (!put_under(s, section, pair.head, value))
            return false;
    }
    return true;
}

// Where the arguments of slime's program begin, 0 where it is not started.
static ptrdiff_t behind_slime(const struct shell_words *words)
{
    ptrdiff_t program = 0;
    for (ptrdiff_t i = 0; i < words->count; i++) {
        struct str name = last_part(words->items[i].text);
        if (str_is(name, "train.py") || str_is(name, "train_async.py"))
            program = i + 1;
        if (program && words_have("--hf-checkpoint --actor-num-gpus-per-node --actor-num-nodes",
                                  ' ', words->items[i].text))
            return program;
    }
    return 0;
}

// The variables in {"env_vars": {"NAME": "value", ...}}, which Ray hands to the processes that
// train.
static bool read_variables(struct script *s, struct str json, int line)
{
    struct str rest = json;
    while (rest.n) {
        struct str name = str_cut(str_cut(rest, '"').tail, '"').head;
        struct str behind = str_cut(str_cut(rest, '"').tail, '"').tail;
        bool has_value = str_starts(str_trim(behind), STR(":"));
        struct str value = str_trim(str_slice(str_trim(behind), has_value, str_trim(behind).n));
        if (has_value && str_starts(value, STR("\""))) {
            struct str_cut end = str_cut(str_slice(value, 1, value.n), '"');
            if (!put_under(s, "environment.", name, (struct shell_word){end.head, line}))
                return false;
            behind = end.tail;
        }
        rest = behind;
    }
    return true;
}

static bool read_environment(struct script *s, const struct shell_words *words)
{
    bool exports = str_is(words->items[0].text, "export");
    for (ptrdiff_t i = exports; i < words->count; i++) {
        struct shell_word word = words->items[i];
        struct str name = shell_assigned_name(word.text);
        if (!name.n)
            return true;
        struct shell_word value = {str_slice(word.text, name.n + 1, word.text.n), word.line};
        if (!put_under(s, "environment.", name, value))
            return false;
    }
    return true;
}

// "NAME=value source file": what it sets hangs on a variable of its own, so that it is not read.
static bool read_lent(struct script *s, const struct shell_words *words)
{
    struct arena scratch = s->shell.scratch;
    ptrdiff_t i = 0;
    while (i < words->count && shell_assigned_name(words->items[i].text).n)
        i++;
    if (!i || i + 1 >= words->count || !words_have("source .", ' ', words->items[i].text))
        return true;
    struct str key = str_format(&scratch, "lent.%d", s->sourced++);
    return put(s, key, words->items[i + 1].text, words->items[i + 1].line);
}

// Words that scripts of any program have, and that change what is trained.
static bool read_common(struct script *s, const struct shell_words *words)
{
    struct arena scratch = s->shell.scratch;
    const struct shell_word *w = words->items;
    if (words_have("source .", ' ', w[0].text) && words->count > 1) {
        bool model = str_is(last_part(str_cut_last(w[1].text, '/').head), "models");
        struct str key =
            str_format(&scratch, model ? "sourced-model.%d" : "sourced.%d", s->sourced++);
        if (!put(s, key, w[1].text, w[1].line))
            return false;
    }
    for (ptrdiff_t i = 0; i < words->count; i++) {
        struct str json = option_of(words, i, "--runtime-env-json");
        bool yarn = str_is(w[i].text, "yarn.py");
        if (json.n && !read_variables(s, json, w[i].line))
            return false;
        if (yarn && i + 1 < words->count &&
            !put(s, STR("yarn.model"), w[i + 1].text, w[i + 1].line))
            return false;
        if (yarn && i + 2 < words->count && !put(s, STR("yarn.copy"), w[i + 2].text, w[i + 2].line))
            return false;
    }
    return read_lent(s, words) && read_environment(s, words);
}

static bool read_trainer(struct script *s, const struct shell_words *words)
{
    struct arena scratch = s->shell.scratch;
    struct trainer_command trainer = trainer_command_in(&scratch);
    bool meant;
    for (ptrdiff_t i = 0; i < words->count; i++)
        if (!trainer_command_word(&trainer, words->items[i].text,
                                  place(s, &scratch, words->items[i].line), s->error))
            return false;
    if (!trainer_command_is_meant(&trainer, &meant, s->error))
        return false;
    if (meant && s->runs_trainer)
        return FAIL(s->error, UNSUPPORTED, place(s, s->settings->arena, words->items[0].line),
                    "this is the second trainer that the script starts: one at a time is read");
    s->runs_trainer |= meant;
    for (ptrdiff_t i = 0; meant && i < trainer.said.count; i++) {
        struct setting item = trainer.said.items[i];
        if (!put_at(s, item.key, item.value, str_copy(s->settings->arena, item.where)))
            return false;
    }
    return true;
}

static bool read_command(struct script *s, const struct shell_words *words);

// "bash -c 'exec bash launch.sh'": commands of a shell within this one, with its variables.
static bool read_within(struct script *s, struct shell_word text)
{
    struct shell outer = s->shell;
    struct shell_words command;
    if (s->within)
        return true;
    s->within = true;
    s->shell = shell_in(outer.arena, outer.scratch, text.text, s->source, s->error);
    s->shell.line = text.line;
    s->shell.variables = outer.variables;
    s->shell.arrays = outer.arrays;
    s->shell.put_in = outer.put_in;
    bool read = true;
    while (read && shell_next(&s->shell, &command))
        read = read_command(s, &command);
    outer.put_in = s->shell.put_in;
    s->shell = outer;
    s->within = false;
    return read && s->error->code == ERROR_NONE;
}

// What another shell is started with: a script, or text.
static bool read_started(struct script *s, const struct shell_words *words, ptrdiff_t shell)
{
    ptrdiff_t i = shell + 1;
    bool text = false;
    for (; i < words->count && str_starts(words->items[i].text, STR("-")); i++)
        text |= str_ends(words->items[i].text, STR("c"));
    if (i == words->count)
        return true;
    if (text)
        return read_within(s, words->items[i]);
    struct arena scratch = s->shell.scratch;
    struct str key = str_format(&scratch, "started.%d", s->started);
    if (!str_ends(words->items[i].text, STR(".sh")))
        return true;
    s->started++;
    return put(s, key, words->items[i].text, words->items[i].line);
}

static bool read_shells(struct script *s, const struct shell_words *words)
{
    bool trinity = str_is(words->items[0].text, "trinity");
    for (ptrdiff_t i = 0; i < words->count; i++) {
        struct str config = trinity ? option_of(words, i, "--config") : STR_NONE;
        if (config.n)
            return put(s, STR("started.config"), config, words->items[i].line);
        if (words_have("bash sh", ' ', last_part(words->items[i].text)))
            return read_started(s, words, i);
    }
    return true;
}

static bool read_command(struct script *s, const struct shell_words *words)
{
    ptrdiff_t slime = behind_slime(words);
    if (!read_common(s, words))
        return false;
    if (slime) {
        s->runs_slime = true;
        return read_flags(s, "slime.", words, slime);
    }
    if (has_overrides(words)) {
        s->runs_trainer = true;
        return read_overrides(s, words);
    }
    return read_trainer(s, words) && read_shells(s, words);
}

// What no command is given, but stands there: emit's arguments, and those of one of slime's models.
static bool read_arrays(struct script *s)
{
    const struct shell_array *own = shell_array_find(&s->shell, STR("arguments"));
    const struct shell_array *model = shell_array_find(&s->shell, STR("MODEL_ARGS"));
    if (s->runs_slime)
        return true;
    if (model && !model->used)
        return read_flags(s, "slime.", &model->words, 0) &&
               (!model->words.count ||
                put(s, STR("slime.model-file"), STR("on"), model->words.items[0].line));
    return !own || read_flags(s, "arguments.", &own->words, 0);
}

static bool read_prediction(struct script *s, struct str_cut pair, int line)
{
    struct str value = str_copy(s->settings->arena, str_trim(pair.tail));
    return put_under(s, "predicted.", pair.head, (struct shell_word){value, line});
}

static bool read_predictions(struct script *s, struct str text)
{
    struct str said = STR("# Predicted with --");
    int line = 1;
    for (struct str_cut c = str_cut(text, '\n');; c = str_cut(c.tail, '\n'), line++) {
        bool says = str_starts(c.head, said);
        struct str rest = str_slice(c.head, says ? said.n : 0, c.head.n);
        struct str_cut pair = str_cut(str_trim(rest), ' ');
        if (says && !read_prediction(s, pair, line))
            return false;
        if (!c.found)
            return true;
    }
}

// What a script starts beside its own trainer is not the job.
static void drop_started(struct script *s)
{
    struct settings *all = s->settings;
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < all->count; i++)
        if (!str_starts(all->items[i].key, STR("started.")))
            all->items[kept++] = all->items[i];
    if (s->runs_trainer || s->runs_slime)
        all->count = kept;
}

// What sbatch tells a script of its own options (sbatch(1), "OUTPUT ENVIRONMENT VARIABLES").
static const struct {
    const char *option, *variables;
} slurm_options[] = {
    {"--nodes", "SLURM_NNODES SLURM_JOB_NUM_NODES"},
    {"-N", "SLURM_NNODES SLURM_JOB_NUM_NODES"},
    {"--gpus-per-node", "SLURM_GPUS_PER_NODE SLURM_GPUS_ON_NODE"},
    {"--gres", "SLURM_GPUS_ON_NODE"},
    {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
    {"--cpus-per-task", "SLURM_CPUS_PER_TASK"},
};

// "--gres=gpu:h100:8": the number is what is behind the last colon.
static bool read_slurm_option(struct script *s, struct str option)
{
    struct str_cut pair = str_cut(option, str_cut(option, '=').found ? '=' : ' ');
    struct str value = str_cut(str_trim(pair.tail), ' ').head;
    struct str_cut kinds = str_cut_last(value, ':');
    struct str number = kinds.found ? kinds.tail : value;
    uint64_t count;
    if (unit_parse(&count, UNIT_COUNT, number) != UNIT_OK)
        return true;
    for (ptrdiff_t i = 0; i < COUNT_OF(slurm_options); i++) {
        struct words names = words_of(slurm_options[i].variables, ' ');
        while (str_is(pair.head, slurm_options[i].option) && words_next(&names)) {
            struct setting item = {names.word, str_copy(s->shell.arena, number), s->source};
            if (!settings_set(&s->shell.variables, item, s->error))
                return false;
        }
    }
    return true;
}

static bool read_slurm_options(struct script *s, struct str text)
{
    struct str said = STR("#SBATCH ");
    for (struct str_cut c = str_cut(text, '\n');; c = str_cut(c.tail, '\n')) {
        if (str_starts(c.head, said) &&
            !read_slurm_option(s, str_trim(str_slice(c.head, said.n, c.head.n))))
            return false;
        if (!c.found)
            return true;
    }
}

static bool note_unsure(struct script *s)
{
    for (ptrdiff_t i = 0; i < s->shell.unsure.count; i++)
        if (!put_under(s, "unsure.", s->shell.unsure.items[i].text, s->shell.unsure.items[i]))
            return false;
    return true;
}

static bool read_script(struct script *s, struct str text)
{
    struct shell_words command;
    if (!read_predictions(s, text) || !read_slurm_options(s, text))
        return false;
    while (shell_next(&s->shell, &command))
        if (!read_command(s, &command))
            return false;
    drop_started(s);
    return s->error->code == ERROR_NONE && read_arrays(s) && note_unsure(s);
}

// Half of the memory that is left is for the words of one command at a time.
bool script_flatten(struct settings *out, struct str text, struct str source, struct error *e)
{
    enum { ALIGNED = 16 };
    struct arena *a = out->arena, scratch = *a;
    char *end = a->end;
    a->end = scratch.begin = a->begin + (a->end - a->begin) / 2 / ALIGNED * ALIGNED;
    struct script s = {.settings = out,
                       .shell = shell_in(a, scratch, text, source, e),
                       .source = source,
                       .error = e};
    bool read = read_script(&s, text);
    a->end = end;
    return read;
}
