// The library's door: flat text in, a JSON reply out. The WebAssembly module and the fuzzers come
// in here too.
#include "fathom/fathom.h"

#include "core/command/command.h"
#include "core/error_json.h"
#include "core/settings/settings.h"

// The question's command and settings: "command" is not a setting, so it is taken out.
static bool read_question(const struct command **c, struct settings *s, struct str text,
                          struct error *e)
{
    struct settings all = settings_in(s->arena);
    struct str name = STR_NONE;
    if (!settings_read(&all, text, '\n', STR_NONE, e))
        return false;
    for (ptrdiff_t i = 0; i < all.count; i++) {
        if (str_is(all.items[i].key, "command"))
            name = all.items[i].value;
        else if (!settings_add(s, all.items[i], e))
            return false;
    }
    *c = command_find(name);
    return *c ? true : command_unknown(name, e);
}

int fathom_ask(void *memory, size_t memory_bytes, const char *question, size_t question_bytes,
               struct fathom_reply *reply)
{
    struct arena arena = arena_over(memory, (ptrdiff_t)memory_bytes, NULL);
    struct settings s = settings_in(&arena);
    struct answer a = {.out = buf_in(&arena)};
    struct query q = {.arena = &arena, .settings = &s, .view = {.width = 100}, .json = true};
    const struct command *c = NULL;
    struct error e = {0};
    int status = 0;
    struct str text = {question, (ptrdiff_t)question_bytes};
    if (read_question(&c, &s, text, &e) && command_answer(&a, c, &q, &e)) {
        status = a.negative;
    } else {
        a.out = buf_in(&arena);
        error_json(&a.out, &e);
        status = error_exit_status(e.code);
    }
    *reply = (struct fathom_reply){buf_str(&a.out).p, (size_t)a.out.n};
    return status;
}
