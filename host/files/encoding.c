// Magic numbers as rows; what has none and is full of control bytes is binary.
#include "host/files/encoding.h"

#include "core/base/compiler.h"

enum { LOOKED_AT = 4096, JUDGED_FROM = 64, ODD_SHARE = 20, REPLACEMENT = 0xFFFD };

#define MAGIC(bytes) {(bytes), (ptrdiff_t)sizeof(bytes) - 1}

static const struct {
    struct str magic;
    const char *name, *unpacker;
} archives[] = {
    {MAGIC("\xFD"
           "7zXZ"),
     "compressed with xz", "xz -dc"},
    {MAGIC("\x28\xB5\x2F\xFD"), "compressed with zstd", "zstd -dc"},
    {MAGIC("BZh"), "compressed with bzip2", "bzip2 -dc"},
    {MAGIC("\x04\x22\x4D\x18"), "compressed with lz4", "lz4 -dc"},
    {MAGIC("PK\x03\x04"), "a zip archive", "unzip -p"},
    {MAGIC("7z\xBC\xAF\x27\x1C"), "a 7z archive", "7z x -so"},
};

// NUL, and control characters that terminals and progress bars do not use.
static bool is_odd(char c)
{
    unsigned char byte = (unsigned char)c;
    bool known = (byte >= '\b' && byte <= '\r') || byte == 0x1B;
    return byte < 0x20 && !known;
}

// A log that was cut from the front may begin with a hole, which reads as NUL.
static bool is_binary(struct str start)
{
    ptrdiff_t from = 0, odd = 0;
    while (from < start.n && !start.p[from])
        from++;
    struct str text =
        str_slice(start, from, from + LOOKED_AT < start.n ? from + LOOKED_AT : start.n);
    for (ptrdiff_t i = 0; i < text.n; i++)
        odd += is_odd(text.p[i]);
    bool only_holes = start.n >= JUDGED_FROM && !text.n;
    return only_holes || (text.n >= JUDGED_FROM && odd > text.n / ODD_SHARE);
}

// "BZh" alone could be a word: a digit and the first block's mark follow it.
static bool is_bzip2(struct str start)
{
    return start.n >= 10 && str_starts(str_slice(start, 4, start.n), STR("1AY&SY"));
}

bool encoding_check(struct str start, struct str name, struct error *e)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(archives); i++) {
        struct str magic = archives[i].magic;
        if (!str_starts(start, magic) || (str_is(magic, "BZh") && !is_bzip2(start)))
            continue;
        return FAIL(e, BAD_INPUT, name,
                    "this file is %s, which is not unpacked here: %s FILE | fathom doctor -",
                    archives[i].name, archives[i].unpacker);
    }
    if (encoding_of(start) == ENCODING_BYTES && is_binary(start))
        return FAIL(e, BAD_INPUT, name,
                    "this file is no text: it is full of bytes that no log has (binary data, or "
                    "UTF-16 without its mark)");
    return true;
}

enum encoding encoding_of(struct str start)
{
    return str_starts(start, STR("\xFF\xFE"))   ? ENCODING_UTF16_LE
           : str_starts(start, STR("\xFE\xFF")) ? ENCODING_UTF16_BE
                                                : ENCODING_BYTES;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3F));
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    }
    return out;
}

// A surrogate without its other half becomes the replacement character.
static char *put_unit(char *out, struct utf16 *u, uint32_t unit)
{
    bool high = unit >= 0xD800 && unit < 0xDC00, low = unit >= 0xDC00 && unit < 0xE000;
    if (u->high && low) {
        out = put_utf8(out, 0x10000 + ((u->high - 0xD800) << 10) + (unit - 0xDC00));
        u->high = 0;
        return out;
    }
    if (u->high)
        out = put_utf8(out, REPLACEMENT);
    u->high = high ? unit : 0;
    return high ? out : put_utf8(out, low ? REPLACEMENT : unit);
}

struct str utf16_decode(char *out, struct utf16 *u, struct str in)
{
    char *end = out;
    for (ptrdiff_t i = 0; i < in.n; i++) {
        unsigned char byte = (unsigned char)in.p[i];
        if (!u->half) {
            u->first = byte;
            u->half = true;
            continue;
        }
        u->half = false;
        uint32_t unit =
            u->big_endian ? (uint32_t)u->first << 8 | byte : (uint32_t)byte << 8 | u->first;
        if (unit != 0xFEFF) // the mark
            end = put_unit(end, u, unit);
    }
    return (struct str){out, end - out};
}
