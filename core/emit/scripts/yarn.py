#!/usr/bin/env python3
"""Makes a copy of a model whose positions reach further: YaRN, written into its config.json.

Usage: yarn.py MODEL FOLDER FACTOR
The weights are linked, not copied. Frameworks and inference engines that read the folder agree on the
positions, whichever of their own settings for it they ignore. Any number of processes may run it at
once on a shared folder: each makes its copy beside, and the first to finish gives it the name.
"""
import json
import os
import shutil
import sys
import tempfile


def stretched(config, factor):
    text = config.get("text_config", config)
    scaling = {
        "rope_type": "yarn",
        "factor": float(factor),
        "original_max_position_embeddings": text["max_position_embeddings"],
    }
    known = text.get("rope_parameters") or {}
    if "rope_theta" in known:
        text["rope_parameters"] = {"rope_theta": known["rope_theta"], **scaling}
    else:
        text["rope_scaling"] = scaling
    text["max_position_embeddings"] = int(text["max_position_embeddings"] * float(factor))
    return config


def write_copy(model, folder, factor):
    for name in os.listdir(model):
        if name != "config.json":
            os.symlink(os.path.realpath(os.path.join(model, name)), os.path.join(folder, name))
    with open(os.path.join(model, "config.json")) as source:
        config = stretched(json.load(source), factor)
    with open(os.path.join(folder, "config.json"), "w") as target:
        json.dump(config, target, indent=2)


def is_done(folder, factor):
    try:
        with open(os.path.join(folder, "config.json")) as source:
            config = json.load(source)
    except FileNotFoundError:
        return False
    text = config.get("text_config", config)
    made = (text.get("rope_parameters") or text.get("rope_scaling") or {}).get("factor")
    if made != float(factor):
        raise SystemExit(f"{folder} was made with factor {made}, not {factor}: remove it first")
    return True


def main(model, folder, factor):
    folder = os.path.abspath(folder)
    if is_done(folder, factor):
        return
    if not os.path.isdir(model):
        from huggingface_hub import snapshot_download

        model = snapshot_download(model)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    beside = tempfile.mkdtemp(prefix=os.path.basename(folder) + ".", dir=os.path.dirname(folder))
    try:
        os.chmod(beside, 0o755)
        write_copy(model, beside, factor)
        # A folder takes the name of another only where that one is empty: the second to come fails here.
        os.rename(beside, folder)
    except OSError as error:
        if not is_done(folder, factor):
            raise SystemExit(f"{folder} cannot be made: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
