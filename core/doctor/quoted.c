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

// Where the string begins that is still open at the end of the text; -1: none is.
static ptrdiff_t open_quote(struct str text)
{
    ptrdiff_t open = -1;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool after_letter = i > 0 && is_letter(text.p[i - 1]);
        bool before_letter = i + 1 < text.n && is_letter(text.p[i + 1]);
        if (c == '\\')
            i++;
        else if (open < 0 && (c == '"' || c == '\'' || c == '`') && !after_letter)
            open = i;
        else if (open >= 0 && c == text.p[open] && !before_letter)
            open = -1;
    }
    return open;
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

// A line too long to be seen from its start has its quotes elsewhere.
static bool looks_like_data(struct str before)
{
    return text_has(before, "\\n") || text_has(before, "\": \"") || text_has(before, "': '") ||
           text_has(before, "\":\"");
}

// How chat templates begin and end what somebody says.
static const struct {
    const char *begin, *end;
} turns[] = {
    {"<|im_start|>", "<|im_end|>"},
    {"<|start_header_id|>", "<|eot_id|>"},
    {"<start_of_turn>", "<end_of_turn>"},
    {"<|user|>", "<|end|>"},
};

static bool has_chat_marks(struct str before)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(turns); i++)
        if (text_has(before, turns[i].begin))
            return true;
    return text_has(before, "[INST]");
}

static ptrdiff_t last_place(struct str text, const char *part)
{
    ptrdiff_t last = -1;
    for (ptrdiff_t at = 0; (at = text_find(text, str_from(part), at)) >= 0; at++)
        last = at;
    return last;
}

bool is_in_turn(struct str before, struct str after)
{
    if (!text_has(before, "<")) // which is nearly always so
        return false;
    for (ptrdiff_t i = 0; i < COUNT_OF(turns); i++) {
        ptrdiff_t begun = last_place(before, turns[i].begin);
        if (begun < 0 || last_place(before, turns[i].end) > begun)
            continue;
        ptrdiff_t ended = text_find(after, str_from(turns[i].end), 0);
        ptrdiff_t next = text_find(after, str_from(turns[i].begin), 0);
        if (ended >= 0 && (next < 0 || ended < next))
            return true;
    }
    return false;
}

// "I get RuntimeError: CUDA out of memory": the first word before the message that is not a name.
static bool is_told(struct str before)
{
    enum { NAMES = 4 };
    for (int i = 0; i < NAMES; i++) {
        before = trim_end(before);
        ptrdiff_t start = before.n;
        while (start > 0 && before.p[start - 1] != ' ')
            start--;
        struct str word = str_slice(before, start, before.n);
        bool name = str_ends(word, STR(":")) || (word.n && char_lower(word.p[0]) != word.p[0]);
        if (!name)
            return words_have(tellings, ' ', word);
        before = str_slice(before, 0, start);
    }
    return false;
}

bool passage_is_quoted(const struct passage *p)
{
    struct str before = str_slice(p->line, 0, p->anchor);
    if (p->cut ? looks_like_data(before) : has_chat_marks(before))
        return true;
    ptrdiff_t open = p->cut ? -1 : open_quote(before);
    bool mentioned = open >= 0 && before.p[open] == '`' &&
                     text_has(str_slice(p->line, p->anchor, p->line.n), "`");
    return is_told(before) || mentioned ||
           (open >= 0 && is_value_of_data(str_slice(before, 0, open)));
}
