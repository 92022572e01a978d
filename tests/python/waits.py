"""A process whose threads use a pool in every way while other processes attach to it. test_waits.py starts it, under a watch that ends it
when the extension module waits with the interpreter's lock held. Arguments: the scenario, "documents" or "kv", a folder.
"""

import faulthandler
import os
import subprocess
import sys
import threading
import time

import stele

ATTACH = """
import stele, sys
kind, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
while rounds > 0:
    try:
        pool = stele.KV(path, read_only=True) if kind == "kv" else stele.open(path, read_only=True)
        with pool.transaction():
            (pool if kind == "kv" else pool.root).get("n")
        pool.close()
        rounds -= 1
    except (stele.errors.InUseError, stele.errors.CancelledError, stele.errors.TimeoutError):
        pass
"""


def attach(kind, path, rounds):
    return subprocess.Popen([sys.executable, "-c", ATTACH, kind, path, str(rounds)])


def is_reached(path):
    """Whether a process has a connection to the one that has the pool open."""
    status = os.stat(path)
    name = f"@stele/{status.st_dev:x}/{status.st_ino:x}/"
    with open("/proc/net/unix") as sockets:
        return any(f" {name}" in line and line.split()[5] == "03" for line in sockets)


def reads_of(kind, pool):
    yield from (lambda: pool.counters, lambda: pool.durability, lambda: pool.mechanism, lambda: pool.path, lambda: repr(pool))
    if kind == "kv":
        yield from (lambda: pool["n"], lambda: pool.get("none"), lambda: "n" in pool, lambda: len(pool), lambda: list(pool.items()),
                    lambda: list(pool.keys(prefix="k")), lambda: list(reversed(pool)), lambda: pool.get_many(["n", "k1", "none"]),
                    lambda: pool.expiry("n"), pool.statistics, pool.stores)
    else:
        root, some, inner = pool.root, pool.root["l"], pool.root["d"]
        yield from (lambda: root["n"], lambda: root.get("none"), lambda: "n" in root, lambda: len(root), lambda: list(root), root.copy,
                    lambda: list(root.items()), lambda: root == {}, lambda: some[0], lambda: some[1:], lambda: list(some), some.copy,
                    lambda: some.index(2), lambda: inner["a"], lambda: dict(inner))


def updates_of(kind, pool):
    if kind == "kv":
        yield from (lambda: pool.__setitem__("n", "1"), lambda: pool.put("t", "1", ttl=0.001), lambda: pool.put_many([("k1", "1"), ("k2", "2")]),
                    lambda: pool.add("sum"), lambda: pool.put_if("n", "1", "1"), lambda: pool.modify("n", lambda v: v), lambda: pool.pop("k2", None),
                    pool.remove_expired, lambda: pool.update(k1="1"), lambda: pool.open_store("s").put("a", "b"), lambda: pool.sync())
    else:
        root = pool.root
        yield from (lambda: root.__setitem__("n", 1), lambda: root.update(k1="1", k2="2"), lambda: root.setdefault("n", 2), lambda: root.pop("k1", None),
                    lambda: root["l"].append(3), lambda: root["l"].pop(), lambda: root["l"].sort(), lambda: root["d"].__setitem__("a", 2),
                    lambda: root.__setitem__("new", {"a": [1, {"b": None}]}), lambda: root["l"].__setitem__(slice(0, 1), [1]), lambda: pool.sync())


def open_pool(kind, path):
    if kind == "kv":
        pool = stele.KV(path, size="4M", max_size="64M")
        pool.update(n="0", k1="1", k2="2")
    else:
        pool = stele.open(path, size="4M", max_size="64M")
        pool.root.update(n=0, k1="1", l=[1, 2, 3], d={"a": 1})
    return pool


def reads_beside_an_open_with(kind, path):
    """A `with` waits for a thread that reads while another process attaches."""
    pool = open_pool(kind, path)
    inside, done = threading.Event(), threading.Event()

    def hold():
        with pool.transaction():
            inside.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    other = attach(kind, path, 1)
    while not is_reached(path):
        time.sleep(0.01)
    time.sleep(0.2)  # the request has been read
    for read in reads_of(kind, pool):
        read()
    done.set()
    holder.join()
    assert other.wait() == 0
    pool.close()


def everything_at_once(kind, path):
    pool, stop, failures = open_pool(kind, path), threading.Event(), []
    copies = iter(range(10**9))

    def repeat(*calls):
        try:
            while not stop.is_set():
                for call in calls:
                    call()
        except BaseException as e:
            failures.append(e)
            stop.set()

    def transaction():
        with pool.transaction(ordered=next(copies) % 2 == 0):
            for read in reads_of(kind, pool):
                read()
            for update in list(updates_of(kind, pool))[:3]:
                update()

    def look_after():
        copy = f"{path}.{next(copies)}"
        pool.backup(copy, lambda done, total: True)
        os.unlink(copy)
        pool.check()
        pool.grow(pool.space["size_bytes"] + (1 << 16) if pool.space["size_bytes"] < 32 << 20 else 1)

    threads = [threading.Thread(target=repeat, args=calls) for calls in
               ((*reads_of(kind, pool), lambda: pool.space), tuple(reads_of(kind, pool)), tuple(updates_of(kind, pool)), (transaction,), (look_after,))]
    for t in threads:
        t.start()
    others = [attach(kind, path, 15) for _ in range(2)]
    for other in others:
        assert other.wait() == 0
    stop.set()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]
    pool.close()


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)
    {"with": reads_beside_an_open_with, "all": everything_at_once}[sys.argv[1]](sys.argv[2], os.path.join(sys.argv[3], "pool"))
