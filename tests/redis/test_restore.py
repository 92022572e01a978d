"""RESTORE of payloads that are damaged, or made up, under a right checksum: the server answers an error, or has a value that it
can dump again. STELE_SEED and STELE_REDIS_PAYLOADS choose other payloads."""

import os
import random
import signal
import time
import unittest

from beds import RedisCase, ServerError

OTHER = os.environ.get("STELE_OTHER_MODULE", "")
SEED = int(os.environ.get("STELE_SEED", "1"))
PAYLOADS = int(os.environ.get("STELE_REDIS_PAYLOADS", "4000"))
FOOTER = 10  # the version's two bytes, the checksum's eight

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
    TABLE.append(byte)


def with_checksum(content):
    """CRC-64 by Jones, as DUMP has it."""
    value = 0
    for byte in content:
        value = TABLE[(value ^ byte) & 255] ^ value >> 8
    return content + value.to_bytes(8, "little")


class Payloads(RedisCase):
    VALUES = {
        "text": ("SET", "text", "a text of some bytes"),
        "long": ("SET", "long", "x" * 500),  # compressed
        "hash": ("HSET", "hash", *[f"{part}{i}" for i in range(5) for part in "fv"]),
        "list": ("RPUSH", "list", *range(8), "y" * 90),
        "set": ("SADD", "set", *range(8)),
        "ranking": ("ZADD", "ranking", "-inf", "a", 1.5, "b", 1e300, "c", 3, "d", "inf", "e"),
    }
    READS = {"string": ("STRLEN",), "hash": ("HGETALL",), "list": ("LRANGE", 0, -1), "set": ("SMEMBERS",),
             "zset": ("ZRANGE", 0, -1, "WITHSCORES")}

    def setUp(self):
        super().setUp()
        self.running = self.server("size", "8M", options=("--enable-debug-command", "local"))
        self.r = self.running.client()

    def contents(self):
        """Of the payloads of all values, without their footers."""
        for words in self.VALUES.values():
            self.r(*words)
        return {name: self.r("DUMP", name)[:-FOOTER] for name in self.VALUES}

    def payload(self, content):
        version = self.r("DUMP", "text")[-FOOTER:-FOOTER + 2]
        return with_checksum(content + version)

    def mutated(self, random_, contents):
        content = bytearray(random_.choice(contents))
        for _ in range(random_.choice((1, 1, 1, 2, 4))):
            at, other = random_.randrange(len(content)), random_.choice(contents)
            kind = random_.randrange(8)
            if kind == 0:
                del content[at + 1:]
            elif kind == 1:
                content[at] = random_.choice((0, 1, 2, 5, 63, 64, 127, 128, 129, 130, 192, 195, 255, random_.randrange(256)))
            elif kind == 2:
                content[at] ^= 1 << random_.randrange(8)
            elif kind == 3:
                del content[at:at + random_.randrange(1, 9)]
            elif kind == 4:
                content[at:at] = content[at:at + random_.randrange(1, 30)]
            elif kind == 5:  # another type's name
                content[:10] = other[:10]
            elif kind == 6:  # a length beyond everything
                content[at:at + 1] = b"\x80" + random_.choice((b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\0\1\0\0"))
            else:
                content[at:at + 1] = b"\x81" + random_.choice((b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0\0\1" + b"\0" * 5))
            if not content:
                content = bytearray(other)
        return bytes(content)

    def restored(self, content):
        """Whether the payload became a value; that is whole then."""
        r, payload = self.r, self.payload(content)
        try:
            r("RESTORE", "made", 0, payload, "REPLACE")
        except ServerError as refused:
            self.assertRegex(str(refused), "Bad data format", payload)
            return False
        again = r("DUMP", "made")
        command, *bounds = self.READS[r("TYPE", "made")]
        r(command, "made", *bounds)
        r("RESTORE", "copy", 0, again, "REPLACE")
        self.assertEqual(r("DEBUG", "DIGEST-VALUE", "copy"), r("DEBUG", "DIGEST-VALUE", "made"), payload)
        return True

    def assert_nothing_more_is_in_the_pool(self):
        names = sorted(self.r("KEYS", "*"))
        self.assertIn(b"stele_durable_keys:%d\r\n" % len(names), self.r("INFO", "stele"))
        self.running.kill(signal.SIGKILL)
        self.r = self.running.start().client()
        self.assertEqual(sorted(self.r("KEYS", "*")), names)

    def test_cut_anywhere(self):
        contents = self.contents()
        for name, content in contents.items():
            self.assertTrue(self.restored(content), name)
            for size in range(1, len(content)):
                if size == len(content) - 2:  # the footer's first two bytes make it whole again
                    self.restored(content[:size])
                else:
                    self.assertFalse(self.restored(content[:size]), (name, size))
        self.assert_nothing_more_is_in_the_pool()

    def test_changed_anyhow(self):
        contents = list(self.contents().values())
        print(f"STELE_SEED={SEED}")
        random_ = random.Random(SEED)
        accepted = sum(self.restored(self.mutated(random_, contents)) for _ in range(PAYLOADS))
        self.assertGreater(accepted, PAYLOADS // 50)
        self.assertLess(accepted, PAYLOADS)
        self.assert_nothing_more_is_in_the_pool()

    def test_elements_that_no_value_has(self):
        def text(of):
            return b"\x05" + bytes([len(of)]) + of

        def unsigned(of):
            return b"\x02" + bytes([of])

        contents = self.contents()
        heads = {name: content[:10] for name, content in contents.items()}  # the byte of a module's value, a long length, the id
        end = b"\0"
        made_up = {
            "no elements": [heads[name] + unsigned(0) + end for name in ("hash", "list", "set", "ranking")],
            "twice the same": [heads["hash"] + unsigned(2) + 2 * (text(b"f") + text(b"v")) + end,
                               heads["set"] + unsigned(2) + 2 * text(b"m") + end,
                               heads["ranking"] + unsigned(2) + 2 * (text(b"m") + text(b"1")) + end],
            "no score": [heads["ranking"] + unsigned(1) + text(b"m") + text(score) + end
                         for score in (b"", b"x", b"nan", b"1 ", b" 1", b"1e999", b"1\0")],
            "more behind": [contents["text"][:-1] + text(b"more") + end],
            "a later form": [contents["text"][:9] + bytes([contents["text"][9] | 1]) + contents["text"][10:]],
        }
        for what, several in made_up.items():
            for content in several:
                self.assertFalse(self.restored(content), (what, content))
        self.assertTrue(self.restored(heads["ranking"] + unsigned(1) + text(b"m") + text(b"-0") + end))
        self.assert_nothing_more_is_in_the_pool()

    def test_in_a_transaction_nothing_of_it_stays(self):
        r = self.r
        content = self.contents()["hash"]
        r("MULTI")
        r("SET", "before", 1)
        r("RESTORE", "made", 0, self.payload_of_queue(content[:-1]))
        r("SET", "after", 1)
        with self.assertRaisesRegex(ServerError, "Bad data format"):
            r("EXEC")
        self.assertEqual(r("MGET", "before", "after"), [b"1", b"1"])
        self.assert_nothing_more_is_in_the_pool()

    def payload_of_queue(self, content):
        """As payload(), in a MULTI."""
        version = self.running.client()("DUMP", "text")[-FOOTER:-FOOTER + 2]
        return with_checksum(content + version)

    def test_of_a_time_that_has_passed_is_not_there_after_a_restart(self):
        self.contents()
        for name in self.VALUES:
            payload = self.r("DUMP", name)
            self.r("RESTORE", "made", int(time.time() * 1000) - 1000, payload, "ABSTTL")
            self.assertEqual(self.r("EXISTS", "made"), 0)
        self.assert_nothing_more_is_in_the_pool()

    def test_in_a_full_pool_are_refused(self):
        plain = self.server(pool=False, name="plain").client()
        for r in (self.r, plain):
            r("SET", "value", os.urandom(1 << 20))
            r("RPUSH", "list", *[os.urandom(1000) for _ in range(1000)])
        payloads = [r("DUMP", name) for r in (self.r, plain) for name in ("value", "list")]
        plain("SET", "large", os.urandom(4 << 20))
        large = plain("DUMP", "large")
        full = self.server("size", "8M", "max_size", "8M", name="full").client()
        for payload in payloads:
            full("FLUSHALL")
            with self.assertRaisesRegex(ServerError, "OOM"):
                for i in range(20):
                    full("RESTORE", i, 0, payload)
            kept = full("DUMP", 0)
            with self.assertRaisesRegex(ServerError, "OOM"):
                full("RESTORE", 0, 0, large, "REPLACE")
            self.assertEqual(full("DUMP", 0), kept)

    def test_that_need_more_room_than_they_show_wait_once(self):
        """Where answers wait for a sync, one that ran again after keys had gone let its client wait twice, which ends the server."""
        plain = self.server(pool=False, name="plain").client()
        plain("SET", "inflated", "x" * 150_000)
        plain("RPUSH", "a list", *["y" * 1000] * 100)
        payloads = [plain("DUMP", name) for name in ("inflated", "a list")]
        full = self.server("size", "8M", "max_size", "8M", "media", "file", name="full").client()
        for payload in payloads:
            self.assertLess(len(payload), 1 << 16)
            full("CONFIG", "SET", "maxmemory-policy", "noeviction")
            full("FLUSHALL")
            with self.assertRaisesRegex(ServerError, "OOM"):
                for i in range(1000):
                    full("SET", i, os.urandom(60_000))
            full("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            for i in range(5):
                self.assertEqual(full("RESTORE", f"made {i}", 0, payload), "OK")
            self.assertIn(full("EXISTS", "made 4"), (0, 1))
        self.assertEqual(full("PING"), "PONG")

    @unittest.skipUnless(os.path.exists(OTHER), "STELE_OTHER_MODULE names no module")
    def test_of_no_key_are_refused(self):
        """Another module may load them so: they would be items of a name and a database that there are not."""
        server = self.server("size", "8M", name="beside another", options=("--loadmodule", OTHER))
        r = server.client()
        for words in self.VALUES.values():
            r(*words)
        for name in self.VALUES:
            self.assertEqual(r("OTHER.LOADS", name), 0)
        self.assertIn(b"stele_durable_keys:%d\r\n" % len(self.VALUES), r("INFO", "stele"))
