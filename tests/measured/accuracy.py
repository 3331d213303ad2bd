#!/usr/bin/env python3
"""Predicts every measured training run and says how far off the predictions are.

Usage: tests/measured/accuracy.py PROGRAM-FOLDER RUNS.jsonl... [--write DOCS-FOLDER] [--only KEY=VALUE ...] [--rows]
       tests/measured/accuracy.py PROGRAM-FOLDER STORE [--only KEY=VALUE ...]

RUNS.jsonl has one run a line: `cfg`, its settings (or `settings`, as `fathom predict` takes them), and `peaks`,
what torch measured in each step; rows of several files are numbered on. STORE is what `fathom probe` keeps
(logs/probe.db): its trials are predicted, printed one by one and summed up, and nothing is written. A run
is predicted from its settings alone. Its error is the largest relative error over its steps. A run whose
settings the program refuses (exit 2) is not modelled: it is counted and listed. Any other failure of the
program fails the script. --rows prints every run, the worst first. --only keeps the runs whose cfg says
so (`--only strategy=fsdp2 seq=4096`; `row=12` is line 12). --write makes accuracy.md and accuracy.svg. --bars prints
the bars as they would be if made now.
Exits 0 if every bar is met, as many runs are predicted as each file must have, and what the program says of its own
accuracy (core/evidence/kinds.c) is what the runs give; else 1. Of a store, 0 if it could be compared.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import decimal
import json
import math
import os
import subprocess
import sys
import tempfile

import accuracy_plot
import alst
import published
import public_jobs
import public_reports
import real_trainers
import store_runs
import trinity

METRICS = ("allocated", "reserved", "end_allocated")
FEW = 10    # as in core/evidence/kinds.c

# What each file must reach: runs predicted, and percent off. A bar is what was reached, rounded up in its second
# digit (--bars prints them so). A file that is not named here has the bars of all.
FILES = {
    # file: (runs, allocated (median, 95th, worst), reserved (the same), end_allocated worst)
    "h200_cp.jsonl": (10, (0, 0, 0), (0, 0, 0), 0),
    "h200_entropy.jsonl": (3, (0.015, 0.018, 0.018), (2.8, 3.1, 3.1), 0.0039),
    "h200_families.jsonl": (67, (2.2e-05, 0.014, 0.13), (0, 0.17, 0.69), 0.21),
    "h200_family_trainers.jsonl": (48, (0.00014, 0.061, 0.22), (0.16, 2.6, 4.4), 0.14),
    "h200_lora.jsonl": (36, (0, 0.032, 0.081), (0.067, 1.2, 5.4), 0.45),
    "h200_models.jsonl": (54, (0, 0.004, 0.021), (0, 0.13, 0.96), 0.019),
    "h200_runs.jsonl": (113, (2.6e-06, 8.8e-06, 0.0087), (0, 0.015, 0.28), 0.054),
    "h200_unseen.jsonl": (5, (0, 0.0048, 0.006), (0, 0.21, 0.26), 0.12),
    "h200_vl.jsonl": (23, (0.0063, 0.12, 0.57), (0.0098, 0.35, 0.55), 0.064),
    "h200_vl_later.jsonl": (26, (0.0039, 0.04, 1.1), (0.0012, 1.8, 3.8), 0.38),
    "h200_zero.jsonl": (27, (1.3e-05, 0.014, 0.052), (0, 4, 6.6), 8.2e-05),
}

# (metric, runs it is taken over, statistic, percent allowed), over every file above together.
OVERALL = (
    ("allocated", "dense", "median", 5.6e-06),
    ("allocated", "dense", "95th", 0.034),
    ("allocated", "dense", "worst", 1.1),
    ("allocated", "experts", "worst", 0.011),
    ("reserved", "all", "median", 0),
    ("reserved", "all", "95th", 1.2),
    ("reserved", "all", "worst", 6.6),
    ("end_allocated", "all", "worst", 0.45),
)

DIED = "runs that died: every run here completed its three steps"

# What fathom predicts, or will, without a measured run behind it. Strike out what has been measured.
NOT_MEASURED = (
    "other GPUs than the H200, other versions of torch than 2.11",
    "DDP on several GPUs; FSDP1 without checkpointing or where ranks do not divide a unit",
    "experts under sequence parallel, offload or Trinity; windows, soft caps and sinks under sequence parallel",
    "the families of tests/runs/h200_families.jsonl on several GPUs or outside transformers' Trainer in bf16",
    "DeepSpeed over other families than Qwen, Llama and Mistral",
    "latent attention on several GPUs",
    "DeepSpeed with sequence parallel, a tiled MLP, Liger's loss, its own buckets and optimizers, more than 32768 tokens or one GPU",
    "pipeline and expert parallelism (`pp`, `ep`) and tensor parallelism beside anything else but for Megatron's, which is set beside 43 published peaks (docs/megatron.md)",
    "ring context parallelism (`cp`) with experts, offload, bf16 or several sequences; its keys and values that "
    "NCCL holds until they are sent",
    "host memory under FSDP2's offload",
    "QLoRA with at most 1536 tokens, or as `from_pretrained` loads it; LoRA without a full loss or "
    "Liger's, or over Mistral and SmolLM3",
    "images under DDP and ZeRO-1, with LoRA under FSDP1; a tower without images but under FSDP2; what cuDNN takes to cut images into patches",
    "SGD; 8-bit AdamW and Liger's loss under DDP",
    "buffers of NCCL between several GPUs: in these runs the other ranks are played, not real",
    DIED,
    "verl's fused kernels on several GPUs; its entropy in chunks over more than four different numbers of tokens",
)


# ---- Runs and their settings

def switch(value):
    return "on" if value else "off"


def table_of(values):
    return lambda value: values[value]


# cfg key: (option, how its value is written). Keys that are no setting of the prediction have None.
OPTIONS = {
    "model": ("model", str),
    "world": ("gpu", "{}xH200".format),
    "strategy": ("strategy", str),
    "precision": ("precision", table_of({"bf16": "bf16", "autocast": "autocast", "fp32": "mixed"})),
    "seq": ("context", str),
    "layers": ("layers", str),
    "batch": ("batch", str),
    "accum": ("accum", str),
    "sp": ("sp", str),
    "cp": ("cp", str),
    "rank": ("cp-rank", str),
    "recipe": ("recipe", lambda value: {"trl": "trl@1.13"}.get(value, value)),  # whose loss was recorded
    "ac": ("checkpointing", switch),
    "host_checkpoints": ("checkpoint-offload", switch),
    "reshard": ("reshard", switch),
    "offload": ("offload", lambda value: {True: "all", False: "off"}.get(value, value)),
    "fused": ("optimizer", lambda value: "adamw-fused" if value else "adamw"),
    "optimizer": ("optimizer", str),
    "lora": ("lora", str),
    "targets": ("lora-targets", str),
    "quantize": ("quantize", str),
    "loss": ("loss", table_of({"hf": "full", "chunked": "chunked:2048", "chunked256": "chunked:256", "hidden": "none",
                               "liger": "liger"})),
    "tied": ("tied", switch),
    "attn": ("attention", str),
    "images": ("images", str),
    "image_size": ("image-size", str),
    "freeze": ("freeze", str),
    "expandable": ("expandable", switch),
    "cap_gib": ("memory-limit", "{}GiB".format),
    "entropy_saving": ("entropy-saving", switch),
    "fused_kernels": ("fused-kernels", switch),
    "save_hf": ("save-hf", str),
    "torch": ("torch", str),
    "steps": None,
    "trace": None,
}


def options(cfg):
    """The settings of `fathom predict` for a run: option to value, only what the run says. A key or a
    value that is not known here is an error: to drop it would be to predict another run."""
    unknown = sorted(set(cfg) - set(OPTIONS))
    if unknown:
        raise ValueError(f"cfg has {', '.join(unknown)}, which no option is known for")
    said = dict({"world": 1}, **cfg)
    pairs = [(row, said[key]) for key, row in OPTIONS.items() if row and key in said]
    return {name: write(value) for (name, write), value in pairs}


def label(settings):
    """A run in words: what every run has first, then its other settings by name."""
    named = dict(settings)
    if named.get("memory-limit", "").isdigit():
        named["memory-limit"] = f"{int(named['memory-limit']) / 2**30:.2f}GiB"
    first = [named.pop(name, "") for name in ("model", "gpu", "strategy", "precision", "context")]
    return " ".join(filter(None, first)) + "".join(f", {name} {value}" for name, value in named.items())


@dataclasses.dataclass
class Run:
    row: int                 # line in the file, from 1
    cfg: dict
    peaks: list              # of each completed step: bytes by metric
    died: bool
    experts: bool = False    # the model is a mixture of experts
    file: str = ""           # that it was read from
    given: dict = None       # its settings as the program takes them, where there is no cfg
    config: dict = None      # of a model that is not in the catalogue
    peak: dict = None        # of the whole run, where its steps are not known
    fits: bool = None
    steps: list = dataclasses.field(default_factory=list)    # predicted, as the program writes them
    driver: int = None       # bytes of the card in use at its end, as the driver showed them
    reply: dict = dataclasses.field(default_factory=dict)
    refusal: str = None
    crash: str = None

    @property
    def settings(self):
        """As `fathom predict` takes them."""
        return self.given or options(self.cfg)

    def errors(self, metric):
        """Signed relative error of each measured step. A step that was not predicted counts as 0 bytes."""
        if self.peak:
            highest = max((step[metric + "_bytes"] for step in self.steps), default=0)
            return [highest / self.peak[metric] - 1] if metric in self.peak else []
        predicted = [step[metric + "_bytes"] for step in self.steps[: len(self.peaks)]]
        predicted += [0] * (len(self.peaks) - len(predicted))
        return [mine / peak[metric] - 1 for mine, peak in zip(predicted, self.peaks) if metric in peak]

    def error(self, metric):
        """Signed, of the step that is furthest off."""
        return max(self.errors(metric), key=abs, default=0)

    def badness(self):
        """The largest error as a part of what the worst run may have; over 1 is a miss."""
        return max(100 * abs(self.error(metric)) / max(allowed(metric, self), 1e-9) for metric in METRICS)


def bars_of_file(name):
    """(metric, file, statistic, percent) of each bar of a file."""
    if name not in FILES:
        return []
    _, allocated, reserved, end = FILES[name]
    return ([("allocated", name, key, limit) for key, limit in zip(STATISTICS, allocated)]
            + [("reserved", name, key, limit) for key, limit in zip(STATISTICS, reserved)]
            + [("end_allocated", name, "worst", end)])


def allowed(metric, run):
    """Percent that the worst run may be off."""
    bars = bars_of_file(run.file) or OVERALL
    return min(limit for bar, over, statistic, limit in bars
               if bar == metric and statistic == "worst"
               and (over in ("all", run.file) or (over == "experts") == run.experts))


def read_runs(*paths):
    lines = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [(os.path.basename(path), line) for line in file]
    rows = [(number, file, json.loads(line)) for number, (file, line) in enumerate(lines, 1) if line.strip()]
    return [run_of(number, file, row) for number, file, row in rows]


def run_of(number, file, row):
    return Run(number, row.get("cfg", {}), row.get("peaks", []), bool(row.get("oom")), file=file,
               given=row.get("settings"), config=row.get("config"), peak=row.get("peak"),
               driver=row.get("driver_used_end"))


def chosen(run, conditions):
    """Whether the run's cfg has every KEY=VALUE. Values compare as JSON writes them."""
    said = dict(run.given or run.cfg, row=run.row)
    for condition in conditions:
        key, _, value = condition.partition("=")
        got = said.get(key)
        if value != (got if isinstance(got, str) else json.dumps(got)):
            return False
    return True


