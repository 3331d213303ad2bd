#!/usr/bin/env python3
"""No text from outside steers a terminal: names, logs, stores and requests full of escape sequences, C1
controls, bidi overrides, line breaks and broken UTF-8 go through every command, and nothing of it may come
out, in any form. A word in each would begin a line of its own, if a line break passed.

Usage: tests/hostile/hostile_text.py PROGRAM-FOLDER
"""
import csv
import io
import json
import os
import pickle
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = os.path.abspath(sys.argv.pop(1))
FATHOM = os.path.join(PROGRAMS, "fathom")
HOSTILE = (b"=1\x1b[2J\x1b]0;x\x07\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8\x7f\xff"
           b"\r\n\rFORGED|`<x>\x85")
TEXT = HOSTILE.decode("utf-8", "replace").replace("\ufffd", "")
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
CONFIG = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 16,
          "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 4096}
GPU = "A100-40G"


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-hostile-").encode()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.model = os.path.join(self.folder, HOSTILE.replace(b"/", b""))
        os.mkdir(self.model)
        with open(os.path.join(self.model, b"config.json"), "w") as file:
            json.dump(CONFIG, file)
        self.relative = os.path.basename(self.model)

    def write(self, name, content):
        path = os.path.join(self.folder, name.encode())
        with open(path, "wb") as file:
            file.write(content)
        return path

    def check(self, text):
        self.assertIsNone(FORBIDDEN.search(text), repr(text))
        self.assertNotIn("\nFORGED", text)

    def run_fathom(self, *words, ends=(0,), crlf=False):
        done = subprocess.run([FATHOM, *words], cwd=self.folder, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.assertIn(done.returncode, ends, done.stderr)
        for stream in (done.stdout, done.stderr):
            text = stream.decode()  # fails where it is no UTF-8
            text = text.replace("\r\n", "\n") if crlf else text
            self.check(text)
        return done.stdout.decode(), done.stderr.decode()

    def every_form(self, *words, ends=(0,)):
        self.run_fathom(*words, ends=ends)
        said, _ = self.run_fathom(*words, "--json", ends=ends)
        json.loads(said)

    def test_model_folder(self):
        for command in ("predict", "max", "guide", "models", "show", "emit"):
            with self.subTest(command):
                gpu = () if command == "models" else ("--gpu", GPU)
                more = {"predict": ("--context", "512"), "guide": ("--lengths", "4096"),
                        "max": ("--grid", "4096"),
                        "emit": ("--context", "512", "--for", "accelerate", "--dataset", "d.jsonl")}
                self.every_form(command, "--model", self.relative, *gpu, *more.get(command, ()))

    def test_many_models(self):
        both = self.relative + b",Qwen3-0.6B"
        for command in ("max", "guide"):
            for form in ("text", "markdown", "csv", "html")[:3 if command == "max" else 4]:
                more = ("--lengths", "4096") if command == "guide" else ("--grid", "4096")
                with self.subTest(command=command, form=form):
                    said, _ = self.run_fathom(command, "--model", both, "--gpu", GPU,
                                              *more, "--format", form)
                    if form == "csv":
                        self.check_csv(said)

    def check_csv(self, said):
        rows = list(csv.reader(io.StringIO(said)))
        self.assertGreater(len(rows), 1)
        for row in rows:
            self.assertEqual(len(row), len(rows[0]), row)
            for cell in row:
                self.assertFalse(re.match(r"[=+@]|-(?![0-9.]+$)", cell), cell)

    def test_words_that_are_wrong(self):
        for words in ((HOSTILE,), ("predict", b"--" + HOSTILE), ("models", b"/" + HOSTILE), ("gpus", HOSTILE),
                      ("predict", "--model", "Qwen3-8B", "--gpu", HOSTILE), ("help", HOSTILE),
                      ("predict", "--from", HOSTILE), ("replay", HOSTILE), ("doctor", HOSTILE),
                      ("predict", "--model", "Qwen3-8B", "--gpu", "H200", "--context", HOSTILE),
                      ("emit", "--for", HOSTILE), ("max", "--grid", HOSTILE)):
            with self.subTest(words=words):
                self.run_fathom(*words, ends=(2, 3))

    def test_configuration(self):
        for key in ("model_type", "torch_dtype", "hidden_act", "architectures", "quantization_config",
                    "_name_or_path", "layer_types", "hidden_size", TEXT):
            with self.subTest(key):
                value = [TEXT] if key in ("architectures", "layer_types") else TEXT
                value = {"quant_method": TEXT} if key == "quantization_config" else value
                path = self.write("config.json", json.dumps({**CONFIG, key: value}).encode())
                self.every_form("models", path, ends=(0, 2))
                self.every_form("predict", "--model", path, "--gpu", GPU, "--context", "512", ends=(0, 2))
        self.run_fathom("models", self.write("config.json", b'{"model_type": "' + HOSTILE + b'"}'), ends=(2,))

    def test_requests(self):
        for text in (f"{json.dumps(TEXT)}: 1\n", f"model: {json.dumps(TEXT)}\n", f"context: {json.dumps(TEXT)}\n",
                     f"gpu: {json.dumps(TEXT)}\n"):
            with self.subTest(text):
                self.run_fathom("predict", "--from", self.write("request.yaml", text.encode()), ends=(2,))

    def test_logs(self):
        lines = [b"Traceback (most recent call last):", b'  File "' + HOSTILE.replace(b"\n", b"") + b'", line 3, in f',
                 b"    x()", b"RuntimeError: " + HOSTILE.replace(b"\n", b""), b""]
        logs = [b"\n".join(lines), b"ValueError: " + HOSTILE,
                b"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
                b"\xc2\x9b31m\xe2\x80\xae GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n",
                b"FileNotFoundError: [Errno 2] No such file or directory: '\xe2\x80\xae\xc2\x9b31m\xff'\n",
                b"OSError: \xe2\x80\xae\xc2\x9b31m\xff is not a local folder and is not a valid model identifier\n"]
        for log in logs:
            with self.subTest(log):
                self.every_form("doctor", self.write("crash.log", log))

    def test_recordings(self):
        self.run_fathom("replay", self.write("trace.txt", b"alloc 512 " + HOSTILE + b"\n"), ends=(2,))
        frames = [{"filename": TEXT + ".py", "name": TEXT, "line": 1}]
        address = 0x7f0000000000
        block = {"size": 512, "requested_size": 512, "address": address, "state": "active_allocated", "frames": frames}
        rest = {"size": 2096640, "requested_size": 0, "address": address + 512, "state": "inactive", "frames": []}
        segment = {"device": 0, "address": address, "total_size": 2097152, "stream": 0, "segment_type": "small",
                   "blocks": [block, rest], "is_expandable": False, "segment_pool_id": [0, 0]}
        event = {"addr": address, "stream": 0, "time_us": 1, "frames": frames}
        snapshot = {"segments": [segment], "device_traces": [[
            {**event, "action": "segment_alloc", "size": 2097152}, {**event, "action": "alloc", "size": 512}]],
            "allocator_settings": {TEXT: TEXT}}
        said, _ = self.run_fathom("replay", self.write("snapshot.pickle", pickle.dumps(snapshot)))
        self.assertIn("FORGED", said)
        self.every_form("replay", "snapshot.pickle")

    def trial(self, *words, ends):
        says = "printf 'ValueError: \\033[2J\\302\\2331m\\342\\200\\256{context}\\n'; exit 1"
        return self.run_fathom("probe", "--engine", "command", "--command", says, "--grid", "1024", "--start", "1024",
                               "--until", "1024", "--tries", "1", "--as", GPU, "--model", self.relative,
                               "--store", "trials.db", *words, ends=ends)

    def test_progress(self):
        wide = "\u00e9".encode() * 100 + HOSTILE
        shutil.copytree(self.model, os.path.join(self.folder, wide))
        for name in (self.relative, wide):
            ours, theirs = pty.openpty()
            self.addCleanup(os.close, ours)
            command = [FATHOM, "probe", "--engine", "command", "--command", "sleep 2 # {context}", "--grid", "1024",
                       "--until", "4096", "--tries", "1", "--model", name, "--store", "progress.db", "--resume", "off"]
            done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=theirs, check=False,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"})
            os.close(theirs)
            self.assertIn(b"FORGED", done.stdout)
            said = os.read(ours, 65536).decode()
            self.assertIn("4096 tokens, 0:0" if name == self.relative else "\u00e9" * 79, said)
            self.check(done.stdout.decode())
            self.check(said.replace("\r\x1b[K", "").replace("\r\n", "\n"))

    def test_trials(self):
        self.trial("--dry-run", ends=(0,))
        self.trial(ends=(3,))
        self.trial("--json", ends=(3,))
        store = sqlite3.connect(os.path.join(self.folder, b"trials.db"))
        tables = [name for name, in store.execute("select name from sqlite_master where type = 'table'")]
        changed = 0
        told = ("model", "detail", "log", "command", "gpu", "versions", "card", "engine")
        for table in tables:
            for _, column, *_ in store.execute(f"pragma table_info({table})").fetchall():
                if column in told:
                    changed += store.execute(f"update {table} set {column} = ?", (TEXT,)).rowcount
        self.assertGreater(changed, 3)
        store.commit()
        store.close()
        self.run_fathom("probe", "--list", "--store", "trials.db")
        self.run_fathom("probe", "--list", "--store", "trials.db", "--json")
        said, _ = self.run_fathom("probe", "--export", "csv", "--store", "trials.db", crlf=True)
        self.check_csv(said)
        self.run_fathom("probe", "--export", "markdown", "--store", "trials.db")
        self.run_fathom("probe", "--export", "json", "--store", "trials.db")


unittest.main()
