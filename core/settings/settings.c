// The list of settings and the checks of single values. The table itself is core/job/table.c,
// beside the job that its rows fill.
#include "core/settings/settings.h"

#include "core/base/buf.h"

struct settings settings_in(struct arena *a)
{
    return (struct settings){.arena = a};
}

bool settings_add(struct settings *s, struct setting item, struct error *e)
{
    if (s->count == SETTINGS_MAX)
        return FAIL(e, BAD_INPUT, item.where, "more than %d values are given", SETTINGS_MAX);
    s->items = arena_grow(s->arena, s->items, sizeof *s->items, s->count, &s->capacity);
    s->items[s->count++] = item;
    return true;
}

bool settings_read(struct settings *s, struct str text, char separator, struct str source,
                   struct error *e)
{
    for (struct str_cut c = str_cut(text, separator);; c = str_cut(c.tail, separator)) {
        struct str piece = str_trim(c.head);
        struct str_cut pair = str_cut(piece, '=');
        if (piece.n && (!pair.found || !str_trim(pair.head).n))
            return FAIL(e, BAD_INPUT, source, "'%.*s' is not of the form key=value",
                        STR_ARGS(str_short(piece)));
        struct setting item = {str_trim(pair.head), str_trim(pair.tail), source};
        if (piece.n && !settings_add(s, item, e))
            return false;
        if (!c.found)
            return true;
    }
}

bool settings_set(struct settings *s, struct setting item, struct error *e)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        if (str_equal(s->items[i].key, item.key)) {
            s->items[i] = item;
            return true;
        }
    }
    return settings_add(s, item, e);
}

bool settings_change(struct settings *s, struct str words, struct error *e)
{
    struct settings changes = settings_in(s->arena);
    if (!settings_read(&changes, words, ' ', STR_NONE, e))
        return false;
    for (ptrdiff_t i = 0; i < changes.count; i++)
        if (!settings_set(s, changes.items[i], e))
            return false;
    return true;
}

const struct setting *settings_find(const struct settings *s, struct str key)
{
    for (ptrdiff_t i = s->count - 1; i >= 0; i--)
        if (str_equal(s->items[i].key, key))
            return &s->items[i];
    return NULL;
}

const struct setting *settings_find_z(const struct settings *s, const char *key)
{
    for (ptrdiff_t i = s->count - 1; i >= 0; i--)
        if (str_is(s->items[i].key, key))
            return &s->items[i];
    return NULL;
}

const struct setting_def *setting_def_find(struct str name)
{
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        if (str_is(name, def->name))
            return def;
    return NULL;
}

static bool unknown_key(const struct setting *item, struct error *e)
{
    struct str_nearest nearest = str_nearest_to(item->key);
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def))
        str_nearest_offer(&nearest, str_from(def->name));
    FAIL(e, BAD_INPUT, item->where, "there is no setting '%.*s'", STR_ARGS(str_short(item->key)));
    if (nearest.best.n)
        HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    else
        HINT(e, "'fathom help settings' lists them");
    return false;
}

bool setting_is_document(struct str key)
{
    return str_starts(key, STR("config.")) || str_starts(key, STR("configs.")) ||
           str_starts(key, STR("weights.")) || str_starts(key, STR("measured.")) ||
           str_starts(key, STR("data.")) || str_starts(key, STR("kernels.")) ||
           str_starts(key, STR("machine."));
}

bool settings_check(const struct settings *s, struct error *e)
{
    for (ptrdiff_t i = 0; i < s->count; i++) {
        const struct setting_def *def = setting_def_find(s->items[i].key);
        if (setting_is_document(s->items[i].key))
            continue;
        if (!def)
            return unknown_key(&s->items[i], e);
        if (!setting_check(def, &s->items[i], e))
            return false;
    }
    return true;
}

// "sp" of "sp.0", or nothing.
static struct str sequence_name(struct str key)
{
    struct str_cut cut = str_cut_last(key, '.');
    const struct setting_def *def = cut.found ? setting_def_find(cut.head) : NULL;
    bool number = cut.tail.n > 0;
    for (ptrdiff_t i = 0; i < cut.tail.n; i++)
        number = number && char_is_digit(cut.tail.p[i]);
    return def && def->list && number ? cut.head : STR_NONE;
}

