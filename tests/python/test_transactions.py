"""Transactions that Python holds open: what they undo, who waits for whom, and what a killed process leaves."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import stele
from beds import PoolCase


class Transactions(PoolCase):
    def test_an_exception_rolls_everything_back(self):
        pool = self.open()
        pool.root.update(a=1, l=[1])
        commits = pool.counters["commits"]
        with self.assertRaises(ZeroDivisionError):
            with pool.transaction():
                pool.root["a"] = 2
                pool.root["l"].append(2)
                pool.root["new"] = {}
                new = pool.root["new"]
                self.assertEqual(pool.root, {"a": 2, "l": [1, 2], "new": {}})
                raise ZeroDivisionError
        self.assertEqual(pool.root, {"a": 1, "l": [1]})
        self.assertRaises(stele.errors.NotFoundError, new.copy)
        self.assertEqual(pool.counters["commits"], commits)
        with pool.transaction(ordered=True):
            pool.root["a"] = 3
            pool.root["b"] = 4
        self.assertEqual(pool.counters["commits"], commits + 1)

    def test_a_conflict_is_an_error_of_its_own(self):
        self.assertIs(stele.errors.by_code("conflict"), stele.errors.ConflictError)
        self.assertTrue(issubclass(stele.errors.ConflictError, stele.errors.Error))

    def test_one_in_another_is_a_part_of_it(self):
        pool = self.open()
        with pool.transaction():
            pool.root["a"] = 1
            with pool.transaction():
                pool.root["b"] = 2
        self.assertEqual(pool.root, {"a": 1, "b": 2})
        with self.assertRaisesRegex(stele.errors.CancelledError, "inside this one"):
            with pool.transaction():
                pool.root["c"] = 1
                try:
                    with pool.transaction():
                        pool.root["d"] = 1
                        raise ValueError
                except ValueError:
                    pass
                self.assertRaises(stele.errors.CancelledError, pool.root.__setitem__, "e", 1)
        self.assertEqual(pool.root, {"a": 1, "b": 2})

    def test_a_transaction_changes_one_pool(self):
        pool, other = self.open(), self.open("other")
        with pool.transaction():
            self.assertRaises(stele.errors.NestedError, other.root.__setitem__, "a", 1)
            self.assertRaises(stele.errors.NestedError, other.root.copy)
            with self.assertRaises(stele.errors.NestedError):
                with other.transaction():
                    pass
            self.assertRaises(stele.errors.InUseError, pool.close)
            pool.root["kept"] = 1
        self.assertEqual(pool.root, {"kept": 1})
        other.root["a"] = 1

    def test_a_full_pool_refuses_and_goes_on(self):
        pool = self.open(size="1M")
        with self.assertRaises(stele.errors.FullError):
            for i in range(100_000):
                pool.root[i] = "x" * 1000
        kept = len(pool.root)
        self.assertGreater(kept, 100)
        pool.check()
        with self.assertRaises(stele.errors.FullError):  # although the body swallows the error
            with pool.transaction():
                pool.root["half"] = 1
                try:
                    pool.root["more"] = ["y" * 1000] * 1000
                except stele.errors.FullError:
                    pass
        self.assertNotIn("half", pool.root)
        with pool.transaction():
            for i in range(kept // 2):
                del pool.root[i]
        pool.root["room"] = "y" * 5000
        pool.check()

    def test_iterating_holds_no_transaction(self):
        pool = self.open()
        pool.root.update({str(i): [i] for i in range(10)})
        half = iter(pool.root.items())
        next(half)
        thread = threading.Thread(target=lambda: next(iter(pool.root)))
        thread.start()
        thread.join()
        for key in pool.root:
            del pool.root[key]
        self.assertEqual(len(pool.root), 0)
        self.assertEqual(len(list(half)), 9)
        pool.close()
        self.assertRaisesRegex(stele.Error, "closed", pool.root.copy)

    def test_a_pool_has_one_opener(self):
        pool = self.open()
        self.assertRaises(stele.errors.InUseError, stele.open, self.path())
        program = "import stele, sys\ntry: stele.open(sys.argv[1])\nexcept stele.errors.InUseError as e: print(e.code)"
        other = self.start(program, self.path())
        self.assertEqual(other.stdout.read(), b"in_use\n")
        other.wait()
        pool.close()
        pool.close()
        self.open().close()
        self.assertRaises(stele.errors.NotFoundError, stele.open, self.path("missing"))
        with open(self.path("text"), "w") as file:
            file.write("no pool" * 5000)
        self.assertRaises(stele.errors.NotAPoolError, stele.open, self.path("text"))
        self.assertRaises(ValueError, stele.open, self.path(), "many")

    def test_a_child_of_fork_is_told_to_open_anew(self):
        pool = self.open()
        pool.root["a"] = 1
        child = os.fork()
        if child == 0:
            try:
                pool.root["a"] = 2
            except stele.errors.PoisonedError:
                os._exit(7)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        self.assertEqual(pool.root["a"], 1)


class Threads(PoolCase):
    def run_all(self, *functions):
        failures = []

        def guarded(f):
            try:
                f()
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
            self.assertFalse(t.is_alive(), "a thread hangs")
        if failures:
            raise failures[0]

    def transfer(self, pool, rounds):
        for i in range(rounds):
            with pool.transaction(ordered=i % 3 == 0):
                pool.root["a"] -= 1
                pool.root["b"] += 1

    def look(self, pool, rounds):
        for _ in range(rounds):
            seen = pool.root.copy()
            self.assertEqual(seen["a"] + seen["b"], 0)

    def count(self, pool, rounds):
        for _ in range(rounds):
            pool.root["n"] = pool.root.get("n", 0)

    def test_readers_see_whole_transactions(self):
        sys.setswitchinterval(1e-5)
        self.addCleanup(sys.setswitchinterval, 0.005)
        pool = self.open()
        pool.root.update(a=0, b=0, n=0)
        self.run_all(lambda: self.transfer(pool, 400), lambda: self.transfer(pool, 400), lambda: self.look(pool, 800), lambda: self.count(pool, 400))
        self.assertEqual((pool.root["a"], pool.root["b"]), (-800, 800))

    def test_many_threads_take_turns(self):
        sys.setswitchinterval(1e-5)
        self.addCleanup(sys.setswitchinterval, 0.005)
        pool = self.open()
        pool.root["n"] = 0

        def add():
            for _ in range(200):
                with pool.transaction():
                    time.sleep(0)  # the others begin to wait
                    pool.root["n"] += 1

        self.run_all(*[add] * 8)
        self.assertEqual(pool.root["n"], 1600)

    def test_a_pool_with_one_log_is_shared_too(self):
        """Such a pool is made by way of C; a reader must not wait for the log with the interpreter in its hands."""
        library = os.environ.get("STELE_C_LIBRARY")
        if not library:
            self.skipTest("STELE_C_LIBRARY does not name libstele.so")

        class Options(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("create_size", ctypes.c_size_t), ("layout", ctypes.c_char_p), ("mechanism", ctypes.c_char_p),
                        ("media", ctypes.c_char_p), ("policy", ctypes.c_int), ("no_background", ctypes.c_int), ("log_size", ctypes.c_size_t),
                        ("log_count", ctypes.c_size_t)]

        c, made = ctypes.CDLL(library), ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), 4 << 20, b"stele.document", log_count=1)
        self.assertEqual(c.stele_pool_open(self.path().encode(), ctypes.byref(options), ctypes.c_size_t(296), ctypes.byref(made)), 0)
        self.assertEqual(c.stele_pool_close(made), 0)
        pool = self.open()
        pool.root.update(a=0, b=0)
        self.run_all(lambda: self.transfer(pool, 200), lambda: self.look(pool, 200), lambda: self.look(pool, 200))
        self.assertEqual(pool.root["b"], 200)

    def test_who_waits_lets_others_run(self):
        pool, ticks = self.open(), []
        pool.root.update(held={"a": 0}, c=1)
        entered, leave = threading.Event(), threading.Event()

        def hold():
            with pool.transaction():
                pool.root["held"]["a"] = 1
                entered.set()
                self.assertTrue(leave.wait(30))

        def write():
            entered.wait(30)
            pool.root["b"] = 1

        def tick():
            entered.wait(30)
            time.sleep(0.05)  # the writer waits now
            self.assertEqual(pool.root["c"], 1)  # neither the open transaction nor the waiting writer has changed it
            for _ in range(20):
                ticks.append(len(ticks))
                time.sleep(0.001)
            leave.set()

        self.run_all(hold, write, tick)
        self.assertEqual(len(ticks), 20)
        self.assertEqual(pool.root, {"held": {"a": 1}, "c": 1, "b": 1})

    def test_a_read_of_what_is_being_changed_waits_for_its_end(self):
        pool, seen = self.open(), []
        pool.root["a"] = 0
        entered = threading.Event()

        def hold():
            with pool.transaction():
                pool.root["a"] = 1
                entered.set()
                time.sleep(0.1)

        def read():
            entered.wait(30)
            seen.append(pool.root["a"])

        self.run_all(hold, read)
        self.assertEqual(seen, [1])

    def test_a_transaction_ends_where_it_began(self):
        pool = self.open()
        transaction = pool.transaction()
        transaction.__enter__()
        said = []

        def end_it():
            try:
                transaction.__exit__(None, None, None)
            except stele.errors.InvalidArgumentError as e:
                said.append(str(e))

        self.run_all(end_it)
        self.assertIn("in the thread that began it", said[0])
        transaction.__exit__(None, None, None)
        pool.root["after"] = 1


WRITER = """
import stele, sys
pool = stele.open(sys.argv[1], size="8M")
n = pool.root.get("n", 0)
while True:
    n += 1
    if n % 2:
        with pool.transaction():
            pool.root["n"] = n
            pool.root.setdefault("log", {})[n] = [n, "x" * (n % 50)]
    else:
        pool.root["n"] = n
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


class Kills(PoolCase):
    def test_what_was_acknowledged_survives_sigkill(self):
        acknowledged = 0
        for kill in range(6):
            writer = self.start(WRITER, self.path())
            for _ in range(50 + 157 * kill):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                if line.endswith(b"\n"):
                    acknowledged = int(line)
            writer.wait()
            pool = self.open()
            pool.check()
            n, log = pool.root["n"], pool.root["log"].copy()
            self.assertIn(n, (acknowledged, acknowledged + 1))
            self.assertEqual(log, {i: [i, "x" * (i % 50)] for i in range(1, n + 1, 2)})
            pool.close()


if __name__ == "__main__":
    unittest.main()
