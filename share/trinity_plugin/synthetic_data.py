"""Sequences of full length without a model having written them, for Trinity-RFT's explorer."""
import torch
from trinity.common.experience import EID, Experience
from trinity.common.workflows import WORKFLOWS
from trinity.common.workflows.workflow import SimpleWorkflow

TOKEN = 1000


@WORKFLOWS.register_module("fathom_synthetic")
class Synthetic(SimpleWorkflow):
    def reset(self, task):
        self.task = task
        self.workflow_args = task.workflow_args

    def sequence(self):
        length, prompt = self.workflow_args["all_tokens"], self.workflow_args["prompt_tokens"]
        return Experience(
            eid=EID(), tokens=torch.full((length,), TOKEN, dtype=torch.int32), prompt_length=prompt,
            logprobs=torch.zeros(length - prompt), reward=torch.tensor(0.0))

    def run(self):
        return [self.sequence() for _ in range(self.repeat_times)]
