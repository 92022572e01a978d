"""Values of a Redis server in a pool: commands, restarts, refusals, a child that saves, a replica."""

import os
import signal
import time
import unittest

import beds
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

    def fill_all_types(self, r):
        """A key of each type, changed in several ways. Returns the commands that read them, and the answers."""
        r("SET", "text", "abc")
        r("SETRANGE", "text", 1, "XYZ" * 20)
        r("SETBIT", "bits", 12, 1)
        r("BITFIELD", "bits", "SET", "u8", 64, 200)
        r("PFADD", "seen", *range(300))
        r("HSET", "hash", *[f"{part}{i}" for i in range(200) for part in "fv"])
        r("HDEL", "hash", *[f"f{i}" for i in range(0, 200, 3)])
        r("RPUSH", "list", *range(500))
        r("LINSERT", "list", "BEFORE", 250, "in the middle")
        r("LREM", "list", 1, 17)
        r("LTRIM", "list", 3, -20)
        r("SADD", "set", *range(300), "x" * 100)
        r("SREM", "set", *range(100, 200))
        r("SUNIONSTORE", "union", "set", "set2")
        r("ZADD", "ranking", *[word for i in range(300) for word in (i * 7 % 101 / 4, f"m{i}")])
        r("ZINCRBY", "ranking", "inf", "m5")
        r("ZREMRANGEBYRANK", "ranking", 20, 40)
        r("ZUNIONSTORE", "sums", 2, "ranking", "set", "WEIGHTS", 2, 0.5)
        r("GEOADD", "places", 13.36, 38.11, "Palermo", 15.08, 37.5, "Catania")
        r("SORT", "set", "ALPHA", "STORE", "sorted")
        reads = [("GET", "text"), ("GET", "bits"), ("PFCOUNT", "seen"), ("LRANGE", "list", 0, -1), ("SCARD", "union"),
                 ("ZRANGE", "ranking", 0, -1, "WITHSCORES"), ("ZRANGE", "sums", 0, -1, "WITHSCORES"),
                 ("GEODIST", "places", "Palermo", "Catania"), ("LRANGE", "sorted", 0, -1), ("SMISMEMBER", "set", 7, 150)]
        unordered = [("HGETALL", "hash"), ("SMEMBERS", "set"), ("KEYS", "*")]
        return reads, unordered

    def answers(self, r, reads, unordered):
        return [r(*words) for words in reads], [sorted(r(*words)) for words in unordered]

    def test_all_types_are_there_again(self):
        plain = self.server(pool=False, name="plain").client()
        expected = self.answers(plain, *self.fill_all_types(plain))
        server = self.server("size", "8M")
        r = server.client()
        asked = self.fill_all_types(r)
        self.assertEqual(self.answers(r, *asked), expected)
        for how in (signal.SIGKILL, signal.SIGTERM):
            r = self.restarted(server, how)
            self.assertEqual(self.answers(r, *asked), expected)
        self.assertIn(b"stele_durable_keys:11\r\n", r("INFO", "stele"))

    def test_values_that_become_empty_go(self):
        server = self.server("size", "8M")
        r = server.client()
        r("RPUSH", "list", 1, 2)
        r("SADD", "set", 1)
        r("ZADD", "ranking", 1, "a")
        r("HSET", "hash", "a", 1)
        r("LPOP", "list", 2)
        r("SPOP", "set")
        r("ZPOPMIN", "ranking")
        r("HDEL", "hash", "a")
        r("SINTERSTORE", "set", "no", "none")
        self.assertEqual(r("DBSIZE"), 0)
        r = self.restarted(server)
        self.assertEqual(r("DBSIZE"), 0)
        self.assertIn(b"stele_durable_keys:0\r\n", r("INFO", "stele"))

    def test_streams_stay_redis_own(self):
        server = self.server("size", "8M")
        r = server.client()
        r("XADD", "stream", "*", "a", 1)
        for wrong in (("GET", "stream"), ("HGET", "stream", "a"), ("LPUSH", "stream", 1), ("SADD", "stream", 1),
                      ("ZADD", "stream", 1, "a"), ("SORT", "stream"), ("SETBIT", "stream", 1, 1)):
            with self.assertRaisesRegex(ServerError, "WRONGTYPE"):
                r(*wrong)
        r("SET", "list", "text")
        self.assertEqual(r("TYPE", "stream"), "stream")
        self.assertIn(b"stele_durable_types:string,hash,list,set,zset", r("INFO", "stele"))
        self.assertIn(b"stele_durable_keys:1\r\n", r("INFO", "stele"))
        r = self.restarted(server)
        self.assertEqual(r("KEYS", "*"), [b"list"])

    def test_scans_in_portions(self):
        r = self.server("size", "8M").client()
        r("SADD", "set", *range(2000))
        r("HSET", "hash", *[i for i in range(2000) for _ in "fv"])
        r("ZADD", "ranking", *[i for i in range(2000) for _ in "sm"])
        for command, key, step in (("SSCAN", "set", 1), ("HSCAN", "hash", 2), ("ZSCAN", "ranking", 2)):
            cursor, found, steps = "0", set(), 0
            while steps == 0 or cursor != b"0":
                cursor, part = r(command, key, cursor, "COUNT", 50)
                found.update(part[::step])
                steps += 1
                if steps % 3 == 0:  # what is there all the time is found all the same
                    r("SADD", "set", *[f"new {steps} {i}" for i in range(100)])
            self.assertTrue(found >= {b"%d" % i for i in range(2000)}, command)
            self.assertGreater(steps, 10)


