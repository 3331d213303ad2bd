// See split.h.
#include "core/overview/split.h"

#include "core/base/num.h"

static const enum split_role order[] = {ROLE_TEACHER, ROLE_ROLLOUT, ROLE_TRAIN};

static uint64_t nodes_of(const struct split *s, enum split_role role, uint64_t per_node)
{
    uint64_t first = split_first(s, role);
    return (first + s->parts[role].gpus - 1) / per_node - first / per_node + 1;
}

static double busy(const struct split *s, enum split_role role)
{
    return s->iteration > 0 ? s->parts[role].seconds / s->iteration : 0;
}

static bool has_gpu(const struct split *d, enum split_role role, uint64_t gpu)
{
    uint64_t first = split_first(d, role);
    return gpu >= first && gpu < first + d->parts[role].gpus;
}

static char letter_of(const struct split *d, uint64_t gpu)
{
    if (d->layout == LAYOUT_TOGETHER)
        return '*';
    if (has_gpu(d, ROLE_TEACHER, gpu))
        return 'T';
    if (has_gpu(d, ROLE_ROLLOUT, gpu))
        return d->layout == LAYOUT_COLOCATED ? '+' : 'R';
    return has_gpu(d, ROLE_TRAIN, gpu) ? 'S' : '.';
}

static bool same_node(const struct split *d, uint64_t a, uint64_t b, uint64_t per_node)
{
    for (uint64_t i = 0; i < per_node; i++)
        if (letter_of(d, a * per_node + i) != letter_of(d, b * per_node + i))
            return false;
    return true;
}

// "T T R R R S S S", a line a node; nodes alike, one after the other, share one.
static void put_map(struct buf *out, const struct split_story *s, const struct split *d)
{
    uint64_t per_node = s->request->hardware.gpus_per_node, nodes = s->request->gpus / per_node;
    for (uint64_t n = 0, last; n < nodes; n = last + 1) {
        for (last = n; last + 1 < nodes && same_node(d, n, last + 1, per_node); last++)
            ;
        buf_printf(out, "%s  node %llu", n ? "\n" : "", (unsigned long long)n);
        if (last > n)
            buf_printf(out, "-%llu", (unsigned long long)last);
        buf_char(out, ':');
        for (uint64_t i = 0; i < per_node; i++)
            buf_printf(out, " %c", letter_of(d, n * per_node + i));
    }
    static const char *const legends[] = {
        "   (T teacher, R rollout, S the student's training)\n",
        "   (T teacher, + rollout and the student's training in turn)\n",
        "   (* teacher, rollout and the student's training in turn)\n",
    };
    buf_put_z(out, legends[d->layout]);
}

static struct str engines_text(struct arena *a, const struct split_part *p)
{
    unsigned long long tp = p->tp, pp = p->pp;
    return p->pp > 1 ? str_format(a, "%llux%llu", tp, pp) : str_format(a, "%llu", tp);
}

static void print_roles(struct buf *out, const struct view *v, const struct split_story *s,
                        const struct split *d)
{
    static const struct column columns[] = {
        {"  role"},
        {"GPUs"},
        {"engines", .right = true},
        {"tp", .right = true},
        {"memory of each", .right = true},
        {"seconds", .right = true},
        {"busy", .right = true},
    };
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    struct arena *a = t.arena;
    for (int i = 0; i < COUNT_OF(order); i++) {
        const struct split_part *p = &d->parts[order[i]];
        unsigned long long first = split_first(d, order[i]), last = first + p->gpus - 1;
        struct buf memory = buf_in(a);
        bool trains = order[i] == ROLE_TRAIN;
        put_gib(&memory, p->reserved);
        table_cell(&t, str_format(a, "  %s", split_role_name(order[i])));
        table_cell(&t, first == last ? str_format(a, "%llu", first)
                                     : str_format(a, "%llu-%llu", first, last));
        table_cell(&t, trains ? STR("-") : str_format(a, "%llu", (unsigned long long)p->engines));
        table_cell(&t, trains && p->tp == 1 ? STR("-") : engines_text(a, p));
        table_cell(&t, buf_str(&memory));
        table_cell(&t, str_format(a, "%.1f", p->seconds));
        table_cell(&t, str_format(a, "%.0f %%", 100 * busy(d, order[i])));
    }
    table_print(&t, out, v);
    put_map(out, s, d);
}

