// The numbers of a message, found by the words around them, and what torch's numbers say together.
// Sizes are binary whatever their unit is called: torch writes KiB, MiB and GiB, the kernel's kB
// and Ray's and MPS's GB are powers of 1024 too.
#include "core/base/num.h"
#include "core/base/units.h"
#include "core/doctor/internal.h"

enum side { LABEL_BEFORE, LABEL_AFTER };

struct field_row {
    const char *label;
    ptrdiff_t label_bytes;
    enum side side; // which side of the number the label is on
    enum doctor_field field;
};

#define ROW(label, side, field) {label, sizeof(label) - 1, side, field}

// The first number of a field counts.
static const struct field_row field_rows[] = {
    // torch 2.1 and later; "capacty" is 2.1's spelling.
    ROW("ried to allocate ", LABEL_BEFORE, DOCTOR_TRIED),
    ROW("total capacity of ", LABEL_BEFORE, DOCTOR_CAPACITY),
    ROW("total capacty of ", LABEL_BEFORE, DOCTOR_CAPACITY),
    ROW(" is free", LABEL_AFTER, DOCTOR_FREE),
    ROW("this process has ", LABEL_BEFORE, DOCTOR_PROCESS),
    ROW(" allowed;", LABEL_AFTER, DOCTOR_ALLOWED),
    ROW("Of the allocated memory ", LABEL_BEFORE, DOCTOR_ALLOCATED),
    ROW(" allocated in private pools", LABEL_AFTER, DOCTOR_PRIVATE),
    ROW(" is reserved by PyTorch but unallocated", LABEL_AFTER, DOCTOR_UNALLOCATED),
    // up to 2.0; "cached" (up to 1.3) is what is not allocated, "reserved" is all.
    ROW(" total capacity;", LABEL_AFTER, DOCTOR_CAPACITY),
    ROW(" already allocated", LABEL_AFTER, DOCTOR_ALLOCATED),
    ROW(" free;", LABEL_AFTER, DOCTOR_FREE),
    ROW(" cached)", LABEL_AFTER, DOCTOR_UNALLOCATED),
    ROW(" reserved in total", LABEL_AFTER, DOCTOR_RESERVED),
    // cudaMallocAsync
    ROW("Requested", LABEL_BEFORE, DOCTOR_TRIED),
    ROW("Currently allocated", LABEL_BEFORE, DOCTOR_ALLOCATED),
    ROW("Device limit", LABEL_BEFORE, DOCTOR_CAPACITY),
    ROW("Free (according to CUDA)", LABEL_BEFORE, DOCTOR_FREE),
    // MPS
    ROW("MPS allocated: ", LABEL_BEFORE, DOCTOR_ALLOCATED),
    ROW("other allocations: ", LABEL_BEFORE, DOCTOR_OTHERS),
    ROW("max allowed: ", LABEL_BEFORE, DOCTOR_ALLOWED),
    // NCCL, numpy, llama.cpp
    ROW("Failed to CUDA calloc async ", LABEL_BEFORE, DOCTOR_TRIED),
    ROW("Failed to CUDA calloc ", LABEL_BEFORE, DOCTOR_TRIED),
    ROW("Failed to CUDA malloc ", LABEL_BEFORE, DOCTOR_TRIED),
    ROW("Unable to allocate ", LABEL_BEFORE, DOCTOR_TRIED),
    // vLLM
    ROW(" KV cache is needed", LABEL_AFTER, DOCTOR_NEEDED),
    ROW("available KV cache memory (", LABEL_BEFORE, DOCTOR_AVAILABLE),
    ROW(") on startup is less", LABEL_AFTER, DOCTOR_CAPACITY),
    ROW("). Decrease GPU memory utilization", LABEL_AFTER, DOCTOR_NEEDED),
    // the kernel, Ray
    ROW("anon-rss:", LABEL_BEFORE, DOCTOR_HOST_USED),
    ROW("was running was ", LABEL_BEFORE, DOCTOR_HOST_USED),
};

static const struct {
    const char *name;
    uint64_t factor;
} size_units[] = {
    {"GiB", GIB}, {"MiB", MIB}, {"KiB", KIB}, {"bytes", 1}, {"TiB", KIB *GIB},
    {"kB", KIB},  {"KB", KIB},  {"MB", MIB},  {"GB", GIB},  {"B", 1},
};

