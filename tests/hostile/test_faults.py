#!/usr/bin/env python3
"""Every call that can fail fails once: the n-th malloc, write, fsync, fork, pipe, open, rename, SQLite step and so
on, for each n through a prediction, written files and a probe. Each run ends with one sentence and its status, loses
nothing and leaves nothing behind; the next one goes on.

Usage: tests/hostile/test_faults.py PROGRAM-FOLDER [--every] [--only COMMAND:KIND:N[+]]

Without --every, each small n and a sample of those behind is tried, fewer where a command is slow; the seed is
printed.
"""
import concurrent.futures
import itertools
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

PROGRAMS = os.path.abspath(sys.argv[1])
FATHOM = os.path.join(PROGRAMS, "tests", "fathom_faults")
TRAINER = os.path.join(PROGRAMS, "tests", "fake_trainer")
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HARMLESS = ("eintr", "short")  # which nobody may notice
KINDS = ("malloc", "memory", "write", "read", "fsync", "fork", "pipe", "open", "rename", "mkdir", "stat", "seek",
         "sqlite", *HARMLESS)
# 70: no memory. 2: what cannot be seen is not there, and SQLite calls a file that cannot be read damaged.
STATUSES = {"malloc": (0, 3, 70), "memory": (0, 3, 70), "stat": (0, 2, 3), "read": (0, 2, 3)}
SECONDS = 30  # after which a run hangs


class Finding(Exception):
    pass


def want(true, what):
    if not true:
        raise Finding(what)


