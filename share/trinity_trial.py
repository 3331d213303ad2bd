#!/usr/bin/env python3
"""One run of Trinity-RFT, for `fathom probe --engine trinity`.

Usage: trinity_trial.py --config FILE --plugin-dir FOLDER [--dlc]

What `trinity run` does, with what a trial needs beside it. `trinity run` ends with status 0 even when its
trainer ran out of memory: here the trainer's steps are counted, and too few of them are a failure. Ray's
processes take their environment from the cluster and not from the command: the allocator's settings are sent
along. Where no Ray runs, one is started for the trial and ended with it. And lengths beyond the model's positions
(FATHOM_YARN, a factor) get a copy of its folder whose config.json has YaRN, because verl's trainer reads that alone.

The plug-in that Trinity copies into its own package, to be loaded by every later run, is taken out again.
"""
import argparse
import filecmp
import glob
import json
import os
import socket
import subprocess
import sys
import time
import traceback

import trinity
import yarn
from trinity.cli import launcher
from trinity.common.config import Config
from trinity.trainer import trainer
from trinity.utils.dlc_utils import is_running

REMEMBERED = os.path.join(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")
RECORD = "fathom_trial.jsonl"
SECONDS_TO_START_RAY = 120
GIB = 2**30
FOR_ALL_PROCESSES = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"


class CountedTrainer(trainer.Trainer):
    """Writes down what became of its steps. Ray sends a class of the main module by value."""

    def note(self, **what):
        with open(os.path.join(self.config.checkpoint_job_dir, RECORD), "a") as out:
            out.write(json.dumps(what) + "\n")

    async def train_step(self, exps):
        try:
            metrics = await super().train_step(exps)
        except Exception:
            self.note(error=traceback.format_exc())
            raise
        peaks = {name: metrics.get(f"actor/perf/max_memory_{name}_gb") for name in ("allocated", "reserved")}
        self.note(step=self.train_step_num, **peaks)
        return metrics

    async def train(self):
        name = await super().train()
        self.note(ended=True)
        return name


def send_environment():
    known = Config.get_envs
    Config.get_envs = lambda self: {
        **known(self), **{name: os.environ[name] for name in FOR_ALL_PROCESSES if name in os.environ}}


def remove_copies(folder):
    for plugin in glob.glob(os.path.join(folder, "*.py")):
        copy = os.path.join(os.path.dirname(trinity.__file__), "plugins", os.path.basename(plugin))
        if os.path.exists(copy) and filecmp.cmp(plugin, copy, shallow=False):
            os.remove(copy)


def stretch_model():
    """The model with YaRN in its config.json, beside the trial's checkpoints, which are removed after it."""
    factor = os.environ.get("FATHOM_YARN")
    if factor:
        folder = os.path.join(os.path.abspath(os.environ["TRINITY_CHECKPOINT_ROOT_DIR"]), f"model-yarn-{factor}")
        yarn.main(os.environ["MODEL_PATH"], folder, factor)
        os.environ["MODEL_PATH"] = folder


def answers(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except (OSError, ValueError):
        return False
    return True


def cluster_runs():
    """Asking Ray takes most of a minute where the cluster that it remembers is gone, as after every trial."""
    if "RAY_ADDRESS" not in os.environ and os.path.exists(REMEMBERED):
        with open(REMEMBERED) as file:
            if not answers(file.read().strip()):
                return False
    return is_running()


def start_ray():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    beside = os.path.join(os.path.dirname(sys.executable), "ray")
    ray = subprocess.Popen(
        [beside if os.path.exists(beside) else "ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1",
         f"--port={port}", "--include-dashboard=false", "--disable-usage-stats"], stdout=subprocess.DEVNULL)
    os.environ["RAY_ADDRESS"] = f"127.0.0.1:{port}"
    end = time.monotonic() + SECONDS_TO_START_RAY
    while not (answers(os.environ["RAY_ADDRESS"]) and is_running()):
        if ray.poll() is not None or time.monotonic() > end:
            ray.kill()
            sys.exit("Ray did not start")
        time.sleep(0.5)
    return ray


def run(arguments):
    """Returns the configuration as the launcher completed it."""
    seen = []
    run_stage = launcher.run_stage

    def noted_run_stage(config):
        seen.append(config)
        return run_stage(config)

    launcher.run_stage = noted_run_stage
    trainer.Trainer = CountedTrainer
    send_environment()
    launcher.run(config=arguments.config, dlc=arguments.dlc, plugin_dir=arguments.plugin_dir)
    return seen[0]


def judge(config):
    """Prints the peaks of the steps; returns why the run is a failure, or None."""
    path = os.path.join(config.checkpoint_job_dir, RECORD)
    notes = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
    steps = [note for note in notes if "step" in note]
    for note in steps:
        peaks = {f"{name}_bytes": round(note[name] * GIB) for name in ("allocated", "reserved") if note[name]}
        print(json.dumps({"fathom": "step", "step": note["step"], **peaks}), flush=True)
    for note in notes:
        if "error" in note:
            return note["error"]
    if len(steps) < config.buffer.total_steps:
        return f"the trainer took {len(steps)} of {config.buffer.total_steps} steps"
    return None if {"ended": True} in notes else "the trainer did not end"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--plugin-dir", required=True)
    parser.add_argument("--dlc", action="store_true")
    arguments = parser.parse_args()
    arguments.plugin_dir = os.path.abspath(arguments.plugin_dir)
    stretch_model()
    os.environ["FATHOM_TASKS"] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trinity_tasks")
    ray = None if arguments.dlc or cluster_runs() else start_ray()
    try:
        failure = judge(run(arguments))
    finally:
        remove_copies(arguments.plugin_dir)
        if ray:
            ray.terminate()
            ray.wait()
    if failure is None:
        print(json.dumps({"fathom": "done"}), flush=True)
    sys.exit(failure)


if __name__ == "__main__":
    main()
