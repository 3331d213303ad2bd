#!/usr/bin/env python3
"""`fathom probe --launcher ray` with a real Ray cluster of one node on this machine, on ports and in a folder of its
own. Ray lies aside of the environment of `make test-frameworks`, so that no other test meets it.
"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FATHOM = os.path.abspath(os.environ.get("FATHOM", os.path.join(ROOT, "build", "release", "fathom")))
PORT, DASHBOARD = 26379, 28265
# A trainer of a few lines: it fits up to 2048 tokens.
TRAINER = """
if [ {context} -gt 2048 ]; then
    echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"
    exit 1
fi
echo trained
"""


RAY = os.path.join(sys.prefix, "aside", "ray")


class Ray(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="fathom-ray-")
        cls.before = dict(os.environ)
        os.environ["PATH"] = os.path.join(RAY, "bin") + os.pathsep + os.environ["PATH"]
        os.environ["PYTHONPATH"] = RAY
        os.environ["RAY_ADDRESS"] = f"http://127.0.0.1:{DASHBOARD}"
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with open(os.path.join(cls.folder, "head.log"), "w") as log:
            cls.head = subprocess.Popen(
                ["ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={PORT}",
                 f"--dashboard-port={DASHBOARD}", f"--temp-dir={cls.folder}/ray", "--num-cpus=2",
                 "--object-store-memory=100000000"], stdout=log, stderr=log, start_new_session=True,
                env={name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"})
        for _ in range(120):
            try:
                cls.jobs()
                return
            except OSError:
                time.sleep(0.5)
        cls.tearDownClass()
        raise AssertionError("Ray does not start here")

    @classmethod
    def tearDownClass(cls):
        cls.head.terminate()
        try:
            cls.head.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(cls.head.pid, signal.SIGKILL)
            cls.head.wait()
        shutil.rmtree(cls.folder, ignore_errors=True)
        os.environ.clear()
        os.environ.update(cls.before)

    @classmethod
    def jobs(cls):
        """Which job is in which state."""
        with urllib.request.urlopen(f"{os.environ['RAY_ADDRESS']}/api/jobs/", timeout=5) as answer:
            return {job["submission_id"]: job["status"] for job in json.load(answer)}

    def probe(self, command, name, *options):
        return [FATHOM, "probe", "--engine", "command", "--command", ": {context}; " + command, "--launcher", "ray",
                "--grid", "1024", "--start", "1024", "--log-dir", os.path.join(self.folder, name), "--grace", "1", *options]

    def outcomes(self, name):
        database = sqlite3.connect(os.path.join(self.folder, name, "probe.db"))
        return [row[0] for row in database.execute("SELECT outcome FROM attempt ORDER BY id")]

    def start_and_wait(self, name, *options):
        before = set(self.jobs())
        probe = subprocess.Popen(self.probe("sleep 1000", name, *options), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.wait_for(lambda: [job for job in set(self.jobs()) - before if self.jobs()[job] == "RUNNING"])
        return probe, (set(self.jobs()) - before).pop()

    def wait_for(self, true):
        until = time.monotonic() + 60
        while not true():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.3)

    def test_the_longest_that_fits(self):
        done = subprocess.run(self.probe(TRAINER, "fits"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("max_model_len = 2048", done.stdout)
        self.assertEqual(self.outcomes("fits"), ["fits", "fits", "gpu_memory"])

    def test_a_timeout_stops_the_job(self):
        probe, job = self.start_and_wait("late", "--timeout", "15", "--tries", "1")
        self.assertEqual(probe.wait(100), 3)
        self.assertEqual((self.jobs()[job], self.outcomes("late")), ("STOPPED", ["timeout"]))

    def test_two_interruptions_stop_the_job(self):
        probe, job = self.start_and_wait("impatient")
        for _ in range(2):
            probe.send_signal(signal.SIGINT)
            time.sleep(0.3)
        self.assertEqual(probe.wait(100), 3)
        self.assertEqual((self.jobs()[job], self.outcomes("impatient")), ("STOPPED", ["interrupted"]))

    def test_when_fathom_is_killed_the_job_is_stopped(self):
        probe, job = self.start_and_wait("killed")
        probe.kill()
        probe.wait()
        self.wait_for(lambda: self.jobs()[job] == "STOPPED")


if __name__ == "__main__":
    unittest.main()
