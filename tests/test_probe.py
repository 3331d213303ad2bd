#!/usr/bin/env python3
"""`fathom probe` from outside: every class of failure, interruptions, and fifty deaths.

Usage: tests/test_probe.py PROGRAM-FOLDER [unittest arguments]
"""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = os.path.abspath(sys.argv.pop(1))
FATHOM = os.path.join(PROGRAMS, "fathom")
TRAINER = os.path.join(PROGRAMS, "tests", "fake_trainer")


MARK = f"FATHOM_TEST_RUN={os.getpid()}"
os.environ["FATHOM_TEST_RUN"] = str(os.getpid())


def processes():
    """Ids of the trainers and keepers of this run that are alive, whoever their parent is now."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = MARK.encode() in file.read().split(b"\0")
        except OSError:
            continue
        if ours and name in ("fake_trainer", "fathom-keeper") and state != "Z":
            found.append(int(pid))
    return found


class Probe(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-probe-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def command(self, mode, *options, limit=3000, more=""):
        template = f"exec {TRAINER} {mode} --context {{context}} --limit {limit} {more}"
        return [FATHOM, "probe", "--engine", "command", "--command", template, "--grid", "1024",
                "--start", "1024", "--grace", "1", *options]

    def run_probe(self, mode, *options, **rest):
        done = subprocess.run(self.command(mode, *options, **rest), cwd=self.folder, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotIn("ERROR: AddressSanitizer", done.stderr)
        return done

    def attempts(self):
        database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
        rows = database.execute("SELECT cell, context, try, state, outcome FROM attempt ORDER BY id")
        return list(rows)

    def outcomes(self):
        return [(context, outcome) for _, context, _, _, outcome in self.attempts()]

    # ---------------------------------------------------------------- classes and transitions

    def test_the_longest_that_fits(self):
        done = self.run_probe("train")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trainer_gpu_num = 1, sp_num = 1, max_model_len = 2048\n", done.stdout)
        self.assertEqual(self.outcomes(), [(1024, "fits"), (2048, "fits"), (3072, "gpu_memory")])
        log = os.path.join(self.folder, "logs/model/gpu-1/sp-1/model_len-3072.log")
        with open(log) as file:
            self.assertIn("CUDA out of memory", file.read())

    def test_models_side_by_side(self):
        done = self.run_probe("train", "--model", "Qwen3-0.6B,Qwen3-4B", "--gpus", "1,2",
                              "--sp", "1,2", "--recipe", "hf")
        table = done.stdout[done.stdout.index("\nGPUs"):].splitlines()[1:5]
        self.assertEqual([line.split() for line in table],
                         [["GPUs", "SP", "Qwen3-0.6B", "Qwen3-4B"], ["1", "1", "2048", "2048"],
                          ["2", "1", "2048", "2048"], ["2", "2", "2048", "2048"]])
        self.assertIn("not tried: Qwen3-4B on 1 GPU with sp 2: ", done.stdout)

    def test_a_long_command_is_shown_whole(self):
        done = self.run_probe("train", "--dry-run", more="x" * 2000)
        self.assertIn("x" * 2000, done.stderr + done.stdout)

    def test_nothing_fits(self):
        done = self.run_probe("train", limit=10)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("max_model_len = 0\n", done.stdout)

    def test_what_is_known_is_not_tried_again(self):
        self.run_probe("train", "--until", "1024")
        done = self.run_probe("train", "--json")
        cell = json.loads(done.stdout)["cells"][0]
        self.assertEqual((cell["max_context"], cell["known"], cell["launches"]), (2048, 1, 2))
        self.assertEqual(len(self.attempts()), 3)
        again = self.run_probe("train", "--resume", "off", "--json")
        self.assertEqual(json.loads(again.stdout)["cells"][0]["launches"], 3)

    def test_a_configuration_error_stops_at_once(self):
        done = self.run_probe("config", "--gpus", "1,2")
        self.assertEqual(done.returncode, 3)
        self.assertIn("configuration error", done.stderr)
        self.assertIn("hidden_size must be", done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "configuration")])

    def test_a_full_disk_of_the_trainer_stops_at_once(self):
        done = self.run_probe("disk")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.outcomes(), [(1024, "disk")])

    def test_passing_errors_are_tried_again(self):
        done = self.run_probe("flaky", more="--failures 1 --launches launches")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.outcomes()[:2], [(1024, "device_error"), (1024, "fits")])
        self.assertIn("max_model_len = 2048", done.stdout)

    def test_passing_errors_are_not_tried_forever(self):
        done = self.run_probe("flaky", "--tries", "2", more="--failures 9 --launches launches")
        self.assertEqual(done.returncode, 3)
        self.assertIn("undecided", done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "device_error")] * 2)

    def test_a_timeout_grows(self):
        done = self.run_probe("slow", "--timeout", "1", more="--failures 1 --launches launches",
                              limit=1500)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "timeout"), (1024, "fits"), (2048, "timeout"),
                                           (2048, "gpu_memory")])
        database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
        times = [row[0] for row in database.execute("SELECT timeout_ms FROM attempt ORDER BY id")]
        self.assertEqual(times, [1000, 1300, 1000, 1300])

    def test_kills_are_the_hosts_memory(self):
        for mode in ("killed", "exit137"):
            with self.subTest(mode):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                self.assertEqual(self.run_probe(mode).returncode, 1)
                self.assertEqual(self.outcomes(), [(1024, "host_memory")])

    def test_garbled_and_endless_output(self):
        done = self.run_probe("garbled")
        self.assertIn("max_model_len = 2048", done.stdout)
        shutil.rmtree(os.path.join(self.folder, "logs"))
        done = self.run_probe("log", "--until", "1024", more="--bytes 67108864")
        self.assertIn("max_model_len = 1024", done.stdout)

    def rows(self, query):
        database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
        return list(database.execute(query))

    def test_steps_are_kept(self):
        self.run_probe("train")
        steps = self.rows("SELECT context, number, step.reserved_bytes, end_allocated_bytes, seconds FROM step"
                          " JOIN attempt ON attempt.id = step.attempt ORDER BY attempt, number")
        self.assertEqual(steps, [(1024, 1, 1126400, 10, 0.5), (1024, 2, 1126400, 10, 0.5),
                                 (2048, 1, 2252800, 10, 0.5), (2048, 2, 2252800, 10, 0.5)])

    def test_a_killed_trial_keeps_its_steps(self):
        line = '{{"fathom": "step", "step": 1, "allocated_bytes": 7, "reserved_bytes": 8}'
        start = '{{"fathom": "start", "torch": "2.11.0", "gpu": "Fake"}'
        command = self.command("train")
        command[command.index("--command") + 1] = f"echo '{start}'; echo '{line}'; exec sleep 60"
        probe = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if self.rows("SELECT count(*) FROM step") == [(1,)]:
                    break
            except sqlite3.Error:
                pass
            time.sleep(0.05)
        probe.kill()
        probe.wait()
        self.run_probe("train")
        self.assertEqual(self.rows("SELECT outcome, steps, allocated_bytes, reserved_bytes, gpu, versions FROM attempt"
                                   " WHERE id = 1"), [("interrupted", 1, 7, 8, "Fake", "torch 2.11.0")])
        done = subprocess.run([FATHOM, "probe", "--export", "json"], cwd=self.folder, capture_output=True, text=True)
        first = json.loads(done.stdout)["attempts"][0]
        self.assertEqual([step["reserved_bytes"] for step in first["steps"]], [8])
        self.assertEqual(first["unpredicted"], "no model was given")

    def test_stubborn_children_end_with_their_trial(self):
        before = set(processes())
        self.run_probe("stubborn", "--until", "1024", more="--sleep 200")
        self.assertEqual(set(processes()) - before, set())

    def test_a_trainer_that_is_not_there(self):
        done = subprocess.run([FATHOM, "probe", "--engine", "command", "--command", "/no/trainer"],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.outcomes()[0][1], "failed")

    # ---------------------------------------------------------------- what Fathom itself runs into

    def one_sentence(self, done):
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_a_log_on_a_full_disk(self):
        folder = os.path.join(self.folder, "logs/model/gpu-1/sp-1")
        os.makedirs(folder)
        os.symlink("/dev/full", os.path.join(folder, "model_len-1024.log"))
        said = self.one_sentence(self.run_probe("train"))
        self.assertIn("the disk is full, so this log cannot be written", said)

    def test_a_folder_that_may_not_be_written(self):
        said = self.one_sentence(self.run_probe("train", "--log-dir", "/proc/1/logs"))
        self.assertIn("/proc/1/logs", said)

    def test_two_at_once(self):
        first = subprocess.Popen(self.command("hang"), cwd=self.folder, stdout=subprocess.DEVNULL)
        time.sleep(1)
        said = self.one_sentence(self.run_probe("train"))
        self.assertIn("another fathom works with this store", said)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(20), 3)

    def test_an_interruption_keeps_what_is_known(self):
        before = set(processes())
        probe = subprocess.Popen(self.command("train", more="--sleep 400"), cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.7)
        probe.send_signal(signal.SIGINT)
        _, said = probe.communicate(timeout=30)
        self.assertEqual(probe.returncode, 3)
        self.assertIn("interrupted; every finished trial is kept", said)
        self.assertEqual(set(processes()) - before, set())
        outcomes = [outcome for _, outcome in self.outcomes()]
        self.assertEqual(outcomes[-1], "interrupted")
        done = self.run_probe("train", more="--sleep 400")
        self.assertIn("max_model_len = 2048", done.stdout)

    def test_a_second_interruption_kills(self):
        before = set(processes())
        probe = subprocess.Popen(self.command("stubborn-hang", "--grace", "600")[:-4] +
                                 ["--grace", "600"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 20
        while len(set(processes()) - before) < 3 and time.monotonic() < until:
            time.sleep(0.05)
        self.assertGreaterEqual(len(set(processes()) - before), 3, "keeper, trainer and child")
        probe.send_signal(signal.SIGINT)
        time.sleep(0.5)
        probe.send_signal(signal.SIGINT)
        probe.communicate(timeout=30)
        self.assertEqual(probe.returncode, 3)
        self.assertEqual(set(processes()) - before, set())

    def test_fifty_deaths(self):
        options = ("--gpus", "1,2,4", "--sp", "1,2", "--linear")
        rest = {"limit": 30000, "more": "--sleep 40 --launches launches"}
        wanted = json.loads(self.run_probe("train", *options, "--log-dir", "whole", "--json",
                                           **rest).stdout)["cells"]
        os.unlink(os.path.join(self.folder, "launches"))
        before = set(processes())
        generator = random.Random(7)
        deaths = 0
        while deaths < 50:
            probe = subprocess.Popen(self.command("train", *options, **rest), cwd=self.folder,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0.02, 0.5))
            if probe.poll() is not None:
                break
            probe.kill()
            probe.wait()
            deaths += 1
        self.assertEqual(deaths, 50, "the hunt was over too soon to be interrupted")
        done = self.run_probe("train", *options, "--json", **rest)
        found = json.loads(done.stdout)["cells"]
        keys = ("gpus", "sp", "state", "max_context", "fails_at")
        self.assertEqual([[c.get(k) for k in keys] for c in found],
                         [[c.get(k) for k in keys] for c in wanted])
        decided = set()
        for cell, context, _, state, outcome in self.attempts():
            self.assertEqual(state, "finished")
            self.assertNotIn((cell, context), decided, "a recorded trial was made again")
            if outcome in ("fits", "gpu_memory"):
                decided.add((cell, context))
        with open(os.path.join(self.folder, "launches")) as file:
            self.assertLessEqual(len(file.readlines()), len(self.attempts()))
        time.sleep(0.2)
        self.assertEqual(set(processes()) - before, set())


FAKES = {
    "sbatch": """
