"""Sequences of full length without a model having written them: as a workflow for Trinity-RFT's explorer, and
as the samples of a trainer that runs alone."""
import torch
from trinity.algorithm.sample_strategy import SAMPLE_STRATEGY, SampleStrategy
from trinity.common.experience import EID, Experience
from trinity.common.workflows import WORKFLOWS
from trinity.common.workflows.workflow import SimpleWorkflow

TOKEN = 1000


def sequence(length, prompt, **others):
    return Experience(
        eid=EID(), tokens=torch.full((length,), TOKEN, dtype=torch.int32), prompt_length=prompt,
        logprobs=torch.zeros(length - prompt), reward=0.0, **others)


@WORKFLOWS.register_module("fathom_synthetic")
class Synthetic(SimpleWorkflow):
    def reset(self, task):
        self.task = task
        self.workflow_args = task.workflow_args

    def run(self):
        sizes = self.workflow_args["all_tokens"], self.workflow_args["prompt_tokens"]
        return [sequence(*sizes) for _ in range(self.repeat_times)]


@SAMPLE_STRATEGY.register_module("fathom_synthetic")
class SyntheticSamples(SampleStrategy):
    """What the explorer would have sent, advantages included: equal rewards make them zero."""

    def __init__(self, buffer_config, all_tokens, prompt_tokens):
        super().__init__(buffer_config)
        self.steps, self.count = buffer_config.total_steps, buffer_config.train_batch_size
        self.sizes = all_tokens, prompt_tokens

    async def sample(self, step, **_):
        if step > self.steps:
            raise StopAsyncIteration
        zeros = torch.zeros(self.sizes[0] - self.sizes[1])
        batch = [sequence(*self.sizes, advantages=zeros, returns=zeros) for _ in range(self.count)]
        return batch, {}, []

    @classmethod
    def default_args(cls):
        return {}

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass
