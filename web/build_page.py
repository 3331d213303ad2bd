#!/usr/bin/env python3
"""Joins the page: one HTML file that holds its style, its scripts and the core as WebAssembly.

Usage: web/build_page.py MODULE.wasm VERSION OUTPUT.html
"""
import base64
import os
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
SCRIPTS = ["base", "engine", "form", "show", "chart", "limits", "plan", "zip", "take", "drop", "main"]
MOST_BYTES = 3_000_000


def text_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        text = file.read()
    assert "</script" not in text or name.endswith(".html"), f"{name} would end its element"
    return text


def main():
    module, version, output = sys.argv[1:]
    with open(module, "rb") as file:
        wasm = base64.b64encode(file.read()).decode()
    parts = {"css": text_of("page.css"), "version": version, "wasm": wasm, "worker": text_of("worker.js"),
             "script": "\n".join(text_of(f"{name}.js") for name in SCRIPTS)}
    page = text_of("page.html")
    for name, content in parts.items():
        assert page.count(f"/*{{{name}}}*/") == 1, name
        page = page.replace(f"/*{{{name}}}*/", content)
    data = page.encode()
    if len(data) > MOST_BYTES:
        sys.exit(f"the page has {len(data)} bytes, more than {MOST_BYTES}")
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with open(output, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
