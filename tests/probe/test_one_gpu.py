#!/usr/bin/env python3
"""`fathom probe --one-gpu` around scripts that know nothing of it, torch and its card being played: which card a
script sees, what is kept of its peaks, and what is refused. tests/frameworks/test_one_gpu.py has the real torch.

Usage: tests/probe/test_one_gpu.py PROGRAM-FOLDER [unittest arguments]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = os.path.abspath(sys.argv.pop(1))
FATHOM = os.path.join(PROGRAMS, "fathom")
GIB = 1 << 30

# A card of 100 GiB; what a tensor takes is said.
STAND_IN = {
    "__init__.py": """
        __version__ = "2.11.0"
        class OutOfMemoryError(RuntimeError): pass
        from . import cuda, distributed
    """,
    "cuda/__init__.py": """
        from types import SimpleNamespace
        from . import memory
        from .memory import *
        queued, initialized = [], False
        def is_initialized(): return initialized
        def is_available(): return True
        def _lazy_call(call): queued.append(call)
        def current_device():
            global initialized
            while queued: queued.pop(0)()
            initialized = True
            return 0
        def _get_device_properties(device): return SimpleNamespace(name="Stand-in", total_memory=TOTAL, major=9)
        def get_device_properties(device=None): return _get_device_properties(current_device())
    """,
    "cuda/memory.py": """
        TOTAL = 100 << 30
        reserved, peak, allowed = 0, 0, TOTAL
        def mem_get_info(device=None): return TOTAL - reserved - (1 << 30), TOTAL
        def memory_reserved(device=None): return reserved
        def reset_peak_memory_stats(device=None):
            global peak
            peak = reserved
        def memory_stats(): return {f"{name}_bytes.all.peak": peak for name in ("allocated", "requested", "reserved")}
        def set_per_process_memory_fraction(fraction, device=None):
            import torch
            global allowed
            torch.cuda.current_device()
            allowed = int(fraction * TOTAL)
        def take(count):
            import torch
            global reserved, peak
            torch.cuda.current_device()
            if reserved + count > allowed:
                raise torch.OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate {count / (1 << 30):.2f} GiB. GPU 0 has a total capacity of "
                    f"100.00 GiB of which 99.00 GiB is free. {allowed / (1 << 30):.2f} GiB allowed; Of the allocated "
                    "memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.")
            reserved += count
            peak = max(peak, reserved)
        def give(count):
            global reserved
            reserved -= count
    """,
    "distributed/__init__.py": "from .distributed_c10d import *",
    "distributed/distributed_c10d.py": """
        world = 0
        def init_process_group(backend, store, rank, world_size):
            global world
            assert (backend, rank) == ("fake", 0)
            world = world_size
        def get_world_size(): return world
        def new_group(*words, **more): pass
        def reduce_scatter_tensor(*words): pass
        def all_to_all_single(*words): pass
        def scatter(*words): pass
    """,
    "testing/_internal/distributed/fake_pg.py": "class FakeStore: pass",
}
SCRIPT = """
import os, sys, torch
torch.distributed.init_process_group("nccl", device_id=0)
torch.cuda.take(int(sys.argv[1]) << 20)
torch.cuda.give(1 << 20)
torch.cuda.reset_peak_memory_stats()
print("saw", torch.distributed.get_world_size(), os.environ["WORLD_SIZE"], os.environ["LOCAL_WORLD_SIZE"],
      torch.cuda.mem_get_info(), torch.cuda.get_device_properties(0).total_memory, torch.cuda.get_device_properties(0).major)
"""


class OneGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-one-gpu-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name, text in STAND_IN.items():
            self.write("site/torch/" + name, text)
        self.write("script.py", SCRIPT)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lines = text.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        with open(path, "w") as file:
            file.write("\n".join(line[indent:] for line in lines) + "\n")

    def probe(self, *options, script="script.py {context}", paths=("site",)):
        environment = {**os.environ, "PYTHONPATH": ":".join(os.path.join(self.folder, path) for path in paths)}
        return subprocess.run(
            [FATHOM, "probe", "--engine", "command", "--one-gpu", "--start", "8k", "--grid", "8k", "--json", "--command",
             f"{sys.executable} {script}", *options], cwd=self.folder, env=environment, timeout=100,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def attempts(self):
        done = subprocess.run([FATHOM, "probe", "--export", "json"], cwd=self.folder, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["attempts"]

    def log(self, gpus, context):
        with open(os.path.join(self.folder, f"logs/model/gpu-{gpus}/sp-1/model_len-{context}.log")) as file:
            return file.read()

    def test_another_cards_memory(self):
        """A context of so many MiB: 40 GiB are 40960, and the card has 100."""
        done = self.probe("--memory-limit", "40GiB", "--gpus", "64", "--until", "64k")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([cell["max_context"] for cell in json.loads(done.stdout)["cells"]], [40960])
        seen = {attempt["context"]: attempt for attempt in self.attempts()}
        self.assertEqual((seen[40960]["outcome"], seen[49152]["outcome"]), ("fits", "gpu_memory"))
        self.assertEqual((seen[40960]["reserved_bytes"], seen[40960]["gpu"]), (40 * GIB, "Stand-in"))
        self.assertIn(f"saw 64 64 8 ({1 << 20}, {40 * GIB}) {40 * GIB} 9\n", self.log(64, 40960))

    def test_the_whole_card(self):
        done = self.probe("--gpus", "2", "--until", "200k")
        self.assertEqual([cell["max_context"] for cell in json.loads(done.stdout)["cells"]], [98304])
        self.assertIn(f" {100 * GIB} 9\n", self.log(2, 98304))

    def test_a_larger_card_is_refused(self):
        done = self.probe("--memory-limit", "141GiB", "--gpus", "8")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("configuration error", done.stderr)
        self.assertIn("a larger card cannot be played on a smaller one", self.log(8, 8192))

    def test_a_fraction_of_the_scripts_own(self):
        """Half of the card that is played, not of the one that is there."""
        self.write("half.py", "import torch\ntorch.cuda.set_per_process_memory_fraction(0.5)\n" + SCRIPT)
        done = self.probe("--memory-limit", "40GiB", "--gpus", "8", "--until", "64k", script="half.py {context}")
        self.assertEqual([cell["max_context"] for cell in json.loads(done.stdout)["cells"]], [16384])

    def test_what_is_not_played_does_not_fit(self):
        done = self.probe("--gpus", "8", script="-c '{context}'")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("configuration error; another length would not change it: --one-gpu plays ranks", done.stderr)
        self.assertEqual(self.probe("--gpus", "1", "--until", "8k", script="-c '{context}'").returncode, 0)

    def test_what_is_hidden_runs_too(self):
        self.write("own/sitecustomize.py", "print('the one that was hidden')")
        done = self.probe("--gpus", "8", "--until", "8k", paths=("own", "site"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.log(8, 8192).count("the one that was hidden"), 1)


if __name__ == "__main__":
    unittest.main()
