#!/usr/bin/env python3
"""Sets what `fathom serve` says beside start-up logs of vLLM and SGLang that others published.

Usage: servers.py BUILD-FOLDER [--write docs]

tests/runs/servers_unseen.jsonl: logs that were looked for after the rules were written, and asked once before anything
was changed; a row that changed a rule since says so under "used" and is not judged.

tests/runs/servers.jsonl: rows of public threads and repositories, each with its source; tier A is a whole log, B an
excerpt. A question has what the row states of the server's flags and nothing that the log found out: not the card's
measured memory (but where that is all that is known of the card), not what was free. Judged are rows of tier A whose
card is named: weights within 2 %, bytes of keys and values, and tokens where all layers are alike (vLLM prints another
thing for hybrids). The others are shown. Where the cache of a log is negative, the server must be said not to start.
--write makes serving.md in that folder.
"""
import io
import json
import os
import re
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GIB = 1 << 30
CARDS = {"H100-80GB": "H100-80G", "H100": "H100-80G", "H100 (79.18 GiB)": "H100-80G", "RTX 3090": "RTX3090",
         "RTX 4090": "RTX4090"}
# Rows name the model in their own words.
MODELS = {"Phi-4 (bitsandbytes 4-bit)": "phi-4-bnb-4bit", "gemma4-26b-a4b-it (bf16)": "google/gemma-4-26b-a4b-it",
          "Gemma3ForConditionalGeneration (4B by weight size)": "google/gemma-3-4b-it",
          "qwen3.5-122b-a10b-nvfp4 + MTP": "Qwen/Qwen3.5-122B-A10B-NVFP4",
          "Qwen/Qwen3-30B-A3B-Instruct": "Qwen/Qwen3-30B-A3B"}
# Versions of logs that give a date only: the newest release of that month.
DATES = {"V0, 2024-12": "0.6.6", "V0, 2025-02": "0.7.2", "V0, 2025-07": "0.7.3", "V0, 2025-03": "0.7.3",
         "0.7.x, 2025-02": "0.7.2", "2026-08": "0.27.1", "main 4d2a68d (2026-08)": "0.27.1", "2025-09 (V1)": "0.10.2",
         "2026-04": "0.19.0", "V0": "0.7.3", "0.7.x V0 (2025-02)": "0.7.2", "2025-03": "0.4.4", "2025-05": "0.4.6",
         "2026-02": "0.5.9", "2026-07 (PR branch)": "0.5.9", "2026-02 (kt)": "0.5.9", "2025-02": "0.4.3",
         "main of 2025-01-20 (docs CI)": "0.4.1", "main of 2025-03-19 (docs CI)": "0.4.4",
         "main of 2025-06-19 (docs CI)": "0.4.8", "main of 2025-08-20 (docs CI)": "0.5.0",
         "main of 2025-10-20 (docs CI)": "0.5.5", "main of 2026-04-20 (docs CI)": "0.5.9"}
FLAGS = {"gpu_memory_utilization": "gpu-memory-utilization", "mem_fraction_static": "mem-fraction-static",
         "max_model_len": "max-model-len", "max_num_seqs": "max-num-seqs",
         "max_num_batched_tokens": "max-num-batched-tokens", "chunked_prefill_size": "chunked-prefill-size",
         "cuda_graph_max_bs": "cuda-graph-max-bs", "max_total_tokens_arg": "max-total-tokens", "dtype": "dtype",
         "kv_dtype": "kv-dtype"}

# What is reached: weights within 2 % on so many of ten, and errors of the cache in the median and at the 90th
# percentile. Wanted: 9, 5 %, 15 %.
BARS = {"asked": 48, "weights": 0.9, "median": 0.05, "ninetieth": 0.15}
# Of the unseen: so many of those with weights, with the same meaning. gpt-oss-20b on a 3090 is the one beyond 2 %.
UNSEEN = {"weights": 11, "median": 0.028, "worst": 0.1}

