"""The prediction beside the measured peaks, in the trainer's own log."""
import functools
import sys
import time

import torch
from transformers import TrainerCallback

from ._program import FathomError, tell
from .questions import doctor
from .store import write_trial
from .trainers import GIB, predict_trainer


def _line(error):
    """As Python prints it at the end of a traceback."""
    return f"{type(error).__module__}.{type(error).__name__}: {error}\n"


class FathomCallback(TrainerCallback):
    """Lays the largest peak since the last log beside the prediction, in what the Trainer logs anyway.

        trainer.add_callback(fathom.FathomCallback(trainer, gpu="H200"))

    A step that runs out of memory gets doctor's answer and what was predicted, on standard error, before the error goes
    on; `explain(error)` is the same answer as an object. With `store="logs/probe.db"` the run is written down there, by
    its first process, as a trial of `fathom probe`, whose `--list` shows it."""

    def __init__(self, trainer, gpu=None, store=None, **settings):
        self.trainer = trainer
        self.prediction = predict_trainer(trainer, gpu, **settings)
        self.measured = []
        self._keep = functools.partial(write_trial, trainer, gpu, store, **settings) \
            if store and trainer.is_world_process_zero() else None
        trainer.training_step = self._watched(trainer.training_step)

    def _watched(self, step):
        @functools.wraps(step)
        def watched(*words, **more):
            try:
                return step(*words, **more)
            except torch.cuda.OutOfMemoryError as error:
                print(tell("doctor", "-", text=_line(error)), self.prediction, sep="", file=sys.stderr)
                self._write_down(_line(error))
                raise
        return watched

    def _write_down(self, error=None):
        keep, self._keep = self._keep, None
        if not keep or not (self.measured or error):
            return
        try:
            keep(self.measured, error)
        except FathomError as problem:  # a run is worth more than its record
            print(f"fathom: this run was not written down: {problem}", file=sys.stderr)

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
        self._began = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        peaks = self._peaks()
        if peaks:
            self.measured.append({**peaks, "seconds": time.monotonic() - self._began})

    def on_train_end(self, args, state, control, **kwargs):
        self._write_down()

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
