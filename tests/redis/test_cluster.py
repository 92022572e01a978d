"""Clusters of nodes with pools: redirections, slots that migrate, nodes that are killed."""

import binascii
import random
import re
import signal
import threading
import time
import unittest

from beds import Client, ServerError, ServerGone
from several import LONGER, SEED, SeveralCase, content, info, of_the_pool, pipelined, wait_until

SLOTS = 16384
SCRIPT = "redis.call('SET', KEYS[1], ARGV[1]); return redis.call('HSET', KEYS[2], 'n', ARGV[1])"


def slot_of(key):
    key = key if isinstance(key, bytes) else str(key).encode()
    tag = re.search(rb"\{([^}]+)\}", key)
    return binascii.crc_hqx(tag.group(1) if tag else key, 0) % SLOTS


class ClusterClient:
    """Sends commands to where their first key is; goes where the nodes tell. Tells nothing of a node that is gone: asks again."""

    def __init__(self, ports):
        self.ports, self.connections, self.owners, self.asked = list(ports), {}, {}, 0

    def at(self, port):
        if port not in self.connections:
            self.connections[port] = Client(port)
        return self.connections[port]

    def forget(self, port):
        if port in self.connections:
            self.connections.pop(port).close()

    def close(self):
        for port in list(self.connections):
            self.forget(port)

    def run_at(self, port, commands, asking):
        """The last answer of commands on one slot, as one transaction where there are more. An error of any is thrown."""
        r, why, answer = self.at(port), None, None
        for words in [("ASKING",)] * asking + commands:
            try:
                answer = r(*words)
            except ServerError as error:
                why = why or error
        if why:
            raise why
        return answer

    def __call__(self, *words, key=None, within=30):
        return self.together([words], key or words[1], within)

    def together(self, commands, key, within=30):
        end, asked_at = time.monotonic() + within, None
        while time.monotonic() < end:
            port = asked_at or self.owners.get(slot_of(key)) or random.choice(self.ports)
            try:
                return self.run_at(port, commands, asked_at is not None)
            except (ServerGone, OSError):
                self.forget(port)
                self.owners.clear()
                asked_at = None
                time.sleep(0.02)
            except ServerError as error:
                kind, *rest = str(error).removeprefix("EXECABORT Transaction discarded because of: ").split()
                asked_at = None
                if kind in ("MOVED", "ASK"):
                    self.asked += kind == "ASK"
                    to = int(rest[1].rpartition(":")[2])
                    if kind == "ASK":
                        asked_at = to
                    else:
                        self.owners[int(rest[0])] = to
                elif kind in ("TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"):
                    time.sleep(0.01)
                    self.owners.clear()
                else:
                    raise
        raise AssertionError(f"no answer to {commands} within {within} s; STELE_SEED={SEED}")


class Writer:
    """Counts in keys of one slot, in several ways, and knows what it was answered last."""

    def __init__(self, number, ports):
        self.number, self.answered, self.stopping, self.wrong = number, 0, False, None
        self.client = ClusterClient(ports)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def key(self, name):
        return f"{{w{self.number}}}{name}"

    def step(self, i):
        n, h = self.key("n"), self.key("h")
        if i % 3 == 0:
            self.client("MSET", n, i, self.key("copy"), i)
            self.client("HSET", h, "n", i, "text", "x" * (i % 300))
        elif i % 3 == 1:
            self.client("EVAL", SCRIPT, 2, n, h, i, key=n)
        else:
            self.client("SET", n, i)
            self.client("HSET", h, "n", i)

    def run(self):
        try:
            while not self.stopping:
                self.step(self.answered + 1)
                self.answered += 1
        except (ServerError, AssertionError) as why:
            self.wrong = str(why)

    def stop(self):
        self.stopping = True
        self.thread.join()


