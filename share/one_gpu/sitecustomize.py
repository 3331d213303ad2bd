"""Makes an unmodified training script rank 0 of FATHOM_PLAY_RANKS, alone on one GPU.

Python runs this before a script, where its folder stands on PYTHONPATH. torch.distributed's group becomes
torch's fake one: every buffer of a real rank is allocated, and nothing is sent. With FATHOM_PLAY_LIMIT torch is
kept to so many bytes, as on a smaller card (0: to nothing, but its peaks are told). Processes that a launcher starts
for other ranks end at once; launchers themselves are left alone. The sitecustomize that this one hides is run too.
With FATHOM_PLAY_FAKE, Fathom's program, tensors have shapes and no memory, and no GPU is needed (fathom_fake.py).
Nothing happens where none of these variables is set.

What is reported are lines of JSON on standard output: "start" when the group is made, "peaks" at the end.
"""
import atexit
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = 8  # ranks that share a machine where no launcher says it
CANNOT_RUN = 126
LAUNCHERS = {
    "torchrun", "accelerate", "accelerate-launch", "deepspeed", "trl", "torch.distributed.run", "torch.distributed.launch",
    "accelerate.commands.launch", "accelerate.commands.accelerate_cli", "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
}

ranks = int(os.environ.get("FATHOM_PLAY_RANKS") or 0)
limit = int(os.environ.get("FATHOM_PLAY_LIMIT") or 0)
fake = os.environ.get("FATHOM_PLAY_FAKE")
watches = bool(fake) or "FATHOM_PLAY_RANKS" in os.environ or "FATHOM_PLAY_LIMIT" in os.environ
played = False
failed = []
largest = {}


def say(kind, **values):
    """In one write, on a line of its own: a progress bar may stand there."""
    sys.stdout.flush()
    os.write(1, f"\n{json.dumps({'fathom': kind, **values})}\n".encode())


def refuse(text):
    sys.stderr.write(f"ValueError: {text}\n")
    sys.stderr.flush()
    os._exit(CANNOT_RUN)


# ------------------------------------------------------------------ the other ranks


def program():
    """What this Python runs: the name of a script's file, or of a module."""
    words = iter(getattr(sys, "orig_argv", [])[1:])
    for word in words:
        if word in ("-c", "-m"):
            return next(words, "") if word == "-m" else ""
        if word in ("-X", "-W"):
            next(words, None)
        elif not word.startswith("-"):
            return os.path.basename(word)
    return ""


def forget_variables():
    """A script that was given them by us may start a launcher, whose processes get their own."""
    for name in os.environ.pop("FATHOM_PLAY_SET", "").split():
        os.environ.pop(name, None)


def set_variables():
    """As torchrun does it. A launcher may have started fewer processes than are played."""
    launched = "RANK" in os.environ
    if launched and os.environ["RANK"] != "0":
        os._exit(0)
    if ranks == 1 and not launched:
        return
    os.environ["WORLD_SIZE"] = str(ranks)
    local = min(int(os.environ.get("LOCAL_WORLD_SIZE") or NODE), ranks)
    os.environ["LOCAL_WORLD_SIZE"] = str(local)
    others = {"RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    new = [name for name in others if name not in os.environ]
    os.environ.update({name: others[name] for name in new})
    if not launched:
        os.environ["FATHOM_PLAY_SET"] = " ".join(["WORLD_SIZE", "LOCAL_WORLD_SIZE", *new])


def announce():
    global played
    import torch

    if played:
        return
    played = True
    card = {}
    if torch.cuda.is_available():
        properties = true_properties(torch.cuda.current_device())
        card = {"gpu": properties.name, "total_bytes": properties.total_memory}
    versions = {name: sys.modules[name].__version__ for name in ("torch", "transformers")
                if hasattr(sys.modules.get(name), "__version__")}
    say("start", **({"ranks": ranks} if ranks else {}), **versions, **card)


def play_group(c10d):
    """torch.distributed.distributed_c10d, before anybody has copied its names."""
    make_group, make_part = c10d.init_process_group, c10d.new_group

    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, *others, **more):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        if rank is not None and rank > 0:  # as torch.multiprocessing.spawn's processes know it
            os._exit(0)
        kept = {} if timeout is None else {"timeout": timeout}
        make_group("fake", store=FakeStore(), rank=0, world_size=ranks, **kept)
        announce()

    def new_group(ranks=None, timeout=None, backend=None, pg_options=None, *others, **more):
        more.pop("device_id", None)
        return make_part(ranks, timeout, "fake", None, *others, **more)

    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, **more):
        mine = [part for part in split_ranks if 0 in part]
        return make_part(mine[0], timeout, "fake", group_desc=group_desc) if mine else None

    def monitored_barrier(*ignored, **more):
        return None

    def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, *others, **more):
        scatter_object_output_list[0] = scatter_object_input_list[0]

    def gather_object(obj, object_gather_list=None, *others, **more):
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def all_gather_object(object_list, obj, *others, **more):
        object_list[:] = [obj] * len(object_list)

    def broadcast_object_list(*ignored, **more):
        return None

    for function in (init_process_group, new_group, split_group, monitored_barrier, scatter_object_list,
                     gather_object, all_gather_object, broadcast_object_list):
        if hasattr(c10d, function.__name__):
            setattr(c10d, function.__name__, function)
    for name in "reduce_scatter_tensor", "all_to_all_single", "scatter":
        setattr(c10d, name, with_own_part(getattr(c10d, name)))


