"""torch's own tools for memory snapshots read the ones that predict writes."""
import os
import pickle
import re
import subprocess
import tempfile
import unittest

from common import FATHOM

from torch.cuda import _memory_viz


class Snapshots(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "predicted.pickle")
            subprocess.run([FATHOM, "predict", "--model", "Qwen3-0.6B", "--gpu", "H200", "--context", "4k", "--snapshot", path],
                           check=True, capture_output=True)
            with open(path, "rb") as file:
                self.snapshot = pickle.load(file)

    def test_segments(self):
        shown = _memory_viz.segsum(self.snapshot)
        total = sum(segment["total_size"] for segment in self.snapshot["segments"])
        self.assertIn(f"{total / 2**30:.1f}GiB", re.search(r"total_reserved:? *(\S+)", shown).group(1))

    def test_events(self):
        events, = self.snapshot["device_traces"]
        self.assertIn(f"{len(events)} entries", _memory_viz.trace(self.snapshot))

    def test_plots(self):
        for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
            self.assertIn("MemoryViz.js", plot(self.snapshot))

    def test_flames_are_modules(self):
        lines = _memory_viz.memory(self.snapshot, format_flamegraph=lambda text: text)
        for stack in ("step 0:0:building the model;model:0:embed_tokens;embed_tokens:0:parameters 311164928",
                      "layers.3:0:mlp;layers.3.mlp:0:up_proj;layers.3.mlp.up_proj:0:optimizer 6291456"):
            self.assertTrue(stack in lines, stack)


if __name__ == "__main__":
    unittest.main()
