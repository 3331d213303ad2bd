"""Several ranks on fake tensors: torch's fake process group, and libraries that on a machine without a GPU would train by
DDP whatever they are told. Weights lie in the host's memory until a library moves them to the card or shards them there.
"""
import os

import fathom_fake


def play_state(module):
    """accelerate.state: several processes train on GPUs, whose tensors stand on the CPU (ACCELERATE_TORCH_DEVICE)."""
    prepare = module.PartialState._prepare_backend

    def _prepare_backend(self, cpu=False, sagemaker_dp=False, backend=None):
        if cpu or int(os.environ.get("LOCAL_RANK", -1)) == -1:
            return prepare(self, cpu, sagemaker_dp, backend)
        return backend or "nccl", module.DistributedType.MULTI_GPU

    module.PartialState._prepare_backend = _prepare_backend


def play_shards(module):
    """torch.distributed.fsdp's _fully_shard._fsdp_init (FSDP2) and _init_utils (FSDP1): a module's weights are moved to the
    card whole, and there cut."""
    move = module._move_states_to_device

    def _move_states_to_device(params, buffers, device):
        for tensor in (*params, *buffers):
            fathom_fake.recorder.host.shard(tensor)
        return move(params, buffers, device)

    module._move_states_to_device = _move_states_to_device
    if hasattr(module, "_check_module_states_for_sync_module_states"):  # refuses to send what is on the CPU
        module._check_module_states_for_sync_module_states = lambda states: None


def play_plugin(module):
    """accelerate.utils.dataclasses: where rank 0 alone reads the weights, FSDP1's other ranks make theirs on a GPU."""
    settle = module.FullyShardedDataParallelPlugin.__post_init__

    def __post_init__(self):
        former = module.torch.cuda.current_device
        module.torch.cuda.current_device = lambda: "cpu"
        try:
            settle(self)
        finally:
            module.torch.cuda.current_device = former

    module.is_cuda_available = lambda: True
    module.FullyShardedDataParallelPlugin.__post_init__ = __post_init__


def play_flat(module):
    """torch.distributed.fsdp._flat_param: asks by its address whether a unit that stays whole (SHARD_GRAD_OP) is there."""
    module._data_ptr_allocated = lambda tensor: tensor.untyped_storage().nbytes() > 0


def play_loading(module):
    """accelerate.utils.fsdp_utils: where rank 0 alone reads the weights, FSDP2's shards are made of what it sends."""
    load = module.fsdp2_load_full_state_dict

    def fsdp2_load_full_state_dict(accelerator, model, *others, **more):
        loaded = load(accelerator, model, *others, **more)
        for parameter in model.parameters():
            fathom_fake.recorder.arrive(parameter.to_local() if hasattr(parameter, "to_local") else parameter)
        return loaded

    module.fsdp2_load_full_state_dict = fsdp2_load_full_state_dict


def play_deepspeed(module):
    """deepspeed.ops: on the CPU it would compile a way of its own to send between processes, for minutes."""
    module.__compatible_ops__["deepspeed_shm_comm"] = False


def play_accelerator(module):
    """deepspeed.accelerator.cpu_accelerator: after its optimizer is made, DeepSpeed gives back what the card does not need."""
    module.CPU_Accelerator.empty_cache = lambda self: fathom_fake.recorder.empty_cache()