def with_own_part(collective):
    """The fake group leaves what it was handed for the result as it was: not a number, perhaps, where a script
    looks at its loss. What this rank itself gives to it is finite where a real result would be."""
    import inspect

    names = list(inspect.signature(collective).parameters)[:2]

    def filled(*words, **more):
        import torch

        output, own = ({**dict(zip(names, words)), **more}.get(name) for name in names)
        own = own[0] if isinstance(own, (list, tuple)) else own  # of scatter a list, where this rank sends
        if own is not None and own.is_contiguous() and output.is_contiguous():
            known = min(output.numel(), own.numel())
            with torch.no_grad():
                output.view(-1)[:known].copy_(own.view(-1)[:known])
                output.view(-1)[known:].zero_()
        return collective(*words, **more)

    return filled


def play_reducer(module):
    """The fake group's all-reduce ends without a tensor, which DDP asks for (torch 2.11)."""
    prepare = module.DistributedDataParallel._pre_forward

    def keep(state, bucket):
        import torch

        buffer = bucket.buffer()
        buffer.div_(ranks)
        future = torch.futures.Future()
        future.set_result(buffer)
        return future

    def _pre_forward(self, *inputs, **more):
        if not self._comm_hooks:  # one of the script's own stays
            self.register_comm_hook(None, keep)
        return prepare(self, *inputs, **more)

    module.DistributedDataParallel._pre_forward = _pre_forward


def play_gathering(operations):
    """Accelerate gathers metrics of any shape from all ranks: here each has what this one has."""

    def repeat(tensor):
        return tensor.reshape(1).repeat(ranks) if tensor.ndim == 0 else tensor.repeat(ranks, *[1] * (tensor.ndim - 1))

    def _gpu_gather(tensor):
        return operations.recursively_apply(repeat, tensor, error_on_other_type=True)

    operations._gpu_gather = _gpu_gather


# ------------------------------------------------------------------ the card


def true_properties(device):
    import torch

    return torch.cuda._get_device_properties(device)


