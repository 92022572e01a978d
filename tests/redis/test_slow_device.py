"""On a slow device: what a client was told is there after a kill, whatever command it rests on and whoever tells it.

A case is what is there before; commands of clients of their own, none of which is waited for; and what other clients then ask, each with
the answer that shows the commands. The device does nothing meanwhile. A client that is answered all the same may be so only because the
server's main thread has written what the answer rests on: the server is killed, and what was answered must hold after a restart. The others
are answered when the device goes on.
"""

import contextlib
import os
import select
import time
import unittest

from beds import RedisCase

SLOW = os.environ.get("STELE_SLOW_SYNC", "")
LATER = 4102444800  # a time to come, in seconds
WRITES_ALL = "for i = 1, 1500 do redis.call('SET', 'many ' .. i, i) end return 1"


def many(first, last):
    return [word for i in range(first, last) for word in (f"many {i}", i)]


def asks(*words, told, checks=None, finds=None):
    """`checks`: what is asked after the restart, where the question itself would change something or wait; `finds`: its answer."""
    return [words], told, checks or words, told if finds is None else finds


def asks_within(*lines, told, checks, finds):
    """The last of several commands of one client; the others are answered at once."""
    return list(lines), told, checks, finds


A_IS_2, A_IS_THERE, A_IS_NOT = {"checks": ("GET", "a"), "finds": b"2"}, {"checks": ("EXISTS", "a"), "finds": 1}, {"checks": ("EXISTS", "a"), "finds": 0}
B_IS_THERE = {"checks": ("EXISTS", "b"), "finds": 1}
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
SAW_2 = [
    asks("GET", "a", told=b"2"), asks("MGET", "a", told=[b"2"]), asks("GETRANGE", "a", 0, -1, told=b"2"), asks("LCS", "a", "a", told=b"2"),
    asks("BITCOUNT", "a", told=3), asks("GETBIT", "a", 6, told=1), asks("BITPOS", "a", 1, told=2), asks("BITFIELD_RO", "a", "GET", "u8", 0, told=[50]),
    asks("GETEX", "a", told=b"2"), asks("SET", "a", 3, "NX", "GET", told=b"2", **A_IS_2), asks("EVAL", "return redis.call('GET', 'a')", 0, told=b"2"),
    asks("EVAL_RO", "return redis.call('GET', 'a')", 0, told=b"2"), asks_within(("MULTI",), ("GET", "a"), ("EXEC",), told=[b"2"], **A_IS_2),
    asks("EVAL", "return redis.call('MGET', 'a', 'b')[1]", 0, told=b"2")]
SAW_NEW = [
    asks("EXISTS", "a", told=1), asks("TYPE", "a", told="string"), asks("DBSIZE", told=1), asks("KEYS", "*", told=[b"a"]),
    asks("RANDOMKEY", told=b"a"), asks("SCAN", 0, told=[b"0", [b"a"]]), asks("TOUCH", "a", told=1), asks("TTL", "a", told=-1),
    asks("OBJECT", "ENCODING", "a", told=b"int"), asks("SETNX", "a", 3, told=0, **A_IS_THERE), asks("SET", "a", 3, "NX", told=None, **A_IS_THERE),
    asks("MSETNX", "c", 3, "a", 3, told=0, **A_IS_THERE), asks("EVAL", "return redis.call('EXISTS', 'a')", 0, told=1),
    asks("EVAL", "return redis.call('SETNX', 'a', 3)", 0, told=0, **A_IS_THERE),
    asks_within(("MULTI",), ("SETNX", "a", 3), ("EXEC",), told=[0], **A_IS_THERE)]
