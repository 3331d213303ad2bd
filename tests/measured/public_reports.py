#!/usr/bin/env python3
"""Sets verdicts beside what happened to other people: public threads and scripts, with their outcome.

Usage: public_reports.py BUILD-FOLDER

tests/runs/public_reports.jsonl: settings as far as stated, each with its source. The rules below turn a report into a
question, or say why it cannot be one. They look at no outcome, but for this: where only a cutoff is stated and not the
data's lengths, a job that trained says nothing about the cutoff.

The rules were written before any answer was seen: 6 of 16 were right then, and one that died was called safe. Five were
mended after that, each because a stated field or a library's source says otherwise: nodes had been dropped; torch's plain
AdamW is the Trainer's default before torch 2.8; TRL before 1.0 computes whole logits in DPO, which no recipe here is (the
two reports of it, one of them the one called safe, are not asked any more); a length that the report itself doubts is
not stated; and s1's script for several nodes has gradient checkpointing, which its reports leave out. So what is reached
on these rows is no forecast for others. Later, with the threads and scripts read again: a script's figures are as old as
the commit that wrote them, and its cards are named there; ms-swift's zero3.json has overlap_comm off; use_liger_kernel
swaps layers' kernels too; LLaMA-Factory's rank is 8 where nothing is said; names are asked as they are written. Two are not asked any
more: one whose figures are of another maker's cards, as far as it is told (two wrong, one right), and a second user's
word without model and length (wrong). Then, with more that can be asked: what a recipe or a record of the same author
states counts as stated (SAID); bitsandbytes' weights were not cut by ZeRO-3 in 2024, as that report says itself, which is
ZeRO-2's memory; LLaMA-Factory's rows are padded, its buckets are those of its files (one that was right is wrong since), and
axolotl turns expandable segments on. Nine rows of one thread (BELLE) trained on texts shorter than the length that is
asked, and s1's 20,000 is called a cutoff in its thread: the first can hardly be wrong, the other (wrong) need not be.
Last, with the libraries of the day read again: LLaMA-Factory stood on transformers 4.46 (llamafactory@0.9.1), in which
attention repeats heads and masks are numbers, others before September 2024 on 4.41, whose layers keep all positions; xtuner's zero3 file takes bf16 where the card has it; "2" is a number of
micro-batches; what GPTQ packs to four bits is asked as nf4, which takes as much; torchtune's recipes for one GPU read
like transformers 4.45's step; "fsdp" was accelerate's first. Where length, batch or rank is not stated, or the optimizer
not modelled in that strategy, the least is asked: a job that does not fit then does not with more, and any other answer
says nothing (then with checkpointing, unless it is said to be off, and without states).
Then Megatron's scripts, which could not be asked before (three of eighteen tell a length that is reached, and no adapters):
their first answers stand. The version of transformers is the day's newest, and before 4.36 attention is eager. Of two
frameworks whose step is none of ours the states alone are asked, where the report says that they are fp32: two of four do
not fit even so. DeepSpeed-Chat's two were tried as a loop around its engine, with their batch at its least, and are not asked:
pythia-2.8b is at the edge of a card of 24 GB, and both came out the other way round with its own Adam.
What is told does not decide three of the wrong ones. ms-swift's script had 56GB in the place of 42 until the day before,
for the same command (e3f270866). axolotl's ran a branch before it was merged, with weights made at random in a type that
is not told; in bf16, as axolotl loads them, 60 GiB are predicted. xtuner's died in Adam's step (its log), where 70.3 GiB
of the 77.8 that are left to torch are predicted to be in use: five more are not in any source that it names.
A job that died is foretold by "no", one that trained by "safe" or "tight"; where the card is not stated the peak is
judged, which has to lie within the stated range of the driver's figure. None that died may be called safe. Bars are what
is reached.
"""
import collections
import json
import os
import re
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Whose step is transformers' Trainer's, with its gradient checkpointing where nothing is said.
TRAINERS = {"llama-factory": "on", "ms-swift": "on", "axolotl": "off", "transformers Trainer": "off",
            "trl": "off", "trl (open-r1)": "off", "trl (s1, FSDP)": "off", "trl (alignment-handbook)": "off",
            "soup (trl)": "off", "transformers + FSDP": "off", "transformers Trainer (BELLE)": "off", "xtuner": "on",
            "torchtune": "on"}