class AsRedis(RedisCase):
    """Commands on keys of all types, right and wrong ones, are answered as a server without the module answers them."""

    def fill(self, r):
        r("SET", "text", "abc")
        r("SET", "number", 7)
        r("HSET", "hash", "a", 1)
        r("RPUSH", "list", 3, 1, 2)
        r("SADD", "set", 1, 2)
        r("ZADD", "ranking", 1, "a", 2, "b")
        r("GEOADD", "places", 13, 38, "a")
        r("XADD", "stream", "1-1", "a", 1)

    COMMANDS = (
        "get K,set K v,setnx K v,setex K 9 v,psetex K 9000 v,getset K v,getdel K,getex K,append K x,strlen K,incr K,incrby K 2,"
        "decr K,incrbyfloat K 1.5,setrange K 1 zz,getrange K 0 1,mget K text,mset K 1,msetnx K 1,setbit K 3 1,getbit K 3,bitcount K,"
        "bitpos K 1,bitfield K set u8 0 5,bitfield_ro K get u8 0,bitop not K2 K,bitop and K2 K text,lcs K text,set K v get,set K v xx,"
        "pfadd K a,pfcount K,pfmerge K2 K,hset K f v,hsetnx K f v,hget K a,hmget K a b,hgetall K,hdel K a,hlen K,hexists K a,hkeys K,"
        "hvals K,hincrby K a 2,hincrbyfloat K a 0.5,hstrlen K a,hrandfield K 0,hscan K 0,lpush K x,rpush K x,lpushx K x,rpushx K x,"
        "lpop K,rpop K,lpop K 2,llen K,lindex K 0,lset K 0 x,lset K 9 x,linsert K before 1 x,lrange K 0 -1,lrem K 0 1,ltrim K 0 0,lpos K 1,"
        "lmove K K2 left right,lmove list K left left,rpoplpush K K2,lmpop 1 K left,blpop K 0.01,brpop K list 0.01,blmove K K2 left left 0.01,"
        "sadd K x,srem K 1,sismember K 1,smismember K 1 2,scard K,srandmember K 0,spop K 0,smove K K2 1,smove set K 1,sinter K set,"
        "sunion K set,sdiff K set,sinterstore K2 K set,sunionstore K set,sdiffstore K2 set K,sintercard 2 K set,sscan K 0,"
        "zadd K 1 x,zadd K nx 1 a,zadd K xx ch 5 a,zadd K gt incr 1 a,zincrby K 2 a,zrem K a,zscore K a,zmscore K a x,zcard K,zrank K a,"
        "zrevrank K a,zcount K -inf +inf,zlexcount K - +,zrange K 0 -1,zrange K 0 -1 rev withscores,zrange K (1 2 byscore,"
        "zrangebylex K [a +,zrevrangebyscore K 9 0 limit 0 1,zrangestore K2 K 0 -1,zpopmin K,zpopmax K 2,zmpop 1 K min,bzpopmin K 0.01,"
        "zremrangebyrank K 0 0,zremrangebyscore K 0 1,zremrangebylex K - [a,zrandmember K 0,zscan K 0,zunion 2 K ranking withscores,"
        "zinter 2 K ranking,zdiff 2 ranking K,zunionstore K2 2 K set weights 2 3,zinterstore K 1 K,zdiffstore K2 1 K,zintercard 1 K,"
        "geoadd K 1 2 x,geoadd K xx 1 2 x,geopos K a x,geodist K a a,geohash K a,geosearch K fromlonlat 13 38 byradius 9 km,"
        "geosearchstore K2 K fromlonlat 13 38 byradius 9 km,georadius K 13 38 9 km,georadius K 13 38 9 km store K2,"
        "georadiusbymember K a 9 km,sort K,sort K alpha,sort K by nosort get #,sort K alpha store K2,sort_ro K alpha desc,type K,exists K K2,"
        "ttl K,expire K 100,persist K,rename K K2,copy K K2,copy K K2 replace,del K,unlink K,touch K,object encoding K,dump none,"
        # wrong ones
        "get,set K,set K v nx xx,setbit K -1 1,setbit K 1 2,lpop K -1,linsert K near 1 x,lpos K 1 rank 0,lmpop 0 K left,zadd K nx xx 1 a,"
        "zadd K x a,zadd K 1,zrange K a b,zrange K 0 1 limit 0 1,zrangebyscore K x 1,zrangebylex K a b,zunion 0 K,zunionstore K2 5 K,"
        "sintercard 0 K,sintercard 1 K limit -1,hincrby K a x,hset K f,hrandfield K x,geoadd K 999 2 x,geodist K a,bitop not K2 K K,"
        "bitcount K 1,bitfield K set u99 0 1,sort K by,blpop K x,lcs K,spop K -1,srandmember K x,expire K x,copy K,object what K")

    def test_answers_and_what_is_left(self):
        ours, theirs = self.server("size", "8M").client(), self.server(pool=False, name="plain").client()

        def answer(r, words):
            try:
                told = r(*words)
            except ServerError as error:
                return "error", str(error).split()[0]
            if words[0] in ("sscan", "hscan", "zscan"):
                told = told[1]
            unordered = ("smembers", "hgetall", "hkeys", "hvals", "sinter", "sunion", "sdiff", "sscan", "hscan", "zscan")
            return sorted(told) if isinstance(told, list) and (words[0] in unordered or "nosort" in words) else told

        reads = {"string": "get", "hash": "hgetall", "list": "lrange", "set": "smembers", "zset": "zrange", "stream": "xlen"}
        for key in ("text", "number", "hash", "list", "set", "ranking", "places", "stream", "none"):
            for line in self.COMMANDS.split(","):
                words = [{"K": key, "K2": "other"}.get(word, word) for word in line.split()]
                for r in (ours, theirs):
                    r("FLUSHALL")
                    self.fill(r)
                self.assertEqual(answer(ours, words), answer(theirs, words), words)
                names = sorted(theirs("KEYS", "*"))
                self.assertEqual(sorted(ours("KEYS", "*")), names, words)
                for name in names:
                    kind = theirs("TYPE", name)
                    self.assertEqual(ours("TYPE", name), kind, words)
                    read = [reads[kind], name] + ["0", "-1"] * (kind in ("list", "zset")) + ["withscores"] * (kind == "zset")
                    self.assertEqual(answer(ours, read), answer(theirs, read), words)