# ---- Predictions

def ask(program, *arguments):
    """(exit status, reply or None, standard error) of the program."""
    done = subprocess.run([program, *arguments, "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    try:
        reply = json.loads(done.stdout)
    except ValueError:
        reply = None
    return done.returncode, reply, done.stderr.decode("utf-8", "replace").strip()


def ask_predict(program, run):
    def with_settings(settings):
        if run.file in FILES:    # the other ranks are played, which moves nothing
            settings = dict(settings, network="none")
        return ask(program, "predict", *(f"--{name}={value}" for name, value in settings.items()))

    if not run.config:
        return with_settings(run.settings)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(run.config, file)
        file.flush()
        return with_settings(dict(run.settings, model=file.name))


def predict(program, run):
    """Fills in what the program says: steps and verdict, or why there are none."""
    try:
        status, reply, stderr = ask_predict(program, run)
    except subprocess.TimeoutExpired:
        run.crash = "no answer in 120 seconds"
        return
    if status == 2 and reply and "error" in reply:
        run.refusal = reply["error"]["message"]
    elif status in (0, 1) and reply and "steps" in reply:
        run.fits, run.steps, run.reply = reply["fits"], reply["steps"], reply
    else:
        run.crash = f"exit {status}" + (f": {stderr}" if stderr else "")


def predict_all(program, runs):
    """Two processes at a time; the order of the runs stays."""
    _, reply, _ = ask(program, "models")
    experts = {entry["name"] for entry in (reply or {}).get("models", []) if "experts" in entry["model"]}
    for run in runs:
        run.experts = run.settings.get("model") in experts
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda run: predict(program, run), runs))


