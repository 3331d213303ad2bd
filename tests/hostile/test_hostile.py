#!/usr/bin/env python3
"""What is given as a file and is none, names that mean something to SQLite, and files that may not grow.

Usage: tests/hostile/test_hostile.py PROGRAM-FOLDER [unittest arguments]
"""
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = os.path.abspath(sys.argv.pop(1))
FATHOM = os.path.join(PROGRAMS, "fathom")
CONFIG = """{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 4096}"""
LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
PREDICT = ("predict", "--gpu", "H200", "--context", "4k")
PROBE = ("probe", "--engine", "command", "--command", "true {context}", "--until", "4k")


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-hostile-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        path = os.path.join(self.folder, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def put(self, text, *names):
        with open(self.path(*names), "w") as file:
            file.write(text)

    def run_fathom(self, *arguments, **options):
        done = subprocess.run([FATHOM, *arguments], cwd=self.folder, text=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **{"stdin": subprocess.DEVNULL, **options})
        self.assertNotIn("Sanitizer", done.stderr)
        return done

    def refuses(self, *arguments, says="not a ", status=2, **options):
        done = self.run_fathom(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)

    # ---------------------------------------------------------------- what is no file

    def odd_files(self):
        os.mkfifo(self.path("pipe"))
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.path("socket"))
        return "pipe", "socket", "/dev/zero", "/dev/null"

    def test_readers_refuse_what_is_no_file(self):
        for path in self.odd_files():
            for command in (("models", "./" + path if path[0] != "/" else path), ("replay", path),
                            ("doctor", path), (*PREDICT, "--from", path),
                            (*PREDICT, "--model", "Qwen3-0.6B", "--store", path),
                            ("probe", "--list", "--store", path), (*PROBE, "--store", path)):
                with self.subTest(command):
                    self.refuses(*command)

    def test_folders_hold_what_is_no_file(self):
        index = '{"weight_map": {"a": "model-00001-of-00001.safetensors"}}'
        for names in (["config.json"], ["model.safetensors"], ["model.safetensors.index.json"],
                      ["model-00001-of-00001.safetensors", "model.safetensors.index.json"]):
            with self.subTest(names):
                shutil.rmtree(self.path("tiny"), ignore_errors=True)
                self.put(CONFIG, "tiny", "config.json")
                for name in names[1:]:
                    self.put(index, "tiny", name)
                if os.path.exists(self.path("tiny", names[0])):
                    os.unlink(self.path("tiny", names[0]))
                os.mkfifo(self.path("tiny", names[0]))
                self.refuses("models", "./tiny", says="this is a named pipe, not a file")

    def test_a_hub_cache_holds_what_is_no_file(self):
        os.mkfifo(self.path("hub/models--a--b/refs/main"))
        environment = {**os.environ, "HF_HUB_CACHE": self.path("hub"), "HF_HUB_OFFLINE": "1"}
        done = self.run_fathom("models", "a/b", env=environment)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertNotEqual(done.returncode, 0)

    def test_stores_hold_what_is_no_file(self):
        for part in ("-wal", "-shm", "-journal", ".lock"):
            with self.subTest(part):
                shutil.rmtree(self.path("logs"), ignore_errors=True)
                self.assertEqual(self.run_fathom(*PROBE).returncode, 0)
                for left in os.listdir(self.path("logs")):
                    if left.startswith("probe.db") and left != "probe.db":
                        os.unlink(self.path("logs", left))
                os.mkfifo(self.path("logs", "probe.db" + part))
                self.refuses(*PROBE, says="this is not a regular file")
                self.refuses("probe", "--list", says="this is not a regular file")

    def test_writers_wait_for_nobody(self):
        os.mkfifo(self.path("logs/model/gpu-1/sp-1/model_len-4096.log"))
        self.refuses(*PROBE, "--start", "4k", says="this log cannot be written", status=3)
        os.mkfifo(self.path("out.svg"))
        self.refuses(*PREDICT, "--model", "Qwen3-0.6B", "--timeline", "out.svg", says="this is not a regular file")

    # ---------------------------------------------------------------- what is meant to be read

    def test_standard_input_may_be_anything(self):
        self.put(LOG, "log")
        ours, theirs = socket.socketpair()
        theirs.sendall(LOG.encode())
        theirs.close()
        end, pipe = os.pipe()
        os.write(pipe, LOG.encode())
        os.close(pipe)
        os.mkfifo(self.path("named"))
        both = os.open(self.path("named"), os.O_RDWR)
        named = os.open(self.path("named"), os.O_RDONLY)
        os.write(both, LOG.encode())
        os.close(both)
        with open(self.path("log")) as file, ours:
            for given in (file.fileno(), ours.fileno(), end, named):
                self.assertIn("out of GPU memory", self.run_fathom("doctor", "-", stdin=given).stdout)
        os.close(end)
        os.close(named)

    def test_descriptors_by_name(self):
        self.put(LOG, "log")
        for command in ("doctor <(cat log)", "cat log | {} doctor /dev/stdin", "{} doctor /proc/self/fd/7 7<log"):
            command = command.format(FATHOM) if "{}" in command else FATHOM + " " + command
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, timeout=60, capture_output=True, text=True)
            self.assertIn("out of GPU memory", done.stdout, done.stderr)
        self.put("model: Qwen3-0.6B\n", "request.yaml")
        script = f"{FATHOM} {' '.join(PREDICT)} --from <(cat request.yaml)"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, timeout=60, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---------------------------------------------------------------- names

    def test_a_store_in_memory(self):
        self.refuses(*PROBE, "--store", ":memory:", says="--store: a store is a file")
        self.refuses("probe", "--list", "--store", ":memory:", says="--store: a store is a file")
        self.assertFalse(os.path.exists(self.path("logs")))

    def test_stores_with_names_that_sqlite_reads(self):
        for name in ("file:a.db?mode=memory", "file::memory:", "-x.db", "a%20b?c#d.db", ":memory:.db"):
            with self.subTest(name):
                self.assertEqual(self.run_fathom(*PROBE, "--store", name).returncode, 0)
                self.assertTrue(os.path.exists(self.path(name)))
                done = self.run_fathom("probe", "--list", "--store", name)
                self.assertIn(" fits ", done.stdout, done.stderr)

    # ---------------------------------------------------------------- files that may not grow

    def test_a_limit_on_files_is_an_error(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        self.refuses("emit", "--for", "accelerate", "--model", "Qwen3-0.6B", "--gpu", "H200", "--context", "4k", "-o",
                     "out", says="(ulimit -f)", status=3, preexec_fn=limit)
        self.assertEqual([name for _, _, names in os.walk(self.path("out")) for name in names], [])
        with open(self.path("answer"), "w") as answer:
            done = subprocess.run([FATHOM, "models"], stdout=answer, stderr=subprocess.PIPE, text=True, timeout=60,
                                  preexec_fn=limit)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cannot write the answer", done.stderr)


if __name__ == "__main__":
    unittest.main()
