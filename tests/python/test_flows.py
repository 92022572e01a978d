"""Whose an open transaction is: asyncio tasks and contexts of one thread, threads that end inside, and waits that end."""

import asyncio
import contextvars
import gc
import os
import signal
import sys
import threading
import time
import unittest
import weakref

import stele
from beds import PoolCase


class Tasks(PoolCase):
    def test_a_task_does_not_join_what_another_has_open(self):
        pool, kv = self.open(), stele.KV(self.path("kv"), size="1M")
        self.addCleanup(kv.close)
        pool.root["l"] = []
        said = []

        async def other():
            for use in (lambda: pool.root.update(b=1), lambda: pool.root["l"].append(1), lambda: pool.root.get("a"), lambda: len(pool.root),
                        lambda: pool.transaction().__enter__(), pool.root.copy, pool.check, lambda: pool.grow("16M")):
                with self.assertRaises(stele.errors.NestedError) as caught:
                    use()
                said.append(str(caught.exception))
            with self.assertRaisesRegex(stele.errors.NestedError, "another asyncio task"):
                kv["a"] = "1"

        async def holder():
            with pool.transaction():
                pool.root["a"] = 1
                await asyncio.create_task(other())  # inherits the values of this task's context
                await asyncio.gather(other())
                pool.root["c"] = 1

        asyncio.run(holder())
        self.assertIn("another asyncio task", said[0])
        self.assertIn("Do not await inside a `with`", said[4])
        self.assertEqual(pool.root, {"l": [], "a": 1, "c": 1})

    @unittest.skipIf(sys.version_info < (3, 11), "tasks cannot be given a context")
    def test_tasks_that_share_a_context_are_told_apart(self):
        pool = self.open()
        context, refused = contextvars.copy_context(), []

        async def use():
            try:
                pool.root["a"] = 2
            except stele.errors.NestedError:
                refused.append(1)

        async def hold():
            with pool.transaction():
                pool.root["a"] = 1
                await asyncio.create_task(use(), context=context)
                with pool.transaction():
                    self.assertEqual(pool.root["a"], 1)
            pool.root["b"] = 1

        async def both():
            await asyncio.create_task(hold(), context=context)
            transaction = pool.transaction()
            asyncio.get_running_loop().call_soon(transaction.__enter__, context=context)  # in no task
            await asyncio.sleep(0)
            await asyncio.create_task(use(), context=context)
            asyncio.get_running_loop().call_soon(transaction.__exit__, None, None, None, context=context)
            await asyncio.sleep(0)

        asyncio.run(both())
        self.assertEqual((refused, pool.root), ([1, 1], {"a": 1, "b": 1}))

    def test_another_thread_may_run_a_loop(self):
        pool, go, done = self.open(), threading.Event(), threading.Event()

        async def runs():
            go.set()
            done.wait(30)  # a task runs all the time

        thread = threading.Thread(target=lambda: asyncio.run(runs()))
        thread.start()
        go.wait(30)
        try:
            with pool.transaction():
                pool.root["a"] = 1
                pool.root["a"] += 1
        finally:
            done.set()
            thread.join(30)
        self.assertEqual(pool.root, {"a": 2})

    def test_interleaved_transactions_are_each_whole_or_refused(self):
        pool = self.open()
        pool.root["n"] = 0
        refused = []

        async def add():
            for _ in range(20):
                try:
                    with pool.transaction():
                        n = pool.root["n"]
                        await asyncio.sleep(0)
                        pool.root["n"] = n + 1
                except stele.errors.NestedError:
                    refused.append(1)
                    await asyncio.sleep(0)

        async def all_of_them():
            await asyncio.gather(add(), add(), add())

        asyncio.run(all_of_them())
        self.assertEqual(pool.root["n"] + len(refused), 60)
        self.assertGreater(len(refused), 0)

    def test_a_task_may_await_and_call_in_its_own_transaction(self):
        pool = self.open()

        async def helper():
            pool.root["b"] = 2

        async def holder():
            with pool.transaction():
                pool.root["a"] = 1
                await helper()
                await asyncio.sleep(0.001)
                contextvars.copy_context().run(pool.root.update, c=3)  # of the same task
                await asyncio.to_thread(lambda: None)

        asyncio.run(holder())
        self.assertEqual(pool.root, {"a": 1, "b": 2, "c": 3})

    def test_a_callback_and_a_thread_of_its_own(self):
        pool, met = self.open(), []

        def callback():
            try:
                pool.root["b"] = 1
            except stele.errors.NestedError:
                met.append("refused")

        async def holder():
            loop = asyncio.get_running_loop()
            with pool.transaction():
                loop.call_soon(callback)
                beside = asyncio.to_thread(pool.root.update, c=1)  # waits for this transaction
                waiting = asyncio.create_task(beside)
                await asyncio.sleep(0.05)
                pool.root["a"] = 1
            await waiting

        asyncio.run(holder())
        self.assertEqual((met, pool.root), (["refused"], {"a": 1, "c": 1}))

    def test_another_context_is_another_flow(self):
        pool = self.open()
        other = contextvars.copy_context()
        with pool.transaction():
            with self.assertRaises(stele.errors.NestedError):
                other.run(pool.root.update, a=1)
            contextvars.ContextVar("any").set(1)
            pool.root["b"] = 1
        self.assertEqual(pool.root, {"b": 1})

    def test_a_cancelled_task_rolls_back(self):
        pool = self.open()

        async def holder():
            with pool.transaction():
                pool.root["a"] = 1
                await asyncio.sleep(60)

        async def cancels():
            task = asyncio.create_task(holder())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            pool.root["b"] = 1

        asyncio.run(cancels())
        self.assertEqual(pool.root, {"b": 1})

    def test_a_with_that_another_task_ends_is_rolled_back(self):
        pool = self.open()

        async def begin(transaction):
            transaction.__enter__()
            pool.root["a"] = 1

        async def both():
            transaction = pool.transaction()
            await asyncio.create_task(begin(transaction))
            with self.assertRaisesRegex(stele.errors.NestedError, "nothing of it is kept"):
                transaction.__exit__(None, None, None)
            pool.root["b"] = 1
            await asyncio.create_task(begin(transaction))
            transaction.__exit__(RuntimeError, RuntimeError(), None)  # rolls back in any case
            pool.root["c"] = 1

        asyncio.run(both())
        self.assertEqual(pool.root, {"b": 1, "c": 1})

    def test_an_abandoned_generator_rolls_back_when_it_is_collected(self):
        pool = self.open()

        def lends():
            with pool.transaction():
                pool.root["a"] = 1
                yield
                self.fail("nobody goes on")

        half = lends()
        next(half)
        pool.root["b"] = 1  # a generator runs in its caller's flow: this is a part of its transaction
        del half
        gc.collect()
        pool.root["c"] = 1
        self.assertEqual(pool.root, {"c": 1})


