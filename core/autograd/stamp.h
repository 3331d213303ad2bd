// Layers that are alike ask the same of the machine. What a checkpointed call of one did is noted,
// and those that follow are played from the notes: the same allocations, frees and kernels in the
// same order, without the operators that ask for them. Notes hold where all that decides what a
// layer does is the same: the shapes of its parameters, its input, the state of the graph. They are
// thrown away where something was done that they cannot say: another stream was waited for, a
// kernel loaded, something left behind that is neither the result nor a parameter's gradient.
#ifndef FATHOM_AUTOGRAD_STAMP_H
#define FATHOM_AUTOGRAD_STAMP_H

#include "core/autograd/machine.h"

struct frame;
struct graph;
struct node;
struct operation;
struct outcome;
struct stamp;
struct stamps;
struct var;

// Which layers a checkpointed call is like, and where its parameters are.
struct kin {
    int like;  // one more than the first layer that it is like; 0: nobody knows
    int first; // parameter
    int count;
};

// The notes to play this call from, or to fill while it is made; NULL: neither.
struct stamp *stamp_of_forward(struct graph *g, const struct frame *f, struct var in);
struct stamp *stamp_of_backward(struct graph *g, const struct frame *f, const struct node *n);
bool stamp_is_made(const struct stamp *s); // of NULL: no

// Around a call whose notes are to be filled; of NULL: nothing.
void stamp_begin_forward(struct graph *g, struct stamp *s, const struct frame *f);
void stamp_end_forward(struct graph *g, struct stamp *s, const struct frame *f, struct var out);
void stamp_begin_backward(struct graph *g, struct stamp *s, const struct frame *f,
                          const struct node *n);
void stamp_end_backward(struct graph *g, struct stamp *s, const struct frame *f,
                        const struct outcome *result);

struct var stamp_play_forward(struct graph *g, const struct stamp *s, struct frame *f);
struct outcome stamp_play_backward(struct graph *g, const struct stamp *s, struct frame *f,
                                   const struct node *n);

// What strategies do meanwhile is not noted: it is done anew. All are told what comes first.
struct stamp *stamp_pause_to_give(struct graph *g, int parameter, const struct outcome *o);
struct stamp *stamp_pause_to_tell(struct graph *g, int parameter);
struct stamp *stamp_pause_for_module(struct graph *g, int parameter,
                                     const struct operation *operation, int moment);
struct stamp *stamp_pause_for_adapter(struct graph *g, int parameter, bool done);
void stamp_resume(struct graph *g, struct stamp *s);

// The same of a weight that a node keeps and lets go, as its strategy may have gathered another by
// then.
void stamp_kept(struct graph *g, const struct storage *weight);
struct stamp *stamp_pause_to_let_go(struct graph *g, const struct storage *weight);

// The same of what is kept in host memory: a layer's input is brought back, and its first node that
// asked for something kept is done.
struct stamp *stamp_pause_to_bring(struct graph *g);
void stamp_resume_with(struct graph *g, struct stamp *s, struct storage *input);
struct stamp *stamp_pause_to_settle(struct graph *g);

// By the machine, while notes are filled.
void stamp_took(struct stamp *s, struct storage *made, enum memory_kind kind);
void stamp_dropped(struct stamp *s, const struct storage *shared); // it is still there
void stamp_freed(struct stamp *s, const struct storage *gone);
void stamp_launched(struct stamp *s, uint64_t count);
void stamp_spoil(struct stamp *s); // NULL passes

// The host waits for a clock of the machine: noted where it is that of the work so far.
struct stamp *stamp_pause_to_synchronize(struct machine *m, uint64_t clock);
void stamp_resume_on(struct machine *m, struct stamp *s);

#endif
