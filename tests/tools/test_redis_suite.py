"""What tools/redis-suite takes for a failure of Redis' tests, and when it is content."""

import contextlib
import io
import os
import subprocess
import tempfile
import time
import unittest

import program

suite = program.load("redis-suite")

TOLD = """\
[ready]: 4711
Testing unit/a
[ok]: SET and GET an item (1 ms)
[err]: SET [x] (y)? in z in tests/unit/a.tcl
Expected 'a' to be equal to 'b' (context: type eval line 3)
[err]: INCR in tests/unit/a.tcl
ERR value is not an integer
    while executing
[ok]: Generated in tests (12 ms)
[skip]: Slow one
[ignore]: Big one: large memory flag not provided
[err]: Can't start the Redis server
CONFIGURATION:port 1
[err]: nown command 'nosuch'
"""
ENDED = """\
[1/1 done]: unit/a (1 seconds)

                   The End

*** [err]: INCR in tests/unit/a.tcl
"""
LOG = """\
# Server initialized
* Module 'm' loaded from /m.so
* Ready to accept connections
### Starting test one in tests/unit/a.tcl
### Starting test two in tests/unit/a.tcl
"""
CRASH = "\n\n=== REDIS BUG REPORT START: Cut & paste starting from here ===\n"


class Parser(unittest.TestCase):
    def test_reads_cases(self):
        passed, skipped, failed = suite.read_cases(TOLD + ENDED)
        self.assertEqual((passed, skipped), (2, 2))
        self.assertEqual(failed, {"SET [x] (y)? in z", "INCR", "(no server)", "(outside of a case)"})

    def test_reads_why_a_unit_stopped(self):
        self.assertEqual(suite.stopped_early(TOLD + ENDED, 1, LOG), set())
        self.assertEqual(suite.stopped_early(TOLD, 1, LOG), {"(stopped)"})
        self.assertEqual(suite.stopped_early(TOLD + "[exception]: Executing test client: ERR.\n", 1, LOG), {"(exception)"})
        self.assertEqual(suite.stopped_early(TOLD, None, LOG), {"(time limit) two"})
        self.assertEqual(suite.stopped_early(TOLD + "[TIMEOUT]: clients state report follows.\n" + ENDED, 1, ""),
                         {"(time limit) (outside of a case)"})

    def test_reads_crashes_of_servers(self):
        self.assertEqual(suite.server_failures(LOG, None), set())
        self.assertEqual(suite.server_failures(LOG + CRASH + LOG.replace("two", "three"), None), {"(crash) two"})
        self.assertEqual(suite.server_failures(CRASH, None), {"(crash) (outside of a case)"})

    def test_reads_whether_a_server_has_the_module(self):
        self.assertEqual(suite.server_failures(LOG, "/m.so"), set())
        self.assertEqual(suite.server_failures(LOG, "/other.so"), {"(module not loaded)"})
        self.assertEqual(suite.server_failures("# Failed listening on port 1\n", "/m.so"), set())


