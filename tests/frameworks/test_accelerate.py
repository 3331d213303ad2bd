"""Accelerate's own loader, its launcher's checks, and the plugins that read what the launcher exports."""
import os
import unittest

from accelerate import DeepSpeedPlugin, FullyShardedDataParallelPlugin
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils.launch import (
    prepare_deepspeed_cmd_env,
    prepare_multi_gpu_env,
    prepare_simple_launcher_cmd_env,
)

from common import changed, files, read, written


def make_plugins(processes):
    """What a training process makes of its environment."""
    if os.environ.get("ACCELERATE_USE_FSDP") == "true":
        plugin = FullyShardedDataParallelPlugin()
        assert plugin.fsdp_version == int(os.environ["FSDP_VERSION"])
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
        DeepSpeedPlugin()
    if os.environ.get("ACCELERATE_USE_PARALLELISM_CONFIG") == "true":
        parallel = ParallelismConfig()
        assert parallel.total_size == processes, parallel


def what_fails(environment, processes):
    """Makes the plugins in a process of its own; returns the exception's text, empty for none."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            os.environ.clear()
            os.environ.update(environment)
            make_plugins(processes)
        except Exception as problem:
            said = repr(problem)
        os.write(writer, said.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    # FSDP1's plugin ends by asking for a device; having come so far, it has taken every value.
    return "" if "no available devices found" in said else said


def environment_of(path):
    """What `accelerate launch` would export for this file."""
    args = launch_command_parser().parse_args(["--config_file", path, "train.py"])
    args, defaults, _ = _validate_launch_command(args)
    if args.use_deepspeed:
        fields = list(defaults.deepspeed_config)
        fields += ["mixed_precision"] if "mixed_precision" in read(path) else []
        args.deepspeed_fields_from_accelerate_config = ",".join(fields)
        if args.num_machines > 1 and args.deepspeed_multinode_launcher != "standard":
            raise ValueError("the launcher wants a hostfile")
        args.main_process_ip = args.main_process_ip or "127.0.0.1"
        return prepare_deepspeed_cmd_env(args)[1]
    if args.use_fsdp or args.multi_gpu:
        return prepare_multi_gpu_env(args)
    return prepare_simple_launcher_cmd_env(args)[1]


def try_file(path):
    """Raises where Accelerate would: the loader, the launcher, or a training process."""
    load_config_from_file(path)
    folder = os.getcwd()
    os.chdir(os.path.dirname(path))
    try:
        said = what_fails(environment_of(path), read(path)["num_processes"])
    finally:
        os.chdir(folder)
    if said:
        raise ValueError(said)


def unknown_keys(document):
    """Nested keys that the launcher has no option for: it would accept and ignore them."""
    known = {action.dest for action in launch_command_parser()._actions}
    return [key for section in document.values() if isinstance(section, dict) for key in section if key not in known]


class Accelerate(unittest.TestCase):
    def test_every_file_is_accepted(self):
        for name, path in files("*/accelerate.yaml"):
            with self.subTest(name):
                try_file(path)

    def test_no_nested_key_is_ignored(self):
        for name, path in files("*/accelerate.yaml"):
            with self.subTest(name):
                self.assertEqual(unknown_keys(read(path)), [])
        broken = changed(read(files("accelerate-fsdp2/accelerate.yaml")[0][1]), "fsdp_config.fsdp_reshard", True)
        self.assertEqual(unknown_keys(broken), ["fsdp_reshard"])

    def test_a_broken_key_is_refused(self):
        for name, path, value in [
            ("accelerate-fsdp2", "fsdp_configuration", {}),
            ("accelerate-fsdp2", "distributed_type", None),
            ("accelerate-fsdp2", "distributed_type", "FSDP3"),
            ("accelerate-fsdp2", "num_processes", None),
            ("accelerate-fsdp2", "fsdp_config.fsdp_version", 3),
            ("accelerate-fsdp2", "fsdp_config.fsdp_reshard_after_forward", "FULL_SHARD"),
            ("accelerate-fsdp2", "fsdp_config.fsdp_auto_wrap_policy", "LAYERS"),
            ("accelerate-fsdp1", "fsdp_config.fsdp_sharding_strategy", "ALL"),
            ("accelerate-fsdp1", "fsdp_config.fsdp_sync_module_states", False),
            ("accelerate-cp4", "parallelism_config.parallelism_config_cp_size", 3),
            ("accelerate-cp4", "parallelism_config.parallelism_config_cp_comm_strategy", "ring"),
            ("accelerate-ulysses", "parallelism_config.parallelism_config_sp_attn_implementation", "eager"),
            ("accelerate-nodes-zero3", "deepspeed_config.deepspeed_multinode_launcher", None),
            ("accelerate-ddp", "mixed_precision", "bf8"),
        ]:
            with self.subTest(name=name, path=path, value=value):
                document = changed(read(files(f"{name}/accelerate.yaml")[0][1]), path, value)
                with written(document) as broken, self.assertRaises((ValueError, TypeError, KeyError, SystemExit)):
                    try_file(broken)

    def test_both_files_must_not_say_it(self):
        source = files("deepspeed-zero3/accelerate.yaml")[0][1]
        for key, value in [("mixed_precision", "bf16"), ("deepspeed_config.zero_stage", 3)]:
            with self.subTest(key), written(changed(read(source), key, value)) as broken:
                os.symlink(os.path.join(os.path.dirname(source), "deepspeed.json"),
                           os.path.join(os.path.dirname(broken), "deepspeed.json"))
                with self.assertRaisesRegex(ValueError, "deepspeed_config_file"):
                    try_file(broken)


if __name__ == "__main__":
    unittest.main()