static void print_alternatives(struct buf *out, const struct view *v, const struct split_story *s)
{
    static const struct column columns[] = {
        {"  division"},
        {"layout"},
        {"teacher", .right = true},
        {"rollout", .right = true},
        {"training", .right = true},
        {"an iteration", .right = true},
        {"one step off", .right = true},
        {"bound by"},
    };
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (int i = 0; i < SPLIT_CHOICES; i++) {
        const struct split *d = &s->answer->choices[i];
        struct arena *a = t.arena;
        if (!d->possible)
            continue;
        table_cell(&t, str_format(a, "  %s", split_choice_name((enum split_choice)i)));
        table_cell_z(&t, split_layout_name(d->layout));
        table_cell(&t, str_format(a, "%llu", (unsigned long long)d->parts[ROLE_TEACHER].gpus));
        table_cell(&t, str_format(a, "%llu", (unsigned long long)d->parts[ROLE_ROLLOUT].gpus));
        table_cell(&t, str_format(a, "%llu", (unsigned long long)d->parts[ROLE_TRAIN].gpus));
        table_cell(&t, str_format(a, "%.1f s", d->iteration));
        table_cell(&t, d->one_off > 0 ? str_format(a, "%.1f s", d->one_off) : STR("-"));
        table_cell_z(&t, split_role_name(d->slowest));
    }
    table_print(&t, out, v);
}

// ------------------------------------------------------------------ notes

