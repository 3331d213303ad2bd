// What is said of a prediction: the verdict first, then the peak and who is alive there, then what
// could be changed.
#include "core/report/predict.h"

#include "core/base/num.h"
#include "core/base/units.h"
#include "core/models/trainer.h"
#include "core/report/batches.h"
#include "core/report/step_time.h"
#include "core/report/verdict.h"

enum { BAR_CELLS = 30 };

#define MANAGED "paged, unified memory"

// ------------------------------------------------------------------ text

static const char *phase_of(const struct prediction *p)
{
    bool before = p->phase == PHASE_REFERENCE && p->step == 0;
    return before ? "precomputing the reference" : phase_name(p->phase);
}

// "safe: fits with 41.59 GiB to spare"
static void put_answer(struct buf *b, const struct job *job, const struct prediction *p)
{
    const struct verdict *verdict = &p->verdict;
    if (p->fits && verdict->host_is_short) {
        put_host_short(b, verdict, &p->host);
    } else if (p->fits) {
        buf_put_z(b, "fits with ");
        put_bytes(b, verdict->free_bytes);
        buf_put_z(b, " to spare");
    } else {
        if (p->step)
            buf_printf(b, "does not fit, step %llu runs out of memory in the %s, asking for ",
                       (unsigned long long)step_number(job, p->step), phase_name(p->phase));
        else
            buf_printf(b, "does not fit, out of memory while %s, asking for ", phase_of(p));
        put_bytes(b, p->oom.tried_bytes);
        buf_put_z(b, p->oom.cause == OOM_FRAGMENTATION ? " (fragmentation)" : "");
    }
}

static void print_verdict(struct buf *out, const struct view *v, const struct predict_story *s)
{
    const struct prediction *p = &s->prediction;
    const struct job *job = s->job;
    put_ink(out, v, verdict_ink(&p->verdict), str_from(grade_name(p->verdict.grade)));
    struct buf b = buf_in(out->arena);
    buf_put_z(&b, ": ");
    put_answer(&b, job, p);
    buf_put(out, buf_str(&b));
    buf_put_z(out, "\n  ");
    put_plain(out, job->model.name);
    buf_printf(out, ", %llu tokens", (unsigned long long)job->context);
    if (job->batch > 1)
        buf_printf(out, " x %llu", (unsigned long long)job->batch);
    buf_printf(out, " on %llu x %s\n", (unsigned long long)job_ranks(job), job->hardware.card.name);
}

// Why it is tight, what the driver will show, and how sure that is.
static void print_confidence(struct buf *out, const struct view *v, const struct prediction *p)
{
    struct buf tight = buf_in(out->arena);
    put_tight_because(&tight, &p->verdict);
    if (tight.n)
        buf_wrapped(out, str_format(out->arena, "tight: %.*s", STR_ARGS(buf_str(&tight))), 2,
                    v->width);
    struct buf sure = buf_in(out->arena);
    put_confidence(&sure, &p->verdict);
    if (sure.n)
        buf_wrapped(out, buf_str(&sure), 2, v->width);
}

void report_job(struct buf *out, const struct view *v, const struct job *job)
{
    struct buf b = buf_in(out->arena);
    job_put_phrase(&b, job);
    buf_wrapped(out, buf_str(&b), 2, v->width);
}

static void print_bar(struct buf *out, const char *name, uint64_t bytes, uint64_t whole)
{
    struct str size = bytes_text(out->arena, bytes);
    buf_printf(out, "  %-24s %*s%.*s  ", name, (int)(10 - size.n), "", STR_ARGS(size));
    uint64_t cells = whole ? (bytes * BAR_CELLS + whole / 2) / whole : 0;
    for (uint64_t i = 0; i < cells; i++)
        buf_put_z(out, "█");
    buf_char(out, '\n');
}

// Evaluation and saving come between steps, or after the last.
static void print_other_phases(struct buf *out, const struct prediction *p)
{
    const struct step_peak *e = &p->evaluation, *r = &p->resumed;
    if (e->reserved_bytes)
        buf_printf(out, "\n  Evaluation: %.*s allocated, %.*s reserved\n",
                   STR_ARGS(bytes_text(out->arena, e->allocated_bytes)),
                   STR_ARGS(bytes_text(out->arena, e->reserved_bytes)));
    if (r->reserved_bytes)
        buf_printf(out, "  A step after it: %.*s allocated, %.*s reserved\n",
                   STR_ARGS(bytes_text(out->arena, r->allocated_bytes)),
                   STR_ARGS(bytes_text(out->arena, r->reserved_bytes)));
}

