#!/usr/bin/env python3
"""A store of trials as measured runs: `make accuracy STORE=...` and tests/measured/store_runs.py from outside.

Usage: tests/measured/test_store_runs.py PROGRAM-FOLDER [unittest arguments]
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.abspath(sys.argv.pop(1))
FATHOM = os.path.join(PROGRAMS, "fathom")
TRAINER = os.path.join(PROGRAMS, "tests", "fake_trainer")

# Steps of the trials in store_v1.sql, as their logs have them.
STEPS = ((1, 1, 69020871680, 69019829256, 83338723328, 8412330496, 3, 13.523),
         (1, 2, 73789271552, 73788228620, 83336626176, 8412330496, 6, 7.725),
         (18, 1, 62050340864, 62045874184, 75568775168, 12919448064, 0, 20.0))


class Store(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fathom-store-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def played(self):
        """Four trials that an H200 played, in a store of the first version."""
        with open(os.path.join(TESTS, "data", "store_v1.sql"), encoding="utf-8") as file:
            database = sqlite3.connect(self.path("p.db"))
            database.executescript(file.read())
            database.close()
        return self.path("p.db")

    def brought_up_to_date(self):
        """The same in today's version, with steps and limits."""
        store = self.played()
        self.fathom("probe", "--engine", "command", "--command", "true {context}", "--until", "4096", "--store", store)
        database = sqlite3.connect(store)
        database.executemany("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?)", STEPS)
        database.execute("UPDATE attempt SET limit_bytes = 83360609280, total_bytes = 150109880320 WHERE cell = 1")
        database.commit()
        database.close()
        return store

    def fathom(self, *arguments):
        return subprocess.run([FATHOM, *arguments], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout

    def script(self, name, *arguments):
        done = subprocess.run([sys.executable, os.path.join(TESTS, "measured", name), PROGRAMS, *arguments], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def rows(self, store):
        done = self.script("store_runs.py", store)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def table(self, text):
        """Cells of the trials' table, by trial."""
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
        return {cells[0]: cells for cells in lines if cells[0].isdigit()}

    def test_an_older_store_has_peaks_of_whole_trials(self):
        done = self.script("accuracy.py", self.played())
        self.assertEqual(done.returncode, 0, done.stderr)
        trials = self.table(done.stdout)
        self.assertEqual(trials["1"][1:8], ["Qwen3-0.6B", "1xA100-80G", "1", "24576", "fits", "fits", "68.72"])
        self.assertEqual(trials["2"][5:8], ["out of memory", "out of memory", "-"])
        self.assertIn("All with `--accum 2 --recipe trinity --save-hf never --torch 2.11`.", done.stdout)
        self.assertIn(" of 4 trials ended as predicted.", done.stdout)

    def test_each_step_is_compared(self):
        done = self.script("accuracy.py", self.brought_up_to_date())
        self.assertEqual(done.returncode, 0, done.stderr)
        trials = self.table(done.stdout)
        self.assertEqual(trials["1"][7], "64.28, 68.72")     # allocated
        self.assertEqual(trials["1"][10], "77.62, 77.61")    # reserved
        self.assertEqual(trials["1"][13], "7.83, 7.83")      # left after the step
        self.assertLess(abs(float(trials["1"][9].split()[0])), 1)
        self.assertEqual(trials["3"][5:6] + trials["3"][7:8], ["out of memory", "57.79"])    # died in its second step
        self.assertIn("step 2 of all", done.stdout)
        self.assertIn("1 trial left out: no model was given", done.stdout)

    def test_rows_are_runs(self):
        rows, said = self.rows(self.brought_up_to_date())
        self.assertEqual(len(rows), 4)
        self.assertIn("1 trial left out", said)
        self.assertEqual(rows[0]["settings"], {
            "model": "Qwen3-0.6B", "gpu": "1xA100-80G", "context": "24576", "recipe": "trinity", "accum": "2", "sp": "1",
            "save-hf": "never", "torch": "2.11", "memory-limit": "83360609280"})
        self.assertEqual(rows[0]["peaks"][1], {"allocated": 73789271552, "requested": 73788228620,
                                               "reserved": 83336626176, "end_allocated": 8412330496, "retries": 6})
        self.assertEqual((rows[0]["ok"], rows[0]["as"], rows[0]["one_gpu"], rows[0]["gpu"]),
                         (True, "A100-80G", True, "NVIDIA H200"))
        self.assertTrue(rows[1]["oom"] and not rows[1]["ok"] and rows[1]["peaks"] == [])
        self.assertNotIn("logs/", json.dumps(rows))
        with open(self.path("runs.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        done = self.script("accuracy.py", self.path("runs.jsonl"), "--rows")
        self.assertIn("memory-limit 77.64GiB", done.stdout)
        self.assertIn("4 runs: 3 predicted, 0 not modelled, 1 died in the first step", done.stdout)

    def test_a_model_of_a_file_needs_the_file_no_more(self):
        shutil.copy(os.path.join(TESTS, "cli", "files", "tiny", "config.json"), self.path("mine.json"))
        self.fathom("probe", "--engine", "command", "--model", "mine.json", "--as", "A100-80G", "--until", "1024",
                    "--start", "1024", "--grid", "1024", "--command",
                    f"exec {TRAINER} train --context {{context}} --limit 9999")
        os.unlink(self.path("mine.json"))
        rows, _ = self.rows("logs/probe.db")
        self.assertEqual(rows[0]["settings"]["model"], "mine.json")
        self.assertIn("model_type", rows[0]["config"])
        done = self.script("accuracy.py", "logs/probe.db")
        self.assertIn("1 of 1 trials ended as predicted.", done.stdout)

    def test_nothing_is_written_of_a_store(self):
        done = self.script("accuracy.py", self.played(), "--write", self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a store is printed alone", done.stderr)
        self.assertFalse(os.path.exists(self.path("accuracy.md")))

    def test_what_is_no_store(self):
        for script in ("accuracy.py", "store_runs.py"):
            done = self.script(script, "none.db")
            self.assertEqual((done.returncode, done.stderr),
                             (1, "fathom: none.db: there is no such store of trials\n"))

    def test_an_empty_store(self):
        open(self.path("empty.db"), "w", encoding="utf-8").close()
        done = self.script("accuracy.py", "empty.db")
        self.assertEqual((done.returncode, done.stdout), (1, "no trial to compare\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
