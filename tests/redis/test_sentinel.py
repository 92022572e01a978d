"""Sentinel: the master is killed under load, a replica is promoted, and the old master comes back as one.

STELE_REDIS_FAILOVERS: how many in a row.
"""

import os
import random
import signal
import subprocess
import threading
import time
import unittest

from beds import PROGRAM, Client, ServerError, ServerGone
from several import SEED, Load, SeveralCase, info, wait_until

FAILOVERS = int(os.environ.get("STELE_REDIS_FAILOVERS", 1))


class Sentinel:
    """A process, with the configuration that it writes itself."""

    def __init__(self, folder, master, quorum):
        os.makedirs(folder)
        self.log = os.path.join(folder, "log")
        while True:
            self.port = random.randrange(20000, 30000)
            path = os.path.join(folder, "sentinel.conf")
            with open(path, "w") as out:
                out.write(f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor pools 127.0.0.1 {master} {quorum}\n"
                          "sentinel down-after-milliseconds pools 1000\nsentinel failover-timeout pools 4000\nsentinel parallel-syncs pools 2\n")
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen([PROGRAM, path, "--sentinel"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            try:
                wait_until(lambda: self.process.poll() is not None or self("PING"), "a sentinel")
            except AssertionError:
                self.kill()
                raise
            if self.process.poll() is None:
                self("SENTINEL", "DEBUG", "PING-PERIOD", 300, "INFO-PERIOD", 500, "PUBLISH-PERIOD", 200)  # by default it waits seconds between its steps
                return

    def __call__(self, *words):
        client = Client(self.port)
        try:
            return client(*words)
        finally:
            client.close()

    def seen(self, *words):
        """An answer of names and values, as a dictionary."""
        answer = self("SENTINEL", *words)
        return {k.decode(): v.decode() for k, v in zip(answer[::2], answer[1::2])}

    def master(self):
        return int(self("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "pools")[1])

    def kill(self):
        self.process.kill()
        self.process.wait(60)


class Writer:
    """Counts in keys of its own at the master that the sentinels name; knows what WAIT has told it of."""

    def __init__(self, number, master_now):
        self.key, self.master_now = f"w{number}", master_now
        self.waited, self.tried, self.stopping = 0, 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping:
            try:
                r = Client(self.master_now())
            except OSError:
                time.sleep(0.02)
                continue
            try:
                while not self.stopping:
                    self.tried += 1
                    r("MULTI")
                    r("SET", self.key, self.tried)
                    r("HSET", self.key + "h", "n", self.tried, "m", "x" * (self.tried % 50))
                    r("EXEC")
                    if r("WAIT", 1, 1000) >= 1:
                        self.waited = self.tried
            except (ServerGone, ServerError, OSError):
                time.sleep(0.02)
            finally:
                r.close()

    def stop(self):
        self.stopping = True
        self.thread.join()


class Failover(SeveralCase):
    def setUp(self):
        super().setUp()
        random.seed(SEED)
        first = self.node("one")
        self.nodes = {s.port: s for s in (first, self.replica_of(first, "two"), self.replica_of(first, "three"))}
        for replica in list(self.nodes.values())[1:]:
            self.wait_for_link(first, replica)
        self.sentinels = []
        for i in range(3):
            self.sentinels.append(Sentinel(os.path.join(self.folder, f"sentinel{i}"), first.port, 2))
            self.addCleanup(self.sentinels[-1].kill)
        wait_until(self.all_is_known, "the sentinels know each other and the replicas")

    def all_is_known(self):
        for sentinel in self.sentinels:
            seen = sentinel.seen("MASTER", "pools")
            if (seen["num-other-sentinels"], seen["num-slaves"]) != ("2", "2") or "s_down" in seen["flags"]:
                return False
            if any(b"disconnected" in b"".join(s) or b"down" in s[s.index(b"flags") + 1] for s in sentinel("SENTINEL", "REPLICAS", "pools")):
                return False
        return True

    def master_now(self):
        return self.sentinels[0].master()

    def kill_master(self, writers):
        """Kills it, waits for another, and starts the killed one on its pool."""
        old = self.nodes[self.master_now()]
        waited = [w.waited for w in writers]
        wait_until(lambda: all(w.waited > before + 10 for w, before in zip(writers, waited)), "the writers go on")
        time.sleep(random.uniform(0, 0.1))
        old.process.send_signal(signal.SIGKILL)
        old.process.wait()
        waited = [w.waited for w in writers]
        old.kill()
        new = wait_until(lambda: self.master_now() != old.port and self.nodes[self.master_now()], "another master")
        wait_until(lambda: info(new.client(), "replication", "role") == "master", "its promotion")
        r = new.client()
        for writer, before in zip(writers, waited):
            self.assertGreaterEqual(int(r("GET", writer.key)), before, "what WAIT had told of is lost")
            self.assertGreaterEqual(int(r("HGET", writer.key + "h", "n")), before)
        wait_until(lambda: all(w.waited > before for w, before in zip(writers, waited)), "the writers go on at the new master")
        self.alone(old)
        wait_until(lambda: info(old.client(), "replication", "master_port") == new.port, "the old master is a replica")  # sentinels cut clients
        return new

    def test_master_is_killed(self):
        writers = [Writer(i, self.master_now) for i in range(3)]
        try:
            for _ in range(FAILOVERS):
                new = self.kill_master(writers)
                with Load(new) as load:
                    self.run_for(load, 50)
                wait_until(self.all_is_known, "all are up again")
        finally:
            for writer in writers:
                writer.stop()
        self.assertEqual(self.master_now(), new.port)
        for port, replica in self.nodes.items():
            if port != new.port:
                self.assert_converges(new, replica)
        # By the pools alone.
        m = new.client()
        for writer in writers:
            self.assertGreaterEqual(int(m("GET", writer.key)), writer.waited)
            self.assertEqual(m("GET", writer.key), m("HGET", writer.key + "h", "n"))


if __name__ == "__main__":
    unittest.main()
