#!/usr/bin/env python3
"""Trains a model of random weights for a few steps and reports torch's peaks of each.

Usage: torch_worker.py TRIAL             one trial; TRIAL is a JSON object, or a file that holds one
       torch_worker.py --serve SOCKET    imports torch once, then forks a process for every trial
       torch_worker.py --ask SOCKET TRIAL
                                         the trial in such a server, its output here; without a
                                         server, one trial in this process

What is reported are lines of JSON on standard output, each with a key "fathom": start, phase, step,
done. An exception is printed as Python prints it, and the status is then not 0; 126 where the trial
itself is refused.

TRIAL: config (values of a config.json), context, world, sp, cp (ring context parallel, as torch and
accelerate do it) with cp_rank (which rank of the first ring is played, or reports: their temporary
tensors differ; the last but one takes most), strategy (single|ddp|fsdp1|fsdp2),
precision (bf16|autocast|mixed), recipe (hf|trinity), loss (full|chunked:N|none), batch, accum,
checkpointing, reshard, offload, optimizer (adamw|adamw-fused|sgd), expandable, layers, tied, steps,
one_gpu (one rank of `world`, the others played by torch's fake process group), limit_bytes (what
torch may reserve), workspace (cuBLAS's, as on another card: CUBLAS_WORKSPACE_CONFIG), entropy_saving,
save_hf (last|always|never), yarn_factor, device (cuda|cpu), trace (a file for the allocator's history), fake (tensors
without memory: fake_tensors.py) with program (Fathom's, which replays what they did).
Only `config` and `context` must be given.
"""
import array
import contextlib
import json
import os
import signal
import socket
import sys
import time

DEFAULTS = {
    "world": 1, "sp": 1, "cp": 1, "cp_rank": None, "strategy": None, "precision": None, "recipe": "hf", "loss": "full",
    "batch": 1, "accum": None, "checkpointing": True, "reshard": True, "offload": False,
    "optimizer": "adamw", "expandable": False, "layers": None, "tied": None, "steps": None,
    "one_gpu": False, "limit_bytes": None, "workspace": None, "entropy_saving": False,
    "save_hf": "last", "yarn_factor": None, "device": "cuda", "trace": None, "fake": False, "program": None,
}
# What Trinity's capacity test does: 8 sequences a group in micro-batches of 2, two steps.
TRINITY = {"batch": 2, "accum": 4, "steps": 2, "strategy": "fsdp1", "precision": "mixed"}
STEPS = 3
TEMPERATURE = 1.0
SMALL = 1 << 20
ENTROPY_ROWS = 2048
CANNOT_RUN, STOPPED = 126, 128 + signal.SIGTERM  # exit statuses, as shells have them


class BadTrial(Exception):
    pass


def report(kind, **values):
    print(json.dumps({"fathom": kind, **values}), flush=True)


def read_trial(text):
    if not text.lstrip().startswith("{"):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    given = json.loads(text)
    unknown = set(given) - set(DEFAULTS) - {"config", "context"}
    if unknown:
        raise BadTrial(f"a trial has no {', '.join(sorted(unknown))}")
    trial = dict(DEFAULTS)
    if given.get("recipe") == "trinity":
        trial.update(TRINITY)
    trial.update({key: value for key, value in given.items() if value is not None})
    if trial["strategy"] is None:
        trial["strategy"] = "fsdp2" if trial["world"] > 1 else "single"
    if trial["precision"] is None:
        trial["precision"] = "mixed" if trial["strategy"].startswith("fsdp") else "bf16"
    trial["offload"] = trial["offload"] in (True, "all")
    if given.get("recipe") == "trinity" and trial["offload"] and not given.get("strategy"):
        trial["strategy"] = "fsdp2"
    trial["accum"] = trial["accum"] or 1
    trial["steps"] = trial["steps"] or STEPS
    if trial["cp_rank"] is None:
        trial["cp_rank"] = max(trial["cp"] - 2, 0)
    return trial


# ------------------------------------------------------------------ the model


def with_infinities(value):
    """JSON has no infinity: transformers 5 writes {"__float__": "Infinity"} (configuration_utils.py)."""
    if isinstance(value, list):
        return [with_infinities(part) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"__float__"}:
        return float(value["__float__"])
    return {key: with_infinities(part) for key, part in value.items()}


