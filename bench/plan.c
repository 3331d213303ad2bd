// How long a plan takes, with all that is told beside it, on as many threads as there are
// processors; beside what it may take. Run the release build on a machine that does nothing else.
#include "bench/bench.h"
#include "core/plan/story.h"
#include "host/system/task_pool.h"

static const struct bench_row plans[] = {
    {"recipe=trl task=reward model=Qwen3-4B gpu=8xRTX4090 context=2048 global-batch=128", 1},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32", 1},
    {"recipe=trl model=Qwen3-8B gpu=H200 context=8192 global-batch=32", 1},
    {"recipe=trl model=Qwen3-8B gpu=64x8xH100-80G context=16384 global-batch=1024", 3},
    {"recipe=trl model=Qwen3-32B gpu=512x8xH100-80G context=16384 global-batch=8192", 10},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32 goal=memory", 1},
    {"recipe=trl model=Qwen3-8B gpu=64x8xH100-80G context=16384 global-batch=1024 goal=memory", 3},
    {"recipe=trl model=Qwen3-32B gpu=512x8xH100-80G context=16384 global-batch=8192 goal=memory",
     10},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32 goal=cost", 1},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=16384 global-batch=32 goal=simplicity", 1},
    {"recipe=trl model=Qwen3-8B gpu=8xH100-80G context=4096 global-batch=2048 lora=16", 1},
    {"recipe=trl model=Qwen3-8B gpu=64x8xH100-80G context=4096 global-batch=1024 goal=cost", 3},
    {"recipe=trl model=Qwen3-1.7B gpu=64x8xRTX4090 context=1024 global-batch=2048 goal=cost "
     "lora=16",
     3},
    {"recipe=trl model=Qwen3-0.6B gpu=512x8xL40S context=512 global-batch=1536 goal=cost lora=64",
     10},
    {"recipe=verl model=Qwen2.5-72B gpu=64x8xA10G context=16384 global-batch=1536 mean-length=2048",
     3},
    {"recipe=megatron model=Qwen3-30B-A3B gpu=64x8xH100-80G context=16384 global-batch=1024", 3},
    {"recipe=megatron model=Qwen3-235B-A22B gpu=64x8xH100-80G context=16384 global-batch=1024", 3},
};

static bool plan(struct str *told, struct arena *a, const struct settings *s, struct error *e)
{
    struct plan_story *story = NEW(a, struct plan_story, 1);
    struct plan_request r;
    struct task_pool pool = {0};
    struct runner runner = task_pool_runner(&pool);
    bool ok = plan_request_read(&r, s, e) && plan_tell(story, a, &r, &runner, e);
    task_pool_release(&pool);
    if (!ok)
        return false;
    *told = str_format(a, "%lld of %lld configurations", (long long)story->plan.predicted,
                       (long long)story->plan.all);
    return true;
}

int main(void)
{
    return bench_rows(plans, COUNT_OF(plans), plan);
}