class Waiting(RedisCase):
    """Clients that wait for a list or a sorted set to have something."""

    def test_are_served_and_what_they_take_is_gone_after_a_crash(self):
        server = self.server("size", "8M", "media", "file")
        r = server.client()
        waits = (("BLPOP", "l1", "l2", 20), ("BRPOP", "l1", 20), ("BLMOVE", "from", "to", "LEFT", "RIGHT", 20),
                 ("BLMPOP", 20, 2, "l3", "l4", "RIGHT", "COUNT", 2), ("BZPOPMIN", "z1", 20), ("BZPOPMAX", "z1", 20),
                 ("BZMPOP", 20, 1, "z2", "MAX"))
        clients = [server.client() for _ in waits]
        for client, words in zip(clients, waits):
            client.send(*words)
        while r("INFO", "clients").count(b"blocked_clients:%d\r\n" % len(waits)) == 0:
            time.sleep(0.01)
        r("RPUSH", "l1", "a", "b")
        r("RPUSH", "from", "c")
        r("MULTI")
        r("RPUSH", "l4", "d", "e", "f")
        r("ZADD", "z1", 1, "low", 2, "middle", 3, "high")
        r("EXEC")
        r("EVAL", "redis.call('zadd', 'z2', 4, 'g')", 0)
        answers = [client.answer() for client in clients]
        self.assertEqual(answers, [[b"l1", b"a"], [b"l1", b"b"], b"c", [b"l4", [b"f", b"e"]], [b"z1", b"low", b"1"],
                                   [b"z1", b"high", b"3"], [b"z2", [[b"g", b"4"]]]])
        server.kill()
        r = server.start().client()
        self.assertEqual(sorted(r("KEYS", "*")), [b"l4", b"to", b"z1"])
        self.assertEqual([r("LRANGE", "l4", 0, -1), r("LRANGE", "to", 0, -1), r("ZRANGE", "z1", 0, -1)],
                         [[b"d"], [b"c"], [b"middle"]])

    def test_end_at_their_time_and_wait_on_for_the_right_type(self):
        server = self.server("size", "8M")
        r, waiting = server.client(), server.client()
        self.assertIsNone(waiting("BLPOP", "list", 0.05))
        waiting.send("BLPOP", "list", 20)
        while b"blocked_clients:1\r\n" not in r("INFO", "clients"):
            time.sleep(0.01)
        r("SET", "list", "no list")
        r("DEL", "list")
        r("RENAME", r("RPUSH", "other", "x") and "other", "list")
        self.assertEqual(waiting.answer(), [b"list", b"x"])
        for wrong in (("BLPOP", "list", -1), ("BLPOP", "list", "soon")):
            with self.assertRaisesRegex(ServerError, "timeout"):
                r(*wrong)


