"""The prediction beside the measured peaks, in the trainer's own log."""
import functools
import sys

import torch
from transformers import TrainerCallback

from ._program import tell
from .questions import doctor
from .trainers import GIB, predict_trainer


def _line(error):
    """As Python prints it at the end of a traceback."""
    return f"{type(error).__module__}.{type(error).__name__}: {error}\n"


class FathomCallback(TrainerCallback):
    """Lays the largest peak since the last log beside the prediction, in what the Trainer logs anyway.

        trainer.add_callback(fathom.FathomCallback(trainer, gpu="H200"))

    A step that runs out of memory gets doctor's answer and what was predicted, on standard error, before the error goes
    on; `explain(error)` is the same answer as an object."""

    def __init__(self, trainer, gpu=None, **settings):
        self.trainer = trainer
        self.prediction = predict_trainer(trainer, gpu, **settings)
        self.measured = []
        trainer.training_step = self._watched(trainer.training_step)

    def _watched(self, step):
        @functools.wraps(step)
        def watched(*words, **more):
            try:
                return step(*words, **more)
            except torch.cuda.OutOfMemoryError as error:
                print(tell("doctor", "-", text=_line(error)), self.prediction, sep="", file=sys.stderr)
                raise
        return watched

    def _peaks(self):
        if not torch.cuda.is_available():
            return None
        return {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}

    def on_train_begin(self, args, state, control, **kwargs):
        handler = self.trainer.callback_handler  # loggers come after, so that they see what is added
        handler.callbacks.sort(key=lambda callback: callback is not self)

    def on_step_begin(self, args, state, control, **kwargs):
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def on_step_end(self, args, state, control, **kwargs):
        peaks = self._peaks()
        if peaks:
            self.measured.append(peaks)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if not self.measured or logs is None or "loss" not in logs:
            return
        steps = self.prediction.steps
        step = steps[min(len(self.measured), len(steps)) - 1]
        added = {"fathom/measured_gib": round(self.measured[-1]["allocated"] / GIB, 4),
                 "fathom/predicted_gib": round(step.allocated_bytes / GIB, 4)}
        logs.update(added)
        if state.log_history:
            state.log_history[-1].update(added)

    def explain(self, error):
        """Why it died: doctor's answer to the error's own text."""
        return doctor(_line(error))