# What names of models and options say of servers and nothing here models is refused by name.
REFUSED = [
    (["--model", "Qwen3-8B", "--enable-lora"], "adapters"),
    (["--model", "Qwen3-8B", "--cpu-offload-gb", "4"], "host memory"),
    (["--model", "Qwen3-8B", "--speculative-config", "{}"], "speculative"),
    (["--model", "Qwen3-8B", "--kv-transfer-config", "{}"], "another server"),
    (["--model", "Qwen3-8B", "--enable-hierarchical-cache"], "host memory"),
    (["--model", "DeepSeek-V3", "--enable-dp-attention"], "replicas"),
    (["--model", "Qwen3-8B", "--data-parallel-size", "2"], "replicas"),
    (["--model", "Qwen3-30B-A3B", "--enable-expert-parallel"], "experts"),
    (["--model", "Qwen3-8B", "--quantization", "modelopt_fp4"], "NVFP4"), (["--model", "Qwen3-8B-GGUF"], "GGUF"),
    (["--model", "Qwen3-8B", "--quantization", "torchao"], "TorchAO"), (["--model", "Qwen3-8B-NVFP4"], "NVFP4"),
    (["--model", "Qwen3-8B", "--kv-cache-dtype", "nvfp4"], "kv-dtype"),
]
# Numbers of weights that a name, an option or a file says: GiB.
PACKED = [(["--model", "Qwen3-8B", "--quantization", "bnb-8bit"], 8.8),
          (["--model", "Qwen3-8B", "--quantization", "bnb-4bit"], 5.58),
          (["--model", "unsloth/Qwen3-8B-bnb-8bit"], 8.8), (["--model", "Qwen3-8B", "--quantization", "fp8"], 8.8),
          (["--model", "mistralai/Pixtral-12B-2409"], 23.87),
          (["--model", "Moonlight-16B-A3B"], 29.9), (["--model", "DeepSeek-V3", "--tp", "16"], 40.3)]
CONFIG_8BIT = {"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
               "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
               "max_position_embeddings": 40960, "tie_word_embeddings": False,
               "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}}
# Other quantization_config of the same model, and GiB; None: refused.
CONFIGS = [({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}, 8.8),
           ({"quant_method": "bitsandbytes", "load_in_8bit": False, "load_in_4bit": True}, 5.58),
           ({"quant_method": "gptq", "bits": 4}, 5.6), ({"quant_method": "gptq", "bits": 8}, 8.95),
           ({"quant_method": "gptq", "bits": 3}, None),
           ({"quant_method": "compressed-tensors", "format": "pack-quantized",
             "config_groups": {"group_0": {"weights": {"num_bits": 8}}}}, 8.8),
           ({"quant_method": "compressed-tensors", "format": "pack-quantized",
             "config_groups": {"group_0": {"weights": {"num_bits": 4}}}}, 5.58),
           ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, None)]

# Published speeds (SGLang's cookbook and documentation): sequences by the median time of an output token.
SPEEDS = [
    ("Llama-3.1-8B on one 80 GB card, one sequence", "Llama-3.1-8B", "H100-80G", 1, 1, 1024, 144),
    ("Llama-3.1-70B on 8 x A100, one sequence", "Llama-3.1-70B", "8xA100-80G", 8, 1, 1024, 1 / 0.0186),
    ("Llama-3.1-70B on 8 x A100, 16 sequences", "Llama-3.1-70B", "8xA100-80G", 8, 16, 1024, 16 / 0.0261),
]


def version_of(row):
    text = row["version"]
    if text in DATES:
        return DATES[text]
    found = re.match(r"v?(\d+\.\d+(\.\d+)?)", text)
    return found.group(1) if found else None


def question(row):
    """The command line of a row, or why there is none."""
    count = row["tp"] * row.get("pp", 1)
    card = CARDS.get(row.get("gpu")) or (row["gpu"] if row["id"] > 1000 and "gpu" in row else None)
    total = row.get("total_gpu_gib") or row.get("avail_before_load_gib")
    if not card and total:
        # What lives beside torch before the first allocation is not in "avail mem".
        card = "custom:memory=%.2fGiB" % (total if "total_gpu_gib" in row else total + 0.5)
    if not card:
        return None, "the card is not stated"
    words = ["serve", "--model", MODELS.get(row["model"], row["model"]), "--gpu", "%dx%s" % (count, card), "--engine",
             "%s@%s" % (row["engine"], version_of(row)), "--tp", str(row["tp"]), "--pp", str(row.get("pp", 1)),
             "--json"]
    if row.get("enforce_eager"):
        words += ["--enforce-eager", "on"]
    for key, flag in FLAGS.items():
        if row.get(key) is not None:
            words += ["--" + flag, str(row[key])]
    return words, None


