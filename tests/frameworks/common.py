"""What the checks share: the emitted files under tests/emit, broken copies of them, a place to work."""
import contextlib
import copy
import glob
import json
import os
import shlex
import subprocess
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
EMIT = os.path.join(os.path.dirname(HERE), "emit")
ROOT = os.path.dirname(os.path.dirname(HERE))
ASIDE = os.path.join(ROOT, "build", "frameworks", "aside")
FATHOM = os.path.join(ROOT, "build", "release", "fathom")
TINY = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 256, "max_position_embeddings": 4096, "tie_word_embeddings": True,
}


def files(pattern):
    """(case, path) of the kept files whose path under tests/emit matches."""
    found = sorted(glob.glob(os.path.join(EMIT, pattern)))
    assert found, pattern
    return [(os.path.relpath(path, EMIT), path) for path in found]


def read(path):
    with open(path) as source:
        return json.load(source) if path.endswith(".json") else yaml.safe_load(source)


def changed(document, path, value):
    """A copy with the value at "a.b.c" replaced; None removes it."""
    document = copy.deepcopy(document)
    *above, last = path.split(".")
    at = document
    for key in above:
        at = at.setdefault(key, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return document


@contextlib.contextmanager
def written(document, name="changed.yaml"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w") as out:
            (json.dump if name.endswith(".json") else yaml.safe_dump)(document, out)
        yield path


def emit(folder, arguments):
    """Emits into the folder, beside a model of a few thousand parameters called "tiny"."""
    os.makedirs(os.path.join(folder, "tiny"))
    with open(os.path.join(folder, "tiny", "config.json"), "w") as out:
        json.dump(TINY, out)
    subprocess.run([FATHOM, "emit", "--model", "./tiny", *shlex.split(arguments), "-o", "."],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
