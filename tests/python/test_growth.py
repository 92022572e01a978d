"""Pools that grow again and again, and use what became free: sound after a clean close, whatever their size was."""

import os
import unittest

import stele
import stele.sqlite
from beds import PoolCase
from test_sqlite import loads_extensions

CHUNK, PAGE = 16384, 4096  # of pools from 4 MiB on
SIZES = range(4 << 20, (4 << 20) + CHUNK + PAGE, PAGE)  # each room that there can be behind the last chunk


class Growth(PoolCase):
    def test_of_dicts(self):
        for size in SIZES:
            with self.subTest(size=size):
                name = f"dict-{size}"
                pool = self.open(name, size=size, max_size="64M")
                n = 0
                while pool.space["size_bytes"] < 3 * size:
                    pool.root[n] = b"x" * 60_000
                    n += 1
                pool.close()
                pool = self.open(name, verify="always")
                self.assertEqual(len(pool.root), n)
                pool.check()
                pool.close()

    def test_of_stores(self):
        for size in SIZES:
            with self.subTest(size=size):
                name = f"kv-{size}"
                store = self.open_kv(name, size=size, max_size="64M")
                n = 0
                while store.space["size_bytes"] < 3 * size:
                    store[f"{n}".encode()] = b"x" * 60_000
                    n += 1
                store.close()
                store = self.open_kv(name, verify="always")
                self.assertEqual(len(store), n)
                store.check()
                store.close()


@unittest.skipUnless(loads_extensions(), "this Python loads no extensions")
@unittest.skipUnless(os.path.exists(stele.sqlite.library()), "libstele_sqlite.so is not built")
class GrowthOfDatabases(PoolCase):
    def test_is_sound_after_a_close(self):
        for size in SIZES:
            with self.subTest(size=size):
                path = self.path(f"db-{size}")
                db = stele.sqlite.connect(path, size=size, max_size="64M")
                db.execute("create table t(a integer primary key, b)")
                for n in range(16):
                    db.execute("insert into t(b) values (randomblob(800000))")
                    db.commit()
                db.close()
                db = stele.sqlite.connect(path, verify="always")
                self.assertEqual(db.execute("select count(*), sum(length(b)) from t").fetchone(), (16, 16 * 800000))
                self.assertEqual(db.execute("pragma stele_check").fetchone()[0], "ok")
                db.close()
        with self.assertRaisesRegex(Exception, "auto, always or never"):
            stele.sqlite.connect(path, verify="perhaps").execute("select 1")


if __name__ == "__main__":
    unittest.main()
