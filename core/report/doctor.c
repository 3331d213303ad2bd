// What is said of a log: who died of what, the card as the message has it, what to change, and what
// else the log says. Numbers that the message does not give are not shown.
#include "core/report/doctor.h"

#include "core/base/units.h"

enum { BAR_CELLS = 60, OTHERS_SHOWN = 8, QUOTE_BYTES = 400, WHO_BYTES = 24 };

// Torch prints two decimals: three numbers in GiB leave this much unexplained.
#define ROUNDING (16 * MIB)

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

// ------------------------------------------------------------------ the message

static struct str who(struct arena *a, const struct doctor_finding *f)
{
    if (f->rank >= 0)
        return str_format(a, "rank %lld", (long long)f->rank);
    if (f->gpu >= 0)
        return str_format(a, "the process on GPU %lld", (long long)f->gpu);
    return STR("the job");
}

// A bar may count something else than steps.
static void put_progress(struct buf *b, int64_t step, int64_t total)
{
    buf_printf(b, total > 0 ? "%lld" : "step %lld", (long long)step);
    if (total > 0)
        buf_printf(b, " of %lld", (long long)total);
}

// The message without torch's advice, which is the same under every one.
static struct str quotation(struct str text)
{
    static const char advice[] = " If reserved ";
    ptrdiff_t end = 0, length = (ptrdiff_t)sizeof advice - 1;
    while (end < text.n && !str_starts(str_slice(text, end, text.n), (struct str){advice, length}))
        end++;
    return str_slice(text, 0, end < QUOTE_BYTES ? end : QUOTE_BYTES);
}

// What all ranks say of one kind together, as one finding: the earliest, with the sum of the
// counts.
static struct doctor_finding together(const struct doctor_result *r, const struct doctor_finding *f)
{
    struct doctor_finding all = *f;
    all.count = 0;
    for (ptrdiff_t i = 0; i < r->count; i++) {
        const struct doctor_finding *g = &r->findings[i];
        if (g->kind != f->kind || g->survived != f->survived)
            continue;
        all.count += g->count;
        all.last_line = g->last_line > all.last_line ? g->last_line : all.last_line;
    }
    return all;
}

static void print_message(struct buf *out, const struct view *v, const struct doctor_finding *f)
{
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "line ");
    put_grouped(&b, f->line);
    if (f->count > 1) {
        buf_put_z(&b, " (");
        put_grouped(&b, f->count - 1);
        buf_put_z(&b,
                  f->count > 2 ? " more like it, the last in line " : " more like it, in line ");
        put_grouped(&b, f->last_line);
        buf_char(&b, ')');
    }
    buf_put_z(&b, ": ");
    struct str quoted = quotation(f->text);
    put_plain(&b, quoted);
    buf_put_z(&b, quoted.n < f->text.n ? " ..." : "");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

// Where it was raised, and who else says so.
static void print_details(struct buf *out, const struct view *v, const struct doctor_finding *f)
{
    struct buf b = buf_in(out->arena);
    if (f->raised.n) {
        struct str_cut file = str_cut(str_cut(f->raised, '"').tail, '"');
        buf_put_z(&b, "raised in ");
        put_plain(&b, file.head);
        put_plain(&b, file.tail);
        buf_wrapped(out, buf_str(&b), 2, v->width);
    }
    if (f->ranks > 1) {
        struct str list = str_format(out->arena, "%llu ranks say so: %.*s",
                                     (unsigned long long)f->ranks, STR_ARGS(f->rank_list));
        buf_wrapped(out, list, 2, v->width);
    }
}

static void print_verdict(struct buf *out, const struct view *v, const struct doctor_result *r)
{
    struct doctor_finding f = together(r, r->cause);
    struct buf b = buf_in(out->arena);
    buf_put(&b, who(out->arena, &f));
    buf_printf(&b, " %s", f.kind->title);
    if (f.phase && f.phase != f.kind->phase)
        buf_printf(&b, " %s", doctor_phases[f.phase].where);
    put_ink(out, v, INK_BAD, buf_str(&b));
    // A bar that is closed may say more than it did before.
    bool same = f.steps_total == r->steps_total && r->last_step > f.step;
    bool before = f.step >= 0 && !same;
    if (before || r->last_step >= 0) {
        buf_put_z(out, "; last progress: ");
        put_progress(out, before ? f.step : r->last_step, before ? f.steps_total : r->steps_total);
    }
    buf_char(out, '\n');
    print_message(out, v, &f);
    print_details(out, v, &f);
}