# Steps that no recipe here is; of which the reports themselves say that states are fp32, so that these are a floor.
FLOORED = {"prime-rl": "fsdp2", "llama2-accessory": "fsdp1"}
# The Trainer's own, where a report's name is not the catalogue's.
MODELS = {"chinese-llama-2-13b-hf": None, "7B (6650M params)": None}
STRATEGIES = {"single": "single", "ddp": "ddp", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3",
              "fsdp": "fsdp1", "fsdp1": "fsdp1", "fsdp2": "fsdp2", "fsdp1 full_shard": "fsdp1", "fsdp full_shard": "fsdp1"}
TRL_1 = "2026"       # no report is between its release and this
TORCH_2_8 = "2025-08-06"  # adamw_torch_fused since (transformers/training_args.py)
# simplescaling/s1, train/sft_multinode.sh: --gradient_checkpointing=True. Its script for one node has none.
CHECKPOINTED = {("simplescaling/s1#13", 2)}
PACKED = ("load_in_8bit",)
FOUR_BITS = "GPTQ 4bit"
# What reports leave to files that they name. Soup: its issue 378 and benchmarks/gate-h100-validation.md (step 17) have the
# rank, config/schema.py no checkpointing; its trainer names no dtype, and the adapters' targets are peft's for Llama.
# open-r1: recipes/OpenR1-Qwen-7B/sft/config.yaml and accelerate_configs/zero3.yaml of the day, which sets no buckets.
# xtuner: configs/deepspeed/deepspeed_zero3.json, which sets none either, and bf16 where the card has it
# (tools/train.py, auto_dtype_of_deepspeed_config).
SAID = {"MakazhanAlpamys/Soup#78": {"lora_rank": 16, "lora_targets": "q_proj, v_proj", "wide": True},
        "huggingface/open-r1#446": {"seq": 32768, "batch": 1, "accum": 2, "buckets": "deepspeed"}}
# torchtune 0.1.0, recipes/configs/llama2/7B_lora_single_device.yaml and recipes/lora_finetune_single_device.py; from late
# 2024 on its loss is another.
OF_FRAMEWORK = {"torchtune": {"lora_rank": 8, "lora_targets": "q_proj, v_proj"}, "xtuner": {"buckets": "deepspeed"}}
TUNE_CHUNKED = "2024-09"
NOT_CUT = "bnb under zero3 is not partitioned"
NO_BF16 = ("T4", "V100", "TitanRTX")
# Whose other figures are of Ascend cards, and a second user's word who names neither model nor length.
NOT_TOLD = {("hiyouga/LlamaFactory#7409", 1): "the card is none of NVIDIA's, as far as it is told",
            ("hiyouga/LlamaFactory#6999", 8): "neither model nor length is told"}
# When the figures at the head of ms-swift's scripts were written (git log of modelscope/ms-swift), and the cards.
SCRIPTS = {"flash_attention_3": ("2025-08-01", "H20-96GB"), "packing/liger_kernel": ("2025-05-08", "A100-80GB")}
SWIFT_OVERLAP_OFF = "2025-03-24"  # overlap_comm in its zero3.json

EXPANDABLE_AXOLOTL = "2024-12-16"  # utils/__init__.py, set_pytorch_cuda_alloc_conf, as found at least since
# When transformers' versions came out; what is older than the first that is known is asked as that.
RELEASES = (("4.41", ""), ("4.42", "2024-06-27"), ("4.45", "2024-09-25"), ("4.46", "2024-10-24"), ("4.48", "2025-01-10"), ("4.49", "2025-02-17"),
            ("4.57", "2025-10-03"), ("5.17", "2026-01-26"))
