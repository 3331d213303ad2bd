// Any bytes as a question to the library. The reply is always one JSON object and a line feed, and
// a bad question is answered with an error inside it.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/compiler.h"
#include "fathom/fathom.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char memory[FATHOM_MEMORY];

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *exact = malloc(size ? size : 1);
    if (!exact)
        return 0;
    if (size)
        memcpy(exact, data, size);
    struct fathom_reply reply;
    int status = fathom_ask(memory, sizeof memory, exact, size, &reply);
    ASSERT(status == 0 || status == 1 || status == 2);
    ASSERT(reply.json_bytes >= 4 && reply.json[0] == '{');
    ASSERT(memcmp(reply.json + reply.json_bytes - 2, "}\n", 2) == 0);
    static const char error[] = "{\n  \"error\": {";
    bool is_error =
        reply.json_bytes >= sizeof error && memcmp(reply.json, error, sizeof error - 1) == 0;
    ASSERT(is_error == (status == 2));
    free(exact);
    return 0;
}