// ------------------------------------------------------------------ the card

struct share {
    const char *mark, *name;
    uint64_t bytes;
    bool known;
};

enum { PARTS = 5 };

// What the card's memory is made of. Who holds what torch does not is known only where the message
// lists processes.
static void split_card(struct share parts[PARTS], const struct doctor_finding *f)
{
    const uint64_t *n = f->bytes;
    uint64_t used = less(n[DOCTOR_CAPACITY], n[DOCTOR_FREE]);
    bool process = doctor_knows(f, DOCTOR_PROCESS), torch = doctor_knows(f, DOCTOR_ALLOCATED);
    uint64_t reserved = n[DOCTOR_RESERVED] ? n[DOCTOR_RESERVED] : n[DOCTOR_ALLOCATED];
    uint64_t others = less(used, process ? n[DOCTOR_PROCESS] : reserved);
    parts[0] = (struct share){"█", "allocated by torch", n[DOCTOR_ALLOCATED], torch};
    parts[1] = (struct share){"▒", "cached by torch, not in use", n[DOCTOR_UNALLOCATED],
                              doctor_knows(f, DOCTOR_UNALLOCATED)};
    parts[2] = (struct share){"◆", "this process, outside torch", less(n[DOCTOR_PROCESS], reserved),
                              process && torch};
    const char *rest = process ? "other processes"
                       : torch ? "outside torch and other processes"
                               : "in use";
    parts[3] = (struct share){"○", rest, others, others >= ROUNDING || !process};
    parts[4] = (struct share){"·", "free", n[DOCTOR_FREE], true};
}

// Cells for everything up to and with a part, so that rounding does not add up.
static void put_bar(struct buf *out, const struct share parts[PARTS], uint64_t capacity)
{
    uint64_t sum = 0, drawn = 0;
    buf_put_z(out, "  ");
    for (int i = 0; i < PARTS; i++) {
        sum += parts[i].known ? parts[i].bytes : 0;
        uint64_t cells = (sum < capacity ? sum : capacity) / KIB * BAR_CELLS / (capacity / KIB);
        if (i == PARTS - 1)
            cells = BAR_CELLS;
        for (; drawn < cells; drawn++)
            buf_put_z(out, parts[i].mark);
    }
    buf_char(out, '\n');
}

static void print_size(struct buf *out, const char *mark, const char *name, uint64_t bytes)
{
    struct str size = bytes_text(out->arena, bytes);
    buf_printf(out, "  %s %-36s %*s%.*s\n", mark, name, (int)(10 - size.n), "", STR_ARGS(size));
}

static void print_card(struct buf *out, const struct doctor_finding *f)
{
    struct share parts[PARTS];
    uint64_t capacity = f->bytes[DOCTOR_CAPACITY];
    split_card(parts, f);
    buf_put_z(out, "\n  ");
    if (f->gpu >= 0)
        buf_printf(out, "GPU %lld, ", (long long)f->gpu);
    put_bytes(out, capacity);
    buf_char(out, '\n');
    put_bar(out, parts, capacity);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].known)
            print_size(out, parts[i].mark, parts[i].name, parts[i].bytes);
    if (doctor_knows(f, DOCTOR_ALLOWED))
        print_size(out, " ", "torch may take", f->bytes[DOCTOR_ALLOWED]);
    if (doctor_knows(f, DOCTOR_TRIED))
        print_size(out, " ", "asked for", f->bytes[DOCTOR_TRIED]);
    if (doctor_knows(f, DOCTOR_NEEDED))
        print_size(out, " ", "wanted", f->bytes[DOCTOR_NEEDED]);
}

