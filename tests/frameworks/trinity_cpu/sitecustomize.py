"""verl trains on accelerators only. This makes its FSDP engine train on the CPU, in every process of a Ray
cluster that is started with this folder on the path: gloo, no pinned memory, no compiler, torch's own attention,
and an accelerator's memory that is invented. Batches of more than FATHOM_TEST_LIMIT tokens run out of it."""
import functools
import importlib.abc
import importlib.util
import os
import sys

GIB = 2**30


def train_on_the_cpu(device):
    import torch
    import torch.distributed as dist

    start = dist.init_process_group
    dist.init_process_group = lambda backend=None, **others: start(backend="gloo", **others)
    torch.compile = lambda function=None, **_: function or (lambda inner: inner)
    torch.Tensor.pin_memory = lambda self, *_: self
    invented = {
        "current_device": lambda: torch.device("cpu"), "get_device_capability": lambda *_: (8, 0),
        "get_device_name": lambda *_: "none", "get_rng_state": lambda *_: torch.get_rng_state(),
        "max_memory_allocated": lambda *_: GIB, "max_memory_reserved": lambda *_: 2 * GIB,
        "memory_allocated": lambda *_: 0, "memory_reserved": lambda *_: 0, "mem_get_info": lambda *_: (0, 0),
        "empty_cache": lambda: None, "synchronize": lambda *_: None, "set_device": lambda *_: None,
    }
    for name, function in invented.items():
        setattr(torch.cpu, name, function)
        setattr(torch.cuda, name, function)
    torch.cpu.is_available = lambda: False
    torch.cpu.manual_seed = torch.manual_seed
    device.get_device_id = invented["current_device"]


def offer_the_cpu(base):
    find = base.EngineRegistry.get_engine_cls.__func__

    def find_for_cpu(cls, model_type, backend):
        engines = cls._engines[model_type][backend]
        engines.setdefault("cpu", engines["cuda"])
        return find(cls, model_type, backend)

    base.EngineRegistry.get_engine_cls = classmethod(find_for_cpu)


def use_plain_attention(model):
    complete = model.HFModelConfig.__post_init__

    def complete_with_sdpa(self):
        object.__setattr__(self, "override_config", {"attn_implementation": "sdpa"})
        complete(self)

    model.HFModelConfig.__post_init__ = complete_with_sdpa


def pad_with_transformers(attention):
    from transformers.modeling_flash_attention_utils import _index_first_axis, _pad_input, _unpad_input

    attention._get_attention_functions = lambda: (_index_first_axis, _pad_input, None, _unpad_input)


def leave_out_trl(utilities):
    utilities.is_trl_available = lambda: False


def run_out_of_memory(workers):
    import torch

    train = workers.TrainingWorker.train_batch

    @functools.wraps(train)
    def train_within_limit(self, data):
        if data["input_ids"].offsets().diff().max() > int(os.environ["FATHOM_TEST_LIMIT"]):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 18.55 GiB.")
        return train(self, data)

    workers.TrainingWorker.train_batch = train_within_limit


AFTER_IMPORT = {
    "verl.utils.device": train_on_the_cpu, "verl.workers.engine.base": offer_the_cpu,
    "verl.workers.config.model": use_plain_attention, "verl.utils.import_utils": leave_out_trl,
    "verl.utils.attention_utils": pad_with_transformers, "verl.workers.engine_workers": run_out_of_memory,
}


class Hooks(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        hook = AFTER_IMPORT.pop(name, None)
        if not hook:
            return None
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            hook(module)

        spec.loader.exec_module = load_and_change
        return spec


sys.meta_path.insert(0, Hooks())
