"""A live trainer of transformers or TRL, as settings: its arguments, its accelerator and its model go to the program as
the files that it reads anyway, so that what is said here is what `fathom predict --from` says. What may change memory and
cannot be told is refused by name, never left out."""
import dataclasses
import json
import os
import re
import sys
import tempfile

from . import answers
from ._program import FathomError, as_settings, ask_program

GIB = 2**30
TASKS = {"SFTTrainer": "sft", "RewardTrainer": "reward", "DPOTrainer": "dpo", "KTOTrainer": "kto"}
LENGTHS_READ = 100_000  # rows of a data set that are looked at for the longest
# What the accelerator says better, or changes no memory on a GPU; a CPU only stands in for the GPUs that are meant.
ELSEWHERE = {"deepspeed", "fsdp", "fsdp_config", "output_dir", "logging_dir", "run_name", "report_to", "use_cpu",
             "dataset_num_proc", "model_init_kwargs", "hub_model_id", "warmup_steps", "project", "trackio_space_id"}
WHOLE = {"embed_tokens": "embed", "wte": "embed", "embed_in": "embed", "word_embeddings": "embed", "lm_head": "head",
         "embed_out": "head", "score": "", "classifier": ""}
TARGETS = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "o_proj": "o", "gate_proj": "gate", "up_proj": "up",
           "down_proj": "down"}
ATTENTIONS = {"sdpa": "sdpa", "eager": "eager", "flash_attention_2": "flash2", "flash_attention_3": "flash3"}


def refused(where, message):
    return FathomError({"code": "unsupported", "message": message, "where": where}, 2)


def _plain(value):
    return getattr(value, "value", value)  # of an enumeration


def _written(value):
    """As a file would hold it: of an object of settings what differs from a fresh one's."""
    value = _plain(value)
    if hasattr(value, "to_dict"):
        usual = type(value)().to_dict()
        return {name: part for name, part in value.to_dict().items() if part != usual.get(name)}
    return value


def _defaults(arguments):
    """Of the library's own class of arguments: what a user's subclass sets, the user has said."""
    own = next((kind for kind in type(arguments).__mro__ if kind.__module__.split(".")[0] in ("trl", "transformers")),
               type(arguments))
    return {field.name: field.default if field.default is not dataclasses.MISSING
            else field.default_factory() if field.default_factory is not dataclasses.MISSING else None
            for field in dataclasses.fields(own) if field.init}


def _said(arguments):
    """What its user said: the arguments that differ from their defaults, as a file would hold them."""
    said = {}
    for name, default in _defaults(arguments).items():
        if name in ELSEWHERE or "token" in name:
            continue
        value = _written(getattr(arguments, name, None))
        if value is None or value == _plain(default):
            continue
        try:
            said[name] = json.loads(json.dumps(value))
        except TypeError:
            raise refused(name, f"this {type(value).__name__} cannot be read, and may change memory") from None
    # What decides memory is said even where it is the default.
    for name in ("bf16", "fp16", "gradient_checkpointing", "per_device_train_batch_size",
                 "gradient_accumulation_steps", "optim"):
        value = _plain(getattr(arguments, name, None))
        if value is not None:
            said[name] = value
    return {name: value for name, value in said.items() if value not in ({}, [])}


def _lengths(data):
    """Tokens of the rows of a data set, as far as they can be told; of a pair, of the longer one."""
    names = getattr(data, "column_names", None) or []
    pairs = [name for name in ("input_ids", "chosen_input_ids", "rejected_input_ids", "chosen_ids", "rejected_ids")
             if name in names]
    prompt = next((name for name in ("prompt_ids", "prompt_input_ids") if name in names), None)
    if not pairs or not hasattr(data, "__len__") or len(data) > LENGTHS_READ:
        return []
    before = [len(row) for row in data[prompt]] if prompt and "input_ids" not in pairs else [0] * len(data)
    columns = [[len(row) for row in data[name]] for name in pairs]
    return [asked + max(column[i] for column in columns) for i, asked in enumerate(before)]


def _context(trainer):
    """(the longest sequence, whether lengths are mixed)."""
    lengths = _lengths(getattr(trainer, "train_dataset", None))
    limit = getattr(trainer.args, "max_length", None)
    longest = max(lengths, default=limit)
    return min(longest, limit) if longest and limit else longest, not lengths or len(set(lengths)) > 1


