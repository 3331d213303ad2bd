"""The scripts: their syntax by shellcheck, and what they really call, recorded by stand-ins.

Every script runs with a PATH whose programs write down their arguments. verl's overrides go to Hydra
with verl's own configuration tree; slime's arguments are looked up among those that slime and the
launch scripts of that version have (slime_arguments.txt); Slurm's directives are read as sbatch does.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from common import ASIDE, HERE, files

RECORDER = """#!{python}
import json, os, sys
with open(os.environ["RECORD"], "a") as out:
    seen = ["PYTORCH_CUDA_ALLOC_CONF"] if "PYTORCH_CUDA_ALLOC_CONF" in os.environ else []
    json.dump([os.path.basename(sys.argv[0]), *sys.argv[1:], *(seen if os.environ.get("SEEN") else [])], out)
    out.write("\\n")
if sys.argv[0].endswith("scontrol"):
    print("node0")
if sys.argv[0].endswith("ray") and sys.argv[1] == "status" and os.environ.get("NO_RAY"):
    sys.exit(1)
"""
PROGRAMS = ["accelerate", "trl", "trinity", "ray", "curl", "srun", "scontrol", "python3"]


def calls(script, **environment):
    """[[program, argument...]...] in order, of a script that must succeed."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            path = os.path.join(folder, "bin", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(RECORDER.format(python=sys.executable))
            os.chmod(path, 0o755)
        models = os.path.join(folder, "slime", "scripts", "models")
        os.makedirs(models)
        for name in ("qwen3-8B", "qwen3-30B-A3B"):
            with open(os.path.join(models, f"{name}.sh"), "w") as out:
                out.write('MODEL_ARGS=(--rotary-base "1000000")\n')
        run = os.path.join(folder, "a run")
        shutil.copytree(os.path.dirname(script), run)
        record = os.path.join(folder, "record")
        known = {"PATH": os.path.join(folder, "bin") + ":/usr/bin:/bin", "HOME": folder, "RECORD": record,
                 "SLIME": os.path.join(folder, "slime"), "MASTER_ADDR": "node0", "NODE_RANK": "0",
                 "SLURM_SUBMIT_DIR": run, "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[0-1]",
                 "SLURM_CPUS_PER_TASK": "64", "SLURM_NNODES": "2", "NO_RAY": "1"}
        done = subprocess.run(["bash", os.path.join(run, os.path.basename(script))], capture_output=True, text=True,
                              env={**known, **environment}, timeout=60)
        assert done.returncode == 0, done.stderr
        with open(record) as lines:
            return [json.loads(line) for line in lines]


def called(script, program, **environment):
    found = [call for call in calls(script, **environment) if call[0] == program]
    assert found, f"{script} calls no {program}"
    return found[-1][1:]


