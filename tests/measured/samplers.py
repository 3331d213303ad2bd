"""How long the sequences are that a job of tests/runs/real_trainers.jsonl trained on, as its user would hand them to --data.

The script seeds Python's random with 0 and draws `lengths`: "mixed", of each `batch` rows one as long as the context and
the others of an eighth of it or more; "short", of an eighth to a half, four times as many as there is room for, which TRL
packs. It trains for three steps.
"""
import random

STEPS = 3


def sequences(c):
    random.seed(0)
    context, batch = c["seq"], c.get("batch", 1)
    count = STEPS * batch * c.get("accum", 1) * c.get("world", 1)
    if c["lengths"] == "short":
        return [random.randrange(context // 8, context // 2) for _ in range(4 * count)]
    return [context if i % batch == 0 else random.randrange(context // 8, context) for i in range(count)]