static void put_sleep(struct buf *out, const struct view *v, const struct split *d)
{
    struct buf b = buf_in(out->arena);
    if (d->layout == LAYOUT_APART)
        return;
    buf_put_z(&b, "While the student trains the engine sleeps and keeps ");
    put_gib(&b, d->parts[ROLE_ROLLOUT].asleep);
    buf_put_z(&b, " of each card; while answers are made training's weights and optimizer, ");
    put_gib(&b, d->parts[ROLE_TRAIN].state);
    buf_put_z(&b, d->offloaded ? " a GPU, are in host memory." : " a GPU, stay on the card.");
    if (d->layout == LAYOUT_TOGETHER)
        buf_put_z(&b, " The teacher's weights sleep in host memory between its turns; none of the "
                      "frameworks that --framework names runs all three so.");
    if (d->host) {
        buf_put_z(&b, " Of host memory a node needs ");
        put_gib(&b, d->host);
        buf_printf(&b, " for that, and %.1f s of an iteration are moves.", d->moves);
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_bounds(struct buf *out, const struct view *v, const struct split_story *s)
{
    const struct split *best = &s->answer->choices[SPLIT_BEST], *more = &s->answer->more;
    struct buf b = buf_in(out->arena);
    bool node = s->answer->more_gpus > 1;
    const char *what = node ? "One node more" : "One GPU more";
    buf_printf(&b, "bound by %s; weights reach the engines in %.2f s.",
               split_role_name(best->slowest), best->sync);
    if (more->possible && more->iteration < best->iteration)
        buf_printf(&b, " %s would save %.1f s.", what, best->iteration - more->iteration);
    else if (more->possible)
        buf_printf(&b, " %s would save nothing.", what);
    buf_put_z(&b, " Slack: there is room for answers of ");
    put_grouped(&b, s->answer->longest_response);
    buf_put_z(&b, " tokens");
    if (best->layout == LAYOUT_APART && s->answer->largest_batch > s->request->prompts)
        buf_printf(&b, ", and the roles that wait could take %llu prompts in the same time",
                   (unsigned long long)s->answer->largest_batch);
    buf_put_z(&b, ".");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_change(struct buf *b, const struct split_change *c)
{
    put_plain(b, c->words);
    buf_put_z(b, ": ");
    if (c->helps)
        put_gib(b, c->before - c->after);
    else
        buf_put_z(b, "nothing");
    buf_put_z(b, " less");
}

static void put_advice(struct buf *out, const struct view *v, const struct split_story *s)
{
    struct split_change changes[SPLIT_MOST_CHANGES];
    int count = split_advice(changes, s->request, s->answer);
    for (int r = 0; r < COUNT_OF(order); r++) {
        struct buf b = buf_in(out->arena);
        int said = 0;
        buf_printf(&b, "If %s runs out of memory, of each card: ",
                   order[r] == ROLE_TRAIN     ? "training"
                   : order[r] == ROLE_TEACHER ? "the teacher"
                                              : "rollout");
        for (int i = 0; i < count; i++) {
            if (changes[i].role != order[r])
                continue;
            buf_put_z(&b, said++ ? "; " : "");
            put_change(&b, &changes[i]);
        }
        buf_put_z(&b, ".");
        if (said)
            buf_wrapped(out, buf_str(&b), 2, v->width);
    }
}

static void put_scores(struct buf *out, const struct view *v, const struct split *d)
{
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, "The teacher's log-probabilities take ");
    put_gib(&b, d->parts[ROLE_TEACHER].scores);
    buf_put_z(&b, " more of its cards at once, which its budget leaves free.");
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_borrowed(struct buf *out, const struct view *v, const struct split_story *s)
{
    const struct split_part *train = &s->answer->choices[SPLIT_BEST].parts[ROLE_TRAIN];
    struct buf b = buf_in(out->arena);
    if (!train->borrowed)
        return;
    if (train->borrowed_all) {
        buf_put_z(&b, "training is that of the plain FSDP2 step, memory and seconds: ");
        put_plain(&b, str_from(s->answer->borrowed_why.message));
    } else {
        buf_put_z(&b, "the framework's own step is not timed: its memory is predicted, its seconds "
                      "are those of the plain FSDP2 step");
    }
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void put_reading(struct buf *out, const struct view *v, const struct split_story *s)
{
    struct buf b = buf_in(out->arena);
    const struct split_framework *f = s->request->framework;
    if (!f || !f->reads)
        return;
    buf_printf(&b,
               "Training's seconds hold the pass in which %s reads the student's own "
               "log-probabilities.",
               f->name);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

// A teacher scores tokens by their numbers, which models of one tokenizer share. Those of a series
// may pad their embeddings differently.
static struct str words_warning(struct arena *a, const struct split_request *r)
{
    const struct model *teacher = r->teacher.model, *student = r->rollout.model;
    struct buf b = buf_in(a);
    if (teacher->vocab == student->vocab)
        return STR_NONE;
    buf_put(&b, teacher->name);
    buf_put_z(&b, " has a vocabulary of ");
    put_grouped(&b, teacher->vocab);
    buf_put_z(&b, " and ");
    buf_put(&b, student->name);
    buf_put_z(&b, " of ");
    put_grouped(&b, student->vocab);
    buf_put_z(&b, ": unless they have one tokenizer and are padded differently, the teacher cannot "
                  "score the student's answers");
    return buf_str(&b);
}

static void put_words(struct buf *out, const struct view *v, const struct split_request *r)
{
    struct str warning = words_warning(out->arena, r);
    if (warning.n)
        buf_wrapped(out, str_format(out->arena, "warning: %.*s", STR_ARGS(warning)), 2, v->width);
}

static void put_notes(struct buf *out, const struct view *v, const struct split_story *s)
{
    const struct split *best = &s->answer->choices[SPLIT_BEST];
    put_bounds(out, v, s);
    put_scores(out, v, best);
    put_sleep(out, v, best);
    put_advice(out, v, s);
    put_borrowed(out, v, s);
    put_reading(out, v, s);
    put_words(out, v, s->request);
    buf_wrapped(
        out,
        STR("not measured: no iteration was timed. Answers are taken to reach their full length, "
            "images cost nothing but their tokens, and the teacher scores while answers are made; "
            "it generates nothing."),
        2, v->width);
}

void report_split(struct buf *out, const struct view *v, const struct split_story *s)
{
    const struct split_request *r = s->request;
    const struct split *best = &s->answer->choices[SPLIT_BEST];
    struct buf b = buf_in(out->arena);
    put_plain(&b, r->teacher.model->name);
    buf_put_z(&b, " teaches ");
    put_plain(&b, r->rollout.model->name);
    buf_printf(&b, " on %llu x %s, %s", (unsigned long long)r->gpus, r->hardware.card.name,
               split_layout_name(best->layout));
    put_ink(out, v, INK_BOLD, buf_str(&b));
    buf_printf(out, "\n  %.1f s an iteration of ", best->iteration);
    buf_count(out, r->prompts, "prompt");
    buf_put_z(out, " x ");
    buf_count(out, r->samples, "answer");
    if (best->one_off > 0)
        buf_printf(out, ", %.1f s one step off", best->one_off);
    buf_put_z(out, "\n\n");
    print_roles(out, v, s, best);
    buf_char(out, '\n');
    print_alternatives(out, v, s);
    buf_char(out, '\n');
    put_notes(out, v, s);
}

// ------------------------------------------------------------------ JSON

static void double_field(struct json_out *j, const char *key, double value)
{
    json_out_key(j, key);
    json_out_double(j, value);
}

static void role_json(struct json_out *j, const struct split_story *s, const struct split *d,
                      enum split_role role)
{
    const struct split_part *p = &d->parts[role];
    json_out_object(j);
    json_out_field_str(j, "role", str_from(split_role_name(role)));
    json_out_field_u64(j, "gpus", p->gpus);
    json_out_field_u64(j, "first_gpu", split_first(d, role));
    json_out_field_u64(j, "nodes", nodes_of(d, role, s->request->hardware.gpus_per_node));
    json_out_field_u64(j, "tp", p->tp);
    json_out_field_u64(j, "pp", u64_most(p->pp, 1));
    json_out_field_u64(j, "engines", p->engines);
    json_out_field_u64(j, "reserved_bytes", p->reserved);
    double_field(j, "seconds", p->seconds);
    double_field(j, "utilisation", busy(d, role));
    if (role == ROLE_TRAIN) {
        json_out_field_u64(j, "state_bytes", p->state);
        json_out_field_u64(j, "micro_batches", p->micro);
        json_out_field_bool(j, "seconds_of_plain_step", p->borrowed);
        json_out_field_bool(j, "memory_of_plain_step", p->borrowed_all);
    } else {
        double_field(j, "fraction", (double)p->thousandths / 1000);
        json_out_field_u64(j, "sequences", p->sequences);
        json_out_field_u64(j, "asleep_bytes", p->asleep);
        if (role == ROLE_TEACHER)
            json_out_field_u64(j, "score_bytes", p->scores);
    }
    json_out_object_end(j);
}

static void split_json(struct json_out *j, const struct split_story *s, const struct split *d)
{
    json_out_field_str(j, "layout", str_from(split_layout_name(d->layout)));
    json_out_key(j, "roles");
    json_out_array(j);
    for (enum split_role i = ROLE_TEACHER; i < SPLIT_ROLES; i++)
        role_json(j, s, d, i);
    json_out_array_end(j);
    double_field(j, "sync_s", d->sync);
    double_field(j, "moves_s", d->moves);
    json_out_field_bool(j, "offloaded", d->offloaded);
    json_out_field_u64(j, "host_bytes", d->host);
    double_field(j, "iteration_s", d->iteration);
    json_out_key(j, "one_step_off_s");
    if (d->one_off > 0)
        json_out_double(j, d->one_off);
    else
        json_out_null(j);
    json_out_field_str(j, "bound_by", str_from(split_role_name(d->slowest)));
}

static void advice_json(struct json_out *j, const struct split_story *s)
{
    struct split_change changes[SPLIT_MOST_CHANGES];
    int count = split_advice(changes, s->request, s->answer);
    json_out_key(j, "advice");
    json_out_array(j);
    for (int i = 0; i < count; i++) {
        json_out_object(j);
        json_out_field_str(j, "role", str_from(split_role_name(changes[i].role)));
        json_out_field_str(j, "change", changes[i].words);
        json_out_field_u64(j, "before_bytes", changes[i].before);
        json_out_field_u64(j, "after_bytes", changes[i].after);
        json_out_field_bool(j, "helps", changes[i].helps);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void warnings_json(struct json_out *j, const struct split_request *r)
{
    struct str warning = words_warning(j->out->arena, r);
    json_out_key(j, "warnings");
    json_out_array(j);
    if (warning.n)
        json_out_str(j, warning);
    json_out_array_end(j);
}

void report_split_json(struct json_out *j, const struct split_story *s)
{
    const struct split_result *x = s->answer;
    json_out_key(j, "best");
    json_out_object(j);
    split_json(j, s, &x->choices[SPLIT_BEST]);
    json_out_object_end(j);
    json_out_key(j, "alternatives");
    json_out_array(j);
    for (int i = SPLIT_BEST + 1; i < SPLIT_CHOICES; i++) {
        if (!x->choices[i].possible)
            continue;
        json_out_object(j);
        json_out_field_str(j, "name", str_from(split_choice_name((enum split_choice)i)));
        split_json(j, s, &x->choices[i]);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_key(j, x->more_gpus > 1 ? "one_node_more_iteration_s" : "one_gpu_more_iteration_s");
    if (x->more.possible)
        json_out_double(j, x->more.iteration);
    else
        json_out_null(j);
    json_out_field_u64(j, "longest_response", x->longest_response);
    json_out_field_u64(j, "largest_rollout_batch", x->largest_batch);
    advice_json(j, s);
    warnings_json(j, s->request);
    json_out_field_str(j, "basis", STR("computed; no iteration was measured"));
}
