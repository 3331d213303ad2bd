#!/usr/bin/env python3
"""yarn.py, as emit hands it out, run by several processes at once on one folder."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "core", "emit", "scripts", "yarn.py")
FILES = 400


class Yarn(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.model = os.path.join(self.place.name, "model")
        self.made = os.path.join(self.place.name, "run", "model-yarn")
        os.makedirs(self.model)
        os.makedirs(os.path.dirname(self.made))
        for i in range(FILES):
            with open(os.path.join(self.model, f"part-{i}"), "w") as out:
                out.write(str(i))
        with open(os.path.join(self.model, "config.json"), "w") as out:
            json.dump({"max_position_embeddings": 4096}, out)

    def start(self, factor="2.0000"):
        return subprocess.Popen([sys.executable, SCRIPT, self.model, self.made, factor], stderr=subprocess.PIPE, text=True)

    def check(self):
        with open(os.path.join(self.made, "config.json")) as source:
            config = json.load(source)
        self.assertEqual(config["max_position_embeddings"], 8192)
        self.assertEqual(config["rope_scaling"]["factor"], 2.0)
        self.assertEqual(len(os.listdir(self.made)), FILES + 1)

    def test_two_at_once(self):
        for _ in range(5):
            processes = [self.start() for _ in range(2)]
            while any(process.poll() is None for process in processes):
                if os.path.exists(self.made):
                    self.check()  # whole from the moment it has its name
            for process in processes:
                said = process.communicate()[1]
                self.assertEqual(process.returncode, 0, said)
            self.check()
            self.assertEqual(os.listdir(os.path.dirname(self.made)), ["model-yarn"])
            for name in os.listdir(self.made):
                os.unlink(os.path.join(self.made, name))
            os.rmdir(self.made)

    def test_another_factor_is_refused(self):
        self.assertEqual(self.start().wait(), 0)
        said = self.start("4.0000").communicate()[1]
        self.assertIn("was made with factor 2.0, not 4.0000: remove it first", said)
        self.check()

    def test_a_folder_of_something_else_stays(self):
        os.makedirs(self.made)
        with open(os.path.join(self.made, "mine"), "w"):
            pass
        process = self.start()
        self.assertIn("cannot be made", process.communicate()[1])
        self.assertEqual(process.returncode, 1)
        self.assertEqual(os.listdir(self.made), ["mine"])


if __name__ == "__main__":
    unittest.main()
