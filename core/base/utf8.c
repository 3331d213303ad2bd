// The forms of UTF-8 as a table.
#include "core/base/utf8.h"

// The well-formed UTF-8 sequences by lead byte (Unicode, table 3-7): the second byte's range leaves
// out overlong forms, surrogates and values past U+10FFFF.
static const struct {
    unsigned char first_lead, last_lead, length, second_min, second_max;
} utf8_forms[] = {
    {0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static bool continues(struct str s, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t i = from; i < to; i++)
        if (((unsigned char)s.p[i] & 0xC0) != 0x80)
            return false;
    return true;
}

ptrdiff_t utf8_length(struct str s)
{
    unsigned char lead = (unsigned char)s.p[0];
    ptrdiff_t form = 0;
    while (form < COUNT_OF(utf8_forms) && lead > utf8_forms[form].last_lead)
        form++;
    if (form == COUNT_OF(utf8_forms) || lead < utf8_forms[form].first_lead)
        return 0;
    ptrdiff_t n = utf8_forms[form].length;
    if (n == 1)
        return 1;
    if (n > s.n)
        return 0;
    unsigned char second = (unsigned char)s.p[1];
    bool good = second >= utf8_forms[form].second_min && second <= utf8_forms[form].second_max;
    return good && continues(s, 2, n) ? n : 0;
}

// Every character that does more than stand there: controls (C0, DEL, C1), marks and overrides of
// writing direction (Unicode Standard Annex 9), line and paragraph separators, and what is no
// character at all. Whoever shows text from outside asks here, and nowhere else.
static const struct {
    unsigned first, last;
} not_plain[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x061C, 0x061C}, {0x200E, 0x200F},   {0x2028, 0x202E},
    {0x2066, 0x2069}, {0xFEFF, 0xFEFF}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE007F},
};

static unsigned code_point(struct str sequence)
{
    static const unsigned char lead_mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned point = (unsigned char)sequence.p[0] & lead_mask[sequence.n];
    for (ptrdiff_t i = 1; i < sequence.n; i++)
        point = point << 6 | ((unsigned char)sequence.p[i] & 0x3F);
    return point;
}

struct glyph utf8_glyph(struct str s)
{
    ptrdiff_t n = utf8_length(s);
    if (!n)
        return (struct glyph){.n = 1, .point = 0xFFFD};
    struct glyph g = {.n = n, .point = code_point(str_slice(s, 0, n)), .plain = true};
    for (ptrdiff_t i = 0; i < COUNT_OF(not_plain); i++)
        g.plain = g.plain && (g.point < not_plain[i].first || g.point > not_plain[i].last);
    return g;
}
