// A name's way to a row of the catalogue: as the hub spells it, else as people write it, else by a
// likeness to a name that is known, which the answer then says.
#include "core/model/model.h"

// The name without its hub owner; a path has more slashes than an id and stays whole.
static struct str without_owner(struct str name)
{
    struct str_cut c = str_cut(name, '/');
    return c.found && c.head.n && !str_cut(c.tail, '/').found ? c.tail : name;
}

static struct str owner_of(struct str name)
{
    return without_owner(name).n < name.n ? str_cut(name, '/').head : STR_NONE;
}

// How exactly a name has to be met.
enum spelling {
    SPELLING_EXACT, // but for case
    SPELLING_LOOSE, // "Llama 2 7B" and "llama2-7b" are Llama-2-7b
};

static bool is_separator(char c)
{
    return c == '-' || c == '_' || c == ' ' || c == '.';
}

// A name's characters as they count in loose spelling: small, and separators only between digits.
struct loose {
    struct str text;
    ptrdiff_t at;
};

static char loose_next(struct loose *l)
{
    ptrdiff_t start = l->at;
    while (l->at < l->text.n && is_separator(l->text.p[l->at]))
        l->at++;
    if (l->at == l->text.n)
        return 0;
    bool between = l->at > start && start > 0 && char_is_digit(l->text.p[start - 1]) &&
                   char_is_digit(l->text.p[l->at]);
    if (!between)
        return char_lower(l->text.p[l->at++]);
    l->text = str_slice(l->text, l->at, l->text.n);
    l->at = 0;
    return '-';
}

// How much of the text is the name, loosely; 0 where it does not begin with it.
static ptrdiff_t loose_length(struct str text, struct str name)
{
    struct loose a = {text, 0}, b = {name, 0};
    for (;;) {
        char wanted = loose_next(&b);
        if (!wanted)
            return text.n - (a.text.n - a.at);
        if (loose_next(&a) != wanted)
            return 0;
    }
}

static bool same_name(struct str a, struct str b, enum spelling spelling)
{
    return spelling == SPELLING_EXACT ? str_equal_nocase(a, b) : a.n && loose_length(a, b) == a.n;
}

// Whether a row's name has the wanted owner, if there is one. `owner` is of the row unless the name
// has one of its own.
static bool is_owned(struct str name, struct str owner, struct str wanted)
{
    struct str theirs = owner_of(name).n ? owner_of(name) : owner;
    return !wanted.n || str_equal_nocase(wanted, theirs);
}

// The names of a row, one after another.
struct row_names {
    const struct catalog_model *row;
    struct words also, nick;
    bool begun;
    struct str name;
};

static struct row_names names_of(const struct catalog_model *row)
{
    return (struct row_names){
        .row = row, .also = words_of(row->also, ' '), .nick = words_of(row->nick, ' ')};
}

static bool names_next(struct row_names *n)
{
    if (!n->begun)
        n->name = str_from(n->row->name);
    else if (words_next(&n->also))
        n->name = n->also.word;
    else if (words_next(&n->nick))
        n->name = n->nick.word;
    else
        return false;
    n->begun = true;
    return true;
}

// What no spelling changes, to pass over most names quickly.
static bool begins_alike(struct str a, struct str b)
{
    struct loose of_a = {a, 0}, of_b = {b, 0};
    return loose_next(&of_a) == loose_next(&of_b);
}

// The first row of the name's own spelling, else the first of a loose one.
const struct catalog_model *catalog_model_find(struct str name)
{
    const struct catalog_model *row, *loosely = NULL;
    struct str owner = owner_of(name), wanted = without_owner(name);
    for (ptrdiff_t i = 0; name.n && (row = catalog_model_at(i)); i++) {
        struct row_names names = names_of(row);
        while (names_next(&names)) {
            struct str bare = without_owner(names.name);
            if (!begins_alike(wanted, bare))
                continue;
            bool exact = same_name(wanted, bare, SPELLING_EXACT);
            if (!exact && (loosely || !same_name(wanted, bare, SPELLING_LOOSE)))
                continue;
            if (!is_owned(names.name, str_from(row->owner), owner))
                continue;
            if (exact)
                return row;
            loosely = row;
        }
    }
    return loosely;
}

static const struct known_model *find_known(struct str name, enum spelling spelling)
{
    for (ptrdiff_t i = 0; i < known_model_count; i++) {
        struct words names = words_of(known_models[i].names, ' ');
        while (words_next(&names))
            if (same_name(without_owner(name), without_owner(names.word), spelling))
                return &known_models[i];
    }
    return NULL;
}