def build_config(trial):
    import transformers

    values = with_infinities(trial["config"])
    kind = values.pop("model_type", None)
    if kind is None:
        raise BadTrial("the model's configuration has no model_type")
    if trial["layers"]:
        values["num_hidden_layers"] = trial["layers"]
        values.pop("layer_types", None)
    if trial["tied"] is not None:
        values["tie_word_embeddings"] = trial["tied"]
    config = transformers.AutoConfig.for_model(kind, **values)
    config.use_cache = False
    factor = trial["yarn_factor"]
    if factor:
        original = config.max_position_embeddings
        rope = dict(getattr(config, "rope_parameters", None) or {})
        rope.update(rope_type="yarn", factor=factor, original_max_position_embeddings=original)
        rope.setdefault("rope_theta", values.get("rope_theta", 10000.0))
        config.rope_parameters = rope
        config.max_position_embeddings = int(original * factor)
    return config


def exchange(tensor, group, size, from_dim, to_dim):
    """Gathers `from_dim` and scatters `to_dim` over the group: one permuted copy, one receive
    buffer, one reshaped copy."""
    import torch

    shape = list(tensor.shape)
    pieces = shape[:to_dim] + [size, shape[to_dim] // size] + shape[to_dim + 1:]
    send = tensor.reshape(pieces).movedim(to_dim, 0).contiguous()
    received = torch.empty_like(send)
    torch.distributed.all_to_all_single(received, send, group=group)
    del send
    piece = list(received.shape[1:])
    piece[from_dim] *= size
    return received.movedim(0, from_dim).reshape(piece)


def exchange_function():
    import torch

    class Exchange(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, group, size, from_dim, to_dim):
            ctx.rest = (group, size, to_dim, from_dim)
            return exchange(tensor, group, size, from_dim, to_dim)

        @staticmethod
        def backward(ctx, gradient):
            return exchange(gradient, *ctx.rest), None, None, None, None

    return Exchange.apply


def attend(query, key, value, scaling, sequences):
    """Causal attention within each of the sequences that one row holds; only views are made."""
    import torch

    def split(x):
        rows, heads, tokens, width = x.shape
        return x.transpose(1, 2).unflatten(1, (sequences, -1)).squeeze(0).transpose(1, 2)

    if sequences > 1:
        query, key, value = (split(x) for x in (query, key, value))
    out = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scaling, enable_gqa=True)
    return out.transpose(1, 2).flatten(0, 1)[None].transpose(1, 2) if sequences > 1 else out


def wait_for_gpu():
    import torch

    if torch.cuda.is_available():
        torch.cuda.current_stream().synchronize()


