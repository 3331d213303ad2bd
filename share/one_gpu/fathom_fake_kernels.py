"""Fake tensors stand on the CPU, where libraries fall back from a kernel of their own to operators of torch's, whose
results take memory that the kernel never does. Here the fallback takes what the kernel takes."""


def in_place(*ignored, **more):
    return None


def play_trl_head(module):
    """trl.kernels.chunked_logprob (TRL 1.16.0): Triton's kernels turn a tile of logits into its gradient in place, and
    cuBLAS adds a product in bf16 to a sum in fp32 without casting the factors."""
    for name in ("_forward_tile", "_backward_tile", "_addmm_fp32"):
        if hasattr(module, name):
            setattr(module, name, in_place)


def play_trl_divergence(module):
    """trl.kernels.chunked_divergence (TRL 1.16.0), of distillation: the same of two models' tiles, and cuBLAS writes a
    product in bf16 into a tile in fp32 without casting the factors."""

    def project(tile, hidden, weight, bias, start, end, dtype):
        weight[start:end].to(dtype)
        if bias is not None:
            bias[start:end].float()

    for name in ("_stats_tile", "_jsd_tile", "_backward_tile"):
        if hasattr(module, name):
            setattr(module, name, in_place)
    if hasattr(module, "_project"):
        module._project = project


def play_trl_rows(module):
    """trl.trainer.utils: with Triton only tokens that have a label go through the head. And what is logged of importance
    weights looks for those that are numbers."""
    module._use_triton = lambda device: True
    module.nanmin = module.nanmax = lambda tensor: tensor.sum()
