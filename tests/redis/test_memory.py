"""`maxmemory` counts what the pool has, and a full pool lets keys go, by the server's policy."""

import re
import time
import unittest

from beds import RedisCase, ServerError

POLICIES = ("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")
MORE = 3 << 20  # that the server may use, beyond what it uses when it is empty


def info(r, field):
    return int(re.search(rb"\b%s:(\d+)" % field.encode(), r("INFO", "everything")).group(1))


class Memory(RedisCase):
    def limit(self, r, policy):
        limit = info(r, "used_memory") + MORE
        r("CONFIG", "SET", "maxmemory-policy", policy)
        r("CONFIG", "SET", "maxmemory", limit)
        return limit

    def fill(self, r, count, size, *options):
        """How many of the changes were refused."""
        refused = 0
        for i in range(count):
            try:
                r("SET", f"k{i}", "x" * size, *options)
            except ServerError as error:
                self.assertRegex(str(error), "^OOM command not allowed when used memory > 'maxmemory'")
                refused += 1
        return refused

    def test_a_policy_keeps_to_the_limit(self):
        for policy, size in (*((p, 2000) for p in POLICIES), ("allkeys-lru", 100), ("volatile-ttl", 100), ("allkeys-random", 100000)):
            left = []
            for server in self.server("size", "8M", name=f"{policy}-{size}"), self.server(pool=False, name="plain"):
                r = server.client()
                limit = self.limit(r, policy)
                self.assertEqual(self.fill(r, 3 * MORE // (size + 200), size, "EX", 1000), 0, (policy, size))
                self.assertLess(info(r, "used_memory"), limit + MORE // 10)
                self.assertGreater(info(r, "evicted_keys"), 0)
                left.append(r("DBSIZE"))
                server.kill()
            self.assertGreater(left[0], left[1] // 2, (policy, size))
            self.assertLess(left[0], left[1] * 2, (policy, size))

    def test_without_a_policy_changes_are_refused(self):
        r = self.server("size", "8M").client()
        self.limit(r, "noeviction")
        stored = 3000 - self.fill(r, 3000, 2000)
        self.assertGreater(stored, MORE // 2000 // 2)
        self.assertEqual(r("DBSIZE"), stored)
        for words in (("LPUSH", "l", "x"), ("EVAL", "return redis.call('set', 'n', 1)", 0), ("COPY", "k0", "c")):
            with self.assertRaisesRegex(ServerError, "OOM"):
                r(*words)
        self.assertEqual(r("STRLEN", "k0"), 2000)
        for i in range(stored // 2):
            self.assertEqual(r("DEL", f"k{i}"), 1)
        self.assertEqual(r("SET", "again", "x"), "OK")
        r("CONFIG", "SET", "maxmemory", 0)
        self.assertEqual(self.fill(r, 3000, 2000), 0)

    def test_only_keys_that_the_policy_names_go(self):
        for policy in POLICIES[3:]:
            r = self.server("size", "8M", name=policy).client()
            for i in range(100):
                r("SET", f"stays {i}", "x" * 2000)
            self.limit(r, policy)
            self.assertEqual(self.fill(r, 4000, 2000, "EX", 1000), 0, policy)
            self.assertEqual(r("EXISTS", *[f"stays {i}" for i in range(100)]), 100, policy)
            r("FLUSHALL")
            self.assertGreater(self.fill(r, 4000, 2000), 0, policy)  # none of these may go

    def test_keys_in_use_stay(self):
        for policy in ("allkeys-lru", "allkeys-lfu"):
            r = self.server("size", "8M", name=policy).client()
            self.limit(r, policy)
            used = [f"used {i}" for i in range(50)]
            for key in used:
                r("SET", key, "x" * 2000)
            for i in range(4000):
                r("SET", f"k{i}", "x" * 2000)
                if i % 50 == 0:
                    r("MGET", *used)
                if policy == "allkeys-lru" and i % 1000 == 0:
                    time.sleep(1.1)  # its clock has seconds
            self.assertGreater(r("EXISTS", *used), 40, policy)

    def test_counting_takes_no_memory(self):
        server = self.server("size", "128M")
        r = server.client()

        def private():
            with open(f"/proc/{server.process.pid}/status") as status:
                return int(re.search(r"RssAnon:\s+(\d+)", status.read()).group(1)) << 10

        r("CONFIG", "SET", "maxmemory", "1G")
        before, used = private(), info(r, "used_memory")
        for i in range(800):
            r("SET", f"k{i}", "x" * 100000)
        self.assertGreater(info(r, "used_memory"), used + 800 * 100000)
        self.assertLess(private(), before + (16 << 20))
        r("CONFIG", "SET", "maxmemory", 0)
        r("PING")
        self.assertLess(info(r, "used_memory"), used + (16 << 20))

    def test_evicted_keys_stay_away(self):
        master = self.server("size", "8M", name="master")
        replica = self.server("size", "8M", name="replica")
        r, other = master.client(), replica.client()
        other("REPLICAOF", "127.0.0.1", master.port)
        while b"master_link_status:up" not in other("INFO", "replication"):
            time.sleep(0.05)
        self.limit(r, "allkeys-random")
        self.fill(r, 4000, 2000)
        r("CONFIG", "SET", "maxmemory", 0)
        self.assertEqual(r("WAIT", 1, 10000), 1)
        left = sorted(r("KEYS", "*"))
        self.assertLess(len(left), 3000)
        self.assertEqual(sorted(other("KEYS", "*")), left)
        master.kill()
        self.assertEqual(sorted(master.start().client()("KEYS", "*")), left)


class FullPool(RedisCase):
    """The pool may not grow, and `maxmemory` is not set."""

    SIZE = 2 << 20

    def test_a_policy_makes_room(self):
        for policy, size in (*((p, 700) for p in POLICIES), ("allkeys-lru", 20), ("volatile-random", 5000), ("allkeys-lfu", 50000)):
            server = self.server("size", str(self.SIZE), "max_size", str(self.SIZE), name=f"{policy}-{size}")
            r = server.client()
            r("CONFIG", "SET", "maxmemory-policy", policy)
            count = 4 * self.SIZE // (size + 300)
            for i in range(count):
                self.assertEqual(r("SET", f"k{i}", "x" * size, "EX", 1000), "OK", (policy, size, i))
            left = sorted(r("KEYS", "*"))
            self.assertLess(len(left), count)
            self.assertGreater(len(left), self.SIZE // (size + 1000) // 10, (policy, size))
            self.assertEqual(info(r, "evicted_keys"), 0)
            self.assertEqual(info(r, "stele_evicted_keys"), count - len(left))
            server.kill()
            self.assertEqual(sorted(server.start().client()("KEYS", "*")), left)
            server.kill()

    def test_on_a_file_and_of_all_types(self):
        for media in ("adr", "file"):
            server = self.server("size", str(self.SIZE), "max_size", str(self.SIZE), "media", media, name=media)
            r = server.client()
            r("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            for i in range(1000):
                r("SELECT", i % 3)
                r("SET", f"s{i}", "x" * (3 * i))
                r("RPUSH", f"l{i}", *["x" * 100] * (i % 10 + 1))
                r("HSET", f"h{i}", "f", "x" * (i % 500))
                r("ZADD", f"z{i}", 1, "a", 2, "b")
                r("SADD", f"t{i}", *range(i % 20 + 1))
                if i % 10 == 0:
                    r("SUNIONSTORE", f"u{i}", f"t{i}")
                    r("COPY", f"l{i}", f"m{i}")
                    r("RENAME", f"t{i}", f"renamed {i}")
            self.assertEqual(r("GET", "s999"), b"x" * 2997)
            self.assertGreater(info(r, "stele_evicted_keys"), 100)
            server.kill()

    def test_without_a_policy_or_a_key_that_may_go_it_refuses(self):
        for policy in ("noeviction", "volatile-lru"):
            r = self.server("size", "2M", "max_size", "2M", name=policy).client()
            r("CONFIG", "SET", "maxmemory-policy", policy)
            with self.assertRaisesRegex(ServerError, "^OOM the pool has no room"):
                for i in range(100000):
                    r("SET", f"k{i}", "x" * 1000)
            self.assertEqual(r("DBSIZE"), i)
            with self.assertRaisesRegex(ServerError, "^OOM the pool has no room"):
                r("SET", "large", "x" * (8 << 20))
            for words in (("RENAME", "k0", "n" * (3 << 20)), ("RENAMENX", "k0", "n" * (3 << 20)), ("COPY", "k0", "n" * (3 << 20))):
                with self.assertRaisesRegex(ServerError, "^OOM the pool has no room"):
                    r(*words)
            self.assertEqual(r("STRLEN", "k0"), 1000)
            self.assertEqual(r("RENAME", "k0", "k1"), "OK")


if __name__ == "__main__":
    unittest.main()
