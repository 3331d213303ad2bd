// The commands, one row each: what it is called, which settings it takes, what it says of itself,
// and the function that answers. Dispatch, help, man page, completions and the library's door walk
// the same table. A command whose work needs the world (processes, the network) is prepared by the
// host, which adds what it found to the settings; the answer itself is pure.
#ifndef FATHOM_COMMAND_COMMAND_H
#define FATHOM_COMMAND_COMMAND_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/json_out.h"
#include "core/base/runner.h"
#include "core/base/value.h"
#include "core/base/view.h"
#include "core/doctor/doctor.h"
#include "core/settings/settings.h"

struct predict_story;

struct query {
    struct arena *arena;
    const struct settings *settings;
    struct view view;
    bool json;
    struct str document;         // content of the file that the command's `document` setting names
    const struct value *tree;    // the same parsed, where it is JSON
    const struct runner *runner; // of tasks that can run side by side; NULL: one after another
    struct doctor *log;          // what has read it piece by piece, where the command streams
};

// A file that belongs to the answer; the host writes it.
struct attachment {
    struct str path, content;
};

struct answer {
    struct buf out;
    bool negative; // the answer is "does not fit": a result, with an exit status of its own
    struct attachment *attachments;
    ptrdiff_t attachment_count, attachment_capacity;
    struct str folder;  // made for the attachments where it is not empty
    bool keep_existing; // writing over a file is refused
};

struct example {
    const char *arguments; // after "fathom"
    const char *text;
};

enum { COMMAND_MAX_EXAMPLES = 4 };

// An option under the name that another program gives it.
struct option_alias {
    const char *name, *setting;
    const char *bare;            // its value when none follows; NULL: one must
    const char *spelled, *meant; // a value that is called otherwise here
    bool many;                   // takes several values, with spaces
    const char *refused;         // why it cannot be answered; then there is no setting
};

// What a command needs of the host beyond reading what its settings name.
enum command_host {
    HOST_STORE = 1 << 0,  // what a store of trials knows of the question, among the settings
    HOST_TRIALS = 1 << 1, // the host answers, since it starts processes; what was found before it
                          // failed is shown
    HOST_PAGE = 1 << 2,   // the host answers, since it carries the file
};

struct command {
    const char *name;
    const char *summary;     // one line without a full stop
    const char *description; // a paragraph
    const char *operand;     // the setting that a bare argument fills, NULL for none
    unsigned uses;           // it takes every setting of these uses,
    const char *without;     // but not these, space-separated; NULL: all
    const char *settings;    // and these
    const char *document;    // the setting that names a file to be read first, NULL for none
    bool streams;            // the document is a log, read piece by piece
    int host;                // of enum command_host
    bool (*answer)(struct answer *a, const struct query *q, struct error *e);
    struct example examples[COMMAND_MAX_EXAMPLES];
    const struct option_alias *aliases; // ends with a row without a name; NULL for none
    const char *alias_settings; // "key=value ...": what use of an alias means where nothing else is
                                // said, as that program's own defaults
};

extern const struct command commands[];
extern const ptrdiff_t command_count;

const struct command *command_find(struct str name);
bool command_unknown(struct str name, struct error *e); // fails, naming the nearest
bool command_takes(const struct command *c, struct str setting);

// The next setting of the table that the command takes after this one (NULL: the first); NULL after
// the last.
const struct setting_def *command_setting(const struct command *c,
                                          const struct setting_def *before);

void answer_attach(struct answer *a, struct arena *arena, struct attachment file);

// Refuses settings the command does not model.
bool command_check(const struct command *c, const struct settings *s, struct error *e) MUST_USE;

// The same, then answers.
bool command_answer(struct answer *a, const struct command *c, const struct query *q,
                    struct error *e) MUST_USE;

// Options that every command takes; they say how to answer, not what.
struct global_option {
    const char *name;
    const char *values; // NULL for a flag
    const char *text;
};
extern const struct global_option global_options[];
extern const ptrdiff_t global_option_count;

// Said where both are given.
#define JSON_AND_FORMAT "--json is a format already; give one of them"
// The answers, each in its own file.
bool models_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool gpus_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool predict_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool max_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool guide_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool plan_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool batch_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool serve_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool split_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool probe_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool replay_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool doctor_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool emit_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool show_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool page_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool help_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool man_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;
bool completion_answer(struct answer *a, const struct query *q, struct error *e) MUST_USE;

#endif
