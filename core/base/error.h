// The one way a function fails. A function that can fail takes `struct error *e` last and returns
// bool; on false, *e says why and its outputs are untouched. Calls chain with &&. The message is
// one complete sentence in lower case that a program can print as it is. "Does not fit" is a
// result, never an error.
#ifndef FATHOM_BASE_ERROR_H
#define FATHOM_BASE_ERROR_H

#include <stdbool.h>

#include "core/base/compiler.h"
#include "core/base/str.h"

enum error_code {
    ERROR_NONE,
    ERROR_BAD_INPUT,   // the user's words or files are wrong
    ERROR_UNSUPPORTED, // understood, but not modelled
    ERROR_OVERFLOW,    // the numbers asked for exceed what can be counted
    ERROR_IO,          // a file, the network or the driver failed
    ERROR_CHILD,       // a process we started failed
    ERROR_NO_MEMORY,
    ERROR_BUG, // a defect of ours
};

struct error {
    enum error_code code;
    char message[320];
    char where[160]; // the user's place: "--gpu", "request.yaml:3:7"
    char hint[240];  // what to do about it, or empty
    const char *file;
    int line; // our place, shown by --debug
};

struct error_site {
    const char *file;
    int line;
};

// Sets *e unless it is set already (the first failure wins); always returns false.
bool error_set(struct error *e, enum error_code code, struct error_site site, struct str where,
               const char *format, ...) PRINTF_LIKE(5, 6);

// Adds or replaces the hint; always returns false.
bool error_hint(struct error *e, const char *format, ...) PRINTF_LIKE(2, 3);

const char *error_code_name(enum error_code code); // "bad_input", as replies spell it
int error_exit_status(enum error_code code);       // 2 bad input, 3 outside failed, 70 defect

// What error_set promises, where analyzers can see it.
static inline bool error_failed(bool ignored)
{
    (void)ignored;
    return false;
}

#define HINT(e, ...) error_failed(error_hint(e, __VA_ARGS__))
#define FAIL(e, code, where, ...) \
    error_failed(                 \
        error_set(e, ERROR_##code, (struct error_site){__FILE__, __LINE__}, where, __VA_ARGS__))

#endif
