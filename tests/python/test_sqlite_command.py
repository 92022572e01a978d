"""`stele sqlite`, and an unchanged program with the module preloaded, as docs/guide/sqlite.md shows them."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from beds import PoolCase

COMMAND = os.environ.get("STELE_COMMAND", "")
MODULE = os.path.join(os.path.dirname(COMMAND), "libstele_sqlite.so")


@unittest.skipUnless(COMMAND and os.path.exists(MODULE), "the command is not built with SQLite")
class SqliteCommand(PoolCase):
    def stele(self, *arguments):
        return subprocess.run([COMMAND, "sqlite", *arguments], capture_output=True, text=True, timeout=120)

    def make(self, name, rows=1000, mode="wal", bytes=100):
        db = sqlite3.connect(self.path(name), isolation_level=None)
        db.execute(f"pragma journal_mode={mode}")
        db.execute("create table t(a integer primary key, b)")
        db.execute("begin")
        db.executemany("insert into t values (?, randomblob(?))", ((i, bytes) for i in range(rows)))
        db.execute("commit")
        return db

    def test_there_and_back(self):
        db = self.make("from")  # stays open: part of it is in its WAL
        rows = db.execute("select * from t").fetchall()
        done = self.stele("import", self.path("from"), self.path("pool"), "--json", "-", "--database", "one", "--mechanism", "redo", "--size", "8M")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["copied_bytes"], 100000)
        checked = self.stele("check", self.path("pool"), "--database", "one", "--json", "-")
        self.assertTrue(json.loads(checked.stdout)["sound"])
        self.assertEqual(self.stele("backup", self.path("pool"), self.path("copy")).returncode, 0)
        self.assertEqual(self.stele("export", self.path("copy"), self.path("to"), "--database", "one").returncode, 0)
        back = sqlite3.connect(self.path("to"))
        self.assertEqual(back.execute("select * from t").fetchall(), rows)
        back.close()
        db.close()

    def test_refusals(self):
        self.make("from").close()
        self.assertEqual(self.stele("import", self.path("from"), self.path("pool")).returncode, 0)
        before = sorted(os.listdir(self.directory))
        for arguments, sentence in (
            (("import", "from", "pool"), "exists, and is not overwritten"),
            (("import", "none", "new"), "is not there"),
            (("import", "pool", "new"), "file is not a database"),
            (("import", "from", "new", "--mechanism", "nix"), "no mechanism named 'nix'"),
            (("export", "pool", "from"), "exists, and is not overwritten"),
            (("export", "pool", "new", "--database", "two"), 'no database "two"'),
            (("check", "from"), "stele sqlite import"),
            (("check", "none"), "is not there"),
            (("backup", "pool", "from"), "exists, and is not overwritten"),
        ):
            given = [self.path(a) if a in ("from", "pool", "none", "new") else a for a in arguments]
            done = self.stele(*given)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(sentence, done.stderr)
            self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_interrupt_leaves_nothing(self):
        self.make("from", rows=200, bytes=1000000, mode="delete").close()
        started = subprocess.Popen([COMMAND, "sqlite", "import", self.path("from"), self.path("pool")], stderr=subprocess.PIPE)
        while not os.path.exists(self.path("pool")) and started.poll() is None:
            time.sleep(0.001)
        started.send_signal(signal.SIGINT)
        self.assertIn(b"interrupted", started.communicate(timeout=60)[1])
        self.assertEqual(started.returncode, 1)
        self.assertEqual(os.listdir(self.directory), ["from"])

    @unittest.skipUnless(shutil.which("sqlite3"), "there is no sqlite3")
    def test_unchanged_program(self):
        with_module = {**os.environ, "LD_PRELOAD": MODULE, "STELE_SQLITE_OPTIONS": "size=8M"}
        statements = "create table t(a); insert into t values (42);"
        subprocess.run(["sqlite3", self.path("pool"), statements], env=with_module, check=True)
        loaded = f".load {MODULE[:-3]}\n.open file:{self.path('pool')}?vfs=stele\nselect a from t;\n"
        done = subprocess.run(["sqlite3"], input=loaded, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "42\n")

    @unittest.skipUnless(shutil.which("php"), "there is no php")
    def test_php(self):
        with_module = {**os.environ, "LD_PRELOAD": MODULE, "STELE_SQLITE_OPTIONS": "size=8M"}
        program = """$db = new SQLite3($argv[1]); $db->enableExceptions(true);
            $db->exec("create table t(a); begin; insert into t values (42), (1); commit");
            $more = new PDO("sqlite:" . $argv[1]); $more->exec("delete from t where a = 1");
            echo $db->querySingle("select group_concat(a) || (select file from pragma_database_list) from t"),
                 $db->querySingle("pragma stele_check");"""
        done = subprocess.run(["php", "-r", program, "--", self.path("pool")], env=with_module, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), (f"42{self.path('pool')}ok", ""))


if __name__ == "__main__":
    unittest.main()
