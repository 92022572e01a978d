"""A pool's file is removed, renamed or replaced while it is open: no change that nobody would find again is acknowledged."""

import os
import shutil
import time

import stele
from beds import PoolCase


def replace(path):
    shutil.copyfile(path, path + ".new")
    os.replace(path + ".new", path)


MOVES = {"removed": os.remove, "renamed": lambda path: os.rename(path, path + ".old"), "replaced": replace}


class Moved(PoolCase):
    def stores(self):
        """Of each kind a pool with one item, and how it gets another one."""
        for media in ("process", "file"):
            store = self.open_kv(media=media)
            store["before"] = "1"
            yield store, lambda s: s.put("after", "2"), lambda s: s["before"]
            pool = self.open(media=media)
            pool.root["before"] = b"1"
            yield pool, lambda p: p.root.update(after=2), lambda p: p.root["before"]

    def test_takes_no_change_a_second_later(self):
        for name, move in MOVES.items():
            for store, change, look in self.stores():
                with self.subTest(name, kind=type(store).__name__):
                    move(store.path)
                    until = time.monotonic() + 20
                    with self.assertRaisesRegex(stele.Error, "while it was open"):
                        while time.monotonic() < until:
                            change(store)
                            time.sleep(0.02)
                    self.assertEqual(look(store), b"1", "reads go on")
                    with self.assertRaisesRegex(stele.Error, "while it was open"):
                        store.close()
                    store.close()

    def test_is_told_by_each_call_about_the_whole_pool(self):
        for name, move in MOVES.items():
            for what in ("check", "sync", "close"):
                for store, _, _ in self.stores():
                    with self.subTest(name, what=what, kind=type(store).__name__):
                        move(store.path)
                        with self.assertRaisesRegex(stele.Error, "while it was open"):
                            getattr(store, what)()
                        try:
                            store.close()
                        except stele.Error:
                            pass
                        self.assertTrue(store.closed)

    def test_can_be_copied_before_it_is_closed(self):
        for store, _, look in self.stores():
            os.remove(store.path)
            with self.assertRaisesRegex(stele.Error, "while it was open"):
                store.check()
            copy = self.path("copy")
            store.backup(copy)
            with type(store)(copy) if isinstance(store, stele.KV) else stele.open(copy) as found:
                self.assertEqual(look(found), b"1")
            os.remove(copy)
            with self.assertRaises(stele.Error):
                store.close()
