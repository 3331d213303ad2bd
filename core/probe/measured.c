// A cell's key holds its settings as they were given; a prediction means the same cell when each
// setting that changes memory has the same text, or is given on neither side.
#include "core/probe/measured.h"

#include "core/probe/options.h"

// The value of a setting in a key of lines "name=value".
static struct str value_in(struct str key, struct str name)
{
    for (struct str_cut line = str_cut(key, '\n'); line.head.n; line = str_cut(line.tail, '\n')) {
        struct str_cut pair = str_cut(line.head, '=');
        if (str_equal(pair.head, name))
            return pair.tail;
    }
    return STR_NONE;
}

static bool same_settings(struct str key, const struct settings *s)
{
    struct words names = words_of(probe_predicted_settings, ' ');
    while (words_next(&names)) {
        const struct setting *item = settings_find(s, names.word);
        struct str wanted = item ? item->value : STR_NONE, found = value_in(key, names.word);
        bool size = str_is(names.word, "sp"); // a key always has it
        if (size && !wanted.n)
            wanted = STR("1");
        if (!str_equal(wanted, found))
            return false;
    }
    return true;
}

static bool same_machine(const struct cell_record *c, const struct hardware *h)
{
    struct str card = str_cut(c->card, ':').head;
    return c->gpus == hardware_gpus(h) && str_equal_nocase(card, str_from(h->card.name));
}

const struct attempt_record *measured_find(const struct cell_record *cells, ptrdiff_t count,
                                           const struct measured_question *q)
{
    const struct attempt_record *found = NULL;
    for (ptrdiff_t i = 0; i < count; i++) {
        if (!same_machine(&cells[i], q->hardware) || !same_settings(cells[i].key, q->settings))
            continue;
        for (ptrdiff_t k = 0; k < cells[i].attempt_count; k++) {
            const struct attempt_record *t = &cells[i].attempts[k];
            bool decided = t->finished && outcome_rows[t->outcome].verdict != LENGTH_UNDECIDED;
            if (decided && t->context == q->context)
                found = t;
        }
    }
    return found;
}