class Scripts(unittest.TestCase):
    def test_shellcheck(self):
        scripts = files("*/*.sh") + files("*/*.sbatch")
        done = subprocess.run(["shellcheck", "-S", "warning", "-e", "SC1090,SC1091", *[path for _, path in scripts]],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_accelerate_is_called_with_its_file(self):
        for name, path in files("accelerate-*/launch.sh") + files("deepspeed-*/launch.sh"):
            with self.subTest(name):
                arguments = called(path, "accelerate")
                self.assertEqual(arguments[:3], ["launch", "--config_file", "accelerate.yaml"])
                self.assertIn("train.py", arguments)
                self.assertEqual("--machine_rank" in arguments, "-nodes" in name)

    def test_trl_is_called_with_both_files(self):
        for name, path in files("trl-*/launch.sh"):
            with self.subTest(name):
                word = name.split("/")[0].split("-")[1]
                task = {"distill": "distillation"}.get(word, word)
                arguments = called(path, "trl")
                self.assertEqual(arguments[:5],
                                 [task, "--config", f"{task}.yaml", "--accelerate_config", "accelerate.yaml"])
                self.assertEqual("--machine_rank" in arguments, "-hsdp" in name)  # the one on several nodes
                self.assertTrue(len(arguments) == 5 or "-hsdp" in name, arguments)

    def test_odd_names_stay_one_word(self):
        arguments = called(files("slime-opd/launch.sh")[0][1], "ray")
        self.assertTrue(arguments[arguments.index("--prompt-data") + 1].endswith("/a run/my data.jsonl"))

    def test_trinity_starts_ray_once(self):
        path = files("trinity-grpo/launch.sh")[0][1]
        self.assertIn("start", [call[1] for call in calls(path) if call[0] == "ray"])
        self.assertNotIn("start", [call[1] for call in calls(path, NO_RAY="") if call[0] == "ray"])


class Verl(unittest.TestCase):
    def compose(self, version, overrides):
        from hydra import compose, initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra

        GlobalHydra.instance().clear()
        tree = os.path.join(ASIDE, version, "verl", "trainer", "config")
        with initialize_config_dir(tree, version_base=None):
            return compose("ppo_trainer", overrides)

    def test_every_override_is_accepted(self):
        for version in ("verl==0.8.0", "verl==0.9.1"):
            for name, path in files("verl-*/launch.sh"):
                with self.subTest(version=version, name=name):
                    module, *overrides = called(path, "python3")[1:]
                    self.assertEqual(module, "verl.trainer.main_ppo")
                    config = self.compose(version, overrides)
                    self.assertEqual(config.algorithm.adv_estimator, "grpo")
                    self.assertEqual(config.actor_rollout_ref.rollout.name, "vllm")
                    self.assertEqual(config.actor_rollout_ref.actor.fsdp_config.strategy, "fsdp2")

    def test_a_broken_override_is_refused(self):
        from hydra.errors import HydraException

        overrides = called(files("verl-grpo/launch.sh")[0][1], "python3")[2:]
        with self.assertRaises(HydraException):
            self.compose("verl==0.8.0", overrides + ["actor_rollout_ref.actor.ulysses_size=2"])


def slime_flags(arguments):
    at = arguments.index("train.py")
    return {argument for argument in arguments[at:] if argument.startswith("--")}


class Slime(unittest.TestCase):
    def known(self):
        with open(os.path.join(HERE, "slime_arguments.txt")) as lines:
            return {line.strip() for line in lines if line.startswith("--")}

    def test_every_argument_is_known(self):
        for name, path in files("slime-*/launch.sh"):
            with self.subTest(name):
                flags = slime_flags(called(path, "ray"))
                self.assertGreater(len(flags), 30)
                self.assertEqual(flags - self.known(), set())
        self.assertNotIn("--opd-teacher", self.known())

    def test_batches_add_up(self):
        for name, path in files("slime-*/launch.sh"):
            with self.subTest(name):
                arguments = called(path, "ray")
                value = lambda flag: int(arguments[arguments.index(flag) + 1])
                self.assertEqual(value("--rollout-batch-size") * value("--n-samples-per-prompt"),
                                 value("--global-batch-size"))
                self.assertLessEqual(value("--rollout-max-prompt-len") + value("--rollout-max-response-len"),
                                     value("--rollout-max-context-len"))

    def test_ray_and_the_teacher_share_no_gpu(self):
        with open(files("slime-opd/launch.sh")[0][1]) as launch, open(files("slime-opd/teacher.sh")[0][1]) as teacher:
            ray = re.search(r"RAY_DEVICES:-([\d,]+)", launch.read()).group(1).split(",")
            own = re.search(r"TEACHER_DEVICES:-([\d,]+)", teacher.read()).group(1).split(",")
        self.assertEqual(set(ray) & set(own), set())


class Slurm(unittest.TestCase):
    def directives(self, path):
        found = {}
        with open(path) as lines:
            for line in lines:
                if not line.startswith("#"):
                    break  # sbatch stops at the first command
                match = re.match(r"#SBATCH --([a-z-]+)(?:=(.*))?$", line)
                if match:
                    found[match.group(1)] = match.group(2)
        return found

    def test_directives(self):
        for name, path in files("slurm-*/job.sbatch"):
            with self.subTest(name):
                found = self.directives(path)
                self.assertEqual(found["ntasks-per-node"], "1")
                self.assertGreaterEqual(int(found["nodes"]), 1)
                self.assertGreaterEqual(int(found["gpus-per-node"]), 1)
                self.assertEqual(found["signal"], "B:USR1@120")
                self.assertEqual(found["mem"], "0")
                self.assertIn("requeue", found)

    def test_one_launcher_a_node_with_its_own_rank(self):
        arguments = called(files("slurm-accelerate/job.sbatch")[0][1], "srun")
        self.assertEqual(arguments[-3:-1], ["bash", "-c"])
        self.assertIn("NODE_RANK=$SLURM_NODEID", arguments[-1])

    def test_a_cluster_of_ray(self):
        path = files("slurm-trinity/job.sbatch")[0][1]
        starts = [call for call in calls(path) if call[0] == "srun" and "start" in call]
        self.assertEqual(len(starts), 2)
        self.assertIn("--head", starts[0])
        self.assertTrue(any(argument.startswith("--address=") for argument in starts[1]))

    def test_ray_starts_with_the_allocator_setting(self):
        for name in ("slurm-trinity-env/job.sbatch", "trinity-grpo/launch.sh", "slime-apart/launch.sh"):
            with self.subTest(name):
                path = files(name)[0][1]
                starts = [call for call in calls(path, SEEN="1") if "start" in call]
                self.assertTrue(starts)
                self.assertEqual([call[-1] for call in starts], len(starts) * ["PYTORCH_CUDA_ALLOC_CONF"])


if __name__ == "__main__":
    unittest.main()