def _whole(modules):
    """What peft trains whole beside adapters; of a score it does so whatever is said."""
    names = {module: WHOLE.get(module.rsplit(".", 1)[-1]) for module in modules}
    unknown = sorted(module for module, name in names.items() if name is None)
    if unknown:
        raise refused("modules_to_save", f"{', '.join(unknown)} beside adapters is not modelled; "
                                         "embed_tokens and lm_head are")
    words = ",".join(sorted(filter(None, set(names.values()))))
    return {"lora-whole": words} if words else {}


def _adapter(model):
    """The LoRA adapters of peft, where there are any."""
    configs = getattr(model, "peft_config", None)
    if not configs:
        return {}
    config = next(iter(configs.values()))
    if not getattr(config, "r", None) or len(configs) > 1:
        raise refused("peft_config", f"adapters of kind {type(config).__name__}, or several, are not modelled; LoRA is")
    whole = _whole(getattr(config, "modules_to_save", None) or [])
    targets = getattr(config, "target_modules", None) or []
    unknown = sorted(set(targets) - set(TARGETS)) if not isinstance(targets, str) else [targets]
    if unknown and unknown != ["all-linear"]:
        raise refused("target_modules", f"adapters on {', '.join(unknown)} are not modelled; "
                                        f"on {', '.join(TARGETS)} they are")
    words = ",".join(TARGETS[name] for name in TARGETS if name in targets) if not unknown else "all-linear"
    dora = {"dora": "on"} if getattr(config, "use_dora", False) else {}
    return {"lora": str(config.r), "lora-targets": words, **whole, **dora}


def _packing(model):
    quantized = getattr(getattr(model, "config", None), "quantization_config", None)
    if not quantized:
        return {}
    said = quantized if isinstance(quantized, dict) else quantized.to_dict()
    if said.get("load_in_4bit") and said.get("bnb_4bit_quant_type", "fp4") == "nf4":
        return {"quantize": "nf4" if said.get("bnb_4bit_use_double_quant") else "nf4-single"}
    raise refused("quantization_config", "of packed weights bitsandbytes' nf4 is modelled")


def _check_frozen(model):
    """Everything trains, or adapters do."""
    if getattr(model, "peft_config", None):
        return
    frozen = [name for name, weight in model.named_parameters() if not weight.requires_grad]
    if frozen:
        raise refused(frozen[0], "weights that do not train, without adapters, are not read from a trainer")


def _precision(model, strategy, autocasts):
    """bf16, under autocast or not, where the weights are that and nobody widens them: adapters are not asked, and over
    shards Accelerate and DeepSpeed keep fp32 masters."""
    if strategy not in ("single", "ddp"):
        return {}
    kinds = {str(weight.dtype) for name, weight in model.named_parameters()
             if "lora_" not in name and weight.dtype.is_floating_point}
    narrow = "bf16-autocast" if autocasts else "bf16"
    return {"precision": narrow} if kinds == {"torch.bfloat16"} else {}


def _model_config(model):
    config = getattr(model, "config", None)
    text = config.to_dict() if hasattr(config, "to_dict") else dict(config or {})
    return {name: value for name, value in text.items()
            if value is not None and not name.startswith("_") and name != "quantization_config"}


def _model_name(model):
    """The last word of where it came from, for a folder that is named after it."""
    path = getattr(getattr(model, "config", None), "name_or_path", "") or "model"
    return re.sub(r"[^A-Za-z0-9._-]", "-", path.rstrip("/").rsplit("/", 1)[-1]).lstrip(".") or "model"


def _strategy(accelerator, folder):
    """Settings of how the model is spread, from the live accelerator; DeepSpeed's own file goes beside the others."""
    state = accelerator.state
    plugin = getattr(state, "deepspeed_plugin", None)
    if plugin is not None:
        with open(os.path.join(folder, "ds_config.json"), "w", encoding="utf-8") as file:
            json.dump({name: value for name, value in plugin.deepspeed_config.items() if value is not None}, file,
                      default=str)
        return {"strategy": f"zero{(plugin.deepspeed_config.get('zero_optimization') or {}).get('stage', 0)}"}
    plugin = getattr(state, "fsdp_plugin", None)
    if plugin is not None:
        version = getattr(plugin, "fsdp_version", 1)
        offload = getattr(plugin, "cpu_offload", None)
        offloads = (offload is True or bool(getattr(offload, "offload_params", False))
                    or type(offload).__name__ == "CPUOffloadPolicy")
        kept = version == 2 and getattr(plugin, "reshard_after_forward", True) is False
        return {"strategy": f"fsdp{version}", "offload": "all" if offloads else "off",
                "load-once": "on" if getattr(plugin, "cpu_ram_efficient_loading", False) else "off",
                **({"reshard": "off"} if kept else {})}
    return {"strategy": "ddp" if state.num_processes > 1 else "single"}


