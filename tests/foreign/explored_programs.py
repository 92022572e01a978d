#!/usr/bin/env python3
"""Explores a program with each of its planted bugs, which must be found, and without, which must violate nothing.

usage: explored_programs.py stele-foreign PROGRAM NAME. Ends with status 77 where valgrind or the recorder is missing.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOREIGN, PROGRAM, NAME = sys.argv[1:4]
os.environ["PMEM_IS_PMEM_FORCE"] = "1"  # as on persistent memory, wherever the pool is

RIGHT = {
    "instructions": ["clwb", "clflushopt", "clflush", "mfence", "locked", "stream", "vector", "msync", "pwrite", "thread"],
    "pmem_log": ["none"],
    "pmemobj_list": ["none"],
    "pmemobj_map": ["none"],
}
PLANTED = {
    "instructions": ["no_flush", "no_fence", "no_fence_clflushopt", "lfence", "stream_no_fence", "msync_async", "pwrite_no_sync", "other_line"],
    "pmem_log": ["early_count", "unflushed_record", "undrained_record", "unflushed_count"],
    "pmemobj_list": ["unpersisted_node", "linked_first", "unpersisted_head"],
    "pmemobj_map": ["unlogged_head", "unlogged_count", "unlogged_value"],
}
BOUND = {"pmemobj_list": 12, "pmemobj_map": 6}  # states a point: opening a pool takes long


class Explored(unittest.TestCase):
    def setUp(self):
        where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="stele-foreign-test-", dir=where)
        self.addCleanup(shutil.rmtree, self.folder)
        self.pool = os.path.join(self.folder, "the pool")

    def command(self, *arguments):
        run = subprocess.run([FOREIGN, "foreign", "--dir", self.folder, *arguments], capture_output=True, text=True, check=False,
                             cwd=self.folder, env={**os.environ, "TMPDIR": self.folder})
        return run.returncode, run.stdout, run.stderr

    def checked_by(self):
        return f"'{PROGRAM}' check {{}}" + ("" if NAME in ("instructions", "command") else " {output}")

    def explore(self, bug, *options):
        if os.path.exists(self.pool):
            os.remove(self.pool)
        if NAME.startswith("pmemobj"):
            subprocess.run([PROGRAM, "create", self.pool], check=True)
        status, text, errors = self.command(
            "--pool", self.pool, "--check", self.checked_by(), "--bound", str(BOUND.get(NAME, 64)), "--violations", "3", "--json", "found",
            *options, "--", PROGRAM, "run", self.pool, bug, *([] if NAME in ("instructions", "command") else ["2"]))
        self.assertIn(status, (0, 1), f"{bug}: {text}{errors}")
        with open(os.path.join(self.folder, "found"), encoding="utf-8") as found:
            return status, json.load(found), text


class Programs(Explored):
    def test_a_right_program_violates_nothing(self):
        for bug in RIGHT[NAME]:
            with self.subTest(bug):
                status, found, text = self.explore(bug)
                self.assertEqual((status, found["violating"]), (0, 0), text)
                self.assertEqual(found["points"], found["points_total"])
                self.assertGreater(found["states"], 2)

    def test_each_planted_bug_is_found_and_replayed(self):
        for bug in PLANTED[NAME]:
            with self.subTest(bug):
                status, found, text = self.explore(bug)
                self.assertEqual(status, 1, text)
                self.assertGreater(found["violating"], 0)
                self.assertIn(found["smallest"]["checker"], text)
                replay = re.search(r"--trace '(.*)' --check .* --replay '(.*)'", found["smallest"]["replay"])
                status, again, errors = self.command("--trace", replay[1], "--check", self.checked_by(), "--replay", replay[2])
                self.assertEqual(status, 1, again + errors)
                self.assertIn(found["smallest"]["checker"], again)


    @unittest.skipUnless(NAME == "pmem_log", "of libpmem")
    def test_clflush_hides_a_missing_fence(self):
        """libpmem flushes as the processor can; a clflush is ordered with all stores."""
        self.assertEqual(self.explore("undrained_record", "--flush", "clflushopt")[0], 1)
        self.assertEqual(self.explore("undrained_record", "--flush", "clflush")[0], 0)


class Command(Explored):
    """What the command says when it cannot explore, and its options."""

    def fails(self, sentence, *arguments):
        status, text, errors = self.command(*arguments)
        self.assertNotEqual(status, 0, text)
        self.assertIn(sentence, errors)

    def run_of(self, way):
        return ["--", PROGRAM, "run", self.pool, way]

    def test_sentences(self):
        check = ["--check", self.checked_by()]
        self.fails("no program to run", *check)
        self.fails("is no program that can be run", *check, "--", "/no/such/program")
        self.fails("mapped no file", *check, "--", "/bin/true")
        self.fails("did not map", *check, "--pool", "/dev/null", *self.run_of("clwb"))
        self.fails("write {} where", "--check", "true", *self.run_of("clwb"))
        self.fails("cannot be run", "--check", "/no/checker {}", *self.run_of("clwb"))
        self.fails("without any crash", "--check", "false {}", *self.run_of("clwb"))
        self.fails("needs the recording", *check, "--replay", "1 kept")
        self.assertIn("ended with exit status 2", self.command(*check, *self.run_of("no such way"))[2])
        with_no_valgrind = {**os.environ, "PATH": "/nowhere"}
        run = subprocess.run([FOREIGN, "foreign", *check, *self.run_of("clwb")], capture_output=True, text=True, check=False, env=with_no_valgrind)
        self.assertIn("valgrind is not installed", run.stderr)

    def test_a_program_that_dies_is_explored_until_then(self):
        status, text, errors = self.command("--check", self.checked_by(), *self.run_of("abort"))
        self.assertEqual(status, 0, text)
        self.assertIn("ended by signal 6", errors)
        self.assertIn("crash points", text)

    def test_an_instruction_that_valgrind_lacks_is_told(self):
        self.fails("does not know an instruction", "--check", self.checked_by(), *self.run_of("avx512"))

    def test_the_pool_is_found_without_its_name(self):
        status, text, errors = self.command("--check", self.checked_by(), *self.run_of("no_fence"))
        self.assertEqual(status, 1, errors)
        self.assertIn(self.pool, text)
        self.assertIn("(instructions.c:", text)

    def test_a_recording_is_kept_and_a_state_written(self):
        check = ["--check", self.checked_by(), "--trace", "kept"]
        status, text, errors = self.command(*check, *self.run_of("no_fence"))
        self.assertEqual(status, 1, errors)
        line = re.search(r"--replay '(.*)'", text)[1]
        self.assertEqual(self.command(*check, "--replay", line, "--image", "image")[0], 1)
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "image")), 8192)
        self.assertEqual(self.command(*check, "--replay", "1 lost")[0], 0)

    def test_the_same_seed_finds_the_same(self):
        first, second = (self.explore("no_fence", "--seed", "7")[1] for _ in range(2))
        for key in ("states", "violating"):
            self.assertEqual(first[key], second[key])
        self.assertEqual(first["smallest"]["state"], second["smallest"]["state"])


def main():
    if not shutil.which("valgrind") or not os.path.exists(os.path.join(os.path.dirname(FOREIGN), "valgrind", "stele-amd64-linux")):
        print("skipped: valgrind or the recorder is missing (tools/deps --deep, then configure again)")
        sys.exit(77)
    case = Command if NAME == "command" else Programs
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
