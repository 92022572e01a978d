"""tools/long: what its commands are steered by exists."""

import os
import re
import types
import unittest

import program

long = program.load("long")


def text_of(folder):
    out = []
    for where, _, names in os.walk(os.path.join(long.ROOT, folder)):
        for name in names:
            if name.endswith((".cc", ".h", ".py")):
                with open(os.path.join(where, name), encoding="utf-8") as f:
                    out.append(f.read())
    return "\n".join(out)


class Long(unittest.TestCase):
    def test_each_variable_is_read_by_a_test_and_each_option_by_a_program(self):
        told = text_of("tests") + text_of("lab/explore")
        for name, _, command, _ in long.PARTS:
            for variable in re.findall(r"STELE_\w+(?==)", command):
                if variable != "STELE_REDIS_MODULE":
                    self.assertTrue(f'"{variable}"' in told, f"{name}: nothing reads {variable}")
            for option in re.findall(r"--(\w+)(?= |=)", command):
                self.assertTrue(option == "gtest_filter" or f"--{option}" in told, f"{name}: nothing takes --{option}")

    def test_a_share_is_that_of_each_part(self):
        options = types.SimpleNamespace(share=0.001, seed=7, build="build")
        command = long.command_of(long.PARTS[0], options)
        self.assertIn("--schedules 1000 --seed 7", command)
        self.assertEqual(long.command_of(long.PARTS[0], types.SimpleNamespace(share=1e-9, seed=7, build="build")).count("--schedules 1 "), 1)


if __name__ == "__main__":
    unittest.main()