SAW_NONE = [
    *[asks(*words, told=told) for words, told in (
        (("GET", "a"), None), (("EXISTS", "a"), 0), (("STRLEN", "a"), 0), (("TYPE", "a"), "none"), (("GETEX", "a"), None), (("TTL", "a"), -2),
        (("PEXPIRETIME", "a"), -2), (("DUMP", "a"), None), (("DBSIZE",), 0), (("KEYS", "*"), []), (("RANDOMKEY",), None), (("SCAN", 0), [b"0", []]),
        (("GETRANGE", "a", 0, -1), b""), (("GETBIT", "a", 3), 0), (("BITCOUNT", "a"), 0), (("BITPOS", "a", 1), -1), (("LCS", "a", "b"), b""),
        (("HGET", "a", "f"), None), (("HGETALL", "a"), []), (("HLEN", "a"), 0), (("LLEN", "a"), 0), (("LRANGE", "a", 0, -1), []), (("LINDEX", "a", 0), None),
        (("LPOS", "a", 1), None), (("SMEMBERS", "a"), []), (("SINTER", "a"), []), (("SISMEMBER", "a", 1), 0), (("SRANDMEMBER", "a"), None),
        (("ZRANGE", "a", 0, -1), []), (("ZSCORE", "a", "m"), None), (("ZCARD", "a"), 0), (("ZUNION", 1, "a"), []), (("SORT", "a"), []),
        (("PFCOUNT", "a"), 0), (("GEOPOS", "a", "m"), [None]), (("HSCAN", "a", 0), [b"0", []]), (("EVAL", "return redis.call('EXISTS', 'a')", 0), 0))],
    *[asks(*words, told=told, **A_IS_NOT) for words, told in (
        (("DEL", "a"), 0), (("UNLINK", "a"), 0), (("EXPIRE", "a", 10), 0), (("PERSIST", "a"), 0), (("MOVE", "a", 1), 0), (("COPY", "a", "c"), 0),
        (("RENAME", "a", "c"), "ERR no such key"), (("RENAMENX", "a", "c"), "ERR no such key"), (("GETDEL", "a"), None), (("SET", "a", 3, "XX"), None),
        (("LPUSHX", "a", 1), 0), (("LPOP", "a"), None), (("LREM", "a", 0, 1), 0), (("LTRIM", "a", 0, 1), "OK"), (("LINSERT", "a", "BEFORE", 1, 2), 0),
        (("LSET", "a", 0, 1), "ERR no such key"), (("LMOVE", "a", "c", "LEFT", "LEFT"), None), (("LMPOP", 1, "a", "LEFT"), None), (("HDEL", "a", "f"), 0),
        (("SREM", "a", 1), 0), (("SPOP", "a"), None), (("SMOVE", "a", "c", 1), 0), (("SINTERSTORE", "c", "a"), 0), (("SUNIONSTORE", "c", "a"), 0),
        (("ZREM", "a", "m"), 0), (("ZADD", "a", "XX", 1, "m"), 0), (("ZPOPMIN", "a"), []), (("ZMPOP", 1, "a", "MIN"), None),
        (("ZREMRANGEBYRANK", "a", 0, -1), 0), (("ZUNIONSTORE", "c", 1, "a"), 0), (("ZRANGESTORE", "c", "a", 0, -1), 0), (("SORT", "a", "STORE", "c"), 0),
        (("BITOP", "NOT", "c", "a"), 0), (("GEOSEARCHSTORE", "c", "a", "FROMLONLAT", 1, 1, "BYRADIUS", 1, "m"), 0),
        (("EVAL", "return redis.call('DEL', 'a')", 0), 0), (("BLPOP", "a", 0.001), None))],
    asks_within(("MULTI",), ("BLPOP", "a", 1), ("EXEC",), told=[None], **A_IS_NOT),
    asks_within(("MULTI",), ("DEL", "a"), ("EXEC",), told=[0], **A_IS_NOT)]

