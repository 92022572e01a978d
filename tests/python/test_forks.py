"""A child of fork() beside the process that has a pool open: whatever it calls is refused with a sentence and waits for nothing, and it ends
as if it had no pool. Each test runs in a process of its own, which forks.
"""

import os
import sqlite3
import subprocess
import sys
import unittest

import stele.sqlite
from beds import PoolCase

BEGIN = """
import multiprocessing, os, signal, sys, threading, time
import stele
signal.alarm(30)
os.register_at_fork(after_in_child=lambda: signal.alarm(20))
kind, path, media = sys.argv[1:4]

def open_it(**more):
    return stele.KV(path, **more) if kind == "kv" else stele.open(path, **more)

pool = open_it(size="8M", media=media)
items = pool if kind == "kv" else pool.root

def number(of=None):
    return int((of or items)["n"])

def put(n):
    items["n"] = str(n)

put(1)
other = pool.open_store("other") if kind == "kv" else None

def refused(call, *arguments):
    try:
        call(*arguments)
    except stele.errors.PoisonedError as e:
        assert "fork" in str(e) and path in str(e) and "write failed" not in str(e), e
    else:
        raise AssertionError("not refused")

def enter():
    with pool.transaction():
        pass

def every_call():
    yield from ((number,), (put, 2), (enter,), (len, items), (list, items), (items.get, "n"), (pool.sync,), (pool.check,), (pool.grow, "9M"),
                (pool.backup, path + ".copy"), (lambda: pool.counters,), (lambda: pool.space,), (lambda: pool.durability,), (items.pop, "n"))
    if kind == "kv":
        yield from ((pool.modify, "n", str), (pool.stores,), (pool.open_store, "third"), (pool.drop_store, "other"), (pool.statistics,), (pool.put_many, []))
    else:
        yield from ((items.copy,), (items.update, {"a": 1}), (items.clear,))

def held():
    with open("/proc/self/maps") as maps:
        mapped = sum(path in line for line in maps)
    return sum(os.path.realpath("/proc/self/fd/" + f) == path for f in os.listdir("/proc/self/fd")), mapped

def status_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def hold_in_thread():
    inside, done = threading.Event(), threading.Event()
    def run():
        with pool.transaction():
            put(2)
            inside.set()
            done.wait()
    thread = threading.Thread(target=run)
    thread.start()
    inside.wait()
    return thread, done
"""

BESIDE_A_TRANSACTION = """
thread, done = hold_in_thread()
child = os.fork()
if child == 0:
    for call in every_call():
        refused(*call)
    pool.close()
    assert pool.closed
    sys.exit(0)
assert status_of(child) == 0
done.set()
thread.join()
assert number() == 2
pool.close()
assert int(open_it()["n"] if kind == "kv" else open_it().root["n"]) == 2
"""

INSIDE_A_WITH = """
with pool.transaction():
    put(3)
    child = os.fork()
    if child == 0:
        refused(number)
        refused(put, 77)
        refused(enter)
        sys.exit(0)
    assert status_of(child) == 0
    assert number() == 3
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert status_of(child) == 0

def leave():
    global child
    with pool.transaction():
        put(4)
        child = os.fork()

pid = os.getpid()
try:
    leave()
except stele.errors.PoisonedError as e:
    assert os.getpid() != pid and "fork" in str(e), e
    sys.exit(0)
assert os.getpid() == pid and status_of(child) == 0 and number() == 4
pool.close()
"""

CLOSES = """
(read_end, write_end), (tried_end, tell_end) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    assert pool.closed is False
    pool.close()
    pool.close()
    assert held() == (0, 0), held()
    try:
        open_it()
    except stele.errors.InUseError:
        pass
    else:
        raise AssertionError("the child took its parent's lock")
    os.write(tell_end, b"x")
    assert os.read(read_end, 1) == b"x"
    with open_it(size="8M") as again:
        assert number(again if kind == "kv" else again.root) == 5
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    sys.exit(0)
put(5)
if kind == "kv": other["a"] = "b"
assert os.read(tried_end, 1) == b"x"
pool.close()
assert held() == (0, 0), held()
os.write(write_end, b"x")
assert status_of(child) == 0
assert number((open_it() if kind == "kv" else open_it().root)) == 5
"""