# ---- Arithmetic

def percentile(values, part):
    """Linear between the two nearest, as numpy does it."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


STATISTICS = {
    "median": lambda values: percentile(values, 0.5),
    "95th": lambda values: percentile(values, 0.95),
    "worst": max,
}


def compared(runs):
    """Those with both a prediction and measured steps."""
    return [run for run in runs if run.refusal is None and run.crash is None and (run.peaks or run.peak)]


def is_whole(runs):
    """Whether every file is there, or runs that are of none."""
    files = {run.file for run in runs}
    return files >= set(FILES) or not files & set(FILES)


def judged(runs):
    """(metric, over, statistic, limit, value in percent or None where no run counts) of each bar."""
    groups = {name: compared(members) for name, members, _ in by_file(runs)}
    bars = [bar for name in groups for bar in bars_of_file(name)]
    if is_whole(runs):
        bars = [*OVERALL, *bars]
        groups["all"] = compared(runs)
        groups["dense"] = [run for run in compared(runs) if not run.experts]
        groups["experts"] = [run for run in compared(runs) if run.experts]
    for metric, over, statistic, limit in bars:
        errors = [100 * abs(run.error(metric)) for run in groups[over] if run.errors(metric)]
        yield metric, over, statistic, limit, STATISTICS[statistic](errors) if errors else None


def rounded_up(value):
    """To two digits that count."""
    if value <= 0:
        return 0
    unit = decimal.Decimal(1).scaleb(math.floor(math.log10(value)) - 1)
    exact = decimal.Decimal(repr(value))
    return float((exact / unit).to_integral_value(decimal.ROUND_CEILING) * unit)


def bars_as_reached(runs):
    """The two tables above, from these runs."""
    def reached(members, metric):
        errors = [100 * abs(run.error(metric)) for run in members if run.errors(metric)]
        return {key: rounded_up(of(errors)) for key, of in STATISTICS.items()}

    lines = []
    for name, members, _ in by_file(runs):
        figures = {metric: reached(compared(members), metric) for metric in METRICS}
        lines.append(f'    "{name}": ({len(compared(members))}, {tuple(figures["allocated"].values())}, '
                     f'{tuple(figures["reserved"].values())}, {figures["end_allocated"]["worst"]}),')
    groups = {"all": compared(runs), "dense": [run for run in compared(runs) if not run.experts],
              "experts": [run for run in compared(runs) if run.experts]}
    lines += [f'    ("{metric}", "{over}", "{key}", {reached(groups[over], metric)[key]}),' for metric, over, key, _ in OVERALL]
    return "\n".join(lines)


def too_few(runs):
    """A sentence for each file of which fewer runs are predicted than there are."""
    counts = [(name, sum(run.refusal is None for run in members), FILES.get(name, (len(members),))[0])
              for name, members, _ in by_file(runs)]
    return [f"- {name}: {found} runs are predicted, not {wanted}" for name, found, wanted in counts if found < wanted]


# ---- What the program says of its own accuracy

def millionths(value):
    return int(rounded_up(value * 1e6 - 1e-6)) if value > 0 else 0


def evidence_of(runs):
    """{kind: (runs, figures as the program should say them)}, in millionths."""
    kinds = collections.defaultdict(list)
    for run in compared(runs):
        if "evidence" in run.reply:
            kinds[run.reply["evidence"]["kind"]].append(run)
    figures = {}
    for kind, members in kinds.items():
        allocated = [abs(run.error("allocated")) for run in members]
        reserved = [abs(run.error("reserved")) for run in members]
        short = [1 / (1 + error) - 1 for run in members for error in run.errors("reserved")]
        figures[kind] = (members, {"allocated_worst": millionths(max(allocated)),
                                   "reserved_median": millionths(STATISTICS["median"](reserved)),
                                   "reserved_worst": millionths(max(reserved)),
                                   "reserved_short": millionths(max(0, *short))})
    return figures


def evidence_lines(runs, others=()):
    """Sentences about rows of core/evidence/kinds.c that the runs contradict; others are runs without bars here. Of one
    file a row may count more runs."""
    lines = []
    for kind, (members, figures) in evidence_of([*runs, *others]).items():
        said = members[0].reply["evidence"]
        if kind == "not measured":
            lines += [f"- a measured run is said not to be: {label(run.settings)}" for run in members]
        elif (any(round(said[name] * 1e6) < figures[name] for name in figures) or said["runs"] < len(members)
              or (is_whole(runs) and said["runs"] != len(members))):
            lines.append(f"- {kind}: this was measured: {evidence_row(members, figures)}")
    return lines + few_lines(runs)


def evidence_row(members, figures):
    return f"{len(members)}, {{{', '.join(map(str, figures.values()))}}}"


def evidence_hints(runs, others=()):
    """Rows that are wider than what was measured."""
    return [f"- {kind} is better than its row: {evidence_row(members, figures)}"
            for kind, (members, figures) in evidence_of([*runs, *others]).items()
            if is_whole(runs) and any(round(members[0].reply["evidence"].get(name, 0) * 1e6) > figures[name] for name in figures)]


def kinds_table(runs, others=()):
    rows = [(kind, str(len(members)), *(percent(figures[name] / 1e4) for name in figures))
            for kind, (members, figures) in evidence_of([*runs, *others]).items()]
    return table(("kind of job", "runs", "allocated: worst", "reserved: median", "worst", "more"), rows)


def few_lines(runs):
    """A kind of few runs is trusted no more than the 95th of 100 of all."""
    if not is_whole(runs):
        return []
    most = millionths(STATISTICS["95th"]([abs(run.error("reserved")) for run in compared(runs)]))
    return [f"- {kind}: {members[0].reply['evidence']['reserved_margin']} is not what 95 % of all runs stay within: {most}"
            for kind, (members, _) in evidence_of(runs).items()
            if members[0].reply["evidence"]["runs"] < FEW and round(members[0].reply["evidence"]["reserved_margin"] * 1e6) < most]


def is_driven(run):
    return run.driver is not None and run.settings["gpu"].startswith("1x")


def driver_lines(runs):
    """Runs whose use of the card is not in the range that was predicted; of one GPU, as played ranks have no NCCL."""
    return [f"- row {run.row} used {run.driver} bytes of the card, not {low} to {high}: {label(run.settings)}"
            for run in compared(runs) if is_driven(run)
            for low, high in [(run.reply["driver_low_bytes"], run.reply["driver_high_bytes"])]
            if not low <= run.driver <= high]


def wrong_verdicts(runs):
    """(runs that died though predicted to fit, runs that completed though predicted not to)."""
    answered = [run for run in runs if run.fits is not None]
    return ([run for run in answered if run.died and run.fits],
            [run for run in answered if not run.died and not run.fits])


def all_met(runs, every=True, others=()):
    """every: of each file all runs are here; others: runs that only evidence is made of."""
    bars = all(value is None or value <= limit for *_, limit, value in judged(runs))
    return (bool(compared(runs)) and bars and not wrong_verdicts(runs)[0] and not evidence_lines(runs, others)
            and not driver_lines(runs) and not (every and too_few(runs)))


# ---- Tables, as Markdown

def table(header, rows):
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    padded = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    padded.insert(1, "| " + " | ".join("-" * max(3, width) for width in widths) + " |")
    return "\n".join(padded)


def percent(value):
    return f"{value:.2f} %"


def bars_table(runs):
    rows = []
    for metric, over, statistic, limit, value in judged(runs):
        verdict = "no run" if value is None else "met" if value <= limit else "**missed**"
        rows.append((metric, over, statistic, f"≤ {limit:g} %", "-" if value is None else f"{value:.4g} %", verdict))
    died = [run for run in runs if run.died and run.fits is not None]
    fooled = len(wrong_verdicts(runs)[0])
    rows.append(("fits, yet died", "all", "count", "0", str(fooled) if died else "-",
                 "**missed**" if fooled else "met" if died else "no run"))
    return table(("what", "runs", "statistic", "bar", "is", ""), rows)


def summary_row(name, errors, count, refused):
    """errors: of each metric, a list of absolute errors."""
    cells = [name, str(count), str(refused)]
    for metric in METRICS:
        wanted = ("worst",) if metric == "end_allocated" else STATISTICS
        cells += [percent(100 * STATISTICS[key](errors[metric])) if errors[metric] else "-" for key in wanted]
    return cells


def summary_table(first, groups):
    """groups: (name, runs, step or None for the worst step of each run)."""
    rows = []
    for name, runs, step in groups:
        counted = [run for run in compared(runs) if step is None or step < len(run.peaks)]
        errors = {metric: [abs(run.error(metric) if step is None else run.errors(metric)[step])
                           for run in counted if run.errors(metric)] for metric in METRICS}
        rows.append(summary_row(name, errors, len(counted), sum(run.refusal is not None for run in runs)))
    header = (first, "predicted", "not modelled", "allocated: median", "95th", "worst",
              "reserved: median", "95th", "worst", "end_allocated: worst")
    return table(header, rows)


def grouped(runs, key):
    """(value of a cfg key, its runs, None) in the order of the file."""
    groups = collections.defaultdict(list)
    for run in runs:
        said = run.given or run.cfg
        own = f"{said['recipe']}'s own" if "recipe" in said and key == "strategy" else None
        groups[str(said.get(key, own))].append(run)
    return [(name, members, None) for name, members in groups.items()]


def overall_groups(runs):
    parts = [("all", runs, None), ("dense", [run for run in runs if not run.experts], None),
             ("experts", [run for run in runs if run.experts], None)]
    steps = max((len(run.peaks) for run in runs), default=0)
    return parts + [(f"step {step + 1} of all", runs, step) for step in range(steps)]


def by_file(runs):
    groups = {}
    for run in runs:
        groups.setdefault(run.file, []).append(run)
    return [(name, members, None) for name, members in groups.items()]


def summaries(runs):
    yield summary_table("runs", overall_groups(runs))
    yield summary_table("file", by_file(runs))
    yield summary_table("strategy", grouped(runs, "strategy"))
    yield summary_table("model", grouped(runs, "model"))


def gib(values):
    return ", ".join(f"{value / 2**30:.2f}" for value in values) or "none"


def error_cell(run, metric):
    error = 100 * run.error(metric)
    return f"**{error:+.2f} % missed**" if abs(error) > allowed(metric, run) else f"{error:+.2f} %"


# (died, predicted to fit): what is said of it.
ENDINGS = {(False, True): "", (False, False): ", **said not to fit**",
           (True, False): ", died as predicted", (True, True): ", died, **said to fit**"}


def run_row(run):
    cells = [str(run.row), label(run.settings) + ENDINGS[run.died, run.fits]]
    for metric in ("allocated", "reserved"):
        cells += [gib(peak[metric] for peak in run.peaks),
                  gib(step[metric + "_bytes"] for step in run.steps), error_cell(run, metric)]
    return cells + [error_cell(run, "end_allocated")]


def runs_table(runs):
    header = ("row", "run", "allocated GiB", "predicted", "error", "reserved GiB", "predicted", "error",
              "end_allocated error")
    return table(header, [run_row(run) for run in runs])


def ranges(numbers):
    """Ascending numbers in words: 1, 2, 3, 7 is '1-3, 7'."""
    spans = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def refusals(runs):
    """A line for each reason, with its rows."""
    reasons = collections.defaultdict(list)
    for run in runs:
        if run.refusal is not None:
            reasons[run.refusal].append(run.row)
    return [f"- {reason} ({len(rows)}: row {ranges(rows)})" for reason, rows in reasons.items()]


def verdict_lines(runs):
    fooled, timid = wrong_verdicts(runs)
    return ([f"- row {run.row} was predicted to fit, but died: {label(run.settings)}" for run in fooled]
            + [f"- row {run.row} was predicted not to fit, but completed: {label(run.settings)}" for run in timid])


def counts(runs):
    refused = sum(run.refusal is not None for run in runs)
    verdict_only = len(runs) - refused - len(compared(runs))
    text = f"{len(runs)} runs: {len(compared(runs))} predicted, {refused} not modelled"
    return text + (f", {verdict_only} died in the first step" if verdict_only else "")


def early_deaths(runs):
    """Those of which there is nothing to compare."""
    rows = [run.row for run in runs if run.died and run.fits is False and not run.peaks]
    return f"\n\nDied in their first step, as predicted: row {ranges(rows)}." if rows else ""


# ---- The document

def coverage(runs):
    """Which values of each setting the runs have, and how many runs each; '-' where a run says nothing."""
    rows = []
    given = [run.settings for run in runs]
    for name in dict.fromkeys([row[0] for row in OPTIONS.values() if row] + [name for each in given for name in each]):
        found = collections.Counter(settings.get(name, "-") for settings in given)
        if set(found) != {"-"}:
            ordered = sorted(found.items(), key=lambda item: (item[0] == "-", -item[1], item[0]))
            rows.append((f"`--{name}`", ", ".join(f"{value} ({count})" for value, count in ordered)))
    return table(("setting", "values (runs); - where the default holds"), rows)


DOCUMENT = """\
# How accurate the predictions are