NO_SDPA = "2023-12-11"  # transformers 4.36, the first that calls torch's attention
FACTORY_OVERLAP_OFF = "2025-03-07"  # overlap_comm in examples/deepspeed/*.json (LLaMA-Factory db113f690)
PADDED_ALONE = "llama-factory"  # train/sft/workflow.py: to a multiple of eight tokens

WORDS = {"seq": "the length not stated", "batch": "the batch not stated", "lora_rank": "the adapters' rank not stated",
         "optimizer": "another optimizer", "step": "another framework's step"}
LEAST = {"seq": 16, "batch": 1, "lora_rank": 1}  # what is asked where nothing is stated

# Reports asked, and right. Wanted are nine of ten.
BARS = {"asked": 47, "right": 43}


def said_of(row):
    """What files that the report names have; not of one whose length they do not have."""
    if isinstance(row.get("seq"), int) and "max_seq_length" in " ".join(row.get("missing", [])):
        return {}
    return OF_FRAMEWORK.get(row["framework"]) or SAID.get(row["source"], {})


def value(row, key):
    """As stated, or in a file that is named, or as the report's reader says it must be assumed."""
    return row.get(key, said_of(row).get(key, row.get("assume", {}).get(key)))


def rank_of(row):
    """As stated, or LLaMA-Factory's default (hparams/finetuning_args.py)."""
    return value(row, "lora_rank") or (8 if row["framework"] == PADDED_ALONE else None)


def unstated(row):
    """What has to be asked at its least; of a strategy that can be asked."""
    if is_megatrons(row):
        return []
    if row["framework"] in FLOORED:
        return ["step"]
    doubted = "max_seq_length" in " ".join(row.get("missing", []))
    stated = {"seq": isinstance(value(row, "seq"), int) and not doubted, "batch": isinstance(value(row, "batch"), int),
              "lora_rank": row["method"] == "full" or bool(rank_of(row)),
              "optimizer": "8bit" not in str(row.get("optimizer", "")) or strategy_of(row) != "fsdp1"}
    return [key for key, is_stated in stated.items() if not is_stated]


def dated(row):
    """A script's figures are older than the repository that it was found in."""
    found = next((about for part, about in SCRIPTS.items() if part in row["source"]), None)
    return found or (row["date"], row["gpu"] if row["gpu"] != "not stated" else "A100-80GB")


def precision_of(row, sharded):
    half = "fp16" in str(value(row, "precision")) or "fp16 assumed" in " ".join(row.get("missing", []))
    if (half or row["gpu"].startswith(NO_BF16)) and sharded:
        return "fp16"
    wide = row["method"] == "full" or said_of(row).get("wide")
    return "mixed" if sharded else "autocast" if wide else "bf16"


def strategy_of(row):
    return "zero2" if NOT_CUT in row.get("flags", []) else STRATEGIES[row["strategy"]]


def is_megatrons(row):
    return "megatron" in row["framework"] or "megatron" in row["strategy"]


def reason_of_megatrons(row):
    """Why a report of a Megatron job is no question, or None."""
    cutoff = "lengths" in " ".join(row.get("missing", []))
    checks = (
        (row["task"] not in ("sft", "pretrain"), f"the task {row['task']} in Megatron"),
        (not isinstance(row.get("seq"), int), "Megatron, the length not stated"),
        (cutoff, "only the cutoff is stated, and it trained"),
        (row["method"] != "full" and not row.get("lora_rank"), "Megatron with adapters, their rank not stated"),
    )
    return next((why for failed, why in checks if failed), None)


