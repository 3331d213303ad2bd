// Host memory under DeepSpeed's offload. Pinned tensors take a power of two
// (ATen/core/CachingHostAllocator.h, as measured: 3.5 GiB for 1.2 billion parameters on eight ranks
// of zero2) and are not given back; the optimizer is taken to be DeepSpeedCPUAdam, with two fp32
// moments in memory that is not pinned.
#include "core/base/num.h"
#include "core/strategies/zero/zero.h"

// Bytes for each element of a rank's part.
static const struct host_row {
    enum offload least;
    bool in_zero2, in_zero3, pinned;
    uint64_t width;
} host_rows[] = {
    {OFFLOAD_OPTIMIZER, true, false, true, 4},  // fp32 parameters
    {OFFLOAD_OPTIMIZER, false, true, false, 4}, // the same
    {OFFLOAD_OPTIMIZER, true, true, true, 4},   // fp32 gradients
    {OFFLOAD_OPTIMIZER, true, false, true, 2},  // bf16 parameters on their way back
    {OFFLOAD_OPTIMIZER, false, true, true, 2},  // bf16 gradients, added up
    {OFFLOAD_OPTIMIZER, true, true, false, 8},  // two moments
    {OFFLOAD_ALL, false, true, true, 2},        // bf16 parameters
};

static uint64_t pinned(uint64_t bytes)
{
    uint64_t power = 1;
    while (power < bytes)
        power *= 2;
    return power;
}

// A bf16 tensor for each parameter, or for a rank's part of it.
static uint64_t one_by_one(const struct job *p, uint64_t ranks)
{
    uint64_t bytes = 0;
    for (ptrdiff_t i = 0; i < p->parameters.tensor_count; i++) {
        const struct tensor *t = &p->parameters.tensors[i];
        bytes += t->copies * pinned(2 * u64_divide_up(t->elements, ranks));
    }
    return bytes;
}

// Of what is trained; adapters are too few to count.
static uint64_t rows_bytes(const struct job *p, bool zero3)
{
    if (p->lora_rank)
        return 0;
    uint64_t part = u64_divide_up(p->parameters.total, job_ranks(p)), bytes = 0;
    for (ptrdiff_t i = 0; i < COUNT_OF(host_rows); i++) {
        const struct host_row *r = &host_rows[i];
        if (p->offload >= r->least && (zero3 ? r->in_zero3 : r->in_zero2))
            bytes += r->pinned ? pinned(part * r->width) : part * r->width;
    }
    return bytes;
}

static uint64_t head_elements(const struct job *p)
{
    return p->model.vocab * p->model.hidden;
}

// A place for the largest gradient, and for those of earlier micro-batches.
uint64_t zero2_host_bytes(const struct job *p)
{
    if (!p->offload || p->lora_rank)
        return 0;
    uint64_t bytes = rows_bytes(p, false) + pinned(2 * head_elements(p));
    return p->accumulation > 1 ? bytes + one_by_one(p, 1) / job_ranks(p) : bytes;
}

// With files host memory holds bf16 gradients, four buffers of the largest sub-group in fp32, and
// where parameters go there too five of 1e8 elements beside the first 1e9 of them (DeepSpeed
// 0.19.8, runtime/zero/offload_config.py: buffer_count, buffer_size, max_in_cpu;
// swap_tensor/optimizer_utils.py, SwapBufferManager; stage3.py,
// _create_param_groups_fp16_flat_cpu_memory).
static uint64_t bytes_beside_files(const struct job *p)
{
    const uint64_t state_buffers = 4, parameter_buffers = 5;
    const uint64_t sub_group = job_zero_sizes(p).sub_group, in_host = 1000000000;
    uint64_t part = u64_divide_up(p->parameters.total, job_ranks(p));
    uint64_t bytes = pinned(part * 2) + state_buffers * 4 * u64_least(part, sub_group);
    if (p->offload == OFFLOAD_ALL)
        bytes += parameter_buffers * 2 * ZERO_FILE_BUFFER + pinned(2 * u64_least(part, in_host));
    return bytes;
}

// Each part was pinned when the parameter was made, a head's too that was tied then.
uint64_t zero3_host_bytes(const struct job *p)
{
    if (p->traits & IS_NVME)
        return bytes_beside_files(p);
    uint64_t bytes = rows_bytes(p, true), ranks = job_ranks(p);
    if (p->offload != OFFLOAD_ALL)
        return bytes;
    bytes += one_by_one(p, ranks);
    if (model_has(&p->model, FEATURE_TIED))
        bytes += pinned(2 * u64_divide_up(head_elements(p), ranks));
    return bytes;
}
