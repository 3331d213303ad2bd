// The program: arguments and a request file become settings, the host adds what only it can find
// (model files, this machine's GPUs), and the command's pure answer is written out.
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "core/error_json.h"
#include "host/files/attachments.h"
#include "host/files/page.h"
#include "host/files/stream.h"
#include "host/formats/document.h"
#include "host/formats/lengths_in.h"
#include "host/formats/request.h"
#include "host/sources/gpu_source.h"
#include "host/sources/model_source.h"
#include "host/system/memory.h"
#include "host/system/task_pool.h"
#include "host/trials/kernels.h"
#include "host/trials/measured.h"
#include "host/trials/probe.h"

enum { DEFECT = 70 };

static bool json_wanted; // set before anything else is done

// Several threads may run out at once: one object is written, then all end.
static void say_exhausted(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char block[512];
    struct buf reply = buf_over(block, sizeof block);
    struct error e = {0};
    if (!json_wanted)
        return;
    while (atomic_flag_test_and_set(&said))
        (void)pause();
    FAIL(&e, NO_MEMORY, STR_NONE, "this request needs more memory than there is");
    error_json(&reply, &e);
    struct error ignored = {0};
    (void)!terminal_write(STDOUT_FILENO, buf_str(&reply), &ignored);
}

// What `fathom` without arguments answers.
static const char *const default_arguments[] = {"fathom",  "predict",  "--context", "32k",
                                                "--model", "Qwen3-8B", "--gpu",     "8xH100-80G"};