// The values of the sequence that begins at *at, one after another; *at becomes its last.
static struct str joined_values(const struct settings *s, ptrdiff_t *at, struct str name)
{
    struct buf values = buf_in(s->arena);
    buf_put(&values, s->items[*at].value);
    for (; *at + 1 < s->count && str_equal(sequence_name(s->items[*at + 1].key), name); ++*at) {
        buf_char(&values, ',');
        buf_put(&values, s->items[*at + 1].value);
    }
    return buf_str(&values);
}

bool settings_join_lists(struct settings *s, struct error *e)
{
    struct settings joined = settings_in(s->arena);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        struct setting item = s->items[i];
        struct str name = sequence_name(item.key);
        if (name.n) {
            item.key = name;
            item.value = joined_values(s, &i, name);
        }
        if (!settings_add(&joined, item, e))
            return false;
    }
    *s = joined;
    return true;
}

static void put_values(struct buf *b, const struct setting_def *def)
{
    buf_put_z(b, def->values ? def->values : "");
    for (int i = 0; i < def->word_count && !def->values; i++)
        buf_printf(b, "%s%s", i ? "|" : "", def->words[i]);
}

struct str setting_values(struct arena *a, const struct setting_def *def)
{
    struct buf b = buf_in(a);
    put_values(&b, def);
    return buf_str(&b);
}

// "chunked:N" stands for a count after the colon.
static bool is_choice(struct str value, struct str word)
{
    struct str_cut given = str_cut(value, ':');
    uint64_t count;
    if (!str_ends(word, STR(":N")))
        return str_equal(value, word);
    return given.found && str_equal(given.head, str_slice(word, 0, word.n - 2)) &&
           unit_parse(&count, UNIT_COUNT, given.tail) == UNIT_OK && count > 0;
}

int setting_word(const struct setting_def *def, struct str value)
{
    struct str bare = def->versioned ? str_cut(value, '@').head : value;
    ASSERT(def->words);
    for (int i = 0; i < def->word_count; i++)
        if (is_choice(bare, str_from(def->words[i])))
            return i;
    return -1;
}

bool setting_choice(const struct setting *item, struct str words, struct error *e)
{
    struct str_nearest nearest = str_nearest_to(item->value);
    for (struct str_cut c = str_cut(words, '|');; c = str_cut(c.tail, '|')) {
        if (is_choice(item->value, c.head))
            return true;
        str_nearest_offer(&nearest, c.head);
        if (!c.found)
            break;
    }
    FAIL(e, BAD_INPUT, item->where, "%.*s must be one of %.*s, not '%.*s'", STR_ARGS(item->key),
         STR_ARGS(words), STR_ARGS(str_short(item->value)));
    if (str_ends(nearest.best, STR(":N")))
        HINT(e, "N is a number of tokens, 1 or more, as in %.*s:256",
             STR_ARGS(str_cut(nearest.best, ':').head));
    else if (nearest.best.n)
        HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return false;
}

static bool check_choice(const struct setting_def *def, const struct setting *item, struct error *e)
{
    char block[240];
    struct buf listed = buf_over(block, sizeof block);
    struct setting bare = *item;
    if (def->versioned)
        bare.value = str_cut(item->value, '@').head;
    for (const struct refused_word *r = def->refused; r && r->word; r++)
        if (str_is(bare.value, r->word))
            return FAIL(e, BAD_INPUT, item->where, "%s", r->why);
    if (!def->values && def->words && setting_word(def, item->value) >= 0)
        return true;
    put_values(&listed, def);
    return setting_choice(&bare, buf_str(&listed), e);
}

static bool check_switch(const struct setting_def *def, const struct setting *item, struct error *e)
{
    bool on;
    uint64_t count;
    struct error wrong = {0};
    if (!def->third)
        return setting_switch(&on, item, e);
    if (def->counted && item->value.n && char_is_digit(item->value.p[0]))
        return setting_number(&count, item, UNIT_COUNT, (struct range){def->min, def->max}, e);
    if (str_is(item->value, def->third) || setting_switch(&on, item, &wrong))
        return true;
    return FAIL(e, BAD_INPUT, item->where, "%.*s must be one of %s, not '%.*s'",
                STR_ARGS(item->key), def->values, STR_ARGS(str_short(item->value)));
}

