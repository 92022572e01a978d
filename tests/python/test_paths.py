"""Names of files: whatever os.listdir() gives can be opened, and what is no pool is told at once."""

import os
import pathlib

import stele
from beds import PoolCase

NOT_UTF8 = b"caf\xe9 \xff"


class Paths(PoolCase):
    def calls(self):
        """Each entry point that takes a name, as a function of the name."""
        yield lambda name: stele.open(name, size="1M").close()
        yield lambda name: stele.KV(name, size="1M").close()
        for open_it in (self.open, self.open_kv):
            with open_it() as pool:
                yield pool.backup

    def test_names_that_are_not_utf8(self):
        raw = os.path.join(os.fsencode(self.directory), NOT_UTF8)
        for name in (raw, os.fsdecode(raw), pathlib.Path(os.fsdecode(raw))):
            for call in self.calls():
                with self.subTest(name=name):
                    call(name)
                    self.assertIn(NOT_UTF8, os.listdir(os.fsencode(self.directory)))
                    os.unlink(raw)

    def test_they_are_named_in_errors(self):
        name = self.path(os.fsdecode(NOT_UTF8))
        for open_it in (stele.open, stele.KV):
            with self.assertRaises(stele.errors.NotFoundError) as raised:
                open_it(name)
            self.assertIn(name, str(raised.exception))
            with open_it(name, size="1M") as pool:
                self.assertEqual(pool.path, name)
                self.assertIn("stele", repr(pool))
                with self.assertRaises(stele.errors.ExistsError) as raised:
                    pool.backup(os.fsencode(name))
                self.assertIn(name, str(raised.exception))
            with self.assertRaises(stele.errors.InvalidArgumentError) as raised:
                pool.sync()
            self.assertIn(name, str(raised.exception))
            os.unlink(name)

    def test_a_null_byte_ends_no_name(self):
        for call in self.calls():
            for name in (self.path() + "\0.stele", os.fsencode(self.path()) + b"\0"):
                with self.assertRaisesRegex(ValueError, "null byte"):
                    call(name)

    def test_what_is_no_name(self):
        for call in self.calls():
            for wrong in (None, 1, 1.5, [], ()):
                self.assertRaises(TypeError, call, wrong)

    def test_what_is_no_file(self):
        os.mkfifo(self.path("fifo"))
        os.mkdir(self.path("folder"))
        os.symlink(self.path("nowhere"), self.path("link"))
        for name in ("fifo", "folder", "link", "/dev/null", "/dev/zero"):
            for open_it in (stele.open, stele.KV):
                for more in ({}, {"size": "1M"}, {"read_only": True}):
                    with self.subTest(name=name, **more), self.assertRaises(stele.Error):
                        open_it(self.path(name), **more)
        self.assertEqual(sorted(os.listdir(self.directory)), ["fifo", "folder", "link"])
