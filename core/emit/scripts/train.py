#!/usr/bin/env python3
"""Trains a causal language model with transformers' Trainer on sequences of exactly --context tokens.

The dataset is a JSON-lines file or a Hugging Face dataset with a column "text" or "messages"; its
documents are joined and cut. --trial needs neither weights nor data: random weights from the model's
config.json, random tokens, three steps, and the peaks of memory that torch measured, each step's as a
line of JSON.
"""
import argparse
import json
import os

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

OPTIMIZERS = {"adamw": "adamw_torch", "adamw-fused": "adamw_torch_fused", "sgd": "sgd", "adafactor": "adafactor",
              "adamw-8bit": "adamw_8bit", "adamw-8bit-hf": "adamw_8bit", "adamw-paged-8bit": "paged_adamw_8bit",
              "adamw-paged": "paged_adamw_32bit"}
TRIAL_STEPS = 3


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a folder or a Hugging Face id")
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--accum", type=int, default=1)
    parser.add_argument("--precision", choices=["bf16", "autocast", "bf16-autocast", "mixed", "fp16"], required=True)
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), default="adamw")
    parser.add_argument("--checkpointing", action="store_true", help="recompute layers")
    parser.add_argument("--reentrant", action="store_true", help="by torch's reentrant checkpoints")
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--liger-loss", action="store_true", help="liger_kernel's fused head and loss")
    parser.add_argument("--liger-layers", action="store_true", help="its norms, positions and MLPs")
    parser.add_argument("--tp", type=int, default=1, help="GPUs that share one model, which is all of them")
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--save-every", type=int, default=500, help="steps")
    parser.add_argument("--dataset")
    parser.add_argument("--save-to", default="checkpoints")
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--limit-bytes", type=int, help="of GPU memory that torch may reserve in a trial")
    return parser.parse_args()


def with_labels(tokens):
    sample = {"input_ids": tokens, "labels": tokens.clone()}
    if int(os.environ.get("PARALLELISM_CONFIG_SP_SIZE", "1")) > 1:
        sample["position_ids"] = torch.arange(len(tokens))
    return sample


class RandomTokens(torch.utils.data.Dataset):
    def __init__(self, count, context, vocabulary):
        generator = torch.Generator().manual_seed(0)
        self.rows = torch.randint(0, vocabulary, (count, context), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return with_labels(self.rows[index])


def packed_dataset(args):
    from datasets import load_dataset

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    if os.path.exists(args.dataset):
        rows = load_dataset("json", data_files=args.dataset, split="train")
    else:
        rows = load_dataset(args.dataset, split="train")

    def tokenize(row):
        if "messages" in row:
            ids = tokenizer.apply_chat_template(row["messages"], tokenize=True, return_dict=True)["input_ids"]
        else:
            ids = tokenizer(row["text"])["input_ids"]
        return {"ids": ids + [tokenizer.eos_token_id]}

    def cut(batch):
        joined = [token for ids in batch["ids"] for token in ids]
        whole = len(joined) // args.context * args.context
        return {"ids": [joined[i : i + args.context] for i in range(0, whole, args.context)]}

    rows = rows.map(tokenize, remove_columns=rows.column_names)
    rows = rows.map(cut, batched=True, batch_size=10000)
    if len(rows) == 0:
        raise SystemExit(f"{args.dataset} has fewer than {args.context} tokens: not one sequence of this context")
    return rows.with_transform(
        lambda batch: {
            key: [with_labels(torch.tensor(ids))[key] for ids in batch["ids"]]
            for key in with_labels(torch.tensor(batch["ids"][0]))
        }
    )


def cut_over_gpus(model, size):
    """What from_pretrained does with tensor parallel, of random weights."""
    if size == 1:
        return model
    config, device, mesh = model.prepare_distribute_model({"tp_size": size})
    model = model.maybe_distribute_model(model, config, mesh).to(device)
    model.tie_weights()
    return model


def load_model(args):
    kind = {"attn_implementation": args.attention, "use_cache": False}
    dtype = torch.bfloat16 if args.precision in ("bf16", "bf16-autocast") else torch.float32
    if args.trial:
        config = AutoConfig.from_pretrained(args.model)
        config.use_cache = kind.pop("use_cache")
        return cut_over_gpus(AutoModelForCausalLM.from_config(config, dtype=dtype, **kind), args.tp)
    if args.tp > 1:
        kind["distributed_config"] = {"tp_size": args.tp}
    return AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype, **kind)


