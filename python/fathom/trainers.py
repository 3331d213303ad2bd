"""A live trainer of transformers or TRL, as settings: its arguments, its accelerator and its model go to the program as
the files that it reads anyway, so that what is said here is what `fathom predict --from` says."""
import dataclasses
import json
import os
import sys
import tempfile

from . import answers
from ._program import FathomError, ask_program
from .questions import doctor

GIB = 2**30
TASKS = {"SFTTrainer": "sft", "RewardTrainer": "reward", "DPOTrainer": "dpo", "KTOTrainer": "kto",
         "GRPOTrainer": "grpo", "RLOOTrainer": "rloo"}
LENGTHS_READ = 100_000  # rows of a data set that are looked at for the longest
# What the accelerator says better, or changes no memory on a GPU; a CPU only stands in for the GPUs that are meant.
ELSEWHERE = ("deepspeed", "fsdp", "fsdp_config", "output_dir", "logging_dir", "run_name", "report_to", "use_cpu",
             "dataset_num_proc")


def _scalars(arguments):
    """What its user said: the arguments that differ from their class's defaults, and can be written down."""
    defaults = {field.name: field.default if field.default is not dataclasses.MISSING
                else field.default_factory() if field.default_factory is not dataclasses.MISSING else None
                for field in dataclasses.fields(arguments) if field.init}
    said = {}
    for name, default in defaults.items():
        value = getattr(arguments, name, None)
        value = getattr(value, "value", value)  # of an enumeration
        if value != getattr(default, "value", default) and isinstance(value, (bool, int, float, str)):
            said[name] = value
    # What decides memory is said even where it is the default.
    for name in ("bf16", "fp16", "gradient_checkpointing", "per_device_train_batch_size",
                 "gradient_accumulation_steps", "optim"):
        value = getattr(arguments, name, None)
        if value is not None:
            said[name] = getattr(value, "value", value)
    for name in ELSEWHERE:
        said.pop(name, None)
    return said


def _lengths(trainer):
    """Tokens of the rows of its data set, as far as they can be told; of a pair, of the longer one."""
    data = getattr(trainer, "train_dataset", None)
    names = getattr(data, "column_names", None) or []
    pairs = [name for name in ("input_ids", "chosen_input_ids", "rejected_input_ids", "chosen_ids", "rejected_ids")
             if name in names]
    prompt = "prompt_ids" if "prompt_ids" in names else "prompt_input_ids" if "prompt_input_ids" in names else None
    if not pairs or not hasattr(data, "__len__"):
        return []
    rows = data.select(range(min(len(data), LENGTHS_READ))) if hasattr(data, "select") else data
    before = [len(row) for row in rows[prompt]] if prompt and "input_ids" not in pairs else [0] * len(rows)
    columns = [[len(row) for row in rows[name]] for name in pairs]
    return [asked + max(column[i] for column in columns) for i, asked in enumerate(before)]


def _context(trainer):
    lengths = _lengths(trainer)
    limit = getattr(trainer.args, "max_length", None)
    longest = max(lengths, default=None)
    if longest is None or (limit and longest > limit):
        longest = limit
    return longest, len(set(lengths)) > 1


def _adapter(model):
    """Rank and targets of the LoRA adapters of peft, where there are any."""
    configs = getattr(model, "peft_config", None)
    if not configs:
        return {}
    config = next(iter(configs.values()))
    rank = getattr(config, "r", None)
    if not rank:
        raise FathomError({"code": "unsupported", "message": f"adapters of kind {type(config).__name__} are not "
                                                             "modelled; LoRA is", "where": "peft_config"}, 2)
    return {"lora": str(rank)}


def _model_config(model):
    config = getattr(model, "config", None)
    text = config.to_dict() if hasattr(config, "to_dict") else dict(config or {})
    return {name: value for name, value in text.items() if value is not None and not name.startswith("_")}


def _strategy(accelerator, folder):
    """Settings of how the model is spread, from the live accelerator."""
    state = accelerator.state
    plugin = getattr(state, "deepspeed_plugin", None)
    if plugin is not None:
        path = os.path.join(folder, "deepspeed.json")
        stage = plugin.deepspeed_config.get("zero_optimization", {})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plugin.deepspeed_config, file, default=str)
        offloads = [stage.get(part, {}).get("device", "none") != "none"
                    for part in ("offload_optimizer", "offload_param")]
        return {"strategy": f"zero{stage.get('stage', 0)}", "offload": "all" if offloads[1] else
                "optimizer" if offloads[0] else "off"}
    plugin = getattr(state, "fsdp_plugin", None)
    if plugin is not None:
        offload = getattr(plugin, "cpu_offload", None)
        offloads = offload is True or getattr(offload, "offload_params", False)
        return {"strategy": f"fsdp{getattr(plugin, 'fsdp_version', 1)}", "offload": "all" if offloads else "off"}
    return {"strategy": "ddp" if state.num_processes > 1 else "single"}