def register_attention(group, size, sequences, waits):
    """In the place of transformers' own: with Ulysses, over all tokens with a share of the heads.
    Where it `waits`, as transformers does for the longest of packed sequences, the host cannot run
    ahead of the GPU, and FSDP's buffers are free again in time."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    apply = exchange_function()

    def alone(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **ignored):
        if waits:
            wait_for_gpu()
        return attend(query, key, value, scaling, sequences).transpose(1, 2).contiguous(), None

    def spread(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **ignored):
        if key.shape[1] < size:
            key, value = (x.repeat_interleave(size // x.shape[1], 1) for x in (key, value))
        query, key, value = (apply(x, group, size, 2, 1) for x in (query, key, value))
        if waits:
            wait_for_gpu()
        out = attend(query, key, value, scaling, sequences)
        return apply(out, group, size, 1, 2).transpose(1, 2).contiguous(), None

    ALL_ATTENTION_FUNCTIONS.register("fathom", spread if size > 1 else alone)
    return "fathom"


def attend_without_masks(model):
    """Causal attention by itself: a ring takes no masks."""

    def without_mask(module, arguments, keywords):
        keywords.update(attention_mask=None, is_causal=True)
        return arguments, keywords

    for name, module in model.named_modules():
        if name.endswith("self_attn"):
            module.register_forward_pre_hook(without_mask, with_kwargs=True, prepend=True)


def build_empty(config, attention, dtype, device):
    """The model without values: on `device`, with rotary tables that are right."""
    import torch
    import transformers

    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    model = model.to(dtype)
    model.train()
    if device != "meta":
        model.to_empty(device=device)
        model.tie_weights()
        rebuild_rotary(model, config, device)
    return model


def build_fake(config, trial, mesh):
    """Made where it stays: a fake parameter cannot be moved."""
    import torch
    import transformers

    wide = trial["precision"] in ("mixed", "autocast")
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation=None, dtype=torch.float32 if wide else torch.bfloat16)
    model.train()
    if trial["loss"] != "full":
        replace_loss(model, trial["loss"])
    if trial["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return wrap_fsdp2(model, config, trial, False, mesh) if trial["strategy"] == "fsdp2" else model


def rebuild_rotary(model, config, device):
    import torch

    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child).__name__.endswith("RotaryEmbedding"):
                with torch.device(device):
                    setattr(parent, name, type(child)(config))


def fill(model):
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            if not local.numel():
                continue
            if local.is_cuda or local.numel() < SMALL:
                local.normal_(0, 0.02)
            else:
                local.zero_()  # random numbers take a host long, and no byte more or less


def decoder_layers(model):
    return model.get_decoder().layers if hasattr(model, "get_decoder") else model.model.layers


def wrap_fsdp2(model, config, trial, offload, mesh):
    import torch
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    # Left alone, torch keeps the root's parameters until the backward pass; verl asks for all.
    options = {"mesh": mesh} if mesh else {}
    if trial["recipe"] == "trinity" or not trial["reshard"]:
        options["reshard_after_forward"] = trial["reshard"]
    if trial["precision"] == "mixed":
        options["mp_policy"] = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=trial["device"] == "cuda")
    for layer in decoder_layers(model):
        fully_shard(layer, **options)
    if not config.tie_word_embeddings:
        fully_shard(model.get_input_embeddings(), **options)
        if trial["recipe"] == "hf":
            fully_shard(model.get_output_embeddings(), **options)
    fully_shard(model, **options)
    return model


def wrap_fsdp1(model, trial, offload):
    import functools

    import torch
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    on_gpu = trial["device"] == "cuda"
    kinds = {type(layer) for layer in decoder_layers(model)}
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls=kinds)
    return FullyShardedDataParallel(
        model, auto_wrap_policy=policy, use_orig_params=False, forward_prefetch=False,
        cpu_offload=CPUOffload(offload_params=True) if offload and on_gpu else None,
        sync_module_states=trial["recipe"] == "trinity" and on_gpu,
        device_id=torch.cuda.current_device() if on_gpu else torch.device("cpu"),
        mixed_precision=MixedPrecision(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.float32))


def build_model(config, attention, trial, reference=False, mesh=None):
    import torch

    device = trial["device"]
    strategy = trial["strategy"]
    offload = trial["offload"] or reference
    full = trial["precision"] in ("mixed", "autocast") and not reference
    dtype = torch.float32 if full else torch.bfloat16
    # FSDP1 loses ties of a model on the meta device: it moves each unit from the host itself.
    first = {"fsdp1": "cpu", "fsdp2": "meta"}.get(strategy, device)
    model = build_empty(config, attention, dtype, first)
    if trial["recipe"] == "hf" and trial["loss"] != "full":
        replace_loss(model, trial["loss"])
    if trial["checkpointing"] and not reference:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if strategy == "fsdp2":
        wrap_fsdp2(model, config, trial, offload, mesh)
        model.to_empty(device="cpu" if offload else device)
        model.tie_weights()
        rebuild_rotary(model, config, device)
    elif strategy == "fsdp1":
        model = wrap_fsdp1(model, trial, offload)
    fill(model)
    if reference:
        model.requires_grad_(False)
        return model.eval()
    if strategy == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    return model


def build_optimizer(model, trial):
    import torch

    kind = trial["optimizer"]
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-5, foreach=True if trial["fake"] else None)
    if trial["fake"]:  # as on a GPU; on the CPU torch would choose otherwise
        return torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=kind == "adamw", fused=kind == "adamw-fused")
    return torch.optim.AdamW(model.parameters(), lr=1e-5,
                             fused=True if kind == "adamw-fused" else None)


# ------------------------------------------------------------------ losses


def replace_loss(model, loss):
    """The model's forward pass with another loss; done before anything is wrapped around it."""
    import types

    from transformers.modeling_outputs import CausalLMOutput

    decoder, head = model.get_decoder(), model.get_output_embeddings()
    rows = int(loss.partition(":")[2] or 2048)

    def forward(self, input_ids, labels, **rest):
        hidden = decoder(input_ids=input_ids, **rest).last_hidden_state
        if loss == "none":
            return CausalLMOutput(loss=hidden.float().mean())
        return CausalLMOutput(loss=chunked_loss(logits_of, hidden, labels, rows))

    def logits_of(x):
        return finished(head(x), model.config.get_text_config())

    model.forward = types.MethodType(forward, model)


def finished(logits, config):
    """What the model's own forward does to its logits: Gemma 2 caps them, Granite divides them."""
    import torch

    cap = getattr(config, "final_logit_softcapping", None)
    if cap is not None:
        logits = logits / cap
        logits = torch.tanh(logits)
        logits = logits * cap
    if getattr(config, "logits_scaling", None) is not None:
        logits = logits / config.logits_scaling
    return logits


