"""stele.sqlite: Python's sqlite3 on a pool."""

import doctest
import os
import sqlite3
import subprocess
import sys
import unittest

import stele.sqlite
from beds import PoolCase


def loads_extensions():
    memory = sqlite3.connect(":memory:")
    try:
        return hasattr(memory, "enable_load_extension")
    finally:
        memory.close()


@unittest.skipIf(loads_extensions(), "this Python loads extensions")
class NoExtensions(PoolCase):
    def test_says_so(self):
        with self.assertRaisesRegex(sqlite3.NotSupportedError, "cannot load extensions.*LD_PRELOAD="):
            stele.sqlite.connect(self.path())
        self.assertEqual(os.listdir(self.directory), [])


PRELOADED = """
import os, sqlite3, sys
import stele.sqlite

class LoadsNone(sqlite3.Connection):
    def __getattribute__(self, name):
        if name == "enable_load_extension":
            raise AttributeError(name)
        return super().__getattribute__(name)

connect = sqlite3.connect
sqlite3.connect = lambda *a, **o: connect(*a, factory=LoadsNone, **o)
try:
    with stele.sqlite.connect(sys.argv[1], size="8M") as db:
        db.execute("create table t(a)")
        db.execute("insert into t values (1)")
    assert db.execute("select a from t").fetchall() == [(1,)]
    try:
        stele.sqlite.connect(sys.argv[1] + ".none/x")
    except sqlite3.OperationalError as e:
        assert sys.argv[1] + ".none/x" in str(e), e
    print("works")
except sqlite3.NotSupportedError as e:
    print(e)
"""


@unittest.skipUnless(os.path.exists(stele.sqlite.library()), "libstele_sqlite.so is not built")
class LoadsNoExtensions(PoolCase):
    """A Python whose sqlite3 loads no extensions is told to preload the module, and then it works."""

    def run_with(self, **environment):
        ran = subprocess.run([sys.executable, "-c", PRELOADED, self.path("db")], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def test_the_advice_is_right(self):
        self.assertRegex(self.run_with(), "cannot load extensions.*LD_PRELOAD=" + stele.sqlite.library())
        self.assertEqual(os.listdir(self.directory), [])
        self.assertEqual(self.run_with(LD_PRELOAD=stele.sqlite.library()), "works\n")


@unittest.skipUnless(loads_extensions(), "this Python loads no extensions")
@unittest.skipUnless(os.path.exists(stele.sqlite.library()), "libstele_sqlite.so is not built")
class Sqlite(PoolCase):
    def connect(self, name="db", **options):
        db = stele.sqlite.connect(self.path(name), **options)
        self.addCleanup(db.close)
        return db

    def test_description(self):
        failures, tried = doctest.testmod(stele.sqlite, extraglobs={"path": self.path()})
        self.assertEqual(failures, 0)
        self.assertGreater(tried, 3)

    def test_guide(self):
        guide = os.path.join(os.environ["STELE_SOURCE_DIR"], "docs", "guide", "sqlite.md")
        failures, tried = doctest.testfile(guide, module_relative=False, globs={"path": self.path()}, encoding="utf-8")
        self.assertEqual(failures, 0)
        self.assertGreater(tried, 5)

    def test_keeps_what_was_committed(self):
        db = self.connect(size="16M", isolation_level=None)
        db.execute("create table t(a)")
        db.execute("begin")
        db.execute("insert into t values (1)")
        db.execute("commit")
        db.execute("begin")
        db.execute("insert into t values (2)")
        db.close()
        self.assertEqual(self.connect().execute("select a from t").fetchall(), [(1,)])
        self.assertEqual(os.listdir(self.directory), ["db"])

    def test_paths_with_signs_of_uris(self):
        self.connect("a ?#%&.db").execute("create table t(a)")
        self.assertEqual(os.listdir(self.directory), ["a ?#%&.db"])

    def test_options(self):
        db = self.connect(size="32M", mechanism="none", database="two", timeout=1)
        info = dict(line.split(" ", 1) for line in db.execute("pragma stele_info").fetchone()[0].splitlines())
        self.assertEqual(info["mechanism"], "none")
        self.assertEqual(int(info["size_bytes"]), 32 << 20)

    def test_read_only(self):
        with self.assertRaisesRegex(sqlite3.OperationalError, f"unable to open.*: cannot open {self.path('db')}"):
            self.connect(read_only=True)
        self.assertEqual(os.listdir(self.directory), [])
        self.connect().execute("create table t(a)")
        with self.assertRaises(sqlite3.OperationalError):
            self.connect(read_only=True).execute("insert into t values (1)")

    def test_backup_from_wal_mode(self):
        wal = sqlite3.connect(self.path("wal"))
        self.addCleanup(wal.close)
        wal.execute("pragma journal_mode=wal")
        wal.execute("create table t(a)")
        db = self.connect()
        wal.backup(db)
        db.execute("insert into t values (1)")
        db.commit()
        db.close()
        self.assertEqual(self.connect().execute("select a from t").fetchall(), [(1,)])


if __name__ == "__main__":
    unittest.main()
