"""An unmodified training script on tensors that have shapes and no memory: share/fake_tensors.py under the whole of it.

The script runs as on a machine without a GPU. What it computes with numbers of its own (token ids, masks, samplers) is
computed; weights, activations and gradients have shapes only, and where the script looks at one (a loss it prints) it
finds a made-up number. Weights are not read from disk: transformers' models are built from their configuration, and
nothing is saved. What a GPU's defaults would choose (optimizers and norms over lists of tensors) is chosen here too.
At the end the allocator of the card that is meant is asked what the history would have taken.
"""
import os
import sys
import weakref

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch
from fake_tensors import FakeTensor, PLAIN, STRIDE, Recorder, fake_mode, replayed, sentence, workspace_bytes
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_iter, tree_map_only

SMALL = 4096  # elements: numbers of a script's own, such as frequencies of positions
LARGEST_REAL = 64 << 20  # bytes that are really held
WORD = 5  # that is generated: 0 to 3 end an answer or fill it up, one or another for each family
OF_SCALARS = {"aten::arange", "aten::full", "aten::scalar_tensor"}
SOFTMAX = {torch.ops.aten._softmax.default, torch.ops.aten._log_softmax.default}
INTEGERS = {"aten::randperm", "aten::randint"}
BY_MASK = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"}


def is_whole(dtype):
    return not dtype.is_floating_point and not dtype.is_complex


def makes_whole(function, arguments, keywords):
    """Whether an operator without tensors makes integers or truths."""
    name, dtype = function._schema.name, keywords.get("dtype")
    if dtype is not None:
        return is_whole(dtype)
    scalars = [value for value in arguments if isinstance(value, (bool, int, float))]
    return name in INTEGERS or (name in OF_SCALARS and scalars and not any(isinstance(v, float) for v in scalars))


def by_place(arguments):
    """A choice by a mask that is known is one by the places that it lets through."""
    places = []
    for index in arguments[1]:
        known = index is not None and index.dtype is torch.bool and type(index) is not FakeTensor
        places += index.nonzero().unbind(1) if known else [index]
    return (arguments[0], places, *arguments[2:])


class Host:
    """Weights of several ranks are made in the host's memory, until a library moves them to the card or shards them."""

    def __init__(self):
        self.building, self.held, self.left = 0, {}, {}

    def has(self, tensor):
        storage = tensor.untyped_storage()
        if self.building and storage._cdata not in self.left:
            self.keep(self.held, storage)
        return storage._cdata in self.held or storage._cdata in self.left

    @staticmethod
    def keep(held, storage):
        key = storage._cdata
        if key not in held:
            held[key] = weakref.ref(storage, lambda _: held.pop(key, None))

    def works_on(self, tensors, arrive):
        """Whether an operator works in the host's memory. What it mixes with a tensor of the card is on the card."""
        if not self.held or not tensors:
            return False
        within = [tensor.untyped_storage()._cdata in self.held for tensor in tensors]
        if not all(within):
            for tensor, held in zip(tensors, within):
                if held and tensor.numel() > SMALL:
                    arrive(tensor)
        return all(within)

    def leave(self, tensor):
        self.held.pop(tensor.untyped_storage()._cdata, None)

    def shard(self, tensor):
        """Its shard is the card's; the whole passes through the card, and that is not the peak."""
        storage = tensor.untyped_storage()
        if self.held.pop(storage._cdata, None):
            self.keep(self.left, storage)


