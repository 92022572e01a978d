"""Looking after a pool from Python: growth, backup, check, what opening requires, and errors of arguments."""

import os
import signal
import threading

import stele
from beds import PoolCase


class Care(PoolCase):
    def test_a_full_pool_grows_by_itself(self):
        pool = self.open(size="1M", max_size="8M")
        for n in range(40):
            pool.root[n] = b"x" * 100_000
        self.assertGreater(pool.space["size_bytes"], 4 << 20)
        self.assertEqual(len(pool.root), 40)
        with self.assertRaisesRegex(stele.errors.FullError, "max_size"):
            pool.root["huge"] = b"x" * (16 << 20)
        pool.check()

    def test_a_with_that_found_no_room_succeeds_when_it_is_run_again(self):
        pool = self.open(size="1M", max_size="16M")
        for attempt in range(8):
            try:
                with pool.transaction():
                    pool.root["blobs"] = [b"x" * 100_000 for _ in range(30)]
                break
            except stele.errors.FullError:
                self.assertEqual(len(pool.root), 0)
        self.assertEqual(len(pool.root["blobs"]), 30)
        self.assertGreater(attempt, 0)

    def test_growing_keeps_what_is_there(self):
        pool = self.open(size="1M")
        pool.root["n"] = 1
        pool.grow("4M")
        pool.grow(1)
        self.assertGreaterEqual(pool.space["size_bytes"], 4 << 20)
        self.assertEqual(pool.root["n"], 1)
        with self.assertRaises(stele.errors.NestedError), pool.transaction():
            pool.grow("8M")
        with self.assertRaises(stele.errors.InvalidArgumentError):
            pool.grow(1 << 60)

    def test_a_backup_is_of_one_state_and_runs_beside_others(self):
        pool = self.open()
        pool.root["a"] = pool.root["b"] = 0
        stop = threading.Event()

        def change():
            while not stop.is_set():
                with pool.transaction():
                    pool.root["a"] += 1
                    pool.root["b"] += 1

        thread = threading.Thread(target=change)
        thread.start()
        try:
            calls = []
            pool.backup(self.path("copy"), progress=lambda done, total: calls.append((done, total)) or True)
        finally:
            stop.set()
            thread.join()
        self.assertTrue(calls and calls[-1][0] == calls[-1][1])
        copy = self.open("copy")
        self.assertEqual(copy.root["a"], copy.root["b"])
        with self.assertRaises(stele.errors.ExistsError):
            pool.backup(self.path("copy"))

    def test_a_backup_that_is_stopped_leaves_nothing(self):
        pool = self.open()

        def fails(done, total):
            raise RuntimeError("enough")

        with self.assertRaises(stele.errors.CancelledError):
            pool.backup(self.path("copy"), progress=lambda done, total: False)
        with self.assertRaisesRegex(RuntimeError, "enough"):
            pool.backup(self.path("copy"), progress=fails)
        with self.assertRaises(KeyboardInterrupt):
            pool.backup(self.path("copy"), progress=lambda done, total: os.kill(os.getpid(), signal.SIGINT) or True)
        self.assertEqual(os.listdir(self.directory), ["pool"])
        pool.root["goes on"] = True

    def test_check_finds_what_another_program_changed(self):
        pool = self.open()
        pool.root["text"] = "a text that is long enough for a block of its own" * 20
        pool.check()
        pool.close()
        with open(self.path(), "r+b") as file:
            where = file.read().index(b"long enough")
            file.seek(where)
            file.write(b"L")
        with self.assertRaises(stele.errors.CorruptError):
            self.open(verify="always")
        damaged = self.open(verify="never")
        self.assertIn("Long enough", damaged.root["text"])
        with self.assertRaises(stele.errors.CorruptError):
            damaged.check()

    def test_what_opening_requires_is_told(self):
        self.open(require="process").close()
        for wrong in ({"require": "miracles"}, {"verify": "sometimes"}, {"max_size": 1 << 60}):
            with self.assertRaises(stele.errors.InvalidArgumentError):
                stele.open(self.path("other"), size="1M", **wrong)
        self.assertFalse(os.path.exists(self.path("other")))
        if self.open().durability == "process":
            with self.assertRaises(stele.Error):
                stele.open(self.path("other"), size="1M", require="power")

    def test_a_path_ends_where_it_ends(self):
        with self.assertRaisesRegex(ValueError, "null byte"):
            stele.open(self.path() + "\0.stele", size="1M")
        with self.assertRaisesRegex(ValueError, "null byte"):
            stele.KV(self.path() + "\0.stele", size="1M")
        with self.assertRaisesRegex(ValueError, "null byte"):
            self.open().backup(self.path("copy") + "\0")
        self.assertEqual(os.listdir(self.directory), ["pool"])

    def test_a_store_is_looked_after_in_the_same_way(self):
        kv = stele.KV(self.path("kv"), size="1M", max_size="8M")
        for n in range(40):
            kv[f"key {n}"] = b"x" * 100_000
        kv.backup(self.path("copy"))
        kv.check()
        kv.close()
        with stele.KV(self.path("copy"), verify="always") as copy:
            self.assertEqual(len(copy), 40)
            copy.grow("16M")


class Operators(PoolCase):
    def test_lists_are_sorted_in_one_transaction(self):
        root = self.open().root
        root["l"] = [3, 1, 2]
        root["l"].sort()
        self.assertEqual(root["l"], [1, 2, 3])
        root["l"].sort(key=lambda v: -v)
        self.assertEqual(root["l"], [3, 2, 1])
        root["l"].sort(reverse=True)
        self.assertEqual(root["l"], [3, 2, 1])
        root["l"].append("text")
        with self.assertRaises(TypeError):
            root["l"].sort()
        self.assertEqual(root["l"], [3, 2, 1, "text"])

    def test_lists_and_dicts_are_joined_to_ordinary_ones(self):
        root = self.open().root
        root.update(l=[1, 2], m=[3], d={"a": 1}, e={"a": 2, "b": 3})
        self.assertEqual(root["l"] + root["m"] + [4], [1, 2, 3, 4])
        self.assertEqual([0] + root["l"], [0, 1, 2])
        self.assertEqual(root["d"] | root["e"], {"a": 2, "b": 3})
        self.assertEqual({"c": 0} | root["d"], {"c": 0, "a": 1})
        root["d"] |= {"z": 9}
        self.assertEqual(root["d"], {"a": 1, "z": 9})
        for wrong in (lambda: root["l"] + 1, lambda: root["d"] | 1, lambda: root["l"] + {}):
            with self.assertRaises(TypeError):
                wrong()

    def test_what_is_closed_or_gone_has_a_repr(self):
        pool = self.open()
        pool.root["d"] = {"a": []}
        root, inner = pool.root, pool.root["d"]["a"]
        del pool.root["d"]
        self.assertIn("stele.List", repr(inner))
        pool.close()
        self.assertIn("closed", repr(root))
        self.assertIn("closed", repr(pool))
