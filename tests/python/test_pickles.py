"""Values of other types: pickled in a pool that was opened so, refused in others, and never made of bytes that a program was given."""

import collections
import datetime
import pickle
from fractions import Fraction
from unittest import mock

import stele
from beds import PoolCase

MARK = b"\xf6stele pickle\r\n\x1a"
ran = []


def run():
    ran.append(1)


class Runs:
    """Loading its pickle runs code."""

    def __reduce__(self):
        return run, ()


class Pickles(PoolCase):
    def test_values_of_other_types_are_kept(self):
        pool, now = self.open(pickle=True), datetime.datetime(2026, 3, 1, 12)
        value = {"when": now, "set": {1, 2}, "deep": [[1j, None], {"f": Fraction(1, 3)}], "large": 2**70, "plain": [1, "a", b"b"]}
        pool.root["v"] = value
        pool.root["l"] = []
        pool.root["l"].extend([now, 5])
        pool.root["l"][:1] = [{3}]
        self.assertEqual(pool.root["v"], value)
        self.assertEqual(pool.root["v"]["deep"][1]["f"], Fraction(1, 3))
        self.assertEqual(pool.root.setdefault("s", frozenset("a")), frozenset("a"))
        pool.root["v"]["set"].add(3)  # what is got is a copy
        pool.root["copy"] = pool.root["v"]
        self.assertEqual(pool.root.pop("copy"), value)
        pool.check()
        pool.close()
        again = self.open(pickle=True)
        self.assertEqual((again.root["v"], again.root["l"]), (value, [{3}, 5]))
        self.assertEqual([type(v) for v in again.root.values()], [stele.Dict, stele.List, frozenset])
        again.close()
        plain = self.open()
        self.assertTrue(plain.root["s"].startswith(MARK))
        self.assertEqual(pickle.loads(plain.root["s"][len(MARK):]), frozenset("a"))
        self.assertEqual(plain.root["v"]["plain"], [1, "a", b"b"])
        for wrong, error in (({1}, TypeError), (2**70, OverflowError), (now, TypeError)):
            self.assertRaises(error, plain.root.__setitem__, "x", wrong)

    def test_given_bytes_never_become_a_pickle(self):
        trap = MARK + pickle.dumps(Runs())
        with self.open() as plain:
            for store in (lambda: plain.root.update(x=trap), lambda: plain.root.update(x=[{"y": bytearray(trap)}]), lambda: plain.root.setdefault("x", memoryview(trap))):
                with self.assertRaisesRegex(ValueError, "pickle=True"):
                    store()
            plain.root["x"] = b" " + trap
        with self.open(pickle=True) as pool:
            pool.root.update(y=trap, z=[bytearray(trap)])
            self.assertEqual((pool.root["x"], pool.root["y"], pool.root["z"]), (b" " + trap, trap, [trap]))
            self.assertEqual(ran, [])
            pool.root["runs"] = Runs()
            pool.root.copy()
            self.assertEqual(ran, [1])  # the test can tell

    def test_what_cannot_be_pickled_changes_nothing(self):
        root = self.open(pickle=True).root
        for wrong in (lambda: 1, [1, lambda: 2], {"a": self.open("other").root.keys()}):
            with self.assertRaises((pickle.PicklingError, AttributeError, TypeError)):
                root["a"] = wrong
        self.assertRaises(TypeError, root.__setitem__, 1.5, 1)
        self.assertRaises(OverflowError, root.__setitem__, 2**70, 1)
        root["a"] = collections.OrderedDict(b=(1, 2))  # is a dict
        self.assertEqual(root, {"a": {"b": [1, 2]}})

    def test_what_a_replaced_pickler_gives_is_looked_at(self):
        class Odd:
            def __radd__(self, other):
                return self

        class Longer(bytes):
            def __radd__(self, other):
                return Longer(other + bytes(self))

        pool = self.open(pickle=True)
        for given in (Odd(), Longer(b"a"), None, "text", bytearray(b"a")):
            with mock.patch("pickle.dumps", lambda _: given):
                if isinstance(given, bytearray):  # bytes and a bytearray give bytes
                    pool.root["v"] = {1, 2}
                    continue
                with self.assertRaises(TypeError):
                    pool.root["v"] = {1, 2}
                self.assertEqual(pool.root, {})