def reason_of(row):
    """Why a report is no question, or None."""
    if is_megatrons(row):
        return reason_of_megatrons(row)
    if row["framework"] in FLOORED:
        return None
    model = row["model"].split("/")[-1]
    unknown = " ".join(row.get("missing", []))
    cutoff = "lengths" in unknown or "longest" in unknown
    tunes = row["framework"] == "torchtune"
    checks = (
        (row["framework"] not in TRAINERS or (tunes and (row["strategy"] != "single" or row["date"] >= TUNE_CHUNKED)),
         "another framework's step"),
        (row["task"] not in ("sft", "dpo", "pretrain"), f"the task {row['task']}"),
        (row["strategy"] not in STRATEGIES, "the strategy is not stated, or another"),
        (any(flag in PACKED for flag in row.get("flags", [])) or "AWQ" in model, "weights packed to eight bits, or by AWQ"),
        ("optimizer_in_bwd" in str(row.get("optimizer")), "an optimizer that steps within the backward pass"),
        ("torch_compile" in row.get("flags", []), "torch_compile"),
        (model in MODELS, "the model is not told by a name"),
        ((row["source"], row["gpus"]) in NOT_TOLD, NOT_TOLD.get((row["source"], row["gpus"]))),
        (row["gpu"] == "not stated" and (not row.get("peak_gib") or unstated(row)), "neither card nor peak"),
        (row["task"] == "dpo" and row["date"] < TRL_1, "DPO with whole logits, as TRL had it before 1.0"),
        (row["outcome"] == "fits" and cutoff, "only the cutoff is stated, and it trained"),
    )
    return next((why for failed, why in checks if failed), None)


def transformers_of(row, date):
    """As stated, or the newest of the day."""
    of_day = [version for version, since in RELEASES if since <= date][-1]
    return row.get("versions", {}).get("transformers", of_day)


def recipe_of(row, date, sharded):
    """Whose step, as far as it is modelled."""
    version = transformers_of(row, date)
    if row["framework"] == "torchtune":
        return "transformers@4.45"
    if row["framework"] == PADDED_ALONE and strategy_of(row).startswith("zero") and precision_of(row, sharded) != "fp16":
        return "llamafactory@0.9.1" if version < "4.49" else "llamafactory"
    experts = "Mixtral" in row["model"]  # of which only today's are modelled
    return f"transformers@{'5.17' if experts else version}"


def model_of(row):
    """Without what its name says of packing."""
    packed = FOUR_BITS in row.get("flags", [])
    return row["model"].split("/")[-1].replace("-GPTQ", "") if packed else row["model"]


def adapters_of(row):
    targets = str(value(row, "lora_targets") or "all")
    asked = {"lora": LEAST["lora_rank"] if "lora_rank" in unstated(row) else rank_of(row),
             "lora-targets": "q,v" if "v_proj" in targets else "all-linear"}
    if row["method"] == "qlora":
        asked["quantize"] = "nf4"
    return asked


def deepspeed_of(row, date):
    """What files for DeepSpeed say, and what is in host memory."""
    asked, strategy = {}, strategy_of(row)
    factory = row["framework"] == PADDED_ALONE
    if said_of(row).get("buckets") or (factory and strategy in ("zero1", "zero2")):  # ds_z2_config.json: 5e8
        asked["zero-buckets"] = "deepspeed"
    if factory and strategy.startswith("zero"):
        asked["overlap-comm"] = "on" if date < FACTORY_OVERLAP_OFF else "off"
    if row["framework"] == "ms-swift" and row["strategy"] == "zero3" and date >= SWIFT_OVERLAP_OFF:
        asked["overlap-comm"] = "off"
    if row.get("offload"):
        asked["offload"] = "all" if "param" in row["offload"] else "optimizer"
    return asked


def optimizer_of(row, date):
    if "optimizer" in unstated(row):
        return {"optimizer": "sgd"}
    if "8bit" in str(row.get("optimizer", "")):
        return {"optimizer": "adamw-8bit"}
    return {"optimizer": "adamw"} if date < TORCH_2_8 else {}