CASES = [
    ([("SET", "a", 1)], [("SET", "a", 2)], SAW_2),
    ([("SET", "a", 1)], [("EVAL", "redis.call('SET', 'a', 2) redis.call('SET', 'b', 2)", 0)], [*SAW_2, asks("GET", "b", told=b"2")]),
    ([("SET", "a", 1)], [[("MULTI",), ("SET", "a", 2), ("SET", "b", 2), ("EXEC",)]], [*SAW_2, asks("GET", "b", told=b"2")]),
    ([("SET", "a", 1), ("SELECT", 1), ("SET", "a", 2)], [("SWAPDB", 0, 1)], SAW_2),
    ([("SET", "b", 2)], [("RENAME", "b", "a")], SAW_2 + SAW_NEW),
    ([], [("SET", "a", 2)], SAW_2 + SAW_NEW),
    ([("SET", "a", 1)], [("DEL", "a")], SAW_NONE),
    ([("SET", "a", 1)], [("GETDEL", "a")], SAW_NONE),
    ([("SET", "a", 1)], [("EVAL", "return redis.call('DEL', 'a')", 0)], SAW_NONE),
    ([("SET", "a", 1)], [[("MULTI",), ("DEL", "a"), ("EXEC",)]], SAW_NONE),
    ([("SET", "a", 1)], [("SWAPDB", 0, 1)], SAW_NONE),
    ([("SET", "a", 1)], [("MOVE", "a", 1)], SAW_NONE),
    ([("SET", "a", 1)], [("FLUSHDB",)], SAW_NONE),
    ([("SET", "a", 1)], [("FLUSHALL",)], SAW_NONE),
    ([("RPUSH", "a", 1)], [("LPOP", "a")], SAW_NONE),
    ([("SADD", "a", 1)], [("SPOP", "a")], SAW_NONE),
    ([("SET", "a", 1)], [("PEXPIRE", "a", 20), 0.05], SAW_NONE),
    ([("SET", "a", 1)], [("SET", "a", 2, "PX", 20), 0.05], SAW_NONE),
    ([("SET", "a", 1)], [("EVAL", "redis.call('PEXPIRE', 'a', 20)", 0), 0.05], SAW_NONE),
    ([("SET", "a", 1)], [("RENAME", "a", "b")], [asks("GET", "a", told=None), asks("GET", "b", told=b"1"), asks("RENAMENX", "b", "b", told=0, **B_IS_THERE),
                                                asks("COPY", "b", "b", told="ERR source and destination objects are the same", **B_IS_THERE)]),
    ([("SET", "a", 1)], [("RENAMENX", "a", "b")], [asks("EXISTS", "b", told=1), asks("EXISTS", "a", told=0)]),
    ([("SET", "c", 1)], [("COPY", "c", "b")], [asks("GET", "b", told=b"1"), asks("COPY", "c", "b", told=0, **B_IS_THERE),
                                              asks("RENAMENX", "c", "b", told=0, **B_IS_THERE), asks("MSETNX", "b", 1, "d", 1, told=0, **B_IS_THERE)]),
    ([("SET", "a", 1)], [("APPEND", "a", 1)], [asks("STRLEN", "a", told=2), asks("SETRANGE", "a", 0, "", told=2, checks=("STRLEN", "a"))]),
    ([("SET", "a", 1)], [("SETBIT", "a", 0, 1)], [asks("GETBIT", "a", 0, told=1)]),
    ([("SET", "a", 1)], [("BITFIELD", "a", "SET", "u8", 0, 200)], [asks("BITFIELD", "a", "GET", "u8", 0, told=[200])]),
    ([("SET", "a", 1)], [("EXPIREAT", "a", LATER)], [asks("EXPIRETIME", "a", told=LATER), asks("EXPIRE", "a", 9, "NX", told=0, checks=("EXPIRETIME", "a"), finds=LATER)]),
    ([("SET", "a", 1, "EXAT", LATER)], [("PERSIST", "a")], [asks("TTL", "a", told=-1), asks("PERSIST", "a", told=0, checks=("TTL", "a"), finds=-1),
                                                           asks("EXPIRE", "a", 9, "XX", told=0, checks=("TTL", "a"), finds=-1)]),
    ([("HSET", "h", "f", 1)], [("HSET", "h", "f", 2)], [asks("HGET", "h", "f", told=b"2"), asks("HVALS", "h", told=[b"2"]), asks("HMGET", "h", "f", told=[b"2"])]),
    ([("HSET", "h", "g", 1)], [("HSET", "h", "f", 2)], [
        asks("HEXISTS", "h", "f", told=1), asks("HLEN", "h", told=2), asks("HSTRLEN", "h", "f", told=1),
        asks("HSETNX", "h", "f", 3, told=0, checks=("HEXISTS", "h", "f"), finds=1)]),
    ([("HSET", "h", "f", 1, "g", 1)], [("HDEL", "h", "f")], [asks("HGET", "h", "f", told=None), asks("HKEYS", "h", told=[b"g"]),
                                                            asks("HDEL", "h", "f", told=0, checks=("HLEN", "h"), finds=1)]),
    ([("RPUSH", "l", 1)], [("RPUSH", "l", 2)], [
        asks("LLEN", "l", told=2), asks("LINDEX", "l", 1, told=b"2"), asks("LPOS", "l", 2, told=1), asks("LRANGE", "l", -1, -1, told=[b"2"]),
        asks("LTRIM", "l", 0, 1, told="OK", checks=("LLEN", "l"), finds=2), asks("SORT", "l", "DESC", "LIMIT", 0, 1, told=[b"2"])]),
    ([("RPUSH", "l", 1, 2)], [("LPOP", "l")], [
        asks("LLEN", "l", told=1), asks("LREM", "l", 0, 1, told=0, checks=("LLEN", "l"), finds=1), asks("LSET", "l", 1, 3, told="ERR index out of range", checks=("LLEN", "l"), finds=1),
        asks("LINSERT", "l", "BEFORE", 1, 0, told=-1, checks=("LLEN", "l"), finds=1)]),
    ([("SADD", "s", 1)], [("SADD", "s", 2)], [
        asks("SCARD", "s", told=2), asks("SISMEMBER", "s", 2, told=1), asks("SMISMEMBER", "s", 2, told=[1]), asks("SINTERCARD", 1, "s", told=2),
        asks("SADD", "s", 2, told=0, checks=("SISMEMBER", "s", 2), finds=1), asks("EVAL", "return redis.call('SADD', 's', 2)", 0, told=0, checks=("SCARD", "s"), finds=2),
        asks_within(("MULTI",), ("SADD", "s", 2), ("EXEC",), told=[0], checks=("SCARD", "s"), finds=2)]),
    ([("SADD", "s", 1, 2)], [("SREM", "s", 1)], [
        asks("SISMEMBER", "s", 1, told=0), asks("SREM", "s", 1, told=0, checks=("SCARD", "s"), finds=1), asks("SMOVE", "s", "t", 1, told=0, checks=("SCARD", "s"), finds=1),
        asks("SDIFF", "s", "t", told=[b"2"]), asks("SUNION", "s", told=[b"2"])]),
    ([("ZADD", "z", 1, "m")], [("ZINCRBY", "z", 1, "m")], [
        asks("ZSCORE", "z", "m", told=b"2"), asks("ZMSCORE", "z", "m", told=[b"2"]), asks("ZCOUNT", "z", 2, 2, told=1), asks("ZRANGEBYSCORE", "z", 2, 2, told=[b"m"]),
        *[asks("ZADD", "z", *words, told=0, checks=("ZSCORE", "z", "m"), finds=b"2") for words in ((2, "m"), ("GT", 1, "m"), ("XX", 2, "m"))]]),
    ([("ZADD", "z", 1, "m")], [("ZADD", "z", 0, "k")], [
        asks("ZRANK", "z", "m", told=1), asks("ZCARD", "z", told=2), asks("ZADD", "z", "NX", 3, "k", told=0, checks=("ZRANK", "z", "m"), finds=1),
        asks("ZADD", "z", "NX", "INCR", 3, "k", told=None, checks=("ZRANK", "z", "m"), finds=1), asks("ZREVRANGE", "z", -1, -1, told=[b"k"])]),
    ([("ZADD", "z", 1, "m", 2, "n")], [("ZREM", "z", "m")], [
        asks("ZREM", "z", "m", told=0, checks=("ZCARD", "z"), finds=1), asks("ZADD", "z", "XX", 2, "m", told=0, checks=("ZCARD", "z"), finds=1),
        asks("ZREMRANGEBYSCORE", "z", 1, 1, told=0, checks=("ZCARD", "z"), finds=1), asks("ZRANK", "z", "m", told=None)]),
    ([("RPUSH", "l", 1)], [("SET", "v1", 5)], [asks("SORT", "l", "GET", "v*", told=[b"5"]), asks("SORT", "l", "BY", "v*", "GET", "v*", told=[b"5"])]),
    # Refusals that tell what there is.
    ([("SET", "a", 1)], [("SET", "a", "x")], [
        asks(*words, told=f"ERR {why}", checks=("GET", "a"), finds=b"x") for words, why in (
            (("INCR", "a"), "value is not an integer or out of range"), (("INCRBYFLOAT", "a", 1), "value is not a valid float"))]),
    ([("HSET", "a", "f", 1)], [("HSET", "a", "f", "x")], [
        asks(*words, told=f"ERR {why}", checks=("HGET", "a", "f"), finds=b"x") for words, why in (
            (("HINCRBY", "a", "f", 1), "hash value is not an integer"), (("HINCRBYFLOAT", "a", "f", 1), "hash value is not a float"))]),
    ([], [("SADD", "a", 1)], [
        asks(*words, told=WRONG_TYPE, **A_IS_THERE) for words in (
            ("GET", "a"), ("SET", "a", 1, "GET"), ("INCR", "a"), ("LLEN", "a"), ("LPUSH", "a", 1), ("HSET", "a", "f", 1), ("ZADD", "a", 1, "m"), ("BITCOUNT", "a"),
            ("BITFIELD", "a", "SET", "u8", 0, 1), ("PFADD", "a", 1), ("GEOADD", "a", 1, 1, "m"), ("LMOVE", "a", "c", "LEFT", "LEFT"))]),
    ([("ZADD", "z", 1, "m")], [("ZUNIONSTORE", "y", 1, "z")], [asks("ZCARD", "y", told=1), asks("ZINTERCARD", 1, "y", told=1), asks("ZDIFF", 1, "y", told=[b"m"])]),
    ([("PFADD", "p", 1)], [("PFADD", "p", 2)], [asks("PFCOUNT", "p", told=2), asks("PFADD", "p", 2, told=0, checks=("PFCOUNT", "p"), finds=2)]),
    ([("GEOADD", "g", 1, 1, "m")], [("GEOADD", "g", 2, 2, "n")], [
        asks("GEOHASH", "g", "n", told=[b"s037ms06g70"]), asks("GEOSEARCH", "g", "FROMLONLAT", 2, 2, "BYRADIUS", 1, "km", told=[b"n"]),
        asks("GEOADD", "g", 2, 2, "n", told=0, checks=("ZCARD", "g"), finds=2)]),
    # The clients that wait are answered for commands of others.
    *[([], [("waits", words, told, checks, finds), made, *more], [asks(*checks, told=finds)]) for words, made, told, checks, finds, *more in (
        (("BLPOP", "l", 0), ("RPUSH", "l", 1, 2), [b"l", b"1"], ("LLEN", "l"), 1), (("BLMPOP", 0, 1, "l", "LEFT"), ("RPUSH", "l", 1, 2), [b"l", [b"1"]], ("LLEN", "l"), 1),
        (("BLMOVE", "l", "m", "LEFT", "LEFT", 0), ("RPUSH", "l", 1), b"1", ("LLEN", "m"), 1), (("BZPOPMIN", "z", 0), ("ZADD", "z", 1, "m", 2, "n"), [b"z", b"m", b"1"], ("ZCARD", "z"), 1),
        (("BLPOP", "l", 0), [("MULTI",), ("SET", "b", 1), ("RPUSH", "l", 1, 2), ("EXEC",)], [b"l", b"1"], ("LLEN", "l"), 1),
        (("BLPOP", "l", 0), ("EVAL", "return redis.call('RPUSH', 'l', 1, 2)", 0), [b"l", b"1"], ("LLEN", "l"), 1))],
    # One that is refused for what its destination has become.
    *[([], [("waits", words, WRONG_TYPE, *checks.values()), ("SET", "b", 1), ("RPUSH", "l", 1)], [asks("EXISTS", "b", told=1)]) for checks in (B_IS_THERE,) for words in (
        ("BLMOVE", "l", "b", "LEFT", "LEFT", 0), ("BRPOPLPUSH", "l", "b", 0))],
    # Many keys: the notes of what is not yet durable are looked through when there are more than a thousand.
    *[([], [*commands, ("SET", "a", 2)], [asks("GET", "many 700", told=b"700"), asks("EXISTS", "many 1", told=1), asks("MGET", "many 3", told=[b"3"]),
                                         asks("SETNX", "many 1400", 1, told=0, checks=("EXISTS", "many 1400"), finds=1), *SAW_2]) for commands in (
        [("MSET", *many(0, 1500))], [("MSET", *many(i, i + 300)) for i in range(0, 1500, 300)], [("EVAL", WRITES_ALL, 0)],
        [[("MULTI",), *[("SET", f"many {i}", i) for i in range(1500)], ("EXEC",)]])],
    ([("MSET", *many(0, 1500))], [("DEL", *many(0, 1500)[::2]), ("SET", "a", 2)], [asks("GET", "many 700", told=None), asks("EXISTS", "many 1", told=0), *SAW_2]),
]


