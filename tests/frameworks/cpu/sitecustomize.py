"""On a machine without a GPU Accelerate trains by DDP whatever its file says (state.py: only other
device types turn into FSDP). This makes it follow the file on the CPU too, where gloo can."""
import os

if os.environ.get("ACCELERATE_USE_FSDP") == "true":
    from accelerate import state

    plain = state.AcceleratorState.__init__

    def follow_the_file(self, *args, fsdp_plugin=None, **kwargs):
        plain(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if fsdp_plugin is not None and self.distributed_type == state.DistributedType.MULTI_CPU:
            self.distributed_type = state.DistributedType.FSDP
            self.fsdp_plugin = fsdp_plugin
            if self._mixed_precision != "no":
                fsdp_plugin.set_mixed_precision(self._mixed_precision)
            # one write: two processes share the pipe
            os.write(1, f"sharded by FSDP {fsdp_plugin.fsdp_version}\n".encode())

    state.AcceleratorState.__init__ = follow_the_file
