"""The machine refuses memory half-way through an operation: its `with` keeps nothing of itself, and the pool goes on. Each in a process of its own,
whose address space ends a little behind what it has."""

import ast
import unittest

from beds import PoolCase

PROGRAM = """
import resource, stele, sys, threading
MIB = 1 << 20
pool = stele.open(sys.argv[1], size="256M")
root = pool.root
root.update(numbers=list(range(300_000)), text="x" * (64 * MIB))
whole = root["numbers"].copy()
asks = {
    "copy": lambda: root["numbers"].copy(),
    "read": lambda: root["text"],
    "reverse": lambda: root["numbers"].reverse(),
}

class Limited:
    def __init__(self, more):
        self.more = more

    def __enter__(self):
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + self.more, self.hard))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_AS, (self.soft, self.hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)

def goes_on():
    other = threading.Thread(target=lambda: root.__setitem__("goes on", 1), daemon=True)
    other.start()
    other.join(20)
    return root.pop("goes on", None) == 1

told = []
for more in (MIB, 4 * MIB):
    for name, ask in asks.items():
        caught = ended = None
        try:
            with pool.transaction():
                root["before"] = 1
                try:
                    with Limited(more):
                        ask()
                except MemoryError as e:
                    caught = type(e).__name__
                if sys.argv[2] == "joined":
                    try:
                        with pool.transaction():
                            root["after"] = 1
                    except stele.Error:
                        pass
        except (stele.Error, MemoryError) as e:
            ended = type(e).__name__
        told.append((name, caught, ended, "before" in root or "after" in root, root["numbers"].copy() == whole, goes_on()))
pool.check()
pool.close()
print(told)
"""


class RefusedMemory(PoolCase):
    def told(self, kind):
        process = self.start(PROGRAM, self.path(kind), kind)
        told = process.stdout.read()
        self.assertEqual(process.wait(), 0)
        return ast.literal_eval(told.decode())

    def test_a_with_keeps_nothing_of_itself(self):
        for kind in ("alone", "joined"):
            told = self.told(kind)
            self.assertEqual(len(told), 6)
            for name, caught, ended, kept, is_whole, goes_on in told:
                self.assertEqual((caught, ended), ("MemoryError", "CancelledError"), name)
                self.assertEqual((kept, is_whole, goes_on), (False, True, True), name)


if __name__ == "__main__":
    unittest.main()
