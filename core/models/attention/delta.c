// Gated delta nets, the linear attention of Qwen3-Next and Qwen3.5, as transformers 5.17 runs them
// where flash-linear-attention and causal-conv1d are not installed (modeling_qwen3_next.py,
// torch_chunk_gated_delta_rule): a short convolution, chunks of 64 tokens that are solved at once,
// and a state that goes from chunk to chunk, all of it in fp32.
#include "core/ops/delta.h"
#include "core/models/forward.h"

enum { CHUNK_TOKENS = 64 };

static struct var solved(struct graph *g, struct var systems, struct var b)
{
    return unnamed(op_solve(g, systems, b)); // both have names
}

// Autocast multiplies in bf16.
static struct var matrix_product(struct graph *g, struct var a, struct var b, uint64_t elements,
                                 uint64_t depth)
{
    struct var left = cast(g, a, g->autocast ? 2 : a.width);
    struct var right = cast(g, b, g->autocast ? 2 : b.width);
    return product(g, left, right, elements, depth);
}

// What the rule is given, a value for each value head.
struct rule {
    struct var query, key, value, decay, beta;
};

// ------------------------------------------------------------------ the rule

// A tensor over all chunks, and one chunk of it.
static struct var part(struct graph *g, struct var x, uint64_t chunk_count)
{
    return slice(g, x, x.elements / chunk_count);
}

// Each row divided by its length.
static struct var unit_length(struct graph *g, struct var x, uint64_t rows)
{
    struct var squares = sum_rows(g, multiply(g, x, x), rows);
    return multiply(g, x, rsqrt(g, add_constant(g, squares)));
}

// In fp32, normed and padded, be it by nothing. Names are those of the caller's function.
static void widen(struct scope *f, struct rule *r, uint64_t rows)
{
    struct graph *g = f->graph;
    struct var *all[] = {&r->query, &r->key, &r->value, &r->beta, &r->decay};
    for (int i = 0; i < COUNT_OF(all); i++)
        *all[i] = local(f, cast(g, borrowed(*all[i]), 4));
    assign(f, &r->query, unit_length(g, r->query, rows));
    assign(f, &r->key, unit_length(g, r->key, rows));
    assign(f, &r->query, scale(g, r->query));
    for (int i = 0; i < COUNT_OF(all); i++)
        assign(f, all[i], scale(g, *all[i])); // padded: a copy, and one on the way back
}

// What every chunk needs, computed for all of them at once.
struct chunked {
    uint64_t count;
    struct var query, key, attention, values, keys, decay;
};

static void prepare(struct scope *f, struct rule *r, struct chunked *c)
{
    struct graph *g = f->graph;
    struct var v_beta = local(f, multiply(g, r->value, r->beta));
    struct var k_beta = local(f, multiply(g, r->key, r->beta));
    struct var upper = local(f, constant(g, (uint64_t)CHUNK_TOKENS * CHUNK_TOKENS, 1));
    struct var sums = local(f, scale(g, r->decay));
    struct var pairs = local(f, unnamed(op_differences(g, sums, CHUNK_TOKENS)));
    assign(f, &pairs, masked(g, pairs, upper));
    assign(f, &pairs, sigmoid(g, pairs)); // exp keeps its result too
    uint64_t key_dim = r->key.elements / r->decay.elements;
    struct var systems = matrix_product(g, k_beta, r->key, pairs.elements, key_dim);
    systems = local(f, multiply(g, systems, pairs));
    struct var scores = matrix_product(g, r->query, r->key, pairs.elements, key_dim);
    c->attention = local(f, multiply(g, scores, pairs));
    struct var decayed = local(f, multiply(g, k_beta, sigmoid(g, sums)));
    c->values = local(f, solved(g, systems, v_beta));
    c->keys = local(f, solved(g, systems, decayed));
    c->query = r->query;
    c->key = r->key;
    c->decay = sums;
}

// The state after a chunk. Behind the last one nothing asks for it: torch lets its nodes go.
static struct var next_state(struct graph *g, const struct chunked *c, struct var state,
                             struct var fresh, bool is_last)
{
    if (is_last) {
        struct var kept = constant(g, state.elements, 4), added = constant(g, state.elements, 4);
        return after_two(g, constant(g, state.elements, 4), kept, added);
    }
    struct var kept = multiply(g, state, part(g, c->decay, c->count));
    struct var key = part(g, c->key, c->count);
    return add(g, kept, matrix_product(g, key, fresh, state.elements, CHUNK_TOKENS));
}

// What a chunk adds to the output.
static struct var read_chunk(struct scope *f, const struct chunked *c, struct var state,
                             struct var *fresh)
{
    struct graph *g = f->graph;
    uint64_t values = c->values.elements / c->count;
    uint64_t key_dim = state.elements * CHUNK_TOKENS / values;
    struct var own = part(g, c->values, c->count), keys = part(g, c->keys, c->count);
    struct var known = matrix_product(g, keys, state, values, key_dim);
    *fresh = local(f, subtract(g, own, known));
    struct var query = part(g, c->query, c->count);
    struct var before = local(f, matrix_product(g, query, state, values, key_dim));
    struct var scores = part(g, c->attention, c->count);
    return add(g, before, matrix_product(g, scores, *fresh, values, CHUNK_TOKENS));
}