for last; do :; done
for word; do case $word in --output=*) output=${word#--output=} ;; esac; done
echo "$@" >>"$STATE/submitted"
sh "$last" >"$output" 2>&1 & echo $! >"$STATE/pid"
echo 42
""",
    "squeue": 'kill -0 $(cat "$STATE/pid") 2>/dev/null && echo RUNNING',
    "sacct": 'cat "$STATE/end" 2>/dev/null',
    "scontrol": "exit 1",
    "scancel": 'echo cancelled >>"$STATE/cancelled"; kill -9 $(cat "$STATE/pid")',
}


class Slurm(Probe):
    """The same trials through Slurm's commands, played by scripts."""

    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.folder, "state")
        commands = os.path.join(self.folder, "commands")
        os.mkdir(self.state)
        os.mkdir(commands)
        for name, text in FAKES.items():
            path = os.path.join(commands, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + text)
            os.chmod(path, 0o755)
        self.saved = dict(os.environ)
        self.addCleanup(os.environ.update, self.saved)
        os.environ.update(PATH=commands + ":" + os.environ["PATH"], STATE=self.state,
                          FATHOM_SLURM_POLL="0.1")

    def command(self, mode, *options, limit=3000, more=""):
        template = (f"{TRAINER} {mode} --context {{context}} --limit {limit} {more}; code=$?; "
                    f'[ $code = 0 ] && echo "COMPLETED|0:0" >{self.state}/end || '
                    f'echo "FAILED|$code:0" >{self.state}/end; exit $code')
        found = super().command(mode, *options, limit=limit, more=more)
        found[found.index("--command") + 1] = template
        return found + ["--launcher", "slurm"]

    def test_jobs_are_submitted(self):
        self.run_probe("train", "--gpus", "4")
        with open(os.path.join(self.state, "submitted")) as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn("--gpus=4", lines[0])

    def test_a_timeout_cancels_the_job(self):
        self.run_probe("hang", "--timeout", "1", "--tries", "1")
        self.assertEqual(self.outcomes(), [(1024, "timeout")])
        self.assertTrue(os.path.exists(os.path.join(self.state, "cancelled")))