static void out_of_memory(void *context)
{
    (void)context;
    struct error ignored = {0};
    static bool said;
    while (
        __atomic_test_and_set(&said, __ATOMIC_RELAXED)) // by another thread, which ends the program
        pause();
    (void)!terminal_write(STDERR_FILENO,
                          STR("fathom: this request needs more memory than there is\n"), &ignored);
    say_exhausted();
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

// A framework's file means that framework's training step, unless the user names another.
static bool mean_its_step(const struct options *o, struct settings *file, const struct foreign *f,
                          struct error *e)
{
    struct str where = o->from[o->from_count - 1];
    struct setting recipe = {STR("recipe"), str_from(f->recipe), where};
    struct error ignored = {0};
    const struct setting *target = settings_find_z(&o->settings, "for"); // whose own step is meant
    bool elsewhere = target && !str_equal(target->value, str_cut(recipe.value, '@').head);
    if (!f->recipe || elsewhere || !command_takes(o->command, STR("strategy")) ||
        settings_find(&o->settings, recipe.key))
        return true;
    if (command_takes(o->command, recipe.key) &&
        setting_check(setting_def_find(recipe.key), &recipe, &ignored))
        return settings_set(file, recipe, e);
    return FAIL(e, UNSUPPORTED, where,
                "this is a file of %s, whose training step is not modelled yet", f->format);
}

// What a command does not take and means the same without, or finds by itself: how long, and in
// which batches.
static bool goes_without_saying(const struct setting *item, const struct foreign *f)
{
    bool spread = str_is(item->key, "cp") || str_is(item->key, "sp");
    bool rl = str_is(str_from(f->recipe), "trinity") || str_is(str_from(f->recipe), "verl");
    if (str_is(item->key, "task"))
        return str_is(item->value, rl ? "grpo" : "sft");
    return (spread && str_is(item->value, "1")) ||
           words_have("save-hf|context|batch|accum", '|', item->key);
}

// Our own requests may hold settings of other commands; a framework's file speaks of one job.
static bool pass_over(const struct options *o, const struct foreign *f, const struct setting *item,
                      struct error *e)
{
    const struct setting_def *def = setting_def_find(item->key);
    bool model = !f->format || !command_takes(o->command, STR("strategy"));
    bool of_files = def && !(def->uses & USE_JOB); // nothing that a prediction hangs on
    return model || of_files || goes_without_saying(item, f) ||
           FAIL(e, UNSUPPORTED, item->where, "%s does not model %.*s %.*s yet", o->command->name,
                STR_ARGS(item->key), STR_ARGS(item->value));
}

static void say_notes(struct arena *a, const struct foreign *f)
{
    struct error ignored = {0};
    for (int i = 0; i < f->note_count; i++) {
        struct str note = str_plain(a, f->notes[i]);
        struct str line = str_format(a, "fathom: note: %.*s\n", STR_ARGS(note));
        (void)!terminal_write(STDERR_FILENO, line, &ignored);
    }
}

static bool read_requests(struct settings *file, struct foreign *f, const struct options *o,
                          struct error *e)
{
    for (int i = 0; i < o->from_count; i++)
        if (!request_read(file, f, o->from[i], e))
            return false;
    return foreign_conclude(file, f, &o->settings, e) && settings_check(file, e) &&
           mean_its_step(o, file, f, e);
}

// Puts the files' settings before the options in the list, so that the options win. Settings of
// other commands are passed over: one file serves them all.
static bool merge_request(struct options *o, struct foreign *f, struct arena *a, struct error *e)
{
    struct settings file = settings_in(a), merged = settings_in(a);
    if (!o->from_count)
        return true;
    if (!read_requests(&file, f, o, e))
        return false;
    for (ptrdiff_t i = 0; i < file.count; i++) {
        struct str key = file.items[i].key;
        bool taken = command_takes(o->command, key) || str_starts(key, STR("config."));
        if (!(taken ? settings_add(&merged, file.items[i], e) : pass_over(o, f, &file.items[i], e)))
            return false;
    }
    for (ptrdiff_t i = 0; i < o->settings.count; i++)
        if (!settings_set(&merged, o->settings.items[i], e))
            return false;
    o->settings = merged;
    if (str_is(str_from(o->command->name), "emit"))
        foreign_note_left(f, a);
    say_notes(a, f);
    return foreign_gpu(&o->settings, f, e);
}

// What files leave to their framework is asked of commands whose job is one and whole.
static bool settle_request(struct options *o, const struct foreign *f, struct arena *a,
                           struct error *e)
{
    struct settings more = settings_in(a);
    if (!f->format || !command_takes(o->command, STR("strategy")) ||
        !command_takes(o->command, STR("accum")))
        return true;
    if (!foreign_settle(&more, &o->settings, f, e))
        return false;
    for (ptrdiff_t i = 0; i < more.count; i++)
        if (command_takes(o->command, more.items[i].key) &&
            !settings_add(&o->settings, more.items[i], e))
            return false;
    return true;
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

// Lines on standard output are answers. Beside JSON they are not.
static bool make_trials(struct answer *out, const struct options *o, const struct query *q,
                        struct error *e)
{
    struct terminal_console t = terminal_console(o->json ? STDERR_FILENO : STDOUT_FILENO);
    struct probe_console console = {&t, terminal_line, t.live ? terminal_status : NULL};
    if (!command_check(o->command, q->settings, e) || !probe_command(out, q, &console, e))
        return false;
    if (o->json || t.unwritten.code == ERROR_NONE)
        return true;
    *e = t.unwritten;
    return false;
}

// All answers are pure, but those of commands that start processes.
static bool answer_command(struct answer *out, struct options *o, const struct query *q,
                           struct error *e)
{
    int host = o->command->host;
    if (host & HOST_PAGE)
        return command_check(o->command, q->settings, e) && page_command(out, q, e);
    if ((host & HOST_STORE) && !measured_resolve(&o->settings, e))
        return false;
    if (command_takes(o->command, STR("network")) && !kernels_resolve(&o->settings, e))
        return false;
    return host & HOST_TRIALS ? make_trials(out, o, q, e) : command_answer(out, o->command, q, e);
}

static bool answer(struct answer *out, struct options *o, struct arena *a, struct error *e)
{
    struct hub_options hub = hub_from_environment(a);
    struct foreign f = foreign_in(a);
    struct progress progress = progress_of_terminal();
    struct task_pool pool = {
        .exhausted = out_of_memory, .progress = progress_show, .context = &progress};
    struct runner runner = task_pool_runner(&pool);
    struct query q = {.arena = a,
                      .settings = &o->settings,
                      .view = terminal_view(),
                      .json = o->json,
                      .runner = &runner};
    bool ok = merge_request(o, &f, a, e) && options_imply(o, e) &&
              settings_check(&o->settings, e) && model_source_resolve(&o->settings, &hub, e) &&
              gpu_source_resolve(&o->settings, e) && settle_request(o, &f, a, e) &&
              lengths_resolve(&o->settings, e) && read_document(&q, o->command, e) &&
              answer_command(out, o, &q, e);
    progress_end(&progress);
    task_pool_release(&pool);
    return ok && attachments_write(*a, out, e);
}

// "fathom COMMAND --help" is "fathom help COMMAND".
static bool turn_to_help(struct options *o, struct error *e)
{
    struct setting topic = {STR("topic"), str_from(o->command->name), STR("--help")};
    o->settings.count = 0;
    o->from_count = 0;
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
    json_wanted = options_want_json(argc, (const char *const *)argv);
    struct host_memory memory;
    struct error e = {0};
    (void)signal(SIGXFSZ, SIG_IGN); // a limit on files is an error of that file's (EFBIG)
    if (!host_memory_reserve(&memory, &e))
        out_of_memory(NULL);
    struct arena arena = host_arena(&memory, out_of_memory);
    int status = run(&arena, argc, argv);
    host_memory_release(&memory);
    return status;
}
