#!/usr/bin/env python3
"""Real messages, each from a public thread: what `fathom doctor` makes of them.

Usage: tests/doctor/doctor.py PROGRAM-FOLDER      (UPDATE=1 rewrites tests/doctor/expected.jsonl)

The verdict must be the one that tests/doctor/sources.md gives by hand, with the phase where it gives
one; everything else that is said of a message (rank, step, line, numbers) must be as in
expected.jsonl. A log must give the same findings with Windows line ends, in colour, and compressed.
"""
import concurrent.futures
import gzip
import json
import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(FOLDER, "expected.jsonl")


def ask(program, content):
    done = subprocess.run([program, "doctor", "-", "--json"], input=content,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    reply = json.loads(done.stdout)
    if done.returncode != (0 if reply["found"] else 1):
        raise SystemExit(f"exit status {done.returncode} {done.stderr.decode()}")
    return reply


def summary(finding):
    unsaid = [key for key, value in finding.items() if value is None or value is False]
    left_out = set(unsaid) | {"text", "class", "what"}
    return {key: value for key, value in finding.items() if key not in left_out}


def findings(reply):
    return [summary(finding) for finding in reply["findings"]]


def coloured(content):
    """Every word in a colour of its own, as rich prints numbers."""
    return b" ".join(b"\033[1;36m" + word + b"\033[0m" if word else word
                     for word in content.split(b" "))


def sources():
    rows = {}
    with open(os.path.join(FOLDER, "sources.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0].startswith("`"):
                rows[cells[0].strip("`")] = cells[1]
    return rows


def check(program, name, verdict):
    with open(os.path.join(FOLDER, name + ".log"), "rb") as file:
        content = file.read()
    reply = ask(program, content)
    got = reply["cause"]["kind"] if reply["found"] else "-"
    said = got + (", " + (reply["cause"]["phase"] or "-") if "," in verdict else "")
    failures = [] if said == verdict else [f"{name}: {said}, not {verdict}"]
    variant = gzip.compress(coloured(content).replace(b"\n", b"\r\n"))
    if findings(ask(program, variant)) != findings(reply):
        failures.append(f"{name}: other findings in colour, with other line ends, compressed")
    return failures, {"log": name, "cause": got, "findings": findings(reply)}


def main():
    program = os.path.join(sys.argv[1], "fathom")
    verdicts = sources()
    logs = sorted(file[:-4] for file in os.listdir(FOLDER) if file.endswith(".log"))
    failures = [f"{name}: not in sources.md" for name in logs if name not in verdicts]
    lines = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        names = sorted(verdicts)
        checks = pool.map(lambda name: check(program, name, verdicts[name]), names)
        for failed, line in checks:
            failures += failed
            lines.append(json.dumps(line) + "\n")
    if os.environ.get("UPDATE"):
        with open(EXPECTED, "w", encoding="utf-8") as file:
            file.writelines(lines)
    with open(EXPECTED, encoding="utf-8") as file:
        expected = file.readlines()
    for got, wanted in zip(lines, expected):
        if got != wanted:
            failures.append(f"expected {wanted}got      {got}")
    if len(lines) != len(expected):
        failures.append(f"{len(lines)} logs, {len(expected)} expected")
    print("\n".join(failures + [f"{len(lines)} messages of {len(set(v.split(',')[0] for v in verdicts.values()))} kinds, "
                                f"{len(failures)} failures"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
