"""Several servers at once: a load of mixed commands, what a server contains, and when one has caught up.

STELE_REDIS_LONGER: how many times as long the loads take; STELE_SEED: of the commands and moments;
STELE_REDIS_ARGUMENTS: of the module, as `media file`; STELE_REDIS_FOLDER: where the servers run.
"""

import os
import random
import threading
import time

from beds import RedisCase, Server, ServerError, ServerGone

SEED = int(os.environ.get("STELE_SEED", random.randrange(1 << 30)))
LONGER = int(os.environ.get("STELE_REDIS_LONGER", 1))
ARGUMENTS = os.environ.get("STELE_REDIS_ARGUMENTS", "").split()
SCRIPT = "redis.call('incr', KEYS[1]); redis.call('hincrby', KEYS[2], 'n', 1); return redis.call('append', KEYS[3], ARGV[1])"


def wait_until(met, what, seconds=30, every=0.02):
    """Polls. Returns what `met` returned last; servers that are gone or refuse count as not yet."""
    end = time.monotonic() + seconds
    while True:
        try:
            if last := met():
                return last
            seen = ""
        except (ServerGone, ServerError, OSError) as why:
            seen = f": {why!r}"
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}{seen}; STELE_SEED={SEED}")
        time.sleep(every)


def pipelined(r, commands):
    """The answers; an error stands in the place of one."""
    commands = list(commands)
    for begin in range(0, len(commands), 200):
        some = commands[begin:begin + 200]
        for words in some:
            r.send(*words)
        for _ in some:
            try:
                yield r.answer()
            except ServerError as why:
                yield why


# A sync does not wait for more replicas, nor for the second at which a replica tells that it has loaded a stream.
AT_ONCE = "--repl-diskless-sync-delay", "0", "--repl-diskless-sync", "no"
READS = {"string": ("GET",), "hash": ("HGETALL",), "list": ("LRANGE", 0, -1), "set": ("SMEMBERS",), "zset": ("ZRANGE", 0, -1, "WITHSCORES")}


def content(r):
    """What the server's database 0 has, by keys: type, value without an order that means nothing, expiry time."""
    keys = sorted(r("KEYS", "*"))
    types = list(pipelined(r, (("TYPE", k) for k in keys)))
    reads = ((READS[t][0], k, *READS[t][1:]) if t in READS else ("PING",) for k, t in zip(keys, types))
    values = list(pipelined(r, reads))
    times = pipelined(r, (("PEXPIRETIME", k) for k in keys))
    found = {}
    for key, kind, value, when in zip(keys, types, values, times):
        if kind == "hash":
            value = sorted(zip(value[::2], value[1::2]))
        elif kind == "set":
            value = sorted(value)
        found[key] = kind, value, when
    return found


def of_the_pool(found):
    """The strings and hashes of a content."""
    return {k: v for k, v in found.items() if v[0] in ("string", "hash")}


def info(r, section, field):
    for line in r("INFO", section).decode().splitlines():
        if line.startswith(field + ":"):
            value = line.split(":", 1)[1]
            return int(value) if value.lstrip("-").isdigit() else value
    return None


