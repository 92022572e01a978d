"""Commands that store more than the pool has at the moment: it grows, or refuses them whole; the server goes on."""

import time

from beds import RedisCase, ServerError

MIB = 1 << 20
SIZE = 8 * MIB  # of the pool when it is made


class Room(RedisCase):
    def test_values_of_one_command_are_longer_than_the_pool(self):
        r = self.server("size", f"{SIZE}").client()
        values = {f"key {i}": f"{i}" * (SIZE // 4) for i in range(9)}
        self.assertEqual(r("MSET", *[word for pair in values.items() for word in pair]), "OK")
        for key, value in values.items():
            self.assertEqual(r("GET", key), value.encode())

    def test_copies_of_a_command_are_longer_than_the_pool(self):
        for end in (SIZE // 2, SIZE, 4 * SIZE):
            r = self.server("size", f"{SIZE}", name=f"pool {end}").client()
            self.assertEqual(r("BITFIELD", "bits", "SET", "u8", 8 * (end - 1), 255), [0])
            self.assertEqual(r("BITOP", "NOT", "other", "bits"), end)
            self.assertEqual(r("BITCOUNT", "bits"), 8)

    def test_a_pool_that_cannot_grow_refuses_them_whole(self):
        r = self.server("size", f"{SIZE}", "max_size", f"{SIZE}").client()
        for words in (("MSET", "a", 1, "b", "x" * SIZE, "c", 2), ("BITFIELD", "a", "SET", "u8", 8 * SIZE, 1)):
            with self.assertRaisesRegex(ServerError, "OOM"):
                r(*words)
            self.assertEqual(r("EXISTS", "a", "b", "c"), 0)
        self.assertEqual(r("SET", "a", "x"), "OK")

    def test_bit_fields_that_are_refused_need_none(self):
        r = self.server("size", f"{SIZE}").client()
        for kind, place in (("u3", "#4294967295"), ("u8", 1 << 32), ("u64", (1 << 32) - 64), ("i65", 1 << 31), ("u8", -1), ("x8", 1 << 31)):
            with self.assertRaisesRegex(ServerError, "ERR (bit offset|Invalid bitfield type)"):
                r("BITFIELD", "bits", "SET", kind, place, 1)
        self.assertIn(f"stele_size_bytes:{SIZE}\r".encode(), r("INFO", "stele"))

    def used(self, r):
        return int(r("INFO", "stele").split(b"stele_used_bytes:")[1].split(b"\r")[0])

    def test_what_a_flush_leaves_is_freed(self):
        """Some of it at each turn of the server; what stays is the table, which has a word for each key that there was at once."""
        r = self.server("size", "32M").client()
        makes = (("SET",), ("HSET", "field"), ("RPUSH",), ("SADD",), ("ZADD", 1))
        flushes = ([("FLUSHALL",)], [("FLUSHDB",)], [("FLUSHALL", "ASYNC")], [("SWAPDB", 0, 1), ("FLUSHALL",)], [("MULTI",), ("FLUSHDB",), ("EXEC",)])
        r("SET", "first", "x")
        r("DEL", "first")
        empty, most = self.used(r), 0
        for count, flush in zip((40, 300, 4000, 4200, 9000), flushes):
            told = r.answers([(name, f"key {i}", *more, "x" * 500) for i in range(count) for name, *more in [makes[i % len(makes)]]])
            self.assertNotIn(True, [isinstance(one, ServerError) for one in told])
            self.assertGreater(self.used(r), empty + 500 * count)
            r.answers(flush)
            most = max(most, count)
            bound = empty + 16 * most + 4 * 8192  # whole segments of the table
            until = time.monotonic() + 120
            while self.used(r) > bound and time.monotonic() < until:
                r("PING")
            self.assertLessEqual(self.used(r), bound, (count, flush))
            self.assertEqual(r("DBSIZE"), 0)
