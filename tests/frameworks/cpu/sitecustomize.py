"""On a machine without a GPU Accelerate trains by DDP whatever its file says (state.py: only other
device types turn into FSDP or DeepSpeed). This makes it follow the file on the CPU too, where gloo can."""
import atexit
import datetime
import os
import sys


def say(text):
    os.write(1, f"{text}\n".encode())  # one write: two processes share the pipe


def follow_fsdp(state, plugin):
    state.fsdp_plugin = plugin
    if state._mixed_precision != "no":
        plugin.set_mixed_precision(state._mixed_precision)
    say(f"sharded by FSDP {plugin.fsdp_version}")


def follow_deepspeed(state, plugin):
    plugin.set_mixed_precision(state._mixed_precision)
    plugin.select(_from_accelerator_state=True)
    state._mixed_precision = "no"  # DeepSpeed's own configuration has it
    state.deepspeed_plugins = plugin
    say(f"sharded by DeepSpeed {plugin.zero_stage}")


def follow(kind, plugin_name, follow_plugin):
    from accelerate import state

    plain = state.AcceleratorState.__init__

    def follow_the_file(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        plugin = kwargs.get(plugin_name)
        if plugin is not None and self.distributed_type == state.DistributedType.MULTI_CPU:
            self.distributed_type = state.DistributedType[kind]
            state.PartialState._shared_state["distributed_type"] = self.distributed_type
            follow_plugin(self, plugin)

    state.AcceleratorState.__init__ = follow_the_file


if os.environ.get("ACCELERATE_USE_FSDP") == "true":
    follow("FSDP", "fsdp_plugin", follow_fsdp)
if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
    from deepspeed import ops

    ops.__compatible_ops__["deepspeed_shm_comm"] = False  # compiling it takes minutes
    follow("DEEPSPEED", "deepspeed_plugin", follow_deepspeed)


def leave_together():
    """gloo's threads now and then abort a process whose peer has gone before it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return
    try:
        torch.distributed.monitored_barrier(timeout=datetime.timedelta(seconds=10))
        torch.distributed.destroy_process_group()
    except Exception:  # a rank that failed has gone already; its own message says why
        pass


atexit.register(leave_together)