def accumulation_of(args):
    """FSDP would keep the whole gradient on every GPU between micro-batches; reducing each keeps a shard."""
    if os.environ.get("ACCELERATE_USE_FSDP") == "true" and args.accum > 1:
        return {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
    return None


def kernels_of(args):
    if not args.liger_loss and not args.liger_layers:
        return {}
    layers = {name: args.liger_layers for name in ("rope", "rms_norm", "swiglu", "geglu")}
    return {"use_liger_kernel": True,
            "liger_kernel_config": {"fused_linear_cross_entropy": args.liger_loss, **layers}}


class Peaks(TrainerCallback):
    """Reports what torch held at most while the job was built and in each step, on the first process."""

    def __init__(self):
        self.largest = {}
        self.measures = torch.cuda.is_available()
        if self.measures:
            torch.cuda.reset_peak_memory_stats()

    def take(self):
        if not self.measures:
            return {}
        stats = torch.cuda.memory_stats()
        found = {f"{key}_bytes": stats[f"{key}_bytes.all.peak"] for key in ("allocated", "requested", "reserved")}
        self.largest = {key: max(found[key], self.largest.get(key, 0)) for key in found}
        torch.cuda.reset_peak_memory_stats()
        return {**found, "end_allocated_bytes": stats["allocated_bytes.all.current"],
                "retries": stats["num_alloc_retries"]}

    def report(self, state, kind, **values):
        if state.is_world_process_zero:
            print(json.dumps({"fathom": kind, **values}), flush=True)

    def on_train_begin(self, args, state, control, **others):
        card = {"gpu": torch.cuda.get_device_name()} if self.measures else {}
        self.report(state, "start", torch=torch.__version__, transformers=transformers.__version__, **card)
        self.report(state, "phase", phase="built", **self.take())

    def on_step_end(self, args, state, control, **others):
        self.report(state, "step", step=state.global_step, **self.take())

    def on_train_end(self, args, state, control, **others):
        if state.is_world_process_zero and self.measures:
            reserved, allocated = (self.largest[f"{key}_bytes"] / (1 << 30) for key in ("reserved", "allocated"))
            print(f"measured peak: {reserved:.2f} GiB reserved, {allocated:.2f} GiB allocated", flush=True)


def keep_to(limit):
    """As on a card with less memory than this one."""
    if limit and torch.cuda.is_available():
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total))


def main():
    args = read_arguments()
    if not args.trial and not args.dataset:
        raise SystemExit("no dataset is given: --dataset FILE, or --trial for random tokens")
    if args.limit_bytes and not args.trial:
        raise SystemExit("--limit-bytes is for trials")
    training = TrainingArguments(
        output_dir=args.save_to,
        per_device_train_batch_size=args.batch,
        gradient_accumulation_steps=args.accum,
        gradient_checkpointing=args.checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": args.reentrant} if args.checkpointing else None,
        accelerator_config=accumulation_of(args),
        bf16=args.precision in ("autocast", "bf16-autocast", "mixed"),
        fp16=args.precision == "fp16",
        optim=OPTIMIZERS[args.optimizer],
        learning_rate=args.learning_rate,
        max_grad_norm=1.0,
        num_train_epochs=args.epochs,
        max_steps=TRIAL_STEPS if args.trial else -1,
        save_strategy="no" if args.trial else "steps",
        save_steps=args.save_every,
        logging_steps=1,
        use_cpu=not torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=args.trial,  # a bar would stand in front of the lines that a trial reports
        remove_unused_columns=False,
        dataloader_drop_last=True,
        **kernels_of(args),
    )
    keep_to(args.limit_bytes)
    model = load_model(args)
    if args.trial:
        rows = TRIAL_STEPS * args.batch * args.accum * training.world_size
        dataset = RandomTokens(rows, args.context, model.config.vocab_size)
    else:
        dataset = packed_dataset(args)
    peaks = [Peaks()] if args.trial else []
    trainer = Trainer(model=model, args=training, train_dataset=dataset, callbacks=peaks)
    resume = not args.trial and os.path.isdir(args.save_to)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(args.save_to) if resume else None)
    if not args.trial:
        trainer.save_model()


if __name__ == "__main__":
    main()
