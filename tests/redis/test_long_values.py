"""Strings of a mebibyte and more, which are made in parts: beside a plain server, under kills, and in a pool that is full."""

import os
import random
import threading
import time
import unittest

from beds import RedisCase, ServerError, ServerGone

MIB = 1 << 20
PART = MIB // 4  # that a unit makes
SIZES = [at + by for at in (PART, MIB - PART, MIB, MIB + PART, 2 * MIB, 3 * MIB) for by in (-1, 0, 1)]


class LongValues(RedisCase):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("STELE_SEED", "1"))
        self.random = random.Random(self.seed)

    def command(self):
        draw, key = self.random, self.random.choice(("a", "b", "c"))
        some = draw.randbytes(draw.choice((1, 30, PART + 7)))
        return draw.choice((
            ("SETRANGE", key, draw.choice(SIZES), some), ("SETRANGE", key, draw.choice(SIZES), ""), ("APPEND", key, some),
            ("SETBIT", key, 8 * draw.choice(SIZES) - 1, draw.randrange(2)), ("GETBIT", key, 8 * draw.choice(SIZES)),
            ("GETRANGE", key, draw.choice((-40, 0, PART - 9, MIB - 9)), draw.choice((-1, 5, PART + 9, MIB + 9))),
            ("SET", key, draw.randbytes(draw.choice(SIZES))), ("SET", key, "short"), ("SETEX", key, 1000, draw.randbytes(draw.choice(SIZES))),
            ("GETSET", key, draw.randbytes(MIB + 1)), ("STRLEN", key), ("DEL", key), ("PERSIST", key), ("EXPIRE", key, 1000),
            ("MSET", "a", draw.randbytes(MIB), "b", draw.randbytes(2 * MIB)), ("RENAME", key, draw.choice(("a", "b", "c"))),
            ("COPY", key, "c"), ("SETRANGE", key, 1 << 30, "x"), ("LPUSH", "list", some), ("SETRANGE", "list", MIB, "x")))

    def assert_same(self, both):
        kept = [[(r("GET", key), r("TTL", key) > 0) for key in ("a", "b", "c")] for r in both]
        self.assertEqual(*kept, f"STELE_SEED={self.seed}")

    def test_beside_a_plain_server(self):
        for media in ("process", "file"):
            ours = self.server("size", "16M", "media", media, name=f"pool {media}", options=("--dbfilename", f"{media}.rdb"))
            plain = self.server(pool=False, name=f"plain {media}").client()
            r = ours.client()
            for number in range(150):
                words = self.command()
                kind = self.random.randrange(8)
                if kind == 0:
                    lines = [("MULTI",), words, self.command(), ("EXEC",)]
                elif kind == 1:
                    lines = [("EVAL", "return redis.pcall(unpack(ARGV))", 0, *words), self.command()]
                else:
                    lines = [words]
                told = [[str(a) if isinstance(a, ServerError) else a for a in one.answers(lines)] for one in (r, plain)]
                self.assertEqual(*told, f"STELE_SEED={self.seed}, {[w[:2] for w in lines]}")
                if number % 30 == 10:
                    r("BGSAVE")
                if number % 50 == 49:
                    self.assert_same((r, plain))
                    ours.kill()
                    ours.start()
                    r = ours.client()
                    self.assert_same((r, plain))

    def used(self, r):
        """Bytes of the pool, once what nobody has is gone."""
        now = None
        for _ in range(200):
            before, now = now, r("INFO", "stele").split(b"stele_used_bytes:")[1].split(b"\r")[0]
            if now == before:
                return int(now)
            time.sleep(0.3)
        return self.fail("the pool does not come to rest")

    def test_a_kill_leaves_the_old_or_the_new_one_and_nothing_else(self):
        for media in ("process", "file"):
            server = self.server("size", "256M", "media", media, name=f"pool {media}")
            r = server.client()
            r("SET", "a", "old")
            empty = self.used(r)
            last, found = 40 * MIB, {"old": 0, "new": 0}
            for _ in range(8):
                length = r("STRLEN", "a")
                told = []

                def grow(client=r, to=told):
                    try:
                        to.append(client("SETRANGE", "a", last, "x"))
                    except (ServerGone, OSError):
                        pass

                thread = threading.Thread(target=grow)
                thread.start()
                time.sleep(self.random.random() * 0.08)
                server.kill()
                thread.join()
                server.start()
                r = server.client()
                there = r("STRLEN", "a")
                self.assertIn(there, [last + 1] if told else [length, last + 1], f"STELE_SEED={self.seed}")
                self.assertEqual(r("GETRANGE", "a", 0, 2), b"old")
                if there != length:
                    self.assertEqual(r("GETRANGE", "a", last - 1, -1), b"\0x")
                    self.assertEqual(r("BITCOUNT", "a", 3, -2), 0)
                found["new" if there != length else "old"] += 1
                r("SET", "a", "old")
                self.assertLess(self.used(r), empty + MIB, "parts of a value that no key has")
            print(f"  {media}: {found['old']} kills before, {found['new']} after; STELE_SEED={self.seed}")

    def test_a_pool_that_cannot_grow_refuses_them_whole(self):
        r = self.server("size", "8M", "max_size", "8M").client()
        r("SET", "a", "x" * MIB)
        used = self.used(r)
        for words in (("SETRANGE", "a", 16 * MIB, "x"), ("SETBIT", "b", 8 * 16 * MIB, 1), ("APPEND", "a", "y" * 9 * MIB), ("SET", "a", "y" * 9 * MIB)):
            with self.assertRaisesRegex(ServerError, "OOM"):
                r(*words)
            self.assertEqual((r("STRLEN", "a"), r("EXISTS", "b")), (MIB, 0))
        self.assertEqual(self.used(r), used)
        self.assertEqual(r("APPEND", "a", "z"), MIB + 1)

    def test_what_is_written_in_place_needs_no_room_for_the_rest(self):
        r = self.server("size", "8M", "max_size", "8M").client()
        r("SET", "a", "x" * (5 * MIB // 2))
        r("SET", "b", "x" * MIB)
        for words, told in ((("SETBIT", "a", 3, 1), 1), (("SETRANGE", "a", MIB, "y"), r("STRLEN", "a"))):
            self.assertEqual(r(*words), told)
        self.assertEqual(r("GETRANGE", "a", MIB, MIB + 1), b"yx")


if __name__ == "__main__":
    unittest.main()
