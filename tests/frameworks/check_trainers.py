"""Real SFT, DPO and Reward trainers of TRL on the CPU, put to fathom.check: prints the settings it saw, as JSON lines.

Usage: check_trainers.py FOLDER, with the package, transformers and TRL on the path.
"""
import json
import os
import sys

import datasets
import fathom
import torch
import transformers
import trl
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = {"<pad>": 0, "<eos>": 1, "<unk>": 2, **{f"w{i}": i + 3 for i in range(200)}}
SHAPE = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0}


def text(words):
    return " ".join(f"w{i % 200}" for i in range(words))


def saved(folder, kind, **more):
    """A tiny model with its tokenizer, as users have them: in a folder."""
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>",
                                                unk_token="<unk>")
    kind(transformers.Qwen3Config(**SHAPE, **more)).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def said(what, trainer, gpu="H100-80G", **more):
    answer = fathom.check(trainer, gpu=gpu, **more)
    print(json.dumps({"what": what, "verdict": answer.verdict, "needs": answer.needs_bytes,
                      "settings": answer.settings}))


def refused(what, trainer):
    try:
        fathom.check(trainer, gpu="H100-80G")
    except fathom.FathomError as error:
        print(json.dumps({"what": what, "message": str(error), "status": error.status}))


class Adapters:
    """As peft's LoraConfig says it."""
    r, target_modules, use_dora, modules_to_save = 8, {"q_proj", "v_proj"}, True, ["lm_head"]


def follow(trainer, store):
    """Trains a step with the callback, as if the step had run on a GPU with these peaks."""
    callback = fathom.FathomCallback(trainer, gpu="H100-80G", store=store)
    callback._peaks = lambda: {"allocated": 3 << 30, "reserved": 4 << 30}
    trainer.add_callback(callback)
    trainer.train()
    logged = [row for row in trainer.state.log_history if "fathom/measured_gib" in row]
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                                   "79.15 GiB of which 1.00 GiB is free.")
    print(json.dumps({"what": "callback", "logged": logged, "measured": callback.measured,
                      "cause": callback.explain(error).cause["kind"]}))


def die(trainer, store):
    """A step that runs out of memory, as the card would say it."""
    def forward(*words, **more):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                                     "79.15 GiB of which 1.00 GiB is free.")
    trainer.add_callback(fathom.FathomCallback(trainer, gpu="H100-80G", store=store))
    trainer.compute_loss = forward
    try:
        trainer.train()
    except torch.OutOfMemoryError:
        print(json.dumps({"what": "died"}))


def main():
    folder = sys.argv[1]
    language = saved(os.path.join(folder, "language"), transformers.Qwen3ForCausalLM)
    reward = saved(os.path.join(folder, "reward"), transformers.Qwen3ForSequenceClassification, num_labels=1)
    usual = {"output_dir": os.path.join(folder, "out"), "use_cpu": True, "report_to": "none", "bf16": True,
             "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4}
    rows = datasets.Dataset.from_dict({"input_ids": [[3] * 100] * 8})
    mixed = datasets.Dataset.from_dict({"input_ids": [[3] * (100 + i) for i in range(8)]})
    pairs = datasets.Dataset.from_dict({"prompt": [text(40)] * 8, "chosen": [" " + text(60)] * 8,
                                        "rejected": [" " + text(50)] * 8})
    said("sft", trl.SFTTrainer(model=language, args=trl.SFTConfig(**usual), train_dataset=rows))
    said("sft, mixed lengths", trl.SFTTrainer(model=language, train_dataset=mixed, args=trl.SFTConfig(
        **usual, gradient_checkpointing=False, max_length=104)))
    said("sft, bf16", trl.SFTTrainer(model=language, train_dataset=rows, args=trl.SFTConfig(
        **usual, model_init_kwargs={"dtype": torch.bfloat16})))
    said("dpo", trl.DPOTrainer(model=language, args=trl.DPOConfig(**usual), train_dataset=pairs))
    said("reward", trl.RewardTrainer(model=reward, args=trl.RewardConfig(**usual), train_dataset=pairs))
    said("transformers", transformers.Trainer(
        model=transformers.AutoModelForCausalLM.from_pretrained(language),
        args=transformers.TrainingArguments(**usual), train_dataset=rows))
    store = os.path.join(folder, "logs", "probe.db")
    follow(trl.SFTTrainer(model=language, args=trl.SFTConfig(**usual, max_steps=1, logging_steps=1),
                          train_dataset=rows), store)
    die(trl.SFTTrainer(model=language, args=trl.SFTConfig(**usual, max_steps=1), train_dataset=rows), store)
    sft = trl.SFTTrainer(model=language, args=trl.SFTConfig(**usual), train_dataset=rows)
    said("eight GPUs", sft, gpu="8xH100-80G")
    sft.model.config._attn_implementation = "eager"
    said("eager", sft)
    sft.model.config._attn_implementation = "sdpa"
    sft.model.peft_config = {"default": Adapters()}
    said("adapters", sft)
    Adapters.target_modules = {"embed_tokens"}
    refused("other adapters", sft)
    del sft.model.peft_config
    next(sft.model.parameters()).requires_grad_(False)
    refused("frozen", sft)
    ORPOTrainer = type("ORPOTrainer", (trl.DPOTrainer,), {"__module__": "trl.experimental.orpo"})
    refused("another trainer", ORPOTrainer(model=language, args=trl.DPOConfig(**usual), train_dataset=pairs))
    try:
        fathom.check(trl.SFTTrainer(model=language, args=trl.SFTConfig(**usual), train_dataset=rows))
    except fathom.FathomError as error:
        print(json.dumps({"what": "no GPU", "message": str(error), "status": error.status}))


if __name__ == "__main__":
    main()
