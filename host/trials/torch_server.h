// The torch worker's fork server: torch is imported once, and each trial is a fork of it.
#ifndef FATHOM_HOST_TRIALS_TORCH_SERVER_H
#define FATHOM_HOST_TRIALS_TORCH_SERVER_H

#include "core/probe/options.h"
#include "host/system/interrupts.h"
#include "host/trials/keeper.h"

struct torch_server {
    struct keeper keeper;
    struct str folder;                   // of its own, for what must not outlive it
    struct str socket;                   // in it; empty where none runs
    struct str torch;                    // "2.11"
    const struct interrupts *interrupts; // end the wait for it
};

// Waits until it answers. `request` needs the cell's settings and the shipped folder only.
bool torch_server_start(struct torch_server *s, struct arena *a,
                        const struct trial_request *request, const struct probe_options *o,
                        struct error *e) MUST_USE;
void torch_server_end(struct torch_server *s, struct arena scratch);

#endif