static bool check_value(const struct setting_def *def, const struct setting *item, struct error *e)
{
    switch (def->kind) {
    case SETTING_TEXT:
        if (!item->value.n)
            return FAIL(e, BAD_INPUT, item->where, "%s must not be empty", def->name);
        return true;
    case SETTING_CHOICE:
        return check_choice(def, item, e);
    case SETTING_COUNT:
    case SETTING_BYTES: {
        uint64_t value;
        enum unit_kind kind = def->kind == SETTING_COUNT ? UNIT_COUNT : UNIT_BYTES;
        return setting_number(&value, item, kind, (struct range){def->min, def->max}, e);
    }
    case SETTING_FLAG:
    case SETTING_SWITCH:
        return check_switch(def, item, e);
    }
    __builtin_trap();
}

bool setting_check(const struct setting_def *def, const struct setting *item, struct error *e)
{
    if (!def->list || def->kind == SETTING_TEXT)
        return check_value(def, item, e);
    for (struct str_cut c = str_cut(item->value, ',');; c = str_cut(c.tail, ',')) {
        struct setting one = {item->key, str_trim(c.head), item->where};
        if (!check_value(def, &one, e))
            return false;
        if (!c.found)
            return true;
    }
}

static bool out_of_range(const struct setting *item, enum unit_kind kind, struct range range,
                         struct error *e)
{
    char block[128];
    struct buf limits = buf_over(block, sizeof block);
    put_unit(&limits, kind, range.min);
    buf_put_z(&limits, " and ");
    put_unit(&limits, kind, range.max);
    uint64_t number;
    FAIL(e, BAD_INPUT, item->where, "%.*s must be between %.*s, not '%.*s'", STR_ARGS(item->key),
         STR_ARGS(buf_str(&limits)), STR_ARGS(str_short(item->value)));
    if (kind != UNIT_BYTES || unit_parse(&number, UNIT_PLAIN, item->value) != UNIT_OK || !number)
        return false;
    return HINT(e, "a number alone is bytes: %.*sGiB", STR_ARGS(str_short(item->value)));
}

bool setting_number(uint64_t *value, const struct setting *item, enum unit_kind kind,
                    struct range range, struct error *e)
{
    uint64_t number;
    switch (unit_parse(&number, kind, item->value)) {
    case UNIT_OK:
        break;
    case UNIT_NEGATIVE:
    case UNIT_TOO_LARGE:
        return out_of_range(item, kind, range, e);
    case UNIT_NOT_A_NUMBER:
    case UNIT_UNKNOWN_SUFFIX:
        return FAIL(e, BAD_INPUT, item->where, "%.*s must be %s, not '%.*s'", STR_ARGS(item->key),
                    unit_examples(kind), STR_ARGS(str_short(item->value)));
    }
    if (number < range.min || number > range.max)
        return out_of_range(item, kind, range, e);
    *value = number;
    return true;
}

bool setting_switch(bool *value, const struct setting *item, struct error *e)
{
    static const char *const words[][2] = {{"on", "off"}, {"true", "false"}, {"yes", "no"}};
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++) {
        bool on = str_equal_nocase(item->value, str_from(words[i][0]));
        if (on || str_equal_nocase(item->value, str_from(words[i][1]))) {
            *value = on;
            return true;
        }
    }
    return FAIL(e, BAD_INPUT, item->where, "%.*s must be on or off, not '%.*s'",
                STR_ARGS(item->key), STR_ARGS(str_short(item->value)));
}

static void setting_value_json(struct json_out *j, const struct setting_def *def, struct str value)
{
    uint64_t number;
    bool counted =
        (def->kind == SETTING_COUNT && unit_parse(&number, UNIT_COUNT, value) == UNIT_OK) ||
        (def->kind == SETTING_BYTES && unit_parse(&number, UNIT_BYTES, value) == UNIT_OK);
    if (counted)
        json_out_u64(j, number);
    else
        json_out_str(j, value);
}

void settings_json(struct json_out *j, const struct settings *s)
{
    json_out_object(j);
    for (const struct setting_def *def = setting_def_next(NULL); def; def = setting_def_next(def)) {
        const struct setting *item = settings_find_z(s, def->name);
        if (!item)
            continue;
        json_out_key(j, def->name);
        setting_value_json(j, def, item->value);
    }
    json_out_object_end(j);
}
