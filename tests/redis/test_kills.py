"""Servers that are killed under load: nothing that was answered is lost, and nothing is there in part.

STELE_REDIS_KILLS: how often for each medium; STELE_REDIS_CLIENTS: how many at once; STELE_SEED: of the moments. Each
client counts in keys of its own, by plain commands, by transactions and by scripts, in values of all types, and knows what it was answered last.
"""

import os
import random
import signal
import tempfile
import threading
import time
import unittest

from beds import ALL_MECHANISMS, RedisCase, ServerError, ServerGone

KILLS = int(os.environ.get("STELE_REDIS_KILLS", 5))
CLIENTS = int(os.environ.get("STELE_REDIS_CLIENTS", 0))  # 0: as each case has it
SEED = int(os.environ.get("STELE_SEED", random.randrange(1 << 30)))
SCRIPT = "redis.call('set', KEYS[1], ARGV[1]); redis.call('hset', KEYS[2], 'a', ARGV[1], 'b', ARGV[1])"


class Counting:
    """One client: key `n` has the number of its last step, the others what the last step of a kind has stored."""

    def __init__(self, number, kinds):
        self.number, self.kinds, self.answered, self.tried, self.begun = number, kinds, 0, 0, 0

    def key(self, name):
        return f"{name}:{self.number}"

    def step(self, r, i):
        n, h = self.key("n"), self.key("h")
        kind = self.kinds[i % len(self.kinds)]
        if kind == "set":
            r("SET", n, i)
        elif kind == "add":
            r("INCR", n)
        elif kind == "exec":
            moves = i // len(self.kinds)
            r("MULTI")
            r("INCR", n)
            r("HSET", h, "a", i, "b", i, "long", "x" * (i % 3000))
            r("RENAME", self.key(f"m{moves % 2}"), self.key(f"m{(moves + 1) % 2}"))
            r("EXEC")
        elif kind == "many":
            r("MULTI")
            r("INCR", n)
            r("RPUSH", self.key("list"), i)
            r("LTRIM", self.key("list"), -KEPT, -1)
            r("SADD", self.key("set"), i)
            r("SREM", self.key("set"), i - KEPT * len(self.kinds))
            r("ZADD", self.key("ranking"), i, i)
            r("ZREMRANGEBYRANK", self.key("ranking"), 0, -KEPT - 1)
            r("EXEC")
        elif kind == "single":
            r("LPUSH", self.key("pushed"), i)
            r("ZADD", self.key("scored"), i, i)
            r("SADD", self.key("added"), i)
            r("INCR", n)
        elif kind == "script":
            r("EVAL", SCRIPT, 2, n, h, i)
        else:
            r("MSET", n, i, self.key("copy"), i)

    def run(self, server):
        try:
            r = server.client()
            while True:
                self.tried = self.answered + 1
                self.step(r, self.tried)
                self.answered = self.tried
        except (ServerGone, OSError):
            pass

    def problem(self, r):
        """What the server has of it; and begins again from there."""
        there = int(r("GET", self.key("n")))
        if there not in (self.answered, self.tried):
            return f"client {self.number}: {self.answered} was answered, {self.tried} was tried, {there} is there"
        cycle = len(self.kinds)

        def last(*kinds):
            steps = range(max(there - cycle + 1, 1), there + 1)
            return max((i for i in steps if self.kinds[i % cycle] in kinds), default=0)

        hashed = int(r("HGET", self.key("h"), "a") or 0)
        if hashed != last("exec", "script") or hashed != int(r("HGET", self.key("h"), "b") or 0):
            return f"client {self.number}: the hash has {hashed} where the number is {there}"
        copied = int(r("GET", self.key("copy")) or 0)
        if copied != last("copy"):
            return f"client {self.number}: the copy has {copied} where the number is {there}"
        moved = sum(self.kinds[i % cycle] == "exec" for i in range(1, there + 1))
        where = [r("EXISTS", self.key(f"m{i}")) for i in range(2)]
        if where != [int(moved % 2 == i) for i in range(2)]:
            return f"client {self.number}: the renamed key is at {where} after {moved} moves"
        collections = self.wrong_collections(r, there)
        self.answered = self.tried = self.begun = there
        return collections

    def steps_of(self, kind, first, last):
        return [b"%d" % i for i in range(max(first, 1), last + 1) if self.kinds[i % len(self.kinds)] == kind]

    def wrong_collections(self, r, there):
        many = self.steps_of("many", there - KEPT * len(self.kinds) + 1, there)
        found = [r("LRANGE", self.key("list"), 0, -1), r("ZRANGE", self.key("ranking"), 0, -1),
                 sorted(r("SMEMBERS", self.key("set")), key=int)]
        if found != [many] * 3:
            return f"client {self.number}: {found} where the number is {there}"
        found = [r("LRANGE", self.key("pushed"), 0, -1)[::-1], r("ZRANGE", self.key("scored"), 0, -1),
                 sorted(r("SMEMBERS", self.key("added")), key=int)]
        single = self.steps_of("single", self.begun + 1, there)
        # Commands of the step that was tried may have run, from the first on.
        tried = self.steps_of("single", there + 1, self.tried)
        if found not in [[single + tried * (i < more) for i in range(3)] for more in range(4)]:
            return f"client {self.number}: {found} where the number is {there}, and before that {self.begun}"
        r("DEL", self.key("pushed"), self.key("scored"), self.key("added"))
        return None


ALL = ("set", "add", "exec", "many", "single", "script", "copy")
PLAIN = ("set", "add", "single", "copy")
KEPT = 5  # elements


class Kills(RedisCase):
    def kill_servers(self, folder, clients, kinds, *arguments, **how):
        random.seed(SEED)
        self.folder = folder
        server = self.server("size", "32M", *arguments, **how)
        counting = [Counting(i, kinds) for i in range(CLIENTS or clients)]
        r = server.client()
        for c in counting:
            r("MSET", c.key("n"), 0, c.key("m0"), "moves")
        steps = 0
        for kill in range(KILLS):
            before = sum(c.answered for c in counting)
            threads = [threading.Thread(target=c.run, args=(server,)) for c in counting]
            for t in threads:
                t.start()
            time.sleep(random.uniform(0.02, 0.4))
            server.process.send_signal(signal.SIGKILL)
            for t in threads:
                t.join()
            steps += sum(c.answered for c in counting) - before
            server.kill()
            server.start()
            r = server.client()
            problems = [p for p in (c.problem(r) for c in counting) if p]
            self.assertEqual(problems, [], f"kill {kill}, STELE_SEED={SEED}")
        print(f"  {KILLS} kills, {len(counting)} clients, {steps} steps answered, {' '.join(arguments)}")
        self.assertGreater(steps, KILLS)

    def test_in_memory(self):
        self.kill_servers(self.folder, 8, ALL)

    def test_on_a_file(self):
        with tempfile.TemporaryDirectory(prefix="stele-redis-") as folder:
            self.kill_servers(folder, 20, ALL, "media", "file")

    # Without EXEC, whose durable commit helps the commands of others.
    def test_plain_commands_on_a_file(self):
        with tempfile.TemporaryDirectory(prefix="stele-redis-") as folder:
            self.kill_servers(folder, 12, PLAIN, "media", "file")

    @unittest.skipUnless(ALL_MECHANISMS, "STELE_REDIS_ALL does not name the laboratory's module")
    def test_redo_on_a_file(self):
        with tempfile.TemporaryDirectory(prefix="stele-redis-") as folder:
            self.kill_servers(folder, 8, ALL, "media", "file", "mechanism", "redo", module=ALL_MECHANISMS)


if __name__ == "__main__":
    unittest.main()
