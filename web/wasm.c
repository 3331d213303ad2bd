// The core as a WebAssembly module. The page writes its question into fathom_question(), calls
// fathom_run with its length, and reads fathom_reply_bytes() bytes at the address it got;
// fathom_run_within gives a question less memory than there is.
#include <stdbool.h>
#include <stddef.h>

#include "fathom/fathom.h"

#define EXPORT(name) __attribute__((export_name(name)))

enum { QUESTION_BYTES = 1 << 20 };

static char question[QUESTION_BYTES];
static char memory[FATHOM_MEMORY];
static struct fathom_reply reply;
static int status;

EXPORT("fathom_question") char *wasm_question(void);
EXPORT("fathom_question_capacity") int wasm_question_capacity(void);
EXPORT("fathom_run") const char *wasm_run(int question_bytes);
EXPORT("fathom_run_within") const char *wasm_run_within(int question_bytes, int memory_bytes);
EXPORT("fathom_reply_bytes") int wasm_reply_bytes(void);
EXPORT("fathom_status") int wasm_status(void);

char *wasm_question(void)
{
    return question;
}

int wasm_question_capacity(void)
{
    return QUESTION_BYTES;
}

const char *wasm_run_within(int question_bytes, int memory_bytes)
{
    bool room = question_bytes >= 0 && question_bytes <= QUESTION_BYTES && memory_bytes >= 0 &&
                memory_bytes <= (int)sizeof memory;
    status = fathom_ask(room ? memory : NULL, (size_t)memory_bytes, question,
                        (size_t)question_bytes, &reply);
    return reply.json;
}

const char *wasm_run(int question_bytes)
{
    return wasm_run_within(question_bytes, sizeof memory);
}

int wasm_reply_bytes(void)
{
    return (int)reply.json_bytes;
}

int wasm_status(void)
{
    return status;
}
