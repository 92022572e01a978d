"""Beside a plain server: what is refused when `maxmemory` is passed, before and within MULTI, EXEC, scripts and functions."""

import itertools
import unittest

from beds import RedisCase, ServerError

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


if __name__ == "__main__":
    unittest.main()
