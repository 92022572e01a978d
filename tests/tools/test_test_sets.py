"""tools/test-sets: which tests count as the same, and that a lost one is seen."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import program

test_sets = program.load("test-sets")


class TestSets(unittest.TestCase):
    def compared(self, now, before):
        """What it prints of these tests beside those, and its status."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as f:
            f.writelines(f"  Test #{n}: {name}\n" for n, name in enumerate(before, 1))
        self.addCleanup(os.unlink, f.name)
        out = io.StringIO()
        with mock.patch.object(test_sets, "listed", return_value=now), mock.patch.object(test_sets, "seconds_of", return_value={"a.b": 1.6}), \
                mock.patch("sys.argv", ["test-sets", "--before", f.name]), contextlib.redirect_stdout(out), self.assertRaises(SystemExit) as ended:
            test_sets.main()
        return out.getvalue(), ended.exception.code

    def test_both_sets_are_counted(self):
        said, status = self.compared([("a.b", True), ("published/x.y/redo", False), ("c", False)], ["a.b", "c"])
        self.assertIn("make test: 1 tests, 2 s of tests\nmake test-deep: 2 tests, 0 s of tests\n", said)
        self.assertEqual(status, 0)

    def test_names_are_the_same_wherever_their_parameters_lie(self):
        said, status = self.compared([("published/x.y/redo", False), ('r.s/("undo", 5)', True), ("g.write", False)],
                                     ['x.y/redo  # GetParam() = "redo"', 'r.s/(0x55cd pointing to "undo", 5)', "g.write (Disabled)"])
        self.assertEqual(status, 0, said)

    def test_a_lost_test_is_named(self):
        said, status = self.compared([("a.b", True), ("new", True)], ["a.b", "x.y/redo"])
        self.assertIn("lost: x.y/redo\nbefore: 2 tests; 1 are in neither set, 1 are new\n", said)
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()
