#!/usr/bin/env python3
"""Runs the examples of documents and golden tests, and compares what they print.

Usage: tests/console.py PROGRAM-FOLDER FILE...      (UPDATE=1 rewrites the expected output)

A .console file is a list of "$ command" lines, each followed by what it prints (standard output and
error together, then "[exit N]" where the status is not 0). In a .md file every ```console block is
such a list. A line "..." stands for any lines. All commands of one file share a fresh folder that
holds a copy of tests/cli/files; $TESTS is the tests folder, $PROGRAMS the program's.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.abspath(__file__))


def environment(program_folder, home):
    kept = {key: os.environ[key] for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if key in os.environ}
    path = os.pathsep.join([os.path.abspath(program_folder), os.environ["PATH"]])
    return dict(kept, PATH=path, HOME=home, LC_ALL="C.UTF-8", TESTS=TESTS,
                PROGRAMS=os.path.abspath(program_folder), TERM="xterm")


def run(command, folder, env):
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
    )
    lines = done.stdout.decode("utf-8", "replace").replace("\r\n", "\n").splitlines()
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


def matches(expected, got):
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def blocks(lines, markdown):
    """Yields (line number, inside): whether each line belongs to a list of commands."""
    inside = not markdown
    for number, line in enumerate(lines):
        if markdown and line.startswith("```"):
            inside = line.strip() == "```console"
            yield number, False
        else:
            yield number, inside


def examples(lines, markdown):
    """(number of the command line, command, first and last number of its output) of each."""
    found = []
    for number, inside in blocks(lines, markdown):
        if inside and lines[number].startswith("$ "):
            found.append([number, lines[number][2:], number + 1, number + 1])
        elif inside and found and found[-1][3] == number and not lines[number].startswith("#"):
            found[-1][3] = number + 1
    return found


def trimmed(lines):
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def check(path, program_folder):
    markdown = path.endswith(".md")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    failures, rewritten = 0, []
    copied = 0
    listed = examples(lines, markdown)
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, "here")
        shutil.copytree(os.path.join(TESTS, "cli", "files"), folder)
        env = environment(program_folder, home)
        for number, command, first, end in listed:
            expected = trimmed(lines[first:end])
            got = run(command, folder, env)
            got = [line.replace(home, "HOME") for line in got]
            good = matches(expected, trimmed(got))
            rewritten += lines[copied:first] + (expected if good else got)
            copied = first + len(expected)
            if not good:
                failures += 1
                print(f"{path}:{number + 1}: $ {command}")
                print("  wanted:", *expected, sep="\n    ")
                print("  got:", *got, sep="\n    ")
    rewritten += lines[copied:]
    if failures and os.environ.get("UPDATE"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(rewritten) + "\n")
    return len(listed) - failures, failures


def main():
    passed = failed = 0
    for path in sys.argv[2:]:
        good, bad = check(path, sys.argv[1])
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
