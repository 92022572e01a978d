"""Pools and stores that are open for reading, beside a process that writes: what they see, what they refuse, and who may be killed."""

import os
import pickle
import signal
import threading
import time

import stele
from beds import PoolCase

WRITER = """
import stele, sys
pool = stele.open(sys.argv[1], size="8M")
pool.root.update(a=pool.root.get("a", 0), b=[pool.root.get("a", 0)])
while True:
    with pool.transaction():
        pool.root["a"] += 1
        pool.root["b"] = [pool.root["a"]] * (pool.root["a"] % 40 + 1)
    sys.stdout.write(f"{pool.root['a']}\\n")
    sys.stdout.flush()
"""

READER = """
import stele, sys
pool = stele.open(sys.argv[1], read_only=True)
while True:
    with pool.transaction():
        a, b = pool.root["a"], pool.root["b"].copy()
    if set(b) != {a}:
        break
    sys.stdout.write(f"{a}\\n")
    sys.stdout.flush()
"""

HOLDER = """
import stele, sys, time
pool = stele.open(sys.argv[1], size="8M")
pool.root["a"] = 1
with pool.transaction():
    pool.root["a"] = 2
    print("inside", flush=True)
    sys.stdin.readline()
print("ended", flush=True)
time.sleep(60)
"""


