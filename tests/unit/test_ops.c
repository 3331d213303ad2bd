// Eager autograd over sizes, operator by operator: what is allocated, in which order, and that all
// of it is let go. That the sizes are torch's is for the recordings to say (test_step,
// accuracy.py).
#include <string.h>

#include "core/base/units.h"
#include "core/ops/ops.h"
#include "tests/support/t.h"

struct stage {
    struct trace trace;
    struct machine machine;
    struct graph graph;
};

static struct graph *stage_up(struct stage *s)
{
    s->trace = trace_in(test_arena());
    s->machine = machine_with(test_arena(), &s->trace);
    s->graph = (struct graph){.machine = &s->machine, .recording = true, .keeping = true};
    return &s->graph;
}

static struct var leaf(struct graph *g, uint64_t elements, uint32_t width)
{
    return graph_output(g, graph_add(g, &operation_pass), elements, width);
}

struct allocation {
    uint64_t bytes;
    enum memory_kind kind;
};

static void check_allocations(const struct trace *t, ptrdiff_t from,
                              const struct allocation *wanted, ptrdiff_t count)
{
    ptrdiff_t found = 0;
    for (ptrdiff_t i = from; i < t->count; i++) {
        const struct event *e = &t->events[i];
        if (e->kind != EVENT_ALLOC)
            continue;
        if (found < count) {
            CHECK_U64(e->bytes, wanted[found].bytes);
            CHECK_U64(e->tag, (uint64_t)wanted[found].kind);
        }
        found++;
    }
    CHECK_U64((uint64_t)found, (uint64_t)count);
}

// ------------------------------------------------------------------ operators of one tensor

static struct var widened(struct graph *g, struct var x)
{
    return op_cast(g, x, 4);
}

static struct var doubled(struct graph *g, struct var x)
{
    return op_multiply(g, x, x);
}

static struct var mean(struct graph *g, struct var x)
{
    return op_mean(g, x, 10);
}

static struct var largest(struct graph *g, struct var x)
{
    return op_max(g, x, 10);
}

static struct var clamped(struct graph *g, struct var x)
{
    return op_clamp(g, x, 2);
}

static struct var top_two(struct graph *g, struct var x)
{
    struct var indices, out = op_top(g, x, 20, &indices);
    var_drop(g, &indices);
    return out;
}

static struct var every_other_row(struct graph *g, struct var x)
{
    struct var numbers = graph_output(g, NULL, 5, 8), out = op_index_rows(g, x, 10, numbers);
    var_drop(g, &numbers);
    return out;
}

static struct var rows_of_mask(struct graph *g, struct var x)
{
    struct var mask = graph_output(g, NULL, 10, 1), out = op_masked_rows(g, x, mask, 10);
    var_drop(g, &mask);
    return out;
}

static struct var scattered(struct graph *g, struct var x)
{
    struct var mask = graph_output(g, NULL, 1000, 1), out = op_masked_scatter(g, x, mask);
    var_drop(g, &mask);
    return out;
}

static struct var less_the_largest(struct graph *g, struct var x)
{
    struct var high = op_max(g, x, 10), out = op_subtract(g, x, high);
    var_drop(g, &high);
    return out;
}

static struct var over_the_sum(struct graph *g, struct var x)
{
    struct var copy = op_copy(g, x), sum = op_sum_rows(g, copy, 10), out = op_divide(g, copy, sum);
    var_drop(g, &sum);
    return out;
}

static struct var by_itself(struct graph *g, struct var x)
{
    return op_product(g, x, x, 100, 100);
}

static struct var halves_joined(struct graph *g, struct var x)
{
    struct var first = op_first_half(g, x), second = op_second_half(g, x);
    struct var out = op_join(g, second, first);
    var_drop(g, &first);
    var_drop(g, &second);
    return out;
}

static struct var in_chunks(struct graph *g, struct var x)
{
    struct var whole = op_chunks(g, var_share(x), 2);
    struct var first = op_chunk(g, whole, 500), second = op_chunk(g, whole, 500);
    struct var out = op_multiply(g, first, second);
    var_drop(g, &first);
    var_drop(g, &second);
    var_drop(g, &whole);
    return out;
}

