"""A run that was followed becomes a trial in the store of `fathom probe`, so that `fathom probe --list` lays what was
predicted beside what was measured on one's own jobs. The program keeps the store: to it the run is a command that prints,
once more, what the run has said."""
import json
import os
import re
import shlex
import tempfile

from ._program import as_settings, ask_program
from .trainers import refused, settings_of

MACHINE = re.compile(r"(?:(\d+)x)?([^x].*)")


def _place(gpu, wanted):
    """How many GPUs, and which card where one is named."""
    count, card = MACHINE.fullmatch(gpu).groups() if gpu else (wanted, None)
    if card and re.match(r"\d+x", card):
        raise refused("store", "trials of several nodes are not written down")
    return {"gpus": str(count or 1), **({"as": card} if card and card != "auto" else {})}


def _lines(steps, error):
    import torch
    import transformers
    card = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
    yield {"fathom": "start", "torch": torch.__version__, "transformers": transformers.__version__,
           **({"gpu": card.name, "total_bytes": card.total_memory} if card else {})}
    for number, step in enumerate(steps, 1):
        yield {"fathom": "step", "step": number,
               **{f"{kind}_bytes": step[kind] for kind in ("allocated", "reserved")}, "seconds": step["seconds"]}
    if not error:
        yield {"fathom": "done"}


def write_trial(trainer, gpu, store, steps, error=None, **settings):
    """One trial: the steps' peaks, and the text of the error that ended it, where one did."""
    with tempfile.TemporaryDirectory(prefix="fathom-") as folder:
        said = settings_of(trainer, folder)
        said.update(as_settings(settings))
        said.update(_place(gpu, trainer.accelerator.num_processes))
        if trainer.accelerator.num_processes == 1 and said["gpus"] != "1" and "strategy" not in settings:
            said.pop("strategy")
        context = said.pop("context")
        log = os.path.join(folder, "run-")
        with open(log + context, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in _lines(steps, error))
            file.write(error or "")
        command = f"cat {shlex.quote(log)}{{context}}{'; exit 1' if error else ''}"
        store = os.path.abspath(store)
        return ask_program("probe", {**said, "engine": "command", "command": command, "start": context,
                                     "until": context, "grid": context, "resume": "off", "store": store,
                                     "log-dir": os.path.dirname(store)})
