#!/usr/bin/env python3
"""Holds docs/guides/coverage.md: every row that is called closed names tests, and they say what the row quotes.

Usage: tests/coverage.py

A test is `path`: `text`, and the text must occur in that file of the repository.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUOTED = re.compile(r"`([^`]+)`: `([^`]+)`")


def rows():
    with open(os.path.join(ROOT, "docs", "guides", "coverage.md"), encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] not in ("item", "---")]


def misses(path, text):
    full = os.path.join(ROOT, path)
    if not os.path.exists(full):
        return f"there is no {path}"
    with open(full, encoding="utf-8") as file:
        return None if text in file.read() else f"{path} does not say '{text}'"


def main():
    failed, listed = 0, rows()
    for row in listed:
        held = QUOTED.findall(row[-1])
        wrong = [] if held or row[-1].startswith("open") else ["names no test"]
        wrong += [said for said in (misses(*one) for one in held) if said]
        failed += bool(wrong)
        for said in wrong:
            print(f"{row[0].strip()}: {said}")
    print(f"{len(listed) - failed} passed, {failed} failed")
    return 1 if failed or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
