#!/usr/bin/env python3
"""Makes the wheel: the program, the library and the package, for every Python 3 on Linux of this processor.

Usage: python/build_wheel.py BUILD-FOLDER OUTPUT-FOLDER

No compiler is needed where it is installed, and no dependency. Two builds of the same files are equal to the byte:
times are fixed and names are sorted. The platform tag is the newest glibc symbol that program and library need.
"""
import base64
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"on|off": "bool | str", "N": "int | str", "TOKENS": "int | str", "BYTES": "int | str"}  # else texts


def glibc_of(*files):
    """(major, minor) of the newest symbol version they need."""
    text = "".join(subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
                   for file in files)
    return max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+)", text))


def editor_types(program):
    """Types of the questions for editors, from the table of settings."""
    table = json.loads(subprocess.run([program, "help", "settings", "--json"], capture_output=True, text=True,
                                      check=True).stdout)
    kinds = {row["name"]: TYPES.get(row.get("values"), "str | int") for row in table["settings"]}
    of = {command["name"]: command["settings"] for command in table["commands"]}

    def parameters(command, first):
        rest = [name for name in of[command] if name not in first and name != "for"]
        return ", ".join([f"{name}: str | int | None = ..." for name in first] + ["*"] * bool(rest)
                         + [f"{name.replace('-', '_')}: {kinds.get(name, 'str | int')} | None = ..." for name in rest])

    main = ["model", "gpu", "context"]
    return "\n".join([
        "from typing import Any", "from os import PathLike", "from . import answers", "",
        "def ask(command: str, **settings: Any) -> dict[str, Any]: ...",
        f"def predict({parameters('predict', main)}) -> answers.Prediction: ...",
        f"def max_context({parameters('max', main[:2])}) -> answers.Limit: ...",
        f"def plan({parameters('plan', main)}) -> answers.Plan: ...",
        f"def emit(framework: str, {parameters('emit', main)}) -> answers.Emitted: ...",
        f"def accelerate_config({parameters('emit', main)}) -> dict[str, Any]: ...",
        "def models(name: str | None = ...) -> dict[str, Any]: ...",
        "def doctor(text: str) -> answers.Doctor: ...",
        "def replay(snapshot: str | PathLike[str] | dict[str, Any], **settings: Any) -> answers.Replay: ...", ""])


def members(build, version):
    """(name in the wheel, bytes, executable) of every file."""
    program = os.path.join(build, "fathom")
    folder = os.path.join(HERE, "fathom")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                yield f"fathom/{name}", file.read(), False
    yield "fathom/py.typed", b"", False
    yield "fathom/questions.pyi", editor_types(program).encode(), False
    yield "fathom/VERSION", f"{version}\n".encode(), False
    for name in ("fathom", "libfathom.so"):
        with open(os.path.join(build, name), "rb") as file:
            yield f"fathom/bin/{name}", file.read(), True
    with open(program, "rb") as file:
        yield f"fathom-{version}.data/scripts/fathom", file.read(), True


def information(version, tag):
    """Files of the wheel's own folder."""
    readme = ("Fathom answers what training configuration of a language model fits on which GPUs, how long a context "
              "it can train, and writes the configuration files.\n")
    return {"METADATA": f"Metadata-Version: 2.1\nName: fathom\nVersion: {version}\nSummary: What training configuration "
                        f"of a language model fits on these GPUs\nRequires-Python: >=3.9\n\n{readme}",
            "WHEEL": f"Wheel-Version: 1.0\nGenerator: fathom\nRoot-Is-Purelib: false\nTag: {tag}\n"}


def add(wheel, name, data, executable):
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    build, output = sys.argv[1:]
    program, library = os.path.join(build, "fathom"), os.path.join(build, "libfathom.so")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    tag = "py3-none-manylinux_{}_{}_{}".format(*glibc_of(program, library), platform.machine())
    path = os.path.join(output, f"fathom-{version}-{tag}.whl")
    os.makedirs(output, exist_ok=True)
    about = f"fathom-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        record = [add(wheel, *member) for member in members(build, version)]
        record += [add(wheel, f"{about}/{name}", text.encode(), False)
                   for name, text in information(version, tag).items()]
        add(wheel, f"{about}/RECORD", ("".join(record) + f"{about}/RECORD,,\n").encode(), False)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
