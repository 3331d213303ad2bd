"""As anybody writes it for `accelerate launch`: TRL's SFT on rows of made-up tokens. Says nothing of fake tensors.

Usage: sft.py FOLDER CONTEXT ZERO [EVAL [STEPS]], the folder having a config.json; ZERO is DeepSpeed's stage, 0 without it;
with EVAL two batches of so many rows are evaluated after each step."""
import os
import sys

import datasets
import tokenizers
import transformers
import trl

folder, context, zero = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
evaluated = int(sys.argv[4]) if len(sys.argv) > 4 else 0
STEPS = int(sys.argv[5]) if len(sys.argv) > 5 else 2
words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2}, unk_token="<unk>"))
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
stage3 = {"stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"} if zero == 3 else {}
deepspeed = {
    "zero_optimization": {"stage": zero, "overlap_comm": True, "contiguous_gradients": True,
                          "reduce_bucket_size": "auto", "sub_group_size": 1000000000, **stage3},
    "bf16": {"enabled": "auto"}, "gradient_clipping": "auto", "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "zero_allow_untested_optimizer": True,
}
arguments = trl.SFTConfig(
    output_dir=os.path.join(folder, "out"), max_length=context, per_device_train_batch_size=1, max_steps=STEPS,
    per_device_eval_batch_size=evaluated or 8, eval_strategy="steps" if evaluated else "no", eval_steps=1,
    save_strategy="no", report_to="none", disable_tqdm=True, deepspeed=deepspeed if zero else None)
def rows(count):
    return datasets.Dataset.from_list([{"input_ids": [3 + i % 50 for i in range(context)]}] * count)


read = rows(2 * evaluated * arguments.world_size) if evaluated else None
trl.SFTTrainer(model=folder, args=arguments, train_dataset=rows(STEPS), eval_dataset=read,
               processing_class=tokenizer).train()