enum { MOST_DECIMALS = 4 };

#define ROUNDING (GIB / 100) // of two numbers with two decimals

static uint64_t unit_factor(struct str *rest)
{
    *rest = str_starts(*rest, STR(" ")) ? str_slice(*rest, 1, rest->n) : *rest;
    for (ptrdiff_t i = 0; i < COUNT_OF(size_units); i++) {
        struct str name = str_from(size_units[i].name);
        if (!str_starts(*rest, name))
            continue;
        *rest = str_slice(*rest, name.n, rest->n);
        return size_units[i].factor;
    }
    return 0;
}

struct decimal {
    uint64_t whole, part, scale; // part / scale is the fraction
};

static bool take_decimal(struct decimal *d, struct str *rest)
{
    ptrdiff_t i = 0, start = 0;
    *d = (struct decimal){.scale = 1};
    for (; i < rest->n && char_is_digit(rest->p[i]); i++)
        d->whole = sat_add(sat_mul(d->whole, 10), (uint64_t)(rest->p[i] - '0'));
    bool found = i > 0;
    if (found && i + 1 < rest->n && rest->p[i] == '.' && // numpy writes "926. GiB"
        (char_is_digit(rest->p[i + 1]) || rest->p[i + 1] == ' '))
        for (start = ++i; i < rest->n && char_is_digit(rest->p[i]); i++)
            if (i - start < MOST_DECIMALS) {
                d->part = d->part * 10 + (uint64_t)(rest->p[i] - '0');
                d->scale *= 10;
            }
    *rest = str_slice(*rest, i, rest->n);
    return found;
}

// A size of a TiB's millionth power is torch's way to print a negative number.
static bool size_of(uint64_t *bytes, const struct decimal *d, uint64_t factor)
{
    uint64_t whole = sat_mul(d->whole, factor);
    uint64_t size = sat_add(whole, d->part * factor / d->scale);
    if (!factor || size >= UINT64_C(1) << 60)
        return false;
    *bytes = size;
    return true;
}

// "1.50 GiB" and what follows it.
static bool take_size(uint64_t *bytes, struct str *rest)
{
    struct decimal d;
    struct str at = *rest;
    if (!take_decimal(&d, &at) || !size_of(bytes, &d, unit_factor(&at)))
        return false;
    *rest = at;
    return true;
}

static bool size_after(uint64_t *bytes, struct str text)
{
    ptrdiff_t i = 0;
    while (i < text.n && (text.p[i] == ' ' || text.p[i] == ':'))
        i++;
    struct str rest = str_slice(text, i, text.n);
    return take_size(bytes, &rest);
}

// Labels of cudaMallocAsync are followed by spaces and a colon.
static struct str before_colon(struct str text)
{
    struct str trimmed = str_trim(text);
    if (!str_ends(trimmed, STR(":")))
        return text;
    return str_trim(str_slice(trimmed, 0, trimmed.n - 1));
}

static void set(struct doctor_finding *f, enum doctor_field field, uint64_t bytes)
{
    if (doctor_knows(f, field))
        return;
    f->known |= 1u << field;
    f->bytes[field] = bytes;
}

// "Free memory on device (31.44/47.38 GiB)", "was 59.49GB / 62.58GB": one more number beside the
// one that a row found. Triton's sizes have no unit.
static void read_pairs(struct doctor_finding *f, struct str text)
{
    static const struct {
        const char *label;
        enum doctor_field field;
    } bare[] = {{"shared memory, Required: ", DOCTOR_NEEDED},
                {"Hardware limit: ", DOCTOR_AVAILABLE}};
    struct decimal d;
    for (ptrdiff_t i = 0; i < COUNT_OF(bare); i++) {
        ptrdiff_t at = text_find(text, str_from(bare[i].label), 0);
        struct str rest = str_slice(text, at < 0 ? text.n : at + str_from(bare[i].label).n, text.n);
        if (text_has(text, "out of resource") && take_decimal(&d, &rest))
            set(f, bare[i].field, d.whole);
    }
    ptrdiff_t slash = text_find(text, STR("GB / "), 0);
    uint64_t bytes;
    if (slash >= 0 && doctor_knows(f, DOCTOR_HOST_USED) &&
        size_after(&bytes, str_slice(text, slash + 5, text.n)))
        set(f, DOCTOR_HOST_TOTAL, bytes);
    ptrdiff_t open = text_find(text, STR("Free memory on device"), 0);
    open = open < 0 ? -1 : text_find(text, STR("("), open);
    struct str rest = str_slice(text, open < 0 ? text.n : open + 1, text.n);
    if (take_decimal(&d, &rest) && str_starts(rest, STR("/")) && size_of(&bytes, &d, GIB))
        set(f, DOCTOR_FREE, bytes);
}