def chunked_loss(head, hidden, labels, rows):
    """The head and cross entropy over chunks of tokens, each recomputed in the backward pass."""
    import torch
    from torch.utils.checkpoint import checkpoint

    hidden, labels = hidden.reshape(-1, hidden.shape[-1]), labels.reshape(-1)

    def piece(x, y):
        return torch.nn.functional.cross_entropy(head(x).float(), y, reduction="sum")

    total = 0.0
    for start in range(0, hidden.shape[0], rows):
        total = total + checkpoint(piece, hidden[start:start + rows], labels[start:start + rows],
                                   use_reentrant=False)
    return total / hidden.shape[0]


def log_probs_of(logits, labels):
    import torch

    wide = logits.float()
    normaliser = torch.logsumexp(wide, -1)
    return wide.gather(1, labels[:, None])[:, 0] - normaliser, normaliser


def log_prob_gradient(logits, labels, normaliser, gradient):
    import torch

    chosen = torch.arange(logits.shape[1], device=logits.device)[None] == labels[:, None]
    difference = chosen.float() - torch.exp(logits.float() - normaliser[:, None])
    return (difference * gradient[:, None]).to(logits.dtype)


def log_prob_function(trial):
    """Log-probabilities of labels as FlashAttention's kernel makes them: nothing of the logits' size,
    and in the backward pass one gradient."""
    import torch

    forward_pass, backward_pass = log_probs_of, log_prob_gradient
    if trial["device"] == "cuda":
        forward_pass = torch.compile(log_probs_of, dynamic=True)
        backward_pass = torch.compile(log_prob_gradient, dynamic=True)

    class LogProb(torch.autograd.Function):
        @staticmethod
        def forward(ctx, logits, labels):
            chosen, normaliser = forward_pass(logits.detach(), labels)
            ctx.save_for_backward(logits, labels, normaliser)
            return chosen

        @staticmethod
        def backward(ctx, gradient):
            return backward_pass(*ctx.saved_tensors, gradient), None

    return LogProb.apply


def entropy_of(logits):
    import torch

    probabilities = torch.nn.functional.softmax(logits, dim=-1)
    return torch.logsumexp(logits, dim=-1) - torch.sum(probabilities * logits, dim=-1)


def entropy_in_chunks(logits, rows=ENTROPY_ROWS):
    import torch

    entropy = torch.zeros(logits.shape[0], device=logits.device)
    for start in range(0, logits.shape[0], rows):
        entropy[start:start + rows] = entropy_of(logits[start:start + rows].float())
    return entropy


def entropy_function(trial):
    """Compiled, and with entropy_saving in chunks under a checkpoint: as the trainer does it, which
    leaves the kind of checkpoint to torch's default."""
    import torch
    from torch.utils.checkpoint import checkpoint

    entropy = entropy_in_chunks if trial["entropy_saving"] else entropy_of
    if trial["device"] == "cuda":
        entropy = torch.compile(entropy, dynamic=True)
    if trial["entropy_saving"]:
        return lambda logits: checkpoint(entropy, logits, use_reentrant=True)
    return entropy


# ------------------------------------------------------------------ one step


