"""An unmodified training script on tensors that have shapes and no memory: share/fake_tensors.py under the whole of it.

The script runs as on a machine without a GPU. What it computes with numbers of its own (token ids, masks, samplers) is
computed; weights, activations and gradients have shapes only, and where the script looks at one (a loss it prints) it
finds a made-up number. Weights are not read from disk: transformers' models are built from their configuration, and
nothing is saved. What a GPU's defaults would choose (optimizers and norms over lists of tensors) is chosen here too.
At the end the allocator of the card that is meant is asked what the history would have taken.
"""
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch
from fake_tensors import FakeTensor, PLAIN, Recorder, fake_mode, replayed, sentence, workspace_bytes
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_iter, tree_map_only

SMALL = 4096  # elements: numbers of a script's own, such as frequencies of positions
LARGEST_REAL = 64 << 20  # bytes that are really held
OF_SCALARS = {"aten::arange", "aten::full", "aten::scalar_tensor"}
INTEGERS = {"aten::randperm", "aten::randint"}


def is_whole(dtype):
    return not dtype.is_floating_point and not dtype.is_complex


def makes_whole(function, arguments, keywords):
    """Whether an operator without tensors makes integers or truths."""
    name, dtype = function._schema.name, keywords.get("dtype")
    if dtype is not None:
        return is_whole(dtype)
    scalars = [value for value in arguments if isinstance(value, (bool, int, float))]
    return name in INTEGERS or (name in OF_SCALARS and scalars and not any(isinstance(v, float) for v in scalars))


class Script(Recorder):
    def __init__(self, workspace):
        super().__init__(workspace)
        self.mode = fake_mode()

    def is_real(self, function, tensors, arguments, keywords):
        if not tensors:
            return makes_whole(function, arguments, keywords)
        return all(type(tensor) is not FakeTensor and (is_whole(tensor.dtype) or tensor.numel() <= SMALL)
                   for tensor in tensors)

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        tensors = [value for value in tree_iter((arguments, keywords)) if isinstance(value, torch.Tensor)]
        if any(kind not in PLAIN for kind in types):
            return NotImplemented
        if self.is_real(function, tensors, arguments, keywords):
            with unset_fake_temporarily():
                result = function(*arguments, **keywords)
            result = tree_map_only(torch.Tensor, self.without_memory, result)
            for tensor in tree_iter(result):
                if isinstance(tensor, torch.Tensor):
                    self.see(tensor)
            return result
        if function is torch.ops.aten._local_scalar_dense.default:
            dtype = tensors[0].dtype
            return 1.0 if dtype.is_floating_point else False if dtype is torch.bool else 0
        if function is torch.ops.aten.equal.default:
            return True
        return super().__torch_dispatch__(function, types, arguments, keywords)

    def without_memory(self, tensor):
        big = type(tensor) is not FakeTensor and tensor.untyped_storage().nbytes() > LARGEST_REAL
        return self.mode.from_tensor(tensor) if big else tensor


def play_modules():
    """A fake parameter cannot be given other data, so a module that is moved or cast gets another one."""
    made, depth = {}, [0]

    def changed(tensor, change, kind):
        if id(tensor) not in made:
            with torch.no_grad():
                new = change(tensor)
            made[id(tensor)] = (tensor, new if new is tensor or kind is None else kind(new, tensor.requires_grad))
        return made[id(tensor)][1]

    def apply(module, change, recurse=True):
        depth[0] += 1
        for child in module.children() if recurse else ():
            apply(child, change)
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = changed(parameter, change, torch.nn.Parameter)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = changed(buffer, change, None)
        depth[0] -= 1
        if not depth[0]:
            made.clear()
        return module

    torch.nn.Module._apply = apply


def play_optimizers():
    from torch.nn.utils import clip_grad
    from torch.optim import adam, adamw, optimizer, sgd

    def choose(*arguments, **keywords):
        return False, True

    for module in (adam, adamw, optimizer, sgd):
        if hasattr(module, "_default_to_fused_or_foreach"):
            module._default_to_fused_or_foreach = choose
    clip_grad._has_foreach_support = lambda *ignored: True


def play_models(module):
    """transformers.modeling_utils: built, never read or written."""
    base = module.PreTrainedModel

    def from_pretrained(cls, name=None, *ignored, config=None, dtype=None, torch_dtype=None, attn_implementation=None,
                        quantization_config=None, **more):
        from transformers import AutoConfig

        if quantization_config is not None:
            raise ValueError("fake tensors are not packed: train without a quantization_config")
        config = config if config is not None else AutoConfig.from_pretrained(name)
        dtype = dtype if dtype is not None else torch_dtype
        dtype = getattr(config, "dtype", None) if dtype == "auto" else dtype
        dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        extra = {} if attn_implementation is None else {"attn_implementation": attn_implementation}
        model = cls._from_config(config, dtype=dtype or torch.float32, **extra)
        model.name_or_path = str(name)
        return model.eval()

    base.from_pretrained = classmethod(from_pretrained)
    base.save_pretrained = lambda *ignored, **more: None


def play_trainer(module):
    module.Trainer.save_model = lambda *ignored, **more: None
    module.Trainer._save_checkpoint = lambda *ignored, **more: None


def begin():
    """From here on, in this thread, which is the one that trains."""
    global recorder
    trial = {"workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", "")}
    recorder = Script(workspace_bytes(trial))
    play_modules()
    play_optimizers()
    recorder.mode.__enter__()
    recorder.__enter__()


def end(limit):
    """The peaks that the card's allocator would have had; where it would have failed, so does this process."""
    recorder.__exit__(None, None, None)
    recorder.mode.__exit__(None, None, None)
    words = ",".join(os.environ.get(name, "") for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"))
    trial = {"program": os.environ["FATHOM_PLAY_FAKE"], "expandable": "expandable_segments:True" in words,
             "limit_bytes": limit}
    found = replayed(recorder, trial)
    if found["oom"]:
        tried = found["oom"].get("requested_bytes") or found["oom"].get("tried_bytes") or 0
        return None, (f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried / 2**30:.2f} GiB "
                      f"(fake tensors, kept to {limit / 2**30:.2f} GiB)\n")
    return {**{f"{name}_bytes": found["peak"][f"{name}_bytes"] for name in ("allocated", "requested", "reserved")},
            "retries": found["retries"], "fake": True}, ""
