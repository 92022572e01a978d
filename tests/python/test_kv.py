"""stele.KV against a sorted model by random operations, its transactions, ranges and refusals."""

import random
import struct
import threading
import time

import stele
from beds import PoolCase


class KV(PoolCase):
    def test_it_behaves_as_a_sorted_dict(self):
        rng, model, kv = random.Random(3), {}, self.open_kv()
        for step in range(3000):
            key, value = b"%d" % rng.randrange(150) * rng.choice([1, 1, 9]), b"v" * rng.randrange(60)
            choice = rng.randrange(5)
            if choice < 2:
                kv[key] = model[key] = value
            elif choice == 2 and key in model:
                del kv[key], model[key]
            elif choice == 3:
                self.assertEqual(kv.pop(key, None), model.pop(key, None))
            self.assertEqual(kv.get(key), model.get(key))
            self.assertEqual(key in kv, key in model)
            if step % 300 == 0:
                self.assertEqual(list(kv.items()), sorted(model.items()))
                low, high = sorted([key, b"7"])
                self.assertEqual(list(kv.keys(low, high)), sorted(k for k in model if low <= k < high))
        self.assertEqual(len(kv), len(model))
        kv.check()
        kv.close()
        self.assertEqual(list(self.open_kv().items()), sorted(model.items()))

    def test_many_keys_are_got_at_once(self):
        kv = self.open_kv()
        kv.update({str(i): b"v" * i for i in range(100)})
        self.assertEqual(kv.get_many(["3", b"none", "0", "3"]), [b"vvv", None, b"", b"vvv"])
        self.assertEqual(kv.get_many(str(i) for i in range(100)), [b"v" * i for i in range(100)])
        self.assertEqual(kv.get_many([]), [])
        with kv.transaction():
            kv["3"] = "new"
            self.assertEqual(kv.get_many(["3"]), [b"new"])
        for wrong in (5, [5], [None]):
            self.assertRaises(TypeError, kv.get_many, wrong)

    def test_long_walks_hold_nothing(self):
        kv = self.open_kv()
        kv.update({f"{i:04}": str(i) for i in range(1000)})
        walk = kv.items()
        seen = [next(walk)[0] for _ in range(300)]
        for key in list(kv.keys()):
            if key[-1:] == b"7":
                del kv[key]
        seen += [key for key, _ in walk]
        self.assertEqual(seen, sorted(set(seen)))
        self.assertTrue({b"%04d" % i for i in range(1000) if i % 10 != 7} <= set(seen))
        half = iter(kv)
        next(half)
        kv.close()
        self.assertRaises(stele.Error, list, half)

    def test_transactions_are_whole(self):
        kv = self.open_kv()
        kv["a"] = "1"
        with self.assertRaises(ZeroDivisionError):
            with kv.transaction():
                kv["a"] = "2"
                kv["b"] = "2"
                self.assertEqual(dict(kv.items()), {b"a": b"2", b"b": b"2"})
                raise ZeroDivisionError
        self.assertEqual(dict(kv.items()), {b"a": b"1"})
        pool = self.open()
        with kv.transaction():
            self.assertRaises(stele.errors.NestedError, pool.root.__setitem__, "a", 1)
            kv["c"] = "3"
        self.assertEqual(kv["c"], b"3")

    def test_threads_lose_nothing(self):
        kv = self.open_kv()
        kv["n"] = "0"

        def add():
            for _ in range(300):
                with kv.transaction():
                    kv["n"] = str(int(kv["n"]) + 1)

        threads = [threading.Thread(target=add) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        self.assertEqual(kv["n"], b"900")

    def test_refusals(self):
        kv = self.open_kv(size="1M")
        self.assertRaises(KeyError, lambda: kv["none"])
        self.assertRaises(KeyError, kv.__delitem__, "none")
        self.assertRaises(KeyError, kv.pop, "none")
        self.assertEqual(kv.pop("none", 5), 5)
        for wrong in (5, None, bytearray(b"x"), ["x"]):
            self.assertRaises(TypeError, kv.__setitem__, "a", wrong)
            self.assertRaises(TypeError, kv.get, wrong)
        self.assertRaises(stele.errors.InvalidArgumentError, kv.__setitem__, b"", b"x")
        self.assertRaises(stele.errors.InvalidArgumentError, kv.__setitem__, b"x" * 70_000, b"x")
        with self.assertRaises(stele.errors.FullError):
            for i in range(10_000):
                kv[str(i)] = b"x" * 1000
        del kv["0"]
        kv["0"] = b"x" * 1000  # there is room again for an item of this size
        kv.close()
        self.assertRaises(stele.errors.LayoutError, stele.open, self.path("kv"))
        self.assertRaises(stele.errors.NotFoundError, stele.KV, self.path("missing"))
        pool = self.open()
        self.assertRaises(stele.errors.InUseError, stele.KV, self.path())
        pool.close()
        self.assertRaises(stele.errors.LayoutError, stele.KV, self.path())

    def test_the_length_of_a_damaged_store_is_told_or_refused(self):
        """The number of its buckets is zeroed: one item has expired, and none is there. The length would be -1."""
        kv = self.open_kv(size="1M")
        kv["stays"] = b"v"
        kv.put("expires", b"v", ttl=0.001)
        kv.close()
        time.sleep(0.01)
        with open(self.path("kv"), "rb") as file:
            content, refusals = file.read(), set()
        for at in range(0, len(content), 8):
            if content[at:at + 8] != struct.pack("<Q", 8):
                continue
            with open(self.path("kv"), "wb") as file:
                file.write(content[:at] + bytes(8) + content[at + 8:])
            try:
                with stele.KV(self.path("kv"), read_only=True, verify="never") as damaged:
                    self.assertLess(len(damaged), 3)
            except stele.Error as e:
                refusals.add(str(e).split(": ")[-1].split(";")[0])
        self.assertIn("the store says that it has more items than the pool has bytes", refusals)
