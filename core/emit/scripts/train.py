#!/usr/bin/env python3
"""Trains a causal language model with transformers' Trainer on sequences of exactly --context tokens.

The dataset is a JSON-lines file or a Hugging Face dataset with a column "text" or "messages"; its
documents are joined and cut. --trial needs neither weights nor data: random weights from the model's
config.json, random tokens, three steps, and the peak of memory that torch measured.
"""
import argparse
import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

OPTIMIZERS = {"adamw": "adamw_torch", "adamw-fused": "adamw_torch_fused", "sgd": "sgd"}
TRIAL_STEPS = 3


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a folder or a Hugging Face id")
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--accum", type=int, default=1)
    parser.add_argument("--precision", choices=["bf16", "autocast", "mixed"], required=True)
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), default="adamw")
    parser.add_argument("--checkpointing", action="store_true", help="recompute layers (not under FSDP)")
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--save-every", type=int, default=500, help="steps")
    parser.add_argument("--dataset")
    parser.add_argument("--save-to", default="checkpoints")
    parser.add_argument("--trial", action="store_true")
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


def load_model(args):
    kind = {"attn_implementation": args.attention, "use_cache": False}
    dtype = torch.bfloat16 if args.precision == "bf16" else torch.float32
    if args.trial:
        config = AutoConfig.from_pretrained(args.model)
        config.use_cache = kind.pop("use_cache")
        return AutoModelForCausalLM.from_config(config, dtype=dtype, **kind)
    return AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype, **kind)


def accumulation_of(args):
    """FSDP would keep the whole gradient on every GPU between micro-batches; reducing each keeps a shard."""
    if os.environ.get("ACCELERATE_USE_FSDP") == "true" and args.accum > 1:
        return {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
    return None


def say_peak():
    if torch.cuda.is_available():
        gib = 1 << 30
        print(
            f"measured peak: {torch.cuda.max_memory_reserved() / gib:.2f} GiB reserved, "
            f"{torch.cuda.max_memory_allocated() / gib:.2f} GiB allocated"
        )


def main():
    args = read_arguments()
    if not args.trial and not args.dataset:
        raise SystemExit("no dataset is given: --dataset FILE, or --trial for random tokens")
    training = TrainingArguments(
        output_dir=args.save_to,
        per_device_train_batch_size=args.batch,
        gradient_accumulation_steps=args.accum,
        gradient_checkpointing=args.checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False} if args.checkpointing else None,
        accelerator_config=accumulation_of(args),
        bf16=args.precision != "bf16",
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
        remove_unused_columns=False,
        dataloader_drop_last=True,
    )
    model = load_model(args)
    if args.trial:
        rows = TRIAL_STEPS * args.batch * args.accum * training.world_size
        dataset = RandomTokens(rows, args.context, model.config.vocab_size)
    else:
        dataset = packed_dataset(args)
    trainer = Trainer(model=model, args=training, train_dataset=dataset)
    resume = not args.trial and os.path.isdir(args.save_to)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(args.save_to) if resume else None)
    if trainer.is_world_process_zero():
        say_peak()
    if not args.trial:
        trainer.save_model()


if __name__ == "__main__":
    main()