def ask(fathom, words):
    done = subprocess.run([fathom] + words, capture_output=True, text=True, check=False,
                          env=dict(os.environ, HF_HUB_OFFLINE="1"))
    return json.loads(done.stdout)


def error(found, seen):
    return found / seen - 1 if seen else None


def judge(fathom, row):
    words, why = question(row)
    entry = {"id": row["id"], "row": row, "why": why}
    if not words:
        return entry
    reply = ask(fathom, words)
    if "error" in reply:
        unknown = re.search("downloads are turned off|there is no model", reply["error"]["message"])
        entry["why"] = "the catalogue has no such model" if unknown else reply["error"]["message"]
        return entry
    entry["reply"] = reply
    entry["weights"] = error(reply["weights_bytes"], row["weights_gib"] * GIB) if "weights_gib" in row else None
    if row.get("kv_gib", 0) > 0:
        entry["cache"] = error(reply["kv_bytes"], row["kv_gib"] * GIB)
    if row.get("kv_tokens") and "bytes_per_token_per_rank" in row.get("check", {}):
        entry["tokens"] = error(reply["kv_tokens"], row["kv_tokens"])
    return entry


def check_words(fathom):
    """What is refused by name, what is understood, and versions that do not exist."""
    bad = []
    start = ["serve", "--gpu", "16xH200", "--engine", "vllm@0.19", "--context", "4096", "--json"]
    for words, expected in REFUSED:
        reply = ask(fathom, start + words)
        if expected not in reply.get("error", {}).get("message", ""):
            bad.append("%s is not refused by name" % " ".join(words))
    for words, gib in PACKED:
        reply = ask(fathom, start + words)
        if "error" in reply or abs(reply["weights_bytes"] / GIB - gib) > 0.02 * gib:
            bad.append("%s: not %.1f GiB but %s" % (" ".join(words), gib, reply.get("weights_bytes", 0) / GIB))
    for packing, gib in CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
                json.dump(dict(CONFIG_8BIT, quantization_config=packing), out)
            reply = ask(fathom, start + ["--model", folder])
        found = reply.get("weights_bytes", 0) / GIB
        if ("error" in reply) != (gib is None) or (gib and abs(found - gib) > 0.02 * gib):
            bad.append("%s: not %s GiB but %s" % (packing, gib, reply.get("error", found)))
    for engine, least in (("vllm@19", "0.19"), ("vllm@1.0", "0."), ("sglang@5", "0.5")):
        reply = ask(fathom, ["serve", "--model", "Qwen3-8B", "--gpu", "H200", "--engine", engine, "--json"])
        if least not in reply.get("error", {}).get("message", ""):
            bad.append("%s is taken for a version" % engine)
    reply = ask(fathom, ["predict", "--model", "Kimi-VL-A3B-Instruct", "--gpu", "H200", "--context", "4k", "--json"])
    if "fathom serve" not in reply.get("error", {}).get("message", ""):
        bad.append("a model that only servers know is trained")
    return bad


