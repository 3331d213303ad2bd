// Simulating, then replaying step by step: peaks are reset before each step, as a measurement does.
#include "core/step/predict.h"

#include "core/base/num.h"
#include "core/replay/moment.h"
#include "core/step/trainer.h"
#include "core/step/zero.h"

// Measured at the end of 113 runs on an H200: 240 MiB beyond the bare context for one GPU, 310 to
// 320 with FSDP, and NCCL's 558 MiB more with DDP on one GPU. Collectives of more than two ranks
// took 688 MB on A100s (nccl#964); not measured here.
#define MODULES_SINGLE_BYTES  (240 * MIB)
#define MODULES_SHARDED_BYTES (320 * MIB)
#define NCCL_ALONE_BYTES      (558 * MIB)
#define NCCL_BYTES            UINT64_C(688000000)

// With offload, host memory holds fp32 shards, gradients and two moments (not measured).
enum { HOST_BYTES_PER_PARAMETER = 16 };

struct outside outside_of(const struct plan *plan)
{
    bool several = plan_ranks(plan) > 1;
    return (struct outside){plan->hardware.card.context.value,
                            several ? MODULES_SHARDED_BYTES : MODULES_SINGLE_BYTES,
                            several                          ? NCCL_BYTES
                            : plan->strategy == STRATEGY_DDP ? NCCL_ALONE_BYTES
                                                             : 0};
}

static uint64_t limit_of(const struct plan *plan, const struct outside *o)
{
    uint64_t taken = o->context_bytes + o->modules_bytes + o->nccl_bytes;
    uint64_t card = plan->hardware.card.memory.value;
    if (plan->limit_bytes)
        return plan->limit_bytes;
    return card > taken ? card - taken : 0;
}

static struct allocator_options options_of(const struct plan *plan, uint64_t limit_bytes)
{
    struct allocator_options o = allocator_options_default(plan->torch_minor);
    o.expandable = plan->expandable;
    o.limited = true;
    o.limit_bytes = limit_bytes;
    return o;
}

static struct step_peak peak_of(const struct allocator_stats *s)
{
    return (struct step_peak){s->allocated_bytes.peak, s->requested_bytes.peak,
                              s->reserved_bytes.peak, s->allocated_bytes.current, s->retries};
}

static void find_phase(struct prediction *p, const struct machine *m, ptrdiff_t event)
{
    for (ptrdiff_t i = 0; i < m->phase_count && m->phases[i].event <= event; i++) {
        p->phase = m->phases[i].phase;
        p->step = m->phases[i].step;
    }
}

// Replays once more up to the peak, or to where memory ran out, to see who is alive.
static bool look_at_peak(struct prediction *p, struct arena a, struct replay_request q,
                         ptrdiff_t event, struct error *e)
{
    struct replay_result r;
    q.stop_after = event + (p->fits ? 1 : 0);
    if (q.stop_after == 0)
        return true;
    if (!replay_run(&r, &a, &q, e))
        return false;
    moment_by_tag(r.allocator, p->by_kind, MEMORY_KINDS);
    p->reserved_there_bytes = r.stats.reserved_bytes.current;
    p->allocated_there_bytes = r.stats.allocated_bytes.current;
    return true;
}

static bool replay_steps(struct prediction *p, struct arena a, struct replay_request *q,
                         const ptrdiff_t *ends, struct replay_result *last)
{
    struct error e = {0};
    for (int i = 0; i < PREDICT_STEPS; i++) {
        struct arena scratch = a;
        q->stop_after = ends[i];
        if (!replay_run(last, &scratch, q, &e))
            return false;
        if (last->ooms)
            return true;
        p->steps[i] = peak_of(&last->stats);
        p->steps_done = i + 1;
    }
    return true;
}

bool predict(struct prediction *p, struct arena *a, const struct plan *plan, struct error *e)
{
    ptrdiff_t ends[PREDICT_STEPS];
    uint16_t stream;
    *p = (struct prediction){.trace = trace_in(a), .outside = outside_of(plan)};
    for (uint64_t i = 0; i < MACHINE_STREAMS; i++)
        if (!trace_stream(&stream, &p->trace, i, e))
            return false;
    struct machine machine = machine_with(a, &p->trace);
    struct trainer *trainer = NEW(a, struct trainer, 1);
    machine_phase(&machine, PHASE_BUILD);
    trainer_build(trainer, plan, &machine);
    for (int i = 0; i < PREDICT_STEPS; i++) {
        machine_mark(&machine, EVENT_RESET_PEAKS);
        trainer_step(trainer);
        ends[i] = p->trace.count;
    }
    p->limit_bytes = limit_of(plan, &p->outside);
    struct replay_request q = {.trace = &p->trace, .options = options_of(plan, p->limit_bytes)};
    struct replay_result last;
    if (!replay_steps(p, *a, &q, ends, &last))
        return FAIL(e, BUG, STR_NONE, "the simulated history cannot be replayed");
    p->fits = last.ooms == 0;
    p->oom = last.oom;
    p->allocated_bytes = last.allocated.bytes;
    p->requested_bytes = last.requested.bytes;
    p->reserved_bytes = last.reserved.bytes;
    if (plan_is_zero(plan))
        p->host_bytes = sat_mul(zero_host_bytes(plan), plan->hardware.gpus_per_node);
    else if (plan->offload)
        p->host_bytes = sat_mul(u64_divide_up(plan->parameters.total, plan_ranks(plan)),
                                HOST_BYTES_PER_PARAMETER * plan->hardware.gpus_per_node);
    ptrdiff_t event = p->fits ? last.allocated.event : last.oom_event;
    find_phase(p, &machine, event);
    return look_at_peak(p, *a, q, event, e);
}
