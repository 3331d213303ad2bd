#!/usr/bin/env python3
"""`fathom probe` from outside: every class of failure, interruptions, and fifty deaths.

Usage: tests/probe/test_probe.py PROGRAM-FOLDER [unittest arguments]
"""
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

PROGRAMS = os.path.abspath(sys.argv.pop(1))
FATHOM = os.path.join(PROGRAMS, "fathom")
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
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


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Probe(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-probe-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def command(self, mode, *options, limit=3000, more=""):
        template = f"exec {TRAINER} {mode} --context {{context}} --limit {limit} {more}"
        defaults = {"--grid": "1024", "--start": "1024", "--grace": "1"}
        given = [word for name, value in defaults.items() if name not in options
                 for word in (name, value)]
        return [FATHOM, "probe", "--engine", "command", "--command", template, *given, *options]

    def run_probe(self, mode, *options, **rest):
        done = subprocess.run(self.command(mode, *options, **rest), cwd=self.folder, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotIn("ERROR: AddressSanitizer", done.stderr)
        return done

    def attempts(self):
        database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
        rows = database.execute("SELECT cell, context, try, state, outcome FROM attempt ORDER BY id")
        return list(rows)

    def column(self, name):
        database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
        return [row[0] for row in database.execute(f"SELECT {name} FROM attempt ORDER BY id")]

    def shell(self, script, *options):
        """A probe whose trainer is a few lines of shell."""
        command = self.command("train", *options)
        command[command.index("--command") + 1] = ": {context}; " + script
        return command

    def run_shell(self, script, *options):
        return subprocess.run(self.shell(script, *options), cwd=self.folder, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def start(self, command):
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def wait_until(self, true, what):
        until = time.monotonic() + 20
        while not true():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.02)

    def in_log(self, text, name="model_len-1024.log"):
        path = os.path.join(self.folder, "logs/model/gpu-1/sp-1", name)
        if not os.path.exists(path):
            return False
        with open(path) as file:
            return text in file.read()

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
        self.assertIn("not tried: Qwen3-4B, 1 GPU, sp 2: ", done.stdout)

    def test_a_long_command_is_shown_whole(self):
        done = self.run_probe("train", "--dry-run", more="x" * 2000)
        self.assertIn("x" * 2000, done.stderr + done.stdout)

    def test_a_pipe_hides_no_failure(self):
        template = "python3 -c 'import no_such_module' {context} 2>&1 | cat"
        done = subprocess.run([FATHOM, "probe", "--engine", "command", "--command", template], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertEqual([outcome for _, outcome in self.outcomes()], ["configuration"])

    def test_what_is_no_loss_is_refused(self):
        for loss in ("foo", "chunked", "chunked:0", "chunked:abc"):
            done = self.run_probe("train", "--loss", loss, "--dry-run")
            self.assertEqual(done.returncode, 2)
            self.assertIn("loss must be one of full|chunked:N|none|liger", done.stderr)

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

    def test_another_machine_counts_for_itself(self):
        fake = {"LD_LIBRARY_PATH": os.path.join(PROGRAMS, "tests", "fake")}
        for machine in ({}, {**fake, "FAKE_NVML": "twins"}, fake):
            with self.subTest(machine), unittest.mock.patch.dict(os.environ, machine):
                cell = json.loads(self.run_probe("train", "--json").stdout)["cells"][0]
                self.assertEqual((cell["known"], cell["launches"]), (0, 3))
                cell = json.loads(self.run_probe("train", "--json").stdout)["cells"][0]
                self.assertEqual((cell["known"], cell["launches"]), (3, 0))

    def test_an_engine_that_cannot_play_another_card(self):
        fake = {"LD_LIBRARY_PATH": os.path.join(PROGRAMS, "tests", "fake"), "FAKE_NVML": "twins"}
        for card, status in (("A100-80G", 2), ("H100-80G", 0)):
            done = subprocess.run([FATHOM, "probe", "--engine", "trinity", "--model", "Qwen3-0.6B",
                                   "--as", card, "--dry-run"], cwd=self.folder, text=True,
                                  capture_output=True, env={**os.environ, **fake})
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr, "")

    def test_another_grid_invents_nothing(self):
        self.run_probe("train", "--grid", "4096", "--start", "4096", limit=16500)
        options = ("--grid", "3000", "--start", "3000", "--json")
        again = json.loads(self.run_probe("train", *options, limit=16500).stdout)["cells"][0]
        self.assertEqual((again["max_context"], again["fails_at"]), (15000, 18000))
        fresh = self.run_probe("train", *options, "--log-dir", "fresh", limit=16500)
        self.assertEqual(json.loads(fresh.stdout)["cells"][0]["max_context"], 15000)

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

    def test_an_exit_status_of_0_hides_no_failure(self):
        done = self.run_probe("hidden")
        self.assertIn("max_model_len = 2048", done.stdout)
        self.assertEqual(self.outcomes()[-1], (3072, "gpu_memory"))
        shutil.rmtree(os.path.join(self.folder, "logs"))
        piped = self.command("train")
        place = piped.index("--command") + 1
        piped[place] = piped[place].removeprefix("exec ") + " | tee x.log"
        done = subprocess.run(piped, cwd=self.folder, timeout=100, capture_output=True, text=True)
        self.assertIn("max_model_len = 2048", done.stdout)

    def test_trinity_fails_by_what_it_says(self):
        commands = os.path.join(self.folder, "commands")
        os.mkdir(commands)
        for said, outcome in (("all is well", "fits"), ("Explorer or Trainer failed:", "failed"),
                              ("Traceback (most recent call last):\nValueError: x", "configuration"),
                              ("torch.OutOfMemoryError: CUDA out of memory.", "gpu_memory")):
            with open(os.path.join(commands, "python"), "w") as file:
                file.write(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
            os.chmod(file.name, 0o755)
            shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
            with self.subTest(said):
                subprocess.run([FATHOM, "probe", "--engine", "trinity", "--model", "Qwen3-0.6B",
                                "--until", "4096", "--python", file.name], cwd=self.folder,
                               capture_output=True)
                self.assertEqual(self.outcomes(), [(4096, outcome)])

    def test_the_published_command_line(self):
        kept = os.path.join(self.folder, "kept")
        os.mkdir(kept)
        os.mkdir(os.path.join(self.folder, "plug-ins"))
        for name, text in (("mine", "in it"), ("my.yaml", "")):
            with open(os.path.join(kept, name), "w") as file:
                file.write(text)
        python = os.path.join(self.folder, "python")
        with open(python, "w") as file:
            file.write(f'#!/bin/sh\necho "$MODEL_PATH $GPU_NUM $SP_NUM $MAX_MODEL_LEN $TRAINER_STRATEGY '
                       f'$TRINITY_CHECKPOINT_ROOT_DIR $*" >>{self.folder}/told\n'
                       'mkdir -p "$TRINITY_CHECKPOINT_ROOT_DIR/x"\n[ "$MAX_MODEL_LEN" -le 8192 ] || '
                       '{ echo "torch.OutOfMemoryError: CUDA out of memory."; exit 1; }\n')
        os.chmod(python, 0o755)
        done = subprocess.run(
            [FATHOM, "probe", *("--model_path Qwen/Qwen3-0.6B --test_sp_num 1 2 --start_length 8192 --log_dir "
                                "./results --trainer_strategy fsdp2 --timeout 3600 --config kept/my.yaml "
                                "--plugin-dir plug-ins").split(), "--python", python],
            cwd=self.folder, capture_output=True, text=True, env={**os.environ, "TRINITY_CHECKPOINT_ROOT_DIR": kept})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("model_name")]
        wanted = "model_name = Qwen3-0.6B, trainer_gpu_num = {}, sp_num = {}, max_model_len = 8192"
        self.assertEqual(lines, [wanted.format(gpus, sp)
                                 for gpus, sp in ((1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (6, 1), (6, 2))])
        with open(os.path.join(self.folder, "told")) as file:
            told = file.read().splitlines()
        self.assertEqual(told[0], f"Qwen/Qwen3-0.6B 2 1 8192 fsdp2 {kept}/fathom-trial -u "
                                  "./results/share/trinity_trial.py --config kept/my.yaml --plugin-dir plug-ins")
        self.assertEqual(len(told), 14)
        self.assertEqual(sorted(os.listdir(kept)), ["mine", "my.yaml"])

    def test_what_a_trainer_catches_is_no_failure(self):
        for mode in ("halves", "done"):
            with self.subTest(mode):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                self.assertIn("max_model_len = 2048", self.run_probe(mode).stdout)

    def test_memory_that_others_took_decides_nothing(self):
        done = self.run_probe("taken", more="--failures 1 --launches launches")
        self.assertIn("max_model_len = 2048", done.stdout)
        self.assertEqual(self.outcomes()[:2], [(1024, "memory_taken"), (1024, "fits")])
        shutil.rmtree(os.path.join(self.folder, "logs"))
        done = self.run_probe("taken", "--tries", "2", more="--failures 9 --launches again")
        self.assertEqual(done.returncode, 3)
        self.assertIn("undecided: GPU memory taken by other processes", done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "memory_taken")] * 2)

    def test_a_trial_that_ran_out_and_hangs_is_ended(self):
        began = time.monotonic()
        done = self.run_probe("oom-hang", "--timeout", "90")
        self.assertIn("max_model_len = 2048", done.stdout)
        self.assertEqual(self.outcomes()[-1], (3072, "gpu_memory"))
        self.assertLess(time.monotonic() - began, 20)

    def test_a_trial_that_ran_out_and_goes_on_is_not_ended(self):
        done = self.run_probe("halves-aloud", "--grace", "2", "--until", "1024",
                              more="--sleep 5000")
        self.assertIn("max_model_len = 1024", done.stdout)
        shutil.rmtree(os.path.join(self.folder, "logs"))
        done = self.run_probe("halves", "--until", "1024", more="--sleep 3000")
        self.assertIn("max_model_len = 1024", done.stdout)

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
        command[command.index("--command") + 1] = (
            f": {{context}}; echo '{start}'; echo '{line}'; exec sleep 60")
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
        done = subprocess.run([FATHOM, "probe", "--engine", "command", "--command",
                               "/no/trainer {context}"],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertIn("exit status 127, its last line: ", self.one_sentence(done))
        self.assertIn("/no/trainer: No such file or directory", done.stderr)
        self.assertEqual(self.outcomes()[0][1], "configuration")

    def test_what_ended_a_trial_is_said(self):
        cases = {"echo loading; kill -SEGV $$": ("failed", "ended by SIGSEGV, its last line: loading"),
                 "printf 'a\\033[31mb\\033[0m\\rlast\\n\\n'; exit 3":
                     ("failed", "exit status 3, its last line: last"),
                 "exit 126": ("configuration", "exit status 126"),
                 "exec /no/such/python": ("configuration", "/no/such/python: No such file")}
        for script, (outcome, words) in cases.items():
            with self.subTest(script):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                said = self.one_sentence(self.run_shell(script))
                self.assertIn(words, said)
                self.assertEqual("another length would not change it" in said, outcome == "configuration")
                self.assertEqual(self.outcomes(), [(1024, outcome)])

    def test_what_passes_by_itself_is_tried_again(self):
        port = ("RuntimeError: The server socket has failed to listen on any local network address. port: "
                "29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use.")
        cases = {"kill -TERM $$": ("stopped", "stopped from outside"),
                 f"echo '{port}'; exit 1": ("rendezvous", "ranks not brought together")}
        for script, (outcome, words) in cases.items():
            with self.subTest(script):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                done = self.run_shell(script, "--tries", "2")
                self.assertIn(words, done.stderr)
                self.assertNotIn("timeout", done.stdout + done.stderr)
                self.assertEqual(self.outcomes(), [(1024, outcome)] * 2)

    # ---------------------------------------------------------------- values and the shell

    HOSTILE = ["$(touch owned)", "`touch owned`", "; touch owned #", "' ; touch owned ; '", '" ; touch owned ; "',
               "\n touch owned \n", "EOF\ntouch owned\n", "a b", "*", "~", "x&touch owned"]
    TEMPLATES = [": $(basename {model}) {context}", ": `basename {model}` {context}", "# don't\n: {model} {context}",
                 "cat <<EOF\n{model} {context}\nEOF", ": \\{model} {context}", ": \"$(basename \"{model}\")\" {context}",
                 ": {model} {context}", ": '{model}' {context}", ": \"{model}\" {context}", ": $'{model}' {context}",
                 ": $(({context})) {log}", "eval : {model} {context}"]

    def test_no_name_runs_as_a_command(self):
        tiny = os.path.join(TESTS, "cli/files/tiny")
        for number, name in enumerate(self.HOSTILE):
            folder = os.path.join(self.folder, str(number), name)
            shutil.copytree(tiny, folder)
            for template in self.TEMPLATES if number < 4 else self.TEMPLATES[::6]:
                with self.subTest(name=name, template=template):
                    done = subprocess.run(
                        [FATHOM, "probe", "--engine", "command", "--command", template, "--until", "4k",
                         "--resume", "off", "--model=" + folder], cwd=self.folder, capture_output=True, text=True)
                    self.assertFalse(os.path.exists(os.path.join(self.folder, "owned")))
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("}: its value has a ", done.stderr)
                    self.assertIn("; write \"$FATHOM_", done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_every_value_is_in_the_environment(self):
        tiny = os.path.join(TESTS, "cli/files/tiny")
        for number, name in enumerate(self.HOSTILE):
            folder = os.path.join(self.folder, str(number), name)
            shutil.copytree(tiny, folder)
            script = ('printf "%s\\0" "$FATHOM_MODEL" "${FATHOM_LOG}" "$FATHOM_CONTEXT" $FATHOM_GPUS $FATHOM_SP $FATHOM_CP '
                      '$FATHOM_TRY $FATHOM_YARN_FACTOR $FATHOM_LIMIT_BYTES "$(basename "$FATHOM_MODEL")" >told')
            with self.subTest(name):
                done = subprocess.run(
                    [FATHOM, "probe", "--engine", "command", "--command", script, "--until", "4k", "--model=" + folder,
                     "--log-dir", f"logs {number}"], cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(os.path.join(self.folder, "told"), newline="") as file:
                    told = file.read().split("\0")
                self.assertEqual(told, [folder, f"logs {number}/{name}/gpu-1/sp-1/model_len-4096.log", "4096", "1", "1",
                                        "1", "1", "1", "0", name.rstrip("\n"), ""])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "owned")))

    # ---------------------------------------------------------------- who ends whom

    def test_a_keeper_that_is_killed(self):
        for grace in ("1", "30"):
            with self.subTest(grace):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                before = set(processes())
                probe = self.start(self.command("stubborn-hang", "--timeout", "3")[:-4] +
                                   ["--grace", grace, "--timeout", "3"])
                self.wait_until(lambda: self.in_log("waiting"), "the trainer runs")
                keeper = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db")).execute(
                    "SELECT keeper_pid FROM attempt").fetchone()[0]
                os.kill(keeper, signal.SIGKILL)
                time.sleep(0.5)
                for _ in range(2 if grace == "30" else 0):
                    probe.send_signal(signal.SIGINT)
                    time.sleep(0.3)
                _, said = probe.communicate(timeout=20)
                self.assertEqual(probe.returncode, 3)
                self.assertEqual(len(said.splitlines()), 1, said)
                self.assertEqual(self.outcomes(), [(1024, "failed")])
                self.assertEqual(self.column("detail"), ["the process that kept this trial was killed"])
                self.assertEqual(set(processes()) - before, set())

    def keeper(self):
        return self.rows("SELECT keeper_pid FROM attempt ORDER BY id DESC LIMIT 1")[0][0]

    def test_a_parent_that_ignores_its_children(self):
        done = subprocess.run(self.command("train", "--timeout", "5"), cwd=self.folder, capture_output=True, text=True,
                              timeout=60, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "fits"), (2048, "fits"), (3072, "gpu_memory")])

    def test_a_terminal_that_hangs_up(self):
        for handler, status in ((signal.SIG_DFL, 3), (signal.SIG_IGN, 0)):  # the second is what nohup does
            with self.subTest(handler):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                probe = subprocess.Popen(self.shell("echo begun; sleep 2", "--until", "1024"), cwd=self.folder,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         preexec_fn=lambda: signal.signal(signal.SIGHUP, handler))
                self.wait_until(lambda: self.in_log("begun"), "the trainer runs")
                probe.send_signal(signal.SIGHUP)
                self.assertEqual(probe.wait(20), status)

    def test_a_keeper_that_is_stopped(self):
        before = set(processes())
        for mode, signals, outcome in (("hang", 1, "interrupted"), ("stubborn-hang", 2, "interrupted"),
                                       ("hang", 0, "timeout")):
            with self.subTest((mode, signals)):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                probe = self.start(self.command(mode, "--timeout", "3" if signals == 0 else "100", "--tries", "1"))
                self.addCleanup(probe.kill)
                self.wait_until(lambda: self.in_log("waiting"), "the trainer runs")
                os.kill(self.keeper(), signal.SIGSTOP)
                for _ in range(signals):
                    probe.send_signal(signal.SIGINT)
                    time.sleep(0.3)
                probe.communicate(timeout=20)
                self.assertEqual(probe.returncode, 3)
                self.assertEqual(self.outcomes(), [(1024, outcome)])
                self.assertEqual(set(processes()) - before, set())

    def test_a_keeper_that_is_stopped_again_and_again(self):
        before = set(processes())
        probe = self.start(self.command("hang"))
        self.addCleanup(probe.kill)
        self.wait_until(lambda: self.in_log("waiting"), "the trainer runs")
        keeper = self.keeper()
        stopper = subprocess.Popen([sys.executable, "-c", "import os, signal, sys\nwhile True: os.kill("
                                    f"{keeper}, signal.SIGSTOP)"], stderr=subprocess.DEVNULL)
        self.addCleanup(stopper.wait)
        self.addCleanup(stopper.kill)
        time.sleep(0.3)
        probe.send_signal(signal.SIGINT)
        time.sleep(0.3)
        probe.send_signal(signal.SIGINT)
        probe.communicate(timeout=30)
        self.assertEqual(probe.returncode, 3)
        self.assertEqual(set(processes()) - before, set())

    def test_a_stopped_keeper_of_a_killed_fathom(self):
        before = set(processes())
        probe = self.start(self.command("hang"))
        self.wait_until(lambda: self.in_log("waiting"), "the trainer runs")
        os.kill(self.keeper(), signal.SIGSTOP)
        probe.kill()
        probe.communicate()
        done = self.run_probe("train", "--until", "1024")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(processes()) - before, set())

    def kill_both(self, command, begun):
        """Fathom and its keeper die at once, so that nobody ends the trial."""
        probe = self.start(command)
        self.wait_until(begun, "the trainer runs")
        self.wait_until(lambda: self.rows("SELECT group_pid FROM attempt")[0][0], "its group is written down")
        for action in (signal.SIGSTOP, signal.SIGKILL):
            os.kill(probe.pid, action)
            os.kill(self.keeper(), action)
        probe.communicate()

    def test_a_trial_that_nobody_ends_is_found_and_ended(self):
        before = set(processes())
        self.addCleanup(self.kill_trainers, before)
        self.kill_both(self.command("stubborn-hang"), lambda: self.in_log("waiting"))
        left = set(processes()) - before
        self.assertTrue(left)
        for forget in (None, "group_pid = NULL, group_started = NULL", "mark = ''"):
            with self.subTest(forget):
                if forget:
                    database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
                    whole = database.execute("SELECT group_pid, group_started, mark FROM attempt").fetchone()
                    database.execute(f"UPDATE attempt SET {forget}")
                    database.commit()
                said = self.one_sentence(self.run_probe("train"))
                self.assertIn("the trial of 1024 tokens that a killed fathom left still runs: process ", said)
                self.assertRegex(said, "process (" + "|".join(map(str, left)) + ") ")
                self.assertIn("; its log is logs/model/gpu-1/sp-1/model_len-1024.log; --end-running ends it", said)
                self.assertEqual(set(processes()) - before, left)
                self.assertEqual(self.outcomes(), [(1024, None)], "nothing was started beside it")
                if forget:
                    database.execute("UPDATE attempt SET group_pid = ?, group_started = ?, mark = ?", whole)
                    database.commit()
                    database.close()
        done = self.run_probe("train", "--until", "1024", "--end-running")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ended the trial of 1024 tokens that a killed fathom left: process ", done.stdout)
        self.assertEqual(set(processes()) - before, set())
        self.assertEqual(self.outcomes(), [(1024, "interrupted"), (1024, "fits")])
        again = self.run_probe("train", "--until", "1024", "--end-running")
        self.assertNotIn("ended the trial", again.stdout, "there is none any more")

    def test_a_trial_without_its_environment_is_found_too(self):
        command = self.shell("echo begun; exec env -i sleep 60")
        self.kill_both(command, lambda: self.in_log("begun"))
        group = self.rows("SELECT group_pid FROM attempt")[0][0]
        listed = subprocess.run([FATHOM, "probe", "--list"], cwd=self.folder, capture_output=True, text=True).stdout
        self.assertIn(" running ", listed.splitlines()[1])
        self.assertIn(f"process {group} (sleep)", self.one_sentence(self.run_probe("train")))
        self.assertEqual(self.run_probe("train", "--until", "1024", "--end-running").returncode, 0)
        self.assertFalse(lives(group))

    def test_no_strangers_process_is_taken_for_a_trial(self):
        self.kill_both(self.command("hang"), lambda: self.in_log("waiting"))
        group = self.rows("SELECT group_pid FROM attempt")[0][0]
        os.kill(group, signal.SIGKILL)
        stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        database = sqlite3.connect(os.path.join(self.folder, "logs", "probe.db"))
        database.execute("UPDATE attempt SET group_pid = ?", (stranger.pid,))
        database.commit()
        database.close()
        done = self.run_probe("train", "--until", "1024", "--end-running")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("left", done.stdout)
        self.assertIsNone(stranger.poll())

    def test_a_result_counts_although_the_grace_goes_on(self):
        options = ("--until", "1024", "--timeout", "1", "--grace", "3")
        command = self.command("stubborn", more="--sleep 300")
        command[command.index("--grace"):] = options
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "fits")])
        shutil.rmtree(os.path.join(self.folder, "logs"))
        probe = self.start(command)
        self.wait_until(lambda: self.in_log('"done"'), "the trainer is done")
        time.sleep(0.3)
        probe.send_signal(signal.SIGINT)
        probe.communicate(timeout=30)
        self.assertEqual(self.outcomes(), [(1024, "fits")])

    def test_an_interruption_in_the_grace_ends_the_hunt(self):
        command = self.command("stubborn", more="--sleep 100")
        command[command.index("--grace"):] = ["--grace", "2"]
        probe = self.start(command)
        self.wait_until(lambda: self.in_log('"done"'), "the trainer is done")
        time.sleep(0.3)
        probe.send_signal(signal.SIGINT)
        _, said = probe.communicate(timeout=30)
        self.assertEqual(probe.returncode, 3)
        self.assertIn("interrupted; every finished trial is kept", said)
        self.assertEqual(self.outcomes(), [(1024, "fits")])

    def kill_trainers(self, before):
        for pid in set(processes()) - before:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() == "fake_trainer":
                    os.kill(pid, signal.SIGKILL)

    def test_a_trial_of_a_killed_fathom_is_waited_for(self):
        before = set(processes())
        self.addCleanup(self.kill_trainers, before)
        command = self.command("stubborn-hang")
        command[command.index("--grace"):] = ["--grace", "600"]
        probe = self.start(command)
        self.wait_until(lambda: self.in_log("waiting"), "the trainer runs")
        probe.kill()
        probe.communicate()
        second = self.start(self.command("train"))
        self.assertIn("a trial of a fathom that was killed is being ended", second.stdout.readline())
        second.send_signal(signal.SIGINT)
        _, said = second.communicate(timeout=10)
        self.assertIn("interrupted", said)
        self.assertEqual(len(self.column("id")), 1, "nothing was started beside it")
        third = self.start(self.command("train"))
        third.stdout.readline()
        self.kill_trainers(before)
        found, _ = third.communicate(timeout=30)
        self.assertIn("max_model_len = 2048", found)

    # ---------------------------------------------------------------- logs

    def test_no_log_is_written_over(self):
        self.run_probe("train", "--until", "1024")
        self.run_probe("train", "--until", "1024", "--resume", "off")
        self.run_probe("train", "--until", "1024", more="--sleep 1")
        self.run_shell("test -e again || { touch again; echo 'NCCL error: unhandled system error'; exit 1; }",
                       "--until", "1024")
        stem = "logs/model/gpu-1/sp-1/model_len-1024"
        self.assertEqual(self.column("log"), [f"{stem}.log"] + [f"{stem}.{i}.log" for i in range(2, 6)])
        self.assertTrue(self.in_log("NCCL error", "model_len-1024.4.log"))
        os.unlink(os.path.join(self.folder, f"{stem}.log"))
        self.run_probe("train", "--until", "1024", "--resume", "off")
        self.assertEqual(self.column("log")[-1], f"{stem}.6.log", "the first is still the first trial's")

    def test_models_of_one_name(self):
        tiny = os.path.join(TESTS, "cli/files/tiny")
        for name in ("x/m", "y/m"):
            shutil.copytree(tiny, os.path.join(self.folder, name))
            self.run_probe("train", "--until", "1024", "--model", name)
        logs = [f"logs/m/gpu-1/sp-1/model_len-1024{part}.log" for part in ("", ".2")]
        self.assertEqual(self.column("log"), logs)

    def test_models_without_a_name(self):
        tiny = os.path.join(TESTS, "cli/files/tiny")
        shutil.copytree(tiny, os.path.join(self.folder, "small"))
        os.mkdir(os.path.join(self.folder, "small", "inside"))
        for place, model in (("small", "."), ("small/inside", ".."), ("small/inside", "../.")):
            with self.subTest(model):
                subprocess.run(self.command("train", "--until", "1024", "--model", model),
                               cwd=os.path.join(self.folder, place), capture_output=True, timeout=60)
                log = os.path.join(self.folder, place, "logs/small/gpu-1/sp-1/model_len-1024.log")
                self.assertTrue(os.path.exists(log))

    def test_tries_count_on_after_an_interruption(self):
        script = ("echo launch >>launches; case $(wc -l <launches) in "
                  "1) echo 'NCCL error: unhandled system error'; exit 1 ;; 2) echo hangs; sleep 60 ;; esac")
        probe = self.start(self.shell(script, "--until", "1024"))
        self.wait_until(lambda: self.in_log("hangs", "model_len-1024.2.log"), "the second try runs")
        probe.send_signal(signal.SIGINT)
        probe.communicate(timeout=20)
        done = self.run_shell(script, "--until", "1024", "--json")
        self.assertEqual(json.loads(done.stdout)["cells"][0]["known"], 0)
        self.assertEqual([(a[2], a[4]) for a in self.attempts()],
                         [(1, "device_error"), (2, "interrupted"), (2, "fits")])
        self.assertEqual(self.column("timeout_ms"), [2400000, 3120000, 3120000])

    # ---------------------------------------------------------------- the torch worker's server

    def torch(self, script, *options):
        """The torch engine with a Python that is played by a script: -u WORKER --serve|--ask SOCKET [TRIAL]"""
        path = os.path.join(self.folder, "python")
        with open(path, "w") as file:
            file.write("#!/bin/sh\ncase $3 in\n" + script + "\nesac\n")
        os.chmod(path, 0o755)
        os.makedirs(os.path.join(self.folder, "tmp"), exist_ok=True)
        return ["env", "TMPDIR=" + os.path.join(self.folder, "tmp"), FATHOM, "probe", "--engine", "torch",
                "--python", "./python", "--model", "Qwen3-0.6B", "--as", "A100-80G", "--grid", "1024",
                "--start", "1024", "--until", "1024", "--grace", "1", *options]

    def left_in_tmp(self):
        return os.listdir(os.path.join(self.folder, "tmp"))

    READY = """--serve) echo $$ >>servers; touch "$4" "${4%/*}/store-7"
        echo '{"fathom": "ready", "torch": "2.11.0"}'; exec sleep 1000 ;;"""

    def test_an_interruption_while_torch_is_imported(self):
        probe = self.start(self.torch("--serve) exec sleep 100 ;;"))
        self.wait_until(lambda: os.path.exists(os.path.join(self.folder, "logs/torch_server.log")), "it starts")
        time.sleep(0.3)
        probe.send_signal(signal.SIGINT)
        _, said = probe.communicate(timeout=20)
        self.assertEqual((probe.returncode, said), (3, "fathom: interrupted before the first trial\n"))
        self.assertEqual(self.left_in_tmp(), [])

    def test_what_a_killed_fathom_leaves_is_used_again(self):
        first = subprocess.Popen(self.torch(self.READY + "--ask) echo asked; exec sleep 100 ;;"), cwd=self.folder,
                                 stdout=subprocess.DEVNULL)
        self.wait_until(lambda: os.path.exists(os.path.join(self.folder, "servers")), "the server runs")
        time.sleep(0.5)
        first.kill()
        first.wait()
        self.assertEqual(len(self.left_in_tmp()), 1)
        done = subprocess.run(self.torch(self.READY + "--ask) exit 0 ;;"), cwd=self.folder, timeout=60,
                              stdout=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.left_in_tmp(), [])

    def test_the_servers_folder_is_nobody_elses(self):
        look = self.READY + """--ask) stat -c '%a %u' "${4%/*}" >>seen; echo "${4%/*}" >>names ;;"""
        os.makedirs(os.path.join(self.folder, "tmp"))
        blocked = []
        for turn in range(2):
            done = subprocess.run(self.torch(look, "--resume", "off"), cwd=self.folder, timeout=60,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            status = os.stat(os.path.join(self.folder, "logs/probe.db"))
            if turn == 0:  # what another user could guess and take beforehand
                for name in (f"fathom-{os.getuid()}-{status.st_dev:x}-{status.st_ino:x}",
                             f"fathom-{status.st_dev:x}-{status.st_ino:x}-other"):
                    blocked.append(name)
                    os.makedirs(os.path.join(self.folder, "tmp", name, "kept"), mode=0o755)
        with open(os.path.join(self.folder, "seen")) as file:
            self.assertEqual(file.read(), f"700 {os.getuid()}\n" * 2)
        with open(os.path.join(self.folder, "names")) as file:
            self.assertEqual(len(set(file)), 2)
        self.assertEqual(sorted(self.left_in_tmp()), sorted(blocked))
        for name in blocked:
            self.assertEqual(os.listdir(os.path.join(self.folder, "tmp", name)), ["kept"])

    def test_a_server_is_ready_after_any_noise(self):
        for noise in ("yes 'a warning of some library' | head -c 3000000", "printf 'no end of this line'"):
            with self.subTest(noise):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                script = self.READY.replace("echo '{", noise + "; echo '{") + "--ask) exit 0 ;;"
                done = subprocess.run(self.torch(script), cwd=self.folder, timeout=60, capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.outcomes(), [(1024, "fits")])

    def test_what_a_server_said_last_is_told_after_any_noise(self):
        dies = "--serve) yes 'a warning' | head -c 3000000; echo; echo 'No module named torch'; exit 1 ;;"
        done = subprocess.run(self.torch(dies), cwd=self.folder, timeout=60, capture_output=True, text=True)
        self.assertIn("the torch worker did not start: No module named torch", self.one_sentence(done))

    def test_a_server_that_nobody_ends_is_found(self):
        first = self.start(self.torch(self.READY + "--ask) echo asked; exec sleep 100 ;;"))
        log = os.path.join(self.folder, "logs/Qwen3-0.6B/gpu-1/sp-1/model_len-1024.log")
        self.wait_until(lambda: os.path.exists(log) and os.path.getsize(log), "the trial runs")
        with open(f"/proc/{first.pid}/task/{first.pid}/children") as file:
            keepers = [int(pid) for pid in file.read().split()]
        self.assertEqual(len(keepers), 2, "the trial's and the server's")
        for action in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (first.pid, *keepers):
                os.kill(pid, action)
        first.communicate()
        with open(os.path.join(self.folder, "servers")) as file:
            server = int(file.read())
        well = self.torch(self.READY + "--ask) exit 0 ;;")
        done = subprocess.run(well, cwd=self.folder, timeout=60, capture_output=True, text=True)
        self.assertIn("still runs: process ", self.one_sentence(done))
        done = subprocess.run(well + ["--end-running"], cwd=self.folder, timeout=60, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(lives(server))

    def test_a_server_that_is_killed_is_started_once_more(self):
        dies = self.READY + """--ask) kill -9 $(tail -n 1 servers); sleep 0.2; [ -e well ] && exit 0
            [ -e often ] || touch well
            echo 'torch_worker: the server ended before its trial did' >&2; exit 143 ;;"""
        done = subprocess.run(self.torch(dies), cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the torch worker's server was killed; it is started again\n", done.stdout)
        self.assertEqual(self.outcomes(), [(1024, "stopped"), (1024, "fits")])
        shutil.rmtree(os.path.join(self.folder, "logs"))
        os.unlink(os.path.join(self.folder, "well"))
        open(os.path.join(self.folder, "often"), "w").close()
        done = subprocess.run(self.torch(dies), cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertIn("the torch worker's server was killed twice", self.one_sentence(done))
        self.assertEqual(self.left_in_tmp(), [])

    def test_a_python_that_is_not_there(self):
        command = self.torch("--serve) exit 0 ;;")
        command[command.index("./python")] = "nosuch"
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'nosuch' cannot be started (No such file or directory)", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    # ---------------------------------------------------------------- what Fathom itself runs into

    def test_a_disk_that_is_nearly_full(self):
        disk = os.path.join(self.folder, "logs")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk],
                          stderr=subprocess.DEVNULL).returncode:
            return self.fill_a_disk_in_play()
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk])
        said = set()
        for kept in range(0, 400, 20):
            for name in os.listdir(disk):
                path = os.path.join(disk, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            with open(os.path.join(disk, "filling"), "wb") as file:
                file.write(b"x" * (2048 - kept) * 1024)
            done = self.run_probe("train", "--until", "1024")
            if done.returncode:
                said.add(self.one_sentence(done).rpartition(": ")[2])
            listed = subprocess.run([FATHOM, "probe", "--list"], cwd=self.folder, stdout=subprocess.PIPE, text=True,
                                    stderr=subprocess.DEVNULL, timeout=60)
            self.assertNotIn(" running ", listed.stdout)
        self.assertLessEqual(len(said), 3)
        for sentence in said:
            self.assertIn("the disk is full, so ", sentence)
        os.unlink(os.path.join(disk, "filling"))
        self.assertEqual(self.run_probe("train").returncode, 0)
        self.assertNotIn("running", self.column("state"))

    def fill_a_disk_in_play(self):
        """For users who may mount nothing: from the n-th write on there is no space left, whatever is written to."""
        words = self.command("train", "--until", "1024")
        words[0] = os.path.join(PROGRAMS, "tests", "fathom_faults")
        report = os.path.join(self.folder, "report")
        failed = 0
        for n in range(1, 80, 4):
            shutil.rmtree(os.path.join(self.folder, "logs"))
            done = subprocess.run(words, cwd=self.folder, timeout=100, capture_output=True, text=True,
                                  env={**os.environ, "FAULT": f"write:{n}+", "FAULT_REPORT": report})
            if done.returncode:
                self.assertRegex(self.one_sentence(done), "the disk is full, so |No space left on device")
            failed += done.returncode != 0
        self.assertGreater(failed, 5)
        self.assertTrue(os.path.exists(report))
        self.assertEqual(self.run_probe("train").returncode, 0)
        self.assertNotIn("running", self.column("state"))

    def one_sentence(self, done):
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_a_log_on_a_full_disk(self):
        folder = os.path.join(self.folder, "logs/model/gpu-1/sp-1")
        os.makedirs(folder)
        os.symlink("/dev/full", os.path.join(folder, "model_len-1024.log"))
        done = self.run_probe("train")
        self.assertIn("the disk is full, so this log cannot be written", self.one_sentence(done))
        self.assertIn("1 launches now", done.stdout)
        self.assertEqual(self.outcomes(), [(1024, "disk")])
        self.assertIn("the disk is full", self.column("detail")[0])

    def test_a_folder_that_may_not_be_written(self):
        said = self.one_sentence(self.run_probe("train", "--log-dir", "/proc/1/logs"))
        self.assertIn("/proc/1/logs", said)

    def test_a_folder_that_looks_like_an_option(self):
        done = self.run_probe("train", "--until", "1024", "--log-dir", "-x")
        self.assertEqual(done.returncode, 0, done.stderr)
        command = self.torch(self.READY + '--ask) case $2 in -*) exit 9 ;; esac ;;', "--log-dir", "-y")
        done = subprocess.run(command, cwd=self.folder, timeout=60, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "-y/torch_server.log")) as file:
            self.assertIn("ready", file.read())

    def listed(self, *options):
        done = subprocess.run([FATHOM, "probe", "--list", *options], cwd=self.folder, capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_list_knows_what_runs(self):
        probe = subprocess.Popen(self.command("hang", "--grace", "5"), cwd=self.folder, stdout=subprocess.DEVNULL)
        self.wait_until(lambda: self.in_log("waiting"), "it runs")
        self.assertIn(" running ", self.listed())
        keeper, = sqlite3.connect(os.path.join(self.folder, "logs/probe.db")).execute(
            "SELECT keeper_pid FROM attempt").fetchone()
        probe.kill()
        probe.wait()
        self.wait_until(lambda: keeper not in processes(), "its keeper has ended it")
        self.assertNotIn(" running ", self.listed())
        self.assertIn(" interrupted ", self.listed())
        self.assertEqual(self.outcomes(), [(1024, None)])  # reading changes nothing

    def limited(self, command, size):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, preexec_fn=limit)

    def test_a_limit_on_files(self):
        said = set()
        for size in (0, 1000, 4096, 8192, 16384, 33000, 41000, 50000, 60000, 75000, 100000):
            with self.subTest(size):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                done = self.limited(self.command("train", "--until", "1024"), size)
                if done.returncode:
                    said.add(self.one_sentence(done).rpartition(": ")[2])
                if os.path.exists(os.path.join(self.folder, "logs/probe.db")) and done.returncode:
                    listed = subprocess.run([FATHOM, "probe", "--list"], cwd=self.folder, capture_output=True,
                                            text=True, timeout=60)
                    self.assertNotIn("running", listed.stdout)
                self.assertEqual(self.run_probe("train", "--until", "1024").returncode, 0)
                self.assertNotIn("running", self.column("state"))
        self.assertTrue(said)
        for sentence in said:
            self.assertTrue("ulimit" in sentence or "File too large" in sentence, sentence)

    def test_a_log_that_may_not_grow(self):
        done = self.limited(self.command("log", "--until", "1024", more="--bytes 3000000"), 1000000)
        self.assertIn("this log cannot be written (File too large)", self.one_sentence(done))
        self.assertEqual(self.outcomes(), [(1024, "disk")])
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "logs/model/gpu-1/sp-1/model_len-1024.log")),
                         1000000)

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
        second = os.path.join(self.folder, "logs/model/gpu-1/sp-1/model_len-2048.log")
        self.wait_until(lambda: os.path.exists(second), "the second trial runs")
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
        probe = subprocess.Popen(self.command("stubborn-hang", "--grace", "600"), cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until, steady = time.monotonic() + 20, 0
        while steady < 5 and time.monotonic() < until:  # a child that has yet to become the shell looks like its keeper
            steady = steady + 1 if len(set(processes()) - before) >= 3 else 0
            time.sleep(0.05)
        self.assertEqual(steady, 5, "keeper, trainer and child")
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


    def test_a_limit_reaches_trials_that_are_not_modelled(self):
        for options, wanted in ((("--memory-limit", "10GiB"), 10 << 30),
                                (("--as", "A100-80G"), 84289781760),
                                (("--as", "A100-80G", "--memory-limit", "10GiB"), 10 << 30),
                                (("--as", "A100-80G", "--recipe", "trinity", "--model", "Qwen3-0.6B",
                                  "--entropy-saving", "on"), 83360609280), ((), 0)):
            with self.subTest(options):
                done = self.run_probe("train", "--dry-run", "--until", "1024", *options,
                                      more="--limited {limit_bytes}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"--limited {wanted}'", done.stdout)
        done = self.run_probe("train", "--dry-run", "--as", "custom:memory=1GiB", "--gpus",
                              "8", "--sp", "8")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--memory-limit says it", done.stderr)


class Worker(unittest.TestCase):
    """The torch worker's own refusals, torch being played."""

    def prepare(self, limit):
        fractions = []
        cuda = types.SimpleNamespace(
            is_available=lambda: True, set_device=lambda index: None, init=lambda: None,
            mem_get_info=lambda: (70 << 30, 80 << 30), get_device_name=lambda: "Fake",
            set_per_process_memory_fraction=fractions.append)
        worker = self.worker()
        trial = worker.read_trial(json.dumps({"config": {}, "context": 64, "limit_bytes": limit}))
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(cuda=cuda)):
            try:
                worker.prepare_gpu(trial, 0)
            except worker.BadTrial as refusal:
                return str(refusal)
        return fractions

    def worker(self):
        spec = importlib.util.spec_from_file_location(
            "torch_worker", os.path.join(TESTS, "..", "share", "torch_worker.py"))
        worker = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(worker)
        return worker

    def test_ranks_meet_where_nobody_else_can(self):
        worker, seen = self.worker(), []

        def run_trial(trial, store):
            folder = os.path.dirname(store)
            seen.append((folder, os.stat(folder).st_mode & 0o7777, os.path.exists(store)))
            return 0

        trial = json.dumps({"config": {}, "context": 64, "world": 2})
        with unittest.mock.patch.object(worker, "run_trial", run_trial):
            self.assertEqual([worker.run_here(trial), worker.run_here(trial)], [0, 0])
        self.assertEqual([how for _, *how in seen], [[0o700, False]] * 2)
        self.assertNotEqual(seen[0][0], seen[1][0])
        self.assertFalse(any(os.path.exists(folder) for folder, *_ in seen))

    def test_a_smaller_card_is_played(self):
        self.assertEqual(self.prepare(20 << 30), [0.25])
        self.assertEqual(self.prepare(None), [])

    def test_a_larger_card_is_refused(self):
        self.assertIn("a larger card cannot be played on a smaller one", self.prepare(141 << 30))

    def test_a_refusal_is_a_configuration_error(self):
        worker = os.path.join(TESTS, "..", "share", "torch_worker.py")
        done = subprocess.run([sys.executable, worker, '{"nothing": 1}'], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stdout), (126, ""))


