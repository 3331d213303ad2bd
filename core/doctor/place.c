// Whose message it is, and how far the run had come: ranks as launchers and frameworks mark their
// lines, steps as progress bars and trainers print them.
#include <string.h>

#include "core/base/compiler.h"
#include "core/base/num.h"
#include "core/doctor/internal.h"

enum { MOST_DIGITS = 9 };

// The number at the start of the text; -1: none.
static int64_t take_number(struct str *text)
{
    int64_t value = 0;
    ptrdiff_t i = 0;
    while (i < text->n && i < MOST_DIGITS && char_is_digit(text->p[i]))
        value = value * 10 + (text->p[i++] - '0');
    bool ended = i > 0 && (i == text->n || !char_is_digit(text->p[i]));
    *text = str_slice(*text, i, text->n);
    return ended ? value : -1;
}

// ------------------------------------------------------------------ ranks

// A number between two marks: "[rank3]" is {"[rank", "]"}.
struct mark {
    const char *before, *after;
};

static int64_t number_in(struct str text, const struct mark *m)
{
    struct str before = str_from(m->before);
    for (ptrdiff_t at = 0; (at = text_find(text, before, at)) >= 0; at++) {
        struct str rest = str_slice(text, at + before.n, text.n);
        int64_t number = take_number(&rest);
        if (number >= 0 && str_starts(rest, str_from(m->after)))
            return number;
    }
    return -1;
}

static int64_t first_number_in(struct str text, const struct mark *marks, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        int64_t number = number_in(text, &marks[i]);
        if (number >= 0)
            return number;
    }
    return -1;
}

// mpirun --tag-output: "[1,3]<stderr>:"; srun --label: "3: ".
static int64_t rank_of_launcher(struct str line)
{
    struct str rest = line;
    if (str_starts(line, STR("[1,"))) {
        rest = str_slice(line, 3, line.n);
        int64_t rank = take_number(&rest);
        return str_starts(rest, STR("]<std")) ? rank : -1;
    }
    while (str_starts(rest, STR(" ")))
        rest = str_slice(rest, 1, rest.n);
    int64_t rank = take_number(&rest);
    return str_starts(rest, STR(": ")) ? rank : -1;
}

// torchrun's summary says the rank on the line above.
static int64_t rank_above(struct str line, struct str before)
{
    static const struct mark above[] = {{"rank      : ", " "}};
    if (!text_has(line, "exitcode  : ") && !text_has(line, "traceback : "))
        return -1;
    enum { TWO_LINES = 160 };
    struct str near = str_slice(before, before.n > TWO_LINES ? before.n - TWO_LINES : 0, before.n);
    ptrdiff_t last = -1;
    for (ptrdiff_t at = 0; (at = text_find(near, STR("rank      : "), at)) >= 0; at++)
        last = at;
    return last < 0 ? -1 : number_in(str_slice(near, last, near.n), &above[0]);
}

// torchrun's summary lists all failures and then, under a title, the first it saw.
static bool is_root(struct str line, struct str before)
{
    enum { BLOCK_BYTES = 400 };
    ptrdiff_t from = before.n > BLOCK_BYTES ? before.n - BLOCK_BYTES : 0;
    return (text_has(line, "exitcode  : ") || text_has(line, "traceback : ")) &&
           text_has(str_slice(before, from, before.n), "Root Cause (first observed failure)");
}

void place_read(struct doctor_finding *f, const struct passage *p, struct str before)
{
    static const struct mark ahead[] = {
        {"[rank", "]"},                       // torch
        {"[Rank ", "]"},                      // torch, DeepSpeed
        {" Rank ", "]"},                      // "[PG 0 Rank 3]"
        {"[default", "]"},                    // torchrun with --tee
        {"Worker_TP", " "},                   // vLLM
        {"Error: Rank ", ": "},               // Megatron
        {"Worker rank=", " "},  {" TP", "]"}, // sglang
    };
    static const struct mark anywhere[] = {{" local_rank: ", " (pid"},
                                           {"--local_rank=", ""},
                                           {": task ", ": "},
                                           {"process rank ", " with PID"}};
    static const struct mark gpus[] = {{"GPU ", " has a total"},
                                       {"(GPU ", ";"},
                                       {"(NPU ", ";"},
                                       {"Allocation on device ", " "},
                                       {"on device cuda:", " "}};
    static const struct mark nccl[] = {{" [", "] "}};
    f->rank = first_number_in(str_slice(p->line, 0, p->anchor), ahead, COUNT_OF(ahead));
    if (f->rank < 0)
        f->rank = rank_of_launcher(p->line);
    if (f->rank < 0)
        f->rank = first_number_in(p->line, anywhere, COUNT_OF(anywhere));
    if (f->rank < 0)
        f->rank = rank_above(p->line, before);
    f->root = is_root(p->line, before);
    f->gpu = first_number_in(p->line, gpus, COUNT_OF(gpus));
    if (f->gpu < 0 && text_has(p->line, " NCCL WARN "))
        f->gpu = number_in(p->line, &nccl[0]);
}

// ------------------------------------------------------------------ steps

static struct str skip_spaces(struct str text)
{
    while (text.n && text.p[0] == ' ')
        text = str_slice(text, 1, text.n);
    return text;
}

