"""PyYAML in Python and libyaml in C read the same from every emitted YAML."""
import unittest

import yaml

from common import files


class Yaml(unittest.TestCase):
    def test_both_parsers_agree(self):
        for name, path in files("*/*.yaml"):
            with self.subTest(name), open(path) as source:
                text = source.read()
                slow, fast = yaml.load(text, yaml.SafeLoader), yaml.load(text, yaml.CSafeLoader)
                self.assertEqual(slow, fast)
                self.assertIsInstance(slow, dict)


if __name__ == "__main__":
    unittest.main()
