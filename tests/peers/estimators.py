"""The estimators of others, each asked as its users ask it: a job in, bytes on one GPU out.

A job is what `fathom predict --json` resolves (its `settings`) with the model's shapes under `shape`. Where an
estimator cannot say what the job is, it raises CannotSay with the reason; what it says is never corrected. None of
them reaches the network: shapes come from the catalogue.
"""
GIB = 2**30
MIB = 2**20


class CannotSay(Exception):
    """The estimator has no word for this job."""


def need(possible, reason):
    if not possible:
        raise CannotSay(reason)


def is_alone(job):
    return job["strategy"] == "single" or job["gpus"] == 1


def need_one_plain_gpu(job):
    need(is_alone(job), "several GPUs")
    need(job["task"] == "sft", "another task than SFT")
    need(job["sp"] == job["cp"] == 1, "split sequences")
    need(job["offload"] == job["activation-offload"] == "off", "offloading")
    need(not job["shape"].get("experts"), "experts")


def config_of(job):
    """The model's config.json."""
    shape = job["shape"]
    return {"model_type": shape["family"], "hidden_size": shape["hidden_size"], "num_hidden_layers": shape["layers"],
            "num_attention_heads": shape["heads"], "num_key_value_heads": shape["kv_heads"],
            "head_dim": shape["head_dim"], "intermediate_size": shape["intermediate_size"],
            "vocab_size": shape["vocab_size"], "max_position_embeddings": shape["max_position_embeddings"],
            "tie_word_embeddings": shape["tied"]}


def fitcheck(job):
    from fitcheck.config_parser import ModelConfig
    from fitcheck.estimator import TrainingConfig, estimate
    from fitcheck.gpu_db import get_gpu
    need_one_plain_gpu(job)
    shape = job["shape"]
    optimizers = {"adamw": "adamw", "adamw-fused": "adamw", "adamw-8bit": "adamw-8bit", "sgd": "sgd"}
    need(job["optimizer"] in optimizers, "another optimizer")
    model = ModelConfig(shape["name"], job["parameters"], shape["hidden_size"], shape["layers"], shape["heads"],
                        shape["kv_heads"], shape["intermediate_size"], shape["vocab_size"], shape["head_dim"],
                        shape["tied"])
    wide = job["precision"] != "bf16"
    training = TrainingConfig(precision="fp32" if wide and not job.get("lora") else "bf16",
                              optimizer=optimizers[job["optimizer"]], batch_size=job["batch"], seq_len=job["context"],
                              quantization="nf4" if job["quantize"] != "off" else "none",
                              optimizer_dtype="fp32" if wide else "bf16", grad_accum_steps=job["accum"],
                              lora_rank=job.get("lora"), grad_checkpoint=job["checkpointing"] == "on", flash_attn=True)
    return estimate(model, training, get_gpu("h200")).total_mib * MIB


def canifinetune(job):
    from canifinetune.estimator.memory import EstimateRequest, estimate
    need_one_plain_gpu(job)
    optimizers = {"adamw": "adamw_torch", "adamw-fused": "adamw_torch_fused", "adamw-8bit": "adamw_8bit", "sgd": "sgd"}
    need(job["optimizer"] in optimizers, "another optimizer")
    shape = job["shape"]
    method = "full" if not job.get("lora") else "qlora" if job["quantize"] != "off" else "lora"
    override = {"hidden_size": shape["hidden_size"], "num_hidden_layers": shape["layers"],
                "num_attention_heads": shape["heads"], "num_key_value_heads": shape["kv_heads"],
                "intermediate_size": shape["intermediate_size"], "vocab_size": shape["vocab_size"],
                "tie_word_embeddings": shape["tied"], "family": shape["family"], "total_params": job["parameters"],
                "num_params": job["parameters"]}
    request = EstimateRequest(model_id=shape["name"], method=method, seq_len=job["context"], gpu_vram_gb=139.8,
                              micro_batch_size=job["batch"], gradient_accumulation_steps=job["accum"],
                              base_dtype="fp32" if job["precision"] != "bf16" and method == "full" else "bf16",
                              optimizer=optimizers[job["optimizer"]], use_network=False, override=override,
                              lora_rank=job.get("lora") or 16,
                              gradient_checkpointing=job["checkpointing"] == "on")
    memory = estimate(request).memory
    return (memory.total_estimated_gb - memory.safety_margin_gb) * GIB