def kernels_of(row):
    asked = {}
    if "liger" in row.get("flags", []):
        asked["loss"] = "liger"
        if row["method"] == "full":  # use_liger_kernel swaps both (transformers/trainer.py)
            asked["layer-kernels"] = "liger"
    if "expandable_segments:True" in row.get("flags", []) or \
            (row["framework"] == "axolotl" and row["date"] >= EXPANDABLE_AXOLOTL):
        asked["expandable"] = "on"
    return asked


def megatrons_of(row):
    """Full recomputation and the sizes of a script's groups; its distributed optimizer is the recipe's."""
    asked = {"recipe": "megatron", "model": row["model"], "gpu": f"{row['gpus']}x{dated(row)[1]}", "context": row["seq"],
             "batch": row["batch"], "checkpointing": "on" if "full" in row.get("checkpointing", "") else "off",
             **dict(re.findall(r"(tp|pp|ep|cp)(\d+)", row["strategy"]))}
    if row.get("offload"):
        asked["offload"] = "optimizer"
    if "expandable_segments:True" in row.get("flags", []):
        asked["expandable"] = "on"
    if row["method"] != "full":
        asked["lora"] = row["lora_rank"]
    return asked


def floor_of(row):
    """States alone, as a plain loop has them."""
    nodes = f"{row['nodes']}x" if row["nodes"] > 1 else ""
    return {"recipe": "hf", "model": row["model"].split("/")[-1], "gpu": f"{nodes}{row['gpus']}x{row['gpu']}",
            "context": LEAST["seq"], "batch": LEAST["batch"], "checkpointing": "on", "strategy": FLOORED[row["framework"]],
            "precision": "mixed", **({"lora": LEAST["lora_rank"]} if row["method"] != "full" else {})}


def settings_of(row):
    if is_megatrons(row):
        return megatrons_of(row)
    if row["framework"] in FLOORED:
        return floor_of(row)
    several = row["strategy"] != "single"
    nodes = f"{row['nodes']}x" if row["nodes"] > 1 else ""
    sharded = strategy_of(row) not in ("single", "ddp")
    date, card = dated(row)
    missing = unstated(row)
    stated = row.get("checkpointing") or (row["source"], row["nodes"]) in CHECKPOINTED
    off = row.get("checkpointing") is False or value(row, "checkpointing") is False
    asked = {"recipe": recipe_of(row, date, sharded), "model": model_of(row),
             "gpu": f"{nodes}{row['gpus']}x{card}" if several else card,
             "context": LEAST["seq"] if "seq" in missing else value(row, "seq"),
             "batch": LEAST["batch"] if "batch" in missing else value(row, "batch"),
             "checkpointing": "off" if off else "on" if stated or missing else TRAINERS[row["framework"]],
             "strategy": strategy_of(row), "precision": precision_of(row, sharded)}
    if asked["recipe"].startswith("llamafactory"):
        asked["expandable"] = "off"
        if "flash" not in str(row.get("attention")):  # which makes no mask of pairs
            asked["batching"] = "padded"
    if date < NO_SDPA and "flash" not in str(row.get("attention")):
        asked["attention"] = "eager"
    if "bf16 params" in row.get("precision", ""):
        asked["precision"] = "bf16"
    if row["task"] == "dpo":
        asked.update({"recipe": "trl", "task": "dpo"})
    if str(value(row, "accum")).isdigit():
        asked["accum"] = int(value(row, "accum"))
    asked.update(deepspeed_of(row, date))
    if row["method"] != "full":
        asked.update(adapters_of(row))
    asked.update({**optimizer_of(row, date), **kernels_of(row)})
    return asked