def _recipe(trainer):
    """Whose step it is: the nearest class of the library itself."""
    if not all(hasattr(trainer, part) for part in ("accelerator", "args", "model")):
        raise refused("trainer", f"a trainer of transformers or TRL is wanted, not a {type(trainer).__name__}")
    for base in type(trainer).__mro__:
        if base.__module__.split(".")[0] == "trl" and base.__name__ != "BaseTrainer":
            if base.__name__ not in TASKS or "experimental" in base.__module__:
                raise refused(base.__name__, f"of TRL's trainers {', '.join(TASKS)} are read")
            return {"recipe": "trl", "task": TASKS[base.__name__]}
        if base.__module__.split(".")[0] == "transformers":
            break
    return {"recipe": "transformers"}


def _write(folder, name, values):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(values, file, default=str)


def settings_of(trainer, folder):
    """The settings of a live trainer, and the files that say the rest, written into `folder`."""
    settings = _recipe(trainer)
    model = trainer.accelerator.unwrap_model(trainer.model)
    _check_frozen(model)
    files = os.path.join(folder, "files")
    os.makedirs(files)
    _write(files, "arguments.yaml", _said(trainer.args))  # JSON is YAML
    settings["from"] = files
    settings["model"] = os.path.join(folder, "of", _model_name(model))
    os.makedirs(settings["model"])
    _write(settings["model"], "config.json", _model_config(model))
    settings.update(_strategy(trainer.accelerator, files))
    packing = _packing(model)
    autocasts = trainer.accelerator.mixed_precision == "bf16" and not packing
    settings.update(_adapter(model), **packing, **_precision(model, settings["strategy"], autocasts))
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if attention not in (None, "sdpa"):
        settings["attention"] = ATTENTIONS.get(attention, attention)
    context, mixed = _context(trainer)
    if context:
        settings["context"] = str(context)
    if mixed and settings["recipe"] == "trl" and not getattr(trainer.args, "packing", False):
        settings["batching"] = "padded"
    return settings


def _machine(trainer, gpu):
    wanted = trainer.accelerator.num_processes
    if gpu:
        return gpu
    import torch
    if torch.cuda.is_available() and torch.cuda.device_count() == wanted:
        return "auto"
    raise FathomError({"code": "bad_input", "message": f"this machine does not have the {wanted} GPUs that are meant; "
                       "name them, as in check(trainer, gpu='8xH100-80G')", "where": "gpu"}, 2)


def _means_several(gpu):
    return bool(re.match(r"(\d+)x", gpu)) and not gpu.startswith("1x")


def predict_trainer(trainer, gpu=None, **settings):
    """The prediction for a live trainer; settings given here win over what it says. Where one process asks about
    several GPUs, how they share the model is the recipe's default, unless `strategy` says it."""
    with tempfile.TemporaryDirectory(prefix="fathom-") as folder:
        said = settings_of(trainer, folder)
        said["gpu"] = _machine(trainer, gpu)
        if trainer.accelerator.num_processes == 1 and _means_several(said["gpu"]):
            said.pop("strategy")
        said.update(as_settings(settings))
        answer = answers.Prediction.of(ask_program("predict", said))
    answer.settings["model"] = getattr(getattr(trainer.model, "config", None), "name_or_path", "") or "the model"
    return answer


def check(trainer, gpu=None, file=None, **settings):
    """Predicts a transformers or TRL trainer's run before a GPU is touched, prints the verdict, and returns it.

    `gpu` names the machine that is meant (`8xH100-80G`); without it, the GPUs of this one."""
    answer = predict_trainer(trainer, gpu, **settings)
    print(answer, file=file or sys.stderr)
    return answer
