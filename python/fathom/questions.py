"""The commands as functions."""
import os
import tempfile

from . import answers
from ._program import FathomError, as_settings, ask_library, ask_program


def _needs_world(settings):
    """Whether a file, this machine's GPUs or the hub may be meant: the program looks, the library cannot."""
    model = settings.get("model", "")
    return "/" in model or model.endswith(".json") or settings.get("gpu") == "auto" or "from" in settings \
        or os.path.exists(model)


def ask(command, **settings):
    """The JSON reply of any command, as a dict."""
    words = as_settings(settings)
    return ask_program(command, words) if _needs_world(words) else ask_library(command, words)


def predict(model=None, gpu=None, context=None, **settings):
    """Whether a configuration fits, its peak, and who is alive there. "Does not fit" is an answer, not an error."""
    return answers.Prediction.of(ask("predict", model=model, gpu=gpu, context=context, **settings))


def max_context(model=None, gpu=None, **settings):
    """The longest context that trains."""
    return answers.Limit.of(ask("max", model=model, gpu=gpu, **settings))


def plan(model=None, gpu=None, context=None, **settings):
    """The best way to train a global batch: `plan(model, gpu, context, global_batch=128, recipe="trl")`."""
    return answers.Plan.of(ask("plan", model=model, gpu=gpu, context=context, **settings))


def emit(framework, model=None, gpu=None, context=None, **settings):
    """The files that run a configuration in a framework."""
    return answers.Emitted.of(ask("emit", **{"for": framework}, model=model, gpu=gpu, context=context, **settings))


def accelerate_config(model=None, gpu=None, context=None, **settings):
    """The configuration file of `accelerate launch`, as a dict."""
    try:
        import yaml
    except ImportError:
        raise FathomError({"code": "unsupported", "where": "accelerate_config",
                           "message": "its YAML is read with PyYAML, which Accelerate brings and is not installed"},
                          2) from None
    files = emit("accelerate", model, gpu, context, **settings).files
    name = next(name for name in files if name.endswith((".yaml", ".yml")))
    return yaml.safe_load(files[name])


def models(name=None):
    """The models known by name, or one in full, as the program's JSON."""
    return ask("models", model=name)


def doctor(text):
    """Why a run died, from the text of its log."""
    return answers.Doctor.of(ask_program("doctor", {}, "-", text=text))


def replay(snapshot, **settings):
    """A memory snapshot of torch (a path, or what `torch.cuda.memory._snapshot()` returns), replayed."""
    if isinstance(snapshot, (str, os.PathLike)):
        return answers.Replay.of(ask_program("replay", {"file": os.fspath(snapshot), **as_settings(settings)}))
    import pickle
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        return replay(path, **settings)
