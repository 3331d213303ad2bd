"""Notes every storage that torch's operators make, and when it goes: for the scripts that lay a step beside a predicted one."""
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


class Watch(TorchDispatchMode):
    """Notes ("A" or "F", bytes, operator) for every storage that comes and goes."""

    def __init__(self, known):
        super().__init__()
        self.events, self.alive = [], set(known)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor):
                self.note(tensor.untyped_storage(), str(func))
        return out

    def note(self, storage, operator):
        key, size = storage._cdata, storage.nbytes()
        if key in self.alive or not size:
            return
        self.alive.add(key)
        self.events.append(("A", size, operator))
        weakref.finalize(storage, self.let_go, key, size)

    def let_go(self, key, size):
        self.alive.discard(key)
        self.events.append(("F", size, ""))
