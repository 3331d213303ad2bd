"""Training on tensors that have shapes and no memory: what their storages do is written down as the allocator's history
would be, and Fathom's copy of torch's allocator tells what a card would have taken.

torch's FakeTensorMode computes shapes only, so any model that Python knows trains here in seconds, without a GPU. The
tensors stand on the CPU: its kernels are stand-ins for CUDA's, so what a CUDA kernel takes for itself is not seen,
except cuBLAS's workspace, whose size the trial names.
"""
import json
import os
import subprocess
import sys
import tempfile
import weakref

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)
STRIDE = 1 << 40  # between the made-up addresses of two storages: none is larger
WAIT = torch.ops._c10d_functional.wait_tensor.default if torch.distributed.is_available() else None
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::linear"}


def is_summed_gradient(arguments):
    """Of an addition: whether autograd's engine makes it, and no function of Python's that it runs."""
    if torch._C._current_graph_task_id() == -1 or not all(isinstance(value, torch.Tensor) for value in arguments[:2]):
        return False
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name in ("__torch_dispatch__", "compute", "_fn", "inner"):  # torch wraps it
        frame = frame.f_back
    by_engine = frame is not None and frame.f_code.co_name == "_engine_run_backward"
    return by_engine and arguments[0].shape == arguments[1].shape and arguments[0].dtype == arguments[1].dtype


def attention_scratch(arguments):
    """Of the backward of CUDA's fused attention (cuDNN's, FlashAttention 2: core/ops/attention.c): q's gradient in fp32, a
    row sum, and where heads share keys the gradients of keys and values for every query head."""
    query, key, log_sums = arguments[1], arguments[2], arguments[5]
    shared = 2 * query.nbytes if query.numel() != key.numel() else 0
    return 4 * query.numel() + shared + 4 * log_sums.numel() + 256


class Recorder(TorchDispatchMode):
    """Sees every storage that an operator makes, and when Python lets it go or FSDP takes its memory away."""

    def __init__(self, workspace_bytes=0):
        super().__init__()
        self.events, self.live, self.made, self.of_stream = [], {}, 0, {0: 0}
        self.workspace_bytes, self.handles = workspace_bytes, set()
        self.paused, self.replaced, self.inherited, self.streams = 0, [], None, {}

    def replace(self, owner, name, wrapped):
        original = getattr(owner, name)
        self.replaced.append((owner, name, original))
        setattr(owner, name, wrapped(original))

    def __enter__(self):
        def resizes(original):
            def resize(storage, size):
                result = original(storage, size)
                self.resized(storage, size)
                return result
            return resize

        def asks(original):  # DTensor makes whole tensors to learn their shapes
            def propagate(*arguments, **keywords):
                self.paused += 1
                try:
                    return original(*arguments, **keywords)
                finally:
                    self.paused -= 1
            return propagate

        self.replace(torch.UntypedStorage, "resize_", resizes)
        if torch.distributed.is_available():
            from torch.distributed.tensor._sharding_prop import ShardingPropagator
            for name in ("_propagate_tensor_meta_non_cached", "_propagate_tensor_meta"):
                if hasattr(ShardingPropagator, name):
                    self.replace(ShardingPropagator, name, asks)
        return super().__enter__()

    def __exit__(self, *what):
        while self.replaced:
            setattr(*self.replaced.pop())
        return super().__exit__(*what)

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if any(kind not in PLAIN for kind in types):
            return NotImplemented  # a tensor made of others, whose own operators come here
        if function._schema.name in PRODUCTS:
            self.multiply()
        self.settle()
        if function is WAIT:  # hands out what it was given; its stand-in would make another
            return arguments[0]
        result = function(*arguments, **(keywords or {}))
        if function is torch.ops.aten.add.Tensor and is_summed_gradient(arguments):
            self.inherit(arguments[0].untyped_storage(), result.untyped_storage())
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor)
        if function is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default:
            self.scratch(attention_scratch(arguments))
        if function is torch.ops.aten._softmax_backward_data.default:  # CUDA's multiplies gradient and output first
            self.scratch(arguments[0].nbytes)
        if function is torch.ops.aten._safe_softmax.default:  # truths: which scores are masked
            self.scratch(arguments[0].numel())
        return result

    def multiply(self):
        """cuBLAS has a handle, and each handle a workspace, for every thread: on a card autograd's engine runs in its own."""
        handle = torch._C._current_graph_task_id() != -1
        if self.workspace_bytes and not self.paused and handle not in self.handles:
            self.handles.add(handle)
            self.add(self.workspace_bytes)

    def scratch(self, size):
        """What a kernel takes for itself while it runs."""
        if not self.paused:
            self.events.append(("free_completed", self.add(size), size))

    def inherit(self, old, new):
        """Autograd adds a second gradient to the first in place (InputBuffer::accumulate), but never to a subclass's
        tensor, which a fake one is: the sum takes the place of the first, unless somebody else still holds that."""
        known = self.live.pop(old._cdata, None)
        if known is None:
            return
        self.hold(new, known[1], known[2])
        self.inherited = (weakref.ref(old), known, weakref.ref(new))

    def settle(self):
        if self.inherited is None:
            return
        old, known, new = self.inherited[0](), self.inherited[1], self.inherited[2]()
        self.inherited = None
        if old is not None and new is not None:
            self.live.pop(new._cdata)
            self.hold(old, known[1], known[2])
            self.take(new, known[2])

    def stream(self):
        """Which of the streams that a library chose is current: FSDP 2 asks torch.cpu for its own, as it would torch.cuda."""
        current = torch.cpu.current_stream()
        first = torch.cpu._default_cpu_stream
        return 0 if current is first else self.streams.setdefault(id(current), (len(self.streams) + 1, current))[0]

    def add(self, size):
        self.made += 1
        self.of_stream[self.made] = self.stream()
        self.events.append(("alloc", self.made, size))
        return self.made

    def see(self, tensor):
        storage = tensor.untyped_storage()
        if tensor.device.type != "meta" and not self.paused and storage._cdata not in self.live and storage.nbytes():
            self.take(storage, storage.nbytes())

    def take(self, storage, size):
        self.hold(storage, self.add(size), size)

    def hold(self, storage, number, size):
        key = storage._cdata

        def gone(_):
            if self.live.pop(key, None):
                self.events.append(("free_completed", number, size))

        self.live[key] = (weakref.ref(storage, gone), number, size)

    def resized(self, storage, size):
        known = self.live.pop(storage._cdata, None)
        if known:
            self.events.append(("free_completed", known[1], known[2]))
        if size:
            self.take(storage, size)

    def adopt(self, model):
        """What is there when recording begins: a sharded model is built without memory."""
        for tensor in [*model.parameters(), *model.buffers()]:
            self.see(tensor.to_local() if hasattr(tensor, "to_local") else tensor)

    def empty_cache(self):
        self.events.append(("empty_cache", 0, 0))

    def lines(self):
        for action, number, size in self.events:
            if action == "free_completed":
                yield f"free_requested {number * STRIDE:x} {size} {self.of_stream[number]}\n"
            yield f"{action} {number * STRIDE:x} {size} {self.of_stream[number]}\n"


