#!/usr/bin/env python3
"""`fathom probe --launcher slurm` with a real Slurm: controller, node and munge on this machine, in a folder of
their own. Debian's packages (slurmctld, slurmd, slurm-client, munge) come with `scripts/setup frameworks`.
"""
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FATHOM = os.path.abspath(os.environ.get("FATHOM", os.path.join(ROOT, "build", "release", "fathom")))
NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "munged", "mungekey")
CONFIGURATION = """
ClusterName=fathom
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort=26817
SlurmdPort=26818
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
NodeName={host} CPUs=1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# A trainer of a few lines: it fits up to 2048 tokens.
TRAINER = """
if [ {context} -gt 2048 ]; then
    echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"
    exit 1
fi
echo trained
"""


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lacking = [name for name in NEEDED if not shutil.which(name)]
        if os.geteuid() != 0:
            raise unittest.SkipTest("Slurm's daemons need root")
        assert not lacking, f"{lacking} are needed"
        cls.folder = tempfile.mkdtemp(prefix="fathom-slurm-")
        os.chmod(cls.folder, 0o755)
        for name in ("state", "spool", "work"):
            os.mkdir(os.path.join(cls.folder, name))
        with open(os.path.join(cls.folder, "slurm.conf"), "w") as file:
            file.write(CONFIGURATION.format(folder=cls.folder, host=os.uname().nodename.split(".")[0]))
        os.environ["SLURM_CONF"] = os.path.join(cls.folder, "slurm.conf")
        os.environ["FATHOM_SLURM_POLL"] = "0.5"
        os.environ["FATHOM_SLURM_GPUS"] = "off"
        cls.daemons = []
        cls.start_munge()
        cls.start("slurmctld", "-D")
        cls.start("slurmd", "-D")
        cls.wait_until_idle()

    @classmethod
    def start(cls, *command):
        log = open(os.path.join(cls.folder, command[0] + ".out"), "w")
        cls.daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
        log.close()

    @classmethod
    def start_munge(cls):
        key = os.path.join(cls.folder, "munge.key")
        subprocess.run(["mungekey", "--create", "--keyfile", key], check=True)
        cls.start("munged", "--foreground", "--force", "--key-file", key, "--socket",
                  os.path.join(cls.folder, "munge.socket"), "--pid-file",
                  os.path.join(cls.folder, "munge.pid"), "--seed-file",
                  os.path.join(cls.folder, "munge.seed"))

    @classmethod
    def wait_until_idle(cls):
        for _ in range(60):
            seen = subprocess.run(["sinfo", "--noheader", "--format=%T"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True).stdout.split()
            if "idle" in seen:
                return
            time.sleep(0.5)
        cls.tearDownClass()
        raise AssertionError("Slurm does not start here")

    @classmethod
    def tearDownClass(cls):
        for daemon in reversed(cls.daemons):
            daemon.terminate()
        for daemon in cls.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def probe(self, command, name, *options):
        return [FATHOM, "probe", "--engine", "command", "--command", ": {context}; " + command, "--launcher", "slurm",
                "--grid", "1024", "--start", "1024", "--log-dir", os.path.join(self.folder, "work", name),
                *options]

    def queue(self):
        return subprocess.run(["squeue", "--noheader"], stdout=subprocess.PIPE, text=True).stdout.strip()

    def test_the_longest_that_fits(self):
        done = subprocess.run(self.probe(TRAINER, "fits"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("max_model_len = 2048", done.stdout)
        log = os.path.join(self.folder, "work/fits/model/gpu-1/sp-1/model_len-3072.log")
        with open(log) as file:
            self.assertIn("CUDA out of memory", file.read())

    def rows(self, name):
        database = sqlite3.connect(os.path.join(self.folder, "work", name, "probe.db"))
        return database.execute("SELECT outcome, detail FROM attempt ORDER BY id").fetchall()

    def wait_for(self, true):
        until = time.monotonic() + 30
        while not true():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.2)

    def test_a_job_that_somebody_cancels_is_tried_again(self):
        probe = subprocess.Popen(self.probe("test -e seen && exit 0; touch seen; sleep 1000",
                                            "again", "--until", "1024"), cwd=os.path.join(self.folder, "work"),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for(lambda: os.path.exists(os.path.join(self.folder, "work", "again", "probe.db")) and
                      " R " in self.queue())
        time.sleep(1)
        subprocess.run(["scancel", "--name=fathom"], check=True)
        _, said = probe.communicate(timeout=60)
        self.assertEqual(probe.returncode, 0, said)
        self.assertEqual([row[0] for row in self.rows("again")], ["stopped", "fits"])

    def test_when_fathom_is_killed_the_job_is_cancelled(self):
        probe = subprocess.Popen(self.probe("sleep 1000", "killed", "--grace", "1"), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.wait_for(lambda: " R " in self.queue())
        probe.kill()
        probe.wait()
        self.wait_for(lambda: not self.queue())

    def test_a_job_that_is_refused(self):
        done = subprocess.run(["env", "SBATCH_PARTITION=nosuch", *self.probe("true", "refused")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn("Invalid partition name specified", done.stderr)
        self.assertEqual(self.rows("refused")[0][0], "configuration")

    def test_time_in_the_queue_does_not_count(self):
        subprocess.run(["sbatch", "--wrap", "sleep 6", "--output=/dev/null"], check=True,
                       stdout=subprocess.DEVNULL)
        done = subprocess.run(self.probe("sleep 1", "queued", "--until", "1024", "--timeout", "4", "--tries", "1"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_steps_of_one_allocation(self):
        for way in (["salloc"], ["salloc", "srun"]):
            with self.subTest(" ".join(way)):
                name = "steps-" + way[-1]
                done = subprocess.run([*way, *self.probe(TRAINER, name)], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
                self.assertIn("max_model_len = 2048", done.stdout)
                self.assertEqual([row[0] for row in self.rows(name)], ["fits", "fits", "gpu_memory"])

    def test_an_interruption_cancels_the_step(self):
        mark = os.path.join(self.folder, "work", "pid")
        allocation = subprocess.Popen(
            ["salloc", "sh", "-c", 'echo $$ >"$0"; exec "$@"', mark + ".fathom",
             *self.probe(f"echo $$ >{mark}; exec sleep 1000", "step-hang")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(lambda: os.path.exists(mark) and os.path.getsize(mark))
        with open(mark + ".fathom") as file:
            os.kill(int(file.read()), signal.SIGINT)
        self.assertEqual(allocation.wait(60), 3)
        with open(mark) as file:
            self.assertFalse(os.path.exists("/proc/" + file.read().strip()))
        self.assertEqual(self.rows("step-hang")[0][0], "interrupted")

    def test_an_interruption_cancels_the_job(self):
        probe = subprocess.Popen(self.probe("sleep 1000", "hang", "--grace", "5"),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(60):
            if self.queue():
                break
            time.sleep(0.25)
        self.assertNotEqual(self.queue(), "")
        probe.send_signal(signal.SIGINT)
        self.assertEqual(probe.wait(60), 3)
        for _ in range(40):
            if not self.queue():
                break
            time.sleep(0.5)
        self.assertEqual(self.queue(), "")
        database = sqlite3.connect(os.path.join(self.folder, "work", "hang", "probe.db"))
        self.assertEqual(database.execute("SELECT outcome FROM attempt").fetchall(), [("interrupted",)])


if __name__ == "__main__":
    unittest.main()