// The titles of a line's bars, which are read from left to right: a bar's title is all that stands
// before the line's first percentage, or before the bar.
struct titles {
    ptrdiff_t looked;
    ptrdiff_t percent; // -1: not seen yet
    bool named;        // as counting steps
};

static void follow_titles(struct titles *t, struct str line, ptrdiff_t bar)
{
    static const char *const words[] = {"step", "Step", "train", "Train", "poch", "iter", "Iter"};
    enum { WORD_MOST_BYTES = 5 };
    ptrdiff_t from = t->looked > WORD_MOST_BYTES ? t->looked - WORD_MOST_BYTES : 0;
    t->percent = text_find(str_slice(line, 0, bar), STR("%|"), from);
    struct str name = str_slice(line, from, t->percent < 0 ? bar : t->percent);
    for (ptrdiff_t i = 0; i < COUNT_OF(words) && !t->named; i++)
        t->named = text_has(name, words[i]);
    t->looked = bar;
}

// Bars of loading, tokenizing and the like do not count steps: only a bar without a title, or one
// whose title says so, does.
static bool counts_steps(struct titles *t, struct str line, ptrdiff_t bar)
{
    if (t->percent >= 0) // the title of the bar before is this one's, too
        return t->named;
    follow_titles(t, line, bar);
    struct str name = str_slice(line, 0, t->percent < 0 ? bar : t->percent);
    while (name.n && (char_is_digit(name.p[name.n - 1]) || name.p[name.n - 1] == ' '))
        name = str_slice(name, 0, name.n - 1);
    bool bare = !name.n || strchr(")]}", name.p[name.n - 1]) || str_ends(name, STR("]:"));
    if (t->percent >= 0)
        t->named = t->named || bare;
    return t->named && (t->percent >= 0 || !bare);
}

// tqdm: " 12%|#2   | 120/1000 [01:00<07:20,  2.00it/s]".
static bool step_of_bar(struct progress *g, struct str line)
{
    struct titles titles = {.percent = -1};
    for (ptrdiff_t at = 0; (at = text_find(line, STR("| "), at)) >= 0; at++) {
        struct str rest = skip_spaces(str_slice(line, at + 1, line.n));
        int64_t step = take_number(&rest);
        if (step < 0 || !str_starts(rest, STR("/")))
            continue;
        rest = str_slice(rest, 1, rest.n);
        int64_t total = take_number(&rest);
        if (total <= 0 || !str_starts(rest, STR(" [")) || !counts_steps(&titles, line, at))
            continue;
        *g = (struct progress){.step = step, .total = total, .bar = true, .found = true};
    }
    return g->found;
}

// "step 120", "Step: 120/1000", "global_step=120", "iteration      120/    1000", "'step': 120".
static bool step_of_words(struct progress *g, struct str line)
{
    static const char *const words[] = {"step", "Step", "iteration", "Iteration", "iter"};
    for (ptrdiff_t i = 0; i < COUNT_OF(words); i++) {
        struct str word = str_from(words[i]);
        ptrdiff_t at = text_find(line, word, 0);
        if (at < 0)
            continue;
        struct str rest = str_slice(line, at + word.n, line.n);
        while (rest.n && strchr(" :='\"[#", rest.p[0]) && rest.p[0])
            rest = str_slice(rest, 1, rest.n);
        int64_t step = take_number(&rest);
        if (step < 0 || (rest.n && strchr(".-ex", rest.p[0]) && rest.p[0]))
            continue;
        rest = skip_spaces(rest);
        struct str after =
            str_starts(rest, STR("/")) ? skip_spaces(str_slice(rest, 1, rest.n)) : STR_NONE;
        *g = (struct progress){.step = step, .total = take_number(&after), .found = true};
        return true;
    }
    return false;
}

// What trackers and launchers print when a run has ended: its last step, its arguments.
static bool sums_up(struct str line)
{
    return text_has(line, "wandb:") || text_has(line, "CalledProcessError");
}

static bool step_of_line(struct progress *g, struct str line)
{
    *g = (struct progress){.step = -1, .total = -1};
    return step_of_bar(g, line) || (step_of_words(g, line) && !sums_up(line));
}

static void look_between(struct progress_between *b, const struct progress *g,
                         const struct progress *last)
{
    if (!b->last.found && g->total != last->total) {
        b->last = *g;
    } else if (b->last.found && !b->known && g->total == last->total) {
        b->closed = g->step <= last->step;
        b->known = true;
    }
}

struct progress progress_last(struct progress_between *between, struct str text)
{
    ptrdiff_t end = text.n;
    struct progress last = {.step = -1, .total = -1, .earlier = -1};
    *between = (struct progress_between){.last = last};
    while (end > 0 && (last.earlier < 0 || !between->known)) {
        ptrdiff_t start = end;
        while (start > 0 && text.p[start - 1] != '\n' && text.p[start - 1] != '\r')
            start--;
        struct progress g;
        bool found = step_of_line(&g, str_slice(text, start, end));
        if (found && !last.found) {
            last = g;
            last.at = start;
            last.earlier = -1;
        } else if (found) {
            look_between(between, &g, &last);
            if (last.earlier < 0 && progress_went_on(&g, &last))
                last.earlier = start;
        }
        end = start - 1;
    }
    return last;
}
