# Answers of full length without generating them: what is tested is the trainer.
import torch

from trinity.common.experience import EID, Experience
from trinity.common.workflows import WORKFLOWS
from trinity.common.workflows.workflow import SimpleWorkflow, Task


@WORKFLOWS.register_module("synthetic_workflow")
class SyntheticWorkflow(SimpleWorkflow):
    def reset(self, task: Task):
        self.task = task
        self.prompt_tokens = task.workflow_args["prompt_len"]
        self.tokens = task.workflow_args["max_model_len"]

    def answer(self):
        return Experience(
            eid=EID(),
            tokens=torch.full((self.tokens,), 1024, dtype=torch.int32),
            prompt_length=self.prompt_tokens,
            logprobs=torch.ones(self.tokens - self.prompt_tokens),
            reward=torch.tensor(0.0),
        )

    def run(self):
        return [self.answer() for _ in range(self.repeat_times)]