// Less than that is not worth a line.
static void print_range(struct buf *out, const struct view *v, const struct job *job,
                        const struct prediction *p)
{
    enum { HUNDREDTH = 100 };
    bool varies = job->batching != BATCHING_FULL && !job->varied;
    uint64_t near = p->reserved_bytes / HUNDREDTH;
    uint64_t low = p->reserved_low_bytes, high = p->reserved_high_bytes;
    bool wide = high > p->reserved_bytes + near || low + near < p->reserved_bytes;
    if (!high || !wide)
        return;
    struct str least = bytes_text(out->arena, low), most = bytes_text(out->arena, high);
    struct str text = str_format(
        out->arena, "other runs of it may reserve %.*s to %.*s, by the driver's addresses%s",
        STR_ARGS(least), STR_ARGS(most),
        varies ? ", the host's pace and how long the batches before the longest are"
               : " and the host's pace");
    buf_wrapped(out, text, 2, v->width);
}

// Where more is reserved than the table of steps shows.
static const char *elsewhere_than_in_steps(const struct prediction *p)
{
    bool references = p->phase == PHASE_REFERENCE && p->step == 0;
    const char *before =
        references ? ", when the reference is computed" : ", when the model is loaded";
    const char *const words[][2] = {
        {"load", before}, {"evaluate", ", in evaluation"}, {"save", ", when it is saved"}};
    struct str decides = str_from(prediction_decided_by(p));
    for (ptrdiff_t i = 0; p->fits && i < COUNT_OF(words); i++)
        if (str_is(decides, words[i][0]))
            return words[i][1];
    return "";
}

static void print_alive(struct buf *out, const struct view *v, const struct job *job,
                        const struct prediction *p)
{
    uint64_t whole = p->limit_bytes + outside_bytes(&p->outside);
    const char *what = p->fits ? "At the peak" : "When memory ran out";
    print_other_phases(out, p);
    if (p->phase == PHASE_EVALUATE)
        buf_printf(out, "\n  %s: %s\n", what, phase_name(p->phase));
    else
        buf_printf(out, "\n  %s: step %llu, %s\n", what,
                   (unsigned long long)step_number(job, p->step), phase_of(p));
    for (int kind = 1; kind < MEMORY_KINDS; kind++)
        if (p->by_kind[kind] >= MIB)
            print_bar(out, memory_kind_name((enum memory_kind)kind), p->by_kind[kind], whole);
    if (p->reserved_there_bytes > p->allocated_there_bytes)
        print_bar(out, "cached, not in use", p->reserved_there_bytes - p->allocated_there_bytes,
                  whole);
    print_bar(out, "outside torch", outside_bytes(&p->outside), whole);
    if (p->managed_bytes)
        print_bar(out, MANAGED, p->managed_bytes, whole);
    struct str reserved = bytes_text(out->arena, p->fits ? p->reserved_bytes : p->needs_bytes);
    struct str limit = bytes_text(out->arena, p->limit_bytes);
    buf_printf(out, "  %s %.*s of the %.*s that torch may take%s\n",
               p->fits ? "reserved at most" : "would need", STR_ARGS(reserved), STR_ARGS(limit),
               elsewhere_than_in_steps(p));
    print_range(out, v, job, p);
}

