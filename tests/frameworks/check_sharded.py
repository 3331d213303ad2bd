"""TRL's SFT trainer as the first of eight ranks, under the launcher's own variables, put to fathom.check.

Usage: check_sharded.py FOLDER fsdp2|zero3, with the player of ranks (share/one_gpu), the package, transformers and TRL on
the path. Prints the settings it saw, as a line of JSON.
"""
import os
import sys

import datasets
import transformers
import trl

from check_trainers import said, saved

ZERO = {"zero_optimization": {"stage": 3, "overlap_comm": False, "contiguous_gradients": True,
                              "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
                              "stage3_param_persistence_threshold": "auto",
                              "offload_optimizer": {"device": "cpu", "pin_memory": True}},
        "bf16": {"enabled": "auto"}, "gradient_clipping": "auto", "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}


def main(folder, strategy):
    if strategy == "zero3":
        import deepspeed
        deepspeed.init_distributed("gloo")  # as Accelerate does where there are GPUs
    model = saved(os.path.join(folder, strategy), transformers.Qwen3ForCausalLM)
    rows = datasets.Dataset.from_dict({"input_ids": [[3] * 100] * 64})
    arguments = trl.SFTConfig(output_dir=os.path.join(folder, "out"), use_cpu=True, report_to="none", bf16=True,
                              per_device_train_batch_size=2, gradient_accumulation_steps=4,
                              **({"deepspeed": ZERO} if strategy == "zero3" else {}))
    said(strategy, trl.SFTTrainer(model=model, args=arguments, train_dataset=rows), gpu="8xH100-80G")


if __name__ == "__main__":
    main(*sys.argv[1:])