// Where a name says how its weights are packed: at its end, or among its last parts
// ("-AQLM-2Bit-1x16"); -1: nowhere.
static ptrdiff_t packed_from(struct str name, struct str suffix, bool at_end)
{
    for (ptrdiff_t i = 1; i + suffix.n <= name.n; i++) {
        ptrdiff_t end = i + suffix.n;
        bool ends = end == name.n || (!at_end && is_separator(name.p[end]));
        if (ends && is_separator(name.p[i]) &&
            str_equal_nocase(str_slice(name, i + 1, end), str_slice(suffix, 1, suffix.n)))
            return i;
    }
    return -1;
}

// Cut from the name, which is then that of the model that they were made of.
static const struct packing *cut_packing(struct str *name)
{
    for (ptrdiff_t i = 0; i < 2 * packing_count; i++) {
        const struct packing *row = &packings[i % packing_count];
        ptrdiff_t at = packed_from(*name, str_from(row->suffix), i < packing_count);
        if (at > 0) {
            name->n = at;
            return row;
        }
    }
    return NULL;
}

const struct known_model *known_model_find(struct str name)
{
    struct str base = str_trim(str_cut(name, '(').head);
    cut_packing(&base);
    const struct known_model *row = find_known(base, SPELLING_EXACT);
    return row ? row : find_known(base, SPELLING_LOOSE);
}

// As the hub spells it: the one among its others, or what it calls the row.
static struct str hub_id(struct arena *a, const struct catalog_model *row, struct str name)
{
    struct str bare = str_cut(name, '/').found ? str_cut(name, '/').tail : name;
    struct words others = words_of(row->also, ' ');
    while (words_next(&others))
        if (str_equal_nocase(others.word, bare))
            return str_format(a, "%s/%.*s", row->owner, STR_ARGS(others.word));
    return str_format(a, "%s/%s", row->owner, row->hub ? row->hub : row->name);
}

struct str model_weights_place(struct arena *a, const struct settings *s, const char *setting)
{
    const struct setting *item = settings_find_z(s, setting);
    const struct setting *path = settings_find_z(s, "weights.path");
    struct str name = item ? item->value : STR_NONE;
    const struct catalog_model *row = catalog_model_find(name);
    if (row)
        return hub_id(a, row, name);
    if (path && str_is(str_from(setting), "model"))
        name = path->value;
    if (str_ends(name, STR("/config.json")))
        return str_slice(name, 0, name.n - STR("/config.json").n);
    return name;
}

static bool has_part(struct str name, struct str part)
{
    for (ptrdiff_t i = 0; i + part.n <= name.n; i++)
        if (str_equal_nocase(str_slice(name, i, i + part.n), part))
            return true;
    return false;
}

// Parts of names that say that the model is more, or other, than the one it names besides.
static bool is_of_another_kind(struct str name)
{
    static const char *const parts[] = {"vl",    "vision", "vlm",    "llava",      "omni",
                                        "audio", "moe",    "eagle",  "speculator", "draft",
                                        "mtp",   "mamba",  "bitnet", "janus"};
    for (ptrdiff_t i = 0; i < COUNT_OF(parts); i++)
        if (has_part(name, str_from(parts[i])))
            return true;
    return false;
}

// "7b", "135M", "1b1": what tells a model's name from that of its series.
static bool has_size(struct str name)
{
    for (ptrdiff_t i = 1; i < name.n; i++) {
        char c = char_lower(name.p[i]);
        if (char_is_digit(name.p[i - 1]) && (c == 'b' || c == 'm'))
            return true;
    }
    return false;
}

static bool is_border(struct str text, ptrdiff_t at)
{
    return at <= 0 || at >= text.n || is_separator(text.p[at]) || is_separator(text.p[at - 1]);
}

// Whether the text has the name as whole parts of its own: "Hermes-3-Llama-3.1-8B" Llama-3.1-8B.
static bool names_within(struct str text, struct str name)
{
    for (ptrdiff_t i = 0; i < text.n; i++) {
        ptrdiff_t n = is_border(text, i) ? loose_length(str_slice(text, i, text.n), name) : 0;
        if (n && is_border(text, i + n))
            return true;
    }
    return false;
}

// The length of the longest of a row's names that is part of this text; 0: none is.
static ptrdiff_t longest_within(const struct catalog_model *row, struct str text)
{
    ptrdiff_t longest = 0;
    struct row_names names = names_of(row);
    while (names_next(&names)) {
        struct str name = without_owner(names.name);
        if (name.n > longest && has_size(name) && names_within(text, name))
            longest = name.n;
    }
    return longest;
}