class Ends(PoolCase):
    def in_thread(self, f):
        thread = threading.Thread(target=f)
        thread.start()
        thread.join(30)
        self.assertFalse(thread.is_alive())

    def test_a_thread_that_ends_inside_rolls_back(self):
        pool, kept = self.open(), []
        pool.root["a"] = 0

        def leaves_it_open():
            transaction = pool.transaction()
            transaction.__enter__()
            pool.root["a"] = 1
            pool.transaction().__enter__()
            kept.append(transaction)

        def leaves_a_generator():
            def half():
                with pool.transaction():
                    pool.root["a"] = 2
                    yield

            kept.append(half())
            next(kept[-1])

        for leaves in (leaves_it_open, leaves_a_generator):
            for _ in range(3):
                self.in_thread(leaves)
                self.assertEqual(pool.root["a"], 0)
                self.in_thread(lambda: pool.root.update(other=1))
                pool.root["mine"] = 1
        with self.assertRaisesRegex(stele.errors.InvalidArgumentError, "in the thread that began it"):
            kept[0].__exit__(None, None, None)

    def test_the_last_reference_may_go_with_the_thread(self):
        path = self.path()

        def opens_and_leaves():
            pool = stele.open(path, size="1M")
            pool.root["a"] = 1
            pool.transaction().__enter__()
            pool.root["a"] = 2

        self.in_thread(opens_and_leaves)
        gc.collect()
        self.assertEqual(self.open().root, {"a": 1})

    def test_a_pool_outlives_its_last_name_while_a_transaction_is_open(self):
        pool = stele.open(self.path(), size="1M")
        gone, core = weakref.ref(pool), pool._core
        entered, leave = threading.Event(), threading.Event()

        def holds(core):
            stele._stele.Transaction(core).__enter__()
            del core
            entered.set()
            leave.wait(30)

        thread = threading.Thread(target=holds, args=(core,))
        thread.start()
        entered.wait(30)
        del pool, core
        gc.collect()
        self.assertIsNone(gone())
        self.assertRaises(stele.errors.InUseError, stele.open, self.path())
        leave.set()
        thread.join(30)
        del thread
        gc.collect()
        self.open().root["a"] = 1

    def test_the_end_of_the_program_waits_for_no_daemon_for_long(self):
        program = """
import stele, sys, threading
pool = stele.open(sys.argv[1], size="1M")
pool.root["a"] = 1
entered = threading.Event()
def hold():
    with pool.transaction():
        pool.root["a"] = 2
        entered.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
entered.wait()
print("end", flush=True)
"""
        other = self.start(program, self.path())
        self.assertEqual(other.stdout.readline(), b"end\n")
        other.wait(20)
        self.assertEqual(self.open().root, {"a": 1})


