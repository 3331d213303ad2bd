// The program: arguments and a request file become settings, the host adds what only it can find
// (model files, this machine's GPUs), and the command's pure answer is written out.
#include <stdlib.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "core/emit/foreign.h"
#include "core/error_json.h"
#include "host/attachments.h"
#include "host/document.h"
#include "host/gpu_source.h"
#include "host/json_in.h"
#include "host/measured.h"
#include "host/memory.h"
#include "host/model_source.h"
#include "host/probe.h"
#include "host/stream.h"
#include "host/task_pool.h"
#include "host/yaml_in.h"

enum { REQUEST_MAX_BYTES = 1 << 20, DEFECT = 70 };

// What `fathom` without arguments answers.
static const char *const default_arguments[] = {"fathom",  "predict",  "--context", "32k",
                                                "--model", "Qwen3-8B", "--gpu",     "8xH100-80G"};

static void out_of_memory(void)
{
    struct error ignored = {0};
    (void)!terminal_write(STDERR_FILENO,
                          STR("fathom: this request needs more memory than there is\n"), &ignored);
    _exit(DEFECT);
}

static struct str environment(const char *name)
{
    return str_from(getenv(name));
}

static struct hub_options hub_from_environment(struct arena *a)
{
    struct str home = environment("HF_HOME"), cache = environment("HF_HUB_CACHE");
    struct str user = environment("HOME"), endpoint = environment("HF_ENDPOINT");
    if (!home.n && user.n)
        home = str_join(a, user, STR("/.cache/huggingface"));
    if (!cache.n && home.n)
        cache = str_join(a, home, STR("/hub"));
    struct str offline = environment("HF_HUB_OFFLINE");
    return (struct hub_options){
        .cache_folder = cache,
        .endpoint = endpoint.n ? endpoint : STR("https://huggingface.co"),
        .token = environment("HF_TOKEN"),
        .offline = offline.n && !str_is(offline, "0"),
        .connect_timeout_s = 10,
        .total_timeout_s = 30,
    };
}

static struct str without_byte_order_mark(struct str text)
{
    bool marked = str_starts(text, STR("\xEF\xBB\xBF"));
    return marked ? str_slice(text, 3, text.n) : text;
}

// What a request file sets, ours or a framework's; a JSON null sets nothing.
static bool read_request(struct settings *out, struct foreign *f, struct str path, struct error *e)
{
    struct str text;
    struct settings file = settings_in(out->arena);
    struct str source = str_is(path, "-") ? STR("/dev/stdin") : path;
    if (!file_read(&text, out->arena, source, REQUEST_MAX_BYTES, e))
        return false;
    text = without_byte_order_mark(text);
    bool json = str_ends(path, STR(".json"));
    if (!(json ? json_flatten(&file, text, STR_NONE, path, e) : yaml_flatten(&file, text, path, e)))
        return false;
    if (!foreign_settings(out, f, &file, e))
        return false;
    for (ptrdiff_t i = 0; i < file.count && !f->format; i++)
        if (!str_is(file.items[i].value, "null") && !settings_add(out, file.items[i], e))
            return false;
    return settings_join_lists(out, e) && settings_check(out, e);
}

// A framework's file means that framework's training step.
static bool mean_its_step(const struct options *o, struct settings *file, const struct foreign *f,
                          struct error *e)
{
    struct setting recipe = {STR("recipe"), str_from(f->recipe), o->from};
    bool elsewhere = settings_find_z(&o->settings, "for") != NULL; // whose own step is meant
    if (!f->recipe || elsewhere || !command_takes(o->command, STR("strategy")))
        return true;
    if (command_takes(o->command, recipe.key))
        return settings_set(file, recipe, e);
    return FAIL(e, UNSUPPORTED, o->from,
                "this is a file of %s, whose training step is not modelled yet", f->format);
}

// Our own requests may hold settings of other commands; a framework's file speaks of one job.
static bool changes_memory(const struct command *c, const struct setting *item)
{
    bool spread = str_is(item->key, "cp") || str_is(item->key, "sp");
    return command_takes(c, STR("strategy")) && !(spread && str_is(item->value, "1")) &&
           !str_is(item->key, "save-hf");
}

// Puts the file's settings before the options in the list, so that the options win. Settings of
// other commands are passed over: one file serves them all.
static bool merge_request(struct options *o, struct arena *a, struct error *e)
{
    struct settings file = settings_in(a), merged = settings_in(a);
    struct foreign f;
    if (!o->from.n)
        return true;
    if (!read_request(&file, &f, o->from, e) || !mean_its_step(o, &file, &f, e))
        return false;
    for (ptrdiff_t i = 0; i < file.count; i++) {
        struct str key = file.items[i].key;
        bool taken = command_takes(o->command, key) || str_starts(key, STR("config."));
        if (!taken && f.format && changes_memory(o->command, &file.items[i]))
            return FAIL(e, UNSUPPORTED, file.items[i].where, "%s does not model %.*s %.*s yet",
                        o->command->name, STR_ARGS(key), STR_ARGS(file.items[i].value));
        if (taken && !settings_add(&merged, file.items[i], e))
            return false;
    }
    for (ptrdiff_t i = 0; i < o->settings.count; i++)
        if (!settings_set(&merged, o->settings.items[i], e))
            return false;
    o->settings = merged;
    return foreign_gpu(&o->settings, &f, e);
}

