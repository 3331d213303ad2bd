// The library's door: flat text in, a JSON reply out. The WebAssembly module and the fuzzers come
// in here too. Whatever runs out of memory inside jumps back to the door: all there is to let go of
// lies in the caller's block.
#include "fathom/fathom.h"

#include <setjmp.h>
#include <stdint.h>

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

static int answer(struct arena *arena, struct str question, struct fathom_reply *reply)
{
    struct settings s = settings_in(arena);
    struct answer a = {.out = buf_in(arena)};
    struct query q = {.arena = arena, .settings = &s, .view = {.width = 100}, .json = true};
    const struct command *c = NULL;
    struct error e = {0};
    int status = 0;
    if (read_question(&c, &s, question, &e) && command_answer(&a, c, &q, &e)) {
        status = a.negative;
    } else {
        a.out = buf_in(arena);
        error_json(&a.out, &e);
        status = error_exit_status(e.code);
    }
    *reply = (struct fathom_reply){buf_str(&a.out).p, (size_t)a.out.n};
    return status;
}

// As error_json would write it, had it the memory.
static int out_of_memory(struct fathom_reply *reply)
{
    static const char json[] = "{\n"
                               "  \"error\": {\n"
                               "    \"code\": \"no_memory\",\n"
                               "    \"message\": \"the question needs more memory than it was"
                               " given\"\n"
                               "  }\n"
                               "}\n";
    *reply = (struct fathom_reply){json, sizeof json - 1};
    return error_exit_status(ERROR_NO_MEMORY);
}

struct door {
    jmp_buf outside;
};

static void NO_RETURN leave(void *context)
{
    struct door *door = context;
    longjmp(door->outside, 1);
}

int fathom_ask(void *memory, size_t memory_bytes, const char *question, size_t question_bytes,
               struct fathom_reply *reply)
{
    struct door door;
    if (!memory || memory_bytes > PTRDIFF_MAX || question_bytes > PTRDIFF_MAX)
        return out_of_memory(reply);
    struct arena arena = arena_over(memory, (ptrdiff_t)memory_bytes, leave);
    arena.context = &door;
    if (setjmp(door.outside))
        return out_of_memory(reply);
    return answer(&arena, (struct str){question, (ptrdiff_t)question_bytes}, reply);
}