// "Process 123 has 4.00 GiB memory in use": others on the card. In a container the driver names
// processes by the host's numbers, so torch does not know its own and lists it among them: it is
// the smallest that holds what torch has reserved.
static void read_processes(struct doctor_finding *f, struct str text)
{
    uint64_t sum = 0, own = 0, bytes;
    bool unnamed = !doctor_knows(f, DOCTOR_PROCESS);
    bool any = false;
    for (ptrdiff_t at = 0; (at = text_find(text, STR("Process "), at)) >= 0; at++) {
        struct str rest = str_slice(text, at + 8, text.n);
        struct decimal pid;
        if (!take_decimal(&pid, &rest) || !str_starts(rest, STR(" has ")) ||
            !size_after(&bytes, str_slice(rest, 4, rest.n)))
            continue;
        any = true;
        sum = sat_add(sum, bytes);
        bool holds = bytes + ROUNDING >= f->bytes[DOCTOR_RESERVED];
        if (unnamed && holds && (!own || bytes < own))
            own = bytes;
    }
    if (!any)
        return;
    if (own)
        set(f, DOCTOR_PROCESS, own);
    set(f, DOCTOR_OTHERS, sum - own);
}

static void derive(struct doctor_finding *f)
{
    uint64_t allocated = f->bytes[DOCTOR_ALLOCATED];
    if (!doctor_knows(f, DOCTOR_ALLOCATED))
        return;
    if (doctor_knows(f, DOCTOR_UNALLOCATED))
        set(f, DOCTOR_RESERVED, allocated + f->bytes[DOCTOR_UNALLOCATED]);
    else if (doctor_knows(f, DOCTOR_RESERVED) && f->bytes[DOCTOR_RESERVED] >= allocated)
        set(f, DOCTOR_UNALLOCATED, f->bytes[DOCTOR_RESERVED] - allocated);
}

// Where the driver does not list it, torch prints its own process with 0 bytes.
static void drop_implausible(struct doctor_finding *f)
{
    if (f->bytes[DOCTOR_PROCESS] + ROUNDING < f->bytes[DOCTOR_RESERVED])
        f->known &= ~(1u << DOCTOR_PROCESS);
}

// Labels are short: only so much text around a number is looked at.
enum { LABEL_BYTES = 48 };

static bool follows(struct str text, const struct field_row *r)
{
    bool possible = text.n >= r->label_bytes && text.p[1] == r->label[1];
    return possible && str_starts(text, (struct str){r->label, r->label_bytes});
}

static bool precedes(struct str text, const struct field_row *r)
{
    ptrdiff_t n = r->label_bytes; // the last letter differs most: labels end with a space
    bool possible = text.n >= n && text.p[text.n - 2] == r->label[n - 2];
    return possible && str_ends(text, (struct str){r->label, r->label_bytes});
}

static void read_size(struct doctor_finding *f, uint64_t bytes, struct str before, struct str after)
{
    if (before.n > LABEL_BYTES)
        before = str_slice(before, before.n - LABEL_BYTES, before.n);
    struct str name = before_colon(before);
    bool two = name.n != before.n;
    for (ptrdiff_t i = 0; i < COUNT_OF(field_rows); i++) {
        const struct field_row *r = &field_rows[i];
        if (r->side == LABEL_AFTER ? follows(after, r)
                                   : precedes(before, r) || (two && precedes(name, r)))
            set(f, r->field, bytes);
    }
}

