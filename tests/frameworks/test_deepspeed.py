"""DeepSpeed's configuration class and its pydantic models."""
import unittest

from deepspeed.runtime.config import DeepSpeedConfig

from common import changed, files, read


class DeepSpeed(unittest.TestCase):
    def test_every_file_is_accepted(self):
        for name, path in files("*/deepspeed.json"):
            with self.subTest(name):
                document, config = read(path), DeepSpeedConfig(path)
                self.assertEqual(config.zero_config.stage, document["zero_optimization"]["stage"])
                self.assertEqual(config.zero_config.reduce_bucket_size,
                                 document["zero_optimization"]["reduce_bucket_size"])
                self.assertEqual(config.gradient_accumulation_steps, document["gradient_accumulation_steps"])
                self.assertEqual((config.float16_config.enabled, config.bfloat16_config.enabled),
                                 ("-fp16" in name, "-fp16" not in name))

    def test_a_broken_key_is_refused(self):
        document = read(files("deepspeed-cpu/deepspeed.json")[0][1])
        for path, value in [
            ("zero_optimization.stage3_prefetch_bucket", 1),
            ("zero_optimization.stage", 4),
            ("zero_optimization.reduce_bucket_size", -1),
            ("zero_optimization.offload_optimizer.device", "disk"),
            ("zero_optimization.offload_param.pinned", True),
            ("bf16.on", True),
            ("train_micro_batch_size_per_gpu", 0),
        ]:
            with self.subTest(path=path), self.assertRaises((ValueError, AssertionError)):
                DeepSpeedConfig(changed(document, path, value))


if __name__ == "__main__":
    unittest.main()
