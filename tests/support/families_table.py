#!/usr/bin/env python3
"""Prints tests/data/families.json as rows of a C table for test_model.c: each configuration as flat settings."""
import json
import sys


def flat(prefix, value):
    if isinstance(value, dict):
        return [line for key in value for line in flat(f"{prefix}.{key}", value[key])]
    if isinstance(value, list):
        return [line for i, item in enumerate(value) for line in flat(f"{prefix}.{i}", item)]
    return [f"{prefix}={value if isinstance(value, str) else json.dumps(value)}"]


with open(sys.argv[1], encoding="utf-8") as file:
    families = json.load(file)["families"]
for name, case in families.items():
    text = "\\n".join(flat("config", case["config"]))
    print(f'{{"{name}", "{text}", UINT64_C({case["parameters"]})}},')
