// A shell script, command by command, as far as it can be told without running anything: words with
// their variables and arrays put in, sums, conditions of plain values. What is not known without
// running it stays as it stands there, with its "$".
#ifndef FATHOM_FOREIGN_SHELL_H
#define FATHOM_FOREIGN_SHELL_H

#include "core/settings/settings.h"

struct shell_word {
    struct str text;
    int line;
};

struct shell_words {
    struct arena *arena;
    struct shell_word *items;
    ptrdiff_t count, capacity;
};

struct shell_array {
    struct str name;
    struct shell_words words;
    bool used; // by a command
    struct shell_array *next;
};

enum truth { TRUTH_NO, TRUTH_YES, TRUTH_UNSURE };

enum shell_block_kind { BLOCK_IF, BLOCK_LOOP, BLOCK_CASE };

struct shell_block {
    enum shell_block_kind kind;
    enum truth runs;  // what is read now, within the block around it
    enum truth taken; // whether a branch before this one was
};

enum { SHELL_MOST_BLOCKS = 32 };

struct shell {
    struct arena *arena;  // of what lasts
    struct arena scratch; // of the command that is read
    struct arena unused;  // the scratch of the next one
    struct error *error;
    struct str text, source;
    ptrdiff_t at;
    int line;
    struct settings variables; // that are known, each with the line it was set in
    struct shell_array *arrays;
    struct shell_block blocks[SHELL_MOST_BLOCKS];
    int depth;
    enum truth runs;     // the command that is read, by what stands before it in its line
    enum truth status;   // of the command before
    bool was_test;       // and whether it was one whose status is known
    struct str document; // whose end is waited for from the next line on
    ptrdiff_t put_in;    // bytes that variables and arrays were replaced by
    int never_closed;    // brackets
    int array_count;
    struct shell_words unsure; // variables that were set under conditions nobody can tell
};

// What lasts is taken from `a`, words of a command from the scratch.
struct shell shell_in(struct arena *a, struct arena scratch, struct str text, struct str source,
                      struct error *e);

// The next command that is, or may be, run; variables before it are words of it. Its words last
// until the next call. False at the end and after an error.
bool shell_next(struct shell *s, struct shell_words *command);

const struct shell_array *shell_array_find(const struct shell *s, struct str name);

// "NAME" of "NAME=value", else empty.
struct str shell_assigned_name(struct str word);

#endif