class Job:
    """What a recipe's step works on."""

    def __init__(self, trial, rank):
        import torch

        self.trial, self.rank = trial, rank
        gpu = torch.device("cuda", 0 if trial["one_gpu"] else rank)
        self.device = gpu if trial["device"] == "cuda" else torch.device("cpu")
        self.config = build_config(trial)
        self.group = self.sequence_group()
        self.ring, shards = self.ring_mesh()
        if trial["fake"]:
            shards = trial["mesh"]
        size = trial["sp"]
        attention = "sdpa"
        if size > 1 or trial["recipe"] == "trinity":
            trinity = trial["recipe"] == "trinity"
            sequences = trial["batch"] if trinity else 1
            attention = register_attention(self.group, size, sequences, waits=trinity)
        self.reference = None
        if trial["recipe"] == "trinity":  # whose trainer makes the reference before the policy
            self.reference = build_model(self.config, attention, trial, reference=True)
        self.model = (build_fake(self.config, trial, shards) if trial["fake"]
                      else build_model(self.config, attention, trial, mesh=shards))
        if self.ring:
            attend_without_masks(self.model)
        self.optimizer = build_optimizer(self.model, trial)
        self.log_prob = log_prob_function(trial)
        self.entropy = entropy_function(trial)

    def sequence_group(self):
        import torch

        size, world = self.trial["sp"], self.trial["world"]
        if size == 1:
            return None
        if world % size:
            raise BadTrial(f"sp {size} does not divide the {world} GPUs")
        groups = [torch.distributed.new_group(list(range(first, first + size)))
                  for first in range(0, world, size)]
        return groups[self.rank // size]

    def ring_mesh(self):
        """The ring of this rank, and the ranks that share parameters: all of them."""
        import torch
        from torch.distributed.device_mesh import init_device_mesh

        size, world = self.trial["cp"], self.trial["world"]
        if size == 1:
            return None, None
        if world % size or self.trial["context"] % (2 * size):
            raise BadTrial(f"cp {size} does not divide the {world} GPUs, or twice it the context")
        mesh = init_device_mesh(self.device.type, (world // size, size), mesh_dim_names=("dp_shard", "cp"))
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)  # which the mesh may have changed
        return mesh["cp"], mesh["dp_shard", "cp"]._flatten("dp_shard_cp")

    def batch(self):
        """Token ids of this rank, and where they stand in the sequence."""
        import torch

        trial = self.trial
        rows, tokens = trial["batch"], trial["context"]
        if trial["recipe"] == "trinity":
            rows, tokens = 1, trial["batch"] * tokens
        here = -(-tokens // trial["sp"])
        first = here * (self.rank % trial["sp"])
        ids = torch.randint(0, self.config.vocab_size, (rows, here), device=self.device)
        positions = torch.arange(first, first + here, device=self.device)[None].expand(rows, here)
        return ids, positions

    def arguments(self, positions):
        """Nothing for transformers to build: no mask (all attention is causal), no cache."""
        if self.trial["sp"] == 1 and self.trial["recipe"] == "hf":
            return {}
        return {"position_ids": positions, "attention_mask": None, "use_cache": False}

    def autocast(self):
        import torch

        wanted = self.trial["precision"] == "autocast"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=wanted)

    def hf_loss(self, ids, positions):
        return self.model(input_ids=ids, labels=ids, **self.arguments(positions)).loss

    def logits(self, model, ids, positions):
        """Divided by the temperature in place, on a view: as the trainer does it."""
        output = model(input_ids=ids, **self.arguments(positions))
        rows = output.logits.squeeze(0)
        rows.div_(TEMPERATURE)
        return rows

    def reference_log_probs(self, batches):
        import torch

        found = []
        with torch.no_grad():
            for ids, positions in batches:
                rows = self.logits(self.reference, ids, positions)
                found.append(self.log_prob(rows, ids[0].roll(-1)))
                del rows
        if self.trial["reshard"] and self.trial["world"] > 1:
            self.reshard_root(self.reference)
        return found

    def reshard_root(self, model):
        """FSDP keeps the root whole after a pass without a backward one; verl lets it go."""
        if self.trial["strategy"] == "fsdp1":
            model._handle.reshard(True)
        elif self.trial["strategy"] == "fsdp2":
            model.reshard()

    def policy_loss(self, ids, positions, reference):
        import torch

        rows = self.logits(self.model, ids, positions)
        chosen = self.log_prob(rows, ids[0].roll(-1))
        entropy = self.entropy(rows)
        del rows
        old = chosen.detach()
        advantage = torch.ones_like(chosen)
        ratio = torch.exp(chosen - old)
        clipped = torch.clamp(ratio, 0.8, 1.2)
        policy = torch.maximum(-advantage * ratio, -advantage * clipped).mean()
        divergence = (0.5 * (chosen - reference).square()).mean()
        return (policy + 0.001 * divergence - 0.001 * entropy.mean()) / self.trial["accum"]

    def clip(self):
        import torch

        if self.trial["strategy"] == "fsdp1":
            self.model.clip_grad_norm_(1.0)
        else:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def update(self):
        self.clip()
        if self.trial["recipe"] == "trinity":
            wait_for_gpu()  # which looks whether the norm is finite
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def ring_batch(self):
        """What transformers' Trainer gives a model under context parallelism, before it is dealt out."""
        import torch

        rows, tokens = self.trial["batch"], self.trial["context"]
        ids = torch.randint(0, self.config.vocab_size, (rows, tokens), device=self.device)
        batch = {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}
        padded = torch.nn.functional.pad(batch["labels"], (0, 1), value=-100)
        batch["shift_labels"] = padded[:, 1:].contiguous()
        batch["position_ids"] = torch.arange(tokens, device=self.device).expand(rows, -1).contiguous()
        return batch

    def ring_pass(self):
        from torch.distributed.tensor.experimental import context_parallel

        batch = self.ring_batch()
        buffers = list(batch.values())
        with context_parallel(self.ring, buffers=buffers, buffer_seq_dims=[1] * len(buffers),
                              no_restore_buffers=set(buffers)), self.autocast():
            loss = self.model(**batch).loss
            loss.backward()

    def hf_pass(self, ids, positions):
        with self.autocast():
            loss = self.hf_loss(ids, positions)
        loss.backward()

    def hf_step(self, memory):
        batch = None if self.ring else self.batch()
        for _ in range(self.trial["accum"]):
            self.ring_pass() if self.ring else self.hf_pass(*batch)
        memory.mark("forward and backward")
        self.update()

    def trinity_step(self, memory):
        batches = [self.batch() for _ in range(self.trial["accum"])]
        reference = self.reference_log_probs(batches)
        memory.mark("reference")
        for (ids, positions), before in zip(batches, reference):
            loss = self.policy_loss(ids, positions, before)
            loss.backward()
            wait_for_gpu()  # the trainer reads the loss
            del loss
        memory.mark("forward and backward")
        self.update()

    def send_weights(self):
        """Every unit gathered whole, as for a broadcast to the rollout engine."""
        import torch

        if self.trial["strategy"] == "fsdp1":
            from torch.distributed.fsdp import FullyShardedDataParallel

            for module in self.model.modules():
                if isinstance(module, FullyShardedDataParallel):
                    with FullyShardedDataParallel.summon_full_params(module, recurse=False):
                        pass
        else:
            for parameter in self.model.parameters():
                whole = parameter.detach().to(self.device)
                whole = whole.full_tensor() if hasattr(whole, "full_tensor") else whole
                del whole
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def save(self):
        """The state as the trainer's checkpoint gathers it; nothing is written."""
        if self.trial["strategy"] != "fsdp1":
            return
        from torch.distributed.fsdp import (FullStateDictConfig, FullyShardedDataParallel,
                                            StateDictType)

        options = FullStateDictConfig(offload_to_cpu=self.device.type == "cuda", rank0_only=True)
        with FullyShardedDataParallel.state_dict_type(
                self.model, StateDictType.FULL_STATE_DICT, options):
            self.model.state_dict()


class Memory:
    """torch's statistics of the step that runs; silent where there is no GPU."""

    def __init__(self, device):
        self.device, self.marks = device, {}

    def start(self):
        import torch

        self.marks = {}
        self.began = time.monotonic()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()

    def mark(self, name):
        import torch

        if self.device.type == "cuda":
            self.marks[name] = torch.cuda.max_memory_allocated()

    def end(self, kind, **values):
        import torch

        if self.device.type == "cuda":
            torch.cuda.synchronize()
            stats = torch.cuda.memory_stats()
            for key in ("allocated", "requested", "reserved"):
                values[f"{key}_bytes"] = stats[f"{key}_bytes.all.peak"]
            values["end_allocated_bytes"] = stats["allocated_bytes.all.current"]
            values["retries"] = stats["num_alloc_retries"]
            values["phases"] = self.marks
        values["seconds"] = round(time.monotonic() - self.began, 3)
        report(kind, **values)


def run_steps(job, memory):
    trial = job.trial
    trinity = trial["recipe"] == "trinity"
    if trinity:
        job.send_weights()
    for step in range(1, trial["steps"] + 1):
        memory.start()
        job.trinity_step(memory) if trinity else job.hf_step(memory)
        memory.end("step", step=step)
        if trinity:
            job.send_weights()
    if trinity and trial["save_hf"] != "never":
        memory.start()
        job.save()
        memory.end("save")


# ------------------------------------------------------------------ one trial


def prepare_gpu(trial, rank):
    import torch

    if trial["workspace"]:  # read by torch with the first product
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = trial["workspace"]
    if not torch.cuda.is_available():
        raise BadTrial("torch sees no GPU here; --device cpu trains without one")
    torch.cuda.set_device(0 if trial["one_gpu"] else rank)
    if trial["expandable"]:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    torch.cuda.init()
    if trial["recipe"] == "trinity":
        torch.backends.cuda.enable_cudnn_sdp(False)  # verl trains with FlashAttention 2
    free, total = torch.cuda.mem_get_info()
    limit = trial["limit_bytes"]
    if limit and limit > total:
        raise BadTrial(f"torch is to be kept to {limit} bytes, and this GPU has {total}: a larger card "
                       "cannot be played on a smaller one")
    if limit:
        torch.cuda.set_per_process_memory_fraction(limit / total)
    if trial["trace"]:
        torch.cuda.memory._record_memory_history(context=None, max_entries=3000000)
    return {"gpu": torch.cuda.get_device_name(), "total_bytes": total, "used_bytes": total - free}


def join_others(trial, rank, store):
    import torch

    world = trial["world"]
    if trial["one_gpu"] or (world == 1 and trial["strategy"].startswith("fsdp")):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    elif world > 1 or trial["strategy"] == "ddp":
        backend = "nccl" if trial["device"] == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank,
                                             world_size=world)


def write_trace(path):
    import zlib

    import torch

    lines = [f"{event['action']} {event['addr']:x} {event['size']} {event['stream']}"
             for event in torch.cuda.memory._snapshot()["device_traces"][0] if "addr" in event]
    with open(path, "wb") as file:
        file.write(zlib.compress("\n".join(lines).encode() + b"\n", 9))


def check_fake(trial):
    for name, values in (("strategy", ("single", "fsdp2")), ("recipe", ("hf",)), ("sp", (1,)), ("cp", (1,)),
                         ("offload", (False, "off"))):
        if trial[name] not in values:
            raise BadTrial(f"fake tensors train with {name} {' or '.join(map(str, values))} only, not {trial[name]}")


def run_fake(trial, rank):
    """The steps on tensors without memory. A mesh of ranks holds numbers, which fake tensors do not."""
    import fake_tensors

    if trial["world"] > 1:
        from torch.distributed.device_mesh import init_device_mesh
        trial["mesh"] = init_device_mesh("cpu", (trial["world"],))
    else:
        trial["mesh"] = None
    recorder = fake_tensors.Recorder(fake_tensors.workspace_bytes(trial))
    with fake_tensors.fake_mode(), recorder:
        recorder.paused = sharded = trial["strategy"] == "fsdp2"
        job = Job(trial, rank)
        recorder.paused = False
        if sharded:
            recorder.adopt(job.model)
        try:
            run_steps(job, fake_tensors.Memory(recorder, trial, report))
        except Exception as error:
            text = fake_tensors.sentence(error)
            if not text:
                raise
            raise BadTrial(text) from error


def run_rank(trial, rank, store):
    import torch
    import transformers

    if trial["fake"]:
        check_fake(trial)
        trial["device"], trial["one_gpu"] = "cpu", trial["world"] > 1

    began = time.monotonic()
    torch.manual_seed(0)
    found = prepare_gpu(trial, rank) if trial["device"] == "cuda" else {}
    join_others(trial, rank, store)
    speaks = rank == trial["cp_rank"]
    if speaks:
        report("start", torch=torch.__version__, transformers=transformers.__version__,
               python=sys.version.split()[0], **found)
    if trial["fake"]:
        run_fake(trial, rank)
        report("done", seconds=round(time.monotonic() - began, 3))
        return
    try:
        job = Job(trial, rank)
        if speaks:
            report("phase", phase="built", seconds=round(time.monotonic() - began, 3))
        memory = Memory(job.device)
        with contextlib.redirect_stdout(sys.stdout if speaks else open(os.devnull, "w")):
            run_steps(job, memory)
    finally:
        if trial["trace"] and speaks:
            write_trace(trial["trace"])
    if speaks:
        report("done", seconds=round(time.monotonic() - began, 3))


def leave(status):
    """Past the interpreter's own end, which may wait for threads of communicators."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def say_bad_trial(error):
    print(f"torch_worker: {error}", file=sys.stderr)
    return CANNOT_RUN


def in_rank(trial, rank, store):
    try:
        run_rank(trial, rank, store)
        leave(0)
    except BadTrial as error:
        leave(say_bad_trial(error))
    except BaseException:  # everything must end the process, and be seen
        import traceback

        traceback.print_exc()
        leave(1)


def is_alone(trial):
    return trial["one_gpu"] or trial["fake"] or trial["world"] == 1


def run_trial(trial, store):
    """All ranks of a trial as processes of this one; the first failure ends the rest. They find each other
    through the file `store`, which may be there from a trial that was killed. One rank alone needs none, and
    does not return."""
    world = trial["world"]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    if is_alone(trial):
        in_rank(trial, trial["cp_rank"], store)
    with contextlib.suppress(OSError):
        os.unlink(store)
    ranks = set()
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            in_rank(trial, rank, store)
        ranks.add(pid)
    failed = 0
    while ranks:
        pid, status = os.wait()
        ranks.discard(pid)
        if status and not failed:
            failed = os.waitstatus_to_exitcode(status)
            for other in ranks:
                os.kill(other, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.unlink(store)
    return failed if failed >= 0 else 128 - failed


# ------------------------------------------------------------------ the fork server


class Server:
    """One process a connection. A connection that ends early takes its process with it; the answer
    is the process's exit status, a line of text. What trials need beside it is in the folder of its socket,
    which is fathom's to remove."""

    def __init__(self, path):
        import selectors

        self.folder = os.path.dirname(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(8)
        self.selector = selectors.DefaultSelector()
        self.read = selectors.EVENT_READ
        self.selector.register(self.listener, self.read, self.accept)

    def accept(self, key):
        connection, _ = self.listener.accept()
        text, files = receive_trial(connection)
        if not files:
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            self.become_trial(connection, text, files)
        for file in files:
            os.close(file)
        handle = os.pidfd_open(pid)
        entry = (connection, pid, handle)
        self.selector.register(connection, self.read, lambda key: self.hung_up(entry))
        self.selector.register(handle, self.read, lambda key: self.ended(entry))

    def become_trial(self, connection, text, files):
        os.setsid()
        self.listener.close()
        connection.close()
        for target, file in enumerate(files, 1):
            os.dup2(file, target)
        try:
            leave(run_trial(read_trial(text), os.path.join(self.folder, f"store-{os.getpid()}")))
        except BadTrial as error:
            leave(say_bad_trial(error))
        except BaseException:
            import traceback

            traceback.print_exc()
            leave(2)

    def hung_up(self, entry):
        connection, pid, _ = entry
        self.selector.unregister(connection)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    def ended(self, entry):
        connection, pid, handle = entry
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            connection.sendall(f"{code if code >= 0 else 128 - code}\n".encode())
        self.selector.unregister(handle)
        os.close(handle)
        with contextlib.suppress(KeyError):
            self.selector.unregister(connection)
        connection.close()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                key.data(key)


def receive_trial(connection):
    """A length in 8 bytes with the files for output and errors, then so many bytes."""
    numbers = array.array("i")
    head, control, _, _ = connection.recvmsg(8, socket.CMSG_LEN(2 * numbers.itemsize))
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(data[:len(data) - len(data) % numbers.itemsize])
    wanted, text = int.from_bytes(head, "little"), b""
    while len(text) < wanted:
        piece = connection.recv(wanted - len(text))
        if not piece:
            return "", []
        text += piece
    return text.decode(), list(numbers)


def import_all():
    """What trials need, without touching a GPU. A module that is missing is a trial's to miss."""
    import importlib

    for name in ("torch", "torch.distributed.fsdp", "torch.testing._internal.distributed.fake_pg",
                 "torch._dynamo", "torch._inductor.compile_fx", "transformers.modeling_utils",
                 "transformers.models.auto.modeling_auto", "transformers.models.qwen2.modeling_qwen2",
                 "transformers.models.qwen3.modeling_qwen3", "transformers.models.llama.modeling_llama"):
        try:
            importlib.import_module(name)
        except ImportError:
            if name in ("torch", "transformers.modeling_utils"):
                raise


def serve(path):
    # Looking for GPUs through NVML leaves CUDA alone, so that forks may use it. Inductor decides at its
    # import whether it compiles in processes of its own, which forks could not share.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import warnings

    import_all()
    import torch

    if torch.cuda.is_initialized():
        raise RuntimeError("an import has initialised CUDA, so its forks could not use it")
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork.*")
    server = Server(path)
    report("ready", torch=torch.__version__)
    server.run()


def run_here(trial):
    """Without a server. Others may write to the folder of temporary files, so ranks meet in one of their own."""
    import tempfile

    read = read_trial(trial)
    if is_alone(read):
        return run_trial(read, None)
    with tempfile.TemporaryDirectory(prefix="fathom-") as folder:
        return run_trial(read, os.path.join(folder, "store"))


def ask(path, trial):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        return run_here(trial)
    text = trial.encode()
    if not trial.lstrip().startswith("{"):
        with open(trial, "rb") as file:
            text = file.read()
    files = array.array("i", [1, 2])
    connection.sendmsg([len(text).to_bytes(8, "little")],
                       [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    connection.sendall(text)
    signal.signal(signal.SIGTERM, lambda *ignored: connection.shutdown(socket.SHUT_WR))
    answer = b""
    while not answer.endswith(b"\n"):
        piece = connection.recv(64)
        if not piece:
            print("torch_worker: the server ended before its trial did", file=sys.stderr)
            return STOPPED
        answer += piece
    return int(answer)


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "--serve":
        return serve(arguments[1])
    if len(arguments) == 3 and arguments[0] == "--ask":
        return ask(*arguments[1:])
    if len(arguments) == 1:
        return run_here(arguments[0])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadTrial as error:
        sys.exit(say_bad_trial(error))