def ask(program, asked):
    """The answer, or the sentence of a refusal."""
    options = [word for key, given in asked.items() for word in (f"--{key}", str(given))]
    done = subprocess.run([program, "predict", *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    answer = json.loads(done.stdout)
    return (answer, None) if done.returncode in (0, 1) else (None, answer["error"]["message"])


def judged(row, answer):
    """Whether the verdict is what happened, and in words what was said."""
    if row["gpu"] == "not stated":
        low, high = (answer[f"driver_{end}_bytes"] / 2**30 for end in ("low", "high"))
        return low <= row["peak_gib"] <= high, f"{low:.1f} to {high:.1f} GiB"
    died = row["outcome"] == "oom"
    return (answer["verdict"] == "no") == died, answer["verdict"]


def results(program):
    """(row, settings, right, said) of what can be asked, and the reasons of the rest, counted."""
    with open(os.path.join(TESTS, "runs", "public_reports.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    found, reasons = [], collections.Counter()
    for row in rows:
        reason = reason_of(row)
        if reason:
            reasons[reason] += 1
            continue
        settings = settings_of(row)
        answer, refusal = ask(program, settings)
        missing = unstated(row)
        if refusal:
            reasons[f"refused: {refusal}"] += 1
        elif missing and answer["verdict"] != "no":
            reasons[f"{' and '.join(WORDS[key] for key in missing)}, and the least fits"] += 1
        else:
            found.append((row, settings, *judged(row, answer)))
    return found, reasons


def tally(found):
    """How often each verdict met each outcome, of the reports that name a card."""
    return collections.Counter((row["outcome"], said) for row, _, _, said in found if row["gpu"] != "not stated")


def markdown(program):
    """A section of docs/accuracy.md."""
    found, reasons = results(program)
    counts = tally(found)
    lines = ["| | safe | tight | no |", "| --- | --- | --- | --- |"]
    for outcome, words in (("oom", "died"), ("fits", "trained")):
        lines.append(f"| {words} | " + " | ".join(str(counts[outcome, verdict]) for verdict in ("safe", "tight", "no")) + " |")
    peaks = [right for row, _, right, _ in found if row["gpu"] == "not stated"]
    lines.append(f"\nWithout a card the stated peak is judged: {sum(peaks)} of {len(peaks)} lie in the stated range.")
    lines.append(f"Right are {sum(right for _, _, right, _ in found)} of {len(found)}: \"no\" for those that died, "
                 "\"safe\" or \"tight\" for those that trained, and a peak in the range.\n")
    lines += ["| report | job | what happened | what is said |", "| --- | --- | --- | --- |"]
    for row, settings, right, said in found:
        happened = f"{row['peak_gib']} GiB" if row["gpu"] == "not stated" else {"oom": "died", "fits": "trained"}[row["outcome"]]
        lines.append(f"| {row['source']} | {settings['model']}, {row['method']}, {settings['gpu']}, {settings.get('strategy', row['strategy'])}, "
                     f"{settings['batch']} × {settings['context']} | {happened} | {said}{'' if right else ' (wrong)'} |")
    counted = [f"- {reason}: {count}" for reason, count in reasons.most_common()]
    return "\n".join(lines) + "\n\nNot asked, with the number of reports:\n\n" + "\n".join(counted)


def main():
    found, reasons = results(os.path.join(sys.argv[1], "fathom"))
    for row, settings, right, said in found:
        print(f"  {'right' if right else 'WRONG'} {row['outcome']:4} {row.get('peak_gib', ''):>5} {said:18} {row['source']}: "
              + " ".join(f"--{key} {given}" for key, given in settings.items()))
    for reason, count in reasons.most_common():
        print(f"  not asked, {reason}: {count}")
    rights = sum(right for _, _, right, _ in found)
    fooled = tally(found)["oom", "safe"]
    print(f"{rights} of {len(found)} right, {fooled} called safe that died; {sum(reasons.values())} not asked")
    met = [len(found) >= BARS["asked"], rights >= BARS["right"], fooled == 0]
    print(f"{sum(met)} passed, {len(met) - sum(met)} failed")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