`fathom predict` against real training runs. This page and its picture are written by

```sh
make accuracy       # tests/measured/accuracy.py build/release {file} --write docs, in tests/runs
```

{counts}.

## What is measured, and how

Each run is a fresh process on one NVIDIA H200 (torch 2.11.0+cu130, transformers 5.17.0, eager mode, random
weights): forward, backward, clipping, AdamW, `zero_grad(set_to_none)`, three times. Ranks other than 0 are
played by torch's fake process group: what rank 0 of a real job holds is really allocated, buffers of NCCL
are not. Peak statistics are reset before each step. `allocated` and `reserved` are the peaks of
`torch.cuda.memory_stats` in that step, `end_allocated` is what is left after it.

`h200_runs.jsonl` is the set that the bars were made for. The others were recorded with our own scripts:
`h200_unseen.jsonl` and most of `h200_models.jsonl` after the code was written, `h200_cp.jsonl` (ring context
parallelism, TRL's step), `h200_zero.jsonl` (DeepSpeed 0.19.8) and `h200_lora.jsonl` (peft 0.21.2, bitsandbytes
0.50.2, liger_kernel 0.8.5) together with it: there the traces were used to find what was missing. Attention is
transformers' `sdpa`, but for gpt-oss (sinks), and where a run says so, which run with `eager`. In 26 runs of
`h200_lora.jsonl`, marked there, a tied head had memory of its own while the model was built, which no prediction has but those of
models with vision (`h200_vl.jsonl`).
`h200_entropy.jsonl` is two steps of the trinity recipe by `share/torch_worker.py` (with verl 0.5's own fused head for
`--fused-kernels`); its allocated peaks were predicted first, its traces then mended the order inside the fused head.
There the host ran ahead of the GPU, which verl's does not: 0.6 GiB of the reserved bytes that no prediction has.

