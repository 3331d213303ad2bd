// What lives on the card beside torch's allocator, and what that leaves to it.
#include "core/predict/predict.h"
#include "core/recipes/run.h"
#include "core/strategies/strategies.h"

// Measured at the end of 113 runs on an H200: 240 MiB beyond the bare context for one GPU, 310 to
// 320 with FSDP, and NCCL's 558 MiB more with DDP on one GPU. Collectives of more than two ranks
// took 688 MB on A100s (nccl#964); not measured here.
// With Ulysses there are two more communicators, over the sequence group and across groups, and
// all_to_all keeps buffers for every peer. That, and what FlashAttention's and compiled kernels
// take under verl, is fitted to the 120 published capacities on A100
// (tests/runs/trinity_capacity_a100.json): they agree with 1.45 to 1.60 GiB outside torch, 3.32
// to 3.45 with sp 2, 4.55 to 5.1 with sp 4.
#define NCCL_PEER_BYTES       (640 * MIB)
#define MODULES_SINGLE_BYTES  (240 * MIB)
#define MODULES_SHARDED_BYTES (320 * MIB)
#define NCCL_ALONE_BYTES      (558 * MIB)
#define NCCL_BYTES            UINT64_C(688000000)

// Ranks of other nodes share one pool of network buffers, 64 MiB each way (nccl 2.30,
// transport/net.cc: 32 channels x NCCL_SHARED_STEPS x 128 KiB), whatever their number; only those
// of the node have buffers of their own.
static uint64_t near_peers(const struct job *job)
{
    return job->ulysses < job->hardware.gpus_per_node ? job->ulysses : job->hardware.gpus_per_node;
}

// Where a switch multiplies (NVLS), each communicator has 16 channels of 1 MiB (32 on
// Blackwell), both ways, for each rank of the node (nccl 2.30, transport/nvls.cc,
// ncclNvlsBufferSetup). Counted under DeepSpeed's Ulysses, where with it the published figures of
// NVML are met (tests/measured/alst.py); what is fitted to A100s has none.
static uint64_t multicast(const struct job *job)
{
    enum { HOPPER = 90, BLACKWELL = 100 };
    const uint64_t communicators = 3, ways = 2;
    int capability = job->hardware.card.capability;
    uint64_t channels = capability == HOPPER ? 16 : capability == BLACKWELL ? 32 : 0;
    return job_is_zero(job) ? communicators * channels * ways * near_peers(job) * MIB : 0;
}

struct outside outside_of(const struct job *job)
{
    const struct run_kind *run = run_kind_of(job->recipe);
    bool several = job_ranks(job) > 1 || run->always_distributed;
    bool alone = !several && strategy_kind_of(job->strategy)->talks_alone;
    struct outside o = {job->hardware.card.context.value,
                        (several ? MODULES_SHARDED_BYTES : MODULES_SINGLE_BYTES) +
                            run->kernels_bytes,
                        several ? NCCL_BYTES
                        : alone ? NCCL_ALONE_BYTES
                                : 0};
    if (job->ulysses > 1)
        o.nccl_bytes += 2 * NCCL_BYTES + (near_peers(job) - 1) * NCCL_PEER_BYTES + multicast(job);
    return o;
}

uint64_t outside_bytes(const struct outside *o)
{
    return o->context_bytes + o->modules_bytes + o->nccl_bytes;
}

uint64_t limit_of(const struct job *job, const struct outside *o)
{
    uint64_t taken = outside_bytes(o);
    uint64_t card = job->hardware.card.memory.value;
    if (job->limit_bytes)
        return job->limit_bytes;
    return card > taken ? card - taken : 0;
}
