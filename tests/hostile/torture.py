#!/usr/bin/env python3
"""Random command lines, random deaths of a probe and hostile names, for so many seconds.

Usage: tests/hostile/torture.py PROGRAM-FOLDER SECONDS [SEED] [CASE]

A case is "lines 17", "deaths 17" or "names 17": that number is its seed, so that a finding is made again by naming
it. Findings that were mended are lines of tests/hostile/torture.txt, as the words or the name that did it, since seeds mean
something else when an option is added; they come first.
"""
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

PROGRAMS = os.path.abspath(sys.argv[1])
FATHOM = os.path.join(PROGRAMS, "fathom")
TRAINER = os.path.join(PROGRAMS, "tests", "fake_trainer")
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = os.path.join(TESTS, "hostile", "torture.txt")
HANGS = 120  # seconds, of a run under sanitizers on a busy machine
# What a terminal obeys: control characters of both sets, and those that turn the direction of writing.
OBEYED = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NO_MEMORY = "fathom: this request needs more memory than there is\n"  # a sanitizer's arena is small


class Finding(Exception):
    pass


def want(true, what):
    if not true:
        raise Finding(what)


def start(words, folder, mark, **more):
    kept = {key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")}
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8", "HF_HUB_OFFLINE": "1",
                   "TMPDIR": folder, "TORTURE": mark, **kept}
    return subprocess.Popen([FATHOM, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def finish(process, words):
    try:
        out, said = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Finding(f"hangs: {words}") from None
    out, said = out.decode(errors="surrogateescape"), said.decode(errors="surrogateescape")
    judge(process.returncode, out, said, words)
    return process.returncode, out, said


def judge(status, out, said, words):
    tail = f"{words}\n{out[-300:]}\n{said[-3000:]}"
    want("Sanitizer" not in said and "runtime error: " not in said, f"a sanitizer's report: {tail}")
    want(status in (0, 1, 2, 3) or (status == 70 and NO_MEMORY in said), f"status {status}: {tail}")
    shown = out.replace("\r\n", "\n") if "csv" in words else out
    want(not OBEYED.search(shown + said), f"a terminal obeys this: {tail!r}")
    if status > 1:
        errors = [line for line in said.splitlines() if line.startswith("fathom: ")]
        want(len(errors) >= 1, f"no sentence: {tail}")
    if "--json" in words and "--" not in words and status != 70:
        try:
            want(isinstance(json.loads(out), dict), f"no object: {tail}")
        except ValueError:
            raise Finding(f"no JSON: {tail}") from None


def processes(mark):
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = f"TORTURE={mark}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if ours and rest.split()[0] != "Z":
            found[int(pid)] = name
    return found


# ------------------------------------------------------------------ command lines

def read_commands():
    """{command: [(option, its values)]}, as the help says."""
    def text(*words):
        return subprocess.run([FATHOM, *words], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  ([a-z]+)  ", text("help"), re.M)
    return {name: re.findall(r"^  (?:-., )?(--[a-z-]+)(?: (\S+))?", text(name, "--help"), re.M) for name in names}


HOSTILE = ["", " ", "-", "--", "-x", "=", "a=b", "$(touch CANARY)", "`touch CANARY`", "';touch CANARY;'", '"', "'",
           "\n", "a\nb", "\x1b[31mred", "\x9b31m", "\u202egnp", "\u2066x", "é" * 50, "日本", "%s%n%d", "a/../b",
           "/proc/no", ".", "/dev/null", "/dev/full", "/proc/self/mem", "/proc/self/environ", "x" * 5000, "{context}",
           "\\", "#", "%j", "nan", "inf", "-1", "0", "00", "1e9", "0x10", "18446744073709551615", "18446744073709551616",
           "9" * 40, "1.5", "1k", "1kk", "16EiB", "1,2", "1,,2", ",", "on", "off", ":memory:", "~", "null", "{}",
           "[]"]
MODELS = ["Qwen3-0.6B", "Qwen3-8B", "Qwen3-30B-A3B", "Llama-3.1-8B", "gemma-2-9b", "tiny", "weighty", "heads.json",
          "unknown_family.json", "truncated.json", "no_config", "huge_header", "Qwen/Qwen3-8B"]
CARDS = ["H100-80G", "8xH100-80G", "2x8xA100-80G", "auto", "4xcustom:memory=48GiB,bf16=181TFLOPS", "H200", "0xH200",
         "xx"]
FILES = ["request.yaml", "request.json", "sft.yaml", "trinity.yaml", "typo.yaml", "zero2.json", "crash.log", "."]


def value_of(r, option, values):
    plain = {"--model": MODELS, "--gpu": CARDS, "--as": CARDS, "--from": FILES, "--file": FILES,
             "--gpus": ["1", "2,4", "8"], "--context": ["512", "4k", "16k", "100000", "1M"],
             "--command": ["true {context}"]}
    if r.random() < 0.12:
        return r.choice(HOSTILE)
    if option in plain:
        return r.choice(plain[option])
    choices = values.split("|")
    if len(choices) > 1:
        return r.choice(choices).replace("N", str(r.choice([1, 2, 8, 1000])))
    if values in ("N", "N,..."):
        return str(r.choice([0, 1, 2, 3, 4, 8, 16, 61, 128]))
    if values in ("TOKENS", "BYTES", "SECONDS"):
        return r.choice(["1", "4096", "16k", "1GiB", "80GiB", "60"])
    return r.choice(["out", "logs", "a b", "é"] + HOSTILE)


def random_line(r, commands):
    command = r.choices(list(commands), [4 if name in ("predict", "max", "emit", "probe", "guide") else 1
                                         for name in commands])[0]
    options = commands[command]
    words = [command if r.random() < 0.98 else r.choice(HOSTILE)]
    given = {"--model": 0.8, "--gpu": 0.8, "--context": 0.7, "--for": 0.9, "--file": 0.9, "--json": 0.3}
    for option, values in options:
        if option in ("--help", "--version") or r.random() >= given.get(option, r.choice([0.02, 0.05, 0.2])):
            continue
        value = value_of(r, option, values) if values else None
        words += [option] if value is None else [f"{option}={value}"] if r.random() < 0.2 else [option, value]
    if command == "probe":  # nothing is started: deaths does that
        words += r.choice([["--dry-run"], ["--list"]])
    if r.random() < 0.1:
        words.insert(r.randrange(len(words) + 1), r.choice(HOSTILE))
    return [word for word in words if "\0" not in word]


def lines(seed, folder):
    r = random.Random(f"lines {seed}")
    shutil.copytree(os.path.join(TESTS, "cli", "files"), folder, dirs_exist_ok=True)
    for _ in range(10):
        one_line(random_line(r, lines.commands), folder)


def one_line(words, folder):
    finish(start(words, folder, "lines"), words)
    want(not os.path.exists(os.path.join(folder, "CANARY")), f"a name was run as a command: {words}")


def words(given, folder):
    shutil.copytree(os.path.join(TESTS, "cli", "files"), folder, dirs_exist_ok=True)
    one_line(json.loads(given), folder)


# ------------------------------------------------------------------ deaths

def trials(sleep):
    trainer = f"exec {TRAINER} train --context {{context}} --limit 5000 --sleep {sleep}"
    return ["probe", "--engine", "command", "--command", trainer, "--grid", "1024", "--start", "1024", "--grace", "1",
            "--linear", "--gpus", "1,2"]


def decided(folder):
    """The store's trials that decide a length, after a look whether it is whole."""
    path = os.path.join(folder, "logs", "probe.db")
    if not os.path.exists(path):
        return []
    database = sqlite3.connect(path)
    try:
        want(database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the store is damaged")
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'step'").fetchall():
            return []
        return database.execute("SELECT id, cell, context, outcome, log FROM attempt"
                                " WHERE outcome IN ('fits', 'gpu_memory') ORDER BY id").fetchall()
    finally:
        database.close()


def one_death(r, folder, mark, sleep):
    probe = start(trials(sleep), folder, mark, start_new_session=True)
    time.sleep(r.uniform(0, 0.8))
    alive = processes(mark)
    whom = r.choice(["fathom", "fathom-keeper", "all"])  # a trainer that is killed has decided its length
    victims = [pid for pid, name in alive.items() if whom in (name, "all") and name != "fake_trainer"]
    how = signal.SIGKILL if r.random() < 0.8 else r.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    for pid in victims:
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            pass
    out, said = probe.communicate(timeout=HANGS)
    said = said.decode(errors="replace")
    want("Sanitizer" not in said, f"a sanitizer's report: {said[-3000:]}")
    want(probe.returncode in (0, 3, -how), f"status {probe.returncode} after {how} for {whom}: {said}")


def deaths(seed, folder):
    r = random.Random(f"deaths {seed}")
    mark, sleep = f"deaths {seed}", r.choice([0, 20, 80])
    known = []
    for _ in range(r.randint(1, 6)):
        one_death(r, folder, mark, sleep)
        now = decided(folder)
        want(now[:len(known)] == known, f"a trial was lost: {known} became {now}")
        known = now
    words = [*trials(sleep), "--json"]
    status, out, said = finish(start(words, folder, mark), words)
    cells = json.loads(out)["cells"]
    found = [(cell["gpus"], cell["max_context"], cell["fails_at"]) for cell in cells]
    want(status == 0 and found == [(1, 4096, 5120), (2, 4096, 5120)], f"the next run found {found}: {said}")
    now = decided(folder)
    want(now[:len(known)] == known, f"a trial was lost: {known} became {now}")
    want(len({row[1:3] for row in now}) == len(now), f"what was known was tried again: {now}")
    left = [name for place, _, names in os.walk(folder) for name in names if name.endswith(".tmp")]
    want(len(left) <= 6, f"left behind: {left}")  # a killed writer leaves at most its one
    until = time.monotonic() + 10
    while processes(mark) and time.monotonic() < until:
        time.sleep(0.05)
    want(not processes(mark), f"left running: {processes(mark)}")


# ------------------------------------------------------------------ names

PIECES = ["a", "model", " ", "'", '"', "\n", "\t", "\x1b]0;x\x07", "\x1b[2J", "\x9b2J", "\u202e", "\u2067",
          "$(touch CANARY)", "`touch CANARY`", "${IFS}", ";touch CANARY;", "&touch CANARY&", "|touch CANARY", "\\",
          "-", "--", "#", "%", "%j", "%s", "{model}", "{context}", "*", "?", "[", "]", "!", "~", ",", "=", ":", "é",
          "日本", "\U0001f600", "\r", "<", ">", "&amp;", "|", "<b>", "@", "..", "é" * 60]


def random_name(r):
    name = "".join(r.choice(PIECES) for _ in range(r.randint(1, 5)))
    name = name.encode()[:200].decode(errors="ignore")
    return "x" if name in ("", ".", "..") else name


TOOLS = ["python", "python3", "accelerate", "torchrun", "deepspeed", "trl", "trinity", "ray", "sbatch", "srun"]


def run_emitted(folder, out):
    """Runs what was written, every tool being played by one that does nothing."""
    tools = os.path.join(folder, "tools")
    os.makedirs(tools, exist_ok=True)
    for tool in TOOLS:
        with open(os.path.join(tools, tool), "w") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(file.name, 0o755)
    for name in os.listdir(out):
        if not name.endswith((".sh", ".sbatch", ".slurm")):
            continue
        path = os.path.join(out, name)
        done = subprocess.run(["bash", "-n", path], capture_output=True)
        want(done.returncode == 0, f"no shell script: {done.stderr!r}")
        subprocess.run(["bash", path], cwd=folder, capture_output=True, timeout=HANGS, stdin=subprocess.DEVNULL,
                       env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": folder})


def name_lines(r, name):
    """Command lines in which the name stands where names can stand."""
    here = f"./{name}"
    target = r.choice(["accelerate", "deepspeed", "trl", "trinity", "verl", "slime", "slurm"])
    yield ["predict", "--model", here, "--gpu", "H100-80G", "--context", "4k"]
    yield ["show", "--model", here, "--gpu", "H100-80G", "--json"]
    yield ["models", name]
    yield ["gpus", name]
    yield ["doctor", f"{name}.log"]
    yield ["doctor", "--json", f"{here}.log"]
    yield ["replay", f"{here}.log"]
    yield ["emit", "--for", target, "--model", here, "--gpu", "2xH100-80G", "--context", "4k", "-o", f"{name}.out",
           "--dataset", f"{name}.jsonl"]
    yield ["emit", "--for", target, "--model", here, "--gpu", "2xH100-80G", "--context", "4k"]
    yield ["max", "--gpu", "H100-80G", "--model", f"Qwen3-0.6B,{here}", "--grid", "256k"]
    yield ["probe", "--engine", "command", "--command", f"exec {TRAINER} train --context {{context}}", "--model", here,
           "--until", "4096", "--log-dir", f"{name}.logs"]
    says = f"echo {{model}} {{context}}; cat '{TESTS}/cli/files/crash.log'"
    yield ["probe", "--engine", "command", "--command", says, "--model", here, "--until", "4096", "--log-dir", "logs"]
    yield ["probe", "--list", "--log-dir", f"{name}.logs"]
    for form in ("csv", "json", "markdown"):
        yield ["probe", "--export", form, "--log-dir", f"{name}.logs"]


def hostile_log(r, name):
    told = [f"RuntimeError: {name}", f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {name} GiB.",
            f"ValueError: {name}", f'  File "{name}", line 3, in <module>', "Traceback (most recent call last):", name]
    return "\n".join(r.choice(told) for _ in range(r.randint(1, 12))) + "\n"


def names(seed, folder):
    r = random.Random(f"names {seed}")
    one_name(r, random_name(r), folder)


def name(given, folder):
    for seed in range(3):  # a log and a framework each
        inside = os.path.join(folder, str(seed))
        os.mkdir(inside)
        one_name(random.Random(seed), json.loads(given), inside)


def one_name(r, name, folder):
    shutil.copytree(os.path.join(TESTS, "cli", "files", r.choice(["tiny", "weighty"])), os.path.join(folder, name))
    with open(os.path.join(folder, f"{name}.log"), "w", errors="surrogateescape") as file:
        file.write(hostile_log(r, name))
    for words in name_lines(r, name):
        finish(start(words, folder, "names"), words)
        out = os.path.join(folder, f"{name}.out")
        if words[0] == "emit" and os.path.isdir(out):
            run_emitted(folder, out)
        where = [place for place, _, files in os.walk(folder) if "CANARY" in files]
        want(not where, f"a name was run as a command: {words}")


# ------------------------------------------------------------------ the run

PARTS = {"lines": lines, "deaths": deaths, "names": names}
KEPT_PARTS = {**PARTS, "words": words, "name": name}


def attempt(part, seed):
    """What was found, or None."""
    folder = tempfile.mkdtemp(prefix="fathom-torture-")
    try:
        KEPT_PARTS[part](seed, folder)
        return None
    except Finding as finding:
        return f"{part} {seed}: {finding}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kept_cases():
    with open(KEPT) as file:
        return [line.strip().split(" ", 1) for line in file if line.strip() and not line.startswith("#")]


def main():
    seconds = float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] else random.randrange(1 << 30)
    lines.commands = read_commands()
    if len(sys.argv) > 4:
        part, number = sys.argv[4].split(" ", 1)
        found = attempt(part, number)
        print(found or "nothing found")
        return 1 if found else 0
    print(f"SEED={seed}", flush=True)
    r, until = random.Random(seed), time.monotonic() + seconds
    findings, count = [], dict.fromkeys(PARTS, 0)

    def work(case):
        part, number = case
        found = attempt(part, number)
        count[part] = count.get(part, 0) + 1
        if found:
            findings.append(found)
            print(found, flush=True)

    def cases():
        yield from kept_cases()
        while time.monotonic() < until and len(findings) < 10:
            for part in PARTS:
                yield part, str(r.randrange(1 << 30))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = set()
        for case in cases():
            if len(running) >= os.cpu_count():
                done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    future.result()
            running.add(pool.submit(work, case))
        for future in running:
            future.result()
    told = ", ".join(f"{number} of {part}" for part, number in count.items())
    print(f"{told}; {len(findings)} findings")
    return 1 if findings or not all(count.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