class Verdict(unittest.TestCase):
    def verdict(self, lines, failures, plain_lines=()):
        verdict = suite.Verdict(plain=False)
        verdict.set_lines(lines, list(plain_lines))
        with contextlib.redirect_stdout(io.StringIO()):
            verdict.add(suite.result("unit/a", 3, 0, failures, 0.0, "log"))
            return verdict.finish({"unit/a"})

    def test_fails_unless_each_failure_is_listed(self):
        listed = [("unit/a", "SET [x]*", "why")]
        self.assertEqual(self.verdict([], set()), 0)
        self.assertEqual(self.verdict(listed, {"SET [x] (y)?", "SET [x] z"}), 0)
        self.assertEqual(self.verdict(listed, {"SET [x] (y)?", "SET x"}), 1)  # no set of letters
        self.assertEqual(self.verdict([("unit/b", "*", "why")], {"SET"}), 1)
        self.assertEqual(self.verdict([("unit/a", "SE", "why")], {"SE", "SET"}), 1)  # a whole name

    def test_fails_on_a_listed_case_that_passes(self):
        self.assertEqual(self.verdict([("unit/a", "SET", "why")], set()), 1)
        self.assertEqual(self.verdict([("unit/b", "SET", "why")], set()), 0)  # not run
        self.assertEqual(self.verdict([("unit/a", "SET", "at times: why")], set()), 0)
        self.assertEqual(self.verdict([], set(), [("unit/a", "SET", "why")]), 0)  # fails in plain Redis

    def test_fails_on_a_crash_unless_plain_redis_has_it(self):
        self.assertEqual(self.verdict([("unit/a", "*", "why")], {"(crash) one"}), 1)
        self.assertEqual(self.verdict([("unit/a", "(crash) one", "why")], {"(crash) one"}), 1)
        self.assertEqual(self.verdict([], {"(crash) one"}, [("unit/a", "(crash) one", "why")]), 0)
        self.assertEqual(self.verdict([], {"(crash) two"}, [("unit/a", "(crash) one", "why")]), 1)

    def test_lists_can_be_read(self):
        self.assertGreater(len(suite.read_list("expected_failures_plain.txt")), 0)
        suite.read_list("expected_failures.txt")


class Wrapper(unittest.TestCase):
    """Starts what stands for redis-server, which prints its configuration."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.where = os.path.realpath(folder.name)
        self.configuration, self.wrapper = f"{self.where}/redis.conf", f"{self.where}/redis-server"
        with open(self.wrapper, "w") as out:
            out.write(suite.WRAPPER.format(module="/m.so", arguments="size=1M x", server="/bin/cat"))

    def start(self, text=None):
        if text is not None:
            with open(self.configuration, "w") as out:
                out.write(text)
        return subprocess.run(["bash", self.wrapper, self.configuration], cwd=self.where, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    def test_names_the_module_once_with_a_pool_in_the_servers_folder(self):
        os.mkdir(f"{self.where}/server.1")
        line = f"loadmodule /m.so path {self.where}/server.1/redis.stele size=1M x"
        self.assertEqual(self.start("port 1\ndir /\ndir ./server.1")[-1:], [line])
        self.assertEqual(self.start().count(line), 1)  # a restart
        self.assertEqual(self.start("port 2\ndir ./server.1").count(line), 1)  # another port

    def test_takes_the_current_folder_where_none_is_named(self):
        self.assertEqual(self.start("port 1\n")[-1], f"loadmodule /m.so path {self.where}/redis.stele size=1M x")


class Running(unittest.TestCase):
    def left_after(self, last_step):
        """The exit status of a command that starts two processes, and those of them that still run afterwards."""
        with tempfile.TemporaryDirectory() as where:
            os.mkdir(f"{where}/server.1")
            # One process leaves the folder, the other the group of the command.
            script = f"(cd /; sleep 1000 & echo $!); (cd server.1; setsid sleep 1000 & echo $!); {last_step}"
            status = suite.run_limited(["bash", "-c", script], where, 1, f"{where}/log")
            pids = suite.read_text(f"{where}/log").split()
        self.assertEqual(len(pids), 2)
        return status, [pid for pid in pids if self.runs(pid)]

    def runs(self, pid):
        for _ in range(50):
            try:
                os.readlink(f"/proc/{pid}/cwd")  # none once the process has ended, even where nobody has waited for it
            except OSError:
                return False
            time.sleep(0.05)
        return True

    def test_ends_what_a_unit_started(self):
        self.assertEqual(self.left_after("exit 3"), (3, []))
        self.assertEqual(self.left_after("sleep 1000"), (None, []))

    def test_ranges_of_ports_are_apart(self):
        with suite.reserved_ports() as first, suite.reserved_ports() as second:
            self.assertGreaterEqual(abs(first - second), suite.PORTS)


if __name__ == "__main__":
    unittest.main()