static struct var attended(struct graph *g, struct var x)
{
    struct attention_shape shape = {.tokens = 10, .heads = 2, .kv_heads = 2, .head_dim = 50};
    return op_attention(g, x, x, x, &shape);
}

static struct var exchanged(struct graph *g, struct var x)
{
    struct var received, in = op_exchange_in(g, x), out = op_exchange_out(g, in, &received);
    var_drop(g, &received);
    return out;
}

static struct var likelihood(struct graph *g, struct var x)
{
    struct var labels = graph_output(g, NULL, 10, 8), out = op_cross_entropy(g, x, labels);
    var_drop(g, &labels);
    return out;
}

static struct var losses_of_tokens(struct graph *g, struct var x)
{
    return op_token_loss(g, x, 10);
}

static struct var entropies(struct graph *g, struct var x)
{
    return op_chunked_entropy(g, x, 10);
}

static const struct {
    const char *name;
    struct var (*run)(struct graph *g, struct var x);
} operators[] = {
    {"cast", widened},
    {"multiply", doubled},
    {"scale", op_scale},
    {"divide", over_the_sum},
    {"power", op_power},
    {"rsqrt", op_rsqrt},
    {"tanh", op_tanh},
    {"sigmoid", op_sigmoid},
    {"negate", op_negate},
    {"clamp", clamped},
    {"activation", op_activation},
    {"mean", mean},
    {"max", largest},
    {"subtract", less_the_largest},
    {"top", top_two},
    {"softmax", op_softmax},
    {"slice", halves_joined},
    {"chunks", in_chunks},
    {"product", by_itself},
    {"attention", attended},
    {"exchange", exchanged},
    {"index", every_other_row},
    {"masked rows", rows_of_mask},
    {"masked scatter", scattered},
    {"cross entropy", likelihood},
    {"token loss", losses_of_tokens},
    {"chunked entropy", entropies},
};

// Behind one that keeps something: an operator that does not is the tail of its checkpoint.
static void forward_of(struct graph *g, struct var *out, struct var in, void *what)
{
    const int *i = what;
    struct var bent = op_tanh(g, in);
    *out = operators[*i].run(g, bent);
    var_drop(g, &bent);
}

// What is alive after a forward and a backward pass, in a checkpoint or not.
static uint64_t left_by(int number, bool checkpointed)
{
    struct stage s;
    struct graph *g = stage_up(&s);
    struct var in = leaf(g, 1000, 2), out;
    if (checkpointed)
        out = graph_checkpoint(g, in, forward_of, &number);
    else
        forward_of(g, &out, in, &number);
    var_drop(g, &in);
    struct var loss = op_mean(g, out, 1);
    var_drop(g, &out);
    graph_backward(g, loss);
    return s.machine.live_bytes;
}

TEST(all_that_an_operator_keeps_goes_in_its_backward_pass)
{
    for (int i = 0; i < COUNT_OF(operators); i++) {
        uint64_t plain = left_by(i, false), recomputed = left_by(i, true);
        if (plain || recomputed)
            test_failed(__FILE__, __LINE__, "%s leaves %d and %d bytes", operators[i].name,
                        (int)plain, (int)recomputed);
    }
}

// Of operators whose kernels bear the same number only the first would wait.
TEST(every_operator_loads_its_kernels_once)
{
    struct stage s;
    struct graph *g = stage_up(&s);
    struct var in = leaf(g, 1000, 2);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < COUNT_OF(operators); i++) {
            uint64_t known = s.machine.host_clock;
            machine_scratch(&s.machine, 512);
            struct var out = operators[i].run(g, in);
            // of rows that a mask picks the host waits for the count each time
            bool waits = round == 0 || strcmp(operators[i].name, "masked rows") == 0;
            if ((s.machine.host_clock > known) != waits)
                test_failed(__FILE__, __LINE__, "%s in round %d", operators[i].name, round);
            var_drop(g, &out);
        }
}

// ------------------------------------------------------------------ operators with parameters

static void add_parameter(struct graph *g, uint64_t rows, uint64_t columns)
{
    g->parameters[g->parameter_count++] =
        (struct parameter){.rows = rows, .columns = columns, .width = 2};
}

