"""Fathom: what training configuration of a language model fits on which GPUs, before one is paid for.

    import fathom
    answer = fathom.predict(model="Qwen3-8B", gpu="8xH100-80G", context=32768)
    print(answer.verdict, answer.needs_bytes)

    fathom.check(trainer, gpu="8xH100-80G")      # a transformers or TRL trainer, before it trains

Settings have the names of the command line, with underscores: `max_token_len=32768` is `--max-token-len 32768`.
`fathom help settings` lists them. Every answer is the program's own: `answer.json` is what
`fathom predict --json` prints. Functions may be called from several threads.
"""
from ._program import FathomError, VERSION as __version__
from .answers import Answer, Breakdown, Doctor, Emitted, Limit, Peak, Phase, Plan, Prediction, Replay, Step
from .questions import accelerate_config, ask, doctor, emit, max_context, models, plan, predict, replay
from .trainers import check, settings_of

__all__ = ["Answer", "Breakdown", "Doctor", "Emitted", "FathomCallback", "FathomError", "Limit", "Peak", "Phase",
           "Plan", "Prediction", "Replay", "Step", "accelerate_config", "ask", "check", "doctor", "emit", "max_context",
           "models", "plan", "predict", "replay", "settings_of"]


def __getattr__(name):
    """The callback needs transformers, the rest does not."""
    if name == "FathomCallback":
        from .callback import FathomCallback
        return FathomCallback
    raise AttributeError(f"module 'fathom' has no attribute '{name}'")