class Script(Recorder):
    def __init__(self, workspace):
        super().__init__(workspace)
        self.mode, self.host = fake_mode(), Host()

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
        within = self.host.works_on(tensors, self.arrive)
        self.host.building += within
        try:
            return self.compute(function, types, tensors, arguments, keywords)
        finally:
            self.host.building -= within

    def compute(self, function, types, tensors, arguments, keywords):
        if function._schema.name in BY_MASK:
            with unset_fake_temporarily():
                arguments = by_place(arguments)
        if self.is_real(function, tensors, arguments, keywords):
            with unset_fake_temporarily():
                result = function(*arguments, **keywords)
            result = tree_map_only(torch.Tensor, self.without_memory, result)
            for tensor in tree_iter(result):
                if isinstance(tensor, torch.Tensor):
                    self.see(tensor)
            return result
        lying = None  # a GPU's softmax copies what does not lie side by side (ATen/native/cuda/SoftMax.cu, host_softmax)
        if function in SOFTMAX and not arguments[0].is_contiguous():
            lying = super().__torch_dispatch__(torch.ops.aten.clone.default, types, (arguments[0],),
                                               {"memory_format": torch.contiguous_format})
        if function is torch.ops.aten._local_scalar_dense.default:
            dtype = tensors[0].dtype
            return 1.0 if dtype.is_floating_point else False if dtype is torch.bool else 0
        if function is torch.ops.aten.equal.default:
            return True
        if function is torch.ops.aten.multinomial.default and type(tensors[0]) is FakeTensor:
            return self.drawn(tensors[0].shape[:-1], arguments[1])
        result = super().__torch_dispatch__(function, types, arguments, keywords)
        del lying
        return result

    def drawn(self, rows, count):
        """Tokens that are generated are numbers of the script's own: none of them ends an answer."""
        with unset_fake_temporarily():
            tokens = torch.full((*rows, count), WORD, dtype=torch.int64)
        self.see(tokens)
        return tokens

    def see(self, tensor):
        if not self.host.has(tensor):
            super().see(tensor)

    def arrive(self, tensor):
        """On the card, from the host's memory."""
        self.host.leave(tensor)
        self.see(tensor)

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
            if new.device.type != "meta":
                recorder.arrive(new)
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


def play_copies():
    """copy.deepcopy of a parameter clones it (torch.nn.Parameter.__deepcopy__); a fake one is of another class."""
    plain = torch.Tensor.__deepcopy__

    def copied(tensor, memo):
        if not isinstance(tensor, torch.nn.Parameter) or id(tensor) in memo:
            return plain(tensor, memo)
        memo[id(tensor)] = torch.nn.Parameter(tensor.data.clone(), tensor.requires_grad)
        return memo[id(tensor)]

    torch.Tensor.__deepcopy__ = copied


def play_addresses():
    """A fake tensor lies nowhere, and Accelerate knows a weight by its address."""

    def data_ptr(tensor):
        return tensor.untyped_storage()._cdata * STRIDE + tensor.storage_offset() * tensor.element_size()

    FakeTensor.data_ptr = data_ptr


def play_numbers():
    """What an evaluation gathers of its losses."""
    import numpy

    def made_up(tensor, *, force=False):
        return numpy.ones(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))

    FakeTensor.numpy = made_up


def play_dropout():
    """A GPU's takes one kernel, which keeps a byte a value (ATen/native/Dropout.cpp, is_fused_kernel_acceptable)."""
    plain = torch.nn.functional.dropout

    def dropout(input, p=0.5, training=True, inplace=False):
        if training and 0 < p < 1 and not inplace:
            return torch.native_dropout(input, p, True)[0]
        return plain(input, p, training, inplace)

    torch.nn.functional.dropout = dropout


def play_attention():
    """A GPU's fused kernels that share keys between heads have no fp32 (ATen/native/transformers/cuda/sdp_utils.cpp): what is
    left is torch's math kernel, with scores of all pairs."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    plain = torch.nn.functional.scaled_dot_product_attention

    def attend(query, *others, **more):
        wide = query.dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
        if not wide or not more.get("enable_gqa"):
            return plain(query, *others, **more)
        with sdpa_kernel(SDPBackend.MATH):
            return plain(query, *others, **more)

    torch.nn.functional.scaled_dot_product_attention = attend


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
    build = base._from_config.__func__

    def from_pretrained(cls, name=None, *ignored, config=None, dtype=None, torch_dtype=None, attn_implementation=None,
                        quantization_config=None, **more):
        from transformers import AutoConfig

        if quantization_config is not None:
            raise ValueError("fake tensors are not packed: train without a quantization_config")
        config = config if config is not None else AutoConfig.from_pretrained(name)
        dtype = dtype if dtype is not None else torch_dtype
        dtype = getattr(config, "dtype", None) if dtype in ("auto", None) else dtype  # None: transformers 5's default
        dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        extra = {} if attn_implementation is None else {"attn_implementation": attn_implementation}
        model = cls._from_config(config, dtype=dtype or torch.float32, **extra)
        model.name_or_path = str(name)
        return model.eval()

    def _from_config(cls, *words, **more):
        waits = int(os.environ.get("WORLD_SIZE") or 1) > 1
        recorder.host.building += waits
        try:
            return build(cls, *words, **more)
        finally:
            recorder.host.building -= waits

    base._from_config = classmethod(_from_config)
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
    play_copies()
    play_addresses()
    play_numbers()
    play_dropout()
    play_attention()
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
