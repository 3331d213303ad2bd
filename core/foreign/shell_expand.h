// Inside the room: how a word of a shell is read, with what stands for its variables.
#ifndef FATHOM_FOREIGN_SHELL_EXPAND_H
#define FATHOM_FOREIGN_SHELL_EXPAND_H

#include "core/base/buf.h"
#include "core/foreign/shell.h"

// Where a word is read from: the script, or what stands behind "${NAME:-".
struct shell_reader {
    struct str text;
    ptrdiff_t at;
    int line;
    int depth;
};

bool shell_is_space(char c);

// The character at this place; 0 behind the end.
static inline char shell_char(struct str text, ptrdiff_t at)
{
    if (at >= text.n)
        return '\0';
    return text.p[at];
}
struct str shell_name_at(struct str text);
void shell_add_word(struct shell_words *to, struct shell_word word);

// Reads the word at the reader's place: none, one, or several where an array or an unquoted
// variable stands for them. In an assignment it is always one.
void shell_read_word(struct shell *s, struct shell_reader *r, struct shell_words *to,
                     bool assigned);

// What two brackets of arithmetic hold; false where it is not a sum of known numbers.
bool shell_sum(const struct shell *s, struct str text, int64_t *value);

// Just behind the bracket that closes the one at `at`, quotes and here-documents passed over; 0
// where none does, or too many before it were never closed, as each is looked for to the end.
ptrdiff_t shell_behind_bracket(struct shell *s, struct str text, ptrdiff_t at);

// Behind a here-document's last line: `name` alone on it.
ptrdiff_t shell_behind_document(struct str text, ptrdiff_t at, struct str name);

#endif