{probed}A prediction knows the run's settings and nothing else. The error of a run is its largest relative error
over the steps, predicted / measured - 1; statistics are over absolute errors, percentiles linear between
the two nearest runs. A step that was not predicted counts as 100 % off.

## The bars

{bars}

`experts` are runs of a mixture of experts, `dense` all others. A bar is what was reached, rounded up in its second digit,
and every run of a file must be predicted.

## What a verdict is made of

`fathom predict` calls a job safe when more stays free than the worst run of its kind took beyond its prediction
(`more`), and than may live outside torch. These are its rows (`core/evidence/kinds.c`), as these runs give them; the
use of the card that the driver showed at the end of {driven} runs on one GPU is in the predicted range.

{kinds}
{verdicts}
## Summary

{overall}

{files}

{strategies}

{models}

![predicted against measured peaks](accuracy.svg)

## Trinity-RFT's published capacities

`tests/measured/trinity.py`: the capacity test of Trinity-RFT (verl 0.5, torch 2.8) on A100 80 GB, `fathom max --recipe trinity
--grid trinity --margin 0`, and the guide made of it, `fathom guide --recipe trinity --margin 0`. Read from the sources of both and played on
a GPU; what lives outside torch there (NCCL's communicators with Ulysses, kernels) is fitted to these tables, see
`--explain on`: 1.45 to 1.60 GiB without Ulysses, 3.32 to 3.45 GiB with 2 and 4.55 to 5.1 GiB with 4 all agree with
every cell.

{trinity}

## What TRL published

Peaks of a GPU in runs of TRL's authors on eight H100 with context parallelism (huggingface/trl#6845, #6846), by
`tests/measured/published.py`. Nobody here measured them; how they were read is not said, and allocated bytes fit.

{published}

{public}

## Time

[speed.md](speed.md) lays predicted times beside measured ones by kind of job, and says what is not verified.

![predicted against measured times](speed.svg)

## What is not modelled

{refused}

## What is not measured

No run above stands behind these; `--explain` says so where a prediction uses them.

{not_measured}

## What the runs cover

{coverage}

## Every run

Peaks of each step in GiB. An error is that of the step furthest off. **Missed**: more than the worst run may have.

{runs}
"""


PROBED = """\
Runs of {files} have their settings beside them. Those of `h200_families.jsonl` are steps of transformers' own Trainer over a
family's configuration, cut to a few layers where it is large; those of `h200_vl.jsonl` a plain loop, and the Trainer under FSDP.
Any other file is of trials of `fathom probe` (docs/probe.md), which keep to the memory of the card that is named.

"""

def probed(runs):
    files = dict.fromkeys(f"`{run.file}`" for run in runs if run.given)
    return PROBED.format(files=", ".join(files)) if files else ""


def not_measured(runs):
    return [line for line in NOT_MEASURED if line != DIED or not any(run.died for run in runs)]


def document(runs, file, sections, others=()):
    overall, files, strategies, models = summaries(runs)
    verdicts = verdict_lines(runs)
    return DOCUMENT.format(
        file=file, counts=counts(runs), probed=probed(runs), bars=bars_table(runs),
        verdicts="\n" + "\n".join(verdicts) + "\n" if verdicts else "",
        kinds=kinds_table(runs, others), driven=sum(is_driven(run) for run in compared(runs)),
        overall=overall, files=files, strategies=strategies, models=models, **sections,
        refused="\n".join(refusals(runs)) or "Every run is modelled.",
        not_measured="\n".join(f"- {line}" for line in not_measured(runs)),
        coverage=coverage(runs), runs=runs_table(compared(runs)) + early_deaths(runs))


def points(runs, metric):
    """(measured, predicted) of every step that has both."""
    return [(peak[metric], step[metric + "_bytes"])
            for run in compared(runs) for peak, step in zip(run.peaks, run.steps)]


PUBLIC = """\
## Jobs that others wrote

Unmodified trainers of TRL 1.16.0 and transformers 5.17.0 over accelerate 1.15.0, peft 0.21.0 and DeepSpeed 0.19.8, as
their users start them, on one H200; rank 0 of several is played over torch's fake process group (`tests/measured/real_trainers.py`
holds the bars). The largest peaks of the steps are compared. Rows of mixed lengths are predicted as if every
batch were the longest that there can be: what is allocated at most is that batch's, and of runs of these jobs whose lengths
were drawn anew and played, about half reserve no more; what others reserve is in the range that `predict` prints.
{batches} Traces of rows with ids in s, z, l, p, t and f were looked at when their
step was written: they are not unseen. The 61 of ids in u and rv, and q5, were measured when all was written: asked as the
program then was, 5 were refused; of the other 56, 54 were within 1 % allocated (0.6 at worst, but LoRA under FSDP1 in TRL,
two rows, 20 % too low), and reserved was within 10.2 % on 19 of 20. What they showed was mended since; the table has them as
they are now. The 22 of ids in v were measured after that and no code was changed for them: all asked, allocated within
0.24 %, reserved within 2.8 %. The 77 of ids in j and the 57 of ids in o were drawn at random
from what TRL, transformers' Trainer, FSDP and DeepSpeed can be asked, and predicted before they were run, by the program of
that hour. One was refused (Adafactor over experts). Allocated was within 0.47 and 0.69 % on 9 of 10, 1.03 and 7.6 % at worst
(Liger's loss over a bf16 head; generation with adapters 7.1 %); reserved within 9.2 and 13 % on 19 of 20. What they showed was
mended where a cause was found; the table has them as the program is now. The 36 of ids in i were drawn and predicted after that, and
no code was changed for them: allocated was within 0.03 % on 9 of 10, reserved within 1.2 % on 19 of 20; at worst 1.1 and 1.2 %, but
for i2, which was asked with three micro-batches and had data for one (10.9 and 10.5 %; asked with one, 0.0 and 3.3). Of 62 drawn, TRL
refuses one, 13 were not reached, 4 had rows that transformers' collator refuses, 4 found the disk full, 3 ended before their first
step, and one trained on texts of which Qwen2.5's tokenizer made two tokens. The 14 of ids in sp
were predicted before they were run, too: allocated within 0.02 % on 12 and 0.24 at worst. The 68 of ids in n1 and the 56 of ids in
n2 are the newest, drawn at random from seven tasks, eight strategies, reentrant checkpoints, four-bit weights and evaluations
between the steps, and predicted before they were run. n1: allocated within 0.13 % on 9 of 10 and 3.3 at worst, reserved within 5.3 %
on 19 of 20 and 13 at worst; three things were mended after it (adapters in fp32 beside bf16 shards under FSDP2; Liger's loss in an
evaluation, 27 % too much; an evaluation under SHARD_GRAD_OP, whose layers stay whole, 27 % too little). n2, by the program so
mended: 0.34 and 2.6 %, 3.0 and 11 %. Of the 136 that were drawn, eight found the disk full and one no time; three died of
their libraries: a reward model with Liger's kernels, which is refused now, and two of DDP with adapters and reentrant
checkpoints without `ddp_find_unused_parameters: false`, of which `predict` warns. n1_33 was run twice: at first without the
dtype that it was asked with. The 14 of ids in pl are what `plan` puts first (docs/guides/trl-distributed.md).

Weights in bf16 under bf16's autocast (`--precision bf16-autocast`: `bf16: true` over a model loaded in bf16) are in 25 rows of
transformers' Trainer and 4 of TRL's. TRL's trainers with them ran on fake tensors, too (docs/probe.md, `tests/runs/bf16_autocast_fake.jsonl`):
33 jobs, SFT, reward, DPO, KTO, GRPO and RLOO, with adapters and without, on one GPU, under DDP, FSDP and DeepSpeed, of which
`tests/measured/fake_trainers.py` holds what is allocated within 0.5 %.

How many rows a data set has decides what accumulation takes. j25 (FSDP2, two micro-batches, 64 ranks) reaches 3.24 GiB, as
predicted: between micro-batches whole gradients are kept. The same job with six rows of data for all 64 ranks reached
2.13 GiB: a rank's epoch ends with its first micro-batch, where Accelerate reduces at once, so that nothing is
accumulated. A measured job whose data were that few (i2) shows the peaks of `--accum 1`.

{real}

## What others measured on other cards

Jobs of transformers' Trainer on A100s with real NCCL groups, from the benchmarks of fms-acceleration (torch 2.4,
transformers 4.44 to 4.48, NCCL 2.20, bf16, checkpointing; `tests/measured/public_jobs.py`). QLoRA is trl 0.13's: peft prepares
the model, then embedding and head go back to bf16. LoRA on two GPUs is fsdp1 with peft's wrapping; that it holds the
inputs of frozen layers to the end of a backward pass was found from this row and from two others of the same tables
(more sequences, other kernels), so that it was not unseen. Allocated is rank 0's peak;
nvidia-smi's figure is the mean of the GPUs' peaks less what was in use before. Of PowerLM-3b the vocabulary and the
tied head are assumed. What is reserved was not published, so that nvidia-smi's figure cannot be split: where it is
further from the prediction than NCCL can explain, the allocator's cache must differ. The ranges are those of jobs that
nobody here measured, and wide; they were made so after these rows were seen: with the errors of measured jobs 4 of the
first 6 lay inside, and both full jobs of Mistral showed more. StarCoder's model of transformers 4 hands out keys and values
under checkpointing, views of all that they were projected with, and computes its loss in bf16: found from these two rows
and two more of the same table with twice the sequences (0.10 and 0.11 % off), then read in its source. Every other plain row of
those tables was asked once, when the code was as it is: 11 more of Mistral and PowerLM are off by 0.00 to
0.4 %, QLoRA on two GPUs (five rows, one of Llama-2-70b) by 0.0 to 2.8 %, each with nvidia-smi's figure inside. After that
adapters have their dropout of 0.1, as the benchmarks' file says: LoRA on two GPUs was 0.88 % low without it, which is how it was
found, and is exact. FSDP prefetches as their file says, Mixtral's experts are called one after another (routed evenly here; in
one row torch must have reserved 20 % more), and the two padded rows are asked with a longest text
that is inferred from their rates.