// A weight, its bias and a norm: each gradient has its parameter's size, and nothing else is left
// but cuBLAS's workspaces, one a thread, and cuBLASLt's.
TEST(parameters_get_gradients_of_their_size)
{
    enum { WEIGHT, BIAS, NORM, WORKSPACE = 4096, BLOCK = 512 };
    struct parameter parameters[3];
    struct stage s;
    struct graph *g = stage_up(&s);
    g->parameters = parameters;
    g->gemm_workspace_bytes = WORKSPACE;
    add_parameter(g, 64, 32);
    add_parameter(g, 64, 1);
    add_parameter(g, 64, 1);
    struct var in = leaf(g, UINT64_C(10) * 32, 2), out = op_linear(g, in, WEIGHT, BIAS);
    struct var normed = op_multiply_weight(g, NORM, out), loss = op_mean(g, normed, 1);
    var_drop(g, &in);
    var_drop(g, &out);
    var_drop(g, &normed);
    graph_backward(g, loss);
    CHECK_U64(parameters[WEIGHT].gradient->bytes, UINT64_C(64) * 32 * 2);
    CHECK_U64(parameters[BIAS].gradient->bytes, 128);
    CHECK_U64(parameters[NORM].gradient->bytes, 128);
    uint64_t workspaces = MIB + UINT64_C(2) * WORKSPACE;
    CHECK_U64(s.machine.live_bytes, workspaces + UINT64_C(64) * 32 * 2 + UINT64_C(2) * BLOCK);
    CHECK(parameters[NORM].ready < parameters[WEIGHT].ready);
}

// From `from` on: how many blocks of these bytes are alive at once.
static int most_alive(const struct stage *s, ptrdiff_t from, uint64_t bytes)
{
    const struct trace *t = &s->trace;
    bool *counts = NEW(s->machine.arena, bool, t->count);
    int alive = 0, most = 0;
    for (ptrdiff_t i = 0; i < t->count; i++) {
        const struct event *e = &t->events[i];
        if (e->kind == EVENT_ALLOC) {
            counts[e->block] = e->bytes == bytes;
            alive += counts[e->block];
        } else if (e->kind == EVENT_FREE) {
            alive -= counts[e->block];
        }
        most = i >= from && alive > most ? alive : most;
    }
    return most;
}

static int gradients_at_once(struct stage *s)
{
    enum { WORDS = 60, SIDE = 50 };
    struct graph *g = &s->graph;
    ptrdiff_t from = s->trace.count;
    struct var ids = {NULL, NO_NODE, 8, 10}, in = op_embedding(g, 0, ids);
    struct var bent = op_tanh(g, in), out = op_linear(g, bent, 0, -1), loss = op_mean(g, out, 1);
    var_drop(g, &in);
    var_drop(g, &bent);
    var_drop(g, &out);
    graph_backward(g, loss);
    return most_alive(s, from, UINT64_C(2) * WORDS * SIDE);
}

// The head's, the embedding's and their sum (the first is a view), beside what was there.
TEST(a_tied_weight_gathers_its_gradient_beside_that_of_earlier_passes)
{
    struct parameter parameters[1];
    struct stage s;
    struct graph *g = stage_up(&s);
    g->parameters = parameters;
    add_parameter(g, 60, 50);
    parameters[0].tied = true;
    CHECK_U64((uint64_t)gradients_at_once(&s), 3);
    CHECK_U64((uint64_t)gradients_at_once(&s), 4);
    CHECK_U64(s.machine.live_bytes, 6144);
}

static void head_of(struct graph *g, struct var *out, struct var in, void *what)
{
    (void)what;
    *out = op_linear(g, in, 0, -1);
}

