// See split.h.
#include "core/report/split.h"

#include "core/base/num.h"

static uint64_t nodes_of(const struct split *s, enum split_role role, uint64_t per_node)
{
    uint64_t first = split_first(s, role);
    return (first + s->parts[role].gpus - 1) / per_node - first / per_node + 1;
}

static double busy(const struct split *s, enum split_role role)
{
    return s->iteration > 0 ? s->parts[role].seconds / s->iteration : 0;
}

// "T T R R R S S S", a line a node.
static void put_map(struct buf *out, const struct split_story *s, const struct split *d)
{
    uint64_t per_node = s->request->hardware.gpus_per_node;
    for (uint64_t gpu = 0; gpu < s->request->gpus; gpu++) {
        if (gpu % per_node == 0)
            buf_printf(out, "%s  node %llu:", gpu ? "\n" : "",
                       (unsigned long long)(gpu / per_node));
        bool teacher = gpu < split_first(d, ROLE_ROLLOUT),
             rollout = gpu < split_first(d, ROLE_TRAIN);
        buf_put_z(out, teacher ? " T" : rollout ? " R" : " S");
    }
    buf_put_z(out, "   (T teacher, R rollout, S the student's training)\n");
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
    static const enum split_role order[] = {ROLE_TEACHER, ROLE_ROLLOUT, ROLE_TRAIN};
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
        table_cell(&t, trains ? STR("-") : str_format(a, "%llu", (unsigned long long)p->tp));
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
        table_cell(&t, str_format(a, "  %s", split_choice_name((enum split_choice)i)));
        table_cell(&t, str_format(a, "%llu", (unsigned long long)d->parts[ROLE_TEACHER].gpus));
        table_cell(&t, str_format(a, "%llu", (unsigned long long)d->parts[ROLE_ROLLOUT].gpus));
        table_cell(&t, str_format(a, "%llu", (unsigned long long)d->parts[ROLE_TRAIN].gpus));
        table_cell(&t, str_format(a, "%.1f s", d->iteration));
        table_cell(&t, str_format(a, "%.1f s", d->one_off));
        table_cell_z(&t, split_role_name(d->slowest));
    }
    table_print(&t, out, v);
}

// What helps when training runs out, and what does not.
static void put_training_advice(struct buf *out, const struct view *v, const struct split_story *s)
{
    const struct split_part *mine = &s->answer->choices[SPLIT_BEST].parts[ROLE_TRAIN];
    struct buf b = buf_in(out->arena);
    for (uint64_t n = mine->gpus + 1; n < s->request->gpus; n++) {
        const struct split_part *p = &s->answer->parts[ROLE_TRAIN][n];
        if (!p->possible || p->reserved >= mine->reserved)
            continue;
        buf_printf(&b, "Training on %llu GPUs takes ", (unsigned long long)n);
        put_gib(&b, mine->reserved - p->reserved);
        buf_put_z(&b, " less of each; a smaller global batch takes nothing off while there are two "
                      "micro-batches to sum.");
        buf_wrapped(out, buf_str(&b), 2, v->width);
        return;
    }
}

static void put_notes(struct buf *out, const struct view *v, const struct split_story *s)
{
    const struct split *best = &s->answer->choices[SPLIT_BEST];
    const struct split *more = &s->answer->more;
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "bound by %s; weights reach the engines in %.2f s.",
               split_role_name(best->slowest), best->sync);
    if (more->possible && more->iteration < best->iteration)
        buf_printf(&b, " One GPU more would save %.1f s.", best->iteration - more->iteration);
    else
        buf_put_z(&b, " One GPU more would save nothing.");
    buf_put_z(&b, " There is room for answers of ");
    put_grouped(&b, s->answer->longest_response);
    buf_put_z(&b, " tokens.");
    buf_wrapped(out, buf_str(&b), 2, v->width);
    put_training_advice(out, v, s);
    if (best->parts[ROLE_TRAIN].borrowed)
        buf_wrapped(
            out,
            STR("the framework's own step is not timed: its memory is predicted, its seconds "
                "are those of the plain FSDP2 step"),
            2, v->width);
    buf_wrapped(
        out,
        STR("not measured: no iteration was timed. Answers are taken to reach their full length, "
            "images cost nothing but their tokens, and the teacher scores while answers are made; "
            "it "
            "generates nothing, and what the log-probabilities of prompts take on its card is not "
            "counted. "
            "Roles have GPUs of their own: sharing by sleep or offload is not "
            "modelled."),
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
    buf_printf(&b, " on %llu x %s", (unsigned long long)r->gpus, r->hardware.card.name);
    put_ink(out, v, INK_BOLD, buf_str(&b));
    buf_printf(out,
               "\n  %.1f s an iteration of %llu prompts x %llu answers, %.1f s one step off\n\n",
               best->iteration, (unsigned long long)r->prompts, (unsigned long long)r->samples,
               best->one_off);
    print_roles(out, v, s, best);
    buf_char(out, '\n');
    print_alternatives(out, v, s);
    buf_char(out, '\n');
    put_notes(out, v, s);
}

static void double_field(struct json_out *j, const char *key, double value)
{
    json_out_key(j, key);
    json_out_double(j, value);
}

static void split_json(struct json_out *j, const struct split_story *s, const struct split *d)
{
    json_out_key(j, "roles");
    json_out_array(j);
    for (enum split_role i = ROLE_TEACHER; i < SPLIT_ROLES; i++) {
        const struct split_part *p = &d->parts[i];
        json_out_object(j);
        json_out_field_str(j, "role", str_from(split_role_name(i)));
        json_out_field_u64(j, "gpus", p->gpus);
        json_out_field_u64(j, "first_gpu", split_first(d, i));
        json_out_field_u64(j, "nodes", nodes_of(d, i, s->request->hardware.gpus_per_node));
        json_out_field_u64(j, "tp", p->tp);
        json_out_field_u64(j, "engines", p->engines);
        json_out_field_u64(j, "reserved_bytes", p->reserved);
        double_field(j, "seconds", p->seconds);
        json_out_field_bool(j, "seconds_of_plain_step", p->borrowed);
        double_field(j, "utilisation", busy(d, i));
        json_out_object_end(j);
    }
    json_out_array_end(j);
    double_field(j, "sync_s", d->sync);
    double_field(j, "iteration_s", d->iteration);
    double_field(j, "one_step_off_s", d->one_off);
    json_out_field_str(j, "bound_by", str_from(split_role_name(d->slowest)));
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
        json_out_object(j);
        json_out_field_str(j, "name", str_from(split_choice_name((enum split_choice)i)));
        split_json(j, s, &x->choices[i]);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_key(j, "one_gpu_more_iteration_s");
    if (x->more.possible)
        json_out_double(j, x->more.iteration);
    else
        json_out_null(j);
    json_out_field_u64(j, "longest_response", x->longest_response);
    json_out_field_str(j, "basis", STR("computed; no iteration was measured"));
}
