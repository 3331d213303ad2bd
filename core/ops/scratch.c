// Workspaces of cuBLAS and CUTLASS, and the temporary storage of cub.
#include "core/ops/scratch.h"

#include "core/base/num.h"
#include "core/base/units.h"

void gemm_workspace(struct graph *g)
{
    if (g->gemm_ready[g->in_backward])
        return;
    g->gemm_ready[g->in_backward] = true;
    machine_take(g->machine, g->gemm_workspace_bytes, MEMORY_WORKSPACE);
}

// 1 MiB, kept since torch 2.9 (ATen/cuda/CublasHandlePool.cpp; recorded with Qwen2.5). Its handle
// is cuBLAS's own, which comes with the other workspace (recorded with Qwen3-VL's tower).
void fused_bias_workspace(struct graph *g)
{
    gemm_workspace(g);
    if (g->fused_bias_ready[g->in_backward])
        return;
    g->fused_bias_ready[g->in_backward] = true;
    machine_take(g->machine, MIB, MEMORY_WORKSPACE);
}

// Fitted to the sizes in ten recordings, with cub's tile sizes; the histograms are 2 KiB for each
// pass over eight bits.
uint64_t sort_scratch(uint64_t rows, uint64_t bits)
{
    return 2 * u64_align_up(8 * rows, 256) + 2048 * u64_divide_up(bits, 8) +
           1024 * u64_divide_up(rows, 4608) + 511;
}

uint64_t scan_scratch(uint64_t rows)
{
    return 511 + u64_align_up(16 * (32 + u64_divide_up(rows, 896)), 256);
}

// ATen/native/cuda/GroupMM.cu: for each group three pointers, three strides and a shape; CUTLASS
// asks for 512 bytes a multiprocessor. Recorded on compute capability 9.0.
void grouped_scratch(struct graph *g, uint64_t groups)
{
    if (!groups)
        return;
    struct storage *arguments =
        machine_take(g->machine, 60 * u64_align_up(groups, 2), MEMORY_WORKSPACE);
    machine_scratch(g->machine, 512 * g->multiprocessors);
    machine_drop(g->machine, arguments);
}
