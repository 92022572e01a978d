"""A process without a free descriptor: each call ends with its answer or with a sentence, and nothing is lost or left behind."""

import os
import resource

import stele
from beds import PoolCase

MOST = 12  # more than any call needs at once


class Descriptors(PoolCase):
    def setUp(self):
        super().setUp()
        with stele.KV(self.path("kv"), size="8M") as kv:
            kv["a"] = "1"
        with stele.open(self.path("doc"), size="8M") as pool:
            pool.root["a"] = b"1"
        self.there = sorted(os.listdir(self.directory))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))

    def with_free(self, count, call):
        """What call() returns or raises while `count` descriptors are free."""
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for _ in range(count):
            os.close(taken.pop())
        try:
            return call()
        except stele.Error as error:
            return error
        finally:
            for number in taken:
                os.close(number)

    def test_none_is_free(self):
        copy = self.path("copy")

        def used(store, look):
            try:
                found = look(store)
                store.backup(copy)
                return found
            finally:
                store.close()

        calls = {
            "kv": lambda: used(stele.KV(self.path("kv")), lambda s: s["a"]),
            "kv on a file": lambda: used(stele.KV(self.path("kv"), media="file"), lambda s: s["a"]),
            "new": lambda: used(stele.KV(self.path("new"), size="8M"), lambda s: b"1"),
            "documents": lambda: used(stele.open(self.path("doc")), lambda s: s.root["a"]),
        }
        for name, call in calls.items():
            refused = 0
            for count in range(MOST):
                with self.subTest(name, free=count):
                    told = self.with_free(count, call)
                    if told != b"1":
                        refused += 1
                        self.assertIn("Too many open files", str(told))
                    for left in ("new", "copy"):
                        if os.path.exists(self.path(left)):
                            self.assertTrue(left == "new" or told == b"1", "a copy that is not whole is left")
                            os.remove(self.path(left))
                    self.assertEqual(sorted(os.listdir(self.directory)), self.there)
            self.assertTrue(0 < refused < MOST, "the numbers of free descriptors that were tried show nothing")
            self.assertEqual(call(), b"1", "afterwards it works")
            for left in ("new", "copy"):
                if os.path.exists(self.path(left)):
                    os.remove(self.path(left))