class Ray(Probe):
    """The same through `ray job`, played by a script."""

    def setUp(self):
        super().setUp()
        commands = os.path.join(self.folder, "commands")
        os.mkdir(commands)
        with open(os.path.join(commands, "ray"), "w") as file:
            file.write(f"""#!/bin/sh
case "$2" in
submit) shift 5; exec "$@" ;;
stop) echo "$3" >>{self.folder}/stopped ;;
esac
""")
        os.chmod(os.path.join(commands, "ray"), 0o755)
        saved = os.environ["PATH"]
        self.addCleanup(os.environ.update, {"PATH": saved})
        os.environ["PATH"] = commands + ":" + saved

    def command(self, mode, *options, limit=3000, more=""):
        return super().command(mode, *options, limit=limit, more=more) + ["--launcher", "ray"]

    def test_a_timeout_stops_the_job(self):
        self.run_probe("hang", "--timeout", "1", "--tries", "1")
        self.assertEqual(self.outcomes(), [(1024, "timeout")])
        self.assertTrue(os.path.exists(os.path.join(self.folder, "stopped")))


# Of the classes above these say something about a launcher.
KEPT = ("jobs_are", "timeout_cancels", "timeout_stops", "longest_that_fits", "configuration_error",
        "passing_errors_are_tried")
for launcher in (Slurm, Ray):
    for name in [name for name in dir(launcher) if name.startswith("test_")]:
        if not any(word in name for word in KEPT):
            setattr(launcher, name, None)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
