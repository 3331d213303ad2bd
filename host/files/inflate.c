// zlib behind one function. The output grows in the arena, where it is the last block and so grows
// in place.
#include "host/files/inflate.h"

#include <limits.h>
#include <string.h>
#define ZLIB_CONST // inputs are const
#include <zlib.h>

#include "core/base/buf.h"

enum { CHUNK_BYTES = 1 << 20, ANY_HEADER = 15 + 32 }; // largest window, zlib or gzip by its header

// What is read decides how much is unpacked: histories shrink to a thirtieth, zeros to a
// thousandth.
#define MOST_BYTES (INT64_C(4) << 30)
enum { MOST_TIMES = 200, LEAST_BYTES = 64 << 20 };

bool is_packed(struct str in)
{
    if (in.n < 2)
        return false;
    unsigned first = (unsigned char)in.p[0], second = (unsigned char)in.p[1];
    bool zlib = (first & 0x0F) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
    return zlib || (first == 0x1F && second == 0x8B);
}

static bool is_too_large(const struct buf *out, struct str in, struct str name, struct error *e)
{
    if (out->n > MOST_BYTES)
        return !FAIL(e, BAD_INPUT, name, "this file unpacks to more than 4 GiB");
    if (out->n > LEAST_BYTES && out->n / MOST_TIMES > in.n)
        return !FAIL(e, BAD_INPUT, name, "this file unpacks to more than %d times its size",
                     MOST_TIMES);
    return false;
}

static bool unpack(struct buf *out, z_stream *stream, struct str name, struct error *e)
{
    struct str in = {(const char *)stream->next_in, (ptrdiff_t)stream->avail_in};
    char *chunk = NEW(out->arena, char, CHUNK_BYTES);
    for (;;) {
        stream->next_out = (Bytef *)chunk;
        stream->avail_out = CHUNK_BYTES;
        int status = inflate(stream, Z_NO_FLUSH);
        buf_put(out, (struct str){chunk, CHUNK_BYTES - (ptrdiff_t)stream->avail_out});
        if (is_too_large(out, in, name, e))
            return false;
        if (status == Z_STREAM_END)
            return true;
        if (status != Z_OK)
            return FAIL(e, BAD_INPUT, name, "this compressed file is damaged or cut off");
    }
}

bool inflate_if_packed(struct str *out, struct arena *a, struct str in, struct str name,
                       struct error *e)
{
    if (!is_packed(in)) {
        *out = in;
        return true;
    }
    z_stream stream = {0};
    if (in.n > UINT_MAX || inflateInit2(&stream, ANY_HEADER) != Z_OK)
        return FAIL(e, IO, name, "this compressed file cannot be unpacked");
    stream.next_in = (const Bytef *)in.p;
    stream.avail_in = (uInt)in.n;
    struct buf unpacked = buf_in(a);
    bool ok = unpack(&unpacked, &stream, name, e);
    inflateEnd(&stream);
    if (ok)
        *out = buf_str(&unpacked);
    return ok;
}
