"""Pools whose content was changed at random are read, or refused: no signal, no hang, no memory without end.

Nothing but the sums of a pool tells that its content was changed, and a pool of the medium adr has none. Each child reads several such pools; it
prints the number of a pool before it opens it. STELE_SEED and STELE_MUTATED set the seed and the number of pools.
"""

import os
import random
import subprocess
import sys

import stele
from beds import PoolCase

SEED = int(os.environ.get("STELE_SEED", "1"))
COUNT = int(os.environ.get("STELE_MUTATED", "300"))
POOLS_OF_A_CHILD = 15

READ = """
import faulthandler, resource, sys
import stele
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def tried(call):
    try:
        return call()
    except (stele.Error, MemoryError, RecursionError, KeyError, IndexError):
        return None

def walk(value, depth=0):
    if depth > 5:
        return
    if isinstance(value, stele.Dict):
        for key, inner in tried(lambda: list(value.items())[:100]) or ():
            walk(inner, depth + 1)
            if isinstance(key, (str, int)) and not isinstance(key, bool):
                tried(lambda: value[key])
    elif isinstance(value, stele.List):
        for inner in tried(lambda: value[:100]) or ():
            walk(inner, depth + 1)
    else:
        return
    for look in (len, list, lambda v: list(reversed(v)), lambda v: v.copy(), repr):
        tried(lambda: look(value))

def use_documents(path, read_only):
    pool = stele.open(path, verify="never", media="adr") if not read_only else stele.open(path, read_only=True)
    walk(pool.root)
    tried(pool.root.copy)
    if not read_only:
        for n in range(3):
            tried(lambda: pool.root.__setitem__("k%d" % n, {"a": [1, "x" * 100]}))
            tried(lambda: pool.root.pop("k%d" % n))
            tried(pool.root.popitem)
            items = tried(lambda: pool.root["list"])  # what was a list may be of another kind
            if isinstance(items, stele.List):
                tried(lambda: items.append(1))
                tried(items.pop)
        tried(pool.root.clear)
    tried(pool.check)
    pool.close()

def use_kv(path, read_only):
    kv = stele.KV(path, verify="never", media="adr") if not read_only else stele.KV(path, read_only=True)
    for look in (lambda: list(kv.items()), lambda: list(reversed(kv)), lambda: kv["k1"], lambda: kv.get_many(["k%d" % n for n in range(50)]), kv.statistics,
                 lambda: len(kv), kv.stores, lambda: kv.expiry("timed"), lambda: list(kv.open_store("other", create=False).items())):
        tried(look)
    if not read_only:
        for n in range(3):
            tried(lambda: kv.put("k%d" % n, "new" * n))
            tried(lambda: kv.pop("k%d" % n, None))
            tried(lambda: kv.put("t%d" % n, "x", ttl=5))
        tried(kv.remove_expired)
        tried(lambda: kv.drop_store("other"))
    tried(kv.check)
    kv.close()

for path in sys.argv[1:]:
    print(path, flush=True)
    faulthandler.dump_traceback_later(20, exit=True)
    for read_only in (True, False):
        tried(lambda: (use_kv if "kv" in path else use_documents)(path, read_only))
    faulthandler.cancel_dump_traceback_later()
"""


class Mutated(PoolCase):
    def make_documents(self):
        with self.open("documents", size="1M", media="adr") as pool:
            pool.root.update(text="t" * 500, number=5, real=1.5, blob=b"b" * 3000, nothing=None, yes=True)
            pool.root["list"] = [n if n % 3 else "item %d" % n * n for n in range(60)]
            pool.root["dict"] = {n if n % 2 else "key %d" % n: [n, {"inner": ["x" * n]}] for n in range(80)}
            pool.root["deep"] = [[[[[["deep"]]]]]]
            return pool.path, pool.space["log_bytes"]

    def make_kv(self):
        with self.open_kv("kv", size="1M", media="adr") as kv:
            for n in range(150):
                kv[f"k{n}"] = "v" * n
            kv["long" * 50] = b"l" * 5000
            kv.put("timed", "x", ttl=1000)
            kv.open_store("other")["a"] = "b"
            return kv.path, kv.space["log_bytes"]

    def mutate(self, content, used, random):
        """Changes words of what is not zero: bits, whole words, and links that lead elsewhere."""
        changed = bytearray(content)
        for _ in range(random.choice((1, 1, 2, 4, 16))):
            at = random.choice(used)
            kind = random.randrange(4)
            if kind == 0:
                changed[at + random.randrange(8)] ^= 1 << random.randrange(8)
            elif kind == 1:
                changed[at:at + 8] = random.choice((0, 1, 2**63, 2**64 - 1, 2**40, len(content), random.getrandbits(64))).to_bytes(8, "little")
            elif kind == 2:
                other = random.choice(used)
                changed[at:at + 8] = content[other:other + 8]
            else:
                other = random.choice(used)
                changed[at:at + 64], changed[other:other + 64] = content[other:other + 64], content[at:at + 64]
        return bytes(changed[:len(content)])

    def run_children(self, paths):
        for i in range(0, len(paths), POOLS_OF_A_CHILD):
            ran = subprocess.run([sys.executable, "-c", READ, *paths[i:i + POOLS_OF_A_CHILD]], capture_output=True, text=True, timeout=400)
            last = ran.stdout.split("\n")[-2:-1]
            self.assertEqual(ran.returncode, 0, f"seed {SEED}, {last}: {ran.stderr[-3000:]}")

    def test_no_signal_no_hang(self):
        for make, kind in ((self.make_documents, "documents"), (self.make_kv, "kv")):
            path, begin = make()  # of home, behind header and logs
            with open(path, "rb") as file:
                content = file.read()
            used = [at for at in range(begin, len(content) - 64, 8) if content[at:at + 8].strip(b"\0")]
            self.assertGreater(len(used), 1000)
            paths = []
            for n in range(COUNT // 2):
                paths.append(self.path(f"{kind}-{n}"))
                with open(paths[-1], "wb") as file:
                    file.write(self.mutate(content, used, random.Random(f"{SEED} {kind} {n}")))
                if len(paths) == POOLS_OF_A_CHILD or n == COUNT // 2 - 1:
                    self.run_children(paths)
                    for done in paths:
                        os.unlink(done)
                    paths = []