class Load:
    """Threads that run mixed commands until stop(). Most cannot be run twice, or left out, unnoticed."""

    def __init__(self, server, threads=2, keys=120):
        self.server, self.keys, self.stopping, self.done, self.wrong = server, keys, False, 0, []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping = True
        for t in self.threads:
            t.join()

    def commands(self, rng):
        k = rng.randrange(self.keys)
        name, other, value = f"{{s}}s{k}", f"{{s}}s{rng.randrange(self.keys)}", "v" * rng.choice((3, 40, 400))
        yield from rng.choice((
            [("SET", name, value)],
            [("APPEND", name, "x")],
            [("SETRANGE", name, rng.randrange(20), "yz")],
            [("INCR", f"{{s}}n{k}")],
            [("INCRBYFLOAT", f"{{s}}f{k}", "0.25")],
            [("HINCRBY", f"{{s}}h{k}", f"f{rng.randrange(9)}", 3)],
            [("HSET", f"{{s}}h{k}", "text", value, "n", 7)],
            [("HDEL", f"{{s}}h{k}", f"f{rng.randrange(9)}", "text")],
            [("DEL", name)],
            [("GETDEL", name)],
            [("RENAME", f"{{s}}n{k}", f"{{s}}n{(k + 1) % self.keys}")],
            [("COPY", name, "{s}copy", "REPLACE")],
            [("MSET", name, value, other, "both")],
            [("EXPIRE", name, 10000 + k)],
            [("PERSIST", name)],
            [("SET", name, "of an hour", "EX", 3600)],
            [("RPUSH", f"{{s}}l{k}", k, "x")],
            [("LPOP", f"{{s}}l{k}")],
            [("SADD", f"{{s}}m{k}", *(rng.randrange(9) for _ in range(3)))],
            [("SREM", f"{{s}}m{k}", rng.randrange(9))],
            [("SPOP", f"{{s}}m{k}")],
            [("ZINCRBY", f"{{s}}z{k}", 2, rng.randrange(9))],
            [("ZREM", f"{{s}}z{k}", rng.randrange(9))],
            [("EVAL", SCRIPT, 3, "{s}script", "{s}scripth", "{s}scripts", rng.choice("ab"))],
            [("MULTI",), ("INCR", "{s}both1"), ("HINCRBY", "{s}hash", "both", 1), ("RPUSH", f"{{s}}l{k}", "in exec"), ("INCR", "{s}both2"), ("EXEC",)],
        ))

    def run(self, number):
        rng = random.Random(SEED + number)
        try:
            r = self.server.client()
            while not self.stopping:
                for words in self.commands(rng):
                    try:
                        r(*words)
                    except ServerError as why:
                        if "no such key" not in str(why):
                            self.wrong.append((words, str(why)))
                self.done += 1
        except (ServerGone, OSError):
            pass


class SeveralCase(RedisCase):
    ports = Server.ports
    where = os.environ.get("STELE_REDIS_FOLDER", RedisCase.where)

    def node(self, name, *options, pool=True, size="16M", arguments=ARGUMENTS, starts=True):
        """A server with a folder of its own, which keeps its port."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        server = Server(folder, "size", size, *arguments, pool=pool, options=[*AT_ONCE, *options], keeps_port=True)
        server.ports = self.ports
        self.addCleanup(server.kill)
        return server.start() if starts else server

    def replica_of(self, master, name, *options, **more):
        return self.node(name, "--replicaof", f"127.0.0.1 {master.port}", *options, **more)

    def wait_for_link(self, master, replica):
        """Until the replica has all that the master has sent. Returns clients of both."""
        m, c = master.client(), replica.client()
        if info(m, "replication", "role") == "master" and info(m, "cluster", "cluster_enabled") == 0:
            wait_until(lambda: info(m, "replication", "connected_slaves") >= 1, "a replica is connected")
            m("PUBLISH", "nobody", "is replicated, so WAIT waits")
            wait_until(lambda: m("WAIT", 1, 1000) >= 1, "a replica tells that it has all")

        def caught_up():
            return (info(c, "replication", "master_link_status") == "up" and info(c, "replication", "master_sync_in_progress") == 0
                    and info(m, "replication", "master_repl_offset") == info(c, "replication", "slave_repl_offset"))
        wait_until(caught_up, "the replica has caught up")
        return m, c

    def alone(self, replica):
        """A client of the server, killed and started on its pool, without a master."""
        replica.kill()
        if "--replicaof" in replica.options:
            at = replica.options.index("--replicaof")
            del replica.options[at:at + 2]
        return replica.start().client()

    def assert_equal_data(self, one, other, least=1):
        """Of two clients' servers."""
        self.assert_same(content(one), content(other), least)

    def assert_same(self, a, b, least=1):
        differ = sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))
        told = [(k, str(a.get(k))[:200], str(b.get(k))[:200]) for k in differ[:3]]
        self.assertEqual(told, [], f"{len(differ)} of {len(a)} keys differ; STELE_SEED={SEED}")
        self.assertGreaterEqual(len(a), least)

    def assert_converges(self, master, replica, least=1):
        self.assert_equal_data(*self.wait_for_link(master, replica), least)

    def run_for(self, load, steps):
        """Until the load has done so many steps more."""
        goal = load.done + steps * LONGER
        wait_until(lambda: load.done >= goal, f"{steps} steps of the load")
