// Reading, unpacking and decoding with a buffer each. What a file is shows in its first bytes,
// which a pipe may give one at a time, so the first piece is filled before it is looked at.
#include "host/files/stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#define ZLIB_CONST // inputs are const
#include <zlib.h>

#include "host/files/encoding.h"
#include "host/files/file.h"

enum {
    PIECE_BYTES = 256 << 10,
    DECODED_BYTES = UTF16_GROWTH * (PIECE_BYTES + 1),
    ANY_HEADER = 15 + 32
}; // largest window, zlib or gzip by its header

struct stream {
    struct str name;
    int fd;
    char *read, *unpacked; // [PIECE_BYTES]
    char *decoded;         // [DECODED_BYTES], where the text is UTF-16
    struct str ready;      // read and not yet passed on
    z_stream z;
    struct utf16 utf16;
    struct arena *arena;
    bool started, packed, member_ended, cut, text_begun;
    uint64_t unpacked_bytes;
};

struct stream *stream_open(struct arena *a, struct str path, struct error *e)
{
    bool standard_input = str_is(path, "-");
    int fd = file_open(*a, standard_input ? STR("/dev/stdin") : path, e);
    if (fd < 0)
        return NULL;
    struct stream *s = NEW(a, struct stream, 1);
    s->arena = a;
    s->name = standard_input ? STR("standard input") : path;
    s->fd = fd;
    s->read = NEW(a, char, PIECE_BYTES);
    s->unpacked = NEW(a, char, PIECE_BYTES);
    return s;
}

void stream_close(struct stream *s)
{
    if (s->packed)
        inflateEnd(&s->z);
    close(s->fd);
}

// Reads what there is, at least `least` bytes unless the file ends.
static bool fill(struct stream *s, ptrdiff_t least, struct error *e)
{
    ptrdiff_t filled = 0;
    while (filled < least) {
        ssize_t got = read(s->fd, s->read + filled, (size_t)(PIECE_BYTES - filled));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return FAIL(e, IO, s->name, "this file cannot be read (%s)", strerror(errno));
        if (got == 0)
            break;
        filled += got;
    }
    s->ready = (struct str){s->read, filled};
    return true;
}

// gzip, or zlib as compressors write it. Text can look like zlib's other headers: "(raylet)" does.
static bool is_packed(struct str in)
{
    return str_starts(in, STR("\x1F\x8B")) || str_starts(in, STR("x\x01")) ||
           str_starts(in, STR("x\x9C")) || str_starts(in, STR("x\xDA"));
}

static bool start(struct stream *s, struct error *e)
{
    if (!fill(s, PIECE_BYTES, e))
        return false;
    s->started = true;
    s->packed = is_packed(s->ready);
    if (s->packed && inflateInit2(&s->z, ANY_HEADER) != Z_OK) {
        s->packed = false;
        return FAIL(e, IO, s->name, "this compressed file cannot be unpacked");
    }
    return true;
}

// What could be unpacked is worth reading: the rest is only missing.
static bool damaged(struct stream *s, struct error *e)
{
    if (!s->unpacked_bytes && s->z.avail_out == PIECE_BYTES)
        return FAIL(e, BAD_INPUT, s->name, "this compressed file is damaged or cut off");
    s->cut = true;
    return true;
}

// One call of zlib; what follows the last member and is none itself is passed over, as gzip does.
static bool inflate_some(struct stream *s, struct error *e)
{
    bool between = s->member_ended;
    if (between && inflateReset(&s->z) != Z_OK)
        return damaged(s, e);
    s->z.next_in = (const Bytef *)s->ready.p;
    s->z.avail_in = (uInt)s->ready.n;
    int status = inflate(&s->z, Z_NO_FLUSH);
    bool ok = status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR;
    s->member_ended = status == Z_STREAM_END || (between && !ok);
    s->ready =
        ok ? str_slice(s->ready, s->ready.n - (ptrdiff_t)s->z.avail_in, s->ready.n) : STR_NONE;
    return ok || between || damaged(s, e);
}

static bool unpack_some(struct str *piece, struct stream *s, struct error *e)
{
    s->z.next_out = (Bytef *)s->unpacked;
    s->z.avail_out = PIECE_BYTES;
    while (s->z.avail_out == PIECE_BYTES && !s->cut) {
        if (!s->ready.n && !fill(s, 1, e))
            return false;
        if (!s->ready.n)
            return s->member_ended || damaged(s, e);
        if (!inflate_some(s, e))
            return false;
    }
    *piece = (struct str){s->unpacked, PIECE_BYTES - (ptrdiff_t)s->z.avail_out};
    s->unpacked_bytes += (uint64_t)piece->n;
    return true;
}

static bool next_bytes(struct str *piece, struct stream *s, struct error *e)
{
    if (s->packed)
        return unpack_some(piece, s, e);
    if (!s->ready.n && !fill(s, 1, e))
        return false;
    *piece = s->ready;
    s->ready = STR_NONE;
    return true;
}

// What kind of text it is shows at its start.
static bool begin_text(struct stream *s, struct str start, struct error *e)
{
    enum encoding encoding = encoding_of(start);
    s->text_begun = true;
    if (!encoding_check(start, s->name, e))
        return false;
    if (encoding != ENCODING_BYTES)
        s->decoded = NEW(s->arena, char, DECODED_BYTES);
    s->utf16.big_endian = encoding == ENCODING_UTF16_BE;
    return true;
}

bool stream_next(struct str *piece, struct stream *s, struct error *e)
{
    *piece = STR_NONE;
    if ((!s->started && !start(s, e)) || !next_bytes(piece, s, e) ||
        (!s->text_begun && !begin_text(s, *piece, e)))
        return false;
    while (s->decoded && piece->n) {
        *piece = utf16_decode(s->decoded, &s->utf16, *piece);
        if (piece->n)
            break;
        if (!next_bytes(piece, s, e)) // a piece that was half a character
            return false;
    }
    return true;
}

bool stream_is_cut(const struct stream *s)
{
    return s->cut;
}