{jobs}

What lives outside torch in a real group: the smallest difference between nvidia-smi's figure and the allocated peak is
0.93 GiB in 63 rows of one A100 and 2.14 GiB in 62 of two, plug-ins included; since no less can be reserved than is
allocated, that bounds context, kernels and NCCL of those two jobs from above, and says no more. NCCL 2.20's source
has 12 MiB of buffers for a connection and, with the 24 channels of A100s behind switches, 604 MB with two ranks and 906
with more. That number of channels is inferred: no log of these jobs is published.

## Long contexts under DeepSpeed

The lengths that ArcticTraining published for Arctic Long Sequence Training (ALST), on 1 to 64 H100s of 79.1 GiB and
on one H200, with 1.9 TB of memory a node (`tests/measured/alst.py`, which has the source and says how a row is asked). Nothing of
it was measured here: Ulysses, the tiled MLP and the checkpoints in host memory are read from DeepSpeed 0.19.8 and
ArcticTraining, the buffers of NCCL's switches from its source; after the first answers, DeepSpeed's own bucket sizes and
these buffers were added, because NVML showed more than was predicted. `scripts/compare_alst.py` lays a small step beside
DeepSpeed's real classes on a CPU: the activations come and go in the same order. NVML's figure is that of the whole card. The limit
is that of `max --margin 0`, beside the published length; wanted are 0.8 to 1.25 where the source says that the card was
full or shows 70 GB or more, and that the host ends what it ended.

