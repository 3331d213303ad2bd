// Any bytes as a question to the library. The reply is always one JSON object and a line feed, and
// a bad question is answered with an error inside it.
#include <stdbool.h>
#include <string.h>

#include "core/base/compiler.h"
#include "fathom/fathom.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char memory[FATHOM_MEMORY];

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
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
