"""Programs that are killed inside the growth of their pool, at each system call of it: what they had acknowledged is there, and they grow on."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import stele
import stele.sqlite

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redis"))
from beds import MODULE, PROGRAM, Server, ServerGone

COMMAND = os.environ.get("STELE_COMMAND", "")
KILLER = os.environ.get("STELE_KILL_AT_CALL", "")
SIZE = "4M"
MOST_CALLS = 20  # of one growth and what follows it; a program that makes fewer ends by itself
VALUE, ROW = 60_000, 300_000

# Each prints how many items are acknowledged, and ends at three times the size. ROWS prints how many a database has. START comes first.
START = """
import stele, stele.sqlite
path, medium, SIZE, VALUE, ROW = %r
"""
WRITERS = {
    "kv": """
store = stele.KV(path, size=SIZE, max_size="64M", media=medium)
for n in range(len(store), 200):
    store[b"%d" % n] = b"x" * VALUE
    print(n + 1, flush=True)
store.close()
""",
    "dict": """
pool = stele.open(path, size=SIZE, max_size="64M", media=medium)
for n in range(len(pool.root), 200):
    pool.root[n] = b"x" * VALUE
    print(n + 1, flush=True)
pool.close()
""",
    "sqlite": """
db = stele.sqlite.connect(path, size=SIZE, max_size="64M", media=medium)
db.execute("create table if not exists t(a integer primary key, b)")
for n in range(db.execute("select count(*) from t").fetchone()[0], 40):
    db.execute("insert into t(b) values (zeroblob(?))", (ROW,))
    db.commit()
    print(n + 1, flush=True)
db.close()
""",
}


def items_of_kv(path):
    with contextlib.closing(stele.KV(path, verify="always")) as store:
        store.check()
        assert all(len(store[b"%d" % n]) == VALUE for n in range(len(store)))
        return len(store)


def items_of_dict(path):
    with contextlib.closing(stele.open(path, verify="always")) as pool:
        pool.check()
        assert all(len(pool.root[n]) == VALUE for n in range(len(pool.root)))
        return len(pool.root)


ITEMS = {"kv": items_of_kv, "dict": items_of_dict}
ROWS = """
db = stele.sqlite.connect(path, verify="always")
assert db.execute("pragma stele_check").fetchone()[0] == "ok"
if not db.execute("select count(*) from sqlite_schema").fetchone()[0]:
    print(0)
else:
    count, size = db.execute("select count(*), coalesce(sum(length(b)), 0) from t").fetchone()
    assert size == count * ROW
    print(count)
"""


def killing(growth, call):
    return {"LD_PRELOAD": KILLER, "STELE_KILL_GROWTH": str(growth), "STELE_KILL_CALL": str(call)}


@unittest.skipUnless(os.path.exists(KILLER), "STELE_KILL_AT_CALL does not name the library that kills")
class KilledGrowth(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stele-growth-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "pool")

    def check_pool(self):
        checked = subprocess.run([COMMAND, "pool", "check", self.path], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def each_kill(self, run):
        """run(medium) does its work, and tells whether it has been killed. Until a growth is over; the kills."""
        kills = 0
        for medium in ("process", "file"):
            for growth in (1, 2):
                for call in range(MOST_CALLS):
                    with self.subTest(medium=medium, growth=growth, call=call):
                        if os.path.exists(self.path):
                            os.unlink(self.path)
                        if not run(medium, killing(growth, call)):
                            break
                        kills += 1
        return kills

    def python(self, program, medium, environment):
        """Whether it was killed, and the last number that it has printed."""
        loaded = [environment.get("LD_PRELOAD"), stele.sqlite.library() if "sqlite" in program else None]  # not every Python loads extensions
        ended = subprocess.run([sys.executable, "-c", START % ((self.path, medium, SIZE, VALUE, ROW),) + program],
                               env={**os.environ, **environment, "LD_PRELOAD": ":".join(filter(None, loaded))}, capture_output=True, text=True, check=False)
        self.assertIn(ended.returncode, (0, -signal.SIGKILL), ended.stderr)
        return ended.returncode != 0, int(ended.stdout.split()[-1]) if ended.stdout.split() else 0

    def items(self, kind):
        return ITEMS[kind](self.path) if kind in ITEMS else self.python(ROWS, "", {})[1]

    def of_python(self, kind):
        def run(medium, environment):
            was_killed, acknowledged = self.python(WRITERS[kind], medium, environment)
            self.check_pool()
            there = self.items(kind)
            self.assertIn(there, (acknowledged, acknowledged + 1) if was_killed else (acknowledged,))
            if was_killed:  # what it left grows on
                self.assertEqual(self.python(WRITERS[kind], medium, {})[0], False)
                self.assertGreater(self.items(kind), there)
            return was_killed

        self.assertGreater(self.each_kill(run), 20)

    def test_of_a_store(self):
        self.of_python("kv")

    def test_of_a_dict(self):
        self.of_python("dict")

    @unittest.skipUnless(os.path.exists(stele.sqlite.library()), "libstele_sqlite.so is not built")
    def test_of_a_database(self):
        self.of_python("sqlite")

    def test_of_the_command(self):
        """`stele pool resize`, twice, of a store that is nearly full."""
        def run(medium, environment):
            with contextlib.closing(stele.KV(self.path, size=SIZE, media=medium)) as store:
                for n in range(40):
                    store[b"%d" % n] = b"x" * VALUE
            was_killed = False
            for growth, size in (("1", "6M"), ("2", "9M")):
                killer = {**environment, "STELE_KILL_GROWTH": "1"} if environment["STELE_KILL_GROWTH"] == growth else {}
                ended = subprocess.run([COMMAND, "pool", "resize", self.path, "--size", size], env={**os.environ, **killer}, capture_output=True, text=True, check=False)
                self.assertIn(ended.returncode, (0, -signal.SIGKILL), ended.stderr)
                was_killed = was_killed or ended.returncode != 0
                self.check_pool()
                self.assertEqual(items_of_kv(self.path), 40)
            return was_killed

        self.assertGreater(self.each_kill(run), 5)

    @unittest.skipUnless(os.path.exists(MODULE) and shutil.which(PROGRAM), "the module or its server is not there")
    def test_of_a_server(self):
        def run(medium, environment):
            server = Server(self.folder, "size", "8M", "max_size", "64M", "media", medium)
            self.addCleanup(server.kill)
            with mock.patch.dict(os.environ, environment):
                server.start()
            acknowledged = 0
            try:
                client = server.client()
                for n in range(200):
                    client("SET", f"k{n}", "x" * VALUE)
                    acknowledged += 1
            except ServerGone:
                pass
            was_killed = acknowledged < 200
            server.kill()
            self.check_pool()
            server.start()
            client = server.client()
            there = client("DBSIZE")
            self.assertIn(there, (acknowledged, acknowledged + 1) if was_killed else (acknowledged,))
            self.assertTrue(all(client("STRLEN", f"k{n}") == VALUE for n in range(there)))
            for n in range(there, 200):
                client("SET", f"k{n}", "x" * VALUE)
            self.assertEqual(client("DBSIZE"), 200)
            server.kill()
            return was_killed

        self.assertGreater(self.each_kill(run), 20)


if __name__ == "__main__":
    unittest.main()