INTERRUPTED = """
import stele, sys, threading, time
pool = stele.open(sys.argv[1], size="1M")
pool.root["a"] = 1
entered, leave = threading.Event(), threading.Event()
def hold():
    with pool.transaction():
        pool.root["a"] = 2
        entered.set()
        leave.wait()
threading.Thread(target=hold).start()
entered.wait()
for wait in (lambda: pool.root.update(b=1), pool.transaction().__enter__, lambda: pool.root["a"], pool.check, lambda: pool.grow("2M"),
             lambda: pool.backup(sys.argv[1] + ".copy"), pool.close):
    print("waits", flush=True)
    try:
        wait()
        print("went on", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
leave.set()
with pool.transaction():
    pool.root["c"] = 3
print(pool.root, flush=True)
"""


class Waits(PoolCase):
    def held(self, pool):
        """A thread that holds a transaction which has changed "a"; the function ends it."""
        entered, leave = threading.Event(), threading.Event()

        def hold():
            with pool.transaction():
                pool.root["a"] = -1
                entered.set()
                leave.wait(30)
                raise SystemExit

        thread = threading.Thread(target=hold, name="the holder")
        thread.start()
        entered.wait(30)

        def end():
            leave.set()
            thread.join(30)

        self.addCleanup(end)
        return end

    def test_interrupts_end_every_wait(self):
        other = self.start(INTERRUPTED, self.path())
        for _ in range(7):
            self.assertEqual(other.stdout.readline(), b"waits\n")
            time.sleep(0.1)
            begun = time.monotonic()
            other.send_signal(signal.SIGINT)
            self.assertEqual(other.stdout.readline(), b"interrupted\n")
            self.assertLess(time.monotonic() - begun, 5)  # a hang, not a time
        self.assertEqual(other.stdout.readline(), b"stele.Dict({'a': 2, 'c': 3})\n")
        self.assertEqual(other.wait(30), 0)
        self.assertEqual(os.listdir(self.directory), ["pool"])

    def test_waits_have_a_limit(self):
        pool = self.open(timeout=0.05)
        pool.root.update(a=1, b=1)
        end = self.held(pool)
        for wait in (lambda: pool.root.update(b=2), pool.transaction().__enter__, pool.transaction(timeout=0).__enter__, lambda: pool.root["a"],
                     pool.check, lambda: pool.grow("16M"), lambda: pool.backup(self.path("copy")), pool.close):
            with self.assertRaisesRegex(stele.errors.TimeoutError, r"waited for 0.* s \(timeout\), but the thread 'the holder' is inside a `with`"):
                wait()
        self.assertRaises(TimeoutError, pool.root.__delitem__, "b")  # Python's own
        self.assertEqual(pool.root["b"], 1)  # a read of what has not changed does not wait
        self.assertFalse(pool.closed)
        self.assertFalse(os.path.exists(self.path("copy")))
        threading.Timer(0.2, end).start()
        with pool.transaction(timeout=None):
            pool.root["b"] = 3
        self.assertEqual(pool.root, {"a": 1, "b": 3})

    def test_a_store_has_a_limit_too(self):
        kv = stele.KV(self.path("kv"), size="1M", timeout=0)
        kv["a"] = "1"
        entered, leave = threading.Event(), threading.Event()

        def hold():
            with kv.transaction():
                entered.set()
                leave.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        entered.wait(30)
        self.assertRaises(stele.errors.TimeoutError, kv.update, {"b": "1"})
        leave.set()
        thread.join()
        kv.close()

    def test_what_is_no_time_is_refused(self):
        for wrong, error in ((-1, ValueError), (float("nan"), ValueError), ("soon", TypeError)):
            self.assertRaises(error, stele.open, self.path(), size="1M", timeout=wrong)
            self.assertRaises(error, stele.KV, self.path(), size="1M", timeout=wrong)
            self.assertEqual(os.listdir(self.directory), [])
        pool = self.open(timeout=float("inf"))
        self.assertRaises(ValueError, pool.transaction, timeout=-0.5)
        self.assertRaises(TypeError, pool.transaction, timeout="soon")
        pool.root["a"] = 1

    def test_care_beside_a_with_and_readers_does_not_hang(self):
        """Growth, check and backup pause transactions; a reader with the interpreter must not wait for that."""
        sys.setswitchinterval(1e-5)
        self.addCleanup(sys.setswitchinterval, 0.005)
        pool, stop = self.open(), threading.Event()
        pool.root.update(a=0, b=0)

        def write():
            while not stop.is_set():
                with pool.transaction():
                    pool.root["a"] += 1
                    time.sleep(0.0005)
                    pool.root["b"] += 1

        def read():
            while not stop.is_set():
                pool.root["c"] if "c" in pool.root else len(pool.root)

        threads = [threading.Thread(target=f, daemon=True) for f in (write, read, read)]
        for t in threads:
            t.start()
        for i in range(15):
            pool.check()
            pool.grow(i << 18)
            pool.backup(self.path("copy"))
            os.remove(self.path("copy"))
        stop.set()
        for t in threads:
            t.join(30)
            self.assertFalse(t.is_alive(), "a thread hangs")
        self.assertEqual(pool.root["a"], pool.root["b"])


if __name__ == "__main__":
    unittest.main()
