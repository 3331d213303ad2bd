"""The wheel in a clean environment, and fathom.check on TRL's and transformers' own trainers."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest
import venv

from common import ASIDE, FATHOM, HERE, ROOT

TRL = os.path.join(ASIDE, "trl==1.16.0")


def wheel(folder):
    """Builds it; its path."""
    builder = os.path.join(ROOT, "python", "build_wheel.py")
    done = subprocess.run([sys.executable, builder, os.path.dirname(FATHOM), folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def predicted(settings):
    """The program's own JSON for what a trainer was seen as."""
    words = [f"--{name}={value}" for name, value in settings.items()]
    return json.loads(subprocess.run([FATHOM, "predict", *words, "--json"], capture_output=True, text=True).stdout)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.wheel = wheel(os.path.join(cls.place.name, "one"))
        cls.home = os.path.join(cls.place.name, "clean")
        venv.create(cls.home, with_pip=True)
        subprocess.run([cls.python(), "-m", "pip", "install", "-q", "--no-index", cls.wheel], check=True)

    @classmethod
    def python(cls):
        return os.path.join(cls.home, "bin", "python")

    def run_python(self, text):
        done = subprocess.run([self.python(), "-c", text], capture_output=True, text=True, cwd=self.place.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_two_builds_are_equal(self):
        other = wheel(os.path.join(self.place.name, "two"))
        with open(self.wheel, "rb") as one, open(other, "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_the_program_is_on_the_path(self):
        done = subprocess.run([os.path.join(self.home, "bin", "fathom"), "--version"], capture_output=True, text=True)
        self.assertEqual(done.stdout, subprocess.run([FATHOM, "--version"], capture_output=True, text=True).stdout)

    def test_answers_are_the_programs(self):
        said = self.run_python("import fathom, json\n"
                               "a = fathom.predict(model='Qwen3-8B', gpu='8xH100-80G', context=32768)\n"
                               "print(json.dumps(a.json)); print(a.verdict, a.peak.reserved_bytes, len(a.steps)); print(a)")
        reply, short, *words = said.splitlines()
        self.assertIn("would fit: TRL's chunked loss (--expandable on --recipe trl)", words)
        settings = {"model": "Qwen3-8B", "gpu": "8xH100-80G", "context": 32768}
        self.assertEqual(json.loads(reply), predicted(settings))
        self.assertEqual(short.split()[0], "no")

    def test_an_error_is_the_programs_sentence(self):
        said = self.run_python("import fathom\n"
                               "try: fathom.predict(model='Qwen3-8BB', gpu='H200', context=4096)\n"
                               "except fathom.FathomError as e: print(e.status, e.code, e)")
        self.assertEqual(said.split()[:2], ["2", "bad_input"])
        self.assertIn("there is no model 'Qwen3-8BB'", said)
        self.assertIn("did you mean", said)

    def test_what_is_no_trainer_is_refused(self):
        said = self.run_python("import fathom\n"
                               "try: fathom.check('Qwen3-8B', gpu='H200')\n"
                               "except fathom.FathomError as e: print(e)")
        self.assertEqual(said.strip(), "trainer: a trainer of transformers or TRL is wanted, not a str")

    def test_without_yaml_one_sentence(self):
        said = self.run_python("import fathom, sys; sys.modules['yaml'] = None\n"
                               "try: fathom.accelerate_config(model='Qwen3-8B', gpu='8xH100-80G', context=16384)\n"
                               "except fathom.FathomError as e: print(e)")
        self.assertIn("PyYAML", said)

    def test_a_value_cannot_be_another_setting(self):
        said = self.run_python("import fathom\n"
                               "try: fathom.predict(model='Qwen3-8B\\ngpu=8xH200', gpu='H200', context=4096)\n"
                               "except fathom.FathomError as e: print(e)")
        self.assertIn("one line", said)

    def test_threads_do_not_meet(self):
        said = self.run_python(
            "import fathom, concurrent.futures as f\n"
            "ask = lambda n: fathom.predict(model='Qwen3-0.6B', gpu='H200', context=1024 * n).needs_bytes\n"
            "alone = [ask(n) for n in range(1, 9)]\n"
            "with f.ThreadPoolExecutor(8) as pool: print(list(pool.map(ask, range(1, 9))) == alone)")
        self.assertEqual(said.strip(), "True")

    def test_logs_files_and_pictures(self):
        said = self.run_python(
            "import fathom\n"
            "print(fathom.doctor('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.').cause['kind'])\n"
            "print(sorted(fathom.emit('trl', model='Qwen3-0.6B', gpu='H200', context=4096).files))\n"
            "print(fathom.max_context(model='Qwen3-0.6B', gpu='RTX4090').max_context)\n"
            "print('<svg' in fathom.predict(model='Qwen3-0.6B', gpu='H200', context=4096)._repr_html_())")
        kind, files, longest, drawn = said.splitlines()
        self.assertEqual((kind, drawn), ("gpu-memory", "True"))
        self.assertIn("sft.yaml", files)
        self.assertGreater(int(longest), 4096)

    def test_a_plan_is_the_programs(self):
        said = self.run_python(
            "import fathom\n"
            "plan = fathom.plan(model='Qwen3-0.6B', gpu='H200', context=2048, recipe='trl', global_batch=4, layers=4)\n"
            "print(plan.best['command'] in str(plan), len(plan.alternatives) > 2)\n"
            "again = dict(plan.best['settings'], **{'global-batch': None})\n"
            "print(fathom.predict(**again).peak.reserved_bytes == plan.best['reserved_bytes'])\n"
            "print(fathom.plan(model='Qwen3-8B', gpu='RTX4090', context=32768, recipe='trl', global_batch=1,"
            " strategy='single').best)")
        self.assertEqual(said.splitlines(), ["True True", "True", "None"])

    def test_stubs_know_the_settings(self):
        path = glob.glob(os.path.join(self.home, "lib", "*", "site-packages", "fathom", "questions.pyi"))[0]
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"def predict\(.*max_token_len: int \| str \| None")


class Trainers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        site = os.path.join(cls.place.name, "site")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site,
                        wheel(cls.place.name)], check=True)
        done = subprocess.run([sys.executable, "-W", "ignore", os.path.join(HERE, "check_trainers.py"),
                               cls.place.name], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": f"{site}:{TRL}"})
        assert done.returncode == 0, done.stderr[-2000:]
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"what"')]
        cls.said, cls.printed = {row["what"]: row for row in rows}, done.stderr

    def sees(self, what, **expected):
        settings = self.said[what]["settings"]
        self.assertEqual({name: settings[name.replace("_", "-")] for name in expected}, expected)
        return settings

    def test_an_sft_trainer(self):
        self.sees("sft", recipe="trl", task="sft", context=100, batch=2, accum=4, precision="autocast",
                  checkpointing="on", optimizer="adamw-fused", batching="full", strategy="single")

    def test_its_arguments_and_data_decide(self):
        self.sees("sft, mixed lengths", context=104, batching="padded", checkpointing="off")
        self.sees("sft, bf16", precision="bf16-autocast")

    def test_pairs(self):
        self.sees("dpo", recipe="trl", task="dpo", context=101)
        self.sees("reward", recipe="trl", task="reward", context=101)

    def test_what_it_holds_is_not_left_out(self):
        self.sees("eight GPUs", gpu="8xH100-80G", strategy="fsdp2")
        self.sees("eager", attention="eager")
        self.sees("adapters", lora=8, lora_targets="q,v", dora="on", lora_whole="head")

    def test_what_cannot_be_told_is_refused(self):
        for what, said in (("other adapters", "adapters on embed_tokens are not modelled"),
                           ("frozen", "weights that do not train"), ("another trainer", "of TRL's trainers")):
            with self.subTest(what):
                self.assertEqual(self.said[what]["status"], 2)
                self.assertIn(said, self.said[what]["message"])

    def test_transformers_own(self):
        self.sees("transformers", recipe="transformers", checkpointing="off", loss="full")

    def test_the_answer_is_the_programs(self):
        for what in ("sft", "dpo", "transformers"):
            with self.subTest(what):
                reply = predicted(self.said[what]["settings"])
                self.assertEqual(reply["needs_bytes"], self.said[what]["needs"])

    def test_the_verdict_is_printed(self):
        self.assertIn("100 tokens on H100-80G: fits", self.printed)

    def test_without_a_gpu_one_has_to_be_named(self):
        self.assertEqual(self.said["no GPU"]["status"], 2)
        self.assertIn("check(trainer, gpu='8xH100-80G')", self.said["no GPU"]["message"])

    def test_the_callback_explains_a_death(self):
        self.assertIn("died", self.said)
        self.assertIn("ran out of GPU memory", self.printed)

    def test_the_callback_writes_trials_down(self):
        store = os.path.join(self.place.name, "logs", "probe.db")
        done = subprocess.run([FATHOM, "probe", "--export", "json", "--store", store], capture_output=True, text=True)
        trials = json.loads(done.stdout)["attempts"]
        self.assertEqual([(trial["outcome"], trial["context"], trial["model"]) for trial in trials],
                         [("fits", 100, "language"), ("gpu_memory", 100, "language")])
        self.assertEqual(trials[0]["reserved_bytes"], 4 << 30)
        self.assertEqual({trial["predicted_reserved_bytes"] for trial in trials}, {self.said["sft"]["needs"]})

    def test_the_callback_lays_both_beside_each_other(self):
        row = self.said["callback"]
        self.assertEqual([(step["allocated"], step["reserved"]) for step in row["measured"]], [(3 << 30, 4 << 30)])
        self.assertEqual(row["logged"][0]["fathom/measured_gib"], 3.0)
        self.assertIn("fathom/predicted_gib", row["logged"][0])
        self.assertIn("loss", row["logged"][0])
        self.assertEqual(row["cause"], "gpu-memory")


# As `accelerate launch` sets them.
LAUNCHED = {"WORLD_SIZE": "8", "RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "0", "FATHOM_PLAY_RANKS": "8", "ACCELERATE_USE_CPU": "true", "DS_ACCELERATOR": "cpu",
            "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
FSDP = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_RESHARD_AFTER_FORWARD": "false", "FSDP_OFFLOAD_PARAMS": "true", "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
        "FSDP_CPU_RAM_EFFICIENT_LOADING": "false", "ACCELERATE_MIXED_PRECISION": "bf16"}


class Sharded(unittest.TestCase):
    """A live trainer of eight ranks, of which the first is here."""

    def seen(self, strategy, variables):
        with tempfile.TemporaryDirectory() as folder:
            site = os.path.join(folder, "site")
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site,
                            wheel(folder)], check=True)
            path = ":".join((os.path.join(ROOT, "share", "one_gpu"), os.path.join(HERE, "cpu"), site, TRL))
            done = subprocess.run([sys.executable, "-W", "ignore", os.path.join(HERE, "check_sharded.py"), folder,
                                   strategy], capture_output=True, text=True,
                                  env={**os.environ, **LAUNCHED, **variables, "PYTHONPATH": path})
            lines = [line for line in done.stdout.splitlines() if line.startswith('{"what"')]
            self.assertTrue(lines, done.stderr[-2000:])
            return json.loads(lines[0])["settings"]

    def test_fsdp(self):
        seen = self.seen("fsdp2", FSDP)
        self.assertEqual([seen[name] for name in ("strategy", "precision", "offload", "reshard", "load-once", "accum")],
                         ["fsdp2", "mixed", "all", "off", "off", 4])

    def test_deepspeed(self):
        seen = self.seen("zero3", {"ACCELERATE_USE_DEEPSPEED": "true"})
        self.assertEqual([seen[name] for name in ("strategy", "precision", "offload", "overlap-comm", "accum")],
                         ["zero3", "mixed", "optimizer", "off", 4])


if __name__ == "__main__":
    unittest.main()
