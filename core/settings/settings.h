// Flat settings: what a user asked for, as key = value with the place each came from. Command line
// options, a YAML request, a config.json and the web form all become one of these lists, so core
// has a single door and knows no file format. Nested documents are flattened with dots
// ("text_config.hidden_size", "layer_types.0").
//
// Beside it, the table of the settings a user may give. Parsing, validation, help, man page,
// completion and JSON replies walk that table; a setting that is not in it does not exist, and one
// that a command does not model is not among that command's settings.
#ifndef FATHOM_SETTINGS_SETTINGS_H
#define FATHOM_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/json_out.h"
#include "core/base/str.h"
#include "core/base/units.h"

enum { SETTINGS_MAX = 20000 }; // more values than any real config.json; bounds the work of a lookup

struct setting {
    struct str key, value;
    struct str where; // as the user would name the place: "--gpu", "request.yaml:3:1"
};

struct settings {
    struct arena *arena;
    struct setting *items;
    ptrdiff_t count, capacity;
};

struct settings settings_in(struct arena *a);

// Keeps the texts by reference: they must live as long as the list.
bool settings_add(struct settings *s, struct setting item, struct error *e) MUST_USE;

// The same, in place of an earlier one of that key.
bool settings_set(struct settings *s, struct setting item, struct error *e) MUST_USE;

// Reads "key=value" pieces separated by `separator` (line feed, or space); empty ones are skipped.
bool settings_read(struct settings *s, struct str text, char separator, struct str source,
                   struct error *e) MUST_USE;

// The settings of "key=value key=value" in place of those of the same keys.
bool settings_change(struct settings *s, struct str words, struct error *e) MUST_USE;

// The one added last under this key, or NULL.
const struct setting *settings_find(const struct settings *s, struct str key);
const struct setting *settings_find_z(const struct settings *s, const char *key);

enum setting_kind {
    SETTING_TEXT,
    SETTING_CHOICE, // one of the words in `values`
    SETTING_COUNT,  // min..max, with k, M, G
    SETTING_BYTES,  // min..max, with KiB .. TiB and kB .. TB
    SETTING_SWITCH, // on | off (true, false, yes, no as YAML and JSON spell them)
    SETTING_FLAG,   // the same; as an option it stands alone
};

// What a setting is used for; a command takes those of its uses.
enum setting_use {
    USE_JOB = 1,         // makes the job that every command receives
    USE_TRAINING = 2,    // jobs that differ in it do not train the same
    USE_FILES = 4,       // only written files have it
    USE_HUNT = 8,        // which trials are made and how they are watched, not what a trial does
    USE_TRIAL = 16,      // what only a trial's engine reads
    USE_PREDICTION = 32, // says what is predicted, and has no place in files
    USE_OFTEN = 64,      // most people set it: a command's help explains it, and names the rest
};

struct job;
struct buf;

// Bytes of a job that a setting fills; no size where it fills none.
struct setting_field {
    uint16_t offset, size;
};

// A word that users know from elsewhere: why it is none here, and what is instead.
struct refused_word {
    const char *word, *why;
};

// Everything that anyone wants to know of a setting. What would need a second list is a missing
// column.
struct setting_def {
    const char *name;
    enum setting_kind kind;
    const char *values;       // how help shows the value: "NAME", "on|off"; NULL: the words
    const char *const *words; // of a choice that an enum stands for, by its values
    int word_count;
    const char *third;    // of a switch: a word beside on and off
    bool counted;         // of a switch: a count, too
    bool versioned;       // a word may be followed by @VERSION
    uint64_t min, max;    // SETTING_COUNT, SETTING_BYTES, a switch's count
    const char *fallback; // the value where nobody sets one, NULL for none
    const char *usual;    // in words, where it is not one value
    const char *text;     // one sentence without a full stop
    char letter;          // of a short option, 0 for none
    bool operand;         // only a bare argument of one command, not a setting of requests
    bool list;            // commands that compare take several, with commas
    unsigned uses;
    // Of those that make the job: what they fill, and how where their kind does not say it.
    struct setting_field field, also[2];
    bool (*read)(struct job *j, const struct setting *item, struct error *e);
    void (*put)(struct buf *b, const struct job *j); // the way back
    // How a sentence about the job says it, "@" standing for the value; of a switch also when it is
    // off, of a count only beyond 1.
    const char *phrase, *phrase_off;
    unsigned written_by; // targets whose files can say it
    const char *worker;  // values that share/torch_worker.py does, "" for all; NULL: none
    const struct refused_word *refused; // of a choice; the last has no word
};

// The row after this one, in the order of the table (job/table.c); after none: the first.
const struct setting_def *setting_def_next(const struct setting_def *def);

const struct setting_def *setting_def_find(struct str name);

// "a|b|c", as help shows what a setting takes.
struct str setting_values(struct arena *a, const struct setting_def *def);

// A value out of a config.json, a weights file or a store of trials, not a user's setting: its
// reader checks it.
bool setting_is_document(struct str key);

// A sequence in a file ("sp.0", "sp.1") of a setting that takes several becomes one value with
// commas, in the first one's place.
bool settings_join_lists(struct settings *s, struct error *e) MUST_USE;

// Refuses unknown keys (with the nearest known one) and values of the wrong kind or range.
bool settings_check(const struct settings *s, struct error *e) MUST_USE;
bool setting_check(const struct setting_def *def, const struct setting *item,
                   struct error *e) MUST_USE;

// Typed reading of one value; `item` is named in the message.
struct range {
    uint64_t min, max;
};
bool setting_number(uint64_t *value, const struct setting *item, enum unit_kind kind,
                    struct range range, struct error *e) MUST_USE;
bool setting_switch(bool *value, const struct setting *item, struct error *e) MUST_USE;

// Which of the words of its row the setting has, as the enum counts them; a row without words is a
// defect.
int setting_word(const struct setting_def *def, struct str value);

// One of the words of "a|b|c".
bool setting_choice(const struct setting *item, struct str words, struct error *e) MUST_USE;

// The list as the JSON object that replies carry under "settings"; only keys of the table.
void settings_json(struct json_out *j, const struct settings *s);

#endif
