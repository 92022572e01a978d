"""Functions of the caller that use what they were called from: what they do counts, or is refused with a sentence."""

import os
import threading

import stele
from beds import PoolCase


class Callbacks(PoolCase):
    def test_modify_sets_what_the_function_gives_whatever_it_does_before(self):
        kv = self.open_kv()

        def change_and_give(value, given):
            def change(before):
                if value is None:
                    kv.pop("k", None)
                else:
                    kv["k"] = value
                kv["beside"] = str(before)
                return given

            return change

        for there in (None, "old"):
            for value in (None, "of the function"):
                for given in (None, b"given"):
                    with self.subTest(there=there, value=value, given=given):
                        kv.pop("k", None)
                        if there is not None:
                            kv["k"] = there
                        kv.modify("k", change_and_give(value, given))
                        self.assertEqual(kv.get("k"), given)
                        self.assertEqual(kv["beside"], str(there and there.encode()).encode())

    def test_modify_keeps_the_time_that_the_function_set(self):
        kv = self.open_kv()
        kv.modify("k", lambda before: kv.put("k", "x", ttl=1000) or "y")
        self.assertEqual(kv["k"], b"y")
        self.assertIsNotNone(kv.expiry("k"))

    def test_modify_whose_function_ends_the_pool_raises_or_forks(self):
        kv = self.open_kv()
        kv["k"] = "old"
        with self.assertRaisesRegex(stele.errors.InUseError, "inside a transaction"):
            kv.modify("k", lambda before: kv.close())
        with self.assertRaises(ZeroDivisionError):
            kv.modify("k", lambda before: kv.put("k", "x") or 1 / 0)
        self.assertEqual(kv["k"], b"old")
        with self.assertRaises(stele.errors.NestedError):
            kv.modify("k", lambda before: kv.open_store("inside"))
        with self.assertRaises(TypeError):
            kv.modify("k", lambda before: 5)
        kv.modify("k", lambda before: kv.modify("k", lambda inner: inner + b"1") or kv["k"] + b"2")
        self.assertEqual(kv["k"], b"old12")
        pid, child = os.getpid(), None

        def fork(before):
            nonlocal child
            child = os.fork()
            return "forked"

        try:
            kv.modify("k", fork)
        except stele.errors.PoisonedError as e:
            os._exit(0 if os.getpid() != pid and "fork" in str(e) else 1)
        if os.getpid() != pid:
            os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(kv["k"], b"forked")

    def test_a_report_of_a_backup(self):
        for pool in (self.open(), self.open_kv()):
            refused, path = [], self.path("copy")

            def change():
                with pool.transaction():
                    (pool if isinstance(pool, stele.KV) else pool.root)["in the report"] = "1"

            def report(done, total):
                for call in (pool.close, pool.check, lambda: pool.grow("16M"), lambda: pool.backup(self.path("other"))):
                    try:
                        call()
                    except (stele.errors.NestedError, stele.errors.InUseError) as e:
                        refused.append(str(e))
                change()
                other = threading.Thread(target=change, daemon=True)  # which the report waits for
                other.start()
                other.join(60)
                self.assertFalse(other.is_alive(), "a change of another thread waits for the backup")
                return True

            pool.backup(path, report)
            self.assertGreaterEqual(len(refused), 4)
            self.assertTrue(all("report" in r and pool.path in r for r in refused), refused)
            self.assertFalse(os.path.exists(self.path("other")))
            pool.check()
            pool.close()
            stele.open(path).close() if isinstance(pool, stele.Pool) else stele.KV(path).close()
            os.unlink(path)

    def test_a_list_that_its_key_function_changes(self):
        root = self.open().root
        root["l"] = [3, 1, 2]
        with self.assertRaisesRegex(ValueError, "while it was sorted"):
            root["l"].sort(key=lambda v: root["l"].append(v) or v)
        self.assertEqual(root["l"], [3, 1, 2])
        root["l"].sort(key=lambda v: root.update(beside=v) or -v)
        self.assertEqual(root["l"], [3, 2, 1])

    def test_iterables_that_change_what_takes_them(self):
        root, kv = self.open().root, self.open_kv()
        root["l"] = [1]
        root["l"].extend(root["l"].append(i) or i for i in (2, 3))
        self.assertEqual(root["l"], [1, 2, 3, 2, 3])
        root.update((k, root.clear() or k) for k in ("a", "b"))
        self.assertEqual(root, {"a": "a", "b": "b"})
        kv.put_many((k, kv.put("x", k) or k) for k in ("a", "b"))
        self.assertEqual(dict(kv.items()), {b"a": b"a", b"b": b"b", b"x": b"b"})
        for key in kv:
            del kv[key]
        self.assertEqual(len(kv), 0)