{alst}

Every recipe packs HuggingFaceH4/ultrachat_200k, 207,865 samples of 1200 tokens in the mean (an epoch of the alignment
handbook, which packs to 2048, is 950 steps of 128 with Llama 3's tokenizer and 956 with Qwen2's, by the cards of two models),
and is asked with `--sample-tokens 1200`: FlashAttention's backward pass has 128 rows more for each sample. That is 0.4 to
2.0 GiB where the peak is in attention; NVML's figures of Llama-70B on 32 and 64 GPUs were off by 1.1 and 2.6 % without it,
and the two limits beyond 1.25 at 1.36 and 1.28.

Not in it: with `--sp`, DeepSpeed's default is to reduce gradients in fp32 (the published files say bf16, and so does the
prediction); the loader puts the sequences of all ranks on the card before the first step and takes them off again, at 15M
tokens on 64 ranks 23 GB and a buffer of 7.7, less than a step takes.

Two limits lie beyond 1.25. No tensor was found that is missing there; for each the sources give another reason why its
length is no limit of the card:

- Qwen3-32B on 64 GPUs, 15M tokens: no longer sequence can be made of the data. ArcticTraining packs within each of 16
  processes (`data/sft_factory.py`, `pack_dataset`; `num_proc` is 16), 12,992 samples or 15.7M tokens; the other length of
  15M and more, Llama-8B's 15.5M, ends there too. The card's figure is met within 1.3 %. For a limit at 1.25 the step would
  have to take 0.8 GiB more.