def replayed(recorder, trial):
    """What the allocator of the card that is meant does with it, up to now."""
    with tempfile.TemporaryDirectory(prefix="fathom-fake-") as folder:
        path = os.path.join(folder, "history")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(recorder.lines())
        words = ["--expandable", "on"] if trial["expandable"] else []
        if trial["limit_bytes"]:
            words += ["--memory-limit", f"{trial['limit_bytes']}B"]
        done = subprocess.run([trial["program"], "replay", path, *words, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the history of the fake tensors could not be replayed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    return found.get("what_if") or found


class Memory:
    """Like the worker's, of the allocator's copy; peaks are the largest so far."""

    def __init__(self, recorder, trial, report):
        self.recorder, self.trial, self.report = recorder, trial, report

    def start(self):
        pass

    def mark(self, name):
        pass

    def end(self, kind, **values):
        found = replayed(self.recorder, self.trial)
        if found["oom"]:
            tried = found["oom"].get("requested_bytes") or found["oom"].get("tried_bytes") or 0
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {tried / 2**30:.2f} GiB (fake tensors, kept to "
                f"{self.trial['limit_bytes'] / 2**30:.2f} GiB)")
        peak = found["peak"]
        self.report(kind, allocated_bytes=peak["allocated_bytes"], requested_bytes=peak["requested_bytes"],
                    reserved_bytes=peak["reserved_bytes"], retries=found["retries"], fake=True, **values)


def workspace_bytes(trial):
    """Of CUBLAS_WORKSPACE_CONFIG's form, ":4096:2:16:8": KiB and how many."""
    numbers = [int(part) for part in (trial["workspace"] or "").split(":") if part]
    return sum(size * count * 1024 for size, count in zip(numbers[::2], numbers[1::2]))


def fake_mode():
    return FakeTensorMode(allow_non_fake_inputs=True)


def sentence(error):
    """What to say of an error that fake tensors alone have; else nothing."""
    if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
        return (f"the model or script looks at values that fake tensors have not ({error.func}); "
                "a trial without --fake, on a GPU, can")
    return ""
