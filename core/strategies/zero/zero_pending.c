// See zero_pending.h.
#include "core/strategies/zero/zero_pending.h"

static void forget_oldest(struct pending *p)
{
    p->count--;
    for (int i = 0; i < p->count; i++)
        p->ends[i] = p->ends[i + 1];
}

void pending_limit(struct pending *p, struct machine *m)
{
    while (p->count && machine_is_done(m, p->ends[0]))
        forget_oldest(p);
    if (p->count < MOST_PENDING)
        return;
    machine_await_moment(m, p->ends[0]);
    forget_oldest(p);
}

void pending_add(struct pending *p, struct stream_moment end)
{
    p->ends[p->count++] = end;
}

// What another stream read comes back when that is over; a weight that a layer keeps for its
// backward pass was marked when its module let it go, and comes back late all the same
// (partition_parameters.py, free_param: record_stream). What is on its way from and to the host,
// tiles and checkpoints in host memory are an exception: ALST's long contexts took what they would
// without waiting (NVML's figures, tests/runs/alst_h100.jsonl).
void zero3_drop(struct trainer *t, struct storage *s, uint16_t stream)
{
    const struct job *p = t->job;
    bool to_host = p->offload == OFFLOAD_ALL || (p->offload && stream != STREAM_COMPUTE);
    bool waits = !to_host && !p->tiled_mlp && !p->checkpoint_offload;
    bool crosses = s && s->stream != stream && waits;
    if (crosses && stream == STREAM_COMPUTE)
        s->recorded = true;
    if (crosses && stream != STREAM_COMPUTE)
        machine_drop_after(t->machine, s, stream);
    else
        machine_drop(t->machine, s);
}
