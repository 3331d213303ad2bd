"""Which batches a job of tests/runs/real_trainers.jsonl had: the lengths that its script drew, in the order in which
transformers' Trainer hands them out.

The script seeds Python's random with 0 and draws `lengths`: "mixed", of each `batch` rows one as long as the context and
the others of an eighth of it or more; "short", of an eighth to a half, four times as many as there is room for, which TRL
packs. accelerate 1.15's SeedableRandomSampler is torch.randperm with the Trainer's seed, 42; BatchSamplerShard gives rank
0 each `world`-th batch.
"""
import bisect
import collections
import random

SEED, STEPS, MAPPED = 42, 3, 1000    # MAPPED: rows that datasets.map hands to TRL's packing at once


def generator(seed):
    """torch's, which is the Mersenne Twister of 1998 with its own seeding."""
    state = [seed]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & 0xffffffff)
    twister = random.Random()
    twister.setstate((3, (*state, 624), None))
    return twister


def randperm(count, seed):
    """torch.randperm on the host (ATen/native/TensorFactories.cpp, randperm_cpu)."""
    twister, order = generator(seed), list(range(count))
    for i in range(count - 1):
        other = i + twister.getrandbits(32) % (count - i)
        order[i], order[other] = order[other], order[i]
    return order


def packed(lengths, most):
    """The lengths of bins, best fit decreasing (trl 1.16, data_utils.py, _pack_bfd)."""
    spaces, bins, waiting = [], [], collections.defaultdict(collections.deque)
    for length in sorted(lengths, reverse=True):
        place = bisect.bisect_left(spaces, length)
        space = spaces[place] if place < len(spaces) else most
        if space < most:
            number = waiting[space].popleft()
            if not waiting[space]:
                spaces.pop(place)
        else:
            number = len(bins)
            bins.append(0)
        bins[number] += length
        space -= length
        if space:
            if not waiting[space]:
                bisect.insort(spaces, space)
            waiting[space].append(number)
    return bins


def drawn(c, count):
    random.seed(0)
    context, batch = c["seq"], c.get("batch", 1)
    if c["lengths"] == "short":
        return [random.randrange(context // 8, context // 2) for _ in range(count)]
    return [context if i % batch == 0 else random.randrange(context // 8, context) for i in range(count)]


def rows_of(c):
    """What the sampler draws from: sequences, or bins of them."""
    count = STEPS * c.get("batch", 1) * c.get("accum", 1) * c.get("world", 1)
    if not c.get("args", {}).get("packing"):
        return drawn(c, count)
    lengths = drawn(c, 4 * count)
    return [length for i in range(0, len(lengths), MAPPED) for length in packed(lengths[i:i + MAPPED], c["seq"])]


def batch_lengths(c):
    """The batches of rank 0, as --batch-lengths has them."""
    rows, batch, together = rows_of(c), c.get("batch", 1), c.get("accum", 1)
    order = randperm(len(rows), SEED)
    batches = [[rows[i] for i in order[at:at + batch]] for at in range(0, len(order), batch)]
    own = batches[::1 if c.get("tp") else c.get("world", 1)][:STEPS * together]
    is_packed = c.get("args", {}).get("packing")
    said = [str(sum(each)) if is_packed else f"{max(each)}{'=' if len(set(each)) == 1 else ''}" for each in own]
    return "/".join(",".join(said[at:at + together]) for at in range(0, len(said), together))