// The row with the longest name that is part of this one.
static const struct catalog_model *find_within(struct str text)
{
    const struct catalog_model *row, *best = NULL;
    ptrdiff_t longest = 0;
    if (is_of_another_kind(text))
        return NULL;
    for (ptrdiff_t i = 0; (row = catalog_model_at(i)); i++) {
        ptrdiff_t n = longest_within(row, text);
        best = n > longest ? row : best;
        longest = n > longest ? n : longest;
    }
    return best;
}

static const struct served_model *served_model_of(struct str base)
{
    for (ptrdiff_t i = 0; i < served_model_count; i++)
        if (str_equal_nocase(without_owner(base), str_from(served_models[i].name)))
            return &served_models[i];
    return NULL;
}

struct catalog_answer catalog_model_answer(struct str name)
{
    struct catalog_answer found = {.row = catalog_model_find(name)};
    if (found.row)
        return found;
    struct str base = str_trim(name);
    if (!model_name_unmodelled(name)) // "Qwen3-8B (full)"
        base = str_trim(str_cut(base, '(').head);
    found.packing = cut_packing(&base);
    found.served = served_model_of(base);
    found.row = catalog_model_find(found.served ? str_from(found.served->like) : base);
    found.likened = !found.row;
    if (found.likened && owner_of(base).n)
        found.row = catalog_model_find(without_owner(base));
    if (!found.row && !model_name_unmodelled(name) && !known_model_find(name))
        found.row = find_within(without_owner(base));
    return found;
}

const char *model_name_unmodelled(struct str name)
{
    static const struct {
        const char *part, *what;
    } rows[] = {{"nvfp4", "weights in NVFP4 are"},
                {"experts on cpu", "experts in host memory are"},
                {" + mtp", "a draft model beside the other is"}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (has_part(name, str_from(rows[i].part)))
            return rows[i].what;
    return NULL;
}

enum { NAMES_SHOWN = 3 };

// The first rows whose names begin so, and how many: "llama", "Qwen3-235B".
static int first_names(struct str found[NAMES_SHOWN], struct str name)
{
    int count = 0;
    const struct catalog_model *row;
    for (ptrdiff_t i = 0; name.n && count < NAMES_SHOWN && (row = catalog_model_at(i)); i++) {
        struct str whole = str_from(row->name);
        if (whole.n > name.n && str_equal_nocase(str_slice(whole, 0, name.n), name))
            found[count++] = whole;
    }
    return count;
}

static bool hint_beginnings(const struct str *found, int count, struct error *e)
{
    if (count == 1)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(found[0]));
    if (count == 2)
        return HINT(e, "names that begin so are %.*s and %.*s", STR_ARGS(found[0]),
                    STR_ARGS(found[1]));
    return HINT(e, "names that begin so are %.*s, %.*s, %.*s; 'fathom models' lists them all",
                STR_ARGS(found[0]), STR_ARGS(found[1]), STR_ARGS(found[2]));
}

bool catalog_model_unknown(struct str name, struct str where, struct error *e)
{
    struct str beginnings[NAMES_SHOWN];
    int begun = first_names(beginnings, without_owner(name));
    struct str_nearest nearest = str_nearest_to(without_owner(name));
    const struct known_model *known = known_model_find(name);
    const struct catalog_model *row;
    if (known) {
        FAIL(e, UNSUPPORTED, where,
             "'%.*s' is known (%s, about %llu million parameters), but its family is not modelled",
             STR_ARGS(str_short(name)), known->model_type, (unsigned long long)known->millions);
        return HINT(e, "fathom probe --engine torch measures it, with --fake without a GPU");
    }
    for (ptrdiff_t i = 0; (row = catalog_model_at(i)); i++) {
        struct row_names names = names_of(row);
        while (names_next(&names))
            str_nearest_offer(&nearest, without_owner(names.name));
    }
    const char *unmodelled = model_name_unmodelled(name);
    FAIL(e, BAD_INPUT, where, "there is no model '%.*s'", STR_ARGS(str_short(name)));
    if (unmodelled)
        return HINT(e, "and %s not modelled", unmodelled);
    if (str_cut(name, ',').found)
        return HINT(e, "one model is wanted here; 'fathom max' and 'fathom guide' compare several");
    if (begun)
        return hint_beginnings(beginnings, begun, e);
    if (nearest.best.n)
        return HINT(e, "did you mean '%.*s'?", STR_ARGS(nearest.best));
    return HINT(e, "'fathom models' lists the catalogue; a config.json, a model folder or a "
                   "Hugging Face id (owner/name) works too");
}