def judge_unseen(fathom):
    """Every row asked; those that changed no rule judged."""
    rows = [json.loads(line) for line in open(os.path.join(TESTS, "runs", "servers_unseen.jsonl"), encoding="utf-8")]
    entries = [judge(fathom, row) for row in rows]
    bad = ["unseen row %d: %s" % (entry["id"], entry["why"]) for entry in entries if entry["why"]]
    for entry in entries:
        if entry["row"].get("kv_gib", 0) < 0 and entry["reply"]["starts"]:
            bad.append("unseen row %d starts, and its log has a negative cache" % entry["id"])
    judged = [entry for entry in entries if not entry["why"] and "used" not in entry["row"]]
    weights = [abs(entry["weights"]) for entry in judged if entry["weights"] is not None]
    cache = sorted(abs(entry["cache"]) for entry in judged if "cache" in entry)
    near, median = sum(one <= 0.02 for one in weights), cache[len(cache) // 2]
    print("unseen: weights within 2 %% on %d of %d, cache off by %.1f %% in the median of %d, %.1f %% at worst" % (
        near, len(weights), 100 * median, len(cache), 100 * cache[-1]))
    if near < UNSEEN["weights"] or median > UNSEEN["median"] or cache[-1] > UNSEEN["worst"]:
        bad.append("unseen rows are short of the bars")
    return entries, {"unseen": len(rows), "unseen_weights": len(weights), "unseen_near": near,
                     "unseen_median": 100 * median, "unseen_caches": len(cache), "unseen_worst": 100 * cache[-1]}, bad


def is_judged(entry):
    return entry["row"]["tier"] == "A" and "gpu" in entry["row"]


def percent(value):
    return "" if value is None else "%+.1f %%" % (100 * value)


DOCUMENT = """# Inference servers

Made by `python3 tests/measured/servers.py build/release --write docs`.

`fathom serve` divides a card as vLLM and SGLang do when they start. Both do it by rules, and the rules are what is
written down (core/serve), by version. They were chosen with the rows below in sight, and what the servers' source does
not say comes from these rows: the 9.1 copies of the logits before 0.17, what lives outside torch, CUDA graphs a layer,
and 48 MiB of sampling. So the errors below say how well the rules describe these logs, not how well they foretell
others.

- **Weights** are the tensors of the model's own table, each divided as the servers' parallel layers divide it:
  vocabularies padded to 64 rows, heads of keys and values repeated where there are fewer than GPUs, routers and norms
  whole, packed matrices with their scales (fp8, int8, AWQ, GPTQ, w4a16, bitsandbytes, MXFP4 with its padding), and the
  tables of cosines, which are half a GiB for Gemma 3.
- **vLLM** may use a part of the whole card. A profiling run takes the larger of a full batch through the model and of
  sampling, whose copies of the logits are what counts for most models (nine of them before 0.17, three since, one
  under the second runner since 0.25); experts keep two workspaces meanwhile. From 0.20 on an estimate of CUDA graphs is
  taken off too, but not under the second runner. What is left is the cache.
- **SGLang** takes a part of what is free, whatever it needs: weights and cache share it, and chunks and graphs have the
  rest. The part follows from card, chunk and GPUs where nobody gives it.
- **The cache** has blocks for groups of equally many layers where some have a window or a state (vLLM), or a pool of
  each kind (SGLang); a latent is not divided.
- A server does not start when its weights do not fit, when vLLM asks for more than is free, when nothing is left, or,
  under vLLM, when not one sequence of the wanted length fits. The answer then names the least change that helps.
- **Asleep** (reinforcement learning on the same cards) a server keeps its context, NCCL's buffers, what lives outside
  torch and, under vLLM, its CUDA graphs: 1.3 GiB for Qwen3-4B on an L4, where a published log of an 8.3 GiB model on a
  22 GiB card has 1.15.

Not modelled, and refused by name: NVFP4, GGUF, HQQ, EXL2, Quark, TorchAO; adapters (`--enable-lora`), weights in host
memory (`--cpu-offload-gb`), drafts of speculative decoding, keys and values that go to another server or to host memory
(`--kv-transfer-config`), replicas (`--data-parallel-size`: each is a server by
itself) and whole experts on each GPU (`--enable-expert-parallel`). Mistral Small 3.1 and 3.2, Pixtral 12B and Kimi-VL are known to
`serve` alone: their text models under towers of which the weights are counted. What profiling takes for images stands
on Gemma 3, Mistral Small 3.1, Kimi-VL and one log of Qwen3-VL. Speeds come from the rates of training's kernels
([speed.md](speed.md)) and are a range that three published figures lie in.

## Beside logs

Start-up logs that others published (tests/runs/servers.jsonl has their sources). Of the %(judged)d whole logs whose
card is named, %(asked)d could be asked: weights are within 2 %% of the log on %(near)d of them, keys and values off by
%(median).1f %% in the median, %(ninetieth).1f %% at the 90th percentile and %(worst).1f %% at worst. The questions hold the
flags of the log and the card's name, not what the log found out. These rows were looked at while the rules were
written.

## Beside logs that were found afterwards

%(unseen)d logs that were looked for when the rules stood (tests/runs/servers_unseen.jsonl, with their sources: public
threads and files of repositories) and asked before anything was changed. Weights: within 2 %% on %(unseen_near)d of
%(unseen_weights)d; the other is gpt-oss-20b on an RTX 3090, whose experts that image did not pad. Keys and values of
%(unseen_caches)d that start: %(unseen_median).1f %% off in the median, %(unseen_worst).1f %% at worst. One more was 104 %%
off, Qwen3-VL under 0.11, whose profile holds a video: that rule was written then, and the row is shown and not judged.
The largest errors are of 0.6.5 on a card where another process ran and of an odd card with tensor parallelism.

%(unseen_table)s
## The logs that were in sight

"""


def print_table(entries, out):
    def print(line):
        out.write(line + "\n")

    def gib(value):
        return "" if value is None else "%.2f GiB" % value
    print("| log | server | GPUs | weights | off | keys and values | off |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for entry in entries:
        row = entry["row"]
        where = "%d x %s" % (row["tp"] * row.get("pp", 1), row.get("gpu") or "%s GiB" % (
            row.get("total_gpu_gib") or row.get("avail_before_load_gib") or "?"))
        if entry["why"]:
            print("| %s | %s %s | %s | %s | not asked: %s | %s | |" % (
                row["model"], row["engine"], row["version"], where, gib(row["weights_gib"]), entry["why"],
                gib(row["kv_gib"])))
            continue
        cache = percent(entry.get("cache")) or ("does not start" if not entry["reply"]["starts"] else "starts")
        print("| %s | %s %s | %s | %s | %s | %s | %s |" % (
            row["model"], row["engine"], row["version"], where, gib(row.get("weights_gib")), percent(entry["weights"]),
            gib(row.get("kv_gib")), cache))


def check_speeds(fathom):
    bad = []
    for what, model, gpu, tp, batch, context, seen in SPEEDS:
        reply = ask(fathom, ["serve", "--model", model, "--gpu", gpu, "--tp", str(tp), "--engine", "sglang@0.5.6",
                             "--max-num-seqs", str(batch), "--context", str(context), "--json"])
        speed = reply["decode"]
        print("speed: %s: %.0f tokens/s (%.0f to %.0f), published %.0f" % (
            what, speed["tokens_per_s"], speed["low_tokens_per_s"], speed["high_tokens_per_s"], seen))
        if not speed["low_tokens_per_s"] <= seen <= speed["high_tokens_per_s"]:
            bad.append("%s: %.0f tokens/s are outside the range" % (what, seen))
    return bad


def main():
    fathom = os.path.join(sys.argv[1], "fathom")
    rows = [json.loads(line) for line in open(os.path.join(TESTS, "runs", "servers.jsonl"), encoding="utf-8")]
    entries = [judge(fathom, row) for row in rows]
    bad = []
    for entry in entries:
        row = entry["row"]
        if entry["why"]:
            print("%4d %-50s not asked: %s" % (row["id"], row["model"][:50], entry["why"]))
            continue
        print("%4d %-50s %s weights %8s cache %8s tokens %8s" % (
            row["id"], row["model"][:50], row["tier"], percent(entry["weights"]), percent(entry.get("cache")),
            percent(entry.get("tokens"))))
        if row["kv_gib"] < 0 and entry["reply"]["starts"]:
            bad.append("row %d starts, and its log has a negative cache" % row["id"])
    judged = [entry for entry in entries if is_judged(entry)]
    asked = [entry for entry in judged if not entry["why"]]
    near = sum(abs(entry["weights"]) <= 0.02 for entry in asked)
    cache = sorted(abs(entry["cache"]) for entry in asked)
    median, ninetieth = cache[len(cache) // 2], cache[int(0.9 * (len(cache) - 1))]
    print("asked %d of %d; weights within 2 %%: %d; cache off by %.1f %% in the median, %.1f %% at the 90th percentile, "
          "%.1f %% at worst" % (len(asked), len(judged), near, 100 * median, 100 * ninetieth, 100 * cache[-1]))
    if len(asked) < BARS["asked"]:
        bad.append("only %d rows were asked" % len(asked))
    if near < BARS["weights"] * len(asked) or median > BARS["median"] or ninetieth > BARS["ninetieth"]:
        bad.append("short of the bars")
    unseen, unseen_facts, unseen_bad = judge_unseen(fathom)
    bad += unseen_bad
    if "--write" in sys.argv:
        table = io.StringIO()
        print_table(unseen, table)
        facts = {**unseen_facts, "unseen_table": table.getvalue(), "judged": len(judged), "asked": len(asked),
                 "near": near, "median": 100 * median,
                 "ninetieth": 100 * ninetieth, "worst": 100 * cache[-1]}
        with open(os.path.join(sys.argv[sys.argv.index("--write") + 1], "serving.md"), "w", encoding="utf-8") as out:
            out.write(DOCUMENT % facts)
            print_table(entries, out)
    bad += check_speeds(fathom) + check_words(fathom)
    for line in bad:
        print("FAILED: " + line)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
