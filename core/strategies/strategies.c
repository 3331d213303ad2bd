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

uint32_t trainer_frozen_width(const struct trainer *t, uint32_t wide)
{
    bool loads_wide = t->job->recipe == RECIPE_TRL || t->job->recipe == RECIPE_HF;
    return loads_wide && !t->job->packed ? wide : t->width;
}
