#!/usr/bin/env python3
"""Records which batches transformers' Trainer and TRL's hand to a rank: their own data loaders, walked on the host.

Usage: scripts/record_samplers.py > tests/data/samplers.json

Needs torch, transformers, accelerate and TRL; no GPU, weights or network. A case is a job over made-up sequences of known
lengths; its batches are what comes out of the trainer's get_train_dataloader in the first epoch: micro-batches of a step
with commas, by the tokens of their longest row (packed: of all rows), = after rows that are all as long. Ranks beyond
the one that is asked are played by torch's fake process group.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

CASES = [
    {"task": "sft", "context": 512, "batch": 3, "rows": 70},
    {"task": "sft", "context": 300, "batch": 2, "accum": 2, "ranks": 4, "rows": 90},
    {"task": "sft", "context": 300, "batch": 2, "accum": 2, "ranks": 4, "rank": 3, "rows": 90},
    {"task": "sft", "context": 256, "batch": 1, "ranks": 2, "rows": 2500, "packed": True},
    {"task": "sft", "context": 384, "batch": 2, "accum": 5, "rows": 1300, "packed": True},
    {"task": "dpo", "context": 200, "batch": 2, "rows": 40},
    {"task": "reward", "context": 200, "batch": 2, "ranks": 8, "rank": 5, "rows": 100},
    {"task": "kto", "context": 200, "batch": 4, "rows": 60},
    {"task": "hf", "context": 400, "batch": 4, "accum": 3, "rows": 77},
    {"task": "hf", "context": 400, "batch": 1, "ranks": 64, "rank": 17, "rows": 1000},
]
VOCABULARY = 100


def lengths_of(case):
    """Half of them short, and some longer than the context, which TRL's trainers cut or leave out."""
    draw = random.Random(case["rows"])
    most = case["context"] * (4 if case["task"] == "hf" else 5) // 4
    return [min(int(draw.lognormvariate(0, 0.7) * case["context"] / 4) + 8, most) for _ in range(case["rows"])]


def tokenizer():
    import tokenizers
    import transformers
    names = ["<u>", "<e>", "<p>", *(f"w{i}" for i in range(3, VOCABULARY))]
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<u>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<e>", pad_token="<p>")


def sequences(case, lengths):
    """As the trainer of the task wants them, so that each is as long as it should be when it is tokenized."""
    ids = [[10 + i % 90 for i in range(length)] for length in lengths]
    if case["task"] in ("sft", "hf"):
        return [{"input_ids": row, **({"labels": row} if case["task"] == "hf" else {})} for row in ids]
    words = [" ".join(f"w{i}" for i in row[:-1]) for row in ids]    # the end is added
    if case["task"] == "reward":
        return [{"chosen": text, "rejected": text} for text in words]
    halves = [(text[:8], text[8:]) for text in words]
    if case["task"] == "dpo":
        return [{"prompt": a, "chosen": b, "rejected": b} for a, b in halves]
    return [{"prompt": a, "completion": b, "label": i % 2 == 0} for i, (a, b) in enumerate(halves)]


def trainer_of(case, folder):
    import datasets
    import transformers
    import trl
    config = transformers.LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                                      num_key_value_heads=1, vocab_size=VOCABULARY)
    words = tokenizer()
    kind = transformers.LlamaForSequenceClassification if case["task"] == "reward" else transformers.LlamaForCausalLM
    if case["task"] == "reward":
        config.num_labels, config.pad_token_id = 1, 2
    model = kind(config)
    if case["task"] in ("dpo", "kto"):    # TRL reads the reference where the model came from
        model.save_pretrained(folder)
        model = kind.from_pretrained(folder)
    data = datasets.Dataset.from_list(sequences(case, lengths_of(case)))
    common = dict(output_dir=folder, per_device_train_batch_size=case["batch"], use_cpu=True, report_to=[],
                  gradient_accumulation_steps=case.get("accum", 1))
    if case["task"] == "hf":
        return transformers.Trainer(model, transformers.TrainingArguments(**common), train_dataset=data,
                                    data_collator=transformers.DataCollatorForSeq2Seq(words))
    name = {"sft": "SFT", "dpo": "DPO", "reward": "Reward", "kto": "KTO"}[case["task"]]
    if case.get("packed"):
        common["packing"] = True
    arguments = getattr(trl, f"{name}Config")(max_length=case["context"], bf16=False, **common)
    return getattr(trl, f"{name}Trainer")(model, args=arguments, train_dataset=data, processing_class=words)


def said(case, batch):
    ids = batch[next(name for name in ("input_ids", "completion_input_ids", "prompt_completion_input_ids") if name in batch)]
    if case.get("packed"):
        return str(ids.numel())
    mask = batch[next(name for name in ("attention_mask", "completion_attention_mask", "prompt_completion_attention_mask")
                      if name in batch)]
    return f"{ids.shape[1]}{'=' if bool(mask.all()) else ''}"


def batches_of(case, folder):
    import torch.distributed
    if case.get("ranks", 1) > 1:
        import torch.testing._internal.distributed.fake_pg as fake
        ranks, rank = case["ranks"], case.get("rank", 0)
        os.environ.update(WORLD_SIZE=str(ranks), RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", ACCELERATE_USE_CPU="true")
        torch.distributed.init_process_group("fake", rank=rank, world_size=ranks, store=fake.FakeStore())
    loader = trainer_of(case, folder).get_train_dataloader()
    every = [said(case, batch) for batch in loader]
    together = case.get("accum", 1)
    return "/".join(",".join(every[at:at + together]) for at in range(0, len(every), together))


def main():
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            print("\n" + batches_of(json.loads(sys.argv[1]), folder))
        return
    rows = []
    for case in CASES:
        done = subprocess.run([sys.executable, __file__, json.dumps(case)], check=True, capture_output=True, text=True)
        rows.append({**case, "lengths": " ".join(map(str, lengths_of(case))), "batches": done.stdout.split("\n")[-2]})
    print("[" + ",\n".join(json.dumps(row) for row in rows) + "]")


if __name__ == "__main__":
    main()