void numbers_read(struct doctor_finding *f, struct str text)
{
    bool in_number = false;
    for (ptrdiff_t i = 0; i < text.n; i++) {
        bool digit = text.p[i] >= '0' && text.p[i] <= '9';
        if (digit && !in_number) {
            struct str rest = str_slice(text, i, text.n);
            uint64_t bytes;
            if (take_size(&bytes, &rest))
                read_size(f, bytes, str_slice(text, 0, i), rest);
        }
        in_number = digit || (in_number && text.p[i] == '.');
    }
    derive(f);
    drop_implausible(f);
    read_pairs(f, text);
    read_processes(f, text);
}

// ------------------------------------------------------------------ what they say

// Beyond torch's own a process holds its context, kernels and NCCL's buffers: 0.5 to 1.5 GiB, with
// many communicators up to 4. What is more than that belongs to somebody else.
#define OWN_OUTSIDE_MOST (4 * GIB)

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t held_by_torch(const struct doctor_finding *f)
{
    return f->bytes[doctor_knows(f, DOCTOR_RESERVED) ? DOCTOR_RESERVED : DOCTOR_ALLOCATED];
}

static uint64_t held_by_others(const struct doctor_finding *f)
{
    uint64_t used = less(f->bytes[DOCTOR_CAPACITY], f->bytes[DOCTOR_FREE]);
    uint64_t others = 0;
    if (doctor_knows(f, DOCTOR_OTHERS))
        others = f->bytes[DOCTOR_OTHERS];
    bool mine_known = doctor_knows(f, DOCTOR_PROCESS) || doctor_knows(f, DOCTOR_RESERVED) ||
                      doctor_knows(f, DOCTOR_ALLOCATED);
    if (!doctor_knows(f, DOCTOR_CAPACITY) || !mine_known)
        return others;
    uint64_t mine = doctor_knows(f, DOCTOR_PROCESS) ? f->bytes[DOCTOR_PROCESS]
                                                    : held_by_torch(f) + OWN_OUTSIDE_MOST;
    uint64_t rest = less(used, mine);
    return rest > others ? rest : others;
}

// What torch may still take under its limit does not suffice. On a Mac others count against it.
static bool over_limit(const struct doctor_finding *f)
{
    uint64_t held = held_by_torch(f);
    if (!doctor_knows(f, DOCTOR_CAPACITY))
        held = sat_add(held, f->bytes[DOCTOR_OTHERS]);
    return doctor_knows(f, DOCTOR_ALLOWED) &&
           sat_add(held, f->bytes[DOCTOR_TRIED]) + ROUNDING > f->bytes[DOCTOR_ALLOWED];
}

// Holes are the reason where they are a share worth speaking of.
enum { HOLES_WORTH = 20 };

static enum kind exhausted_or_fragmented(const struct doctor_finding *f)
{
    uint64_t cached = f->bytes[DOCTOR_UNALLOCATED];
    if (!doctor_knows(f, DOCTOR_UNALLOCATED))
        return KIND_GPU_MEMORY;
    if (sat_add(f->bytes[DOCTOR_FREE], cached) < f->bytes[DOCTOR_TRIED])
        return KIND_EXHAUSTION;
    return cached < f->bytes[DOCTOR_RESERVED] / HOLES_WORTH ? KIND_FULL : KIND_FRAGMENTATION;
}

enum kind numbers_judge(const struct doctor_finding *f)
{
    uint64_t tried = f->bytes[DOCTOR_TRIED], available = f->bytes[DOCTOR_FREE];
    uint64_t others = held_by_others(f);
    if (!doctor_knows(f, DOCTOR_TRIED))
        return KIND_GPU_MEMORY;
    if (doctor_knows(f, DOCTOR_CAPACITY) && tried > f->bytes[DOCTOR_CAPACITY])
        return KIND_OVERSIZE;
    if (over_limit(f))
        return KIND_LIMIT;
    if (!doctor_knows(f, DOCTOR_CAPACITY) || !doctor_knows(f, DOCTOR_FREE))
        return KIND_GPU_MEMORY;
    if (available >= tried)
        return KIND_REFUSED;
    if (others > GIB && others > f->bytes[DOCTOR_UNALLOCATED] && available + others >= tried)
        return KIND_NEIGHBOUR;
    return exhausted_or_fragmented(f);
}
