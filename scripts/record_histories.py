#!/usr/bin/env python3
"""Records allocator histories of small random workloads on a real GPU.

Usage: scripts/record_histories.py FOLDER

One process a scenario, each with its own allocator configuration; every one leaves NAME.pickle
(torch's own snapshot, history included) and NAME.json (torch's statistics, what the replay must
reproduce). They are the real recordings behind tests/data/histories.
"""
import json
import os
import random
import subprocess
import sys

MIB = 1 << 20

SCENARIOS = {
    "classic": {},
    "expandable": {"conf": "expandable_segments:True"},
    "max_split": {"conf": "max_split_size_mb:64"},
    "power2": {"conf": "roundup_power2_divisions:4"},
    "gc": {"conf": "garbage_collection_threshold:0.5", "limit_mib": 1200},
    "classic_limit": {"limit_mib": 700},
    "expandable_limit": {"conf": "expandable_segments:True", "limit_mib": 700},
    "late": {"late": True},
    "late_expandable": {"late": True, "conf": "expandable_segments:True"},
    "train": {"train": True},
    "train_expandable": {"train": True, "conf": "expandable_segments:True"},
}


def random_bytes(rng):
    kind = rng.random()
    if kind < 0.4:
        return rng.randint(1, 4096)
    if kind < 0.6:
        return rng.randint(4096, MIB)
    if kind < 0.9:
        return rng.randint(MIB, 12 * MIB)
    return rng.randint(12 * MIB, 90 * MIB)


def churn(torch, rng, operations, live_limit):
    side = torch.cuda.Stream()
    live = []
    for i in range(operations):
        total = sum(t.numel() for t in live)
        if live and (rng.random() < 0.45 or total > live_limit):
            victim = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.1:
                victim.record_stream(side)
            del victim
        else:
            on_side = rng.random() < 0.2
            with torch.cuda.stream(side if on_side else torch.cuda.current_stream()):
                live.append(torch.empty(random_bytes(rng), dtype=torch.uint8, device="cuda"))
        if i % 700 == 699:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
    return live


def train(torch):
    layers = [torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)]
    model = torch.nn.Sequential(*layers, *[torch.nn.Linear(1024, 1024) for _ in range(4)])
    model = model.cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        x = torch.randn(2048 + 512 * step, 1024, device="cuda", dtype=torch.bfloat16)
        model(x).float().pow(2).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return model, optimizer


def record(name, folder):
    import torch

    scenario = SCENARIOS[name]
    rng = random.Random(name)
    torch.cuda.init()
    if "limit_mib" in scenario:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(scenario["limit_mib"] * MIB / total)
    kept = []
    if scenario.get("late"):
        kept = churn(torch, rng, 300, 400 * MIB)
    torch.cuda.memory._record_memory_history(context=None, max_entries=1000000)
    outcome = "done"
    torch.cuda.reset_peak_memory_stats()
    try:
        if scenario.get("train"):
            kept += train(torch)
        else:
            limit = scenario.get("limit_mib", 10**6) * MIB
            kept += churn(torch, rng, 2500, int(0.92 * limit) if limit < 10**11 else 900 * MIB)
            if "limit_mib" in scenario:
                while True:
                    kept.append(torch.empty(30 * MIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        outcome = str(error).split("\n")[0]
    torch.cuda.memory._dump_snapshot(os.path.join(folder, name + ".pickle"))
    stats = torch.cuda.memory_stats()
    wanted = {
        key: stats[key + ".all.peak"] if "bytes" in key else stats[key]
        for key in ("allocated_bytes", "requested_bytes", "reserved_bytes", "num_alloc_retries", "num_ooms")
    }
    wanted.update(outcome=outcome, torch=torch.__version__, conf=scenario.get("conf", ""))
    wanted.update(limit_bytes=scenario.get("limit_mib", 0) * MIB)
    with open(os.path.join(folder, name + ".json"), "w") as out:
        json.dump(wanted, out, indent=1)


def main():
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        record(sys.argv[2], folder)
        return
    for name, scenario in SCENARIOS.items():
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=scenario.get("conf", ""))
        done = subprocess.run([sys.executable, __file__, folder, name], env=environment)
        print(name, "ok" if done.returncode == 0 else "failed")


if __name__ == "__main__":
    main()
