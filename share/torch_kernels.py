#!/usr/bin/env python3
"""Measures how long a card's kernels and its host's calls take: evidence for the times of steps.

Usage: torch_kernels.py [OUTPUT] [--seconds N]

Lines of JSON go to standard output, or to OUTPUT: first {"fathom": "card", ...}, then one {"fathom": "kernel", "kind":
..., "seconds": ...} for each measurement, last {"fathom": "done"}. Kinds:
product (out[rows, columns] = a[rows, depth] b[depth, columns], `count` at once, `width` bytes an element, `layout` as
cuBLAS calls it, `grouped`), attention (`rows` sequences of `tokens`, `backend`, `backward`, `masked`), move (`bytes`
read and written, `name`), optimizer (`parameters`, `tensors`, `name`; `host_seconds`: until the call came back),
host (a call of Python's, `name`, no kernel of note), copy (`bytes`
between host and card, `name`), host_adam (`parameters`, `cores`), sustained (a kernel again and again for a second,
`data`: random, zeros or nan; a card that draws its limit of power clocks lower, and what it draws depends on the data).
A kernel's time is that between two events on the stream; the stream sleeps until all are queued, so that the host is
not measured with them, and inputs change so that the cache does not hold them. Sections end early when --seconds
(75) are over.
"""
import contextlib
import json
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CACHE = 256 << 20  # bytes, more than any card's
CYCLES = 2e9  # a second, of the sleep that comes first
BURST = 0.012  # seconds of one measurement
SHORT = 64  # calls at most that are queued in one measurement
DEVICE = "cuda"

# hidden, heads, key heads, head width, inner width of one layer.
MODELS = {
    "Qwen2.5-0.5B": (896, 14, 2, 64, 4864),
    "Qwen3-0.6B": (1024, 16, 8, 128, 3072),
    "Qwen3-1.7B": (2048, 16, 8, 128, 6144),
    "Qwen3-4B": (2560, 32, 8, 128, 9728),
    "Llama-3.1-8B": (4096, 32, 8, 128, 14336),
    "Qwen3-14B": (5120, 40, 8, 128, 17408),
}


class Report:
    def __init__(self, out, seconds):
        self.out, self.began, self.seconds = out, time.time(), seconds

    def line(self, **values):
        print(json.dumps(values), file=self.out, flush=True)

    def add(self, kind, seconds, **values):
        self.line(fathom="kernel", kind=kind, **values, seconds=float(f"{seconds:.5g}"))

    def late(self):
        return time.time() - self.began > self.seconds


def measure(call, rounds=3):
    """Seconds of one call's kernels: the fastest of a few bursts. `call` takes the number of the repetition."""
    call(0)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def burst(count, host):
        torch.cuda._sleep(int(CYCLES * (0.0005 + 1.5 * host * count)))
        start.record()
        began = time.perf_counter()
        for number in range(count):
            call(number)
        host = (time.perf_counter() - began) / count
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3 / count, host

    once, host = burst(2, 0.001)
    count = max(1, min(SHORT, int(BURST / max(once, 1e-7))))
    return min(burst(count, host)[0] for _ in range(rounds if once < BURST else 1))


