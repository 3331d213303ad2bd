"""The prediction beside the measured peaks, in the trainer's own log."""
from transformers import TrainerCallback

from .questions import doctor
from .trainers import GIB, predict_trainer


class FathomCallback(TrainerCallback):
    """Lays the largest peak since the last log beside the prediction, in what the Trainer logs anyway.

        trainer.add_callback(fathom.FathomCallback(trainer, gpu="H200"))

    After an out-of-memory error, `explain(error)` is doctor's answer to it."""

    def __init__(self, trainer, gpu=None, **settings):
        self.trainer = trainer
        self.prediction = predict_trainer(trainer, gpu, **settings)
        self.measured = []

    def _peaks(self):
        import torch
        if not torch.cuda.is_available():
            return None
        return {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}

    def on_train_begin(self, args, state, control, **kwargs):
        handler = self.trainer.callback_handler  # loggers come after, so that they see what is added
        handler.callbacks.sort(key=lambda callback: callback is not self)

    def on_step_begin(self, args, state, control, **kwargs):
        import torch
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
        return doctor(f"{type(error).__module__}.{type(error).__name__}: {error}")
