// The strategies by name.
#include "core/strategies/strategies.h"

#include "core/base/num.h"

const struct strategy_kind *strategy_kind_of(enum strategy strategy)
{
    static const struct strategy_kind *const kinds[] = {
        [STRATEGY_SINGLE] = &single_strategy, [STRATEGY_DDP] = &ddp_strategy,
        [STRATEGY_FSDP1] = &fsdp1_strategy,   [STRATEGY_FSDP2] = &fsdp2_strategy,
        [STRATEGY_ZERO1] = &zero1_strategy,   [STRATEGY_ZERO2] = &zero2_strategy,
        [STRATEGY_ZERO3] = &zero3_strategy,   [STRATEGY_MEGATRON] = &megatron_strategy,
    };
    return kinds[strategy];
}

// With offload, host memory holds fp32 shards, gradients and two moments (not measured); of frozen
// ones the shards. Adapters are too few to count.
uint64_t shards_host_bytes(const struct job *p)
{
    enum { HOST_BYTES_PER_PARAMETER = 16, HOST_BYTES_PER_FROZEN = 4 };
    uint64_t part = u64_divide_up(p->parameters.total, job_shards(p));
    uint64_t each = p->lora_rank ? HOST_BYTES_PER_FROZEN : HOST_BYTES_PER_PARAMETER;
    return p->offload ? sat_mul(part, each) : 0;
}

uint32_t trainer_frozen_width(const struct trainer *t, uint32_t wide)
{
    return job_shards_frozen_wide(t->job) ? wide : t->width;
}