static bool read_log(struct query *q, struct str path, struct error *e)
{
    struct stream *s = stream_open(q->arena, path, e);
    struct str piece;
    bool ok = s != NULL;
    q->log = doctor_new(q->arena);
    while (ok && (ok = stream_next(&piece, s, e)) && piece.n)
        doctor_feed(q->log, piece);
    if (ok && stream_is_cut(s))
        doctor_cut(q->log);
    if (s)
        stream_close(s);
    return ok;
}

static bool read_document(struct query *q, const struct command *c, struct error *e)
{
    const struct setting *item = c->document ? settings_find_z(q->settings, c->document) : NULL;
    if (item && c->streams)
        return read_log(q, item->value, e);
    return !item || document_read(&q->document, &q->tree, q->arena, item->value, e);
}

static bool make_trials(struct answer *out, const struct options *o, const struct query *q,
                        struct error *e)
{
    struct terminal_console t = terminal_console(o->json ? STDERR_FILENO : STDOUT_FILENO);
    struct probe_console console = {&t, terminal_line, t.live ? terminal_status : NULL};
    return command_check(o->command, q->settings, e) && probe_command(out, q, &console, e);
}

// All answers are pure, but those of commands that start processes.
static bool answer_command(struct answer *out, struct options *o, const struct query *q,
                           struct error *e)
{
    int host = o->command->host;
    if ((host & HOST_STORE) && !measured_resolve(&o->settings, e))
        return false;
    return host & HOST_TRIALS ? make_trials(out, o, q, e) : command_answer(out, o->command, q, e);
}

static bool answer(struct answer *out, struct options *o, struct arena *a, struct error *e)
{
    struct hub_options hub = hub_from_environment(a);
    struct progress progress = progress_of_terminal();
    struct task_pool pool = {
        .exhausted = out_of_memory, .progress = progress_show, .context = &progress};
    struct runner runner = task_pool_runner(&pool);
    struct query q = {.arena = a,
                      .settings = &o->settings,
                      .view = terminal_view(),
                      .json = o->json,
                      .runner = &runner};
    return merge_request(o, a, e) && options_imply(o, e) && settings_check(&o->settings, e) &&
           model_source_resolve(&o->settings, &hub, e) && gpu_source_resolve(&o->settings, e) &&
           read_document(&q, o->command, e) && answer_command(out, o, &q, e) &&
           attachments_write(*a, out, e);
}

// "fathom COMMAND --help" is "fathom help COMMAND".
static bool turn_to_help(struct options *o, struct error *e)
{
    struct setting topic = {STR("topic"), str_from(o->command->name), STR("--help")};
    o->settings.count = 0;
    o->from = STR_NONE;
    bool about_help = str_is(topic.value, "help");
    o->command = command_find(STR("help"));
    return about_help || settings_add(&o->settings, topic, e);
}

static int report_failure(struct arena *a, const struct options *o, const struct error *e)
{
    struct error ignored = {0};
    struct buf reply = buf_in(a);
    terminal_error(a, e, o->debug);
    if (o->json) {
        error_json(&reply, e);
        (void)!terminal_write(STDOUT_FILENO, buf_str(&reply), &ignored);
    }
    return error_exit_status(e->code);
}

static void say_version(struct buf *out, bool json)
{
    if (json)
        buf_put_z(out, "{\n  \"version\": \"" FATHOM_VERSION "\"\n}\n");
    else
        buf_put_z(out, "fathom " FATHOM_VERSION "\n");
}

static int run(struct arena *a, int argc, char **argv)
{
    struct options o = {0};
    struct error e = {0};
    struct answer out = {.out = buf_in(a)};
    bool ok = argc > 1 ? options_read(&o, a, argc, (const char *const *)argv, &e)
                       : options_read(&o, a, COUNT_OF(default_arguments), default_arguments, &e);
    if (ok && o.version)
        say_version(&out.out, o.json);
    else
        ok = ok && (!o.help || turn_to_help(&o, &e)) && answer(&out, &o, a, &e);
    if (ok && argc == 1)
        buf_put_z(&out.out, "\n'fathom help' says what else there is to ask.\n");
    if (ok && terminal_write(STDOUT_FILENO, buf_str(&out.out), &e))
        return out.negative;
    if (o.command && (o.command->host & HOST_TRIALS) && !o.json) { // what was found before
        struct error ignored = {0};
        (void)!terminal_write(STDOUT_FILENO, buf_str(&out.out), &ignored);
    }
    return report_failure(a, &o, &e);
}

int main(int argc, char **argv)
{
    struct host_memory memory;
    struct error e = {0};
    if (!host_memory_reserve(&memory, &e))
        out_of_memory();
    struct arena arena = host_arena(&memory, out_of_memory);
    int status = run(&arena, argc, argv);
    host_memory_release(&memory);
    return status;
}
