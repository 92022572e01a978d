"""A server that gets a pool of content that no server writes, changed anywhere: it refuses the pool, or serves all of it. STELE_SEED
and STELE_REDIS_POOLS choose other pools. tests/fuzz/redis_target.cc tries many more without a server."""

import os
import random
import signal
import struct

from beds import RedisCase, ServerError, ServerGone

SEED = int(os.environ.get("STELE_SEED", "1"))
POOLS = int(os.environ.get("STELE_REDIS_POOLS", "40"))


class HostileContent(RedisCase):
    def fill(self, r):
        for i in range(3):
            r("SET", f"text {i}", "t" * i * 40)
            r("HSET", f"hash {i}", *[f"{part} {j} {'x' * (j % 40)}" for j in range(7 ** i) for part in "fv"])
            r("RPUSH", f"list {i}", *[f"{j} {'x' * (j % 40)}" for j in range(8 ** i)])
            r("SADD", f"set {i}", *[f"{j} {'x' * (j % 40)}" for j in range(7 ** i)])
            r("ZADD", f"ranking {i}", *[word for j in range(8 ** i) for word in (j % 13, f"{j} {'x' * (j % 40)}")])

    USES = {
        "string": (("GETRANGE", 0, -1), ("APPEND", "more"), ("SETRANGE", 3, "there"), ("STRLEN",)),
        "hash": (("HGETALL",), ("HSET", *range(40)), ("HDEL", *range(10)), ("HSCAN", 0), ("HRANDFIELD", 3)),
        "list": (("LRANGE", 0, -1), ("LPUSH", *range(40)), ("LINSERT", "BEFORE", 5, "x"), ("LREM", 0, 7), ("RPOP", 30), ("LTRIM", 1, -2)),
        "set": (("SMEMBERS",), ("SADD", *range(40)), ("SREM", *range(10)), ("SPOP", 5), ("SSCAN", 0)),
        "zset": (("ZRANGE", 0, -1, "WITHSCORES"), ("ZADD", *range(40)), ("ZREMRANGEBYRANK", 1, 5), ("ZCOUNT", "-inf", 7), ("ZPOPMAX", 9)),
    }

    def use(self, server):
        r = server.client()
        for name in r("KEYS", "*"):
            kind = r("TYPE", name)
            for command, *words in self.USES[kind]:
                try:
                    r(command, name, *words)
                except ServerError:
                    pass
            try:
                r("RESTORE", b"of " + name, 0, r("DUMP", name))
                r("COPY", name, b"copy of " + name)
                r("DEL", name)
            except ServerError:
                pass
        r("FLUSHALL")
        self.assertEqual(r("PING"), "PONG")

    def changed(self, content, random_):
        """Some words that are not 0 have another value: of another word, near their own, or any."""
        pool = bytearray(content)
        first = min(content.rfind(name) for name in (b"text 2", b"ranking 2")) // 4096 * 4096  # behind the logs
        used = [at for at in range(first, len(pool) - 8, 8) if pool[at:at + 8] != bytes(8)]
        if random_.random() < 0.7:  # links, lengths and counts have a byte of 0 or a large one; texts have neither
            used = [at for at in used if {0, 255} & set(pool[at:at + 8])]
        for _ in range(random_.randrange(1, 5)):
            at, other = random_.choice(used), random_.choice(used)
            word, = struct.unpack_from("<Q", pool, at)
            value = random_.choice((struct.unpack_from("<Q", pool, other)[0], word + random_.randrange(-64, 64), word ^ 1 << random_.randrange(64),
                                    random_.getrandbits(64), word << 8, 0))
            struct.pack_into("<Q", pool, at, value % 2 ** 64)
        return bytes(pool)

    def test_a_server_refuses_it_or_serves_it(self):
        server = self.server("size", "1M", "max_size", "1M", "media", "adr")  # adr keeps no sums of its own accord
        self.fill(server.client())
        server.kill(signal.SIGTERM)
        with open(server.pool, "rb") as file:
            content = file.read()
        print(f"STELE_SEED={SEED}")
        random_ = random.Random(SEED)
        served = 0
        for number in range(POOLS):
            with open(server.pool, "wb") as file:
                file.write(self.changed(content, random_))
            open(server.log, "wb").close()
            server.start(expects=False)
            told = f"pool {number}, STELE_SEED={SEED}: {server.text()[-1500:]}"
            if server.process.poll() is None:
                try:
                    self.use(server)
                except (ServerGone, OSError):
                    server.process.wait(10)
                    self.fail(told + server.text()[-1500:])
                served += 1
            else:
                self.assertEqual(server.process.returncode, 1, told)  # as Redis ends that cannot load a module
                self.assertRegex(server.text(), "stele: .{20,}", told)
            server.kill()
        self.assertGreater(served, 0)
        self.assertLess(served, POOLS)
