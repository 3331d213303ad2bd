// Any bytes as a log. How they are cut into pieces does not change what is found, and what is found
// is sound: lines are in the text, the cause is a finding, quotations are short.

#include "core/doctor/doctor.h"
#include "tests/fuzz/exact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char block[8 << 20];

static struct doctor_result read_pieces(struct arena *a, struct str text, ptrdiff_t piece)
{
    struct doctor *d = doctor_new(a);
    for (ptrdiff_t at = 0; at < text.n; at += piece) {
        ptrdiff_t end = at + piece < text.n ? at + piece : text.n;
        struct str exact = exact_copy((const unsigned char *)text.p + at, (size_t)(end - at));
        doctor_feed(d, exact);
        exact_free(exact);
    }
    return doctor_end(d, a);
}

static bool is_sound(const struct doctor_finding *f, uint64_t lines)
{
    bool in_text = f->line >= 1 && f->line <= f->last_line && f->last_line <= lines;
    return in_text && f->count && f->text.n <= DOCTOR_TEXT_BYTES &&
           f->raised.n <= DOCTOR_RAISED_BYTES && f->rank >= -1 && f->gpu >= -1 && f->step >= -1 &&
           f->kind >= doctor_kinds && f->kind < doctor_kinds + doctor_kind_count &&
           f->phase < DOCTOR_PHASES;
}

static bool is_same(const struct doctor_finding *f, const struct doctor_finding *g)
{
    return f->kind == g->kind && f->line == g->line && f->known == g->known && f->rank == g->rank &&
           f->step == g->step && f->phase == g->phase && str_equal(f->text, g->text) &&
           str_equal(f->raised, g->raised);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena a = arena_over(block, sizeof block, NULL);
    struct str text = {(const char *)data, (ptrdiff_t)size};
    struct doctor_result whole = read_pieces(&a, text, text.n ? text.n : 1);
    struct doctor_result pieces = read_pieces(&a, text, 1 + (ptrdiff_t)(size % 13));
    ASSERT(whole.bytes == size && whole.lines <= size);
    ASSERT(whole.count == pieces.count && whole.lines == pieces.lines);
    bool fine = true, listed = !whole.cause;
    for (ptrdiff_t i = 0; i < whole.count; i++) {
        const struct doctor_finding *f = &whole.findings[i];
        listed = listed || f == whole.cause;
        fine = fine && is_sound(f, whole.lines) && is_same(f, &pieces.findings[i]);
    }
    ASSERT(fine && listed);
    return 0;
}
