// The pickle machine (Python's pickletools.py describes it): a stack of values, marks on that
// stack, and a memo of values seen before. Each instruction of the table below is one small
// function; an instruction without a row ends the reading.
#include "core/trace/pickle.h"

#include <string.h>

struct machine {
    struct arena *arena;
    struct str rest;
    struct str all;
    struct str name;
    struct error *error;
    struct value_items stack, memo;
    ptrdiff_t *marks;
    ptrdiff_t mark_count, mark_capacity;
    bool stopped;
};

// The largest count of marks or stack entries is the pickle's own length; this bounds the memo's
// index, which a pickle may state freely.
enum { MEMO_MOST = 1 << 26 };

static bool broken(struct machine *m, const char *what)
{
    return FAIL(m->error, BAD_INPUT, m->name, "this pickle is broken at byte %lld: %s",
                (long long)(m->all.n - m->rest.n), what);
}

static bool take_bytes(struct machine *m, struct str *bytes, uint64_t count)
{
    if (count > (uint64_t)m->rest.n)
        return broken(m, "it ends too early");
    *bytes = str_slice(m->rest, 0, (ptrdiff_t)count);
    m->rest = str_slice(m->rest, (ptrdiff_t)count, m->rest.n);
    return true;
}

// Little-endian, as all of pickle's counts are.
static bool take_number(struct machine *m, uint64_t *number, int bytes)
{
    struct str raw;
    if (!take_bytes(m, &raw, (uint64_t)bytes))
        return false;
    *number = 0;
    for (int i = bytes - 1; i >= 0; i--)
        *number = *number << 8 | (unsigned char)raw.p[i];
    return true;
}

static void push_to(struct arena *a, struct value_items *items, struct value v)
{
    struct value list = {VALUE_LIST, {.items = items}};
    value_append(a, &list, v);
}

static bool push(struct machine *m, struct value v)
{
    push_to(m->arena, &m->stack, v);
    return true;
}

static bool need(struct machine *m, ptrdiff_t values)
{
    ptrdiff_t floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;
    return m->stack.count - floor >= values || broken(m, "its stack runs empty");
}

static struct value pop(struct machine *m)
{
    return m->stack.values[--m->stack.count];
}

static struct value *top(struct machine *m)
{
    return &m->stack.values[m->stack.count - 1];
}

static bool op_mark(struct machine *m)
{
    m->marks = arena_grow(m->arena, m->marks, sizeof *m->marks, m->mark_count, &m->mark_capacity);
    m->marks[m->mark_count++] = m->stack.count;
    return true;
}

static bool pop_mark(struct machine *m, ptrdiff_t *from)
{
    if (!m->mark_count)
        return broken(m, "it closes what it did not open");
    *from = m->marks[--m->mark_count];
    return true;
}

// Moves the values above `from` into the container below them.
static bool fill(struct machine *m, ptrdiff_t from, enum value_kind kind)
{
    if (from == 0 || m->stack.values[from - 1].kind != kind)
        return broken(m, "it adds to something that is no container");
    if (kind == VALUE_DICT && (m->stack.count - from) % 2)
        return broken(m, "a dictionary has a key without a value");
    value_append_all(m->arena, &m->stack.values[from - 1], &m->stack.values[from],
                     m->stack.count - from);
    m->stack.count = from;
    return true;
}

static bool op_setitems(struct machine *m)
{
    ptrdiff_t from;
    return pop_mark(m, &from) && fill(m, from, VALUE_DICT);
}

static bool op_setitem(struct machine *m)
{
    return need(m, 3) && fill(m, m->stack.count - 2, VALUE_DICT);
}

static bool op_appends(struct machine *m)
{
    ptrdiff_t from;
    return pop_mark(m, &from) && fill(m, from, VALUE_LIST);
}

static bool op_append(struct machine *m)
{
    return need(m, 2) && fill(m, m->stack.count - 1, VALUE_LIST);
}

static bool op_dict(struct machine *m)
{
    return push(m, value_container(m->arena, VALUE_DICT));
}

static bool op_list(struct machine *m)
{
    return push(m, value_container(m->arena, VALUE_LIST));
}

static bool tuple_of(struct machine *m, ptrdiff_t count)
{
    struct value tuple = value_container(m->arena, VALUE_LIST);
    if (!need(m, count))
        return false;
    m->stack.count -= count;
    if (count)
        value_append_all(m->arena, &tuple, m->stack.values + m->stack.count, count);
    return push(m, tuple);
}

static bool op_tuple(struct machine *m)
{
    ptrdiff_t from;
    return pop_mark(m, &from) && tuple_of(m, m->stack.count - from);
}

static bool op_tuple1(struct machine *m)
{
    return tuple_of(m, 1);
}

static bool op_tuple2(struct machine *m)
{
    return tuple_of(m, 2);
}

static bool op_tuple3(struct machine *m)
{
    return tuple_of(m, 3);
}

static bool push_text(struct machine *m, int length_bytes)
{
    uint64_t length;
    struct str text;
    return take_number(m, &length, length_bytes) && take_bytes(m, &text, length) &&
           push(m, value_text(m->arena, text));
}

static bool op_text1(struct machine *m)
{
    return push_text(m, 1);
}

static bool op_text4(struct machine *m)
{
    return push_text(m, 4);
}

static bool op_text8(struct machine *m)
{
    return push_text(m, 8);
}

