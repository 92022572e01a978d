"""What stores have beyond items: names, walks in both directions and by prefix, items that expire, changes of one item, statistics."""

import datetime
import gc
import random
import struct
import threading
import time

import stele
from beds import PoolCase


class Stores(PoolCase):
    def test_walks_go_both_ways_and_by_prefix(self):
        rng, kv = random.Random(7), self.open_kv()
        keys = sorted({bytes(rng.choice(b"ab\xff") for _ in range(rng.randrange(1, 9))) for _ in range(900)})
        kv.put_many((key, key * 2) for key in keys)
        self.assertEqual(list(kv.keys(reverse=True)), keys[::-1])
        self.assertEqual(list(reversed(kv)), keys[::-1])
        for _ in range(60):
            start, stop, prefix = (rng.choice(keys)[: rng.randrange(4)] for _ in range(3))
            expected = [k for k in keys if start <= k and (not stop or k < stop) and k.startswith(prefix)]
            self.assertEqual(list(kv.keys(start, stop, prefix=prefix)), expected, (start, stop, prefix))
            self.assertEqual(list(kv.items(start, stop, prefix=prefix, reverse=True)), [(k, k * 2) for k in reversed(expected)])
        self.assertEqual(list(kv.values(prefix="\x00")), [])
        large = b"x" * 100_000
        kv.put_many((f"large/{n:02}", large) for n in range(12))  # pages end by their bytes, too
        self.assertEqual([k[-2:] for k in kv.keys(prefix="large/", reverse=True)], [b"%02d" % n for n in range(11, -1, -1)])

    def test_put_many_is_all_or_nothing(self):
        kv = self.open_kv()
        kv.put_many([("a", "1"), ["b", b"2"], ("a", "3")])
        self.assertEqual(dict(kv.items()), {b"a": b"3", b"b": b"2"})
        self.assertRaises(stele.errors.InvalidArgumentError, kv.put_many, [("c", "1"), ("", "2")])
        self.assertRaises(TypeError, kv.put_many, [("c", 1)])
        self.assertRaises(ValueError, kv.put_many, [("c", "1", "2")])
        kv.put_many([])
        with kv.transaction():
            kv.put_many({"d": "4"}.items())
        self.assertEqual(dict(kv.items()), {b"a": b"3", b"b": b"2", b"d": b"4"})

    def test_stores_have_names(self):
        kv = self.open_kv()
        users, orders = kv.open_store("users"), kv.open_store(b"orders")
        with self.assertRaises(ZeroDivisionError):
            with users.transaction():
                users["1"], orders["1"] = "ann", "first"
                kv["last"] = "1"
                raise ZeroDivisionError
        self.assertEqual((len(users), len(orders), len(kv)), (0, 0, 0))
        with kv.transaction():
            users["1"], orders["1"] = "ann", "first"
            self.assertRaises(stele.errors.NestedError, kv.open_store, "new")
            self.assertRaises(stele.errors.NestedError, kv.drop_store, "orders")
        self.assertEqual((users["1"], orders["1"]), (b"ann", b"first"))
        self.assertEqual((kv.name, users.name, kv.stores()), (b"", b"users", [b"orders", b"users"]))
        again = kv.open_store("users", create=False)
        again["2"] = "ben"
        self.assertEqual(list(users), [b"1", b"2"])
        self.assertRaises(stele.errors.NotFoundError, kv.open_store, "none", create=False)
        self.assertRaises(stele.errors.InvalidArgumentError, kv.open_store, "")
        self.assertRaises(TypeError, kv.open_store, 5)
        kv.drop_store("users")
        for use in (lambda: users["1"], lambda: len(again), lambda: users.update(a="1"), lambda: list(users)):
            with self.assertRaisesRegex(stele.errors.NotFoundError, "'users' has been dropped"):
                use()
        self.assertRaises(stele.errors.NotFoundError, kv.drop_store, "users")
        self.assertEqual(len(kv.open_store("users")), 0)
        self.assertRaises(stele.errors.NotFoundError, len, users)
        kv.check()
        orders.close()
        self.assertTrue(kv.closed)
        self.assertRaisesRegex(stele.Error, "closed", len, kv)
        with self.open_kv() as kv:
            orders = kv.open_store("orders")
            del kv
            gc.collect()
            self.assertEqual(orders["1"], b"first")  # it keeps the pool
        with stele.KV(self.path("kv"), read_only=True) as reader:
            self.assertEqual(reader.open_store("orders")["1"], b"first")
            self.assertRaises(stele.errors.ReadOnlyError, reader.open_store, "new")
            self.assertRaises(stele.errors.ReadOnlyError, reader.drop_store, "orders")

    def test_stores_come_and_go_beside_threads(self):
        kv, failures, stop = self.open_kv(), [], threading.Event()

        def use():
            while not stop.is_set():
                try:
                    store = kv.open_store("t")
                    store["a"] = "1"
                    self.assertIn(store.get("a"), (b"1", None))
                except (stele.errors.NotFoundError, stele.errors.InUseError):
                    pass  # dropped
                except BaseException as e:
                    failures.append(e)
                    return

        threads = [threading.Thread(target=use) for _ in range(3)]
        for t in threads:
            t.start()
        for _ in range(100):
            try:
                kv.drop_store("t")
            except (stele.errors.NotFoundError, stele.errors.InUseError):
                pass
        stop.set()
        for t in threads:
            t.join(60)
        self.assertEqual(failures, [])
        kv.check()

    def test_items_expire(self):
        kv, hour = self.open_kv(), datetime.timedelta(hours=1)
        now = time.time()
        kv.put("a", "1", ttl=3600)
        self.assertTrue(now + 3599 < kv.expiry("a") < now + 3700)
        kv.put("b", "1", ttl=hour)
        kv.put("c", "1", until=now + 3600)
        self.assertEqual(kv.expiry("c"), -int(-now * 1000 // 1) / 1000 + 3600)
        kv.put("d", "1", until=datetime.datetime.now(datetime.timezone.utc) + hour)
        kv.put("e", "1", until=1e30)
        self.assertEqual([k for k in kv if not now + 3599 < kv.expiry(k)], [])
        kv.modify("a", lambda value: value + b"2")
        self.assertTrue(kv.put_if("a", "12", "3"))
        self.assertEqual((kv["a"], kv.expiry("a") > now), (b"3", True))
        kv["a"] = "4"
        self.assertIsNone(kv.expiry("a"))
        self.assertIsNone(kv.expiry("none"))
        kv.put("a", "5", until=now - 1)
        self.assertNotIn("a", kv)
        self.assertRaises(stele.errors.InvalidArgumentError, kv.put, "a", "1", ttl=0)
        self.assertRaises(TypeError, kv.put, "a", "1", ttl=1, until=2)
        self.assertRaises(ValueError, kv.put, "a", "1", ttl=float("nan"))
        for n in range(2500):
            kv.put(f"short/{n}", "1", ttl=0.03)
        time.sleep(0.05)
        self.assertEqual(list(kv.keys(prefix="short")), [])
        before = kv.statistics()["expired_items"]
        self.assertGreater(before, 100)
        self.assertEqual(kv.remove_expired(50), 50)
        self.assertEqual(kv.remove_expired(), before - 50)
        self.assertEqual((kv.remove_expired(), kv.statistics()["expired_items"], len(kv)), (0, 0, 4))

    def test_a_full_store_finds_the_room_of_what_has_expired(self):
        kv = self.open_kv(size="4M")
        for n in range(100):
            kv.put(f"{n % 50}", b"x" * 100_000, ttl=0.001)
            time.sleep(0.001)
        full = 0
        for n in range(100):  # a `with` is told that it was full, and finds room when it is run again
            for _ in range(3):
                try:
                    with kv.transaction():
                        kv.put(f"{n % 50}", b"x" * 100_000, ttl=0.001)
                    break
                except stele.errors.FullError:
                    full += 1
                    time.sleep(0.001)
            else:
                self.fail("the store stays full")
            time.sleep(0.001)
        self.assertLess(full, 50)

    def test_one_item_changes_by_what_it_is(self):
        kv = self.open_kv()
        self.assertTrue(kv.put_if("p", None, "1"))
        self.assertFalse(kv.put_if("p", None, "2"))
        self.assertFalse(kv.put_if("p", b"", "2"))
        self.assertTrue(kv.put_if("p", b"1", ""))
        self.assertEqual(kv["p"], b"")
        self.assertEqual([kv.add("n"), kv.add("n", 41), kv.add(b"n", -2)], [1, 42, 40])
        self.assertEqual(struct.unpack("<q", kv["n"]), (40,))
        self.assertRaises(stele.errors.InvalidArgumentError, kv.add, "n", 2**63 - 1)
        self.assertRaises(stele.errors.InvalidArgumentError, kv.add, "p")
        self.assertRaises(TypeError, kv.add, "n", "1")
        kv.modify("m", lambda value: "x" if value is None else None)
        self.assertEqual(kv["m"], b"x")
        kv.modify("m", lambda value: None)
        kv.modify("m", lambda value: value)
        self.assertNotIn("m", kv)
        with self.assertRaises(ZeroDivisionError):
            kv.modify("p", lambda value: 1 / 0)
        self.assertRaises(TypeError, kv.modify, "p", lambda value: 5)
        with kv.transaction():
            kv.add("n", 2)
            kv.modify("n", lambda value: value + b"!")
        self.assertEqual(kv["n"], struct.pack("<q", 42) + b"!")

        def count():
            for _ in range(200):
                kv.add("c")

        threads = [threading.Thread(target=count) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        self.assertEqual(kv.add("c", 0), 600)

    def test_a_store_tells_what_it_consists_of(self):
        kv = self.open_kv()
        kv.update(ab="cde", f="")
        kv.put("g", "", ttl=100)
        s = kv.statistics()
        self.assertEqual((s["items"], s["key_bytes"], s["value_bytes"], s["expiring_items"], s["clock_behind"]), (3, 4, 3, 1, 0))
        self.assertGreater(s["item_space"], 6)