class ClusterCase(SeveralCase):
    ports = 20000, 22700  # that of the bus is 10000 more

    def cluster(self, masters, name="node", pool=True, replicas=0):
        random.seed(SEED)
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1500")
        nodes = [self.node(f"{name}{i}", *options, pool=pool) for i in range(masters + replicas)]
        for i, node in enumerate(nodes):
            r = node.client()
            if i < masters:
                r("CLUSTER", "ADDSLOTSRANGE", i * SLOTS // masters, (i + 1) * SLOTS // masters - 1)
            r("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            node.id = r("CLUSTER", "MYID")
        for node in nodes[1:]:
            nodes[0].client()("CLUSTER", "MEET", "127.0.0.1", node.port)
        self.wait_for_cluster(nodes)
        for node in nodes[masters:]:
            r = node.client()
            wait_until(lambda: r("CLUSTER", "REPLICATE", nodes[0].id) == "OK", "a replica in the cluster")
            self.wait_for_link(nodes[0], node)
        return nodes

    def wait_for_cluster(self, nodes):
        def is_well(r):
            told = r("CLUSTER", "INFO")
            flags = [line.split()[2] for line in r("CLUSTER", "NODES").splitlines()]
            return (b"cluster_state:ok" in told and b"cluster_known_nodes:%d\r" % len(nodes) in told
                    and not any(b"fail" in f or b"handshake" in f for f in flags))
        for node in nodes:
            r = node.client()
            wait_until(lambda r=r: is_well(r), "the cluster is well")

    def fill(self, nodes, keys=1500):
        """Keys of several kinds over all slots. Returns what they contain."""
        c, expected = ClusterClient(n.port for n in nodes), {}
        c.owners = {s: nodes[min(s * len(nodes) // SLOTS, len(nodes) - 1)].port for s in range(SLOTS)}
        for i in range(keys):
            k = i % 10
            key = f"k{i}".encode()
            if k < 5:
                c("SET", key, f"value {i}" * (i % 7))
            elif k < 8:
                c("HSET", key, "a", i, "b", "x" * (i % 90))
            else:
                c(*(("RPUSH", key, 1, 2), ("SADD", key, 1, 2), ("ZADD", key, 1, "a"))[i % 3])
            if i % 20 == 0:
                c("EXPIRE", key, 10000)
        c.close()
        for node in nodes:
            expected.update((k, v) for k, v in content(node.client()).items() if k.startswith(b"k"))
        self.assertEqual(len(expected), keys)
        return expected

    def assert_whole(self, nodes, expected, writers):
        """Each string and hash is at one node, with its value. MIGRATE may move a time of expiry by some milliseconds."""
        def about(found):
            return {k: (kind, value, when > 0) for k, (kind, value, when) in of_the_pool(found).items()}
        found = [about(content(n.client())) for n in nodes]
        everywhere = [k for f in found for k in f]
        self.assertEqual(len(everywhere), len(set(everywhere)), "a key is at two nodes")
        together = {k: v for f in found for k, v in f.items()}
        self.assert_same(about(expected), {k: v for k, v in together.items() if k.startswith(b"k")}, 0)
        for w in writers:
            self.assertIsNone(w.wrong)
            n, h, copy = (w.client(*words) for words in (("GET", w.key("n")), ("HGET", w.key("h"), "n"), ("GET", w.key("copy"))))
            self.assertTrue(w.answered <= int(n) <= w.answered + 1, (w.answered, n))
            self.assertTrue(w.answered <= int(h) <= w.answered + 1, (w.answered, h))
            self.assertEqual(int(copy), int(n) // 3 * 3)

    def writing(self, nodes, count=6):
        writers = [Writer(i, [n.port for n in nodes]) for i in range(count)]
        for w in writers:
            self.addCleanup(w.client.close)
            self.addCleanup(w.stop)
        self.goes_on(writers)
        return writers

    def goes_on(self, writers, steps=10):
        before = [w.answered for w in writers]
        wait_until(lambda: any(w.wrong for w in writers) or all(w.answered >= b + steps for w, b in zip(writers, before)), "the writers go on")


class Migration(ClusterCase):
    def migrate(self, nodes, source, target, slot, together, pause=0.001):
        s, t = source.client(), target.client()
        t("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        s("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        while some := s("CLUSTER", "GETKEYSINSLOT", slot, together):
            if together == 1:
                s("MIGRATE", "127.0.0.1", target.port, some[0], 0, 5000)
            else:
                s("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *some)
            time.sleep(pause)  # the writers meet the half
        for node in (target, source, *nodes):
            node.client()("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    def test_slots_move_under_load(self):
        nodes = self.cluster(3)
        expected = self.fill(nodes)
        writers = self.writing(nodes)
        source, target = nodes[0], nodes[1]
        own = {slot_of(w.key("n")) for w in writers} | {slot_of(k) for k in list(expected)[:400]}
        for i, slot in enumerate(sorted(s for s in own if s < SLOTS // 3)[:60 * LONGER]):
            self.migrate(nodes, source, target, slot, (1, 2, 100)[i % 3])
        self.goes_on(writers)
        for w in writers:
            w.stop()
        self.assert_whole(nodes, expected, writers)
        self.assertEqual(sum(n.client()("DBSIZE") for n in nodes), len(expected) + sum(3 for w in writers))
        for node in (source, target):
            node.kill()
        for node in (source, target):
            node.start()
        self.wait_for_cluster(nodes)
        self.assert_whole(nodes, expected, writers)

    def test_a_slot_moves_to_and_fro_under_its_writer(self):
        nodes = self.cluster(2)
        writers = self.writing(nodes, 2)
        for w in writers:
            slot = slot_of(w.key("n"))
            for _ in range(5 * LONGER):
                here = nodes if slot < SLOTS // 2 else nodes[::-1]
                self.migrate(nodes, here[0], here[1], slot, 1, 0.01)
                self.goes_on(writers, 2)
                self.migrate(nodes, here[1], here[0], slot, 2, 0.01)
                self.goes_on(writers, 2)
        for w in writers:
            w.stop()
        self.assertGreater(sum(w.client.asked for w in writers), 0)
        self.assert_whole(nodes, {}, writers)

    def test_target_is_killed_in_the_middle(self):
        nodes = self.cluster(2)
        expected = self.fill(nodes, 1000)
        source, target = nodes
        slot, keys = slot_of("{t}"), [f"k{{t}}{i}".encode() for i in range(200)]
        if slot >= SLOTS // 2:
            source, target = target, source
        s = source.client()
        list(pipelined(s, (("SET", k, k) for k in keys)))
        target.client()("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        s("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        s("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys[:100])
        for node in (source, target):
            node.kill()
        for node in (source, target):
            node.start()
        self.wait_for_cluster(nodes)
        s, t = source.client(), target.client()
        self.assertEqual([[r("CLUSTER", "COUNTKEYSINSLOT", slot) for r in (s, t)]], [[100, 100]])
        while some := s("CLUSTER", "GETKEYSINSLOT", slot, 50):
            s("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *some)
        for node in (target, source):
            node.client()("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        expected.update((k, ("string", k, -1)) for k in keys)
        self.assert_whole(nodes, expected, [])


    def test_migrated_keys_do_not_come_back(self):
        source, target = (self.node(name, arguments=("media", "file")) for name in ("source", "target"))
        keys = [f"k{i}" for i in range(100)]
        s = source.client()
        list(pipelined(s, (("SET", k, k) for k in keys)))
        self.assertEqual(s("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys), "OK")
        for node in (source, target):
            node.process.send_signal(signal.SIGKILL)
        for node in (source, target):
            node.kill()
            node.start()
        self.assertEqual([node.client()("DBSIZE") for node in (source, target)], [0, 100])


class Nodes(ClusterCase):
    def test_node_is_killed_and_comes_back(self):
        nodes = self.cluster(3)
        expected = self.fill(nodes)
        writers = self.writing(nodes)
        for node in nodes[:2]:
            time.sleep(random.uniform(0, 0.1))
            node.process.send_signal(signal.SIGKILL)
            node.kill()
            node.start()
            self.wait_for_cluster(nodes)
            self.goes_on(writers)
        for w in writers:
            w.stop()
        self.assert_whole(nodes, expected, writers)

    def test_replica_takes_over(self):
        nodes = self.cluster(3, replicas=1)
        master, replica = nodes[0], nodes[3]
        expected = self.fill(nodes[:3])
        self.wait_for_link(master, replica)
        writers = self.writing(nodes)
        own, waited = next(f"n{i}" for i in range(99) if slot_of(f"n{i}") < SLOTS // 3), [0]

        def count():
            r = master.client()
            try:
                while True:
                    n = r("INCR", own)
                    if r("WAIT", 1, 1000):
                        waited[0] = n
            except (ServerGone, ServerError, OSError):
                pass
        counting = threading.Thread(target=count)
        counting.start()
        wait_until(lambda: waited[0] > 20, "the replica has some steps")
        master.process.send_signal(signal.SIGKILL)
        counting.join()
        master.kill()
        wait_until(lambda: info(replica.client(), "replication", "role") == "master", "the replica takes over")
        self.goes_on(writers)
        for w in writers:
            w.stop()
        self.assertGreaterEqual(int(replica.client()("GET", own)), waited[0])
        self.assert_whole(nodes[1:], expected, [])
        self.assertEqual([w.wrong for w in writers if w.wrong], [])
        master.start()
        wait_until(lambda: info(master.client(), "replication", "master_port") == replica.port, "the old master is a replica")
        self.wait_for_cluster(nodes)
        m, c = self.wait_for_link(replica, master)
        c("READONLY")
        self.assert_equal_data(m, c, 100)


class Answers(ClusterCase):
    """As Redis' own: the same commands go to the first node of a cluster with pools and of one without."""

    COMMANDS = [
        ("MSET", "{t}a", 1, "{t}b", 2), ("MGET", "{t}a", "{t}b"), ("RENAME", "{t}a", "{t}c"), ("COPY", "{t}c", "{t}d"), ("DEL", "{t}b", "{t}d"),
        ("HSET", "{t}h", "a", 1), ("MSETNX", "{t}x", 1, "{t}y", 2), ("EXISTS", "{t}x", "{t}y"), ("UNLINK", "{t}x"), ("SET", "{t}l", 1, "EX", 1000),
        ("EVAL", SCRIPT, 2, "{t}n", "{t}nh", 7), ("MULTI",), ("SET", "{t}m", 1), ("HSET", "{t}mh", "a", 1), ("EXEC",),
        # of two slots
        ("MGET", "{t}a", "{u}b"), ("MSET", "{t}a", 1, "{u}b", 2), ("MSETNX", "{t}a", 1, "{u}b", 2), ("DEL", "{t}a", "{u}b"), ("UNLINK", "{t}a", "{u}b"),
        ("EXISTS", "{t}a", "{u}b"), ("RENAME", "{t}c", "{u}c"), ("RENAMENX", "{t}c", "{u}c"), ("COPY", "{t}c", "{u}c"), ("TOUCH", "{t}a", "{u}b"),
        ("EVAL", SCRIPT, 2, "{t}n", "{u}nh", 7), ("EVAL", "return redis.call('GET', 'k1')", 1, "{t}n"),
        ("MULTI",), ("SET", "{t}m", 2), ("SET", "{u}m", 2), ("EXEC",),
        ("MULTI",), ("SET", "{t}m", 3), ("MGET", "{t}m", "{u}m"), ("EXEC",),
        # of the other node, and of none
        *((*words, ) for n in ("away",) for words in (
            ("SET", n, 1), ("GET", n), ("INCR", n), ("APPEND", n, 1), ("SETRANGE", n, 1, "a"), ("GETRANGE", n, 0, 1), ("STRLEN", n), ("GETDEL", n), ("GETEX", n),
            ("SETEX", n, 10, 1), ("SETNX", n, 1), ("MGET", n), ("HSET", n, "a", 1), ("HGET", n, "a"), ("HGETALL", n), ("HDEL", n, "a"), ("HINCRBY", n, "a", 1),
            ("HSCAN", n, 0), ("DEL", n), ("UNLINK", n), ("EXISTS", n), ("TYPE", n), ("EXPIRE", n, 10), ("PERSIST", n), ("TTL", n), ("RENAME", n, n), ("DUMP", n),
            ("OBJECT", "ENCODING", n), ("OBJECT", "FREQ", n), ("LPUSH", n, 1), ("SADD", n, 1), ("ZADD", n, 1, 1), ("EVAL", "return redis.call('GET', KEYS[1])", 1, n),
            ("EVAL", SCRIPT, 2, n, n, 1), ("EVALSHA", "0" * 40, 1, n), ("EVAL_RO", "return 1", 1, n), ("FCALL", "f", 1, n), ("WATCH", n), ("SORT", n), ("BITCOUNT", n),
            ("EVAL", "return 1", 0), ("EVAL", f"return redis.pcall('SET', '{n}', 1)", 0), ("GETSET", n, 1), ("PSETEX", n, 1000, 1), ("RESTORE", n, 0, "x"), ("MOVE", n, 1),
            ("INCRBYFLOAT", n, 1), ("PFADD", n, 1), ("SETBIT", n, 1, 1), ("LCS", n, n))),
        ("SWAPDB", 0, 1), ("SELECT", 1), ("MOVE", "{t}c", 1), ("COPY", "{t}c", "{t}e", "DB", 1),
        ("MULTI",), ("SET", "away", 1), ("EXEC",), ("MULTI",), ("EVAL", SCRIPT, 2, "away", "away", 1), ("EXEC",),
    ]
    ASKED = [
        ("GET", "{s}here"), ("GET", "{s}gone"), ("SET", "{s}gone", 1), ("HGET", "{s}gone", "a"), ("MGET", "{s}here", "{s}gone"), ("DEL", "{s}here", "{s}gone"),
        ("RENAME", "{s}here", "{s}gone"), ("EVAL", SCRIPT, 2, "{s}here", "{s}gone", 1), ("EVAL", SCRIPT, 2, "{s}gone", "{s}gone2", 1), ("EXPIRE", "{s}gone", 10),
        ("MULTI",), ("SET", "{s}gone", 1), ("EXEC",), ("TYPE", "{s}gone"), ("INCR", "{s}gone"), ("MSET", "{s}here", 1, "{s}gone", 1), ("EXISTS", "{s}gone"),
        ("OBJECT", "ENCODING", "{s}gone"), ("COPY", "{s}here", "{s}gone"),
    ]
    IMPORTED = [
        ("GET", "{s}new"), ("SET", "{s}new", 1), ("ASKING",), ("SET", "{s}new", 1), ("ASKING",), ("GET", "{s}new"), ("GET", "{s}new"), ("ASKING",), ("HSET", "{s}h", "a", 1),
        ("ASKING",), ("EVAL", SCRIPT, 2, "{s}e", "{s}eh", 1), ("ASKING",), ("MGET", "{s}new", "{s}none"), ("ASKING",), ("MULTI",), ("SET", "{s}m", 1), ("INCR", "{s}m"), ("EXEC",),
        ("ASKING",), ("DEL", "{s}new"), ("ASKING",), ("MSET", "{s}new", 1, "{s}none", 2), ("ASKING",), ("EXPIRE", "{s}e", 100), ("ASKING",), ("RENAME", "{s}e", "{s}f"),
        ("ASKING",), ("INCR", "{s}n"), ("ASKING",), ("TYPE", "{s}n"), ("ASKING",), ("COPY", "{s}n", "{s}c"), ("EVAL", SCRIPT, 2, "{s}e", "{s}eh", 1),
    ]

    def answers(self, r, commands):
        told = []
        for words in commands:
            try:
                answer = r(*words)
            except ServerError as why:
                answer = re.sub(r"127\.0\.0\.1:\d+", "NODE", str(why))
            told.append((words, answer))
        return told

    def differences(self, nodes_of, commands, which):
        by_pool, plain = (self.answers(nodes[which].client(), commands) for nodes in nodes_of)
        return [f"{a[0]}: {a[1]!r}; Redis: {b[1]!r}" for a, b in zip(by_pool, plain) if a[1] != b[1]]

    def test_are_redis_own(self):
        both = [self.cluster(2, name, pool) for name, pool in (("pool", True), ("plain", False))]
        home = {slot_of("{t}") < SLOTS // 2: 0}.get(True, 1)
        away = next(f"a{i}" for i in range(99) if (slot_of(f"a{i}") < SLOTS // 2) != (slot_of("{t}") < SLOTS // 2))
        commands = [tuple(away if w == "away" else w.replace("'away'", f"'{away}'") if isinstance(w, str) else w for w in words) for words in self.COMMANDS]
        self.maxDiff = None
        found = self.differences(both, commands, home)
        slot = slot_of("{s}")
        source = 0 if slot < SLOTS // 2 else 1
        for nodes in both:
            s, t = nodes[source].client(), nodes[1 - source].client()
            s("SET", "{s}here", 1)
            t("CLUSTER", "SETSLOT", slot, "IMPORTING", nodes[source].id)
            s("CLUSTER", "SETSLOT", slot, "MIGRATING", nodes[1 - source].id)
        found += ["MIGRATING " + d for d in self.differences(both, self.ASKED, source)]
        found += ["IMPORTING " + d for d in self.differences(both, self.IMPORTED, 1 - source)]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