static void print_sizes(struct buf *out, const struct doctor_finding *f)
{
    static const char *const names[DOCTOR_FIELDS] = {
        [DOCTOR_TRIED] = "asked for",
        [DOCTOR_FREE] = "free",
        [DOCTOR_PROCESS] = "this process",
        [DOCTOR_OTHERS] = "others",
        [DOCTOR_ALLOWED] = "allowed",
        [DOCTOR_ALLOCATED] = "allocated by torch",
        [DOCTOR_UNALLOCATED] = "cached by torch, not in use",
        [DOCTOR_NEEDED] = "needed",
        [DOCTOR_AVAILABLE] = "available",
        [DOCTOR_HOST_USED] = "host memory in use",
        [DOCTOR_HOST_TOTAL] = "of",
    };
    bool first = true;
    for (int i = 0; i < DOCTOR_FIELDS; i++) {
        if (!names[i] || !doctor_knows(f, (enum doctor_field)i))
            continue;
        buf_put_z(out, first ? "\n" : "");
        first = false;
        print_size(out, " ", names[i], f->bytes[i]);
    }
}

// ------------------------------------------------------------------ what to do, what else

static void print_advice(struct buf *out, const struct view *v, const struct doctor_finding *f)
{
    buf_char(out, '\n');
    const char *there = doctor_phase_meaning(f), *rows[DOCTOR_MAX_ADVICE];
    buf_wrapped(out, str_from(f->kind->meaning), 2, v->width);
    if (there)
        buf_wrapped(out, str_from(there), 2, v->width);
    if (f->kind->transient)
        buf_wrapped(out, STR("It may go well when merely tried again."), 2, v->width);
    buf_put_z(out, "\n  What to change, the cheapest first:\n");
    int count = doctor_advice(rows, f);
    for (int i = 0; i < count; i++)
        buf_wrapped(out, str_format(out->arena, "%d. %s", i + 1, rows[i]), 2, v->width);
}

static bool is_first_of_its_kind(const struct doctor_result *r, ptrdiff_t at)
{
    const struct doctor_finding *f = &r->findings[at];
    if (r->cause && f->kind == r->cause->kind && f->survived == r->cause->survived)
        return false;
    for (ptrdiff_t i = 0; i < at; i++)
        if (r->findings[i].kind == f->kind && r->findings[i].survived == f->survived)
            return false;
    return true;
}

static struct str all_of_them(struct arena *a, const struct doctor_finding *f)
{
    if (f->ranks < 2)
        return who(a, f);
    bool few = f->rank_list.n <= WHO_BYTES;
    return few ? str_format(a, "ranks %.*s", STR_ARGS(f->rank_list))
               : str_format(a, "%llu ranks", (unsigned long long)f->ranks);
}

static void print_others(struct buf *out, const struct view *v, const struct doctor_result *r)
{
    static const struct column columns[] = {
        {"  line", .right = true}, {"times", .right = true}, {"who"}, {"what", .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    int shown = 0;
    for (ptrdiff_t i = 0; i < r->count && shown < OTHERS_SHOWN; i++) {
        if (!is_first_of_its_kind(r, i))
            continue;
        struct doctor_finding f = together(r, &r->findings[i]);
        shown++;
        table_cell(&t, grouped_text(t.arena, f.line));
        table_cell(&t, grouped_text(t.arena, f.count));
        table_cell(&t, all_of_them(t.arena, &f));
        table_cell(
            &t, str_format(t.arena, "%s%s", f.kind->title, f.survived ? "; the run went on" : ""));
    }
    if (!shown)
        return;
    buf_printf(out, "\n  %s\n", r->cause ? "Also in the log:" : "What it does say:");
    table_print(&t, out, v);
}

// ------------------------------------------------------------------ the prediction

static struct str known_text(struct arena *a, const struct doctor_finding *f,
                             enum doctor_field field)
{
    return f && doctor_knows(f, field) ? bytes_text(a, f->bytes[field]) : STR("-");
}

static uint64_t predicted_card(const struct predict_story *s)
{
    const struct outside *o = &s->prediction.outside;
    return s->prediction.limit_bytes + o->context_bytes + o->modules_bytes + o->nccl_bytes;
}

// What is predicted of where it died, where that is known by itself.
struct there {
    const char *where; // NULL: it is not
    struct step_peak peak;
    bool fails; // the simulated run, just there
};

// A run that fails before is followed on.
static struct there predicted_there(const struct doctor_story *s)
{
    const struct prediction *p = &s->job->prediction;
    const struct prediction *whole = p->fits ? p : &s->need->prediction;
    enum doctor_phase phase = s->result.cause->phase;
    const struct {
        enum doctor_phase phase;
        enum phase simulated;
        struct step_peak peak;
    } rows[] = {{DOCTOR_PHASE_LOAD, PHASE_BUILD, whole->load},
                {DOCTOR_PHASE_EVALUATION, PHASE_EVALUATE, whole->evaluation},
                {DOCTOR_PHASE_SAVE, PHASE_SAVE, whole->save}};
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].phase == phase && rows[i].peak.reserved_bytes)
            return (struct there){doctor_phases[phase].where, rows[i].peak,
                                  !p->fits && p->phase == rows[i].simulated};
    return (struct there){0};
}

