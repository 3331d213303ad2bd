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

static void add_document(struct query *q, const struct command *c,
                         const struct fathom_question *question)
{
    struct str document = {question->document, (ptrdiff_t)question->document_bytes};
    if (!c || !c->document || !question->document)
        return;
    q->document = document;
    if (!c->streams)
        return;
    q->log = doctor_new(q->arena);
    doctor_feed(q->log, document);
}

static void hand_out(struct fathom_answer *out, struct arena *arena, const struct answer *a)
{
    struct fathom_file *files = NEW(arena, struct fathom_file, a->attachment_count);
    for (ptrdiff_t i = 0; i < a->attachment_count; i++) {
        const struct attachment *file = &a->attachments[i];
        files[i] = (struct fathom_file){file->path.p, file->content.p, (size_t)file->path.n,
                                        (size_t)file->content.n};
    }
    out->files = files;
    out->file_count = (size_t)a->attachment_count;
}

static int answer(struct arena *arena, const struct fathom_question *question,
                  struct fathom_answer *out)
{
    struct settings s = settings_in(arena);
    struct answer a = {.out = buf_in(arena)};
    struct query q = {.arena = arena, .settings = &s, .view = {.width = 100}, .json = true};
    struct str text = {question->text, (ptrdiff_t)question->text_bytes};
    const struct command *c = NULL;
    struct error e = {0};
    int status = 0;
    bool asked = read_question(&c, &s, text, &e);
    if (asked)
        add_document(&q, c, question);
    if (asked && command_answer(&a, c, &q, &e)) {
        status = a.negative;
        hand_out(out, arena, &a);
    } else {
        a.out = buf_in(arena);
        error_json(&a.out, &e);
        status = error_exit_status(e.code);
    }
    out->reply = (struct fathom_reply){buf_str(&a.out).p, (size_t)a.out.n};
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

int fathom_ask_about(void *memory, size_t memory_bytes, const struct fathom_question *question,
                     struct fathom_answer *reply)
{
    struct door door;
    *reply = (struct fathom_answer){0};
    if (!memory || memory_bytes > PTRDIFF_MAX || question->text_bytes > PTRDIFF_MAX ||
        question->document_bytes > PTRDIFF_MAX)
        return out_of_memory(&reply->reply);
    struct arena arena = arena_over(memory, (ptrdiff_t)memory_bytes, leave);
    arena.context = &door;
    if (setjmp(door.outside)) {
        *reply = (struct fathom_answer){0};
        return out_of_memory(&reply->reply);
    }
    return answer(&arena, question, reply);
}

int fathom_ask(void *memory, size_t memory_bytes, const char *question, size_t question_bytes,
               struct fathom_reply *reply)
{
    struct fathom_question q = {.text = question, .text_bytes = question_bytes};
    struct fathom_answer out;
    int status = fathom_ask_about(memory, memory_bytes, &q, &out);
    *reply = out.reply;
    return status;
}
