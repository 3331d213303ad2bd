// Losses over logits. What makes logits by itself has files of its own: liger.c, fused_policy.c,
// and policy_entropy.c, which cuts them up.
#include "core/ops/operation.h"

static void logits_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t kept = n->saved_count && n->saved[0] ? n->saved[0]->bytes : 0;
    machine_move(g->machine, n->input_bytes[0] + gradient_bytes(n) + kept);
    out[0].gradient = machine_take(g->machine, n->input_bytes[0], MEMORY_LOGITS);
}

// ------------------------------------------------------------------ cross entropy

// Reads both twice: for the sum, and for the result.
static void log_softmax_backward(struct graph *g, struct node *n, struct outcome *out)
{
    logits_backward(g, n, out);
    machine_move_more(g->machine, 2 * n->input_bytes[0]);
}

static const struct operation log_softmax = {KERNELS_LOG_SOFTMAX, log_softmax_backward};

struct var op_log_softmax(struct graph *g, struct var logits)
{
    struct node *n = graph_add(g, &log_softmax);
    struct var out = op_unary(g, n, logits, logits.elements, logits.width);
    reads_too(g, logits); // for the largest, for the sum, and for the result
    reads_too(g, logits);
    graph_keep(g, n, out.storage);
    return out;
}

static const struct operation likelihood = {KERNELS_LIKELIHOOD, logits_backward};

struct var op_likelihood(struct graph *g, struct var log_probabilities, struct var labels)
{
    struct node *n = graph_add(g, &likelihood);
    graph_keep(g, n, labels.storage);
    struct var loss = graph_output(g, n, 1, 4), total_weight = graph_output(g, NULL, 1, 4);
    graph_keep(g, n, total_weight.storage);
    node_input(n, 0, log_probabilities);
    var_drop(g, &total_weight);
    return loss;
}

struct var op_cross_entropy(struct graph *g, struct var logits, struct var labels)
{
    struct var log_probabilities = op_log_softmax(g, logits);
    struct var loss = op_likelihood(g, log_probabilities, labels);
    var_drop(g, &log_probabilities);
    return loss;
}

// ------------------------------------------------------------------ losses of policies

// autograd's CopySlices (torch/csrc/autograd/functions/tensor.cpp): the gradient is copied into the
// base's layout, the view's part cloned, divided, and written back; recorded in v2.
static void divide_view_backward(struct graph *g, struct node *n, struct outcome *out)
{
    uint64_t bytes = n->input_bytes[0];
    for (int i = 0; i < 4; i++)
        machine_move(g->machine, 2 * bytes);
    struct storage *result = machine_take(g->machine, bytes, MEMORY_LOGITS);
    machine_drop(g->machine, n->gradient);
    n->gradient = NULL;
    out[0].gradient = machine_take(g->machine, bytes, MEMORY_LOGITS);
    struct storage *clone = machine_take(g->machine, bytes, MEMORY_LOGITS);
    struct storage *quotient = machine_take(g->machine, bytes, MEMORY_LOGITS);
    machine_drop(g->machine, clone);
    machine_drop(g->machine, quotient);
    machine_drop(g->machine, result);
}

static const struct operation divide_view = {KERNELS_DIVIDE_VIEW, divide_view_backward};

struct var op_divide_view(struct graph *g, struct var x)
{
    moves(g, 2 * var_bytes(x));
    return node_in_place(g, graph_add(g, &divide_view), x);
}

static const struct operation token_loss = {KERNELS_TOKEN_LOSS, logits_backward};

struct var op_token_loss(struct graph *g, struct var logits, uint64_t tokens)
{
    struct node *n = graph_add(g, &token_loss);
    graph_keep(g, n, logits.storage);
    struct var out = op_unary(g, n, logits, tokens, 4);
    struct var log_sum = graph_output(g, NULL, tokens, 4);
    graph_keep(g, n, log_sum.storage);
    var_drop(g, &log_sum);
    return out;
}