static struct var delta_rule(struct graph *g, struct rule r, const struct model *m)
{
    struct scope f = scope_in(g);
    uint64_t rows = r.decay.elements, tokens = rows / m->delta.value_heads;
    uint32_t width = r.query.width;
    struct chunked c = {.count = (tokens + CHUNK_TOKENS - 1) / CHUNK_TOKENS};
    widen(&f, &r, rows);
    prepare(&f, &r, &c);
    uint64_t heads = m->delta.value_heads;
    struct var state =
        local(&f, constant(g, heads * m->delta.key_head_dim * m->delta.value_head_dim, 4));
    struct var out = constant(g, c.values.elements, 4);
    assign(&f, &r.query, multiply(g, r.query, sigmoid(g, c.decay)));
    assign(&f, &r.key, multiply(g, r.key, sigmoid(g, subtract(g, c.decay, c.decay))));
    c.query = r.query;
    c.key = r.key;
    c.decay = local(&f, sigmoid(g, part(g, c.decay, CHUNK_TOKENS)));
    for (uint64_t i = 0; i < c.count; i++) {
        struct scope chunk = scope_in(g);
        struct var fresh, read = read_chunk(&chunk, &c, state, &fresh);
        out = write_into(g, out, read);
        assign(&f, &state, next_state(g, &c, state, fresh, i + 1 == c.count));
        ends(&chunk);
    }
    out = copy(g, out); // into rows
    return returns(&f, cast(g, out, width));
}

// ------------------------------------------------------------------ the module

// RMSNormGated: the norm's result times an activated gate, in fp32.
static struct var gated_norm(struct graph *g, struct var x, struct var gate, int weight)
{
    struct scope f = scope_in(g);
    uint64_t rows = x.elements / g->parameters[weight].rows;
    struct var hidden = local(&f, cast(g, x, 4));
    struct var variance = local(&f, mean(g, power(g, hidden), rows));
    assign(&f, &hidden, multiply(g, hidden, rsqrt(g, add_constant(g, variance))));
    assign(&f, &hidden, multiply_weight(g, weight, cast(g, hidden, x.width)));
    assign(&f, &hidden, multiply(g, hidden, activation(g, cast(g, gate, 4))));
    return returns(&f, cast(g, hidden, x.width));
}

// Projections: Qwen3.5's are one by one, Qwen3-Next's are interleaved and told apart by copies.
struct projected {
    struct var mixed, z, b, a;
};

static struct projected project_delta(struct scope *f, struct var x,
                                      const struct layer_parameters *p, const struct model *m)
{
    struct graph *g = f->graph;
    struct projected r;
    if (p->delta_qkvz < 0) {
        r.mixed = local(f, linear(g, x, p->delta_qkv, -1));
        r.z = local(f, linear(g, x, p->delta_z, -1));
        r.b = local(f, linear(g, x, p->delta_b, -1));
        r.a = local(f, linear(g, x, p->delta_a, -1));
        return r;
    }
    uint64_t tokens = x.elements / m->hidden, keys = m->delta.key_heads * m->delta.key_head_dim;
    uint64_t values = tokens * m->delta.value_heads * m->delta.value_head_dim;
    struct var all = local(f, chunks(g, linear(g, x, p->delta_qkvz, -1), 4));
    struct var both = local(f, chunks(g, linear(g, x, p->delta_ba, -1), 2));
    struct var query = chunk(g, all, tokens * keys), key = chunk(g, all, tokens * keys);
    struct var value = local(f, copy(g, chunk(g, all, values)));
    r.z = local(f, copy(g, chunk(g, all, values)));
    r.b = local(f, copy(g, chunk(g, both, both.elements / 2)));
    r.a = local(f, copy(g, chunk(g, both, both.elements / 2)));
    query = local(f, copy(g, query));
    key = local(f, copy(g, key));
    struct var first = join(g, query, key);
    r.mixed = local(f, join(g, first, value));
    return r;
}

// g = -exp(A_log) * softplus(a + dt_bias), a value for each head.
static struct var decay_of(struct graph *g, struct var a, const struct layer_parameters *p)
{
    struct var rate = negate(g, sigmoid(g, cast(g, op_parameter(g, p->delta_rate), 4)));
    struct var wide = cast(g, a, 4);
    struct var shifted = after(g, op_add_shift(g, wide, p->delta_shift), wide);
    return multiply_row(g, activation(g, shifted), rate);
}

struct var delta_net(struct graph *g, struct var x, const struct layer_call *call)
{
    const struct layer_parameters *p = &call->trainer->layers[call->layer];
    const struct model *m = &call->trainer->job->model;
    uint64_t tokens = x.elements / m->hidden, keys = m->delta.key_heads * m->delta.key_head_dim;
    uint64_t each = m->delta.value_heads * m->delta.key_head_dim * tokens;
    struct scope f = scope_in(g);
    struct projected in = project_delta(&f, x, p, m);
    uint64_t wide = in.mixed.elements;
    struct var turned = unnamed(op_convolution(g, in.mixed, p->delta_conv));
    struct var cut = slice(g, turned, wide);
    assign(&f, &in.mixed, activation(g, cut));
    struct var all = local(&f, chunks(g, in.mixed, 3));
    struct rule r = {.query = local(&f, chunk(g, all, tokens * keys))};
    r.key = local(&f, chunk(g, all, tokens * keys));
    r.value = local(&f, chunk(g, all, wide - 2 * tokens * keys));
    r.beta = local(&f, sigmoid(g, in.b));
    r.decay = local(&f, decay_of(g, in.a, p));
    assign(&f, &r.query, repeat(g, r.query, each));
    assign(&f, &r.key, repeat(g, r.key, each));
    struct var out = local(&f, delta_rule(g, r, m));
    assign(&f, &out, gated_norm(g, out, in.z, p->delta_norm));
    return returns(&f, linear(g, out, p->delta_out, -1));
}
