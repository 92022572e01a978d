"""Strings and hashes of a Redis server in a pool: commands, restarts, refusals, a child that saves, a replica."""

import os
import signal
import time
import unittest

from beds import RedisCase, Server, ServerError, ServerGone


class Restarts(RedisCase):
    def restarted(self, server, how=signal.SIGKILL):
        server.kill(how)
        server.start()
        return server.client()

    def test_everything_is_there_again(self):
        server = self.server("size", "8M")
        r = server.client()
        r("SET", "text", b"with \0 and \r\n")
        r("SET", "number", 41)
        r("INCR", "number")
        r("SET", "empty", "")
        r("SET", "long", "x" * 100000)
        r("HSET", "hash", "a", 1, "b", "two")
        r("HINCRBY", "hash", "a", 5)
        r("HDEL", "hash", "b")
        r("SELECT", 3)
        r("SET", "text", "of 3")
        r("SELECT", 0)
        r("RENAME", "text", "renamed")
        r("COPY", "hash", "copy")
        r("MOVE", "copy", 5)
        r("SET", "gone", 1)
        r("DEL", "gone")
        for how in (signal.SIGKILL, signal.SIGTERM):
            r = self.restarted(server, how)
            self.assertEqual(sorted(r("KEYS", "*")), [b"empty", b"hash", b"long", b"number", b"renamed"])
            self.assertEqual(r("GET", "renamed"), b"with \0 and \r\n")
            self.assertEqual(r("GET", "number"), b"42")
            self.assertEqual(r("GET", "empty"), b"")
            self.assertEqual(r("STRLEN", "long"), 100000)
            self.assertEqual(r("HGETALL", "hash"), [b"a", b"6"])
            self.assertEqual(r("TYPE", "hash"), "hash")
            r("SELECT", 3)
            self.assertEqual(r("GET", "text"), b"of 3")
            r("SELECT", 5)
            self.assertEqual(r("HGETALL", "copy"), [b"a", b"6"])

    def test_times_of_expiry(self):
        server = self.server("size", "8M")
        r = server.client()
        now = int(time.time() * 1000)
        r("SET", "soon", 1, "PX", 300)
        r("SET", "late", 1, "PXAT", now + 1000000)
        r("HSET", "hash", "a", 1)
        r("PEXPIREAT", "hash", now + 2000000)
        r("SET", "kept", 1, "EX", 1000)
        r("PERSIST", "kept")
        time.sleep(0.4)
        r = self.restarted(server)
        self.assertEqual(sorted(r("KEYS", "*")), [b"hash", b"kept", b"late"])
        self.assertEqual(r("PEXPIRETIME", "late"), now + 1000000)
        self.assertEqual(r("PEXPIRETIME", "hash"), now + 2000000)
        self.assertEqual(r("TTL", "kept"), -1)

    def test_databases_are_flushed_and_swapped(self):
        server = self.server("size", "8M")
        r = server.client()
        for database in range(3):
            r("SELECT", database)
            for i in range(100):
                r("SET", f"k{i}", database)
        r("SWAPDB", 0, 1)
        r("SELECT", 2)
        r("FLUSHDB")
        r("SET", "new", 1)
        r = self.restarted(server)
        for database, keys, value in ((0, 100, b"1"), (1, 100, b"0"), (2, 1, None)):
            r("SELECT", database)
            self.assertEqual((r("DBSIZE"), r("GET", "k7")), (keys, value))
        r("FLUSHALL")
        r = self.restarted(server)
        self.assertEqual(r("DBSIZE"), 0)

    def test_transactions_and_scripts(self):
        server = self.server("size", "8M")
        r = server.client()
        r("MULTI")
        r("SET", "a", 1)
        r("INCR", "a")
        r("HSET", "h", "a", 1)
        self.assertEqual(r("EXEC"), ["OK", 2, 1])
        self.assertEqual(r("EVAL", "redis.call('set', 'b', ARGV[1]); return redis.call('incr', 'b')", 0, 7), 8)
        watching = server.client()
        watching("WATCH", "a")
        r("INCR", "a")
        watching("MULTI")
        watching("SET", "a", 0)
        self.assertIsNone(watching("EXEC"))
        r = self.restarted(server)
        self.assertEqual([r("GET", "a"), r("GET", "b"), r("HGET", "h", "a")], [b"3", b"8", b"1"])

    def test_other_types_stay_redis_own(self):
        server = self.server("size", "8M")
        r = server.client()
        r("RPUSH", "list", 1, 2)
        for wrong in (("GET", "list"), ("HGET", "list", "a"), ("INCR", "list")):
            with self.assertRaisesRegex(ServerError, "WRONGTYPE"):
                r(*wrong)
        r("SET", "list", "text")
        self.assertEqual(r("GET", "list"), b"text")
        r("SETBIT", "bits", 7, 1)
        self.assertEqual(r("GET", "bits"), b"\1")
        self.assertIn(b"stele_durable_types:string,hash", r("INFO", "stele"))
        self.assertIn(b"stele_durable_keys:1\r\n", r("INFO", "stele"))
        r = self.restarted(server)
        self.assertEqual(r("KEYS", "*"), [b"list"])


