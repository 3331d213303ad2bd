#!/usr/bin/env python3
"""Every test of this folder. With NO_SKIPS in the environment one that was skipped is a failure: it showed nothing.

Usage: tests/frameworks/all.py
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.discover(HERE))
    skipped = [f"{test.id()}: {why}" for test, why in result.skipped]
    if skipped and os.environ.get("NO_SKIPS"):
        print("skipped, which counts as failed here:", *skipped, sep="\n  ")
        return 1
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
