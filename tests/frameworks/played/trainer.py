"""As anybody writes it for torchrun: transformers' Trainer, its DDP, and an evaluation whose logits are gathered."""
import torch
import transformers

ROWS, CONTEXT = 16, 32


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        tokens = torch.full((CONTEXT,), index)
        return {"input_ids": tokens, "labels": tokens}


config = transformers.AutoConfig.for_model(
    "qwen3", hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
    head_dim=16, vocab_size=128)
arguments = transformers.TrainingArguments(
    output_dir="checkpoints", max_steps=2, per_device_train_batch_size=1, per_device_eval_batch_size=1, use_cpu=True,
    report_to="none", save_strategy="no", logging_steps=1, disable_tqdm=True)
trainer = transformers.Trainer(
    model=transformers.AutoModelForCausalLM.from_config(config), args=arguments, train_dataset=Rows(),
    eval_dataset=Rows(), compute_metrics=lambda found: {"rows": len(found.predictions)})
trained = trainer.train()
print(f"process {arguments.process_index} of {arguments.world_size}, wrapped as {type(trainer.model_wrapped).__name__}, "
      f"loss {trained.training_loss:.2f}, evaluated rows: {trainer.evaluate()['eval_rows']}", flush=True)