static bool push_integer(struct machine *m, int bytes)
{
    uint64_t number = 0;
    return take_number(m, &number, bytes) && push(m, value_integer((int64_t)number));
}

static bool op_int1(struct machine *m)
{
    return push_integer(m, 1);
}

static bool op_int2(struct machine *m)
{
    return push_integer(m, 2);
}

static bool op_int4(struct machine *m)
{
    uint64_t number = 0;
    return take_number(m, &number, 4) && push(m, value_integer((int32_t)(uint32_t)number));
}

// Two's complement in as many bytes as it takes; what needs more than eight is no size or address.
static bool op_long1(struct machine *m)
{
    uint64_t bytes = 0, number = 0;
    if (!take_number(m, &bytes, 1))
        return false;
    if (bytes > 8)
        return broken(m, "an integer has more than 64 bits");
    if (!take_number(m, &number, (int)bytes))
        return false;
    bool negative = bytes && number >> (8 * bytes - 1);
    if (negative && bytes < 8)
        number |= UINT64_MAX << (8 * bytes);
    return push(m, value_integer((int64_t)number));
}

static bool op_float(struct machine *m)
{
    struct str raw;
    if (!take_bytes(m, &raw, 8))
        return false;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | (unsigned char)raw.p[i];
    struct value v = {VALUE_REAL, {0}};
    memcpy(&v.as.real, &bits, sizeof bits);
    return push(m, v);
}

static bool op_none(struct machine *m)
{
    return push(m, (struct value){VALUE_NONE, {0}});
}

static bool op_true(struct machine *m)
{
    return push(m, (struct value){VALUE_BOOL, {.boolean = true}});
}

static bool op_false(struct machine *m)
{
    return push(m, (struct value){VALUE_BOOL, {.boolean = false}});
}

static bool op_memoize(struct machine *m)
{
    if (!need(m, 1))
        return false;
    push_to(m->arena, &m->memo, *top(m));
    return true;
}

static bool put(struct machine *m, int index_bytes)
{
    uint64_t index = 0;
    if (!need(m, 1) || !take_number(m, &index, index_bytes))
        return false;
    if (index > (uint64_t)m->memo.count || index > MEMO_MOST)
        return broken(m, "it remembers values out of order");
    if (index == (uint64_t)m->memo.count)
        push_to(m->arena, &m->memo, *top(m));
    else
        m->memo.values[index] = *top(m);
    return true;
}

static bool op_put1(struct machine *m)
{
    return put(m, 1);
}

static bool op_put4(struct machine *m)
{
    return put(m, 4);
}

static bool get(struct machine *m, int index_bytes)
{
    uint64_t index = 0;
    if (!take_number(m, &index, index_bytes))
        return false;
    if (index >= (uint64_t)m->memo.count)
        return broken(m, "it recalls a value it never had");
    return push(m, m->memo.values[index]);
}

static bool op_get1(struct machine *m)
{
    return get(m, 1);
}

static bool op_get4(struct machine *m)
{
    return get(m, 4);
}

static bool op_proto(struct machine *m)
{
    uint64_t protocol = 0;
    if (!take_number(m, &protocol, 1))
        return false;
    return (protocol >= 2 && protocol <= 5) || broken(m, "its protocol is not 2 to 5");
}

static bool op_frame(struct machine *m)
{
    uint64_t bytes = 0;
    return take_number(m, &bytes, 8);
}

static bool op_stop(struct machine *m)
{
    m->stopped = true;
    return true;
}

static bool (*const operations[256])(struct machine *m) = {
    [0x80] = op_proto,  [0x95] = op_frame,  ['.'] = op_stop,     ['('] = op_mark,
    ['}'] = op_dict,    ['s'] = op_setitem, ['u'] = op_setitems, [']'] = op_list,
    ['a'] = op_append,  ['e'] = op_appends, [')'] = op_list,     ['t'] = op_tuple,
    [0x85] = op_tuple1, [0x86] = op_tuple2, [0x87] = op_tuple3,  [0x8C] = op_text1,
    ['X'] = op_text4,   [0x8D] = op_text8,  ['K'] = op_int1,     ['M'] = op_int2,
    ['J'] = op_int4,    [0x8A] = op_long1,  ['G'] = op_float,    ['N'] = op_none,
    [0x88] = op_true,   [0x89] = op_false,  [0x94] = op_memoize, ['q'] = op_put1,
    ['r'] = op_put4,    ['h'] = op_get1,    ['j'] = op_get4,
};

static bool step(struct machine *m)
{
    uint64_t code = 0;
    if (!take_number(m, &code, 1))
        return false;
    if (!operations[code])
        return FAIL(m->error, BAD_INPUT, m->name,
                    "this pickle holds more than plain values (instruction 0x%02x at byte %lld)",
                    (unsigned)code, (long long)(m->all.n - m->rest.n - 1));
    return operations[code](m);
}

bool pickle_parse(struct value *root, struct arena *a, struct str bytes, struct str name,
                  struct error *e)
{
    struct machine m = {.arena = a, .rest = bytes, .all = bytes, .name = name, .error = e};
    while (!m.stopped)
        if (!step(&m))
            return false;
    if (m.stack.count != 1 || m.mark_count)
        return broken(&m, "it ends with other than one value");
    *root = pop(&m);
    return true;
}

bool pickle_begins(struct str bytes)
{
    return bytes.n >= 2 && (unsigned char)bytes.p[0] == 0x80 && bytes.p[1] >= 2 && bytes.p[1] <= 5;
}
