"""Beside a plain server: what is refused when `maxmemory` is passed, before and within MULTI, EXEC, scripts and functions."""

import itertools
import os
import resource
import unittest

from beds import RedisCase, ServerError, ServerGone

LIBRARY = """#!lua name=made
local function run(keys, args) return redis.call(unpack(args)) end
redis.register_function('plain', run)
redis.register_function{function_name='allows', callback=run, flags={'allow-oom'}}
redis.register_function{function_name='reads', callback=run, flags={'no-writes'}}
"""
CALL, PCALL = "return redis.call(unpack(ARGV))", "local told = redis.pcall(unpack(ARGV)) return told"
LIMIT, NO_LIMIT = ("CONFIG", "SET", "maxmemory", 1), ("CONFIG", "SET", "maxmemory", 0)
OTHER = "by another client"
FILL = (("SET", "text", "some"), ("SET", "number", 5), ("RPUSH", "list", 1, 2), ("SADD", "set", 1, 2), ("ZADD", "ranking", 1, "m", 2, "n"), ("HSET", "hash", "f", 1, "n", 2))

# Commands that Redis refuses when memory is short, and others, which it never does but within MULTI.
GROWING = [("SET", "new", 1), ("APPEND", "text", "x"), ("SETRANGE", "text", 3, "x"), ("SETBIT", "text", 7, 1), ("INCR", "number"), ("MSET", "new", 1, "other", 2),
           ("LPUSH", "list", 1), ("LSET", "list", 0, "x"), ("LINSERT", "list", "BEFORE", 1, 0), ("LMOVE", "list", "other", "LEFT", "LEFT"), ("SADD", "set", 7),
           ("SINTERSTORE", "new", "set"), ("ZADD", "ranking", 1, "x"), ("ZINCRBY", "ranking", 1, "m"), ("ZUNIONSTORE", "new", 1, "ranking"), ("HSET", "hash", "g", 1),
           ("HINCRBY", "hash", "n", 1), ("PFADD", "seen", 1), ("GEOADD", "places", 1, 1, "m"), ("BITFIELD", "text", "SET", "u8", 0, 1), ("BITOP", "NOT", "new", "text"),
           ("COPY", "text", "new"), ("SORT", "list", "STORE", "new"), ("GETSET", "text", "x"), ("SETEX", "new", 100, "x")]
OTHERS = [("GET", "text"), ("HGETALL", "hash"), ("DEL", "text"), ("LPOP", "list"), ("HDEL", "hash", "f"), ("ZPOPMIN", "ranking"), ("EXPIRE", "text", 1000),
          ("RENAME", "text", "new"), ("GETDEL", "text"), ("GETEX", "text", "EX", 1000), ("FLUSHALL",), ("EXISTS", "text"), ("LTRIM", "list", 0, 0), ("SMOVE", "set", "other", 1), ("PING",)]


def forms():
    """Each command in each of these ways, as lines of one client, and of another one."""
    for words in GROWING + OTHERS:
        yield [LIMIT, words, NO_LIMIT]
        yield [("MULTI",), words, ("PING",), (OTHER, LIMIT), ("EXEC",), NO_LIMIT]
        yield [LIMIT, ("MULTI",), words, ("PING",), ("EXEC",), NO_LIMIT]
        yield [("MULTI",), ("SET", "before", 1), LIMIT, words, NO_LIMIT, ("EXEC",)]
        yield [("MULTI",), (OTHER, LIMIT), words, (OTHER, NO_LIMIT), ("EXEC",)]
        for script, flags in itertools.product((CALL, PCALL), ("", "#!lua\n", "#!lua flags=allow-oom\n", "#!lua flags=no-writes\n", "#!lua flags=allow-oom,no-writes\n")):
            yield [LIMIT, ("EVAL", flags + script, 0, *words), NO_LIMIT]
        yield [LIMIT, ("EVAL_RO", CALL, 0, *words), NO_LIMIT]
        for name in ("plain", "allows", "reads"):
            yield [LIMIT, ("FCALL", name, 0, *words), NO_LIMIT]
        yield [("MULTI",), ("EVAL", CALL, 0, *words), ("EVAL", "#!lua flags=allow-oom\n" + CALL, 0, *words), (OTHER, LIMIT), ("EXEC",), NO_LIMIT]
        yield [("MULTI",), LIMIT, ("EVAL", CALL, 0, *words), ("EVAL", "#!lua\n" + CALL, 0, *words), NO_LIMIT, ("EXEC",)]
        # What a script has done before, and the limit that it sets itself.
        yield [LIMIT, ("EVAL", "redis.call('DEL', 'number') " + CALL, 0, *words), NO_LIMIT]
        yield [("EVAL", "redis.call('SET', 'first', 1) redis.call('CONFIG', 'SET', 'maxmemory', '1') " + CALL, 0, *words), NO_LIMIT]
        yield [LIMIT, ("EVAL", "redis.pcall('SET', 'first', 1) redis.call('GET', 'text') " + CALL, 0, *words), NO_LIMIT]


