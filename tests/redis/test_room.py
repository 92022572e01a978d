"""Commands that store more than the pool has at the moment: it grows, or refuses them whole; the server goes on."""

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
