// The strategies by name.
#include "core/strategies/strategies.h"

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
