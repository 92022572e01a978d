"""Handlers of signals that use pools while their thread waits for another one's `with`."""

import signal
import sys
import threading
import unittest

import stele
from beds import PoolCase


class Handlers(PoolCase):
    def setUp(self):
        super().setUp()
        self.waited, self.other = self.open(), self.open("other")
        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))

    def while_it_waits(self, handler, call):
        """Runs the call, which waits for a `with` of another thread until the handler has begun."""
        inside, done, ran = threading.Event(), threading.Event(), []

        def hold():
            with self.waited.transaction():
                inside.set()
                done.wait(60)

        def handle(*_):
            ran.append(1)
            try:
                handler(done)
            finally:
                done.set()

        holder = threading.Thread(target=hold)
        holder.start()
        inside.wait()
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            call()
        finally:
            done.set()
            holder.join()
        self.assertEqual(ran, [1])

    def update(self):
        with self.waited.transaction():
            self.waited.root["n"] = 1

    def test_what_they_use_is_apart(self):
        """The first pool was never given up: the handler's `with` took the place in which the thread kept it."""

        def use_other(_):
            with self.other.transaction():
                self.other.root["n"] = 2
            self.other.root["m"] = 3

        def references():
            return sys.getrefcount(self.waited._core), sys.getrefcount(self.other._core)

        before = references()
        self.while_it_waits(use_other, self.update)
        self.assertEqual(references(), before)
        self.assertEqual((self.waited.root["n"], self.other.root), (1, {"n": 2, "m": 3}))

    def test_a_with_that_they_leave_open_takes_nothing_in(self):
        """What was waited for became a part of it: it was acknowledged, and lost with it."""
        for pool in (self.other, self.waited):
            for call in (self.update, lambda: self.waited.root.__setitem__("n", 1)):
                left = []

                def leave_open(done):
                    done.set()
                    left.append(pool.transaction())
                    left[0].__enter__()

                with self.assertRaisesRegex(stele.errors.NestedError, "a signal's handler has left a transaction open"):
                    self.while_it_waits(leave_open, call)
                pool.root["m"] = 2
                left[0].__exit__(ValueError, ValueError(), None)
                self.assertEqual((self.waited.root, self.other.root), ({}, {}))
        self.update()
        self.assertEqual(self.waited.root, {"n": 1})


if __name__ == "__main__":
    unittest.main()
