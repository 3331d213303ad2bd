// Fathom as a library: one question in, one JSON reply out.
//
//     char *memory = malloc(FATHOM_MEMORY);
//     const char *question = "command=models\nmodel=Qwen3-8B\n";
//     struct fathom_reply reply;
//     if (fathom_ask(memory, FATHOM_MEMORY, question, strlen(question), &reply) == 0)
//         fwrite(reply.json, 1, reply.json_bytes, stdout);
//
// A question is lines of key=value: "command", and the settings of that command under the names
// they have on the command line. A config.json is given flattened under "config.": one line a
// value, nested keys joined by dots ("config.text_config.hidden_size=2560",
// "config.layer_types.0=..."). The library reads no files, opens no connections, prints nothing and
// keeps no state: two calls with two memories may run at the same time.
#ifndef FATHOM_FATHOM_H
#define FATHOM_FATHOM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Enough for every command. With less, a large question may fail for want of memory.
#define FATHOM_MEMORY ((size_t)256 << 20)

struct fathom_reply {
    const char *json; // one object and a line feed; in the caller's memory, or constant; no NUL
    size_t json_bytes;
};

// Returns 0 when the answer is yes or done, 1 when it is "does not fit", 2 on a bad question and 70
// on a defect or where the memory given is not enough (code "no_memory"); the last two reply
// {"error": {"code", "message", "where", "hint"}}.
__attribute__((visibility("default"))) int fathom_ask(void *memory, size_t memory_bytes,
                                                      const char *question, size_t question_bytes,
                                                      struct fathom_reply *reply);

// The same with a document beside the words, for the commands that read a "file": doctor's log,
// replay's snapshot (torch's pickle) or trace, unpacked. And with the files that an answer comes
// with where the question names them ("timeline=step.svg"): nothing is written, they lie in the
// caller's memory.
struct fathom_question {
    const char *text;
    size_t text_bytes;
    const char *document; // NULL for none
    size_t document_bytes;
};

struct fathom_file {
    const char *path, *content;
    size_t path_bytes, content_bytes;
};

struct fathom_answer {
    struct fathom_reply reply;
    const struct fathom_file *files;
    size_t file_count;
};

__attribute__((visibility("default"))) int fathom_ask_about(void *memory, size_t memory_bytes,
                                                            const struct fathom_question *question,
                                                            struct fathom_answer *reply);

#ifdef __cplusplus
}
#endif

#endif
