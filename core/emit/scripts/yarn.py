#!/usr/bin/env python3
"""Makes a copy of a model whose positions reach further: YaRN, written into its config.json.

Usage: yarn.py MODEL FOLDER FACTOR
The weights are linked, not copied. Frameworks and inference engines that read the folder agree on the
positions, whichever of their own settings for it they ignore.
"""
import json
import os
import sys


def main(model, folder, factor):
    if not os.path.isdir(model):
        from huggingface_hub import snapshot_download

        model = snapshot_download(model)
    with open(os.path.join(model, "config.json")) as source:
        config = json.load(source)
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
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(model):
        link = os.path.join(folder, name)
        if name != "config.json" and not os.path.lexists(link):
            os.symlink(os.path.realpath(os.path.join(model, name)), link)
    with open(os.path.join(folder, "config.json"), "w") as target:
        json.dump(config, target, indent=2)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