def copies(make):
    """Enough of the same for the cache not to hold them."""
    first = make()
    size = first.numel() * first.element_size()
    return [first] + [make() for _ in range(min(31, CACHE // max(size, 1)))]


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=DEVICE, dtype=dtype) * 0.05


# ------------------------------------------------------------------ products


def product(report, rows, columns, depth, **more):
    """As a linear layer multiplies: forward (weights are [columns, depth]), to its input, to its weights."""
    out = torch.empty(rows, columns, device=DEVICE, dtype=torch.bfloat16)
    a = copies(lambda: random(rows, depth))
    b = copies(lambda: random(columns, depth))
    seconds = measure(lambda i: torch.mm(a[i % len(a)], b[i % len(b)].t(), out=out))
    report.add("product", seconds, rows=rows, columns=columns, depth=depth, width=2, layout="forward", **more)
    b = copies(lambda: random(depth, columns))
    seconds = measure(lambda i: torch.mm(a[i % len(a)], b[i % len(b)], out=out))
    report.add("product", seconds, rows=rows, columns=columns, depth=depth, width=2, layout="input", **more)
    a = copies(lambda: random(depth, rows))
    seconds = measure(lambda i: torch.mm(a[i % len(a)].t(), b[i % len(b)], out=out))
    report.add("product", seconds, rows=rows, columns=columns, depth=depth, width=2, layout="weight", **more)


def shapes():
    """Products of layers, by how many tokens: each once."""
    seen = {}
    for hidden, heads, kv, width, inner in MODELS.values():
        for tokens in (512, 1024, 2048, 4096, 6000, 8192, 16384):
            for columns, depth in ((heads * width, hidden), (kv * width, hidden), (hidden, heads * width),
                                   (inner, hidden), (hidden, inner)):
                seen[tokens, columns, depth] = seen[columns, depth, tokens] = True
    return seen


def products(report):
    for rows, columns, depth in shapes():
        if report.late():
            return
        one_product(report, rows, columns, depth)


def one_product(report, rows, columns, depth):
    """In one layout: to weights where the depth is a count of tokens."""
    out = torch.empty(rows, columns, device=DEVICE, dtype=torch.bfloat16)
    a, b = copies(lambda: random(rows, depth)), copies(lambda: random(columns, depth))
    seconds = measure(lambda i: torch.mm(a[i % len(a)], b[i % len(b)].t(), out=out), 2)
    report.add("product", seconds, rows=rows, columns=columns, depth=depth, width=2, layout="forward")


def layouts(report):
    for tokens in (1024, 4096, 8192):
        for columns, depth in ((1024, 1024), (3072, 1024), (1024, 3072), (4096, 4096), (12288, 4096), (4096, 12288)):
            product(report, tokens, columns, depth, set="layouts")
            product(report, columns, depth, tokens, set="layouts")


def heads_of_vocabulary(report):
    for hidden in (1024, 2048, 4096):
        for tokens in (512, 2048, 4096, 8192):
            for shape in ((tokens, 151936, hidden), (tokens, hidden, 151936), (151936, hidden, tokens)):
                one_product(report, *shape)


def skinny(report):
    for rows in (1, 8, 16, 32, 64, 128, 256):
        for columns, depth in ((1024, 1024), (4096, 4096), (12288, 4096), (151936, 4096)):
            one_product(report, rows, columns, depth)
    for tokens in (2048, 8192):  # LoRA's
        for hidden in (1024, 2048, 4096):
            for shape in ((tokens, 16, hidden), (tokens, hidden, 16), (16, hidden, tokens), (hidden, 16, tokens)):
                one_product(report, *shape)


def wide_products(report):
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for rows, columns, depth in ((4096, 4096, 4096), (8192, 3072, 1024), (2048, 768, 2048)):
            a, b = random(rows, depth, dtype=torch.float32), random(columns, depth, dtype=torch.float32)
            seconds = measure(lambda i: torch.mm(a, b.t()), 2)
            report.add("product", seconds, rows=rows, columns=columns, depth=depth, width=4, tf32=tf32)
    torch.backends.cuda.matmul.allow_tf32 = False


def batched_products(report):
    for count, rows, columns, depth in ((16, 2048, 2048, 128), (16, 2048, 128, 2048), (128, 512, 768, 2048),
                                        (32, 4096, 4096, 128), (1, 64, 1, 4096)):
        a, b = random(count, rows, depth), random(count, depth, columns)
        report.add("product", measure(lambda i: torch.bmm(a, b), 2), rows=rows, columns=columns, depth=depth,
                   count=count, width=2, layout="batched")


def grouped_products(report):
    grouped = getattr(F, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
    if not grouped:
        return
    for experts in (8, 64, 128):
        for tokens in (4096, 32768, 65536):
            for columns, depth in ((768, 2048), (1536, 2048), (2048, 768)):
                a, b = random(tokens, depth), random(experts, depth, columns)
                ends = torch.arange(1, experts + 1, device=DEVICE, dtype=torch.int32) * (tokens // experts)
                report.add("product", measure(lambda i: grouped(a, b, offs=ends), 2), rows=tokens // experts,
                           columns=columns, depth=depth, count=experts, width=2, grouped=True)


# ------------------------------------------------------------------ attention

BACKENDS = {"default": None, "cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}


def attention(report, backend, rows, tokens, heads, kv, width, masked=False):
    """As transformers calls it: keys repeated unless the kernel shares them."""
    shape = dict(backend=backend, rows=rows, tokens=tokens, heads=heads, kv_heads=kv, head_dim=width, masked=masked)

    def head(count):
        return random(rows, tokens, count, width).transpose(1, 2).requires_grad_()

    query, key, value = head(heads), head(kv), head(kv)
    mask = torch.ones(tokens, tokens, device=DEVICE, dtype=torch.bool).tril()[None, None] if masked else None
    chosen = BACKENDS[backend]
    with sdpa_kernel(chosen) if chosen else contextlib.nullcontext():
        def forward():
            return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=not masked,
                                                  enable_gqa=kv != heads)

        try:
            with torch.no_grad():
                report.add("attention", measure(lambda i: forward(), 2), **shape, backward=False)
            out = forward()
            gradient = torch.randn_like(out)
            seconds = measure(lambda i: torch.autograd.grad(out, (query, key, value), gradient, retain_graph=True), 2)
            report.add("attention", seconds, **shape, backward=True)
        except RuntimeError as problem:
            report.line(fathom="kernel", kind="none", **shape, error=str(problem).splitlines()[0][:200])


def attentions(report):
    for backend in ("default", "flash", "efficient"):
        for rows, tokens in ((4, 512), (4, 1024), (1, 1024), (1, 2048), (4, 2048), (1, 4096), (1, 8192), (1, 16384),
                             (1, 32768)):
            for heads, kv, width in ((16, 8, 128), (14, 2, 64), (32, 8, 128)):
                if report.late() or (backend != "default" and (heads == 14 or rows > 1)):
                    continue
                if backend == "efficient":
                    kv = heads  # it does not share keys
                attention(report, backend, rows, tokens, heads, kv, width)
    for tokens in (4096, 16384):
        attention(report, "cudnn", 1, tokens, 16, 8, 128)
        attention(report, "default", 1, tokens, 4, 1, 128)  # Ulysses' share of the heads
    for tokens in (2048, 4096, 8192):
        for backend in ("default", "efficient", "cudnn"):
            attention(report, backend, 1, tokens, 16, 16, 128, masked=True)


# ------------------------------------------------------------------ memory


def move(report, name, bytes_moved, call, rounds=2):
    report.add("move", measure(call, rounds), name=name, bytes=int(bytes_moved))


def plain_moves(report):
    for power in (10, 14, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28):
        count = 1 << power
        a, b = copies(lambda: random(count)), copies(lambda: random(count))
        out = torch.empty_like(a[0])
        wide = torch.empty(count, device=DEVICE, dtype=torch.float32)
        move(report, "add", 6 * count, lambda i: torch.add(a[i % len(a)], b[i % len(b)], out=out))
        move(report, "copy", 4 * count, lambda i: out.copy_(a[i % len(a)]))
        move(report, "widen", 6 * count, lambda i: wide.copy_(a[i % len(a)]))
        move(report, "narrow", 6 * count, lambda i: out.copy_(wide))
        move(report, "silu", 4 * count, lambda i: F.silu(a[i % len(a)]))
        move(report, "zero", 2 * count, lambda i: a[i % len(a)].zero_())
        del a, b, out, wide


def rows_of_layers(report):
    """What a layer does to each token: norms in fp32, positions, gates; strided reads and sums over rows."""
    for tokens in (2048, 4096, 8192, 16384):
        for width in (1024, 2048, 4096):
            x = copies(lambda: random(tokens, width))
            wide, size = [each.float() for each in x[:4]], tokens * width
            weight, one = random(width), torch.rand(tokens, 1, device=DEVICE)
            move(report, "square", 8 * size, lambda i: wide[i % len(wide)].pow(2))
            move(report, "mean of rows", 4 * size, lambda i: wide[i % len(wide)].mean(-1, keepdim=True))
            move(report, "times column", 8 * size, lambda i: wide[i % len(wide)] * one)
            move(report, "times row", 4 * size, lambda i: weight * x[i % len(x)])
            move(report, "sum over tokens", 2 * size, lambda i: x[i % len(x)].sum(0))
            move(report, "rms_norm", 4 * size, lambda i: F.rms_norm(x[i % len(x)], (width,), weight, 1e-6))
            y = x[0].view(1, tokens, width // 128, 128).transpose(1, 2)
            half = y[..., 64:]
            cos = random(1, 1, tokens, 128)
            move(report, "rotate half", 4 * size, lambda i: torch.cat((-half, y[..., :64]), -1))
            move(report, "times positions", 4 * size, lambda i: y * cos)
            move(report, "transposed copy", 4 * size, lambda i: y.contiguous())
            move(report, "repeat keys", 6 * size, lambda i: y[:, :, None].expand(1, width // 128, 2, tokens, 128)
                 .reshape(1, width // 64, tokens, 128))
            del x, wide, y, half


def losses(report):
    for tokens, vocabulary in ((1024, 151936), (4096, 151936), (4096, 32000)):
        logits = random(tokens, vocabulary)
        labels = torch.randint(0, vocabulary, (tokens,), device=DEVICE)
        wide, size = logits.float(), tokens * vocabulary
        move(report, "widen logits", 6 * size, lambda i: logits.float())
        move(report, "log_softmax", 8 * size, lambda i: F.log_softmax(wide, -1))
        soft = F.log_softmax(wide, -1)
        gradient = torch.zeros_like(wide)
        move(report, "log_softmax backward", 12 * size,
             lambda i: torch.ops.aten._log_softmax_backward_data(gradient, soft, 1, torch.float32))
        move(report, "nll_loss", 4 * tokens, lambda i: F.nll_loss(soft, labels))
        wide.requires_grad_()
        loss = F.cross_entropy(wide, labels)
        move(report, "cross entropy backward", 16 * size, lambda i: torch.autograd.grad(loss, wide, retain_graph=True))
        del logits, wide, soft, gradient, loss
    for tokens in (2048, 8192):
        for width in (1024, 4096):
            table = random(151936, width)
            ids = torch.randint(0, 151936, (tokens,), device=DEVICE)
            move(report, "embedding", 4 * tokens * width, lambda i: F.embedding(ids, table))
            grad = random(tokens, width)
            move(report, "embedding backward", 2 * 151936 * width + 4 * tokens * width,
                 lambda i: torch.ops.aten.embedding_dense_backward(grad, ids, 151936, -1, False))


# ------------------------------------------------------------------ optimizers and the host


def wall(call, count):
    """Seconds of the host for one call, of the fastest round."""
    best = None
    for _ in range(4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            call()
        taken = (time.perf_counter() - began) / count
        best = taken if best is None else min(best, taken)
    torch.cuda.synchronize()
    return best


def optimizers(report):
    for name, options in (("fused", {"fused": True}), ("foreach", {"foreach": True})):
        for tensors, size, dtype in ((300, 1 << 12, torch.bfloat16), (300, 2_000_000, torch.bfloat16),
                                     (300, 2_000_000, torch.float32)):
            parameters = [torch.nn.Parameter(random(size, dtype=dtype)) for _ in range(tensors)]
            for each in parameters:
                each.grad = torch.randn_like(each)
            chosen = torch.optim.AdamW(parameters, lr=1e-5, **options)
            for _ in range(2):
                chosen.step()
            torch.cuda.synchronize()
            began = time.perf_counter()
            chosen.step()
            back = time.perf_counter() - began
            torch.cuda.synchronize()
            whole = time.perf_counter() - began
            report.add("optimizer", whole, name=name, parameters=tensors * size, tensors=tensors,
                       width=parameters[0].element_size(), host_seconds=float(f"{back:.5g}"))
            began = time.perf_counter()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            torch.cuda.synchronize()
            report.add("optimizer", time.perf_counter() - began, name="clip", parameters=tensors * size,
                       tensors=tensors, width=parameters[0].element_size())
            del parameters, chosen


def host_calls(report):
    from torch.utils.checkpoint import checkpoint

    x = random(64, 64)
    free, kept = x.clone(), x.clone().requires_grad_()
    linear = torch.nn.Linear(64, 64, bias=False, device=DEVICE, dtype=torch.bfloat16)
    query = random(1, 64, 2, 64).transpose(1, 2)
    calls = {"add": lambda: free + x, "add, kept": lambda: kept + x, "add in place": lambda: free.add_(x),
             "view": lambda: free.view(-1), "transpose, kept": lambda: kept.t(), "mm": lambda: free @ x,
             "widen": free.float, "mean": lambda: free.mean(-1, keepdim=True), "empty": lambda: torch.empty_like(x),
             "linear, kept": lambda: linear(kept), "cat": lambda: torch.cat((x, x), -1),
             "sdpa": lambda: F.scaled_dot_product_attention(query, query, query, is_causal=True)}
    for name, call in calls.items():
        report.add("host", wall(call, 200), name=name)

    def chain(length, start):
        for _ in range(length):
            start = start * x
        return start.sum()

    def backward(length, held):
        loss = chain(length, kept)
        torch.cuda.synchronize()
        began = time.perf_counter()
        loss.backward()
        held.append(time.perf_counter() - began)

    for length in (100, 400):
        held = []
        for _ in range(4):
            backward(length, held)
        report.add("host", min(held), name=f"backward of {length}")

    def block(start):
        for _ in range(20):
            start = start * x
        return start

    report.add("host", wall(lambda: block(kept), 20), name="20 calls")
    report.add("host", wall(lambda: checkpoint(block, kept, use_reentrant=False), 20), name="20 calls, checkpointed")

    def pair(run):
        loss = run().sum()
        began = time.perf_counter()
        loss.backward()
        return time.perf_counter() - began

    report.add("host", min(pair(lambda: block(kept)) for _ in range(20)), name="backward of 20")
    report.add("host", min(pair(lambda: checkpoint(block, kept, use_reentrant=False)) for _ in range(20)),
               name="backward of 20, checkpointed")
    report.add("host", queue_length(), name="launches before the host waits")


def queue_length():
    """How many launches the driver takes ahead: counted, not seconds."""
    a = torch.zeros(8, device=DEVICE)
    a.add_(1)
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)  # about 0.1 s
    for number in range(4096):
        began = time.perf_counter()
        a.add_(1)
        if time.perf_counter() - began > 0.005:
            break
    torch.cuda.synchronize()
    return number


def host_copies(report):
    size = 256 << 20
    there = torch.empty(size, dtype=torch.uint8, device=DEVICE)
    for name, here in (("pinned", torch.empty(size, dtype=torch.uint8, pin_memory=True)),
                       ("pageable", torch.zeros(size, dtype=torch.uint8))):
        for way, to, of in (("to card", there, here), ("to host", here, there)):
            seconds = measure(lambda i, to=to, of=of: to.copy_(of, non_blocking=True), 2)
            report.add("copy", seconds, name=f"{name}, {way}", bytes=size)


def host_adam(report):
    count = 32_000_000
    for name, options in (("foreach", {"foreach": True}), ("fused", {"fused": True})):
        parameter = torch.nn.Parameter(torch.zeros(count))
        parameter.grad = torch.ones(count)
        chosen = torch.optim.AdamW([parameter], lr=1e-5, **options)
        chosen.step()
        began = time.perf_counter()
        chosen.step()
        report.add("host_adam", time.perf_counter() - began, name=name, parameters=count,
                   cores=torch.get_num_threads())


# ------------------------------------------------------------------ what lasts


def power():
    """What the card draws and how it clocks, where nvidia-smi says."""
    import subprocess

    asked = ["nvidia-smi", "--query-gpu=power.draw,clocks.sm,temperature.gpu", "--format=csv,noheader,nounits"]
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        words = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True).stdout.split(",")
        return dict(zip(("watts", "mhz", "celsius"), map(float, words)))
    return {}


def sustain(report, name, data, call, seconds=1.0):
    """For a second, in pieces: the mean of the second half, and what the card drew."""
    once = measure(lambda i: call(), 1)
    count = max(1, int(seconds / 10 / once))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(11)]
    torch.cuda.synchronize()
    events[0].record()
    drawn = {}
    for number in range(10):
        for _ in range(count):
            call()
        events[number + 1].record()
        if number == 8:
            drawn = power()
    torch.cuda.synchronize()
    pieces = [a.elapsed_time(b) / 1e3 / count for a, b in zip(events, events[1:])]
    report.add("sustained", sum(pieces[5:]) / 5, name=name, data=data, first=float(f"{once:.5g}"), **drawn)


def filled(data, *shape):
    if data == "random":
        return torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16)
    if data == "small":
        return torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16) * 0.02
    return torch.full(shape, 0.0 if data == "zeros" else float("nan"), device=DEVICE, dtype=torch.bfloat16)


def sustained(report):
    for data in ("random", "small", "zeros", "nan"):
        a, b = filled(data, 8192, 4096), filled(data, 12288, 4096)
        weights = filled("small", 12288, 4096)
        sustain(report, "product 8192 x 12288 x 4096", data, lambda: torch.mm(a, b.t()))
        if data in ("zeros", "nan"):
            sustain(report, "product 8192 x 12288 x 4096, weights alone", data, lambda: torch.mm(a, weights.t()))
        query = filled(data, 1, 16384, 16, 128).transpose(1, 2).requires_grad_()
        key = filled(data, 1, 16384, 8, 128).transpose(1, 2).requires_grad_()

        def forward():
            return F.scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True)

        with torch.no_grad():
            sustain(report, "attention 16384", data, forward)
        out = forward()
        gradient = filled(data, 1, 16, 16384, 128)
        sustain(report, "attention 16384, backward", data,
                lambda: torch.autograd.grad(out, (query, key), gradient, retain_graph=True))
        big = filled(data, 1 << 28)
        sustain(report, "add 1 GiB", data, lambda: big.add_(big), 0.5)
        del big, out


SECTIONS = (sustained, host_calls, optimizers, attentions, plain_moves, rows_of_layers, losses, layouts,
            heads_of_vocabulary, skinny, wide_products, batched_products, grouped_products, host_copies, host_adam,
            products)


def card(report):
    about = torch.cuda.get_device_properties(0)
    report.line(fathom="card", name=about.name, capability=about.major * 10 + about.minor,
                multiprocessors=about.multi_processor_count, memory=about.total_memory, torch=torch.__version__,
                cuda=torch.version.cuda, cores=os.cpu_count(), **power())


def main():
    words = sys.argv[1:]
    seconds = float(words[words.index("--seconds") + 1]) if "--seconds" in words else 75
    path = words[0] if words and not words[0].startswith("--") else None
    with open(path, "w", encoding="utf-8") if path else contextlib.nullcontext(sys.stdout) as out:
        report = Report(out, seconds)
        card(report)
        for section in SECTIONS:
            if report.late():
                report.line(fathom="kernel", kind="none", section=section.__name__, error="no time was left")
                continue
            began = time.time()
            try:
                section(report)
            except RuntimeError as problem:  # what this torch or card does not do
                said = str(problem).splitlines()[0][:200]
                report.line(fathom="kernel", kind="none", section=section.__name__, error=said)
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            report.line(fathom="section", name=section.__name__, took=round(time.time() - began, 2))
        report.line(fathom="done")


if __name__ == "__main__":
    main()