def ftune(job):
    from ftuneai import Estimator
    need(job["task"] == "sft", "another task than SFT")
    need(job["sp"] == job["cp"] == 1, "split sequences")
    names = {"Qwen3-8B": "Qwen/Qwen3-8B", "Qwen3-32B": "Qwen/Qwen3-32B", "Llama-3.1-8B": "meta-llama/Llama-3.1-8B"}
    need(job["shape"]["name"] in names and not job.get("layers"), "a model outside its table")
    sharding = {"single": "none", "ddp": "none", "fsdp1": "fsdp", "fsdp2": "fsdp", "zero1": "zero_1",
                "zero2": "zero_2", "zero3": "zero_3"}[job["strategy"]]
    optimizers = {"adamw": "adamw", "adamw-fused": "adamw", "adamw-8bit": "adam_8bit", "sgd": "sgd",
                  "adafactor": "adafactor"}
    need(job["optimizer"] in optimizers, "another optimizer")
    method = "full" if not job.get("lora") else "qlora" if job["quantize"] != "off" else "lora"
    return Estimator(model=names[job["shape"]["name"]], method=method, batch_size=job["batch"],
                     quantization="4bit" if method == "qlora" else "none", seq_length=job["context"],
                     gradient_checkpointing=job["checkpointing"] == "on", optimizer=optimizers[job["optimizer"]],
                     flash_attention=True, sharding=sharding, lora_rank=job.get("lora") or 16,
                     num_gpus=job["gpus"]).estimate_memory().total_gb * GIB


def vramcalc(job):
    from vramcalc.estimate import estimate
    from vramcalc.arch import UnsupportedModelError
    need_one_plain_gpu(job)
    need(job["quantize"] == "off", "quantised weights")
    need(job["optimizer"] in ("adamw", "adamw-fused", "sgd"), "another optimizer")
    try:
        said = estimate(config_of(job), mode="train", batch=job["batch"], seq_len=job["context"],
                        lora_rank=job.get("lora"), grad_checkpoint=job["checkpointing"] == "on",
                        optimizer="sgd" if job["optimizer"] == "sgd" else "adamw",
                        precision="pure" if job["precision"] == "bf16" else "amp")
    except UnsupportedModelError as why:
        raise CannotSay("a family outside its table") from why
    return said.total


def accelerate(job):
    from accelerate.commands.estimate import estimate_training_usage
    need_one_plain_gpu(job)
    need(not job.get("lora"), "adapters")
    dtype = "float16" if job["precision"] == "bf16" else "float32"
    return max(estimate_training_usage(job["parameters"] * 4, dtype).values())


def deepspeed(job):
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    need(job["strategy"] in ("zero2", "zero3"), "strategies other than ZeRO-2 and 3")
    need(not job.get("lora"), "adapters")
    shape, count = job["shape"], job["parameters"]
    offloads = job["offload"] != "off"
    if job["strategy"] == "zero2":
        _, said = estimate_zero2_model_states_mem_needs(count, num_gpus_per_node=job["gpus"], cpu_offload=offloads)
        return said
    largest = shape["vocab_size"] * shape["hidden_size"]
    _, said, _ = estimate_zero3_model_states_mem_needs(count, largest, num_gpus_per_node=job["gpus"],
                                                       cpu_offload=offloads, cpu_offload_params=job["offload"] == "all")
    return said


def memory_tracker(job):
    """torch's MemTracker around real steps of transformers' model on fake tensors, as its documentation shows: of a
    GPU where there is one, else of the CPU, whose attention keeps the same."""
    import contextlib
    import torch
    import transformers
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    need_one_plain_gpu(job)
    need(job["recipe"] == "hf" and job["loss"] == "full", "a trainer's own loss")
    need(not job.get("lora") and job["optimizer"] in ("adamw", "adamw-fused"), "adapters and other optimizers")
    wide = job["precision"] == "autocast"
    place = "cuda" if torch.cuda.is_available() else "cpu"
    config = transformers.AutoConfig.for_model(**config_of(job))
    with FakeTensorMode():
        with torch.device(place):
            model = transformers.AutoModelForCausalLM.from_config(
                config, dtype=torch.float32 if wide else torch.bfloat16)
        model.train()
        if job["checkpointing"] == "on":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            model.config.use_cache = False
        optimizer = torch.optim.AdamW(model.parameters(), foreach=job["optimizer"] == "adamw",
                                      fused=job["optimizer"] == "adamw-fused")
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for step in range(2):
                ids = torch.zeros((job["batch"], job["context"]), dtype=torch.long, device=place)
                cast = torch.autocast(place, torch.bfloat16) if wide else contextlib.nullcontext()
                with cast:
                    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                if step == 0:
                    tracker.reset_mod_stats()
    return max(snapshot["Total"] for device, snapshot in tracker.get_tracker_snapshot("peak").items()
               if device.type == place)


# name and its function
ESTIMATORS = [
    ("accelerate 1.15, estimate-memory", accelerate),
    ("DeepSpeed 0.19, ZeRO estimators", deepspeed),
    ("torch 2.11, MemTracker on fake tensors", memory_tracker),
    ("fitcheck-llm 0.3.1", fitcheck),
    ("canifinetune 0.4.1", canifinetune),
    ("ftuneai 0.4.1", ftune),
    ("vramcalc 0.1.2", vramcalc),
]
# One answer takes half a minute and more: it is asked for the first so many that it has words for.
MOST_ASKED = {memory_tracker: 6}
