"""Dicts and lists of a pool against Python's own, by random operations and at their edges; what is refused, and how it is said."""

import collections.abc
import copy
import gc
import random
import warnings

import stele
from beds import PoolCase


class Values(PoolCase):
    def check(self, root, model):
        self.assertEqual(root.copy(), model)
        self.assertEqual(list(root), list(model))

    def any_value(self, rng, depth=0):
        choice = rng.randrange(11)
        if choice == 0 and depth < 3:
            return [self.any_value(rng, depth + 1) for _ in range(rng.randrange(5))]
        if choice == 1 and depth < 3:
            return {rng.choice(["k", 7, "länger als vierzehn"]): self.any_value(rng, depth + 1) for _ in range(rng.randrange(4))}
        return rng.choice([None, True, False, 0, -(2**63), 2**63 - 1, 1.5, float("inf"), "", "ü" * rng.randrange(40), b"\0" * rng.randrange(40)])

    def dict_step(self, rng, d, m):
        key, value = rng.choice([1, 2, -3, "a", "b", "eine lange Schlüsselzeichenkette", ""]), self.any_value(rng)
        choice = rng.randrange(8)
        if choice < 3:
            d[key] = value
            m[key] = copy.deepcopy(value)
        elif choice == 3:
            self.assertEqual(d.pop(key, "none"), m.pop(key, "none"))
        elif choice == 4:
            d.update({key: value}, z=1)
            m.update({key: copy.deepcopy(value)}, z=1)
        elif choice == 5:
            m.setdefault(key, copy.deepcopy(value))
            self.assertEqual(d.setdefault(key, value), m[key])
        elif choice == 6 and m:
            self.assertEqual(d.popitem(), m.popitem())
        self.assertEqual(key in d, key in m)
        self.assertEqual(d.get(key, 5), m.get(key, 5))
        self.assertEqual(len(d), len(m))

    def list_step(self, rng, l, m):
        value, i, j = self.any_value(rng), rng.randrange(-12, 12), rng.randrange(-12, 12)
        step = rng.choice([1, 1, 2, -1, -3])
        choice = rng.randrange(9)
        if choice < 2:
            l.append(value)
            m.append(copy.deepcopy(value))
        elif choice == 2:
            l.insert(i, value)
            m.insert(i, copy.deepcopy(value))
        elif choice == 3:
            l[i:j] = [value, 1]
            m[i:j] = [copy.deepcopy(value), 1]
        elif choice == 4 and rng.randrange(2) == 0:
            places = len(m[i:j:step])
            for target in (l, m):
                target[i:j:step] = (copy.deepcopy(value) for _ in range(places))
        elif choice == 4 and rng.randrange(4) == 0:
            del l[i:j:step]
            del m[i:j:step]
        elif choice == 5:
            l.extend((value, "x"))
            m.extend((copy.deepcopy(value), "x"))
        elif choice == 6 and -len(m) <= i < len(m):
            l[i] = value
            m[i] = copy.deepcopy(value)
        elif choice == 7 and -len(m) <= i < len(m):
            self.assertEqual(l.pop(i), m.pop(i))
        elif choice == 8 and rng.randrange(4) == 0:
            l.reverse()
            m.reverse()
        self.assertEqual([stele.List.copy(v) if isinstance(v, stele.List) else v for v in l[i:j:step]], m[i:j:step])
        self.assertEqual(len(l), len(m))

    def test_dicts_behave_as_pythons(self):
        rng, model, pool = random.Random(1), {}, self.open()
        for _ in range(1500):
            self.dict_step(rng, pool.root, model)
        self.check(pool.root, model)
        pool.check()
        pool.close()
        again = self.open()
        self.check(again.root, model)
        self.assertEqual(again.root, model)

    def test_lists_behave_as_pythons(self):
        rng, model, pool = random.Random(2), [], self.open()
        pool.root["l"] = []
        l = pool.root["l"]
        for _ in range(1500):
            self.list_step(rng, l, model)
            self.assertEqual(l, model)
        pool.check()
        pool.root["same"] = [1, 2, 1]
        same = pool.root["same"]
        same.remove(1)
        self.assertEqual(same, [2, 1])
        self.assertEqual((same.index(1), same.count(2), 2 in same, 5 in same), (1, 1, True, False))
        self.assertRaises(ValueError, same.remove, 77)
        same += [9]
        self.assertEqual(list(reversed(same)), [9, 1, 2])
        same[::2] = same[::-2]
        same[1:1] = "ab"
        self.assertEqual(same, [9, "a", "b", 1, 2])
        same[:2] = same
        same[-1:0:-3] = {"x": 0, "y": 1, "z": 2}
        self.assertEqual(same, [9, "z", "b", 1, "y", "b", 1, "x"])
        for wrong in ([1], [1, 2, 3], []):
            with self.assertRaisesRegex(ValueError, f"of 4 places here.*, not {len(wrong)}"):
                same[::2] = wrong
        self.assertRaises(TypeError, same.__setitem__, slice(0, 1), 5)
        self.assertRaises(ValueError, same.__setitem__, slice(0, 1, 0), [5])
        self.assertEqual(same, [9, "z", "b", 1, "y", "b", 1, "x"])

    def test_lists_compare_and_repeat(self):
        root = self.open().root
        root.update(a=[1, [2]], b=[1, [3]], c=[1])
        a, b, c = root["a"], root["b"], root["c"]
        for x in (a, b, c):
            for y in (a, b, c):
                for other in (y, y.copy()):
                    self.assertEqual((x < other, x <= other, x > other, x >= other, x == other, other > x),
                                     tuple(f(x.copy(), y.copy()) for f in (lambda p, q: p < q, lambda p, q: p <= q, lambda p, q: p > q,
                                                                           lambda p, q: p >= q, lambda p, q: p == q, lambda p, q: q > p)))
        self.assertRaises(TypeError, lambda: a < (1, 2))
        self.assertRaises(TypeError, lambda: a < ["x"])
        self.assertEqual((c * 3, 2 * c, c * 0), ([1, 1, 1], [1, 1], []))
        same = root["b"]
        b *= 2
        self.assertEqual(same, [1, [3], 1, [3]])

    def test_dicts_have_all_of_pythons(self):
        root = self.open().root
        root.update([("a", 1), ["b", [2]]], c=None)
        root.update(collections.ChainMap({"d": 4}, {"a": 0}))
        model = {"a": 0, "b": [2], "c": None, "d": 4}
        self.assertEqual((list(reversed(root)), list(reversed(root.keys()))), ([*"dcba"], [*"dcba"]))
        self.assertEqual((list(reversed(root.values())), list(reversed(root.items()))), (list(model.values())[::-1], list(model.items())[::-1]))
        self.assertEqual((root.setdefault("b", 5), root.setdefault("e"), root.popitem()), ([2], None, ("e", None)))
        self.assertTrue(root == model and root != {**model, "a": 1} and not root != model and root != 5)
        self.assertTrue(4 in root.values() and ("b", [2]) in root.items() and root.keys() >= {"a", "d"} and len(root.values()) == 4)
        self.assertEqual((copy.copy(root), copy.deepcopy(root), dict(root)), (model, model, model))
        self.assertIs(type(root.copy()["b"]), list)
        root |= [("f", 1)]
        self.assertEqual(root.pop("f"), 1)
        for wrong in (5, [1], "ab", [("a", 1, 2)]):
            self.assertRaises((TypeError, ValueError), root.update, wrong)
        root.clear()
        self.assertRaises(KeyError, root.popitem)
        self.assertEqual((root, bool(root), list(reversed(root.values()))), ({}, False, []))

    def test_nested_ones_are_live(self):
        root = self.open().root
        root["a"] = {"b": [{}]}
        inner = root["a"]["b"][0]
        inner["x"] = 1
        root["a"]["b"].append((1, 2))
        self.assertEqual(root, {"a": {"b": [{"x": 1}, [1, 2]]}})
        root["copy"] = root["a"]
        inner["x"] = 2
        self.assertEqual(root["copy"], {"b": [{"x": 1}, [1, 2]]})
        self.assertIsInstance(root, collections.abc.MutableMapping)
        self.assertIsInstance(root["a"]["b"], collections.abc.MutableSequence)
        self.assertEqual(repr(root["copy"]["b"]), "stele.List([{'x': 1}, [1, 2]])")
        self.assertEqual(list(root.items())[1][1], root["copy"])
        self.assertEqual(root.keys() & {"a", 1}, {"a"})

    def test_what_has_ended_says_so(self):
        root = self.open().root
        for end in (lambda: root.pop("x"), lambda: root.__setitem__("x", {"new": 1}), lambda: root.clear()):
            root["x"] = {"y": [1]}
            x, y = root["x"], root["x"]["y"]
            end()
            for use in (lambda: x["y"], lambda: y.append(1), lambda: len(x), lambda: list(y), lambda: x.update(a=1)):
                with self.assertRaisesRegex(stele.errors.NotFoundError, "not in the pool any more"):
                    use()
            root["x"] = {"y": [2]}  # very likely where the old dicts and lists lay
            self.assertRaises(stele.errors.NotFoundError, lambda: x["y"])

    def test_what_a_pool_cannot_hold_is_refused_in_sentences(self):
        root = self.open().root
        root["l"] = [1]
        for wrong, error, said in (
            (2**63, OverflowError, "64 bits"), ([-(2**64)], OverflowError, "64 bits"), (object(), TypeError, "not object"),
            ({1.5: 2}, TypeError, "str or an int, not float"), ({True: 2}, TypeError, "not bool"), ({1, 2}, TypeError, "not set"),
            ("\ud800", UnicodeEncodeError, "surrogates"), (1j, TypeError, "not complex"),
        ):
            for store in (lambda: root.__setitem__("x", wrong), lambda: root["l"].append([wrong]), lambda: root.setdefault("y", wrong)):
                with self.assertRaisesRegex(error, said):
                    store()
        cycle = []
        cycle.append(cycle)
        with self.assertRaises(RecursionError):
            root["x"] = cycle
        self.assertEqual(root, {"l": [1]})
        for miss, error in ((lambda: root["z"], KeyError), (lambda: root["l"][1], IndexError), (lambda: root["l"][-2], IndexError),
                            (lambda: root["l"].pop(3), IndexError), (lambda: root[1.5], TypeError), (lambda: root["l"]["a"], TypeError)):
            self.assertRaises(error, miss)
        self.assertRaises(KeyError, root.__delitem__, "z")
        self.assertRaises(TypeError, hash, root)

    def test_buffers_become_bytes_and_subclasses_what_they_are(self):
        root = self.open().root

        class Text(str):
            pass

        root["a"] = [bytearray(b"ab"), memoryview(b"cd"), Text("ef"), collections.OrderedDict(g=1)]
        self.assertEqual(root["a"], [b"ab", b"cd", "ef", {"g": 1}])

    def test_deep_ones_are_walked_by_hand(self):
        pool = self.open(size="32M")
        l = pool.root.setdefault("l", [])
        for _ in range(5000):
            l.append([])
            l = l[0]
        with self.assertRaisesRegex(stele.errors.InvalidArgumentError, "deep"):
            pool.root.copy()
        pool.check()
        del pool.root["l"]
        self.assertEqual(len(pool.root), 0)

    def test_what_was_made_by_new_alone_is_refused(self):
        """The interpreter's own calls took its bytes for a pool's dict."""
        for kind, uses in (
            (stele.Dict, (len, lambda d: d["a"], lambda d: d.__setitem__("a", 1), lambda d: d.__delitem__("a"), lambda d: "a" in d)),
            (stele.List, (len, lambda l: l[0], lambda l: l[1:], lambda l: l.__setitem__(0, 1), lambda l: l.__delitem__(0), lambda l: 1 in l)),
            (stele.KV, (len, lambda k: k["a"], lambda k: k.__setitem__("a", "b"), lambda k: k.__delitem__("a"), lambda k: "a" in k)),
        ):
            empty, root = kind.__new__(kind), self.open(kind.__name__).root
            for use in (*uses, lambda e: root.__setitem__("a", e), lambda e: root.__setitem__("a", [e])):
                with self.assertRaises((TypeError, AttributeError)), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # nanobind's, of what is not a slot
                    use(empty)
            self.assertEqual(root, {})

    def test_nothing_is_leaked(self):
        pool = self.open()
        used = pool.space["used_bytes"]
        for _ in range(300):
            pool.root["x"] = {"y": ["z" * 50, {}]}
            list(pool.root.items()), pool.root["x"].copy()
            del pool.root["x"]
        gc.collect()
        self.assertLess(pool.space["used_bytes"] - used, 1000)  # the root keeps its first buckets
