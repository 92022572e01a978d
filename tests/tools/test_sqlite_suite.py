"""What tools/sqlite-suite takes for a failure of SQLite's tests, and when it is content."""

import contextlib
import io
import unittest

import program

suite = program.load("sqlite-suite")

TOLD = """\
a-1.1... Ok
a-1.2...
! a-1.2 expected: [1]
! a-1.2 got:      [2]
a-1.3...
Error: no such table: t
2 errors out of 3 tests on a machine
!Failures on these tests: a-1.2 a-1.3
"""


class Verdict(unittest.TestCase):
    def verdict(self, lines, failures, crash=""):
        verdict = suite.Verdict("stele")
        verdict.strict, verdict.lines = lines, lines
        with contextlib.redirect_stdout(io.StringIO()):
            verdict.add(suite.result("a.test", 3, failures, crash, 0.0, "log"))
            return verdict.finish({"a.test"})

    def test_reads_failures(self):
        self.assertEqual(suite.failed_cases(TOLD), {"a-1.2", "a-1.3"})

    def test_fails_unless_each_failure_is_listed(self):
        listed = [("a.test", "a-1.*", "why")]
        self.assertEqual(self.verdict([], set()), 0)
        self.assertEqual(self.verdict(listed, {"a-1.2", "a-1.3"}), 0)
        self.assertEqual(self.verdict(listed, {"a-1.2", "a-2.1"}), 1)
        self.assertEqual(self.verdict([("b.test", "*", "why")], {"a-1.2"}), 1)

    def test_fails_on_a_listed_case_that_passes(self):
        self.assertEqual(self.verdict([("a.test", "a-1.2", "why")], set()), 1)
        self.assertEqual(self.verdict([("b.test", "b-1", "why")], set()), 0)  # not run

    def test_fails_on_a_crash_whatever_is_listed(self):
        self.assertEqual(self.verdict([("a.test", "*", "why")], {"a-1.2"}, "SIGSEGV"), 1)

    def test_lists_have_reasons(self):
        for name in ("expected_failures.txt", "expected_failures_unix.txt"):
            self.assertGreater(len(suite.read_list(name)), 5)


if __name__ == "__main__":
    unittest.main()
