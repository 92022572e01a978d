"""A closed pool holds nothing of its file, whatever still refers to it, and closing releases also after an error."""

import os
import subprocess
import sys
import threading

import stele
from beds import PoolCase


def held(path):
    """Descriptors and mappings of the file in this process."""
    with open("/proc/self/maps") as maps:
        mapped = sum(path in line for line in maps)
    return sum(os.path.realpath("/proc/self/fd/" + f) == path for f in os.listdir("/proc/self/fd")), mapped


FAILED_WRITE = """
import os, resource, signal, sys
import stele
from test_closing import held
kind, path = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
open_it = lambda: stele.KV(path, size="8M", media="file") if kind == "kv" else stele.open(path, size="8M", media="file")
pool = open_it()
items = lambda p: p if kind == "kv" else p.root
items(pool)["a"] = "1"
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
try:
    items(pool)["b"] = "2"
except stele.errors.PoisonedError:
    pass
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
try:
    pool.close()
except stele.errors.PoisonedError as e:
    assert path in str(e), e
else:
    raise AssertionError("what is lost is not told")
assert pool.closed and held(path) == (0, 0), held(path)
pool.close()
again = open_it()
assert items(again)["a"] in ("1", b"1")
again.close()
"""


class Closing(PoolCase):
    def pools(self):
        """Of each kind a pool, what refers to it, and calls that must say that it is closed."""
        pool = self.open()
        pool.root.update(d={"a": 1}, l=[1, [2]])
        some, inner, keys = pool.root["l"], pool.root["d"], iter(pool.root.keys())
        yield pool, (some, inner, keys, pool.root.items()), (pool.root.copy, lambda: some[0], lambda: inner["a"], lambda: len(pool.root), lambda: some.append(1),
                                                            pool.sync, pool.check, lambda: pool.space, lambda: pool.counters, lambda: pool.mechanism,
                                                            lambda: pool.grow("16M"), lambda: pool.backup(self.path("copy")), pool.transaction().__enter__)
        kv = self.open_kv()
        kv.update(a="1", b="2")
        named, walk = kv.open_store("named"), kv.items()
        named["x"] = "y"
        next(walk)
        yield kv, (named, walk), (lambda: kv["a"], lambda: kv.put("a", "1"), lambda: named["x"], lambda: list(kv), lambda: list(named.items()), kv.stores,
                                  lambda: kv.open_store("third"), lambda: kv.drop_store("named"), lambda: kv.get_many(["a"]), lambda: kv.modify("a", str),
                                  kv.statistics, kv.sync, lambda: named.counters, named.transaction().__enter__)

    def test_nothing_of_the_file_is_held(self):
        for pool, _referring, calls in self.pools():
            self.assertEqual(held(pool.path), (1, held(pool.path)[1]))
            pool.close()
            self.assertEqual(held(pool.path), (0, 0))
            for call in calls:
                with self.assertRaisesRegex(stele.errors.InvalidArgumentError, "has been closed"):
                    call()
            pool.close()
            self.assertTrue(pool.closed)
            self.assertIn("closed", repr(pool))
            self.assertEqual(os.listdir(self.directory).count(os.path.basename(pool.path)), 1)

    def test_a_reader_holds_nothing_either(self):
        self.open().close()
        reader = stele.open(self.path(), read_only=True)
        root = reader.root
        reader.close()
        self.assertEqual(held(self.path()), (0, 0))
        self.assertRaisesRegex(stele.Error, "closed", root.copy)

    def test_a_closed_pool_is_opened_again_beside_what_refers_to_it(self):
        for pool, _referring, calls in self.pools():
            pool.close()
            again = stele.open(pool.path) if isinstance(pool, stele.Pool) else stele.KV(pool.path)
            for call in calls:
                self.assertRaisesRegex(stele.Error, "closed", call)
            again.close()

    def test_threads_that_read_while_it_is_closed(self):
        for rounds in range(20):
            kv, stop, wrong = stele.KV(self.path(f"kv{rounds}"), size="1M"), threading.Event(), []
            kv["a"] = "1"

            def read():
                try:
                    while not stop.is_set():
                        assert kv["a"] == b"1" and len(list(kv.items())) == 1
                except stele.errors.InvalidArgumentError as e:
                    if "closed" not in str(e):
                        wrong.append(e)
                except BaseException as e:
                    wrong.append(e)

            threads = [threading.Thread(target=read) for _ in range(3)]
            for t in threads:
                t.start()
            kv.close()
            stop.set()
            for t in threads:
                t.join(60)
            self.assertEqual(wrong, [])
            self.assertEqual(held(kv.path), (0, 0))

    def test_closing_releases_after_a_failed_write(self):
        for kind in ("kv", "documents"):
            with self.subTest(kind=kind):
                ran = subprocess.run([sys.executable, "-c", FAILED_WRITE, kind, self.path(kind)], capture_output=True, text=True, timeout=60,
                                     env=dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path])))
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
