#!/usr/bin/env python3
"""A trial of TRL's own command line: random weights and tokens beside the files that `fathom emit --for trl` wrote.

Usage: trl_trial.py FOLDER PLACE CONTEXT ROWS

FOLDER has config/config.json, launch.sh and what that reads. The model is made in PLACE/model, in bf16 as models lie
on disk, with a tokenizer of words; FOLDER/model leads there. FOLDER/trial.jsonl gets ROWS rows of CONTEXT tokens. Then
`trl` trains as it would for anybody, for three steps, and saves to PLACE. It ends with the status of that.
Where Accelerate is told to use the CPU (ACCELERATE_USE_CPU), so is TRL. On fake tensors (FATHOM_PLAY_FAKE) the model
has a configuration and no weights.
"""
import json
import os
import random
import subprocess
import sys

STEPS = 3
MOST_WORDS = 20000
ARGUMENTS = ["--max_steps", str(STEPS), "--save_strategy", "no", "--logging_steps", "1", "--disable_tqdm", "true"]


def config_of(folder):
    from transformers import AutoConfig  # which fills in what the file leaves to its class

    return AutoConfig.from_pretrained(os.path.join(folder, "config"))


def words_of(config):
    return min(MOST_WORDS, config.get_text_config().vocab_size - 3)


def write_tokenizer(folder, count):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = [f"w{i}" for i in range(count)] + ["<pad>", "<eos>", "<unk>"]
    words = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>",
                            unk_token="<unk>").save_pretrained(folder)


def make_model(folder, weights):
    import torch
    from transformers import AutoModelForCausalLM

    config = config_of(folder)
    if torch.cuda.is_available():
        torch.set_default_device("cuda")
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(weights)
    write_tokenizer(weights, words_of(config))


def name_model(folder, weights):
    """Without values: on fake tensors nobody reads them."""
    config = config_of(folder)
    config.save_pretrained(weights)
    write_tokenizer(weights, words_of(config))


def write_rows(folder, context, count):
    words = words_of(config_of(folder))
    random.seed(0)
    with open(os.path.join(folder, "trial.jsonl"), "w") as out:
        for _ in range(count):
            out.write(json.dumps({"input_ids": random.choices(range(words), k=context)}) + "\n")


def main(folder, place, context, count):
    fake = os.environ.get("FATHOM_PLAY_FAKE")
    link, weights = os.path.join(folder, "model"), os.path.abspath(os.path.join(place, "model"))
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FATHOM_PLAY")}
    subprocess.run([sys.executable, os.path.abspath(__file__), "--name" if fake else "--make", folder, weights], env=plain, check=True)
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(weights, link)
    write_rows(folder, int(context), int(count))
    saved = ["--output_dir", os.path.abspath(os.path.join(place, "saved"))]
    cpu = ["--use_cpu", "true"] if os.environ.get("ACCELERATE_USE_CPU") == "true" else []
    os.execvp("bash", ["bash", os.path.join(folder, "launch.sh"), *ARGUMENTS, *saved, *cpu])


if sys.argv[1] == "--make":
    make_model(*sys.argv[2:])
elif sys.argv[1] == "--name":
    name_model(*sys.argv[2:])
else:
    main(*sys.argv[1:])
