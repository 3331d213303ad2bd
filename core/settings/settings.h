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

struct setting_def {
    const char *name;
    enum setting_kind kind;
    const char *values;   // how help shows the value: "NAME", "on|off"
    uint64_t min, max;    // SETTING_COUNT, SETTING_BYTES
    const char *fallback; // default as help shows it, NULL for none
    const char *text;     // one sentence without a full stop
    char letter;          // of a short option, 0 for none
    bool operand;         // only a bare argument of one command, not a setting of requests
    bool list;            // commands that compare take several, with commas
};

extern const struct setting_def setting_defs[];
extern const ptrdiff_t setting_def_count;

const struct setting_def *setting_def_find(struct str name);

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

// Which of the values of its row the setting has, counted from 0; `fallback` where it is not given.
int settings_choice(const struct settings *s, const char *name, int fallback);
bool setting_choice(const struct setting *item, const char *words, struct error *e) MUST_USE;

// The list as the JSON object that replies carry under "settings"; only keys of the table.
void settings_json(struct json_out *j, const struct settings *s);

#endif
