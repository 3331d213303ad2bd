// The core as a WebAssembly module. The page writes its question into fathom_question(), calls
// fathom_run with its length, and reads fathom_reply_bytes() bytes at the address it got, then the
// files that came with the answer; fathom_run_within gives a question less memory than there is.
// Before a question about a document, fathom_reserve makes room for it, and more memory to answer
// in where it is large: the module's own memory grows, or the browser refuses.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fathom/fathom.h"

#define EXPORT(name) __attribute__((export_name(name)))

enum { QUESTION_BYTES = 1 << 20, PAGE_BYTES = 1 << 16 };

static char question[QUESTION_BYTES];
static char memory[FATHOM_MEMORY];
static struct fathom_answer answer;
static int status;

// What was added behind all that is linked: the document, then memory to answer in.
static char *added;
static size_t added_bytes, document_room;

EXPORT("fathom_question") char *wasm_question(void);
EXPORT("fathom_question_capacity") int wasm_question_capacity(void);
EXPORT("fathom_reserve") char *wasm_reserve(size_t document_bytes, size_t memory_bytes);
EXPORT("fathom_run") const char *wasm_run(int question_bytes);
EXPORT("fathom_run_within") const char *wasm_run_within(int question_bytes, int memory_bytes);
EXPORT("fathom_run_about") const char *wasm_run_about(int question_bytes, size_t document_bytes);
EXPORT("fathom_reply_bytes") int wasm_reply_bytes(void);
EXPORT("fathom_status") int wasm_status(void);
EXPORT("fathom_file_count") int wasm_file_count(void);
EXPORT("fathom_file") const struct fathom_file *wasm_file(int number);

char *wasm_question(void)
{
    return question;
}

int wasm_question_capacity(void)
{
    return QUESTION_BYTES;
}

// NULL where the browser gives no more. Less memory than there is anyway costs nothing.
char *wasm_reserve(size_t document_bytes, size_t memory_bytes)
{
    uint64_t room = ((uint64_t)document_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uint64_t wanted = room + (memory_bytes > sizeof memory ? memory_bytes : 0);
    if (wanted > SIZE_MAX)
        return NULL;
    if (!added)
        added = (char *)(__builtin_wasm_memory_size(0) * PAGE_BYTES);
    if (wanted > added_bytes) {
        size_t pages = (size_t)((wanted - added_bytes + PAGE_BYTES - 1) / PAGE_BYTES);
        if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX)
            return NULL;
        added_bytes += pages * PAGE_BYTES;
    }
    document_room = (size_t)room;
    return added;
}

static const char *ask(const struct fathom_question *q, char *block, size_t block_bytes)
{
    status = fathom_ask_about(block, block_bytes, q, &answer);
    return answer.reply.json;
}

const char *wasm_run_within(int question_bytes, int memory_bytes)
{
    bool room = question_bytes >= 0 && question_bytes <= QUESTION_BYTES && memory_bytes >= 0 &&
                memory_bytes <= (int)sizeof memory;
    struct fathom_question q = {.text = question, .text_bytes = (size_t)question_bytes};
    return ask(&q, room ? memory : NULL, (size_t)memory_bytes);
}

const char *wasm_run(int question_bytes)
{
    return wasm_run_within(question_bytes, sizeof memory);
}

const char *wasm_run_about(int question_bytes, size_t document_bytes)
{
    struct fathom_question q = {question, (size_t)question_bytes, added, document_bytes};
    bool room =
        question_bytes >= 0 && question_bytes <= QUESTION_BYTES && document_bytes <= document_room;
    size_t more = added_bytes - document_room;
    if (more > sizeof memory)
        return ask(&q, room ? added + document_room : NULL, more);
    return ask(&q, room ? memory : NULL, sizeof memory);
}

int wasm_reply_bytes(void)
{
    return (int)answer.reply.json_bytes;
}

int wasm_status(void)
{
    return status;
}

int wasm_file_count(void)
{
    return (int)answer.file_count;
}

// Four words: where the path and the content are, and their bytes.
const struct fathom_file *wasm_file(int number)
{
    return number >= 0 && number < (int)answer.file_count ? &answer.files[number] : NULL;
}