// In a context a weight is cast once, and again in each recomputation, a context of its own.
TEST(autocast_keeps_the_cast_of_a_weight_for_all_its_uses)
{
    enum { SIDE = 64, CAST = 2 * SIDE * SIDE };
    struct parameter parameters[1];
    struct stage s;
    struct graph *g = stage_up(&s);
    g->parameters = parameters;
    g->autocast = true;
    add_parameter(g, SIDE, SIDE);
    parameters[0].width = 4;
    uint64_t casts[2] = {0};
    struct var in = leaf(g, UINT64_C(2) * SIDE, 2), a = graph_checkpoint(g, in, head_of, NULL);
    struct var b = graph_checkpoint(g, in, head_of, NULL), sum = op_add(g, a, b);
    struct var loss = op_mean(g, sum, 1);
    var_drop(g, &in);
    var_drop(g, &a);
    var_drop(g, &b);
    var_drop(g, &sum);
    graph_end_autocast(g);
    ptrdiff_t forward = s.trace.count;
    graph_backward(g, loss);
    for (ptrdiff_t i = 0; i < s.trace.count; i++)
        if (s.trace.events[i].kind == EVENT_ALLOC && s.trace.events[i].bytes == CAST &&
            s.trace.events[i].tag == MEMORY_PARAMETERS)
            casts[i >= forward]++;
    CHECK_U64(casts[0], 1);
    CHECK_U64(casts[1], 2);
    CHECK_U64(s.machine.live_bytes, UINT64_C(4) * SIDE * SIDE);
}

// Two tiles of tokens by two of words, from fp32: backward, the sums in fp32 are the gradients, and
// of each part in bf16 the last one lives until the next is there.
TEST(a_fused_head_makes_its_logits_again_in_tiles)
{
    enum { TOKENS = 5000, COLUMNS = 8, WORDS = 40000, TILE = 4096 * 32768 * 2 };
    struct parameter parameters[1];
    struct stage s;
    struct graph *g = stage_up(&s);
    g->parameters = parameters;
    g->autocast = true;
    add_parameter(g, WORDS, COLUMNS);
    parameters[0].width = 4;
    struct var in = leaf(g, UINT64_C(1) * TOKENS * COLUMNS, 4);
    struct var targets = graph_output(g, NULL, TOKENS, 8);
    struct var values = op_log_probs(g, in, 0, op_parameter(g, 0), targets);
    struct var loss = op_sum_rows(g, values, 1);
    var_drop(g, &in);
    var_drop(g, &targets);
    var_drop(g, &values);
    ptrdiff_t from = s.trace.count;
    graph_backward(g, loss);
    enum { PART = 32768 * COLUMNS * 2, REST = (WORDS - 32768) * COLUMNS * 2 };
    static const struct allocation wanted[] = {
        {4, MEMORY_WORKING},
        {UINT64_C(4) * TOKENS * COLUMNS, MEMORY_WORKING},
        {UINT64_C(4) * WORDS * COLUMNS, MEMORY_GRADIENTS},
        {TILE, MEMORY_LOGITS},
        {UINT64_C(4096) * COLUMNS * 2, MEMORY_LOGITS},
        {PART, MEMORY_LOGITS},
        {REST, MEMORY_LOGITS},
        {UINT64_C(2) * (TOKENS - 4096) * COLUMNS, MEMORY_LOGITS},
        {PART, MEMORY_LOGITS},
        {REST, MEMORY_LOGITS},
    };
    check_allocations(&s.trace, from, wanted, COUNT_OF(wanted));
    CHECK_U64(parameters[0].gradient->bytes, UINT64_C(4) * WORDS * COLUMNS);
    CHECK_U64(s.machine.live_bytes, UINT64_C(4) * WORDS * COLUMNS);
}

// ------------------------------------------------------------------ tensor parallel

// Four ranks: of 40 outputs and of 40 inputs each has 10. The sum of outputs is a new tensor, and
// so is that of the input's gradients.
TEST(cut_linear_layers_sum_outputs_and_gradients)
{
    enum { ROWS = 100, HIDDEN = 256, PART = 10 };
    struct stage s;
    struct parameter parameters[2] = {0};
    struct graph *g = stage_up(&s);
    g->parameters = parameters;
    g->tensor_ranks = 4;
    g->kind = MEMORY_WORKING;
    add_parameter(g, PART, HIDDEN);
    add_parameter(g, HIDDEN, PART);
    parameters[0].cut = CUT_OUTPUTS;
    parameters[1].cut = CUT_INPUTS;
    struct var in = leaf(g, (uint64_t)ROWS * HIDDEN, 2), inner = op_linear(g, in, 0, -1);
    CHECK_U64(inner.elements, (uint64_t)ROWS * PART);
    ptrdiff_t from = s.trace.count;
    struct var out = op_linear(g, inner, 1, -1);
    static const struct allocation forward[] = {{UINT64_C(2) * ROWS * HIDDEN, MEMORY_WORKING},
                                                {UINT64_C(2) * ROWS * HIDDEN, MEMORY_WORKING}};
    check_allocations(&s.trace, from, forward, COUNT_OF(forward));
    struct var loss = op_sum_rows(g, out, 1);
    var_drop(g, &in);
    var_drop(g, &inner);
    var_drop(g, &out);
    from = s.trace.count;
    graph_backward(g, loss);
    CHECK_U64(parameters[0].gradient->bytes, UINT64_C(2) * PART * HIDDEN);
    CHECK_U64(s.machine.live_bytes, UINT64_C(2) * 2 * PART * HIDDEN);
    uint64_t sums = 0;
    for (ptrdiff_t i = from; i < s.trace.count; i++)
        sums += s.trace.events[i].kind == EVENT_ALLOC &&
                s.trace.events[i].bytes == UINT64_C(2) * ROWS * HIDDEN;
    CHECK_U64(sums, 2); // of the product, and of all ranks
}

