// A fixed buffer with a length: see the header.
#include "host/formats/key_path.h"

#include <stdio.h>
#include <string.h>

static bool append(struct key_path *k, struct str text)
{
    if (text.n > KEY_PATH_MAX_BYTES - k->n)
        return false;
    if (text.n)
        memcpy(k->text + k->n, text.p, (size_t)text.n);
    k->n += text.n;
    return true;
}

static bool too_long(struct str where, struct error *e)
{
    return FAIL(e, BAD_INPUT, where, "a key is longer than %d bytes", KEY_PATH_MAX_BYTES);
}

bool key_path_init(struct key_path *k, struct str prefix, struct str where, struct error *e)
{
    *k = (struct key_path){0};
    if (!append(k, prefix))
        return too_long(where, e);
    k->prefix = k->n;
    return true;
}

bool key_path_push(struct key_path *k, struct str part, struct str where, struct error *e)
{
    if (!part.n)
        return FAIL(e, BAD_INPUT, where, "a key is empty");
    if (memchr(part.p, 0, (size_t)part.n))
        return FAIL(e, BAD_INPUT, where, "a key holds a NUL character");
    ptrdiff_t before = k->n;
    if ((k->n == k->prefix || append(k, STR("."))) && append(k, part))
        return true;
    k->n = before;
    return too_long(where, e);
}

bool key_path_push_index(struct key_path *k, ptrdiff_t index, struct str where, struct error *e)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%td", index);
    return key_path_push(k, (struct str){digits, n}, where, e);
}

void key_path_cut(struct key_path *k, ptrdiff_t n)
{
    ASSERT(n >= k->prefix && n <= k->n);
    k->n = n;
}

struct str key_path_str(const struct key_path *k)
{
    return (struct str){k->text, k->n};
}
