"""Masters and replicas with pools: syncs, kills in the middle of them, promotion; and Redis' own files beside a pool."""

import os
import signal
import threading
import time
import unittest

from beds import ServerError
from several import LONGER, Load, SeveralCase, content, info, of_the_pool, pipelined, wait_until

DISKLESS = ("--repl-diskless-sync", "yes")
BY_DISK = ("--repl-diskless-sync", "no")
SLOW_LOAD = (("key-load-delay", 1000), ("loading-process-events-interval-bytes", 1024))  # microseconds a key


def fill(r, keys=1000):
    """Keys of each kind."""
    for answer in pipelined(r, (("MSET", f"fill{i}", "x" * (i % 200), f"more{i}", i) for i in range(keys // 2))):
        assert answer == "OK", answer
    for name, words in (("hash", ("HSET", "a", 1, "b", "x" * 300)), ("list", ("RPUSH", 1, "two")), ("set", ("SADD", 1, 2)), ("zset", ("ZADD", 1, "a", 2.5, "b"))):
        list(pipelined(r, ((words[0], f"{name}{i}", *words[1:]) for i in range(20))))


class FullSync(SeveralCase):
    def sync_under_load(self, *how):
        master = self.node("master", *how)
        fill(master.client())
        with Load(master) as load:
            self.run_for(load, 200)
            replica = self.replica_of(master, "replica")
            c = replica.client()
            wait_until(lambda: info(c, "replication", "master_link_status") == "up", "the link is up")
            self.run_for(load, 200)
        self.assertEqual(load.wrong, [])
        self.assert_converges(master, replica, 1000)
        had = of_the_pool(content(replica.client()))
        self.assertEqual(of_the_pool(content(self.alone(replica))), had)

    def test_by_disk(self):
        self.sync_under_load(*BY_DISK)

    def test_diskless(self):
        self.sync_under_load(*DISKLESS)

    def killed_in_a_sync(self, master):
        replica = self.node("replica")
        c = replica.client()
        for name, value in SLOW_LOAD:
            c("CONFIG", "SET", name, value)
        c("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: info(c, "persistence", "loading") == 1 and 300 < info(c, "stele", "stele_durable_keys") < 1000,
                   "the replica loads", every=0.005)
        replica.kill()
        return replica

    def test_replica_is_killed_in_the_middle_and_after_it(self):
        master = self.node("master", *DISKLESS)
        fill(master.client())
        with Load(master) as load:
            self.run_for(load, 50)
            replica = self.killed_in_a_sync(master)
            replica.options += ["--replicaof", f"127.0.0.1 {master.port}"]
            replica.start()
            self.wait_for_link(master, replica)
            self.run_for(load, 100)
            replica.kill()  # what it has had since the full sync is in its pool
            self.run_for(load, 100)
            replica.start()
            self.run_for(load, 50)
        self.assertEqual(load.wrong, [])
        self.assert_converges(master, replica, 1000)

    def test_part_of_a_sync_is_opened(self):
        master = self.node("master", *DISKLESS)
        fill(master.client())
        replica = self.killed_in_a_sync(master)
        os.remove(os.path.join(replica.folder, "dump.rdb"))
        replica.start()
        whole, part = content(master.client()), content(replica.client())
        self.assertGreater(len(part), 100)
        self.assertLess(len(part), len(whole))
        self.assertEqual([k for k, v in part.items() if whole[k] != v], [])

    def test_replica_had_other_keys(self):
        master = self.node("master")
        fill(master.client())
        replica = self.node("replica")
        c = replica.client()
        list(pipelined(c, (("SET", f"own{i}", i) for i in range(500))))
        c("HSET", "fill1", "a", "hash where the master has a string")
        c("REPLICAOF", "127.0.0.1", master.port)
        self.assert_converges(master, replica, 1000)
        replica.kill()
        replica.start()
        self.assert_equal_data(master.client(), replica.client())

    def test_master_is_killed_and_comes_back(self):
        master = self.node("master")
        replica = self.replica_of(master, "replica")
        m = master.client()
        fill(m)
        self.wait_for_link(master, replica)
        with Load(master) as load:
            self.run_for(load, 200)
            master.process.send_signal(signal.SIGKILL)
        master.kill()
        master.start()
        self.assert_converges(master, replica, 1000)

    def test_master_with_an_old_file_of_its_own(self):
        """The RDB file has the master's replication id at its time; the pool has gone on since."""
        master = self.node("master")
        m = master.client()
        replica = self.replica_of(master, "replica")
        m("SET", "a", 1)
        _, c = self.wait_for_link(master, replica)
        wait_until(lambda: m("SAVE") == "OK", "the child of the sync has ended")
        c("REPLICAOF", "127.0.0.1", 1)  # nobody is there
        m("INCR", "a")
        master.kill()
        master.start()
        c("REPLICAOF", "127.0.0.1", master.port)
        self.assert_converges(master, replica)
        self.assertEqual(c("GET", "a"), b"2")

    def test_replica_with_the_file_of_its_sync(self):
        """A replica that restarts has the file of its last full sync, and a pool that has gone on since."""
        master = self.node("master")
        m = master.client()
        m("SET", "a", 1)
        replica = self.replica_of(master, "replica")
        self.wait_for_link(master, replica)
        for _ in range(10):
            m("INCR", "a")
        self.wait_for_link(master, replica)
        replica.kill()
        replica.start()
        _, c = self.wait_for_link(master, replica)
        self.assertEqual(c("GET", "a"), b"11")

    def test_without_the_module(self):
        master = self.node("master")
        m = master.client()
        fill(m, 100)
        other = self.replica_of(master, "other", pool=False, starts=False)
        other.start(expects=False)
        wait_until(lambda: other.process.poll() is not None, "the replica has ended")
        self.assertIn("module data I can't load: no matching module type 'stele-", other.text())
        m("SET", "still", "there")
        self.assertEqual(m("GET", "still"), b"there")
        other.kill()
        replica = self.replica_of(master, "replica")
        self.assert_converges(master, replica, 100)

    def test_chained(self):
        first = self.node("first")
        fill(first.client())
        second = self.replica_of(first, "second")
        third = self.replica_of(second, "third")
        with Load(first) as load:
            self.run_for(load, 200)
            second.client()("CLIENT", "KILL", "TYPE", "master")
            self.run_for(load, 100)
        self.assert_converges(first, second, 1000)
        self.assert_converges(second, third, 1000)
        second.kill()
        first.client()("INCR", "while it was away")
        second.start()
        self.assert_converges(first, second, 1000)
        self.assert_converges(second, third, 1000)


class PartialSync(SeveralCase):
    def cut(self, which, kind):
        master = self.node("master")
        replica = self.replica_of(master, "replica")
        m = master.client()
        fill(m, 200)
        self.wait_for_link(master, replica)
        with Load(master) as load:
            self.run_for(load, 50)
            for _ in range(2):
                before = [info(m, "stats", f) for f in ("sync_full", "sync_partial_ok")]
                self.assertEqual((master if which == "master" else replica).client()("CLIENT", "KILL", "TYPE", kind), 1)
                self.run_for(load, 50)
                wait_until(lambda: info(m, "stats", "sync_partial_ok") == before[1] + 1, "a partial sync")
                self.assertEqual(info(m, "stats", "sync_full"), before[0])
        self.assertEqual(load.wrong, [])
        self.assert_converges(master, replica, 200)

    def test_master_cuts_the_link(self):
        self.cut("master", "replica")

    def test_replica_cuts_the_link(self):
        self.cut("replica", "master")


class Promotion(SeveralCase):
    def test_pool_of_the_promoted(self):
        master = self.node("master")
        replicas = [self.replica_of(master, name) for name in ("one", "two")]
        with Load(master) as load:
            self.run_for(load, 200)
        for replica in replicas:
            m, _ = self.wait_for_link(master, replica)
        had = content(m)
        master.kill()
        one, two = replicas
        r = one.client()
        r("REPLICAOF", "NO", "ONE")
        self.assertEqual(content(r), had)
        two.client()("REPLICAOF", "127.0.0.1", one.port)
        with Load(one) as load:
            wait_until(lambda: info(r, "stats", "sync_partial_ok") == 1, "the other replica needs no full sync")
            self.run_for(load, 100)
        self.assert_converges(one, two)
        had = of_the_pool(content(one.client()))
        self.assertEqual(of_the_pool(content(self.alone(one))), had)
        self.assert_converges(one, two)


class Effects(SeveralCase):
    def pair(self):
        master = self.node("master")
        replica = self.replica_of(master, "replica")
        return (master, replica, *self.wait_for_link(master, replica))

    def test_expiry(self):
        master, replica, m, c = self.pair()
        m("SET", "soon", 1, "PX", 200)
        m("SET", "late", 1, "EX", 1000)
        m("HSET", "hash", "a", 1)
        m("PEXPIRE", "hash", 200)
        m("SET", "kept", 1, "EX", 1000)
        m("PERSIST", "kept")
        m("GETEX", "late", "EX", 2000)
        m("SET", "again", 1, "PX", 200)
        m("SET", "again", 2)
        self.wait_for_link(master, replica)
        self.assertEqual(m("PEXPIRETIME", "late"), c("PEXPIRETIME", "late"))
        wait_until(lambda: m("DBSIZE") == 3, "keys expire")
        self.wait_for_link(master, replica)
        self.assertEqual(sorted(c("KEYS", "*")), [b"again", b"kept", b"late"])
        self.assertEqual(c("TTL", "kept"), -1)
        c = self.alone(replica)
        self.assertEqual((sorted(c("KEYS", "*")), c("GET", "again")), ([b"again", b"kept", b"late"], b"2"))
        self.assertEqual(m("PEXPIRETIME", "late"), c("PEXPIRETIME", "late"))

    def test_databases(self):
        master, replica, m, c = self.pair()
        for database in range(4):
            m("SELECT", database)
            list(pipelined(m, (("SET", f"k{i}", database) for i in range(50))))
        m("SWAPDB", 0, 1)
        m("MOVE", "k1", 9)
        m("SELECT", 2)
        m("FLUSHDB")
        self.wait_for_link(master, replica)
        for again in range(2):
            found = []
            for database in (0, 1, 2, 3, 9):
                c("SELECT", database)
                found.append((c("DBSIZE"), c("GET", "k7")))
            self.assertEqual(found, [(50, b"1"), (50, b"0"), (0, None), (49, b"3"), (1, None)])
            if not again:
                c = self.alone(replica)

    def test_transactions_are_seen_as_a_whole(self):
        master, replica, m, c = self.pair()
        looks = 0
        with Load(master) as load:
            while load.done < 500 * LONGER or looks < 20:
                c("MULTI")
                for words in (("GET", "{s}both1"), ("HGET", "{s}hash", "both"), ("GET", "{s}both2")):
                    c(*words)
                self.assertEqual(len(set(c("EXEC"))), 1)
                c("MULTI")
                for words in (("GET", "{s}script"), ("HGET", "{s}scripth", "n"), ("STRLEN", "{s}scripts")):
                    c(*words)
                a, b, size = c("EXEC")
                self.assertEqual((a, size), (b, int(a or 0)))
                looks += 1
        self.assert_converges(master, replica)

    def test_scripts_and_functions(self):
        master, replica, m, c = self.pair()
        m("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function(keys, args) redis.call('INCR', keys[1]); return redis.call('HSET', keys[2], args[1], args[1]) end)")
        for i in range(5):
            m("FCALL", "f", 2, "n", "h", i)
        text = m("SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], redis.call('TIME')[1] .. math.random())")
        m("EVALSHA", text, 1, "random")
        with self.assertRaises(ServerError):
            m("EVAL", "redis.call('INCR', 'n'); return redis.call('HGET', 'n', 'a')", 0)  # the first is done
        with self.assertRaisesRegex(ServerError, "READONLY|read.only"):
            c("EVAL", "return redis.call('SET', KEYS[1], 1)", 1, "n")
        self.assert_converges(master, replica)
        self.assertEqual((c("GET", "n"), c("HLEN", "h")), (b"6", 5))
        here = content(m)
        self.assertEqual(content(self.alone(replica)), here)

    def test_wait_answers(self):
        master, replica, m, c = self.pair()
        self.assertEqual(m("WAIT", 1, 5000), 1)
        for i in range(20):
            m("SET", "k", i)
            m("HINCRBY", "h", "a", 1)
            self.assertEqual(m("WAIT", 1, 5000), 1)
            self.assertEqual((c("GET", "k"), c("HGET", "h", "a")), (str(i).encode(), str(i + 1).encode()))
        replica.kill()
        m("SET", "k", "alone")
        self.assertEqual(m("WAIT", 1, 50), 0)

    def test_wait_with_many_clients(self):
        master, replica, m, c = self.pair()
        counts = [0] * 8

        def count(i):
            r = master.client()
            for n in range(30 * LONGER):
                r("HSET", f"h{i}", "n", n)
                r("INCR", f"n{i}")
                counts[i] += r("WAIT", 1, 10000)
        threads = [threading.Thread(target=count, args=(i,)) for i in range(len(counts))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(counts, [30 * LONGER] * len(counts))
        master.kill()
        c = self.alone(replica)
        self.assertEqual([c("GET", f"n{i}") for i in range(len(counts))], [str(30 * LONGER).encode()] * len(counts))


    def test_what_wait_told_of_is_in_the_replicas_pool(self):
        for i in range(2 * LONGER):
            master, replica = (self.node(f"{name}{i}", arguments=("media", "file")) for name in ("master", "replica"))
            replica.client()("REPLICAOF", "127.0.0.1", master.port)
            m, _ = self.wait_for_link(master, replica)
            for n in range(100):
                m("SET", "n", n)
                self.assertEqual(m("WAIT", 1, 5000), 1)
            replica.process.send_signal(signal.SIGKILL)
            self.assertEqual(self.alone(replica)("GET", "n"), b"99")
            master.kill()
            replica.kill()

    def test_failover_by_command(self):
        master, replica, m, c = self.pair()
        with Load(master) as load:
            self.run_for(load, 50)
            wait_until(lambda: m("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 10000) == "OK", "the failover begins")
            wait_until(lambda: info(replica.client(), "replication", "role") == "master", "the failover")
        self.assertEqual([why for _, why in load.wrong if why.split()[0] not in ("READONLY", "UNBLOCKED", "EXECABORT")], [])
        self.assert_converges(replica, master)


class FullPool(SeveralCase):
    def small_replica(self, master):
        replica = self.node("replica", size="2M", arguments=("max_size", "2M"))
        replica.client()("REPLICAOF", "127.0.0.1", master.port)
        return replica

    def test_replica_that_has_no_room_does_not_go_on(self):
        master = self.node("master")
        replica = self.small_replica(master)
        m, _ = self.wait_for_link(master, replica)
        list(pipelined(m, (("SET", f"k{i}", "x" * 1000) for i in range(4000))))
        wait_until(lambda: replica.process.poll() is not None, "the replica has ended", 10)
        self.assertIn("no room", replica.text())
        self.assertEqual(m("DBSIZE"), 4000)

    def test_full_sync_that_finds_no_room(self):
        master = self.node("master")
        list(pipelined(master.client(), (("SET", f"k{i}", "x" * 1000) for i in range(4000))))
        replica = self.small_replica(master)
        wait_until(lambda: replica.process.poll() is not None, "the replica has ended", 10)
        self.assertIn("no room", replica.text())


class OwnFiles(SeveralCase):
    """AOF and RDB of a server that has a pool."""

    def test_aof_beside_a_pool(self):
        server = self.node("server", "--appendonly", "yes", "--appendfsync", "everysec")
        r = server.client()
        fill(r, 300)
        for _ in range(2):
            with Load(server, keys=40) as load:
                self.run_for(load, 100)
                self.rewrite_aof(r)
                self.run_for(load, 100)
            self.assertEqual((load.wrong, info(r, "persistence", "aof_last_bgrewrite_status")), ([], "ok"))
            before = content(r)
            server.kill()
            server.start()
            r = server.client()
            self.assert_same(before, content(r), 300)

    def test_kill_under_load_with_an_aof(self):
        server = self.node("server", "--appendonly", "yes")
        r = server.client()
        answered = 0
        for _ in range(3):
            last = [0]

            def count():
                c = server.client()
                try:
                    while True:
                        value = c("INCR", "n")
                        c("HSET", "h", "n", value)
                        last[0] = value
                except Exception:
                    pass
            counting = threading.Thread(target=count)
            counting.start()
            r("BGREWRITEAOF")
            wait_until(lambda: last[0] > answered + 200 * LONGER, "some steps")
            server.process.send_signal(signal.SIGKILL)
            counting.join()
            server.kill()
            server.start()
            r = server.client()
            answered = int(r("GET", "n"))
            self.assertIn(answered, (last[0], last[0] + 1))
            self.assertIn(int(r("HGET", "h", "n")), (last[0], last[0] + 1))

    def rewrite_aof(self, r):
        r("BGREWRITEAOF")
        wait_until(lambda: info(r, "persistence", "aof_rewrite_in_progress") == 0 and info(r, "persistence", "aof_rewrite_scheduled") == 0,
                   "the AOF is rewritten")

    def test_copies_and_renames_in_an_aof(self):
        """The tail of the AOF works on keys of its base, and the pool is newer than both."""
        server = self.node("server", "--appendonly", "yes")
        r = server.client()
        r("MSET", "a", "text", "gone", 1, "from", "moved")
        r("HSET", "h", "a", 1)
        self.rewrite_aof(r)
        r("COPY", "a", "b")
        r("COPY", "h", "g")
        r("RENAME", "from", "to")
        r("RENAME", "gone", "gone too")
        r("CONFIG", "SET", "appendonly", "no")
        r("DEL", "gone too")
        r("SET", "to", "newer")
        before = content(r)
        for _ in range(2):
            server.kill()
            server.start()
            r = server.client()
            self.assert_same(before, content(r))
            self.assertEqual(info(r, "stele", "stele_durable_keys"), len(before))

    def aof_into_an_empty_pool(self, *options):
        server = self.node("server", "--appendonly", "yes", *options)
        r = server.client()
        fill(r, 100)
        with Load(server, keys=40) as load:
            self.run_for(load, 100)
            self.rewrite_aof(r)
            self.run_for(load, 300)
        before = content(r)
        server.kill(signal.SIGTERM)
        os.remove(server.pool)
        server.start()
        self.assert_same(before, content(server.client()), 100)

    def test_aof_into_an_empty_pool(self):
        self.aof_into_an_empty_pool()

    def test_aof_without_preamble_into_an_empty_pool(self):
        self.aof_into_an_empty_pool("--aof-use-rdb-preamble", "no")

    def test_rdb_under_load_into_an_empty_pool(self):
        server = self.node("server", "--rdb-key-save-delay", "300")
        r = server.client()
        fill(r)
        with Load(server) as load:
            self.run_for(load, 100)
            begun = int(r("GET", "{s}script") or 0)
            r("BGSAVE")
            forked = int(r("GET", "{s}script") or 0)
            self.run_for(load, 100)
            self.assertEqual(info(r, "persistence", "rdb_bgsave_in_progress"), 1, "the child had ended before the changes had")
            r("CONFIG", "SET", "rdb-key-save-delay", 0)
            wait_until(lambda: info(r, "persistence", "rdb_bgsave_in_progress") == 0, "BGSAVE")
        self.assertEqual((load.wrong, info(r, "persistence", "rdb_last_bgsave_status")), ([], "ok"))
        other = self.node("other", starts=False)
        os.link(os.path.join(server.folder, "dump.rdb"), os.path.join(other.folder, "dump.rdb"))
        o = other.start().client()
        script, both = o("GET", "{s}script"), o("GET", "{s}both1")
        self.assertTrue(begun <= int(script or 0) <= forked)
        self.assertEqual((o("HGET", "{s}scripth", "n"), o("STRLEN", "{s}scripts")), (script, int(script or 0)))
        self.assertEqual((o("HGET", "{s}hash", "both"), o("GET", "{s}both2")), (both, both))
        had = content(o)
        self.assertGreaterEqual(info(o, "stele", "stele_durable_keys"), len(of_the_pool(had)))
        with Load(other) as load:
            self.run_for(load, 50)
        self.assertEqual(load.wrong, [])
        had = of_the_pool(content(o))
        self.assert_same(had, of_the_pool(content(self.alone(other))), 1000)

    def test_saved_and_loaded_is_equal(self):
        server = self.node("server")
        r = server.client()
        fill(r)
        with Load(server) as load:
            self.run_for(load, 300)
        r("SAVE")
        other = self.node("other", starts=False)
        os.link(os.path.join(server.folder, "dump.rdb"), os.path.join(other.folder, "dump.rdb"))
        self.assert_equal_data(r, other.start().client(), 1000)


if __name__ == "__main__":
    unittest.main()