MULTIPROCESSING = """
def work(uses):
    if uses:
        refused(number)

threads = [hold_in_thread()]
for uses in (False, True):
    process = multiprocessing.get_context("fork").Process(target=work, args=(uses,))
    process.start()
    process.join(20)
    assert process.exitcode == 0, process.exitcode
for thread, done in threads:
    done.set()
    thread.join()
pool.close()
"""

READER = """
pool.close()
pool = open_it(read_only=True)
items = pool if kind == "kv" else pool.root
with pool.transaction():
    assert number() == 1
    child = os.fork()
    if child == 0:
        refused(number)
        sys.exit(0)
    assert status_of(child) == 0
child = os.fork()
if child == 0:
    refused(number)
    pool.close()
    assert held() == (0, 0), held()
    again = open_it(read_only=True)
    assert number(again if kind == "kv" else again.root) == 1
    sys.exit(0)
assert status_of(child) == 0 and number() == 1
"""


SQLITE = """
import os, signal, sqlite3, sys, threading
import stele.sqlite
signal.alarm(30)
os.register_at_fork(after_in_child=lambda: signal.alarm(20))
path = sys.argv[1]

def connect():
    return stele.sqlite.connect(path, size="8M", isolation_level=None, check_same_thread=False)

db, other, inside, done = connect(), connect(), threading.Event(), threading.Event()
db.execute("create table t(a)")
db.execute("insert into t values (1)")
assert other.execute("select a from t").fetchall() == [(1,)]

def hold():
    writer = connect()
    writer.execute("begin immediate")
    writer.execute("insert into t values (2)")
    inside.set()
    done.wait()
    writer.execute("commit")
    writer.close()

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    for statement in ("select a from t", "insert into t values (3)", "begin immediate", "drop table t", "pragma stele_check"):
        try:
            db.execute(statement).fetchall()
        except sqlite3.OperationalError:
            said = db.execute("pragma stele_error").fetchone()[0]
            assert "fork" in said and path in said, said
        else:
            raise AssertionError(statement + " is not refused")
    db.close()
    other.close()
    try:
        connect()
    except sqlite3.OperationalError as e:
        assert "is open in process" in str(e), e
    else:
        raise AssertionError("the child took its parent's lock")
    fresh = stele.sqlite.connect(path + ".own", size="8M", isolation_level=None)
    fresh.execute("create table t(a)")
    fresh.close()
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
done.set()
thread.join()
assert db.execute("select a from t").fetchall() == [(1,), (2,)]
"""


class Forks(PoolCase):
    def run_each(self, program):
        for kind in ("kv", "documents"):
            for media in ("auto", "file"):
                with self.subTest(kind=kind, media=media):
                    ran = subprocess.run([sys.executable, "-c", BEGIN + program, kind, self.path(f"{kind}-{media}"), media],
                                         capture_output=True, text=True, timeout=60)
                    self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_a_child_beside_a_transaction_of_another_thread(self):
        self.run_each(BESIDE_A_TRANSACTION)

    def test_a_child_born_inside_a_with(self):
        self.run_each(INSIDE_A_WITH)

    def test_a_child_closes_and_opens_anew(self):
        self.run_each(CLOSES)

    def test_processes_of_multiprocessing(self):
        self.run_each(MULTIPROCESSING)

    def test_a_child_of_a_reader(self):
        self.run_each(READER)

    @unittest.skipUnless(os.path.exists(stele.sqlite.library()), "libstele_sqlite.so is not built")
    def test_a_child_with_connections_of_sqlite(self):
        loads = hasattr(sqlite3.Connection, "enable_load_extension")
        ran = subprocess.run([sys.executable, "-c", SQLITE, self.path("db")], capture_output=True, text=True, timeout=60,
                             env=os.environ if loads else {**os.environ, "LD_PRELOAD": stele.sqlite.library()})
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