def _precision(model):
    """bf16, where that is what trains; else the recipe knows."""
    kinds = {str(weight.dtype) for weight in model.parameters() if weight.requires_grad}
    return {"precision": "bf16"} if kinds == {"torch.bfloat16"} else {}


def settings_of(trainer, folder):
    """The settings of a live trainer, and the files that say the rest, written into `folder`."""
    name = next((base.__name__ for base in type(trainer).__mro__ if base.__name__ in TASKS), None)
    settings = {"recipe": "trl" if name else "transformers"}
    if name:
        settings["task"] = TASKS[name]
    with open(os.path.join(folder, "arguments.yaml"), "w", encoding="utf-8") as file:
        json.dump(_scalars(trainer.args), file)  # JSON is YAML
    settings["from"] = file.name
    model = trainer.accelerator.unwrap_model(trainer.model) if hasattr(trainer, "accelerator") else trainer.model
    settings.update(_adapter(model), **_precision(model))
    os.mkdir(os.path.join(folder, "model"))
    with open(os.path.join(folder, "model", "config.json"), "w", encoding="utf-8") as file:
        json.dump(_model_config(model), file, default=str)
    settings["model"] = os.path.join(folder, "model")
    context, mixed = _context(trainer)
    if context:
        settings["context"] = str(context)
    if mixed and name and not getattr(trainer.args, "packing", False):
        settings["batching"] = "padded"
    if hasattr(trainer, "accelerator"):
        settings.update(_strategy(trainer.accelerator, folder))
    return settings


def _machine(trainer, gpu):
    if gpu:
        return gpu
    import torch
    wanted = trainer.accelerator.num_processes if hasattr(trainer, "accelerator") else 1
    if torch.cuda.is_available() and torch.cuda.device_count() == wanted:
        return "auto"
    raise FathomError({"code": "bad_input", "message": f"this machine does not have the {wanted} GPUs that are meant; "
                       "name them, as in check(trainer, gpu='8xH100-80G')", "where": "gpu"}, 2)


def predict_trainer(trainer, gpu=None, **settings):
    """The prediction for a live trainer; settings given here win over what it says."""
    with tempfile.TemporaryDirectory(prefix="fathom-") as folder:
        said = settings_of(trainer, folder)
        said.update({name.replace("_", "-"): str(value) for name, value in settings.items()})
        said["gpu"] = _machine(trainer, gpu)
        answer = answers.Prediction.of(ask_program("predict", said))
    answer.settings["model"] = getattr(getattr(trainer.model, "config", None), "name_or_path", "") or "the model"
    return answer


def check(trainer, gpu=None, file=None, **settings):
    """Predicts a transformers or TRL trainer's run before a GPU is touched, prints the verdict, and returns it.

    `gpu` names the machine that is meant (`8xH100-80G`); without it, the GPUs of this one."""
    answer = predict_trainer(trainer, gpu, **settings)
    print(answer, file=file or sys.stderr)
    return answer


def _callback_base():
    try:
        from transformers import TrainerCallback
        return TrainerCallback
    except ImportError:
        return object


class FathomCallback(_callback_base()):
    """Lays each step's peak beside the prediction and logs both, through the Trainer's own loggers.

        trainer.add_callback(fathom.FathomCallback(trainer, gpu="H200"))

    After an out-of-memory error, `explain(error)` is doctor's answer to it."""

    def __init__(self, trainer, gpu=None, **settings):
        self.trainer = trainer
        self.prediction = predict_trainer(trainer, gpu, **settings)
        self.measured = []

    def _peaks(self):
        import torch
        if not torch.cuda.is_available():
            return None
        return {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}

    def on_step_begin(self, args, state, control, **kwargs):
        import torch
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def on_step_end(self, args, state, control, **kwargs):
        peaks = self._peaks()
        if peaks is None:
            return
        self.measured.append(peaks)
        step = self.prediction.steps[min(len(self.measured), len(self.prediction.steps)) - 1]
        self.trainer.log({"fathom/measured_gib": round(peaks["allocated"] / GIB, 4),
                          "fathom/predicted_gib": round(step.allocated_bytes / GIB, 4)})

    def explain(self, error):
        """Why it died: doctor's answer to the error's own text."""
        return doctor(f"{type(error).__module__}.{type(error).__name__}: {error}")