class Rights(RedisCase):
    def test_go_by_redis_own_commands_too(self):
        server = self.server("size", "8M")
        r = server.client()
        r("SET", "a", 1)
        r("SET", "b", 1)
        r("ACL", "SETUSER", "ann", "on", ">secret", "~a", "+@all", "-set", "-flushall")
        c = server.client()
        c("AUTH", "ann", "secret")
        self.assertEqual(c("GET", "a"), b"1")
        self.assertEqual(c("INCR", "a"), 2)
        for refused in (("SET", "a", 2), ("FLUSHALL",), ("GET", "b"), ("EVAL", "return redis.call('set', 'a', 3)", 0)):
            with self.assertRaisesRegex(ServerError, "NOPERM|No permissions|permission"):
                c(*refused)
        self.assertEqual(r("GET", "a"), b"2")
        self.assertEqual(r("DBSIZE"), 2)


class FullPool(RedisCase):
    def fill(self, r, why):
        """Stores k0, k1, ... until a command is refused with `why`. Returns how many are stored."""
        stored = 0
        with self.assertRaisesRegex(ServerError, why):
            for stored in range(100000):
                r("SET", f"k{stored}", "x" * 1000)
        self.assertGreater(stored, 500)
        return stored

    def test_reads_and_deletions_go_on(self):
        server = self.server("size", "2M", "max_size", "2M")
        r = server.client()
        stored = self.fill(r, "^OOM the pool has no room")
        self.assertEqual(r("GET", "k0"), b"x" * 1000)
        with self.assertRaisesRegex(ServerError, "^OOM"):  # to the last small one
            for small in range(100000):
                r("SET", f"small{small}", "x")
        for i in range(200):
            self.assertEqual(r("DEL", f"k{i}"), 1)
        for i in range(small):
            r("DEL", f"small{i}")
        self.assertEqual(r("SET", "again", "y" * 1000), "OK")
        server.kill()
        server.start()
        r = server.client()
        self.assertEqual(r("GET", "again"), b"y" * 1000)
        self.assertEqual(r("DBSIZE"), stored - 200 + 1)

    def test_of_a_full_disk_refuses_and_serves_on(self):
        server = self.server("size", "2M", "max_size", "64M", largest_file=6 << 20)
        r = server.client()
        stored = self.fill(r, "^OOM the pool has no room .*cannot grow: .*RLIMIT_FSIZE")
        for i in (0, stored - 1):
            self.assertEqual(r("GET", f"k{i}"), b"x" * 1000)
        for i in range(100):
            self.assertEqual(r("DEL", f"k{i}"), 1)
        self.assertEqual(r("SET", "again", "y" * 900), "OK")
        server.kill()
        server.largest_file = None  # the disk has room again
        r = server.start().client()
        self.assertEqual(r("DBSIZE"), stored - 99)
        self.assertEqual(r("GET", "again"), b"y" * 900)
        for i in range(stored, stored + 5000):
            r("SET", f"k{i}", "x" * 1000)
        self.assertEqual(r("DBSIZE"), stored + 4901)