class Properties:
    """A card's, with another total."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return min(limit, self.real.total_memory) if name == "total_memory" else getattr(self.real, name)

    def __repr__(self):
        return repr(self.real)


def keep_peaks(cuda):
    stats = cuda.memory_stats()
    for key in "allocated", "requested", "reserved":
        name = f"{key}_bytes"
        largest[name] = max(largest.get(name, 0), stats.get(f"{name}.all.peak", 0))
    largest["retries"] = stats.get("num_alloc_retries", 0)


def play_card(cuda):
    """torch.cuda: its peaks outlive a script that resets them, and it is kept to the limit when it starts."""
    reset, look, get_properties = cuda.reset_peak_memory_stats, cuda.mem_get_info, cuda.get_device_properties
    set_fraction = cuda.set_per_process_memory_fraction

    def reset_peak_memory_stats(device=None):
        if cuda.is_initialized():
            keep_peaks(cuda)
        return reset(device)

    def mem_get_info(device=None):
        free, total = look(device)
        return max(min(limit - cuda.memory_reserved(device), free), 0), min(limit, total)

    def get_device_properties(device=None):
        return Properties(get_properties(device))

    def set_per_process_memory_fraction(fraction, device=None):
        return set_fraction(fraction * limit / look(device)[1], device)

    def keep_to_limit():
        total = look()[1]
        if limit > total:
            refuse(f"torch is to be kept to {limit} bytes, and this GPU has {total}: a larger card cannot be played "
                   "on a smaller one")
        set_per_process_memory_fraction(1.0)

    replaced = [reset_peak_memory_stats]
    if limit:
        replaced += [mem_get_info, get_device_properties, set_per_process_memory_fraction]
        cuda._lazy_call(keep_to_limit)
    for function in replaced:
        for module in cuda, cuda.memory:
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)


def play_fake(torch):
    import fathom_fake

    def excepthook(kind, error, trace):
        text = fathom_fake.sentence(error)
        failed.append(error)
        former(kind, error, trace)
        if text:
            sys.stderr.write(f"ValueError: {text}\n")

    former, sys.excepthook = sys.excepthook, excepthook
    fathom_fake.begin()


def play_types(module):
    """transformers.utils.import_utils: the card that is meant has bf16. Launchers look at it too."""
    module.is_torch_bf16_gpu_available = lambda: True


def play_replicas(module):
    """torch.nn.parallel.distributed: the number of a GPU, which Accelerate names, says nothing of its stand-in."""
    make = module.DistributedDataParallel.__init__

    def __init__(self, replica, device_ids=None, output_device=None, *others, **more):
        make(self, replica, None, None, *others, **more)

    module.DistributedDataParallel.__init__ = __init__


def of_fake(name, change):
    """A change that another file makes, which imports torch and expects that it is played."""

    def play(module):
        importlib.import_module("torch")
        getattr(importlib.import_module(name), change)(module)

    return play


def tell_fake():
    fathom_fake = sys.modules.get("fathom_fake")
    if failed or not hasattr(fathom_fake, "recorder"):
        return
    announce()
    found, trouble = fathom_fake.end(limit)
    if found:
        say("peaks", **found)
        return
    sys.stdout.flush()
    sys.stderr.write(trouble)
    sys.stderr.flush()
    os._exit(1)


def tell_peaks():
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    first = os.environ.get("RANK", "0") == "0"
    if cuda is None or not first or not (played or cuda.is_initialized()):
        return
    if not played:
        announce()
    if cuda.is_initialized():
        keep_peaks(cuda)
    say("peaks", **largest)


# ------------------------------------------------------------------ when modules come

CHANGES = {"torch.cuda": play_card}
CHANGES_OF_RANKS = {
    "torch.distributed.distributed_c10d": play_group,
    "torch.nn.parallel.distributed": play_reducer,
    "accelerate.utils.operations": play_gathering,
}


CHANGES_OF_FAKE = {
    "torch": play_fake,
    "transformers.modeling_utils": of_fake("fathom_fake", "play_models"),
    "transformers.trainer": of_fake("fathom_fake", "play_trainer"),
    "transformers.utils.import_utils": play_types,
    "trl.kernels.chunked_logprob": of_fake("fathom_fake_kernels", "play_trl_head"),
    "trl.kernels.chunked_divergence": of_fake("fathom_fake_kernels", "play_trl_divergence"),
    "trl.trainer.utils": of_fake("fathom_fake_kernels", "play_trl_rows"),
    "accelerate.state": of_fake("fathom_fake_ranks", "play_state"),
    "accelerate.utils.fsdp_utils": of_fake("fathom_fake_ranks", "play_loading"),
    "accelerate.utils.dataclasses": of_fake("fathom_fake_ranks", "play_plugin"),
    "torch.nn.parallel.distributed": play_replicas,
    "deepspeed.accelerator.cpu_accelerator": of_fake("fathom_fake_ranks", "play_accelerator"),
    "deepspeed.ops": of_fake("fathom_fake_ranks", "play_deepspeed"),
    "torch.distributed.fsdp._fully_shard._fsdp_init": of_fake("fathom_fake_ranks", "play_shards"),
    "torch.distributed.fsdp._flat_param": of_fake("fathom_fake_ranks", "play_flat"),
    "torch.distributed.fsdp._init_utils": of_fake("fathom_fake_ranks", "play_shards"),
}


def after(first, second):
    def both(module):
        if first:
            first(module)
        second(module)

    return both


class Changes:
    """A finder in front of the others that changes some modules as soon as they have run."""

    def find_spec(self, name, path=None, target=None):
        change = CHANGES.get(name)
        if change is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self.follow(spec.loader, change)
                return spec
        return None

    @staticmethod
    def follow(loader, change):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            change(module)

        loader.exec_module = exec_module


def run_hidden():
    """The sitecustomize that would have been found without this one."""
    others = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if program() in LAUNCHERS:
    forget_variables()
    if fake:
        CHANGES = {"transformers.utils.import_utils": play_types}
        sys.meta_path.insert(0, Changes())
elif watches:
    if ranks:
        set_variables()
        CHANGES.update(CHANGES_OF_RANKS)
    if fake:
        CHANGES.pop("torch.cuda")
        CHANGES.update({name: after(CHANGES.get(name), change) for name, change in CHANGES_OF_FAKE.items()})
    sys.meta_path.insert(0, Changes())
    atexit.register(tell_fake if fake else tell_peaks)
run_hidden()