def processes(mark):
    """Processes of this run that are alive, whoever their parent is now."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = f"FAULT_RUN={mark}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if ours and state != "Z":
            found.append(int(pid))
    return found


def tree(folder, prepared):
    """What all its files hold, wherever it lies: a model's folder is written by its whole path, which was another
    one before `prepared` was copied."""
    content = {}
    here, before = (os.path.realpath(place).encode() for place in (folder, prepared))
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                content[os.path.relpath(file.name, folder)] = file.read().replace(here, b"HERE").replace(before, b"HERE")
    return content


def run(words, folder, fault=None):
    """(what was run, which function failed or None)."""
    mark = next(run.marks)
    report = os.path.join(folder, "..", f"report-{mark}")
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8",
                   "FAULT_RUN": f"{os.getpid()}-{mark}",
                   **{key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")}}
    if fault:
        environment.update(FAULT=fault, FAULT_REPORT=report)
    try:
        done = subprocess.run([FATHOM, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Finding(f"hangs: {processes(environment['FAULT_RUN'])}") from None
    until = time.monotonic() + 5
    while (left := processes(environment["FAULT_RUN"])) and time.monotonic() < until:
        time.sleep(0.02)
    want(not left, f"left running: {left}")
    if not os.path.exists(report):
        return done, None
    with open(report) as file:
        function = file.read().strip()
    os.unlink(report)
    return done, function


run.marks = itertools.count()


def ends_well(done, kind):
    said = done.stdout + done.stderr
    want("Sanitizer" not in said and "runtime error" not in said, f"a sanitizer's report: {said[-3000:]}")
    fine = STATUSES.get(kind, (0, 3))
    want(done.returncode in fine, f"status {done.returncode}: {said[-500:]}")
    if done.returncode == 0:
        return
    lines = done.stderr.splitlines()
    want(len(lines) == 1 and lines[0].startswith("fathom: ") and len(lines[0]) > 20, f"not one sentence: {said[-500:]}")


def trial(context):
    trainer = f"exec {TRAINER} train --context {{context}} --limit 4096"
    return ["probe", "--engine", "command", "--command", trainer, "--grid", "1024", "--start", str(context),
            "--until", str(context), "--grace", "1", "--model", "./model"]


class Command:
    """A command in a folder that was prepared once and is copied for each run."""

    kinds = KINDS
    dense = {False: 6, True: 2}  # up to which every n is tried, by whether the failure lasts
    samples = 2  # of those behind, as long as n does not double

    def __init__(self, work):
        self.prepared = os.path.join(work, self.name)
        shutil.copytree(os.path.join(TESTS, "cli", "files", "weighty"), os.path.join(self.prepared, "model"))
        with open(os.path.join(self.prepared, "request.yaml"), "w") as file:
            file.write("model: ./model\ngpu: 2xH100-80G\ncontext: 4k\n")
        self.prepare()
        self.good = self.result(self.prepared + "-good")

    def prepare(self):
        pass

    def result(self, folder, fault=None):
        shutil.copytree(self.prepared, folder)
        done, function = run(self.words(), folder, fault)
        if not fault:
            want(done.returncode == 0, f"{self.name} does not work: {done.stderr}")
        return done, function, tree(folder, self.prepared)

    def check(self, folder, fault):
        """The name of the function that failed, or None where there were fewer calls."""
        done, function, files = self.result(folder, fault)
        kind = fault.partition(":")[0]
        ends_well(done, kind)
        if function is None or kind in HARMLESS:
            want(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
        want(not [name for name in files if name.endswith(".tmp")], f"left behind: {sorted(files)}")
        self.look(folder, done, files)
        return function


class Predict(Command):
    name = "predict"

    def prepare(self):
        done, _ = run(trial(4096), self.prepared)
        want(done.returncode == 0, done.stderr)
        self.known = rows(self.prepared)

    def words(self):
        return ["predict", "--from", "request.yaml", "--store", "logs/probe.db"]

    def look(self, folder, done, files):
        if done.returncode == 0:
            want(done.stdout == self.good[0].stdout, f"another answer: {done.stdout}")
        want(rows(folder) == self.known, "the store has changed")


class Max(Command):
    name = "max"
    kinds = ("malloc", "memory", "open", "read")

    def words(self):
        return ["max", "--model", "./model", "--gpu", "H100-80G,A100-80G", "--grid", "64k"]

    def look(self, folder, done, files):
        want(done.returncode or done.stdout == self.good[0].stdout, f"another answer: {done.stdout}")


class Emit(Command):
    name = "emit"

    def prepare(self):
        done, _ = run([*self.words()[:-1], "--context", "8k"], self.prepared)
        want(done.returncode == 0, done.stderr)

    def words(self):
        return ["emit", "--for", "accelerate", "--from", "request.yaml", "-o", "out", "--force"]

    def look(self, folder, done, files):
        old, new = tree(self.prepared, self.prepared), self.good[2]
        want(files.keys() == new.keys(), f"other files: {sorted(files)}")
        for name, content in files.items():
            want(content == new[name] or (done.returncode and content == old[name]), f"{name} is not whole")


class EmitNew(Emit):
    name = "emit-new"

    def prepare(self):
        pass

    def words(self):
        return super().words()[:-1]

    def look(self, folder, done, files):
        new = self.good[2]
        for name, content in files.items():
            want(content == new[name], f"{name} is not whole")
        want(done.returncode or files.keys() == new.keys(), f"files are missing: {sorted(files)}")


def rows(folder):
    database = sqlite3.connect(os.path.join(folder, "logs", "probe.db"))
    try:
        want(database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the store is damaged")
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'step'").fetchall():
            return []
        trials = "SELECT context, try, state, outcome, log FROM attempt ORDER BY id"
        steps = "SELECT * FROM step ORDER BY attempt, number"
        mute = ("SELECT context FROM attempt WHERE outcome = 'fits' AND 2 !="
                " (SELECT count(*) FROM step WHERE step.attempt = attempt.id)")
        want(not database.execute(mute).fetchall(), "a trial's output was lost")
        return database.execute(trials).fetchall() + database.execute(steps).fetchall()
    finally:
        database.close()


class ProbeNew(Command):
    name = "probe-new"
    known = []
    dense = {False: 3, True: 1}
    samples = 1

    def words(self):
        return trial(1024)

    def longest(self, done):
        return [line for line in done.stdout.splitlines() if "max_model_len" in line]

    def look(self, folder, done, files):
        if done.returncode == 0:
            want(self.longest(done) == self.longest(self.good[0]), f"another answer: {done.stdout}")
        if os.path.exists(os.path.join(folder, "logs", "probe.db")):
            kept = [row for row in rows(folder) if row in self.known]
            want(kept == self.known, "a trial was lost")
        again, _ = run(self.words(), folder)
        want(again.returncode == 0 and self.longest(again) == self.longest(self.good[0]),
             f"the next run does not go on: {again.stdout}{again.stderr}")
        kept = rows(folder)
        want(not [row for row in kept if "running" in row], f"the store says a trial runs: {kept}")


class Probe(ProbeNew):
    name = "probe"

    def prepare(self):
        done, _ = run(trial(1024), self.prepared)
        want(done.returncode == 0, done.stderr)
        self.known = rows(self.prepared)
        want(len(self.known) == 3, f"a trial and its steps: {self.known}")

    def words(self):
        return trial(2048)


COMMANDS = (Predict, Max, Emit, EmitNew, ProbeNew, Probe)


def numbers(dense, samples, generator):
    """1, 2, 3, …; beyond `dense` ever wider apart."""
    n = 0
    while True:
        n += generator.randint(1, max(1, n // samples) * 2) if dense and n >= dense else 1
        yield n


def loop(command, kind, lasting, every, seed):
    """(functions that failed, findings) of one command and one kind of failure."""
    fired, findings = {}, []
    dense = 0 if every else command.dense[lasting]
    for n in numbers(dense, command.samples, random.Random(f"{seed} {command.name} {kind}")):
        fault = f"{kind}:{n}{'+' if lasting else ''}"
        folder = f"{command.prepared}-{kind}-{n}{'-on' if lasting else ''}"
        try:
            function = command.check(folder, fault)
        except Finding as finding:
            findings.append(f"{command.name}:{fault}: {finding}")
            print(findings[-1], flush=True)
            function = "?"
        shutil.rmtree(folder, ignore_errors=True)
        if function is None or len(findings) > 2:
            if os.environ.get("VERBOSE"):
                print(f"{command.name}:{fault}: {sum(fired.values())} failed", flush=True)
            return fired, findings
        fired[function] = fired.get(function, 0) + 1


def tasks(commands):
    for command in commands:
        for kind in command.kinds:
            yield command, kind, False
            if kind not in HARMLESS:
                yield command, kind, True


def main():
    every = "--every" in sys.argv
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    seed = int(os.environ.get("SEED", 1))
    print(f"SEED={seed}")
    fired, findings = {}, []
    with tempfile.TemporaryDirectory(prefix="fathom-faults-") as work:
        commands = [make(work) for make in COMMANDS if not only or make.name == only.partition(":")[0]]
        if only.count(":") == 2:
            fault = only.partition(":")[2]
            command, = commands
            print(f"failed: {command.check(os.path.join(work, 'only'), fault)}")
            return 0
        wanted = [t for t in tasks(commands) if f"{t[0].name}:{t[1]}".startswith(only)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda t: (t, loop(*t, every, seed)), wanted))
        for (command, kind, _), (functions, found) in results:
            findings += found
            for function, count in functions.items():
                fired[kind, function] = fired.get((kind, function), 0) + count
    for (kind, function), count in sorted(fired.items()):
        print(f"  {kind:8} {function:16} failed {count} times")
    never = [] if only else sorted(set(KINDS) - {kind for kind, _ in fired})
    if never:
        findings.append(f"nothing of these kinds failed, so nothing is known: {', '.join(never)}")
        print(findings[-1])
    print(f"{sum(fired.values())} failures, {len(findings)} findings")
    return 1 if findings or not fired else 0


if __name__ == "__main__":
    sys.exit(main())