static void print_remedies(struct buf *out, const struct view *v, const struct predict_story *s)
{
    static const struct column columns[] = {{"  what would help"},
                                            {"reserved", .right = true},
                                            {""},
                                            {"option", .priority = 1, .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    bool some_safe = false;
    for (int i = 0; i < s->remedies.count; i++) {
        const struct remedy *r = &s->remedies.items[i];
        table_cell(&t, str_format(t.arena, "  %s", r->what));
        table_cell(&t, r->prediction.fits ? bytes_text(t.arena, r->prediction.reserved_bytes)
                                          : STR("-"));
        enum grade grade = r->prediction.verdict.grade;
        some_safe |= grade == GRADE_SAFE;
        table_cell_z(&t, grade != GRADE_NO ? grade_name(grade) : "does not fit");
        table_cell_z(&t, r->options);
    }
    if (!t.cell_count)
        return;
    buf_char(out, '\n');
    table_print(&t, out, v);
    if (!some_safe)
        buf_wrapped(out,
                    STR("none of these is safe by itself: 'fathom plan' joins them, and says the "
                        "least change where nothing is"),
                    2, v->width);
}

// What the recipe set, and why.
static void print_recipe(struct buf *out, const struct view *v, const struct job *job)
{
    static const struct column columns[] = {
        {"  set by the recipe"}, {"value"}, {"evidence", .wraps = true}};
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    for (ptrdiff_t i = 0; i < recipe_row_count; i++) {
        const struct recipe_row *row = &recipe_rows[i];
        if (!recipe_row_holds(row, job->settings))
            continue;
        table_cell(&t, str_format(t.arena, "  %s", row->setting));
        table_cell_z(&t, row->value);
        table_cell_z(&t, row->evidence);
    }
    if (!t.cell_count)
        return;
    buf_char(out, '\n');
    table_print(&t, out, v);
}

static struct str attention_evidence(const struct job *job)
{
    if (job_attends_eagerly(job))
        return STR("Attention runs operator by operator (transformers' eager), which sinks need "
                   "without further kernels and which caps scores.");
    if (job_attention(job) == ATTENTION_FLASH2)
        return STR("Attention is the package flash-attn's, as verl asks for everywhere; its "
                   "scratch is that of torch's own copy, as recorded on an H200.");
    if (job_attention(job) == ATTENTION_FLASH3)
        return STR("Attention is FlashAttention 3's; its scratch is read from its source.");
    if (job_attention_kernel(job) == KERNEL_MATH)
        return STR("Attention is torch's math kernel, operator by operator in fp32, with scores of "
                   "all pairs of tokens: FlashAttention and cuDNN need half precision and compute "
                   "capability 8.0, and the memory-efficient kernel of torch 2.11 knows no shared "
                   "heads of keys and values.");
    if (job_attention_kernel(job) == KERNEL_EFFICIENT)
        return STR("Attention is torch's memory-efficient kernel: FlashAttention and cuDNN need "
                   "half precision and compute capability 8.0.");
    if (job_attention_kernel(job) == KERNEL_FLASH)
        return STR("Attention is FlashAttention 2, as torch chooses before 2.9 and on other cards "
                   "than compute capability 9.0 and 10.0; its scratch is as recorded on an H200.");
    return STR("Attention is cuDNN's, as torch 2.9 and later choose on compute capability 9.0 and "
               "10.0.");
}

// What stands behind a job that torch and transformers have no part in.
struct library_note {
    bool used;
    const char *text;
};

static void print_notes(struct buf *out, const struct view *v, const struct library_note *rows,
                        ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        if (rows[i].used)
            buf_wrapped(out, str_from(rows[i].text), 2, v->width);
}

static void print_adapters(struct buf *out, const struct view *v, const struct job *job)
{
    const struct library_note rows[] = {
        {job->lora_rank && !job->packed,
         "Adapters are peft 0.21's, in fp32 as it makes them; under checkpointing the embedding's "
         "output requires a gradient, as TRL sees to."},
        {job_drops_in_adapters(job),
         "A dropout before adapters leaves each a mask of a byte a value and an input of its own."},
        {job->lora_dropout && !job_drops_in_adapters(job),
         "TRL turns the dropout before adapters off for this task (disable_dropout)."},
        {job->packed == QUANTIZE_NF4_SINGLE,
         "Packed weights are bitsandbytes 0.50's nf4: half a byte an element, a scale in fp32 for "
         "64 of them; products are in bf16. With no more than 1536 tokens a kernel may need no "
         "unpacked weight: not measured."},
        {job->packed == QUANTIZE_NF4,
         "Packed weights are bitsandbytes 0.50's nf4 with double quantisation: half a byte an "
         "element, a byte for 64 and four for 16384 of them; products are in bf16. With no more "
         "than 1536 tokens a kernel may need no unpacked weight: not measured."},
        {job->dora, "DoRA is peft 0.21's: each forward pass makes the whole product of an adapter, "
                    "over a unit "
                    "matrix as wide as the layer's input, and the norms of the weight with it."},
        {job->packed && job->strategy >= STRATEGY_FSDP1 && job->strategy != STRATEGY_ZERO1 &&
             job->strategy != STRATEGY_ZERO2,
         "Packed weights are stored as bf16 (bnb_4bit_quant_storage), so that they can be cut; "
         "every rank has all of them while it loads, and of scales and tables to the end."},
        {job_narrows_adapters(job) && !job_autocasts(job) &&
             (job->recipe == RECIPE_TRL || !job_is_mixed(job)),
         "Around packed weights all is bf16, adapters too, as with TRL 1.16 and dtype bfloat16."},
        {job_narrows_adapters(job) && job_autocasts(job),
         "Around packed weights norms, embedding and head are fp32, as TRL 1.16 loads them unless "
         "told otherwise, and adapters bf16; prepare_model_for_kbit_training is not called."},
        {job_is_prepared(job), "Around packed weights norms, embedding and head are fp32, as "
                               "prepare_model_for_kbit_training makes them, and so are adapters."},
    };
    print_notes(out, v, rows, COUNT_OF(rows));
}

static void print_libraries(struct buf *out, const struct view *v, const struct job *job)
{
    const struct library_note rows[] = {
        {job_has_8bit_optimizer(job),
         "8-bit state is bitsandbytes 0.50's: two bytes an element and two scales of four bytes "
         "for 256, fp32 below 4096 elements."},
        {job_pages_optimizer(job),
         "Paged state of tensors from 100000 elements on is unified memory, which torch does not "
         "count: the driver keeps it on the card while there is room, and else in the host."},
        {job->layer_kernels == KERNELS_OF_LIGER,
         "Layer kernels are liger_kernel 0.8.5's: norms keep their input and make its gradient in "
         "place, positions turn heads in place, the MLP keeps two factors."},
        {job->optimizer == OPTIMIZER_MUON,
         "Muon is torch 2.11's, over matrices of layers: one momentum, and for one after another "
         "five rounds in bf16; embedding, head and norms are AdamW's (foreach)."},
        {job->optimizer == OPTIMIZER_ADAFACTOR,
         "Adafactor is transformers 5.17's as its Trainer sets it up: no first moment, means of "
         "rows and columns; it takes one parameter after another, with three copies of it."},
        {job->loss == LOSS_LIGER,
         "The fused loss is liger_kernel 0.8.5's: chunks of logits as large as the hidden states, "
         "up to a power of two, and gradients in the weights' type."},
        {job->entropy_saving && !job->fused_kernels,
         "The entropy in chunks is verl's entropy_from_logits_with_chunking as torch.compile makes "
         "it: all chunks in one graph, whose backward pass keeps fp32 pieces of each until one "
         "last kernel, together about 1.1 times the logits in fp32. From the third chunk on that "
         "is more than the entropy of all tokens at once takes, which makes one gradient. For "
         "each other number of tokens it is compiled anew; after four of them Dynamo runs it "
         "uncompiled, which is not modelled."},
    };
    print_adapters(out, v, job);
    print_notes(out, v, rows, COUNT_OF(rows));
}

static void print_deepspeed(struct buf *out, const struct view *v, const struct job *job)
{
    if (!job_is_zero(job))
        return;
    buf_wrapped(
        out,
        STR("DeepSpeed is 0.19.8 as transformers' Trainer starts it: torch's AdamW is handed to "
            "it, overlap_comm is on under zero3 unless --overlap-comm off says otherwise or "
            "LLaMA-Factory's files are meant, and in TRL's jobs under zero1 and zero2, buckets "
            "have the sizes that \"auto\" stands for unless --zero-buckets deepspeed says "
            "otherwise (reduce_bucket_size hidden x hidden, "
            "stage3_prefetch_bucket_size 0.9 of that, stage3_param_persistence_threshold 10 x "
            "hidden), the rest is its default (sub_group_size, "
            "stage3_max_live_parameters and stage3_max_reuse_distance of 1e9). Its own FusedAdam "
            "keeps what --optimizer adamw-fused keeps, and its DeepSpeedCPUAdam what torch's AdamW "
            "keeps in host memory; neither was measured. Rank 0 is followed, whose part "
            "begins with the embedding."),
        2, v->width);
}

static void explain_spread(struct table *t, const struct job *job)
{
    for (ptrdiff_t i = 0; i < spread_row_count; i++) {
        const struct spread_row *row = &spread_rows[i];
        if (!row->when(job))
            continue;
        struct str less = bytes_text(t->arena, row->less_bytes);
        struct str more = bytes_text(t->arena, row->more_bytes);
        table_cell_z(t, "  less or more by");
        table_cell(t, str_format(t->arena, "%.*s, %.*s", STR_ARGS(less), STR_ARGS(more)));
        table_cell_z(t, row->evidence);
    }
}

static void print_explanation(struct buf *out, const struct view *v, const struct predict_story *s)
{
    static const struct column columns[] = {
        {"  constant"}, {"value", .right = true}, {"evidence", .wraps = true}};
    const struct gpu *card = &s->job->hardware.card;
    const struct outside *o = &s->prediction.outside;
    struct table t = table_in(out->arena, columns, COUNT_OF(columns));
    const struct {
        const char *name;
        uint64_t bytes;
        const char *evidence;
    } rows[] = {
        {"  memory of the card", card->memory.value, card->memory.source},
        {"  bare CUDA context", o->context_bytes,
         card->context.value ? card->context.source : "unknown for this card: not counted"},
        {"  kernels and libraries", o->modules_bytes,
         "grown beyond the context at the end of 113 runs on an H200: 240 MiB on one GPU, 310 to "
         "320 with FSDP; 150 MiB more under verl, fitted to Trinity's published capacities; not "
         "measured on other cards"},
        {"  NCCL buffers", o->nccl_bytes,
         s->job->ulysses > 1     ? "three communicators of 688 MB (nccl#964) and 640 MiB for each "
                                   "peer of an all_to_all on the node, fitted to Trinity's published "
                                   "capacities; not measured"
         : job_ranks(s->job) > 1 ? "688 MB on 4 x A100 (nccl#964); not measured"
                                 : "558 MiB with ddp, measured on one H200; else none"},
        {"  cuBLAS workspace, twice", cublas_workspace_bytes(card),
         "ATen/cuda/CublasHandlePool.cpp by compute capability; recorded on an H200"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        table_cell_z(&t, rows[i].name);
        table_cell(&t, bytes_text(t.arena, rows[i].bytes));
        table_cell_z(&t, rows[i].evidence);
    }
    explain_spread(&t, s->job);
    if (s->unsharded_bytes) {
        table_cell_z(&t, "  without sharding");
        table_cell(&t, bytes_text(t.arena, s->unsharded_bytes));
        table_cell_z(&t,
                     "the peak of each GPU with the whole model on it (ddp, autocast), predicted");
    }
    buf_char(out, '\n');
    table_print(&t, out, v);
    print_recipe(out, v, s->job);
    buf_wrapped(
        out,
        STR("Operators, saved tensors, gradients and FSDP2's buffers follow transformers 5.17 "
            "and torch 2.11 event for event as recorded on an H200 (docs/accuracy.md)."),
        2, v->width);
    buf_wrapped(out, attention_evidence(s->job), 2, v->width);
    if (model_has(&s->job->model, FEATURE_EXPERTS))
        buf_wrapped(out,
                    STR("Every token goes to its experts on this rank, and their products hold all "
                        "of those rows at once: no size depends on how the router chooses, so "
                        "experts used unevenly cost time, not memory."),
                    2, v->width);
    print_libraries(out, v, s->job);
    print_deepspeed(out, v, s->job);
}

// What this answer rests on that nobody measured.
void report_unmeasured(struct buf *out, const struct view *v, const struct job *job)
{
    struct buf b = buf_in(out->arena);
    doubts_put(&b, job);
    if (!b.n)
        return;
    struct str text = str_format(out->arena, "not measured: %.*s", STR_ARGS(buf_str(&b)));
    buf_wrapped(out, text, 2, v->width);
}

static struct str job_warning(struct arena *a, const struct job *job)
{
    const struct model *m = &job->model;
    return native_warning(a, m->name, m->max_position, &m->native, job->context);
}

static struct str wrapping_warning(struct arena *a, const struct job *job)
{
    const char *classes = job_wrapped_classes(job);
    if (!classes)
        return STR_NONE;
    return str_format(
        a,
        "Accelerate 1.15 stops before training, since transformers 5.17 has it wrap a "
        "class that this model lacks, unless fsdp_transformer_layer_cls_to_wrap "
        "names %s, as emit does",
        classes);
}

// Of peft's model the Trainer has DDP look for parameters without a gradient (n1_24 and n2_0 of
// tests/runs: "marked as ready twice").
static struct str reentrant_warning(const struct job *job)
{
    bool looks = job->recipe == RECIPE_TRL || job->recipe == RECIPE_TRANSFORMERS;
    if (!looks || job->strategy != STRATEGY_DDP || !job->lora_rank || !(job->traits & IS_REENTRANT))
        return STR_NONE;
    return STR("under DDP reentrant checkpoints over adapters end the run (\"marked as ready "
               "twice\") unless the Trainer has ddp_find_unused_parameters: false");
}

static void print_warning(struct buf *out, const struct view *v, struct str warning)
{
    if (warning.n)
        buf_wrapped(out, str_format(out->arena, "warning: %.*s", STR_ARGS(warning)), 2, v->width);
}

static void warning_json(struct json_out *j, struct str warning)
{
    if (warning.n)
        json_out_str(j, warning);
}

void report_predict(struct buf *out, const struct view *v, const struct predict_story *s)
{
    const struct prediction *p = &s->prediction;
    print_verdict(out, v, s);
    report_job(out, v, s->job);
    report_steps(out, v, s->job, p);
    print_alive(out, v, s->job, p);
    print_confidence(out, v, p);
    report_host(out, v, p->host_bytes, &p->verdict.wanted);
    report_rows(out, v, s->job);
    if (p->fits)
        report_time(out, v, &p->time);
    print_warning(out, v, job_warning(out->arena, s->job));
    print_warning(out, v, wrapping_warning(out->arena, s->job));
    print_warning(out, v, reentrant_warning(s->job));
    report_unmeasured(out, v, s->job);
    print_remedies(out, v, s);
    if (s->explain)
        print_explanation(out, v, s);
}

// ------------------------------------------------------------------ JSON

static void steps_json(struct json_out *j, const struct prediction *p)
{
    json_out_key(j, "steps");
    json_out_array(j);
    for (int i = 0; i < p->steps_done; i++) {
        json_out_object(j);
        json_out_field_u64(j, "allocated_bytes", p->steps[i].allocated_bytes);
        json_out_field_u64(j, "requested_bytes", p->steps[i].requested_bytes);
        json_out_field_u64(j, "reserved_bytes", p->steps[i].reserved_bytes);
        json_out_field_u64(j, "end_allocated_bytes", p->steps[i].end_allocated_bytes);
        json_out_field_u64(j, "retries", p->steps[i].retries);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void breakdown_entry(struct json_out *j, const char *what, uint64_t bytes)
{
    json_out_object(j);
    json_out_field_str(j, "what", str_from(what));
    json_out_field_u64(j, "bytes", bytes);
    json_out_object_end(j);
}

static void breakdown_json(struct json_out *j, const struct prediction *p)
{
    json_out_key(j, "breakdown");
    json_out_array(j);
    for (int kind = 1; kind < MEMORY_KINDS; kind++)
        if (p->by_kind[kind])
            breakdown_entry(j, memory_kind_name((enum memory_kind)kind), p->by_kind[kind]);
    if (p->reserved_there_bytes > p->allocated_there_bytes)
        breakdown_entry(j, "cached, not in use",
                        p->reserved_there_bytes - p->allocated_there_bytes);
    breakdown_entry(j, "outside torch", outside_bytes(&p->outside));
    if (p->managed_bytes)
        breakdown_entry(j, MANAGED, p->managed_bytes);
    json_out_array_end(j);
}

static void oom_json(struct json_out *j, const struct prediction *p)
{
    json_out_key(j, "oom");
    if (p->fits) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_field_u64(j, "step", (uint64_t)p->step);
    json_out_field_str(j, "phase", str_from(phase_name(p->phase)));
    json_out_field_u64(j, "tried_bytes", p->oom.tried_bytes);
    json_out_field_u64(j, "allocated_bytes", p->oom.allocated_bytes);
    json_out_field_u64(j, "unallocated_bytes", p->oom.unallocated_bytes);
    json_out_field_str(
        j, "cause", p->oom.cause == OOM_FRAGMENTATION ? STR("fragmentation") : STR("exhaustion"));
    json_out_object_end(j);
}

static void remedies_json(struct json_out *j, const struct predict_story *s)
{
    json_out_key(j, "remedies");
    json_out_array(j);
    for (int i = 0; i < s->remedies.count; i++) {
        json_out_object(j);
        json_out_field_str(j, "what", str_from(s->remedies.items[i].what));
        json_out_field_str(j, "options", str_from(s->remedies.items[i].options));
        enum grade grade = s->remedies.items[i].prediction.verdict.grade;
        json_out_field_bool(j, "fits", grade != GRADE_NO);
        json_out_field_str(j, "verdict", str_from(grade_name(grade)));
        json_out_field_u64(j, "reserved_bytes", s->remedies.items[i].prediction.reserved_bytes);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void report_peak_json(struct json_out *j, const struct prediction *p)
{
    enum phase phase;
    struct step_peak most = prediction_peak(&phase, p);
    json_out_key(j, "peak");
    json_out_object(j);
    json_out_field_u64(j, "allocated_bytes", most.allocated_bytes);
    json_out_field_u64(j, "requested_bytes", most.requested_bytes);
    json_out_field_u64(j, "reserved_bytes", most.reserved_bytes);
    if (p->reserved_high_bytes) { // of the whole job, of which training may be less
        json_out_field_u64(j, "reserved_low_bytes",
                           u64_least(p->reserved_low_bytes, most.reserved_bytes));
        json_out_field_u64(j, "reserved_high_bytes", p->reserved_high_bytes);
    }
    json_out_field_u64(j, "driver_bytes", most.reserved_bytes + outside_bytes(&p->outside));
    json_out_field_str(j, "phase", str_from(phase_name(phase)));
    json_out_object_end(j);
}

static void phases_json(struct json_out *j, const struct prediction *p)
{
    struct job_phase phases[JOB_PHASES];
    int count = prediction_phases(phases, p);
    json_out_key(j, "phases");
    json_out_array(j);
    for (int i = 0; i < count; i++) {
        json_out_object(j);
        json_out_field_str(j, "name", str_from(phases[i].name));
        json_out_field_u64(j, "allocated_bytes", phases[i].peak.allocated_bytes);
        json_out_field_u64(j, "reserved_bytes", phases[i].peak.reserved_bytes);
        json_out_field_u64(j, "host_bytes", phases[i].host_bytes);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void report_predict_json(struct json_out *j, const struct predict_story *s)
{
    const struct prediction *p = &s->prediction;
    json_out_field_bool(j, "fits", p->verdict.grade != GRADE_NO);
    verdict_json(j, &p->verdict);
    json_out_field_str(j, "decided_by", str_from(prediction_decided_by(p)));
    json_out_field_u64(j, "needs_bytes", p->needs_bytes);
    json_out_field_u64(j, "capacity_bytes", p->limit_bytes);
    report_peak_json(j, p);
    phases_json(j, p);
    steps_json(j, p);
    report_batches_json(j, s->job);
    breakdown_json(j, p);
    oom_json(j, p);
    remedies_json(j, s);
    json_out_key(j, "host_bytes");
    if (p->host_bytes)
        json_out_u64(j, p->host_bytes);
    else
        json_out_null(j);
    report_time_json(j, &p->time);
    json_out_key(j, "warnings");
    json_out_array(j);
    warning_json(j, job_warning(j->out->arena, s->job));
    warning_json(j, wrapping_warning(j->out->arena, s->job));
    warning_json(j, reentrant_warning(s->job));
    json_out_array_end(j);
}