static void print_columns(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    const struct prediction *p = &s->job->prediction;
    const struct doctor_finding *f = s->result.cause;
    struct there there = predicted_there(s);
    bool by_peak = there.where && !there.fails;
    uint64_t failed_bytes = p->oom.allocated_bytes + p->oom.unallocated_bytes;
    uint64_t allocated = p->fits ? p->allocated_bytes : p->oom.allocated_bytes;
    uint64_t reserved = p->fits ? p->reserved_bytes : failed_bytes;
    struct str title = str_format(out->arena, "  beside the prediction%s%s", there.where ? " " : "",
                                  there.where ? there.where : "");
    const struct column columns[] = {
        {str_z(out->arena, title)}, {"log", .right = true}, {"predicted", .right = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    const struct {
        const char *name;
        enum doctor_field field;
        uint64_t bytes;
        bool known;
    } rows[] = {
        {"  asked for", DOCTOR_TRIED, p->oom.tried_bytes, !p->fits && !by_peak},
        {"  allocated by torch", DOCTOR_ALLOCATED, by_peak ? there.peak.allocated_bytes : allocated,
         true},
        {"  reserved by torch", DOCTOR_RESERVED, by_peak ? there.peak.reserved_bytes : reserved,
         true},
        {"  the card", DOCTOR_CAPACITY, predicted_card(s->job), !s->job->job->limit_bytes},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        table_cell_z(&t, rows[i].name);
        table_cell(&t, known_text(t.arena, f, rows[i].field));
        table_cell(&t, rows[i].known ? bytes_text(t.arena, rows[i].bytes) : STR("-"));
    }
    buf_char(out, '\n');
    table_print(&t, out, v);
}

// Whether the log's card is another than the one that was predicted for; drivers keep different
// shares of the same card for themselves, under a fiftieth.
static bool is_another_card(const struct doctor_story *s)
{
    enum { SHARE = 50 };
    const struct doctor_finding *f = s->result.cause;
    uint64_t predicted = predicted_card(s->job), found = f->bytes[DOCTOR_CAPACITY];
    if (!doctor_knows(f, DOCTOR_CAPACITY) || s->job->job->limit_bytes)
        return false;
    return less(predicted, found) + less(found, predicted) > predicted / SHARE;
}

static void put_fit(struct buf *b, const struct prediction *p)
{
    if (!p->fits) {
        buf_printf(b, "The simulated run fails too: in step %d, in the %s.", p->step,
                   phase_name(p->phase));
        return;
    }
    buf_put_z(b, "The simulated run fits, with ");
    put_bytes(b, less(p->limit_bytes, p->reserved_bytes));
    buf_put_z(b, " to spare");
}

// What the log says of the run's settings.
static void print_said(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    const struct doctor_finding *f = s->result.cause;
    bool evaluated = f && f->phase == DOCTOR_PHASE_EVALUATION;
    struct str rest = s->differences;
    if (s->from_log.n)
        buf_wrapped(out, str_format(out->arena, "Taken from the log: %.*s.", STR_ARGS(s->from_log)),
                    2, v->width);
    while (rest.n) {
        struct str_cut line = str_cut(rest, '\n');
        buf_wrapped(out, line.head, 2, v->width);
        rest = line.tail;
    }
    if (evaluated && !s->job->job->evaluation_batch)
        buf_wrapped(out,
                    STR("No evaluation is predicted without --eval-batch and a trainer (--recipe "
                        "transformers, trl)."),
                    2, v->width);
}

static void print_comparison(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    const struct prediction *p = &s->job->prediction;
    print_columns(out, v, s);
    bool another = is_another_card(s);
    if (another) {
        struct buf card = buf_in(out->arena);
        buf_put_z(&card, "The log's card has ");
        put_bytes(&card, s->result.cause->bytes[DOCTOR_CAPACITY]);
        buf_put_z(&card, ": the prediction is for another, of ");
        put_bytes(&card, predicted_card(s->job));
        buf_char(&card, '.');
        buf_wrapped(out, buf_str(&card), 2, v->width);
    }
    print_said(out, v, s);
    struct buf b = buf_in(out->arena);
    put_fit(&b, p);
    if (p->fits)
        buf_put_z(&b, another ? "."
                              : ": the run was another than these settings describe, or something "
                                "that is not simulated took memory.");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

// Of the host the prediction knows only what is offloaded.
static void print_host(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    uint64_t bytes = s->job->prediction.host_bytes;
    struct buf b = buf_in(out->arena);
    if (bytes) {
        buf_put_z(&b, "With these settings ");
        put_bytes(&b, bytes);
        buf_put_z(&b, " lie in the memory of each node, beside what the processes, data loaders "
                      "and the page cache take there.");
    } else {
        buf_put_z(&b, "With these settings nothing is offloaded: the host's memory went to the "
                      "processes, data loaders or the loading of weights, which are not "
                      "simulated.");
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

// The prediction has no part in an end that was not one of memory.
static void print_aside(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    struct buf b = buf_in(out->arena);
    const struct prediction *p = &s->job->prediction;
    if (p->fits) {
        put_fit(&b, p);
        buf_put_z(&b, s->result.cause ? "; this end was not one of memory." : ".");
    } else {
        buf_put_z(&b, "The simulated run does not fit, but the log says nothing of memory.");
    }
    buf_char(out, '\n');
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void print_savings(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    static const struct column columns[] = {{"  what would help"},
                                            {"peak", .right = true},
                                            {"saves", .right = true},
                                            {""},
                                            {"option", .priority = 1, .wraps = true}};
    uint64_t now = s->need->prediction.allocated_bytes;
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (int i = 0; i < s->job->remedies.count; i++) {
        const struct remedy *r = &s->job->remedies.items[i];
        uint64_t peak = s->need->remedies.items[i].prediction.allocated_bytes;
        table_cell(&t, str_format(t.arena, "  %s", r->what));
        table_cell(&t, bytes_text(t.arena, peak));
        table_cell(&t, peak < now ? bytes_text(t.arena, now - peak) : STR("-"));
        table_cell_z(&t, r->prediction.fits ? "fits" : "does not fit");
        table_cell_z(&t, r->options);
    }
    struct str as_it_is = bytes_text(out->arena, now);
    buf_printf(out, "\n  As it is, torch would have %.*s allocated at the peak.\n",
               STR_ARGS(as_it_is));
    if (t.cell_count)
        table_print(&t, out, v);
}

static void print_prediction(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    const struct doctor_finding *f = s->result.cause;
    if (f && f->kind->class == DOCTOR_GPU_MEMORY) {
        print_comparison(out, v, s);
        print_savings(out, v, s);
    } else if (f && f->kind->class == DOCTOR_HOST_MEMORY) {
        print_host(out, v, s);
    } else {
        print_aside(out, v, s);
    }
}

static void print_silence(struct buf *out, const struct doctor_result *r)
{
    struct str lines = grouped_text(out->arena, r->lines);
    buf_printf(out, "this log names no cause (%.*s line%s", STR_ARGS(lines),
               r->lines == 1 ? "" : "s");
    if (r->last_step >= 0) {
        buf_put_z(out, ", last progress: ");
        put_progress(out, r->last_step, r->steps_total);
    }
    buf_put_z(out, ")\n");
}

void report_doctor(struct buf *out, const struct view *v, const struct doctor_story *s)
{
    const struct doctor_finding *f = s->result.cause;
    if (f) {
        print_verdict(out, v, &s->result);
        if (doctor_knows(f, DOCTOR_CAPACITY) && f->bytes[DOCTOR_CAPACITY] >= MIB)
            print_card(out, f);
        else
            print_sizes(out, f);
        print_advice(out, v, f);
    } else {
        print_silence(out, &s->result);
    }
    print_others(out, v, &s->result);
    if (s->result.cut) {
        struct str lines = grouped_text(out->arena, s->result.lines);
        buf_printf(out, "\n  The compressed file is cut off: nothing after line %.*s was read.\n",
                   STR_ARGS(lines));
    }
    if (s->job)
        print_prediction(out, v, s);
}

// ------------------------------------------------------------------ JSON

static void number_json(struct json_out *j, const char *key, int64_t value)
{
    json_out_key(j, key);
    if (value < 0)
        json_out_null(j);
    else
        json_out_u64(j, (uint64_t)value);
}

static void finding_json(struct json_out *j, const struct doctor_finding *f)
{
    json_out_object(j);
    json_out_field_str(j, "kind", str_from(f->kind->name));
    json_out_field_str(j, "what", str_from(f->kind->title));
    json_out_field_str(j, "class", str_from(doctor_class_name(f->kind->class)));
    json_out_field_bool(j, "transient", f->kind->transient);
    number_json(j, "rank", f->rank);
    number_json(j, "gpu", f->gpu);
    number_json(j, "step", f->step);
    number_json(j, "steps_total", f->steps_total);
    json_out_key(j, "phase");
    if (f->phase)
        json_out_str(j, str_from(doctor_phases[f->phase].name));
    else
        json_out_null(j);
    json_out_field_u64(j, "line", f->line);
    json_out_field_u64(j, "count", f->count);
    json_out_field_u64(j, "last_line", f->last_line);
    json_out_field_bool(j, "survived", f->survived);
    for (int i = 0; i < DOCTOR_FIELDS; i++)
        if (doctor_knows(f, (enum doctor_field)i))
            json_out_field_u64(j, doctor_field_name((enum doctor_field)i), f->bytes[i]);
    if (f->ranks > 1) {
        json_out_field_u64(j, "rank_count", f->ranks);
        json_out_field_str(j, "ranks", f->rank_list);
    }
    if (f->raised.n)
        json_out_field_str(j, "raised", f->raised);
    json_out_field_str(j, "text", f->text);
    json_out_object_end(j);
}

static void advice_json(struct json_out *j, const struct doctor_finding *f)
{
    json_out_key(j, "what_to_change");
    json_out_array(j);
    const char *rows[DOCTOR_MAX_ADVICE];
    int count = f ? doctor_advice(rows, f) : 0;
    for (int i = 0; i < count; i++)
        json_out_str(j, str_from(rows[i]));
    json_out_array_end(j);
}

static void said_json(struct json_out *j, const struct doctor_story *s)
{
    struct str rest = s->differences;
    json_out_key(j, "log_settings");
    json_out_object(j);
    for (int i = 0; i < DOCTOR_SAID_COUNT; i++)
        if (s->result.said[i] >= 0)
            number_json(j, doctor_said_name((enum doctor_said)i), s->result.said[i]);
    json_out_object_end(j);
    json_out_field_str(j, "taken_from_log", s->from_log);
    json_out_key(j, "differences");
    json_out_array(j);
    while (rest.n) {
        struct str_cut line = str_cut(rest, '\n');
        json_out_str(j, line.head);
        rest = line.tail;
    }
    json_out_array_end(j);
}

static void prediction_json(struct json_out *j, const struct doctor_story *s)
{
    json_out_key(j, "prediction");
    if (!s->job) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    report_predict_json(j, s->job);
    json_out_field_u64(j, "needed_allocated_bytes", s->need->prediction.allocated_bytes);
    json_out_key(j, "remedies_allocated_bytes");
    json_out_array(j);
    for (int i = 0; i < s->need->remedies.count; i++)
        json_out_u64(j, s->need->remedies.items[i].prediction.allocated_bytes);
    json_out_array_end(j);
    json_out_object_end(j);
}

void report_doctor_json(struct json_out *j, const struct doctor_story *s)
{
    const struct doctor_result *r = &s->result;
    json_out_field_bool(j, "found", r->cause != NULL);
    json_out_key(j, "cause");
    if (r->cause)
        finding_json(j, r->cause);
    else
        json_out_null(j);
    advice_json(j, r->cause);
    json_out_key(j, "findings");
    json_out_array(j);
    for (ptrdiff_t i = 0; i < r->count; i++)
        finding_json(j, &r->findings[i]);
    json_out_array_end(j);
    json_out_field_u64(j, "lines", r->lines);
    json_out_field_u64(j, "bytes", r->bytes);
    json_out_field_bool(j, "cut", r->cut);
    number_json(j, "last_step", r->last_step);
    number_json(j, "steps_total", r->steps_total);
    said_json(j, s);
    prediction_json(j, s);
}
