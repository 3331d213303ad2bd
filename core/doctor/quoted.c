// Whether a line says something itself or only shows text that says it: trainers print samples of
// their data and servers their prompts, and those speak of errors too. A message inside a string of
// a dictionary, a list or a prompt is data, unless its key is one that loggers use; one between
// backticks is only mentioned.
#include <string.h>

#include "core/base/compiler.h"
#include "core/doctor/internal.h"

static bool is_letter(char c)
{
    return (char_lower(c) >= 'a' && char_lower(c) <= 'z') || char_is_digit(c) || c == '_';
}

struct reading reading_begin(void)
{
    return (struct reading){.open = -1, .judged = -1};
}

// Follows strings over the character at `quotes_read`, of which only the text before `end` is seen.
static void follow_quote(struct reading *r, struct str text, ptrdiff_t end)
{
    ptrdiff_t i = r->quotes_read++;
    char c = text.p[i];
    bool after_letter = i > 0 && is_letter(text.p[i - 1]);
    bool before_letter = i + 1 < end && is_letter(text.p[i + 1]);
    if (c == '\\')
        r->quotes_read++;
    else if (r->open < 0 && (c == '"' || c == '\'' || c == '`') && !after_letter)
        r->open = i;
    else if (r->open >= 0 && c == text.p[r->open] && !before_letter)
        r->open = -1;
}

// Where the string begins that is still open at `end`; -1: none is. A quote that stands last is
// judged without what follows it, so it is looked at again later.
static ptrdiff_t open_quote(struct reading *r, struct str text, ptrdiff_t end)
{
    while (r->quotes_read + 1 < end)
        follow_quote(r, text, end);
    struct reading last = *r;
    if (last.quotes_read < end)
        follow_quote(&last, text, end);
    return last.open;
}

static struct str trim_end(struct str text)
{
    while (text.n && text.p[text.n - 1] == ' ')
        text.n--;
    return text;
}

static struct str last_word(struct str text)
{
    ptrdiff_t start = text.n;
    while (start > 0 && is_letter(text.p[start - 1]))
        start--;
    return str_slice(text, start, text.n);
}

// Keys under which loggers put what happened, names under which data is printed, and what people
// say of an error that they had.
static const char logged_keys[] =
    "log message msg error exception exc_info event detail traceback stderr error_message line "
    "textPayload reason stack_trace";
static const char data_names[] =
    "prompt content text question instruction input output response completion answer query";
static const char tellings[] =
    "get got getting gets see seeing saw says encounter avoid fix prevent";

// What the string is the value of, `before` being all that stands before its opening quote.
static bool is_value_of_data(struct str before)
{
    before = trim_end(before);
    if (!before.n)
        return false;
    char mark = before.p[before.n - 1];
    if (mark == '[' || mark == '{' || mark == ',')
        return true;
    if (mark != ':' && mark != '=')
        return false;
    before = trim_end(str_slice(before, 0, before.n - 1));
    bool quoted = before.n && (before.p[before.n - 1] == '"' || before.p[before.n - 1] == '\'');
    struct str key = last_word(quoted ? str_slice(before, 0, before.n - 1) : before);
    if (quoted)
        return !words_have(logged_keys, ' ', key);
    return words_have(data_names, ' ', key);
}

// How chat templates begin and end what somebody says.
static const struct {
    const char *begin, *end;
} turns[TURN_KINDS] = {
    {"<|im_start|>", "<|im_end|>"},
    {"<|start_header_id|>", "<|eot_id|>"},
    {"<start_of_turn>", "<end_of_turn>"},
    {"<|user|>", "<|end|>"},
};

// What makes the rest of a line something that is only shown. A traceback shows the source line
// that raised, with the message's text in it; a line too long to be seen from its start has its
// quotes elsewhere.
static const char *const source_marks[] = {"raise ", "except "};
static const char *const data_marks[] = {"\\n", "\": \"", "': '", "\":\""};
enum { MARK_MOST_BYTES = 20 };

static bool has_any(struct str text, const char *const *marks, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        if (text_has(text, marks[i]))
            return true;
    return false;
}

static bool has_chat_marks(struct str text)
{
    for (int i = 0; i < TURN_KINDS; i++)
        if (text_has(text, turns[i].begin))
            return true;
    return text_has(text, "[INST]");
}

bool passage_is_silenced(const struct passage *p, struct reading *r)
{
    ptrdiff_t from = r->looked > MARK_MOST_BYTES ? r->looked - MARK_MOST_BYTES : 0;
    struct str text = str_slice(p->line, from < p->anchor ? from : p->anchor, p->anchor);
    r->silenced = r->silenced || has_any(text, source_marks, COUNT_OF(source_marks)) ||
                  (p->cut ? has_any(text, data_marks, COUNT_OF(data_marks)) : has_chat_marks(text));
    r->looked = p->anchor;
    return r->silenced;
}

