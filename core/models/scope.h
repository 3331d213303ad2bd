// Python's lifetimes, so that a forward reads as its modeling file. A value without a name goes
// when the call that took it returns; a name keeps its value until it is assigned again, deleted,
// or its function ends, when names go in the order in which they came up. Only what Python drops
// early is said.
//
// C does not say in which order arguments are evaluated: of a call's arguments at most one may be a
// call that runs an operator; what Python computes before it is put into a variable first, and
// still goes with the call that takes it.
#ifndef FATHOM_MODELS_SCOPE_H
#define FATHOM_MODELS_SCOPE_H

#include "core/autograd/graph.h"

enum { SCOPE_NAMES = 24 };

// A function's local variables.
struct scope {
    struct graph *graph;
    struct var names[SCOPE_NAMES];
    int name_count;
};

struct scope scope_in(struct graph *g);

// A new name for a value, which may have others.
struct var local(struct scope *s, struct var value);

// Another value for a name that local gave out. A recomputation that stops before it leaves the
// name its old value, as an exception does.
void assign(struct scope *s, struct var *name, struct var value);

// What Python says as del, or by another value that is not modelled.
void forget(struct scope *s, struct var *name);

// The function is over: its names go, but for what it returns, which has no name then.
struct var returns(struct scope *s, struct var value);
void ends(struct scope *s);

// ------------------------------------------------------------------ values without a name

// v, of which one reference is nobody's yet.
struct var unnamed(struct var v);

// The same tensor once more.
struct var same(struct var v);

// v with a reference that is the caller's to drop, for what outlives its function.
struct var taken(struct var v);

// v for a call that leaves it to its caller, whoever that is.
struct var borrowed(struct var v);

// The result of a call that took these, of which those without a name go.
struct var after(struct graph *g, struct var result, struct var x);
struct var after_two(struct graph *g, struct var result, struct var a, struct var b);

#endif
