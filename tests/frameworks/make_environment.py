#!/usr/bin/env python3
"""Makes the Python environment of `make test-frameworks`, once for each requirements.txt.

Usage: tests/frameworks/make_environment.py FOLDER

torch's wheel from PyPI is the CUDA one and loads only beside 3 GB of NVIDIA's libraries. On a machine
without a GPU none of their functions is ever called with success, so stand-ins with the same names and
symbol versions, every function failing, take their place. Of Trinity-RFT and verl only the
configuration is looked at: they are unpacked beside the environment, not installed.
"""
import collections
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")
DEEPSPEED = "deepspeed==0.19.8"  # its setup imports torch, so it comes after the stand-ins
ASIDE = ["trinity-rft==0.6.0", "trinity-rft==0.4.0", "verl==0.8.0", "verl==0.9.1", "trl==1.16.0"]
# What runs Trinity-RFT's trainer: verl as its requirements lead to, and what the two and Ray import, all in one
# folder, so that no other test meets it.
TRINITY = [
    "trinity-rft==0.6.0", "verl==0.8.0", "ray==2.60.0", "tensordict==0.10.0", "absl-py==2.5.1", "aiosqlite==0.22.1",
    "annotated-doc==0.0.6", "attrs==26.1.0", "cachetools==8.0.0", "cloudpickle==3.1.2", "codetiming==1.4.0",
    "distro==1.9.0", "fastapi==0.115.12", "greenlet==3.5.6", "importlib_metadata==10.2.0", "jiter==0.19.0",
    "jsonlines==4.0.0", "jsonschema==4.26.0", "jsonschema-specifications==2025.9.1", "nvidia-ml-py==13.615.71",
    "openai==3.49.0", "orjson==3.13.0", "peft==0.21.2", "pillow==13.0.0", "protobuf==7.36.2", "pyvers==0.2.3",
    "referencing==0.37.0", "rpds-py==2026.9.1", "sortedcontainers==2.4.0", "SQLAlchemy==2.1.8", "starlette==0.46.2",
    "tensorboard==2.21.0", "torchdata==0.11.0", "uvicorn==0.54.0", "zipp==4.1.2",
]
# Trainers that pin their own versions of the libraries, each in a folder of its own that comes first on the path of
# its checks; torch and what is not named here is the environment's.
YAML_TRAINERS = {
    "llamafactory": [
        "llamafactory==0.9.5", "transformers==5.6.0", "accelerate==1.11.0", "peft==0.18.1", "trl==0.24.0",
        "datasets==4.0.0", "fsspec==2025.3.0", "tokenizers==0.22.2", "av==16.0.0", "pillow==11.3.0",
        "sentencepiece==0.2.1", "tiktoken==0.12.0", "protobuf==6.33.0", "scipy==1.16.3",
    ],
    "axolotl": [
        "axolotl==0.19.0", "transformers==5.16.1", "accelerate==1.13.0", "peft==0.20.0", "trl==1.9.0",
        "datasets==4.8.4", "pydantic==2.12.5", "pydantic_core==2.41.5", "huggingface_hub==1.17.0",
        "tokenizers==0.23.1", "addict==2.4.0", "fire==0.7.1", "colorama==0.4.6", "art==6.5", "packaging==26.0",
        "axolotl-contribs-lgpl==0.0.7", "axolotl-contribs-mit==0.0.6", "pillow==11.3.0",
    ],
}
RAY = "ray[default]==2.60.0"  # with its dashboard, through which jobs are submitted
NO_DEVICE = 100  # cudaErrorNoDevice


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wanted_symbols(folder):
    """(names of missing libraries, {version: library}, {version: symbols}) of torch's libraries."""
    files = [name for name in os.listdir(folder) if ".so" in name]
    missing, library_of, symbols = set(), {}, collections.defaultdict(set)
    for file in files:
        path = os.path.join(folder, file)
        needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", path))
        missing |= {name for name in needed if re.match(r"lib(cu|nccl|nv)", name) and name not in files}
        library = None
        for line in output_of("readelf", "-VW", path).splitlines():
            found = re.search(r"File: (\S+)", line)
            library = found.group(1) if found else library
            found = re.search(r"Name: (\S+)  Flags", line)
            if found and library:
                library_of[found.group(1)] = library
        for line in output_of("nm", "-D", "--undefined-only", path).splitlines():
            name, _, version = line.split()[-1].partition("@")
            symbols[version.lstrip("@")].add(name)
    return missing, library_of, symbols


def stand_in(folder, library, symbols_by_version):
    with tempfile.TemporaryDirectory() as work:
        source, versions = os.path.join(work, "stand_in.c"), os.path.join(work, "versions.map")
        with open(source, "w") as out:
            out.write("static char nothing[4096];\n")
            for name in sorted(set().union(*symbols_by_version.values())):
                pointer = name.startswith("__cuda") or "String" in name or "Name" in name
                out.write(f"void *{name}(void) {{ return nothing; }}\n" if pointer else
                          f"int {name}(void) {{ return {NO_DEVICE}; }}\n")
        command = ["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-O1", source, f"-Wl,-soname,{library}",
                   "-o", os.path.join(folder, library)]
        with open(versions, "w") as out:
            for version, names in symbols_by_version.items():
                if version:
                    out.write(f"{version} {{ global: {' '.join(name + ';' for name in sorted(names))} }};\n")
        if any(symbols_by_version):
            command.append(f"-Wl,--version-script,{versions}")
        subprocess.run(command, check=True)


def put_stand_ins(folder):
    missing, library_of, symbols = wanted_symbols(folder)
    for library in missing:
        by_version = {version: symbols[version] for version, owner in library_of.items() if owner == library}
        if library.startswith("libcudart"):  # symbols without a version may be anywhere: here
            by_version[""] = {name for name in symbols[""] if re.match(r"_*(cu|nccl|nv)", name)}
        stand_in(folder, library, by_version or {"": set()})


def make(folder):
    venv.create(folder, with_pip=True)
    python = os.path.join(folder, "bin", "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-cache-dir", "--no-deps"]
    subprocess.run([*pip, "-r", REQUIREMENTS], check=True)
    site = output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    put_stand_ins(os.path.join(site, "torch", "lib"))
    subprocess.run([*pip, "--no-build-isolation", DEEPSPEED], check=True, env={**os.environ, "DS_BUILD_OPS": "0"})
    for package in ASIDE:
        subprocess.run([*pip, "--target", os.path.join(folder, "aside", package), package], check=True)
    subprocess.run([*pip, "--target", os.path.join(folder, "aside", "trinity"), *TRINITY], check=True)
    for name, packages in YAML_TRAINERS.items():
        subprocess.run([*pip, "--target", os.path.join(folder, "aside", name), *packages], check=True)
    whole = [word for word in pip if word != "--no-deps"]
    subprocess.run([*whole, "--target", os.path.join(folder, "aside", "ray"), RAY], check=True)
    subprocess.run([python, "-c", "import torch; assert torch.ones(2).sum() == 2"], check=True)


def main(folder):
    with open(REQUIREMENTS, "rb") as a, open(os.path.abspath(__file__), "rb") as b:
        wanted = hashlib.sha256(a.read() + b.read()).hexdigest()
    stamp = os.path.join(folder, "made-from")
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return
    print(f"making {folder} (about 1.5 GB, a few minutes)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    make(folder)
    with open(stamp, "w") as out:
        out.write(wanted)


main(sys.argv[1])
