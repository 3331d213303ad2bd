#!/usr/bin/env python3
"""Prints tests/data/parameters.json as rows of a C table for test_model.c."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    models = json.load(file)["models"]
for name, counted in models.items():
    total = counted["parameters"] + counted["balancing_bias"]
    print(f'{{"{name}", UINT64_C({total})}},')
