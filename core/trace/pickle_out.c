// Python's pickletools.py describes the instructions.
#include "core/trace/pickle_out.h"

#include <string.h>

enum { FIRST_MEMO = 1024, SHORT_MEMO = 256 };

static void put_byte(struct pickle_out *p, unsigned byte)
{
    buf_char(p->out, (char)(unsigned char)byte);
}

// Little-endian, as all of pickle's counts are.
static void put_bytes(struct pickle_out *p, uint64_t value, int count)
{
    for (int i = 0; i < count; i++)
        put_byte(p, (unsigned)(value >> (8 * i)) & 0xFF);
}

struct pickle_out pickle_out_to(struct buf *out)
{
    struct pickle_out p = {.out = out, .memo_capacity = FIRST_MEMO};
    p.memo = NEW(out->arena, struct pickle_memo, FIRST_MEMO);
    put_byte(&p, 0x80);
    put_byte(&p, 2);
    return p;
}

void pickle_out_end(struct pickle_out *p)
{
    put_byte(p, '.');
}

// ------------------------------------------------------------------ what was written before

static uint64_t hash_of(struct str key)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325); // FNV-1a
    for (ptrdiff_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001B3);
    return h;
}

// Its entry, or the free one where it belongs.
static struct pickle_memo *entry_of(const struct pickle_out *p, struct str key)
{
    ptrdiff_t i = (ptrdiff_t)(hash_of(key) & (uint64_t)(p->memo_capacity - 1));
    while (p->memo[i].key.p && !str_equal(p->memo[i].key, key))
        i = (i + 1) & (p->memo_capacity - 1);
    return &p->memo[i];
}

static void widen(struct pickle_out *p)
{
    struct pickle_out wider = *p;
    wider.memo_capacity = 2 * p->memo_capacity;
    wider.memo = NEW(p->out->arena, struct pickle_memo, wider.memo_capacity);
    for (ptrdiff_t i = 0; i < p->memo_capacity; i++)
        if (p->memo[i].key.p)
            *entry_of(&wider, p->memo[i].key) = p->memo[i];
    *p = wider;
}

static void put_number(struct pickle_out *p, uint32_t number, unsigned brief, unsigned wide)
{
    bool is_short = number < SHORT_MEMO;
    put_byte(p, is_short ? brief : wide);
    put_bytes(p, number, is_short ? 1 : 4);
}

bool pickle_out_recall(struct pickle_out *p, struct str key)
{
    const struct pickle_memo *found = entry_of(p, key);
    if (!found->key.p)
        return false;
    put_number(p, found->number, 'h', 'j');
    return true;
}

void pickle_out_remember(struct pickle_out *p, struct str key)
{
    if (2 * (ptrdiff_t)p->memo_count >= p->memo_capacity)
        widen(p);
    *entry_of(p, key) = (struct pickle_memo){str_copy(p->out->arena, key), p->memo_count};
    put_number(p, p->memo_count++, 'q', 'r');
}

// ------------------------------------------------------------------ values

void pickle_out_dict(struct pickle_out *p)
{
    buf_put_z(p->out, "}(");
}

void pickle_out_dict_end(struct pickle_out *p)
{
    put_byte(p, 'u');
}

void pickle_out_list(struct pickle_out *p)
{
    buf_put_z(p->out, "](");
}

void pickle_out_list_piece(struct pickle_out *p)
{
    buf_put_z(p->out, "e(");
}

void pickle_out_list_end(struct pickle_out *p)
{
    put_byte(p, 'e');
}

void pickle_out_text(struct pickle_out *p, struct str text)
{
    if (pickle_out_recall(p, text))
        return;
    put_byte(p, 'X');
    put_bytes(p, (uint64_t)text.n, 4);
    buf_put(p->out, text);
    pickle_out_remember(p, text);
}

// As many bytes as it takes, the highest bit being the sign.
void pickle_out_u64(struct pickle_out *p, uint64_t value)
{
    int count = 5;
    if (value <= 0xFF) {
        put_byte(p, 'K');
        put_bytes(p, value, 1);
        return;
    }
    if (value <= INT32_MAX) {
        put_byte(p, 'J');
        put_bytes(p, value, 4);
        return;
    }
    while (count < 8 && value >> (8 * count - 1))
        count++;
    bool ninth = value >> 63;
    put_byte(p, 0x8A);
    put_byte(p, (unsigned)count + ninth);
    put_bytes(p, value, count);
    if (ninth)
        put_byte(p, 0);
}

void pickle_out_bool(struct pickle_out *p, bool value)
{
    put_byte(p, value ? 0x88 : 0x89);
}

void pickle_out_pair(struct pickle_out *p)
{
    put_byte(p, 0x86);
}

void pickle_out_key(struct pickle_out *p, const char *key)
{
    pickle_out_text(p, str_from(key));
}

void pickle_out_field_u64(struct pickle_out *p, const char *key, uint64_t value)
{
    pickle_out_key(p, key);
    pickle_out_u64(p, value);
}

void pickle_out_field_text(struct pickle_out *p, const char *key, struct str value)
{
    pickle_out_key(p, key);
    pickle_out_text(p, value);
}