class Refusals(RedisCase):
    def refused(self, *arguments, pool="pool"):
        server = Server(self.folder, *arguments, name=pool)
        self.addCleanup(server.kill)
        server.start(expects=False)
        self.assertIsNotNone(server.process.poll())
        return server.text()

    def test_wrong_arguments(self):
        for arguments, sentence in (
            (("size",), "has no value"),
            (("size", "many"), "size many is no size"),
            (("speed", "9"), "there is no argument speed"),
            (("mechanism", "nix"), "no mechanism named 'nix'"),
            (("mechanism", "log_structured"), "choose another mechanism"),
        ):
            self.assertIn(sentence, self.refused(*arguments, pool="of " + arguments[0]))

    def test_too_many_databases(self):
        server = Server(self.folder, options=("--databases", "65"))
        self.addCleanup(server.kill)
        server.start(expects=False)
        self.assertIn("at most 64 databases", server.text())
        self.assertEqual(os.listdir(self.folder), ["pool.log"])

    def test_wrong_files(self):
        with open(os.path.join(self.folder, "text"), "w") as out:
            out.write("nothing that anybody knows" * 1000)
        self.assertIn("is not a stele pool", self.refused(pool="text"))
        running = self.server("size", "8M")
        self.assertIn(str(running.process.pid), self.refused())


class Saving(RedisCase):
    def test_a_child_saves_what_was_there_when_it_began(self):
        server = self.server("size", "64M")
        r = server.client()
        r("CONFIG", "SET", "rdb-key-save-delay", 5000)  # microseconds
        for i in range(1000):
            r("SET", f"k{i}", f"before {i}")
            r("HSET", f"h{i % 50}", i, i)
        r("BGSAVE")
        for i in range(1000):
            r("SET", f"k{i}", f"after, and much longer {i}")
            r("HSET", f"h{i % 50}", i, "after")
            if i % 3 == 0:
                r("DEL", f"k{i}")
        in_progress = b"rdb_bgsave_in_progress:1" in r("INFO", "persistence")
        while b"rdb_bgsave_in_progress:1" in r("INFO", "persistence"):
            time.sleep(0.05)
        self.assertTrue(in_progress, "the child had ended before the changes had")
        other = self.server("size", "64M", name="other", options=("--dbfilename", "dump.rdb"))
        o = other.client()
        self.assertEqual(o("DBSIZE"), 1050)
        for i in range(1000):
            self.assertEqual(o("GET", f"k{i}"), f"before {i}".encode())
            self.assertEqual(o("HGET", f"h{i % 50}", i), str(i).encode())
        # What a file of the server's has is older than a pool that has something.
        server.kill()
        server.start()
        r = server.client()
        self.assertEqual(r("GET", "k1"), b"after, and much longer 1")
        self.assertIsNone(r("GET", "k0"))
        self.assertEqual(r("DBSIZE"), 1050 - 334)


class Replicas(RedisCase):
    def test_a_replica_has_a_pool_of_its_own(self):
        server = self.server("size", "16M")
        r = server.client()
        for i in range(1000):
            r("SET", f"k{i}", i)
        replica = self.server("size", "16M", name="replica", options=("--replicaof", f"127.0.0.1 {server.port}"))
        c = replica.client()

        def caught_up():
            for _ in range(300):
                if r("WAIT", 1, 100) == 1:
                    return True
            return False

        r("SET", "last", 1, "EX", 1000)
        r("HSET", "hash", "a", 1)
        self.assertTrue(caught_up(), replica.text())
        self.assertEqual((c("DBSIZE"), c("GET", "k7"), c("HGET", "hash", "a")), (1002, b"7", b"1"))
        with self.assertRaisesRegex(ServerError, "READONLY"):
            c("SET", "k7", 0)
        server.kill()
        c("REPLICAOF", "NO", "ONE")
        c("SET", "k7", "new")
        replica.kill()
        replica.options = ()
        replica.start()
        c = replica.client()
        self.assertEqual((c("DBSIZE"), c("GET", "k7"), c("TTL", "last") > 900), (1002, b"new", True))


if __name__ == "__main__":
    unittest.main()