class Readers(PoolCase):
    def read_only(self, name="pool", **options):
        pool = stele.open(self.path(name), read_only=True, **options)
        self.addCleanup(lambda: pool.closed or pool.close())
        return pool

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def start_writer(self):
        """A process that writes, and the last value that it had acknowledged when this returned."""
        writer = self.start(WRITER, self.path())
        self.addCleanup(lambda: writer.poll() is None and self.kill(writer))
        return writer, int(writer.stdout.readline())

    def start_holder(self):
        """A process that is inside a transaction until its standard input ends."""
        writer = self.start(HOLDER, self.path(), stdin=True)
        self.addCleanup(lambda: writer.stdin.closed or writer.stdin.close())
        self.addCleanup(self.kill, writer)
        self.assertEqual(writer.stdout.readline(), b"inside\n")
        return writer

    def look(self, pool, rounds=200):
        """Reads states; each must be whole and none older than the one before. Returns the last one's number."""
        last = 0
        for _ in range(rounds):
            with pool.transaction():
                a = pool.root["a"]
                time.sleep(0)
                b = pool.root["b"].copy()
                self.assertEqual((a, len(b)), (pool.root["a"], len(pool.root["b"])))
            self.assertEqual(set(b), {a})
            self.assertGreaterEqual(a, last)
            last = a
            seen = pool.root.copy()  # a single operation is of one state too
            self.assertEqual(set(seen["b"]), {seen["a"]})
        return last

    def test_a_with_sees_one_state_whoever_is_killed(self):
        writer, first = self.start_writer()
        pool = self.read_only()
        last = self.look(pool)
        self.assertGreater(last, first)
        self.kill(writer)
        last = self.look(pool, 5)
        self.assertEqual(self.look(pool, 5), last)
        writer, acknowledged = self.start_writer()
        self.assertGreaterEqual(acknowledged, last)
        self.assertGreater(self.look(pool), acknowledged)
        reader = self.start(READER, self.path())
        self.assertGreaterEqual(int(reader.stdout.readline()), acknowledged)
        self.kill(reader)
        newest = int(writer.stdout.readline())
        while int(writer.stdout.readline()) < newest + 50:
            pass  # it goes on
        self.kill(writer)
        with self.open() as again:
            again.check()
            self.assertEqual(set(again.root["b"]), {again.root["a"]})
            again.root["a"] = -1
            self.assertEqual(pool.root["a"], -1)
        self.assertEqual(pool.root["a"], -1)

    def test_whatever_would_change_it_is_refused(self):
        with self.open() as pool:
            pool.root.update(d={"a": 1}, l=[1, 2])
        reader = self.read_only()
        d, l = reader.root["d"], reader.root["l"]

        def enter_and_write():
            with reader.transaction():
                reader.root["x"] = 1

        for change in (lambda: reader.root.update(a=1), lambda: d.pop("a"), d.clear, lambda: d.setdefault("a"), lambda: l.append(1), l.sort,
                       lambda: l.__delitem__(0), lambda: l.__setitem__(slice(0, 1), []), lambda: reader.grow("16M"), reader.check, enter_and_write):
            with self.assertRaisesRegex(stele.errors.ReadOnlyError, "open for reading only"):
                change()
        with reader.transaction():
            self.assertRaises(stele.errors.ReadOnlyError, d.clear)
            self.assertEqual(d["a"], 1)  # a refused change does not end the transaction
        reader.sync()
        self.assertTrue(reader.read_only)
        self.assertIn("read only", repr(reader))
        self.assertEqual(reader.root, {"d": {"a": 1}, "l": [1, 2]})
        reader.close()
        self.assertRaisesRegex(stele.Error, "closed", reader.root.copy)

    def test_what_cannot_be_opened_for_reading_is_told(self):
        self.assertRaises(stele.errors.NotFoundError, self.read_only)
        self.assertRaises(stele.errors.NotFoundError, stele.KV, self.path(), read_only=True)
        self.open().close()
        self.assertRaises(stele.errors.LayoutError, stele.KV, self.path(), read_only=True)
        self.assertFalse(self.open().read_only)

    def test_a_state_that_is_gone_ends_the_with(self):
        with self.open() as pool:
            pool.root["a"] = 1
        reader = self.read_only(timeout=0.1)
        with self.assertRaisesRegex(stele.errors.CancelledError, "run it again"):
            with reader.transaction():
                self.assertEqual(reader.root["a"], 1)
                writer = self.start_holder()
                for _ in range(3):
                    self.assertRaises(stele.errors.CancelledError, lambda: reader.root["a"])
        with self.assertRaisesRegex(stele.errors.TimeoutError, "long transaction"):
            reader.root["a"]
        writer.stdin.close()
        self.assertEqual(writer.stdout.readline(), b"ended\n")
        self.assertEqual(reader.root["a"], 2)

    def test_a_killed_writer_does_not_end_the_with(self):
        writer, _ = self.start_writer()
        reader = self.read_only()
        with reader.transaction():
            a = reader.root["a"]
            while int(writer.stdout.readline()) < a + 20:
                pass
            self.kill(writer)
            self.assertEqual(set(reader.root["b"]), {a})
        self.assertGreaterEqual(reader.root["a"], a + 20)

    def test_a_writer_in_a_long_with_is_waited_for(self):
        writer = self.start_holder()
        with self.assertRaisesRegex(stele.errors.InUseError, "long transaction"):
            self.read_only()
        writer.stdin.close()
        self.assertEqual(writer.stdout.readline(), b"ended\n")
        self.assertEqual(self.read_only().root["a"], 2)

    def test_threads_of_a_reader(self):
        writer, _ = self.start_writer()
        reader, failures = self.read_only(), []

        def run():
            try:
                self.look(reader, 60)
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        time.sleep(0.05)
        self.kill(writer)
        again, _ = self.start_writer()
        for t in threads:
            t.join(60)
            self.assertFalse(t.is_alive(), "a thread hangs")
        # a state that went while a `with` was open on it is told
        self.assertEqual([f for f in failures if not isinstance(f, stele.errors.CancelledError)], [])
        self.assertGreater(self.look(reader, 5), 0)
        self.kill(again)

    def test_a_child_of_fork_opens_anew_and_nothing_is_pickled(self):
        with self.open() as pool:
            pool.root["a"] = 1
        reader = self.read_only()
        self.assertRaises(TypeError, pickle.dumps, reader)
        child = os.fork()
        if child == 0:
            try:
                reader.root["a"]
            except stele.errors.PoisonedError:
                os._exit(7 if stele.open(self.path(), read_only=True).root["a"] == 1 else 2)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        self.assertEqual(reader.root["a"], 1)

    def test_stores_are_read_too(self):
        kv = stele.KV(self.path("kv"), size="8M")
        kv["a"] = "1"
        with stele.KV(self.path("kv"), read_only=True) as reader:
            kv["b"] = "2"
            self.assertEqual(dict(reader.items()), {b"a": b"1", b"b": b"2"})
            with reader.transaction():
                self.assertEqual(len(reader), 2)
                writer = threading.Thread(target=lambda: kv.update(c="3"))
                writer.start()
                writer.join()
                self.assertEqual(list(reader), [b"a", b"b"])
            self.assertEqual(reader.get_many(["c"]), [b"3"])
            for change in (lambda: reader.update(a="2"), lambda: reader.pop("a"), lambda: reader.__delitem__("a"), reader.check):
                self.assertRaises(stele.errors.ReadOnlyError, change)
            kv.close()
            self.assertEqual(reader["c"], b"3")