@unittest.skipUnless(SLOW, "STELE_SLOW_SYNC names no library")
class SlowDevice(RedisCase):
    def setUp(self):
        super().setUp()
        self.when = os.path.join(self.folder, "is slow")
        os.environ.update(LD_PRELOAD=SLOW, STELE_SLOW_SYNC_WHEN=self.when)
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("LD_PRELOAD", "STELE_SLOW_SYNC_WHEN")])
        self.kills = 0

    def hold(self):
        with open(self.when, "w"):
            pass

    def go_on(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.when)

    @staticmethod
    def is_answered(client):
        return bool(select.select([client.socket], [], [], 0)[0])

    def call(self, client, *words):
        """The answer to what Redis answers at once, unless the server itself waits for the device, which then goes on."""
        client.send(*words)
        if not select.select([client.socket], [], [], 0.3)[0]:
            self.go_on()
        return client.answer()

    def send(self, lines):
        """A client that has sent these commands, and whether the last is answered; else the client waits."""
        client = self.now.client()
        number = self.call(client, "CLIENT", "ID")
        for words in lines[:-1]:
            self.call(client, *words)
        client.send(*lines[-1])
        last = b" cmd=exec " if len(lines) > 1 else None
        while True:
            line = self.call(self.control, "CLIENT", "LIST", "ID", number)
            if last in line if last else b" cmd=client|id " not in line:
                if self.is_answered(client):
                    return client, True
                if b" flags=b " in line:
                    return client, False

    @staticmethod
    def answer_of(client):
        answer = client.answer_or_error()
        return str(answer) if isinstance(answer, Exception) else answer

    def begin(self, before, commands, checks, finds):
        """What is there before, and the commands. Who waits for a key, as (client, question, what it must be told, what to check then);
        and who was answered at once."""
        self.control, writers = self.now.client(), []
        for words in (("FLUSHALL",), *before):
            self.control(*words)
        self.control("SELECT", 0)
        self.hold()
        waiting = []
        for words in commands:
            if isinstance(words, float):
                time.sleep(words)
            elif words[0] == "waits":
                waiting.append((self.send([words[1]])[0], *words[1:]))
            else:
                writers.append((*self.send(words if isinstance(words, list) else [words]), words))
        early = [(client, words, None, checks, finds) for client, is_told, words in writers if is_told]
        return waiting, early + [one for one in waiting if self.is_answered(one[0])]

    def is_there_after_a_kill(self, early):
        """These are answered, though the device has done nothing but for the server's main thread."""
        self.now.process.kill()
        self.kills += 1
        told = [(question, self.answer_of(client), *rest) for client, question, *rest in early]
        self.now.kill()
        self.go_on()
        self.now.start()
        r = self.now.client()
        for question, answer, expected, checks, finds in told:
            r.send(*checks)
            self.assertEqual(self.answer_of(r), finds, (question, "was answered", answer))
            if expected is not None:
                self.assertEqual(answer, expected, question)

    def ask(self, questions, waiting):
        """Those that are left after one that is answered, or that the server itself waits in."""
        asked, was_on = [(client, question, told) for client, question, told, *_ in waiting], not os.path.exists(self.when)
        while questions:
            (lines, told, checks, finds), *questions = questions
            client, is_told = self.send(lines)
            if is_told and os.path.exists(self.when):
                self.is_there_after_a_kill([(client, lines[-1], told, checks, finds)])
                return questions
            asked.append((client, lines[-1], told))
            if not os.path.exists(self.when) and not was_on:
                break
        self.go_on()
        for client, question, told in asked:
            self.assertEqual(self.answer_of(client), told, question)
        return questions

    def test_answers_rest_on_what_a_kill_leaves(self):
        self.now = self.server("size", "64M", "media", "file")
        for before, commands, questions in CASES:
            self.go_on()  # after a failure, too
            with self.subTest(commands=str(commands)[:200]):
                was_durable = False  # the commands' own end has made it so
                while questions:
                    waiting, early = self.begin(before, commands, *questions[0][2:])
                    if early and not was_durable:
                        was_durable = True
                        self.is_there_after_a_kill(early)
                        continue
                    if was_durable:
                        self.go_on()
                    questions = self.ask(questions, waiting)
                    self.now.clients[:] = [c.close() for c in self.now.clients][:0]
        print(f"  {self.kills} of {sum(len(questions) for *_, questions in CASES)} answers came before the device")


if __name__ == "__main__":
    unittest.main()
