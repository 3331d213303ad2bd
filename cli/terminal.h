// What the terminal is like, and writing to it.
#ifndef FATHOM_CLI_TERMINAL_H
#define FATHOM_CLI_TERMINAL_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/view.h"

// Of standard output: colour only on a terminal that wants it (NO_COLOR, TERM=dumb); where it is no
// terminal, the width is COLUMNS or 100.
struct view terminal_view(void);

// Lines of a long work on `out`, and on a terminal a status that the next line takes the place of.
struct terminal_console {
    int out;
    bool live, shown;
    struct error unwritten; // why a line could not be written, if one could not
};
struct terminal_console terminal_console(int out);
void terminal_line(void *console, struct str text);
void terminal_status(void *console, struct str text);

// All of it or an error: a full disk must not look like success.
bool terminal_write(int fd, struct str text, struct error *e) MUST_USE;

// "fathom: WHERE: MESSAGE; HINT" on standard error.
void terminal_error(struct arena *a, const struct error *e, bool debug);

#endif
