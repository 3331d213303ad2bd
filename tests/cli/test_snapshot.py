#!/usr/bin/env python3
"""The snapshots that predict writes: Python unpickles them, what they hold adds up as in one of torch's, and replay
finds the predicted peaks in them and every call of the driver.

Usage: tests/cli/test_snapshot.py PROGRAM-FOLDER
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.abspath(sys.argv.pop()), "fathom")
KEYS = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
        "segment_type", "segment_pool_id", "is_expandable", "blocks"}


def answer(*words):
    return json.loads(subprocess.run([PROGRAM, *words, "--json"], capture_output=True, check=False).stdout)


def snapshot_of(*words):
    """(the prediction, the snapshot, its replay)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "predicted.pickle")
        predicted = answer("predict", *words, "--snapshot", path)
        with open(path, "rb") as file:
            return predicted, pickle.load(file), answer("replay", path)


def live_bytes(events):
    """What torch's viewer draws at the end: allocations that nothing freed."""
    live = {}
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_requested":
            del live[event["addr"]]
    return sum(live.values())


class Snapshots(unittest.TestCase):
    def check(self, *words):
        predicted, snapshot, replayed = snapshot_of(*words)
        events, = snapshot["device_traces"]
        peak = predicted["peak"]
        for what in ("allocated", "requested", "reserved"):
            self.assertEqual(replayed["peak"][f"{what}_bytes"], peak[f"{what}_bytes"], (what, words))
        self.assertEqual(replayed["segment_events_matched"], replayed["segment_events"], words)
        self.assertEqual(replayed["segment_events_extra"], 0, words)
        for segment in snapshot["segments"]:
            self.assertEqual(set(segment), KEYS)
            self.assertEqual(sum(block["size"] for block in segment["blocks"]), segment["total_size"])
        self.assertEqual(snapshot["segments"], sorted(snapshot["segments"], key=lambda each: each["address"]))
        active = sum(block["requested_size"] for segment in snapshot["segments"] for block in segment["blocks"]
                     if block["state"] == "active_allocated")
        self.assertEqual(active, live_bytes(events))
        return events

    def test_one_gpu(self):
        events = self.check("--model", "Qwen3-0.6B", "--gpu", "H100-80G", "--context", "4k")
        stacks = {tuple((frame["filename"], frame["name"]) for frame in event["frames"])
                  for event in events if event["action"] == "alloc"}
        self.assertIn((("layers.3.mlp.up_proj", "working set"), ("layers.3.mlp", "up_proj"), ("layers.3", "mlp"),
                       ("layers", "3"), ("model", "layers"), ("step 2", "forward")), stacks)
        self.assertIn((("layers.3.mlp.up_proj", "parameters"), ("layers.3.mlp", "up_proj"), ("layers.3", "mlp"), ("layers", "3"),
                       ("model", "layers"), ("step 0", "building the model")), stacks)
        self.assertTrue(any(stack[-1] == ("step 3", "backward") and stack[0][0].startswith("layers.27.self_attn")
                            for stack in stacks))
        self.assertTrue(all(event["frames"] for event in events if event["action"] == "alloc"))

    def test_expandable(self):
        self.check("--model", "Qwen3-0.6B", "--gpu", "H100-80G", "--context", "4k", "--expandable", "on")

    def test_streams(self):
        events = self.check("--model", "Qwen3-4B", "--gpu", "8xA100-80G", "--context", "2k", "--strategy", "fsdp2")
        self.assertGreater(len({event["stream"] for event in events}), 1)

    def test_zero(self):
        self.check("--model", "Qwen3-1.7B", "--gpu", "8xA100-80G", "--context", "2k", "--strategy", "zero3")

    def test_out_of_memory(self):
        events = self.check("--model", "Qwen3-8B", "--gpu", "8xH100-80G", "--context", "32k")
        self.assertEqual(events[-1]["action"], "oom")
        self.assertIn("device_free", events[-1])


if __name__ == "__main__":
    unittest.main()