# A job's state while it runs is RUNNING, or what "state" in the folder says.
FAKES = {
    "sbatch": """
[ -e "$STATE/refused" ] && { cat "$STATE/refused" >&2; exit 1; }
for last; do :; done
for word; do case $word in --output=*) output=${word#--output=} ;; -[!-]*) exit 64 ;; esac; done
output=$(printf '%s' "$output" | sed 's/%%/\\a/g; s/%j/42/g; s/\\a/%/g')
echo "$@" >>"$STATE/submitted"
env --default-signal=TERM,INT,HUP,PIPE sh "$last" >"$output" 2>&1 & echo $! >"$STATE/pid"
echo 42
""",
    "squeue": """
echo asked >>"$STATE/asked"
[ -e "$STATE/flaky" ] && [ $(($(wc -l <"$STATE/asked") % 3)) != 0 ] && exit 1
[ -e "$STATE/state" ] && { cat "$STATE/state"; exit; }
kill -0 $(cat "$STATE/pid") 2>/dev/null && echo RUNNING
""",
    "srun": """
echo "$@" >>"$STATE/stepped"
for last; do :; done
exec sh "$last"
""",
    "sacct": 'cat "$STATE/end" 2>/dev/null',
    "scontrol": "exit 1",
    "scancel": 'echo cancelled >>"$STATE/cancelled"; kill -9 $(cat "$STATE/pid") || :',
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

    def put(self, name, text=""):
        with open(os.path.join(self.state, name), "w") as file:
            file.write(text)

    def test_questions_without_an_answer_are_asked_again(self):
        self.put("flaky")
        done = self.run_probe("train", "--until", "1024", more="--sleep 800")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "fits")])
        os.unlink(os.path.join(self.state, "end"))
        os.unlink(os.path.join(self.state, "asked"))
        probe = self.start(self.command("hang", "--until", "1024"))
        self.wait_until(lambda: os.path.exists(os.path.join(self.state, "asked")), "it asks")
        time.sleep(2)
        self.assertIsNone(probe.poll())
        probe.send_signal(signal.SIGINT)
        probe.communicate(timeout=30)
        self.assertTrue(os.path.exists(os.path.join(self.state, "cancelled")))

    def test_accounting_that_lags_is_waited_for(self):
        script = f"sleep 0.2; (sleep 1; echo 'COMPLETED|0:0' >{self.state}/end) & exit 0"
        done = self.run_shell(script + " # slow", "--until", "1024")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.outcomes(), [(1024, "fits")])

    def test_what_slurm_itself_did(self):
        cases = {"NODE_FAIL": ("stopped", 2), "PREEMPTED": ("stopped", 2), "BOOT_FAIL": ("stopped", 2),
                 "CANCELLED by 1000": ("stopped", 2), "TIMEOUT": ("timeout", 2),
                 "OUT_OF_MEMORY": ("host_memory", 1), "FAILED": ("failed", 1)}
        for state, (outcome, tries) in cases.items():
            with self.subTest(state):
                shutil.rmtree(os.path.join(self.folder, "logs"), ignore_errors=True)
                done = self.run_shell(f"echo '{state}|1:0' >{self.state}/end; exit 1", "--tries", "2")
                self.assertEqual(self.outcomes(), [(1024, outcome)] * tries, done.stderr)

    def test_time_in_the_queue_does_not_count(self):
        self.put("state", "PENDING\n")
        probe = self.start(self.command("train", "--until", "1024", "--timeout", "1", "--tries", "1"))
        time.sleep(2.5)
        self.assertIsNone(probe.poll())
        os.unlink(os.path.join(self.state, "state"))
        _, said = probe.communicate(timeout=30)
        self.assertEqual(probe.returncode, 0, said)
        self.assertEqual(self.outcomes(), [(1024, "fits")])

    def test_a_job_that_is_refused(self):
        self.put("refused", "sbatch: error: Batch job submission failed: Invalid partition name specified\n")
        said = self.one_sentence(self.run_probe("train"))
        self.assertIn("Invalid partition name specified", said)
        self.assertEqual(self.outcomes(), [(1024, "configuration")])

    def test_output_that_comes_late(self):
        oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
        late = f"(sleep 0.6; echo '{oom}') & echo 'FAILED|1:0' >{self.state}/end; exit 1"
        os.environ["FATHOM_SLURM_POLL"] = "0.3"
        self.run_shell(late)
        self.assertEqual(self.outcomes(), [(1024, "gpu_memory")])

    def test_one_gpu_more_for_the_rollout(self):
        path = os.path.join(self.folder, "commands", "trinity")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\necho 'COMPLETED|0:0' >{self.state}/end\n")
        os.chmod(path, 0o755)
        done = subprocess.run([FATHOM, "probe", "--engine", "trinity", "--model", "Qwen3-0.6B", "--as",
                               "A100-80G", "--gpus", "4", "--start", "4096", "--until", "4096", "--launcher",
                               "slurm"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        with open(os.path.join(self.state, "submitted")) as file:
            self.assertIn("--gpus=5", file.readline(), done.stderr)

    def test_steps_of_an_allocation(self):
        os.environ["SLURM_JOB_ID"] = "7"
        self.addCleanup(os.environ.pop, "SLURM_JOB_ID")
        done = self.run_probe("train", "--gpus", "4")
        self.assertIn("max_model_len = 2048", done.stdout, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.state, "submitted")))
        with open(os.path.join(self.state, "stepped")) as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn("--gpus=4", lines[0])
        os.environ["FATHOM_SLURM_STEPS"] = "off"
        self.addCleanup(os.environ.pop, "FATHOM_SLURM_STEPS")
        self.run_probe("train", "--until", "1024")
        self.assertTrue(os.path.exists(os.path.join(self.state, "submitted")))

    def test_jobs_are_submitted(self):
        self.run_probe("train", "--gpus", "4")
        with open(os.path.join(self.state, "submitted")) as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn("--gpus=4", lines[0])

    def test_folders_that_mean_something_to_slurm(self):
        for folder in ("%j", "100%%", "-x", "%a%A %u"):
            with self.subTest(folder):
                done = self.run_probe("train", "--until", "1024", "--log-dir", folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                log = os.path.join(self.folder, folder, "model/gpu-1/sp-1/model_len-1024.log")
                with open(log) as file:
                    self.assertIn('"fathom": "done"', file.read())
                self.assertTrue(os.path.exists(log + ".job"))
        self.assertIn("a backslash", self.one_sentence(self.run_probe("train", "--log-dir", "back\\slash")))

    def test_a_timeout_cancels_the_job(self):
        self.run_probe("hang", "--timeout", "1", "--tries", "1")
        self.assertEqual(self.outcomes(), [(1024, "timeout")])
        self.assertTrue(os.path.exists(os.path.join(self.state, "cancelled")))


# What Ray 2.49 makes of a job's words (dashboard/modules/job: cli.py, job_supervisor.py).
JOINED = ('import os, subprocess, sys; '
          'os.execv("/bin/sh", ["sh", "-c", "exec " + subprocess.list2cmdline(sys.argv[1:])])')


class Ray(Probe):
    """The same through `ray job`, played by a script."""

    def setUp(self):
        super().setUp()
        commands = os.path.join(self.folder, "commands")
        os.mkdir(commands)
        with open(os.path.join(commands, "ray"), "w") as file:
            file.write(f"""#!/bin/sh
case "$2" in
submit) while [ "$1" != -- ]; do shift; done; shift; exec python3 -c '{JOINED}' "$@" ;;
stop) echo stopping || exit 1; sleep 2; echo stopped || exit 1; echo "$3" >>{self.folder}/stopped ;;
esac
""")
        os.chmod(os.path.join(commands, "ray"), 0o755)
        saved = os.environ["PATH"]
        self.addCleanup(os.environ.update, {"PATH": saved})
        os.environ["PATH"] = commands + ":" + saved

    def command(self, mode, *options, limit=3000, more=""):
        return super().command(mode, *options, limit=limit, more=more) + ["--launcher", "ray"]

    def stopped(self):
        return os.path.exists(os.path.join(self.folder, "stopped"))

    def test_an_impatient_user_stops_the_job_too(self):
        probe = self.start(self.command("hang"))
        self.wait_until(lambda: self.in_log("waiting"), "the job runs")
        for _ in range(2):
            probe.send_signal(signal.SIGINT)
            time.sleep(0.3)
        probe.communicate(timeout=30)
        self.assertEqual(probe.returncode, 3)
        self.assertTrue(self.stopped())

    def test_a_killed_fathom_stops_the_job_too(self):
        probe = self.start(self.command("hang"))
        self.wait_until(lambda: self.in_log("waiting"), "the job runs")
        probe.kill()
        probe.communicate()
        self.wait_until(self.stopped, "the job is stopped")

    def test_a_timeout_stops_the_job(self):
        self.run_probe("hang", "--timeout", "1", "--tries", "1")
        self.assertEqual(self.outcomes(), [(1024, "timeout")])
        self.assertTrue(os.path.exists(os.path.join(self.folder, "stopped")))

    def test_no_folder_runs_as_a_command(self):
        for number, name in enumerate(["a b", "x;touch owned", "$(touch owned)", "`touch owned` c", "'x", '"x', "x&"]):
            with self.subTest(name):
                folder = os.path.join(self.folder, str(number), name)
                done = self.run_probe("train", "--until", "1024", "--log-dir", folder)
                self.assertFalse(os.path.exists(os.path.join(self.folder, "owned")))
                self.assertEqual(done.returncode, 0 if name == "a b" else 3, done.stderr)
                if name != "a b":
                    self.assertIn("Ray would run this path as text of a shell's", done.stderr)

    def test_no_path_of_an_emitted_job_does(self):
        home = os.path.join(self.folder, "home")
        os.makedirs(os.path.join(home, "slime", "scripts", "models"))
        for name in ("qwen3-8B.sh", "train.py"):
            path = os.path.join(home, "slime", "scripts/models" if name.endswith("sh") else "", name)
            with open(path, "w") as file:
                file.write("MODEL_ARGS=()\n" if name.endswith("sh") else "import sys; print(sys.argv)\n")
        with open(os.path.join(self.folder, "commands", "python3"), "w") as file:
            file.write(f'#!/bin/sh\ncase $2 in *snapshot_download*) echo /m ;; *) exec {sys.executable} "$@" ;; esac\n')
        os.chmod(file.name, 0o755)
        for number, name in enumerate(["a b", "x;touch owned", "$(touch owned)", "'x"]):
            with self.subTest(name):
                out = os.path.join(self.folder, "out", str(number))
                data = os.path.join(self.folder, name + ".jsonl")
                subprocess.run([FATHOM, "emit", "--for", "slime", "--model", "Qwen3-8B", "--gpu", "8xH100-80G",
                                "--context", "32k", "--dataset", data, "-o", out], check=True, capture_output=True)
                done = subprocess.run(["bash", os.path.join(out, "launch.sh")], cwd=self.folder, text=True,
                                      env={**os.environ, "HOME": home}, capture_output=True)
                self.assertFalse([folder for folder, _, files in os.walk(self.folder) if "owned" in files])
                self.assertEqual(done.returncode, 0 if name == "a b" else 2, done.stderr)
                self.assertIn(data if name == "a b" else "Ray would run this path", done.stdout + done.stderr)


# Of the classes above these say something about a launcher.
KEPT = ("longest_that_fits", "configuration_error", "passing_errors_are_tried")
for launcher in (Slurm, Ray):
    for name in [name for name in dir(Probe) if name.startswith("test_")]:
        if not any(word in name for word in KEPT) and name not in vars(launcher):
            setattr(launcher, name, None)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