class Watching(RedisCase):
    def test_reads_and_commands_that_change_nothing_leave_a_transaction(self):
        server = self.server("size", "8M")
        r, other = server.client(), server.client()
        r("SET", "text", "abc")
        r("SADD", "set", "a")
        r("ZADD", "ranking", 1, "a")
        r("GEOADD", "places", 1, 1, "here")
        unchanging = [("BITCOUNT", "text"), ("LCS", "text", "text"), ("SREM", "set", "b"), ("HDEL", "hash", "x"),
                      ("ZADD", "ranking", 1, "a"), ("GEOSEARCH", "places", "FROMMEMBER", "here", "BYRADIUS", 1, "m"),
                      ("SETBIT", "text", 1, 1), ("SORT", "set", "ALPHA"), ("LPOP", "list")]
        changing = [("SETBIT", "text", 0, 1), ("SADD", "set", "c"), ("ZADD", "ranking", 2, "a"), ("RPUSH", "list", 1),
                    ("APPEND", "text", "d"), ("HSET", "hash", "a", 1), ("GEOADD", "places", 2, 2, "there"),
                    ("PFADD", "seen", 1), ("BITOP", "NOT", "text", "text"), ("ZREM", "ranking", "a")]
        for words, runs in [(w, True) for w in unchanging] + [(w, False) for w in changing]:
            r("WATCH", "text", "set", "ranking", "places", "list", "hash", "seen")
            other(*words)
            r("MULTI")
            r("PING")
            self.assertEqual(r("EXEC") is not None, runs, words)