class OutOfMemory(RedisCase):
    KEYS = ("text", "number", "list", "set", "ranking", "hash", "seen", "places", "new", "other", "before", "first")

    @staticmethod
    def plain(told):
        """An answer without the words that a module's name, or the place in a script, brings."""
        if isinstance(told, Exception):
            return str(told).replace("stele.", "").split(" script: ")[0]
        return told

    def answers(self, server, lines):
        r, other = server
        r("FLUSHALL")
        r.answers(FILL)
        told = []
        for words in lines:
            client = other if words[0] == OTHER else r
            client.send(*(words[1] if words[0] == OTHER else words))
            told.append(self.plain(client.answer_or_error()))
        return told + r.answers([(name, key) for key in self.KEYS for name in ("TYPE", "TTL")])

    def servers(self):
        servers = [[one.client(), one.client()] for one in (self.server("size", "8M"), self.server(pool=False, name="plain"))]
        for server in servers:
            server[0]("CONFIG", "SET", "maxmemory-policy", "noeviction")
            server[0]("FUNCTION", "LOAD", LIBRARY)
        return servers

    def test_is_refused_as_by_a_plain_server(self):
        servers = self.servers()
        for lines in forms():
            ours, theirs = (self.answers(server, lines) for server in servers)
            self.assertEqual(ours, theirs, lines)

    def test_a_function_of_an_exec_is_refused_alone(self):
        """A plain server discards the EXEC."""
        ours, theirs = (self.answers(server, [("MULTI",), ("FCALL", "plain", 0, "SET", "new", 1), (OTHER, LIMIT), ("EXEC",), NO_LIMIT]) for server in self.servers())
        self.assertTrue(ours[3].startswith("OOM allow-oom flag is not set on the script"), ours)
        self.assertTrue(theirs[3].startswith("EXECABORT"), theirs)
        self.assertEqual(ours[4:], theirs[4:])

    def test_a_key_goes_though_the_table_is_full_too(self):
        """A change without room took a place behind the table's end; choosing a key to evict then looked there."""
        r = self.server("size", "8M", "max_size", "8M").client()
        for i in range(511):  # with the list: all places of the table
            r("SET", f"k{i}", "x" * 60)
        for size in (4000, 1000, 300, 100, 40, 20):
            with self.assertRaisesRegex(ServerError, "OOM"):
                while True:
                    r("RPUSH", "list", "y" * size)
        r("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        for i in range(20):
            self.assertEqual(r("SET", f"new{i}", "v" * 30), "OK")
        self.assertGreater(r("DBSIZE"), 20)


class RefusedMemory(RedisCase):
    """The machine refuses the process memory: its address space ends a little behind what it has."""

    LARGE = 64 << 20

    def limit(self, more):
        process = self.running.process.pid
        with open(f"/proc/{process}/statm") as told:
            size = int(told.read().split()[0]) * resource.getpagesize()
        _, hard = resource.prlimit(process, resource.RLIMIT_AS)
        resource.prlimit(process, resource.RLIMIT_AS, (hard if more is None else size + more, hard))

    def fill(self, *arguments):
        self.running = self.server("size", "512M", *arguments)
        r = self.running.client()
        part = "x" * (4 << 20)  # what the server has got for its parts is too small for all of it
        for _ in range(self.LARGE // len(part)):
            r("APPEND", "text", part)
            r("RPUSH", "list", part)
        return r

    def test_commands_that_need_it_are_refused(self):
        for arguments in ((), ("media", "file")):
            r = self.fill(*arguments)
            self.limit(16 << 20)
            for words in (("GET", "text"), ("LRANGE", "list", 0, -1), ("GETRANGE", "text", 1, -1), ("EVAL", "return redis.call('GET', 'text')", 0)):
                with self.assertRaisesRegex(ServerError, "OOM the server has no memory for this"):
                    r(*words)
                self.assertEqual(r("SET", "small", 1), "OK")
                self.assertEqual(r("GET", "small"), b"1")
            r("MULTI")
            r("GET", "text")
            r("SET", "small", 2)
            r.send("EXEC")
            self.assertEqual(r.read.readline(), b"*2\r\n")
            refused, told = r.answer_or_error(), r.answer()
            self.assertRegex(str(refused), "OOM the server has no memory for this")
            self.assertEqual((told, r("GET", "small")), ("OK", b"2"))
            self.limit(None)
            self.assertEqual(len(r("GET", "text")), self.LARGE)
            self.running.kill()
            os.unlink(self.running.pool)

    def test_what_has_begun_its_answer_ends_the_server(self):
        r = self.fill()
        self.limit(16 << 20)
        with self.assertRaises(ServerGone):
            r("MGET", "none", "text")
        self.running.process.wait(20)
        self.assertIn("stele: the server has no memory to end what it has begun, so it ends", self.running.text())
        self.running.kill()
        self.assertEqual(self.running.start().client()("STRLEN", "text"), self.LARGE)


if __name__ == "__main__":
    unittest.main()
