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

// Of each parameter that is trained, in fp32: Adam's two moments, Adafactor's one where nothing is
// factored, as in FSDP1's flat shards.
static uint64_t state_bytes(enum optimizer optimizer)
{
    enum { MOMENT = 4 };
    return optimizer == OPTIMIZER_SGD ? 0 : optimizer == OPTIMIZER_ADAFACTOR ? MOMENT : 2 * MOMENT;
}

// With offload, host memory holds fp32 shards, gradients and the optimizer's state (not measured);
// of frozen ones the shards. Adapters are too few to count.
uint64_t shards_host_bytes(const struct job *p)
{
    enum { SHARD = 4, GRADIENT = 4 };
    uint64_t part = u64_divide_up(p->parameters.total, job_shards(p));
    uint64_t each = p->lora_rank ? SHARD : SHARD + GRADIENT + state_bytes(p->optimizer);
    return p->offload ? sat_mul(part, each) : 0;
}

uint32_t trainer_frozen_width(const struct trainer *t, uint32_t wide)
{
    return job_shards_frozen_wide(t->job) ? wide : t->width;
}