class FromPlainRedis(RedisCase):
    """Data of servers without the module."""

    def fill(self, r):
        r("SET", "text", "abc", "PXAT", 4102444800000)
        r("RPUSH", "list", *range(300))
        r("SADD", "set", *range(100))
        r("HSET", "hash", "a", 1)
        r("ZADD", "ranking", 1.5, "a", "-inf", "b")
        r("XADD", "stream", "1-1", "a", 1)
        r("SELECT", 3)
        r("SET", "other", 1)
        r("SELECT", 0)

    def check(self, r):
        self.assertEqual((r("GET", "text"), r("PEXPIRETIME", "text")), (b"abc", 4102444800000))
        self.assertEqual(r("LRANGE", "list", 0, -1), [b"%d" % i for i in range(300)])
        self.assertEqual((r("SCARD", "set"), r("HGETALL", "hash")), (100, [b"a", b"1"]))
        self.assertEqual(r("ZRANGE", "ranking", 0, -1, "WITHSCORES"), [b"b", b"-inf", b"a", b"1.5"])
        r("SELECT", 3)
        self.assertEqual(r("GET", "other"), b"1")
        r("SELECT", 0)

    def test_files_are_taken_into_an_empty_pool(self):
        for how in ("rdb", "aof"):
            options = ("--appendonly", "yes") if how == "aof" else ()
            plain = self.server(pool=False, name=how, options=(*options, "--dbfilename", f"{how}.rdb"))
            r = plain.client()
            self.fill(r)
            r("SAVE")
            plain.kill()
            server = self.server("size", "8M", name=f"pool of {how}", options=plain.options)
            self.check(server.client())
            self.assertIn("6 keys that were loaded are in the pool now", server.text())
            server.kill()
            server.options = ("--dbfilename", "none.rdb", "--appenddirname", "none")
            r = server.start().client()
            self.check(r)
            self.assertEqual(r("EXISTS", "stream"), 0)
            server.kill()

    def test_dumped_values_become_values_of_the_pool(self):
        plain = self.server(pool=False, name="plain")
        p = plain.client()
        self.fill(p)
        server = self.server("size", "8M")
        r = server.client()
        for key in ("text", "list", "set", "hash", "ranking"):
            r("RESTORE", key, 0, p("DUMP", key))
        server.kill()
        r = server.start().client()
        self.assertEqual(r("DBSIZE"), 5)
        self.assertEqual(r("LRANGE", "list", 0, -1), [b"%d" % i for i in range(300)])

    def test_a_replica_of_a_plain_server(self):
        plain = self.server(pool=False, name="plain", options=("--repl-diskless-sync-delay", "0"))
        p = plain.client()
        self.fill(p)
        server = self.server("size", "8M", options=("--replicaof", f"127.0.0.1 {plain.port}"))
        p("RPUSH", "list", 300)
        while p("WAIT", 1, 100) != 1:
            pass
        p("RPOP", "list")
        while p("WAIT", 1, 100) != 1:
            pass
        r = server.client()
        self.check(r)
        r("REPLICAOF", "NO", "ONE")
        server.kill()
        server.options = ()
        self.check(server.start().client())


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

    def test_hold_however_they_were_given(self):
        server = self.server("size", "8M", options=("--user", "ann", "on", ">secret", "~a", "+@all", "-set"))
        c = server.client()
        c("AUTH", "ann", "secret")
        self.assertEqual(c("INCR", "a"), 1)
        for refused in (("SET", "a", 2), ("GET", "b")):
            with self.assertRaisesRegex(ServerError, "NOPERM"):
                c(*refused)
        other = self.server("size", "8M", name="other")
        r = other.client()
        self.assertEqual(r("SET", "a", 1), "OK")
        r("MULTI")
        r("ACL", "SETUSER", "default", "-set")
        r("GET", "a")
        r("EXEC")
        self.assertEqual(r("GET", "a"), b"1")
        with self.assertRaisesRegex(ServerError, "NOPERM"):
            r("SET", "a", 2)


    def test_hold_in_scripts_that_are_debugged(self):
        """Redis filters SCRIPT DEBUG before it refuses it, and does not tell for whom."""
        given = self.server("size", "8M", options=("--user", "ann", "on", ">secret", "~a", "+@all", "-set", "-script"), name="given")
        changed = self.server("size", "8M", name="changed")
        changed.client()("ACL", "SETUSER", "ann", "on", ">secret", "~a", "+@all", "-set", "-script")
        for server in (given, changed):
            c = server.client()
            c("AUTH", "ann", "secret")
            for refused in (("SCRIPT", "DEBUG", "SYNC"), *[("EVAL", "return redis.call('set', 'a', 3)", 0)] * 2):
                with self.assertRaisesRegex(ServerError, "NOPERM"):
                    c(*refused)
            self.assertEqual(server.client()("EXISTS", "a"), 0)


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

    def test_long_scripts_end_with_an_error_only(self):
        """A unit of many small changes, of each kind, to the last that has room: its log finds room too."""
        changes = {
            "set": "'set', 'k' .. i, string.rep('x', i % 50)", "hset": "'hset', 'k' .. i, 'f', i",
            "one hash": "'hset', 'h', i, i", "rpush": "'rpush', 'k' .. i, i", "one list": "'lpush', 'l', i",
            "sadd": "'sadd', 'k' .. i, i", "one set": "'sadd', 's', i", "zadd": "'zadd', 'k' .. i, 1, i",
            "one ranking": "'zadd', 'z', -i, i", "incr": "'incr', 'k' .. i % 1000", "setbit": "'setbit', 'k' .. i, i % 99, 1",
            "append": "'append', 'k' .. i % 100, 'more'", "pfadd": "'pfadd', 'p', i", "zincrby": "'zincrby', 'z', i, i % 300",
        }
        server = self.server("size", "4M", "max_size", "4M")
        r = server.client()
        for name, words in changes.items():
            told = r("EVAL", f"for i = 1, 40000 do local e = redis.pcall({words}); if type(e) == 'table' and e.err then "
                             "return e.err end end return 'all'", 0)
            self.assertRegex(told, b"^(all|OOM the pool has no room.*)$", name)
            held = {key: r("TYPE", key) for key in r("KEYS", "*")}
            server.kill()
            r = server.start().client()
            self.assertEqual({key: r("TYPE", key) for key in r("KEYS", "*")}, held, name)
            for key in held:
                self.assertEqual(r("DEL", key), 1)

    def test_one_value_fills_it_and_can_be_deleted(self):
        r = self.server("size", "4M", "max_size", "4M").client()
        for command, words in (("HSET", lambda m: [m, m]), ("SADD", lambda m: [m]), ("RPUSH", lambda m: [m]),
                               ("ZADD", lambda m: [1, m])):
            stored = 0
            with self.assertRaisesRegex(ServerError, "^OOM the pool has no room"):
                while True:
                    r(command, "value", *[word for i in range(100) for word in words(f"{stored}:{i}")])
                    stored += 1
            self.assertGreater(stored, 100, command)
            self.assertEqual(r("DEL", "value"), 1)

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
            (("media", "memory"), "media memory has no path"),
            (("mechanism", "nix"), "no mechanism named 'nix'"),
            (("mechanism", "log_structured"), "libstele_published"),
        ):
            self.assertIn(sentence, self.refused(*arguments, pool="of " + arguments[0]))

    def test_no_path(self):
        server = Server(self.folder, pool=False, options=("--loadmodule", beds.MODULE))
        self.addCleanup(server.kill)
        server.start(expects=False)
        self.assertIn("an argument is missing: path POOL", server.text())

    def test_too_many_databases(self):
        server = Server(self.folder, options=("--databases", "65"))
        self.addCleanup(server.kill)
        server.start(expects=False)
        self.assertIn("at most 64 databases", server.text())
        self.assertEqual(os.listdir(self.folder), ["pool.log"])

    def test_a_second_load(self):
        """It took the first pool's place, and the next command ended the server."""
        server = self.server("size", "2M", options=("--enable-module-command", "yes"))
        r = server.client()
        r("SET", "k", "v")
        for arguments in (("media", "memory", "size", "2M"), ("path", os.path.join(self.folder, "other"))):
            with self.assertRaisesRegex(beds.ServerError, "Error loading the extension"):
                r("MODULE", "LOAD", beds.MODULE, *arguments)
            self.assertIn("stele: the module is loaded already; a server has one pool", server.text())
            self.assertEqual([r("GET", "k"), r("SET", "k", "v"), r("DBSIZE")], [b"v", "OK", 1])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "other")))

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
    def test_a_replica_may_keep_nothing(self):
        server = self.server("size", "16M", options=("--repl-diskless-sync-delay", "0"))
        r = server.client()
        for i in range(1000):
            r("HSET", f"h{i}", "a", "x" * 1000)
        before = set(os.listdir("/dev/shm"))
        replica = self.server(pool=False, name="replica", options=(
            "--loadmodule", beds.MODULE, "media", "memory", "size", "2M", "--replicaof", f"127.0.0.1 {server.port}"))
        c = replica.client()
        r("RPUSH", "list", 1)
        self.assertTrue(any(r("WAIT", 1, 100) == 1 for _ in range(300)), replica.text())
        self.assertEqual((c("DBSIZE"), c("HGET", "h7", "a")), (1001, b"x" * 1000))
        self.assertEqual({name for name in set(os.listdir("/dev/shm")) - before if name.startswith("stele-redis")}, set())

    def test_a_replica_has_a_pool_of_its_own(self):
        server = self.server("size", "16M", options=("--repl-diskless-sync-delay", "0"))
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