- Qwen3-32B on 32 GPUs, 7M tokens, "w/ pt-2.4": before torch 2.8 NCCL's process group records what it sends and receives
  on its own stream (pytorch#150398 removed it), and their blocks come back only when the host finds the exchange over.
  With DeepSpeed's exchanges simulated so, 6M tokens reserve 66.3 GiB, and 7M would reserve 75 of the 71.2 that are left,
  against 59.0 without: the card fills up, and torch flushes some 30 times a step. NVML's figure, of a moment and no peak,
  lies between the two. A flush gives these blocks back, so that the limit stays where it is; what lies at the published
  length is then where the card begins to flush, not where it ends. This is not in the predictions: one figure does not
  measure how far the host runs ahead.

What else was looked for in these two, in DeepSpeed of May 2025 (4d00b38) and ArcticTraining, and is counted as it is
there: keys and values repeated to a head a rank before the exchange; the layer's output and the gradient handed to it,
which a reentrant checkpoint keeps until its layer is done (2.4 GB each at 15M); the head's weight, whole in every layer's
backward pass, and the embedding's in the last; the gigabyte of gradients; `overlap_comm`, on in stage 3. NCCL's network
buffers are not counted: 64 MiB each way, eight times that to send through other ranks' cards (PXN), at most 1 % of a limit.

## Step times

Predicted against measured time of a step, by kind of job (`tests/measured/step_times.py`, `tests/measured/public_speeds.py`;
[speed.md](speed.md) says how).

![predicted against measured times](speed.svg)

{time}

## What happened to other people

Public threads and scripts (`tests/measured/public_reports.py`, which says how a report becomes a question and what was mended
after the first answers: 6 of 16 were right before). Nine of ten were wanted, which is reached and no more: nine of the rows
are one thread's (BELLE), which trained on shorter texts than the length that is asked, four another's (Soup), and eight are
asked at the least where length, batch, rank or optimizer is not told or the step is another's, so that only a "no" counts
(35 of 39 without them). Three are Megatron's scripts, whose peaks lie in the range.
Of the wrong ones three died and are called tight. LlamaFactory#6531: 32 GiB of 43 are predicted to be in use, with flushes
of the cache at every loss; its rows differ in length, these do not. xtuner#793: 70 of 78 in Adam's step, in which it died.
axolotl#2412 ran a branch before it was merged, with weights made at random; as axolotl loads them, 60 GiB are predicted.
ms-swift's script with packing says 42 GB, and said 56 for the same command the day before.

{reports}"""


def write_documents(folder, runs, others, program):
    import step_times  # which imports this file

    file = " ".join(dict.fromkeys(run.file for run in runs))
    with open(os.path.join(folder, "accuracy.md"), "w", encoding="utf-8") as out:
        public = PUBLIC.format(real=real_trainers.markdown(program), batches=real_trainers.batches_text(program),
                               jobs=public_jobs.markdown(program), reports=public_reports.markdown(program),
                               alst=alst.markdown(program), time=step_times.section(program))
        sections = {"published": published.section(program), "public": public,
                    "trinity": trinity.section(program)[0].rstrip()}
        out.write(document(runs, file, sections, others))
    with open(os.path.join(folder, "accuracy.svg"), "w", encoding="utf-8") as out:
        out.write(accuracy_plot.scatter({metric: points(runs, metric) for metric in ("allocated", "reserved")}))


# ---- A store of trials

VERDICTS = {True: "fits", False: "out of memory"}


def trial_cells(run, metric):
    """Measured, predicted and the error of the step furthest off."""
    key = metric + "_bytes"
    measured = [run.peak[metric]] if run.peak and metric in run.peak else [peak[metric] for peak in run.peaks]
    if not measured or not run.steps:
        return ["-", "-", "-"]
    predicted = [max(step[key] for step in run.steps)] if run.peak else [step[key] for step in run.steps]
    return [gib(measured), gib(predicted[: len(measured)]), f"{100 * run.error(metric):+.2f} %"]


def trial_row(run):
    said = run.settings
    name = [said.get("model", ""), said.get("gpu", ""), said.get("sp", "1"), said.get("context", "")]
    ended, expected = VERDICTS[not run.died], VERDICTS.get(run.fits, "not modelled")
    cells = [str(run.row), *name, ended, expected if ended == expected else f"**{expected}**"]
    return cells + [cell for metric in METRICS for cell in trial_cells(run, metric)]


def trials_table(runs):
    header = ["trial", "model", "GPUs", "sp", "tokens", "ended", "predicted"]
    for metric in METRICS:
        header += [f"{metric} GiB", "predicted", "error"]
    return table(header, [trial_row(run) for run in runs])


def agreement(runs):
    answered = [run for run in runs if run.fits is not None]
    fooled, timid = wrong_verdicts(runs)
    right = len(answered) - len(fooled) - len(timid)
    return (f"{right} of {len(answered)} trials ended as predicted. Out of memory, though predicted to fit: "
            f"{len(fooled)}; fitted, though predicted not to: {len(timid)}.")


def common_settings(runs):
    """What every trial has, in words; the rest is in the table."""
    shown = ("model", "gpu", "context", "sp")
    shared = set.intersection(*(set(run.settings.items()) for run in runs))
    words = [f"--{name} {value}" for name, value in sorted(shared) if name not in shown]
    return f"All with `{' '.join(words)}`." if words else ""


def store_report(runs, left):
    yield common_settings(runs)
    yield trials_table(runs)
    yield "Peaks of each step in GiB, measured and predicted; an error is that of the step furthest off."
    yield summary_table("trials", overall_groups(runs)[:1] + overall_groups(runs)[3:])
    yield agreement(runs)
    if refusals(runs):
        yield "Not modelled:\n" + "\n".join(refusals(runs))
    yield "\n".join(store_runs.left_out(left))


def is_store(path):
    """Anything but lines of JSON, so that the program can say what is wrong with it."""
    return not path.endswith(".jsonl")


def read_store(program, path):
    rows, left = store_runs.read(program, path)
    return [run_of(number, os.path.basename(path), row) for number, row in enumerate(rows, 1)], left


# ---- The command

def report(runs, with_rows, every, others):
    """What the terminal shows."""
    if with_rows:
        yield runs_table(sorted(compared(runs), key=lambda run: (-run.badness(), run.row)))
    yield from summaries(runs)
    yield bars_table(runs)
    yield "\n".join(verdict_lines(runs) + too_few(runs) * every + evidence_lines(runs, others)
                    + evidence_hints(runs, others) + driver_lines(runs))
    if refusals(runs):
        yield "Not modelled:\n" + "\n".join(refusals(runs))
    yield counts(runs) + (": every bar is met" if all_met(runs, every, others) else ": NOT every bar is met")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", metavar="PROGRAM-FOLDER")
    parser.add_argument("runs", metavar="RUNS.jsonl", nargs="+")
    parser.add_argument("--write", metavar="DOCS-FOLDER")
    parser.add_argument("--only", metavar="KEY=VALUE", nargs="+", action="extend", default=[])
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--bars", action="store_true")
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write needs every run: leave out --only")
    given.store = is_store(given.runs[0])
    if given.store and (given.write or len(given.runs) > 1):
        parser.error("a store is printed alone; tests/measured/store_runs.py makes runs of it")
    return given


def main():
    given = arguments()
    program = os.path.join(given.programs, "fathom")
    found, left = read_store(program, given.runs[0]) if given.store else (read_runs(*given.runs), {})
    runs = [run for run in found if chosen(run, given.only)]
    if not runs:
        print("no run matches" if given.only else "no trial to compare",
              *store_runs.left_out(left), sep="\n")
        return 1
    every = not given.only
    others = [] if given.store or given.only else [
        run_of(0, "", row) for row in [*trinity.measured(), *real_trainers.measured()]]
    predict_all(program, [*runs, *others])
    crashed = [run for run in runs if run.crash is not None]
    for run in crashed:
        print(f"row {run.row}: {run.crash}: fathom predict " +
              " ".join(f"--{name}={value}" for name, value in run.settings.items()))
    if given.bars:
        print(bars_as_reached(runs))
        return 0
    if crashed:
        print(f"{len(crashed)} of {len(runs)} predictions failed")
        return 1
    print("\n\n".join(filter(None, store_report(runs, left) if given.store else report(runs, given.rows, every, others))))
    if given.store:
        return 0
    if given.write:
        write_documents(given.write, runs, others, program)
    return 0 if all_met(runs, every, others) else 1


if __name__ == "__main__":
    sys.exit(main())
