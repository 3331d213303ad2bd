#!/usr/bin/env python3
"""Compares what `fathom emit` writes with the files kept under tests/emit.

Usage: tests/emit/emit_files.py PROGRAM-FOLDER      (UPDATE=1 rewrites the kept files)

The Python scripts it hands out are kept once, in core/emit/scripts, and compared with those.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

KEPT = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(KEPT)), "core", "emit", "scripts")


def cases():
    with open(os.path.join(KEPT, "cases.txt")) as lines:
        for line in lines:
            if not line.startswith("#"):
                name, _, arguments = line.partition(":")
                yield name, shlex.split(arguments)


def read(folder, name):
    try:
        with open(os.path.join(folder, name)) as source:
            return source.read()
    except FileNotFoundError:
        return None


def compare(name, written):
    kept = os.path.join(KEPT, name)
    wrong = []
    expected = set(os.listdir(kept)) if os.path.isdir(kept) else set()
    for file in sorted(expected | set(os.listdir(written))):
        own = os.path.exists(os.path.join(SCRIPTS, file))
        if read(written, file) != read(SCRIPTS if own else kept, file):
            wrong.append(file)
    return wrong


def update(name, written):
    kept = os.path.join(KEPT, name)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(written, kept, ignore=lambda _, files: [f for f in files if read(SCRIPTS, f)])


def main(programs):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in cases():
            written = os.path.join(folder, name)
            done = subprocess.run([os.path.join(programs, "fathom"), "emit", *arguments, "-o", written],
                                  capture_output=True, text=True)
            if done.returncode not in (0, 1):
                print(f"{name}: {done.stderr.strip()}")
                wrong += 1
                continue
            if os.environ.get("UPDATE"):
                update(name, written)
            different = compare(name, written)
            wrong += bool(different)
            if different:
                print(f"{name}: {', '.join(different)} differ from tests/emit/{name}")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1]))