static bool is_at(struct str text, const char *mark)
{
    return str_starts(text, str_from(mark));
}

// The next '<' in [from, to), or `to`.
static ptrdiff_t next_angle(struct str text, ptrdiff_t from, ptrdiff_t to)
{
    const char *found = from < to ? memchr(text.p + from, '<', (size_t)(to - from)) : NULL;
    return found ? found - text.p : to;
}

static void follow_turns(struct turns *t, struct str text, uint64_t dropped, ptrdiff_t place)
{
    ptrdiff_t from = t->read > dropped ? (ptrdiff_t)(t->read - dropped) : 0;
    ptrdiff_t earliest = place > TURN_BYTES ? place - TURN_BYTES : 0;
    from = from > earliest ? from : earliest;
    for (ptrdiff_t at = next_angle(text, from, place); at < place;
         at = next_angle(text, at + 1, place))
        for (int i = 0; i < TURN_KINDS; i++) {
            struct str rest = str_slice(text, at, place);
            if (is_at(rest, turns[i].begin) || is_at(rest, turns[i].end)) {
                t->last[i] = dropped + (uint64_t)at;
                t->is_open[i] = is_at(rest, turns[i].begin);
            }
        }
    t->read = dropped + (uint64_t)place;
}

// Whether the next mark of this kind of turn, if it is near, is an end.
static bool ends_ahead(struct turns *t, int kind, struct str text, uint64_t dropped,
                       ptrdiff_t place)
{
    struct turn_mark *next = &t->next[kind];
    uint64_t here = dropped + (uint64_t)place;
    ptrdiff_t to = place + TURN_BYTES < text.n ? place + TURN_BYTES : text.n;
    if (!next->found || next->place < here) {
        ptrdiff_t from = next->sought > here ? (ptrdiff_t)(next->sought - dropped) : place;
        ptrdiff_t at = next_angle(text, from, to);
        for (; at < to; at = next_angle(text, at + 1, to)) {
            struct str rest = str_slice(text, at, to);
            next->is_end = is_at(rest, turns[kind].end);
            if (next->is_end || is_at(rest, turns[kind].begin))
                break;
        }
        *next = (struct turn_mark){.found = at < to,
                                   .is_end = next->is_end,
                                   .place = dropped + (uint64_t)at,
                                   .sought = dropped + (uint64_t)to};
        if (!next->found && to - from > MARK_MOST_BYTES) // one may be cut there
            next->sought -= MARK_MOST_BYTES;
    }
    return next->found && next->is_end && next->place < dropped + (uint64_t)to;
}

bool turns_hold(struct turns *t, struct str text, uint64_t dropped, ptrdiff_t place)
{
    follow_turns(t, text, dropped, place);
    for (int i = 0; i < TURN_KINDS; i++) {
        bool near = t->last[i] + TURN_BYTES >= dropped + (uint64_t)place;
        if (t->is_open[i] && near && ends_ahead(t, i, text, dropped, place))
            return true;
    }
    return false;
}

// "I get RuntimeError: CUDA out of memory": the first word before the message that is not a name.
static bool is_told(struct str before)
{
    enum { NAMES = 4, NAMES_BYTES = 200 };
    bool cut = before.n > NAMES_BYTES;
    before = str_slice(before, cut ? before.n - NAMES_BYTES : 0, before.n);
    for (int i = 0; i < NAMES; i++) {
        before = trim_end(before);
        ptrdiff_t start = before.n;
        while (start > 0 && before.p[start - 1] != ' ')
            start--;
        if (!start && cut)
            return false;
        struct str word = str_slice(before, start, before.n);
        bool name = str_ends(word, STR(":")) || (word.n && char_lower(word.p[0]) != word.p[0]);
        if (!name)
            return words_have(tellings, ' ', word);
        before = str_slice(before, 0, start);
    }
    return false;
}

// Whether a backtick follows.
static bool closes_backtick(const struct passage *p, struct reading *r)
{
    if (!r->backtick_known) {
        r->backtick = p->line.n - 1;
        while (r->backtick >= 0 && p->line.p[r->backtick] != '`')
            r->backtick--;
        r->backtick_known = true;
    }
    return r->backtick >= p->anchor;
}

bool passage_is_quoted(const struct passage *p, struct reading *r)
{
    struct str before = str_slice(p->line, 0, p->anchor);
    if (is_told(before))
        return true;
    ptrdiff_t open = p->cut ? -1 : open_quote(r, p->line, p->anchor);
    if (open < 0)
        return false;
    if (before.p[open] == '`' && closes_backtick(p, r))
        return true;
    if (r->judged != open)
        r->is_data = is_value_of_data(str_slice(before, 0, open));
    r->judged = open;
    return r->is_data;
}
