// Any bytes as a question to the library. The reply is always one JSON object and a line feed, and
// a bad question is answered with an error inside it.
#include <stdbool.h>
#include <string.h>

#include "core/base/compiler.h"
#include "core/base/str.h"
#include "fathom/fathom.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char memory[FATHOM_MEMORY];

static bool holds(struct str text, struct str part)
{
    for (ptrdiff_t i = 0; i + part.n <= text.n; i++)
        if (memcmp(text.p + i, part.p, (size_t)part.n) == 0)
            return true;
    return false;
}

// Searches make many predictions: they are asked of one layer, without lists.
static bool takes_long(struct str question)
{
    bool searches = holds(question, STR("max")) || holds(question, STR("guide"));
    return searches && (holds(question, STR(",")) || !holds(question, STR("\nlayers=1\n")));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (takes_long((struct str){(const char *)data, (ptrdiff_t)size}))
        return 0;
    struct str exact = exact_copy(data, size);
    struct fathom_reply reply;
    int status = fathom_ask(memory, sizeof memory, exact.p, size, &reply);
    ASSERT(status == 0 || status == 1 || status == 2);
    ASSERT(reply.json_bytes >= 4 && reply.json[0] == '{');
    ASSERT(memcmp(reply.json + reply.json_bytes - 2, "}\n", 2) == 0);
    static const char error[] = "{\n  \"error\": {";
    bool is_error =
        reply.json_bytes >= sizeof error && memcmp(reply.json, error, sizeof error - 1) == 0;
    ASSERT(is_error == (status == 2));
    exact_free(exact);
    return 0;
}