// The head's gradient is this rank's part of a whole one, the embedding's stays whole until they
// meet.
TEST(a_cut_embedding_has_gradients_of_all_words_until_they_meet_the_heads)
{
    enum { WORDS = 128, HIDDEN = 128, TOKENS = 16, WHOLE = 4 * WORDS * HIDDEN };
    struct stage s;
    struct parameter parameters[1] = {0};
    struct graph *g = stage_up(&s);
    g->parameters = parameters;
    g->tensor_ranks = 4;
    g->kind = MEMORY_WORKING;
    add_parameter(g, WORDS / 4, HIDDEN);
    parameters[0].width = 4;
    parameters[0].cut = CUT_WORDS;
    struct var ids = graph_output(g, NULL, TOKENS, 8), rows = op_embedding(g, 0, ids);
    struct var weight = op_whole_weight(g, 0);
    CHECK_U64(weight.elements, (uint64_t)WORDS * HIDDEN);
    struct var both = op_product(g, rows, weight, (uint64_t)TOKENS * WORDS, HIDDEN);
    struct var loss = op_sum_rows(g, both, 1);
    var_drop(g, &ids);
    var_drop(g, &rows);
    var_drop(g, &weight);
    var_drop(g, &both);
    ptrdiff_t from = s.trace.count;
    graph_backward(g, loss);
    uint64_t whole = 0, parts = 0;
    for (ptrdiff_t i = from; i < s.trace.count; i++) {
        const struct event *e = &s.trace.events[i];
        whole += e->kind == EVENT_ALLOC && e->bytes == WHOLE;
        parts += e->kind == EVENT_ALLOC && e->bytes == WHOLE / 4;
    }
    CHECK_U64(whole, 2); // the product's, of which a part is kept, and the embedding's
    CHECK_U64(parts, 3); // of each, and their sum
    CHECK_U64(parameters[0].gradient->bytes, WHOLE / 4);
    CHECK_U64(s.machine.live_bytes, WHOLE / 4);
}

// ------------------------------------------------------------------ checkpoints

static void bent_mean(struct graph *g, struct var *out, struct var in, void *what)
{
    (void)what;
    struct var bent = op_tanh(g, in), mean = op_mean(g, bent, 10);
    var_drop(g, &bent);
    *out = op_cast(g, mean, 4);
    var_drop(g, &mean);
}

// Cast and mean keep nothing: they come before the recomputation, which stops at tanh.
TEST(the_tail_of_a_checkpoint_runs_before_its_recomputation)
{
    struct stage s;
    struct graph *g = stage_up(&s);
    struct var in = leaf(g, 1000, 2), out = graph_checkpoint(g, in, bent_mean, NULL);
    struct var loss = op_mean(g, out, 1);
    var_drop(g, &out);
    ptrdiff_t from = s.trace.count;
    graph_backward(g, loss);
    static const struct allocation wanted[] = {
        {4, MEMORY_WORKING},    {40, MEMORY_WORKING}, {20, MEMORY_WORKING},
        {2000, MEMORY_WORKING}, {2000, MEMORY_SAVED}, {2000, MEMORY_WORKING},
    };
    check_allocations(&s.trace, from, wanted, COUNT_OF(wanted));
}
